"""Measures whether positions with restricted jokers are proven within a second, under each preset that restricts them.

Most are random small positions, some are positions of games. Times are CPU time, one search after the other. A position
that is not proven in time is searched again with much more time: if that finds more, the first answer was below the
best.
"""

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console

from engine.effort import Budget
from engine.melding.analysis import Situation
from engine.melding.solver import (
    BestTurn,
    Existence,
    Objective,
    best_turn,
    has_turn,
)
from engine.melding.solver.problem import problem_from
from load.bench.figures import (
    QUANTILES,
    Size,
    Tables,
    cpu_model,
    quantiles,
    requirement,
)
from load.corpus.hostile import ENDLESS, Watch
from load.corpus.joker_positions import ON_RACK, ON_TABLE, RESTRICTED, joker_positions, positions_of_games

POSITIONS: Final = 2_500
OF_GAMES: Final = 300
QUICK: Final = 10
"""--quick measures one in this many positions."""

SEED: Final = 0
SECONDS: Final = 1.0
AMPLE_SECONDS: Final = 30.0
MOST_UNPROVEN: Final = 0.001
"""The share of all positions that may be unproven."""

SMALL: Final = "small"
GAMES: Final = "of games"
COUNTS: Final = {
    "asked": "positions",
    "best turn unproven": "unproven",
    "below the best": "below",
    "existence unknown": "unknown",
}
"""The columns of counts, and their names in the report."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The answers to one position.

    Attributes:
        is_proven: Whether the best turn was proven in time.
        is_below: Whether the turn found in time is worth less than the best.
        exists: Whether there is a turn.
        best_ms: The time for the best turn.
        exists_ms: The time for whether there is a turn.
    """

    is_proven: bool
    is_below: bool
    exists: Existence
    best_ms: float
    exists_ms: float


def measure(size: Size, console: Console) -> dict[str, Any]:
    """Returns the report: of a tenth of the positions if quick."""
    parts = size.choose(QUICK, 1, 1)
    small, games = {}, {}
    for preset, ruleset in RESTRICTED.items():
        console.print(f"Measuring positions under {preset}", highlight=False)
        small[preset] = _measured(joker_positions(ruleset, SEED, POSITIONS // parts))
        games[preset] = _measured(positions_of_games(ruleset, OF_GAMES // parts))
    return _report(small, games)


def _measured(situations: Iterable[Situation]) -> list[Measured]:
    objectives = tuple(Objective)
    return [_answers(situation, objectives[place % len(objectives)]) for place, situation in enumerate(situations)]


def _answers(situation: Situation, objective: Objective) -> Measured:
    watch = Watch(SECONDS)
    answer = best_turn(situation, objective, Budget(nodes=ENDLESS, is_over=watch))
    watch.stop()
    second = Watch(SECONDS)
    exists = has_turn(situation, Budget(nodes=ENDLESS, is_over=second))
    second.stop()
    is_below = not answer.is_proven and _is_below(answer, situation, objective)
    return Measured(answer.is_proven, is_below, exists, watch.seconds * 1e3, second.seconds * 1e3)


def _is_below(answer: BestTurn, situation: Situation, objective: Objective) -> bool:
    """Returns whether a search with much more time finds a turn that is worth more."""
    ample = best_turn(situation, objective, Budget(nodes=ENDLESS, is_over=Watch(AMPLE_SECONDS)))
    worth, most = [
        problem_from((), (), situation.ruleset, objective).cost(found.turn.tiles if found.turn else ())
        for found in (answer, ample)
    ]
    return worth < most


# Report


def _report(small: Mapping[str, Sequence[Measured]], games: Mapping[str, Sequence[Measured]]) -> dict[str, Any]:
    sorts = {SMALL: small, GAMES: games}
    figures = {sort: {preset: _figures(some) for preset, some in found.items()} for sort, found in sorts.items()}
    return {
        "versions": {"python": platform.python_version(), "processor": cpu_model()},
        "sorts": figures,
        "requirements": list(_requirements(figures[SMALL])),
    }


def _requirements(presets: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for count, what in {"unproven": "best turns unproven", "unknown": "existence unknown"}.items():
        share = max(figures[count] / figures["positions"] for figures in presets.values())
        limit = f"in at most {MOST_UNPROVEN:.1%} of the small positions under any preset"
        yield requirement(f"{what} {limit}", met=share <= MOST_UNPROVEN, measured=f"{share:.2%}")
    below = sum(figures["below"] for figures in presets.values())
    yield requirement("no answer to a small position below the best", met=not below, measured=f"{below}")


def _figures(measured: Sequence[Measured]) -> dict[str, Any]:
    return {
        "positions": len(measured),
        "unproven": sum(not one.is_proven for one in measured),
        "below": sum(one.is_below for one in measured),
        "unknown": sum(one.exists is Existence.UNKNOWN for one in measured),
        "best_ms": quantiles([one.best_ms for one in measured]),
        "exists_ms": quantiles([one.exists_ms for one in measured]),
    }


def told_of(report: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the environment and size of the run."""
    versions = report["versions"]
    return (
        f"python {versions['python']}, {versions['processor']}",
        f"small positions have at most {ON_TABLE} tiles on the table and {ON_RACK} on the rack",
        f"each question has {SECONDS:.0f} second of the processor",
    )


def tables_of(report: Mapping[str, Any]) -> Tables:
    """Returns the report as tables: a row for each preset and source of positions."""
    rows = [
        (f"{preset}, {sort}", figures)
        for sort, presets in report["sorts"].items()
        for preset, figures in presets.items()
    ]
    counts = [[name, *(str(figures[key]) for key in COUNTS.values())] for name, figures in rows]
    tables = {"How many were not proven": [["positions", *COUNTS], *counts]}
    for question, key in {"the best turn": "best_ms", "whether there is a turn": "exists_ms"}.items():
        times = [[name, *(f"{value:.1f}" for value in figures[key].values())] for name, figures in rows]
        tables[f"Milliseconds for {question}"] = [["positions", *QUANTILES], *times]
    return tables
