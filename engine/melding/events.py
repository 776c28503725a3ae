"""The events of a round of a melding game: one frozen dataclass each, and the union `MeldingEvent`."""

from dataclasses import dataclass

from engine.melding.table import ProposedTable, Table
from engine.seats import Rack
from engine.tiles import Tile
from engine.violations import Reason


@dataclass(frozen=True, slots=True)
class StartDraw:
    """A tile drawn to determine the starter (R7)."""

    seat: int
    tile: Tile


@dataclass(frozen=True, slots=True)
class RoundStarted:
    """A round was dealt, or began with a position.

    Attributes:
        number: From 1.
        draws: The start draw, in order.
        order: The turn order.
        racks: The racks by seat.
        pool: The pool, in the order of drawing.
        table: The table of a position; None of a deal, after which it is empty.
        seed: The server's seed of the shuffles (Shuffle.seed), which is hidden until the game is over.
    """

    number: int
    draws: tuple[StartDraw, ...]
    order: tuple[int, ...]
    racks: tuple[Rack, ...]
    pool: tuple[Tile, ...]
    table: Table | None = None
    seed: bytes = b""

    @property
    def is_position(self) -> bool:
        """Whether the round begins with a position."""
        return self.table is not None


@dataclass(frozen=True, slots=True)
class TilesPlayed:
    """A player played tiles.

    Attributes:
        seat: The player's seat.
        tiles: The tiles, ascending.
        table: All melds on the table afterwards.
        points: The value of the tiles.
        pulled: The newest tiles of the River, oldest first, which the player pulled before the play.
    """

    seat: int
    tiles: tuple[Tile, ...]
    table: Table
    points: int
    pulled: tuple[Tile, ...] = ()


@dataclass(frozen=True, slots=True)
class TileDrawn:
    """A player drew the next tile of the pool (R22).

    `declined`, here and in other events of a player who plays nothing: they could have made the initial meld
    (score_never_melded FLAT_100_OR_200). No view shows it.
    """

    seat: int
    tile: Tile
    declined: bool = False


@dataclass(frozen=True, slots=True)
class TilesDrawn:
    """A player drew tiles from the pool until a play was possible (turn_draw UNTIL_PLAYABLE)."""

    seat: int
    tiles: tuple[Tile, ...]
    declined: bool = False


@dataclass(frozen=True, slots=True)
class TilesOffered:
    """A player drew two tiles from the pool and must lay one of them on the River (turn_draw TWO_RIVER)."""

    seat: int
    tiles: tuple[Tile, Tile]
    declined: bool = False


@dataclass(frozen=True, slots=True)
class RiverTileLaid:
    """A player laid one of the two offered tiles on the River and kept the other."""

    seat: int
    tile: Tile


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A player ended a turn after drawing, without a play (turn_play_after_draw)."""

    seat: int
    declined: bool = False


@dataclass(frozen=True, slots=True)
class IllegalPlayShown:
    """A player submitted an illegal play. The others may claim the error."""

    seat: int
    table: ProposedTable
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class ErrorClaimed:
    """A player voted on claiming an error."""

    seat: int
    agrees: bool


@dataclass(frozen=True, slots=True)
class TurnPenalised:
    """A player drew these tiles from the pool for an illegal play (R56)."""

    seat: int
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class RedealDemanded:
    """A player with three pairs demanded a new deal; RoundStarted follows (deal_three_pairs_reshuffle)."""

    seat: int


@dataclass(frozen=True, slots=True)
class LastChanceStarted:
    """The pool ran out, and each of these seats has one more turn, in this order (pool_empty_mode)."""

    seats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TurnPassed:
    """A player passed."""

    seat: int
    declined: bool = False


@dataclass(frozen=True, slots=True)
class PlayerKnocked:
    """A player knocked, which ends the round (knock_limit)."""

    seat: int


TurnAct = (
    TilesPlayed
    | TileDrawn
    | TilesDrawn
    | TilesOffered
    | TurnEnded
    | TurnPassed
    | TurnPenalised
    | IllegalPlayShown
    | PlayerKnocked
)
"""Events of what a player did in a turn, who is then present."""

FreeEvent = ErrorClaimed | IllegalPlayShown | RedealDemanded
"""Events of actions that cost their player nothing, so that one might repeat them for ever."""

OpenMeldingEvent = (
    TilesPlayed | RiverTileLaid | IllegalPlayShown | ErrorClaimed | RedealDemanded | LastChanceStarted | PlayerKnocked
)
"""Events of which everyone may see all: they are their own views."""

MeldingEvent = OpenMeldingEvent | TurnAct | RoundStarted
