"""Multisets of tiles as numbers: quick to add up, to take from each other and to compare.

A tally has sixteen bits for each face. The highest of them stays free, so that two tallies can be compared in all faces
at once: with that bit set in one of them (ROOM), no face borrows from the next.
"""

import sys
from array import array
from collections.abc import Iterable
from typing import Final

from engine.tiles import LAST_TILE, Tile

BITS: Final = 16
"""Bits of a face, those of an array's "H". Callers see to it that no tally has more than 32,767 tiles."""

_BYTES: Final = BITS // 8 * (LAST_TILE + 1)

ONE: Final = tuple(1 << BITS * face for face in range(LAST_TILE + 1))
"""The tally of one tile, by its face; of 0, which is no tile, too."""

ROOM: Final = sum(one << BITS - 1 for one in ONE)
"""The highest bit of every face."""


def tally(tiles: Iterable[Tile]) -> int:
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


def tiles_of(counted: int) -> tuple[Tile, ...]:
    """The tiles of a tally, in ascending order. Takes a moment for each; all else here is quick whatever the size."""
    found = []
    while counted:
        face = Tile(((counted & -counted).bit_length() - 1) // BITS)
        found.append(face)
        counted -= ONE[face]
    return tuple(found)


def divided(tiles: Iterable[Tile], taken: int) -> tuple[tuple[Tile, ...], tuple[Tile, ...]]:
    """Divides tiles into those of a tally, all of which are among them, and the others, both in the order given."""
    counts = array("H", taken.to_bytes(_BYTES, sys.byteorder))
    has = tuple([t for t in tiles if counts[t]])
    if len(has) == size(taken):  # as nearly always: no tile is there more often than it is taken
        return has, tuple([t for t in tiles if not counts[t]])
    found: tuple[list[Tile], list[Tile]] = [], []
    for t in tiles:
        found[not counts[t]].append(t)
        counts[t] -= bool(counts[t])
    return tuple(found[0]), tuple(found[1])


def size(counted: int) -> int:
    """How many tiles a tally has: as the remainder by 9 is that of the sum of the digits of a decimal number."""
    return counted % ((1 << BITS) - 1)
