"""The events of a round of a draw-and-discard game: one frozen dataclass each, and the union `DiscardEvent`.

No event has the name of another family's event: games are stored with these names.
"""

from dataclasses import dataclass

from engine.discard.laying import PenaltyCause
from engine.discard.melds import Arrangement
from engine.discard.table import Opening
from engine.seats import Rack
from engine.tiles import Tile


@dataclass(frozen=True, slots=True)
class HandsDealt:
    """A round was dealt.

    Attributes:
        number: From 1.
        order: The turn order. In a game with an indicator the first player has one tile more than the others.
        indicator: The tile turned face up that gives the okey; None in a game with jokers (wild_tiles).
        racks: The racks, by seat.
        pool: The pool, in the order of drawing.
        trump: The tile laid face up that may be taken; None in a game without one (trump).
        seed: The server's seed of the shuffles (Shuffle.seed), which is hidden until the game is over.
    """

    number: int
    order: tuple[int, ...]
    indicator: Tile | None
    racks: tuple[Rack, ...]
    pool: tuple[Tile, ...]
    trump: Tile | None = None
    seed: bytes = b""

    @property
    def is_position(self) -> bool:
        """Whether the round begins with a position: no game of discards does."""
        return False


@dataclass(frozen=True, slots=True)
class PoolTileTaken:
    """A player took the next tile of the pool."""

    seat: int
    tile: Tile


@dataclass(frozen=True, slots=True)
class DiscardTaken:
    """A player took the newest discard of another player.

    Attributes:
        seat: The player's seat.
        tile: The discard.
        from_seat: Who had discarded it.
        uncovered: The discard under it, which is now the newest; None if there is none.
    """

    seat: int
    tile: Tile
    from_seat: int
    uncovered: Tile | None


@dataclass(frozen=True, slots=True)
class TrumpTaken:
    """A player took the trump."""

    seat: int
    tile: Tile


@dataclass(frozen=True, slots=True)
class EmptyPoolPassed:
    """A player took no tile when the pool was empty, which ends the round."""

    seat: int


@dataclass(frozen=True, slots=True)
class ThreeTilesLeft:
    """A player who has opened has three tiles left after a discard. It changes nothing (concealed_wins)."""

    seat: int


@dataclass(frozen=True, slots=True)
class TileDiscarded:
    """A player discarded a tile, which ends the turn."""

    seat: int
    tile: Tile


@dataclass(frozen=True, slots=True)
class DiscardForced:
    """A tile of a player whose turn timed out was discarded."""

    seat: int
    tile: Tile


@dataclass(frozen=True, slots=True)
class IndicatorShown:
    """A player showed the indicator's twin, for which all others lose a point at the end of the round."""

    seat: int


@dataclass(frozen=True, slots=True)
class HandFinished:
    """A player discarded a tile and showed a finished hand.

    Attributes:
        seat: The player's seat.
        tile: The discard.
        hand: The melds, or the seven pairs.
        is_pairs: Whether they are pairs.
        name: The name of the hand; empty in a game without named hands (concealed_wins).
    """

    seat: int
    tile: Tile
    hand: Arrangement
    is_pairs: bool
    name: str = ""


@dataclass(frozen=True, slots=True)
class TilesLaid:
    """A player laid tiles on the table.

    Attributes:
        seat: The player's seat.
        tiles: The tiles that left the rack, ascending.
        table: The table afterwards.
        okeys: The number of okeys that the player took from the table.
        more: The number of the tiles that are no part of an opening.
        opening: The player's opening; None if the player had opened before.
    """

    seat: int
    tiles: tuple[Tile, ...]
    table: Arrangement
    okeys: int
    more: int
    opening: Opening | None


@dataclass(frozen=True, slots=True)
class DiscardReturned:
    """A player put a taken discard back on the discards of another player; the trump, if `to_seat` is None."""

    seat: int
    tile: Tile
    to_seat: int | None


@dataclass(frozen=True, slots=True)
class PenaltyScored:
    """A player scored penalty points, which count at the end of the round."""

    seat: int
    points: int
    cause: PenaltyCause


@dataclass(frozen=True, slots=True)
class RackFinished:
    """A player discarded the last tile of the rack, which ends the round.

    Attributes:
        seat: The player's seat.
        tile: The discard.
        is_pairs: Whether the player had opened with pairs.
        is_at_once: Whether the player had opened in this turn, and no other player at all.
        is_foot: Whether the player, who had not opened, laid all other tiles at once (concealed_wins).
    """

    seat: int
    tile: Tile
    is_pairs: bool
    is_at_once: bool
    is_foot: bool = False


Finish = HandFinished | RackFinished
"""Events of a finish, which ends the round."""

TurnAct = (
    PoolTileTaken | DiscardTaken | TrumpTaken | EmptyPoolPassed | TileDiscarded | IndicatorShown | TilesLaid | Finish
)
"""Events of what a player did in a turn, who is then present."""

OpenDiscardEvent = (
    DiscardTaken
    | TrumpTaken
    | EmptyPoolPassed
    | ThreeTilesLeft
    | TileDiscarded
    | DiscardForced
    | IndicatorShown
    | TilesLaid
    | DiscardReturned
    | PenaltyScored
    | HandFinished
    | RackFinished
)
"""Events of which everyone may see all: they are their own views."""

DiscardEvent = OpenDiscardEvent | PoolTileTaken | HandsDealt
