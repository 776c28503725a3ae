"""Records of random games, and games to compare with them."""

from collections.abc import Sequence
from dataclasses import replace

from engine.game import (
    Aborted,
    Finished,
    Game,
    Lobby,
    Playing,
    RoundOver,
)
from engine.melding.round import MeldingRound as Round
from engine.record import GameRecord, record_of, replayed
from engine.record_text import format_record, parse_record
from support.random_play import ANALYSIS, Change


def recorded(changes: Sequence[Change]) -> GameRecord:
    """Returns the record of a game from all its changes."""
    return record_of((change.applied.game.revision, change.now_ms, change.applied.events) for change in changes)


def comparable(game: Game) -> Game:
    """Returns a game without what a record does not have: the lobby's marks, votes, and reasons of shown plays."""
    players = tuple(replace(p, is_ready=False, is_host=False, wants_abort=False) for p in game.players)
    game = replace(game, players=players)
    round_ = _without_reasons(game.round) if isinstance(game.round, Round) else game.round
    match game.phase:
        case Lobby():
            return game
        case Aborted():
            return replace(game, phase=Aborted(round_))
        case Finished():
            return replace(game, phase=replace(game.phase, round=round_ or game.phase.round, rematch_game_id=""))
        case Playing() | RoundOver():
            return replace(game, phase=replace(game.phase, round=round_ or game.phase.round))


def _without_reasons(round_: Round) -> Round:
    return replace(round_, shown_play=round_.shown_play and replace(round_.shown_play, reasons=()))


def check_record(changes: Sequence[Change]) -> None:
    """Checks that the record of a game, read from its text, gives the game after every move."""
    record = recorded(changes)
    assert parse_record(format_record(record)) == record, "the text of a record is read as another record"
    games = {change.applied.game.revision: change.applied.game for change in changes}
    moves = 0
    for step in replayed(record, ANALYSIS):
        assert comparable(step.after) == comparable(games[step.move.revision]), f"{step.move} leads to another game"
        moves += 1
    assert moves == len(record.moves), "moves are missing"
