"""The main search: best first over the values, with the open runs of each color as the state.

The cost of a state is the cost of the tiles left on the rack so far, so the first state reached behind the last value
is optimal. Among states of equal cost the deepest goes first. The successors of a state that leave one more tile are
generated only when the search reaches their cost. A state is dropped if a known state dominates it. This is the dynamic
program over values of van Rijn, Takes and Vis, with jokers, in order of cost.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import islice, product
from typing import Any, NamedTuple

from engine.effort import Budget
from engine.melding.run_shape import run_shape
from engine.melding.solver.color_transitions import (
    GUARD_BITS,
    HIGHEST,
    WIDTH,
    ColorLevel,
    OpenRuns,
    Transition,
    color_level,
    dominates,
    pack,
    transition_set,
)
from engine.melding.solver.combined_transitions import (
    MOST_COMBINATIONS,
    HalfTransitions,
    TooManyCombinations,
    join_shares,
    state_bits,
)
from engine.melding.solver.combined_transitions import half_transitions as half_transitions_of
from engine.melding.solver.levels import Level, is_better_downwards, levels_of, open_runs
from engine.melding.solver.problem import Problem
from engine.tiles import JOKER, MAX_VALUE

CHECK_EVERY = 32
"""The number of states between two polls of Budget.is_over."""

COMPARED = 200
"""A state is compared with this many of the newest states; comparing it with all would take too long."""

COLOR = (1 << WIDTH) - 1
"""The bits of the first color in a state."""

COMBINATIONS_PER_NODE = 16
"""The number of combinations that cost as much as visiting a state."""


class OutOfBudget(Exception):  # noqa: N818 - control flow: callers handle it
    """The budget is spent."""


@dataclass
class Meter:
    """Counts the work of a search against its budget.

    Attributes:
        budget: The budget.
        parent: The meter that this one is a part of.
        spent: The work so far.
        is_over: Whether the caller asked to stop.
    """

    budget: Budget
    parent: "Meter | None" = None
    spent: int = 0
    is_over: bool = False

    def part(self, nodes: int) -> "Meter":
        """Returns a meter for a part of the remaining budget."""
        return Meter(replace(self.budget, nodes=min(nodes, self.budget.nodes - self.spent)), self)

    def count(self, nodes: int = 1) -> None:
        """Counts visited states, or an equal amount of other work.

        Raises:
            OutOfBudget: The budget is spent.
        """
        self.spent += nodes
        if self.parent:
            self.parent.count(nodes)
        elif self.budget.is_over and not self.is_over:
            before = (self.spent - nodes) // CHECK_EVERY
            self.is_over = before != self.spent // CHECK_EVERY and self.budget.is_over()
        if self.is_over or self.spent > self.budget.nodes:
            raise OutOfBudget


Runs = tuple[int, ...]
"""The open runs of each color, packed."""


@dataclass(frozen=True)
class Path:
    """A path through all levels.

    Attributes:
        cost: The cost of the numbered tiles that stay on the rack.
        spent: The jokers spent.
        start: The open runs of each color at the seam, where runs go around.
        transitions: The transitions of each color, by level.
        levels: The levels.
        is_downwards: Whether the values go from 13 to 1.
    """

    cost: int
    spent: int
    start: Runs
    transitions: tuple[tuple[Transition, ...], ...]
    levels: Sequence[Level]
    is_downwards: bool


def cheapest_path(problem: Problem, meter: Meter, below: int | None = None) -> Path | None:
    """Returns the cheapest path that lays all tiles that must be laid; None if no path costs less than the limit."""
    if below is not None and below <= 0:
        return None
    best: Path | None = None
    levels = levels_of(problem, downwards=is_better_downwards(problem))
    transitions = Transitions(levels, problem.ruleset.geometry_colors, problem.jokers)
    for start in starts_of(problem, levels, meter):
        found = _search_from(transitions, Start(start), meter, best.cost if best else below, _empty_seen(levels))
        best = found or best
        if best and not best.cost:
            break
    return best


def path_with_rack_tile(problem: Problem, meter: Meter) -> Path | None:
    """Returns any path that lays all tiles that must be laid and a tile of the rack; None if there is none.

    A joker of the rack counts as laid; whether a meld has room for it is decided later (reconstruction.py).
    """
    levels = [level._replace(weight=0) for level in levels_of(problem, downwards=is_better_downwards(problem))]
    transitions = Transitions(levels, problem.ruleset.geometry_colors, problem.jokers)
    has_joker = problem.jokers > problem.must.get(JOKER, 0)
    for start in starts_of(problem, levels, meter):
        found = _search_from(transitions, Start(start, has_rack_tile=has_joker), meter, None, _empty_seen(levels))
        if found:
            return found
    return None


def starts_of(problem: Problem, levels: Sequence[Level], meter: Meter) -> Iterator[Runs]:
    """Yields the open runs that may cross the seam, the fewest first; none cross unless runs go around."""
    colors = problem.ruleset.geometry_colors
    if not run_shape(problem.ruleset).is_cyclic:
        yield (pack(OpenRuns()),) * colors
        return
    for crossing, _ in crossings(problem, levels, meter):
        for runs in product(*[open_runs(count) for count in crossing]):
            meter.count()
            yield runs


def crossings(problem: Problem, levels: Sequence[Level], meter: Meter) -> list[tuple[tuple[int, ...], int]]:
    """Returns how many runs may cross the seam in each color, with the fewest jokers needed; the fewest runs first."""
    found: list[tuple[tuple[int, ...], int]] = [((), 0)]
    for last, first in zip(levels[-1].tiles, levels[0].tiles, strict=True):
        here, following = sum(last[:2]), sum(first[:2])
        found = [
            ((*counts, count), needed)
            for counts, jokers in found
            for count in range(max(here, following) + problem.jokers + 1)
            if (needed := jokers + max(0, count - here) + max(0, count - following)) <= problem.jokers
        ]
        meter.count(len(found) // COMBINATIONS_PER_NODE)
    return sorted(found, key=lambda crossing: (sum(crossing[0]), crossing))


class Start(NamedTuple):
    """The start of a search: the open runs at the seam, and whether no rack tile has to be laid any more."""

    runs: Runs
    has_rack_tile: bool = True


Node = tuple[int, int, int, Any]
"""A visited state: its level, the state (combined_transitions.py), the number of tiles left in the next attempt, and
the previous node.
"""


Seen = list[dict[int, int]]
"""The visited states of each level with their costs, in order of cost."""


def _search_from(transitions: "Transitions", start: Start, meter: Meter, below: int | None, seen: Seen) -> Path | None:
    """Returns the cheapest path from given open runs at the seam back to them.

    Args:
        transitions: The transitions between states.
        start: The start of the search.
        meter: The budget.
        below: The path must cost less than this, if given.
        seen: Collects the visited states.
    """
    levels = transitions.levels
    runs = transitions.start_state(start)
    queue: dict[int, list[Node]] = {0: [(0, runs, 0, None)]}
    costs = [0]
    last = len(levels)
    while costs:
        cost = costs[0]
        if below is not None and cost >= below:
            return None
        stack = queue[cost]
        if not stack:
            heappop(costs)
            del queue[cost]
            continue
        node = stack.pop()
        index, state, left, before = node
        if index == last:
            if transitions.is_final(state, runs):
                return transitions.path(node, cost, start)
            continue
        if not left and not _is_new(state, cost, seen[index]):
            continue
        following, has_more = transitions.following(index, state, left)
        meter.count(1 + len(following) // COMBINATIONS_PER_NODE)
        if has_more:
            _postpone((index, state, left + 1, before), cost + levels[index].weight, queue, costs)
        index += 1
        stack += [(index, after, 0, node) for after in following]
    return None


def _is_new(state: int, cost: int, known: dict[int, int]) -> bool:
    """Returns whether no known state dominates a state, and records it."""
    if state in known or is_dominated(state, islice(reversed(known), COMPARED)):
        return False
    known[state] = cost
    return True


def _postpone(node: Node, cost: int, queue: dict[int, list[Node]], costs: list[int]) -> None:
    """Queues a node for a higher cost."""
    if cost not in queue:
        queue[cost] = []
        heappush(costs, cost)
    queue[cost].append(node)


def _empty_seen(levels: Sequence[Level]) -> Seen:
    return [{} for _ in levels]


def lower_bounds(transitions: "Transitions", meter: Meter, nodes: int) -> list[int]:
    """Returns a lower bound on the cost of the tiles left before each level, as far as a number of nodes allows."""
    seen = _empty_seen(transitions.levels)
    with suppress(OutOfBudget):
        _search_from(transitions, Start((pack(OpenRuns()),) * transitions.colors), meter.part(nodes), None, seen)
    latest = max(next(reversed(known.values()), 0) for known in seen)
    return [next(iter(known.values()), latest) for known in seen]


HalvesByTilesLeft = tuple[HalfTransitions, ...]
"""The transitions of half of the colors, by the number of tiles left."""


class Transitions:
    """The transitions between states."""

    def __init__(self, levels: Sequence[Level], colors: int, jokers: int) -> None:
        self.bits = state_bits(colors)
        self.colors = colors
        self.half = (colors + 1) // 2
        self.jokers = jokers
        self.color_levels: list[list[ColorLevel]] = [
            [color_level(tiles, level.traits) for tiles in level.tiles] for level in levels
        ]
        self.levels = levels
        self.runs = self.bits.needs_rack_tile - 1
        self.limit = (jokers + 1) << self.bits.jokers_bound

    def start_state(self, start: Start) -> int:
        """Returns the state in which a search starts."""
        runs = sum(open_runs << WIDTH * color for color, open_runs in enumerate(start.runs))
        return runs if start.has_rack_tile else runs | self.bits.needs_rack_tile

    def is_final(self, state: int, begun: int) -> bool:
        """Returns whether a state behind the last level closes the path."""
        needs_rack_tile = self.bits.needs_rack_tile
        return not state & needs_rack_tile and dominates(state & self.runs, begun & self.runs)

    def following(self, index: int, state: int, left: int) -> tuple[list[int], bool]:
        """Returns the successors that leave a number of tiles, the best last; and whether more tiles could be left.

        Raises:
            OutOfBudget: There are far more combinations than in any game with four colors.
        """
        low, high = self.half_transitions(self.color_levels[index], state)
        found = self.combined_states(low, high, left, self._kept_bits(index, state, left))
        return found, left + 2 < len(low) + len(high)

    def combined_states(self, low: HalvesByTilesLeft, high: HalvesByTilesLeft, left: int, base: int) -> list[int]:
        """Returns the states that combine both halves and leave a number of tiles, the best last.

        Args:
            low: The transitions of the first half of the colors.
            high: Those of the second half.
            left: The number of tiles left.
            base: The bits of the previous state that remain.

        Raises:
            OutOfBudget: There are far more combinations than in any game with four colors.
        """
        found: list[int] = []
        combined = 0
        limit, one_joker = self.limit, self.bits.one_joker
        for of_low in range(max(0, left - len(high) + 1), min(left + 1, len(low))):
            low_shares, low_states = low[of_low]
            high_shares, high_states = high[left - of_low]
            for place, other, needed in join_shares(low_shares, high_shares):
                spent = base + needed * one_joker
                beside = high_states[other]
                combined += len(low_states[place]) * len(beside)
                if combined > MOST_COMBINATIONS:
                    raise OutOfBudget
                for number in low_states[place]:
                    for rest in beside:
                        after = spent + number + rest
                        if after < limit:
                            found.append(after)
        found.sort(reverse=True)
        return found

    def half_transitions(
        self, color_levels: Sequence[ColorLevel], state: int
    ) -> tuple[HalvesByTilesLeft, HalvesByTilesLeft]:
        """Returns the transitions of both halves of the colors; empty if a color has none."""
        jokers = self.jokers - self.spent(state)
        choices = []
        for where in color_levels:
            transitions = transition_set(state & COLOR, where, jokers)
            if not transitions.transitions:
                return (), ()
            choices.append(transitions)
            state >>= WIDTH
        half = self.half
        try:
            return (
                half_transitions_of(tuple(choices[:half]), 0, self.colors),
                half_transitions_of(tuple(choices[half:]), self.bits.middle, self.colors),
            )
        except TooManyCombinations:
            raise OutOfBudget from None

    def spent(self, state: int) -> int:
        """Returns the number of jokers spent."""
        return (state >> self.bits.jokers) & HIGHEST

    def _kept_bits(self, index: int, state: int, left: int) -> int:
        """Returns the bits of a state that remain, apart from its runs."""
        needs_rack_tile = state & self.bits.needs_rack_tile
        if needs_rack_tile and left < self._max_left(index):
            needs_rack_tile = 0
        return needs_rack_tile + self.spent(state) * self.bits.one_joker

    def _max_left(self, index: int) -> int:
        """Returns how many tiles may be left at a level."""
        level = self.levels[index]
        return 0 if level.traits.is_held else sum(may for _, may, *_ in level.tiles)

    def path(self, node: Node, cost: int, start: Start) -> Path:
        """Returns the path that ends at a node."""
        is_downwards = self.levels[0].value == MAX_VALUE and self.levels[-1].value == 1
        steps = self._transitions_to(node)
        return Path(cost, self.spent(node[1]), start.runs, steps, self.levels, is_downwards)

    def _transitions_to(self, node: Node) -> tuple[tuple[Transition, ...], ...]:
        """Returns the transitions that lead to a node, by level."""
        found = []
        while node[3]:
            found.append(self._between(node[3], node[1]))
            node = node[3]
        return tuple(reversed(found))

    def _between(self, node: Node, after: int) -> tuple[Transition, ...]:
        """Returns the transitions from a node to a state."""
        index, state, left, _ = node
        low, high = self.half_transitions(self.color_levels[index], state)
        rest = after - self._kept_bits(index, state, left)
        ways_there = (
            (*chosen, *high_states[other][beside])
            for of_low in range(max(0, left - len(high) + 1), min(left + 1, len(low)))
            for (low_shares, low_states), (high_shares, high_states) in ((low[of_low], high[left - of_low]),)
            for place, other, needed in join_shares(low_shares, high_shares)
            for number, chosen in low_states[place].items()
            if (beside := rest - number - needed * self.bits.one_joker) in high_states[other]
        )
        return next(ways_there)


def is_dominated(needs: int, known: Iterable[int], guards: int = GUARD_BITS) -> bool:
    """Returns whether a known state, which costs no more, dominates a state (color_transitions.dominates, inlined)."""
    guarded = needs | guards
    for other in known:  # noqa: SIM110 - as a generator it takes a quarter longer, and it is the innermost loop
        if (guarded - other) & guards == guards:
            return True
    return False
