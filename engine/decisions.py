"""The possible results of deciding on an action, and the context of a decision."""

from dataclasses import dataclass

from engine.events import Event
from engine.game import Aborted, Finished, Game, Lobby, Playing, RoundOver
from engine.tiles import Tile
from engine.unions import Analysis
from engine.violations import Reason, Refused, Violation, refused


@dataclass(frozen=True, slots=True)
class Context:
    """The time of a decision, milliseconds since 1970, and the analysis that some rulesets need."""

    now_ms: int
    analysis: Analysis


@dataclass(frozen=True, slots=True)
class IllegalPlay:
    """Events that an illegal play causes, and its violations. The turn goes on."""

    events: tuple[Event, ...]
    violations: tuple[Violation, ...]


@dataclass(frozen=True, slots=True)
class TurnOver:
    """Events that end a turn, without what follows them; with the violations of an illegal play that ends it."""

    events: tuple[Event, ...]
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """What a player learns of the own turn, beside the game: tiles played, their points, tiles drawn."""

    tiles_played: tuple[Tile, ...] = ()
    points: int = 0
    tiles_drawn: tuple[Tile, ...] = ()


Decision = tuple[Event, ...] | Refused | IllegalPlay | TurnOver
"""The events that an action leads to, or why it is refused."""


def not_playing(game: Game) -> Refused | None:
    """Returns a refusal if no round is in progress."""
    match game.phase:
        case Playing():
            return None
        case Lobby():
            return refused(Reason.GAME_NOT_STARTED)
        case RoundOver():
            return refused(Reason.ROUND_OVER)
        case Finished() | Aborted():
            return refused(Reason.GAME_OVER)
