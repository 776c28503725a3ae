"""Initial melds: what a player can lay of the rack alone (R29 to R34, initial_meld options)."""

from collections import Counter
from collections.abc import Callable, Iterator, Set
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, product

from engine.initial_meld import initial_points, suffices
from engine.melds import Meld, MeldKind, ProposedMeld, must_declare, read_meld
from engine.ruleset import (
    InitialMeldComparison,
    InitialMeldJoker,
    InitialMeldRequiredKind,
    InitialMeldSets,
    JokersDeclaration,
    Ruleset,
    RunWrap,
    SetOrder,
)
from engine.solver.arrangement import Lay, best_lay, best_lay_of, declared
from engine.solver.joker_search import Wanted, are_free, joker_rules
from engine.solver.problem import FACES, Problem, layable
from engine.solver.search import Meter
from engine.table import tiles_on
from engine.tiles import JOKER, MAX_VALUE, Tile, in_order, value_of

Melds = tuple[Meld, ...]


def best_opening(problem: Problem, meter: Meter, below: int) -> Lay | None:
    """The cheapest initial meld that leaves the table alone; None if none costs less than asked.

    Args:
        problem: Nothing must be laid but perhaps a tile of the River; the rack may be.
        meter: The budget.
        below: What it must cost less than.
    """
    ruleset = problem.ruleset
    if ruleset.initial_meld_joker is InitialMeldJoker.FORBIDDEN:
        return _without_jokers(problem, meter, below)
    if ruleset.initial_meld_sets is InitialMeldSets.ONE_SET_REACHES_THRESHOLD:
        return _with_one_that_reaches(problem, meter, below)
    if _most_points(problem) < least_points(ruleset):
        return None
    if are_free(ruleset):
        easy = best_lay(problem, meter, below)  # there is none better if points count
        if easy is None or _is_enough(easy.melds, ruleset):
            return easy
    return best_lay_of(problem, meter, _wanted(ruleset), below)


def _most_points(problem: Problem) -> int:
    """What all tiles that can be laid count at most."""
    reduced = layable(problem)
    tiles = (*reduced.must.items(), *reduced.may.items())
    return sum((MAX_VALUE if t == JOKER else value_of(t)) * count for t, count in tiles)


def _is_enough(melds: Melds, ruleset: Ruleset) -> bool:
    is_single = ruleset.initial_meld_sets is InitialMeldSets.SINGLE_SET
    return suffices(melds, ruleset) and (len(melds) == 1 or not is_single)


def _without_jokers(problem: Problem, meter: Meter, below: int) -> Lay | None:
    jokers = problem.may.get(JOKER, 0)
    if problem.must.get(JOKER):
        return None
    kept = problem.cost((JOKER,)) * jokers
    naturals = {t: count for t, count in problem.may.items() if t != JOKER}
    ruleset = replace(problem.ruleset, initial_meld_joker=InitialMeldJoker.REPRESENTED_VALUE)
    found = best_opening(replace(problem, may=naturals, ruleset=ruleset), meter, below - kept)
    return found and Lay(found.cost + kept, found.melds)


def least_points(ruleset: Ruleset) -> int:
    """The points that are enough (initial_meld_comparison)."""
    more = ruleset.initial_meld_comparison is InitialMeldComparison.GREATER_THAN
    return ruleset.initial_meld_threshold + more


def _wanted(ruleset: Ruleset) -> Wanted:
    return Wanted(
        points=least_points(ruleset),
        joker_counts=ruleset.initial_meld_joker is not InitialMeldJoker.ZERO,
        one_meld=ruleset.initial_meld_sets is InitialMeldSets.SINGLE_SET,
        a_run=ruleset.initial_meld_required_kind is InitialMeldRequiredKind.RUN,
    )


def _with_one_that_reaches(problem: Problem, meter: Meter, below: int) -> Lay | None:
    """Tries every meld that reaches the threshold, with the best beside it (ONE_SET_REACHES_THRESHOLD)."""
    best = None
    wants_run = problem.ruleset.initial_meld_required_kind is InitialMeldRequiredKind.RUN
    own = Counter(problem.must) + Counter(problem.may)
    for meld in own_melds(own, problem.ruleset):
        meter.count()
        if initial_points(meld, problem.ruleset) < least_points(problem.ruleset):
            continue
        beside = without(problem, meld)
        wanted = Wanted(a_run=wants_run and meld.kind is not MeldKind.RUN)
        found = best_lay_of(beside, meter, wanted, below) if wanted.a_run else best_lay(beside, meter, below)
        if found:
            best, below = Lay(found.cost, (meld, *found.melds)), found.cost
    return best


def without(problem: Problem, meld: Meld) -> Problem:
    """The problem that is left when a meld of it lies."""
    tiles = Counter(meld.tiles)
    must = Counter(problem.must)
    return replace(problem, must=must - tiles, may=Counter(problem.may) - (tiles - must))


# The melds of a rack


Shape = tuple[MeldKind, tuple[Tile, ...]]
"""The faces that a meld shows, jokers standing for some of them."""


def own_melds(
    tiles: Counter[Tile], ruleset: Ruleset, is_wanted: Callable[[Shape], bool] = lambda _: True
) -> Iterator[Meld]:
    """Every meld that can be made of some tiles, but for the order of a group and faces of its jokers.

    Args:
        tiles: The tiles.
        ruleset: What is a meld.
        is_wanted: Which shapes to make.
    """
    most = min(tiles[JOKER], joker_rules(ruleset).most)
    rulesets = ruleset, _silent(ruleset)
    for kind, faces in filter(is_wanted, _shapes(ruleset.geometry_colors, ruleset.run_wrap)):
        missing = frozenset([place for place, face in enumerate(faces) if not tiles[face]])
        for jokers in range(len(missing), min(most, len(faces) - 1) + 1):
            yield from _with_jokers((kind, faces), missing, jokers, rulesets)


@lru_cache
def _shapes(colors: int, wrap: RunWrap) -> tuple[Shape, ...]:
    last = {RunWrap.NONE: MAX_VALUE, RunWrap.ONE_HIGH: MAX_VALUE + 1, RunWrap.CYCLIC: 2 * MAX_VALUE - 1}[wrap]
    runs = [
        (MeldKind.RUN, tuple(FACES[(first + step - 1) % MAX_VALUE][color] for step in range(length)))
        for color in range(colors)
        for first in range(1, MAX_VALUE + 1)
        for length in range(3, min(MAX_VALUE, last - first + 1) + 1)
    ]
    groups = [
        (MeldKind.GROUP, chosen)
        for faces in FACES
        for size in range(3, colors + 1)
        for chosen in combinations(faces[:colors], size)
    ]
    return (*runs, *groups)


def _with_jokers(
    shape: Shape, missing: frozenset[int], jokers: int, rulesets: tuple[Ruleset, Ruleset]
) -> Iterator[Meld]:
    """The melds of a shape with so many jokers, some of them at the missing places.

    Args:
        shape: The shape.
        missing: The places of which no tile is there.
        jokers: How many jokers lie in it.
        rulesets: The ruleset, and the one by which nothing must be declared.
    """
    kind, faces = shape
    ruleset, silent = rulesets
    others = [place for place in range(len(faces)) if place not in missing]
    for extra in combinations(others, jokers - len(missing)):
        meld = read_meld(_laid(kind, faces, missing.union(extra), ruleset), silent)
        if isinstance(meld, Meld):
            yield declared(meld, ruleset)


def _laid(kind: MeldKind, faces: tuple[Tile, ...], wild: Set[int], ruleset: Ruleset) -> ProposedMeld:
    """Faces with jokers in some places; what these stand for in a run is declared where its order does not say it."""
    tiles = tuple(JOKER if place in wild else face for place, face in enumerate(faces))
    if kind is MeldKind.GROUP:
        jokers_last = tuple(sorted(tiles, key=lambda t: (t == JOKER, t)))  # they may not lead (jokers_may_lead)
        return ProposedMeld(jokers_last, kind)
    if ruleset.set_order is SetOrder.STRICT:
        return ProposedMeld(tiles, kind)
    return ProposedMeld(tiles, kind, tuple(faces[place] for place in sorted(wild)))


def helpful_readings(meld: Meld, table: Melds, ruleset: Ruleset) -> Iterator[Meld]:
    """A group with other faces declared for its jokers: all, where some must be; else such as help jokers of the table.

    What a joker of the table stood for may have to be said again, or said at last.
    """
    if meld.kind is MeldKind.RUN or not meld.joker_faces:
        return
    must_say = must_declare(len(meld.joker_faces), ruleset)
    helpful = _better_declared(meld, table)
    value = value_of(next(t for t in meld.tiles if t != JOKER))
    faces = [face for face in FACES[value - 1][: ruleset.geometry_colors] if face not in meld.tiles]
    for said in combinations(faces, len(meld.joker_faces)) if must_say or helpful else ():
        if must_say or not helpful.isdisjoint(said):
            reading = read_meld(ProposedMeld(meld.tiles, meld.kind, said), ruleset)
            if isinstance(reading, Meld) and reading != meld:
                yield reading


def _better_declared(meld: Meld, table: Melds) -> set[Tile]:
    """The faces of a group's jokers that serve jokers of the table if declared, and do not if nothing is.

    The rules ask whether what a joker stands for is within what one of the table stood for. Where all that it may stand
    for is, there is nothing to say.
    """
    undeclared = {face for faces in meld.joker_faces for face in faces}
    roles = {faces for old in table for faces in old.joker_faces}
    return {face for faces in roles if not undeclared <= set(faces) for face in faces}


def _silent(ruleset: Ruleset) -> Ruleset:
    """A ruleset by which nothing must be declared."""
    if ruleset.jokers_declaration is JokersDeclaration.POSITIONAL:
        return ruleset
    return replace(ruleset, jokers_declaration=JokersDeclaration.POSITIONAL)


# Initial melds after which the table may be used (initial_meld_same_turn_table_play)


def least_openings(own: Counter[Tile], table: Melds, ruleset: Ruleset, meter: Meter) -> Iterator[Melds]:
    """Initial melds of own tiles of which none can be left out, single ones first; one for all of the same tiles.

    A longer meld is another one: what it has more might find no place beside the shorter one. So is one whose jokers
    are declared in another way, where that may help those of the table.
    """
    forbidden = ruleset.initial_meld_joker is InitialMeldJoker.FORBIDDEN
    tiles = Counter({t: count for t, count in own.items() if t != JOKER or not forbidden})
    known: set[tuple[Tile, ...]] = set()
    for chosen in _openings(tiles, ruleset, meter):
        laid = in_order(tiles_on(chosen))
        if laid not in known:
            known.add(laid)
            yield from _readings(chosen, table, ruleset)


def _readings(melds: Melds, table: Melds, ruleset: Ruleset) -> Iterator[Melds]:
    """Melds with jokers declared in each way that helps, where not all are allowed or the table has jokers too."""
    if ruleset.jokers_beyond_physical and not any(JOKER in meld.tiles for meld in table):
        yield melds
        return
    yield from product(*((meld, *helpful_readings(meld, table, ruleset)) for meld in melds))


def _openings(own: Counter[Tile], ruleset: Ruleset, meter: Meter) -> Iterator[Melds]:
    too_little = []
    for meld in own_melds(own, ruleset):
        meter.count()
        if suffices((meld,), ruleset):
            yield (meld,)
        else:
            too_little.append(meld)
    if ruleset.initial_meld_sets is not InitialMeldSets.SINGLE_SET:
        worth_most = sorted(too_little, key=lambda meld: -initial_points(meld, ruleset))
        yield from _together(tuple(worth_most), own, (), ruleset, meter)


def _together(melds: Melds, own: Counter[Tile], chosen: Melds, ruleset: Ruleset, meter: Meter) -> Iterator[Melds]:
    """Some melds with others that together are enough."""
    for place, meld in enumerate(melds):
        meter.count()
        tiles = Counter(meld.tiles)
        if tiles <= own:
            more = (*chosen, meld)
            if suffices(more, ruleset):
                yield more
            else:
                yield from _together(melds[place:], own - tiles, more, ruleset, meter)
