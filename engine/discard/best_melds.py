"""Exact search for the melds of a rack with the most points, for bots and for what a player lacks to open.

A run of six tiles or more is several shorter ones, so melds of three to five tiles suffice. The search goes through the
tiles in ascending order: each one stays on the rack, or is the lowest numbered tile of a meld.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Final

from engine.discard.laying import needed_to_open
from engine.discard.melds import GROUP_MAX, MELD_MIN, Arrangement, face_of, last_place, tile_at
from engine.discard.ruleset import Ruleset
from engine.discard.table import Table
from engine.tiles import COLORS, FALSE_JOKER, MAX_VALUE, Color, Tile, tile, value_of

_COLORS: Final = COLORS[:GROUP_MAX]
_RUN_MAX: Final = 5
"""Most tiles of a run in the search."""
_WILD_MAX: Final = 2
"""The number of okeys."""
_UNIT: Final = 4
"""How much a point counts in the search, where each wild tile costs 1."""


@dataclass(frozen=True, slots=True)
class BestMelds:
    """Melds with the most points, and of these with the fewest wild tiles."""

    melds: Arrangement
    points: int


@dataclass(frozen=True, slots=True)
class Missing:
    """What a player lacks to open: points of melds, or pairs. Either is 0 if the player can open in that way.

    Attributes:
        points: The points.
        pairs: The pairs; None if pairs are never laid (opening_pairs).
    """

    points: int
    pairs: int | None


def missing_to_open(rack: tuple[Tile, ...], okey: Tile, table: Table, ruleset: Ruleset) -> Missing:
    """Returns what a player who has not opened lacks to open."""
    best = best_melds(rack, okey, one_high=ruleset.run_one_high)
    points = max(0, needed_to_open(table, ruleset, is_pairs=False) - best.points)
    if not ruleset.opening_pairs:
        return Missing(points, None)
    return Missing(points, max(0, needed_to_open(table, ruleset, is_pairs=True) - len(best_pairs(rack, okey))))


def best_pairs(rack: tuple[Tile, ...], okey: Tile) -> Arrangement:
    """Returns the most pairs of a rack. Wild tiles make pairs with the highest single ones, else with each other."""
    counts = Counter(t for t in rack if t != okey)
    single = sorted((t for t, count in counts.items() if count == 1), key=lambda t: -value_of(face_of(t, okey) or t))
    wild = rack.count(okey)
    pairs = [(t, t) for t, count in counts.items() if count > 1]
    pairs += [(t, okey) for t in single[:wild]]
    return (*pairs, *[(okey, okey)] * ((wild - len(single[:wild])) // 2))


# The search


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A meld that the search may choose.

    Attributes:
        faces: A bit for each numbered tile.
        wild: The number of wild tiles.
        score: The sum of the values in units, less the wild tiles.
        places: The faces in order; None for a wild tile.
    """

    faces: int
    wild: int
    score: int
    places: tuple[Tile | None, ...]


_Chosen = tuple[int, tuple[_Candidate, ...]]
"""The score of melds, and the melds."""
Memo = dict[tuple[int, int, int], _Chosen]
"""The best melds by the state of a search: the numbered tiles left once, those left twice, and the wild ones."""


def best_melds(
    rack: tuple[Tile, ...], okey: Tile, *, one_high: bool, with_tile: Tile | None = None, memo: Memo | None = None
) -> BestMelds:
    """Returns the melds of a rack with the most points.

    Args:
        rack: The tiles, at most two of a face.
        okey: The okey.
        one_high: Whether a 1 may follow a 13.
        with_tile: A tile of the rack that must be in one of the melds; the result has no melds if it cannot be.
        memo: States that searches of racks share if they have the same `one_high`. Racks that are alike share most.
    """
    counts = Counter(face for face in (face_of(t, okey) for t in rack) if face is not None)
    once = sum(1 << face for face in counts)
    twice = sum(1 << face for face, count in counts.items() if count > 1)
    wild = min(_WILD_MAX, rack.count(okey))
    held = {
        lowest: [one for one in melds if not one.faces & ~once and one.wild <= wild]
        for lowest, melds in _candidates(one_high=one_high).items()
        if once >> lowest & 1
    }
    search = _Search(held, {} if memo is None else memo)
    if with_tile is None:
        return _as_melds(search.best(once, twice, wild)[1], okey)
    return _as_melds(_best_with(search, with_tile, okey, (once, twice, wild)), okey)


def _best_with(search: "_Search", with_tile: Tile, okey: Tile, state: tuple[int, int, int]) -> tuple[_Candidate, ...]:
    """Returns the best melds of which one has a tile."""
    once, twice, wild = state
    face = face_of(with_tile, okey)
    best: _Chosen = (0, ())
    for one in (meld for melds in search.held.values() for meld in melds):
        if (one.faces >> face & 1) if face is not None else one.wild:
            score, melds = search.best(*_left(one, once, twice), wild - one.wild)
            best = max(best, (score + one.score, (one, *melds)), key=lambda chosen: chosen[0])
    return best[1]


def _left(one: _Candidate, once: int, twice: int) -> tuple[int, int]:
    """Returns which faces are left once and twice after a meld was taken."""
    return (once & ~one.faces) | (twice & one.faces), twice & ~one.faces


class _Search:
    """The best melds of the tiles that are left, each state computed once."""

    def __init__(self, held: dict[int, list[_Candidate]], memo: Memo) -> None:
        self.held = held
        self._lowest = sum(1 << face for face, melds in held.items() if melds)
        self._known = memo

    def best(self, once: int, twice: int, wild: int) -> _Chosen:
        """Returns the best melds of the faces that are left once or twice."""
        first = once & self._lowest
        if not first:
            return 0, ()
        low = first & -first
        once &= -low  # tiles below begin no meld
        state = once, twice & once, wild
        known = self._known.get(state)
        if known is None:
            known = self._known[state] = self._best(low, *state)
        return known

    def _best(self, low: int, once: int, twice: int, wild: int) -> _Chosen:
        best = self.best(once & ~low | twice & low, twice & ~low, wild)
        for one in self.held[low.bit_length() - 1]:
            if one.wild <= wild and not one.faces & ~once:
                score, melds = self.best(*_left(one, once, twice), wild - one.wild)
                if score + one.score > best[0]:
                    best = score + one.score, (one, *melds)
        return best


@cache
def _candidates(*, one_high: bool) -> dict[int, tuple[_Candidate, ...]]:
    """Returns every meld with at most two wild tiles, by its lowest numbered tile."""
    found: dict[int, list[_Candidate]] = {}
    for one in (*_runs(one_high=one_high), *_groups()):
        found.setdefault((one.faces & -one.faces).bit_length() - 1, []).append(one)
    return {lowest: tuple(melds) for lowest, melds in found.items()}


def _runs(*, one_high: bool) -> Iterator[_Candidate]:
    for color in _COLORS:
        for size in range(MELD_MIN, _RUN_MAX + 1):
            for first in range(1, last_place(one_high=one_high) - size + 2):
                yield from _run(color, range(first, first + size))


def _run(color: Color, places: Sequence[int]) -> Iterator[_Candidate]:
    points = sum((place - 1) % MAX_VALUE + 1 for place in places)
    for wild in range(_WILD_MAX + 1):
        for numbered in combinations(places, len(places) - wild):
            yield _candidate(tuple(tile_at(color, place) if place in numbered else None for place in places), points)


def _groups() -> Iterator[_Candidate]:
    for value in range(1, MAX_VALUE + 1):
        for size in range(MELD_MIN, GROUP_MAX + 1):
            for wild in range(_WILD_MAX + 1):
                for colors in combinations(_COLORS, size - wild):
                    yield _candidate((*(tile(color, value) for color in colors), *(None,) * wild), value * size)


def _candidate(places: tuple[Tile | None, ...], points: int) -> _Candidate:
    faces = [face for face in places if face is not None]
    wild = len(places) - len(faces)
    return _Candidate(sum(1 << face for face in faces), wild, points * _UNIT - wild, places)


def _as_melds(chosen: tuple[_Candidate, ...], okey: Tile) -> BestMelds:
    melds = tuple(tuple(_tile_for(face, okey) for face in one.places) for one in chosen)
    return BestMelds(melds, sum(-(-one.score // _UNIT) for one in chosen))


def _tile_for(face: Tile | None, okey: Tile) -> Tile:
    """Returns the tile that a rack has for a face."""
    if face is None:
        return okey
    return FALSE_JOKER if face == okey else face
