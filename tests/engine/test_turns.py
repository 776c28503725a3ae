import random
from dataclasses import replace

import pytest

from engine.actions import Action, Join, Leave, Resign, StartGame, StartNextRound, TimeOut
from engine.deal import Shuffle
from engine.events import (
    Event,
    GameCreated,
    GameEnded,
    PlayerJoined,
    PlayerLeft,
    PlayerResigned,
    RoundEnded,
    TurnStarted,
    TurnTimedOut,
)
from engine.game import (
    Finished,
    Game,
    Lobby,
    Playing,
    RoundEnd,
    RoundOver,
    is_expired,
    next_seat,
)
from engine.melding.actions import DrawTile, LayOnRiver, Pass, PlayTiles
from engine.melding.deal import turn_order
from engine.melding.events import RoundStarted, StartDraw, TileDrawn, TilesPlayed, TurnPassed
from engine.melding.game import round_of
from engine.melding.melds import ProposedMeld
from engine.melding.notation import parse_melds
from engine.melding.round import MeldingRound as Round
from engine.melding.ruleset import SABRA, MatchEnd, Ruleset, ScoreBlockedPoints, TurnDirection
from engine.notation import parse_rack, parse_tile, parse_tiles
from engine.replay import advance, replay
from engine.seats import HOST, BotLevel, Rack, Turn
from engine.tiles import Tile, tile_set
from engine.turns import apply, create
from engine.violations import Reason, Violation
from support.invariants import shuffle_hidden
from support.positions import NAMES, NOW, do, game_at, is_a, lobby, only_reason, play, position, refusal
from support.random_play import random_shuffle
from support.rooms import room

BACKWARD = replace(SABRA, turn_direction=TurnDirection.COUNTERCLOCKWISE)
UNTIMED = room(SABRA, turn_time_limit_seconds=0)
TWO_ROUNDS = replace(SABRA, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2)
TARGET_40 = replace(SABRA, match_end=MatchEnd.TARGET_SCORE, match_target_score=40)
ROUND_A_PLAYER = replace(SABRA, match_end=MatchEnd.ROUNDS_PER_PLAYER)
SHUFFLE = random_shuffle(SABRA, random.Random(1))


def round_ended(events: tuple[Event, ...]) -> RoundEnded:
    (ended,) = (event for event in events if isinstance(event, RoundEnded))
    return ended


def points(events: tuple[Event, ...]) -> list[int]:
    return [seat.points for seat in round_ended(events).result.seats]


# The lobby


def test_a_game_begins_empty_in_the_lobby() -> None:
    created = create(TWO_ROUNDS)
    assert created.events == (GameCreated(TWO_ROUNDS),)
    assert created.game == Game(TWO_ROUNDS, revision=1, players=(), phase=Lobby(), results=())
    assert created.game.round is None


def test_players_take_the_lowest_free_seat() -> None:
    game = lobby("Ada", "Ben", "Cleo")
    left = do(game, Leave(2))
    assert left.events == (PlayerLeft(2),)
    joined = do(left.game, Join("Dan"))
    assert joined.events == (PlayerJoined(2, "Dan"),)
    assert [(p.seat, p.name) for p in joined.game.players] == [(1, "Ada"), (2, "Dan"), (3, "Cleo")]


def test_a_full_lobby_refuses_players() -> None:
    duel = replace(SABRA, players_max=2)
    assert refusal(lobby("Ada", "Ben", ruleset=duel), Join("Cleo")).violations == (
        Violation(Reason.GAME_FULL, metadata=(("players_max", 2),)),
    )
    assert only_reason(lobby(*NAMES), Join("Eve")) is Reason.GAME_FULL


def test_a_name_is_taken_once() -> None:
    assert only_reason(lobby("Ada"), Join("Ada")) is Reason.PLAYER_ALREADY_JOINED
    do(do(lobby("Ada"), Leave(1)).game, Join("Ada"))


def test_a_game_needs_enough_players_to_start() -> None:
    assert refusal(lobby("Ada"), StartGame(1, SHUFFLE)).violations == (
        Violation(Reason.TOO_FEW_PLAYERS, metadata=(("players", 1), ("players_min", 2))),
    )
    trio = replace(SABRA, players_min=3)
    assert only_reason(lobby("Ada", "Ben", ruleset=trio), StartGame(1, SHUFFLE)) is Reason.TOO_FEW_PLAYERS


# The start of a round


@pytest.mark.parametrize("players", [2, 3, 4])
def test_each_player_is_dealt_14_tiles_and_the_rest_is_the_pool(players: int) -> None:
    started = do(lobby(*NAMES[:players]), StartGame(1, SHUFFLE))
    dealt = is_a(started.events[0], RoundStarted)
    assert dealt.number == 1
    for place, rack in enumerate(dealt.racks):
        assert rack == Rack(place + 1, tuple(sorted(SHUFFLE.deal[place * 14 : place * 14 + 14])), has_melded=False)
    assert dealt.pool == SHUFFLE.deal[14 * players :]
    assert len(dealt.pool) == {2: 78, 3: 64, 4: 50}[players]
    assert started.events[1:] == (TurnStarted(Turn(dealt.order[0], NOW + 120_000, started.game.revision)),)
    round_ = round_of(started.game)
    assert (round_.table, round_.passed, round_.turn.seat) == ((), (), dealt.order[0])
    assert round_.tiles == tile_set(4, 2, 2)


def test_without_a_limit_a_turn_has_no_deadline() -> None:
    started = do(lobby("Ada", "Ben", ruleset=UNTIMED), StartGame(1, SHUFFLE)).game
    assert is_a(started.phase, Playing).round.turn.deadline_ms is None
    assert not is_expired(started, 10**15)


def test_the_start_draw_is_made_from_its_own_shuffle() -> None:
    order = sorted(SHUFFLE.start_draw)
    ascending = Shuffle((order[0], order[5], *order[1:5], *order[6:]), SHUFFLE.deal)
    dealt = is_a(do(lobby("Ada", "Ben"), StartGame(1, ascending)).events[0], RoundStarted)
    assert dealt.order == (2, 1)
    assert dealt.draws == (StartDraw(1, parse_tile("R1")), StartDraw(2, parse_tile("R3")))
    assert len(dealt.pool) == 78


@pytest.mark.parametrize("wrong", [SHUFFLE.deal[1:], (*SHUFFLE.deal[1:], SHUFFLE.deal[1]), tile_set(4, 2, 4)])
def test_a_shuffle_of_other_tiles_is_the_callers_fault(wrong: tuple[int, ...]) -> None:
    game = lobby("Ada", "Ben")
    for shuffle in (Shuffle(wrong, SHUFFLE.deal), Shuffle(SHUFFLE.deal, wrong)):  # type: ignore[arg-type] # any tiles
        with pytest.raises(ValueError, match="a shuffle must contain exactly the tiles of the tile set"):
            apply(game, StartGame(1, shuffle), NOW)


# Turns


def test_a_play_moves_tiles_from_the_rack_to_the_table_and_ends_the_turn() -> None:
    game = game_at("[R4 R5 R6] / 1*{R7 B1} 2{K1} / {O9} / 1", passed=(2,))
    played = do(game, play(1, "[R4 R5 R6 R7]"), NOW + 5000)
    assert position(played.game) == "[R4 R5 R6 R7] / 1*{B1} 2{K1} / {O9} / 2"
    assert played.events == (
        TilesPlayed(1, parse_tiles("R7"), is_a(played.game.round, Round).table, points=7),
        TurnStarted(Turn(2, NOW + 125_000, played.game.revision)),
    )
    assert is_a(played.game.round, Round).passed == ()


def test_the_initial_meld_is_remembered() -> None:
    game = game_at(". / 1{B10 K10 O10 O1} 2{K1} / {O9} / 1")
    assert position(do(game, play(1, "[B10 K10 O10]")).game) == "[B10 K10 O10] / 1*{O1} 2{K1} / {O9} / 2"


def test_an_illegal_play_is_refused_with_all_its_violations() -> None:
    game = game_at("[R4 R5 R6] / 1*{R7 B1} 2{K1} / {O9} / 1")
    violations = refusal(game, play(1, "[R5 R6] | [B1 B2]")).violations
    assert [(v.reason.name, v.subject) for v in violations] == [
        ("TILE_NOT_IN_RACK", "play.table"),
        ("TABLE_TILE_MISSING", "play.table"),
        ("MELD_TOO_SHORT", "play.table[0]"),
        ("MELD_TOO_SHORT", "play.table[1]"),
    ]


def test_a_play_of_more_tiles_than_the_fast_judge_counts_is_refused() -> None:
    game = game_at("[R1 R2 R3] / 1*{R4 B1} 2{B2} / {B3} / 1")
    table = (ProposedMeld(parse_tiles("R1 R2 R3 R4")), *[ProposedMeld(parse_tiles("B1"))] * 200)
    assert {violation.reason for violation in refusal(game, PlayTiles(1, table)).violations} == {
        Reason.TILE_DUPLICATED,
        Reason.MELD_TOO_SHORT,
    }


def test_a_refusal_tells_nothing_of_where_a_tile_is() -> None:
    rng = random.Random(3)
    game = game_at("[R4 R5 R6] / 1*{R7 B1} 2{K1 R8 R9 O9} / {O9 B8 B9 O8 B8} / 1")
    round_ = is_a(game.round, Round)
    answers = set()
    for _ in range(20):
        racks, pool = shuffle_hidden(round_.racks, round_.pool, 1, rng)
        other = replace(game, phase=Playing(replace(round_, racks=racks, pool=pool)))
        answers.add(refusal(other, play(1, "[R4 R5 R6 R7 R8 R9]")))
    (answer,) = answers
    assert answer.violations == (Violation(Reason.TILE_NOT_IN_RACK, "play.table", parse_tiles("R8 R9")),)


def test_drawing_takes_the_next_tile_of_the_pool_and_ends_the_turn() -> None:
    drawn = do(game_at(". / 1*{R7 B1} 2{K1} / {O9 R1} / 1", passed=(2,)), DrawTile(1))
    assert drawn.events == (TileDrawn(1, parse_tile("O9")), TurnStarted(Turn(2, NOW + 120_000, drawn.game.revision)))
    assert position(drawn.game) == ". / 1*{R7 B1 O9} 2{K1} / {R1} / 2"
    assert is_a(drawn.game.round, Round).passed == ()


def test_the_pool_decides_between_drawing_and_passing() -> None:
    empty, full = ". / 1{R7} 2{K1} / {} / 1", ". / 1{R7} 2{K1} / {B1} / 1"
    assert only_reason(game_at(empty), DrawTile(1)) is Reason.POOL_EMPTY
    assert only_reason(game_at(full), Pass(1)) is Reason.PASS_NOT_ALLOWED_POOL_NOT_EMPTY
    passed = do(game_at(empty), Pass(1))
    assert passed.events == (TurnPassed(1), TurnStarted(Turn(2, NOW + 120_000, passed.game.revision)))
    assert is_a(passed.game.round, Round).passed == (1,)
    assert position(passed.game) == ". / 1{R7} 2{K1} / {} / 2"


@pytest.mark.parametrize(("pool", "drawn"), [("O9 R1 B2 K3", "O9 R1 B2"), ("O9 R1 B2", "O9 R1 B2"), ("O9", "O9")])
def test_an_unfinished_table_costs_three_tiles_or_the_rest_of_the_pool(pool: str, drawn: str) -> None:
    game = game_at(f"[R4 R5 R6] / 1*{{R7 B1}} 2{{K1}} / {{{pool}}} / 1", passed=(2,))
    timed_out = do(game, TimeOut(parse_melds("[R4 R5] | [R6]")), NOW + 120_001)
    started = TurnStarted(Turn(2, NOW + 240_001, timed_out.game.revision))
    assert timed_out.events == (TurnTimedOut(1, parse_tiles(drawn)), started)
    round_ = is_a(timed_out.game.round, Round)
    assert round_.rack(1) == Rack(1, parse_rack(f"{{R7 B1 {drawn}}}"), has_melded=True)
    assert round_.table == is_a(game.round, Round).table
    assert len(round_.pool) == max(0, len(parse_tiles(pool)) - 3)
    assert round_.passed == ()


def test_a_time_out_with_an_empty_pool_counts_as_a_pass() -> None:
    first = do(game_at(". / 1{R7} 2{K1} / {} / 1"), TimeOut(), NOW + 120_001)
    assert first.events == (TurnTimedOut(1, ()), TurnStarted(Turn(2, NOW + 240_001, first.game.revision)))
    assert is_a(first.game.round, Round).passed == (1,)
    second = do(first.game, Pass(2), NOW + 120_002)
    assert round_ended(second.events).result.end is RoundEnd.BLOCKED


def test_a_turn_ends_after_its_deadline_not_at_it() -> None:
    game = game_at(". / 1{R7} 2{K1} / {O9} / 1")
    do(game, DrawTile(1), NOW + 120_000)
    for action in (DrawTile(1), Pass(1), play(1, "[R7]"), DrawTile(2)):
        assert only_reason(game, action, NOW + 120_001) is Reason.TURN_TIMED_OUT
    assert not is_expired(game, NOW + 120_000)
    assert is_expired(game, NOW + 120_001)


@pytest.mark.parametrize("ruleset", [SABRA, UNTIMED])
def test_a_time_out_that_is_not_due_is_the_callers_fault(ruleset: Ruleset) -> None:
    with pytest.raises(ValueError, match="no turn has passed its deadline"):
        apply(game_at(". / 1{R7} 2{K1} / {O9} / 1", ruleset), TimeOut(), NOW + 120_000)


def test_there_is_no_time_out_between_rounds() -> None:
    game = do(game_at("[R4 R5 R6] / 1*{R7} 2{K1} / {} / 1", TWO_ROUNDS), play(1, "[R4 R5 R6 R7]")).game
    assert not is_expired(game, NOW * 1000)
    with pytest.raises(ValueError, match="no turn has passed its deadline"):
        apply(game, TimeOut(), NOW * 1000)


@pytest.mark.parametrize(
    ("ruleset", "turn", "following"),
    [(SABRA, 1, 2), (SABRA, 2, 3), (SABRA, 3, 1), (BACKWARD, 1, 3), (BACKWARD, 3, 2), (BACKWARD, 2, 1)],
)
def test_the_turn_goes_around_the_table(ruleset: Ruleset, turn: int, following: int) -> None:
    game = game_at(f". / 1{{R7}} 2{{K1}} 3{{B1}} / {{O9}} / {turn}", ruleset)
    assert next_seat(game, is_a(game.round, Round)) == following
    assert is_a(do(game, DrawTile(turn)).game.round, Round).turn.seat == following


def test_turn_order_begins_with_a_seat_or_the_next_after_it() -> None:
    assert turn_order((1, 2, 3, 4), 3, TurnDirection.CLOCKWISE) == (3, 4, 1, 2)
    assert turn_order((1, 2, 4), 3, TurnDirection.CLOCKWISE) == (4, 1, 2)
    assert turn_order((1, 2, 3, 4), 3, TurnDirection.COUNTERCLOCKWISE) == (3, 2, 1, 4)
    assert turn_order((1, 3, 4), 2, TurnDirection.COUNTERCLOCKWISE) == (1, 4, 3)


# The end of a round


def test_a_player_without_tiles_goes_out() -> None:
    played = do(game_at("[R4 R5 R6] / 1*{R7} 2{K1 J} 3{B9} / {O9} / 1"), play(1, "[R4 R5 R6 R7]"))
    assert [type(event) for event in played.events] == [TilesPlayed, RoundEnded, GameEnded]
    result = round_ended(played.events).result
    assert (result.number, result.end, result.winners) == (1, RoundEnd.WENT_OUT, (1,))
    assert points(played.events) == [40, -31, -9]
    assert played.game.results == (result,)
    assert [player.total_points for player in played.game.players] == [40, -31, -9]
    assert is_a(played.game.phase, Finished).winners == (1,)
    assert position(played.game) == "[R4 R5 R6 R7] / 1*{} 2{K1 J} 3{B9} / {O9} / 1"


def test_a_player_may_go_out_with_the_initial_meld() -> None:
    played = do(game_at(". / 1{B10 K10 O10} 2{K1} / {O9} / 1"), play(1, "[B10 K10 O10]"))
    assert round_ended(played.events).result.end is RoundEnd.WENT_OUT


def test_a_round_is_blocked_when_all_have_passed_in_a_row() -> None:
    game = game_at(". / 1{R7 R1} 2{K1} 3{B9} / {} / 2")
    game = do(game, Pass(2)).game
    game = do(game, Pass(3)).game
    blocked = do(game, Pass(1))
    assert [type(event) for event in blocked.events] == [TurnPassed, RoundEnded, GameEnded]
    assert round_ended(blocked.events).result.end is RoundEnd.BLOCKED
    assert points(blocked.events) == [-7, 15, -8]


def test_a_play_between_passes_begins_the_circle_anew() -> None:
    game = game_at("[R4 R5 R6] / 1*{R7 R1} 2{K1} / {} / 2")
    game = do(do(game, Pass(2)).game, play(1, "[R4 R5 R6 R7]")).game
    game = do(game, Pass(2)).game
    assert isinstance(game.phase, Playing)
    assert round_ended(do(game, Pass(1)).events).result.end is RoundEnd.BLOCKED


def test_the_results_of_a_round_are_by_seat() -> None:
    game = game_at(". / 1{R7} 2{K7} 3{B9} / {} / 2", starter=3, passed=(1, 3))
    result = round_ended(do(game, Pass(2)).events).result
    assert [seat.seat for seat in result.seats] == [1, 2, 3]
    assert result.winners == (1, 2)


@pytest.mark.parametrize(
    ("ruleset", "starter", "won"),
    [(SABRA, 1, (2, 1)), (SABRA, 2, (1, 2)), (BACKWARD, 2, (1, 2)), (SABRA, 3, (2, 1)), (BACKWARD, 3, (1, 2))],
)
def test_the_odd_point_of_a_shared_win_goes_to_the_earliest_in_turn_order(
    ruleset: Ruleset, starter: int, won: tuple[int, int]
) -> None:
    game = game_at(". / 1{R7} 2{K7} 3{B10} / {} / 2", ruleset, starter=starter, passed=(1, 3))
    assert points(do(game, Pass(2)).events) == [*won, -3]


# Resigning


def test_resigning_on_turn_passes_the_turn_on() -> None:
    resigned = do(game_at(". / 1{R7} 2{K1} 3{B9} / {O9} / 2"), Resign(2), NOW + 7)
    assert resigned.events == (PlayerResigned(2), TurnStarted(Turn(3, NOW + 120_007, resigned.game.revision)))
    assert resigned.game.active_seats == (1, 3)
    assert position(resigned.game) == ". / 1{R7} 2{K1} 3{B9} / {O9} / 3"
    assert is_a(do(resigned.game, DrawTile(3)).game.round, Round).turn.seat == 1


def test_resigning_off_turn_leaves_the_turn_as_it_is() -> None:
    resigned = do(game_at(". / 1{R7} 2{K1} 3{B9} / {O9} / 2"), Resign(3), NOW + 7)
    assert resigned.events == (PlayerResigned(3),)
    assert is_a(resigned.game.round, Round).turn == Turn(2, NOW + 120_000)
    assert is_a(do(resigned.game, DrawTile(2)).game.round, Round).turn.seat == 1


def test_resigning_needs_no_turn_in_time() -> None:
    assert do(game_at(". / 1{R7} 2{K1} 3{B9} / {O9} / 2"), Resign(2), NOW + 999_999).events[0] == PlayerResigned(2)


@pytest.mark.parametrize("resigning", [1, 2])
def test_the_last_player_left_wins_round_and_game(resigning: int) -> None:
    resigned = do(game_at(". / 1{R7} 2{K1 J} / {O9} / 2", TWO_ROUNDS), Resign(resigning))
    winner = 3 - resigning
    assert [type(event) for event in resigned.events] == [PlayerResigned, RoundEnded, GameEnded]
    result = round_ended(resigned.events).result
    assert (result.end, result.winners) == (RoundEnd.RESIGNED, (winner,))
    lost = {1: 7, 2: 31}[resigning]
    assert points(resigned.events) == ([-lost, lost] if resigning == 1 else [lost, -lost])
    assert is_a(resigned.game.phase, Finished).winners == (winner,)


def test_the_last_player_left_wins_the_game_against_higher_totals() -> None:
    game = game_at(". / 1{R7} 2{K1} / {O9} / 2")
    game = replace(game, players=(replace(game.players[0], total_points=500), game.players[1]))
    assert is_a(do(game, Resign(1)).game.phase, Finished).winners == (2,)


def test_resigning_can_complete_a_circle_of_passes() -> None:
    game = game_at(". / 1{R7} 2{K1} 3{B9} / {} / 2", passed=(1, 3))
    resigned = do(game, Resign(2))
    result = round_ended(resigned.events).result
    assert (result.end, result.winners) == (RoundEnd.BLOCKED, (1,))
    assert points(resigned.events) == [2, 0, -2]


def test_the_passes_of_the_others_still_count_after_a_resignation() -> None:
    game = do(game_at(". / 1{R7} 2{K1} 3{B9} / {} / 2", passed=(1, 3)), Resign(1)).game
    assert isinstance(game.phase, Playing)
    assert round_ended(do(game, Pass(2)).events).result.end is RoundEnd.BLOCKED


def test_a_resigned_player_is_scored_but_cannot_win_a_blocked_round() -> None:
    game = do(game_at(". / 1{R7} 2{K1} 3{B9} / {} / 2"), Resign(2)).game
    game = do(game, Pass(3)).game
    blocked = do(game, Pass(1))
    assert round_ended(blocked.events).result.winners == (1,)
    assert points(blocked.events) == [2, 0, -2]


def test_a_resigned_player_pays_their_rack_value_when_another_goes_out() -> None:
    game = do(game_at("[R4 R5 R6] / 1*{R7} 2{K1 J} 3{B9} / {O9} / 1"), Resign(2)).game
    out = do(game, play(1, "[R4 R5 R6 R7]"))
    assert points(out.events) == [40, -31, -9]
    assert [player.total_points for player in out.game.players] == [40, -31, -9]


def over(ruleset: Ruleset = TWO_ROUNDS) -> Game:
    """Returns a game of three after its first round, which seat 1 won by 40 points."""
    game = game_at("[R4 R5 R6] / 1*{R7} 2{K1 J} 3{B9} / {O9} / 1", ruleset)
    return do(game, play(1, "[R4 R5 R6 R7]")).game


def test_resigning_between_rounds_leaves_the_others_to_play_on() -> None:
    resigned = do(over(), Resign(1))
    assert resigned.events == (PlayerResigned(1),)
    assert isinstance(resigned.game.phase, RoundOver)
    assert only_reason(resigned.game, StartNextRound(1, SHUFFLE)) is Reason.PLAYER_RESIGNED
    dealt = is_a(do(resigned.game, StartNextRound(3, SHUFFLE)).events[0], RoundStarted)
    assert [rack.seat for rack in dealt.racks] == [2, 3]
    assert len(dealt.pool) == 78


def test_the_last_one_left_between_rounds_wins_the_game() -> None:
    game = do(over(), Resign(1)).game
    resigned = do(game, Resign(3))
    assert resigned.events == (PlayerResigned(3), GameEnded((2,)))
    assert is_a(resigned.game.phase, Finished).winners == (2,)
    assert len(resigned.game.results) == 1


def with_bots(game: Game, *seats: int) -> Game:
    players = tuple(replace(p, bot=BotLevel.EASY) if p.seat in seats else p for p in game.players)
    return replace(game, players=players)


def test_a_game_left_to_its_bots_between_rounds_ends() -> None:
    resigned = do(with_bots(over(), 2, 3), Resign(1))
    assert resigned.events == (PlayerResigned(1), GameEnded((3,)))
    assert isinstance(do(with_bots(over(), 3), Resign(1)).game.phase, RoundOver)


def test_a_game_left_to_its_bots_ends_with_their_round() -> None:
    table = "[R4 R5 R6] / 1{R9} 2*{R7} 3*{K1 J} / {O9} / 1"
    left = do(with_bots(game_at(table, TWO_ROUNDS), 2, 3), Resign(1))
    assert left.events == (PlayerResigned(1), TurnStarted(Turn(2, NOW + 120_000, left.game.revision)))
    out = do(left.game, play(2, "[R4 R5 R6 R7]"))
    assert round_ended(out.events).result.end is RoundEnd.WENT_OUT
    assert out.events[-1] == GameEnded((2,))
    goes_on = do(with_bots(game_at(table.replace("O9} / 1", "O9} / 2"), TWO_ROUNDS), 2, 3), play(2, "[R4 R5 R6 R7]"))
    assert isinstance(goes_on.game.phase, RoundOver)


# Rounds and games


def test_a_game_of_fixed_rounds_goes_on_with_its_totals_until_the_last() -> None:
    game = over()
    assert isinstance(game.phase, RoundOver)
    assert [player.total_points for player in game.players] == [40, -31, -9]
    started = do(game, StartNextRound(2, SHUFFLE))
    assert is_a(started.events[0], RoundStarted).number == 2
    round_ = round_of(started.game)
    assert (round_.number, round_.table, round_.passed) == (2, (), ())
    assert not any(rack.has_melded for rack in round_.racks)
    near_end = game_at("[R4 R5 R6] / 1{K1} 2*{R7} 3{B2} / {O9} / 2", TWO_ROUNDS).phase
    second = replace(is_a(near_end, Playing).round, number=2)
    ended = do(replace(started.game, phase=Playing(second)), play(2, "[R4 R5 R6 R7]"))
    assert [type(event) for event in ended.events] == [TilesPlayed, RoundEnded, GameEnded]
    assert [player.total_points for player in ended.game.players] == [39, -28, -11]
    assert [result.number for result in ended.game.results] == [1, 2]
    assert is_a(ended.game.phase, Finished).winners == (1,)


@pytest.mark.parametrize(
    ("ruleset", "finished"),
    [
        (SABRA, True),
        (TWO_ROUNDS, False),
        (replace(TWO_ROUNDS, match_rounds=1), True),
        (TARGET_40, True),
        (replace(TARGET_40, match_target_score=41), False),
        (ROUND_A_PLAYER, False),
    ],
)
def test_whether_a_game_ends_after_its_first_round(ruleset: Ruleset, finished: bool) -> None:
    assert isinstance(over(ruleset).phase, Finished if finished else RoundOver)


def test_a_game_of_a_round_a_player_has_as_many_rounds_as_players() -> None:
    game = game_at("[R4 R5 R6] / 1*{R7} 2{K1 J} 3{B9} / {O9} / 1", ROUND_A_PLAYER)
    for number, finished in ((2, False), (3, True)):
        now = replace(game, phase=Playing(replace(is_a(game.round, Round), number=number)))
        ended = do(now, play(1, "[R4 R5 R6 R7]")).game
        assert isinstance(ended.phase, Finished) == finished


def test_players_of_equal_totals_win_together() -> None:
    normal = replace(SABRA, score_blocked_points=ScoreBlockedPoints.NORMAL)
    game = game_at(". / 1{R7} 2{K7} 3{B10} / {} / 2", normal, passed=(1, 3))
    assert is_a(do(game, Pass(2)).game.phase, Finished).winners == (1, 2)


# Refusals by state


ACTS = (DrawTile(1), Pass(1), PlayTiles(1, ()))


@pytest.mark.parametrize("action", [*ACTS, Resign(1), StartNextRound(1, SHUFFLE)])
def test_the_lobby_has_no_turns(action: Action) -> None:
    assert only_reason(lobby("Ada", "Ben"), action) is Reason.GAME_NOT_STARTED


@pytest.mark.parametrize("action", [Join("Eve"), Leave(1), StartGame(1, SHUFFLE)])
def test_a_started_game_has_no_lobby(action: Action) -> None:
    for game in (game_at(". / 1{R7} 2{K1} / {O9} / 1"), over(), over(SABRA)):
        assert only_reason(game, action) is Reason.GAME_ALREADY_STARTED


@pytest.mark.parametrize("action", ACTS)
def test_between_rounds_there_are_no_turns(action: Action) -> None:
    assert only_reason(over(), action) is Reason.ROUND_OVER


@pytest.mark.parametrize("action", [*ACTS, Resign(1), StartNextRound(1, SHUFFLE)])
def test_a_finished_game_takes_no_action(action: Action) -> None:
    assert only_reason(over(SABRA), action) is Reason.GAME_OVER


def test_a_round_in_progress_has_no_next_round() -> None:
    assert only_reason(game_at(". / 1{R7} 2{K1} / {O9} / 1"), StartNextRound(1, SHUFFLE)) is Reason.ROUND_IN_PROGRESS


@pytest.mark.parametrize("action", [DrawTile(2), Pass(2), PlayTiles(2, ()), LayOnRiver(2, Tile(1))])
def test_only_the_player_to_move_may_act(action: Action) -> None:
    violations = refusal(game_at(". / 1{R7} 2{K1} / {O9} / 1"), action).violations
    assert violations == (Violation(Reason.NOT_YOUR_TURN, metadata=(("seat", 1),)),)
    assert refusal(game_at(". / 1{R7} 2{K1} / {O9} / 1"), action).reason is Reason.NOT_YOUR_TURN


@pytest.mark.parametrize("action", [DrawTile(2), Pass(2), PlayTiles(2, ()), Resign(2)])
def test_a_resigned_player_may_not_act(action: Action) -> None:
    game = do(game_at(". / 1{R7} 2{K1} 3{B9} / {O9} / 1"), Resign(2)).game
    assert only_reason(game, action) is Reason.PLAYER_RESIGNED
    assert only_reason(do(over(), Resign(2)).game, Resign(2)) is Reason.PLAYER_RESIGNED


# Histories


def test_a_game_is_the_replay_of_its_history() -> None:
    changes = [create(SABRA)]
    for action in (Join("Ada"), Join("Ben"), Leave(1), Join("Cleo"), StartGame(HOST, SHUFFLE)):
        changes.append(do(changes[-1].game, action))
    drawer = is_a(changes[-1].game.phase, Playing).round.turn.seat
    changes.append(do(changes[-1].game, DrawTile(drawer)))
    changes.append(do(changes[-1].game, Resign(drawer)))
    for count in range(1, len(changes) + 1):
        assert replay(change.events for change in changes[:count]) == changes[count - 1].game


def test_a_change_without_events_is_the_callers_fault() -> None:
    with pytest.raises(ValueError, match="a change must have at least one event"):
        advance(None, ())
    with pytest.raises(ValueError, match="a history must start with the game's creation"):
        replay(())


def test_a_history_starts_with_the_creation() -> None:
    with pytest.raises(ValueError, match="a history must start with the game's creation"):
        advance(None, (PlayerLeft(1),))


def test_an_event_of_a_round_does_not_fit_the_lobby() -> None:
    with pytest.raises(ValueError, match="no round of the game has started"):
        advance(lobby("Ada", "Ben"), (TurnPassed(1),))
