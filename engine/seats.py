"""Players and what they have: seats, racks, turns. Seats count from 1."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from engine.tiles import Tile

HOST: Final = 0
"""Stands for the host where an action or a token has no seat. Seats count from 1."""


class BotLevel(Enum):
    """How well a bot plays (skill.py, and bots.py of each family)."""

    BEGINNER = auto()
    EASY = auto()
    MEDIUM = auto()
    HARD = auto()
    EXPERT = auto()
    MASTER = auto()


@dataclass(frozen=True, slots=True)
class Player:
    """A player.

    Attributes:
        seat: The seat.
        name: The name.
        total_points: The points at the start and of all finished rounds (R64).
        resigned: Whether the player has resigned from the game.
        bot: The level of a bot; None for a person.
        timeouts_in_a_row: The number of turns that timed out since the last action in a turn.
        stand_in: The level of the bot that plays for an absent person; None if the person is not absent.
        time_left_ms: The bank of time for the round, as at the start of the player's turn while that is in progress;
            None without clocks (clock_total_seconds).
        is_ready: Whether the player is ready to start (SetReady). A bot always is.
        is_host: Whether the player is the host. At most one player is.
        wants_abort: Whether the player has voted in this round to abort the game.
        is_program: Whether a program of others plays the seat. It counts as a person, apart from that.
        deal_seed: The player's part in the shuffles (fair_deal); empty for none.
    """

    seat: int
    name: str
    total_points: int = 0
    resigned: bool = False
    bot: BotLevel | None = None
    timeouts_in_a_row: int = 0
    stand_in: BotLevel | None = None
    time_left_ms: int | None = None
    is_ready: bool = False
    is_host: bool = False
    wants_abort: bool = False
    is_program: bool = False
    deal_seed: bytes = b""

    @property
    def played_by(self) -> BotLevel | None:
        """The level of the bot that plays the seat, as a player or for an absent person; None for a person."""
        return self.bot or self.stand_in


@dataclass(frozen=True, slots=True)
class Rack:
    """A player's tiles in a round, in ascending order, and whether the initial meld has been made."""

    seat: int
    tiles: tuple[Tile, ...]
    has_melded: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn.

    Attributes:
        seat: The seat that has the turn.
        deadline_ms: When it ends, in milliseconds since 1970 by the store's clock; None without a limit.
        revision: The game's revision at which it started, which names the turn; 0 if no change of a game started it.
    """

    seat: int
    deadline_ms: int | None
    revision: int = 0


@dataclass(frozen=True, slots=True)
class ReservedSeat:
    """A seat of a lobby that only one person, or one program, can take, and the name that is shown until then."""

    seat: int
    name: str
    is_program: bool = False


def from_seat(order: tuple[int, ...], first: int) -> tuple[int, ...]:
    """Returns a turn order that starts with another of its seats."""
    place = order.index(first)
    return order[place:] + order[:place]
