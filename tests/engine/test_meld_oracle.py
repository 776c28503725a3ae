"""Compares read_meld with an independent oracle that knows melds only as lists of faces.

The oracle enumerates every run and group of a game and puts jokers over them. All other tiles form no meld.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.melding.melds import Meld, MeldKind, NotAMeld, ProposedMeld, read_meld
from engine.melding.ruleset import SABRA, JokersAdjacent, MeldOrder, Ruleset, RunWrap
from engine.notation import format_tiles
from engine.tiles import JOKER, Tile
from engine.violations import Reason
from support.soak import few_of

pytestmark = [pytest.mark.unmeasured, pytest.mark.slow]

Tiles = tuple[Tile, ...]


def face(color: int, value: int) -> Tile:
    """Returns a face: colors 0 to 3 are 1 to 52, the joker is 53, colors 4 and 5 follow."""
    number = color * 13 + value
    return Tile(number if number < 53 else number + 1)


def color_and_value(t: Tile) -> tuple[int, int]:
    color, value = divmod(t - (t > 53) - 1, 13)
    return color, value + 1


CIRCLE = list(range(1, 14)) * 2


def value_runs(wrap: RunWrap) -> Iterator[list[int]]:
    for length in range(3, 14):
        last = {RunWrap.OFF: 14 - length, RunWrap.ONE_HIGH: 15 - length, RunWrap.CYCLIC: 13}[wrap]
        for start in range(1, last + 1):
            yield CIRCLE[start - 1 : start - 1 + length]


def with_jokers(faces: Tiles, most: int) -> Iterator[Tiles]:
    for count in range(min(most, len(faces) - 1) + 1):
        for places in combinations(range(len(faces)), count):
            yield tuple(JOKER if place in places else t for place, t in enumerate(faces))


@dataclass(frozen=True)
class Case:
    wrap: RunWrap
    colors: int
    jokers: int

    @property
    def ruleset(self) -> Ruleset:
        return replace(SABRA, run_wrap=self.wrap, geometry_colors=self.colors, geometry_jokers=self.jokers)


CASES = [
    *(Case(wrap, colors, jokers) for wrap in RunWrap for colors in (4, 6) for jokers in (2, 4)),
    Case(RunWrap.OFF, 4, 8),
]
BY_CASE = pytest.mark.parametrize("case", few_of(CASES, 5), ids=lambda c: f"{c.wrap.name}-{c.colors}-{c.jokers}")


@cache
def runs(case: Case) -> dict[Tiles, list[Tiles]]:
    """Returns every run of the first color, with jokers, and the faces of each."""
    found: dict[Tiles, list[Tiles]] = {}
    for values in value_runs(case.wrap):
        faces = tuple(face(0, value) for value in values)
        for tiles in with_jokers(faces, case.jokers):
            found.setdefault(tiles, []).append(faces)
    return found


@cache
def groups(case: Case) -> dict[Tiles, list[Tiles]]:
    """Returns every group of the value 1, with jokers, and the possible faces of each."""
    found: dict[Tiles, list[Tiles]] = {}
    for size in range(3, case.colors + 1):
        for colors in permutations(range(case.colors), size):
            faces = tuple(face(color, 1) for color in colors)
            for tiles in with_jokers(faces, case.jokers):
                found.setdefault(tiles, []).append(faces)
    return found


def meanings(case: Case, tiles: Tiles, kind: MeldKind) -> list[Tiles]:
    """Returns the possible faces of tiles as a run or as a group. Other colors and values follow by symmetry."""
    faces = [color_and_value(t) for t in tiles if t != JOKER]
    color, value = faces[0]
    if kind is MeldKind.RUN and all(other == color for other, _ in faces):
        moved = tuple(t if t == JOKER else face(0, color_and_value(t)[1]) for t in tiles)
        return [tuple(face(color, t) for t in found) for found in runs(case).get(moved, [])]
    if kind is MeldKind.GROUP and all(other == value for _, other in faces):
        moved = tuple(t if t == JOKER else face(color_and_value(t)[0], 1) for t in tiles)
        return [tuple(face(color_and_value(t)[0], value) for t in found) for found in groups(case).get(moved, [])]
    return []


def check(case: Case, tiles: Tiles, kind: MeldKind | None) -> bool:
    """Compares one reading, and returns whether it is a meld."""
    found = {each: meanings(case, tiles, each) for each in MeldKind}
    expected = kind or (MeldKind.RUN if found[MeldKind.RUN] else MeldKind.GROUP)
    reading = read_meld(ProposedMeld(tiles, kind), case.ruleset)
    if not found[expected]:
        assert isinstance(reading, NotAMeld), format_tiles(tiles)
        return False
    faces = found[expected]
    jokers = [place for place, t in enumerate(tiles) if t == JOKER]
    assert reading == Meld(
        tiles,
        expected,
        sum(color_and_value(t)[1] for t in faces[0]),
        tuple(tuple(sorted({meaning[place] for meaning in faces})) for place in jokers),
    ), format_tiles(tiles)
    return True


@BY_CASE
def test_every_run_is_read_as_the_oracle_has_it(case: Case) -> None:
    color = case.colors - 1
    for tiles, faces in list(runs(case).items())[:: case.colors - 3]:
        assert len(faces) == 1
        assert check(case, tuple(t if t == JOKER else face(color, t) for t in tiles), MeldKind.RUN)
    assert len(runs(case)) > 500


@BY_CASE
def test_every_group_is_read_as_the_oracle_has_it(case: Case) -> None:
    rng = random.Random(30)
    for tiles in groups(case):
        value = rng.randint(1, 13)
        assert check(case, tuple(t if t == JOKER else Tile(t + value - 1) for t in tiles), MeldKind.GROUP)


@BY_CASE
def test_every_triple_of_few_tiles_is_read_as_the_oracle_has_it(case: Case) -> None:
    few = [face(color, value) for color in (0, case.colors - 1) for value in (1, 2, 3, 11, 12, 13)] + [
        face(1, 1),
        JOKER,
    ]
    for tiles in product(few, repeat=3):
        if set(tiles) != {JOKER}:
            check(case, tiles, None)


@cache
def listed(case: Case) -> tuple[list[Tiles], list[Tiles]]:
    return [tiles for tiles in runs(case) if len(tiles) < 6 or tiles.count(JOKER) < 2], list(groups(case))


def near_tiles(rng: random.Random, case: Case) -> Tiles:
    """Returns tiles that often form a meld, or nearly one."""
    tiles = list(rng.choice(rng.choice(listed(case))))
    color = rng.randrange(case.colors)
    tiles = [t if t == JOKER or t > 13 else face(color, t) for t in tiles]
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        place = rng.randrange(len(tiles))
        match rng.randrange(4):
            case 0:
                tiles[place] = face(rng.randrange(case.colors), rng.randint(1, 13))
            case 1:
                tiles[place] = JOKER if tiles.count(JOKER) < case.jokers else tiles[place]
            case 2:
                tiles.insert(place, rng.choice(tiles))
            case _:
                other = rng.randrange(len(tiles))
                tiles[place], tiles[other] = tiles[other], tiles[place]
    return tuple(tiles)


@BY_CASE
def test_random_tiles_are_read_as_the_oracle_has_them(case: Case) -> None:
    rng = random.Random(31)
    hits = Counter[bool]()
    for _ in range(800):
        tiles = near_tiles(rng, case)
        if len(tiles) > 2 and tiles.count(JOKER) <= min(case.jokers, len(tiles) - 1):
            hits[check(case, tiles, rng.choice((None, *MeldKind)))] += 1
    assert min(hits[True], hits[False]) > 100


def best_order(case: Case, tiles: Tiles, kind: MeldKind | None) -> tuple[MeldKind, int, set[Tiles]] | None:
    """Returns the best meld that tiles form in any order, a run of most points or else a group, in all its orders."""
    naturals = [t for t in tiles if t != JOKER]
    color, value = color_and_value(naturals[0])
    jokers = len(tiles) - len(naturals)
    found: dict[int, set[Tiles]] = {}
    for values in value_runs(case.wrap):
        faces = [face(color, each) for each in values]
        if len(faces) == len(tiles) and len(set(naturals)) == len(naturals) and set(naturals) <= set(faces):
            found.setdefault(sum(values), set()).add(tuple(t if t in naturals else JOKER for t in faces))
    if found and kind is not MeldKind.GROUP:
        return MeldKind.RUN, max(found), found[max(found)]
    colors = [color_and_value(t)[0] for t in naturals]
    one_value = all(color_and_value(t)[1] == value for t in naturals)
    if kind is not MeldKind.RUN and one_value and len(set(colors)) == len(colors) and len(tiles) <= case.colors:
        return MeldKind.GROUP, value * len(tiles), {(*sorted(naturals), *(JOKER,) * jokers)}
    return None


@BY_CASE
def test_any_order_is_read_as_the_best_one_where_the_order_is_not_the_players(case: Case) -> None:
    rng = random.Random(32)
    ruleset = replace(case.ruleset, meld_order=MeldOrder.CANONICALISE)
    hits = Counter[bool]()
    for _ in range(800):
        near = near_tiles(rng, case)
        tiles = tuple(rng.sample(near, len(near)))
        if len(tiles) > 2 and tiles.count(JOKER) < len(tiles):
            kind = rng.choice((None, *MeldKind))
            reading = read_meld(ProposedMeld(tiles, kind), ruleset)
            expected = best_order(case, tiles, kind)
            hits[expected is not None] += 1
            assert sorted(reading.tiles) == sorted(tiles)
            if expected is None:
                assert isinstance(reading, NotAMeld)
                assert reading.suggested_order == ()
            else:
                assert isinstance(reading, Meld)
                assert (reading.kind, reading.points) == expected[:2]
                assert reading.tiles in expected[2]
    assert min(hits[True], hits[False]) > 100


@BY_CASE
def test_an_order_is_suggested_exactly_where_there_is_a_better_one(case: Case) -> None:
    rng = random.Random(33)
    hits = Counter[bool]()
    ruleset = replace(case.ruleset, jokers_may_lead=False, jokers_adjacent=JokersAdjacent.FORBIDDEN)
    for _ in range(200):
        near = near_tiles(rng, case)[:5]
        tiles = tuple(rng.sample(near, len(near)))
        if len(tiles) > 2 and tiles.count(JOKER) < len(tiles):
            reading = read_meld(ProposedMeld(tiles), ruleset)
            if isinstance(reading, NotAMeld):
                legal = {
                    order for order in permutations(tiles) if isinstance(read_meld(ProposedMeld(order), ruleset), Meld)
                }
                assert (reading.suggested_order in legal) == bool(legal), format_tiles(tiles)
                assert reading.suggested_order or not legal
                hits[bool(legal)] += 1
    assert min(hits[True], hits[False]) > 20


WRAPS = st.sampled_from(RunWrap)
SIX = [Case(wrap, 6, 4) for wrap in RunWrap]
NEAR = st.builds(near_tiles, st.randoms(use_true_random=False), st.sampled_from(SIX))


def recolor(tiles: Tiles, coloring: list[int]) -> Tiles:
    moved = ((coloring[color_and_value(t)[0]], color_and_value(t)[1]) if t != JOKER else None for t in tiles)
    return tuple(JOKER if each is None else face(*each) for each in moved)


@given(NEAR, WRAPS, st.permutations(range(6)), st.sampled_from((None, *MeldKind)), st.sampled_from(MeldOrder))
def test_colors_are_interchangeable(
    tiles: Tiles, wrap: RunWrap, coloring: list[int], kind: MeldKind | None, order: MeldOrder
) -> None:
    ruleset = replace(SABRA, run_wrap=wrap, geometry_colors=6, geometry_jokers=4, meld_order=order)
    here = read_meld(ProposedMeld(tiles, kind), ruleset)
    there = read_meld(ProposedMeld(recolor(tiles, coloring), kind), ruleset)
    match here, there:
        case Meld(), Meld():
            faces = tuple(tuple(sorted(recolor(faces, coloring))) for faces in here.joker_faces)
            assert (here.kind, here.points, faces) == (there.kind, there.points, there.joker_faces)
        case NotAMeld(), NotAMeld():
            assert here.reasons == there.reasons
            assert recolor(here.suggested_order, coloring) == there.suggested_order
        case _:
            raise AssertionError((here, there))


@given(NEAR, WRAPS, st.sampled_from((None, *MeldKind)), st.randoms(use_true_random=False), st.booleans())
def test_any_order_of_a_meld_reads_the_same_where_the_order_is_not_the_players(
    tiles: Tiles, wrap: RunWrap, kind: MeldKind | None, rng: random.Random, declares: bool
) -> None:
    ruleset = replace(SABRA, run_wrap=wrap, geometry_colors=6, geometry_jokers=4)
    canonicalise = replace(ruleset, meld_order=MeldOrder.CANONICALISE)
    strict = read_meld(ProposedMeld(tiles, kind), ruleset)
    declared: Tiles = ()
    if declares and isinstance(strict, Meld) and strict.kind is MeldKind.RUN:
        declared = tuple(faces[0] for faces in strict.joker_faces)
    here = read_meld(ProposedMeld(tiles, kind, declared), canonicalise)
    shuffled = ProposedMeld(tuple(rng.sample(tiles, len(tiles))), kind, tuple(rng.sample(declared, len(declared))))
    assert read_meld(shuffled, canonicalise) == here
    if isinstance(strict, Meld) and strict.kind is MeldKind.RUN:
        assert isinstance(here, Meld)
        assert here == strict if declared and len(tiles) < 13 else here.points >= strict.points
    elif isinstance(strict, Meld):
        assert isinstance(here, Meld)
    elif isinstance(here, NotAMeld):
        assert strict.suggested_order == ()
        assert Reason.MELD_KIND_AMBIGUOUS not in here.reasons
