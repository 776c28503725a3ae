"""The actions in a round of a draw-and-discard game: one frozen dataclass each, and the union `DiscardAction`."""

from dataclasses import dataclass

from engine.discard.melds import Arrangement
from engine.tiles import Tile


@dataclass(frozen=True, slots=True)
class TakeFromPool:
    """A player takes the next tile of the pool."""

    seat: int


@dataclass(frozen=True, slots=True)
class TakeDiscard:
    """A player takes the newest discard of the player before them."""

    seat: int


@dataclass(frozen=True, slots=True)
class DiscardTile:
    """A player discards a tile, which ends the turn."""

    seat: int
    tile: Tile


@dataclass(frozen=True, slots=True)
class FinishHand:
    """A player discards a tile and shows that all others are in melds or in seven pairs.

    Attributes:
        seat: The player's seat.
        tile: The discard.
        hand: The melds or pairs as the player lays them; empty: as the rules find them.
    """

    seat: int
    tile: Tile
    hand: Arrangement = ()


@dataclass(frozen=True, slots=True)
class ShowIndicator:
    """A player shows the indicator's twin, in the first turn and before the discard (show_indicator)."""

    seat: int


TurnAction = TakeFromPool | TakeDiscard | DiscardTile | FinishHand | ShowIndicator
"""Actions of the player whose turn it is."""

BotAction = TurnAction
"""Actions that a bot may choose."""

DiscardAction = TurnAction
