"""Tiles: faces, the joker, and the full tile set (R1, R2).

A tile is a face. The copies of a face are interchangeable for every rule, so nothing here tells them apart: a rack
is a multiset of tiles and is kept in ascending order.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Final, NewType

Tile = NewType("Tile", int)
"""A face: 1 to 52 is (color - 1) * 13 + value, 53 the joker, 54 to 79 green and purple of games with six colors. The
numbers are those of the contract's enum Tile."""

MAX_VALUE: Final = 13


class Color(Enum):
    """A color, by its letter in the notation. The first four are those of most games (geometry_colors)."""

    RED = "R"
    BLUE = "B"
    BLACK = "K"
    ORANGE = "O"
    GREEN = "G"
    PURPLE = "P"

    __hash__ = object.__hash__  # Enum's own hashes the name, which costs more than the lookup


COLORS: Final = tuple(Color)
JOKER: Final = Tile(53)
_NATURALS: Final = tuple(Tile(number) for number in range(1, 80) if number != JOKER)
LAST_TILE: Final = _NATURALS[-1]
"""The highest number of a tile, of whatever game."""
_FACES: Final = {
    (color, value): _NATURALS[place * MAX_VALUE + value - 1]
    for place, color in enumerate(COLORS)
    for value in range(1, MAX_VALUE + 1)
}
_COLOR_OF: Final = {natural: color for (color, _), natural in _FACES.items()}
_VALUE_OF: Final = {natural: value for (_, value), natural in _FACES.items()}


def naturals(colors: int) -> tuple[Tile, ...]:
    """The numbered tiles of a game with so many colors, one of each face, in ascending order."""
    return _NATURALS[: colors * MAX_VALUE]


_NATURALS_OF: Final = tuple(frozenset(naturals(colors)) for colors in range(len(COLORS) + 1))


def is_natural(t: Tile, colors: int) -> bool:
    """Whether a tile is a numbered one of a game with so many colors."""
    return t in _NATURALS_OF[colors]


NATURALS: Final = naturals(4)
"""The numbered tiles of most games."""


def tile(color: Color, value: int) -> Tile:
    """The tile of a color and a value from 1 to 13."""
    return _FACES[color, value]


def color_of(natural: Tile) -> Color:
    """The color of a numbered tile."""
    return _COLOR_OF[natural]


def value_of(natural: Tile) -> int:
    """The value of a numbered tile, 1 to 13."""
    return _VALUE_OF[natural]


def tile_set(colors: int, copies: int, jokers: int) -> tuple[Tile, ...]:
    """All tiles of a game, in ascending order (R1, geometry_colors, geometry_copies, geometry_jokers)."""
    return in_order((*(natural for natural in naturals(colors) for _ in range(copies)), *(JOKER,) * jokers))


def in_order(tiles: Iterable[Tile]) -> tuple[Tile, ...]:
    """The tiles in ascending order: the one form of a multiset."""
    return tuple(sorted(tiles))


def without(tiles: Iterable[Tile], taken: Iterable[Tile]) -> tuple[Tile, ...]:
    """The tiles left of a multiset when others are taken from it, in ascending order; what it lacks is not taken."""
    left = sorted(tiles)
    for t in taken:
        if t in left:
            left.remove(t)
    return tuple(left)
