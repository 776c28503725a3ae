from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import pytest

from engine.discard.moves import BY_BOTS, actions, is_complete, move_of
from engine.discard.presets import OKEY_101
from engine.discard.ruleset import OKEY, Ruleset
from engine.events import PlayerReadied
from engine.melding import moves as melding_moves
from engine.melding.events import RoundStarted
from engine.moves import OF_ALL_GAMES, Move, MoveKind, RecordedPlayer
from engine.notation import parse_tiles
from engine.record import GameRecord, RecordError, record_of, replayed
from engine.record_text import RecordTextError, format_record, parse_record
from engine.room_settings import DEFAULT_SETTINGS
from support.okey_games import random_101_ruleset, random_changes, random_joker_ruleset
from support.random_play import Change
from support.soak import few_of

TILE = parse_tiles("R7")


def _recorded(changes: Iterator[Change]) -> GameRecord:
    return record_of((one.applied.game.revision, one.now_ms, one.applied.events) for one in changes)


@cache
def recorded(seed: int) -> GameRecord:
    return _recorded(random_changes(seed))


@cache
def recorded_101(seed: int) -> GameRecord:
    return _recorded(random_changes(seed, choose=random_101_ruleset))


@cache
def recorded_with_jokers(seed: int) -> GameRecord:
    return _recorded(random_changes(seed, choose=random_joker_ruleset))


def test_records_have_moves_of_every_kind() -> None:
    games = [*map(recorded, (14, 40, 56, 69)), recorded_101(0), recorded_with_jokers(21)]
    kinds = {move.kind for game in games for move in game.moves}
    assert kinds | {MoveKind.ABORT, MoveKind.FOOT} == BY_BOTS | OF_ALL_GAMES | {MoveKind.FALSE_FINISH}
    assert any(move.by_bot for game in games for move in game.moves)


@pytest.mark.parametrize("game", [recorded, recorded_101, recorded_with_jokers])
@pytest.mark.parametrize("seed", few_of(range(6), 3))
def test_a_record_is_read_from_its_text_and_played_again(seed: int, game: Callable[[int], GameRecord]) -> None:
    record = game(seed)
    read = parse_record(format_record(record))
    assert read == record
    assert sum(1 for _ in replayed(read)) == len(record.moves)


def with_word(verb: str, change: Callable[[str], str]) -> Iterator[str]:
    """Yields texts of records with the first move of a kind changed."""
    recorded_here = recorded_101 if verb in {"meld", "putback"} else recorded
    for seed in range(40):
        lines = format_record(recorded_here(seed)).splitlines()
        place = next((place for place, line in enumerate(lines) if f" {verb}" in line and line[0].isdecimal()), None)
        if place is not None:
            yield "\n".join([*lines[:place], change(lines[place]), *lines[place + 1 :]])


@pytest.mark.parametrize(
    ("verb", "change", "message"),
    [
        ("draw", lambda line: f"{line.rsplit(' ', 1)[0]} J", "the tiles are not the next ones"),
        ("draw", lambda line: line.rsplit(" ", 1)[0], "incomplete"),
        ("draw", lambda line: line.replace("draw", "lay"), "incomplete"),
        ("draw", lambda line: line.replace("draw", "knock").rsplit(" ", 1)[0], "incomplete"),
        ("draw", lambda line: line.replace("draw", "pass").rsplit(" ", 1)[0], "has no such action"),
        ("discard", lambda line: f"{line.rsplit(' ', 1)[0]} J", "neither on the table nor on the player's rack: J"),
        ("take", lambda line: f"{line.rsplit(' ', 1)[0]} J", "the tiles are not the next ones"),
        ("finish", lambda line: f"{line.partition('[')[0].strip()} .", "incomplete"),
        ("finish", lambda line: f"{line.partition('[')[0].strip()} [R1 R2]", "rack"),
        ("timeout", lambda line: f"{line.partition('timeout')[0]}timeout J", "the tiles are not the next ones"),
        ("meld", lambda line: f"{line} | [J J J]", "the tiles form neither a group nor a run: J J J"),
        ("meld", lambda line: f"{line.partition('[')[0].strip()} .", "incomplete"),
        ("putback", lambda line: f"{line.rsplit(' ', 1)[0]} J", "the tiles are not the next ones"),
        ("putback", lambda line: line.rsplit(" ", 1)[0], "the tiles are not the next ones"),
    ],
)
def test_a_record_that_breaks_a_rule_is_refused(verb: str, change: Callable[[str], str], message: str) -> None:
    text = next(with_word(verb, change))
    with pytest.raises(RecordError, match=message):
        list(replayed(parse_record(text)))


@pytest.mark.parametrize(
    ("verb", "change", "message"),
    [
        ("deal", lambda line: line.replace(" / ", " ", 1), "is not a tile"),
        ("deal", lambda line: line[: line.rindex("/")], "a part is missing"),
        ("finish", lambda line: f"{line}]", "follows a meld"),
        ("meld", lambda line: f"{line}]", "follows a meld"),
        ("indicator", lambda line: f"{line} R7", "follows indicator: expected nothing"),
        ("finish", lambda line: line[: line.index("finish") + 6], ""),
    ],
)
def test_a_text_that_is_no_record_is_refused(verb: str, change: Callable[[str], str], message: str) -> None:
    text = next(with_word(verb, change))
    if not message:
        assert parse_record(text).moves
        return
    with pytest.raises(RecordTextError, match=message):
        parse_record(text)


MOVE = Move(5, 1000, MoveKind.DISCARD, 1, TILE)


@pytest.mark.parametrize(
    "move",
    [
        replace(MOVE, tiles=()),
        replace(MOVE, tiles=TILE * 2),
        replace(MOVE, hand=(TILE,)),
        replace(MOVE, kind=MoveKind.LAY_TILES, hand=(TILE,)),
        replace(MOVE, kind=MoveKind.LAY_TILES, tiles=()),
        replace(MOVE, kind=MoveKind.RETURN_DISCARD, tiles=TILE * 2),
        replace(MOVE, kind=MoveKind.FOOT),
        replace(MOVE, kind=MoveKind.FOOT, tiles=(), hand=(TILE,)),
        replace(MOVE, kind=MoveKind.TAKE_TRUMP, tiles=()),
        replace(MOVE, kind=MoveKind.PASS_TURN),
        replace(MOVE, table=()),
        replace(MOVE, river_index=0),
        replace(MOVE, dealt=RoundStarted(1, (), (), (), ())),
        replace(MOVE, kind=MoveKind.SHOW_INDICATOR),
        replace(MOVE, kind=MoveKind.FINISH),
        replace(MOVE, kind=MoveKind.DEAL, tiles=()),
        replace(MOVE, kind=MoveKind.PLAY),
        replace(MOVE, kind=MoveKind.REDEAL),
    ],
)
def test_a_move_with_other_parts_than_its_kind_needs_is_incomplete(move: Move) -> None:
    assert is_complete(MOVE)
    assert not is_complete(move)


def test_a_melding_game_has_no_moves_of_okey() -> None:
    assert melding_moves.is_complete(replace(MOVE, kind=MoveKind.DRAW))
    assert not melding_moves.is_complete(MOVE)
    assert not melding_moves.is_complete(replace(MOVE, kind=MoveKind.DRAW, hand=(TILE,)))


def test_changes_of_the_lobby_are_no_moves() -> None:
    game = next(random_changes(0)).applied.game
    assert move_of(game, 3, 1000, (PlayerReadied(1, is_ready=True),)) is None
    assert len(list(actions(game, MOVE))) == 1


@pytest.mark.parametrize("preset", [OKEY, OKEY_101])
def test_a_false_finish_before_the_deal_is_refused(preset: Ruleset) -> None:
    players = tuple(RecordedPlayer(seat, f"player {seat}") for seat in (1, 2))
    move = Move(5, 1000, MoveKind.FALSE_FINISH, 1)
    rules = replace(preset, players_min=2)
    record = GameRecord(rules, DEFAULT_SETTINGS, 0, players, (move,), (), ())
    with pytest.raises(RecordError):
        list(replayed(record))
