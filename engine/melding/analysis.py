"""Analysis: whether a player has a legal play, which only an exact search can answer.

Under an option value of `NEEDS_ANALYSIS`, `turns.apply` calls an `Analysis`: the solver, unless the caller passes
another one.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Protocol, TypeAlias

from engine.identity_cache import identity_cache
from engine.melding.grid.cells import Grid
from engine.melding.ruleset import OPTIONS, Ruleset
from engine.melding.table import Melds, Table
from engine.tiles import Tile


@dataclass(frozen=True, slots=True)
class Situation:
    """The input of an analysis of melds: table, rack, whether the player has melded, rules, and River."""

    table: Melds
    rack: tuple[Tile, ...]
    has_melded: bool
    ruleset: Ruleset
    river: tuple[Tile, ...] = ()


@dataclass(frozen=True, slots=True)
class GridSituation:
    """The input of an analysis of a grid (table_layout GRID)."""

    table: Grid
    rack: tuple[Tile, ...]
    has_melded: bool
    ruleset: Ruleset


AnySituation: TypeAlias = Situation | GridSituation


def situation_of(
    table: Table, rack: tuple[Tile, ...], has_melded: bool, ruleset: Ruleset, river: tuple[Tile, ...] = ()
) -> AnySituation:
    """Returns the situation of a player. A grid has no River."""
    if isinstance(table, Grid):
        return GridSituation(table, rack, has_melded, ruleset)
    return Situation(table, rack, has_melded, ruleset, river)


class Existence(Enum):
    """The answer to whether something exists."""

    YES = auto()
    NO = auto()
    UNKNOWN = auto()
    """The search exceeded its budget."""


class Analysis(Protocol):
    """Exact analysis of situations. It must never guess, because a round can depend on the answer."""

    def can_play(self, situation: AnySituation) -> Existence:
        """Returns whether any legal play exists."""


NEEDS_ANALYSIS: Final = {row.name: row.asks for row in OPTIONS.values() if row.asks}
"""The option values under which games need an analysis. Judging a play never does."""


@identity_cache(maxsize=256)
def options_needing_analysis(ruleset: Ruleset) -> tuple[str, ...]:
    """Returns the options of a ruleset whose values need an analysis."""
    return tuple(option for option, values in NEEDS_ANALYSIS.items() if getattr(ruleset, option) in values)


def may_search(ruleset: Ruleset) -> bool:
    """Returns whether decisions of a game may search for plays."""
    return bool(options_needing_analysis(ruleset))
