"""The tiles that replace retrieved jokers."""

from collections.abc import Iterator, Set
from itertools import product
from typing import Final

from engine.matching import unmatched
from engine.melding.melds import MeldKind
from engine.melding.retrieval.conditions import of_shared_use
from engine.melding.retrieval.demands import Demands
from engine.melding.retrieval.origins import are_satisfiable
from engine.melding.retrieval.outcome import Departure, Outcome
from engine.melding.retrieval.tables import NO_CONDITIONS, RACK, Conditions, FromOneOf, Joker, Tables
from engine.melding.ruleset import JokerRetrievalMode
from engine.tiles import JOKER, Tile

MOST_COPIES: Final = 256
"""More than a face has copies. Numbers the copies of all faces without overlap."""

LONG_RUN: Final = 4
"""Fewest tiles of a run whose end joker needs no replacement (joker_retrieval_end_of_run_free)."""


def may_be_retrieved(tables: Tables, demands: Demands, roles: tuple[int, ...]) -> bool:
    """Returns whether jokers may be retrieved together: each has replacements of its own, from any allowed source."""
    if not demands.must_replace or not roles:
        return True
    if demands.mode is JokerRetrievalMode.OFF:
        return False
    key = (demands.rack_only, demands.both_colors, roles)
    if key not in tables.known_replaceable:
        sources = _sources(tables, demands)
        choices = [copies for role in roles for copies in _copies(tables, demands, tables.old_jokers[role], sources)]
        tables.known_replaceable[key] = not unmatched(choices)
    return tables.known_replaceable[key]


def _needs(tables: Tables, demands: Demands, joker: Joker) -> tuple[tuple[Tile, ...], ...]:
    """Returns the alternatives that free a joker. Each is the tiles that are needed together."""
    meld = tables.before[joker.meld]
    at_an_end = joker.index in {0, len(meld.tiles) - 1}
    if demands.end_is_free and meld.kind is MeldKind.RUN and len(meld.tiles) >= LONG_RUN and at_an_end:
        return ((),)
    group_of_three = meld.kind is MeldKind.GROUP and len(meld.tiles) == 3 and meld.tiles.count(JOKER) == 1
    faces = tuple(sorted(joker.faces))
    if demands.both_colors and group_of_three:
        return (faces,)
    return tuple((face,) for face in faces)


def _sources(tables: Tables, demands: Demands) -> Set[int]:
    """Returns the possible sources of replacements.

    In mode LOCKED, a meld that could not be unlocked even on its own is no source.
    """
    if demands.rack_only:
        return {RACK}
    if demands.mode is not JokerRetrievalMode.LOCKED:
        return tables.all_sources
    if demands.both_colors not in tables.known_unlockable:
        sources = {*tables.all_sources} - tables.old_jokers_in.keys()
        for old, jokers in [*tables.old_jokers_in.items()] * len(tables.old_jokers_in):
            if all(all(_copies(tables, demands, joker, sources)) for joker in jokers):
                sources.add(old)
        tables.known_unlockable[demands.both_colors] = sources
    return tables.known_unlockable[demands.both_colors]


def _copies(tables: Tables, demands: Demands, joker: Joker, sources: Set[int]) -> list[list[int]]:
    """Returns, for each tile that a joker needs, its copies from certain sources. Each copy has its own number."""
    needs = _needs(tables, demands, joker)
    one_by_one = [[face] for face in needs[0]] if len(needs) == 1 else [[face for (face,) in needs]]
    return [
        [
            face * MOST_COPIES + copy
            for face in faces
            for copy, source in enumerate(tables.sources.get(face, ()))
            if source in sources
        ]
        for faces in one_by_one
    ]


# The order of unlocking


def are_unlocked(tables: Tables, demands: Demands, outcome: Outcome) -> bool:
    """Returns whether the melds that lost jokers can have been unlocked one after the other (mode LOCKED)."""
    if demands.mode is not JokerRetrievalMode.LOCKED or not demands.must_replace:
        return True
    locked = tuple([departure for departure in outcome.departures if departure.retrieved])
    stay_locked = frozenset([departure.old for departure in outcome.departures if departure.rest is not None])
    key = (demands.rack_only, demands.both_colors, locked, stay_locked)
    if key not in tables.known_unlocked:
        tables.known_unlocked[key] = _unlocked(tables, demands, locked, stay_locked)
    ways = tables.known_unlocked[key]
    if NO_CONDITIONS in ways:
        return True
    conditions = outcome.conditions | (of_shared_use(tables, demands, outcome) or NO_CONDITIONS)
    return any(are_satisfiable(tables, conditions | way) for way in ways)


def _unlocked(
    tables: Tables, demands: Demands, locked: tuple[Departure, ...], stay_locked: frozenset[int]
) -> set[Conditions]:
    """Returns the ways to unlock melds, in every order.

    Tiles of a meld whose jokers are all replaced may replace the jokers of the next meld.

    Returns:
        For each way, the conditions on replacements in melds that keep a joker; empty if there is no way.
    """
    needs = {meld: [_needs(tables, demands, tables.old_jokers[role]) for role in meld.retrieved] for meld in locked}
    faces = {face for need in needs.values() for alternatives in need for tiles in alternatives for face in tiles}
    sources = frozenset({RACK}) if demands.rack_only else tables.all_sources - stay_locked
    found = set()
    seen = set()
    waiting = [(locked, _free_at_first(tables, demands, faces), NO_CONDITIONS)]
    while waiting and NO_CONDITIONS not in found:
        locked, free, conditions = waiting.pop()
        if not locked:
            found.add(conditions)
        tables.effort.take(16)
        for meld in _next_to_unlock(demands, locked):
            others = tuple([other for other in locked if other is not meld])
            freed = tables.old_naturals[meld.old] & faces if _sets_free(demands, meld) else ()
            for replacements in _replacements(tables, meld, needs[meld], free):
                there = () if meld.rest is None else [FromOneOf(face, meld.rest, sources) for face in replacements]
                after = (others, _without(replacements, (*free, *freed)), conditions.union(there))
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
    return found


def _free_at_first(tables: Tables, demands: Demands, faces: set[Tile]) -> tuple[Tile, ...]:
    """Returns the tiles of some faces that are free before any meld is unlocked: from the rack and jokerless melds."""
    return tuple(
        face
        for face in sorted(faces & tables.sources.keys())
        for source in tables.sources[face]
        if source == RACK or not (demands.rack_only or source in tables.old_jokers_in)
    )


def _without(some: list[Tile], tiles: tuple[Tile, ...]) -> tuple[Tile, ...]:
    left = sorted(tiles)
    for t in some:
        left.remove(t)
    return tuple(left)


def _next_to_unlock(demands: Demands, locked: tuple[Departure, ...]) -> tuple[Departure, ...]:
    """Returns the candidates for the next meld: those that free tiles. The order of the others does not matter."""
    return tuple([meld for meld in locked if _sets_free(demands, meld)]) or locked[:1]


def _sets_free(demands: Demands, meld: Departure) -> bool:
    """Returns whether the tiles of an unlocked meld may replace other jokers: all its jokers were retrieved."""
    return not demands.rack_only and meld.rest is None


def _replacements(
    tables: Tables, meld: Departure, needs: list[tuple[tuple[Tile, ...], ...]], free: tuple[Tile, ...]
) -> Iterator[list[Tile]]:
    """Yields the tiles that may replace the jokers of a meld. If it keeps a joker, they are with the rest of it."""
    for alternatives in product(*needs):
        tables.effort.take(4)
        faces = [face for tiles in alternatives for face in tiles]
        if all(faces.count(face) <= free.count(face) for face in faces) and (
            meld.rest is None or (len(set(faces)) == len(faces) and tables.new_naturals[meld.rest].issuperset(faces))
        ):
            yield faces
