"""The table of games whose melds only grow: melds and pairs that no player breaks, merges or takes back.

A tile is laid at either end of a run, in a group, or in the place of a wild tile, which the player then takes. A meld
keeps its place on the table, so that two tables are compared meld by meld.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from engine.discard.melds import Arrangement, fixed_faces, is_group, is_pair, run_start
from engine.tiles import Tile

PAIR_SIZE: Final = 2


@dataclass(frozen=True, slots=True)
class Opening:
    """How a player opened: with melds of so many points, or with so many pairs."""

    seat: int
    is_pairs: bool
    amount: int


@dataclass(frozen=True, slots=True)
class Table:
    """The melds and pairs on the table, oldest first, and the openings, oldest first."""

    melds: Arrangement = ()
    openings: tuple[Opening, ...] = ()

    def opening(self, seat: int) -> Opening | None:
        """Returns how a seat opened; None if it has not."""
        return next((one for one in self.openings if one.seat == seat), None)

    def last_opening(self, *, is_pairs: bool) -> Opening | None:
        """Returns the newest opening with pairs, or the newest with melds; None without one."""
        return next((one for one in reversed(self.openings) if one.is_pairs is is_pairs), None)


def is_legal(table: Table, okey: Tile, *, one_high: bool) -> bool:
    """Returns whether a table has nothing but melds and pairs."""
    return all(
        is_pair(part, okey) or is_group(part, okey) or run_start(part, okey, one_high=one_high) for part in table.melds
    )


def wild_taken(old: tuple[Tile, ...], new: tuple[Tile, ...], okey: Tile, *, one_high: bool) -> int | None:
    """Returns in how many wild tiles' places tiles were laid when a meld or a pair grew; None if it did not just grow.

    Args:
        old: The meld or pair on the table.
        new: The tiles that shall lie there.
        okey: The okey.
        one_high: Whether a 1 may follow a 13.
    """
    if len(old) == PAIR_SIZE:
        return _wild_taken_of_pair(old, new, okey)
    found = (_wild_taken_of_group(old, new, okey), _wild_taken_of_run(old, new, okey, one_high=one_high))
    return min((taken for taken in found if taken is not None), default=None)


def _wild_taken_of_pair(old: tuple[Tile, ...], new: tuple[Tile, ...], okey: Tile) -> int | None:
    """A pair of two wild tiles stands for no tile, so that none can be laid in their place."""
    if not is_pair(new, okey) or Counter(fixed_faces(old, okey)) - Counter(fixed_faces(new, okey)):
        return None
    taken = old.count(okey) - new.count(okey)
    return taken if taken == 0 or fixed_faces(old, okey) else None


def _wild_taken_of_group(old: tuple[Tile, ...], new: tuple[Tile, ...], okey: Tile) -> int | None:
    if not (is_group(old, okey) and is_group(new, okey)) or len(new) < len(old):
        return None
    if Counter(fixed_faces(old, okey)) - Counter(fixed_faces(new, okey)):
        return None
    return max(0, old.count(okey) - new.count(okey))


def _wild_taken_of_run(old: tuple[Tile, ...], new: tuple[Tile, ...], okey: Tile, *, one_high: bool) -> int | None:
    first, starts = run_start(old, okey, one_high=one_high), run_start(new, okey, one_high=one_high)
    if first is None or starts is None or starts > first:
        return None
    there = new[first - starts :][: len(old)]
    if len(there) < len(old) or any(a not in {b, okey} for a, b in zip(old, there, strict=True)):
        return None
    return sum(a != b for a, b in zip(old, there, strict=True))


def growths(meld: tuple[Tile, ...], tile: Tile, okey: Tile, *, one_high: bool) -> Iterator[tuple[Tile, ...]]:
    """Yields what a meld or a pair can be after a tile is laid on it: in a wild tile's place, then at its ends."""
    places = [place for place, t in enumerate(meld) if t == okey != tile]
    replaced = ((*meld[:place], tile, *meld[place + 1 :]) for place in places)
    for grown in (*replaced, (*meld, tile), (tile, *meld)):
        if wild_taken(meld, grown, okey, one_high=one_high) is not None:
            yield grown


def fits(table: Table, tile: Tile, okey: Tile, *, one_high: bool) -> bool:
    """Returns whether a tile can be laid on a meld or a pair of the table."""
    return any(any(growths(meld, tile, okey, one_high=one_high)) for meld in table.melds)
