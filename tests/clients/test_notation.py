"""Names of tiles and texts of melds."""

import pytest

import rummikub


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("R7", rummikub.TILE_RED_7),
        ("B13", rummikub.TILE_BLUE_13),
        ("K1", rummikub.TILE_BLACK_1),
        ("O10", rummikub.TILE_ORANGE_10),
        ("G5", rummikub.TILE_GREEN_5),
        ("P2", rummikub.TILE_PURPLE_2),
        ("J", rummikub.TILE_JOKER),
        ("F", rummikub.TILE_FALSE_JOKER),
        ("D", rummikub.TILE_DOUBLE_JOKER),
        ("M", rummikub.TILE_MIRROR),
        ("C", rummikub.TILE_COLOR_CHANGE),
    ],
)
def test_a_tile_has_a_name(name: str, number: rummikub.Tile.ValueType) -> None:
    assert rummikub.tile(name) == rummikub.tile(name.lower()) == number
    assert rummikub.tile_name(number) == name


def test_every_tile_has_a_name_of_its_own() -> None:
    numbers = [number for number in rummikub.Tile.values() if number]
    assert [rummikub.tile(rummikub.tile_name(number)) for number in numbers] == numbers


def test_a_tile_of_a_newer_server_is_shown_by_its_number() -> None:
    assert rummikub.tile_name(rummikub.Tile.ValueType(99)) == "?99"


@pytest.mark.parametrize("name", ["", "R0", "R14", "X3", "R07", "?99"])
def test_a_wrong_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="names are like R7"):
        rummikub.tile(name)


@pytest.mark.parametrize("text", [".", "[R7 R8 R9]", "[R7 R8 R9] | [B1 K1 J]", "[]"])
def test_melds_are_read_and_written_as_the_same_text(text: str) -> None:
    assert rummikub.melds_text(rummikub.melds(text)) == text


@pytest.mark.parametrize("text", ["R7 R8 R9", "[R7 R8", "[R7] [R8]", "[R7] |", "[[R7]]"])
def test_a_text_that_is_no_melds_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a list of melds"):
        rummikub.melds(text)


def at(name: str, x: int, y: int) -> rummikub.Placement:
    return rummikub.Placement(tile=rummikub.tile(name), x=x, y=y)


def test_a_table_of_the_cross_layout_is_the_text_of_its_rows() -> None:
    row = [at("R4", 1, 0), at("R3", 0, 0)]
    assert rummikub.table_text(rummikub.Table(placements=row)) == "0,0[R3 R4]"
    others = [at("B4", 1, 1), at("J", 3, 0), at("R9", -2, -1)]
    text = "-2,-1[R9] | 0,0[R3 R4] | 3,0[J] | 1,1[B4]"
    assert rummikub.table_text(rummikub.Table(placements=row + others)) == text


@pytest.mark.parametrize("text", [".", "[R7 R8 R9] | [B1 K1 J]"])
def test_a_table_of_melds_is_the_text_of_its_melds(text: str) -> None:
    assert rummikub.table_text(rummikub.Table(melds=rummikub.melds(text))) == text


def test_a_board_of_discards_is_the_text_of_its_indicator_okey_newest_discards_and_table() -> None:
    piles = [rummikub.DiscardPile(seat=1, newest=rummikub.TILE_FALSE_JOKER, tile_count=2), rummikub.DiscardPile(seat=3)]
    board = rummikub.DiscardBoard(indicator=rummikub.tile("O4"), okey=rummikub.tile("O5"), piles=piles)
    assert rummikub.board_text(board) == "O4 / O5 / 1{F} 3{}"
    board.table.add(tiles=rummikub.tiles("R7 R8 R9"))
    board.table.add(tiles=rummikub.tiles("B1 B1"))
    assert rummikub.board_text(board) == "O4 / O5 / 1{F} 3{} / [R7 R8 R9] | [B1 B1]"
    assert rummikub.board_text(rummikub.Game().discard_board) == "."
    assert rummikub.board_text(rummikub.DiscardBoard(trump=rummikub.tile("R8"), piles=piles)) == "R8 / 1{F} 3{}"
    assert rummikub.board_text(rummikub.DiscardBoard(piles=piles)) == "1{F} 3{}"
