"""The possible results of deciding on an action, and the context of a decision."""

from dataclasses import dataclass

from engine.events import Event
from engine.game import Game, Round
from engine.melding.analysis import Analysis, Existence, Situation
from engine.melding.ruleset import Ruleset
from engine.tiles import Tile
from engine.violations import Refused, Violation


@dataclass(frozen=True, slots=True)
class Context:
    """The time of a decision, milliseconds since 1970, and the analysis that some rulesets need."""

    now_ms: int
    analysis: Analysis

    def can_play(self, round_: Round, seat: int, ruleset: Ruleset, tiles: tuple[Tile, ...] | None = None) -> Existence:
        """Returns whether a player has a legal play with some tiles, in ascending order; None: with the whole rack."""
        rack = round_.rack(seat)
        playable = rack.tiles if tiles is None else tiles
        return self.analysis.can_play(Situation(round_.table, playable, rack.has_melded, ruleset, round_.river))


@dataclass(frozen=True, slots=True)
class IllegalPlay:
    """Events that an illegal play causes, and its violations."""

    events: tuple[Event, ...]
    violations: tuple[Violation, ...]


@dataclass(frozen=True, slots=True)
class TurnEnding:
    """Events that end a turn, the game after them, and the consequences. No event is applied twice."""

    causes: tuple[Event, ...]
    game: Game
    consequences: tuple[Event, ...]

    @property
    def events(self) -> tuple[Event, ...]:
        """The causes, then the consequences."""
        return (*self.causes, *self.consequences)


Decision = tuple[Event, ...] | Refused | IllegalPlay | TurnEnding
"""The events that an action leads to, or why it is refused."""
