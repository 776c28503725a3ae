"""The search of the solver: best first over the values, a state being the open runs of each color.

The cost of a state is what the tiles cost that were left on the rack so far, so the first state that is reached behind
the last value is optimal. Among states of equal cost the search goes deep first. A state is dropped when the same open
runs were reached with no more jokers spent: it can lead to nothing better. This is the dynamic program over values of
van Rijn, Takes and Vis with the jokers folded in, read from the cheap end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from itertools import product
from typing import NamedTuple

from engine.ruleset import RunWrap
from engine.solver.answers import Budget
from engine.solver.color_steps import Open, Place, Step, Tiles, pack, steps, unpack
from engine.solver.problem import FACES, Problem, weight
from engine.tiles import JOKER, MAX_VALUE

ASKED_EVERY = 256
"""How many states are looked at between two questions whether the time is up."""


class OutOfBudget(Exception):  # noqa: N818 - it is no error: the caller has an answer for it
    """The budget has been spent."""


@dataclass
class Meter:
    """Counts what a search spends of its budget."""

    budget: Budget
    spent: int = 0

    def count(self, nodes: int = 1) -> None:
        """Some more states were looked at."""
        before = self.spent
        self.spent += nodes
        if self.spent > self.budget.nodes:
            raise OutOfBudget
        if self.budget.is_over and before // ASKED_EVERY != self.spent // ASKED_EVERY and self.budget.is_over():
            raise OutOfBudget


Runs = tuple[int, ...]
"""The open runs of each color, packed."""


class Way(NamedTuple):
    """A step of all colors, and the way that led to it."""

    steps: tuple[Step, ...]
    before: "Way | None"


@dataclass(frozen=True)
class Found:
    """A way through all values.

    Attributes:
        cost: What the numbered tiles cost that stay on the rack.
        spent: Jokers that it takes.
        start: The open runs at the seam (run_wrap CYCLIC), of each color.
        steps: What is done at each place, of each color.
    """

    cost: int
    spent: int
    start: Runs
    steps: tuple[tuple[Step, ...], ...]


class Level(NamedTuple):
    """A place in the order of values: its number (14 is the 1 after the 13), tiles a color, weight."""

    value: int
    tiles: tuple[Tiles, ...]
    place: Place
    weight: int


def cheapest(problem: Problem, meter: Meter, below: int | None = None) -> Found | None:
    """The cheapest way to lay all that must be laid; None if there is none, or none that costs less than asked."""
    best: Found | None = None
    levels = levels_of(problem)
    for start in starts_of(problem, levels):
        found = _from_start(levels, _Start(start), problem.jokers, meter, below)
        if found:
            best, below = found, found.cost
    return best


def any_with_a_rack_tile(problem: Problem, meter: Meter) -> Found | None:
    """Any way to lay all that must be laid with a tile of the rack; None if there is none.

    A joker of the rack is such a tile if it finds a place, which is not seen here (layout.py).
    """
    levels = [level._replace(weight=0) for level in levels_of(problem)]
    has_joker = problem.jokers > problem.must.get(JOKER, 0)
    for start in starts_of(problem, levels):
        found = _from_start(levels, _Start(start, lays_one=has_joker), problem.jokers, meter, None)
        if found:
            return found
    return None


def levels_of(problem: Problem) -> tuple[Level, ...]:
    """The places in order. With run_wrap CYCLIC the order begins where fewest runs can cross its seam."""
    wrap, colors = problem.ruleset.run_wrap, problem.ruleset.geometry_colors
    counts = [[(problem.must.get(face, 0), problem.may.get(face, 0)) for face in faces[:colors]] for faces in FACES]
    values = list(range(1, MAX_VALUE + 1))
    if wrap is RunWrap.CYCLIC:
        first = min(values, key=lambda value: sum(map(sum, counts[value - 2])) + sum(map(sum, counts[value - 1])))
        values = values[first - 1 :] + values[: first - 1]
    if wrap is RunWrap.ONE_HIGH:
        values.append(MAX_VALUE + 1)
    last = len(values) - 1
    sizes = {value: tuple(map(sum, counts[(value - 1) % MAX_VALUE])) for value in values}
    none = (0,) * colors
    levels = []
    for index, value in enumerate(values):
        following, later = (
            sizes[values[there % len(values)]] if there <= last or wrap is RunWrap.CYCLIC else none
            for there in (index + 1, index + 2)
        )
        number = (value - 1) % MAX_VALUE
        levels.append(
            Level(
                value,
                tuple(map(Tiles._make, zip(*zip(*counts[number]), following, later))),
                _place(problem, value, 3 if wrap is RunWrap.CYCLIC else min(3, last - index), sizes),
                weight(FACES[number][0], problem.objective, problem.ruleset),
            )
        )
    return tuple(levels)


def _place(problem: Problem, value: int, after: int, sizes: dict[int, tuple[int, ...]]) -> Place:
    here = sum(map(bool, sizes[value]))
    groups = value <= MAX_VALUE and here > 0 and here + problem.jokers >= 3
    one_high = problem.ruleset.run_wrap is RunWrap.ONE_HIGH
    return Place(after, groups, one_high and value == 1, value > MAX_VALUE)


def starts_of(problem: Problem, levels: Sequence[Level]) -> list[Runs]:
    """The open runs that may cross the seam: none, unless runs go on from 13 to 1 and further."""
    nothing = pack(Open())
    if problem.ruleset.run_wrap is not RunWrap.CYCLIC:
        return [(nothing,) * problem.ruleset.geometry_colors]
    choices = []
    for here, (must, may, following, _) in zip(levels[-1].tiles, levels[0].tiles, strict=True):
        most = min(here.must + here.may, must + may) + problem.jokers
        choices.append(
            [
                pack(Open(young, half, closable))
                for crossing in range(most + 1)
                for young in range(crossing + 1)
                for half in range(crossing - young + 1)
                if (closable := crossing - young - half) >= 0
            ]
        )
        del following
    return sorted(product(*choices), key=lambda runs: sum(sum(unpack(number)) for number in runs))


class _Start(NamedTuple):
    """Where a search begins: the open runs at the seam, and whether a tile of the rack is laid already, or none must."""

    runs: Runs
    lays_one: bool = True


def _from_start(levels: Sequence[Level], start: _Start, jokers: int, meter: Meter, below: int | None) -> Found | None:
    """The cheapest way from given open runs at the seam back to them."""
    queue: dict[int, list[tuple[int, Runs, bool, int, Way | None]]] = {0: [(0, *start, 0, None)]}
    costs = [0]
    seen: dict[tuple[int, Runs, bool], int] = {}
    last = len(levels)
    optional = [sum(there.may for there in level.tiles) for level in levels]
    while costs:
        cost = costs[0]
        if below is not None and cost >= below:
            return None
        stack = queue[cost]
        if not stack:
            heappop(costs)
            del queue[cost]
            continue
        index, runs, lays_one, spent, way = stack.pop()
        if index == last:
            if lays_one and _closes(runs, start.runs):
                return Found(cost, spent, start.runs, _steps_of(way))
            continue
        key = (index, runs, lays_one)
        if seen.get(key, jokers + 1) <= spent:
            continue
        seen[key] = spent
        meter.count()
        level = levels[index]
        for left, more, after, chosen in successors(runs, level.tiles, level.place, jokers - spent):
            dearer = cost + left * level.weight
            if dearer not in queue:
                queue[dearer] = []
                heappush(costs, dearer)
            queue[dearer].append((index + 1, after, lays_one or left < optional[index], spent + more, Way(chosen, way)))
    return None


def _closes(runs: Runs, start: Runs) -> bool:
    """Whether the open runs at the end are those that crossed the seam at the start."""
    return runs == start or all(
        end.young == begin.young and end.half == begin.half and end.closable >= begin.closable
        for end, begin in zip(map(unpack, runs), map(unpack, start), strict=True)
    )


def _steps_of(way: Way | None) -> tuple[tuple[Step, ...], ...]:
    found = []
    while way:
        found.append(way.steps)
        way = way.before
    return tuple(reversed(found))


@lru_cache(maxsize=1 << 13)
def successors(
    runs: Runs, tiles: tuple[Tiles, ...], place: Place, jokers: int
) -> tuple[tuple[int, int, Runs, tuple[Step, ...]], ...]:
    """What can follow: tiles left, jokers spent, open runs, steps; the best last, since it is looked at first."""
    partial: list[tuple[int, int, tuple[int, ...], Runs, tuple[Step, ...]]] = [(0, 0, (), (), ())]
    for number, there in zip(runs, tiles, strict=True):
        choices = steps(number, there, place, jokers)
        partial = [
            (left + step.left, spent + step.jokers, (*groups, step.grouped), (*after, step.runs), (*chosen, step))
            for left, spent, groups, after, chosen in partial
            for step in choices
            if spent + step.jokers <= jokers
        ]
    best: dict[tuple[int, Runs], tuple[int, tuple[Step, ...]]] = {}
    for left, spent, groups, after, chosen in partial:
        needed = jokers_for(groups)
        if needed is None or spent + needed > jokers:
            continue
        key = (spent + needed, after)
        if key not in best or left < best[key][0]:
            best[key] = (left, chosen)
    found = [(left, spent, after, chosen) for (spent, after), (left, chosen) in best.items()]
    return tuple(sorted(found, reverse=True))


@lru_cache(maxsize=1 << 12)
def jokers_for(groups: tuple[int, ...]) -> int | None:
    """Jokers that it takes to make groups of so many tiles a color, each group with a color once; None if impossible."""
    total = sum(groups)
    if not total:
        return 0
    number = max(*groups, -(-total // len(groups)))
    needed = max(0, 3 * number - total)
    return needed if needed <= 2 * number and total >= number else None
