import random
from collections import Counter
from collections.abc import Iterator
from itertools import chain

import pytest

from engine.discard.hands import FinishedHand, finished_hand, is_nearer, standing
from engine.discard.melds import is_pair, meld_kind, okey_of
from engine.notation import parse_tile, parse_tiles
from engine.tiles import COLORS, FALSE_JOKER, NATURALS, Tile, in_order, tile, without
from oracles.okey_hands import Program, is_finished
from support.soak import few_of

TILES = (*NATURALS, *NATURALS, FALSE_JOKER, FALSE_JOKER)
ELEVEN = "K3 K4 K5 K6 O7 B7 R7 B9 B10 B11 B12"


def searched(tiles: str, indicator: str, *, one_high: bool = True) -> FinishedHand | None:
    return finished_hand(in_order(parse_tiles(tiles)), okey_of(parse_tile(indicator)), one_high=one_high)


def check_laid(found: FinishedHand, tiles: tuple[Tile, ...], okey: Tile, *, one_high: bool) -> None:
    """Checks that a hand is laid in melds or pairs, with all its tiles."""
    assert in_order(chain.from_iterable(found.tiles)) == tiles
    for part in found.tiles:
        assert is_pair(part, okey) if found.is_pairs else meld_kind(part, okey, one_high=one_high), part


@pytest.mark.parametrize(
    ("name", "indicator", "tiles", "expected"),
    [
        ("K1", "O4", "R1 R2 R3 R7 R8 R9 R10 R5 K5 B5 B11 B12 B13 B1", "MELDS"),
        ("K2", "O12", "B1 B1 R2 R2 O5 O5 B6 B6 B7 B7 B8 B8 K9 K9", "PAIRS"),
        ("K4", "O12", "B1 B2 B3 B4 B5 B6 B7 B8 B9 B10 B11 B12 B13 O13", "MELDS"),
        ("K5", "K7", "R12 R13 R1 R2 K3 K4 K5 O7 B7 R7 B9 B10 B11 B12", "no"),
        ("K6", "K7", f"R12 R13 R1 {ELEVEN}", "MELDS"),
        ("K7", "R5", f"R5 F R7 {ELEVEN}", "MELDS"),
        ("K9", "O1", "R1 R1 R5 R3 R2 B9 B8 B2 B3 O7 O5 O13 K8 K4", "no"),
        ("K10", "B4", "O1 O2 O3 O9 O10 O11 R1 B1 K1 O1 R12 B12 K12 O12", "MELDS"),
        ("a false joker is not wild", "K1", f"R5 F R7 {ELEVEN}", "no"),
        ("a false joker beside the okey is a pair", "R5", "F R6 R2 R2 O5 O5 B6 B6 B7 B7 B8 B8 K9 K9", "PAIRS"),
        ("false jokers are a pair", "R5", "F F R2 R2 O5 O5 B6 B6 B7 B7 B8 B8 K9 K9", "PAIRS"),
        ("two wild tiles are a pair", "R5", "R6 R6 R2 R2 O5 O5 B6 B6 B7 B7 B8 B8 K9 K9", "PAIRS"),
        ("two wild tiles make two pairs", "R5", "R6 R6 R2 R3 O5 O5 B6 B6 B7 B7 B8 B8 K9 K9", "PAIRS"),
        ("pairs before melds", "K1", "R1 R1 R2 R2 R3 R3 B5 B5 B6 B6 B7 B7 B8 B8", "PAIRS"),
        ("one tile between wild ones", "R5", f"R6 R6 K1 {ELEVEN}", "MELDS"),
        ("a 13 between wild ones", "R5", f"R6 R6 K13 {ELEVEN}", "MELDS"),
        ("wild tiles make groups larger", "R5", "B1 K1 R1 B2 K2 R2 O3 B3 K3 O4 B4 K4 R6 R6", "MELDS"),
        ("two wild tiles in groups", "R5", "B1 K1 R1 B3 K3 R3 B5 K5 O5 B9 K9 R9 R6 R6", "MELDS"),
        ("a wild tile beside a whole group", "R5", "B1 K1 R1 O1 B3 K3 R3 B5 K5 O5 B9 K9 R9 R6", "MELDS"),
        ("three whole groups leave two over", "R5", "R1 B1 K1 O1 R3 B3 K3 O3 R9 B9 K9 O9 R6 R6", "MELDS"),
    ],
)
def test_hands(name: str, indicator: str, tiles: str, expected: str) -> None:
    found = searched(tiles, indicator)
    assert (("PAIRS" if found.is_pairs else "MELDS") if found else "no") == expected, name
    if found:
        check_laid(found, in_order(parse_tiles(tiles)), okey_of(parse_tile(indicator)), one_high=True)


def test_the_okey_after_13_is_1() -> None:
    assert okey_of(parse_tile("R13")) == parse_tile("R1")  # K12
    assert okey_of(parse_tile("O4")) == parse_tile("O5")


def test_a_1_after_13_is_an_option() -> None:
    assert searched(f"R12 R13 R1 {ELEVEN}", "K7", one_high=False) is None
    found = searched(f"R11 R12 R13 {ELEVEN}", "K7", one_high=False)
    assert found
    assert not found.is_pairs


@pytest.mark.parametrize(
    ("tiles", "missing", "spare"),
    [
        (f"R5 R6 R7 {ELEVEN}", 0, ""),
        (f"R5 R6 O1 {ELEVEN}", 1, "O1"),
        (f"R5 R6 O1 K12 {ELEVEN}", 1, "K12 O1"),
        (f"R5 R6 R7 O5 {ELEVEN}", 0, "O5"),
        (f"R5 R6 R7 K8 {ELEVEN}", 0, "K8"),
        ("B1 B1 R2 R2 O5 O5 B6 B6 B7 B7 R10 B12 K9 O11", 2, ""),
        ("R1 B1 K1 O1 R3 B3 K3 O3 R5 B5 K5 R7 O10 B12", 2, ""),
    ],
)
def test_the_tiles_to_exchange(tiles: str, missing: int, spare: str) -> None:
    found = standing(in_order(parse_tiles(tiles)), okey_of(parse_tile("K7")), one_high=True)
    assert found.missing == missing
    assert len(found.spare) == missing + len(tiles.split()) - 14
    if spare:
        assert found.spare == parse_tiles(spare)


def random_hands(rng: random.Random, size: int = 14) -> Iterator[tuple[tuple[Tile, ...], Tile]]:
    """Yields hands with their okeys: of any tiles, of few faces, or finished but for some tiles."""
    while True:
        okey = rng.choice(NATURALS)
        match rng.randrange(4):
            case 0:
                tiles = rng.sample(TILES, size)
            case 1:
                values = rng.sample(range(1, 14), rng.randint(3, 6))
                few = [tile(color, value) for color in COLORS[:4] for value in values]
                tiles = rng.sample([*few, *few, FALSE_JOKER, okey], size)
            case _:
                tiles = nearly_finished(rng, okey, size)
        if max(Counter(tiles).values()) <= 2:
            yield in_order(tiles), okey


def nearly_finished(rng: random.Random, okey: Tile, size: int) -> list[Tile]:
    tiles: list[Tile] = []
    while len(tiles) < size:
        color, value, length = rng.choice(COLORS[:4]), rng.randint(1, 13), rng.choice((3, 3, 4, 5))
        if rng.random() < 0.4:
            tiles += [tile(color, value) for color in rng.sample(COLORS[:4], min(length, 4))]
        else:
            tiles += [tile(color, (value + step - 1) % 13 + 1) for step in range(length)]
    tiles = [FALSE_JOKER if t == okey else t for t in tiles[:size]]
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        tiles[rng.randrange(size)] = rng.choice((okey, rng.choice(TILES)))
    return tiles


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("chunk", few_of(range(100), 1))
def test_finished_hands_are_those_found_by_force(chunk: int) -> None:
    """`make soak` looks at more hands."""
    met = check_by_force(random.Random(chunk), 1_000)
    assert all(met[kind] for kind in ("none", "melds, 0 wild", "melds, 1 wild", "melds, 2 wild")), met


def test_some_finished_hands_are_those_found_by_force() -> None:
    """A change of the rules fails at once (`make mutants`)."""
    check_by_force(random.Random(0), 100)


def check_by_force(rng: random.Random, count: int) -> Counter[str]:
    """Compares hands with those found by force. Returns how many there were of each kind."""
    hands, met = random_hands(rng), Counter[str]()
    for number in range(count):
        (tiles, okey), one_high = next(hands), number % 2 == 0
        found = finished_hand(tiles, okey, one_high=one_high)
        assert (found is not None) == is_finished(tiles, okey, one_high=one_high), (tiles, okey, one_high)
        assert (standing(tiles, okey, one_high=one_high).missing == 0) == (found is not None)
        if found:
            check_laid(found, tiles, okey, one_high=one_high)
        met["none" if found is None else "pairs" if found.is_pairs else f"melds, {tiles.count(okey)} wild"] += 1
    return met


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize(
    "chunk", [*range(4), *(pytest.param(chunk, marks=pytest.mark.soak) for chunk in range(4, 120))]
)
def test_the_least_number_of_tiles_to_exchange_is_the_programs(chunk: int) -> None:
    """`make soak` asks about more hands."""
    check_by_program(random.Random(chunk), 20, size=14 + chunk // 2 % 2, one_high=chunk % 2 == 0)


def test_some_numbers_of_tiles_to_exchange_are_the_programs() -> None:
    """A change of the rules fails at once (`make mutants`)."""
    for size, one_high in ((14, True), (15, False)):
        check_by_program(random.Random(0), 6, size=size, one_high=one_high)


def check_by_program(rng: random.Random, count: int, *, size: int, one_high: bool) -> None:
    """Compares hands with the answers of an integer program."""
    program, hands = Program(one_high=one_high), random_hands(rng, size)
    for _ in range(count):
        tiles, okey = next(hands)
        found = standing(tiles, okey, one_high=one_high)
        assert found.missing == program.missing(tiles, okey), (tiles, okey)
        assert not Counter(found.spare) - Counter(tiles)
        assert len(found.spare) == found.missing + len(tiles) - 14


def test_without_its_spare_tile_a_hand_of_15_is_as_near_to_its_end() -> None:
    hands = random_hands(random.Random(3), 15)
    for number in range(300):
        (tiles, okey), one_high = next(hands), number % 2 == 0
        found = standing(tiles, okey, one_high=one_high)
        for t in found.spare:
            assert standing(without(tiles, (t,)), okey, one_high=one_high).missing == found.missing, (tiles, t)


def test_a_hand_is_nearer_than_any_number_above_that_of_its_missing_tiles() -> None:
    hands = random_hands(random.Random(4), 15)
    for number in range(20):
        (tiles, okey), one_high = next(hands), number % 2 == 0
        missing = standing(tiles, okey, one_high=one_high).missing
        nearer = [is_nearer(tiles, okey, count, one_high=one_high) for count in range(missing + 3)]
        assert nearer == [count > missing for count in range(missing + 3)], (tiles, okey)
