"""Views of a game and of its events for one viewer (R4), which sight.py makes.

A view has no field for a hidden tile, so encoding a view cannot leak one. The results of rounds have racks and pool
only once they are open to everyone.
"""

from dataclasses import dataclass

from engine.events import OpenCommonEvent
from engine.game import (
    Phase,
    RoundResult,
)
from engine.room_settings import RoomSettings
from engine.seats import BotLevel, ReservedSeat, Turn
from engine.tiles import Tile
from engine.unions import FamilyEventView, OpenFamilyEvent, RoundView, Ruleset


@dataclass(frozen=True, slots=True)
class PlayerView:
    """A player as every viewer sees them. `bot` is the level of the bot that plays the seat now."""

    seat: int
    name: str
    tile_count: int
    has_melded: bool
    total_points: int
    resigned: bool
    bot: BotLevel | None = None
    timeouts_in_a_row: int = 0
    is_absent: bool = False
    time_left_ms: int | None = None
    is_ready: bool = False
    is_host: bool = False
    wants_abort: bool = False
    is_program: bool = False
    deal_seed: bytes = b""


@dataclass(frozen=True, slots=True)
class GameView:
    """A game.

    Attributes:
        revision: The number of changes of the game.
        phase: The type of its phase.
        ruleset: The rules.
        settings: The settings of its room.
        players: The players, by seat.
        round_number: The number of the round in progress or the last one, from 1; 0 in the lobby.
        pool_count: The number of tiles in the pool.
        turn: The turn in progress, if any.
        seat: The viewer's seat; None without one.
        rack: The viewer's tiles, ascending; empty without a seat.
        order: The seats dealt into the round in progress or the last one, in turn order, the starter first.
        round: What else the viewer sees of that round, by its family; None in the lobby.
        results: The results of the finished rounds.
        winners: The winners of a finished game.
        next_round_ms: When the first or next round starts by itself, if it does.
        abandoned: Whether the game ended because all people were absent.
        rematch_game_id: The id of the rematch; empty if there is none, and for spectators.
        reserved: The reserved seats of the lobby.
        position_seats: The seats of the position that the game begins with; none if it begins with a deal.
        deal_commitment: The commitment of the server to all deals; empty for none.
    """

    revision: int
    phase: type[Phase]
    ruleset: Ruleset
    settings: RoomSettings
    players: tuple[PlayerView, ...]
    round_number: int
    pool_count: int
    turn: Turn | None
    seat: int | None
    rack: tuple[Tile, ...]
    order: tuple[int, ...]
    round: RoundView | None
    results: tuple[RoundResult, ...]
    winners: tuple[int, ...]
    next_round_ms: int | None
    abandoned: bool
    rematch_game_id: str = ""
    reserved: tuple[ReservedSeat, ...] = ()
    position_seats: tuple[int, ...] = ()
    deal_commitment: bytes = b""


@dataclass(frozen=True, slots=True)
class TurnTimedOutView:
    """A time-out. Only the seat that drew sees the tiles; all see their number."""

    seat: int
    tile_count: int
    tiles: tuple[Tile, ...]


OpenEvent = OpenCommonEvent | OpenFamilyEvent
"""Events without hidden parts, which are their own views."""

EventView = OpenEvent | TurnTimedOutView | FamilyEventView
