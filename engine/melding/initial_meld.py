"""Which melds form a player's initial meld, and their points (R29 to R34).

Under initial_meld_same_turn_table_play, rack tiles may be in changed melds too, and a new meld may consist of rack or
table tiles. Equal tiles are interchangeable, so the choice of melds that is best for the player counts.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from itertools import islice

from engine.effort import Effort
from engine.melding.melds import Meld, MeldKind, joker_points
from engine.melding.ruleset import (
    InitialMeldComparison,
    InitialMeldCount,
    InitialMeldJoker,
    InitialMeldRequiredKind,
    Ruleset,
)
from engine.melding.table import Melds, count_tiles
from engine.tiles import JOKER, MAX_VALUE, Tile, value_of


def from_left_to_right(new: Melds, rack: Counter[Tile]) -> Melds:
    """Returns the new melds that a rack can supply, taken from left to right (R32)."""
    left, found = rack.copy(), []
    for meld in new:
        if all(left[t] >= count for t, count in Counter(meld.tiles).items()):  # faster than comparing whole Counters
            left.subtract(meld.tiles)
            found.append(meld)
    return tuple(found)


def best_for_the_player(melds: Melds, played: Counter[Tile], ruleset: Ruleset, effort: Effort) -> Melds:
    """Returns the melds of played tiles that make the best initial meld. Others may consist of table tiles.

    Equal tiles are interchangeable: a meld that was on the table may now consist of the player's tiles, with its old
    tiles elsewhere. Raises TooComplexError.
    """
    playable = tuple(meld for meld in melds if Counter(meld.tiles) <= played and _is_allowed(meld, ruleset))
    if ruleset.initial_meld_count is InitialMeldCount.SINGLE_MELD:
        return max(((meld,) for meld in playable), key=lambda melds: _merit(melds, ruleset), default=())
    candidates = (_with(chosen, playable, played, ruleset, effort) for chosen in _starts(playable, played, ruleset))
    return max(candidates, key=lambda melds: _merit(melds, ruleset))


def _is_allowed(meld: Meld, ruleset: Ruleset) -> bool:
    return ruleset.initial_meld_joker is not InitialMeldJoker.FORBIDDEN or JOKER not in meld.tiles


def _starts(melds: Melds, played: Counter[Tile], ruleset: Ruleset) -> Iterator[Melds]:
    """Yields melds to build on, for which others may have to be left out: the best meld, and the required run."""
    yield ()
    runs = tuple(meld for meld in melds if _is_required_run(meld, ruleset))
    if ruleset.initial_meld_count is not InitialMeldCount.ONE_MELD_REACHES_THRESHOLD:
        yield from ((run,) for run in runs)
        return
    best_first = sorted(melds, key=lambda meld: -initial_points(meld, ruleset))
    yield tuple(best_first[:1])
    pairs = ((meld,) if meld in runs else (meld, run) for meld in best_first for run in runs)
    yield from islice((pair for pair in pairs if _tiles(pair) <= played), 1)


def _is_required_run(meld: Meld, ruleset: Ruleset) -> bool:
    return ruleset.initial_meld_required_kind is InitialMeldRequiredKind.RUN and meld.kind is MeldKind.RUN


def _merit(melds: Melds, ruleset: Ruleset) -> tuple[bool, int]:
    """Returns the sort key of initial melds, the best last."""
    return has_required_kind(melds, ruleset), counted_points(melds, ruleset)


def _with(chosen: Melds, melds: Melds, tiles: Counter[Tile], ruleset: Ruleset, effort: Effort) -> Melds:
    """Returns chosen melds with those of the others that add the most points. The chosen ones are laid together."""
    left, others = tiles - _tiles(chosen), list(melds)
    for meld in chosen:
        others.remove(meld)
    fitting = tuple([meld for meld in others if all(left[t] >= n for t, n in Counter(meld.tiles).items())])
    return (*chosen, *_heaviest(fitting, left, ruleset, effort))


def _tiles(melds: Iterable[Meld]) -> Counter[Tile]:
    return count_tiles(melds)


def _heaviest(melds: Melds, tiles: Counter[Tile], ruleset: Ruleset, effort: Effort) -> Melds:
    """Returns the melds with the most points that the tiles supply together, or any that reach the threshold.

    The answer is exact. The tiles must supply each meld alone. Melds that compete for a tile, directly or through
    others, are solved as a separate problem.
    """
    effort.take(24 * (1 + len(melds)))
    greedy = from_left_to_right(tuple(sorted(melds, key=lambda meld: -initial_points(meld, ruleset))), tiles)
    if len(greedy) == len(melds) or reaches(total_points(greedy, ruleset), ruleset):
        return greedy
    contested = frozenset(_tiles(melds) - tiles)
    found: list[Meld] = []
    for competing in _competing(melds, contested):
        found += competing if len(competing) == 1 else _branched(competing, tiles, contested, ruleset, effort)
    return tuple(found)


def _branched(
    melds: Melds, tiles: Counter[Tile], contested: frozenset[Tile], ruleset: Ruleset, effort: Effort
) -> Melds:
    """Returns the same for competing melds, by branching on the one that competes for the most tiles."""
    pivot = max(melds, key=lambda meld: len(contested & set(meld.tiles)))
    taken = _with((pivot,), melds, tiles, ruleset, effort)
    rest = list(melds)
    rest.remove(pivot)
    if min(total_points(rest, ruleset), _points_at_most(rest, tiles)) <= total_points(taken, ruleset):
        return taken
    left_out = _heaviest(tuple(rest), tiles, ruleset, effort)
    return max(taken, left_out, key=lambda chosen: total_points(chosen, ruleset))


def _competing(melds: Melds, contested: frozenset[Tile]) -> Iterator[Melds]:
    """Yields the melds in parts. Melds of different parts do not compete for a tile."""
    left = list(melds)
    while left:
        joined = [left.pop()]
        reached = 0
        while reached < len(joined):
            faces = contested & set(joined[reached].tiles)
            near = [meld for meld in left if not faces.isdisjoint(meld.tiles)]
            left = [meld for meld in left if faces.isdisjoint(meld.tiles)]
            joined += near
            reached += 1
        yield tuple(joined)


def _points_at_most(melds: Iterable[Meld], tiles: Counter[Tile]) -> int:
    """Returns an upper bound of the points of melds that the tiles supply."""
    usable = _tiles(melds) & tiles
    return sum((MAX_VALUE if t == JOKER else value_of(t)) * count for t, count in usable.items())


def ways_to_meld(
    melds: Melds, played: Counter[Tile], contested: Set[Tile], ruleset: Ruleset, effort: Effort
) -> Iterator[Melds]:
    """Yields the ways to make the initial meld from played tiles, without melds that can be left out.

    Args:
        melds: All melds on the table after the play.
        played: The tiles played.
        contested: The faces for which it matters whether a tile is part of the initial meld. Melds without any of them
            are in every way.
        ruleset: The rules.
        effort: The steps left for the search.

    Raises:
        TooComplexError: The search takes more steps.
    """
    playable = tuple(meld for meld in melds if Counter(meld.tiles) <= played and _is_allowed(meld, ruleset))
    if ruleset.initial_meld_count is InitialMeldCount.SINGLE_MELD:
        yield from ((meld,) for meld in playable if suffices((meld,), ruleset))
        return
    certain = tuple(meld for meld in playable if contested.isdisjoint(meld.tiles))
    others = [meld for meld in playable if not contested.isdisjoint(meld.tiles)]
    others.sort(key=lambda meld: -initial_points(meld, ruleset))  # so that the fewest melds suffice
    yield from _sets(certain, tuple(others), played - _tiles(certain), ruleset, effort)


def _sets(chosen: Melds, others: Melds, left: Counter[Tile], ruleset: Ruleset, effort: Effort) -> Iterator[Melds]:
    """Yields chosen melds with others that the remaining tiles supply, as soon as they are an initial meld."""
    effort.take(16 * (1 + len(others)))
    if suffices(chosen, ruleset):
        yield chosen
    elif suffices((*chosen, *others), ruleset):
        for place, meld in enumerate(others, 1):
            tiles = Counter(meld.tiles)
            if all(left[t] >= count for t, count in tiles.items()) and meld not in others[: place - 1]:
                rest = left.copy()
                rest.subtract(tiles)
                yield from _sets((*chosen, meld), others[place:], rest, ruleset, effort)


def initial_points(meld: Meld, ruleset: Ruleset) -> int:
    """Returns the points of a meld in the initial meld (R30, initial_meld_joker)."""
    return meld.points - (sum(joker_points(meld)) if ruleset.initial_meld_joker is InitialMeldJoker.ZERO else 0)


def total_points(melds: Iterable[Meld], ruleset: Ruleset) -> int:
    """Returns the points of melds in the initial meld."""
    return sum(initial_points(meld, ruleset) for meld in melds)


def counted_points(melds: Melds, ruleset: Ruleset) -> int:
    """Returns the points to compare with the threshold: the total, or those of the best meld (initial_meld_count)."""
    if ruleset.initial_meld_count is InitialMeldCount.ONE_MELD_REACHES_THRESHOLD:
        return max((initial_points(meld, ruleset) for meld in melds), default=0)
    return total_points(melds, ruleset)


def reaches(points: int, ruleset: Ruleset) -> bool:
    """Returns whether points reach the threshold (R29, initial_meld_comparison)."""
    if ruleset.initial_meld_comparison is InitialMeldComparison.GREATER_THAN:
        return points > ruleset.initial_meld_threshold
    return points >= ruleset.initial_meld_threshold


def has_required_kind(melds: Melds, ruleset: Ruleset) -> bool:
    """Returns whether melds satisfy initial_meld_required_kind."""
    any_kind = ruleset.initial_meld_required_kind is InitialMeldRequiredKind.ANY
    return any_kind or any(meld.kind is MeldKind.RUN for meld in melds)


def suffices(melds: Melds, ruleset: Ruleset) -> bool:
    """Returns whether melds are an initial meld after which the player may use the table in the same turn."""
    return bool(melds) and reaches(counted_points(melds, ruleset), ruleset) and has_required_kind(melds, ruleset)
