"""Finds the best turn of a situation: selects the search, and reduces the number of changed melds.

For most rules a turn depends on faces only (problem.py). If it matters which meld a tile or joker came from, the best
turn by faces alone is a bound. If the rules allow that turn, it is the best; else restricted_search.py continues.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Final

from engine.effort import Budget
from engine.melding.analysis import Situation
from engine.melding.melds import Meld, MeldKind
from engine.melding.ruleset import InitialMeldSameTurnTablePlay
from engine.melding.solver.answers import BestTurn, LegalTurn, Objective
from engine.melding.solver.change_reduction import reduce_changes
from engine.melding.solver.few_tiles import is_small
from engine.melding.solver.initial_melds import best_initial_meld, minimal_initial_melds
from engine.melding.solver.joker_rules import are_jokers_free
from engine.melding.solver.meld_enumeration import possible_melds
from engine.melding.solver.problem import weight
from engine.melding.solver.restricted_problem import Melds, RestrictedProblem
from engine.melding.solver.restricted_search import is_restricted, restricted_turns
from engine.melding.solver.search import Meter, OutOfBudget
from engine.melding.solver.solution import Solution, can_play_rack_tile, solve
from engine.melding.solver.turn_problem import Candidate, TurnSearch
from engine.melding.table import identity
from engine.tiles import DOUBLE_JOKER, JOKER, Tile, in_order


def find_best(situation: Situation, objective: Objective, meter: Meter) -> BestTurn:
    """Returns the best turn, with or without the River."""
    found: list[tuple[TurnSearch, Candidate]] = []
    is_proven, below = True, None
    for search in turn_searches(situation, objective, meter):
        try:
            for candidate in candidates(search, _limit(search, below)):
                found.append((search, candidate))
                below = candidate.cost + search.pull_cost + 1
        except OutOfBudget:
            is_proven = False
            found += [(search, candidate) for candidate in _easy_candidates(search, _limit(search, below))]
            break
    if not found:
        return BestTurn(None, is_proven, is_proven)
    search, candidate = min(found, key=lambda turn: (turn[1].cost + turn[0].pull_cost, len(turn[1].changed)))
    return BestTurn(_as_turn(search, candidate), is_proven, is_proven and candidate.is_least_change)


def best_cost(situation: Situation, objective: Objective, meter: Meter) -> int | None:
    """Returns the cost of the tiles on the rack after the best turn; None if there is no turn.

    Raises:
        OutOfBudget: The answer is not known.
    """
    below = None
    for search in turn_searches(situation, objective, meter):
        cheaper = replace(search, minimizes_changes=False)
        for candidate in candidates(cheaper, _limit(search, below)):
            below = candidate.cost + search.pull_cost
    return below


def turn_exists(situation: Situation, meter: Meter) -> bool:
    """Returns whether there is any turn.

    Raises:
        OutOfBudget: The answer is not known.
    """
    for search in turn_searches(situation, Objective.MOST_TILES, meter):
        limit = _limit(search, None)
        if situation.has_melded and not is_restricted(situation.table, situation.ruleset):
            if _any_turn_exists(search, limit):
                return True
        elif any(True for _ in chain(_easy_candidates(search, limit), candidates(search, limit))):
            return True
    return False


def _any_turn_exists(search: TurnSearch, limit: int) -> bool:
    """Returns whether there is any turn, if only faces matter."""
    whole = search.with_table(search.all_places)
    try:
        if search.pulled:
            return solve(whole, search.meter) is not None
        return can_play_rack_tile(whole, search.meter)
    except OutOfBudget:
        if any(True for _ in _easy_candidates(search, limit)):
            return True
        raise


def turn_searches(situation: Situation, objective: Objective, meter: Meter) -> Iterator[TurnSearch]:
    """Yields the search without the River, then those with it, the fewest pulled tiles first.

    If a joker costs nothing on the rack (score_joker_penalty 0), a turn may consist of a joker alone, which is no
    improvement by cost. So one more search requires a played joker.
    """
    yield TurnSearch(situation, objective, meter)
    for joker in (JOKER, DOUBLE_JOKER):
        if joker in situation.rack and not weight(joker, objective, situation.ruleset):
            yield TurnSearch(situation, objective, meter, played=(joker,))
    for river_index in reversed(range(len(situation.river))):
        yield TurnSearch(situation, objective, meter, river_index)


def _limit(search: TurnSearch, below: int | None) -> int:
    """Returns the cost below which a result is a turn and better than the best known one."""
    nothing = search.rack_problem.cost(search.situation.rack)
    must_lay = search.river_index is not None or search.played
    any_turn = nothing + 1 if must_lay else nothing
    if below is None:
        return any_turn
    return 0 if search.played else min(any_turn, below - search.pull_cost)


def candidates(search: TurnSearch, limit: int) -> Iterator[Candidate]:
    """Yields turns, each better than the one before; the last one is the best."""
    situation = search.situation
    if situation.has_melded:
        yield from _with_table(search, (), limit)
    elif situation.ruleset.initial_meld_same_turn_table_play is InitialMeldSameTurnTablePlay.FORBIDDEN:
        yield from _initial_meld_only(search, limit)
    else:
        yield from _with_initial_meld_and_table(search, limit)


def _with_initial_meld_and_table(search: TurnSearch, limit: int) -> Iterator[Candidate]:
    """Yields turns that start with an initial meld and continue with the table.

    The best turn without the initial meld requirement is a bound: a turn as good ends the search.
    """
    free = solve(search.with_table(search.all_places), search.meter, limit)
    if free is None:
        return
    situation = search.situation
    restricted = situation.table if is_restricted(situation.table, situation.ruleset) else ()
    for initial_meld in minimal_initial_melds(search.tiles, restricted, search.rack_problem.ruleset, search.meter):
        for candidate in _with_table(search, initial_meld, limit):
            yield replace(candidate, is_least_change=not candidate.changed)  # another initial meld may change fewer
            limit = candidate.cost
        if limit <= free.cost:
            return


def _initial_meld_only(search: TurnSearch, limit: int) -> Iterator[Candidate]:
    """Yields the best initial meld if the table must be left alone."""
    found = best_initial_meld(search.rack_problem, search.meter, limit)
    if found is None or not found.melds:
        return
    nothing: frozenset[int] = frozenset()
    situation = search.situation
    if not is_restricted(situation.table, situation.ruleset) or search.is_legal(found.melds, search.all_places):
        yield Candidate(found.cost, nothing, found.melds)
    else:
        restricted = RestrictedProblem(
            situation.table, search.rack_problem, search.is_legal, search.meter, uses_table=False
        )
        yield from _restricted_candidates(restricted, limit, found.cost)


def _with_table(search: TurnSearch, initial_meld: Melds, limit: int) -> Iterator[Candidate]:
    """Yields the best turn of a player who may use the table, after an optional initial meld that must stay."""
    table, ruleset = search.situation.table, search.situation.ruleset
    problem_for = partial(search.problem_after, initial_meld)
    if not is_restricted(table, ruleset):
        found = solve(problem_for(search.all_places), search.meter, limit)
        if found:
            yield _with_few_changes(search, initial_meld, found)
        return
    restricted = RestrictedProblem(table, problem_for(frozenset()), search.is_legal, search.meter, initial_meld)
    if is_small(restricted) and not are_jokers_free(ruleset, restricted.tiles[JOKER]):  # the search by faces is slower
        yield from _restricted_candidates(restricted, limit)
        return
    found = solve(problem_for(search.all_places), search.meter, limit)
    if found is None:
        return
    candidate = _with_few_changes(search, initial_meld, found)
    if search.is_legal(candidate.melds, search.all_places - candidate.changed):
        yield candidate
    else:
        yield from _restricted_candidates(restricted, limit, found.cost)


def _with_few_changes(search: TurnSearch, initial_meld: Melds, found: Solution) -> Candidate:
    change = reduce_changes(search, partial(search.problem_after, initial_meld), found)
    return Candidate(found.cost, change.places, (*initial_meld, *change.solution.melds), change.is_least)


def _restricted_candidates(restricted: RestrictedProblem, limit: int, bound: int = -1) -> Iterator[Candidate]:
    """Yields legal turns that cost less than a limit, until one costs no more than a lower bound."""
    for other in restricted_turns(restricted, limit):
        yield Candidate(other.cost, other.changed, other.melds, other.is_least_change)
        if other.cost <= bound:
            return


EASY_BUDGET: Final = Budget(nodes=150)
"""The budget for turns that are easy to find."""


def _easy_candidates(search: TurnSearch, limit: int) -> Iterator[Candidate]:
    """Yields turns that are easy to find, each better than the one before."""
    for candidate in chain(_rack_meld_candidates(search), _small_change_candidates(search, limit)):
        if candidate.cost < limit and search.is_legal(candidate.melds, search.all_places - candidate.changed):
            yield candidate
            limit = candidate.cost


def _rack_meld_candidates(search: TurnSearch) -> Iterator[Candidate]:
    """Yields turns that only lay a meld of the rack, or an initial meld; the best first, because judging is slow."""
    yield from sorted(_unsorted_rack_meld_candidates(search), key=lambda candidate: candidate.cost)


def _unsorted_rack_meld_candidates(search: TurnSearch) -> Iterator[Candidate]:
    rack_problem, ruleset = search.tiles, search.rack_problem.ruleset
    all_places = search.rack_problem.cost(rack_problem.elements())
    choices: Iterator[Melds] = minimal_initial_melds(rack_problem, (), ruleset, Meter(EASY_BUDGET))
    if search.situation.has_melded:
        choices = ((meld,) for meld in islice(possible_melds(rack_problem, ruleset), EASY_BUDGET.nodes))
    with suppress(OutOfBudget):
        for melds in choices:
            laid = Counter(t for meld in melds for t in meld.tiles)
            if Counter(search.rack_problem.must) <= laid:
                cost = all_places - search.rack_problem.cost(laid.elements())
                yield Candidate(cost, frozenset(), melds, is_least_change=False)


def _small_change_candidates(search: TurnSearch, limit: int) -> Iterator[Candidate]:
    """Yields turns that change at most one meld."""
    meter = Meter(EASY_BUDGET)
    places = [(), *((place,) for place in sorted(search.all_places))] if search.situation.has_melded else []
    for changed in map(frozenset, places):
        found = None
        with suppress(OutOfBudget):
            found = solve(search.with_table(changed), meter, limit)
        if found:
            yield Candidate(found.cost, changed, found.melds, is_least_change=False)


def _as_turn(search: TurnSearch, candidate: Candidate) -> LegalTurn:
    """Returns a candidate as a LegalTurn."""
    table = search.situation.table
    untouched, melds = _split_untouched(table, candidate)
    after = (*[table[place] for place in untouched], *melds)
    played = Counter(chain(*[meld.tiles for meld in melds]))
    played.subtract(search.pulled[:1])
    kept = set(untouched)
    for place, meld in enumerate(table):
        if place not in kept:
            for t in meld.tiles:
                played[t] -= 1
    return LegalTurn(after, in_order(played.elements()), untouched, search.river_index)


def _split_untouched(table: Melds, candidate: Candidate) -> tuple[tuple[int, ...], Melds]:
    """Returns the places of the untouched melds, and the other melds; a changed meld may turn out untouched.

    A new group with a joker of several faces is played without faces; the rules read it as an old group of its tiles.
    """
    untouched = []
    new: dict[object, list[int]] = {}
    without_faces: dict[tuple[Tile, ...], list[int]] = {}
    for number, meld in enumerate(candidate.melds):
        new.setdefault(_comparison_key(meld), []).append(number)
        if meld.kind is MeldKind.GROUP and any(len(faces) > 1 for faces in meld.joker_faces):
            without_faces.setdefault(in_order(meld.tiles), []).append(number)
    same = set[int]()
    for place, old in enumerate(table):
        if place not in candidate.changed:
            untouched.append(place)
            continue
        alike = list(new.get(_comparison_key(old), ()))
        if old.kind is MeldKind.GROUP:
            alike += without_faces.get(in_order(old.tiles), ())
        taken = next((number for number in alike if number not in same), None)
        if taken is not None:
            same.add(taken)
            untouched.append(place)
    return tuple(untouched), tuple([meld for number, meld in enumerate(candidate.melds) if number not in same])


def _comparison_key(meld: Meld) -> object:
    """Returns a meld's identity; without jokers the tiles suffice and are faster to compare."""
    if meld.joker_faces:
        return identity(meld)
    return meld.tiles if meld.kind is MeldKind.RUN else in_order(meld.tiles)
