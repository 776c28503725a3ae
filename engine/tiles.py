"""Tiles: faces, the joker, and the full tile set (R1, R2).

A tile is a face. No rule distinguishes the copies of a face, so they are equal here. A rack is a multiset of tiles,
stored in ascending order.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Final, NewType

Tile = NewType("Tile", int)
"""A face, numbered as in the contract's enum Tile.

1 to 52 are (color - 1) * 13 + value, 53 is the joker, 54 to 79 are green and purple of games with six colors, 80 is the
false joker of Okey, 81 to 83 are the special jokers of Twist.
"""

MAX_VALUE: Final = 13


class Color(Enum):
    """A color and its letter in the notation. Most games use the first four (geometry_colors)."""

    RED = "R"
    BLUE = "B"
    BLACK = "K"
    ORANGE = "O"
    GREEN = "G"
    PURPLE = "P"

    __hash__ = object.__hash__  # Enum hashes the name, which costs more than the lookup


COLORS: Final = tuple(Color)
JOKER: Final = Tile(53)
_NATURALS: Final = tuple(Tile(number) for number in range(1, 80) if number != JOKER)
FALSE_JOKER: Final = Tile(80)
"""Stands for the face of the okey, whose own tiles are wild."""
DOUBLE_JOKER: Final = Tile(81)
"""Stands for two neighboring tiles of a meld (Twist)."""
MIRROR: Final = Tile(82)
"""Stands in the middle of a meld whose second half is its first half read backwards (Twist)."""
COLOR_CHANGE: Final = Tile(83)
"""Stands for a value of a run, between two colors (Twist)."""
SPECIAL_JOKERS: Final = frozenset({DOUBLE_JOKER, MIRROR, COLOR_CHANGE})
PLACES_OF: Final = {JOKER: 1, DOUBLE_JOKER: 2, MIRROR: 0, COLOR_CHANGE: 1}
"""How many places of a meld each joker covers."""
JOKERS: Final = frozenset(PLACES_OF)
LAST_TILE: Final = COLOR_CHANGE
"""The tile with the highest number, in any game."""
_FACES: Final = {
    (color, value): _NATURALS[place * MAX_VALUE + value - 1]
    for place, color in enumerate(COLORS)
    for value in range(1, MAX_VALUE + 1)
}
_COLOR_OF: Final = {natural: color for (color, _), natural in _FACES.items()}
_VALUE_OF: Final = {natural: value for (_, value), natural in _FACES.items()}


def naturals(colors: int) -> tuple[Tile, ...]:
    """Returns the numbered tiles of a game with a number of colors, one of each face, ascending."""
    return _NATURALS[: colors * MAX_VALUE]


_NATURALS_OF: Final = tuple(frozenset(naturals(colors)) for colors in range(len(COLORS) + 1))


def is_natural(t: Tile, colors: int) -> bool:
    """Returns whether a tile is a numbered tile of a game with a number of colors."""
    return t in _NATURALS_OF[colors]


NATURALS: Final = naturals(4)
"""The numbered tiles of a game with four colors."""


def tile(color: Color, value: int) -> Tile:
    """Returns the tile of a color and a value from 1 to 13."""
    return _FACES[color, value]


def color_of(natural: Tile) -> Color:
    """Returns the color of a numbered tile."""
    return _COLOR_OF[natural]


def value_of(natural: Tile) -> int:
    """Returns the value of a numbered tile, 1 to 13."""
    return _VALUE_OF[natural]


def tile_set(colors: int, copies: int, jokers: int, kinds: tuple[Tile, ...] = (JOKER,)) -> tuple[Tile, ...]:
    """Returns all tiles of a game, ascending: so many jokers of each kind (R1, geometry_*, joker_kinds)."""
    return in_order((*naturals(colors) * copies, *kinds * jokers))


def in_order(tiles: Iterable[Tile]) -> tuple[Tile, ...]:
    """Returns the tiles in ascending order, the canonical form of a multiset."""
    return tuple(sorted(tiles))


def without(tiles: Iterable[Tile], taken: Iterable[Tile]) -> tuple[Tile, ...]:
    """Returns the multiset difference, ascending. Tiles to take that are not there are ignored."""
    left = sorted(tiles)
    for t in taken:
        if t in left:
            left.remove(t)
    return tuple(left)
