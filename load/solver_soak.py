"""Compares the solver with its oracles on many positions: with the integer program, and small ones with brute force.

`python -m load.solver_soak 20000` takes half of these positions from games and half at random, and a quarter as many
small ones. As many small ones again have rules that depend on the origin of tiles (solver/restricted_search.py): random
options, or a preset that restricts jokers. They are searched twice, the second time by branching alone.
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

from rich.console import Console
from rich.progress import Progress

from engine.effort import Budget
from engine.melding.analysis import Situation
from engine.melding.ruleset import (
    OPTIONS,
    SABRA,
    Ruleset,
    problems,
    with_options,
)
from engine.melding.solver import Existence, Objective, few_tiles
from engine.melding.solver.restricted_search import is_restricted
from load.corpus.joker_positions import RESTRICTED, joker_positions
from load.corpus.positions import positions
from oracles import brute_force, integer_program
from oracles.brute_force import Comparison, TooManyPlaysError, small_situation
from oracles.integer_program import IntegerProgram, random_rules, random_situation
from support.random_play import random_ruleset

PROCESSES = 2
MOST_FAULTS = 10
BUDGET = Budget(nodes=50_000, change_nodes=5_000)
MOST_TILES = few_tiles.MOST_TILES

GAMES = "of games"
CHANCE = "by chance"
SMALL = "small"
GUARDED = "guarded"
CLAIMS = "by claims"

RESTRICTIONS = (
    "joker_retrieval_mode",
    "joker_retrieval_source",
    "joker_retrieval_reuse",
    "joker_retrieval_same_meld",
    "joker_retrieval_group_of_three",
    "joker_retrieval_end_of_run_free",
    "manipulation",
    "contract",
    "jokers_beyond_physical",
)
"""Options that make the origin of tiles matter, and options of retrieval."""

Job = tuple[str, int]
"""A source of positions, and a seed."""


@dataclass(frozen=True)
class Outcome:
    """The result of a job: counts, and the disagreements of solver and oracle."""

    job: Job
    counts: Counter[str] = field(default_factory=Counter)
    faults: tuple[str, ...] = ()


def main() -> int:
    """Compares and reports; returns 1 if there is a disagreement."""
    parser = argparse.ArgumentParser(description="Compare the solver with its oracles on many positions.")
    parser.add_argument("positions", type=int, nargs="?", default=20_000, help="positions for the program (20000)")
    parser.add_argument("--small", type=int, help="positions for brute force of each sort (a quarter as many)")
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
    """Compares a number of positions of each source; stops after too many disagreements."""
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
            comparison = compared_with_oracle(sort, situation, objective)
            outcome.counts.update(counts_of(sort, situation, comparison))
            found += [comparison.fault] if comparison and comparison.fault else []
    except Exception:  # noqa: BLE001 - the soak looks for any failure, and reports it with the seed
        found.append(traceback.format_exc())
    return Outcome(job, outcome.counts, tuple(found))


def situations(sort: str, seed: int) -> Iterator[tuple[Situation, Objective]]:
    """Yields the situations of a seed: all turns of a game, or one."""
    rng = random.Random(seed)
    if sort == GAMES:
        for recorded in positions([seed], OPTIONS["geometry_jokers"].values):
            yield recorded.situation, rng.choice(tuple(Objective))
    elif sort == CHANCE:
        yield random_situation(rng, random_rules(rng)), rng.choice(tuple(Objective))
    elif sort in {GUARDED, CLAIMS}:
        yield restricted_situation(rng), rng.choice(tuple(Objective))
    else:
        yield small_situation(rng, random_ruleset(rng, with_analysis=True)), rng.choice(tuple(Objective))


def restricted_situation(rng: random.Random) -> Situation:
    """Returns a small situation whose rules depend on the origin of tiles."""
    if rng.random() < 0.2:
        return next(joker_positions(rng.choice(list(RESTRICTED.values())), rng.randrange(1 << 32), 1))
    while True:
        ruleset = rng.choice(list(RESTRICTED.values())) if rng.random() < 0.3 else restricting_ruleset(rng)
        if not problems(ruleset):
            situation = small_situation(rng, ruleset)
            if is_restricted(situation.table, ruleset):
                return situation


def restricting_ruleset(rng: random.Random) -> Ruleset:
    """Returns random, perhaps invalid options that make the origin of tiles matter; half of them with extra jokers."""
    ruleset = random_ruleset(rng, with_analysis=True) if rng.random() < 0.3 else SABRA
    options = {option: rng.choice(OPTIONS[option].usual) for option in rng.sample(RESTRICTIONS, rng.randint(1, 4))}
    return with_options(ruleset, options | {"geometry_jokers": rng.choice((2, 4, 8))})


def compared_with_oracle(sort: str, situation: Situation, objective: Objective) -> Comparison | None:
    """Returns the comparison of solver and oracle; None if the position is too large for the oracle."""
    if sort in {GAMES, CHANCE}:
        return integer_program.compare(program(), situation, objective, BUDGET)
    try:
        return brute_force.compare(situation, objective, BUDGET)
    except TooManyPlaysError:
        return None


@cache
def program() -> IntegerProgram:
    """Returns the program of this process."""
    return IntegerProgram()


def counts_of(sort: str, situation: Situation, comparison: Comparison | None) -> Iterator[str]:
    """Returns the counts of a comparison."""
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
    """Returns the results as a table."""
    lines = ["".join([f"{'':<24}", *(f"{sort:>11}" for sort in sorts)])]
    lines += ["".join([f"{row:<24}", *(f"{totals[f'{sort}: {row}']:>11,}" for sort in sorts)]) for row in ROWS]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
