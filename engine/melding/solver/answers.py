"""The inputs and results of the solver."""

from dataclasses import dataclass
from enum import Enum, auto

from engine.melding.analysis import Existence
from engine.melding.melds import Meld
from engine.tiles import Tile

__all__ = ["Arrangement", "BestTurn", "Count", "Existence", "LegalTurn", "Objective"]


class Objective(Enum):
    """The measure of a turn. Of equally good turns the one that changes the fewest melds of the table is best.

    Tiles that come to the rack from the River are subtracted.
    """

    MOST_TILES = auto()
    """The most tiles leave the rack."""

    HIGHEST_VALUE = auto()
    """The highest value leaves the rack; a joker counts its rack penalty (score_joker_penalty)."""


@dataclass(frozen=True, slots=True)
class LegalTurn:
    """A legal turn.

    Attributes:
        table: The table after the turn: first the untouched melds, unchanged and in their order, then the others.
        tiles: The tiles that leave the rack, ascending; without a tile pulled from the River.
        untouched: The places (from 0) of the table's melds that stay as they are.
        river_index: The place in the River of the oldest tile pulled, if any (turn_draw TWO_RIVER).
    """

    table: tuple[Meld, ...]
    tiles: tuple[Tile, ...]
    untouched: tuple[int, ...]
    river_index: int | None = None


@dataclass(frozen=True, slots=True)
class BestTurn:
    """The best turn found.

    Attributes:
        turn: None when none was found.
        is_proven: Whether no turn is better by the objective (no turn exists, if none was found). False when the budget
            ended the search: then a better turn may exist.
        is_least_change: Whether it is also proven that no equally good turn leaves more melds of the table untouched.
    """

    turn: LegalTurn | None
    is_proven: bool
    is_least_change: bool


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Melds that contain all given tiles; without melds unless exists is YES."""

    exists: Existence
    melds: tuple[Meld, ...] = ()


@dataclass(frozen=True, slots=True)
class Count:
    """An exact number, or a lower bound."""

    number: int
    is_exact: bool
