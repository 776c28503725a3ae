"""The actions of a game: one frozen dataclass each, and the union `Action`.

`turns.apply` decides what an action leads to. A new action is a class here or in its family's module, a member of the
union, and a case in the module that decides; mypy reports every other place that must handle it.
"""

from dataclasses import dataclass

from engine.deal import Shuffle
from engine.seats import BotLevel
from engine.unions import BotAction, FamilyAction, ProposedTable, RoundStart


@dataclass(frozen=True, slots=True)
class Join:
    """A new player takes a seat.

    Attributes:
        name: The player's name.
        bot: The level of a bot; None for a person.
        seat: The seat; 0 for the lowest free one.
        is_host: Whether the player is the host.
        takes_reserved: Whether the seat is reserved for the player.
        is_program: Whether a program of others plays the seat.
        deal_seed: The player's part in the shuffles (fair_deal); empty for none.
    """

    name: str
    bot: BotLevel | None = None
    seat: int = 0
    is_host: bool = False
    takes_reserved: bool = False
    is_program: bool = False
    deal_seed: bytes = b""


@dataclass(frozen=True, slots=True)
class Leave:
    """A player leaves the lobby, or gives up the seat that is reserved for them."""

    seat: int


@dataclass(frozen=True, slots=True)
class KickPlayer:
    """The host removes a player, or a reservation, from the lobby. `seat` is the actor's; it may be HOST."""

    seat: int
    kicked: int


@dataclass(frozen=True, slots=True)
class SetReady:
    """A player in the lobby is ready to start, or not. A `deal_seed` that is not empty replaces the one before."""

    seat: int
    is_ready: bool
    deal_seed: bytes = b""


@dataclass(frozen=True, slots=True)
class AbortGame:
    """The host aborts the game, or a player votes for that. `seat` may be HOST.

    Attributes:
        seat: The seat.
        is_forced: Whether the operator aborts it, who needs no vote.
    """

    seat: int
    is_forced: bool = False


@dataclass(frozen=True, slots=True)
class RenewSeatToken:
    """The token of a seat, or that of HOST, is replaced.

    Attributes:
        seat: The seat.
        is_reissued: Whether a front end or the operator replaces it, not its owner. The seat may then be free.
    """

    seat: int
    is_reissued: bool = False


@dataclass(frozen=True, slots=True)
class AnnounceRematch:
    """The rematch of a game that is over was created."""

    game_id: str


@dataclass(frozen=True, slots=True)
class StartGame:
    """A player starts the first round. `seat` may be HOST.

    `shuffle` is the deal itself if it was made before (deal_round).
    """

    seat: int
    shuffle: Shuffle | RoundStart


@dataclass(frozen=True, slots=True)
class StartNextRound:
    """A player starts the next round. `shuffle` is as in StartGame."""

    seat: int
    shuffle: Shuffle | RoundStart


@dataclass(frozen=True, slots=True)
class TimeOut:
    """The deadline of the turn in progress has passed (R55). `draft` is the last draft of that turn, if any."""

    draft: ProposedTable | None = None


@dataclass(frozen=True, slots=True)
class StartDueRound:
    """The time has come at which the first or the next round starts by itself (Lobby, round_pause_seconds).

    `shuffle` is as in StartGame.
    """

    shuffle: Shuffle | RoundStart


@dataclass(frozen=True, slots=True)
class Resign:
    """A player resigns from the game."""

    seat: int


@dataclass(frozen=True, slots=True)
class TakeOverSeat:
    """A new player, or a bot on behalf of a player or the host, plays on for a player who has resigned (open_seat).

    Attributes:
        seat: The seat of the actor; HOST for a person who takes the seat, and for the host without one.
        taken: The seat that is taken over.
        name: The name of the new player.
        bot: The level of a bot; None for a person.
        is_program: Whether a program of others plays the seat.
    """

    seat: int
    taken: int
    name: str
    bot: BotLevel | None = None
    is_program: bool = False


@dataclass(frozen=True, slots=True)
class ReturnToSeat:
    """An absent player returns. Other actions of an absent player mean this too, except Resign and TakeOverSeat."""

    seat: int


@dataclass(frozen=True, slots=True)
class StandIn:
    """A bot's action for an absent player, who does not return by it (absent_action)."""

    action: BotAction

    @property
    def seat(self) -> int:
        """The absent player's seat."""
        return self.action.seat


LobbyAction = Join | Leave | KickPlayer | SetReady | StartGame
"""Actions in the lobby."""

Action = (
    LobbyAction
    | StartNextRound
    | StartDueRound
    | FamilyAction
    | TimeOut
    | Resign
    | TakeOverSeat
    | AbortGame
    | RenewSeatToken
    | AnnounceRematch
    | ReturnToSeat
    | StandIn
)
