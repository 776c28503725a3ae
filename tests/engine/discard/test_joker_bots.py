"""Bots in American and International Rummikub, where two jokers are wild."""

from dataclasses import replace
from itertools import chain

import pytest

from engine.discard.actions import (
    BotAction,
    DiscardTile,
    FinishFoot,
    FinishHand,
    LayTiles,
    PassTurn,
    ReturnDiscard,
    TakeDiscard,
    TakeFromPool,
    TakeTrump,
)
from engine.discard.bots import action_without_play, choose_action
from engine.discard.game import round_of
from engine.discard.notation import parse_hand
from engine.discard.presets import AMERICAN, INTERNATIONAL
from engine.discard.round import HasLaid, ToDiscard, ToTake
from engine.discard.ruleset import Ruleset, WildRetrieval
from engine.game import Finished, Game
from engine.notation import parse_tile
from engine.seats import BotLevel
from engine.sight import see
from support.okey_games import game_at, started
from support.positions import do
from support.soak import few_of

MASTER = BotLevel.MASTER
TAKEN = ToDiscard(parse_tile("O1"))
HIGH = "R10 R11 R12 R13 R1 B10 B11 B12 B13 B1 K10 K11 K12 K13"


def at(
    rack: str,
    step: ToTake | ToDiscard | HasLaid = TAKEN,
    *,
    table: str = "[K4 K5 K6]",
    opened: str = "12",
    face_up: str = "J R8",
    discard: str = "",
    pool: str = "{O1 O1 O2 O2 O3 O3}",
    ruleset: Ruleset = AMERICAN,
) -> Game:
    """Returns a game in which seat 2 has a rack and the turn, and seat 3 before it has a discard."""
    tiles = {1: "R2 R4 B1 B9", 2: rack, 3: "R2 R4 B1 B9"}
    racks = " ".join(f"{seat}{'*' * (str(seat) in opened)}{{{tiles[seat]}}}" for seat in tiles)
    openings = " ".join(f"{seat}:50" for seat in opened) or "."
    position = f"{face_up} / 1{{}} 2{{}} 3{{{discard}}} / {racks} / {pool} / 2 / {table} / {openings}"
    return game_at(position, ruleset, discarded=(1, 2, 3), step=step)


def chosen(game: Game) -> BotAction:
    """Returns the action of a bot that overlooks nothing, which must be legal."""
    action = choose_action(see(game, 2), MASTER)
    do(game, action)
    return action


def melds_of(action: BotAction) -> set[frozenset[int]]:
    assert isinstance(action, LayTiles | FinishFoot), action
    return {frozenset(part) for part in action.table}


# Taking


@pytest.mark.parametrize(
    ("table", "opened", "face_up", "expected"),
    [
        ("[R5 R6 R7]", "12", "J R8", TakeTrump(2)),
        ("[R5 R6 R7]", "1", "J R8", TakeFromPool(2)),
        ("[R5 R6 R7]", "12", "J B8", TakeFromPool(2)),
        ("[R5 R6 R7]", "12", "J", TakeFromPool(2)),
    ],
)
def test_bots_take_a_trump_that_they_can_lay(table: str, opened: str, face_up: str, expected: BotAction) -> None:
    game = at("B1 K3 O12", ToTake(), table=table, opened=opened, face_up=face_up)
    assert chosen(game) == expected
    if expected == TakeTrump(2):
        assert isinstance(chosen(do(game, expected).game), LayTiles)


@pytest.mark.parametrize(("discard", "expected"), [("K7", TakeDiscard(2)), ("K8", PassTurn(2)), ("", PassTurn(2))])
def test_bots_take_what_they_can_lay_or_pass_with_an_empty_pool(discard: str, expected: BotAction) -> None:
    assert chosen(at("B1 K3 O12", ToTake(), pool=".", discard=discard, face_up="J")) == expected


@pytest.mark.parametrize(
    ("rack", "opened", "expected"),
    [
        ("R8 R9 B1 B5", "1", TakeDiscard(2)),
        ("R6 R9 B1 B5", "1", TakeFromPool(2)),
        ("R6 R9 B1 B5", "12", TakeFromPool(2)),
    ],
)
def test_a_bot_that_has_not_opened_keeps_a_discard_that_helps_it(rack: str, opened: str, expected: BotAction) -> None:
    game = at(rack, ToTake(), opened=opened, discard="R10", ruleset=INTERNATIONAL, face_up="J")
    assert chosen(game) == expected
    if expected == TakeDiscard(2):
        assert isinstance(chosen(do(game, expected).game), DiscardTile)


def test_without_a_search_a_bot_passes_or_puts_a_taken_tile_back() -> None:
    assert action_without_play(see(at("B1", ToTake(), pool="."), 2)) == PassTurn(2)
    taken = do(at("B1", ToTake(), pool=".", discard="K7"), TakeDiscard(2)).game
    assert action_without_play(see(taken, 2)) == ReturnDiscard(2)


# Laying


@pytest.mark.parametrize(
    ("table", "rack", "expected"),
    [
        ("[R3 J R5]", "R4 O8 O9 B1", "[R3 R4 R5] | [O8 O9 J]"),
        ("[R5 B5 J]", "K5 O5 O8 O9 B1", "[R5 B5 K5 O5] | [O8 O9 J]"),
        ("[R5 B5 K5 J]", "O5 O8 O9 B1", "[R5 B5 K5 O5] | [O8 O9 J]"),
        ("[R3 R4 R5]", "R6 B1", "[R3 R4 R5 R6]"),
    ],
)
def test_bots_take_a_joker_of_the_table_for_a_new_meld(table: str, rack: str, expected: str) -> None:
    assert melds_of(chosen(at(rack, table=table))) == {frozenset(part) for part in parse_hand(expected)}


@pytest.mark.parametrize(("table", "rack"), [("[R3 J R5]", "R4 O8 B1"), ("[R5 B5 J]", "K5 O8 O9 B1")])
def test_bots_leave_a_joker_that_they_cannot_lay(table: str, rack: str) -> None:
    action = chosen(at(rack, table=table))
    assert parse_tile("J") not in chain(*(action.table[1:] if isinstance(action, LayTiles) else ()))


def test_bots_take_a_joker_to_their_rack_where_the_rules_allow_it() -> None:
    game = at("R4 O8 B1 B5", table="[R3 J R5]", ruleset=replace(AMERICAN, wild_retrieval=WildRetrieval.TO_RACK))
    action = chosen(game)
    assert isinstance(action, LayTiles)
    assert action.table[0][:3] == parse_hand("[R3 R4 R5]")[0]


# Winning concealed


def test_an_expert_shows_a_named_hand() -> None:
    game = at(f"{HIGH} J", ruleset=INTERNATIONAL, opened="1")
    action = chosen(game)
    assert isinstance(action, FinishHand)
    assert action.tile == parse_tile("J")


@pytest.mark.parametrize(
    ("rack", "expected", "discards"),
    [
        ("K7 R1 R2 R3 B13", "[K4 K5 K6 K7] | [R1 R2 R3]", "B13"),
        ("K7 R1 R2 R3 J", "[K4 K5 K6 K7] | [R1 R2 R3]", "J"),
        ("K7 R1 R2 J B13", "[K4 K5 K6 K7] | [R1 R2 J]", "B13"),
    ],
)
def test_an_expert_makes_a_foot(rack: str, expected: str, discards: str) -> None:
    action = chosen(at(rack, ruleset=INTERNATIONAL, opened="1"))
    assert isinstance(action, FinishFoot)
    assert melds_of(action) == {frozenset(part) for part in parse_hand(expected)}
    assert action.tile == parse_tile(discards)


@pytest.mark.parametrize(
    ("rack", "opened", "table"),
    [
        ("K7 R1 R2 R3 B13", "", "[K4 K5 K6]"),
        ("K7 R1 R2 R3 B13 B11", "1", "[K4 K5 K6]"),
        ("K7 R1 R2 R4 B13 O2", "1", "[K4 K5 K6]"),
        ("R1 R2 R3 B13", "1", "[K4 K5 K6]"),
    ],
    ids=["nobody has opened", "two tiles left", "tiles left over", "nothing to lay off"],
)
def test_other_racks_make_no_foot(rack: str, opened: str, table: str) -> None:
    assert isinstance(chosen(at(rack, ruleset=INTERNATIONAL, opened=opened, table=table)), DiscardTile)


def test_with_an_empty_pool_a_bot_shows_no_hand_without_the_taken_discard() -> None:
    taken = do(at(HIGH, ToTake(), pool=".", discard="K9", ruleset=INTERNATIONAL, opened="1"), TakeDiscard(2)).game
    assert not isinstance(chosen(taken), FinishHand)


# Whole rounds


@pytest.mark.parametrize("rules", [AMERICAN, INTERNATIONAL], ids=["American", "International"])
@pytest.mark.parametrize("level", few_of(BotLevel, 2))
def test_bots_play_a_round_to_its_end(level: BotLevel, rules: Ruleset) -> None:
    game = started(7, replace(rules, match_rounds=1), (None,) * 3)
    for _ in range(400):
        game = do(game, choose_action(see(game, round_of(game).turn.seat), level)).game
        if isinstance(game.phase, Finished):
            break
    assert isinstance(game.phase, Finished)
