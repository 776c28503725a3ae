"""Shows that hidden tiles stay hidden: bytes of pairs of games that differ in nothing else, and times of searches.

Usage: python -m load.hidden [pairs | times | report] [--pairs N] [--calls N] [--minutes N] [--seed S] [--quick]

Each part writes its figures into build/secrets/ while it runs, so that it can be stopped at any time. The report makes
the page of what is there; without a name, all three run.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # before grpc is imported: servers here log like real ones

from load.bench.figures import run_facts
from load.hidden.pairs import FAMILIES, Comparison, Leak, Tally
from load.hidden.report import COMPLETE_CALLS, COMPLETE_PAIRS, report
from load.hidden.stage import staged
from load.hidden.times import ROWS, Timing

RESULTS: Final = Path("build") / "secrets"
PAIRS: Final = COMPLETE_PAIRS
QUICK_PAIRS: Final = 1_000
CALLS: Final = COMPLETE_CALLS
QUICK_CALLS: Final = 500
PROGRESS_SECONDS: Final = 30.0
COUNTED: Final = ("pairs", "games", "with_metrics", "with_draft", "moved", "on_the_wire", "wire_bytes")
SHOWN_LEAKS: Final = 10
CONTEXT: Final = 120
"""How many bytes before and after a difference are shown."""


def main() -> int:
    """Runs the parts that the command line names; returns 1 if anything hidden shows."""
    arguments = parse_arguments()
    RESULTS.mkdir(parents=True, exist_ok=True)
    if arguments.part in {"pairs", "all"}:
        before = figures_of("pairs") if arguments.resume else {}
        asyncio.run(compare(arguments.pairs, arguments.seed, arguments.minutes * 60, before))
    if arguments.part in {"times", "all"}:
        asyncio.run(measure(arguments.calls, arguments.seed, arguments.minutes * 60))
    return report(RESULTS, is_for_page=arguments.write)


def parse_arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description="Compare games that differ in hidden tiles.")
    parser.add_argument("part", nargs="?", default="all", choices=("all", "pairs", "times", "report"))
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"how many pairs are compared ({PAIRS})")
    parser.add_argument("--calls", type=int, default=CALLS, help=f"how many calls are timed of each RPC ({CALLS})")
    parser.add_argument("--minutes", type=float, default=1e6, help="after how many minutes a part ends (no limit)")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first game of each family (0)")
    parser.add_argument("--resume", action="store_true", help="add to the pairs of the run before")
    parser.add_argument("--write", action="store_true", help="write shorter runs into docs/reliability.md, too")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_PAIRS} pairs, and few calls")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.pairs, arguments.calls = QUICK_PAIRS, QUICK_CALLS
    return arguments


async def compare(most: int, seed: int, seconds: float, before: Mapping[str, Any]) -> None:
    """Compares pairs of games of all families, and writes the figures.

    Args:
        most: How many pairs are compared.
        seed: The seed of the first game of each family.
        seconds: After how many seconds the comparison ends.
        before: The figures of a run to which this one is added; empty for none.
    """
    tally, began = Tally(), time.monotonic()
    if before:
        seed, tally = before["seeds"][0], tally_of(before)
    said, number = began, before["seeds"][1] + 1 if before else seed
    async with staged() as stage:
        comparison = Comparison(stage, tally, most)
        while not comparison.is_done and time.monotonic() - began < seconds:
            for family in FAMILIES:
                await comparison.of_game(family, f"{number}")
                if time.monotonic() - said > PROGRESS_SECONDS:
                    said = time.monotonic()
                    print(f"{tally.pairs} of {most} pairs, {len(tally.leaks)} differ", file=sys.stderr, flush=True)
                    keep(tally, (seed, number), said - began, before)
                if comparison.is_done or time.monotonic() - began > seconds:
                    break
            number += 1
    keep(tally, (seed, number - 1), time.monotonic() - began, before)
    for leak in tally.leaks[:SHOWN_LEAKS]:
        print(f"{leak.family} {leak.seed}, {leak.viewer}: {leak.place}", *excerpts(leak.one, leak.other), sep="\n  ")


async def measure(calls: int, seed: int, seconds: float) -> None:
    """Measures the times of searches, and writes the figures."""
    began = said = time.monotonic()
    async with staged() as stage:
        timing = Timing(stage, seed)
        async for made in timing.measure(calls, began + seconds):
            if time.monotonic() - said > PROGRESS_SECONDS:
                said = time.monotonic()
                print(f"{made} of {calls * len(ROWS)} calls timed", file=sys.stderr, flush=True)
                keep_times(timing, seed, said - began)
        keep_times(timing, seed, time.monotonic() - began)


def keep_times(timing: Timing, seed: int, seconds: float) -> None:
    """Writes the figures of times."""
    rows = {
        name: {
            "calls": row.calls,
            "median_ms": row.medians[0] * 1000,
            "largest_gap_ms": row.medians[1] * 1000,
            "probability": row.least_probable,
        }
        for name, row in timing.rows.items()
        if row.calls
    }
    load = os.getloadavg()[1]
    write_results("times", {**run_facts("grpcio"), "seconds": seconds, "seed": seed, "load": load, "rows": rows})


def figures_of(name: str) -> dict[str, Any]:
    """Returns the figures of a part; empty if it has not run."""
    path = RESULTS / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def write_results(name: str, figures: Mapping[str, Any]) -> None:
    """Writes the figures of a part, so that a reader never finds half of them."""
    path = RESULTS / f"{name}.json"
    path.with_suffix(".new").write_text(json.dumps(figures, indent=2) + "\n")
    path.with_suffix(".new").replace(path)


def excerpts(one: bytes, other: bytes) -> tuple[bytes, bytes]:
    """Returns what is around the first difference of two texts."""
    shorter = min(len(one), len(other))
    place = next((place for place in range(shorter) if one[place] != other[place]), shorter)
    around = slice(max(0, place - CONTEXT), place + CONTEXT)
    return one[around], other[around]


def tally_of(figures: Mapping[str, Any]) -> Tally:
    """Returns the tally that was written as figures."""
    leaks = [Leak(*leak[:4], *(text.encode() for text in leak[4:])) for leak in figures["leaks"]]
    tally = Tally(leaks=leaks)
    for name in ("by_family", "by_viewer", "by_rpc"):
        setattr(tally, name, Counter(figures[name]))
    for name in COUNTED:
        setattr(tally, name, figures.get(name, 0))
    return tally


def keep(tally: Tally, seeds: tuple[int, int], seconds: float, before: Mapping[str, Any]) -> None:
    """Writes the figures of pairs, added to those of a run before."""
    facts = run_facts("grpcio")
    known = before.get("revision", "").split(" and ")
    revisions = [name for name in known if name and name != facts["revision"]]
    figures: Mapping[str, Any] = {
        **facts,
        "revision": " and ".join([*revisions, facts["revision"]]),
        "seconds": seconds + before.get("seconds", 0.0),
        "seeds": seeds,
        **{name: getattr(tally, name) for name in COUNTED},
        "by_family": tally.by_family,
        "by_viewer": tally.by_viewer,
        "by_rpc": tally.by_rpc,
        "leaks": [
            [leak.family, leak.seed, leak.viewer, leak.place, *map(repr, excerpts(leak.one, leak.other))]
            for leak in tally.leaks
        ],
    }
    write_results("pairs", figures)


if __name__ == "__main__":
    sys.exit(main())
