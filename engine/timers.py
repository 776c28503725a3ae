"""When a game is next due, and for what: a turn at its deadline, or a round that starts by itself."""

from typing import Final

from engine.game import Game, Lobby, Playing, RoundOver

SHORTEST_LOOK_MS: Final = 1_000
"""How much later than due a turn may time out that follows a turn which ended early, if nobody looks at the game."""


def due_ms(game: Game) -> int | None:
    """Returns when a game is due: at the deadline of the turn, or when the first or next round starts by itself.

    In milliseconds since 1970; None if nothing happens by itself.
    """
    match game.phase:
        case Playing(round_):
            return round_.turn.deadline_ms
        case Lobby(starts_ms):
            return starts_ms
        case RoundOver(_, next_round_ms):
            return next_round_ms
        case _:
            return None


def is_due(game: Game, now_ms: int) -> bool:
    """Returns whether a game is past the time at which it is due."""
    at_ms = due_ms(game)
    return at_ms is not None and now_ms > at_ms


def earliest_due_ms(game: Game, now_ms: int) -> int | None:
    """Returns the earliest time at which a game can be due, whatever is played until then, to SHORTEST_LOOK_MS.

    If a turn ends early, the next player's bank may be shorter than the rest of that turn. A bank runs only during its
    player's turns, so none can be empty before as much time has passed as it has left.
    """
    at_ms = due_ms(game)
    banks = [p.time_left_ms for p in game.players if p.time_left_ms is not None and not p.resigned]
    if at_ms is None or not banks or not isinstance(game.phase, Playing):
        return at_ms
    return min(at_ms, now_ms + max(SHORTEST_LOOK_MS, min(banks)))
