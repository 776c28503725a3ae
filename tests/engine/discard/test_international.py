"""International Rummikub: its three ways to win, and the examples I1 to I12 of its specification."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from engine.actions import Action, TimeOut
from engine.discard.actions import (
    DiscardTile,
    FinishFoot,
    FinishHand,
    LayTiles,
    ReturnDiscard,
    TakeDiscard,
    TakeFromPool,
)
from engine.discard.events import (
    DiscardForced,
    HandFinished,
    RackFinished,
    ThreeTilesLeft,
    TileDiscarded,
    TilesLaid,
)
from engine.discard.game import round_of
from engine.discard.moves import actions, is_complete, move_of
from engine.discard.named_hands import NamedHand
from engine.discard.notation import parse_hand
from engine.discard.presets import INTERNATIONAL
from engine.discard.record_text import MoveText
from engine.discard.round import HasLaid, ToDiscard, ToTake
from engine.discard.ruleset import Ruleset, TakenDiscard
from engine.discard.scoring import game_winners
from engine.discard.views import DiscardView
from engine.events import Event, RoundEnded, TurnStarted, TurnTimedOut
from engine.game import Game, RoundEnd
from engine.moves import Move, MoveKind
from engine.notation import Piece, parse_tile, parse_tiles
from engine.seats import Player
from engine.sight import see
from engine.violations import Reason, Violation
from support.okey_games import game_at
from support.positions import NOW, do, is_a, only_reason, refusal

LOOSE = "R2 R7 B1 B5 K9 O11 O13"
TAKEN = ToDiscard(parse_tile("O1"))
HIGH = "[R10 R11 R12 R13 R1] | [B10 B11 B12 B13 B1] | [K10 K11 K12 K13]"
FOOT = "[R4 R5 R6 R7] | [K10 K11 K12 K13] | [B1 B2 B3 B4] | [O7 O8 O9 O10 O11]"
"""The table [R4 R5 R6] with all of a rack but the discard."""


def loose(melds: str) -> str:
    """Returns the tiles of melds."""
    return melds.replace("[", "").replace("]", "").replace("|", "")


FOOT_RACK = loose(FOOT).replace("R4 R5 R6", "")


def at(
    rack: str,
    *,
    table: str = "[R4 R5 R6]",
    opened: str = "1",
    step: ToTake | ToDiscard | HasLaid = TAKEN,
    pool: str = "{O9 O10}",
    others: tuple[str, str] = (LOOSE, LOOSE),
    rules: Ruleset = INTERNATIONAL,
) -> Game:
    """Returns a game of three players in which seat 2, which follows seat 3, is to move."""
    tiles = {1: others[0], 2: rack, 3: others[1]}
    racks = " ".join(f"{seat}{'*' * (str(seat) in opened)}{{{tiles[seat]}}}" for seat in tiles)
    openings = " ".join(f"{seat}:50" for seat in opened) or "."
    position = f"J / 1{{}} 2{{}} 3{{K9}} / {racks} / {pool} / 2 / {table} / {openings}"
    return game_at(position, rules, discarded=(1, 2, 3), step=step)


def lay(table: str) -> LayTiles:
    return LayTiles(2, parse_hand(table))


def discard(tile: str) -> DiscardTile:
    return DiscardTile(2, parse_tile(tile))


def foot(table: str, tile: str) -> FinishFoot:
    return FinishFoot(2, parse_tile(tile), parse_hand(table))


def show(tile: str, hand: str = ".") -> FinishHand:
    return FinishHand(2, parse_tile(tile), parse_hand(hand))


def reasons(game: Game, action: Action) -> list[Reason]:
    return [violation.reason for violation in refusal(game, action).violations]


def points(game: Game, action: Action) -> dict[int, int]:
    """Returns the points of the round that an action ends, by seat."""
    result = next(event.result for event in do(game, action).events if isinstance(event, RoundEnded))
    assert (result.end is RoundEnd.WENT_OUT) == (result.winners == (2,))
    return {seat.seat: seat.points for seat in result.seats}


def kinds(events: Sequence[Event]) -> list[type]:
    return [type(event) for event in events]


# Open


def test_i9_a_player_who_has_not_opened_may_keep_a_taken_discard() -> None:
    game = do(at("R2 B1", step=ToTake()), TakeDiscard(2)).game
    assert is_a(see(game, 2).round, DiscardView).owed is None
    assert only_reason(game, ReturnDiscard(2)) is Reason.TURN_PHASE_WRONG
    after = do(game, discard("R2")).game
    assert round_of(after).rack(2).tiles == parse_tiles("B1 K9")
    assert do(game, discard("K9")).events[0] == TileDiscarded(2, parse_tile("K9"))


@pytest.mark.parametrize(
    ("opened", "pool", "rules"),
    [
        ("12", "{O9}", INTERNATIONAL),
        ("1", ".", INTERNATIONAL),
        ("1", "{O9}", replace(INTERNATIONAL, taken_discard=TakenDiscard.LAID)),
    ],
    ids=["opened", "empty pool", "American"],
)
def test_others_must_lay_a_taken_discard(opened: str, pool: str, rules: Ruleset) -> None:
    game = do(at("R2 B1", opened=opened, pool=pool, rules=rules, step=ToTake()), TakeDiscard(2)).game
    assert is_a(see(game, 1).round, DiscardView).owed == parse_tile("K9")
    assert only_reason(game, discard("R2")) is Reason.TAKEN_TILE_NOT_USED


def test_a_player_may_open_after_a_discard_was_kept() -> None:
    game = do(at("K10 K11 K12 K13 R2 R3", step=ToTake()), TakeDiscard(2)).game
    laid = do(game, lay("[R4 R5 R6] | [K9 K10 K11 K12 K13]")).game
    assert round_of(laid).rack(2).has_melded


def test_i10_a_first_meld_of_44_points_is_too_little() -> None:
    game = at("R11 B11 K11 O11 O1", table=".", opened="1")
    refused = refusal(game, lay("[R11 B11 K11 O11]"))
    assert [(one.reason, dict(one.metadata)) for one in refused.violations] == [
        (Reason.OPENING_BELOW_THRESHOLD, {"total": 44, "threshold": 50})
    ]


def test_a_player_with_three_tiles_left_says_so() -> None:
    events = do(at("R2 B1 K1 O3", opened="12"), discard("O3")).events
    assert kinds(events) == [TileDiscarded, ThreeTilesLeft, TurnStarted]
    assert events[1] == ThreeTilesLeft(2)
    timed_out = do(at("R2 B1 K1", opened="12", step=ToTake()), TimeOut(), NOW + 200_000).events
    assert kinds(timed_out) == [TurnTimedOut, DiscardForced, ThreeTilesLeft, TurnStarted]


@pytest.mark.parametrize(
    ("rack", "opened", "rules"),
    [
        ("R2 B1 K1 O3", "1", INTERNATIONAL),
        ("R2 B1 K1 O3 O4", "12", INTERNATIONAL),
        ("R2 B1 O3", "12", INTERNATIONAL),
        ("R2 B1 K1 O3", "12", replace(INTERNATIONAL, concealed_wins=False)),
    ],
    ids=["not opened", "four left", "two left", "no concealed wins"],
)
def test_nothing_else_is_said(rack: str, opened: str, rules: Ruleset) -> None:
    assert ThreeTilesLeft not in kinds(do(at(rack, opened=opened, rules=rules), discard("O3")).events)


# Foot


def test_a_foot_lays_the_whole_rack_and_discards_the_last_tile() -> None:
    done = do(at(f"{FOOT_RACK} O2"), foot(FOOT, "O2"))
    laid, finished = done.events[:2]
    assert laid == TilesLaid(2, tuple(sorted(parse_tiles(FOOT_RACK))), parse_hand(FOOT), 0, 14, None)
    assert finished == RackFinished(2, parse_tile("O2"), is_pairs=False, is_at_once=False, is_foot=True)
    round_ = round_of(done.game)
    assert (round_.rack(2).tiles, round_.rack(2).has_melded) == ((), False)


def test_a_foot_needs_no_points() -> None:
    game = at("R7 B1 B2 B3 O2")
    assert kinds(do(game, foot("[R4 R5 R6 R7] | [B1 B2 B3]", "O2")).events)[:2] == [TilesLaid, RackFinished]
    assert Reason.OPENING_BELOW_THRESHOLD in reasons(game, lay("[R4 R5 R6 R7] | [B1 B2 B3]"))


@pytest.mark.parametrize(
    ("game", "action", "expected"),
    [
        pytest.param(
            at(f"{FOOT_RACK} O2", table=".", opened=""),
            foot(FOOT.replace("[R4 R5 R6 R7] | ", ""), "O2"),
            [Reason.FOOT_NEEDS_OPEN_PLAYER, Reason.FOOT_NEEDS_LAY_OFF],
            id="I7",
        ),
        pytest.param(
            at("R7 B1 B2 B3 O2", opened=""),
            foot("[R4 R5 R6 R7] | [B1 B2 B3]", "O2"),
            [Reason.FOOT_NEEDS_OPEN_PLAYER],
            id="nobody has opened",
        ),
        pytest.param(
            at(f"{FOOT_RACK} O2".replace("R7", "B5")),
            foot(FOOT.replace("R6 R7", "R6").replace("B4", "B4 B5"), "O2"),
            [Reason.FOOT_NEEDS_LAY_OFF],
            id="I8",
        ),
        pytest.param(
            at("R7 B1 B2 B3 O2", opened="12"),
            foot("[R4 R5 R6 R7] | [B1 B2 B3]", "O2"),
            [Reason.CONCEALED_AFTER_OPENING],
            id="after opening",
        ),
        pytest.param(
            at("R7 B1 B2 B3 O2 O3"),
            foot("[R4 R5 R6 R7] | [B1 B2 B3]", "O2"),
            [Reason.FINISH_INVALID],
            id="a tile is left",
        ),
        pytest.param(
            at("R7 B1 B2 B3 B4"),
            foot("[R4 R5 R6 R7] | [B1 B2 B3 B4]", "B4"),
            [Reason.FINISH_NEEDS_DISCARD],
            id="no discard is left",
        ),
        pytest.param(
            at("R7 B1 B2 B3 O2"),
            foot("[R4 R5 R6 R7] | [B1 B2 B3]", "O3"),
            [Reason.TILE_NOT_IN_RACK, Reason.FINISH_INVALID],
            id="another discard",
        ),
        pytest.param(
            at("R7 B1 B2 B4 O2"),
            foot("[R4 R5 R6 R7] | [B1 B2 B4]", "O2"),
            [Reason.MELD_NOT_GROUP_NOR_RUN],
            id="no meld",
        ),
        pytest.param(
            at("R7 B1 B2 O2"),
            foot("[R4 R5 R6 R7] | [B1 B2 B3]", "O2"),
            [Reason.TILE_NOT_IN_RACK],
            id="a tile of others",
        ),
        pytest.param(
            at("R7 B1 B2 B3 O2"),
            foot("[R5 R6 R7] | [B1 B2 B3]", "O2"),
            [Reason.TABLE_MELD_CHANGED],
            id="a changed meld",
        ),
        pytest.param(
            at("R5 B1 B2 O2", table="[R4 J R6]"),
            foot("[R4 R5 R6] | [B1 B2 J]", "O2"),
            [Reason.OKEY_TAKEN_BEFORE_OPENING],
            id="a joker of the table",
        ),
        pytest.param(at(LOOSE, step=ToTake()), foot("[R4 R5 R6]", "R2"), [Reason.TURN_PHASE_WRONG], id="before taking"),
    ],
)
def test_what_is_no_foot(game: Game, action: FinishFoot, expected: list[Reason]) -> None:
    assert reasons(game, action) == expected


def test_with_an_empty_pool_a_foot_lays_the_taken_discard() -> None:
    taken = do(at("R7 K10 K11 B1", step=ToTake(), pool="."), TakeDiscard(2)).game
    assert reasons(taken, foot("[R4 R5 R6 R7]", "K9")) == [Reason.TAKEN_TILE_NOT_USED]
    assert kinds(do(taken, foot("[R4 R5 R6 R7] | [K9 K10 K11]", "B1")).events)[:2] == [TilesLaid, RackFinished]


def test_the_record_of_a_foot_plays_it_again() -> None:
    game, action = at(f"{FOOT_RACK} O2"), foot(FOOT, "O2")
    move = move_of(game, 11, NOW, do(game, action).events)
    assert move == Move(11, NOW, MoveKind.FOOT, 2, parse_tiles("O2"), hand=parse_hand(FOOT))
    assert is_complete(move)
    assert list(actions(game, move)) == [action]
    text = MoveText(INTERNATIONAL)
    assert text.format(move) == f"O2 {FOOT}"
    assert text.parse(replace(move, tiles=(), hand=()), Piece(f"O2 {FOOT}"), 1) == move


# Hands


@pytest.mark.parametrize("hand", [HIGH, "."])
def test_i11_a_named_hand_wins_as_it_is_laid_or_as_it_is_found(hand: str) -> None:
    done = do(at(f"{loose(HIGH)} O2"), show("O2", hand))
    finish = is_a(done.events[0], HandFinished)
    assert (finish.name, finish.is_pairs) == ("HIGH_RUNS", False)
    assert {frozenset(part) for part in finish.hand} == {frozenset(part) for part in parse_hand(HIGH)}
    assert points(at(f"{loose(HIGH)} O2"), show("O2", hand)) == {1: 53, 2: -300, 3: 300}


@pytest.mark.parametrize(
    ("rack", "action", "expected"),
    [
        pytest.param(
            f"{loose(HIGH).replace('K13', 'K9')} O2", show("O2"), [Reason.HAND_NOT_MATCHED], id="I12: a tile below 10"
        ),
        pytest.param(
            f"{loose(HIGH).replace('K13', 'K9')} O2",
            show("O2", HIGH.replace("K10 K11 K12 K13", "K9 K10 K11 K12")),
            [Reason.HAND_NOT_MATCHED],
            id="I12 as laid",
        ),
        pytest.param(
            f"{loose(HIGH)} O2",
            show("O2", HIGH.replace(" | [K10 K11 K12 K13]", "")),
            [Reason.HAND_NOT_MATCHED],
            id="a meld is missing",
        ),
        pytest.param(
            f"{loose(HIGH)} O2", show("O2", f"{HIGH} | [O5 O6 O7]"), [Reason.TILE_NOT_IN_RACK], id="a meld of others"
        ),
        pytest.param(f"{loose(HIGH)} O2", show("O3"), [Reason.TILE_NOT_IN_RACK], id="another discard"),
    ],
)
def test_what_is_no_named_hand(rack: str, action: FinishHand, expected: list[Reason]) -> None:
    assert reasons(at(rack), action) == expected


def test_tiles_of_others_in_a_hand_are_named() -> None:
    foreign = Violation(Reason.TILE_NOT_IN_RACK, "hand", parse_tiles("O5 O6 O7"))
    refused = refusal(at(f"{loose(HIGH)} O2"), show("O2", f"{HIGH} | [O5 O6 O7]"))
    assert refused.violations == (foreign,)


def test_no_hand_is_shown_after_opening_or_before_a_tile_is_taken() -> None:
    refused = refusal(at(f"{loose(HIGH)} O2", opened="12"), show("O2"))
    assert refused.violations == (Violation(Reason.CONCEALED_AFTER_OPENING, "hand"),)
    assert reasons(at(loose(HIGH), step=ToTake()), show("R1")) == [Reason.TURN_PHASE_WRONG]


def test_with_an_empty_pool_a_hand_has_the_taken_discard() -> None:
    taken = do(at(loose(HIGH), step=ToTake(), pool="."), TakeDiscard(2)).game
    unused = Violation(Reason.TAKEN_TILE_NOT_USED, "tile", parse_tiles("K9"))
    assert refusal(taken, show("K9")).violations == (unused,)


def test_the_hand_that_scores_the_most_counts() -> None:
    hands = (
        NamedHand("ANY", (100, 90, 80)),
        NamedHand("NO_GROUPS", (120, 110, 100), groups_max=0, one_high=True),
        NamedHand("GROUPS", (500, 500, 500), groups_min=1),
    )
    game = at(f"{loose(HIGH)} O2", rules=replace(INTERNATIONAL, hands=hands))
    assert is_a(do(game, show("O2")).events[0], HandFinished).name == "NO_GROUPS"


def test_one_game_has_its_own_hands() -> None:
    hands = (NamedHand("ANY", (100, 90, 80), one_high=True),)
    game = at(f"{loose(HIGH).replace('K13', 'J')} J", rules=replace(INTERNATIONAL, hands=hands), opened="1")
    assert points(game, show("J")) == {1: 2 * 53, 2: -180, 3: 180}


# Scores


@pytest.mark.parametrize(
    ("others", "opened", "rules", "expected"),
    [
        pytest.param(("K2 K1 B2", "O10 K10 B9 B11 O13 K2"), "123", {}, {1: 14, 2: -100, 3: 51}, id="I1"),
        pytest.param(("K2", "K2"), "2", {}, {1: 200, 2: -200, 3: 200}, id="I2"),
        pytest.param(
            ("K2 K1 B2", "O10 K10 B9 B11 O13 K2"),
            "123",
            {"score_round_up": True},
            {1: 20, 2: -100, 3: 60},
            id="I5",
        ),
        pytest.param(("K13 R1 B7", "K1"), "12", {}, {1: 27, 2: -100, 3: 100}, id="I6"),
        pytest.param(("J", "K12 K11"), "123", {}, {1: 30, 2: -100, 3: 20}, id="a joker is 30"),
    ],
)
def test_an_open_finish_scores_100_or_200_if_nobody_else_has_melded(
    others: tuple[str, str], opened: str, rules: dict[str, bool], expected: dict[int, int]
) -> None:
    game = at("O3", others=others, opened=opened, rules=replace(INTERNATIONAL, **rules))  # type: ignore[arg-type]
    assert points(game, discard("O3")) == expected


def test_i3_a_foot_scores_200() -> None:
    game = at("R7 B1 B2 B3 O2", others=("K10 B10", "K1"))
    assert points(game, foot("[R4 R5 R6 R7] | [B1 B2 B3]", "O2")) == {1: 20, 2: -200, 3: 200}


def test_a_joker_as_the_last_discard_doubles_all_points() -> None:
    assert points(at("J", others=("K10 B4", "K1"), opened="12"), discard("J")) == {1: 28, 2: -200, 3: 200}
    game = at("R7 B1 B2 B3 J", others=("K10 B10", "K1"))
    assert points(game, foot("[R4 R5 R6 R7] | [B1 B2 B3]", "J")) == {1: 40, 2: -400, 3: 400}


def test_nobody_wins_a_round_whose_pool_is_empty() -> None:
    game = at("K2 K1", opened="12", pool=".", step=ToTake(), others=("K13", "K1"))
    ended = do(game, TimeOut(), NOW + 200_000)
    result = next(event.result for event in ended.events if isinstance(event, RoundEnded))
    assert (result.end, result.winners) == (RoundEnd.BLOCKED, ())
    assert {seat.seat: seat.points for seat in result.seats} == {1: 10, 2: 12, 3: 100}


def test_the_fewest_points_win() -> None:
    players = (Player(1, "Ada", 5), Player(2, "Ben", -9), Player(3, "Cem", -70, resigned=True))
    assert game_winners(players, INTERNATIONAL) == (2,)


def test_each_player_takes_a_tile_and_there_is_no_trump() -> None:
    drawn = do(at("R2", step=ToTake()), TakeFromPool(2)).game
    assert round_of(drawn).trump is None
    assert round_of(drawn).rack(2).tiles == parse_tiles("R2 O9")
