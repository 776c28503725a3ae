"""A challenge: a game of two that one player proposes to another."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from engine.room_settings import RoomSettings
from engine.unions import Ruleset

OPEN_MADE_MAX: Final = 20
"""Most open challenges that a player has made."""
OPEN_TO_ONE_MAX: Final = 2
"""Most open challenges of a player to one other."""
OPEN_RECEIVED_MAX: Final = 60
"""Most open challenges to a player. More players than one have to make them, so one cannot shut out all others."""
EXPIRE_SECONDS_MAX: Final = 86_400
"""The longest time that a challenge waits for an answer."""


class ChallengeState(Enum):
    """The state of a challenge. EXPIRED follows from the time and is not stored."""

    OPEN = auto()
    ACCEPTED = auto()
    DECLINED = auto()
    CANCELED = auto()
    EXPIRED = auto()


class DeclineReason(Enum):
    """Why a player declines a challenge."""

    UNSPECIFIED = auto()
    LATER = auto()
    RULES = auto()
    CLOCK = auto()
    NO_PROGRAMS = auto()
    ONLY_PROGRAMS = auto()


@dataclass(frozen=True, slots=True)
class Challenge:
    """A challenge.

    Attributes:
        challenge_id: 32 hexadecimal digits.
        fingerprint: A digest of the request that made it.
        key: The name of the key whose tickets prove who the players are.
        challenger_ref: The challenger's reference.
        challenger_name: The challenger's name.
        is_program: Whether the challenger is a program.
        challenged_ref: The challenged player's reference.
        ruleset: The rules.
        settings: The settings of the room.
        labels: The labels of the game.
        created_ms: When it was made, in milliseconds since 1970 by the store's clock.
        expires_ms: When it expires if nobody answers.
        state: Its state, apart from its time.
        challenged_name: The name of the player who has accepted it.
        game_id: The game, once it is accepted.
        decline_reason: Why it was declined.
    """

    challenge_id: str
    fingerprint: bytes
    key: str
    challenger_ref: str
    challenger_name: str
    is_program: bool
    challenged_ref: str
    ruleset: Ruleset
    settings: RoomSettings
    labels: tuple[tuple[str, str], ...]
    created_ms: int
    expires_ms: int
    state: ChallengeState = ChallengeState.OPEN
    challenged_name: str = ""
    game_id: str = ""
    decline_reason: DeclineReason = DeclineReason.UNSPECIFIED

    def state_at(self, now_ms: int) -> ChallengeState:
        """Returns its state at a time."""
        is_late = self.state is ChallengeState.OPEN and now_ms >= self.expires_ms
        return ChallengeState.EXPIRED if is_late else self.state
