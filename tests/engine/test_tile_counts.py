"""Tallies are counters: of the same tiles, both say the same."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.fast.tile_counts import (
    CROWDED,
    JOKERS,
    MARK,
    MARKED,
    beyond,
    close_tally,
    counted,
    divided,
    is_within,
    moved,
    tally,
    tiles_of,
)
from engine.tiles import JOKER, LAST_TILE, Tile, in_order, naturals

FACES = (*naturals(6), JOKER)
TILES = st.lists(st.sampled_from(FACES), max_size=60)
FEW_FACES = st.lists(st.sampled_from((FACES[0], JOKER, Tile(LAST_TILE))), max_size=120)
"""Many of a face: the lowest, the joker, the highest."""


@given(TILES | FEW_FACES, TILES | FEW_FACES, TILES)
def test_tallies_are_counters(ones: list[Tile], others: list[Tile], rack: list[Tile]) -> None:
    first, second = tally(ones), close_tally(others) + MARK
    only, lacking = Counter(ones) - Counter(others), Counter(others) - Counter(ones)
    assert tiles_of(first) == in_order(ones)
    assert tiles_of(beyond(first, second)) == in_order(only.elements())
    assert [tiles_of(some) for some in moved(first, second, tally(rack))] == [
        in_order(some.elements()) for some in (only, lacking, only - Counter(rack))
    ]
    assert is_within(first, second) == (not only)
    assert [counted(second, face) for face in FACES] == [others.count(face) for face in FACES]
    assert bool(first & JOKERS) == (JOKER in ones)


@given(st.lists(TILES, max_size=6))
def test_a_sum_of_tallies_is_the_tally_of_all(tables: list[list[Tile]]) -> None:
    tiles = [t for table in tables for t in table]
    most = sum(max(Counter(table).values(), default=0) for table in tables)
    for total, is_crowded in ((sum(map(tally, tables)), len(tiles) > 127), (sum(map(close_tally, tables)), most > 127)):
        assert bool(total & CROWDED) == is_crowded
        if not is_crowded:
            assert tiles_of(total) == in_order(tiles)


@pytest.mark.parametrize("count", [1, 2, 127, 128, 255, 256, 257, 4_096])
def test_a_face_that_is_more_often_than_can_be_told_makes_a_tally_crowded(count: int) -> None:
    for total in (tally([JOKER] * count), close_tally([JOKER] * count), close_tally([JOKER]) * count):
        assert bool(total & CROWDED) == (count > 127)
        assert not total & MARKED
    assert not close_tally(FACES) & CROWDED


@pytest.mark.parametrize("count", [1, 2, 128, 4_096])
def test_marks_are_in_the_sum(count: int) -> None:
    total = (close_tally([Tile(1)]) + MARK) * count + close_tally([Tile(1)]) * count
    assert total & MARKED
    assert bool(total & CROWDED) == (2 * count > 127)


@given(TILES, st.randoms(use_true_random=False))
def test_tiles_are_divided_by_a_tally_of_some_of_them(tiles: list[Tile], rng: random.Random) -> None:
    taken = rng.sample(tiles, rng.randint(0, len(tiles)))
    has, lacks = divided(in_order(tiles), tally(taken))
    assert has == in_order(taken)
    assert lacks == in_order((Counter(tiles) - Counter(taken)).elements())
