"""Measures what a deployment takes: `python -m load.capacity` runs all parts, `... watchers --quick` one of them.

Each part replaces its figures in build/capacity.json, and docs/capacity.md gets the tables of all parts. A quick run
only prints them.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from load.bench.figures import are_met, print_report, printer, run_facts
from load.capacity import commits, games, lists, restart, watchers
from load.capacity.machines import Assumptions
from load.capacity.report import requirements_of, tables_of, told_of
from load.capacity.restart import WATCHERS
from load.pages import text_of, write
from load.parts import every_part_ends, run_parts
from tools.redis_servers import redis_version
from tools.servers import end_in_order

RESULTS: Final = Path("build") / "capacity.json"
QUICK_RESULTS: Final = Path("build") / "capacity-quick.json"
PAGE: Final = "capacity.md"
COMMAND: Final = "make capacity"
MOST_GAMES: Final = 1_000_000
GAME_BYTES: Final = 6_000
"""Memory of a listed game in the measurement of lists, with a margin."""
PARTS: Final[dict[str, Callable[..., Awaitable[dict[str, Any]]]]] = {
    "games": games.measure,
    "commits": commits.measure,
    "watchers": watchers.measure,
    "lists": lists.measure,
    "restart": restart.measure,
}


def main(arguments: Sequence[str] | None = None, results: Path | None = None) -> int:
    """Runs the named parts, or all; returns 1 if a requirement is missed."""
    chosen = _parser().parse_args(arguments)
    unknown = sorted(set(chosen.parts) - set(PARTS))
    if unknown:
        sys.exit(f"no such part: {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    results = results or (QUICK_RESULTS if chosen.quick else RESULTS)
    results.parent.mkdir(exist_ok=True)

    def measure(name: str) -> dict[str, Any]:
        report = run(name, results, quick=chosen.quick, most_games=chosen.games, watchers=chosen.watchers)
        results.write_text(json.dumps(report, indent=2) + "\n")
        return report

    reports, errors = run_parts(measure, {name: name for name in chosen.parts or PARTS})
    if not reports:
        return 1
    report = list(reports.values())[-1]
    if errors:
        report["requirements"].append(every_part_ends(errors))
    tables = tables_of(report["parts"], Assumptions())
    print_report(report, tables, told_of(report), printer())
    if not (chosen.quick or errors) and set(report["parts"]) == set(PARTS):
        write(PAGE, COMMAND, text_of(report, told_of(report), tables))
        print(f"docs/{PAGE} has the figures of {results} now.")
    return 0 if are_met(report) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"all, or some of {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="few games, turns and watchers: tries the command")
    parser.add_argument(
        "--games", type=int, metavar="N", default=MOST_GAMES, help=f"lists with up to N games ({MOST_GAMES:,})"
    )
    parser.add_argument("--watchers", type=int, metavar="N", default=WATCHERS, help="watchers of a restart")
    return parser


def run(name: str, results: Path, *, quick: bool, most_games: int, watchers: int = WATCHERS) -> dict[str, Any]:
    """Measures a part; returns the report with it and the other parts of the last report."""
    measure = PARTS[name]
    if name == "lists":
        _check_memory(0 if quick else most_games)
        measure = partial(measure, most_games=most_games)
    elif name == "restart":
        measure = partial(measure, watchers=watchers)
    began = time.monotonic()
    measured: dict[str, Any] = asyncio.run(measure(_step, quick=quick))  # type: ignore[arg-type]  # coroutine functions
    last = json.loads(results.read_text()) if results.exists() else {}
    parts = {**last.get("parts", {}), name: measured}
    return {
        **run_facts("grpcio", "protobuf", "redis", "hiredis"),
        "store": redis_version(),
        "seconds": {**last.get("seconds", {}), name: time.monotonic() - began},
        "parts": parts,
        "requirements": requirements_of(parts),
    }


def _check_memory(games: int) -> None:
    """Ends the command if the machine lacks the memory for a number of listed games."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) * 1024
    needed = games * GAME_BYTES
    if needed > free:
        sys.exit(f"{games:,} games take up to {needed / 1e9:.0f} GB and {free / 1e9:.0f} GB are free: use --games")


def _step(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


if __name__ == "__main__":
    end_in_order()
    sys.exit(main())
