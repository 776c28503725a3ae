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
class TakeTrump:
    """A player who has opened takes the trump (trump)."""

    seat: int


@dataclass(frozen=True, slots=True)
class PassTurn:
    """A player takes no tile when the pool is empty, which ends the round (pool_empty)."""

    seat: int


@dataclass(frozen=True, slots=True)
class DiscardTile:
    """A player discards a tile, which ends the turn."""

    seat: int
    tile: Tile


@dataclass(frozen=True, slots=True)
class FinishHand:
    """A player discards a tile and shows all others: in melds or in seven pairs, or as a named hand (concealed_wins).

    Attributes:
        seat: The player's seat.
        tile: The discard.
        hand: The melds or pairs as the player lays them; empty: as the rules find them.
    """

    seat: int
    tile: Tile
    hand: Arrangement = ()


@dataclass(frozen=True, slots=True)
class FinishFoot:
    """A player who has not opened lays all tiles but one and discards that one (concealed_wins).

    Attributes:
        seat: The player's seat.
        tile: The discard.
        table: The whole table as it shall lie, as in LayTiles.
    """

    seat: int
    tile: Tile
    table: Arrangement


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
    """A player puts the discard or the trump taken in the turn back, and takes the next tile of the pool.

    With an empty pool the player passes by it, which ends the round (melds_on_table).
    """

    seat: int


TurnAction = (
    TakeFromPool
    | TakeDiscard
    | TakeTrump
    | PassTurn
    | DiscardTile
    | FinishHand
    | FinishFoot
    | ShowIndicator
    | LayTiles
    | ReturnDiscard
)
"""Actions of the player whose turn it is."""

BotAction = TurnAction
"""Actions that a bot may choose."""

DiscardAction = TurnAction
