"""The input and result of the searches for rules that depend on where a tile or joker came from."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.melding.melds import Meld
from engine.melding.ruleset import Ruleset
from engine.melding.solver.problem import Problem
from engine.melding.solver.search import Meter
from engine.melding.variants import CONTRACTS
from engine.tiles import Tile

Melds = tuple[Meld, ...]
IsLegal = Callable[[Melds, frozenset[int]], bool]
"""Returns whether the rules allow a table of new melds and the old melds at the given places."""

NODES_PER_JUDGEMENT = 16
"""The number of states that could be visited while the rules judge a turn."""


def tiles_of(melds: Melds) -> Counter[Tile]:
    """Returns the tiles of some melds."""
    return Counter(t for meld in melds for t in meld.tiles)


def keeps_contract(meld: Meld, ruleset: Ruleset) -> bool:
    """Returns whether a meld keeps the contract of a ruleset, if there is one."""
    keeps = CONTRACTS.get(ruleset.contract)
    return keeps is None or keeps(meld)


@dataclass(frozen=True)
class RestrictedProblem:
    """The melds and tiles that may be rearranged, and the rules that limit it.

    Attributes:
        table: The melds in play.
        problem: The tiles that the player can lay, the ruleset and the objective.
        is_legal: Judges a turn by the rules.
        meter: The budget.
        initial_meld: The initial meld, if it is laid in the same turn; its tiles are not in the problem.
        uses_table: Whether melds of the table may change.
    """

    table: Melds
    problem: Problem
    is_legal: IsLegal
    meter: Meter
    initial_meld: Melds = ()
    uses_table: bool = True

    def melds_at(self, changeable_places: frozenset[int]) -> Melds:
        """Returns the melds at some places of the table."""
        return tuple(meld for place, meld in enumerate(self.table) if place in changeable_places)

    @property
    def all_places(self) -> frozenset[int]:
        """Returns the places of all melds of the table."""
        return frozenset(range(len(self.table)))

    @property
    def changeable_places(self) -> frozenset[int]:
        """Returns the places of the melds that may change."""
        return self.all_places if self.uses_table else frozenset()

    @property
    def changeable_melds(self) -> Melds:
        """Returns the melds that may change."""
        return self.melds_at(self.changeable_places)

    @property
    def available(self) -> Counter[Tile]:
        """Returns the tiles that the player can lay beside the initial meld."""
        return Counter(self.problem.must) + Counter(self.problem.may)

    @property
    def tiles(self) -> Counter[Tile]:
        """Returns all tiles that may be rearranged."""
        return self.available + tiles_of(self.changeable_melds)

    def problem_with(self, changed: frozenset[int]) -> Problem:
        """Returns the problem of laying the tiles of some melds of the table and available ones."""
        must = Counter(self.problem.must) + tiles_of(self.melds_at(changed))
        return replace(self.problem, must=must)


@dataclass(frozen=True, slots=True)
class RestrictedTurn:
    """A turn: its cost, the places of the changed melds, and the new melds.

    Attributes:
        is_least_change: Whether no turn of the same cost changes fewer melds.
    """

    cost: int
    changed: frozenset[int]
    melds: Melds
    is_least_change: bool = False
