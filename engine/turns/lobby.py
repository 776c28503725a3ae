"""Decisions on actions outside a turn: joining, leaving, starting a round."""

from dataclasses import replace
from typing import Final

from engine.actions import Join, KickPlayer, Leave, LobbyAction, SetReady, StartGame
from engine.clocks import start_turn, with_full_banks
from engine.deal import Shuffle
from engine.decisions import Context, Decision
from engine.events import (
    Event,
    PlayerJoined,
    PlayerKicked,
    PlayerLeft,
    PlayerReadied,
)
from engine.family import family_of
from engine.game import Aborted, Finished, Game, Lobby, Playing, RoundOver
from engine.replay import evolve
from engine.room_settings import Bots, StartBy
from engine.seats import HOST
from engine.timers import is_due
from engine.unions import RoundStart
from engine.violations import Reason, Refused, refused

LOBBY_CHANGES_MAX: Final = 500
"""Most changes of a lobby. After them its players can only get ready, start the game, leave or abort it."""


START_DELAY_MS: Final = 5_000
"""How long after the last player has joined a game starts by itself, so that all see that it will."""


def decide_in_lobby(game: Game, action: LobbyAction, context: Context) -> Decision:
    """Decides on an action in the lobby."""
    match game.phase:
        case Playing() | RoundOver() | Finished():
            return refused(Reason.GAME_ALREADY_STARTED)
        case Aborted():
            return refused(Reason.GAME_OVER)
        case Lobby():
            pass
    match action:
        case Join():
            return worn_out(game) or _join(game, action, context)
        case Leave(seat):
            return (PlayerLeft(seat, _new_host(game, seat)),)
        case KickPlayer():
            return _kick(game, action)
        case SetReady(is_ready=is_ready, deal_seed=seed):
            return (None if is_ready and not seed else worn_out(game)) or _set_ready(game, action)
        case StartGame():
            return _start_game(game, action, context)


def worn_out(game: Game) -> Refused | None:
    """Returns a refusal if a game in the lobby has had its last change (LOBBY_CHANGES_MAX)."""
    if not isinstance(game.phase, Lobby) or game.revision < LOBBY_CHANGES_MAX:
        return None
    return refused(Reason.TOO_MANY_CHANGES, changes=game.revision)


def _join(game: Game, action: Join, context: Context) -> Decision:
    taken = _taken(game)
    if action.takes_reserved:
        taken.pop(action.seat, None)
    if action.name in taken.values():
        return refused(Reason.PLAYER_ALREADY_JOINED)
    free = [seat for seat in game.seats if seat not in taken]
    if not free:
        return refused(Reason.GAME_FULL, players_max=len(game.seats))
    if action.seat and action.seat not in free:
        return refused(Reason.SEAT_TAKEN, seat=action.seat)
    seat = action.seat or free[0]
    is_program = action.is_program or any(one.seat == seat and one.is_program for one in game.reserved)
    if (action.bot or is_program) and game.settings.bots is Bots.OFF:
        return refused(Reason.BOTS_NOT_ALLOWED)
    joined = PlayerJoined(
        seat, action.name, action.bot, action.is_host, is_program=is_program, deal_seed=action.deal_seed
    )
    starts = _starts_by_itself(evolve(game, joined), had_reserved=bool(game.reserved))
    return (replace(joined, starts_ms=context.now_ms + START_DELAY_MS) if starts else joined,)


def _taken(game: Game) -> dict[int, str]:
    """Returns the taken and reserved seats of a lobby with their names."""
    return {player.seat: player.name for player in game.players} | {one.seat: one.name for one in game.reserved}


def _starts_by_itself(game: Game, *, had_reserved: bool) -> bool:
    """Returns whether a game starts by itself now that a player has joined.

    It does when it is full (start_by FULL_OR_READY), and when the last of those has come for whom seats were reserved.
    """
    if game.reserved:
        return False
    is_full = len(game.players) == len(game.seats)
    if game.settings.start_by is StartBy.FULL_OR_READY and is_full:
        return True
    return had_reserved and len(game.players) >= game.players_needed


def _kick(game: Game, action: KickPlayer) -> Decision:
    if not is_host(game, action.seat):
        return refused(Reason.NOT_THE_HOST)
    if action.kicked not in _taken(game):
        return refused(Reason.PLAYER_NOT_IN_GAME, seat=action.kicked)
    return (PlayerKicked(action.kicked, _new_host(game, action.kicked)),)


def _new_host(game: Game, leaving: int) -> int | None:
    """Returns the seat that becomes host when a player leaves: the lowest one of a person, if the host leaves."""
    if game.host_seat != leaving:
        return None
    return next((player.seat for player in game.players if player.bot is None and player.seat != leaving), None)


def _set_ready(game: Game, action: SetReady) -> Decision:
    """A player who is already as the action says changes nothing."""
    player = game.player(action.seat)
    if player.is_ready == action.is_ready and action.deal_seed in {b"", player.deal_seed}:
        return ()
    return (PlayerReadied(action.seat, action.is_ready, action.deal_seed),)


def _start_game(game: Game, action: StartGame, context: Context) -> Decision:
    if game.settings.start_by is StartBy.HOST and not is_host(game, action.seat):
        return refused(Reason.NOT_THE_HOST)
    if len(game.players) < game.players_needed:
        return refused(Reason.TOO_FEW_PLAYERS, players=len(game.players), players_min=game.players_needed)
    ready = sum(player.is_ready for player in game.players)
    needs_all = game.settings.start_by in {StartBy.ALL_READY, StartBy.FULL_OR_READY}
    if game.reserved or (needs_all and ready < len(game.players)):
        return refused(Reason.PLAYERS_NOT_READY, players=len(game.players) + len(game.reserved), ready=ready)
    return _start_round(game, action.shuffle, context)


def is_host(game: Game, seat: int) -> bool:
    """Returns whether an action's seat is the host's."""
    return seat == HOST or game.player(seat).is_host


def start_next_round(game: Game, seat: int, shuffle: Shuffle | RoundStart, context: Context) -> Decision:
    """Decides on `StartNextRound`."""
    match game.phase:
        case Lobby():
            return refused(Reason.GAME_NOT_STARTED)
        case Playing():
            return refused(Reason.ROUND_IN_PROGRESS)
        case Finished() | Aborted():
            return refused(Reason.GAME_OVER)
        case RoundOver():
            if game.player(seat).resigned:
                return refused(Reason.PLAYER_RESIGNED)
            return _start_round(game, shuffle, context)


def start_due_round(game: Game, shuffle: Shuffle | RoundStart, context: Context) -> Decision:
    """Decides on `StartDueRound` (start_by, round_pause_seconds).

    Raises:
        ValueError: No round is due.
    """
    if not isinstance(game.phase, Lobby | RoundOver) or not is_due(game, context.now_ms):
        raise ValueError("no round is due: apply StartDueRound only when is_due")
    return _start_round(game, shuffle, context)


def _start_round(game: Game, shuffle: Shuffle | RoundStart, context: Context) -> tuple[Event, ...]:
    """Returns the deal and the first turn (R5 to R9)."""
    dealt = family_of(game).deal(game, shuffle)
    return (dealt, start_turn(with_full_banks(game), dealt.order[0], context.now_ms))
