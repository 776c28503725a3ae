"""What the use cases are asked: mutating requests with what makes them safe to repeat, and turns."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from engine.actions import TurnAction
from engine.table import ProposedTable
from service.app.identity import Caller

KEY_LENGTH: Final = 32
"""Hexadecimal digits of a request key: 128 bits."""
SENDER_LENGTH: Final = 8
"""Hexadecimal digits that tell a game's tokens apart. Should two be alike, their seats share the room for memos."""


@dataclass(frozen=True, slots=True)
class Request:
    """What makes a mutating request safe to repeat.

    Attributes:
        caller: Who sent it: two players' request ids are never the same.
        request_id: As sent; empty for none.
        fingerprint: A digest of the RPC and its content.
    """

    caller: Caller
    request_id: str
    fingerprint: bytes

    @property
    def key(self) -> str:
        """Under which the store keeps the memo. A digest: the id of a join makes a seat token and is not stored."""
        if not self.request_id:
            return ""
        return hashlib.sha256((self.caller.digest or b"") + b"\0" + self.request_id.encode()).hexdigest()[:KEY_LENGTH]

    @property
    def sender(self) -> str:
        """Returns whose last memos the store keeps: a name for the caller's token; empty without one."""
        return "" if self.caller.digest is None else self.caller.digest.hex()[:SENDER_LENGTH]


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A turn to take: on which revision, and what; the action is made for the caller's seat."""

    game_id: str
    expected_revision: int
    etag: str
    validate_only: bool
    action: Callable[[int], TurnAction]


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """A draft to save: on which revision, and the table; None for the table as it lies."""

    game_id: str
    expected_revision: int
    etag: str
    table: ProposedTable | None


@dataclass(frozen=True, slots=True)
class Claim:
    """A vote: on the play that the change of that revision showed, and whether it is illegal."""

    game_id: str
    play_revision: int
    agrees: bool
