"""Applies events to a round of a draw-and-discard game. Nothing here refuses an event."""

from dataclasses import replace

from engine.discard.events import (
    DiscardEvent,
    DiscardForced,
    DiscardTaken,
    HandFinished,
    HandsDealt,
    IndicatorShown,
    PoolTileTaken,
    TileDiscarded,
)
from engine.discard.game import round_of
from engine.discard.round import DiscardRound, Pile, ToDiscard, ToTake
from engine.events import PlayerResigned, TurnEvent, TurnStarted, TurnTimedOut
from engine.game import Game
from engine.seats import Rack, Turn
from engine.tiles import Tile, in_order, without


def evolve(game: Game, event: TurnEvent | DiscardEvent) -> DiscardRound:
    """Returns the round after an event."""
    if isinstance(event, HandsDealt):
        return _dealt(event)
    return _evolved(round_of(game), event)


def _dealt(event: HandsDealt) -> DiscardRound:
    """Returns a round before its first turn, in which no tile is taken."""
    piles = tuple(Pile(rack.seat) for rack in event.racks)
    turn = Turn(event.order[0], None)
    return DiscardRound(
        event.number, event.order, event.indicator, event.racks, event.pool, piles, turn, step=ToDiscard()
    )


def _evolved(round_: DiscardRound, event: TurnEvent | DiscardEvent) -> DiscardRound:
    match event:
        case HandsDealt() | PlayerResigned():
            return round_
        case TurnTimedOut(seat, tiles):
            return _drawn(round_, seat, tiles[0]) if tiles else round_
        case TurnStarted(turn):
            is_first = not round_.discarded and turn.seat == round_.order[0]
            return replace(round_, turn=turn, step=ToDiscard() if is_first else ToTake())
        case PoolTileTaken(seat, tile):
            return _drawn(round_, seat, tile)
        case DiscardTaken(seat, tile, from_seat):
            pile = replace(round_.pile(from_seat), tiles=round_.pile(from_seat).tiles[:-1])
            taken = replace(_with_tile(round_, seat, tile), step=ToDiscard(tile, is_seen=True))
            return _with_pile(taken, pile)
        case TileDiscarded(seat, tile) | DiscardForced(seat, tile):
            pile = replace(round_.pile(seat), tiles=(*round_.pile(seat).tiles, tile))
            return _with_pile(_without_tile(round_, seat, tile), pile)
        case IndicatorShown(seat):
            return replace(round_, shown_by=seat)
        case HandFinished(seat, tile):
            return replace(_without_tile(round_, seat, tile), finish=event)


def _drawn(round_: DiscardRound, seat: int, tile: Tile) -> DiscardRound:
    """Returns the round with the next tile of the pool on a rack."""
    return replace(_with_tile(round_, seat, tile), pool=round_.pool[1:], step=ToDiscard(tile))


def _with_tile(round_: DiscardRound, seat: int, tile: Tile) -> DiscardRound:
    return _with_rack(round_, Rack(seat, in_order((*round_.rack(seat).tiles, tile))))


def _without_tile(round_: DiscardRound, seat: int, tile: Tile) -> DiscardRound:
    """Returns the round after a seat's discard, which ends its first turn if it was in it."""
    discarded = tuple(sorted({*round_.discarded, seat}))
    return replace(
        _with_rack(round_, Rack(seat, without(round_.rack(seat).tiles, (tile,)))), discarded=discarded, step=ToTake()
    )


def _with_rack(round_: DiscardRound, rack: Rack) -> DiscardRound:
    return replace(round_, racks=tuple([rack if old.seat == rack.seat else old for old in round_.racks]))


def _with_pile(round_: DiscardRound, pile: Pile) -> DiscardRound:
    return replace(round_, piles=tuple([pile if old.seat == pile.seat else old for old in round_.piles]))
