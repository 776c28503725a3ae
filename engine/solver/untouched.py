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
from engine.solver import color_steps
from engine.solver.color_steps import GUARDS, Open, Spot, pack, spot
from engine.solver.levels import has_groups, is_better_downwards, levels_of
from engine.solver.problem import Problem
from engine.solver.search import STEPS_A_NODE, Meter, Start, Steps, is_outdone, least_left
from engine.tiles import COLORS, JOKER, color_of, value_of

FIRST_LOOK = 150
"""How many states are looked at before anything else is asked: mostly that is enough."""

LOOK = 200
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
    if one.is_done_within(FIRST_LOOK):
        return one.changed
    other = _Search(problem, table, limit, meter, downwards=not downwards)
    one.know_what_is_left_behind(other)
    other.know_what_is_left_behind(one)
    for search in (one, other):
        if search.is_done_within(LOOK):
            return search.changed
    while True:
        further = max(one, other, key=lambda search: (search.melds, -search.nodes))
        if further.is_done_within(LOOK):
            return further.changed


class _Claim(NamedTuple):
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
        self.steps = Steps(self.levels, colors, problem.jokers)
        self.meter = meter
        self.limit = limit
        self.behind = [0] * len(self.levels)
        self.places = len(table)
        self.a_place = FIELD * colors
        self.in_sight = (1 << 3 * self.a_place) - 1
        self.spots: dict[tuple[int, int], list[Spot]] = {}
        self.choices = [self._choices(claims) for claims in self._claims(table)]
        self.left_at = self.steps.layout.in_all + color_steps.FIELD
        below_it = (1 << self.left_at) - 1
        self.guards = (GUARDS & below_it) | 1 << self.left_at + limit.bit_length()
        self.seen: list[dict[int, dict[int, None]]] = [{} for _ in self.levels]
        self.weight = self.nodes = 0
        start = self.steps.state_of(Start((pack(Open()),) * colors))
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

    def know_what_is_left_behind(self, other: "_Search") -> None:
        """Has the other end tell what the tiles cost at least that are left behind each place."""
        if self.limit:
            self.behind = least_left(other.steps, self.meter, FIRST_LOOK)[::-1]

    # Melds that stay

    def _claims(self, table: Sequence[Meld]) -> list[list[_Claim]]:
        """What the melds claim, by the place where they begin."""
        at = {level.value: place for place, level in enumerate(self.levels)}
        found: list[list[_Claim]] = [[] for _ in self.levels]
        for place, meld in enumerate(table):
            tiles = [(at[value_of(t)], COLOR_AT[color_of(t)]) for t in meld.tiles if t != JOKER]
            begins = min(tiles)[0]
            claimed = sum(1 << self.a_place * (reached - begins) + FIELD * color for reached, color in tiles)
            weight = (1 << self.places) - self._bit(place)
            found[begins].append(_Claim(claimed, meld.tiles.count(JOKER), weight))
        return found

    def _choices(self, claims: Sequence[_Claim]) -> list[_Claim]:
        """What can be claimed by melds that begin at a place, with the least that the others weigh, lightest first."""
        found = {(0, 0): 0}
        for claim in claims:
            self.meter.count(2 * len(found) // STEPS_A_NODE)
            changed = {claimed: weight + claim.weight for claimed, weight in found.items()}
            for (tiles, jokers), weight in found.items():
                both = (tiles + claim.tiles, jokers + claim.jokers)
                changed[both] = min(weight, changed.get(both, weight))
            found = changed
        return sorted((_Claim(*claimed, weight) for claimed, weight in found.items()), key=lambda claim: claim.weight)

    # The search

    def is_done_within(self, nodes: int) -> bool:
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
                stack += self._following(node)
                self.nodes += 1
        return False

    def _is_new(self, node: Node) -> bool:
        """Whether a state is not outdone by one that was reached with no more changed."""
        index, state, left, claimed, _ = node
        needs = state | left << self.left_at
        known = self.seen[index].setdefault(claimed, {})
        if needs in known or is_outdone(needs, islice(reversed(known), COMPARED), self.guards):
            return False
        known[needs] = None
        return True

    def _following(self, node: Node) -> list[Node]:
        """What follows a state if one choice of melds stays; the next choice is put off until it weighs no more."""
        index, state, left, claimed, number = node
        choices = self.choices[index]
        choice = choices[number]
        if number + 1 < len(choices):
            self._put_off((*node[:-1], number + 1), choices[number + 1].weight - choice.weight)
        steps, cost = self.steps, self.levels[index].weight
        claimed += choice.tiles
        state += choice.jokers * steps.layout.joker
        low, high = steps.ways(self._spots(index, claimed), state) if state < steps.limit else ((), ())
        most = min(len(low) + len(high) - 2, (self.limit - self.behind[index] - left) // cost)
        spent = steps.spent(state) * steps.layout.joker
        found = [
            (index + 1, after, left + more * cost, claimed >> self.a_place, 0)
            for more in range(most, -1, -1)
            for after in steps.joined(low, high, more, spent)
        ]
        self.meter.count(1 + len(found) // STEPS_A_NODE)
        return found

    def _spots(self, index: int, claimed: int) -> list[Spot]:
        """The tiles of each color that are not claimed. Those that may yet be claimed later count as free."""
        key = (index, claimed & self.in_sight)
        known = self.spots.get(key)
        if known is None:
            known = self.spots[key] = self._unclaimed(index, claimed)
        return known

    def _unclaimed(self, index: int, claimed: int) -> list[Spot]:
        level = self.levels[index]
        rows = []
        for color, (must, may, soon, later, aside) in enumerate(level.tiles):
            of_color = claimed >> FIELD * color
            here, next_place, one_after = (of_color >> self.a_place * ahead & MOST for ahead in range(3))
            rows.append((must - here, may, soon - next_place, later - one_after, aside))
        place = level.place._replace(groups=has_groups(tuple(rows), self.steps.jokers))
        return [spot(row, place) for row in rows]

    def _put_off(self, node: Node, more: int) -> None:
        """Leaves a node until all are done that weigh less than it does."""
        weight = self.weight + more
        if weight not in self.queue:
            self.queue[weight] = []
            heappush(self.weights, weight)
        self.queue[weight].append(node)
