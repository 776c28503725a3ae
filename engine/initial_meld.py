"""Which melds are a player's initial meld, and what they count (R29 to R34).

Where the table may be played on in the same turn (initial_meld_same_turn_table_play), tiles of the rack lie in changed
melds too, and a new meld may be of either; tiles have no identity, so the melds that serve the player best count.
"""

from collections import Counter
from collections.abc import Iterator

from engine.melds import Meld, MeldKind, joker_points
from engine.play import Play
from engine.ruleset import (
    InitialMeldComparison,
    InitialMeldJoker,
    InitialMeldRequiredKind,
    InitialMeldSameTurnTablePlay,
    InitialMeldSets,
    Ruleset,
)
from engine.tiles import JOKER, Tile


def initial_meld(play: Play) -> tuple[Meld, ...]:
    """The melds of own tiles that count as the initial meld."""
    if play.ruleset.initial_meld_same_turn_table_play is InitialMeldSameTurnTablePlay.FORBIDDEN:
        return play.melds_from_rack
    ruleset = play.ruleset
    own = tuple(meld for meld in play.new_melds if Counter(meld.tiles) <= play.tiles_played)
    if ruleset.initial_meld_joker is InitialMeldJoker.FORBIDDEN:
        own = tuple(meld for meld in own if JOKER not in meld.tiles)
    if ruleset.initial_meld_sets is InitialMeldSets.SINGLE_SET:
        candidates = [(), *((meld,) for meld in own)]
    else:
        candidates = [_with(chosen, own, play.tiles_played, ruleset) for chosen in _must_haves(own, ruleset)]
    return max(candidates, key=lambda melds: _merit(melds, ruleset))


def _must_haves(own: tuple[Meld, ...], ruleset: Ruleset) -> Iterator[tuple[Meld, ...]]:
    """The melds that others may have to give way to: what alone reaches the threshold, and the run that is wanted."""
    yield ()
    one_alone = ruleset.initial_meld_sets is InitialMeldSets.ONE_SET_REACHES_THRESHOLD
    runs = tuple(meld for meld in own if _is_wanted_run(meld, ruleset))
    if one_alone:
        yield from ((meld,) for meld in own)
        yield from ((meld, run) for meld in own for run in runs)
    yield from ((run,) for run in runs)


def _is_wanted_run(meld: Meld, ruleset: Ruleset) -> bool:
    return ruleset.initial_meld_required_kind is InitialMeldRequiredKind.RUN and meld.kind is MeldKind.RUN


def _merit(melds: tuple[Meld, ...], ruleset: Ruleset) -> tuple[bool, int]:
    """What makes one choice of melds a better initial meld than another."""
    return bool(melds) and has_required_kind(melds, ruleset), counted_points(melds, ruleset)


def counted_points(melds: tuple[Meld, ...], ruleset: Ruleset) -> int:
    """What is compared with the threshold: the total, or the best of the melds (R31, initial_meld_sets)."""
    points = [initial_points(meld, ruleset) for meld in melds]
    one_alone = ruleset.initial_meld_sets is InitialMeldSets.ONE_SET_REACHES_THRESHOLD
    return max(points, default=0) if one_alone else sum(points)


def _with(
    chosen: tuple[Meld, ...], melds: tuple[Meld, ...], tiles: Counter[Tile], ruleset: Ruleset
) -> tuple[Meld, ...]:
    """Some of the melds with those of the others that count most beside them; none if they cannot all be laid."""
    left, others = +tiles, list(melds)
    for meld in chosen:
        if meld not in others or not Counter(meld.tiles) <= left:
            return ()
        left -= Counter(meld.tiles)
        others.remove(meld)
    fitting = tuple(meld for meld in others if Counter(meld.tiles) <= left)
    return (*chosen, *_heaviest(fitting, left, ruleset))


def _heaviest(melds: tuple[Meld, ...], tiles: Counter[Tile], ruleset: Ruleset) -> tuple[Meld, ...]:
    """Those of the melds that can be laid from the tiles at once and count most.

    Exact: as long as melds compete for a tile, the one with most competition is taken or left out. Each must be able to
    be laid alone.
    """
    wanted = Counter(t for meld in melds for t in meld.tiles)
    contested = wanted - tiles
    if not contested:
        return melds
    pivot = max(melds, key=lambda meld: len(contested.keys() & set(meld.tiles)))
    taken = _with((pivot,), melds, tiles, ruleset)
    rest = list(melds)
    rest.remove(pivot)
    if total_points(rest, ruleset) <= total_points(taken, ruleset):
        return taken
    return max(taken, _heaviest(tuple(rest), tiles, ruleset), key=lambda chosen: total_points(chosen, ruleset))


def initial_points(meld: Meld, ruleset: Ruleset) -> int:
    """What a meld counts in the initial meld (R30, initial_meld_joker)."""
    return meld.points - (sum(joker_points(meld)) if ruleset.initial_meld_joker is InitialMeldJoker.ZERO else 0)


def total_points(melds: tuple[Meld, ...] | list[Meld], ruleset: Ruleset) -> int:
    """What melds count in the initial meld."""
    return sum(initial_points(meld, ruleset) for meld in melds)


def reaches(points: int, ruleset: Ruleset) -> bool:
    """Whether points are enough (R29, initial_meld_comparison)."""
    if ruleset.initial_meld_comparison is InitialMeldComparison.GREATER_THAN:
        return points > ruleset.initial_meld_threshold
    return points >= ruleset.initial_meld_threshold


def is_made(play: Play) -> bool:
    """Whether the player may use the table: they have melded, or do so in this turn and may go on (R33, R34)."""
    if play.has_melded:
        return True
    if play.ruleset.initial_meld_same_turn_table_play is InitialMeldSameTurnTablePlay.FORBIDDEN:
        return False
    melds = initial_meld(play)
    enough = reaches(counted_points(melds, play.ruleset), play.ruleset)
    return enough and bool(melds) and has_required_kind(melds, play.ruleset)


def has_required_kind(melds: tuple[Meld, ...], ruleset: Ruleset) -> bool:
    """Whether melds are what initial_meld_required_kind wants."""
    any_kind = ruleset.initial_meld_required_kind is InitialMeldRequiredKind.ANY
    return any_kind or any(meld.kind is MeldKind.RUN for meld in melds)
