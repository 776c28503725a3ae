"""Initial melds: the melds that a player can lay from the rack alone (R29 to R34, initial_meld options)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from engine.melding.initial_meld import initial_points, suffices
from engine.melding.melds import Meld, MeldKind
from engine.melding.ruleset import (
    InitialMeldComparison,
    InitialMeldCount,
    InitialMeldJoker,
    InitialMeldRequiredKind,
    Ruleset,
)
from engine.melding.solver.joker_rules import are_jokers_free
from engine.melding.solver.joker_search import Requirement
from engine.melding.solver.meld_enumeration import Melds, possible_melds, useful_declarations
from engine.melding.solver.problem import Problem, reduce
from engine.melding.solver.search import Meter
from engine.melding.solver.solution import Solution, solve, solve_with
from engine.melding.table import have_joker
from engine.tiles import JOKER, JOKERS, MAX_VALUE, PLACES_OF, Tile, in_order, value_of


def best_initial_meld(problem: Problem, meter: Meter, below: int) -> Solution | None:
    """Returns the cheapest initial meld that leaves the table alone; None if none costs less than the limit.

    Args:
        problem: Nothing must be laid except perhaps a tile of the River; the rack may be.
        meter: The budget.
        below: The initial meld must cost less than this.
    """
    ruleset = problem.ruleset
    if ruleset.initial_meld_joker is InitialMeldJoker.FORBIDDEN:
        return _without_jokers(problem, meter, below)
    if ruleset.initial_meld_count is InitialMeldCount.ONE_MELD_REACHES_THRESHOLD:
        return _with_meld_at_threshold(problem, meter, below)
    if _most_points(problem) < least_points(ruleset):
        return None
    if are_jokers_free(ruleset, problem.jokers):
        easy = solve(problem, meter, below)  # a lower bound: points can only make it worse
        if easy is None or _suffices(easy.melds, ruleset):
            return easy
    return solve_with(problem, meter, _requirement(ruleset), below)


def _most_points(problem: Problem) -> int:
    """Returns an upper bound on the points of all tiles that can be laid."""
    reduced = reduce(problem)
    tiles = (*reduced.must.items(), *reduced.may.items())
    return sum((MAX_VALUE * PLACES_OF[t] if t in JOKERS else value_of(t)) * count for t, count in tiles)


def _suffices(melds: Melds, ruleset: Ruleset) -> bool:
    is_single = ruleset.initial_meld_count is InitialMeldCount.SINGLE_MELD
    return suffices(melds, ruleset) and (len(melds) == 1 or not is_single)


def _without_jokers(problem: Problem, meter: Meter, below: int) -> Solution | None:
    jokers = problem.may.get(JOKER, 0)
    if problem.must.get(JOKER):
        return None
    kept = problem.cost((JOKER,)) * jokers
    naturals = {t: count for t, count in problem.may.items() if t != JOKER}
    ruleset = replace(problem.ruleset, initial_meld_joker=InitialMeldJoker.REPRESENTED_VALUE)
    found = best_initial_meld(replace(problem, may=naturals, ruleset=ruleset), meter, below - kept)
    return found and Solution(found.cost + kept, found.melds)


def least_points(ruleset: Ruleset) -> int:
    """Returns the points that are enough (initial_meld_comparison)."""
    more = ruleset.initial_meld_comparison is InitialMeldComparison.GREATER_THAN
    return ruleset.initial_meld_threshold + more


def _requirement(ruleset: Ruleset) -> Requirement:
    return Requirement(
        points=least_points(ruleset),
        joker_counts=ruleset.initial_meld_joker is not InitialMeldJoker.ZERO,
        single_meld=ruleset.initial_meld_count is InitialMeldCount.SINGLE_MELD,
        needs_run=ruleset.initial_meld_required_kind is InitialMeldRequiredKind.RUN,
    )


def _with_meld_at_threshold(problem: Problem, meter: Meter, below: int) -> Solution | None:
    """Tries each meld that reaches the threshold, with the best melds beside it (ONE_MELD_REACHES_THRESHOLD)."""
    best = None
    wants_run = problem.ruleset.initial_meld_required_kind is InitialMeldRequiredKind.RUN
    available = Counter(problem.must) + Counter(problem.may)
    for meld in possible_melds(available, problem.ruleset):
        meter.count()
        if initial_points(meld, problem.ruleset) < least_points(problem.ruleset):
            continue
        beside = without_meld(problem, meld)
        requirement = Requirement(needs_run=wants_run and meld.kind is not MeldKind.RUN)
        found = solve_with(beside, meter, requirement, below) if requirement.needs_run else solve(beside, meter, below)
        if found:
            best, below = Solution(found.cost, (meld, *found.melds)), found.cost
    return best


def without_meld(problem: Problem, meld: Meld) -> Problem:
    """Returns the problem that is left after a meld is laid."""
    tiles = Counter(meld.tiles)
    must = Counter(problem.must)
    return replace(problem, must=must - tiles, may=Counter(problem.may) - (tiles - must))


def minimal_initial_melds(available: Counter[Tile], table: Melds, ruleset: Ruleset, meter: Meter) -> Iterator[Melds]:
    """Yields initial melds from which no meld can be left out, single melds first, once per multiset of tiles.

    A longer meld counts as another one: its additional tiles might find no place beside the shorter one. So does one
    with other joker declarations, if these may help jokers of the table.
    """
    forbidden = ruleset.initial_meld_joker is InitialMeldJoker.FORBIDDEN
    tiles = Counter({t: count for t, count in available.items() if t != JOKER or not forbidden})
    known: set[tuple[Tile, ...]] = set()
    for chosen in _minimal_sets(tiles, ruleset, meter):
        laid = in_order(t for meld in chosen for t in meld.tiles)
        if laid not in known:
            known.add(laid)
            yield from _with_declarations(chosen, table, ruleset)


def _with_declarations(melds: Melds, table: Melds, ruleset: Ruleset) -> Iterator[Melds]:
    """Yields melds with every useful joker declaration, if declarations matter here."""
    if ruleset.jokers_beyond_physical and not have_joker(table):
        yield melds
        return
    yield from product(*((meld, *useful_declarations(meld, table, ruleset)) for meld in melds))


def _minimal_sets(available: Counter[Tile], ruleset: Ruleset, meter: Meter) -> Iterator[Melds]:
    too_little = []
    for meld in possible_melds(available, ruleset):
        meter.count()
        if suffices((meld,), ruleset):
            yield (meld,)
        else:
            too_little.append(meld)
    if ruleset.initial_meld_count is not InitialMeldCount.SINGLE_MELD:
        worth_most = sorted(too_little, key=lambda meld: -initial_points(meld, ruleset))
        yield from _completed(tuple(worth_most), available, (), ruleset, meter)


def _completed(
    melds: Melds, available: Counter[Tile], chosen: Melds, ruleset: Ruleset, meter: Meter
) -> Iterator[Melds]:
    """Yields minimal sets of melds that contain the chosen ones."""
    for place, meld in enumerate(melds):
        meter.count()
        tiles = Counter(meld.tiles)
        if tiles <= available:
            more = (*chosen, meld)
            if suffices(more, ruleset):
                yield more
            else:
                yield from _completed(melds[place:], available - tiles, more, ruleset, meter)
