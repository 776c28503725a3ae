"""The best way to lay tiles in melds, whichever search it takes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from engine.melds import Meld, MeldKind, ProposedMeld, must_declare, read_meld
from engine.ruleset import JokersDeclaration, Ruleset, RunWrap
from engine.solver import untouched
from engine.solver.joker_search import ANYTHING, Wanted, are_free, cheapest_with_jokers, melds_of
from engine.solver.layout import lay
from engine.solver.problem import Problem, layable
from engine.solver.search import Meter, any_with_a_rack_tile, cheapest
from engine.tiles import JOKER, Tile


@dataclass(frozen=True, slots=True)
class Lay:
    """Melds of all that had to be laid, and what it costs to leave the rest."""

    cost: int
    melds: tuple[Meld, ...]


def best_lay(problem: Problem, meter: Meter, below: int | None = None) -> Lay | None:
    """The cheapest way to lay what must be laid; None if there is none, or none that costs less than asked.

    Raises:
        OutOfBudget: The meter's budget is spent.
    """
    reduced = layable(problem)
    dropped = _dropped(problem, reduced)
    limit = None if below is None else below - dropped
    if are_free(problem.ruleset):
        found = cheapest(reduced, meter, limit)
        if found is None:
            return None
        laid = lay(found, problem.ruleset, problem.jokers)
        if not laid.spare:
            return Lay(found.cost + dropped, _melds(laid.melds, problem.ruleset))
    return _with_jokers(reduced, meter, ANYTHING, limit, dropped)


def _dropped(problem: Problem, reduced: Problem) -> int:
    """What the tiles cost that were left at once."""
    if reduced is problem:
        return 0
    return sum(problem.cost((t,)) * count for t, count in problem.may.items() if t not in reduced.may)


def costs_less(problem: Problem, meter: Meter, limit: int) -> bool:
    """Whether there is a way to lay what must be laid that costs less than a limit."""
    if are_free(problem.ruleset):
        reduced = layable(problem)
        found = cheapest(reduced, meter, limit - _dropped(problem, reduced))
        if found is None or found.spent == problem.jokers or not lay(found, problem.ruleset, problem.jokers).spare:
            return found is not None
    return best_lay(problem, meter, limit) is not None


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
    if problem.ruleset.run_wrap is not RunWrap.NONE or not are_free(problem.ruleset):
        return None
    reduced = layable(problem)
    return untouched.fewest_changed(reduced, table, cost - _dropped(problem, reduced), meter)


def lays_a_rack_tile(problem: Problem, meter: Meter) -> bool:
    """Whether all that must be laid can be, together with some tile of the rack."""
    reduced = layable(problem)
    if are_free(problem.ruleset):
        found = any_with_a_rack_tile(reduced, meter)
        if found is None:
            return False
        if not lay(found, problem.ruleset, problem.jokers).spare:
            return True
    return best_lay(problem, meter, problem.cost(Counter(problem.may).elements())) is not None


def best_lay_of(problem: Problem, meter: Meter, wanted: Wanted, below: int | None = None) -> Lay | None:
    """The same, of melds that are what is wanted."""
    reduced = layable(problem)
    dropped = _dropped(problem, reduced)
    return _with_jokers(reduced, meter, wanted, None if below is None else below - dropped, dropped)


def _with_jokers(problem: Problem, meter: Meter, wanted: Wanted, below: int | None, dropped: int) -> Lay | None:
    found = cheapest_with_jokers(problem, meter, wanted, below)
    return Lay(found.cost + dropped, _melds(melds_of(found, problem), problem.ruleset)) if found else None


Kinds = tuple[tuple[MeldKind, tuple[Tile, ...]], ...]


class _Reader:
    """Reads melds by a ruleset: one for all rulesets that are equal, which is quicker to look up than they are."""

    __slots__ = ("ruleset",)

    def __init__(self, ruleset: Ruleset) -> None:
        self.ruleset = ruleset


class _Ruled(NamedTuple):
    ruleset: Ruleset

    def __hash__(self) -> int:
        return self.ruleset.geometry_jokers


@lru_cache(maxsize=1 << 4)
def _reader(ruled: _Ruled) -> _Reader:
    return _Reader(ruled.ruleset)


def _melds(found: Kinds, ruleset: Ruleset) -> tuple[Meld, ...]:
    reader = _reader(_Ruled(ruleset))
    return tuple([_known(tiles, kind is MeldKind.RUN, reader) for kind, tiles in found])


@lru_cache(maxsize=1 << 12)
def _known(tiles: tuple[Tile, ...], is_run: bool, reader: _Reader) -> Meld:
    return stated(ProposedMeld(tiles, MeldKind.RUN if is_run else MeldKind.GROUP), reader.ruleset)


def stated(proposed: ProposedMeld, ruleset: Ruleset) -> Meld:
    """Tiles of a stated kind as a meld, with all said of its jokers that must be said (jokers_declaration).

    Raises:
        ValueError: They are none.
    """
    if proposed.declared or not must_declare(proposed.tiles.count(JOKER), ruleset):
        return _read(proposed, ruleset)
    return declared(_read(proposed, replace(ruleset, jokers_declaration=JokersDeclaration.POSITIONAL)), ruleset)


def declared(meld: Meld, ruleset: Ruleset) -> Meld:
    """A meld of a ruleset by which nothing must be declared, with all said of its jokers that must be said."""
    if not must_declare(len(meld.joker_faces), ruleset):
        return meld
    return _read(ProposedMeld(meld.tiles, meld.kind, _distinct(meld)), ruleset)


def _distinct(meld: Meld) -> tuple[Tile, ...]:
    """A face for each joker of a meld."""
    if meld.kind is MeldKind.GROUP:
        return meld.joker_faces[0][: len(meld.joker_faces)]
    return tuple(faces[0] for faces in meld.joker_faces)


def _read(proposed: ProposedMeld, ruleset: Ruleset) -> Meld:
    meld = read_meld(proposed, ruleset)
    if not isinstance(meld, Meld):
        raise ValueError(f"the solver laid {proposed} as a meld, which has {meld.reasons}")  # noqa: TRY004 - a fault
    return meld
