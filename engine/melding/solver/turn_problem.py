"""The input and result of the search for the best turn."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from engine.melding.analysis import Situation
from engine.melding.play import Play
from engine.melding.rules import judge
from engine.melding.solver.answers import Objective
from engine.melding.solver.problem import Problem, problem_from
from engine.melding.solver.restricted_problem import Melds
from engine.melding.solver.search import Meter
from engine.melding.table import as_proposed_melds
from engine.tiles import Tile, without


@dataclass(frozen=True, slots=True)
class Candidate:
    """A turn found: its cost, the places of the changed melds, and the melds in their place.

    Attributes:
        is_least_change: Whether no turn of the same cost changes fewer melds.
    """

    cost: int
    changed: frozenset[int]
    melds: Melds
    is_least_change: bool = True


@dataclass(frozen=True)
class TurnSearch:
    """The search for a turn without the River, or with one tile of it.

    Attributes:
        situation: The situation.
        objective: The measure of turns.
        meter: The budget.
        river_index: The place in the River of the oldest tile pulled, if any.
        played: Tiles of the rack that must be played.
        left: Tiles of the rack that must not be played.
        minimizes_changes: Whether to change the fewest melds.
    """

    situation: Situation
    objective: Objective
    meter: Meter
    river_index: int | None = None
    played: tuple[Tile, ...] = ()
    left: tuple[Tile, ...] = ()
    minimizes_changes: bool = True

    @cached_property
    def pulled(self) -> tuple[Tile, ...]:
        """Returns the pulled tiles: the first must be played, the others go to the rack."""
        return () if self.river_index is None else self.situation.river[self.river_index :]

    @cached_property
    def rack_problem(self) -> Problem:
        """Returns the problem of laying the player's own tiles."""
        fixed = (*self.played, *self.left)
        may = without(self.situation.rack, fixed) if fixed else self.situation.rack
        return problem_from((*self.pulled[:1], *self.played), may, self.situation.ruleset, self.objective)

    @property
    def tiles(self) -> Counter[Tile]:
        """Returns all tiles that the player can lay."""
        return Counter(self.rack_problem.must) + Counter(self.rack_problem.may)

    def with_table(self, changed: frozenset[int]) -> Problem:
        """Returns the problem with the tiles of some melds of the table."""
        rack_problem, table = self.rack_problem, self.situation.table
        must = Counter(chain(*[table[place].tiles for place in changed]))
        for t, count in rack_problem.must.items():
            must[t] += count
        return Problem(must, rack_problem.may, rack_problem.ruleset, rack_problem.objective)

    def problem_after(self, initial_meld: Melds, changed: frozenset[int]) -> Problem:
        """Returns the problem that is left after an initial meld if only some melds of the table may change."""
        whole = self.with_table(changed)
        if not initial_meld:
            return whole
        laid = Counter(t for meld in initial_meld for t in meld.tiles)
        of_must = laid & Counter(self.rack_problem.must)
        return replace(whole, must=Counter(whole.must) - of_must, may=Counter(whole.may) - (laid - of_must))

    @cached_property
    def all_places(self) -> frozenset[int]:
        """Returns the places of all melds of the table."""
        return frozenset(range(len(self.situation.table)))

    @cached_property
    def pull_cost(self) -> int:
        """Returns the cost of the tiles that go to the rack."""
        return self.rack_problem.cost(self.pulled[1:])

    def is_legal(self, melds: Melds, kept: frozenset[int]) -> bool:
        """Returns whether the rules allow new melds beside the old melds at some places."""
        old = [meld for place, meld in enumerate(self.situation.table) if place in kept]
        ruleset = self.situation.ruleset
        play = Play(
            self.situation.table,
            as_proposed_melds((*old, *melds), ruleset),
            self.situation.rack,
            self.situation.has_melded,
            ruleset,
            river=self.situation.river,
            river_index=self.river_index,
            calls_rummikub=True,
        )
        return not judge(play).violations
