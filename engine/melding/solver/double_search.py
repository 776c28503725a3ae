"""The search with double jokers: best first over the values, one color at a time (double_transitions.py).

It tracks every joker, so it has many more states than search.py. Three things keep them few:

* **A bound.** If each double joker were two regular jokers, search.py would find a turn at least as good. If it finds
  none, there is none. The cost that it leaves at each value and above is a lower bound for this search.
* **One color at a time.** States that are equal after a color are visited once, so colors are not multiplied.
* **Dominance.** A state is dropped if a known one has the same jokers left and runs that need no more.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from heapq import heappop, heappush
from itertools import product
from typing import Final, NamedTuple

from engine.melding.solver.color_transitions import GUARD_BITS, WIDTH, OpenRuns, pack
from engine.melding.solver.double_transitions import (
    COVERED,
    END,
    NEW,
    TILE_OF,
    ColorLevel,
    DoubleTransition,
    GroupShape,
    OpenRun,
    Runs,
    deal,
    double_transitions,
    groups_for,
    plain_counts,
    special_runs,
)
from engine.melding.solver.joker_search import Requirement
from engine.melding.solver.levels import Level, levels_of
from engine.melding.solver.problem import FACES, Problem, weight
from engine.melding.solver.run_assembly import RawMelds, melds_in_order
from engine.melding.solver.search import (
    Meter,
    Transitions,
    cheapest_path,
    is_dominated,
    lower_bounds,
    path_with_rack_tile,
)
from engine.tiles import DOUBLE_JOKER, JOKER, MAX_VALUE, PLACES_OF, Tile

BOUND_NODES: Final = 300
"""The nodes of the search for the lower bounds."""

LACKING_BITS, COST_BITS = 9, 16
"""The bits of the points that a state lacks, and of its cost. Above each is a bit that guards it in comparisons."""


class _State(NamedTuple):
    """A search state.

    Attributes:
        runs: The open runs of each color.
        jokers: The regular jokers left.
        doubles: The double jokers left.
        grouped: The tiles of each color that go to groups of the present value.
        lacking: The points that are lacking; if only a played tile is required, 1 until a tile of the rack is laid.
        has_run: Whether there is a run, if that is required.
        melds: The number of melds, if there may be only one.
    """

    runs: tuple[Runs, ...]
    jokers: int
    doubles: int
    grouped: tuple[int, ...]
    lacking: int
    has_run: bool
    melds: int


class _Step(NamedTuple):
    """The transition of a color, the groups of the value if it is its last color, and the previous step."""

    transition: DoubleTransition
    groups: tuple[GroupShape, ...]
    previous: "_Step | None"


class _Node(NamedTuple):
    """A search node, ordered by a lower bound on the cost of all tiles left, then by depth."""

    bound: int
    above: int
    order: int
    cost: int
    state: _State
    step: _Step | None


@dataclass(frozen=True, slots=True)
class DoublePath:
    """A path through all levels: its cost including jokers, and its melds."""

    cost: int
    melds: RawMelds


def cheapest_with_doubles(
    problem: Problem, meter: Meter, requirement: Requirement, below: int | None = None
) -> DoublePath | None:
    """Returns the cheapest path that meets a requirement; None if none costs less than the limit.

    Raises:
        OutOfBudget: The meter's budget is spent.
    """
    relaxed = _relaxed(problem)
    bound = cheapest_path(relaxed, meter, below)
    if bound is None:
        return None
    levels = levels_of(relaxed, downwards=True)
    others = lower_bounds(Transitions(levels, problem.ruleset.geometry_colors, relaxed.jokers), meter, BOUND_NODES)
    bounds = (bound.cost, *others[:0:-1], 0)
    return _DoubleSearch(problem, levels_of(relaxed), requirement, bounds, meter).cheapest(below)


def has_turn_with_doubles(problem: Problem, meter: Meter) -> bool:
    """Returns whether a path lays a tile of the rack.

    Raises:
        OutOfBudget: The meter's budget is spent.
    """
    relaxed = _relaxed(problem)
    if path_with_rack_tile(relaxed, meter) is None:
        return False
    levels = [level._replace(weight=0) for level in levels_of(relaxed)]
    bounds = (0,) * (len(levels) + 1)
    search = _DoubleSearch(problem, levels, Requirement(points=1), bounds, meter, is_any_turn=True)
    return search.cheapest(None) is not None


def _relaxed(problem: Problem) -> Problem:
    """Returns the problem with two regular jokers in place of each double joker."""
    must, may = Counter(problem.must), Counter(problem.may)
    for tiles in (must, may):
        tiles[JOKER] += PLACES_OF[DOUBLE_JOKER] * tiles.pop(DOUBLE_JOKER, 0)
    return replace(problem, must=+must, may=+may)


@dataclass
class _DoubleSearch:
    """The search for the cheapest path.

    Attributes:
        problem: The tiles to lay.
        levels: The levels, from 1 to 13.
        requirement: The requirement on all melds together.
        bounds: Lower bounds on the cost of the tiles left at each level and above.
        meter: The budget.
        is_any_turn: Whether all that counts is that a tile of the rack is laid.
    """

    problem: Problem
    levels: Sequence[Level]
    requirement: Requirement
    bounds: Sequence[int]
    meter: Meter
    is_any_turn: bool = False

    def cheapest(self, below: int | None) -> DoublePath | None:
        """Returns the cheapest path; None if none costs less than the limit."""
        colors, last = self.colors, len(self.levels) * self.colors
        problem, lacking = self.problem, self.requirement.points
        start = _State(((),) * colors, problem.jokers, problem.doubles, (), lacking, has_run=False, melds=0)
        queue = [_Node(self.bounds[0], 0, 0, 0, start, None)]
        seen: list[dict[object, list[int]]] = [{} for _ in range(last)]
        order = 0
        while queue:
            node = heappop(queue)
            if below is not None and node.bound >= below:
                return None
            if -node.above > last:
                return DoublePath(node.cost, self._melds(node.step))
            if -node.above == last:
                ended = self._ended(node)
                if ended:
                    heappush(queue, ended)
                continue
            if not self._is_new(node, seen[-node.above]):
                continue
            self.meter.count()
            for after in self._successors(node):
                order -= 1
                heappush(queue, after._replace(order=order))
        return None

    @cached_property
    def colors(self) -> int:
        """Returns the number of colors."""
        return self.problem.ruleset.geometry_colors

    def _is_new(self, node: _Node, seen: dict[object, list[int]]) -> bool:
        """Returns whether no known state of the same place, at no higher cost, dominates a state, and records it.

        The bounds only order the nodes: one may come after another one of its place that costs more.
        """
        state, shift = node.state, WIDTH * self.colors
        special, numbers = zip(*map(_comparison, state.runs), strict=True)
        rest = (node.cost << LACKING_BITS + 1) + state.lacking
        packed = sum(of_color << WIDTH * color for color, of_color in enumerate(numbers)) + (rest << shift)
        known = seen.setdefault((special, *state[1:4], *state[5:]), [])
        guards = 1 << shift + LACKING_BITS | 1 << shift + LACKING_BITS + 1 + COST_BITS
        if is_dominated(packed, known, guards | GUARD_BITS & (1 << shift) - 1):
            return False
        known.append(packed)
        return True

    def _ended(self, node: _Node) -> _Node | None:
        """Returns a node behind the last level with the cost of unused jokers; None if it violates the requirement."""
        state, may = node.state, self.problem.may
        jokers, doubles = may.get(JOKER, 0), may.get(DOUBLE_JOKER, 0)
        has_played_joker = self.is_any_turn and (state.jokers < jokers or state.doubles < doubles)
        lacking = 0 if has_played_joker else state.lacking
        if state.jokers > jokers or state.doubles > doubles or lacking:
            return None
        if self.requirement.needs_run and not state.has_run:
            return None
        left = 0 if self.is_any_turn else state.jokers + state.doubles
        cost = node.cost + left * weight(JOKER, self.problem.objective, self.problem.ruleset)
        return node._replace(bound=cost, above=node.above - 1, cost=cost)

    def _successors(self, node: _Node) -> Iterator[_Node]:
        """Yields the nodes after the next color; after the last color of a value, with groups of its tiles."""
        place, color = divmod(-node.above, self.colors)
        state, level = node.state, self.levels[place]
        here = self._color_levels[place][color]
        for transition in double_transitions(state.runs[color], here, state.jokers, state.doubles):
            runs = (*state.runs[:color], transition.runs, *state.runs[color + 1 :])
            gain = here.may - transition.left if self.is_any_turn else level.value * transition.places
            after = state._replace(
                runs=runs,
                jokers=state.jokers - transition.jokers,
                doubles=state.doubles - transition.doubles,
                grouped=(*state.grouped, transition.grouped),
                lacking=max(0, state.lacking - gain),
                has_run=self.requirement.needs_run and (state.has_run or transition.begun > 0),
                melds=state.melds + transition.begun if self.requirement.single_meld else 0,
            )
            cost = node.cost + transition.left * level.weight
            step = _Step(transition, (), node.step)
            whole = _Node(cost + self.bounds[place + 1], node.above - 1, 0, cost, after, step)
            for ended in self._with_groups(whole, step, level) if color == self.colors - 1 else (whole,):
                if ended.state.melds <= 1:
                    yield ended

    def _with_groups(self, node: _Node, step: _Step, level: Level) -> Iterator[_Node]:
        """Yields a node with its tiles in groups, with any number of jokers."""
        state = node.state
        total = sum(state.grouped)
        choices = product(range(state.jokers + 1), range(state.doubles + 1)) if total else ((0, 0),)
        for jokers, doubles in choices:
            groups = groups_for(state.grouped, jokers, doubles)
            if groups is not None:
                places = total + jokers + PLACES_OF[DOUBLE_JOKER] * doubles
                gain = 0 if self.is_any_turn else level.value * places
                after = state._replace(
                    jokers=state.jokers - jokers,
                    doubles=state.doubles - doubles,
                    grouped=(),
                    lacking=max(0, state.lacking - gain),
                    melds=state.melds + len(groups) if self.requirement.single_meld else 0,
                )
                yield node._replace(state=after, step=step._replace(groups=groups))

    @cached_property
    def _color_levels(self) -> list[list[ColorLevel]]:
        jokers, doubles = self.problem.jokers, self.problem.doubles
        longest = max(5, jokers + doubles + 3) + doubles  # a longer run with a joker in front can be cut
        return [
            [
                ColorLevel(must, may, soon, MAX_VALUE - level.value, level.traits.groups, level.value >= 13 - longest)
                for must, may, soon, *_ in level.tiles
            ]
            for level in self.levels
        ]

    # The melds of a path

    def _melds(self, last: _Step | None) -> RawMelds:
        """Returns the melds of a path that ends with a step."""
        steps: list[_Step] = []
        while last:
            steps.append(last)
            last = last.previous
        parts: list[list[_Part]] = [[] for _ in range(self.colors)]
        runs: list[tuple[Tile, ...]] = []
        groups: list[tuple[Tile, ...]] = []
        for faces, of_value in zip(FACES, _by_value(steps[::-1], self.colors), strict=True):
            for color, step in enumerate(of_value):
                parts[color], ended = _continued(parts[color], step.transition, faces[color])
                runs += ended
            groups += _groups_of(faces, of_value)
        return melds_in_order([*runs, *[part.tiles for of_color in parts for part in of_color]], groups)


def _by_value(steps: Sequence[_Step], colors: int) -> Iterator[Sequence[_Step]]:
    return (steps[first : first + colors] for first in range(0, len(steps), colors))


@lru_cache(maxsize=1 << 14)
def _comparison(runs: Runs) -> tuple[Runs, int]:
    """Returns the runs that must be equal in states that are compared, and the others packed; smaller is better."""
    return special_runs(runs), pack(OpenRuns(*plain_counts(runs)))


class _Part(NamedTuple):
    """A run under construction with its state in the search."""

    state: OpenRun
    tiles: tuple[Tile, ...]

    def after(self, taken: str, face: Tile) -> "_Part":
        """Returns the run after one more value."""
        tiles = self.tiles if taken == COVERED else (*self.tiles, TILE_OF.get(taken, face))
        return _Part(self.state.after(taken), tiles)


def _continued(
    parts: list[_Part], transition: DoubleTransition, face: Tile
) -> tuple[list[_Part], list[tuple[Tile, ...]]]:
    """Returns the open runs after a transition, in the order of the search, and those that ended."""
    before = [*parts, *[_Part(NEW, ())] * transition.begun]
    pairs = list(zip(before, transition.taken, strict=True))
    longer = sorted([part.after(taken, face) for part, taken in pairs if taken != END], key=lambda part: part.state)
    dropped = len(longer) - len(transition.runs)  # complete runs, which are the first
    return longer[dropped:], [part.tiles for part, taken in pairs if taken == END] + [
        part.tiles for part in longer[:dropped]
    ]


def _groups_of(faces: Sequence[Tile], steps: Sequence[_Step]) -> Iterator[tuple[Tile, ...]]:
    """Yields the groups of a value."""
    groups = steps[-1].groups
    dealt = deal(faces, [step.transition.grouped for step in steps], [tiles for tiles, _, _ in groups])
    for tiles, (_, jokers, doubles) in zip(dealt, groups, strict=True):
        yield (*tiles, *(JOKER,) * jokers, *(DOUBLE_JOKER,) * doubles)
