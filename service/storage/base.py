"""What a store of games promises (GameStore), and the values that go in and out.

The promises, which tests/service/storage/test_stores.py demands of every store:

* A commit is atomic: the snapshot, the event-stream entry and the request's memo are stored together or not at all.
* A commit is fenced: it succeeds only on the very history that it was decided on (etag), so revisions have no gap and
  no repeat.
* A request key is asked before the fence: a repeated request finds its memo, whatever has happened since.
* Whoever watches sees only what is stored.
* Time is the store's: one clock for all servers.
"""

import asyncio
import hashlib
from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from engine.events import Event
from engine.game import Finished, Game, Lobby, Phase, Playing, RoundOver

SECRET_BYTES: Final = 32
CLAIM_MS: Final = 2_000
"""How long a claim lasts: so much later is a game looked at whose server dies before it does."""
MEMOS_A_SENDER: Final = 8
"""How many memos of a sender are kept. A client repeats its last requests only; callers without a token create a game
and join it, six at most."""
NO_ETAG: Final = ""
"""The etag before a game's creation."""


class State(Enum):
    """The kind of a game's phase, by which games are listed and counted."""

    LOBBY = "lobby"
    PLAYING = "playing"
    ROUND_OVER = "round_over"
    FINISHED = "finished"


STATES: Final[dict[type[Phase], State]] = {
    Lobby: State.LOBBY,
    Playing: State.PLAYING,
    RoundOver: State.ROUND_OVER,
    Finished: State.FINISHED,
}


@dataclass(frozen=True, slots=True)
class SeatToken:
    """The SHA-256 of a seat's token. The token itself is stored nowhere."""

    seat: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Record:
    """What is stored of a game at a revision.

    Attributes:
        game_id: 32 hexadecimal digits.
        game: The whole truth.
        etag: Its lineage, see `lineage`.
        tokens: One for each taken seat.
        created_ms: When it was created, milliseconds since 1970 by the store's clock.
        updated_ms: When it last changed.
    """

    game_id: str
    game: Game
    etag: str
    tokens: tuple[SeatToken, ...]
    created_ms: int
    updated_ms: int

    @property
    def state(self) -> State:
        """The kind of its phase."""
        return STATES[type(self.game.phase)]


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long a game is kept after its last change, in seconds: in the lobby, started, and ended."""

    lobby: int
    started: int
    finished: int

    def milliseconds(self, state: State) -> int:
        """How long a game in a state is kept."""
        seconds = {State.LOBBY: self.lobby, State.FINISHED: self.finished}.get(state, self.started)
        return seconds * 1000


@dataclass(frozen=True, slots=True)
class Entry:
    """One change in a game's event stream.

    Attributes:
        revision: The game's after it.
        etag: The game's after it.
        time_ms: When it was decided, by the store's clock.
        nonce: 16 random bytes that are never shown: without them the etag would betray the tile that was drawn, since
            there are only 53 to try.
        events: What happened.
    """

    revision: int
    etag: str
    time_ms: int
    nonce: bytes
    events: tuple[Event, ...]


def lineage(previous: str, change: bytes) -> str:
    """The etag after a change: each hashes the one before it, so that equal etags mean equal histories.

    Args:
        previous: The etag before the change; NO_ETAG before the creation.
        change: The change as it is stored, nonce included.

    Returns:
        32 hexadecimal digits.
    """
    return hashlib.sha256(previous.encode() + b"\0" + change).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Memo:
    """What is remembered of an accepted request: a digest of its content, and its answer.

    Attributes:
        fingerprint: Tells another content under the same request id.
        answer: The answer's bytes, without a seat token.
        salt: With the request id this makes the seat token of the answer (identity.seat_token); empty if there is none.
    """

    fingerprint: bytes
    answer: bytes
    salt: bytes = b""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a store answers to a load: the time, the game if there is one, the request's memo if there is one."""

    now_ms: int
    record: Record | None
    memo: Memo | None


@dataclass(frozen=True, slots=True)
class Commit:
    """A change to store.

    Attributes:
        previous_etag: That of the record the change was decided on; NO_ETAG for a creation.
        record: The game after the change.
        change: The change as it is stored (snapshot.encode_change), of which the record's etag is made.
        request_key: Under which to keep the memo; empty for none.
        memo: The request's memo.
        sender: Who sent the request, of whom the last MEMOS_A_SENDER memos are kept; empty for callers without a token.
        until_ms: Set where the time of the decision, the record's updated_ms, was not told by the store: the change is
            a conflict unless the store's clock is between that time and this one.
    """

    previous_etag: str
    record: Record
    change: bytes
    request_key: str = ""
    memo: Memo | None = None
    sender: str = ""
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """The change is stored."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """The game has changed, or exists already, or the time is not that of the decision: nothing was stored."""


Outcome = Committed | Conflict | Memo
"""A Memo: the request was accepted before, and nothing was stored now."""


class Subscription:
    """A watcher's place: told that a game may have changed."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def notify(self) -> None:
        """Tells the watcher to look."""
        self._changed.set()

    async def wait(self) -> None:
        """Returns when the watcher has been told to look since the last call."""
        await self._changed.wait()
        self._changed.clear()


@dataclass(frozen=True, slots=True)
class Due:
    """A game whose time has come, claimed by a server that is to look at it.

    Attributes:
        game_id: The game.
        at_ms: The time that was set for it.
        claimed_ms: Until when no other server finds it.
    """

    game_id: str
    at_ms: int
    claimed_ms: int


class GameStore(Protocol):
    """A store of games. Every method may raise StoreUnavailable; reads may raise StoredFormatUnknown."""

    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        """The game, the time, and the memo of a request: one round trip."""

    def recall(self, game_id: str) -> Loaded | None:
        """What a load would answer if the game has not changed since this process has last seen it; no memo.

        None where it remembers nothing. What is decided on this is stored with the decision's time (until_ms), and
        nothing else may be answered from it: others may have changed the game, and it may be gone.
        """

    async def commit(self, commit: Commit) -> Outcome:
        """Stores a change: one atomic round trip."""

    async def events(self, game_id: str, first_revision: int, limit: int) -> tuple[Entry, ...]:
        """The entries of a game's stream from a revision on, in order, so many at the most."""

    async def bounds(self, game_id: str) -> tuple[int, int]:
        """The revisions of the oldest and the newest entry in a game's stream; (0, 0) without any."""

    def changes(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        """Subscribes to a game's changes."""

    async def secret(self) -> bytes:
        """32 random bytes that all servers on the store share and nobody else knows; made when first asked for."""

    async def check_room(self) -> None:
        """Returns if there is room for a new game. Raises StoreFull while the store's reserve is in use."""

    async def index(self, record: Record) -> None:
        """Lists a game under its state, and no other."""

    async def page(self, state: State, cursor: str, limit: int) -> tuple[tuple[Record, ...], str]:
        """Games of a state, the newest first, after a cursor ("" for the newest), and the next cursor ("" at the end).

        Fewer than the limit where the list named games that have expired or changed state; it is mended on the way.
        Games that this server cannot read are left out.
        """

    async def count(self) -> dict[State, int]:
        """How many games are listed under each state."""

    async def arm(self, game_id: str, at_ms: int) -> None:
        """Makes a game due at a time, and at no earlier time that was set before."""

    async def rearm(self, due: Due, at_ms: int | None) -> None:
        """Ends a claim: makes the game due at a time, None: not at all. Does nothing if it was armed since."""

    async def claim(self, limit: int, skip: Collection[str] = ()) -> Sequence[Due]:
        """Claims games whose time has come, the earliest first, for CLAIM_MS; so other servers look at others.

        Args:
            limit: Most games.
            skip: Ids of games to leave alone.
        """

    async def ping(self) -> None:
        """Returns if the store takes writes."""

    async def close(self) -> None:
        """Gives back what the store holds."""
