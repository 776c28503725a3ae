"""Exact search of a hand: whether it is finished, and how many of its tiles must be exchanged until it is.

A finished hand of 14 tiles is all in melds, or in seven pairs. A run of six tiles or more is several shorter ones, so
three or four melds of three to five tiles suffice. The search chooses the tiles that stay, meld by meld. Wild tiles,
and those that come for exchanged ones, take the places that are left: each may be any tile. The search tries parts of
two tiles or more; a tile that stays alone in its meld needs only three places that are left.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Final

from engine.discard.melds import GROUP_MAX, MELD_MIN, Arrangement, face_of, last_place, tile_at
from engine.discard.ruleset import HAND_SIZE
from engine.tiles import COLORS, FALSE_JOKER, MAX_VALUE, Color, Tile, color_of, in_order, tile, value_of, without

_COLORS: Final = COLORS[:GROUP_MAX]
_MELD_MAX: Final = 5
"""Most tiles of a meld in the search."""
_PAIRS: Final = HAND_SIZE // 2


@dataclass(frozen=True, slots=True)
class FinishedHand:
    """A finished hand: its melds, or its seven pairs."""

    tiles: Arrangement
    is_pairs: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """How near a hand is to a finished one.

    Attributes:
        missing: The least number of tiles to exchange; of a hand with one tile too many, after the best discard.
        spare: The tiles that are then exchanged, and the one too many.
    """

    missing: int
    spare: tuple[Tile, ...]


def finished_hand(tiles: tuple[Tile, ...], okey: Tile, *, one_high: bool) -> FinishedHand | None:
    """Returns a finished hand as it can be laid; as pairs, which score more, if it is both. None if it is not finished.

    Args:
        tiles: The 14 tiles, at most two of a face.
        okey: The okey.
        one_high: Whether a 1 may follow a 13.
    """
    hand = _Hand.of(tiles, okey)
    if not _spare_of_pairs(hand):
        return FinishedHand(_paired(hand), is_pairs=True)
    parts = _search(hand, HAND_SIZE - len(hand.wild) - 1, one_high=one_high)
    return None if parts is None else FinishedHand(_laid(hand, parts, last_place(one_high=one_high)), is_pairs=False)


def standing(tiles: tuple[Tile, ...], okey: Tile, *, one_high: bool) -> Standing:
    """Returns how near a hand of 14 tiles, or of 15 before a discard, is to a finished one. See `finished_hand`."""
    hand = _Hand.of(tiles, okey)
    parts = _search(hand, -1, one_high=one_high) or ()
    spare = min(_spare_of_melds(hand, parts), _spare_of_pairs(hand), key=len)
    return Standing(len(spare) - len(tiles) + HAND_SIZE, spare)


def is_nearer(tiles: tuple[Tile, ...], okey: Tile, missing: int, *, one_high: bool) -> bool:
    """Returns whether a hand misses fewer tiles than some number: a shorter search than that of `standing`."""
    hand = _Hand.of(tiles, okey)
    if len(_spare_of_pairs(hand)) - len(tiles) + HAND_SIZE < missing:
        return True
    floor = HAND_SIZE - len(hand.wild) - missing
    return _search(hand, floor, floor + 1, one_high=one_high) is not None


@dataclass(frozen=True, slots=True)
class _Hand:
    """The faces of a hand, the false joker's among them, and its wild tiles."""

    faces: tuple[Tile, ...]
    wild: tuple[Tile, ...]
    okey: Tile

    @staticmethod
    def of(tiles: tuple[Tile, ...], okey: Tile) -> "_Hand":
        faces = (face_of(t, okey) for t in tiles)
        found = in_order(face for face in faces if face is not None)
        return _Hand(found, (okey,) * (len(tiles) - len(found)), okey)


@dataclass(frozen=True, slots=True)
class _Part:
    """Tiles that may stay in one meld.

    Attributes:
        color: The color of a run; None for a group.
        tiles: The tiles, those of a run in order.
        faces: A bit for each of them.
        kept: Their number.
        places: The fewest tiles of such a meld.
    """

    color: Color | None
    tiles: tuple[Tile, ...]
    faces: int
    kept: int
    places: int


@cache
def _all_parts(*, one_high: bool) -> tuple[_Part, ...]:
    """Returns the parts of two tiles and more, those with the most tiles first."""
    runs = (
        _part(color, tuple(tile_at(color, place) for place in (first, *more)), more[-1] - first + 1)
        for color in _COLORS
        for first in range(1, last_place(one_high=one_high))
        for count in range(1, _MELD_MAX)
        for more in combinations(range(first + 1, min(first + _MELD_MAX - 1, last_place(one_high=one_high)) + 1), count)
    )
    groups = (
        _part(None, tuple(tile(color, value) for color in colors), count)
        for value in range(1, MAX_VALUE + 1)
        for count in range(2, GROUP_MAX + 1)
        for colors in combinations(_COLORS, count)
    )
    return tuple(sorted((*runs, *groups), key=lambda part: (-part.kept, part.places)))


def _part(color: Color | None, tiles: tuple[Tile, ...], places: int) -> _Part:
    return _Part(color, tiles, sum(1 << t for t in tiles), len(tiles), max(MELD_MIN, places))


def _most_kept() -> list[list[int]]:
    """Returns how many tiles can stay at most: by the most tiles that stay in one meld, and the places."""
    most = [[0] * (HAND_SIZE + 1) for _ in range(_MELD_MAX + 1)]
    for kept in range(1, _MELD_MAX + 1):
        for places in range(MELD_MIN, HAND_SIZE + 1):
            sizes = range(MELD_MIN, min(_MELD_MAX, places) + 1)
            most[kept][places] = max(min(size, kept) + most[kept][places - size] for size in sizes)
    return most


_MOST_KEPT: Final = _most_kept()


def _search(hand: _Hand, floor: int, enough: int = HAND_SIZE, *, one_high: bool) -> tuple[_Part, ...] | None:
    """Returns the parts of melds in which the most tiles can stay, or `enough`; None if no more than `floor` can."""
    counts = Counter(hand.faces)
    once = sum(1 << face for face in counts)
    twice = sum(1 << face for face, count in counts.items() if count > 1)
    parts = [part for part in _all_parts(one_high=one_high) if not part.faces & ~once]
    most = min(len(hand.faces), HAND_SIZE - len(hand.wild), enough)
    best, found = floor, None
    chosen: list[_Part] = []

    def choose(start: int, once: int, twice: int, places: int, kept: int) -> None:
        nonlocal best, found
        total = kept + min(places // MELD_MIN, len(hand.faces) - kept)
        if total > best and _can_grow(chosen, places):
            best, found = total, tuple(chosen)
        for index in range(start, len(parts)):
            part = parts[index]
            if most <= best or kept + _MOST_KEPT[part.kept][places] <= best:
                return
            if part.places <= places and not part.faces & ~once:
                chosen.append(part)
                left = (once & ~part.faces) | (twice & part.faces)
                choose(index, left, twice & ~part.faces, places - part.places, kept + part.kept)
                chosen.pop()

    choose(0, once, twice, HAND_SIZE, 0)
    return found


def _can_grow(parts: list[_Part], places: int) -> bool:
    """Returns whether melds can take the places that are left: three make a meld, and any run can take one or two."""
    if places == 0 or places >= MELD_MIN or any(part.color for part in parts):
        return True
    return sum(part.places < GROUP_MAX for part in parts) >= places


def _spare_of_melds(hand: _Hand, parts: tuple[_Part, ...]) -> tuple[Tile, ...]:
    loose = without(hand.faces, (t for part in parts for t in part.tiles))
    return _spare(hand, loose[_room(parts) // MELD_MIN :])


def _room(parts: tuple[_Part, ...]) -> int:
    """Returns how many places of a hand are left beside melds."""
    return HAND_SIZE - sum(part.places for part in parts)


def _spare_of_pairs(hand: _Hand) -> tuple[Tile, ...]:
    counts = Counter(hand.faces)
    single = [face for face, count in counts.items() if count == 1]
    pairs = len(counts) - len(single)
    return _spare(hand, single[_PAIRS - pairs :])


def _spare(hand: _Hand, faces: Sequence[Tile]) -> tuple[Tile, ...]:
    """Returns the tiles that do not stay: those of some faces, and wild ones for which no place is left."""
    tiles = [FALSE_JOKER if face == hand.okey else face for face in faces]
    wild = len(hand.faces) - len(faces) + len(hand.wild) - HAND_SIZE
    return in_order((*tiles, *hand.wild[: max(0, wild)]))


# Laying a finished hand. None is a wild tile.


def _paired(hand: _Hand) -> Arrangement:
    """Returns the pairs of a hand of pairs."""
    counts = Counter(hand.faces)
    pairs: list[tuple[Tile | None, ...]] = [(face, face if count > 1 else None) for face, count in counts.items()]
    pairs += [(None, None)] * (_PAIRS - len(pairs))
    return tuple(_as_tiles(hand, pair) for pair in pairs)


def _laid(hand: _Hand, parts: tuple[_Part, ...], last: int) -> Arrangement:
    """Returns the melds of a hand of which no tile is spare. One tile at most stays alone, between wild ones."""
    alone = without(hand.faces, (t for part in parts for t in part.tiles))
    melds = (*parts, *(_part(color_of(t), (t,), 1) for t in alone))
    return tuple(
        _as_tiles(hand, _group(part, size) if part.color is None else _run(part, part.color, size, last))
        for part, size in zip(melds, _sizes(melds), strict=True)
    )


def _sizes(parts: tuple[_Part, ...]) -> list[int]:
    """Returns the sizes of melds that fill a hand: the first run takes the places that are left, otherwise groups."""
    sizes, room = [part.places for part in parts], _room(parts)
    run = next((index for index, part in enumerate(parts) if part.color), None)
    if run is not None:
        sizes[run] += room
        return sizes
    small = [index for index, size in enumerate(sizes) if size < GROUP_MAX][:room]
    return [size + (index in small) for index, size in enumerate(sizes)]


def _group(part: _Part, size: int) -> tuple[Tile | None, ...]:
    return (*part.tiles, *(None,) * (size - part.kept))


def _run(part: _Part, color: Color, size: int, last: int) -> tuple[Tile | None, ...]:
    first = min(value_of(part.tiles[0]), last - size + 1)
    run = (tile_at(color, place) for place in range(first, first + size))
    return tuple(t if t in part.tiles else None for t in run)


def _as_tiles(hand: _Hand, faces: tuple[Tile | None, ...]) -> tuple[Tile, ...]:
    """Returns the tiles that a hand has for some faces."""
    return tuple(hand.okey if face is None else FALSE_JOKER if face == hand.okey else face for face in faces)
