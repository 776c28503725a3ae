"""Which melds are a player's initial meld, and what they count (R29 to R34).

Where the table may be played on in the same turn (initial_meld_same_turn_table_play), tiles of the rack lie in changed
melds too, and a new meld may be of either; tiles have no identity, so the melds that serve the player best count.
"""

from collections import Counter

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
        return tuple(sorted(own, key=lambda m: (has_required_kind((m,), ruleset), initial_points(m, ruleset)))[-1:])
    best = _heaviest(own, +play.tiles_played, ruleset)
    if has_required_kind(best, ruleset):
        return best
    return max(
        (_with(meld, own, play.tiles_played, ruleset) for meld in own if meld.kind is MeldKind.RUN),
        key=lambda melds: total_points(melds, ruleset),
        default=best,
    )


def _with(meld: Meld, melds: tuple[Meld, ...], tiles: Counter[Tile], ruleset: Ruleset) -> tuple[Meld, ...]:
    """The melds that count most together with one of them."""
    left = tiles - Counter(meld.tiles)
    others = list(melds)
    others.remove(meld)
    return (meld, *_heaviest(_fitting(tuple(others), left), left, ruleset))


def _fitting(melds: tuple[Meld, ...], tiles: Counter[Tile]) -> tuple[Meld, ...]:
    return tuple(meld for meld in melds if Counter(meld.tiles) <= tiles)


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
    taken = _with(pivot, melds, tiles, ruleset)
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
    points = [initial_points(meld, play.ruleset) for meld in melds]
    one_alone = play.ruleset.initial_meld_sets is InitialMeldSets.ONE_SET_REACHES_THRESHOLD
    enough = reaches(max(points, default=0) if one_alone else sum(points), play.ruleset)
    return enough and bool(melds) and has_required_kind(melds, play.ruleset)


def has_required_kind(melds: tuple[Meld, ...], ruleset: Ruleset) -> bool:
    """Whether melds are what initial_meld_required_kind wants."""
    any_kind = ruleset.initial_meld_required_kind is InitialMeldRequiredKind.ANY
    return any_kind or any(meld.kind is MeldKind.RUN for meld in melds)
