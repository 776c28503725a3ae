"""Absent players, their bots and their return, and rounds that start by themselves."""

import random
from dataclasses import replace

import pytest

from engine.actions import Action, RenewSeatToken, Resign, ReturnToSeat, StandIn, StartDueRound, StartNextRound, TimeOut
from engine.events import (
    GameEnded,
    PlayerAbsent,
    PlayerResigned,
    PlayerReturned,
    RoundEnded,
    SeatTokenRenewed,
    TurnTimedOut,
)
from engine.game import Finished, Game, Playing, RoundEnd, RoundOver, bots_to_act
from engine.melding.actions import ClaimError, DrawTile, Pass
from engine.melding.events import RoundStarted, TileDrawn, TilesPlayed
from engine.melding.game import rules_of
from engine.melding.ruleset import (
    SABRA,
    MatchEnd,
    Ruleset,
    Teams,
    TurnDraw,
    TurnInvalidSubmission,
    TurnTimeoutDirty,
)
from engine.melding.table import ProposedTable
from engine.room_settings import AbsentAction
from engine.seats import BotLevel
from engine.timers import due_ms, is_due
from engine.turns import Applied, apply, create
from engine.violations import Reason
from support.positions import NOW, do, game_at, is_a, lobby, only_reason, play
from support.random_play import random_shuffle
from support.rooms import Rules, room

ONCE = room(SABRA, absent_after_timeouts=1)
RESIGNS = room(ONCE, absent_action=AbsentAction.RESIGN)
ROUNDS = replace(SABRA, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=3)
SHUFFLE = random_shuffle(SABRA, random.Random(1))
POOL = " ".join(f"{color}{value}" for color in "KOB" for value in range(1, 14))
THREE = f". / 1{{R1 R9}} 2{{R2 R9}} 3{{R3 R9}} / {{{POOL}}} / 1"
TWO = f". / 1{{R1 R9}} 2{{R2 R9}} / {{{POOL}}} / 1"


def late(game: Game, draft: ProposedTable | None = None) -> Applied:
    """Returns the game after what is due in it, a millisecond after that time, given the draft of the turn."""
    at_ms = due_ms(game)
    assert at_ms is not None
    return do(game, TimeOut(draft), at_ms + 1)


def late_by(game: Game, times: int) -> Game:
    for _ in range(times):
        game = late(game).game
    return game


def counts(game: Game) -> list[int]:
    return [player.timeouts_in_a_row for player in game.players]


def absent(game: Game) -> dict[int, BotLevel]:
    return {player.seat: player.stand_in for player in game.players if player.stand_in}


def soon(game: Game) -> int:
    """Returns a time within the turn in progress."""
    return (due_ms(game) or NOW) - 1


def act(game: Game, action: Action) -> Applied:
    return do(game, action, soon(game))


# Counting


def test_time_outs_in_a_row_are_counted_for_each_seat_until_it_acts() -> None:
    game = late_by(game_at(THREE), 4)
    assert counts(game) == [2, 1, 1]
    game = act(game, DrawTile(2)).game
    assert counts(game) == [2, 0, 1]
    assert counts(late(game).game) == [2, 0, 2]


@pytest.mark.parametrize(
    ("ruleset", "action"),
    [
        (SABRA, DrawTile(1)),
        (replace(SABRA, initial_meld_threshold=0), play(1, "[R1 R2 R3]")),
        (replace(SABRA, turn_draw=TurnDraw.TWO_RIVER), DrawTile(1)),
        (replace(SABRA, turn_draw=TurnDraw.UNTIL_PLAYABLE), DrawTile(1)),
        (replace(SABRA, turn_invalid_submission=TurnInvalidSubmission.PENALISE), play(1, "[R1 R2]")),
        (
            replace(SABRA, turn_invalid_submission=TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM),
            play(1, "[R1 R2]"),
        ),
    ],
)
def test_any_action_in_a_turn_restarts_the_count(ruleset: Ruleset, action: Action) -> None:
    game = late_by(game_at(". / 1{R1 R2 R3 R9} 2{R2 R9} / {K1 K2 K3 K4 K5 K6 K7 K8 K9} / 1", ruleset), 2)
    assert counts(game) == [1, 1]
    assert counts(act(game, action).game) == [0, 1]


def test_a_pass_restarts_the_count() -> None:
    game = late(game_at(". / 1{R1 R9} 2{R2 R9} 3{R3 R9} / {} / 1")).game
    players = tuple(replace(player, timeouts_in_a_row=2) for player in game.players)
    assert counts(act(replace(game, players=players), Pass(2)).game) == [2, 0, 2]


def test_a_vote_does_not_restart_the_count() -> None:
    ruleset = replace(SABRA, turn_invalid_submission=TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM)
    shown = act(late(game_at(THREE, ruleset)).game, play(2, "[R2]")).game
    voted = act(shown, ClaimError(1, shown.revision, agrees=False)).game
    assert counts(voted) == [1, 0, 0]


def test_a_draft_that_is_played_in_time_out_is_an_action() -> None:
    commits = room(ONCE, initial_meld_threshold=0, turn_timeout_dirty=TurnTimeoutDirty.COMMIT_IF_VALID_ELSE_REVERT)
    game = game_at(". / 1{R1 R2 R3 R9} 2{R2 R9} / {K1} / 1", commits)
    ended = late(game, play(1, "[R1 R2 R3]").table)
    assert [type(event) for event in ended.events[:2]] == [TurnTimedOut, TilesPlayed]
    assert (counts(ended.game), absent(ended.game)) == ([0, 0], {})


# Absence


def test_a_player_is_absent_after_three_time_outs_in_a_row() -> None:
    game = late_by(game_at(THREE), 6)
    assert absent(game) == {}
    ended = late(game)
    assert PlayerAbsent(1, BotLevel.MEDIUM) in ended.events
    assert absent(ended.game) == {1: BotLevel.MEDIUM}
    assert ended.game.player(1).played_by is BotLevel.MEDIUM


@pytest.mark.parametrize("times", [0, 1, 2, 5])
def test_the_number_of_time_outs_is_an_option_and_0_means_never(times: int) -> None:
    game = game_at(TWO, room(SABRA, absent_after_timeouts=times, penalty_tiles=1))
    for turn in range(1, 7):
        game = late(game).game
        game = act(game, DrawTile(2)).game if not game.player(1).stand_in else game
        assert bool(absent(game)) == (turn >= times > 0)
        if absent(game):
            break


@pytest.mark.parametrize(
    ("action", "level"),
    [
        (AbsentAction.BOT_EASY, BotLevel.EASY),
        (AbsentAction.BOT_MEDIUM, BotLevel.MEDIUM),
        (AbsentAction.BOT_HARD, BotLevel.HARD),
    ],
)
def test_the_bot_that_stands_in_has_the_level_of_the_option(action: AbsentAction, level: BotLevel) -> None:
    ended = late(game_at(THREE, room(ONCE, absent_action=action)))
    assert ended.events[1] == PlayerAbsent(1, level)
    assert absent(ended.game) == {1: level}


def test_off_counts_and_does_nothing() -> None:
    game = late_by(game_at(THREE, room(ONCE, absent_action=AbsentAction.OFF, penalty_tiles=1)), 6)
    assert (counts(game), absent(game)) == ([2, 2, 2], {})


def test_an_absent_player_may_resign_by_the_ruleset() -> None:
    ended = late(game_at(THREE, RESIGNS))
    assert ended.events[1:3] == (PlayerAbsent(1, None), PlayerResigned(1))
    assert ended.game.active_seats == (2, 3)
    assert absent(ended.game) == {}
    last = late(ended.game)
    assert is_a(last.events[-2], RoundEnded).result.end is RoundEnd.RESIGNED
    assert last.events[-1] == GameEnded((3,))
    assert not is_a(last.game.phase, Finished).abandoned


def test_a_bot_is_never_absent() -> None:
    game = game_at(THREE, ONCE)
    bot = replace(game.player(1), bot=BotLevel.HARD)
    ended = late(replace(game, players=(bot, *game.players[1:])))
    assert (counts(ended.game), absent(ended.game)) == ([1, 0, 0], {})


def test_a_stand_in_whose_turn_times_out_goes_on_standing_in() -> None:
    game = late(game_at(THREE, ONCE)).game
    for seat in (2, 3):
        game = act(game, DrawTile(seat)).game
    ended = late(game)
    assert not any(isinstance(event, PlayerAbsent) for event in ended.events)
    assert absent(ended.game) == {1: BotLevel.MEDIUM}


def test_a_stand_in_is_to_act_in_the_seats_turns_and_votes() -> None:
    game = late(game_at(THREE, ONCE)).game
    assert bots_to_act(game) == ()
    for seat in (2, 3):
        game = act(game, DrawTile(seat)).game
    assert bots_to_act(game) == (1,)


def test_a_stand_in_votes() -> None:
    ruleset = room(ONCE, turn_invalid_submission=TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM)
    game = late(game_at(THREE, ruleset)).game
    shown = act(game, play(2, "[R2]")).game
    assert bots_to_act(shown) == (1,)
    voted = act(shown, StandIn(ClaimError(1, shown.revision, agrees=True))).game
    assert (absent(voted), bots_to_act(voted)) == ({1: BotLevel.MEDIUM}, ())


def absent_with_the_turn() -> Game:
    """Returns a game in which seat 1 is absent and has the turn."""
    game = late(game_at(THREE, ONCE)).game
    for seat in (2, 3):
        game = act(game, DrawTile(seat)).game
    return game


def test_a_stand_in_acts_and_the_player_stays_absent() -> None:
    drawn = act(absent_with_the_turn(), StandIn(DrawTile(1)))
    assert isinstance(drawn.events[0], TileDrawn)
    assert (counts(drawn.game)[0], absent(drawn.game)) == (0, {1: BotLevel.MEDIUM})


def test_a_bot_stands_in_for_absent_players_only() -> None:
    assert only_reason(game_at(THREE), StandIn(DrawTile(1))) is Reason.PLAYER_NOT_ABSENT
    assert only_reason(absent_with_the_turn(), StandIn(Pass(1))) is Reason.PASS_NOT_ALLOWED_POOL_NOT_EMPTY


# Returning


def test_a_player_returns_to_the_seat_at_any_time() -> None:
    for game in (absent_with_the_turn(), late(game_at(THREE, ONCE)).game):
        returned = act(game, ReturnToSeat(1))
        assert returned.events == (PlayerReturned(1),)
        assert (absent(returned.game), counts(returned.game)[0]) == ({}, 0)
        assert bots_to_act(returned.game) == ()
        assert due_ms(returned.game) == due_ms(game)


def test_a_player_returns_by_taking_the_turn() -> None:
    drawn = act(absent_with_the_turn(), DrawTile(1))
    assert drawn.events[0] == PlayerReturned(1)
    assert isinstance(drawn.events[1], TileDrawn)
    assert absent(drawn.game) == {}


def test_a_refused_action_is_no_return() -> None:
    game = absent_with_the_turn()
    assert only_reason(game, Pass(1), soon(game)) is Reason.PASS_NOT_ALLOWED_POOL_NOT_EMPTY
    assert absent(game) == {1: BotLevel.MEDIUM}


def test_an_illegal_play_with_consequences_is_a_return() -> None:
    game = absent_with_the_turn()
    rules = replace(rules_of(game), turn_invalid_submission=TurnInvalidSubmission.PENALISE)
    penalizing = replace(game, ruleset=rules)
    penalized = act(penalizing, play(1, "[R1]"))
    assert penalized.violations
    assert penalized.events[0] == PlayerReturned(1)


def test_an_absent_player_who_resigns_does_not_return() -> None:
    resigned = act(absent_with_the_turn(), Resign(1))
    assert resigned.events[0] == PlayerResigned(1)
    assert (absent(resigned.game), resigned.game.active_seats) == ({}, (2, 3))
    assert only_reason(resigned.game, ReturnToSeat(1), soon(resigned.game)) is Reason.PLAYER_RESIGNED


def test_an_absent_player_whose_token_another_reissues_does_not_return() -> None:
    game = absent_with_the_turn()
    assert act(game, RenewSeatToken(1)).events == (PlayerReturned(1), SeatTokenRenewed(1))
    assert act(game, RenewSeatToken(1, is_reissued=True)).events == (SeatTokenRenewed(1),)


def test_only_absent_players_of_a_running_game_return() -> None:
    assert only_reason(lobby("Ada", "Ben"), ReturnToSeat(1)) is Reason.GAME_NOT_STARTED
    assert only_reason(game_at(THREE), ReturnToSeat(2)) is Reason.PLAYER_NOT_ABSENT
    finished = do(game_at(TWO), Resign(2)).game
    assert only_reason(finished, ReturnToSeat(1)) is Reason.GAME_OVER


# All people absent


def test_a_game_is_abandoned_when_all_people_are_absent() -> None:
    game = late_by(game_at(THREE, ONCE), 2)
    ended = late(game)
    assert ended.events[1:] == (PlayerAbsent(3, BotLevel.MEDIUM), GameEnded((), abandoned=True))
    assert is_a(ended.game.phase, Finished).abandoned
    assert ended.game.results == ()


def test_bots_do_not_play_on_alone_for_absent_people() -> None:
    game = game_at(THREE, ONCE)
    bots = tuple(replace(player, bot=BotLevel.EASY) for player in game.players[1:])
    ended = late(replace(game, players=(game.players[0], *bots)))
    assert ended.events[-1] == GameEnded((), abandoned=True)


def test_the_totals_of_finished_rounds_say_who_wins_an_abandoned_game() -> None:
    over = do(game_at("[R3 R4 R5] / 1*{R6} 2{R9} 3{K9} / {K1} / 1", room(ROUNDS, absent_after_timeouts=1)), GOES_OUT)
    assert isinstance(over.game.phase, RoundOver)
    game = late_by(act(over.game, StartNextRound(2, SHUFFLE)).game, 2)
    ended = late(game)
    assert ended.events[-1] == GameEnded((1,), abandoned=True)
    assert len(ended.game.results) == 1


GOES_OUT = play(1, "[R3 R4 R5 R6]")


def test_the_last_people_present_may_leave_the_rest_absent_by_resigning() -> None:
    game = late_by(game_at(THREE, ONCE), 2)
    assert set(absent(game)) == {1, 2}
    resigned = act(game, Resign(3))
    assert resigned.events == (PlayerResigned(3), GameEnded((), abandoned=True))


def test_the_last_player_left_wins_although_absent() -> None:
    game = late(game_at(TWO, ONCE)).game
    resigned = act(game, Resign(2))
    assert resigned.events[-1] == GameEnded((1,))


def test_the_last_team_left_wins_although_absent() -> None:
    position = ". / 1{R1 R9} 2{R2 R9} 3{R3 R9} 4{R4 R9} / {K1 K2 K3 K4 K5 K6 K7 K8 K9} / 1"
    game = game_at(position, room(ONCE, teams=Teams.PAIRS, players_min=4, players_max=4))
    game = late_by(game, 1)
    game = act(game, Resign(2)).game
    game = late(game).game
    assert set(absent(game)) == {1, 3}
    ended = act(game, Resign(4))
    assert ended.events[-1] == GameEnded((1, 3))


def round_over(ruleset: Rules = ROUNDS) -> Game:
    """Returns a game of several rounds after the first."""
    return do(game_at("[R3 R4 R5] / 1*{R6} 2{R9} 3{K9} / {K1} / 1", ruleset), GOES_OUT).game


def test_between_rounds_resigning_may_leave_only_absent_people() -> None:
    game = round_over()
    away = tuple(replace(player, stand_in=BotLevel.EASY) for player in game.players[:2])
    resigned = do(replace(game, players=(*away, game.players[2])), Resign(3))
    assert resigned.events == (PlayerResigned(3), GameEnded((1,), abandoned=True))


def test_an_absent_player_returns_between_rounds() -> None:
    game = round_over()
    away = replace(game.players[0], stand_in=BotLevel.EASY, timeouts_in_a_row=3)
    game = replace(game, players=(away, *game.players[1:]))
    returned = do(game, ReturnToSeat(1))
    assert (absent(returned.game), type(returned.game.phase)) == ({}, RoundOver)
    started = do(game, StartNextRound(1, SHUFFLE))
    assert [type(event) for event in started.events[:2]] == [PlayerReturned, RoundStarted]


# The pause between rounds


def test_the_next_round_is_due_after_the_pause() -> None:
    game = round_over()
    assert is_a(game.phase, RoundOver).next_round_ms == NOW + 30_000 == due_ms(game)
    assert not is_due(game, NOW + 30_000)
    assert is_due(game, NOW + 30_001)
    started = do(game, StartDueRound(SHUFFLE), NOW + 30_001)
    assert isinstance(started.events[0], RoundStarted)
    assert is_a(started.game.phase, Playing).round.number == 2


def test_a_pause_of_0_seconds_ends_only_by_a_player() -> None:
    game = round_over(room(ROUNDS, round_pause_seconds=0))
    assert is_a(game.phase, RoundOver).next_round_ms is None
    assert due_ms(game) is None
    assert not is_due(game, NOW + 10**9)
    with pytest.raises(ValueError, match="no round is due"):
        apply(game, StartDueRound(SHUFFLE), NOW + 10**9)


def test_a_player_may_start_the_next_round_earlier_and_later() -> None:
    for now_ms in (NOW, NOW + 40_000):
        started = do(round_over(), StartNextRound(2, SHUFFLE), now_ms)
        assert is_a(started.game.phase, Playing).round.number == 2


def test_only_a_pause_that_has_passed_ends() -> None:
    for game in (round_over(), game_at(TWO), create(SABRA).game):
        with pytest.raises(ValueError, match="no round is due"):
            apply(game, StartDueRound(SHUFFLE), NOW)


def test_the_last_round_is_followed_by_no_pause() -> None:
    ended = do(game_at("[R3 R4 R5] / 1*{R6} 2{R9} / {K1} / 1"), GOES_OUT)
    assert is_a(ended.events[-2], RoundEnded).next_round_ms is None
    assert due_ms(ended.game) is None


def test_a_turn_without_a_limit_is_never_due() -> None:
    game = game_at(TWO, room(SABRA, turn_time_limit_seconds=0))
    assert due_ms(game) is None
    assert not is_due(game, NOW + 10**9)
