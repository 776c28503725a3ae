"""The best way to lay tiles in melds, whichever search it takes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from engine.melds import Meld, MeldKind, ProposedMeld, must_declare, read_meld
from engine.ruleset import JokersDeclaration, Ruleset, RunWrap
from engine.solver import fewest_changes
from engine.solver.joker_reconstruction import melds_of_path
from engine.solver.joker_rules import are_jokers_free
from engine.solver.joker_search import NO_REQUIREMENT, Requirement, cheapest_with_jokers
from engine.solver.problem import Problem, reduce
from engine.solver.reconstruction import reconstruct
from engine.solver.search import Meter, cheapest_path, path_with_rack_tile
from engine.tiles import JOKER, Tile


@dataclass(frozen=True, slots=True)
class Solution:
    """Melds of all that had to be laid, and what it costs to leave the rest."""

    cost: int
    melds: tuple[Meld, ...]


def solve(problem: Problem, meter: Meter, below: int | None = None) -> Solution | None:
    """The cheapest way to lay what must be laid; None if there is none, or none that costs less than asked.

    Raises:
        OutOfBudget: The meter's budget is spent.
    """
    reduced = reduce(problem)
    dropped = _dropped_cost(problem, reduced)
    limit = None if below is None else below - dropped
    if are_jokers_free(problem.ruleset):
        found = cheapest_path(reduced, meter, limit)
        if found is None:
            return None
        laid = reconstruct(found, problem.ruleset, problem.jokers)
        if not laid.spare:
            return Solution(found.cost + dropped, _melds(laid.melds, problem.ruleset))
    return _solve_with_jokers(reduced, meter, NO_REQUIREMENT, limit, dropped)


def _dropped_cost(problem: Problem, reduced: Problem) -> int:
    """What the tiles cost that were left at once."""
    if reduced is problem:
        return 0
    return sum(problem.cost((t,)) * count for t, count in problem.may.items() if t not in reduced.may)


def is_solvable_below(problem: Problem, meter: Meter, limit: int) -> bool:
    """Whether there is a way to lay what must be laid that costs less than a limit."""
    if are_jokers_free(problem.ruleset):
        reduced = reduce(problem)
        found = cheapest_path(reduced, meter, limit - _dropped_cost(problem, reduced))
        if (
            found is None
            or found.spent == problem.jokers
            or not reconstruct(found, problem.ruleset, problem.jokers).spare
        ):
            return found is not None
    return solve(problem, meter, limit) is not None


def fewest_changed(problem: Problem, table: Sequence[Meld], cost: int, meter: Meter) -> frozenset[int] | None:
    """The places of the fewest melds that must change so that what is left costs no more; None if it cannot be told so.

    More may have to change where a joker finds no place (untouched.py).

    Args:
        problem: The tiles to lay, those of the whole table among them.
        table: The melds of the table.
        cost: What there is to reach, which can be done if all of them change.
        meter: The budget.

    Raises:
        OutOfBudget: The meter's budget is spent.
    """
    if problem.ruleset.run_wrap is not RunWrap.NONE or not are_jokers_free(problem.ruleset):
        return None
    reduced = reduce(problem)
    return fewest_changes.fewest_changed(reduced, table, cost - _dropped_cost(problem, reduced), meter)


def can_play_rack_tile(problem: Problem, meter: Meter) -> bool:
    """Whether all that must be laid can be, together with some tile of the rack."""
    reduced = reduce(problem)
    if are_jokers_free(problem.ruleset):
        found = path_with_rack_tile(reduced, meter)
        if found is None:
            return False
        if not reconstruct(found, problem.ruleset, problem.jokers).spare:
            return True
    return solve(problem, meter, problem.cost(Counter(problem.may).elements())) is not None


def solve_with(problem: Problem, meter: Meter, requirement: Requirement, below: int | None = None) -> Solution | None:
    """The same, of melds that are what is wanted."""
    reduced = reduce(problem)
    dropped = _dropped_cost(problem, reduced)
    return _solve_with_jokers(reduced, meter, requirement, None if below is None else below - dropped, dropped)


def _solve_with_jokers(
    problem: Problem, meter: Meter, requirement: Requirement, below: int | None, dropped: int
) -> Solution | None:
    found = cheapest_with_jokers(problem, meter, requirement, below)
    return Solution(found.cost + dropped, _melds(melds_of_path(found, problem), problem.ruleset)) if found else None


RawMelds = tuple[tuple[MeldKind, tuple[Tile, ...]], ...]


class _Reader:
    """Reads melds by a ruleset: one for all rulesets that are equal, which is quicker to look up than they are."""

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
    """Tiles of a stated kind as a meld, with all said of its jokers that must be said (jokers_declaration).

    Raises:
        ValueError: They are none.
    """
    if proposed.declared or not must_declare(proposed.tiles.count(JOKER), ruleset):
        return _read(proposed, ruleset)
    return with_declared_jokers(
        _read(proposed, replace(ruleset, jokers_declaration=JokersDeclaration.POSITIONAL)), ruleset
    )


def with_declared_jokers(meld: Meld, ruleset: Ruleset) -> Meld:
    """A meld of a ruleset by which nothing must be declared, with all said of its jokers that must be said."""
    if not must_declare(len(meld.joker_faces), ruleset):
        return meld
    return _read(ProposedMeld(meld.tiles, meld.kind, _distinct_faces(meld)), ruleset)


def _distinct_faces(meld: Meld) -> tuple[Tile, ...]:
    """A face for each joker of a meld."""
    if meld.kind is MeldKind.GROUP:
        return meld.joker_faces[0][: len(meld.joker_faces)]
    return tuple(faces[0] for faces in meld.joker_faces)


def _read(proposed: ProposedMeld, ruleset: Ruleset) -> Meld:
    meld = read_meld(proposed, ruleset)
    if not isinstance(meld, Meld):
        raise ValueError(f"the solver laid {proposed} as a meld, which has {meld.reasons}")  # noqa: TRY004 - a fault
    return meld
