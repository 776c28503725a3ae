"""Taking over the seat of a player who has resigned (open_seat).

The new player has the rack, the points and the part in the shuffles of the one who resigned, and a full bank of time.
"""

from engine.actions import TakeOverSeat
from engine.events import SeatTakenOver
from engine.family import family_of
from engine.game import Aborted, Finished, Game, Lobby, Playing, RoundOver
from engine.room_settings import Bots, OpenSeat
from engine.seats import BotLevel
from engine.turns.lobby import is_host
from engine.violations import Reason, Refused, refused


def take_over_seat(game: Game, action: TakeOverSeat) -> tuple[SeatTakenOver, ...] | Refused:
    """Decides on `TakeOverSeat`."""
    match game.phase:
        case Lobby():
            return refused(Reason.GAME_NOT_STARTED)
        case Finished() | Aborted():
            return refused(Reason.GAME_OVER)
        case Playing() | RoundOver():
            return _not_allowed(game, action) or _not_open(game, action) or (_taken_over(game, action),)


def _not_allowed(game: Game, action: TakeOverSeat) -> Refused | None:
    """Returns a refusal unless the settings allow it, and for a bot the host does (open_seat, bots)."""
    settings = game.settings
    allowed = {OpenSeat.ANYONE, OpenSeat.BOT} if action.bot else {OpenSeat.ANYONE}
    if settings.open_seat not in allowed:
        return refused(Reason.GAME_ALREADY_STARTED)
    if action.bot and not _may_add_bots(game, action.seat):
        return refused(Reason.NOT_THE_HOST)
    if (action.bot or action.is_program) and settings.bots is Bots.OFF:
        return refused(Reason.BOTS_NOT_ALLOWED)
    return None


def _may_add_bots(game: Game, seat: int) -> bool:
    """Returns whether a player is the host, or plays in a game whose host has resigned or is a bot."""
    if is_host(game, seat):
        return True
    is_led = not any(player.is_host and (player.resigned or player.bot) for player in game.players)
    return not is_led and not game.player(seat).resigned


def _not_open(game: Game, action: TakeOverSeat) -> Refused | None:
    """Returns a refusal unless the player of the seat has resigned, and can be followed in the round in progress."""
    seat = action.taken
    if all(player.seat != seat for player in game.players):
        return refused(Reason.PLAYER_NOT_IN_GAME, seat=seat)
    if not game.player(seat).resigned:
        return refused(Reason.SEAT_TAKEN, seat=seat)
    if isinstance(game.phase, Playing) and not family_of(game).can_play_on(game, seat):
        return refused(Reason.ROUND_IN_PROGRESS)
    if any(player.name == action.name for player in game.players if player.seat != seat):
        return refused(Reason.PLAYER_ALREADY_JOINED)
    return None


def _taken_over(game: Game, action: TakeOverSeat) -> SeatTakenOver:
    new_host = _new_host(game, action.taken, action.bot) if game.player(action.taken).is_host else None
    return SeatTakenOver(action.taken, action.name, action.bot, action.is_program, new_host)


def _new_host(game: Game, seat: int, bot: BotLevel | None) -> int:
    """Returns the host after the host's seat was taken over: the new player, or the first person instead of a bot.

    If no other person plays, the bot's seat stays the host's.
    """
    people = (player.seat for player in game.players if not (player.bot or player.resigned))
    return next(people, seat) if bot else seat
