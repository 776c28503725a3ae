"""The ends of rounds and games, whatever is played: what they open to all, and when the next round starts."""

from dataclasses import replace

from engine.events import GameEnded, RoundEnded
from engine.game import Game, RoundResult
from engine.room_settings import RacksShown
from engine.unions import Round


def with_racks(game: Game, result: RoundResult, round_: Round) -> RoundResult:
    """Returns a result with the racks and the pool, unless they stay hidden for ever (racks_shown)."""
    shown = game.settings.racks_shown
    if shown is RacksShown.HIDDEN:
        return result
    return replace(result, racks=round_.racks, pool=round_.pool, is_open=shown is RacksShown.AFTER_ROUND)


def paused(game: Game, ended: RoundEnded, now_ms: int) -> RoundEnded:
    """Returns the end of a round that another one follows, with the time of that one (round_pause_seconds)."""
    pause = game.settings.round_pause_seconds
    return replace(ended, next_round_ms=now_ms + pause * 1000 if pause else None)


def game_ended(game: Game, winners: tuple[int, ...], *, abandoned: bool = False) -> GameEnded:
    """Returns the end of a game between two rounds, which opens the racks of all rounds (racks_shown AFTER_GAME)."""
    if game.settings.racks_shown is not RacksShown.AFTER_GAME:
        return GameEnded(winners, abandoned=abandoned)
    return GameEnded(winners, tuple(replace(result, is_open=True) for result in game.results), abandoned)
