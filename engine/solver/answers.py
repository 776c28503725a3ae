"""What is asked of the solver, and what it answers."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from engine.analysis import Existence
from engine.melds import Meld
from engine.tiles import Tile

__all__ = ["Arrangement", "BestTurn", "Budget", "Count", "Existence", "LegalTurn", "Objective"]


class Objective(Enum):
    """What makes one turn better than another. Ties go to the turn that changes fewest melds of the table.

    What comes to the rack from the River is taken off.
    """

    MOST_TILES = auto()
    """The most tiles leave the rack."""

    HIGHEST_VALUE = auto()
    """The highest value leaves the rack, a joker counting what it costs on a rack (score_joker_penalty)."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much work an answer is worth.

    Attributes:
        nodes: How many states of a search may be looked at, about 10 microseconds each.
        change_nodes: How many of them may be spent on changing as few melds as possible, once the best turn is known.
        is_over: Asked now and then whether to stop, for instance since the caller's time is up.
    """

    nodes: int = 1_000_000
    change_nodes: int = 6_000
    is_over: Callable[[], bool] | None = None


@dataclass(frozen=True, slots=True)
class LegalTurn:
    """A legal turn.

    Attributes:
        table: The table as it shall lie: the untouched melds as they lie now and in their order, then the others.
        tiles: The tiles that leave the rack, ascending; a tile pulled from the River is not one of them.
        untouched: The places (from 0) of the table's melds that stay as they are.
        river_index: The place in the River of the oldest tile pulled, if any (turn_draw TWO_RIVER).
    """

    table: tuple[Meld, ...]
    tiles: tuple[Tile, ...]
    untouched: tuple[int, ...]
    river_index: int | None = None


@dataclass(frozen=True, slots=True)
class BestTurn:
    """The best turn that was found.

    Attributes:
        turn: None when none was found.
        is_proven: Whether no turn is better by the objective (none exists, if none was found). False when the budget
            ended the search: then there may be better ones.
        is_least_change: Whether it is known too that no equally good turn leaves more melds of the table untouched.
    """

    turn: LegalTurn | None
    is_proven: bool
    is_least_change: bool


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How tiles lie in melds, all of them; no melds unless exists is YES."""

    exists: Existence
    melds: tuple[Meld, ...] = ()


@dataclass(frozen=True, slots=True)
class Count:
    """How many there are: exactly, or at least."""

    number: int
    is_exact: bool
