"""Compares the solver with its oracles on many positions: an integer program, and brute force on small positions.

`solver_soak.py 20000` takes half of its positions from games and half at random, and adds a quarter as many small ones.
As many small positions again have rules that restrict more than faces: random options, or a preset that restricts
jokers. These are solved twice, the second time without the search for few tiles, so that the general search runs.
"""

import argparse
import multiprocessing
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from engine.analysis import Situation  # noqa: E402 - as above
from engine.ruleset import SABRA, Ruleset, choose, problems  # noqa: E402 - as above
from engine.solver import Budget, Existence, Objective, few_tiles  # noqa: E402 - as above
from engine.solver.guarded import is_guarded  # noqa: E402 - as above
from load.corpus.joker_positions import RESTRICTED, joker_positions  # noqa: E402 - as above
from load.corpus.positions import positions  # noqa: E402 - as above
from oracles import brute_force, integer_program  # noqa: E402 - as above
from oracles.brute_force import Comparison, TooManyPlaysError, small_situation  # noqa: E402 - as above
from oracles.integer_program import IntegerProgram, random_rules, random_situation  # noqa: E402 - as above
from support.random_play import CHOICES, random_ruleset  # noqa: E402 - as above

PROCESSES = 2
MOST_FAULTS = 10
BUDGET = Budget(nodes=50_000, change_nodes=5_000)
MOST_TILES = few_tiles.MOST_TILES

GAMES = "of games"
CHANCE = "by chance"
SMALL = "small"
GUARDED = "guarded"
CLAIMS = "by claims"

GUARDING = (
    "joker_retrieval_mode",
    "joker_retrieval_source",
    "joker_retrieval_reuse",
    "joker_retrieval_same_set",
    "joker_retrieval_group_of_three",
    "joker_retrieval_end_of_run_free",
    "manipulation",
    "contract",
    "jokers_beyond_physical",
)
"""Options that make the origin of a tile matter, or that define retrieval."""

Job = tuple[str, int]
"""The source of positions, and a seed."""


@dataclass(frozen=True)
class Outcome:
    """The result of a job: counts, and the disagreements between the solver and the oracle."""

    job: Job
    counts: Counter[str] = field(default_factory=Counter)
    faults: tuple[str, ...] = ()


def main() -> int:
    """Compares and reports; returns 1 if there is a disagreement."""
    parser = argparse.ArgumentParser(description="Compare the solver with its oracles on many positions.")
    parser.add_argument(
        "positions", type=int, nargs="?", default=20_000, help="positions for the integer program (20000)"
    )
    parser.add_argument("--small", type=int, help="positions for brute force, of each kind (a quarter as many)")
    parser.add_argument("--seed", type=int, default=1_000_000, help="the first seed (1000000)")
    chosen = parser.parse_args()
    small = chosen.positions // 4 if chosen.small is None else chosen.small
    halves = {GAMES: chosen.positions // 2, CHANCE: chosen.positions - chosen.positions // 2}
    wanted = halves | {SMALL: small, GUARDED: small, CLAIMS: small}
    console = Console()
    started = time.monotonic()
    totals, faults = compared(wanted, chosen.seed, console)
    for fault in faults:
        console.print(fault, markup=False, highlight=False, soft_wrap=True)
    console.print(f"{summary(totals, wanted)}\n{time.monotonic() - started:,.0f} seconds", highlight=False)
    return 1 if faults else 0


def compared(wanted: dict[str, int], seed: int, console: Console) -> tuple[Counter[str], list[str]]:
    """Compares the wanted number of positions of each kind; stops early after MOST_FAULTS disagreements."""
    totals: Counter[str] = Counter()
    faults: list[str] = []
    with multiprocessing.Pool(PROCESSES) as pool, Progress(console=console) as progress:
        for sort, number in wanted.items():
            task = progress.add_task(sort, total=number)
            jobs = [(sort, seed + step) for step in range(number // (30 if sort is GAMES else 1) + 1)]
            for outcome in pool.imap_unordered(compare, jobs, chunksize=1 if sort is GAMES else 20):
                totals.update(outcome.counts)
                faults += [f"{outcome.job}: {fault}" for fault in outcome.faults]
                progress.update(task, completed=min(number, totals[f"{sort}: positions"]))
                if totals[f"{sort}: positions"] >= number or len(faults) >= MOST_FAULTS:
                    break
    return totals, faults


def compare(job: Job) -> Outcome:
    """Runs one job."""
    sort, seed = job
    few_tiles.MOST_TILES = 0 if sort == CLAIMS else MOST_TILES
    outcome = Outcome(job)
    found: list[str] = []
    try:
        for situation, objective in situations(sort, seed):
            comparison = asked(sort, situation, objective)
            outcome.counts.update(counted(sort, situation, comparison))
            found += [comparison.fault] if comparison and comparison.fault else []
    except Exception:  # noqa: BLE001 - any error is a finding; it is reported with the seed
        found.append(traceback.format_exc())
    return Outcome(job, outcome.counts, tuple(found))


def situations(sort: str, seed: int) -> Iterator[tuple[Situation, Objective]]:
    """Yields the situations of a seed: all turns of a game, or one situation."""
    rng = random.Random(seed)
    if sort == GAMES:
        for recorded in positions([seed]):
            yield recorded.situation, rng.choice(tuple(Objective))
    elif sort == CHANCE:
        yield random_situation(rng, random_rules(rng)), rng.choice(tuple(Objective))
    elif sort in {GUARDED, CLAIMS}:
        yield guarded_situation(rng), rng.choice(tuple(Objective))
    else:
        yield small_situation(rng, random_ruleset(rng, with_analysis=True)), rng.choice(tuple(Objective))


def guarded_situation(rng: random.Random) -> Situation:
    """Returns a small situation with rules that restrict more than faces."""
    if rng.random() < 0.2:
        return next(joker_positions(rng.choice(list(RESTRICTED.values())), rng.randrange(1 << 32), 1))
    while True:
        ruleset = rng.choice(list(RESTRICTED.values())) if rng.random() < 0.3 else guarding_ruleset(rng)
        if not problems(ruleset):
            situation = small_situation(rng, ruleset)
            if is_guarded(situation.table, ruleset):
                return situation


def guarding_ruleset(rng: random.Random) -> Ruleset:
    """Returns random options that restrict more than faces, half of the time with more jokers. They may conflict."""
    ruleset = random_ruleset(rng, with_analysis=True) if rng.random() < 0.3 else SABRA
    options = {option: rng.choice(CHOICES[option]) for option in rng.sample(GUARDING, rng.randint(1, 4))}
    return choose(ruleset, options | {"geometry_jokers": rng.choice((2, 4))})


def asked(sort: str, situation: Situation, objective: Objective) -> Comparison | None:
    """Compares the solver with the oracle; returns None if the position is too large for the oracle."""
    if sort in {GAMES, CHANCE}:
        return integer_program.compare(program(), situation, objective, BUDGET)
    try:
        return brute_force.compare(situation, objective, BUDGET)
    except TooManyPlaysError:
        return None


@cache
def program() -> IntegerProgram:
    """Returns the integer program of this process."""
    return IntegerProgram()


def counted(sort: str, situation: Situation, comparison: Comparison | None) -> Iterator[str]:
    """Yields the counters that a comparison increments."""
    if comparison is None:
        yield f"{sort}: too large"
        return
    yield f"{sort}: positions"
    if not situation.has_melded:
        yield f"{sort}: without initial meld"
    if comparison.best.turn:
        yield f"{sort}: with a turn"
    if not comparison.best.is_proven:
        yield f"{sort}: not proven"
    if not comparison.best.is_least_change:
        yield f"{sort}: least change not proven"
    if comparison.existence is Existence.UNKNOWN:
        yield f"{sort}: existence unknown"
    if comparison.fault:
        yield f"{sort}: disagreements"


ROWS = (
    "positions",
    "with a turn",
    "without initial meld",
    "too large",
    "not proven",
    "least change not proven",
    "existence unknown",
    "disagreements",
)


def summary(totals: Counter[str], sorts: dict[str, int]) -> str:
    """Returns the totals as a table."""
    lines = ["".join([f"{'':<24}", *(f"{sort:>11}" for sort in sorts)])]
    lines += ["".join([f"{row:<24}", *(f"{totals[f'{sort}: {row}']:>11,}" for sort in sorts)]) for row in ROWS]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
