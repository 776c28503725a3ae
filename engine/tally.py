"""Multisets of tiles as numbers: quick to add up, to take from each other and to compare.

A tally has sixteen bits for each face. The highest of them stays free, so that two tallies can be compared in all faces
at once: with that bit set in one of them (ROOM), no face borrows from the next.
"""

from collections.abc import Iterable
from typing import Final, TypeVar

from engine.tiles import JOKER, LAST_TILE, Tile

T = TypeVar("T", bound=int)

BITS: Final = 16
"""Bits of a face. Callers see to it that no tally has more than 32,767 tiles."""

_FACE: Final = (1 << BITS) - 1

ONE: Final = tuple(1 << BITS * face for face in range(LAST_TILE + 1))
"""The tally of one tile, by its face; of 0, which is no tile, too."""

ROOM: Final = sum(one << BITS - 1 for one in ONE)
"""The highest bit of every face."""

JOKERS: Final = _FACE * ONE[JOKER]
"""The bits of the joker."""


def tally(tiles: Iterable[int]) -> int:
    """The tally of some tiles."""
    return sum([ONE[t] for t in tiles])


def is_within(part: int, whole: int) -> bool:
    """Whether no face is more often in one tally than in another."""
    return (whole + ROOM - part) & ROOM == ROOM


def beyond(tiles: int, taken: int) -> int:
    """What is left of a tally when another is taken from it; of no face less than nothing."""
    left = tiles + ROOM - taken
    enough = left & ROOM
    return left & (enough - (enough >> BITS - 1))


def counted(tiles: int, t: Tile) -> int:
    """How often a face is in a tally."""
    return tiles >> BITS * t & _FACE


def tiles_of(tiles: int) -> tuple[Tile, ...]:
    """The tiles of a tally, in ascending order. Takes a moment for each; all else here is quick whatever the size."""
    found = []
    while tiles:
        face = Tile(((tiles & -tiles).bit_length() - 1) // BITS)
        found.append(face)
        tiles -= ONE[face]
    return tuple(found)


def divided(tiles: Iterable[T], taken: int) -> tuple[tuple[Tile, ...], tuple[T, ...]]:
    """Divides tiles into those of a tally, all of which are among them, ascending, and the others in their order."""
    has, left = tiles_of(taken), list(tiles)
    for t in has:
        left.remove(t)  # type: ignore[arg-type] # it is there
    return has, tuple(left)
