"""Tile counts agree with collections.Counter."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.melding.fast.tile_counts import (
    FLAG,
    FLAGGED,
    JOKER_COUNTS,
    OVERFLOW,
    count_of,
    counts_of,
    exchange,
    is_within,
    split,
    subtract,
    tight_counts_of,
    tiles_of,
)
from engine.tiles import JOKER, JOKERS, LAST_TILE, Tile, in_order, naturals

FACES = (*naturals(6), JOKER)
TILES = st.lists(st.sampled_from(FACES), max_size=60)
FEW_FACES = st.lists(st.sampled_from((FACES[0], JOKER, Tile(LAST_TILE))), max_size=120)
"""Many of few faces: the lowest, the joker, the highest."""


@pytest.mark.unmeasured
@given(TILES | FEW_FACES, TILES | FEW_FACES, TILES)
def test_tile_counts_agree_with_counters(ones: list[Tile], others: list[Tile], rack: list[Tile]) -> None:
    first, second = counts_of(ones), tight_counts_of(others) + FLAG
    only, lacking = Counter(ones) - Counter(others), Counter(others) - Counter(ones)
    assert tiles_of(first) == in_order(ones)
    assert tiles_of(subtract(first, second)) == in_order(only.elements())
    assert [tiles_of(some) for some in exchange(second, first, counts_of(rack))] == [
        in_order(some.elements()) for some in (only, lacking, only - Counter(rack))
    ]
    assert is_within(first, second) == (not only)
    assert [count_of(second, face) for face in FACES] == [others.count(face) for face in FACES]
    assert bool(first & JOKER_COUNTS) == (not JOKERS.isdisjoint(ones))


@pytest.mark.unmeasured
@given(st.lists(TILES, max_size=6))
def test_counts_can_be_added_up(tables: list[list[Tile]]) -> None:
    tiles = [t for table in tables for t in table]
    most = sum(max(Counter(table).values(), default=0) for table in tables)
    for total, bound in ((sum(map(counts_of, tables)), len(tiles)), (sum(map(tight_counts_of, tables)), most)):
        assert bool(total & OVERFLOW) == (bound > 127)
        if bound <= 127:
            assert tiles_of(total) == in_order(tiles)


@pytest.mark.parametrize("count", [1, 2, 127, 128, 255, 256, 257, 4_096])
def test_a_count_over_127_overflows(count: int) -> None:
    for total in (counts_of([JOKER] * count), tight_counts_of([JOKER] * count), tight_counts_of([JOKER]) * count):
        assert bool(total & OVERFLOW) == (count > 127)
        assert not total & FLAGGED
    assert not tight_counts_of(FACES) & OVERFLOW


@pytest.mark.parametrize("count", [1, 2, 128, 4_096])
def test_flags_are_in_the_sum(count: int) -> None:
    total = (tight_counts_of([Tile(1)]) + FLAG) * count + tight_counts_of([Tile(1)]) * count
    assert total & FLAGGED
    assert bool(total & OVERFLOW) == (2 * count > 127)


@given(TILES, st.randoms(use_true_random=False))
def test_tiles_are_split_by_a_tally_of_some_of_them(tiles: list[Tile], rng: random.Random) -> None:
    taken = rng.sample(tiles, rng.randint(0, len(tiles)))
    has, lacks = split(in_order(tiles), counts_of(taken))
    assert has == in_order(taken)
    assert lacks == in_order((Counter(tiles) - Counter(taken)).elements())
