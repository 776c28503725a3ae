"""American Rummikub: each rule in which it differs from 101 Okey, the examples A1 to A12 of its specification."""

from dataclasses import replace

import pytest

from engine.actions import Action, Resign, TimeOut
from engine.discard.actions import (
    DiscardTile,
    FinishFoot,
    FinishHand,
    LayTiles,
    PassTurn,
    ReturnDiscard,
    ShowIndicator,
    TakeDiscard,
    TakeFromPool,
    TakeTrump,
)
from engine.discard.events import (
    DiscardForced,
    DiscardReturned,
    EmptyPoolPassed,
    PoolTileTaken,
    TileDiscarded,
    TrumpTaken,
)
from engine.discard.game import round_of
from engine.discard.notation import parse_hand
from engine.discard.presets import AMERICAN, INTERNATIONAL, OKEY_101
from engine.discard.round import HasLaid, ToDiscard, ToTake
from engine.discard.ruleset import PoolEmpty, Ruleset, WildRetrieval
from engine.discard.scoring import game_winners
from engine.discard.views import DiscardView
from engine.events import RoundEnded, TurnStarted, TurnTimedOut
from engine.game import Finished, Game, RoundEnd, RoundOver
from engine.notation import parse_tile, parse_tiles
from engine.seats import Player
from engine.sight import see
from engine.tiles import JOKER
from engine.turns import outcome
from engine.violations import Reason
from support.okey_games import game_at, started
from support.positions import NOW, do, is_a, only_reason, refusal

LOOSE = "R2 R7 B1 B5 K9 O11 O13"
"""Tiles of a rack without a meld."""
TAKEN = ToDiscard(parse_tile("O1"))


def at(
    rack: str,
    *,
    table: str = "[R4 R5 R6]",
    opened: str = "12",
    step: ToTake | ToDiscard | HasLaid = TAKEN,
    face_up: str = "J R8",
    piles: str = "1{} 2{} 3{K9}",
    pool: str = "{O9 O10}",
    others: tuple[str, str] = (LOOSE, LOOSE),
    rules: object = AMERICAN,
    **more: object,
) -> Game:
    """Returns a game of three players in which seat 2, which follows seat 3, is to move."""
    tiles = {1: others[0], 2: rack, 3: others[1]}
    racks = " ".join(f"{seat}{'*' * (str(seat) in opened)}{{{tiles[seat]}}}" for seat in tiles)
    openings = " ".join(f"{seat}:30" for seat in opened) or "."
    position = f"{face_up} / {piles} / {racks} / {pool} / 2 / {table} / {openings}"
    return game_at(position, rules, discarded=(1, 2, 3), step=step, **more)  # type: ignore[arg-type]


def lay(table: str) -> LayTiles:
    return LayTiles(2, parse_hand(table))


def discard(tile: str) -> DiscardTile:
    return DiscardTile(2, parse_tile(tile))


def seen(game: Game) -> DiscardView:
    """Returns what seat 1 sees of the round."""
    return is_a(see(game, 1).round, DiscardView)


def points(game: Game, action: Action, now_ms: int = NOW) -> tuple[RoundEnd, dict[int, int], tuple[int, ...]]:
    """Returns how the round ended after an action, the points by seat, and the winners."""
    result = next(event.result for event in do(game, action, now_ms).events if isinstance(event, RoundEnded))
    return result.end, {seat.seat: seat.points for seat in result.seats}, result.winners


# The deal


@pytest.mark.parametrize("seed", range(6))
def test_each_player_has_14_tiles_and_a_tile_lies_face_up_as_the_trump(seed: int) -> None:
    game = started(seed, AMERICAN, (None,) * 3)
    round_ = round_of(game)
    assert [len(rack.tiles) for rack in round_.racks] == [14] * 3
    assert len(round_.pool) == 106 - 14 * 3 - 1
    assert (round_.indicator, round_.okey, round_.step) == (None, JOKER, ToTake())
    assert round_.trump is not None
    assert round_.trump == round_.trump_to_take
    assert round_.tiles == AMERICAN.tiles(3)
    assert round_.tiles.count(JOKER) == 2


def test_no_tile_lies_face_up_without_a_trump() -> None:
    round_ = round_of(started(0, replace(AMERICAN, trump=False), (None,) * 2))
    assert (round_.trump, round_.trump_to_take) == (None, None)
    assert len(round_.pool) == 106 - 14 * 2


def test_the_starter_takes_a_tile_as_all_others_do() -> None:
    game = started(1, AMERICAN, (None,) * 2)
    seat = round_of(game).turn.seat
    assert only_reason(game, DiscardTile(seat, round_of(game).rack(seat).tiles[0])) is Reason.TURN_PHASE_WRONG
    taken = do(game, TakeFromPool(seat)).game
    assert len(round_of(taken).rack(seat).tiles) == 15


# Laying


A1 = pytest.param("R4 R5 R6", "R7 O1", "[R4 R5 R6 R7]", id="A1")
A3 = pytest.param("B6 R6 O6", "K6 R4 R5 R6 O1", "[B6 R6 O6 K6] | [R4 R5 R6]", id="A3")
A10 = pytest.param("R3 J R5", "R4 O8 O9 O1", "[R3 R4 R5] | [O8 O9 J]", id="A10")


@pytest.mark.parametrize(
    ("table", "rack", "after"),
    [
        A1,
        A3,
        A10,
        pytest.param("R5 B5 J", "K5 O5 K8 K9 O1", "[R5 B5 K5 O5] | [K8 K9 J]", id="both colors of a group of three"),
        pytest.param("R5 B5 K5 J", "O5 K8 K9 O1", "[R5 B5 K5 O5] | [K8 K9 J]", id="the last color of a group of four"),
        pytest.param("R5 B5 J J", "O5 K8 K9 O1", "[R5 B5 J O5] | [K8 K9 J]", id="one of two jokers of a group"),
        pytest.param("R3 J R5", "R4 J O8 O1", "[R3 R4 R5] | [O8 J J]", id="beside a joker of the rack"),
    ],
)
def test_what_a_player_who_has_opened_may_lay(table: str, rack: str, after: str) -> None:
    game = at(rack, table=f"[{table}]")
    laid = round_of(do(game, lay(after)).game)
    assert laid.table is not None
    assert laid.table.melds == parse_hand(after)
    assert laid.rack(2).tiles == parse_tiles("O1")


@pytest.mark.parametrize(
    ("table", "rack", "after", "reason"),
    [
        pytest.param("B6 B7 B8 B9 B10", "B8 O1", "[B6 B7 B8] | [B8 B9 B10]", Reason.TABLE_MELD_CHANGED, id="A2"),
        pytest.param("R4 R5 R6", "R7 R8 R9", "[R4 R5 R6 R7 R8 R9]", Reason.FINISH_NEEDS_DISCARD, id="A4"),
        pytest.param("R4 R5 R6", "B12 B13 B1 O1", "[R4 R5 R6] | [B12 B13 B1]", Reason.MELD_NOT_GROUP_NOR_RUN, id="A-7"),
        pytest.param("R3 J R5", "R4 O8 O9 O1", "[R3 R4 R5]", Reason.WILD_NOT_LAID, id="the joker goes to the rack"),
        pytest.param("R3 J R5", "R4 O8 O9 O1", "[R3 R4 R5 J]", Reason.WILD_NOT_LAID, id="the joker stays in its meld"),
        pytest.param(
            "R3 J R5 J", "R4 R6 O8 O1", "[R3 R4 R5 R6] | [O8 J J]", Reason.WILD_NOT_LAID, id="one tile for two jokers"
        ),
        pytest.param(
            "R5 B5 J",
            "K5 K8 K9 O1",
            "[R5 B5 K5] | [K8 K9 J]",
            Reason.JOKER_GROUP_NEEDS_BOTH_COLORS,
            id="one color of a group of three",
        ),
        pytest.param("R4 R5 R6", "F B1 B2 O1", "[R4 R5 R6] | [B1 B2 F]", Reason.MELD_NOT_GROUP_NOR_RUN, id="no F"),
    ],
)
def test_what_a_player_who_has_opened_may_not_lay(table: str, rack: str, after: str, reason: Reason) -> None:
    refused = refusal(at(rack, table=f"[{table}]"), lay(after))
    assert [violation.reason for violation in refused.violations] == [reason]


def test_a_joker_may_go_to_the_rack_where_the_rules_say_so() -> None:
    game = at("R4 O1", table="[R3 J R5]", rules=replace(AMERICAN, wild_retrieval=WildRetrieval.TO_RACK))
    assert round_of(do(game, lay("[R3 R4 R5]")).game).rack(2).tiles == parse_tiles("O1 J")


@pytest.mark.parametrize(
    ("rack", "after", "total"),
    [
        ("K9 K10 K11 O1", "[K9 K10 K11]", 30),
        ("K9 J K11 O1", "[K9 J K11]", 30),
        ("K10 K11 J O1", "[K10 K11 J]", 33),
        ("R1 R2 R3 B8 K8 O8 O1", "[R1 R2 R3] | [B8 K8 O8]", 30),
    ],
)
def test_an_opening_has_30_points_and_a_joker_counts_what_it_stands_for(rack: str, after: str, total: int) -> None:
    opened = round_of(do(at(rack, opened="", table="."), lay(after)).game)
    assert opened.table is not None
    assert [(one.seat, one.amount) for one in opened.table.openings] == [(2, total)]


def test_an_opening_of_29_points_is_too_little() -> None:
    refused = refusal(at("R2 R3 R4 R5 R5 B5 O5 O1", opened="", table="."), lay("[R2 R3 R4 R5] | [R5 B5 O5]"))
    assert [(one.reason, dict(one.metadata)) for one in refused.violations] == [
        (Reason.OPENING_BELOW_THRESHOLD, {"total": 29, "threshold": 30})
    ]


def test_no_joker_is_taken_in_the_opening() -> None:
    game = at("R4 O8 O9 K9 K10 K11 O1", opened="1", table="[R3 J R5]")
    refused = refusal(game, lay("[R3 R4 R5] | [O8 O9 J] | [K9 K10 K11]"))
    assert [one.reason for one in refused.violations] == [Reason.OKEY_TAKEN_BEFORE_OPENING]


def test_pairs_are_no_melds() -> None:
    assert only_reason(at("K9 K9 O1"), lay("[R4 R5 R6] | [K9 K9]")) is Reason.MELD_NOT_GROUP_NOR_RUN


# A taken discard


def test_a5_a_player_may_open_with_a_taken_discard() -> None:
    game = at("K10 K11 R2", opened="", table=".", step=ToTake())
    taken = do(game, TakeDiscard(2)).game
    laid = do(taken, lay("[K9 K10 K11]"))
    assert round_of(laid.game).rack(2).has_melded
    assert round_of(do(laid.game, discard("R2")).game).finish is not None


@pytest.mark.parametrize("tile", ["R2", "K9"])
def test_a6_and_a8_a_taken_discard_is_laid_or_put_back(tile: str) -> None:
    game = do(at("B1 R2", opened="", table=".", step=ToTake()), TakeDiscard(2)).game
    assert only_reason(game, discard(tile)) is Reason.TAKEN_TILE_NOT_USED
    returned = do(game, ReturnDiscard(2))
    assert returned.events == (DiscardReturned(2, parse_tile("K9"), 3), PoolTileTaken(2, parse_tile("O9")))
    assert round_of(returned.game).pile(3).tiles == parse_tiles("K9")
    assert do(returned.game, discard("R2")).events[0] == TileDiscarded(2, parse_tile("R2"))


# The trump


def test_a7_a_player_who_has_opened_takes_the_trump_and_lays_it() -> None:
    game = at("O3 B3", table="[R5 R6 R7]", step=ToTake())
    taken = do(game, TakeTrump(2))
    assert taken.events == (TrumpTaken(2, parse_tile("R8")),)
    assert outcome(taken).tiles_drawn == parse_tiles("R8")
    assert only_reason(taken.game, discard("O3")) is Reason.TAKEN_TILE_NOT_USED
    laid = do(taken.game, lay("[R5 R6 R7 R8]")).game
    after = do(laid, discard("O3")).game
    assert round_of(after).trump_to_take is None
    assert seen(after).trump is None
    assert only_reason(after, TakeTrump(1)) is Reason.TRUMP_NOT_TAKEABLE


def test_the_trump_is_seen_by_all_while_it_lies_face_up() -> None:
    assert seen(at("O3 B3")).trump == parse_tile("R8")
    assert parse_tile("R8") in seen(at("O3 B3")).face_up


@pytest.mark.parametrize(("opened", "face_up"), [("13", "J R8"), ("12", "J")])
def test_no_trump_is_taken_before_opening_or_where_there_is_none(opened: str, face_up: str) -> None:
    game = at("O3 B3", opened=opened, face_up=face_up, step=ToTake())
    assert only_reason(game, TakeTrump(2)) is Reason.TRUMP_NOT_TAKEABLE


def test_a_trump_that_is_put_back_lies_face_up_again() -> None:
    taken = do(at("O3 B3", step=ToTake()), TakeTrump(2)).game
    returned = do(taken, ReturnDiscard(2))
    assert returned.events == (DiscardReturned(2, parse_tile("R8"), None), PoolTileTaken(2, parse_tile("O9")))
    assert round_of(returned.game).trump_to_take == parse_tile("R8")
    assert round_of(returned.game).rack(2).tiles == parse_tiles("B3 O3 O9")


def test_a_trump_counts_as_taken_in_place_of_another_tile() -> None:
    game = at("O3 B3", step=TAKEN)
    assert only_reason(game, TakeTrump(2)) is Reason.TURN_PHASE_WRONG


# An empty pool


def test_the_round_goes_on_with_an_empty_pool_while_players_take_discards() -> None:
    game = at("K10 K11 R2 R9", opened="123", pool=".", step=ToTake())
    laid = do(do(game, TakeDiscard(2)).game, lay("[R4 R5 R6] | [K9 K10 K11]")).game
    after = do(laid, discard("R2"))
    assert is_a(after.events[-1], TurnStarted).turn.seat == 1
    assert only_reason(after.game, TakeFromPool(1)) is Reason.POOL_EMPTY
    assert only_reason(at("R2 R3", step=ToTake()), PassTurn(2)) is Reason.PASS_NOT_ALLOWED_POOL_NOT_EMPTY


def test_the_turn_in_which_the_last_tile_is_drawn_ends_no_round() -> None:
    drawn = do(at("R2 R9", pool="{O9}", step=ToTake()), TakeFromPool(2)).game
    assert is_a(do(drawn, discard("R2")).events[-1], TurnStarted).turn.seat == 1


A12 = at("B10 O10", opened="12", pool=".", step=ToTake(), others=("B10 O10", "K10 R10 B10"))


def test_a12_a_pass_with_an_empty_pool_ends_the_round_without_a_winner() -> None:
    assert do(A12, PassTurn(2)).events[0] == EmptyPoolPassed(2)
    assert points(A12, PassTurn(2)) == (RoundEnd.BLOCKED, {1: -20, 2: -20, 3: -100}, ())


def test_a_time_out_with_an_empty_pool_is_a_pass() -> None:
    ended = do(A12, TimeOut(), NOW + 200_000)
    assert [type(event) for event in ended.events] == [TurnTimedOut, RoundEnded]
    assert ended.game.player(2).timeouts_in_a_row == 1
    assert points(A12, TimeOut(), NOW + 200_000)[0] is RoundEnd.BLOCKED


@pytest.mark.parametrize("action", [ReturnDiscard(2), TimeOut()])
@pytest.mark.parametrize("take", [TakeDiscard(2), TakeTrump(2)])
def test_with_an_empty_pool_a_taken_tile_that_is_put_back_is_a_pass(action: Action, take: TakeDiscard) -> None:
    taken = do(A12, take).game
    now_ms = NOW + 200_000 * isinstance(action, TimeOut)
    events = do(taken, action, now_ms).events
    returned, passed = [type(event) for event in events if not isinstance(event, TurnTimedOut)][:2]
    assert (returned, passed) == (DiscardReturned, RoundEnded if isinstance(action, TimeOut) else EmptyPoolPassed)
    assert points(taken, action, now_ms)[1] == {1: -20, 2: -20, 3: -100}


def test_a_time_out_puts_a_trump_back_and_takes_a_tile_of_the_pool() -> None:
    taken = do(at("O3 B3", step=ToTake()), TakeTrump(2)).game
    events = do(taken, TimeOut(), NOW + 200_000).events
    assert events[:3] == (
        TurnTimedOut(2, parse_tiles("O9")),
        DiscardReturned(2, parse_tile("R8"), None),
        DiscardForced(2, parse_tile("O9")),
    )


def test_a_pass_is_no_action_where_an_empty_pool_ends_the_round() -> None:
    game = at("R2 R3", step=ToTake(), rules=replace(AMERICAN, pool_empty=PoolEmpty.ROUND_ENDS))
    assert only_reason(game, PassTurn(2)) is Reason.ACTION_NOT_IN_GAME
    okey_101 = game_at("R4 / 1{} 2{} / 1{R1} 2{R2} / {R3} / 1 / . / .", OKEY_101)
    assert only_reason(okey_101, PassTurn(1)) is Reason.ACTION_NOT_IN_GAME


# Scores


A11 = at("J", others=("K2 K10", "O10 K10 B7 O13"), opened="123")


def test_a11_a_joker_as_the_last_discard_doubles_what_the_losers_pay() -> None:
    assert points(A11, discard("J")) == (RoundEnd.WENT_OUT, {1: -24, 2: 104, 3: -80}, (2,))


@pytest.mark.parametrize(
    ("others", "opened", "expected"),
    [
        (("K2 K10", "O10 K10 B7 O13"), "123", {1: -12, 2: 52, 3: -40}),
        (("K1 J", "O10"), "123", {1: -31, 2: 41, 3: -10}),
        (("K1", "O10"), "2", {1: -100, 2: 200, 3: -100}),
        (("K1", "J J R13 K13 O13 R12"), "12", {1: -1, 2: 112, 3: -111}),
    ],
    ids=["racks", "a joker is 30", "never opened", "never opened, with more than 100"],
)
def test_the_losers_pay_the_winner_their_racks(others: tuple[str, str], opened: str, expected: dict[int, int]) -> None:
    assert points(at("O3", others=others, opened=opened), discard("O3"))[1] == expected


@pytest.mark.parametrize(
    ("others", "rules", "expected"),
    [
        (("K2 R8", "K1"), {}, {1: -10, 2: 11, 3: -1}),
        (("K2 R8", "K1"), {"score_trump_twin": 25}, {1: 15, 2: 11, 3: -1}),
        (("K2 K8", "K1"), {"score_trump_twin": 25}, {1: -10, 2: 11, 3: -1}),
    ],
)
def test_the_trumps_twin_is_worth_something_to_its_owner(
    others: tuple[str, str], rules: dict[str, int], expected: dict[int, int]
) -> None:
    ruleset = replace(AMERICAN, **rules)  # type: ignore[arg-type]
    for is_taken in (False, True):
        game = at("O3", others=others, opened="123", rules=ruleset, is_trump_taken=is_taken)
        assert points(game, discard("O3"))[1] == expected


def test_a_discard_that_fits_on_the_table_costs_nothing() -> None:
    events = do(at("R7 O1 O3"), discard("R7")).events
    assert [type(event) for event in events] == [TileDiscarded, TurnStarted]


def test_the_most_points_win_after_four_rounds() -> None:
    players = (Player(1, "Ada", 5), Player(2, "Ben", -9), Player(3, "Cem", 7, resigned=True))
    assert game_winners(players, AMERICAN) == (1,)
    results = do(at("O3"), discard("O3")).game.results
    game = replace(at("O3"), results=results * 3)
    assert isinstance(do(game, discard("O3")).game.phase, Finished)
    assert isinstance(do(replace(game, results=results * 2), discard("O3")).game.phase, RoundOver)


# What is no part of this game


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (FinishHand(2, parse_tile("O1")), Reason.ACTION_NOT_IN_GAME),
        (FinishFoot(2, parse_tile("O1"), ()), Reason.ACTION_NOT_IN_GAME),
        (ShowIndicator(2), Reason.INDICATOR_NOT_SHOWABLE),
    ],
)
def test_actions_of_other_games_are_refused(action: Action, reason: Reason) -> None:
    assert only_reason(at("O1 O3"), action) is reason


def test_okey_has_no_foot_and_no_trump() -> None:
    position = "R4 / 1{} 2{} / 1{R1 R2} 2{R2} / {R3} / 1"
    discarding, taking = (game_at(position, step=step) for step in (TAKEN, ToTake()))
    assert only_reason(discarding, FinishFoot(1, parse_tile("R1"), ())) is Reason.ACTION_NOT_IN_GAME
    assert only_reason(taking, TakeTrump(1)) is Reason.TRUMP_NOT_TAKEABLE


@pytest.mark.parametrize("rules", [AMERICAN, INTERNATIONAL], ids=["American", "International"])
def test_a_round_that_all_others_have_left_gives_no_points(rules: Ruleset) -> None:
    game = do(at(LOOSE, rules=rules), Resign(1)).game
    assert points(game, Resign(3))[:2] == (RoundEnd.RESIGNED, {1: 0, 2: 0, 3: 0})
