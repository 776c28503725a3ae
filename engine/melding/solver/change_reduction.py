"""Reduces the number of melds of the table that a turn changes."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

from engine.melding.solver.fewest_changes import few_changed, fewest_changed
from engine.melding.solver.hitting_set import small_sufficient, smallest_sufficient
from engine.melding.solver.problem import Problem
from engine.melding.solver.search import Meter, OutOfBudget
from engine.melding.solver.solution import Solution, is_solvable_below, solve
from engine.melding.solver.turn_problem import TurnSearch


@dataclass(frozen=True, slots=True)
class Change:
    """The changed melds, the new melds, and whether no fewer melds can change."""

    places: frozenset[int]
    solution: Solution
    is_least: bool


def reduce_changes(search: TurnSearch, problem_for: Callable[[frozenset[int]], Problem], found: Solution) -> Change:
    """Returns an equally good solution with the fewest changed melds; with few, if the fewest take too long to find."""
    allowed = search.meter.budget.change_nodes if search.minimizes_changes else 0
    if not allowed:
        return Change(search.all_places, found, is_least=False)
    reducer = _Reducer(search, problem_for, found, search.meter.part(allowed))
    with suppress(OutOfBudget):
        return reducer.fewest()
    return reducer.few


FEW_AFTER: Final = 6_000
"""The nodes after which few changes are looked for. The search for the fewest goes on, but may find no end in time."""

TRIALS: Final = 64
"""The part of FEW_AFTER that may be spent on one trial whether fewer changes suffice."""


@dataclass
class _Reducer:
    """Finds equally good solutions with fewer changed melds.

    Attributes:
        search: The turn search.
        problem_for: Returns the problem if only some melds may change.
        found: The solution found so far.
        meter: The budget of the search for the fewest changes.
    """

    search: TurnSearch
    problem_for: Callable[[frozenset[int]], Problem]
    found: Solution
    meter: Meter

    def fewest(self) -> Change:
        """Returns the change with the fewest melds; ties go to the melds that come first."""
        all_places = changed = self.search.all_places
        if self._whole.doubles:
            return self._smallest()
        for places in fewest_changed(self._whole, self.search.situation.table, self.found.cost, self.meter):
            changed = all_places if places is None else places
            self._prepare_few()
        solution = self._solve(changed)
        return Change(changed, solution, is_least=True) if solution else self._smallest()

    def _smallest(self) -> Change:
        """Returns the same by trials, if the table has jokers that the search for the fewest changes ignores."""
        changed = smallest_sufficient(len(self.search.all_places), cache(self._is_sufficient), self.meter)
        return Change(changed, self._solve(changed) or self.found, is_least=True)

    @cached_property
    def few(self) -> Change:
        """The change with few melds, which takes a limited number of nodes."""
        all_places = self.search.all_places
        with suppress(OutOfBudget):
            changed = small_sufficient(self._few_at_first(), self._is_quickly_sufficient)
            solution = self._solve(changed)
            if solution is None:
                changed = small_sufficient(all_places, self._is_quickly_sufficient)
                solution = self._solve(changed)
            return Change(changed, solution or self.found, is_least=False)
        return Change(all_places, self.found, is_least=False)

    def _few_at_first(self) -> frozenset[int]:
        """Returns few places, which may not suffice if jokers are limited; all places if that takes too long."""
        if self._whole.doubles:
            return self.search.all_places
        with suppress(OutOfBudget):
            meter = self.search.meter.part(self._few_nodes)
            return few_changed(self._whole, self.search.situation.table, self.found.cost, meter)
        return self.search.all_places

    def _prepare_few(self) -> None:
        """Finds few changes once the search for the fewest takes long, because time may end it."""
        if self.meter.spent > FEW_AFTER:
            _ = self.few

    @property
    def _few_nodes(self) -> int:
        return min(FEW_AFTER, self.meter.budget.nodes)

    @property
    def _whole(self) -> Problem:
        return self.problem_for(self.search.all_places)

    def _solve(self, changed: frozenset[int]) -> Solution | None:
        if changed == self.search.all_places:
            return self.found
        return solve(self.problem_for(changed), self.search.meter, self.found.cost + 1)

    def _is_sufficient(self, changed: frozenset[int]) -> bool:
        """Returns whether it is sufficient that some melds may change."""
        self._prepare_few()
        return is_solvable_below(self.problem_for(changed), self.meter, self.found.cost + 1)

    def _is_quickly_sufficient(self, changed: frozenset[int]) -> bool:
        """Returns whether the same is found quickly. Raises OutOfBudget if the whole budget is spent."""
        self.search.meter.count(0)
        with suppress(OutOfBudget):
            meter = self.search.meter.part(self._few_nodes // TRIALS)
            return is_solvable_below(self.problem_for(changed), meter, self.found.cost + 1)
        return False
