"""The search of the solver: best first over the values, a state being the open runs of each color.

The cost of a state is what the tiles cost that were left on the rack so far, so the first state that is reached behind
the last value is optimal. Among states of equal cost the search goes deep first. A state is dropped when the same open
runs were reached with no more jokers spent: it can lead to nothing better. This is the dynamic program over values of
van Rijn, Takes and Vis with the jokers folded in, read from the cheap end.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import heappop, heappush
from itertools import islice, product
from math import prod
from typing import NamedTuple

from engine.ruleset import RunWrap
from engine.solver.answers import Budget
from engine.solver.color_steps import GUARDS, WIDTH, Open, Place, Step, Tiles, is_as_flexible, pack, steps
from engine.solver.problem import FACES, Problem, weight
from engine.tiles import JOKER, MAX_VALUE

ASKED_EVERY = 64
"""How many states are looked at between two questions whether the time is up."""

MOST_COMBINATIONS = 1 << 13
"""Steps of all colors are not combined where that would take a twentieth of a second: it cannot be interrupted."""

COMPARED = 200
"""How many states, the newest, another is compared with; with all of very many it would take too long."""

SETTLED = 99
"""Tiles behind the seam, for all that is asked before it: what can go on over it was settled at the start."""

STEPS_A_NODE = 16
"""How many combinations of steps are as much work as looking at a state."""


class OutOfBudget(Exception):  # noqa: N818 - it is no error: the caller has an answer for it
    """The budget has been spent."""


@dataclass
class Meter:
    """Counts what a search spends of its budget.

    Attributes:
        budget: The budget.
        whole: The meter that this one is a part of.
        spent: The work so far.
        is_over: Whether the caller's time is up.
    """

    budget: Budget
    whole: "Meter | None" = None
    spent: int = 0
    is_over: bool = False

    def of(self, nodes: int) -> "Meter":
        """A meter for a part of what is left."""
        return Meter(replace(self.budget, nodes=min(nodes, self.budget.nodes - self.spent)), self)

    def count(self, nodes: int = 1) -> None:
        """Some more states are looked at, or as much other work is done.

        Raises:
            OutOfBudget: The budget does not allow it.
        """
        self.spent += nodes
        if self.whole:
            self.whole.count(nodes)
        elif self.budget.is_over and not self.is_over:
            before = (self.spent - nodes) // ASKED_EVERY
            self.is_over = before != self.spent // ASKED_EVERY and self.budget.is_over()
        if self.is_over or self.spent > self.budget.nodes:
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
        levels: The places.
    """

    cost: int
    spent: int
    start: Runs
    steps: tuple[tuple[Step, ...], ...]
    levels: Sequence["Level"]


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
    for start in starts_of(problem, levels, meter):
        if below is not None and below <= 0:
            return best
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
    for start in starts_of(problem, levels, meter):
        found = _from_start(levels, _Start(start, lays_one=has_joker), problem.jokers, meter, None)
        if found:
            return found
    return None


def levels_of(problem: Problem) -> tuple[Level, ...]:
    """The places in order. With run_wrap CYCLIC the order begins where fewest runs can cross its seam."""
    must, may, ruleset, jokers = problem.must, problem.may, problem.ruleset, problem.jokers
    colors, wrap = ruleset.geometry_colors, ruleset.run_wrap
    counts = [[(must.get(face, 0), may.get(face, 0)) for face in faces[:colors]] for faces in FACES]
    sizes = [[lying + own for lying, own in row] for row in counts]
    values = _order(wrap, sizes)
    following = [sizes[(value - 1) % MAX_VALUE] for value in values]
    beyond = [SETTLED if wrap is RunWrap.CYCLIC else 0] * colors
    following += [beyond, beyond]
    last = len(values) - 1
    levels = []
    for index, value in enumerate(values):
        number = (value - 1) % MAX_VALUE
        here = colors - following[index].count(0)
        place = Place(
            after=3 if wrap is RunWrap.CYCLIC else min(3, last - index),
            groups=value <= MAX_VALUE and here > 0 and here + jokers >= 3,
            holds=wrap is RunWrap.ONE_HIGH and value == 1,
            is_held=value > MAX_VALUE,
        )
        holdable = _holdable(sizes, jokers) if place.holds else [0] * colors
        next_two = zip(counts[number], following[index + 1], following[index + 2], holdable, strict=True)
        tiles = tuple([(lying, own, soon, later, held) for (lying, own), soon, later, held in next_two])
        levels.append(Level(value, tiles, place, weight(FACES[number][0], problem.objective, ruleset)))
    return tuple(levels)


def _holdable(sizes: list[list[int]], jokers: int) -> list[int]:
    """How many ones of each color can lie behind a 13 (run_wrap ONE_HIGH)."""
    last = zip(sizes[-2], sizes[-1], strict=True)
    return [there + jokers if before + there + jokers > 1 else 0 for before, there in last]


def _order(wrap: RunWrap, sizes: list[list[int]]) -> list[int]:
    """The values in the order of the search; 14 is the 1 after the 13."""
    values = list(range(1, MAX_VALUE + 1))
    match wrap:
        case RunWrap.NONE:
            return values
        case RunWrap.ONE_HIGH:
            return [*values, MAX_VALUE + 1]
        case RunWrap.CYCLIC:
            first = min(values, key=lambda value: _ways_to_cross(sizes[value - 2], sizes[value - 1]))
            return values[first - 1 :] + values[: first - 1]


def _ways_to_cross(before: list[int], after: list[int]) -> int:
    """About how many sets of open runs can cross from a value to the next, without jokers."""
    most = map(min, before, after)
    return prod(sum(len(_open_runs(fewer)) for fewer in range(count + 1)) for count in most)


def starts_of(problem: Problem, levels: Sequence[Level], meter: Meter) -> Iterator[Runs]:
    """The open runs that may cross the seam: none, unless runs go on from 13 to 1 and further; the fewest first."""
    colors = problem.ruleset.geometry_colors
    if problem.ruleset.run_wrap is not RunWrap.CYCLIC:
        yield (pack(Open()),) * colors
        return
    for crossing, _ in crossings(problem, levels, meter):
        for runs in product(*[_open_runs(count) for count in crossing]):
            meter.count()
            yield runs


@lru_cache
def _open_runs(count: int) -> tuple[int, ...]:
    """All that so many open runs can be."""
    kinds = ((young, half, count - young - half) for young in range(count + 1) for half in range(count - young + 1))
    return tuple(pack(Open(*kind)) for kind in kinds)


def crossings(problem: Problem, levels: Sequence[Level], meter: Meter) -> list[tuple[tuple[int, ...], int]]:
    """How many runs may cross the seam in each color, with the jokers that it takes at least; the fewest first."""
    found: list[tuple[tuple[int, ...], int]] = [((), 0)]
    for last, first in zip(levels[-1].tiles, levels[0].tiles, strict=True):
        here, following = sum(last[:2]), sum(first[:2])
        found = [
            ((*counts, count), needed)
            for counts, jokers in found
            for count in range(max(here, following) + problem.jokers + 1)
            if (needed := jokers + max(0, count - here) + max(0, count - following)) <= problem.jokers
        ]
        meter.count(len(found) // STEPS_A_NODE)
    return sorted(found, key=lambda crossing: (sum(crossing[0]), crossing))


class _Start(NamedTuple):
    """Where a search begins: the open runs at the seam; whether a tile of the rack is laid already, or none must be."""

    runs: Runs
    lays_one: bool = True


def _from_start(levels: Sequence[Level], start: _Start, jokers: int, meter: Meter, below: int | None) -> Found | None:
    """The cheapest way from given open runs at the seam back to them."""
    queue: dict[int, list[tuple[int, Runs, bool, int, int, Way | None]]] = {0: [(0, *start, 0, 0, None)]}
    costs = [0]
    seen: dict[tuple[int, bool], dict[int, None]] = {}
    last = len(levels)
    optional = [0 if level.place.is_held else sum(may for _, may, *_ in level.tiles) for level in levels]
    colors = WIDTH * len(start.runs)
    while costs:
        cost = costs[0]
        if below is not None and cost >= below:
            return None
        stack = queue[cost]
        if not stack:
            heappop(costs)
            del queue[cost]
            continue
        index, runs, lays_one, needs, spent, way = stack.pop()
        if index == last:
            if lays_one and _closes(runs, start.runs):
                return Found(cost, spent, start.runs, _steps_of(way), levels)
            continue
        known = seen.setdefault((index, lays_one), {})
        if needs in known or _is_outdone(needs, islice(reversed(known), COMPARED)):
            continue
        known[needs] = None
        level = levels[index]
        meter.count()
        following = successors(runs, level.tiles, level.place, jokers - spent)
        meter.count(len(following) // STEPS_A_NODE)
        for left, more, needed, after, chosen in following:
            dearer = cost + left * level.weight
            if dearer not in queue:
                queue[dearer] = []
                heappush(costs, dearer)
            laid, total = lays_one or left < optional[index], spent + more
            queue[dearer].append((index + 1, after, laid, total << colors | needed, total, Way(chosen, way)))
    return None


def _is_outdone(needs: int, known: Iterable[int]) -> bool:
    """Whether one of some states that cost no more needs no more (color_steps.need_no_more, written out)."""
    guarded = needs | GUARDS
    for other in known:  # noqa: SIM110 - as a generator it takes a quarter longer, and it is the innermost loop
        if (guarded - other) & GUARDS == GUARDS:
            return True
    return False


def _closes(runs: Runs, start: Runs) -> bool:
    """Whether the open runs at the end can be those that crossed the seam at the start."""
    return runs == start or all(is_as_flexible(end, begun) for end, begun in zip(runs, start, strict=True))


def _steps_of(way: Way | None) -> tuple[tuple[Step, ...], ...]:
    found = []
    while way:
        found.append(way.steps)
        way = way.before
    return tuple(reversed(found))


Groupings = tuple[tuple[tuple[int, ...], int], ...]
"""Ways to give tiles of each color to groups, each with the jokers that it takes."""

Successor = tuple[int, int, int, Runs, tuple[Step, ...]]
"""Tiles left, jokers spent, what is needed in all colors (color_steps.needs_of), open runs, steps."""


@lru_cache(maxsize=1 << 13)
def successors(runs: Runs, tiles: tuple[Tiles, ...], place: Place, jokers: int) -> tuple[Successor, ...]:
    """What can follow; the best last, since it is looked at first.

    Raises:
        OutOfBudget: There are far more combinations than in any game with four colors.
    """
    choices = [_by_group(number, there, place, jokers) for number, there in zip(runs, tiles, strict=True)]
    groupings = _groupings(tuple(map(tuple, choices)), jokers)
    at_most = prod(sum(map(len, choice.values())) for choice in choices)
    if at_most > MOST_COMBINATIONS and _combinations(choices, groupings) > MOST_COMBINATIONS:
        raise OutOfBudget
    best: dict[tuple[int, Runs], tuple[int, tuple[Step, ...]]] = {}
    for groups, needed in groupings:
        for chosen in product(*[choice[grouped] for choice, grouped in zip(choices, groups, strict=True)]):
            lefts, _, spents, after, _ = zip(*chosen, strict=True)
            spent = needed + sum(spents)
            if spent <= jokers:
                left, key = sum(lefts), (spent, after)
                if key not in best or left < best[key][0]:
                    best[key] = (left, chosen)
    found = [(left, spent, _needs(chosen), after, chosen) for (spent, after), (left, chosen) in best.items()]
    return tuple(sorted(found, reverse=True))


def _combinations(choices: Sequence[dict[int, list[Step]]], groupings: Groupings) -> int:
    ways = (
        prod(len(choice[grouped]) for choice, grouped in zip(choices, groups, strict=True)) for groups, _ in groupings
    )
    return sum(ways)


def _needs(chosen: tuple[Step, ...]) -> int:
    number = 0
    for step in chosen:
        number = number << WIDTH | step.needs
    return number


@lru_cache(maxsize=1 << 14)
def _by_group(number: int, tiles: Tiles, place: Place, jokers: int) -> dict[int, list[Step]]:
    """The steps of a color by the tiles that go to groups."""
    found: dict[int, list[Step]] = {}
    for step in steps(number, tiles, place, jokers):
        found.setdefault(step.grouped, []).append(step)
    return found


@lru_cache(maxsize=1 << 12)
def _groupings(choices: tuple[tuple[int, ...], ...], jokers: int) -> Groupings:
    """The ways to give tiles of each color to groups, with the jokers that it takes."""
    found = ((groups, jokers_for(groups)) for groups in product(*choices))
    return tuple((groups, needed) for groups, needed in found if needed is not None and needed <= jokers)


@lru_cache(maxsize=1 << 12)
def jokers_for(groups: tuple[int, ...]) -> int | None:
    """Jokers that it takes to make groups of so many tiles a color; None if there can be no such groups."""
    total = sum(groups)
    if not total:
        return 0
    number = max(*groups, -(-total // len(groups)))
    needed = max(0, 3 * number - total)
    return needed if needed <= 2 * number and total >= number else None
