"""The one question that some rules ask and only an exact search can answer: could the player play?

Games by such rules (ruleset.NEEDS_ANALYSIS) ask the solver, unless whoever plays them brings another answer along.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from engine.ruleset import Ruleset
from engine.table import Table
from engine.tiles import Tile


@dataclass(frozen=True, slots=True)
class Situation:
    """What a player could play from: the table, their rack, whether they have melded, the River, the rules."""

    table: Table
    rack: tuple[Tile, ...]
    has_melded: bool
    ruleset: Ruleset
    river: tuple[Tile, ...] = ()


class Existence(Enum):
    """Whether something exists."""

    YES = auto()
    NO = auto()
    UNKNOWN = auto()
    """The budget ended the search."""


class Analysis(Protocol):
    """Exact analysis of situations. It must never guess: a round can hang on the answer."""

    def can_play(self, situation: Situation) -> Existence:
        """Whether any legal play exists (pool_empty_stuck_test and others)."""
