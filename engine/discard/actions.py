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


@dataclass(frozen=True, slots=True)
class LayTiles:
    """A player lays tiles on the table, and the turn goes on (melds_on_table).

    Attributes:
        seat: The player's seat.
        table: The whole table as it shall lie: each meld at its place, grown or as it was, then new melds and pairs. In
            a run each tile is at its place, a wild one at that of the tile it stands for. A wild tile whose place a
            tile of the rack takes goes to the rack, unless it lies elsewhere.
    """

    seat: int
    table: Arrangement


@dataclass(frozen=True, slots=True)
class ReturnDiscard:
    """A player puts the discard taken in the turn back, and takes the next tile of the pool (melds_on_table)."""

    seat: int


TurnAction = TakeFromPool | TakeDiscard | DiscardTile | FinishHand | ShowIndicator | LayTiles | ReturnDiscard
"""Actions of the player whose turn it is."""

BotAction = TurnAction
"""Actions that a bot may choose."""

DiscardAction = TurnAction
