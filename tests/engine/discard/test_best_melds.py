import random
from collections import Counter
from dataclasses import replace

import pytest

from engine.discard.best_melds import Memo, Missing, best_melds, best_pairs, missing_to_open
from engine.discard.melds import meld_points, okey_of
from engine.discard.notation import format_hand
from engine.discard.presets import OKEY_101
from engine.discard.table import Opening, Table
from engine.notation import parse_tile, parse_tiles
from engine.tiles import NATURALS, Tile, in_order
from oracles.okey_101 import MostPoints
from support.okey_games import TILES

OKEY = parse_tile("R5")


@pytest.mark.parametrize(
    ("rack", "points", "melds"),
    [
        ("R1 B5 K9", 0, "."),
        ("K11 K12 K13 R13 B13 O1", 39, "[R13 B13 K13]"),
        ("K11 K12 R5 O1 O2", 36, "[K11 K12 R5]"),
        ("K13 R5 R5 O1", 39, "[K13 R5 R5]"),
        ("R4 F R6 O1", 15, "[R4 F R6]"),
        ("O1 O2 O3 O4 O5 O6 O7", 28, "[O1 O2 O3] | [O4 O5 O6 O7]"),
    ],
)
def test_the_melds_with_the_most_points(rack: str, points: int, melds: str) -> None:
    best = best_melds(parse_tiles(rack), OKEY, one_high=False)
    assert best.points == points
    assert sum(meld_points(meld, OKEY, one_high=False) for meld in best.melds) == points
    if points not in {28, 39}:
        assert format_hand(best.melds) == melds


def test_a_wild_tile_is_kept_where_it_adds_nothing() -> None:
    best = best_melds(parse_tiles("R7 B7 K7 R1"), OKEY, one_high=False)
    assert format_hand(best.melds) == "[R7 B7 K7]"


def test_a_tile_that_must_be_in_a_meld() -> None:
    rack = parse_tiles("K11 K12 K13 R13 B13 R5")
    assert best_melds(rack, OKEY, one_high=False, with_tile=parse_tile("K11")).points == 75
    with_okey = best_melds(rack, OKEY, one_high=False, with_tile=OKEY)
    assert any(OKEY in meld for meld in with_okey.melds)
    assert best_melds(parse_tiles("K11 K12 K13 O1"), OKEY, one_high=False, with_tile=parse_tile("O1")).melds == ()


def test_racks_that_share_states_have_the_same_melds() -> None:
    rack, memo = parse_tiles("R5 R5 R6 R7 B7 K7 K8 K9 O9 B9 O1 O2"), Memo()
    for t in (*NATURALS[:26], OKEY):
        more = in_order((*rack, t))
        assert best_melds(more, OKEY, one_high=False, memo=memo) == best_melds(more, OKEY, one_high=False)


def test_the_most_pairs() -> None:
    def pairs(rack: str) -> set[str]:
        return set(format_hand(best_pairs(parse_tiles(rack), OKEY)).split(" | "))

    assert pairs("R1 R1 B2 K9 F F") == {"[R1 R1]", "[F F]"}
    assert pairs("R1 R1 B2 K9 R5") == {"[R1 R1]", "[K9 R5]"}
    assert pairs("R1 R1 R5 R5") == {"[R1 R1]", "[R5 R5]"}
    assert pairs("R1 F R5 R5") == {"[R1 R5]", "[F R5]"}
    assert pairs("R1 B2") == {"."}


@pytest.mark.parametrize(
    ("rack", "table", "rules", "expected"),
    [
        ("K11 K12 K13 O1 O1 R2 R2", Table(), {}, Missing(65, 3)),
        ("K11 K12 K13 O1 O1 R2 R2", Table(), {"opening_points": 30, "opening_pairs": 2}, Missing(0, 0)),
        (
            "K11 K12 K13 O1 O1 R2 R2",
            Table((), (Opening(2, is_pairs=False, amount=110), Opening(3, is_pairs=True, amount=6))),
            {"opening_rises": True},
            Missing(75, 5),
        ),
        ("K11 K12 K13 O1 O1", Table(), {"opening_pairs": 0}, Missing(65, None)),
    ],
)
def test_what_a_player_lacks_to_open(rack: str, table: Table, rules: dict[str, object], expected: Missing) -> None:
    assert missing_to_open(parse_tiles(rack), OKEY, table, replace(OKEY_101, **rules)) == expected  # type: ignore[arg-type]


def random_rack(rng: random.Random) -> tuple[tuple[Tile, ...], Tile]:
    okey = okey_of(rng.choice(NATURALS))
    wild, others = rng.randrange(3), [t for t in TILES if t != okey]
    near = rng.randrange(1, 40)
    tiles = [t for t in others if not near < t < near + 13] if rng.random() < 0.5 else others
    return in_order((*rng.sample(tiles, rng.choice((8, 14, 21)) - wild), *(okey,) * wild)), okey


def check_racks(seed: int, number: int) -> None:
    rng = random.Random(seed)
    for one_high in (False, True):
        program = MostPoints(one_high=one_high)
        for _ in range(number // 2):
            rack, okey = random_rack(rng)
            best = best_melds(rack, okey, one_high=one_high)
            points = [meld_points(meld, okey, one_high=one_high) for meld in best.melds]
            assert all(points), best
            assert sum(points) == best.points
            assert not Counter(t for meld in best.melds for t in meld) - Counter(rack)
            assert best.points == program.points(rack, okey), (rack, okey)
            tile = rng.choice(rack)
            forced = best_melds(rack, okey, one_high=one_high, with_tile=tile)
            assert forced.points <= best.points
            assert not forced.melds or any(tile in meld for meld in forced.melds)


@pytest.mark.slow
@pytest.mark.unmeasured
def test_an_integer_program_finds_as_many_points() -> None:
    check_racks(1, 100)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 10))
def test_an_integer_program_finds_as_many_points_on_many_racks(seed: int) -> None:
    check_racks(seed, 2_000)
