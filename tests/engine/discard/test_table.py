from itertools import combinations

import pytest

from engine.discard.melds import meld_points
from engine.discard.notation import parse_hand
from engine.discard.table import Opening, Table, fits, growths, wild_taken
from engine.notation import format_tiles, parse_tile, parse_tiles

OKEY = parse_tile("R5")


@pytest.mark.parametrize(
    ("old", "new", "taken"),
    [
        ("K4 K5 K6", "K4 K5 K6", 0),
        ("K4 K5 K6", "K3 K4 K5 K6 K7 K8", 0),
        ("K4 K5 K6", "R5 K4 K5 K6", 0),
        ("K4 R5 K6", "K4 K5 K6", 1),
        ("K4 R5 K6", "K4 K5 K6 R5", 1),
        ("K4 R5 R5", "K4 K5 K6", 2),
        ("R5 R5 K4", "K2 R5 K4", 1),
        ("R4 F R6", "R3 R4 F R6", 0),
        ("R4 R5 R6", "R4 F R6", 1),
        ("R7 B7 K7", "O7 R7 B7 K7", 0),
        ("R7 B7 R5", "R7 K7 B7", 1),
        ("R7 B7 R5", "R7 K7 B7 R5", 0),
        ("R7 R5 R5", "R7 B7 R5", 1),
        ("R7 R5 R5", "R7 R8 R5", 1),
        ("R7 R5 R5", "R7 R5 R5 R10", 0),
        ("K4 R5", "K4 K4", 1),
        ("K4 R5", "R5 K4", 0),
        ("F R5", "F F", 1),
        ("R5 R5", "R5 R5", 0),
        ("K4 K5 K6", "K5 K6 K7", None),
        ("K4 K5 K6 K7", "K4 K5 K6", None),
        ("K4 K5 K6", "K6 K5 K4", None),
        ("K4 R5 K6", "K4 R4 K6", None),
        ("R7 B7 K7 O7", "R7 B7 K7", None),
        ("R7 B7 K7", "R7 B7 O7", None),
        ("R7 R5 R5", "B7 R5 R5", None),
        ("R5 R5", "R5 K4", None),
        ("K4 R5", "B4 R5", None),
        ("K4 K4", "K4 K4 K4", None),
        ("K4 K5 K6", "", None),
    ],
)
def test_a_meld_only_grows(old: str, new: str, taken: int | None) -> None:
    assert wild_taken(parse_tiles(old), parse_tiles(new), OKEY, one_high=False) == taken


def test_a_run_grows_beyond_13_only_where_a_1_may_follow() -> None:
    run, longer = parse_tiles("K11 K12 K13"), parse_tiles("K11 K12 K13 K1")
    assert wild_taken(run, longer, OKEY, one_high=True) == 0
    assert wild_taken(run, longer, OKEY, one_high=False) is None
    assert wild_taken(parse_tiles("K12 R5 K1"), parse_tiles("K11 K12 R5 K1"), OKEY, one_high=True) == 0


@pytest.mark.parametrize(
    ("meld", "tile", "grown"),
    [
        ("K4 K5 K6", "K7", ["K4 K5 K6 K7"]),
        ("K4 K5 K6", "K3", ["K3 K4 K5 K6"]),
        ("K4 K5 K6", "R5", ["K4 K5 K6 R5", "R5 K4 K5 K6"]),
        ("K4 R5 K6", "K5", ["K4 K5 K6"]),
        ("R7 B7 R5", "K7", ["R7 B7 K7", "R7 B7 R5 K7", "K7 R7 B7 R5"]),
        ("K12 R5", "K12", ["K12 K12"]),
        ("K4 K5 K6", "K8", []),
        ("K4 K4", "R5", []),
    ],
)
def test_what_a_tile_makes_of_a_meld(meld: str, tile: str, grown: list[str]) -> None:
    found = growths(parse_tiles(meld), parse_tile(tile), OKEY, one_high=False)
    assert [format_tiles(one) for one in found] == grown


def test_a_tile_fits_on_a_table_with_a_meld_that_it_makes_grow() -> None:
    table = Table(parse_hand("[B9 R5 B11] | [O4 O4]"))
    fitting = [
        name for name in ("B8", "B10", "B12", "B13", "O4", "R5") if fits(table, parse_tile(name), OKEY, one_high=False)
    ]
    assert fitting == ["B8", "B10", "B12", "R5"]
    assert not fits(Table(), OKEY, OKEY, one_high=False)


def test_a_table_knows_how_players_opened() -> None:
    melds, pairs, later = (
        Opening(2, is_pairs=False, amount=105),
        Opening(1, is_pairs=True, amount=5),
        Opening(4, is_pairs=False, amount=110),
    )
    table = Table((), (melds, pairs, later))
    assert [table.opening(seat) for seat in (1, 2, 3)] == [pairs, melds, None]
    assert (table.last_opening(is_pairs=False), table.last_opening(is_pairs=True)) == (later, pairs)
    assert Table().last_opening(is_pairs=True) is None


@pytest.mark.parametrize(
    ("meld", "points"),
    [
        ("K11 K12 K13", 36),
        ("R5 R5 K13", 39),
        ("K1 R5 R5", 6),
        ("K11 R5 R5", 36),
        ("R5 K12 R5", 36),
        ("R4 F R6", 15),
        ("R7 B7 K7 R5", 28),
        ("K12 K13 K1", 0),
        ("K4 K4 R5", 0),
        ("R5 R5", 0),
    ],
)
def test_a_meld_counts_its_values_and_an_okey_what_it_stands_for(meld: str, points: int) -> None:
    assert meld_points(parse_tiles(meld), OKEY, one_high=False) == points


def test_a_1_after_a_13_counts_1() -> None:
    assert meld_points(parse_tiles("K12 K13 K1"), OKEY, one_high=True) == 26


def test_all_parts_of_a_run_grow_to_it() -> None:
    run = parse_tiles("O1 O2 O3 O4 O5 O6 O7")
    parts = [run[first:end] for first, end in combinations(range(len(run) + 1), 2) if end - first > 2]
    assert {wild_taken(part, run, OKEY, one_high=False) for part in parts} == {0}
