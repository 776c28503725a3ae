"""Views of a round and of its events for one viewer: a seat, or none. They have no field for a hidden tile."""

from dataclasses import dataclass
from itertools import chain

from engine.discard.events import DiscardEvent, Finish, HandsDealt, OpenDiscardEvent, PenaltyScored, PoolTileTaken
from engine.discard.round import DiscardRound, Pile, Step, ToDiscard
from engine.discard.table import Table
from engine.tiles import Tile


@dataclass(frozen=True, slots=True)
class PileView:
    """The untaken discards of a player: the newest tile, and their number."""

    seat: int
    newest: Tile | None
    count: int


@dataclass(frozen=True, slots=True)
class DiscardView:
    """A round, beyond what all rounds have.

    Attributes:
        indicator: The tile turned face up that gives the okey; None in a game with jokers.
        okey: The tile whose two copies are wild: the okey, or the joker.
        piles: The discards, by seat.
        step: The type of what the player must do whose turn it is.
        taken: The tile that this player has taken; None if there is none or the viewer has not seen it.
        discarded: The seats that have discarded, whose first turn is over.
        shown_by: The seat that has shown the indicator's twin; None if none has.
        finish: The finish that ended the round.
        table: The table; None in a game without one (melds_on_table).
        penalties: The penalties of the round so far.
        owed: The discard or the trump taken in the turn that the player must lay; None if there is none.
        laid: The number of tiles laid in the turn, beside those of an opening.
        trump: The trump, if it lies face up.
    """

    indicator: Tile | None
    okey: Tile
    piles: tuple[PileView, ...]
    step: type[Step]
    taken: Tile | None
    discarded: tuple[int, ...]
    shown_by: int | None
    finish: Finish | None
    table: Table | None = None
    penalties: tuple[PenaltyScored, ...] = ()
    owed: Tile | None = None
    laid: int = 0
    trump: Tile | None = None

    @property
    def face_up(self) -> tuple[Tile, ...]:
        """The tiles that all can see now, on no rack: indicator, trump, newest discards and table."""
        ones = (self.indicator, self.trump, *(pile.newest for pile in self.piles))
        on_table = chain(*self.table.melds) if self.table else ()
        return (*(t for t in ones if t is not None), *on_table)


@dataclass(frozen=True, slots=True)
class HandsDealtView:
    """A deal. The rack is the viewer's own; of the pool only the number of tiles is visible."""

    number: int
    order: tuple[int, ...]
    indicator: Tile | None
    rack: tuple[Tile, ...]
    pool_count: int
    trump: Tile | None = None


@dataclass(frozen=True, slots=True)
class PoolTileTakenView:
    """A tile taken from the pool, which only its player sees."""

    seat: int
    tile: Tile | None


DiscardEventView = OpenDiscardEvent | HandsDealtView | PoolTileTakenView


def see(round_: DiscardRound, _active: tuple[int, ...], seat: int | None, _draft: object) -> DiscardView:
    """Returns the view of a round."""
    turn = round_.turn_at(round_.table) if round_.table else None
    return DiscardView(
        round_.indicator,
        round_.okey,
        tuple(map(_pile, round_.piles)),
        type(round_.step),
        _taken(round_, seat),
        round_.discarded,
        round_.shown_by,
        round_.finish,
        round_.table,
        round_.penalties,
        turn.owed if turn else None,
        turn.laid if turn else 0,
        round_.trump_to_take,
    )


def _pile(pile: Pile) -> PileView:
    return PileView(pile.seat, pile.tiles[-1] if pile.tiles else None, len(pile.tiles))


def _taken(round_: DiscardRound, seat: int | None) -> Tile | None:
    match round_.step:
        case ToDiscard(taken, is_seen) if is_seen or seat == round_.turn.seat:
            return taken
        case _:
            return None


def see_event(event: DiscardEvent, seat: int | None) -> DiscardEventView:
    """Returns the view of an event."""
    match event:
        case HandsDealt(number, order, indicator, racks, pool, trump):
            viewer_rack = next((rack.tiles for rack in racks if rack.seat == seat), ())
            return HandsDealtView(number, order, indicator, viewer_rack, len(pool), trump)
        case PoolTileTaken(taker, tile):
            return PoolTileTakenView(taker, tile if taker == seat else None)
        case _:
            return event
