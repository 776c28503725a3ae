"""Absent players: who counts as absent, what follows, and how a player returns."""

from typing import Final

from engine.actions import (
    Action,
    AnnounceRematch,
    Join,
    RenewSeatToken,
    Resign,
    ReturnToSeat,
    StandIn,
    StartDueRound,
    TakeOverSeat,
    TimeOut,
)
from engine.events import Event, PlayerAbsent, PlayerResigned, PlayerReturned, TurnTimedOut
from engine.game import Aborted, Finished, Game, Lobby, Playing, RoundOver
from engine.room_settings import AbsentAction
from engine.seats import BotLevel
from engine.violations import Reason, Refused, refused

_STAND_INS: Final = {
    AbsentAction.BOT_EASY: BotLevel.EASY,
    AbsentAction.BOT_MEDIUM: BotLevel.MEDIUM,
    AbsentAction.BOT_HARD: BotLevel.HARD,
}


def absence_after(game: Game, events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Returns what follows events that end a turn if its player now counts as absent; nothing otherwise.

    absent_after_timeouts, absent_action. A seat that a bot plays is never absent.
    """
    timed_out = events[0]
    if not isinstance(timed_out, TurnTimedOut):
        return ()
    player, settings = game.player(timed_out.seat), game.settings
    is_absent = 0 < settings.absent_after_timeouts <= player.timeouts_in_a_row
    is_present = player.played_by or player.resigned or settings.absent_action is AbsentAction.OFF
    if not is_absent or is_present:
        return ()
    if settings.absent_action is AbsentAction.RESIGN:
        return (PlayerAbsent(player.seat, None), PlayerResigned(player.seat))
    return (PlayerAbsent(player.seat, _STAND_INS[settings.absent_action]),)


def returning(game: Game, action: Action) -> tuple[PlayerReturned, ...]:
    """Returns the event of an absent player's return if an action other than ReturnToSeat implies it."""
    absent = [player.seat for player in game.players if player.stand_in]
    if not absent:
        return ()
    match action:
        case Join() | TimeOut() | StartDueRound() | StandIn() | Resign() | ReturnToSeat() | AnnounceRematch():
            return ()
        case TakeOverSeat():  # its record does not say whose action it was
            return ()
        case RenewSeatToken(is_reissued=True):
            return ()
        case _:
            return (PlayerReturned(action.seat),) if action.seat in absent else ()


def return_to_seat(game: Game, seat: int) -> tuple[Event, ...] | Refused:
    """Decides on `ReturnToSeat`."""
    match game.phase:
        case Lobby():
            return refused(Reason.GAME_NOT_STARTED)
        case Finished() | Aborted():
            return refused(Reason.GAME_OVER)
        case Playing() | RoundOver():
            if game.player(seat).resigned:
                return refused(Reason.PLAYER_RESIGNED)
            return (PlayerReturned(seat),) if game.player(seat).stand_in else refused(Reason.PLAYER_NOT_ABSENT)
