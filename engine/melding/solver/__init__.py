"""Exact analysis: the best turn, whether any turn exists, and how tiles can be arranged into melds.

Pure like the rest of the engine: an answer depends on the question only, never on earlier ones. docs/solver.md explains
the searches.
"""

from dataclasses import dataclass
from typing import Final, overload

from engine.effort import Budget
from engine.melding.analysis import AnySituation, GridSituation, Situation
from engine.melding.ruleset import Ruleset
from engine.melding.solver.answers import (
    Arrangement,
    BestTurn,
    Count,
    Existence,
    LegalTurn,
    Objective,
)
from engine.melding.solver.counting import count_best
from engine.melding.solver.grid_search import BestGridTurn, best_grid_turn, has_grid_turn
from engine.melding.solver.problem import problem_from
from engine.melding.solver.search import Meter, OutOfBudget
from engine.melding.solver.solution import solve
from engine.melding.solver.special_jokers import (
    can_all_be_searched,
    find_turn_with_special_jokers,
    has_special_jokers,
    is_searched_exactly,
    turn_with_special_jokers_exists,
)
from engine.melding.solver.turn_search import find_best, turn_exists
from engine.tiles import Tile

__all__ = [
    "EXACT",
    "RULES_BUDGET",
    "Arrangement",
    "BestTurn",
    "Count",
    "Existence",
    "LegalTurn",
    "Objective",
    "arrange",
    "best_turn",
    "count_best_turns",
    "has_turn",
]

AMPLE: Final = Budget()
"""More than any position of a game needs."""

RULES_BUDGET: Final = Budget(nodes=20_000)
"""The budget of one analysis for the rules. It limits work, not time, so that a game is the same on any machine."""


@overload
def best_turn(situation: Situation, objective: Objective = ..., budget: Budget = ...) -> BestTurn: ...
@overload
def best_turn(situation: GridSituation, objective: Objective = ..., budget: Budget = ...) -> BestGridTurn: ...
def best_turn(
    situation: AnySituation, objective: Objective = Objective.MOST_TILES, budget: Budget = AMPLE
) -> BestTurn | BestGridTurn:
    """Returns the best legal turn: by the objective, then with the fewest melds changed, then by a fixed order."""
    if isinstance(situation, GridSituation):
        return best_grid_turn(situation, objective, budget)
    find = find_turn_with_special_jokers if has_special_jokers(situation) else find_best
    return find(situation, objective, Meter(budget))


def has_turn(situation: AnySituation, budget: Budget = AMPLE) -> Existence:
    """Returns whether any legal turn exists; stops at the first one."""
    if isinstance(situation, GridSituation):
        return has_grid_turn(situation, budget)
    if has_special_jokers(situation):
        return turn_with_special_jokers_exists(situation, Meter(budget))
    try:
        return Existence.YES if turn_exists(situation, Meter(budget)) else Existence.NO
    except OutOfBudget:
        return Existence.UNKNOWN


def arrange(tiles: tuple[Tile, ...], ruleset: Ruleset, budget: Budget = AMPLE) -> Arrangement:
    """Returns whether and how all tiles can be arranged into melds. With a mirror or a color change: UNKNOWN."""
    if not can_all_be_searched(tiles):
        return Arrangement(Existence.UNKNOWN)
    try:
        found = solve(problem_from(tiles, (), ruleset, Objective.MOST_TILES), Meter(budget))
    except OutOfBudget:
        return Arrangement(Existence.UNKNOWN)
    return Arrangement(Existence.YES, found.melds) if found else Arrangement(Existence.NO)


def count_best_turns(
    situation: Situation, objective: Objective = Objective.MOST_TILES, limit: int = 100, budget: Budget = AMPLE
) -> Count:
    """Returns the number of best turns that play different tiles of the rack, counted up to a limit.

    With a mirror or a color change, which turns are best is not known: at least 0.
    """
    if has_special_jokers(situation) and not is_searched_exactly(situation):
        return Count(0, is_exact=False)
    return count_best(situation, objective, limit, Meter(budget))


@dataclass(frozen=True, slots=True)
class Exact:
    """An `Analysis` by the solver. Its answer is UNKNOWN where the search exceeds the budget."""

    budget: Budget = RULES_BUDGET

    def can_play(self, situation: AnySituation) -> Existence:
        """Returns whether any legal play exists."""
        return has_turn(situation, self.budget)


EXACT: Final = Exact()
"""The default analysis of the rules."""
