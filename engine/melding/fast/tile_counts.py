"""Multisets of tiles packed into one integer, for fast addition, subtraction and comparison.

The counts of a multiset take eight bits per face. The highest of them is zero, so one subtraction compares all faces:
with that bit set in the minuend (_GUARDS), no face borrows from the next.

The low 32 bits hold two sums that addition keeps up to date: an upper bound of every face's count, and the number of
flags that the caller has added. They show whether the counts of a sum overflowed (OVERFLOW), and whether any summand
had a flag (FLAGGED).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from engine.tiles import JOKERS, LAST_TILE, Tile

_BITS: Final = 8
_FACE: Final = (1 << _BITS) - 1
_FLAG_SHIFT: Final = 16
_LOW_BITS: Final = 32
"""16 bits for the bound, 15 for the flags, and a zero. Callers add up at most 65,535 tiles and 32,767 flags."""
_FACE_0_SHIFT: Final = _LOW_BITS - _BITS
"""How far the counts are shifted so that their bytes are indexed by face. Face 0 is not a tile."""

_LOW: Final = (1 << _LOW_BITS) - 1

FLAG: Final = 1 << _FLAG_SHIFT
"""Added to counts to flag them."""

FLAGGED: Final = (1 << _LOW_BITS - 1) - FLAG
"""The bits that are set if any summand had a flag."""

OVERFLOW: Final = FLAG - (1 << _BITS - 1)
"""The bits that are set if a face may have been counted over 127 times. Such counts can only be added up."""

_FACES: Final = tuple(1 << _FACE_0_SHIFT + _BITS * face for face in range(LAST_TILE + 1))

ONE: Final = (0, *[face + 1 for face in _FACES[1:]])
"""The counts of a single tile, by its face."""

_HIGHEST: Final = (*[Tile(0)] * (_FACE_0_SHIFT // _BITS), *[Tile(face) for face in range(LAST_TILE + 1)])
"""The highest face in some counts, by the index of their highest byte that is not zero."""

_FACE_GUARDS: Final = sum(face << _BITS - 1 for face in _FACES[1:])
"""The highest bit of every face."""

_COUNTS: Final = _FACE_GUARDS - (_FACE_GUARDS >> _BITS - 1)
"""The other bits of every face."""

_GUARDS: Final = _FACE_GUARDS + (1 << _LOW_BITS - 1)
"""The highest bit of every face, and of the low bits."""

JOKER_COUNTS: Final = sum([_FACE * _FACES[t] for t in JOKERS])
"""The bits that count jokers."""


def counts_of(tiles: Sequence[int]) -> int:
    """Returns the counts of some tiles. Their bound is the number of tiles: quick to compute, but large."""
    total = len(tiles)
    for t in tiles:
        total += _FACES[t]
    return total


def tight_counts_of(tiles: Sequence[int]) -> int:
    """Returns the same counts with the least bound, that of the most frequent face, so that sums overflow later."""
    return counts_of(tiles) - len(tiles) + max(Counter(tiles).values(), default=0)


def is_within(part: int, whole: int) -> bool:
    """Returns whether `part` has no face more often than `whole`."""
    return (whole + _GUARDS - part) & _FACE_GUARDS == _FACE_GUARDS


def subtract(counts: int, taken: int) -> int:
    """Returns the counts less those taken, each at least 0. The low bits of the result are zero."""
    left = counts + _GUARDS - taken
    enough = left & _FACE_GUARDS
    return left & (enough - (enough >> _BITS - 1))


def exchange(before: int, after: int, rack: int) -> tuple[int, int, int]:
    """Returns (after - before, before - after, added tiles that are not on the rack). All low bits are zero.

    Quickest in the usual case, in which only the first is not zero.
    """
    left = after + _GUARDS - before
    enough = left & _FACE_GUARDS
    if enough == _FACE_GUARDS:
        added, missing = left & _COUNTS, 0
    else:
        added, missing = left & (enough - (enough >> _BITS - 1)), subtract(before, after)
    foreign = 0 if (rack + _GUARDS - added) & _FACE_GUARDS == _FACE_GUARDS else subtract(added, rack)
    return added, missing, foreign


def count_of(counts: int, face: Tile) -> int:
    """Returns the count of one face."""
    return counts >> _FACE_0_SHIFT + _BITS * face & _FACE


def tiles_of(counts: int) -> tuple[Tile, ...]:
    """Returns the tiles in ascending order. Takes time in proportion to their number."""
    found = []
    while counts > _LOW:
        face = _HIGHEST[counts.bit_length() // _BITS]
        found.append(face)
        counts -= _FACES[face]
    found.reverse()
    return tuple(found)


def split(tiles: Iterable[Tile], taken: int) -> tuple[tuple[Tile, ...], tuple[Tile, ...]]:
    """Splits tiles in ascending order into those taken, all of which must be among them, and the others."""
    has, lacks = tiles_of(taken), list(tiles)
    for t in has:
        lacks.remove(t)
    return has, tuple(lacks)
