"""Melds with special jokers for bots: those of a rack, and two melds of the table joined by one (W-3, W-5, W-8).

A simple search: a joker stands only where the rack lacks the tile, and in the halves of a mirror there is none.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, combinations, groupby
from typing import NamedTuple

from engine.melding.melds import MeldKind, ProposedMeld
from engine.melding.ruleset import Ruleset
from engine.melding.run_shape import MIN_TILES
from engine.tiles import (
    COLOR_CHANGE,
    COLORS,
    DOUBLE_JOKER,
    JOKER,
    JOKERS,
    MAX_VALUE,
    MIRROR,
    PLACES_OF,
    SPECIAL_JOKERS,
    Color,
    Tile,
    color_of,
    in_order,
    tile,
    value_of,
)


def melds_with_special_jokers(rack: tuple[Tile, ...], most: int, ruleset: Ruleset) -> Iterator[ProposedMeld]:
    """Yields proposals of melds that a rack supplies, with at most so many jokers; the rules may reject some."""
    has = Counter(rack)
    if has[DOUBLE_JOKER] or has[COLOR_CHANGE]:
        for color in COLORS[: ruleset.geometry_colors]:
            for value in range(1, MAX_VALUE):
                yield from _runs(_Run((), color, value, has, most), COLORS[: ruleset.geometry_colors])
    if has[DOUBLE_JOKER]:
        yield from _groups_with_double_joker(has)
    if has[MIRROR]:
        yield from _mirrored(has)


class _Run(NamedTuple):
    """The beginning of a run: its tiles, the next color and value, the tiles left, and how many may be jokers."""

    tiles: tuple[Tile, ...]
    color: Color
    value: int
    left: Counter[Tile]
    jokers: int

    def with_tile(self, t: Tile, color: Color) -> "_Run":
        """Returns the run with one more tile, after which it has a color."""
        value, jokers = self.value + PLACES_OF.get(t, 1), self.jokers - (t in JOKERS)
        return _Run((*self.tiles, t), color, value, self.left - Counter((t,)), jokers)


def _runs(run: _Run, colors: tuple[Color, ...]) -> Iterator[ProposedMeld]:
    """Yields the runs with a special joker that have a beginning."""
    if len(run.tiles) >= MIN_TILES and not SPECIAL_JOKERS.isdisjoint(run.tiles):
        yield ProposedMeld(run.tiles, MeldKind.RUN)
    if run.value > MAX_VALUE:
        return
    natural = tile(run.color, run.value)
    if run.left[natural]:
        yield from _runs(run.with_tile(natural, run.color), colors)
    jokers = [t for t in (JOKER, DOUBLE_JOKER, COLOR_CHANGE) if run.left[t] and run.jokers]
    for t in jokers:
        if t == COLOR_CHANGE:
            for color in (color for color in colors if run.tiles and color is not run.color):
                yield from _runs(run.with_tile(t, color), colors)
        elif not run.left[natural]:
            yield from _runs(run.with_tile(t, run.color), colors)


def _groups_with_double_joker(has: Counter[Tile]) -> Iterator[ProposedMeld]:
    for same in _by_value(has):
        for two in combinations(same, 2):
            yield ProposedMeld((*two, DOUBLE_JOKER), MeldKind.GROUP)
        if has[JOKER]:
            yield ProposedMeld((same[0], JOKER, DOUBLE_JOKER), MeldKind.GROUP)


def _mirrored(has: Counter[Tile]) -> Iterator[ProposedMeld]:
    """Yields mirrors of runs and groups of which the rack has two."""
    twice = Counter({t: count for t, count in has.items() if count > 1})
    for same in _by_value(twice):
        yield ProposedMeld((*same, MIRROR, *same[::-1]), MeldKind.GROUP)
    faces = sorted(t for t in twice if t not in JOKERS)
    for _, steps in groupby(enumerate(faces), key=lambda place: (color_of(place[1]), place[1] - place[0])):
        run = tuple([t for _, t in steps])
        yield ProposedMeld((*run, MIRROR, *run[::-1]), MeldKind.RUN)


def _by_value(has: Counter[Tile]) -> Iterator[tuple[Tile, ...]]:
    """Yields the faces of each value."""
    faces = sorted((t for t in has if t not in JOKERS), key=value_of)
    for _, same in groupby(faces, key=value_of):
        yield tuple(same)


def joined_tables(table: Sequence[ProposedMeld], left: tuple[Tile, ...]) -> Iterator[tuple[ProposedMeld, ...]]:
    """Yields tables on which a mirror or a color change of the rack joins two melds; the rules may reject some."""
    if MIRROR not in left and COLOR_CHANGE not in left:
        return
    for one, other in combinations(range(len(table)), 2):
        rest = tuple([meld for place, meld in enumerate(table) if place not in {one, other}])
        for joined in _joined(table[one], table[other], left):
            yield (*rest, joined)


def _joined(one: ProposedMeld, other: ProposedMeld, left: tuple[Tile, ...]) -> Iterator[ProposedMeld]:
    if not JOKERS.isdisjoint(chain(one.tiles, other.tiles)):
        return
    if MIRROR in left and in_order(one.tiles) == in_order(other.tiles):
        yield ProposedMeld((*one.tiles, MIRROR, *one.tiles[::-1]), one.kind)
    if COLOR_CHANGE in left and one.kind is other.kind is MeldKind.RUN:
        low, high = sorted((one, other), key=lambda meld: value_of(meld.tiles[0]))
        if value_of(low.tiles[-1]) + 2 == value_of(high.tiles[0]):
            yield ProposedMeld((*low.tiles, COLOR_CHANGE, *high.tiles), MeldKind.RUN)
