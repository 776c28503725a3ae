"""The events of a game: one frozen dataclass each, and the union `Event`.

Events contain everything, hidden tiles too, so that a game can be replayed from its events alone (replay.py). What a
seat may see of them is in views.py.
"""

from dataclasses import dataclass

from engine.game import RoundResult
from engine.room_settings import DEFAULT_SETTINGS, RoomSettings
from engine.seats import BotLevel, ReservedSeat, Turn
from engine.tiles import Tile
from engine.unions import FamilyEvent, Ruleset


@dataclass(frozen=True, slots=True)
class GameCreated:
    """The game was created with these rules, settings of its room, and seats that are reserved.

    `position_seats` are the seats of the position that it begins with; none if its first round is dealt.
    `deal_commitment` commits the server to all deals (fair_deal); empty for none.
    """

    ruleset: Ruleset
    settings: RoomSettings = DEFAULT_SETTINGS
    reserved: tuple[ReservedSeat, ...] = ()
    position_seats: tuple[int, ...] = ()
    deal_commitment: bytes = b""


@dataclass(frozen=True, slots=True)
class PlayerJoined:
    """A player took a seat.

    Attributes:
        seat: The seat, which may have been reserved for the player.
        name: The name.
        bot: The level of a bot; None for a person.
        is_host: Whether the player is the host.
        starts_ms: When the game now starts by itself, in milliseconds since 1970; None if this player changes nothing
            about that.
        is_program: Whether a program of others plays the seat.
        deal_seed: The player's part in the shuffles; empty for none.
    """

    seat: int
    name: str
    bot: BotLevel | None = None
    is_host: bool = False
    starts_ms: int | None = None
    is_program: bool = False
    deal_seed: bytes = b""


@dataclass(frozen=True, slots=True)
class PlayerLeft:
    """A player left the lobby, or gave up a reserved seat. The game no longer starts by itself.

    `new_host` is the seat that became host in place of the player; None for none.
    """

    seat: int
    new_host: int | None = None


@dataclass(frozen=True, slots=True)
class PlayerKicked:
    """The host removed a player or a reservation from the lobby. See PlayerLeft.

    `join_code` is the lobby's new join code; empty if it did not change. The rules do not know it. Views must not show
    it to spectators, nor to the player.
    """

    seat: int
    new_host: int | None = None
    join_code: str = ""


@dataclass(frozen=True, slots=True)
class PlayerReadied:
    """A player in the lobby is ready to start, or not. A `deal_seed` that is not empty replaces the one before."""

    seat: int
    is_ready: bool
    deal_seed: bytes = b""


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A turn started."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class TurnTimedOut:
    """The deadline of a turn passed, and the player drew these tiles from the pool (R55)."""

    seat: int
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class ClockStopped:
    """A player's turn ended, and this much of the bank is left, in milliseconds (clock_total_seconds)."""

    seat: int
    time_left_ms: int


@dataclass(frozen=True, slots=True)
class PlayerResigned:
    """A player resigned from the game."""

    seat: int


@dataclass(frozen=True, slots=True)
class SeatTakenOver:
    """A new player plays on for one who had resigned, with the same rack and points (open_seat).

    Attributes:
        seat: The seat.
        name: The name of the new player.
        bot: The level of a bot; None for a person.
        is_program: Whether a program of others plays the seat.
        new_host: The seat of the host from now on, if the seat was the host's; else None.
    """

    seat: int
    name: str
    bot: BotLevel | None = None
    is_program: bool = False
    new_host: int | None = None


@dataclass(frozen=True, slots=True)
class PlayerAbsent:
    """So many turns of a player timed out in a row that the player counts as absent (absent_after_timeouts).

    `stand_in` is the level of the bot that plays from now on; None if PlayerResigned follows (absent_action).
    """

    seat: int
    stand_in: BotLevel | None


@dataclass(frozen=True, slots=True)
class PlayerReturned:
    """An absent player returned, and no bot plays the seat any more."""

    seat: int


@dataclass(frozen=True, slots=True)
class RoundEnded:
    """A round was scored.

    `next_round_ms` is when the next round starts by itself; None if a player must start it or none follows.
    """

    result: RoundResult
    next_round_ms: int | None = None


@dataclass(frozen=True, slots=True)
class GameEnded:
    """The game ended.

    `opened` has the results of all rounds if the game's end opens them. `abandoned`: the game ended because all people
    were absent, possibly in the middle of a round.
    """

    winners: tuple[int, ...]
    opened: tuple[RoundResult, ...] = ()
    abandoned: bool = False


@dataclass(frozen=True, slots=True)
class AbortRequested:
    """A player voted to abort the game."""

    seat: int


@dataclass(frozen=True, slots=True)
class GameAborted:
    """The game was aborted: by the host, or by the votes of all."""

    by_host: bool


@dataclass(frozen=True, slots=True)
class SeatTokenRenewed:
    """The token of a seat, or that of HOST, was replaced."""

    seat: int


@dataclass(frozen=True, slots=True)
class RematchCreated:
    """The rematch of a game that is over was created."""

    game_id: str


LobbyEvent = GameCreated | PlayerJoined | PlayerLeft | PlayerKicked | PlayerReadied

OpenCommonEvent = (
    LobbyEvent
    | TurnStarted
    | PlayerResigned
    | SeatTakenOver
    | PlayerAbsent
    | PlayerReturned
    | ClockStopped
    | RoundEnded
    | GameEnded
    | AbortRequested
    | GameAborted
    | SeatTokenRenewed
    | RematchCreated
)
"""Events that are the same whatever is played, and of which everyone may see all."""

CommonEvent = OpenCommonEvent | TurnTimedOut
"""Events that are the same whatever is played."""

TurnEvent = TurnStarted | TurnTimedOut | PlayerResigned | SeatTakenOver
"""Those of them that change the round in progress, as all events of the family do."""

RoundEvent = TurnEvent | FamilyEvent

Event = CommonEvent | FamilyEvent
