"""Exact search for a named hand in 14 tiles: whether they can lie in melds that meet its conditions (named_hands.py).

The search takes the lowest tile that is left and tries every meld that it may be in, until no tile is left. A joker
may take any place of a meld except the place of this tile.
"""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations, product
from typing import Final

from engine.discard.hands import finished_hand
from engine.discard.melds import GROUP_MAX, MELD_MIN, Arrangement, fixed_faces, is_group, run_start, tile_at
from engine.discard.named_hands import COLORS_MAX, ONE_HIGH, PARTS_MAX, NamedHand
from engine.effort import Effort, TooComplexError
from engine.tiles import JOKER, Color, Tile, color_of, in_order, value_of, without
from engine.violations import Reason, Violation

STEPS: Final = 3_000
"""The most melds that a search of all hands, beside all discards, tries: about a tenth of a second.

The known hands take less than a third of it; a long list of hands may take minutes.
"""


@dataclass(frozen=True, slots=True)
class MatchedHand:
    """A named hand that tiles make.

    Attributes:
        name: Its name.
        tiles: Its melds.
        points: What it scores.
    """

    name: str
    tiles: Arrangement
    points: int


@dataclass(frozen=True, slots=True)
class _Part:
    """A meld: a run with its color, or a group, which has none."""

    tiles: tuple[Tile, ...]
    color: Color | None


def judge_named_hand(
    tiles: tuple[Tile, ...], laid: Arrangement, hands: Iterable[NamedHand]
) -> MatchedHand | tuple[Violation, ...]:
    """Returns the hand that scores the most of those that tiles make, or what is wrong.

    Args:
        tiles: The 14 tiles.
        laid: The melds as the player lays them; empty: as the search finds them.
        hands: The named hands.
    """
    foreign = in_order((Counter(chain.from_iterable(laid)) - Counter(tiles)).elements())
    if foreign:
        return (Violation(Reason.TILE_NOT_IN_RACK, "hand", foreign),)
    left = without(tiles, chain.from_iterable(laid)) if laid else ()
    found = None if left else best_named_hand(tiles, hands, laid)
    return found or (Violation(Reason.HAND_NOT_MATCHED, "hand", left),)


def best_named_hand(
    tiles: tuple[Tile, ...], hands: Iterable[NamedHand], laid: Arrangement = (), effort: Effort | None = None
) -> MatchedHand | None:
    """Returns the hand that scores the most of those that 14 tiles make; None if they make none. See above.

    Hands that the search does not reach in its steps count as not made. Only long lists of hands take so many.
    """
    if not laid and finished_hand(tiles, JOKER, one_high=True) is None:
        return None  # one quick search instead of one for each hand
    jokers, effort = tiles.count(JOKER), effort or Effort(STEPS)
    with contextlib.suppress(TooComplexError):
        for hand in sorted(hands, key=lambda one: -one.scores[jokers]):
            melds = _as_laid(laid, hand) if laid else melds_of(tiles, hand, effort)
            if melds:
                return MatchedHand(hand.name, melds, hand.scores[jokers])
    return None


def melds_of(tiles: tuple[Tile, ...], hand: NamedHand, effort: Effort) -> Arrangement:
    """Returns the melds of a hand that tiles make; nothing if they do not. Raises TooComplexError."""
    return _Search(hand, tiles, effort).melds()


def _as_laid(laid: Arrangement, hand: NamedHand) -> Arrangement:
    """Returns melds as they are laid; nothing if they are not the hand."""
    readings = product(*(tuple(_readings(part, hand)) for part in laid))
    return laid if any(_meets(parts, hand) for parts in readings) else ()


def _readings(tiles: tuple[Tile, ...], hand: NamedHand) -> Iterator[_Part]:
    """Yields a meld as a group and as a run, if it is one and each place has a value that a hand may have."""
    if is_group(tiles, JOKER) and _value(fixed_faces(tiles, JOKER)[0], hand) in hand.values:
        yield _Part(tiles, None)
    start = run_start(tiles, JOKER, one_high=hand.one_high)
    if start and hand.values.issuperset(range(start, start + len(tiles))):
        yield _Part(tiles, color_of(fixed_faces(tiles, JOKER)[0]))


def _value(numbered: Tile, hand: NamedHand) -> int:
    """Returns the value of a tile in a hand."""
    value = value_of(numbered)
    return ONE_HIGH if hand.one_high and value == 1 else value


def _meets(parts: tuple[_Part, ...], hand: NamedHand) -> bool:
    """Returns whether melds meet what a hand asks of their number and of their colors."""
    runs, groups = [part.color for part in parts if part.color], [part.tiles for part in parts if not part.color]
    colors = len({color_of(face) for part in parts for face in fixed_faces(part.tiles, JOKER)})
    fewest = max((colors, *map(len, groups)))
    most = min(COLORS_MAX, colors + sum(group.count(JOKER) for group in groups))
    return (
        hand.runs_min <= len(runs) <= hand.runs_max
        and hand.groups_min <= len(groups) <= hand.groups_max
        and fewest <= hand.colors_max
        and most >= hand.colors_min
        and not (hand.run_colors_differ and len(set(runs)) < len(runs))
    )


class _Search:
    """The search of one hand in some tiles."""

    def __init__(self, hand: NamedHand, tiles: tuple[Tile, ...], effort: Effort) -> None:
        self.hand, self.values, self._effort = hand, hand.values, effort
        self.numbered, self.jokers = without(tiles, (JOKER,) * tiles.count(JOKER)), tiles.count(JOKER)
        self._tried: set[object] = set()

    def melds(self) -> Arrangement:
        """Returns the melds of the hand; nothing if the tiles do not make it."""
        is_in_range = all(_value(t, self.hand) in self.values for t in self.numbered)
        has_colors = len({color_of(t) for t in self.numbered}) <= self.hand.colors_max
        if not (is_in_range and has_colors):
            return ()
        return next(self._arrangements(self.numbered, self.jokers, ()), ())

    def _arrangements(self, left: tuple[Tile, ...], jokers: int, parts: tuple[_Part, ...]) -> Iterator[Arrangement]:
        """Yields the melds of the hand that begin with some melds and have all tiles that are left.

        Melds that leave the same tiles and meet the conditions equally well are tried once.
        """
        if not left and not jokers and _meets(parts, self.hand):
            yield tuple(part.tiles for part in parts)
        state = (left, jokers, self._standing(parts))
        if not left or state in self._tried or not self._may_meet(parts, len(left) + jokers):
            return
        self._tried.add(state)
        for part in self._parts(left, jokers):
            self._effort.take()
            used = part.tiles.count(JOKER)
            yield from self._arrangements(without(left, part.tiles), jokers - used, (*parts, part))

    def _standing(self, parts: tuple[_Part, ...]) -> tuple[object, ...]:
        """Returns what melds mean for the conditions, beside the tiles that they leave."""
        runs, groups = [part.color for part in parts if part.color], [part.tiles for part in parts if not part.color]
        has_colors = self.hand.colors_min > 1 or self.hand.colors_max < COLORS_MAX
        return (
            len(runs) if self.hand.runs_max < PARTS_MAX else min(len(runs), self.hand.runs_min),
            len(groups) if self.hand.groups_max < PARTS_MAX else min(len(groups), self.hand.groups_min),
            frozenset(runs) if self.hand.run_colors_differ else None,
            (max(map(len, groups), default=0), sum(group.count(JOKER) for group in groups)) if has_colors else None,
        )

    def _may_meet(self, parts: tuple[_Part, ...], left: int) -> bool:
        """Returns whether more melds of the tiles that are left, so many, can make these the hand."""
        hand, runs = self.hand, [part.color for part in parts if part.color]
        groups = len(parts) - len(runs)
        lacks = max(0, hand.runs_min - len(runs)) + max(0, hand.groups_min - groups)
        is_few = len(runs) <= hand.runs_max and groups <= hand.groups_max and left >= MELD_MIN * max(1, lacks)
        return is_few and not (hand.run_colors_differ and len(set(runs)) < len(runs))

    def _parts(self, left: tuple[Tile, ...], jokers: int) -> Iterator[_Part]:
        """Yields the melds that the lowest tile that is left may be in."""
        held = frozenset(left)
        if self.hand.runs_max:
            yield from (_Part(run, color_of(left[0])) for run in self._runs(left[0], held, jokers))
        if self.hand.groups_max:
            yield from (_Part(group, None) for group in _groups(left[0], held, jokers))

    def _runs(self, first: Tile, held: frozenset[Tile], jokers: int) -> Iterator[tuple[Tile, ...]]:
        color, value = color_of(first), _value(first, self.hand)
        below = tuple(self._reached(color, range(value - 1, 0, -1), held, jokers))
        above = tuple(self._reached(color, range(value + 1, ONE_HIGH + 1), held, jokers))
        for low, high in product(range(len(below) + 1), range(len(above) + 1)):
            others = (*below[:low][::-1], *above[:high])
            missing = [place for place in others if tile_at(color, place) not in held]
            if len(others) + 1 >= MELD_MIN and len(missing) <= jokers:
                for wild in _wild_places(others, missing, jokers):
                    places = range(value - low, value + high + 1)
                    yield tuple(JOKER if place in wild else tile_at(color, place) for place in places)

    def _reached(self, color: Color, places: range, held: frozenset[Tile], jokers: int) -> Iterator[int]:
        """Yields places of a run, from one on, that tiles and jokers reach."""
        for place in places:
            jokers -= tile_at(color, place) not in held
            if jokers < 0 or place not in self.values:
                return
            yield place


def _groups(first: Tile, held: frozenset[Tile], jokers: int) -> Iterator[tuple[Tile, ...]]:
    others = [t for t in held if t != first and value_of(t) == value_of(first)]
    for count in range(len(others) + 1):
        for more in combinations(sorted(others), count):
            for wild in range(max(0, MELD_MIN - 1 - count), min(jokers, GROUP_MAX - 1 - count) + 1):
                yield (first, *more, *(JOKER,) * wild)


def _wild_places(others: tuple[int, ...], missing: list[int], jokers: int) -> Iterator[set[int]]:
    """Yields the places of a run that jokers take: those without a tile, and any more."""
    held = [place for place in others if place not in missing]
    for more in range(jokers - len(missing) + 1):
        for places in combinations(held, more):
            yield {*missing, *places}
