"""The actions in a round of a melding game: one frozen dataclass each, and the union `MeldingAction`."""

from dataclasses import dataclass

from engine.deal import Shuffle
from engine.melding.events import RoundStarted
from engine.melding.table import ProposedTable
from engine.tiles import Tile


@dataclass(frozen=True, slots=True)
class PlayTiles:
    """A player plays tiles and leaves the table as given (R21, R44).

    Attributes:
        seat: The player's seat.
        table: All melds on the table after the play.
        river_index: The oldest River tile that the player pulls, with all newer ones; None for no pull (turn_draw
            TWO_RIVER).
        calls_rummikub: Whether the player calls out the win (win_call).
        knocks: Whether the player knocks with the tiles left (knock_limit). It means nothing if none are.
    """

    seat: int
    table: ProposedTable
    river_index: int | None = None
    calls_rummikub: bool = False
    knocks: bool = False


@dataclass(frozen=True, slots=True)
class DrawTile:
    """A player draws (R22)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Pass:
    """A player passes with an empty pool, or ends a turn after drawing in it (turn_play_after_draw)."""

    seat: int


@dataclass(frozen=True, slots=True)
class Knock:
    """A player ends the round with few points left on the rack, and plays nothing before it (knock_limit)."""

    seat: int


@dataclass(frozen=True, slots=True)
class LayOnRiver:
    """A player lays one of the two drawn tiles on the River and keeps the other (turn_draw TWO_RIVER)."""

    seat: int
    tile: Tile


@dataclass(frozen=True, slots=True)
class ClaimError:
    """A player votes on the illegal play shown at a revision (turn_invalid_submission)."""

    seat: int
    play_revision: int
    agrees: bool


@dataclass(frozen=True, slots=True)
class RequestRedeal:
    """A player with three pairs of identical tiles demands a new deal (deal_three_pairs_reshuffle).

    `shuffle` is as in StartGame.
    """

    seat: int
    shuffle: Shuffle | RoundStarted


TurnAction = PlayTiles | DrawTile | LayOnRiver | Pass | Knock
"""Actions of the player whose turn it is."""

BotAction = TurnAction | ClaimError
"""Actions that a bot may choose."""

MeldingAction = BotAction | RequestRedeal
