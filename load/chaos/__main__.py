"""Consistency under faults: `make chaos ARGS="--seconds 90"`, `make chaos ARGS=bugs`, or the complete run without ARGS.

Players play on servers with each kind of store, one after the other, while servers, stores, connections, disks, memory
and clocks fail. What they saw is in build/chaos/, a file for each store; `--check FILE` checks one once more. The seed
determines faults, games and mischief; how they interleave depends on the machine. `bugs` shows that the checker can
fail: it seeds bugs into copies of the service, and each must be found within two minutes. The complete run does both,
and writes docs/reliability.md.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from load.bench.figures import run_facts
from load.chaos.bugs import BUGS, Found, seek
from load.chaos.checker import Verdict, check
from load.chaos.deployments import DEPLOYMENTS
from load.chaos.history import read
from load.chaos.report import Sought, finish, keep
from load.chaos.run import Plan, run
from load.parts import run_parts
from tools.servers import end_in_order

COMPLETE_SECONDS: Final = 3_600.0
SHARES: Final[Mapping[str, float]] = {"redis": 0.4, "embedded": 0.25, "cluster": 0.25, "everysec": 0.1}
"""The share of each store in the time of a run."""
OVERHEAD: Final = 0.35
"""The share of a run in which there are no faults: starting servers, and reading what is stored at the end."""


def play(store: str, seed: int, seconds: float) -> Verdict:
    """Runs one store, and checks its history."""
    print(f"{store} ...", flush=True)
    done = asyncio.run(run(Plan(store, seed, seconds)))
    verdict = check(done.entries)
    print(f"{store}: {verdict.calls:,} calls, {verdict.faults.total()} faults, {len(verdict.violations)} violations")
    print(*(f"given up: {reason} ({count} games)" for reason, count in done.given_up.items()), sep="\n", end="")
    return verdict


def hunt(names: Sequence[str], seed: int) -> list[Found]:
    """Seeks seeded bugs; without names all, whose results are kept for the page."""
    found: list[Found] = []
    facts = run_facts()
    for bug in BUGS:
        if not names or bug.name in names:
            found.append(seek(bug, seed))
            if not names:
                keep(Sought(facts["date"], facts["revision"], seed, found))
            seconds = found[-1].seconds
            told = "NOT FOUND" if seconds is None else f"found after {seconds:.0f} s"
            print(f"{bug.name}: {told} ({', '.join(found[-1].by)})", flush=True)
    return found


def main() -> int:
    """Runs what the arguments say; returns 1 if something was violated, or a bug not found."""
    parser = argparse.ArgumentParser(
        prog="chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", nargs="*", metavar="bugs [NAME]", help="seek seeded bugs, or one of them")
    parser.add_argument("--seconds", type=float, help=f"time of all stores together, by default {COMPLETE_SECONDS:g}")
    parser.add_argument("--seed", type=int, default=None, help="repeats a schedule; by default the time")
    parser.add_argument("--store", action="append", choices=sorted(DEPLOYMENTS), help="only this one; may be repeated")
    parser.add_argument("--check", type=Path, nargs="+", metavar="FILE", help="check histories again")
    parser.add_argument("--page", action="store_true", help="write the page, with the bugs that were sought last")
    chosen = parser.parse_args()
    if chosen.part and chosen.part[0] != "bugs":
        parser.error(f"unknown part: {chosen.part[0]}")
    if chosen.check:
        verdicts = [check(read(path)) for path in chosen.check]
        return finish({one.run.store: one for one in verdicts if one.run}, {}, is_complete=chosen.page)
    end_in_order()
    seed = int(time.time()) if chosen.seed is None else chosen.seed
    if chosen.part:
        return 0 if all(one.is_in_time for one in hunt(chosen.part[1:], seed)) else 1
    is_complete = chosen.page or not (chosen.store or chosen.seconds)
    if is_complete and not chosen.page:
        hunt((), seed)
    seconds = chosen.seconds or COMPLETE_SECONDS
    stores = chosen.store or list(SHARES)
    whole = sum(SHARES[store] for store in stores)
    results, errors = run_parts(
        lambda store: play(store, seed, seconds * (1 - OVERHEAD) * SHARES[store] / whole),
        {store: store for store in stores},
    )
    return finish(results, errors, is_complete=is_complete)


if __name__ == "__main__":
    sys.exit(main())
