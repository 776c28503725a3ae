"""The moves of a draw-and-discard game in a record: made from events, and turned into actions again."""

from collections.abc import Iterator
from typing import Final

from engine.actions import TimeOut
from engine.discard.actions import (
    DiscardAction,
    DiscardTile,
    FinishFoot,
    FinishHand,
    LayTiles,
    PassTurn,
    ReturnDiscard,
    ShowIndicator,
    TakeDiscard,
    TakeFromPool,
    TakeTrump,
)
from engine.discard.events import (
    DiscardReturned,
    DiscardTaken,
    EmptyPoolPassed,
    HandFinished,
    HandsDealt,
    IndicatorShown,
    PenaltyScored,
    PoolTileTaken,
    RackFinished,
    TileDiscarded,
    TilesLaid,
    TrumpTaken,
)
from engine.discard.game import round_of, rules_of
from engine.discard.hands import finished_hand
from engine.discard.ruleset import HAND_SIZE
from engine.events import Event, TurnTimedOut
from engine.game import Game
from engine.moves import OF_ALL_GAMES, Move, MoveKind
from engine.tiles import FALSE_JOKER, Tile, without

BY_BOTS: Final = frozenset(
    {
        MoveKind.DRAW,
        MoveKind.TAKE_DISCARD,
        MoveKind.TAKE_TRUMP,
        MoveKind.PASS_TURN,
        MoveKind.DISCARD,
        MoveKind.SHOW_INDICATOR,
        MoveKind.LAY_TILES,
        MoveKind.RETURN_DISCARD,
        MoveKind.FINISH,
        MoveKind.FOOT,
    }
)
"""The moves that a bot may make for an absent player."""
_WITH_A_TILE: Final = frozenset(
    {
        MoveKind.DRAW,
        MoveKind.TAKE_DISCARD,
        MoveKind.TAKE_TRUMP,
        MoveKind.DISCARD,
        MoveKind.FINISH,
        MoveKind.FOOT,
    }
)
_MAY_DRAW: Final = frozenset({MoveKind.RETURN_DISCARD, MoveKind.TIME_OUT})
_WITH_A_HAND: Final = frozenset({MoveKind.LAY_TILES, MoveKind.FINISH, MoveKind.FOOT})


def move_of(_game: Game, revision: int, time_ms: int, events: tuple[Event, ...]) -> Move | None:  # noqa: C901 - one case an event
    """Returns the move that led to the events of a change; None for changes that are not part of a record."""
    match events[0]:
        case PoolTileTaken(seat, tile):
            return Move(revision, time_ms, MoveKind.DRAW, seat, (tile,))
        case DiscardTaken(seat, tile):
            return Move(revision, time_ms, MoveKind.TAKE_DISCARD, seat, (tile,))
        case TrumpTaken(seat, tile):
            return Move(revision, time_ms, MoveKind.TAKE_TRUMP, seat, (tile,))
        case EmptyPoolPassed(seat):
            return Move(revision, time_ms, MoveKind.PASS_TURN, seat)
        case TileDiscarded(seat, tile) | RackFinished(seat, tile):
            return Move(revision, time_ms, MoveKind.DISCARD, seat, (tile,))
        case IndicatorShown(seat):
            return Move(revision, time_ms, MoveKind.SHOW_INDICATOR, seat)
        case PenaltyScored(seat):
            return Move(revision, time_ms, MoveKind.FALSE_FINISH, seat)
        case HandFinished(seat, tile, hand):
            return Move(revision, time_ms, MoveKind.FINISH, seat, (tile,), hand=hand)
        case TilesLaid(seat, _, table) if (foot := _foot(events)) is not None:
            return Move(revision, time_ms, MoveKind.FOOT, seat, (foot,), hand=table)
        case TilesLaid(seat, _, table):
            return Move(revision, time_ms, MoveKind.LAY_TILES, seat, hand=table)
        case DiscardReturned(seat):
            drawn = tuple(event.tile for event in events if isinstance(event, PoolTileTaken))
            return Move(revision, time_ms, MoveKind.RETURN_DISCARD, seat, drawn)
        case TurnTimedOut(seat, tiles):
            return Move(revision, time_ms, MoveKind.TIME_OUT, seat, tiles)
        case _:
            return None


def _foot(events: tuple[Event, ...]) -> Tile | None:
    """Returns the discard of a Foot among the events of a change; None if there is none."""
    return next((event.tile for event in events if isinstance(event, RackFinished) and event.is_foot), None)


def is_complete(move: Move) -> bool:
    """Returns whether a move has the parts that its kind needs, and no other, but its seat and its player."""
    kind = move.kind
    return (
        kind in BY_BOTS | OF_ALL_GAMES | {MoveKind.FALSE_FINISH}
        and (isinstance(move.dealt, HandsDealt) if kind is MoveKind.DEAL else move.dealt is None)
        and (kind in _WITH_A_HAND) == bool(move.hand)
        and (len(move.tiles) <= 1 if kind in _MAY_DRAW else (kind in _WITH_A_TILE) == (len(move.tiles) == 1))
        and (move.table, move.river_index) == (None, None)
    )


def actions(game: Game, move: Move) -> Iterator[DiscardAction | TimeOut]:
    """Yields the action that was the move."""
    yield _false_finish(game, move.seat) if move.kind is MoveKind.FALSE_FINISH else _action(move)


def _false_finish(game: Game, seat: int) -> FinishHand:
    """Returns a finish with a discard that leaves no finished hand, if there is one (score_false_finish).

    A record does not say with which tile a player declared a finish falsely: all of them have the same effect.
    """
    tiles, one_high = _tiles_to_finish(game, seat), rules_of(game).run_one_high
    hands = ((t, without(tiles, (t,))) for t in tiles)
    wrong = (t for t, hand in hands if finished_hand(hand, round_of(game).okey, one_high=one_high) is None)
    return FinishHand(seat, next(wrong, FALSE_JOKER))


def _tiles_to_finish(game: Game, seat: int) -> tuple[Tile, ...]:
    """Returns the rack of a player who may declare a finish without a table; nothing if the player may not."""
    round_ = round_of(game) if game.round else None
    may_finish = round_ is not None and round_.table is None and seat == round_.turn.seat
    tiles = round_.rack(seat).tiles if round_ and may_finish else ()
    return tiles if len(tiles) > HAND_SIZE else ()


def _action(move: Move) -> DiscardAction | TimeOut:  # noqa: C901 - one case a kind, each a line
    match move.kind:
        case MoveKind.DRAW:
            return TakeFromPool(move.seat)
        case MoveKind.TAKE_DISCARD:
            return TakeDiscard(move.seat)
        case MoveKind.TAKE_TRUMP:
            return TakeTrump(move.seat)
        case MoveKind.PASS_TURN:
            return PassTurn(move.seat)
        case MoveKind.DISCARD:
            return DiscardTile(move.seat, move.tiles[0])
        case MoveKind.FINISH:
            return FinishHand(move.seat, move.tiles[0], move.hand)
        case MoveKind.FOOT:
            return FinishFoot(move.seat, move.tiles[0], move.hand)
        case MoveKind.SHOW_INDICATOR:
            return ShowIndicator(move.seat)
        case MoveKind.LAY_TILES:
            return LayTiles(move.seat, move.hand)
        case MoveKind.RETURN_DISCARD:
            return ReturnDiscard(move.seat)
        case _:
            return TimeOut()
