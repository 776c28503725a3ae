"""Details of 101 Okey that only a change of one place in the rules would break."""

from dataclasses import replace

import pytest

from engine.discard.best_melds import Missing, best_melds, missing_to_open
from engine.discard.events import PenaltyScored
from engine.discard.game import round_of
from engine.discard.laying import PenaltyCause, TurnAtTable, judge_turn
from engine.discard.notation import parse_hand
from engine.discard.presets import OKEY_101
from engine.discard.scoring import points_of
from engine.discard.table import Opening, Table, is_legal, wild_taken
from engine.game import RoundEnd
from engine.notation import parse_tile, parse_tiles
from engine.tiles import in_order
from engine.violations import Reason
from support.okey_games import game_at

OKEY = parse_tile("R5")
WITH_MELDS = (Opening(1, is_pairs=False, amount=105),)
WITH_PAIRS = (Opening(1, is_pairs=True, amount=5),)


def reasons(
    table: str, rack: str, after: str, openings: tuple[Opening, ...] = WITH_MELDS, **rules: object
) -> list[Reason]:
    """Returns why a step of seat 1 is refused."""
    turn = TurnAtTable(1, OKEY, Table(parse_hand(table), openings), in_order(parse_tiles(rack)))
    ruleset = replace(OKEY_101, **rules)  # type: ignore[arg-type]
    return [one.reason for one in judge_turn(turn, parse_hand(after), None, ruleset).violations]


@pytest.mark.parametrize(
    ("table", "rack", "after", "expected"),
    [
        ("[R1 R2 R3]", "B1 R4 O9", "[B1 R2 R3 R4]", Reason.TABLE_MELD_CHANGED),
        ("[K1 R5 K3]", "K2 K9 O9", "[K1 K2 K3 K9]", Reason.MELD_NOT_GROUP_NOR_RUN),
        ("[R4 F R6]", "K9 R5 O9", "[R4 R5 R6 K9]", Reason.TABLE_MELD_CHANGED),
        ("[R4 F R6]", "K9 R5 O9", "[R4 F R6 K9]", Reason.MELD_NOT_GROUP_NOR_RUN),
    ],
)
def test_a_meld_lacks_a_tile_or_has_one_that_does_not_fit(table: str, rack: str, after: str, expected: Reason) -> None:
    assert expected in reasons(table, rack, after)


def test_a_single_pair_opens_where_the_rules_ask_for_one() -> None:
    assert reasons(".", "K9 K9 O1", "[K9 K9]", (), opening_pairs=1) == []


@pytest.mark.parametrize(
    ("rack", "after", "count"), [("K7 O9", "[K4 K5 K6 K7]", 1), ("K7 K8 O9", "[K4 K5 K6 K7 K8]", 2)]
)
def test_a_player_who_opened_with_pairs_may_lay_a_single_tile_in_a_turn(rack: str, after: str, count: int) -> None:
    expected = [Reason.TOO_MANY_TILES_LAID] if count > 1 else []
    assert reasons("[K4 K5 K6]", rack, after, WITH_PAIRS, pair_opener_tiles=1) == expected


@pytest.mark.parametrize(
    ("melds", "expected"),
    [
        ("[B9 R5]", True),
        ("[R7 B7 R5]", True),
        ("[K4 R5 K6]", True),
        ("[R4 F R6]", True),
        ("[R4 B9]", False),
        ("[K4 K6 K8]", False),
    ],
)
def test_a_legal_table_may_have_okeys(melds: str, expected: bool) -> None:
    assert is_legal(Table(parse_hand(melds)), OKEY, one_high=False) == expected


def test_an_okey_does_not_take_the_place_of_a_false_joker() -> None:
    old, new = parse_tiles("F B5 K5"), parse_tiles("R5 B5 K5")
    assert wild_taken(old, new, OKEY, one_high=False) is None


def test_penalties_of_a_player_add_up() -> None:
    twice = (PenaltyScored(2, 101, PenaltyCause.OKEY_DISCARDED), PenaltyScored(2, 101, PenaltyCause.DISCARD_FITS_TABLE))
    game = game_at("R4 / 1{} 2{} / 1{K9} 2{O1} / {O9} / 2 / [K4 K5 K6] /", OKEY_101, penalties=twice)
    assert points_of(round_of(game), RoundEnd.BLOCKED, OKEY_101) == {1: 202, 2: 404}


@pytest.mark.parametrize(
    ("rack", "points"),
    [
        ("R1 R1 R2 R2 R3 R3 B7 B7 B8 B8 B9 B9", 60),
        ("R1 R1 R2 R2 R3 R3 R4 B7 B8 B9", 40),
        ("R1 R2 R3 B7 B7 B8 B9 K7", 30),
    ],
)
def test_the_copies_of_a_tile_are_in_different_melds(rack: str, points: int) -> None:
    assert best_melds(parse_tiles(rack), OKEY, one_high=False).points == points


def test_an_okey_counts_in_what_a_player_lacks_to_open() -> None:
    assert missing_to_open(parse_tiles("K11 R5 K13 O1"), OKEY, Table(), OKEY_101) == Missing(101 - 36, 4)
