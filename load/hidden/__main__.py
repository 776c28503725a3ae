"""Shows that hidden tiles stay hidden: bytes of pairs of games that differ in nothing else, and times of searches.

Usage: python -m load.hidden [pairs | times | report] [--pairs N] [--calls N] [--minutes N] [--seed S] [--quick]

Each part writes its figures into build/secrets/ while it runs, so that it can be stopped at any time. The report makes
the page of what is there; without a name, all three run.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # before grpc is imported: servers here log like real ones
ROOT: Final = Path(__file__).resolve().parents[2]

from load.bench.figures import run_facts  # noqa: E402 - after the setting
from load.hidden.pairs import FAMILIES, Comparison, Tally  # noqa: E402 - as above
from load.hidden.stage import staged  # noqa: E402 - as above

RESULTS: Final = Path("build") / "secrets"
PAIRS: Final = 100_000
QUICK_PAIRS: Final = 1_000
PROGRESS_SECONDS: Final = 30.0
SHOWN_LEAKS: Final = 10
CONTEXT: Final = 120
"""How many bytes before and after a difference are shown."""


def main() -> int:
    """Runs the parts that the command line names; returns 1 if anything hidden shows."""
    arguments = parse_arguments()
    RESULTS.mkdir(parents=True, exist_ok=True)
    if arguments.part in {"pairs", "all"}:
        asyncio.run(compare(arguments.pairs, arguments.seed, arguments.minutes * 60))
    return 0


def parse_arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description="Compare games that differ in hidden tiles.")
    parser.add_argument("part", nargs="?", default="all", choices=("all", "pairs", "times", "report"))
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"how many pairs are compared ({PAIRS})")
    parser.add_argument("--minutes", type=float, default=1e6, help="after how many minutes a part ends (no limit)")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first game of each family (0)")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_PAIRS} pairs, and few calls")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.pairs = min(arguments.pairs, QUICK_PAIRS)
    return arguments


async def compare(most: int, seed: int, seconds: float) -> None:
    """Compares pairs of games of all families, and writes the figures."""
    tally, began = Tally(), time.monotonic()
    said, number = began, seed
    async with staged() as stage:
        comparison = Comparison(stage, tally, most)
        while not comparison.is_done and time.monotonic() - began < seconds:
            for family in FAMILIES:
                await comparison.of_game(family, f"{number}")
                if time.monotonic() - said > PROGRESS_SECONDS:
                    said = time.monotonic()
                    print(f"{tally.pairs} of {most} pairs, {len(tally.leaks)} differ", file=sys.stderr, flush=True)
                    keep(tally, seed, number, said - began)
            number += 1
    keep(tally, seed, number - 1, time.monotonic() - began)
    for leak in tally.leaks[:SHOWN_LEAKS]:
        print(f"{leak.family} {leak.seed}, {leak.viewer}: {leak.place}", *excerpts(leak.one, leak.other), sep="\n  ")


def excerpts(one: bytes, other: bytes) -> tuple[bytes, bytes]:
    """Returns what is around the first difference of two texts."""
    shorter = min(len(one), len(other))
    place = next((place for place in range(shorter) if one[place] != other[place]), shorter)
    around = slice(max(0, place - CONTEXT), place + CONTEXT)
    return one[around], other[around]


def keep(tally: Tally, seed: int, last: int, seconds: float) -> None:
    """Writes the figures of pairs."""
    figures: Mapping[str, Any] = {
        **run_facts("grpcio"),
        "revision": revision(),
        "seconds": seconds,
        "seeds": [seed, last],
        "pairs": tally.pairs,
        "games": tally.games,
        "with_metrics": tally.with_metrics,
        "moved": tally.moved,
        "by_family": tally.by_family,
        "by_viewer": tally.by_viewer,
        "by_rpc": tally.by_rpc,
        "leaks": [
            [leak.family, leak.seed, leak.viewer, leak.place, *map(repr, excerpts(leak.one, leak.other))]
            for leak in tally.leaks
        ],
    }
    path = RESULTS / "pairs.json"
    path.with_suffix(".new").write_text(json.dumps(figures, indent=2) + "\n")
    path.with_suffix(".new").replace(path)


def revision() -> str:
    """Returns the short name of the commit."""
    git = ("git", "rev-parse", "--short", "HEAD")
    return subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
