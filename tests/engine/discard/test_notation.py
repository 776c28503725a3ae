from dataclasses import replace

import pytest

from engine.discard.game import round_of
from engine.discard.notation import format_hand, format_position, parse_hand, parse_position, position_of
from engine.discard.presets import AMERICAN, INTERNATIONAL, OKEY_101
from engine.discard.round import Pile
from engine.discard.ruleset import OKEY, Ruleset
from engine.discard.table import Opening, Table
from engine.notation import NotationError, parse_tiles
from engine.seats import Rack
from engine.tiles import JOKER, Tile
from support.okey_games import game_at, started

POSITION = "O4 / 1{R7 K1} 2{} / 1{R2 B5} 2{K1 F} / {R7 O8} / 1"


def test_a_position_has_indicator_discards_racks_pool_and_turn() -> None:
    position = parse_position(POSITION)
    assert position.indicator == parse_tiles("O4")[0]
    assert position.piles == (Pile(1, parse_tiles("R7 K1")), Pile(2))
    assert position.racks == (Rack(1, parse_tiles("R2 B5")), Rack(2, parse_tiles("K1 F")))
    assert (position.pool, position.turn_seat) == (parse_tiles("R7 O8"), 1)
    assert format_position(position) == POSITION


@pytest.mark.parametrize(
    "table",
    [
        Table(),
        Table(
            (parse_tiles("R3 R4 R5"), parse_tiles("B6 B6")),
            (Opening(1, is_pairs=False, amount=105), Opening(2, is_pairs=True, amount=5)),
        ),
    ],
)
def test_a_position_can_have_a_table_and_openings(table: Table) -> None:
    position = replace(parse_position(POSITION), table=table)
    text = format_position(position)
    assert parse_position(text) == position
    assert text == f"{POSITION} / " + ("[R3 R4 R5] | [B6 B6] / 1:105 2:5p" if table.melds else ". / .")


@pytest.mark.parametrize(
    ("seed", "ruleset"), [(0, OKEY), (1, OKEY), (2, OKEY_101), (3, OKEY_101), (4, AMERICAN), (5, INTERNATIONAL)]
)
def test_positions_of_games_are_read_as_they_are_written(seed: int, ruleset: Ruleset) -> None:
    round_ = round_of(started(seed, ruleset))
    text = format_position(position_of(round_))
    assert parse_position(text) == position_of(round_)
    assert position_of(round_of(game_at(text))) == position_of(round_)


@pytest.mark.parametrize(("first", "trump"), [("J", None), ("J R8", parse_tiles("R8")[0]), ("J J", JOKER)])
def test_a_position_of_a_game_with_jokers_has_a_trump_or_none(first: str, trump: Tile | None) -> None:
    text = POSITION.replace("O4", first)
    position = parse_position(text)
    assert (position.indicator, position.trump) == (None, trump)
    assert format_position(position) == text


@pytest.mark.parametrize("text", [".", "[R3 R4 R5] | [B6 K6 O6]", "[R3 R3] | [F K1]"])
def test_hands_are_read_as_they_are_written(text: str) -> None:
    assert format_hand(parse_hand(text)) == text


def test_no_text_is_an_empty_hand() -> None:
    assert parse_hand(" ") == ()


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("R3 R4", "is not a meld or a pair", 1),
        ("[R3 R4] [R5]", "follows a meld", 9),
        ("[R3 X4]", "is not a tile", 5),
    ],
)
def test_what_is_no_hand_is_refused_with_its_column(text: str, message: str, column: int) -> None:
    with pytest.raises(NotationError, match=message) as caught:
        parse_hand(text)
    assert caught.value.column == column


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("F / 1{} / 1{R1} / . / 1", "is not an indicator", 1),
        ("J F / 1{} / 1{R1} / . / 1", "is not an indicator", 1),
        ("O4 R1 / 1{} / 1{R1} / . / 1", "is not an indicator", 1),
        ("J R1 R2 / 1{} / 1{R1} / . / 1", "is not an indicator", 1),
        ("O4 / 1{} 1{} / 1{R1} / . / 1", "has two racks", 10),
        ("O4 / 1{} / 1{R1} / .", "a part is missing", 20),
        ("O4 / 1{} / 1{R1} / . / 2", "has no rack", 24),
        ("O4 / 1{} / 1{R1} / . / 1 / .", "a part is missing", 28),
        ("O4 / 1{} / 1{R1} / . / 1 / R1 / .", "is not a meld or a pair", 28),
        ("O4 / 1{} / 1{R1} / . / 1 / . / 1:x", "is not an opening", 32),
    ],
)
def test_what_is_no_position_is_refused_with_its_column(text: str, message: str, column: int) -> None:
    with pytest.raises(NotationError, match=message) as caught:
        parse_position(text)
    assert caught.value.column == column
