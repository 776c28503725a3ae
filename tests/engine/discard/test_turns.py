from dataclasses import replace

import pytest

from engine.actions import Action, Resign, StartNextRound, TimeOut
from engine.discard.actions import DiscardTile, FinishHand, ShowIndicator, TakeDiscard, TakeFromPool
from engine.discard.events import (
    DiscardForced,
    DiscardTaken,
    HandFinished,
    IndicatorShown,
    PenaltyScored,
    PoolTileTaken,
    TileDiscarded,
)
from engine.discard.game import round_of
from engine.discard.laying import PenaltyCause
from engine.discard.notation import parse_hand
from engine.discard.presets import PRESETS
from engine.discard.round import Pile, ToDiscard, ToTake
from engine.discard.ruleset import OKEY, Preset
from engine.events import GameEnded, PlayerResigned, RoundEnded, TurnStarted, TurnTimedOut
from engine.game import Finished, Game, Playing, RoundEnd, RoundOver
from engine.notation import parse_tile, parse_tiles
from engine.room_settings import AbsentAction, RoomSettings
from engine.seats import BotLevel
from engine.turns import may_have_searched_all_racks, may_search, outcome
from engine.violations import Reason, Violation
from support.okey_games import game_at, shuffle, started
from support.positions import NOW, do, is_a, only_reason, refusal

PARTNERS = PRESETS[Preset.OKEY_PARTNERS]
ELEVEN = "K3 K4 K5 K6 O7 B7 R7 B9 B10 B11 B12"
FINISHED = f"{ELEVEN} R12 R13 R1"
OTHERS = "R2 R4 R6 R8 R10 B1 B3 B5 K1 K9 K11 O1 O3 O5"
PAIRS = "R2 R2 R4 R4 R6 R6 R8 R8 B1 B1 B3 B3 B5 B5"


def four(
    rack: str, *, indicator: str = "K7", piles: str = "1{} 2{} 3{} 4{}", pool: str = "{O9 O10}", turn: int = 2
) -> str:
    """Returns a position of four players; the one to move has a rack, the others have other tiles."""
    racks = " ".join(f"{seat}{{{rack if seat == turn else OTHERS}}}" for seat in (1, 2, 3, 4))
    return f"{indicator} / {piles} / {racks} / {pool} / {turn}"


def ended(game: Game, action: Action, now_ms: int = NOW) -> tuple[RoundEnd, dict[int, int], Game]:
    """Returns the end and the points of a round that an action ends, and the game after it."""
    done = do(game, action, now_ms)
    result = next(event.result for event in done.events if isinstance(event, RoundEnded))
    return result.end, {seat.seat: seat.points for seat in result.seats}, done.game


# The course of a turn


def test_the_starter_discards_without_taking_a_tile_and_the_player_to_the_right_follows() -> None:
    game = started(1)
    first = round_of(game).order[0]
    assert [len(rack.tiles) for rack in round_of(game).racks] == [14 + (seat == first) for seat in (1, 2, 3, 4)]
    assert only_reason(game, TakeFromPool(first)) is Reason.TURN_PHASE_WRONG
    tile = round_of(game).rack(first).tiles[0]
    done = do(game, DiscardTile(first, tile))
    following = first - 1 or 4
    assert done.events[0] == TileDiscarded(first, tile)
    assert is_a(done.events[1], TurnStarted).turn.seat == following
    assert round_of(done.game).pile(first) == Pile(first, (tile,))
    assert round_of(done.game).step == ToTake()
    assert outcome(done).tiles_drawn == ()


def test_a_player_takes_the_next_tile_of_the_pool_and_goes_on() -> None:
    game = game_at(four(OTHERS))
    done = do(game, TakeFromPool(2))
    assert done.events == (PoolTileTaken(2, parse_tile("O9")),)
    assert outcome(done).tiles_drawn == parse_tiles("O9")
    round_ = round_of(done.game)
    assert (round_.pool, round_.turn) == (parse_tiles("O10"), round_of(game).turn)
    assert parse_tile("O9") in round_.rack(2).tiles
    assert round_.step == ToDiscard(parse_tile("O9"))
    assert only_reason(done.game, TakeFromPool(2)) is Reason.TURN_PHASE_WRONG
    assert only_reason(done.game, TakeDiscard(2)) is Reason.TURN_PHASE_WRONG


def test_a_player_takes_the_newest_discard_of_the_player_before() -> None:
    game = game_at(four(OTHERS, piles="1{R9} 2{B9} 3{K2 K7} 4{}"))
    done = do(game, TakeDiscard(2))
    assert done.events == (DiscardTaken(2, parse_tile("K7"), 3, parse_tile("K2")),)
    assert outcome(done).tiles_drawn == parse_tiles("K7")
    assert round_of(done.game).pile(3).tiles == parse_tiles("K2")
    assert round_of(done.game).step == ToDiscard(parse_tile("K7"), is_seen=True)


def test_a_player_who_has_resigned_is_not_the_one_before() -> None:
    game = do(game_at(four(OTHERS, piles="1{} 2{} 3{K2} 4{O4}")), Resign(3)).game
    assert do(game, TakeDiscard(2)).events == (DiscardTaken(2, parse_tile("O4"), 4, None),)


INVALID = "[K3 K4 K5 K6] | [R7 B7 O7] | [B9 B10 B11 B12]"
LAID = f"{INVALID} | [R12 R13 R1]"
TURN_15 = four(f"{FINISHED} O9")
NO_TWIN = four(OTHERS)


@pytest.mark.parametrize(
    ("position", "action", "expected"),
    [
        (TURN_15, TakeFromPool(2), [(Reason.TURN_PHASE_WRONG, "", "")]),
        (TURN_15, TakeDiscard(2), [(Reason.TURN_PHASE_WRONG, "", "")]),
        (NO_TWIN, DiscardTile(2, parse_tile("R2")), [(Reason.TURN_PHASE_WRONG, "", "")]),
        (NO_TWIN, FinishHand(2, parse_tile("R2")), [(Reason.TURN_PHASE_WRONG, "", "")]),
        (NO_TWIN, TakeFromPool(1), [(Reason.NOT_YOUR_TURN, "", "")]),
        (NO_TWIN, TakeDiscard(2), [(Reason.NO_DISCARD_TO_TAKE, "", "")]),
        (NO_TWIN, ShowIndicator(2), [(Reason.INDICATOR_TWIN_NOT_HELD, "", "K7")]),
        (TURN_15, DiscardTile(2, parse_tile("O1")), [(Reason.TILE_NOT_IN_RACK, "tile", "O1")]),
        (TURN_15, FinishHand(2, parse_tile("O1")), [(Reason.TILE_NOT_IN_RACK, "tile", "O1")]),
        (four(f"{ELEVEN} R12 R13 R2 O9"), FinishHand(2, parse_tile("O9")), [(Reason.FINISH_INVALID, "hand", "R2")]),
        (TURN_15, FinishHand(2, parse_tile("K3")), [(Reason.FINISH_INVALID, "hand", "O9")]),
        (
            TURN_15,
            FinishHand(2, parse_tile("O9"), parse_hand(INVALID)),
            [(Reason.FINISH_INVALID, "hand", "R1 R12 R13")],
        ),
        (
            TURN_15,
            FinishHand(2, parse_tile("O9"), parse_hand(f"{INVALID} | [R1 R12 R13]")),
            [(Reason.FINISH_INVALID, "hand[3]", "R1 R12 R13")],
        ),
        (
            TURN_15,
            FinishHand(2, parse_tile("O9"), parse_hand(f"{INVALID} | [R12 R13] | [B13 B2]")),
            [
                (Reason.TILE_NOT_IN_RACK, "hand", "B2 B13"),
                (Reason.FINISH_INVALID, "hand", "R1"),
                (Reason.FINISH_INVALID, "hand[3]", "R12 R13"),
                (Reason.FINISH_INVALID, "hand[4]", "B13 B2"),
            ],
        ),
        (
            four(f"{PAIRS} O9"),
            FinishHand(
                2, parse_tile("O9"), parse_hand("[R2 R4] | [R2 R4] | [R6 R6] | [R8 R8] | [B1 B1] | [B3 B3] | [B5 B5]")
            ),
            [(Reason.FINISH_INVALID, "hand[0]", "R2 R4"), (Reason.FINISH_INVALID, "hand[1]", "R2 R4")],
        ),
    ],
)
def test_illegal_actions_are_refused(position: str, action: Action, expected: list[tuple[Reason, str, str]]) -> None:
    found = refusal(game_at(position), action).violations
    assert [replace_metadata(violation) for violation in found] == [
        Violation(reason, subject, parse_tiles(tiles)) for reason, subject, tiles in expected
    ]


def replace_metadata(violation: Violation) -> Violation:
    return violation._replace(metadata=())


def test_late_and_resigned_players_are_refused() -> None:
    game = game_at(four(OTHERS))
    assert only_reason(game, TakeFromPool(2), NOW + 120_001) is Reason.TURN_TIMED_OUT
    assert only_reason(do(game, Resign(3)).game, TakeFromPool(3)) is Reason.PLAYER_RESIGNED


def test_refusals_name_the_seat_that_they_concern() -> None:
    game = game_at(four(OTHERS))
    assert refusal(game, TakeFromPool(3)).violations == (Violation(Reason.NOT_YOUR_TURN, metadata=(("seat", 2),)),)
    assert refusal(game, TakeDiscard(2)).violations == (Violation(Reason.NO_DISCARD_TO_TAKE, metadata=(("seat", 3),)),)


# The indicator


def test_the_twin_of_the_indicator_is_shown_in_the_first_turn_before_the_discard() -> None:
    rack = OTHERS.replace("R2", "K7")
    for position in (four(rack), four(f"{rack} O13")):
        game = game_at(position)
        done = do(game, ShowIndicator(2))
        assert done.events == (IndicatorShown(2),)
        assert round_of(done.game).shown_by == 2
        assert only_reason(done.game, ShowIndicator(2)) is Reason.INDICATOR_NOT_SHOWABLE
        late = game_at(position, discarded=(2,))
        assert only_reason(late, ShowIndicator(2)) is Reason.INDICATOR_NOT_SHOWABLE
        without = game_at(position, replace(OKEY, show_indicator=False))
        assert only_reason(without, ShowIndicator(2)) is Reason.INDICATOR_NOT_SHOWABLE


def test_all_others_lose_a_point_at_the_end_of_the_round() -> None:
    game = game_at(four(f"{OTHERS} O13", pool="."), shown_by=3)
    assert ended(game, DiscardTile(2, parse_tile("O13")))[:2] == (RoundEnd.BLOCKED, {1: -1, 2: -1, 3: 0, 4: -1})
    finished = game_at(four(f"{FINISHED} O9"), shown_by=3)
    assert ended(finished, FinishHand(2, parse_tile("O9")))[1] == {1: -3, 2: -1, 3: -2, 4: -3}
    partners = game_at(four(f"{FINISHED} O9"), PARTNERS, shown_by=3)
    assert ended(partners, FinishHand(2, parse_tile("O9")))[1] == {1: -2, 2: -1, 3: -2, 4: -1}


# Finishing


@pytest.mark.parametrize(
    ("name", "position", "discard", "totals"),
    [
        ("K13", four(f"{FINISHED} O9"), "O9", {1: 18, 2: 20, 3: 18, 4: 18}),
        ("K14", four(f"{FINISHED} K8", turn=1), "K8", {1: 20, 2: 16, 3: 16, 4: 16}),
        ("K15", four(f"{PAIRS} K8", turn=1), "K8", {1: 20, 2: 12, 3: 12, 4: 12}),
        ("pairs alone", four(f"{PAIRS} K9"), "K9", {1: 16, 2: 20, 3: 16, 4: 16}),
        ("a false joker is no okey", four(f"{PAIRS} F", turn=1), "F", {1: 20, 2: 16, 3: 16, 4: 16}),
    ],
)
def test_what_a_finish_costs_the_others(name: str, position: str, discard: str, totals: dict[int, int]) -> None:
    game = game_at(position)
    tile = parse_tile(discard)
    end, _, after = ended(game, FinishHand(round_of(game).turn.seat, tile))
    assert end is RoundEnd.WENT_OUT, name
    assert {player.seat: player.total_points for player in after.players} == totals, name
    assert is_a(after.phase, RoundOver).round.tiles == round_of(game).tiles
    [result] = after.results
    assert (result.number, result.winners) == (1, (round_of(game).turn.seat,))
    assert [(seat.rack_value, seat.tile_count) for seat in result.seats] == [(0, 14)] * 4


def test_partners_share_the_points_of_a_finish() -> None:
    _, points, after = ended(game_at(four(f"{FINISHED} O9"), PARTNERS), FinishHand(2, parse_tile("O9")))
    assert points == {1: -2, 2: 0, 3: -2, 4: 0}
    assert after.results[0].winners == (2, 4)


def test_a_player_pays_for_a_finish_that_is_none_and_goes_on() -> None:
    rules = replace(OKEY, score_false_finish=3)
    false, wrong = FinishHand(2, parse_tile("R1")), FinishHand(2, parse_tile("O9"), parse_hand(INVALID))
    foreign = FinishHand(2, parse_tile("R1"), parse_hand("[K1 K2 K3]"))
    game = game_at(TURN_15, rules)
    assert only_reason(game, wrong) is Reason.FINISH_INVALID
    assert refusal(game, foreign).violations[0].reason is Reason.TILE_NOT_IN_RACK
    assert only_reason(game_at(TURN_15), false) is Reason.FINISH_INVALID
    done = do(game, false)
    assert done.events == (PenaltyScored(2, 3, PenaltyCause.FALSE_FINISH),)
    assert round_of(done.game).step == round_of(game).step
    assert round_of(done.game).turn == round_of(game).turn
    twice = do(done.game, false).game
    assert ended(twice, FinishHand(2, parse_tile("O9")))[1] == {1: -2, 2: -6, 3: -2, 4: -2}
    partners = do(game_at(TURN_15, replace(PARTNERS, score_false_finish=3)), false).game
    assert ended(partners, FinishHand(2, parse_tile("O9")))[1] == {1: -2, 2: -3, 3: -2, 4: -3}


def test_a_hand_is_finished_as_the_player_lays_it() -> None:
    game = game_at(four("R2 R2 R3 R3 R4 R4 B5 B5 B6 B6 B7 B7 B8 B8 O9", turn=1))
    melds = parse_hand("[R2 R3 R4] | [R2 R3 R4] | [B5 B6 B7 B8] | [B5 B6 B7 B8]")
    done = do(game, FinishHand(1, parse_tile("O9"), melds))
    assert done.events[0] == HandFinished(1, parse_tile("O9"), melds, is_pairs=False)
    found = is_a(do(game, FinishHand(1, parse_tile("O9"))).events[0], HandFinished)
    assert found.is_pairs
    pairs = do(game, FinishHand(1, parse_tile("O9"), found.hand))
    assert pairs.events[0] == found


def test_a_hand_is_finished_with_wild_tiles() -> None:
    game = game_at(four(f"{ELEVEN} R12 K8 R1 O9", turn=1))
    found = is_a(do(game, FinishHand(1, parse_tile("O9"))).events[0], HandFinished)
    assert not found.is_pairs
    laid = parse_hand("[R12 K8 R1] | [K3 K4 K5 K6] | [O7 B7 R7] | [B9 B10 B11 B12]")
    assert is_a(do(game, FinishHand(1, parse_tile("O9"), laid)).events[0], HandFinished).hand == laid


# The end of rounds and games


def test_a_round_ends_without_points_after_the_discard_of_the_last_tile_of_the_pool() -> None:
    drawn = do(game_at(four(OTHERS, pool="{O9}")), TakeFromPool(2)).game
    assert isinstance(drawn.phase, Playing)
    end, points, after = ended(drawn, DiscardTile(2, parse_tile("O9")))
    assert (end, points) == (RoundEnd.BLOCKED, dict.fromkeys((1, 2, 3, 4), 0))
    assert after.results[0].winners == ()
    assert isinstance(after.phase, RoundOver)


def test_a_game_ends_when_someone_has_no_points_left_or_after_the_last_round() -> None:
    game = game_at(four(f"{PAIRS} K8", turn=1))
    poor = replace(game, players=tuple(replace(p, total_points=8 if p.seat == 3 else 9) for p in game.players))
    after = ended(poor, FinishHand(1, parse_tile("K8")))[2]
    assert is_a(after.phase, Finished).winners == (1,)
    richer = replace(game, players=tuple(replace(p, total_points=9) for p in game.players))
    assert isinstance(ended(richer, FinishHand(1, parse_tile("K8")))[2].phase, RoundOver)
    short = game_at(four(f"{OTHERS} O13", pool="."), replace(OKEY, match_rounds=1))
    assert is_a(ended(short, DiscardTile(2, parse_tile("O13")))[2].phase, Finished).winners == (1, 2, 3, 4)


def test_the_next_round_is_dealt_to_the_next_player() -> None:
    game = ended(game_at(four(f"{FINISHED} O9")), FinishHand(2, parse_tile("O9")))[2]
    following = do(game, StartNextRound(2, shuffle(3))).game
    assert round_of(following).order == (1, 4, 3, 2)
    fewer = do(do(game, Resign(1)).game, StartNextRound(2, shuffle(3))).game
    assert round_of(fewer).order == (4, 3, 2)


def test_the_turn_of_a_player_who_resigns_ends() -> None:
    done = do(game_at(four(f"{FINISHED} O9")), Resign(2))
    assert is_a(done.events[-1], TurnStarted).turn.seat == 1
    assert round_of(done.game).step == ToTake()
    last = game_at(four(f"{FINISHED} O9", pool="."))
    assert ended(last, Resign(2))[0] is RoundEnd.BLOCKED


def test_the_last_player_or_pair_left_wins() -> None:
    game = do(do(game_at(four(OTHERS)), Resign(3)).game, Resign(4)).game
    end, points, after = ended(game, Resign(1))
    assert (end, points) == (RoundEnd.RESIGNED, dict.fromkeys((1, 2, 3, 4), 0))
    assert is_a(after.phase, Finished).winners == (2,)
    pair = do(game_at(four(OTHERS), PARTNERS), Resign(3)).game
    assert is_a(ended(pair, Resign(1))[2].phase, Finished).winners == (2, 4)
    over = ended(game_at(four(f"{FINISHED} O9"), PARTNERS), FinishHand(2, parse_tile("O9")))[2]
    alone = do(do(over, Resign(1)).game, Resign(3))
    assert alone.events == (PlayerResigned(3), GameEnded((2, 4)))


def test_games_end_that_people_have_left_to_bots() -> None:
    bots = (None, BotLevel.EASY, BotLevel.EASY, BotLevel.EASY)
    game = ended(game_at(four(f"{FINISHED} O9")), FinishHand(2, parse_tile("O9")))[2]
    left = replace(game, players=tuple(replace(p, bot=level) for p, level in zip(game.players, bots, strict=True)))
    assert do(left, Resign(1)).events == (PlayerResigned(1), GameEnded((2,)))
    playing = game_at(four(f"{FINISHED} O9"))
    all_bots = replace(playing, players=tuple(replace(p, bot=BotLevel.EASY) for p in playing.players))
    assert isinstance(ended(all_bots, FinishHand(2, parse_tile("O9")))[2].phase, Finished)


def test_a_game_is_abandoned_if_who_is_left_between_two_rounds_is_absent() -> None:
    over = ended(game_at(four(f"{FINISHED} O9")), FinishHand(2, parse_tile("O9")))[2]
    absent = tuple(replace(p, stand_in=None if p.seat == 1 else BotLevel.EASY) for p in over.players)
    done = do(replace(over, players=absent), Resign(1))
    assert done.events == (PlayerResigned(1), GameEnded((2,), abandoned=True))


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_game_without_people_is_abandoned(rounds: int) -> None:
    game = game_at(four(OTHERS))
    game = replace(game, settings=RoomSettings(absent_after_timeouts=1, absent_action=AbsentAction.BOT_EASY))
    if rounds:
        over = ended(game_at(four(f"{FINISHED} O9")), FinishHand(2, parse_tile("O9")))[2]
        game = replace(game, results=over.results, players=over.players)
    players = tuple(replace(p, bot=None if p.seat == 2 else BotLevel.EASY) for p in game.players)
    done = do(replace(game, players=players), TimeOut(), NOW + 120_001)
    assert done.events[-1] == GameEnded((2,) if rounds else (), abandoned=True)


# Time-outs


@pytest.mark.parametrize(
    ("position", "drawn", "discarded"),
    [
        (four(OTHERS), "O9", "O9"),
        (four(OTHERS, pool="{B2 O9}"), "B2", "B2"),
        (four(OTHERS, pool="{K8 O9}"), "K8", "O5"),
        (four(f"{OTHERS} F"), "", "O5"),
    ],
)
def test_a_time_out_takes_a_tile_and_discards_it_or_another(position: str, drawn: str, discarded: str) -> None:
    game = game_at(position)
    done = do(game, TimeOut(), NOW + 120_001)
    tiles, tile = parse_tiles(drawn), parse_tile(discarded)
    assert done.events[:2] == (TurnTimedOut(2, tiles), DiscardForced(2, tile))
    assert is_a(done.events[2], TurnStarted).turn.seat == 1
    assert round_of(done.game).pile(2).tiles == (tile,)
    assert round_of(done.game).discarded == (2,)
    assert done.game.player(2).timeouts_in_a_row == 1
    assert round_of(done.game).tiles == round_of(game).tiles


@pytest.mark.parametrize(("taken", "discarded"), [("B2", "B2"), ("K8", "O5")])
def test_a_time_out_after_taking_discards_the_tile_taken_unless_it_is_an_okey(taken: str, discarded: str) -> None:
    game = do(game_at(four(OTHERS, pool=f"{{{taken} O10}}")), TakeFromPool(2)).game
    done = do(game, TimeOut(), NOW + 120_001)
    assert done.events[:2] == (TurnTimedOut(2, ()), DiscardForced(2, parse_tile(discarded)))


# What the service asks


def test_no_decision_searches_for_seconds() -> None:
    done = do(game_at(four(OTHERS)), TakeFromPool(2))
    assert not may_search(done.game)
    assert not may_have_searched_all_racks(done)


def test_a_round_names_its_seats() -> None:
    round_ = round_of(game_at(four(OTHERS), discarded=(1, 4), shown_by=3))
    finish = HandFinished(2, parse_tile("O9"), (), is_pairs=False)
    assert round_.names_its_seats
    assert round_.to_act == (2,)
    assert replace(round_, finish=finish).names_its_seats
    for other in (
        replace(round_, discarded=(5,)),
        replace(round_, shown_by=5),
        replace(round_, piles=(Pile(5),)),
        replace(round_, finish=replace(finish, seat=5)),
    ):
        assert not other.names_its_seats
