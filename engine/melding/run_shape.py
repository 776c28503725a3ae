"""The shape of runs: which values follow one another, and how many (R14 to R16, run_wrap).

Everything that forms runs reads this value: the reader of melds, the solver, bots, and the oracles of the tests.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from engine.melding.ruleset import Ruleset, RunWrap
from engine.tiles import MAX_VALUE

MIN_TILES: Final = 3
"""Fewest tiles of a meld (R11)."""


@dataclass(frozen=True, slots=True, eq=False)
class RunShape:
    """The runs of a ruleset. Places count from 1; 14 is the 1 after the 13, and so on.

    Attributes:
        beyond: How many values, from 1, may follow the 13.
        runs: The values of every run, by first value and length.
        runs_with: The runs by contained value and length, those with the most points first.
    """

    beyond: int
    runs: Mapping[tuple[int, int], tuple[int, ...]]
    runs_with: Mapping[tuple[int, int], tuple[tuple[int, ...], ...]]

    @property
    def last(self) -> int:
        """The last place of a run."""
        return MAX_VALUE + self.beyond

    @property
    def is_cyclic(self) -> bool:
        """Whether runs go around: every value has a next one."""
        return self.beyond == MAX_VALUE - 1


def _shape(beyond: int) -> RunShape:
    values = [(place - 1) % MAX_VALUE + 1 for place in range(1, MAX_VALUE + beyond + 1)]
    runs = {
        (values[place], length): tuple(values[place : place + length])
        for length in range(MIN_TILES, MAX_VALUE + 1)
        for place in range(len(values) - length + 1)
    }
    runs_with = defaultdict(list)
    for run in sorted(runs.values(), key=sum, reverse=True):
        for value in run:
            runs_with[value, len(run)].append(run)
    return RunShape(beyond, runs, {key: tuple(found) for key, found in runs_with.items()})


_SHAPES: Final = {
    RunWrap.OFF: _shape(0),
    RunWrap.ONE_HIGH: _shape(1),
    RunWrap.CYCLIC: _shape(MAX_VALUE - 1),
}


def run_shape(ruleset: Ruleset) -> RunShape:
    """Returns what makes a run under a ruleset."""
    return _SHAPES[ruleset.run_wrap]
