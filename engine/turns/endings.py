"""Decisions that are possible in any phase or after the game: aborting, a new token, a rematch."""

from engine.actions import AbortGame, AnnounceRematch, RenewSeatToken
from engine.decisions import Decision
from engine.events import AbortRequested, GameAborted, RematchCreated, SeatTokenRenewed
from engine.game import Aborted, Finished, Game, Lobby
from engine.room_settings import AbortBy
from engine.seats import HOST
from engine.turns.lobby import is_host, worn_out
from engine.violations import Reason, refused


def decide_ending(game: Game, action: AbortGame | RenewSeatToken | AnnounceRematch) -> Decision:
    """Decides on `AbortGame`, `RenewSeatToken` or `AnnounceRematch`."""
    is_over = isinstance(game.phase, Finished | Aborted)
    match action:
        case AnnounceRematch(game_id):
            return _announce_rematch(game, game_id) if is_over else refused(Reason.GAME_NOT_OVER)
        case _ if is_over:
            return refused(Reason.GAME_OVER)
        case AbortGame(_, is_forced=True):
            return (GameAborted(by_host=False),)
        case AbortGame(seat):
            return _abort(game, seat)
        case RenewSeatToken(seat, is_reissued=True) if not _is_of_person(game, seat):
            return refused(Reason.PLAYER_NOT_IN_GAME, seat=seat)
        case RenewSeatToken(seat):
            return worn_out(game) or (SeatTokenRenewed(seat),)


def _is_of_person(game: Game, seat: int) -> bool:
    """Returns whether a person has a seat, or has it reserved."""
    people = {player.seat for player in game.players if player.bot is None}
    return seat in people | {one.seat for one in game.reserved}


def _announce_rematch(game: Game, game_id: str) -> Decision:
    if game.rematch_game_id:
        raise ValueError("the game has a rematch: announce only one")
    return (RematchCreated(game_id),)


def _abort(game: Game, seat: int) -> Decision:
    """In the lobby the host decides, and until a round has ended (abort_by); otherwise all people who are present."""
    if seat != HOST and game.player(seat).resigned:
        return refused(Reason.PLAYER_RESIGNED)
    is_hosts = isinstance(game.phase, Lobby) or (game.settings.abort_by is AbortBy.HOST and not game.results)
    if is_host(game, seat) and is_hosts:
        return (GameAborted(by_host=True),)
    if isinstance(game.phase, Lobby):
        return refused(Reason.NOT_THE_HOST)
    if seat == HOST:
        return refused(Reason.GAME_NOT_ABORTABLE)
    others = (player for player in game.players if player.seat != seat and not player.resigned)
    if all(player.wants_abort or player.played_by for player in others):
        return (AbortRequested(seat), GameAborted(by_host=False))
    return () if game.player(seat).wants_abort else (AbortRequested(seat),)
