"""Tiles: faces, the joker, and the full tile set (R1, R2).

A tile is a face. The two copies of a face are interchangeable for every rule, so nothing here tells them apart: a rack
is a multiset of tiles and is kept in ascending order.
"""

from collections import Counter
from collections.abc import Iterable
from enum import Enum
from typing import Final, NewType

Tile = NewType("Tile", int)
"""A face: 1 to 52 is (color - 1) * 13 + value, 53 the joker. The numbers are those of the contract's enum Tile."""

MAX_VALUE: Final = 13
COPIES: Final = 2


class Color(Enum):
    """A color, by its letter in the notation."""

    RED = "R"
    BLUE = "B"
    BLACK = "K"
    ORANGE = "O"


COLORS: Final = tuple(Color)
JOKER: Final = Tile(len(COLORS) * MAX_VALUE + 1)
NATURALS: Final = tuple(Tile(number) for number in range(1, JOKER))
"""The numbered tiles, one of each face, in ascending order."""


def tile(color: Color, value: int) -> Tile:
    """The tile of a color and a value from 1 to 13."""
    return Tile(COLORS.index(color) * MAX_VALUE + value)


def color_of(natural: Tile) -> Color:
    """The color of a numbered tile."""
    return COLORS[(natural - 1) // MAX_VALUE]


def value_of(natural: Tile) -> int:
    """The value of a numbered tile, 1 to 13."""
    return (natural - 1) % MAX_VALUE + 1


def tile_set(jokers: int) -> tuple[Tile, ...]:
    """All tiles of a game with so many jokers, in ascending order (R1, geometry_jokers)."""
    return tuple(natural for natural in NATURALS for _ in range(COPIES)) + (JOKER,) * jokers


def in_order(tiles: Iterable[Tile]) -> tuple[Tile, ...]:
    """The tiles in ascending order: the one form of a multiset."""
    return tuple(sorted(tiles))


def without(tiles: Iterable[Tile], taken: Iterable[Tile]) -> tuple[Tile, ...]:
    """The tiles left of a multiset when others are taken from it, in ascending order; what it lacks is not taken."""
    left = Counter(tiles)
    left.subtract(taken)
    return in_order(left.elements())
