"""Which melds are a player's initial meld, and what they count (R29 to R34).

Where the table may be played on in the same turn (initial_meld_same_turn_table_play), tiles of the rack lie in changed
melds too, and a new meld may be of either; tiles have no identity, so the melds that serve the player best count.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from itertools import islice

from engine.effort import Effort
from engine.melds import Meld, MeldKind, joker_points
from engine.ruleset import (
    InitialMeldComparison,
    InitialMeldJoker,
    InitialMeldRequiredKind,
    InitialMeldSets,
    Ruleset,
)
from engine.table import count_tiles
from engine.tiles import JOKER, MAX_VALUE, Tile, value_of

Melds = tuple[Meld, ...]


def from_left_to_right(new: Melds, rack: Counter[Tile]) -> Melds:
    """The new melds whose tiles a rack has, taken from left to right (R32)."""
    left, found = rack.copy(), []
    for meld in new:
        if all(left[t] >= count for t, count in Counter(meld.tiles).items()):  # comparing all of a rack takes longer
            left.subtract(meld.tiles)
            found.append(meld)
    return tuple(found)


def best_for_the_player(melds: Melds, played: Counter[Tile], ruleset: Ruleset, effort: Effort) -> Melds:
    """The melds of played tiles that make the best initial meld, where others may have been made of the table's.

    Tiles have no identity: a meld that lay there before may be the player's own, and its old tiles lie elsewhere now.
    Raises TooComplexError.
    """
    own = tuple(meld for meld in melds if Counter(meld.tiles) <= played and _is_allowed(meld, ruleset))
    if ruleset.initial_meld_sets is InitialMeldSets.SINGLE_SET:
        return max(((meld,) for meld in own), key=lambda melds: _merit(melds, ruleset), default=())
    candidates = (_with(chosen, own, played, ruleset, effort) for chosen in _must_haves(own, played, ruleset))
    return max(candidates, key=lambda melds: _merit(melds, ruleset))


def _is_allowed(meld: Meld, ruleset: Ruleset) -> bool:
    return ruleset.initial_meld_joker is not InitialMeldJoker.FORBIDDEN or JOKER not in meld.tiles


def _must_haves(own: Melds, played: Counter[Tile], ruleset: Ruleset) -> Iterator[Melds]:
    """Melds that others may have to give way to: what alone reaches the threshold, and the run that is wanted."""
    yield ()
    runs = tuple(meld for meld in own if _is_wanted_run(meld, ruleset))
    if ruleset.initial_meld_sets is not InitialMeldSets.ONE_SET_REACHES_THRESHOLD:
        yield from ((run,) for run in runs)
        return
    best_first = sorted(own, key=lambda meld: -initial_points(meld, ruleset))
    yield tuple(best_first[:1])
    pairs = ((meld,) if meld in runs else (meld, run) for meld in best_first for run in runs)
    yield from islice((pair for pair in pairs if _tiles(pair) <= played), 1)


def _is_wanted_run(meld: Meld, ruleset: Ruleset) -> bool:
    return ruleset.initial_meld_required_kind is InitialMeldRequiredKind.RUN and meld.kind is MeldKind.RUN


def _merit(melds: Melds, ruleset: Ruleset) -> tuple[bool, int]:
    """What makes one choice of melds a better initial meld than another."""
    return has_required_kind(melds, ruleset), counted_points(melds, ruleset)


def _with(chosen: Melds, melds: Melds, tiles: Counter[Tile], ruleset: Ruleset, effort: Effort) -> Melds:
    """Some of the melds with those of the others that count most beside them. The chosen can be laid at once."""
    left, others = tiles - _tiles(chosen), list(melds)
    for meld in chosen:
        others.remove(meld)
    fitting = tuple([meld for meld in others if all(left[t] >= n for t, n in Counter(meld.tiles).items())])
    return (*chosen, *_heaviest(fitting, left, ruleset, effort))


def _tiles(melds: Iterable[Meld]) -> Counter[Tile]:
    return count_tiles(melds)


def _heaviest(melds: Melds, tiles: Counter[Tile], ruleset: Ruleset, effort: Effort) -> Melds:
    """Those of the melds that can be laid from the tiles at once and count most; or enough, which is all that is asked.

    Exact. Each meld must be able to be laid alone; those that compete for a tile, directly or by others, are a problem
    of their own.
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
    """The same for melds that compete: the one with most competition is taken or left out."""
    pivot = max(melds, key=lambda meld: len(contested & set(meld.tiles)))
    taken = _with((pivot,), melds, tiles, ruleset, effort)
    rest = list(melds)
    rest.remove(pivot)
    if min(total_points(rest, ruleset), _points_at_most(rest, tiles)) <= total_points(taken, ruleset):
        return taken
    left_out = _heaviest(tuple(rest), tiles, ruleset, effort)
    return max(taken, left_out, key=lambda chosen: total_points(chosen, ruleset))


def _competing(melds: Melds, contested: frozenset[Tile]) -> Iterator[Melds]:
    """The melds in sets, such that those of two sets compete for no tile."""
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
    """More than melds can count that are laid from so many tiles."""
    usable = _tiles(melds) & tiles
    return sum((MAX_VALUE if t == JOKER else value_of(t)) * count for t, count in usable.items())


def ways_to_meld(
    melds: Melds, played: Counter[Tile], contested: Set[Tile], ruleset: Ruleset, effort: Effort
) -> Iterator[Melds]:
    """Yields the ways to make the initial meld of tiles played, without melds that can be left out.

    Raises TooComplexError.

    Args:
        melds: All melds that lie afterwards.
        played: The tiles played.
        contested: The faces for which it matters whether a tile made the initial meld. Melds that have none of them are
            in all of the ways.
        ruleset: The rules.
        effort: The steps that the search may take.
    """
    own = tuple(meld for meld in melds if Counter(meld.tiles) <= played and _is_allowed(meld, ruleset))
    if ruleset.initial_meld_sets is InitialMeldSets.SINGLE_SET:
        yield from ((meld,) for meld in own if suffices((meld,), ruleset))
        return
    certain = tuple(meld for meld in own if contested.isdisjoint(meld.tiles))
    others = [meld for meld in own if not contested.isdisjoint(meld.tiles)]
    others.sort(key=lambda meld: -initial_points(meld, ruleset))  # the fewest suffice
    yield from _sets(certain, tuple(others), played - _tiles(certain), ruleset, effort)


def _sets(chosen: Melds, others: Melds, left: Counter[Tile], ruleset: Ruleset, effort: Effort) -> Iterator[Melds]:
    """Some melds with others that can be laid from the tiles left, as soon as they are an initial meld."""
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
    """What a meld counts in the initial meld (R30, initial_meld_joker)."""
    return meld.points - (sum(joker_points(meld)) if ruleset.initial_meld_joker is InitialMeldJoker.ZERO else 0)


def total_points(melds: Iterable[Meld], ruleset: Ruleset) -> int:
    """What melds count in the initial meld."""
    return sum(initial_points(meld, ruleset) for meld in melds)


def counted_points(melds: Melds, ruleset: Ruleset) -> int:
    """What is compared with the threshold: the total, or the best of the melds (R31, initial_meld_sets)."""
    if ruleset.initial_meld_sets is InitialMeldSets.ONE_SET_REACHES_THRESHOLD:
        return max((initial_points(meld, ruleset) for meld in melds), default=0)
    return total_points(melds, ruleset)


def reaches(points: int, ruleset: Ruleset) -> bool:
    """Whether points are enough (R29, initial_meld_comparison)."""
    if ruleset.initial_meld_comparison is InitialMeldComparison.GREATER_THAN:
        return points > ruleset.initial_meld_threshold
    return points >= ruleset.initial_meld_threshold


def has_required_kind(melds: Melds, ruleset: Ruleset) -> bool:
    """Whether melds are what initial_meld_required_kind wants."""
    any_kind = ruleset.initial_meld_required_kind is InitialMeldRequiredKind.ANY
    return any_kind or any(meld.kind is MeldKind.RUN for meld in melds)


def suffices(melds: Melds, ruleset: Ruleset) -> bool:
    """Whether melds are an initial meld after which the table may be used in the same turn."""
    return bool(melds) and reaches(counted_points(melds, ruleset), ruleset) and has_required_kind(melds, ruleset)
