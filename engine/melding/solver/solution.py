"""Solves a problem with the search that fits its rules, and returns melds."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from engine.melding.melds import Meld, MeldKind, ProposedMeld, must_declare, read_meld
from engine.melding.ruleset import JokersDeclaration, Ruleset
from engine.melding.solver.double_search import cheapest_with_doubles, has_turn_with_doubles
from engine.melding.solver.joker_reconstruction import melds_of_path
from engine.melding.solver.joker_rules import are_jokers_free
from engine.melding.solver.joker_search import NO_REQUIREMENT, Requirement, cheapest_with_jokers
from engine.melding.solver.problem import Problem, dropped_cost, reduce
from engine.melding.solver.reconstruction import Reconstruction, reconstruct
from engine.melding.solver.search import Meter, cheapest_path, path_with_rack_tile
from engine.tiles import JOKER, Tile


@dataclass(frozen=True, slots=True)
class Solution:
    """Melds that contain all tiles that must be laid, and the cost of the tiles left."""

    cost: int
    melds: tuple[Meld, ...]


def solve(problem: Problem, meter: Meter, below: int | None = None) -> Solution | None:
    """Returns the cheapest solution; None if none costs less than the limit.

    Raises:
        OutOfBudget: The meter's budget is spent.
    """
    if problem.doubles:
        return solve_with(problem, meter, NO_REQUIREMENT, below)
    reduced = reduce(problem)
    dropped = dropped_cost(problem, reduced)
    limit = None if below is None else below - dropped
    found = cheapest_path(reduced, meter, limit)
    if found is None:
        return None
    laid = reconstruct(found, problem.ruleset, problem.jokers)
    if _has_melds(laid, problem):
        return Solution(found.cost + dropped, _melds(laid.melds, problem.ruleset))
    return _solve_with_jokers(reduced, meter, NO_REQUIREMENT, limit, dropped)


def is_solvable_below(problem: Problem, meter: Meter, limit: int) -> bool:
    """Returns whether a solution costs less than a limit."""
    if are_jokers_free(problem.ruleset, problem.jokers) and not problem.doubles:
        reduced = reduce(problem)
        found = cheapest_path(reduced, meter, limit - dropped_cost(problem, reduced))
        if (
            found is None
            or found.spent == problem.jokers
            or not reconstruct(found, problem.ruleset, problem.jokers).spare
        ):
            return found is not None
    return solve(problem, meter, limit) is not None


def can_play_rack_tile(problem: Problem, meter: Meter) -> bool:
    """Returns whether a solution lays at least one tile of the rack."""
    if problem.doubles:
        return has_turn_with_doubles(problem, meter)
    found = path_with_rack_tile(reduce(problem), meter)
    if found is None:
        return False
    if _has_melds(reconstruct(found, problem.ruleset, problem.jokers), problem):
        return True
    return solve(problem, meter, problem.cost(Counter(problem.may).elements())) is not None


def solve_with(problem: Problem, meter: Meter, requirement: Requirement, below: int | None = None) -> Solution | None:
    """Returns the cheapest solution that meets a requirement; None if none costs less than the limit."""
    if problem.doubles:
        path = cheapest_with_doubles(problem, meter, requirement, below)
        return Solution(path.cost, _melds(path.melds, problem.ruleset)) if path else None
    reduced = reduce(problem)
    dropped = dropped_cost(problem, reduced)
    return _solve_with_jokers(reduced, meter, requirement, None if below is None else below - dropped, dropped)


def _solve_with_jokers(
    problem: Problem, meter: Meter, requirement: Requirement, below: int | None, dropped: int
) -> Solution | None:
    found = cheapest_with_jokers(problem, meter, requirement, below)
    return Solution(found.cost + dropped, _melds(melds_of_path(found, problem), problem.ruleset)) if found else None


RawMelds = tuple[tuple[MeldKind, tuple[Tile, ...]], ...]


def _has_melds(laid: Reconstruction, problem: Problem) -> bool:
    """Returns whether all jokers have a place, and keep their limits there."""
    if laid.spare or are_jokers_free(problem.ruleset, problem.jokers):
        return not laid.spare
    silent = replace(problem.ruleset, jokers_declaration=JokersDeclaration.POSITIONAL)
    return all(isinstance(read_meld(ProposedMeld(tiles, kind), silent), Meld) for kind, tiles in laid.melds)


class _Reader:
    """Identifies a ruleset in cache keys: one instance for all equal rulesets, compared and hashed by identity."""

    __slots__ = ("ruleset",)

    def __init__(self, ruleset: Ruleset) -> None:
        self.ruleset = ruleset


class _RulesetKey(NamedTuple):
    ruleset: Ruleset

    def __hash__(self) -> int:
        return self.ruleset.geometry_jokers


@lru_cache(maxsize=1 << 4)
def _reader(ruled: _RulesetKey) -> _Reader:
    return _Reader(ruled.ruleset)


def _melds(found: RawMelds, ruleset: Ruleset) -> tuple[Meld, ...]:
    reader = _reader(_RulesetKey(ruleset))
    return tuple([_cached_meld(tiles, kind is MeldKind.RUN, reader) for kind, tiles in found])


@lru_cache(maxsize=1 << 12)
def _cached_meld(tiles: tuple[Tile, ...], is_run: bool, reader: _Reader) -> Meld:
    return read_stated(ProposedMeld(tiles, MeldKind.RUN if is_run else MeldKind.GROUP), reader.ruleset)


def read_stated(proposed: ProposedMeld, ruleset: Ruleset) -> Meld:
    """Returns tiles of a stated kind as a meld, with the joker declarations that the rules require.

    Raises:
        ValueError: The tiles are not a meld.
    """
    if proposed.declared or not must_declare(proposed.tiles.count(JOKER), ruleset):
        return _read(proposed, ruleset)
    return with_declared_jokers(
        _read(proposed, replace(ruleset, jokers_declaration=JokersDeclaration.POSITIONAL)), ruleset
    )


def with_declared_jokers(meld: Meld, ruleset: Ruleset) -> Meld:
    """Returns a meld with the joker declarations that the rules require; it was read without them."""
    if not must_declare(len(meld.joker_faces), ruleset):
        return meld
    return _read(ProposedMeld(meld.tiles, meld.kind, _distinct_faces(meld)), ruleset)


def _distinct_faces(meld: Meld) -> tuple[Tile, ...]:
    """Returns a face for each joker of a meld."""
    if meld.kind is MeldKind.GROUP:
        return meld.joker_faces[0][: len(meld.joker_faces)]
    return tuple(faces[0] for faces in meld.joker_faces)


def _read(proposed: ProposedMeld, ruleset: Ruleset) -> Meld:
    meld = read_meld(proposed, ruleset)
    if not isinstance(meld, Meld):
        raise ValueError(f"the solver laid {proposed} as a meld, which has {meld.reasons}")  # noqa: TRY004 - a fault
    return meld
