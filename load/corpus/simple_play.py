"""A simple player: lays the melds of its rack, without jokers, and leaves the table alone."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from engine.tiles import JOKER, Color, Tile, color_of, value_of, without

THRESHOLD: Final = 30
"""The points that an initial meld needs by the default rules (R29)."""

LONG_ENOUGH: Final = 3


def melds_to_lay(rack: Sequence[Tile], *, has_melded: bool) -> list[tuple[Tile, ...]]:
    """Returns groups and runs of the rack; none if they are too few points for an initial meld."""
    groups = list(_groups(rack))
    left = without(rack, (tile for group in groups for tile in group))
    melds = [*groups, *_runs(left)]
    points = sum(value_of(tile) for meld in melds for tile in meld)
    return melds if has_melded or points >= THRESHOLD else []


def _groups(tiles: Iterable[Tile]) -> Iterator[tuple[Tile, ...]]:
    """Yields for each value one group of all available colors."""
    by_value: dict[int, set[Tile]] = defaultdict(set)
    for tile in tiles:
        if tile != JOKER:
            by_value[value_of(tile)].add(tile)
    yield from (tuple(sorted(group)) for _, group in sorted(by_value.items()) if len(group) >= LONG_ENOUGH)


def _runs(tiles: Iterable[Tile]) -> Iterator[tuple[Tile, ...]]:
    """Yields for each color its longest runs, each tile once."""
    by_color: dict[Color, set[Tile]] = defaultdict(set)
    for tile in tiles:
        if tile != JOKER:
            by_color[color_of(tile)].add(tile)
    for own in by_color.values():
        yield from (tuple(stretch) for stretch in _stretches(sorted(own)) if len(stretch) >= LONG_ENOUGH)


def _stretches(ascending: Sequence[Tile]) -> Iterator[list[Tile]]:
    """Yields consecutive tiles of one color."""
    stretch = list(ascending[:1])
    for tile, following in pairwise(ascending):
        if value_of(following) != value_of(tile) + 1:
            yield stretch
            stretch = []
        stretch.append(following)
    yield stretch
