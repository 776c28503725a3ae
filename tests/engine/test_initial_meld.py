import random
from collections import Counter
from dataclasses import replace
from itertools import chain, combinations

import pytest

from engine.effort import Effort, TooComplexError
from engine.melding import initial_meld
from engine.melding.initial_meld import (
    best_for_the_player,
    counted_points,
    has_required_kind,
    suffices,
    total_points,
    ways_to_meld,
)
from engine.melding.melds import Meld, ProposedMeld, read_meld
from engine.melding.play import INITIAL_STEPS, STEPS
from engine.melding.ruleset import SABRA, InitialMeldCount, InitialMeldRequiredKind, Ruleset
from engine.tiles import COLORS, Tile, tile
from support.work import calls_in

SIX_COLORS = replace(SABRA, geometry_colors=6)
BEST = replace(SABRA, initial_meld_threshold=200)
RUN = replace(BEST, initial_meld_required_kind=InitialMeldRequiredKind.RUN)
ONE = replace(BEST, initial_meld_count=InitialMeldCount.ONE_MELD_REACHES_THRESHOLD)
ONE_AND_RUN = replace(ONE, initial_meld_required_kind=InitialMeldRequiredKind.RUN)
SINGLE = replace(RUN, initial_meld_count=InitialMeldCount.SINGLE_MELD)


def some_melds(rng: random.Random) -> tuple[tuple[Meld, ...], Counter[Tile]]:
    """Returns a few melds of low values, and tiles for some of them only."""
    found = []
    for _ in range(rng.randint(1, 9)):
        if rng.random() < 0.5:
            color, first = rng.choice(COLORS[:3]), rng.randint(1, 4)
            tiles = tuple(tile(color, first + place) for place in range(rng.choice((3, 3, 4))))
        else:
            value = rng.randint(1, 6)
            tiles = tuple(tile(color, value) for color in rng.sample(COLORS[:4], 3))
        meld = read_meld(ProposedMeld(tiles), SABRA)
        assert isinstance(meld, Meld)
        found.append(meld)
    wanted = Counter(t for meld in found for t in meld.tiles)
    return tuple(found), Counter({t: rng.randint(1, count) for t, count in wanted.items()})


def by_force(melds: tuple[Meld, ...], tiles: Counter[Tile], ruleset: Ruleset) -> tuple[bool, int]:
    """Returns the best choice by brute force: whether it has the required kind, and its points."""
    most = 1 if ruleset.initial_meld_count is InitialMeldCount.SINGLE_MELD else len(melds)
    choices = chain.from_iterable(combinations(melds, count) for count in range(most + 1))
    laid = (choice for choice in choices if Counter(t for meld in choice for t in meld.tiles) <= tiles)
    return max((has_required_kind(choice, ruleset), counted_points(choice, ruleset)) for choice in laid)


@pytest.mark.unmeasured
@pytest.mark.parametrize("ruleset", [BEST, RUN, ONE, ONE_AND_RUN, SINGLE])
def test_the_best_melds_are_those_found_by_force(ruleset: Ruleset) -> None:
    for seed in range(250):
        melds, tiles = some_melds(random.Random(seed))
        best = best_for_the_player(melds, tiles, ruleset, Effort(STEPS))
        assert Counter(t for meld in best for t in meld.tiles) <= tiles
        assert (has_required_kind(best, ruleset), counted_points(best, ruleset)) == by_force(melds, tiles, ruleset)


def test_an_initial_meld_that_suffices_need_not_be_the_best() -> None:
    for seed in range(250):
        melds, tiles = some_melds(random.Random(seed))
        least = by_force(melds, tiles, BEST)[1]
        enough = best_for_the_player(melds, tiles, replace(SABRA, initial_meld_threshold=least), Effort(STEPS))
        assert total_points(enough, SABRA) >= least


def work(melds: tuple[Meld, ...], tiles: Counter[Tile], ruleset: Ruleset) -> int:
    """Returns the number of function calls of a search within the module."""
    return calls_in(initial_meld, lambda: best_for_the_player(melds, tiles, ruleset, Effort(STEPS)))


@pytest.mark.parametrize(
    ("ruleset", "most"),
    [
        (BEST, 7913),
        (replace(BEST, initial_meld_threshold=25), 3684),
        (RUN, 22003),
        (ONE, 12412),
        (replace(ONE_AND_RUN, initial_meld_threshold=15), 7504),
    ],
)
def test_a_search_takes_no_more_work_than_it_did(ruleset: Ruleset, most: int) -> None:
    assert sum(work(*some_melds(random.Random(seed)), ruleset) for seed in range(100)) <= most


def test_a_search_skips_melds_that_cannot_add_points() -> None:
    melds, _ = some_melds(random.Random(0))
    assert work(melds[:1] * 9, Counter(melds[0].tiles * 2), BEST) <= 97


def test_no_meld_counts_nothing() -> None:
    assert counted_points((), BEST) == counted_points((), ONE) == 0


@pytest.mark.parametrize("ruleset", [BEST, RUN, ONE, ONE_AND_RUN, SINGLE])
def test_the_ways_to_meld_are_those_found_by_force(ruleset: Ruleset) -> None:
    for seed in range(60):
        rng = random.Random(seed)
        enough = replace(ruleset, initial_meld_threshold=rng.randint(9, 30))
        melds, some = some_melds(rng)
        before = Counter({t: count for t, count in some.items() if rng.random() < 0.4})
        played = Counter(t for meld in melds for t in meld.tiles) - before
        ways = [Counter(way) for way in ways_to_meld(melds, played, {*before}, enough, Effort(STEPS))]
        choices = [Counter(choice) for choice in every_way(melds, played, enough)]
        assert all(way in choices for way in ways)
        assert all(any(in_doubt(way, before) <= choice for way in ways) for choice in choices)


def every_way(melds: tuple[Meld, ...], tiles: Counter[Tile], ruleset: Ruleset) -> list[tuple[Meld, ...]]:
    """Returns all choices of melds that are an initial meld of some tiles."""
    most = 1 if ruleset.initial_meld_count is InitialMeldCount.SINGLE_MELD else len(melds)
    choices = chain.from_iterable(combinations(melds, count) for count in range(1, most + 1))
    laid = (choice for choice in choices if Counter(t for meld in choice for t in meld.tiles) <= tiles)
    return [choice for choice in laid if suffices(choice, ruleset)]


def in_doubt(melds: Counter[Meld], before: Counter[Tile]) -> Counter[Meld]:
    """Returns the melds that table tiles may supply."""
    return Counter({meld: count for meld, count in melds.items() if not before.keys().isdisjoint(meld.tiles)})


def test_melds_alike_are_one_way_to_meld() -> None:
    melds, _ = some_melds(random.Random(0))
    tiles = Counter(melds[0].tiles * 9)
    ruleset = replace(SABRA, initial_meld_threshold=4 * melds[0].points)
    ways = ways_to_meld(melds[:1] * 9, tiles, {*tiles}, ruleset, Effort(STEPS))
    assert list(ways) == [melds[:1] * 4]


def many_melds() -> tuple[tuple[Meld, ...], Counter[Tile]]:
    """Returns overlapping runs and groups of low values in six colors, and one tile of each face."""
    runs = [[tile(color, first + step) for step in range(3)] for color in COLORS for first in range(1, 4)]
    colors = ((0, 1, 2), (2, 3, 4), (4, 5, 0))
    groups = [[tile(COLORS[color], value) for color in three] for value in range(1, 6) for three in colors]
    melds = [read_meld(ProposedMeld(tuple(tiles)), SIX_COLORS) for tiles in (*runs, *groups)]
    found = tuple(meld for meld in melds if isinstance(meld, Meld))
    return found, Counter({t for meld in found for t in meld.tiles})


def test_a_search_for_the_best_melds_ends() -> None:
    melds, tiles = many_melds()
    with pytest.raises(TooComplexError):
        best_for_the_player(melds, tiles, replace(SIX_COLORS, initial_meld_threshold=200), Effort(INITIAL_STEPS))


def test_a_search_for_ways_to_meld_ends() -> None:
    melds, tiles = many_melds()
    ways = ways_to_meld(melds, tiles, {*tiles}, replace(SIX_COLORS, initial_meld_threshold=100), Effort(STEPS))
    with pytest.raises(TooComplexError):
        Counter(ways)
