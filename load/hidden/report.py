"""The report of `make secrets`: what was compared, what was measured, and whether anything hidden shows."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from load.bench.figures import Tables, are_met, duration, goal, print_report, printer, requirement, told_of_run
from load.hidden.pairs import LIKENESSES
from load.pages import text_of, write

PAGE: Final = "reliability.md"
COMMAND: Final = "make secrets"
COMPLETE_PAIRS: Final = 100_000
"""How many pairs a complete run compares."""
COMPLETE_CALLS: Final = 10_000
"""How many calls of each row a complete run times."""
LEAST_PROBABLE: Final = 0.001
"""Below this probability, chance does not explain that the times of two games differ."""


def report(results: Path, *, is_for_page: bool) -> int:
    """Prints the figures that the parts have written, and writes those of complete runs into the page.

    Args:
        results: The folder of the figures.
        is_for_page: Whether figures of shorter runs enter the page, too.

    Returns:
        The exit code: 1 if a requirement is missed.
    """
    pairs, times = (_figures(results / f"{part}.json") for part in ("pairs", "times"))
    if not pairs and not times:
        print(f"no figures in {results}")
        return 1
    made = made_of(pairs, times)
    tables = {**tables_of_pairs(pairs), **table_of_times(times)}
    told = [*told_of_run(made)]
    if pairs:
        told.append(f"{pairs['games']:,} random games with the seeds {pairs['seeds'][0]} to {pairs['seeds'][1]}")
    if times:
        told.append(f"times with the seed {times['seed']}, at a load of {times['load']:.0f} by other processes")
    print_report(made, tables, told, printer(140))
    is_complete = bool(pairs) and bool(times) and pairs["pairs"] >= COMPLETE_PAIRS
    if is_complete or is_for_page:
        write(PAGE, COMMAND, text_of(made, told, tables))
        print(f"docs/{PAGE} has these figures now.")
    return 0 if are_met(made) else 1


def made_of(pairs: Mapping[str, Any], times: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the report of both parts, with its requirements."""
    requirements = []
    if pairs:
        found = len(pairs["leaks"])
        requirements.append(
            requirement(
                "no byte differs between two games of a pair",
                met=not found,
                measured=f"{found} of {pairs['pairs']:,} pairs differ",
            )
        )
        are_enough = pairs["pairs"] >= COMPLETE_PAIRS
        requirements.append(goal(f"{COMPLETE_PAIRS:,} pairs", met=are_enough, measured=f"{pairs['pairs']:,}"))
    if times:
        unlike = {name: row for name, row in times["rows"].items() if row["probability"] < LEAST_PROBABLE}
        least = min(times["rows"].values(), key=lambda row: row["probability"])["probability"]
        told = f"the least probability is {least:.3f}" if not unlike else f"not so: {', '.join(unlike)}"
        requirements.append(requirement("chance explains how times of two games differ", met=not unlike, measured=told))
        fewest = min(row["calls"] for row in times["rows"].values())
        enough = f"{COMPLETE_CALLS:,} calls of each row are timed"
        requirements.append(goal(enough, met=fewest >= COMPLETE_CALLS, measured=f"at least {fewest:,}"))
    facts = pairs or times
    seconds = sum(part["seconds"] for part in (pairs, times) if part)
    return {**facts, "seconds": seconds, "requirements": requirements}


def tables_of_pairs(pairs: Mapping[str, Any]) -> Tables:
    """Returns the tables of what was compared."""
    if not pairs:
        return {}
    rpcs = pairs["by_rpc"]

    def part(name: str) -> str:
        return f"{pairs.get(name, 0):,} ({pairs.get(name, 0) / max(1, pairs['pairs']):.0%})"

    size = [
        ["pairs of games", f"{pairs['pairs']:,}"],
        [
            f"views of a caller on a state of a game, each compared with {LIKENESSES} likenesses",
            f"{pairs['pairs'] / LIKENESSES:,.0f}",
        ],
        ["random games that they are states of", f"{pairs['games']:,}"],
        ["presets and kinds of random rulesets", f"{len(pairs['by_family'])}"],
        ["RPCs, of players and of operators", f"{len(rpcs)}"],
        ["responses that were compared", f"{sum(rpcs.values()):,}"],
        ["pairs in which the game then changed, and was read again", part("moved")],
        ["pairs with a draft of the player to move", part("with_draft")],
        ["pairs whose metrics were compared too", part("with_metrics")],
        ["pairs whose bytes of HTTP/2 were compared too, in new connections", part("on_the_wire")],
        ["these bytes", f"{pairs['wire_bytes'] / 1e6:.1f} MB"],
        ["duration of the comparison", duration(pairs["seconds"])],
    ]
    viewers = [[kind, f"{count:,}"] for kind, count in sorted(pairs["by_viewer"].items())]
    return {"What was compared": [["what", "number"], *size], "Who looked": [["caller", "pairs"], *viewers]}


def table_of_times(times: Mapping[str, Any]) -> Tables:
    """Returns the table of times."""
    if not times:
        return {}
    head = ["call", "calls", "median", "largest gap of medians", "probability"]
    rows = [
        [
            name,
            f"{row['calls']:,}",
            f"{row['median_ms']:.2f} ms",
            f"{row['largest_gap_ms']:.3f} ms",
            f"{row['probability']:.3f}",
        ]
        for name, row in times["rows"].items()
    ]
    return {"Times of calls on both games of 10 pairs, in random order": [head, *rows]}


def _figures(path: Path) -> dict[str, Any]:
    """Returns the figures of a part; empty if it has not run."""
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found
