"""Reduces the number of melds of the table that a turn changes."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from engine.solver.hitting_set import small_sufficient, smallest_sufficient
from engine.solver.problem import Problem
from engine.solver.search import Meter, OutOfBudget
from engine.solver.solution import Solution, fewest_changed, is_solvable_below, solve
from engine.solver.turn_problem import TurnSearch


@dataclass(frozen=True, slots=True)
class Change:
    """The changed melds, the new melds, and whether no fewer melds can change."""

    places: frozenset[int]
    solution: Solution
    is_least: bool


def reduce_changes(search: TurnSearch, problem_for: Callable[[frozenset[int]], Problem], found: Solution) -> Change:
    """Returns an equally good solution with the fewest changed melds; with few, if the fewest take too long to find."""
    allowed = search.meter.budget.change_nodes if search.minimizes_changes else 0
    if allowed:
        reducer = _Reducer(search, problem_for, found)
        with suppress(OutOfBudget):
            return reducer.with_fewest(search.meter.part(allowed))
        with suppress(OutOfBudget):
            return reducer.with_few(allowed // TRIALS)
    return Change(search.all_places, found, is_least=False)


TRIALS: Final = 64
"""The part of Budget.change_nodes that one trial in `with_few` may take."""


@dataclass(frozen=True)
class _Reducer:
    """Finds equally good solutions with fewer changed melds.

    Attributes:
        search: The turn search.
        problem_for: Returns the problem if only some melds may change.
        found: The solution found so far.
    """

    search: TurnSearch
    problem_for: Callable[[frozenset[int]], Problem]
    found: Solution

    def with_fewest(self, meter: Meter) -> Change:
        """Returns the change with the fewest melds; ties go to the melds that come first."""
        all_places, table = self.search.all_places, self.search.situation.table
        changed = fewest_changed(self.problem_for(all_places), table, self.found.cost, meter)
        solution = None if changed is None else self._solve(changed)
        if changed is None or solution is None:
            changed = smallest_sufficient(len(all_places), self._sufficiency(meter), meter)
            solution = self._solve(changed)
        return Change(changed, solution or self.found, is_least=True)

    def with_few(self, nodes: int) -> Change:
        """Returns a change with few melds; each trial takes a limited number of nodes.

        Raises:
            OutOfBudget: The whole budget is spent.
        """

        def is_quickly_sufficient(changed: frozenset[int]) -> bool:
            self.search.meter.count(0)
            with suppress(OutOfBudget):
                return self._sufficiency(self.search.meter.part(nodes))(changed)
            return False

        changed = small_sufficient(len(self.search.all_places), is_quickly_sufficient)
        return Change(changed, self._solve(changed) or self.found, is_least=False)

    def _solve(self, changed: frozenset[int]) -> Solution | None:
        if changed == self.search.all_places:
            return self.found
        return solve(self.problem_for(changed), self.search.meter, self.found.cost + 1)

    def _sufficiency(self, meter: Meter) -> Callable[[frozenset[int]], bool]:
        """Returns a memoized test whether it is sufficient that some melds may change."""
        known = {self.search.all_places: True}

        def is_sufficient(changed: frozenset[int]) -> bool:
            if changed not in known:
                known[changed] = is_solvable_below(self.problem_for(changed), meter, self.found.cost + 1)
            return known[changed]

        return is_sufficient
