"""Another judge of what is laid in 101 Okey, another scorer, and an integer program for the best opening.

They share no rule with the engine.

A meld is read in every way: each reading gives its tiles the places that they fill, a color in a group or a value in a
run. One meld has grown from another if some readings of both are of one kind and the new one fills every place of the
old one, with the same tile or with another one instead of a wild tile.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

import highspy
import numpy as np

from oracles.integer_program import EXACTLY, solved
from oracles.okey_hands import faces_of, melds

FALSE_JOKER = 80
Tiles = tuple[int, ...]
Reading = tuple[tuple[str, int], dict[int, int]]
"""The kind with its value or color, and the tile of each place."""


@dataclass(frozen=True)
class Rules:
    """The options that the judge knows."""

    one_high: bool
    points: int
    pairs: int
    rises: bool
    pair_tiles: int


@dataclass(frozen=True)
class Before:
    """A turn before a step: seats, whether they opened with pairs and with how much, and what the player has."""

    seat: int
    okey: int
    table: tuple[Tiles, ...]
    openings: tuple[tuple[int, bool, int], ...]
    rack: Tiles
    owed: int | None
    laid: int


def number(tile: int, okey: int) -> int | None:
    """Returns the number of the face that a tile has, from 0; None for a wild one."""
    return None if tile == okey else (okey if tile == FALSE_JOKER else tile) - 1


@lru_cache(maxsize=4_096)
def readings(tiles: Tiles, okey: int, *, one_high: bool) -> tuple[Reading, ...]:
    """Returns all readings of tiles as a meld."""
    return tuple(_readings(tiles, okey, one_high=one_high))


def _readings(tiles: Tiles, okey: int, *, one_high: bool) -> Iterator[Reading]:
    if len(tiles) < 3:
        return
    faces = [number(t, okey) for t in tiles]
    fixed = [face for face in faces if face is not None]
    for value in range(13):
        if len(tiles) <= 4 and all(face % 13 == value for face in fixed):
            for colors in permutations(range(4), len(tiles)):
                if all(face in {None, 13 * color + value} for face, color in zip(faces, colors, strict=True)):
                    yield ("group", value), dict(zip(colors, tiles, strict=True))
    for color in range(4):
        if any(face // 13 != color for face in fixed):
            continue
        for first in range(14 + one_high - len(tiles)):
            places = range(first, first + len(tiles))
            if all(face in {None, 13 * color + place % 13} for face, place in zip(faces, places, strict=True)):
                yield ("run", color), dict(zip(places, tiles, strict=True))


def numbered(tiles: Tiles, okey: int) -> int:
    """Returns how many tiles are not wild."""
    return sum(t != okey for t in tiles)


def is_meld(tiles: Tiles, okey: int, *, one_high: bool) -> bool:
    """Returns whether tiles are a meld: wild ones alone are none."""
    return numbered(tiles, okey) > 0 and bool(readings(tiles, okey, one_high=one_high))


def is_pair(tiles: Tiles, okey: int) -> bool:
    """Returns whether tiles are a pair."""
    return len(tiles) == 2 and (okey in tiles or number(tiles[0], okey) == number(tiles[1], okey))


def points(tiles: Tiles, okey: int, *, one_high: bool) -> int:
    """Returns the most that a meld is worth; 0 if it is none."""
    worth = [0]
    for (kind, value), places in readings(tiles, okey, one_high=one_high):
        worth.append(sum(value + 1 if kind == "group" else place % 13 + 1 for place in places))
    return max(worth) if numbered(tiles, okey) else 0


def okeys_replaced(old: Tiles, new: Tiles, okey: int, *, one_high: bool) -> int | None:
    """Returns the least number of wild tiles in whose place others lie; None if a meld has not just grown."""
    if len(old) == 2:
        kept = Counter(t for t in old if t != okey)
        if not is_pair(new, okey) or kept - Counter(new):
            return None
        replaced = old.count(okey) - new.count(okey)
        return None if replaced and not kept else replaced
    if not is_meld(old, okey, one_high=one_high) or not is_meld(new, okey, one_high=one_high):
        return None
    found: list[int] = []
    after = readings(new, okey, one_high=one_high)
    for kind, places in readings(old, okey, one_high=one_high):
        for new_kind, filled in after:
            if kind == new_kind and all(t == filled.get(p) or (t == okey and p in filled) for p, t in places.items()):
                found.append(sum(t == okey != filled[place] for place, t in places.items()))
    return min(found, default=None)


def fits(table: tuple[Tiles, ...], tile: int, okey: int, *, one_high: bool) -> bool:
    """Returns whether a tile can be laid anywhere on a table."""
    for meld in table:
        grown = {(*meld[:place], tile, *meld[place:]) for place in range(len(meld) + 1)}
        if tile != okey:
            grown |= {(*meld[:i], tile, *meld[i + 1 :]) for i, t in enumerate(meld) if t == okey}
        if any(okeys_replaced(meld, one, okey, one_high=one_high) is not None for one in grown):
            return True
    return False


def reasons(before: Before, after: tuple[Tiles, ...], rules: Rules) -> set[str]:
    """Returns the names of all reasons against a step; empty if it is legal."""
    found: set[str] = set()
    okey, high, old = before.okey, rules.one_high, before.table
    replaced = 0
    for place, meld in enumerate(old):
        new = after[place] if place < len(after) else ()
        count = okeys_replaced(meld, new, okey, one_high=high)
        if count is None:
            kept = not Counter(t for t in meld if t != okey) - Counter(t for t in new if t != okey)
            found.add("MELD_NOT_GROUP_NOR_RUN" if kept and len(new) > len(meld) else "TABLE_MELD_CHANGED")
        replaced += count or 0
    added = after[len(old) :]
    pairs: list[Tiles] = [part for part in added if len(part) == 2 and rules.pairs]
    melds = [part for part in added if part not in pairs]
    if not all(is_pair(part, okey) for part in pairs) or not all(is_meld(part, okey, one_high=high) for part in melds):
        found.add("MELD_NOT_GROUP_NOR_RUN")
    had, has = Counter(t for meld in old for t in meld), Counter(t for meld in after for t in meld)
    laid, back = has - had, had - has
    if laid - Counter(before.rack):
        found.add("TILE_NOT_IN_RACK")
    if not laid:
        found.add("NO_RACK_TILE_PLAYED")
    if not Counter(before.rack) - laid + Counter({okey: back[okey]}):
        found.add("FINISH_NEEDS_DISCARD")
    return found | reasons_of_way(before, (melds, pairs), laid, rules, replaced=replaced, left=back[okey])


def reasons_of_way(
    before: Before,
    parts: tuple[list[Tiles], list[Tiles]],
    laid: Counter[int],
    rules: Rules,
    *,
    replaced: int,
    left: int,
) -> set[str]:
    """Returns the reasons that depend on how the player opened, or opens.

    An okey is laid too where another has left its place, though the table has no more of them.

    Args:
        before: The turn before the step.
        parts: The new melds and the new pairs.
        laid: What the table has more of.
        rules: The options.
        replaced: The okeys of the table in whose places other tiles lie.
        left: The okeys that the table has fewer.
    """
    found: set[str] = set()
    melds, pairs = parts
    mine = next((one for one in before.openings if one[0] == before.seat), None)
    in_new = Counter(t for part in (*melds, *pairs) for t in part)
    if mine is None:
        with_pairs, more = bool(pairs) and not melds, laid.total() - in_new.total()
        if laid:
            found |= opening_reasons(before, parts, rules) if in_new or melds else {"NOT_OPENED"}
        if replaced:
            found.add("OKEY_TAKEN_BEFORE_OPENING")
    else:
        with_pairs, more = mine[1], laid.total()
        if melds and with_pairs:
            found.add("OPENED_WITH_PAIRS")
        if pairs and not any(one[1] for one in before.openings):
            found.add("PAIRS_NOT_OPENED")
    exchanged = Counter({before.okey: replaced + laid[before.okey] - left})
    if before.owed is not None and not (laid + exchanged if mine else in_new)[before.owed]:
        found.add("TAKEN_TILE_NOT_USED")
    if with_pairs and rules.pair_tiles and before.laid + more > rules.pair_tiles:
        found.add("TOO_MANY_TILES_LAID")
    return found


def opening_reasons(before: Before, parts: tuple[list[Tiles], list[Tiles]], rules: Rules) -> set[str]:
    """Returns the reasons against an opening."""
    melds, pairs = parts
    if melds and pairs:
        return {"OPENING_MIXED"}
    others = [amount for _, with_pairs, amount in before.openings if with_pairs == bool(pairs)]
    least = rules.pairs if pairs else rules.points
    if rules.rises and others:
        least = max(least, others[-1] + 1)
    if pairs:
        return {"OPENING_PAIRS_TOO_FEW"} if len(pairs) < least else set()
    total = sum(points(meld, before.okey, one_high=rules.one_high) for meld in melds)
    return {"OPENING_BELOW_THRESHOLD"} if total < least else set()


class MostPoints:
    """Answers how many points the melds of a rack have at most, by an integer program over whole melds."""

    def __init__(self, *, one_high: bool) -> None:
        self.highs = highspy.Highs()  # type: ignore[no-untyped-call] # its stubs lack the constructor
        for option, value in EXACTLY:
            self.highs.setOptionValue(option, value)
        whole = list(melds(one_high=one_high))
        self.faces = [(color, value) for color in range(4) for value in range(1, 14)]
        uses = np.array([[meld.count(face) for meld in whole] for face in self.faces])
        each = np.eye(52, dtype=int)
        none, ones = np.zeros(len(whole), dtype=int), np.ones(52, dtype=int)
        self.rows = np.block([[uses, -each, -each], [none, 0 * ones, ones]])
        self.gain = np.array([sum(value for _, value in meld) for meld in whole] + [0] * 104)

    def points(self, rack: Tiles, okey: int) -> int:
        """Returns the most points."""
        held, wild = faces_of(rack, okey)
        counts = Counter(held)
        low, high = np.zeros(53, dtype=int), np.array([0] * 52 + [wild])
        most = np.array([2] * (len(self.gain) - 104) + [counts[face] for face in self.faces] + [2] * 52)
        answer = solved(self.highs, self.rows, (low, high), self.gain, most)
        assert answer is not None
        return int(answer @ self.gain)


# Scores


@dataclass(frozen=True)
class Ended:
    """The end of a round: racks by seat, how seats opened, and who finished with which tile."""

    okey: int
    racks: dict[int, Tiles]
    with_pairs: dict[int, bool]
    penalties: tuple[tuple[int, int], ...]
    finisher: int | None
    last: int | None
    at_once: bool
    partners: bool


def scores(ended: Ended) -> dict[int, int]:
    """Returns the points of a round that was finished or whose pool is empty."""
    times = 1
    if ended.finisher is not None:
        for doubles in (ended.last == ended.okey, ended.with_pairs[ended.finisher], ended.at_once):
            times *= 2 if doubles else 1
    result = {}
    for seat, rack in ended.racks.items():
        worth = sum((number(t, ended.okey) or 0) % 13 + 1 for t in rack if t != ended.okey)
        if seat == ended.finisher:
            total = -101 * times
        elif ended.finisher is not None and ended.partners and (seat - ended.finisher) % 2 == 0:
            total = 0
        elif seat not in ended.with_pairs:
            total = 202 * times + 101 * rack.count(ended.okey)
        else:
            total = (2 if ended.with_pairs[seat] else 1) * worth * times + 101 * rack.count(ended.okey)
        result[seat] = total + sum(cost for who, cost in ended.penalties if who == seat)
    return result
