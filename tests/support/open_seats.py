"""Take-overs of the seats of players who have resigned, in random games."""

import random

from engine.actions import TakeOverSeat
from engine.family import family_of
from engine.game import Game, Playing
from engine.room_settings import Bots, OpenSeat
from engine.seats import HOST, BotLevel


def open_seats(game: Game) -> list[int]:
    """Returns the seats that may be taken over now in a started game."""
    is_playing = isinstance(game.phase, Playing)
    seats = [player.seat for player in game.players if player.resigned]
    return [seat for seat in seats if not is_playing or family_of(game).can_play_on(game, seat)]


def random_take_over(game: Game, rng: random.Random) -> TakeOverSeat | None:
    """Returns, in one of 20 calls, that a bot or a person takes over a seat; None if there is none."""
    seats, settings = open_seats(game), game.settings
    if not seats or settings.open_seat is OpenSeat.OFF or rng.random() > 0.05:
        return None
    levels: list[BotLevel | None] = [BotLevel.EASY] if settings.bots is Bots.ALLOWED else []
    levels += [None] if settings.open_seat is OpenSeat.ANYONE else []
    if not levels:
        return None
    seat, level = rng.choice(seats), rng.choice(levels)
    is_program = level is None and settings.bots is Bots.ALLOWED and rng.random() < 0.3
    return TakeOverSeat(HOST, seat, f"new {seat} of {game.revision}", level, is_program)
