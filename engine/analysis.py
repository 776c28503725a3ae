"""The one question that some rules ask and only an exact search can answer: could the player play?

The engine has no answer of its own yet: whoever plays by such rules (ruleset.NEEDS_ANALYSIS) brings one along.
"""

from dataclasses import dataclass
from typing import Protocol

from engine.melds import Meld
from engine.ruleset import Ruleset
from engine.tiles import Tile


@dataclass(frozen=True, slots=True)
class Situation:
    """What a player could play from: the table, their rack, whether they have melded, the River, the rules."""

    table: tuple[Meld, ...]
    rack: tuple[Tile, ...]
    has_melded: bool
    ruleset: Ruleset
    river: tuple[Tile, ...] = ()


class Analysis(Protocol):
    """Exact analysis of situations. It must never guess: a round can hang on the answer."""

    def can_play(self, situation: Situation) -> bool:
        """Whether any legal play exists (pool_empty_stuck_test and others)."""
