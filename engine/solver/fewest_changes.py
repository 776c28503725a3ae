"""The fewest melds of the table that must change, by one more search over the values (run_wrap NONE, jokers free).

It is the search for the cheapest way (search.py) with the melds of the table in it. At the place where a meld begins it
is decided whether it stays: then its tiles are claimed, there and at the places to come, and all others are laid as
ever. What the tiles may cost that are left is known, so the best way is now the one on which fewest melds change, and
the first one that comes out behind the last value is it.

A meld that changes weighs a whole less a bit of its own. So fewer melds are always lighter, of as many those that come
first in order are, and the weight tells which they are.

What keeps the states few:

* **What must still be left.** A search from the other end tells what the tiles cost at least that are left behind each
  place (search.least_left). What has left too much before is given up.
* **From which end?** One end is often several times as quick as the other, and nobody knows which. So the search goes
  some way from the one, then from the other, and on from where it has come further.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import NamedTuple

from engine.melds import Meld
from engine.solver import color_transitions
from engine.solver.color_transitions import GUARD_BITS, ColorLevel, OpenRuns, color_level, pack
from engine.solver.levels import has_groups, is_better_downwards, levels_of
from engine.solver.problem import Problem
from engine.solver.search import COMBINATIONS_PER_NODE, Meter, Start, Transitions, is_dominated, lower_bounds
from engine.tiles import COLORS, JOKER, color_of, value_of

FIRST_SLICE = 150
"""How many states are looked at before anything else is asked: mostly that is enough."""

SLICE = 200
"""How many more are looked at from an end before it is asked from which one to go on."""

COMPARED = 50
"""How many states, the newest, another is compared with."""

FIELD = 4
"""The bits of a number of claimed tiles of a face."""

MOST = (1 << FIELD) - 1

COLOR_AT = {color: place for place, color in enumerate(COLORS)}


def fewest_changed(problem: Problem, table: Sequence[Meld], limit: int, meter: Meter) -> frozenset[int]:
    """The places of the fewest melds that must change; of equals those that are first in order.

    That a joker which is not needed may find no place in what is laid instead is not seen here. Then more must change.

    Args:
        problem: The tiles to lay, those of the whole table among them.
        table: The melds of the table.
        limit: What the numbered tiles may cost that are left. So much is enough if all melds change.
        meter: The budget.

    Raises:
        OutOfBudget: The budget is spent.
    """
    downwards = is_better_downwards(problem)
    one = _Search(problem, table, limit, meter, downwards=downwards)
    if one.finishes_within(FIRST_SLICE):
        return one.changed
    other = _Search(problem, table, limit, meter, downwards=not downwards)
    one.use_bounds_from(other)
    other.use_bounds_from(one)
    for search in (one, other):
        if search.finishes_within(SLICE):
            return search.changed
    while True:
        further = max(one, other, key=lambda search: (search.melds, -search.nodes))
        if further.finishes_within(SLICE):
            return further.changed


class _Reservation(NamedTuple):
    """What a meld of the table claims if it stays: tiles of a place and those after it, jokers; what it weighs if not.

    How many tiles of a face are claimed is a field of a number, those of the nearest place in the lowest bits.
    """

    tiles: int
    jokers: int
    weight: int


Node = tuple[int, int, int, int, int]
"""How many places lie behind, the state (halves.py), what the tiles cost that were left, which tiles are claimed from
here on, which choice of melds is tried next at this place."""


class _Search:
    """The search from one end, as far as it has come.

    Attributes:
        weight: What the melds weigh at least that change.
        nodes: How many states were looked at.
    """

    def __init__(self, problem: Problem, table: Sequence[Meld], limit: int, meter: Meter, *, downwards: bool) -> None:
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
        self.seen: list[dict[int, dict[int, None]]] = [{} for _ in self.levels]
        self.weight = self.nodes = 0
        start = self.transitions.start_state(Start((pack(OpenRuns()),) * colors))
        self.queue: dict[int, list[Node]] = {0: [(0, start, 0, 0, 0)]}
        self.weights = [0]

    @property
    def melds(self) -> int:
        """How many melds change at least."""
        return -(-self.weight >> self.places)

    @property
    def changed(self) -> frozenset[int]:
        """The places of the melds that change at least."""
        return frozenset(place for place in range(self.places) if -self.weight & self._bit(place))

    def _bit(self, place: int) -> int:
        return 1 << self.places - 1 - place

    def use_bounds_from(self, other: "_Search") -> None:
        """Has the other end tell what the tiles cost at least that are left behind each place."""
        if self.limit:
            self.bounds = lower_bounds(other.transitions, self.meter, FIRST_SLICE)[::-1]

    # Melds that stay

    def _reservations(self, table: Sequence[Meld]) -> list[list[_Reservation]]:
        """What the melds claim, by the place where they begin."""
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
        """What can be claimed by melds that begin at a place, with the least that the others weigh, lightest first."""
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
        """Whether the end is reached before so many more states were looked at."""
        end = self.nodes + nodes
        while self.nodes < end:
            self.weight = self.weights[0]
            stack = self.queue[self.weight]
            if not stack:
                del self.queue[heappop(self.weights)]
                continue
            node = stack.pop()
            if node[0] == len(self.levels):
                return True
            if node[-1] or self._is_new(node):
                stack += self._successors(node)
                self.nodes += 1
        return False

    def _is_new(self, node: Node) -> bool:
        """Whether a state is not outdone by one that was reached with no more changed."""
        index, state, left, reserved, _ = node
        needs = state | left << self.left_bit
        known = self.seen[index].setdefault(reserved, {})
        if needs in known or is_dominated(needs, islice(reversed(known), COMPARED), self.guards):
            return False
        known[needs] = None
        return True

    def _successors(self, node: Node) -> list[Node]:
        """What follows a state if one choice of melds stays; the next choice is put off until it weighs no more."""
        index, state, left, reserved, number = node
        choices = self.choices[index]
        choice = choices[number]
        if number + 1 < len(choices):
            self._postpone((*node[:-1], number + 1), choices[number + 1].weight - choice.weight)
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
            (index + 1, after, left + more * cost, reserved >> self.bits_per_level, 0)
            for more in range(most, -1, -1)
            for after in transitions.combined_states(low, high, more, spent)
        ]
        self.meter.count(1 + len(found) // COMBINATIONS_PER_NODE)
        return found

    def _color_levels(self, index: int, reserved: int) -> list[ColorLevel]:
        """The tiles of each color that are not claimed. Those that may yet be claimed later count as free."""
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
        place = level.traits._replace(groups=has_groups(tuple(rows), self.transitions.jokers))
        return [color_level(row, place) for row in rows]

    def _postpone(self, node: Node, more: int) -> None:
        """Leaves a node until all are done that weigh less than it does."""
        weight = self.weight + more
        if weight not in self.queue:
            self.queue[weight] = []
            heappush(self.weights, weight)
        self.queue[weight].append(node)
