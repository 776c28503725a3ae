"""Finds the fewest melds of the table that must change, if only faces matter and jokers are free.

This is the main search (search.py) with the melds of the table in it. Where a meld starts, the search decides whether
it stays. If it stays, its tiles are reserved there and at the following levels; all other tiles are laid as usual. The
allowed cost of the tiles left is known, so a path's weight is the number of melds that change, and the lightest path
wins.

A changed meld weighs one whole minus a bit of its own. So fewer changed melds are always lighter, ties go to the melds
that come first, and the weight identifies the melds.

Two techniques keep the number of states low, both where runs end at 13 only:

* **Lower bounds.** A search from the other end yields a lower bound on the cost of the tiles left behind each level
  (search.lower_bounds). States that have already left too much are dropped.
* **Both directions.** One direction is often several times faster, and it cannot be predicted which. The search runs
  a while in one, then in the other, and continues in the one that has made more progress.

An eager search finds few melds quickly, but not always the fewest: it rewards each level with the weight of a meld, so
that it goes on with deep paths rather than light ones.
"""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import islice, permutations
from typing import NamedTuple

from engine.melding.melds import Meld
from engine.melding.run_shape import run_shape
from engine.melding.solver import color_transitions
from engine.melding.solver.color_transitions import GUARD_BITS, ColorLevel, color_level
from engine.melding.solver.levels import has_groups, is_better_downwards, levels_of
from engine.melding.solver.problem import Problem, dropped_cost, reduce
from engine.melding.solver.search import (
    COMBINATIONS_PER_NODE,
    Meter,
    Start,
    Transitions,
    is_dominated,
    lower_bounds,
    starts_of,
)
from engine.tiles import COLORS, JOKER, color_of, value_of

FIRST_SLICE = 150
"""The states visited before anything else is computed; usually they suffice."""

SLICE = 200
"""The states visited in one direction before the directions are compared again."""

COMPARED = 50
"""A state is compared with this many of the newest states."""

FIELD = 4
"""The bits of a count of reserved tiles of a face."""

MOST = (1 << FIELD) - 1

COLOR_AT = {color: place for place, color in enumerate(COLORS)}


def fewest_changed(problem: Problem, table: Sequence[Meld], cost: int, meter: Meter) -> Iterator[frozenset[int] | None]:
    """Yields None after each slice of the search, and at last the places of the fewest melds that must change.

    Ties go to the melds that come first. More melds must change if jokers are limited and do not fit, or if an unneeded
    joker finds no place: this search ignores both.

    Args:
        problem: The tiles to lay, including those of the whole table.
        table: The melds of the table.
        cost: The cost to reach; attainable if all melds change.
        meter: The budget.

    Raises:
        OutOfBudget: The budget is spent.
    """
    reduced, limit = _reduced(problem, cost)
    downwards = is_better_downwards(reduced)
    searches = [_Search(reduced, table, limit, meter, downwards=downwards)]
    if not searches[0].finishes_within(FIRST_SLICE) and not run_shape(problem.ruleset).beyond:
        searches.append(_Search(reduced, table, limit, meter, downwards=not downwards))
        for one, other in permutations(searches):
            one.use_bounds_from(other)
        any(search.finishes_within(SLICE) for search in searches)
    while True:
        furthest = max(searches, key=lambda search: (search.is_finished, search.melds, -search.nodes))
        if furthest.is_finished:
            yield furthest.changed
            return
        yield None
        furthest.finishes_within(SLICE)


def few_changed(problem: Problem, table: Sequence[Meld], cost: int, meter: Meter) -> frozenset[int]:
    """Returns the places of few melds that must change, found by an eager search. See fewest_changed."""
    reduced, limit = _reduced(problem, cost)
    search = _Search(reduced, table, limit, meter, downwards=is_better_downwards(reduced), is_eager=True)
    while not search.finishes_within(SLICE):
        pass
    return search.changed


def _reduced(problem: Problem, cost: int) -> tuple[Problem, int]:
    """Returns the problem without useless tiles of the rack, and the cost that the others may reach."""
    reduced = reduce(problem)
    return reduced, cost - dropped_cost(problem, reduced)


class _Reservation(NamedTuple):
    """The tiles and jokers that a meld reserves if it stays, from a level on, and its weight if it changes.

    The reserved tiles are a number with a field per face; the nearest level has the lowest bits.
    """

    tiles: int
    jokers: int
    weight: int


Node = tuple[int, int, int, int, int, int]
"""A visited state: its level, the state (combined_transitions.py), the cost of the tiles left, the tiles reserved from
this level on, the index of the next choice of melds that stay, and the state in which the path started.
"""


class _Search:
    """The search in one direction, which can be resumed.

    Attributes:
        weight: A lower bound on the weight of the melds that change.
        nodes: The number of visited states.
        is_finished: Whether the melds that change are known.
    """

    def __init__(  # noqa: PLR0913 - the input of the search, and its two modes
        self,
        problem: Problem,
        table: Sequence[Meld],
        limit: int,
        meter: Meter,
        *,
        downwards: bool,
        is_eager: bool = False,
    ) -> None:
        colors = problem.ruleset.geometry_colors
        self.levels = levels_of(problem, downwards=downwards)
        self.transitions = Transitions(self.levels, colors, problem.jokers)
        self.meter = meter
        self.limit = limit
        self.bounds = [0] * len(self.levels)
        self.places = len(table)
        self.bits_per_level = FIELD * colors
        self.visible = (1 << 3 * self.bits_per_level) - 1
        self.color_levels: dict[tuple[int, int], list[ColorLevel]] = {}
        self.choices = [self._choices(reservations) for reservations in self._reservations(table)]
        self.left_bit = self.transitions.bits.jokers_bound + color_transitions.FIELD
        below_it = (1 << self.left_bit) - 1
        self.guards = (GUARD_BITS & below_it) | 1 << self.left_bit + limit.bit_length()
        self.seen: list[dict[tuple[int, int], dict[int, None]]] = [{} for _ in self.levels]
        self.weight = self.nodes = 0
        starts = [self.transitions.start_state(Start(runs)) for runs in starts_of(problem, self.levels, meter)]
        self.reward = int(is_eager) << self.places
        first = self.reward * len(self.levels)
        self.queue: dict[int, list[Node]] = {first: [(0, start, 0, 0, 0, start) for start in reversed(starts)]}
        self.weights = [first]
        self.is_finished = False

    @property
    def melds(self) -> int:
        """Returns a lower bound on the number of melds that change."""
        return -(-self.weight >> self.places)

    @property
    def changed(self) -> frozenset[int]:
        """Returns the places of the melds that change."""
        return frozenset(place for place in range(self.places) if -self.weight & self._bit(place))

    def _bit(self, place: int) -> int:
        return 1 << self.places - 1 - place

    def use_bounds_from(self, other: "_Search") -> None:
        """Computes lower bounds on the cost of the tiles left, by a search from the other end."""
        if self.limit:
            self.bounds = lower_bounds(other.transitions, self.meter, FIRST_SLICE)[::-1]

    # Melds that stay

    def _reservations(self, table: Sequence[Meld]) -> list[list[_Reservation]]:
        """Returns the reservations of the melds, by the level where they start."""
        at = {level.value: place for place, level in enumerate(self.levels)}
        found: list[list[_Reservation]] = [[] for _ in self.levels]
        for place, meld in enumerate(table):
            tiles = [(at[value_of(t)], COLOR_AT[color_of(t)]) for t in meld.tiles if t != JOKER]
            begins = min(tiles)[0]
            reserved = sum(1 << self.bits_per_level * (reached - begins) + FIELD * color for reached, color in tiles)
            weight = (1 << self.places) - self._bit(place)
            found[begins].append(_Reservation(reserved, meld.tiles.count(JOKER), weight))
        return found

    def _choices(self, reservations: Sequence[_Reservation]) -> list[_Reservation]:
        """Returns the combined reservations at a level with the least weight of the other melds; the lightest first."""
        found = {(0, 0): 0}
        for reservation in reservations:
            self.meter.count(2 * len(found) // COMBINATIONS_PER_NODE)
            changed = {reserved: weight + reservation.weight for reserved, weight in found.items()}
            for (tiles, jokers), weight in found.items():
                both = (tiles + reservation.tiles, jokers + reservation.jokers)
                changed[both] = min(weight, changed.get(both, weight))
            found = changed
        return sorted(
            (_Reservation(*reserved, weight) for reserved, weight in found.items()),
            key=lambda reservation: reservation.weight,
        )

    # The search

    def finishes_within(self, nodes: int) -> bool:
        """Runs the search for a number of states; returns whether it is finished."""
        end = self.nodes + nodes
        while self.nodes < end:
            self.weight = self.weights[0]
            stack = self.queue[self.weight]
            if not stack:
                del self.queue[heappop(self.weights)]
                continue
            node = stack.pop()
            if node[0] == len(self.levels):
                if self.transitions.is_final(node[1], node[-1]):
                    self.is_finished = True
                    return True
            elif node[-2] or self._is_new(node):
                successors = self._successors(node)
                if self.reward:
                    stack = self._stack(self.weight - self.reward)
                stack += successors
                self.nodes += 1
        return False

    def _is_new(self, node: Node) -> bool:
        """Returns whether no known state of at most the same weight dominates a state, and records it."""
        index, state, left, reserved, _, start = node
        needs = state | left << self.left_bit
        known = self.seen[index].setdefault((reserved, start), {})
        if needs in known or is_dominated(needs, islice(reversed(known), COMPARED), self.guards):
            return False
        known[needs] = None
        return True

    def _successors(self, node: Node) -> list[Node]:
        """Returns the successors for one choice of melds that stay, and postpones the next choice."""
        index, state, left, reserved, number, start = node
        choices = self.choices[index]
        choice = choices[number]
        if number + 1 < len(choices):
            self._postpone(
                (index, state, left, reserved, number + 1, start), choices[number + 1].weight - choice.weight
            )
        transitions, cost = self.transitions, self.levels[index].weight
        reserved += choice.tiles
        state += choice.jokers * transitions.bits.one_joker
        low, high = (
            transitions.half_transitions(self._color_levels(index, reserved), state)
            if state < transitions.limit
            else ((), ())
        )
        most = min(len(low) + len(high) - 2, (self.limit - self.bounds[index] - left) // cost)
        spent = transitions.spent(state) * transitions.bits.one_joker
        found = [
            (index + 1, after, left + more * cost, reserved >> self.bits_per_level, 0, start)
            for more in range(most, -1, -1)
            for after in transitions.combined_states(low, high, more, spent)
        ]
        self.meter.count(1 + len(found) // COMBINATIONS_PER_NODE)
        return found

    def _color_levels(self, index: int, reserved: int) -> list[ColorLevel]:
        """Returns the unreserved tiles of each color. Tiles that may be reserved later count as free."""
        key = (index, reserved & self.visible)
        known = self.color_levels.get(key)
        if known is None:
            known = self.color_levels[key] = self._unreserved(index, reserved)
        return known

    def _unreserved(self, index: int, reserved: int) -> list[ColorLevel]:
        level = self.levels[index]
        rows = []
        for color, (must, may, soon, later, aside) in enumerate(level.tiles):
            of_color = reserved >> FIELD * color
            here, next_place, one_after = (of_color >> self.bits_per_level * ahead & MOST for ahead in range(3))
            rows.append((must - here, may, soon - next_place, later - one_after, aside))
        groups = level.traits.groups and has_groups(tuple(rows), self.transitions.jokers)
        place = level.traits._replace(groups=groups)
        return [color_level(row, place) for row in rows]

    def _postpone(self, node: Node, more: int) -> None:
        """Queues a node for a higher weight."""
        self._stack(self.weight + more).append(node)

    def _stack(self, weight: int) -> list[Node]:
        """Returns the queued nodes of a weight."""
        if weight not in self.queue:
            self.queue[weight] = []
            heappush(self.weights, weight)
        return self.queue[weight]
