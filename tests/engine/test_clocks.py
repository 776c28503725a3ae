"""Clocks: the bank of each player, deadlines, increments, and what an empty bank leads to."""

import random
from dataclasses import replace

import pytest

from engine.actions import Resign, StartGame, StartNextRound, TimeOut
from engine.events import ClockStopped, GameEnded, PlayerAbsent, PlayerResigned, RoundEnded, TurnStarted, TurnTimedOut
from engine.game import Game, Playing, round_of
from engine.melding.actions import DrawTile, LayOnRiver, Pass
from engine.melding.ruleset import (
    SABRA,
    MatchEnd,
    TurnDraw,
    TurnInvalidSubmission,
)
from engine.room_settings import ClockFlag
from engine.timers import SHORTEST_LOOK_MS, due_ms, earliest_due_ms
from engine.turns import Applied
from support.positions import NAMES, NOW, do, is_a, lobby, play
from support.random_play import random_shuffle
from support.rooms import Rules, room

CLOCKS = room(SABRA, turn_time_limit_seconds=0, clock_total_seconds=60)
FISCHER = room(CLOCKS, clock_increment_seconds=10)
EACH_TURN = room(CLOCKS, clock_flag=ClockFlag.TIME_OUT_EACH_TURN)
BOTH = room(FISCHER, turn_time_limit_seconds=30)
ROUNDS = room(CLOCKS, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2)
SHUFFLE = random_shuffle(SABRA, random.Random(3))
FIRST, SECOND = 1, 2
"""The seats in turn order: the shuffle lets seat 1 start."""


def started(ruleset: Rules, players: int = 2) -> Game:
    game = do(lobby(*NAMES[:players], ruleset=ruleset), StartGame(1, SHUFFLE)).game
    round_ = round_of(game)
    at_first = replace(round_, order=tuple(range(1, players + 1)), turn=replace(round_.turn, seat=FIRST))
    return replace(game, phase=Playing(at_first))


def banks(game: Game) -> list[int | None]:
    return [player.time_left_ms for player in game.players]


def drawn(game: Game, seconds: float) -> Applied:
    """Returns the game after a draw, so many seconds after the turn began."""
    began = began_ms(game)
    return do(game, DrawTile(round_of(game).turn.seat), began + round(seconds * 1000))


def began_ms(game: Game) -> int:
    deadline, left = due_ms(game), game.player(round_of(game).turn.seat).time_left_ms
    limit = game.settings.turn_time_limit_seconds * 1000
    assert deadline is not None
    assert left is not None
    return deadline - (min(limit, left) if limit else left)


def late(game: Game, seconds: float = 0.001) -> Applied:
    at_ms = due_ms(game)
    assert at_ms is not None
    return do(game, TimeOut(), at_ms + round(seconds * 1000))


def test_without_a_clock_no_player_has_a_bank() -> None:
    assert banks(started(SABRA)) == [None, None]
    assert not any(isinstance(event, ClockStopped) for event in do(started(SABRA), DrawTile(FIRST)).events)


def test_each_player_begins_a_round_with_the_whole_bank() -> None:
    game = started(CLOCKS)
    assert banks(game) == [60_000, 60_000]
    assert due_ms(game) == NOW + 60_000
    assert banks(lobby("Ada", "Ben", ruleset=CLOCKS)) == [None, None]


def test_a_turn_takes_its_time_from_the_bank() -> None:
    ended = drawn(started(CLOCKS), 20)
    assert [type(event).__name__ for event in ended.events] == ["TileDrawn", "ClockStopped", "TurnStarted"]
    assert ended.events[1] == ClockStopped(FIRST, 40_000)
    assert banks(ended.game) == [40_000, 60_000]
    again = drawn(drawn(ended.game, 5).game, 15)
    assert banks(again.game) == [25_000, 55_000]
    assert due_ms(again.game) == NOW + 40_000 + 55_000


def test_the_increment_is_added_after_each_turn() -> None:
    game = drawn(started(FISCHER), 20).game
    assert banks(game) == [50_000, 60_000]
    assert banks(drawn(game, 0).game) == [50_000, 70_000]


def test_a_bank_never_holds_more_than_14_days() -> None:
    most = room(CLOCKS, clock_total_seconds=1_209_600, clock_increment_seconds=86_400)
    assert banks(drawn(started(most), 1).game) == [1_209_600_000, 1_209_600_000]


def test_the_shorter_of_limit_and_bank_is_the_deadline() -> None:
    game = started(BOTH)
    assert due_ms(game) == NOW + 30_000
    for _ in range(3):
        game = drawn(drawn(game, 25).game, 0).game
    assert banks(game)[0] == 15_000
    assert due_ms(game) == NOW + 3 * 25_000 + 15_000
    short = room(BOTH, clock_total_seconds=20)
    assert due_ms(started(short)) == NOW + 20_000


def test_a_time_out_by_the_limit_takes_the_limit_from_the_bank_however_late_it_is_applied() -> None:
    for seconds in (0.001, 3_600):
        ended = late(started(BOTH), seconds)
        assert ended.events[1] == ClockStopped(FIRST, 40_000)
        assert isinstance(ended.events[-1], TurnStarted)


def test_who_has_used_up_the_bank_resigns() -> None:
    ended = late(started(CLOCKS, players=3), 5)
    assert ended.events[:3] == (TurnTimedOut(FIRST, ()), PlayerResigned(FIRST), ClockStopped(FIRST, 0))
    assert ended.game.active_seats == (2, 3)
    assert round_of(ended.game).turn.seat == SECOND


def test_the_last_player_with_time_wins() -> None:
    ended = late(started(CLOCKS))
    assert isinstance(ended.events[-2], RoundEnded)
    assert ended.events[-1] == GameEnded((SECOND,))


def test_a_limit_that_ends_the_turn_first_is_no_flag() -> None:
    ended = late(started(BOTH))
    assert not any(isinstance(event, PlayerResigned) for event in ended.events)


def test_a_flag_while_a_river_choice_is_pending_resigns_with_both_tiles() -> None:
    game = started(room(CLOCKS, turn_draw=TurnDraw.TWO_RIVER))
    offered = do(game, DrawTile(FIRST), NOW + 1).game
    assert banks(offered) == [60_000, 60_000]  # the turn goes on
    ended = late(offered)
    assert len(round_of(ended.game).rack(FIRST).tiles) == 16


def test_an_empty_bank_may_time_out_each_turn() -> None:
    ended = late(started(EACH_TURN))
    assert banks(ended.game) == [0, 60_000]
    assert ended.game.active_seats == (1, 2)
    again = drawn(ended.game, 1).game
    assert due_ms(again) == began_ms(again)
    timed_out = late(again)
    assert isinstance(timed_out.events[0], TurnTimedOut)
    assert banks(timed_out.game) == [0, 59_000]


def test_after_the_flag_a_turn_has_only_the_increment() -> None:
    game = drawn(late(started(room(EACH_TURN, clock_increment_seconds=10))).game, 1).game
    assert due_ms(game) == began_ms(game) + 10_000


def test_turns_without_any_time_do_not_make_a_player_absent() -> None:
    game = late(started(room(EACH_TURN, absent_after_timeouts=2))).game
    for _ in range(3):
        game = late(drawn(game, 1).game).game
    assert game.player(FIRST).timeouts_in_a_row == 1
    with_increment = late(started(room(EACH_TURN, clock_increment_seconds=1, absent_after_timeouts=2))).game
    ended = late(drawn(with_increment, 1).game)
    assert any(isinstance(event, PlayerAbsent) for event in ended.events)


def test_a_flag_resigns_a_player_who_would_count_as_absent() -> None:
    ended = late(started(room(CLOCKS, absent_after_timeouts=1), players=3))
    assert not any(isinstance(event, PlayerAbsent) for event in ended.events)


def test_the_resignation_of_another_player_stops_no_clock() -> None:
    resigned = do(started(CLOCKS, players=3), Resign(3), NOW + 5_000)
    assert resigned.events == (PlayerResigned(3),)
    assert banks(resigned.game) == [60_000] * 3


def test_a_resignation_in_the_players_own_turn_stops_the_clock() -> None:
    resigned = do(started(CLOCKS, players=3), Resign(FIRST), NOW + 5_000)
    assert resigned.events[1] == ClockStopped(FIRST, 55_000)


def test_a_penalty_and_the_end_of_a_choice_stop_the_clock() -> None:
    penalizing = room(CLOCKS, turn_invalid_submission=TurnInvalidSubmission.PENALISE)
    penalized = do(started(penalizing), play(FIRST, "[R1]"), NOW + 2_000)
    assert banks(penalized.game) == [58_000, 60_000]
    offered = do(started(room(CLOCKS, turn_draw=TurnDraw.TWO_RIVER)), DrawTile(FIRST), NOW + 1_000).game
    tile = is_a(offered.phase, Playing).round.step.tiles[0]  # type: ignore[union-attr]
    laid = do(offered, LayOnRiver(FIRST, tile), NOW + 3_000)
    assert banks(laid.game) == [57_000, 60_000]


def test_a_pause_takes_no_time_and_the_next_round_has_full_banks() -> None:
    game = started(ROUNDS)
    while isinstance(game.phase, Playing):
        seat, pool = round_of(game).turn.seat, round_of(game).pool
        game = do(game, DrawTile(seat) if pool else Pass(seat), began_ms(game) + 100).game
    spent = banks(game)
    assert all(left is not None and left < 60_000 for left in spent)
    following = do(game, StartNextRound(1, SHUFFLE), NOW + 3_600_000).game
    assert banks(following) == [60_000, 60_000]
    assert due_ms(following) == NOW + 3_660_000


def test_a_time_before_the_turn_began_counts_as_no_time() -> None:
    """The time of a decision is an estimate that may lag (Commit.until_ms)."""
    assert banks(do(started(CLOCKS), DrawTile(FIRST), NOW - 3).game) == [60_000, 60_000]


# When a game can be due


def with_banks(game: Game, *left: int) -> Game:
    players = tuple(replace(player, time_left_ms=ms) for player, ms in zip(game.players, left, strict=True))
    return replace(game, players=players)


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        ((60_000, 60_000), NOW + 60_000),
        ((60_000, 20_000), NOW + 20_000),
        ((60_000, 0), NOW + SHORTEST_LOOK_MS),
    ],
)
def test_a_game_can_be_due_when_any_bank_can_be_empty(left: tuple[int, int], expected: int) -> None:
    assert earliest_due_ms(with_banks(started(CLOCKS), *left), NOW) == expected


def test_the_bank_of_a_player_who_has_resigned_does_not_count() -> None:
    game = with_banks(started(CLOCKS, players=3), 60_000, 40_000, 5_000)
    assert earliest_due_ms(do(game, Resign(3)).game, NOW) == NOW + 40_000


def test_without_banks_a_game_is_due_at_the_deadline() -> None:
    assert earliest_due_ms(started(SABRA), NOW + 50_000) == NOW + 120_000
    assert earliest_due_ms(lobby("Ada", ruleset=CLOCKS), NOW) is None
    assert earliest_due_ms(started(room(SABRA, turn_time_limit_seconds=0)), NOW) is None


@pytest.mark.unmeasured
def test_no_turn_is_due_before_the_earliest_time() -> None:
    for seed in range(40):
        rng = random.Random(seed)
        game, now = started(room(EACH_TURN, clock_increment_seconds=rng.choice((0, 3)))), NOW
        look = earliest_due_ms(game, now)
        for _ in range(30):
            at_ms = due_ms(game)
            assert at_ms is not None
            assert look is not None
            assert at_ms + SHORTEST_LOOK_MS >= look
            if now >= look:
                look = earliest_due_ms(game, now)
            now = min(at_ms, now + rng.choice((0, 100, 5_000, 20_000)))
            seat, pool = round_of(game).turn.seat, round_of(game).pool
            action = TimeOut() if now == at_ms else DrawTile(seat) if pool else Pass(seat)
            now += isinstance(action, TimeOut)
            game = do(game, action, now).game
            if not isinstance(game.phase, Playing):
                break
