import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.melds import Meld, MeldKind, NotAMeld, ProposedMeld, joker_points, read_meld, run_order
from engine.notation import format_meld, format_tiles, parse_meld, parse_tiles
from engine.ruleset import SABRA, JokersAdjacent, JokersDeclaration, JokersMaxPerSet, Ruleset
from engine.tiles import JOKER, NATURALS, Tile, value_of
from engine.violations import Reason

ONE = replace(SABRA, jokers_max_per_set=JokersMaxPerSet.ONE)
TWO = replace(SABRA, geometry_jokers=4, jokers_max_per_set=JokersMaxPerSet.TWO)
NOT_MORE = replace(SABRA, jokers_max_per_set=JokersMaxPerSet.NOT_MORE_THAN_NATURALS)
APART = replace(SABRA, jokers_adjacent=JokersAdjacent.FORBIDDEN)
EXPLICIT = replace(SABRA, jokers_declaration=JokersDeclaration.EXPLICIT_WHEN_AMBIGUOUS)
NO_JOKERS = replace(SABRA, geometry_jokers=0)
FOUR_JOKERS = replace(SABRA, geometry_jokers=4)

MELDS = [
    # text, kind, points, faces of each joker
    ("[R7 B7 K7]", "group", 21, []),
    ("[O1 K1 B1 R1]", "group", 4, []),
    ("[R13 B13 K13 O13]", "group", 52, []),
    ("[R1 R2 R3]", "run", 6, []),
    ("[O11 O12 O13]", "run", 36, []),
    ("[B1 B2 B3 B4 B5 B6 B7 B8 B9 B10 B11 B12 B13]", "run", 91, []),
    ("[R7 B7 J]", "group", 21, ["K7 O7"]),
    ("[J R7 B7 K7]", "group", 28, ["O7"]),
    ("[R7 J J O7]", "group", 28, ["B7 K7", "B7 K7"]),
    ("[K4 J K6]", "run", 15, ["K5"]),
    ("[J R12 R13]", "run", 36, ["R11"]),
    ("[J R2 R3 J]", "run", 10, ["R1", "R4"]),
    ("[B3 J J B6]", "run", 18, ["B4", "B5"]),
    ("[J B2 J B4 B5]", "run", 15, ["B1", "B3"]),
    ("[J J R3 R4]", "run", 10, ["R1", "R2"]),
]

SINGLE_NATURAL = [
    # tiles, as a run (None: out of range), as a group
    ("J J R5", 12, 15),
    ("J R5 J", 15, 15),
    ("R5 J J", 18, 15),
    ("J J R1", None, 3),
    ("J J R2", None, 6),
    ("J R1 J", None, 3),
    ("R13 J J", None, 39),
    ("R12 J J", None, 36),
    ("J R13 J", None, 39),
    ("J J R3", 6, 9),
    ("J J J R9", 30, 36),
    ("J J J R3", None, 12),
    ("J J R9 J J", 45, None),
]

NO_MELDS = [
    # text, reason, suggested order
    ("[]", "SET_EMPTY", ""),
    ("[R1]", "SET_TOO_SHORT", ""),
    ("[J]", "SET_TOO_SHORT", ""),
    ("[R1 R2]", "SET_TOO_SHORT", ""),
    ("[R1 J]", "SET_TOO_SHORT", ""),
    ("[J J J]", "SET_ALL_JOKERS", ""),
    ("[J J J J]", "SET_ALL_JOKERS", ""),
    ("[R7 B7 R7]", "GROUP_COLOR_REPEAT", ""),
    ("[R7 R7 J]", "GROUP_COLOR_REPEAT", ""),
    ("[R7 B7 K7 O7 R7]", "GROUP_COLOR_REPEAT", ""),
    ("[R7 B7 K7 O7 J]", "GROUP_TOO_LARGE", ""),
    ("[R7 B7 J J J]", "GROUP_TOO_LARGE", ""),
    ("[R7 B7 K8]", "GROUP_VALUE_MISMATCH", ""),
    ("[R7 B7 K7 O8]", "GROUP_VALUE_MISMATCH", ""),
    ("group[R7 B7 K8]", "GROUP_VALUE_MISMATCH", ""),
    ("[R4 R5 B6]", "RUN_COLOR_MIX", ""),
    ("[R4 J B6]", "RUN_COLOR_MIX", ""),
    ("run[R4 R9 B11]", "RUN_COLOR_MIX", ""),
    ("[R12 R13 R1]", "RUN_WRAP", ""),
    ("[R13 R1 R2]", "RUN_WRAP", ""),
    ("[R13 R1 J]", "RUN_WRAP", ""),
    ("[R4 R5 R5]", "RUN_DUPLICATE_VALUE", ""),
    ("[R4 R5 J R5]", "RUN_DUPLICATE_VALUE", ""),
    ("[R6 R5 R4]", "RUN_NOT_ASCENDING", "R4 R5 R6"),
    ("[R4 R6 R5]", "RUN_NOT_ASCENDING", "R4 R5 R6"),
    ("[R6 J R4]", "RUN_NOT_ASCENDING", "R4 J R6"),
    ("[R9 R4 R5]", "RUN_NOT_ASCENDING", ""),
    ("[R4 R5 R7]", "RUN_GAP", ""),
    ("[R4 R5 J R6]", "RUN_GAP", "R4 R5 R6 J"),
    ("[J R4 R6]", "RUN_GAP", "R4 J R6"),
    ("[R4 R6 R9 J]", "RUN_GAP", ""),
    ("[R4 R7 J]", "RUN_GAP", ""),
    ("[R12 R13 J]", "RUN_JOKER_OUT_OF_RANGE", "J R12 R13"),
    ("[J R1 R2]", "RUN_JOKER_OUT_OF_RANGE", "R1 R2 J"),
    ("[R11 R12 R13 J J]", "RUN_JOKER_OUT_OF_RANGE", "J J R11 R12 R13"),
    ("[R12 J J J J]", "RUN_JOKER_OUT_OF_RANGE", "J J J R12 J"),
    ("[R1 B5 K9]", "SET_NOT_GROUP_NOR_RUN", ""),
    ("[R7 B7 R9 B11]", "SET_NOT_GROUP_NOR_RUN", ""),
    ("group[R4 R5 R6]", "SET_KIND_MISMATCH", ""),
    ("run[R7 B7 K7]", "SET_KIND_MISMATCH", ""),
    ("run[J J R1]", "SET_KIND_MISMATCH", "R1 J J"),
    ("group[J J R9 J J]", "SET_KIND_MISMATCH", ""),
    ("group[R4 R5 R7]", "GROUP_VALUE_MISMATCH", ""),
    ("run[R7 B7 K8]", "RUN_COLOR_MIX", ""),
    ("run[R6 R5 R4]", "RUN_NOT_ASCENDING", "R4 R5 R6"),
    ("group[R6 R5 R4]", "GROUP_VALUE_MISMATCH", ""),
]

UNDER_OPTIONS = [
    # ruleset, text, reasons (none: a meld)
    (ONE, "[R4 J R6]", []),
    (ONE, "[R4 J J R7]", ["JOKERS_TOO_MANY"]),
    (ONE, "group[R4 J J]", ["JOKERS_TOO_MANY"]),
    (ONE, "[R4 J J R9]", ["JOKERS_TOO_MANY", "RUN_GAP"]),
    (TWO, "[R4 J J R7]", []),
    (TWO, "[R4 J J J R8]", ["JOKERS_TOO_MANY"]),
    (NOT_MORE, "[R4 J J R7]", []),
    (NOT_MORE, "[R4 J J]", ["JOKERS_TOO_MANY"]),
    (NOT_MORE, "[R4 J R6]", []),
    (SABRA, "[R4 J J]", []),
    (FOUR_JOKERS, "[J J R3 J J]", []),
    (APART, "[R4 J J R7]", ["JOKERS_ADJACENT"]),
    (APART, "[J R5 J]", []),
    (APART, "run[J J R5]", ["JOKERS_ADJACENT"]),
    (APART, "[J J R5]", []),
    (APART, "[R4 J J B4]", []),
    (APART, "[R4 J R6 J]", []),
    (EXPLICIT, "[J R5 J]", ["SET_KIND_AMBIGUOUS"]),
    (EXPLICIT, "run[J R5 J]", []),
    (EXPLICIT, "group[J R5 J]", []),
    (EXPLICIT, "[J J R1]", []),
    (EXPLICIT, "[J R4 R5]", []),
    (EXPLICIT, "[J R4 B4]", []),
    (NO_JOKERS, "[R4 J R6]", ["TILE_UNKNOWN"]),
    (NO_JOKERS, "[J]", ["TILE_UNKNOWN"]),
    (NO_JOKERS, "[R4 R5 R6]", []),
]


def read(text: str, ruleset: Ruleset = FOUR_JOKERS) -> Meld | NotAMeld:
    return read_meld(parse_meld(text), ruleset)


@pytest.mark.parametrize(("text", "kind", "points", "faces"), MELDS)
def test_a_meld_has_its_kind_points_and_joker_faces(text: str, kind: str, points: int, faces: list[str]) -> None:
    expected = Meld(parse_meld(text).tiles, MeldKind[kind.upper()], points, tuple(map(parse_tiles, faces)))
    assert read(text) == expected
    assert read(kind + text) == expected


@pytest.mark.parametrize(("text", "run", "group"), SINGLE_NATURAL)
def test_one_natural_and_jokers_are_a_run_unless_the_kind_is_stated(
    text: str, run: int | None, group: int | None
) -> None:
    tiles = parse_tiles(text)
    points = {MeldKind.RUN: run, MeldKind.GROUP: group}
    for kind, expected in points.items():
        reading = read_meld(ProposedMeld(tiles, kind), FOUR_JOKERS)
        assert (reading.points if isinstance(reading, Meld) else None) == expected
    unstated = read_meld(ProposedMeld(tiles), FOUR_JOKERS)
    assert isinstance(unstated, Meld)
    assert unstated.points == (run or group)


@pytest.mark.parametrize(("text", "reason", "order"), NO_MELDS)
def test_what_forms_no_meld_says_why_and_how_it_would_be_a_run(text: str, reason: str, order: str) -> None:
    assert read(text) == NotAMeld(parse_meld(text).tiles, (Reason[reason],), parse_tiles(order))


@pytest.mark.parametrize(("ruleset", "text", "reasons"), UNDER_OPTIONS)
def test_options_on_jokers(ruleset: Ruleset, text: str, reasons: list[str]) -> None:
    reading = read(text, ruleset)
    assert (reading.reasons if isinstance(reading, NotAMeld) else ()) == tuple(Reason[reason] for reason in reasons)


def test_the_tables_trigger_every_reason_of_melds_alone() -> None:
    names = [reason.name for reason in Reason]
    of_melds = set(names[names.index("SET_EMPTY") : names.index("SET_NOT_GROUP_NOR_RUN") + 1]) | {"TILE_UNKNOWN"}
    alone = {reason for _, reason, _ in NO_MELDS} | {reasons[0] for _, _, reasons in UNDER_OPTIONS if len(reasons) == 1}
    assert alone == of_melds


def test_an_order_is_suggested_only_if_the_rules_take_it() -> None:
    crowded = read("[R7 R4 J J]", APART)
    assert isinstance(crowded, NotAMeld)
    assert crowded.suggested_order == ()
    too_many = read("[R7 R4 J J]", ONE)
    assert isinstance(too_many, NotAMeld)
    assert too_many.suggested_order == ()


@pytest.mark.parametrize(
    ("naturals", "jokers", "order"),
    [
        ("R6 R4 R5", 0, "R4 R5 R6"),
        ("R7 R4", 2, "R4 J J R7"),
        ("R4 R5", 2, "R4 R5 J J"),
        ("R12 R11", 2, "J R11 R12 J"),
        ("R13", 2, "J J R13"),
        ("R9 R4", 1, "R4 J R9"),
        ("R4 R4 R5", 1, "R4 R4 R5 J"),
    ],
)
def test_the_canonical_order_fills_gaps_then_goes_up_then_down(naturals: str, jokers: int, order: str) -> None:
    assert format_tiles(run_order(parse_tiles(naturals), jokers)) == order


def test_a_joker_counts_what_it_stands_for() -> None:
    meld = read("[J R2 R3 J]")
    assert isinstance(meld, Meld)
    assert joker_points(meld) == (1, 4)


# An oracle that knows melds only as lists of faces: every run and group is written out, and jokers are laid over them.


def groups_and_runs() -> Iterator[tuple[MeldKind, tuple[Tile, ...]]]:
    for color in range(4):
        for first, last in combinations(range(1, 15), 2):
            if last - first >= 3:
                yield MeldKind.RUN, tuple(Tile(color * 13 + value) for value in range(first, last))
    for value, size in product(range(1, 14), (3, 4)):
        for colors in permutations(range(4), size):
            yield MeldKind.GROUP, tuple(Tile(color * 13 + value) for color in colors)


def with_jokers(tiles: tuple[Tile, ...], most: int) -> Iterator[tuple[Tile, ...]]:
    for count in range(min(most, len(tiles) - 1) + 1):
        for places in combinations(range(len(tiles)), count):
            yield tuple(JOKER if place in places else t for place, t in enumerate(tiles))


def all_melds(most: int) -> dict[tuple[Tile, ...], dict[MeldKind, list[tuple[Tile, ...]]]]:
    """Every list of tiles that forms a meld with so many jokers, and all lists of faces that it may stand for."""
    found: dict[tuple[Tile, ...], dict[MeldKind, list[tuple[Tile, ...]]]] = {}
    for kind, faces in groups_and_runs():
        for tiles in with_jokers(faces, most):
            found.setdefault(tiles, {}).setdefault(kind, []).append(faces)
    return found


ORACLE = all_melds(2)


def check_against_the_oracle(tiles: tuple[Tile, ...], kind: MeldKind | None) -> None:
    meanings = ORACLE.get(tiles, {})
    expected = kind or (MeldKind.RUN if MeldKind.RUN in meanings else MeldKind.GROUP)
    reading = read_meld(ProposedMeld(tiles, kind), SABRA)
    if expected not in meanings:
        assert isinstance(reading, NotAMeld), format_tiles(tiles)
        return
    assert isinstance(reading, Meld), format_tiles(tiles)
    assert reading.kind is expected
    faces = meanings[expected]
    assert {reading.points} == {sum(map(value_of, meaning)) for meaning in faces}
    jokers = [place for place, t in enumerate(tiles) if t == JOKER]
    assert reading.joker_faces == tuple(tuple(sorted({meaning[place] for meaning in faces})) for place in jokers)


def test_every_meld_of_up_to_two_jokers_is_read_as_the_oracle_has_it() -> None:
    assert len(ORACLE) > 5000
    for tiles in ORACLE:
        for kind in (None, MeldKind.RUN, MeldKind.GROUP):
            check_against_the_oracle(tiles, kind)


def random_tiles(rng: random.Random) -> tuple[Tile, ...]:
    """Tiles that often are a meld, or nearly one."""
    size = rng.choice((2, 3, 3, 3, 4, 4, 5, 6))
    color, value = rng.randrange(4), rng.randint(1, 13)
    near = [t for t in NATURALS if value_of(t) == value or ((t - 1) // 13 == color and abs(value_of(t) - value) < 4)]
    tiles = rng.choices(near, k=size)
    if rng.random() < 0.6:
        tiles.sort()
    for place in rng.sample(range(size), rng.choice((0, 0, 1, 2))):
        tiles[place] = JOKER
    return tuple(tiles)


def test_random_tiles_are_read_as_the_oracle_has_them() -> None:
    rng = random.Random(20)
    hits = Counter[bool]()
    for _ in range(20_000):
        tiles = random_tiles(rng)
        hits[tiles in ORACLE] += 1
        check_against_the_oracle(tiles, rng.choice((None, MeldKind.RUN, MeldKind.GROUP)))
    assert min(hits[True], hits[False]) > 1000


def test_what_has_no_joker_reads_the_same_under_every_option_on_jokers() -> None:
    rng = random.Random(21)
    for _ in range(300):
        proposed = ProposedMeld(tuple(t for t in random_tiles(rng) if t != JOKER))
        readings = [read_meld(proposed, ruleset) for ruleset in (SABRA, ONE, NOT_MORE, APART, EXPLICIT, NO_JOKERS)]
        assert len(set(readings)) == 1


TILES = st.sampled_from((*NATURALS, JOKER, JOKER))
NEAR_TILES = st.builds(random_tiles, st.randoms(use_true_random=False))
COLORINGS = st.permutations(range(4))
KINDS = st.sampled_from((None, *MeldKind))


def recolor(tiles: tuple[Tile, ...], coloring: list[int]) -> tuple[Tile, ...]:
    return tuple(t if t == JOKER else Tile(coloring[(t - 1) // 13] * 13 + value_of(t)) for t in tiles)


@given(st.one_of(st.lists(TILES, max_size=6).map(tuple), NEAR_TILES), COLORINGS, KINDS)
def test_colors_are_interchangeable(tiles: tuple[Tile, ...], coloring: list[int], kind: MeldKind | None) -> None:
    here = read_meld(ProposedMeld(tiles, kind), SABRA)
    there = read_meld(ProposedMeld(recolor(tiles, coloring), kind), SABRA)
    match here, there:
        case Meld(), Meld():
            faces = tuple(tuple(sorted(recolor(faces, coloring))) for faces in here.joker_faces)
            assert (here.kind, here.points, faces) == (there.kind, there.points, there.joker_faces)
        case NotAMeld(), NotAMeld():
            assert here.reasons == there.reasons
            assert recolor(here.suggested_order, coloring) == there.suggested_order
        case _:
            raise AssertionError((here, there))


@given(NEAR_TILES, st.randoms(use_true_random=False))
def test_the_order_of_a_group_has_no_meaning(tiles: tuple[Tile, ...], rng: random.Random) -> None:
    here = read_meld(ProposedMeld(tiles, MeldKind.GROUP), SABRA)
    there = read_meld(ProposedMeld(tuple(rng.sample(tiles, len(tiles))), MeldKind.GROUP), SABRA)
    assert type(here) is type(there)
    if isinstance(here, Meld) and isinstance(there, Meld):
        assert (here.points, here.joker_faces) == (there.points, there.joker_faces)


@given(NEAR_TILES, KINDS)
def test_a_suggested_order_is_a_run_of_the_same_tiles(tiles: tuple[Tile, ...], kind: MeldKind | None) -> None:
    reading = read_meld(ProposedMeld(tiles, kind), SABRA)
    if isinstance(reading, NotAMeld) and reading.suggested_order:
        assert sorted(reading.suggested_order) == sorted(tiles)
        better = read_meld(ProposedMeld(reading.suggested_order, MeldKind.RUN), SABRA)
        assert isinstance(better, Meld), format_meld(ProposedMeld(tiles))
