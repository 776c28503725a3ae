"""Measures how fast the solver finds the best turn, compared with integer programs in HiGHS, on positions of games.

All answer the same positions, one right after the other, so that other load on the machine affects all alike. Times are
CPU milliseconds of a whole call, including building the program. Programs are solved on one thread without a gap. There
are two, with the same optimum:

* The published program of den Hertog and Hulshof: a variable for every meld that the tile set can form (1,173 with two
  jokers). It is for players who have melded, and slow, so it answers a sample only.
* The reduced program, with variables only for melds that can be laid: with HiGHS' presolve, and without it, which is
  far faster in slow cases.

A second pass also minimizes the changed melds, with the solver and the reduced program.
"""

import importlib.metadata
import json
import platform
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any, Final

from rich.console import Console
from rich.progress import track

from engine.effort import Budget
from engine.melding.analysis import Situation
from engine.melding.solver import best_turn
from load.bench.figures import (
    QUANTILES,
    Size,
    Tables,
    cpu_model,
    quantiles,
)
from load.corpus.positions import Phase, Recorded, read
from oracles.integer_program import IntegerProgram, Optimum, PublishedProgram
from service.runtime.gc_tuning import tune_gc
from tools.servers import ROOT

SOLVER: Final = "solver"
SOLVER_WHOLE: Final = "solver, least change too"
PUBLISHED: Final = "published program"
REDUCED: Final = "reduced program"
WITHOUT_PRESOLVE: Final = "reduced, without presolve"
WHOLE_QUESTION: Final = "reduced, least change too"
RIVALS: Final = {PUBLISHED: SOLVER, REDUCED: SOLVER, WITHOUT_PRESOLVE: SOLVER, WHOLE_QUESTION: SOLVER_WHOLE}
"""The programs, and the part of the solver that each is compared with."""

NAMES: Final = (SOLVER, REDUCED, WITHOUT_PRESOLVE, SOLVER_WHOLE, WHOLE_QUESTION)
SAMPLED_NAMES: Final = (SOLVER, PUBLISHED, REDUCED)
SAMPLE: Final = "sample, melded"
"""The positions that the published program answers."""

BEST_ALONE: Final = Budget(change_nodes=0)
"""A budget for the best turn, whatever it changes."""

LONGEST_MS: Final = 50.0
START_MS: Final = 200.0
START_MEGABYTES: Final = 50.0

START: Final = """
import json, sys, time
def megabytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024
bare = megabytes()
started = time.process_time()
import engine.melding.solver
imported = time.process_time()
with_import = megabytes()
from load.corpus.positions import read
situations = [recorded.situation for recorded in read()]
before = megabytes()
first = time.process_time()
engine.melding.solver.best_turn(situations[0])
second = time.process_time()
engine.melding.solver.best_turn(situations[0])
third = time.process_time()
after_first = megabytes()
for situation in situations[:int(sys.argv[1])]:
    engine.melding.solver.best_turn(situation)
print(json.dumps({
    "import_ms": (imported - started) * 1e3,
    "first_call_ms": (second - first) * 1e3,
    "same_call_again_ms": (third - second) * 1e3,
    "import_megabytes": with_import - bare,
    "first_call_megabytes": after_first - before,
    "corpus_megabytes": megabytes() - before,
}))
"""


@dataclass
class Measured:
    """One position: milliseconds by program or solver, and the number of tiles that each found playable."""

    recorded: Recorded
    milliseconds: dict[str, float] = field(default_factory=dict)
    tiles: dict[str, int] = field(default_factory=dict)
    is_proven: bool = True
    is_least_change: bool = True


Program = Callable[[Situation], Optimum | None]


@dataclass(frozen=True)
class Asked:
    """A program, its name, and the indexes of the positions that it answers."""

    name: str
    program: Program
    numbers: Set[int]


def measure(size: Size, console: Console) -> dict[str, Any]:
    """Returns the report: of 300 positions if quick, with the reduced program on all positions if full."""
    corpus = list(read())
    random.Random(1).shuffle(corpus)
    corpus = corpus[: size.choose(300, len(corpus), len(corpus))]
    compared = min(len(corpus), size.choose(60, 600, len(corpus)))
    measured = _measured(corpus, compared, size.choose(30, 300, 300), console)
    return _report(measured, compared, _start(len(corpus)))


# Measurement


def _measured(corpus: Sequence[Recorded], compared: int, sample: int, console: Console) -> list[Measured]:
    """Yields the measurements of each position, with the programs where they are due."""
    plain, bare, published = IntegerProgram(has_presolve=True), IntegerProgram(has_presolve=False), PublishedProgram()
    everywhere = set(range(compared))
    melded = [number for number, recorded in enumerate(corpus) if recorded.situation.has_melded]
    sampled = set(melded[:sample])
    passes: tuple[tuple[str, Budget, tuple[Asked, ...]], ...] = (
        (
            SOLVER,
            BEST_ALONE,
            (
                Asked(PUBLISHED, published.best, sampled),
                Asked(REDUCED, plain.best, everywhere | sampled),
                Asked(WITHOUT_PRESOLVE, bare.best, everywhere),
            ),
        ),
        (SOLVER_WHOLE, Budget(), (Asked(WHOLE_QUESTION, partial(plain.best, keep=True), everywhere),)),
    )
    found = [Measured(recorded) for recorded in corpus]
    for solver, budget, programs in passes:
        first = corpus[melded[0]].situation  # one-time work of a process is measured separately
        best_turn(first, budget=budget)
        for asked in programs:
            asked.program(first)
        for number, one in enumerate(track(found, f"Measuring {solver}", console=console)):
            situation = one.recorded.situation
            tune_gc()  # as a worker does between two queries
            answer = _timed(one, solver, partial(best_turn, situation, budget=budget))
            one.tiles[solver] = len(answer.turn.tiles) if answer.turn else 0
            one.is_proven = answer.is_proven
            one.is_least_change = answer.is_least_change
            for asked in programs:
                if number in asked.numbers:
                    best = _timed(one, asked.name, partial(asked.program, situation))
                    one.tiles[asked.name] = best.worth if best else 0
    return found


def _timed(measured: Measured, name: str, ask: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever is asked for
    started = time.process_time_ns()
    answer = ask()
    measured.milliseconds[name] = (time.process_time_ns() - started) / 1e6
    return answer


def _start(size: int) -> dict[str, float]:
    """Returns the time of import and first call in a new process (median of five), and memory after all positions."""
    starts = [_in_a_process(0) for _ in range(5)]
    found = {key: median(start[key] for start in starts) for key in starts[0]}
    return found | {"corpus_megabytes": _in_a_process(size)["corpus_megabytes"]}


def _in_a_process(size: int) -> dict[str, float]:
    run = [sys.executable, "-c", START, str(size)]
    found: dict[str, float] = json.loads(subprocess.run(run, cwd=ROOT, check=True, capture_output=True).stdout)
    return found


# Report


def _report(measured: Sequence[Measured], compared: int, start: Mapping[str, float]) -> dict[str, Any]:
    asked = [one for one in measured if REDUCED in one.tiles]
    agree = sum(len(set(one.tiles.values())) == 1 for one in asked)
    everything = {name: quantiles([one.milliseconds[name] for one in measured]) for name in (SOLVER, SOLVER_WHOLE)}
    beside = measured[:compared]
    sorts = {name: _compared([one for one in beside if keeps(one)], NAMES) for name, keeps in _sorts().items()}
    sorts[SAMPLE] = _compared([one for one in measured if PUBLISHED in one.tiles], SAMPLED_NAMES)
    return {
        "versions": _versions(),
        "positions": {
            "solver": len(measured),
            "compared": len(asked),
            "proven": sum(one.is_proven for one in measured),
            "least_change": sum(one.is_least_change for one in measured),
        },
        "agree": agree,
        "solver_on_all": everything,
        "sorts": sorts,
        "start": dict(start),
        "requirements": [
            *_requirements(start, agree == len(asked)),
            *_alone(measured, {name: figures["max"] for name, figures in everything.items()}),
        ],
    }


def _sorts() -> dict[str, Callable[[Measured], bool]]:
    """Returns the groups of positions by name."""
    found: dict[str, Callable[[Measured], bool]] = {
        "all": lambda _: True,
        "no joker": lambda one: one.recorded.jokers == 0,
        "jokers": lambda one: one.recorded.jokers > 0,
    }
    for phase in Phase:
        found[phase.value] = lambda one, phase=phase: one.recorded.phase == phase.value  # type: ignore[misc]
    return found


def _compared(measured: Sequence[Measured], names: Sequence[str]) -> dict[str, Any]:
    """Returns quantiles of each, and how many times as fast the solver is as each program."""
    if not measured:
        return {"positions": 0}
    times = {name: quantiles([one.milliseconds[name] for one in measured]) for name in names}
    ratios = {
        name: {key: times[name][key] / times[RIVALS[name]][key] for key in QUANTILES}
        for name in names
        if name in RIVALS
    }
    return {"positions": len(measured), "milliseconds": times, "ratios": ratios}


def _requirements(start: Mapping[str, float], agree: bool) -> Iterator[dict[str, Any]]:
    yield {"what": "as many tiles as HiGHS on every position", "met": agree, "measured": str(agree)}
    start_ms = start["import_ms"] + start["first_call_ms"]
    met = start_ms < START_MS
    yield {"what": f"import and first call in {START_MS:.0f} ms", "met": met, "measured": f"{start_ms:.0f} ms"}
    megabytes = start["import_megabytes"] + start["corpus_megabytes"]
    met = megabytes < START_MEGABYTES
    what = f"{START_MEGABYTES:.0f} MB for import and these positions"
    yield {"what": what, "met": met, "measured": f"{megabytes:.1f} MB"}


def _alone(measured: Sequence[Measured], longest: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    """Returns the requirements on the solver itself."""
    for name, milliseconds in longest.items():
        yield {
            "what": f"no position over {LONGEST_MS:.0f} ms, {name}",
            "met": milliseconds <= LONGEST_MS,
            "measured": f"{milliseconds:.1f} ms",
        }
    proven = sum(one.is_least_change for one in measured)
    yield {
        "what": "the fewest changes proven on every position",
        "met": proven == len(measured),
        "measured": f"{proven} of {len(measured)}",
    }


def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "highspy": importlib.metadata.version("highspy"),
        "processor": cpu_model(),
        "system": platform.system(),
    }


def told_of(report: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the environment of the run, and figures outside the tables."""
    versions, positions, start = report["versions"], report["positions"], report["start"]
    return (
        f"python {versions['python']}, HiGHS {versions['highspy']} on one thread, {versions['processor']}",
        f"{positions['proven']} of {positions['solver']} positions proven, {positions['least_change']} of them with "
        f"the least change; as many tiles as HiGHS on {report['agree']} of {positions['compared']}",
        f"import {start['import_ms']:.0f} ms and {start['import_megabytes']:.0f} MB, "
        f"{start['corpus_megabytes']:.0f} MB more after all positions",
    )


def tables_of(report: Mapping[str, Any]) -> Tables:
    """Returns the report as tables, with how many times as long the programs took."""
    rows = [
        _row(f"{figures['positions']}, {sort}" if name == SOLVER else "", name, times, figures["ratios"].get(name))
        for sort, figures in report["sorts"].items()
        for name, times in figures.get("milliseconds", {}).items()
    ]
    on_all = [
        _row(f"{report['positions']['solver']}, all" if name == SOLVER else "", name, times)
        for name, times in report["solver_on_all"].items()
    ]
    title = "Milliseconds a position; of programs, how many times as long as the solver"
    return {title: [["positions", "answered by", *QUANTILES], *on_all, *rows]}


def _row(
    positions: str, name: str, milliseconds: Mapping[str, float], times: Mapping[str, float] | None = None
) -> list[str]:
    told = [f"{value:.2f} ({times[key]:.1f})" if times else f"{value:.2f}" for key, value in milliseconds.items()]
    return [positions, name, *told]
