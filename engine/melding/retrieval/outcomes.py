"""Step 1: the outcomes of the jokers of one old meld."""

from collections.abc import Iterator
from itertools import combinations, product

from engine.melding.retrieval.conditions import not_all_in, of_kept, of_new_meld, of_rack
from engine.melding.retrieval.demands import Demands
from engine.melding.retrieval.if_replaced import replaced_or_not
from engine.melding.retrieval.outcome import Departure, Outcome
from engine.melding.retrieval.replacements import may_be_retrieved
from engine.melding.retrieval.tables import Joker, Tables
from engine.melding.ruleset import JokerRetrievalMode, JokerRetrievalReuse


def outcomes_of_meld(tables: Tables, demands: Demands, old: int) -> Iterator[Outcome]:
    """Yields the outcomes of an old meld. Likelier ones come last, because the search tries the last ones first."""
    jokers = tables.old_jokers_in[old]
    for targets in product(*[(None, *_where_kept(tables, demands, joker)) for joker in jokers]):
        tables.effort.take(8)
        kept = [new for new in targets if new]
        retrieved = tuple([joker.role for joker, new in zip(jokers, targets, strict=True) if not new])
        if _may_be_kept(tables, demands, kept) and may_be_retrieved(tables, demands, retrieved):
            rest = kept[0].meld if kept and demands.mode is JokerRetrievalMode.LOCKED else None
            departure = Departure(old, retrieved, rest)
            stays = Outcome(tuple([new.meld for new in kept]), tuple([new.role for new in kept]), (departure,))
            room = [new.meld for new in tables.new_jokers]
            for meld in stays.melds:
                room.remove(meld)
            for retrieved_to in set(combinations(room, len(retrieved))):
                yield from _retrieved(tables, demands, stays, retrieved_to)


def _where_kept(tables: Tables, demands: Demands, joker: Joker) -> Iterator[Joker]:
    """Yields the new jokers, one of each role, that a kept joker may be, judged by the kinds and faces of two melds."""
    for number, new in enumerate(tables.new_jokers):
        same_kind = tables.before[joker.meld].kind is tables.after[new.meld].kind
        may_stay = demands.mode is not JokerRetrievalMode.LOCKED or joker.meld in tables.contained_in[new.meld]
        keeps_faces = _keeps_faces(joker, new) or (demands.widens and joker.faces <= new.faces)
        if number == new.role and same_kind and may_stay and keeps_faces:
            yield new


def _keeps_faces(old: Joker, new: Joker) -> bool:
    """Returns whether a joker stands for nothing that it did not stand for before."""
    return new.faces <= old.faces


def _may_be_kept(tables: Tables, demands: Demands, kept: list[Joker]) -> bool:
    """Returns whether jokers of an old meld may be kept together. In mode LOCKED they must be in one new meld."""
    if demands.mode is JokerRetrievalMode.LOCKED and any(new.meld != kept[0].meld for new in kept):
        return False
    return all(kept.count(new) <= tables.new_role_count[new.role] for new in kept)


def _retrieved(tables: Tables, demands: Demands, stays: Outcome, retrieved_to: tuple[int, ...]) -> Iterator[Outcome]:
    """Yields the outcomes in which the jokers that were not kept were retrieved for certain new melds."""
    old = stays.departures[0].old
    melds = stays.melds + retrieved_to
    conditions = of_kept(tables, stays, melds)
    may_contain_old = old in tables.contained_in[melds[0]] and melds.count(melds[0]) == len(melds)
    if demands.reuse is JokerRetrievalReuse.NEW_MELD_IF_REPLACED:
        if may_contain_old and retrieved_to and demands.other_meld:
            conditions |= {not_all_in(tables, old, melds[0])}
        may_contain = frozenset([(old, melds[0])] if may_contain_old else ())
        outcome = stays._replace(melds=melds, conditions=conditions, may_contain=may_contain)
        yield from replaced_or_not(tables, outcome, retrieved_to)
    elif demands.reuse is not JokerRetrievalReuse.ANY_MELD:
        if all(melds.count(new) == 1 for new in retrieved_to):
            conditions = conditions.union(*[of_new_meld(tables, old, new) for new in retrieved_to])
            if demands.reuse is JokerRetrievalReuse.NEW_MELD_ALL_RACK:
                conditions = conditions.union(*[of_rack(tables, new) for new in retrieved_to])
            may_contain = frozenset([(old, melds[0])] if may_contain_old else ())
            yield stays._replace(
                melds=melds, conditions=conditions, fresh_melds=frozenset(retrieved_to), may_contain=may_contain
            )
    elif may_contain_old and retrieved_to and (demands.other_meld or demands.mode is JokerRetrievalMode.LOCKED):
        yield stays._replace(melds=melds, conditions=conditions | {not_all_in(tables, old, melds[0])})
        if not demands.other_meld:
            yield from _with_other_faces(tables, stays._replace(melds=melds, conditions=conditions))
    else:
        yield stays._replace(melds=melds, conditions=conditions)


def _with_other_faces(tables: Tables, outcome: Outcome) -> Iterator[Outcome]:
    """Yields the outcomes of mode LOCKED in which the retrieved jokers are in a meld with their whole old one.

    A joker counts as retrieved there only if it stands for another face than before.
    """
    there = [new for new in tables.new_jokers if new.meld == outcome.melds[0]]
    retrieved = [tables.old_jokers[role] for role in outcome.departures[0].retrieved]
    others = [{new.role for new in there if not _keeps_faces(joker, new)} for joker in retrieved]
    for roles in product(*others):
        yield outcome._replace(roles=outcome.roles + roles)
