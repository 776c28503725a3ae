"""Clocks: when a turn ends, and a player's bank of time for a round (clock_total_seconds).

The time that a turn takes is subtracted from the bank, then clock_increment_seconds is added. The bank during a turn is
what was left at its start, so the deadline of a turn also tells when it began.
"""

from dataclasses import replace
from typing import Final

from engine.events import ClockStopped, TurnStarted
from engine.game import Game
from engine.room_settings import ClockFlag
from engine.seats import Turn
from engine.unions import Round

LONGEST_MS: Final = 14 * 86_400_000
"""Most time that a bank can hold: the longest limit of a turn."""


def start_turn(game: Game, seat: int, now_ms: int) -> TurnStarted:
    """Returns a turn that starts now, with its deadline (R54, turn_time_limit_seconds, clock_total_seconds)."""
    length_ms = _turn_length_ms(game, seat)
    return TurnStarted(Turn(seat, None if length_ms is None else now_ms + length_ms, game.revision + 1))


def with_full_banks(game: Game) -> Game:
    """Returns the game at the start of a round, where each player's bank is full."""
    total_ms = full_bank_ms(game)
    if total_ms is None:
        return game
    return replace(game, players=tuple(replace(player, time_left_ms=total_ms) for player in game.players))


def full_bank_ms(game: Game) -> int | None:
    """Returns a player's bank at the start of a round; None without clocks (clock_total_seconds)."""
    return game.settings.clock_total_seconds * 1000 or None


def _turn_length_ms(game: Game, seat: int) -> int | None:
    """Returns how long a turn may take: the turn's limit or the player's bank, whichever is less; None without both."""
    limit_ms = game.settings.turn_time_limit_seconds * 1000 or None
    left_ms = _bank_ms(game, seat)
    if limit_ms is None or left_ms is None:
        return left_ms if limit_ms is None else limit_ms
    return min(limit_ms, left_ms)


def stopped_clock(game: Game, round_: Round, now_ms: int) -> tuple[ClockStopped, ...]:
    """Returns the time that the player has left whose turn ends now; nothing without a bank."""
    seat, deadline_ms = round_.turn.seat, round_.turn.deadline_ms
    left_ms, length_ms = _bank_ms(game, seat), _turn_length_ms(game, seat)
    if left_ms is None or length_ms is None or deadline_ms is None:
        return ()
    used_ms = min(max(0, now_ms - (deadline_ms - length_ms)), length_ms)
    return (ClockStopped(seat, min(left_ms - used_ms + game.settings.clock_increment_seconds * 1000, LONGEST_MS)),)


def resigns_by_clock(game: Game, round_: Round) -> bool:
    """Returns whether a player whose turn is overdue has used up the bank and so resigns (clock_flag)."""
    left_ms = _bank_ms(game, round_.turn.seat)
    is_empty = left_ms is not None and left_ms == _turn_length_ms(game, round_.turn.seat)
    return is_empty and game.settings.clock_flag is ClockFlag.RESIGN


def _bank_ms(game: Game, seat: int) -> int | None:
    """Returns the bank of a player. Most games have none, so it asks the settings before it looks for the player."""
    return game.player(seat).time_left_ms if game.settings.clock_total_seconds else None
