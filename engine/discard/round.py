"""A round of a draw-and-discard game: the indicator, the racks, the pool, the discards, and the turn in progress."""

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

from engine.discard.events import Finish, PenaltyScored
from engine.discard.laying import TurnAtTable
from engine.discard.melds import okey_of
from engine.discard.table import Table
from engine.seats import Rack, Turn
from engine.tiles import JOKER, Tile, in_order

_SEAT: Final = attrgetter("seat")


@dataclass(frozen=True, slots=True)
class ToTake:
    """The player must take a tile."""


@dataclass(frozen=True, slots=True)
class ToDiscard:
    """The player must discard a tile.

    Attributes:
        taken: The tile taken in the turn; None in the first turn of a starter who takes none.
        is_seen: Whether all have seen it: it was a discard or the trump.
        is_kept: Whether the player may keep it all the same (taken_discard).
        is_trump: Whether it was the trump.
    """

    taken: Tile | None = None
    is_seen: bool = False
    is_kept: bool = False
    is_trump: bool = False

    @property
    def owed(self) -> Tile | None:
        """The tile that the player must lay beside a table; None if there is none."""
        return self.taken if self.is_seen and not self.is_kept else None


@dataclass(frozen=True, slots=True)
class HasLaid:
    """The player has laid tiles, and must discard one or lay more.

    Attributes:
        laid: The number of tiles laid in the turn, beside those of an opening.
        is_opening: Whether the player opened in the turn.
    """

    laid: int
    is_opening: bool


Step = ToTake | ToDiscard | HasLaid


@dataclass(frozen=True, slots=True)
class Pile:
    """The untaken discards of a player, the newest last. Only the newest is visible."""

    seat: int
    tiles: tuple[Tile, ...] = ()


@dataclass(frozen=True, slots=True)
class DiscardRound:
    """One deal, until a player finishes or the pool is empty.

    Attributes:
        number: From 1.
        order: The seats dealt in, in turn order, the starter first.
        indicator: The tile turned face up that gives the okey; None in a game with jokers.
        racks: The racks of the players dealt in, by seat.
        pool: The undealt tiles, in the order of drawing.
        piles: The discards of the players dealt in, by seat.
        turn: The turn in progress, or the last one of a finished round.
        step: What the player must do in it.
        discarded: The seats that have discarded, ascending: their first turn is over.
        shown_by: The seat that has shown the indicator's twin; None if none has.
        finish: The end of a round that a player has finished.
        table: The table; None in a game without one (melds_on_table).
        penalties: The penalties of the round so far.
        trump: The tile laid face up at the deal; None in a game without one.
        is_trump_taken: Whether a player has taken it.
        is_passed: Whether a player has passed with an empty pool, or ran out of time, which ends the round.
    """

    number: int
    order: tuple[int, ...]
    indicator: Tile | None
    racks: tuple[Rack, ...]
    pool: tuple[Tile, ...]
    piles: tuple[Pile, ...]
    turn: Turn
    step: Step
    discarded: tuple[int, ...] = ()
    shown_by: int | None = None
    finish: Finish | None = None
    table: Table | None = None
    penalties: tuple[PenaltyScored, ...] = ()
    trump: Tile | None = None
    is_trump_taken: bool = False
    is_passed: bool = False

    @property
    def okey(self) -> Tile:
        """The tile whose two copies are wild: the okey, or the joker in a game without an indicator."""
        return JOKER if self.indicator is None else okey_of(self.indicator)

    @property
    def trump_to_take(self) -> Tile | None:
        """The trump, if it lies face up."""
        return None if self.is_trump_taken else self.trump

    def rack(self, seat: int) -> Rack:
        """Returns the rack of a seat that was dealt in."""
        return self.racks[list(map(_SEAT, self.racks)).index(seat)]

    def pile(self, seat: int) -> Pile:
        """Returns the discards of a seat that was dealt in."""
        return self.piles[list(map(_SEAT, self.piles)).index(seat)]

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """Every tile of the round in ascending order: always the full tile set."""
        on_racks = (t for rack in self.racks for t in rack.tiles)
        discards = (t for pile in self.piles for t in pile.tiles)
        finishing = (self.finish.tile,) if self.finish else ()
        on_table = (t for meld in self.table.melds for t in meld) if self.table else ()
        face_up = (t for t in (self.indicator, self.trump_to_take) if t is not None)
        return in_order((*face_up, *on_racks, *discards, *self.pool, *finishing, *on_table))

    @property
    def names_its_seats(self) -> bool:
        """Whether discards, the shown indicator, openings, penalties and the finish are of seats dealt in."""
        named = {*self.discarded, *(pile.seat for pile in self.piles)}
        named.update(() if self.shown_by is None else (self.shown_by,), (self.finish.seat,) if self.finish else ())
        named.update(penalty.seat for penalty in self.penalties)
        named.update(opening.seat for opening in (self.table.openings if self.table else ()))
        return named.issubset(self.order)

    def turn_at(self, table: Table) -> TurnAtTable:
        """Returns the turn in progress as the rules of the table judge it."""
        seat = self.turn.seat
        start = TurnAtTable(seat, self.okey, table, self.rack(seat).tiles)
        match self.step:
            case ToDiscard() as step:
                return replace(start, owed=step.owed)
            case HasLaid(laid):
                return replace(start, laid=laid)
            case _:
                return start

    @property
    def to_act(self) -> tuple[int, ...]:
        """The seats that may act: the turn's."""
        return (self.turn.seat,)
