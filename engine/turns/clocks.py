"""Clocks: a player's bank of time for a round, beside the limit of a turn (clock_total_seconds).

The time that a turn takes is subtracted from the bank, then clock_increment_seconds is added. The bank during a turn is
what was left at its start, so the deadline of a turn also tells when it began.
"""

from typing import Final

from engine.events import ClockStopped
from engine.game import Game, Player, Round
from engine.ruleset import ClockFlag, Ruleset
from engine.turns.decisions import Context

LONGEST_MS: Final = 14 * 86_400_000
"""Most time that a bank can hold: the longest limit of a turn."""


def turn_length_ms(player: Player, ruleset: Ruleset) -> int | None:
    """Returns how long a turn may take: the turn's limit or the player's bank, whichever is less; None without both."""
    limit_ms = ruleset.turn_time_limit_seconds * 1000 or None
    if limit_ms is None or player.time_left_ms is None:
        return player.time_left_ms if limit_ms is None else limit_ms
    return min(limit_ms, player.time_left_ms)


def stopped_clock(game: Game, round_: Round, context: Context) -> tuple[ClockStopped, ...]:
    """Returns the time that the player has left whose turn ends now; nothing without a bank."""
    player, ruleset = game.player(round_.turn.seat), game.ruleset
    left_ms, length_ms, deadline_ms = player.time_left_ms, turn_length_ms(player, ruleset), round_.turn.deadline_ms
    if left_ms is None or length_ms is None or deadline_ms is None:
        return ()
    used_ms = min(max(0, context.now_ms - (deadline_ms - length_ms)), length_ms)
    return (ClockStopped(player.seat, min(left_ms - used_ms + ruleset.clock_increment_seconds * 1000, LONGEST_MS)),)


def resigns_by_clock(game: Game, round_: Round) -> bool:
    """Returns whether a player whose turn is overdue has used up the bank and so resigns (clock_flag)."""
    player, ruleset = game.player(round_.turn.seat), game.ruleset
    is_empty = player.time_left_ms is not None and player.time_left_ms == turn_length_ms(player, ruleset)
    return is_empty and ruleset.clock_flag is ClockFlag.RESIGN
