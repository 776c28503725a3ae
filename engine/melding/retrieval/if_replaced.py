"""Outcomes under joker_retrieval_reuse NEW_MELD_IF_REPLACED: only a replaced joker must go to a new meld."""

from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import combinations

from engine.matching import unmatched
from engine.melding.melds import MeldKind
from engine.melding.retrieval.conditions import not_all_in, of_new_meld
from engine.melding.retrieval.outcome import Outcome
from engine.melding.retrieval.tables import FromOneOf, Tables
from engine.melding.run_shape import MIN_TILES
from engine.tiles import Tile


def replaced_or_not(tables: Tables, outcome: Outcome, retrieved_to: tuple[int, ...]) -> Iterator[Outcome]:
    """Yields the outcomes of an old meld, each retrieved joker being replaced and in a fresh meld, or not replaced.

    Args:
        tables: The tables.
        outcome: The outcome so far.
        retrieved_to: The new melds of the retrieved jokers.
    """
    old, retrieved, _ = outcome.departures[0]
    containing = [new for new, contained in enumerate(tables.contained_in) if old in contained]
    replacing = {new: _replacing(tables, old, new, retrieved) for new in containing}
    if all(_contains_at_most_one(tables, new) and not replacing[new] for new in containing):
        yield outcome  # no joker need have been replaced, and no tile can have replaced a joker of another meld
        return
    for size in range(len(retrieved) + 1):
        for replaced in set(combinations(retrieved, size)):
            others = list(retrieved)
            for role in replaced:
                others.remove(role)
            replacing = {new: _replacing(tables, old, new, others) for new in containing}
            for fresh_melds in set(combinations(retrieved_to, size)):
                tables.effort.take(4)
                if all(outcome.melds.count(new) == 1 for new in fresh_melds):
                    yield from _with_replaced(tables, outcome, replaced, fresh_melds, replacing)


def _contains_at_most_one(tables: Tables, new: int) -> bool:
    """Returns whether at most one old meld with jokers can have its rest in a new meld."""
    return len(tables.contained_in[new] & tables.old_jokers_in.keys()) <= 1


def _with_replaced(
    tables: Tables,
    outcome: Outcome,
    replaced: tuple[int, ...],
    fresh_melds: tuple[int, ...],
    replacing: Mapping[int, Set[Tile]],
) -> Iterator[Outcome]:
    """Yields the outcomes in which certain jokers of an old meld were replaced and the others left before.

    Replacement is decidable only where one new meld has all numbered tiles of the old one.

    Args:
        tables: The tables.
        outcome: The outcome so far.
        replaced: The roles of the replaced jokers.
        fresh_melds: The new melds that contain them.
        replacing: For each new meld that has all numbered tiles of the old one: the tiles that replaced some joker.
    """
    old = outcome.departures[0].old
    conditions = outcome.conditions.union(*[of_new_meld(tables, old, new) for new in fresh_melds])
    outcome = outcome._replace(conditions=conditions, fresh_melds=frozenset(fresh_melds))
    apart = []
    for new, faces in replacing.items():
        if faces:
            apart.append(not_all_in(tables, old, new))
        if faces or (replaced and not _contains_at_most_one(tables, new)):
            there = [FromOneOf(face, new, frozenset({old})) for face in tables.old_naturals[old]]
            places = tuple([(new, tables.old_jokers[role].faces) for role in replaced])
            yield outcome._replace(
                conditions=conditions.union(there),
                replacing=frozenset([(new, face) for face in faces]),
                replaced=places,
            )
    yield outcome._replace(conditions=conditions.union(apart))


def _replacing(tables: Tables, old: int, new: int, others: Iterable[int]) -> Set[Tile]:
    """Returns the tiles of a new meld that must have replaced some joker, if certain jokers of an old one were not.

    One tile is in the place of each joker. If the tiles of the old meld are in valid melds without it, the joker left
    before it came. Otherwise, all tiles that can be in that place are in the places of replaced jokers. In a run there
    is one such tile, and a group is valid without any of them or without none.

    Args:
        tables: The tables.
        old: The old meld.
        new: The new meld, which has all numbered tiles of the old one.
        others: The roles of the jokers that were not replaced.
    """
    found: set[Tile] = set()
    for role in others:
        tables.effort.take(8)
        in_place = tables.old_jokers[role].faces & tables.new_naturals[new]
        if not any(_is_valid_without(tables, old, new, t) for t in in_place):
            found |= in_place
    return found


def _is_valid_without(tables: Tables, old: int, new: int, gone: Tile) -> bool:
    """Returns whether the tiles of an old meld, all in one new meld, are in valid melds without one of its tiles."""
    meld = tables.after[new]
    parts: list[list[Tile]] = [[]]
    for t in meld.tiles:
        if t != gone:
            parts[-1].append(t)
        elif meld.kind is MeldKind.RUN:
            parts.append([])
    return all(len(part) >= MIN_TILES for part in parts if not tables.old_naturals[old].isdisjoint(part))


def replace_distinct_jokers(outcome: Outcome) -> bool:
    """Returns whether each tile that must have replaced a joker can have replaced a different one."""
    choices = [
        [joker for joker, (there, faces) in enumerate(outcome.replaced) if there == new and face in faces]
        for new, face in outcome.replacing
    ]
    return not unmatched(choices)
