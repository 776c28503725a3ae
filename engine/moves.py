"""The moves of games in records: each one change of a game (record.py)."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from engine.game import Game
from engine.seats import BotLevel
from engine.tiles import Tile
from engine.unions import ProposedTable, RoundStart


class MoveKind(Enum):
    """The kinds of moves. The names are the contract's."""

    DEAL = auto()
    REDEAL = auto()
    PLAY = auto()
    DRAW = auto()
    LAY_ON_RIVER = auto()
    PASS_TURN = auto()
    SHOW = auto()
    CLAIM = auto()
    OBJECT = auto()
    PENALTY = auto()
    TAKE_DISCARD = auto()
    DISCARD = auto()
    SHOW_INDICATOR = auto()
    LAY_TILES = auto()
    RETURN_DISCARD = auto()
    FINISH = auto()
    FALSE_FINISH = auto()
    TAKE_TRUMP = auto()
    FOOT = auto()
    KNOCK = auto()
    TIME_OUT = auto()
    RESIGN = auto()
    TAKE_OVER = auto()
    RETURN_TO_SEAT = auto()
    ABORT = auto()


OF_ALL_GAMES: Final = frozenset(
    {
        MoveKind.DEAL,
        MoveKind.TIME_OUT,
        MoveKind.RESIGN,
        MoveKind.TAKE_OVER,
        MoveKind.RETURN_TO_SEAT,
        MoveKind.ABORT,
    }
)
"""The moves of the games of every family."""


@dataclass(frozen=True, slots=True)
class RecordedPlayer:
    """A player of a record."""

    seat: int
    name: str
    bot: BotLevel | None = None
    is_program: bool = False
    deal_seed: bytes = b""


@dataclass(frozen=True, slots=True)
class Move:
    """One change of a game.

    Attributes:
        revision: The game's revision after it.
        time_ms: When it was made, in milliseconds since 1970.
        kind: What was done.
        seat: Who did it; for DEAL only a player who returned by it, else 0; 0 for ABORT.
        tiles: The tiles drawn, taken, offered, laid or discarded, in this order; for TIME_OUT and PENALTY the tiles
            drawn for it.
        table: The table of PLAY and SHOW, and of a TIME_OUT that committed a draft; else None.
        river_index: The oldest River tile that a PLAY pulled.
        hand: The melds or pairs of FINISH; the table of LAY_TILES and FOOT.
        dealt: The deal of DEAL and REDEAL.
        by_bot: Whether a bot did it for an absent player (absent_action).
        player: The new player of TAKE_OVER, who is in `seat`.
    """

    revision: int
    time_ms: int
    kind: MoveKind
    seat: int = 0
    tiles: tuple[Tile, ...] = ()
    table: ProposedTable | None = None
    river_index: int | None = None
    hand: tuple[tuple[Tile, ...], ...] = ()
    dealt: RoundStart | None = None
    by_bot: bool = False
    player: RecordedPlayer | None = None


@dataclass(frozen=True, slots=True)
class Played:
    """A move of a record that was played: the game before and after it."""

    move: Move
    before: Game
    after: Game
