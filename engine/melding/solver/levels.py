"""The levels of the search: the order of the values, and the tiles at each level."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, repeat
from math import prod
from typing import NamedTuple

from engine.melding.run_shape import RunShape, run_shape
from engine.melding.solver.color_transitions import LevelTraits, OpenRuns, Supply, pack
from engine.melding.solver.problem import FACES, OF_COLOR, Problem
from engine.tiles import JOKER, MAX_VALUE, value_of

MIDDLE_VALUE = 7

SETTLED = 99
"""The tile count behind the seam during the search. The open runs that cross the seam were fixed at the start."""

Counts = list[tuple[int, int]]
"""The tiles of a color that must be laid, and those that may be, by value."""


class Level(NamedTuple):
    """A step in the order of values: value (14 is the 1 after the 13), tiles by color, traits, cost of a tile left."""

    value: int
    tiles: tuple[Supply, ...]
    traits: LevelTraits
    weight: int


def is_better_downwards(problem: Problem) -> bool:
    """Returns whether the search should go from 13 to 1.

    It should start where fewer faces are: there it has fewer choices, and it detects dead ends early.
    """
    faces = problem.must.keys() | problem.may.keys()
    below_the_middle = sum([MIDDLE_VALUE - value_of(face) for face in faces if face != JOKER])
    return not run_shape(problem.ruleset).beyond and below_the_middle > 0


def levels_of(problem: Problem, *, downwards: bool = False) -> tuple[Level, ...]:
    """Returns the levels in search order. Where runs go around, they start where the fewest runs can cross the seam."""
    return tuple(_levels(problem, downwards=downwards))


def _levels(problem: Problem, *, downwards: bool) -> Iterator[Level]:
    ruleset, jokers = problem.ruleset, problem.jokers
    shape = run_shape(ruleset)
    high = 0 if shape.is_cyclic else shape.beyond
    must, may = problem.must.get, problem.may.get
    counts = [[(must(face, 0), may(face, 0)) for face in faces] for faces in OF_COLOR[: ruleset.geometry_colors]]
    order = _order(shape, counts)
    values = order[::-1] if downwards else order
    places = [(value - 1) % MAX_VALUE for value in values]
    rows = [_row(places, of_color, shape, jokers) for of_color in counts]
    rest = range(len(values) - 1, -1, -1)
    for value, tiles, after in zip(values, zip(*rows, strict=True), rest, strict=True):
        traits = _traits(
            3 if shape.is_cyclic else min(3, after),
            value <= MAX_VALUE and has_groups(tiles, jokers),
            value <= high,
            value > MAX_VALUE,
            problem.groups_of_must,
        )
        yield Level(value, tiles, traits, problem.cost(FACES[(value - 1) % MAX_VALUE][:1]))


_traits = lru_cache(maxsize=1 << 6)(LevelTraits)


def _row(places: Sequence[int], counts: Counts, shape: RunShape, jokers: int) -> list[Supply]:
    """Returns the tiles of a color at each level, given the levels' values minus one."""
    beyond = SETTLED if shape.is_cyclic else 0
    held = _holdable(counts, jokers) if shape.beyond and not shape.is_cyclic else 0
    here = [counts[place] for place in places]
    sizes = [*[lying + own for lying, own in here], beyond, beyond]
    following = zip(here, sizes[1:], sizes[2:], chain([held], repeat(0)), strict=False)
    return [(lying, own, soon, later, aside) for (lying, own), soon, later, aside in following]


def _holdable(counts: Counts, jokers: int) -> int:
    """Returns how many ones of a color can go behind a 13."""
    before, there = sum(counts[-2]), sum(counts[-1]) + jokers
    return there if before + there > 1 else 0


def has_groups(tiles: tuple[Supply, ...], jokers: int) -> bool:
    """Returns whether tiles of a value can form groups."""
    colors = sum([bool(of_color[0] or of_color[1]) for of_color in tiles])
    return colors > 0 and colors + jokers >= 3


def _order(shape: RunShape, counts: list[Counts]) -> list[int]:
    """Returns the values in search order; 14 is the 1 after the 13."""
    if not shape.is_cyclic:
        return list(range(1, shape.last + 1))
    values = list(range(1, MAX_VALUE + 1))
    first = min(values, key=lambda value: _ways_to_cross(counts, value))
    return values[first - 1 :] + values[: first - 1]


def _ways_to_cross(counts: list[Counts], value: int) -> int:
    """Estimates how many sets of open runs can cross to a value from the previous one, without jokers."""
    fewer = [min(sum(row[value - 2]), sum(row[value - 1])) for row in counts]
    return prod(sum(len(open_runs(count)) for count in range(most + 1)) for most in fewer)


@lru_cache
def open_runs(count: int) -> tuple[int, ...]:
    """Returns all packed states of a number of open runs."""
    kinds = ((young, half, count - young - half) for young in range(count + 1) for half in range(count - young + 1))
    return tuple(pack(OpenRuns(*kind)) for kind in kinds)
