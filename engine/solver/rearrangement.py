"""What may be rearranged where it matters which meld a tile or a joker came from, and what comes of it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.melds import Meld
from engine.solver.problem import Problem
from engine.solver.search import Meter
from engine.table import count_tiles
from engine.tiles import Tile

Melds = tuple[Meld, ...]
Allows = Callable[[Melds, frozenset[int]], bool]
"""Whether the rules allow the table of some new melds beside those of the old ones that did not change."""

NODES_A_JUDGEMENT = 16
"""States that could be looked at while the rules judge a turn."""


def tiles_of(melds: Melds) -> Counter[Tile]:
    """The tiles of some melds."""
    return count_tiles(melds)


@dataclass(frozen=True)
class Guarded:
    """What may be rearranged.

    Attributes:
        table: The melds in play.
        problem: The tiles that the player can lay, the ruleset and the objective.
        allows: What the rules say.
        meter: The budget.
        opening: The initial meld, if it is laid in the same turn; its tiles are not in the problem.
        uses_table: Whether melds of the table may change.
    """

    table: Melds
    problem: Problem
    allows: Allows
    meter: Meter
    opening: Melds = ()
    uses_table: bool = True

    def melds_at(self, places: frozenset[int]) -> Melds:
        """The melds at some places of the table."""
        return tuple(meld for place, meld in enumerate(self.table) if place in places)

    @property
    def everything(self) -> frozenset[int]:
        """The places of all melds of the table."""
        return frozenset(range(len(self.table)))

    @property
    def places(self) -> frozenset[int]:
        """The places of the melds that may change."""
        return self.everything if self.uses_table else frozenset()

    @property
    def rearranged(self) -> Melds:
        """The melds that may change."""
        return self.melds_at(self.places)

    @property
    def own(self) -> Counter[Tile]:
        """The tiles that the player can lay beside the initial meld."""
        return Counter(self.problem.must) + Counter(self.problem.may)

    @property
    def tiles(self) -> Counter[Tile]:
        """All tiles that may be rearranged."""
        return self.own + tiles_of(self.rearranged)

    def problem_of(self, changed: frozenset[int]) -> Problem:
        """The problem of laying the tiles of some melds of the table, and own ones."""
        must = Counter(self.problem.must) + tiles_of(self.melds_at(changed))
        return replace(self.problem, must=must)


@dataclass(frozen=True, slots=True)
class Rearranged:
    """A turn: what it costs, which melds changed, and what there is instead of them.

    Attributes:
        is_least_change: Whether no turn of the same cost changes fewer melds.
    """

    cost: int
    changed: frozenset[int]
    melds: Melds
    is_least_change: bool = False
