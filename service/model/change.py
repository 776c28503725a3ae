"""A change of a game: what a store is given, what it stores, and what it answers."""

import hashlib
from dataclasses import dataclass
from enum import Enum
from typing import Final

from engine.events import Event
from service.model.record import Record

NO_ETAG: Final = ""
"""The etag before a game's creation."""
MEMOS_A_SENDER: Final = 8
"""Most memos kept for a seat, for the host, and for all callers without a token. A client repeats only its last
requests; callers without a token send at most six, to create a game and join it."""


class CauseKind(Enum):
    """Who or what causes a change."""

    PLAYER = "PLAYER"
    BOT = "BOT"
    HOST = "HOST"
    ADMIN = "ADMIN"
    TIME = "TIME"


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of a change; `seat` is that of a player or a bot."""

    kind: CauseKind
    seat: int | None = None


TIME: Final = Cause(CauseKind.TIME)
"""A time that has come: the end of a turn, or the start of a round by itself."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One change in a game's event stream.

    Attributes:
        revision: The game's revision after the change.
        etag: The game's etag after the change.
        time_ms: When the change was decided, by the store's clock.
        nonce: 16 random bytes that no caller sees. Without them a caller could find a drawn tile from the etag by
            trying all 53 faces.
        events: The change's events.
        cause: Who or what caused it.
    """

    revision: int
    etag: str
    time_ms: int
    nonce: bytes
    events: tuple[Event, ...]
    cause: Cause = TIME


@dataclass(frozen=True, slots=True)
class StoredChange:
    """One change in a game's event stream, with the stored bytes that its etag hashes (see `lineage`)."""

    revision: int
    etag: str
    change: bytes


def lineage(previous: str, change: bytes) -> str:
    """Returns the etag after a change. Each etag hashes the one before it, so equal etags mean equal histories.

    Args:
        previous: The etag before the change; NO_ETAG before the creation.
        change: The stored bytes of the change, nonce included.

    Returns:
        32 hexadecimal digits.
    """
    return hashlib.sha256(previous.encode() + b"\0" + change).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Memo:
    """The stored answer to an accepted request.

    Attributes:
        fingerprint: A digest of the request's content. It detects another content under the same request id.
        answer: The answer's bytes, without a token.
        salt: With the request id it yields the answer's token (identity.seat_token); empty if there is none.
    """

    fingerprint: bytes
    answer: bytes
    salt: bytes = b""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The answer to a load: the store's time, the game if it exists, the request's memo if there is one."""

    now_ms: int
    record: Record | None
    memo: Memo | None


@dataclass(frozen=True, slots=True)
class Commit:
    """A change to store.

    Attributes:
        previous_etag: The etag of the record that the change was decided on; NO_ETAG for a creation.
        record: The game after the change.
        change: The stored bytes of the change (stored_events.encode_change), which the record's etag hashes. Empty if
            the request changes nothing: then the record is the one before, and only the memo is stored.
        request_key: The key of the memo; empty for none.
        memo: The request's memo.
        sender: Who sent the request: the number of a seat, or HOST. Empty without a token. The last MEMOS_A_SENDER
            memos of a sender are kept, whatever token it had.
        vacated: The seat that the change frees, whose presence is dropped; 0 for none.
        until_ms: Set if the time of the decision, the record's updated_ms, is an estimate of the store's clock. The
            commit then conflicts unless the store's clock is between that time and this one.
    """

    previous_etag: str
    record: Record
    change: bytes
    request_key: str = ""
    memo: Memo | None = None
    sender: str = ""
    vacated: int = 0
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """The change is stored."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """The game has changed, or exists already, or the estimated time was wrong. Nothing was stored."""


Outcome = Committed | Conflict | Memo
"""A Memo means that the request was accepted before; nothing was stored now."""
