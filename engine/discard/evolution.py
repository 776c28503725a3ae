"""Applies events to a round of a draw-and-discard game. Nothing here refuses an event."""

from dataclasses import replace

from engine.discard.events import (
    DiscardEvent,
    DiscardForced,
    DiscardReturned,
    DiscardTaken,
    EmptyPoolPassed,
    Finish,
    HandFinished,
    HandsDealt,
    IndicatorShown,
    PenaltyScored,
    PoolTileTaken,
    RackFinished,
    ThreeTilesLeft,
    TileDiscarded,
    TilesLaid,
    TrumpTaken,
)
from engine.discard.game import round_of, rules_of
from engine.discard.round import DiscardRound, HasLaid, Pile, ToDiscard, ToTake
from engine.discard.ruleset import Ruleset, TakenDiscard
from engine.discard.table import Table
from engine.events import PlayerResigned, SeatTakenOver, TurnEvent, TurnStarted, TurnTimedOut
from engine.game import Game
from engine.seats import Rack, Turn
from engine.tiles import Tile, in_order, without


def evolve(game: Game, event: TurnEvent | DiscardEvent) -> DiscardRound:
    """Returns the round after an event."""
    if isinstance(event, HandsDealt):
        return _dealt(event, rules_of(game))
    return _evolved(round_of(game), event, rules_of(game))


def _dealt(event: HandsDealt, ruleset: Ruleset) -> DiscardRound:
    """Returns a round before its first turn, in which no tile is taken."""
    piles = tuple(Pile(rack.seat) for rack in event.racks)
    turn = Turn(event.order[0], None)
    return DiscardRound(
        event.number,
        event.order,
        event.indicator,
        event.racks,
        event.pool,
        piles,
        turn,
        step=ToDiscard(),
        table=Table() if ruleset.melds_on_table else None,
        trump=event.trump,
    )


def _evolved(round_: DiscardRound, event: TurnEvent | DiscardEvent, ruleset: Ruleset) -> DiscardRound:
    match event:
        case HandsDealt() | PlayerResigned() | SeatTakenOver():
            return round_
        case TurnTimedOut(seat, tiles):
            return _drawn(round_, seat, tiles[0]) if tiles else replace(round_, is_passed=_needs_pool(round_))
        case TurnStarted(turn):
            takes_none = ruleset.has_indicator and not round_.discarded and turn.seat == round_.order[0]
            return replace(round_, turn=turn, step=ToDiscard() if takes_none else ToTake())
        case PoolTileTaken(seat, tile):
            return _drawn(round_, seat, tile)
        case DiscardTaken(seat, tile, from_seat):
            pile = replace(round_.pile(from_seat), tiles=round_.pile(from_seat).tiles[:-1])
            step = ToDiscard(tile, is_seen=True, is_kept=_is_kept(round_, seat, ruleset))
            return _with_pile(replace(_with_tile(round_, seat, tile), step=step), pile)
        case TrumpTaken(seat, tile):
            step = ToDiscard(tile, is_seen=True, is_trump=True)
            return replace(_with_tile(round_, seat, tile), step=step, is_trump_taken=True)
        case TileDiscarded(seat, tile) | DiscardForced(seat, tile):
            pile = replace(round_.pile(seat), tiles=(*round_.pile(seat).tiles, tile))
            return _with_pile(_without_tile(round_, seat, tile), pile)
        case IndicatorShown(seat):
            return replace(round_, shown_by=seat)
        case _:
            return _with_table(round_, event)


def _needs_pool(round_: DiscardRound) -> bool:
    """Returns whether a turn cannot end without a tile of the pool, which is empty."""
    step = round_.step
    return not round_.pool and (isinstance(step, ToTake) or (isinstance(step, ToDiscard) and step.owed is not None))


def _is_kept(round_: DiscardRound, seat: int, ruleset: Ruleset) -> bool:
    """Returns whether a player may keep a discard (taken_discard). With an empty pool it would never end the round."""
    keeps = ruleset.taken_discard is TakenDiscard.KEPT_BEFORE_OPENING and bool(round_.pool)
    return keeps and not round_.rack(seat).has_melded


def _with_table(
    round_: DiscardRound,
    event: TilesLaid | DiscardReturned | PenaltyScored | EmptyPoolPassed | ThreeTilesLeft | Finish,
) -> DiscardRound:
    match event:
        case TilesLaid():
            return _laid(round_, event)
        case DiscardReturned(seat, tile, to_seat):
            without_it = replace(_with_rack(round_, _less(round_.rack(seat), (tile,))), step=ToTake())
            if to_seat is None:
                return replace(without_it, is_trump_taken=False)
            return _with_pile(without_it, replace(round_.pile(to_seat), tiles=(*round_.pile(to_seat).tiles, tile)))
        case EmptyPoolPassed():
            return replace(round_, is_passed=True)
        case ThreeTilesLeft():
            return round_
        case PenaltyScored():
            return replace(round_, penalties=(*round_.penalties, event))
        case HandFinished(seat, tile) | RackFinished(seat, tile):
            return replace(_without_tile(round_, seat, tile), finish=event)


def _laid(round_: DiscardRound, event: TilesLaid) -> DiscardRound:
    """Returns the round with tiles on the table, and okeys of the table on the rack."""
    openings = round_.table.openings if round_.table else ()
    table = Table(event.table, openings + ((event.opening,) if event.opening else ()))
    rack = _less(round_.rack(event.seat), event.tiles)
    has_opened = table.opening(event.seat) is not None
    rack = replace(rack, tiles=in_order((*rack.tiles, *(round_.okey,) * event.okeys)), has_melded=has_opened)
    laid, opens = (round_.step.laid, round_.step.is_opening) if isinstance(round_.step, HasLaid) else (0, False)
    step = HasLaid(laid + event.more, opens or event.opening is not None)
    return replace(_with_rack(round_, rack), table=table, step=step)


def _drawn(round_: DiscardRound, seat: int, tile: Tile) -> DiscardRound:
    """Returns the round with the next tile of the pool on a rack."""
    return replace(_with_tile(round_, seat, tile), pool=round_.pool[1:], step=ToDiscard(tile))


def _with_tile(round_: DiscardRound, seat: int, tile: Tile) -> DiscardRound:
    rack = round_.rack(seat)
    return _with_rack(round_, replace(rack, tiles=in_order((*rack.tiles, tile))))


def _without_tile(round_: DiscardRound, seat: int, tile: Tile) -> DiscardRound:
    """Returns the round after a seat's discard, which ends its first turn if it was in it."""
    discarded = tuple(sorted({*round_.discarded, seat}))
    rack = _less(round_.rack(seat), (tile,))
    return replace(_with_rack(round_, rack), discarded=discarded, step=ToTake())


def _less(rack: Rack, tiles: tuple[Tile, ...]) -> Rack:
    return replace(rack, tiles=without(rack.tiles, tiles))


def _with_rack(round_: DiscardRound, rack: Rack) -> DiscardRound:
    return replace(round_, racks=tuple([rack if old.seat == rack.seat else old for old in round_.racks]))


def _with_pile(round_: DiscardRound, pile: Pile) -> DiscardRound:
    return replace(round_, piles=tuple([pile if old.seat == pile.seat else old for old in round_.piles]))
