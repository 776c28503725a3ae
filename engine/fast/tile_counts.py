"""Multisets of tiles as numbers: quick to add up, to take from each other and to compare.

A tally has eight bits for each face. The highest of them stays free, so that two tallies can be compared in all faces
at once: with that bit set in one of them (ROOM), no face borrows from the next.

Below the faces it has notes, which add up as the faces do: a number that no face is more often than, and marks, which
mean what the caller wants. By them a sum tells whether it can be compared at all (CROWDED), and whether one of its
parts was marked (MARKED).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from engine.tiles import JOKER, LAST_TILE, Tile

_BITS: Final = 8
_FACE: Final = (1 << _BITS) - 1
_MARK_PLACE: Final = 16
_NOTES_PLACES: Final = 32
"""The bits of the notes: 16 for the number, 15 for the marks, one that stays free. Callers see to it that it is enough:
no tally has more than 65,535 tiles or 32,767 marks."""
_BEFORE_FACES: Final = _NOTES_PLACES - _BITS
"""How far a tally is shifted for its bytes to be the faces, 0 among them, which is no tile."""

_NOTES: Final = (1 << _NOTES_PLACES) - 1

MARK: Final = 1 << _MARK_PLACE
"""What marks a tally when it is added to it."""

MARKED: Final = (1 << _NOTES_PLACES - 1) - MARK
"""The bits that tell that a tally was marked."""

CROWDED: Final = MARK - (1 << _BITS - 1)
"""The bits that tell that a face may be more often in a tally than eight bits tell. Such a tally can be added up, and
nothing else."""

_FACES: Final = tuple(1 << _BEFORE_FACES + _BITS * face for face in range(LAST_TILE + 1))

ONE: Final = (0, *[face + 1 for face in _FACES[1:]])
"""The tally of one tile, by its face."""

_HIGHEST: Final = (*[Tile(0)] * (_BEFORE_FACES // _BITS), *[Tile(face) for face in range(LAST_TILE + 1)])
"""The highest face of a tally, by how many bytes are below the highest of its bits."""

_FREE: Final = sum(face << _BITS - 1 for face in _FACES[1:])
"""The highest bit of every face."""

_COUNTS: Final = _FREE - (_FREE >> _BITS - 1)
"""The other bits of every face."""

_ROOM: Final = _FREE + (1 << _NOTES_PLACES - 1)
"""The highest bit of every face, and of the notes."""

JOKERS: Final = _FACE * _FACES[JOKER]
"""The bits of the joker."""


def tally(tiles: Sequence[int]) -> int:
    """The tally of some tiles."""
    total = len(tiles)
    for t in tiles:
        total += _FACES[t]
    return total


def close_tally(tiles: Sequence[int]) -> int:
    """The same, with less in its notes, so that sums are crowded later: how often the most frequent face is there."""
    return tally(tiles) - len(tiles) + max(Counter(tiles).values(), default=0)


def is_within(part: int, whole: int) -> bool:
    """Whether no face is more often in one tally than in another."""
    return (whole + _ROOM - part) & _FREE == _FREE


def beyond(tiles: int, taken: int) -> int:
    """What is left of a tally when another is taken from it; of no face less than nothing. It has no notes."""
    left = tiles + _ROOM - taken
    enough = left & _FREE
    return left & (enough - (enough >> _BITS - 1))


def moved(lie: int, lay: int, own: int) -> tuple[int, int, int]:
    """What one tally has beyond another, what the other has beyond the one, and what of the former a third one lacks.

    Mostly there is nothing but the first. All are without notes.
    """
    left = lie + _ROOM - lay
    enough = left & _FREE
    if enough == _FREE:
        came, missing = left & _COUNTS, 0
    else:
        came, missing = left & (enough - (enough >> _BITS - 1)), beyond(lay, lie)
    foreign = 0 if (own + _ROOM - came) & _FREE == _FREE else beyond(came, own)
    return came, missing, foreign


def counted(tiles: int, t: Tile) -> int:
    """How often a face is in a tally."""
    return tiles >> _BEFORE_FACES + _BITS * t & _FACE


def tiles_of(tiles: int) -> tuple[Tile, ...]:
    """The tiles of a tally, in ascending order. Takes a moment for each."""
    found = []
    while tiles > _NOTES:
        face = _HIGHEST[tiles.bit_length() // _BITS]
        found.append(face)
        tiles -= _FACES[face]
    found.reverse()
    return tuple(found)


def divided(tiles: Iterable[Tile], taken: int) -> tuple[tuple[Tile, ...], tuple[Tile, ...]]:
    """Divides tiles in ascending order into those of a tally, all of which are among them, and the others."""
    has, lacks = tiles_of(taken), list(tiles)
    for t in has:
        lacks.remove(t)
    return has, tuple(lacks)
