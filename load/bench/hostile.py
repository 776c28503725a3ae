"""Measures how soon the solver stops at its deadline, and how long the rules judge a turn, in the worst known cases.

Searches for slow positions and turns found them (hostile.py, hostile_turns.py). Times are CPU time, so that other
processes do not count. The solver's caches are empty before each position, as in a new process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console

from engine.violations import Reason
from load.bench.figures import Size, Tables, quantiles, requirement
from load.corpus.hostile import Hostile, Watch, read, watched
from load.corpus.hostile_turns import HostileTurn, judged
from load.corpus.hostile_turns import read as read_turns

BUDGET_MS: Final = 100.0
GRACE_MS: Final = 50.0
JUDGED_MS: Final = 50.0
TIMES: Final = 3


@dataclass(frozen=True, slots=True)
class Measured:
    """One position, and how long the solver took."""

    hostile: Hostile
    watch: Watch

    @property
    def is_finished(self) -> bool:
        """Returns whether it answered before its deadline."""
        return self.watch.seconds * 1e3 < BUDGET_MS


@dataclass(frozen=True, slots=True)
class Judged:
    """One turn, how long it took to judge in seconds, and whether it was too complex."""

    turn: HostileTurn
    seconds: float
    is_too_complex: bool


def measure(size: Size, console: Console) -> dict[str, Any]:
    """Returns the report: of every third position and turn if quick."""
    step = size.choose(3, 1, 1)
    corpus, turns = read()[::step], read_turns()[::step]
    # a progress bar would take time
    console.print(f"Measuring {len(corpus)} positions and {len(turns)} turns", highlight=False)
    return _report([_measured(hostile) for hostile in corpus], [_judged(turn) for turn in turns])


def _measured(hostile: Hostile) -> Measured:
    """Returns the fastest of some answers: slowdowns by other processes are not the solver's."""
    watches = [watched(hostile, BUDGET_MS / 1e3) for _ in range(TIMES)]
    return Measured(hostile, min(watches, key=lambda watch: watch.seconds))


def _judged(turn: HostileTurn) -> Judged:
    """Returns the fastest of some judgements."""
    times, judgements = zip(*(judged(turn) for _ in range(TIMES)), strict=True)
    reasons = {violation.reason for violation in judgements[0].violations}
    return Judged(turn, min(times), Reason.TURN_TOO_COMPLEX in reasons)


def _report(measured: Sequence[Measured], turns: Sequence[Judged]) -> dict[str, Any]:
    sorts: dict[str, list[Measured]] = {"all": list(measured)}
    for one in measured:
        sorts.setdefault(one.hostile.sort, []).append(one)
    longest = max(one.watch.seconds for one in measured) * 1e3
    limit = BUDGET_MS + GRACE_MS
    in_time = requirement(f"every answer in {limit:.0f} ms", met=longest <= limit, measured=f"{longest:.0f} ms")
    return {
        "budget_ms": BUDGET_MS,
        "sorts": {sort: _figures(some) for sort, some in sorts.items()},
        "positions": [
            {
                "sort": one.hostile.sort,
                "question": one.hostile.question,
                "position": one.hostile.position,
                "milliseconds": one.watch.seconds * 1e3,
                "silence_ms": one.watch.silence * 1e3,
                "finished": one.is_finished,
            }
            for one in measured
        ],
        "turns": [
            {
                "sort": one.turn.sort,
                "play": one.turn.play,
                "milliseconds": one.seconds * 1e3,
                "too_complex": one.is_too_complex,
            }
            for one in turns
        ],
        "sorts_of_turns": {
            sort: _figures_of_turns([one for one in turns if sort in {"all", one.turn.sort}])
            for sort in dict.fromkeys(["all", *(one.turn.sort for one in turns)])
        },
        "requirements": [in_time, _soon_judged(turns)],
    }


def _soon_judged(turns: Sequence[Judged]) -> dict[str, Any]:
    longest = max(one.seconds for one in turns) * 1e3
    return requirement(
        f"every turn judged in {JUDGED_MS:.0f} ms", met=longest <= JUDGED_MS, measured=f"{longest:.0f} ms"
    )


def _figures_of_turns(turns: Sequence[Judged]) -> dict[str, Any]:
    return {
        "turns": len(turns),
        "too_complex": sum(one.is_too_complex for one in turns),
        "milliseconds": quantiles([one.seconds * 1e3 for one in turns]),
    }


def _figures(measured: Sequence[Measured]) -> dict[str, Any]:
    return {
        "positions": len(measured),
        "finished": sum(one.is_finished for one in measured),
        "milliseconds": quantiles([one.watch.seconds * 1e3 for one in measured]),
        "silence_ms": max(one.watch.silence for one in measured) * 1e3,
    }


def tables_of(report: Mapping[str, Any]) -> Tables:
    """Returns the tables of a report."""
    answers = [["rules", "positions", "finished", "median", "max", "longest silence"]]
    for sort, figures in report["sorts"].items():
        times = (figures["milliseconds"]["median"], figures["milliseconds"]["max"], figures["silence_ms"])
        counts = (str(figures["positions"]), str(figures["finished"]))
        answers.append([sort, *counts, *(f"{value:.0f}" for value in times)])
    turns = [["what is much", "turns", "too complex", "median", "max"]]
    for sort, figures in report["sorts_of_turns"].items():
        counts = (str(figures["turns"]), str(figures["too_complex"]))
        turns.append([sort, *counts, *(f"{figures['milliseconds'][name]:.1f}" for name in ("median", "max"))])
    title = f"Milliseconds for an answer that has {report['budget_ms']:.0f}"
    return {title: answers, "Milliseconds to judge a turn": turns}


def told_of(_report: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the conditions of the measurement."""
    return (f"each of {TIMES} times, the fastest counts",)
