"""The interface of a store of games (GameStore), and the values that it takes and returns.

Every store guarantees this; tests/service/storage/test_stores.py checks it:

* A commit is atomic: the snapshot, the event-stream entry and the request's memo are stored together or not at all.
* A commit is fenced: it succeeds only on the history that it was decided on (etag), so revisions have no gap and no
  repeat.
* The request key is checked before the fence: a repeated request finds its memo even if the game has changed since.
* Watchers see only stored changes.
* All servers use one clock, the store's.
* The change log, if there is one, names every commit: its entry is stored before the commit. It may name a change that
  was never stored, but no change is stored more than LOG_GRACE_MS after its entry.
* A draft is not part of the game: it changes neither the snapshot nor the stream. It is saved only for the game that it
  was checked on, and never after the turn's deadline.
* An entry of the outbox is claimed again until it is acknowledged.
"""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Protocol, TypeVar

from engine.drafts import Draft
from engine.events import Event
from engine.game import Aborted, Finished, Game, Lobby, Phase, Playing, RoundOver
from engine.timers import due_ms
from service.storage.timing import Observer, Reporter

SECRET_BYTES: Final = 32
CLAIM_MS: Final = 2_000
"""How long a claim lasts. If the claiming server dies, another one finds the game this much later."""
MEMOS_A_SENDER: Final = 8
"""Most memos kept for a seat, for the host, and for all callers without a token. A client repeats only its last
requests; callers without a token send at most six, to create a game and join it."""
EMPTIED_MS: Final = 60_000
"""How long a lobby is kept after all people have left it. Within it, a repeated LeaveGame still finds its answer."""
NAME_MARGIN_MS: Final = 60_000
"""How much longer a name of a game is kept than a lobby, so that a lobby never loses its join code."""
BRIEF_MS: Final = 10_000
"""How long a brief name of a game is kept: less than EMPTIED_MS, so it never outlives its game."""
DRAFT_MS: Final = 100
"""The time between two drafts of a seat that saves them all the time."""
DRAFTS_AT_ONCE: Final = 20
"""How many drafts a seat may save at once after a pause."""
PRESENCE_MS: Final = 40_000
"""How long a reported watch counts as open. Servers report it again every 15 seconds."""
OUTBOX_VALID_MS: Final = 3_000
"""How long after its entry in the outbox the commit that ends a game may be stored."""
OUTBOX_MARGIN_MS: Final = 2 * OUTBOX_VALID_MS
"""After this time, a game that an entry names and that has not ended does not end by the commit of that entry. It is
longer than OUTBOX_VALID_MS because entry and game may be on servers with different clocks."""
LOG_GRACE_MS: Final = 5_000
"""How long after its entry in the change log a change may be stored."""
LOG_MARGIN_MS: Final = 2 * LOG_GRACE_MS
"""After this time, a change that an entry announces and that is not stored does not come. It is longer than
LOG_GRACE_MS because entry and game may be on servers with different clocks."""
CHANGES_AT_ONCE: Final = 100
"""How many changes of a game are read at once: about 5 ms on the event loop if they are decoded."""
LOG_START: Final = "0-0"
"""The place before all entries of a change log."""
GAME_GROWTH: Final = 32_768
"""The bytes that are reserved for each unfinished game: how much one of one round grows from its first change to its
last one."""
NO_ETAG: Final = ""
"""The etag before a game's creation."""


class GameState(Enum):
    """The kind of a game's phase, by which games are listed and counted."""

    LOBBY = "lobby"
    PLAYING = "playing"
    ROUND_OVER = "round_over"
    FINISHED = "finished"
    ABORTED = "aborted"

    @property
    def is_over(self) -> bool:
        """Whether the game can no longer be played."""
        return self is GameState.FINISHED or self is GameState.ABORTED


STATE_OF_PHASE: Final[dict[type[Phase], GameState]] = {
    Lobby: GameState.LOBBY,
    Playing: GameState.PLAYING,
    RoundOver: GameState.ROUND_OVER,
    Finished: GameState.FINISHED,
    Aborted: GameState.ABORTED,
}


class Visibility(Enum):
    """Whether strangers find a game in lists."""

    PUBLIC = "public"
    UNLISTED = "unlisted"


@dataclass(frozen=True, slots=True)
class Listing:
    """How a game is found.

    Attributes:
        visibility: Whether it is in public lists.
        join_code: A short code in place of its id; unique among games in the lobby.
        labels: Keys and values that its creator chose, by key.
        key: The name of the key that created it, whose callers alone find it; empty for none.
    """

    visibility: Visibility = Visibility.UNLISTED
    join_code: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    key: str = ""


@dataclass(frozen=True, slots=True)
class SeatToken:
    """The SHA-256 of a seat's token, or of the host token (seat HOST). The token itself is never stored."""

    seat: int
    digest: bytes


DEPARTED_REFS_MAX: Final = 32
"""How many references of players who have left are kept."""


@dataclass(frozen=True, slots=True)
class PlayerRef:
    """The operator's reference to a person who joined.

    Attributes:
        revision: The revision at which the person joined; with the seat it identifies the event.
        seat: The seat.
        text: The reference.
        has_left: Whether the person has left the lobby.
    """

    revision: int
    seat: int
    text: str
    has_left: bool = False


@dataclass(frozen=True, slots=True)
class Operator:
    """What only the operator sees of a game.

    Attributes:
        labels: Keys and values that its creator chose, by key.
        player_refs: References to its people, those who have left included, in the order in which they joined.
    """

    labels: tuple[tuple[str, str], ...] = ()
    player_refs: tuple[PlayerRef, ...] = ()

    def has(self, ref: str, besides: int = 0) -> bool:
        """Returns whether a person with a reference is in the game, in another seat than `besides`."""
        return any(known.text == ref and known.seat != besides and not known.has_left for known in self.player_refs)

    def ref_of(self, seat: int) -> str:
        """Returns the reference of the person in a seat; "" if there is none."""
        present = (ref.text for ref in reversed(self.player_refs) if ref.seat == seat and not ref.has_left)
        return next(present, "")

    def joined(self, ref: PlayerRef) -> "Operator":
        """Returns the same after a person has joined."""
        return replace(self, player_refs=(*self.player_refs, ref))

    def left(self, seat: int) -> "Operator":
        """Returns the same after the person in a seat has left. Only the last DEPARTED_REFS_MAX of those are kept."""
        refs = [replace(ref, has_left=True) if ref.seat == seat else ref for ref in self.player_refs]
        departed = [ref for ref in refs if ref.has_left][-DEPARTED_REFS_MAX:]
        return replace(self, player_refs=tuple(ref for ref in refs if not ref.has_left or ref in departed))


KICKED_MAX: Final = 32
"""Most people of a lobby who are known as kicked."""


@dataclass(frozen=True, slots=True)
class Kicked:
    """A person whom the host has removed from the lobby: the name, and the operator's reference, empty for none."""

    name: str
    player_ref: str = ""


NO_OPERATOR: Final = Operator()
"""Without labels and references."""


@dataclass(frozen=True, slots=True)
class Record:
    """A stored game at one revision.

    Attributes:
        game_id: 32 hexadecimal digits.
        game: The whole game, hidden tiles included.
        etag: Identifies the game's history, see `lineage`.
        tokens: One for each taken seat, and the host token.
        created_ms: When it was created, in milliseconds since 1970 by the store's clock.
        updated_ms: When it last changed.
        listing: How it is found.
        is_emptied: Whether all people have left its lobby. It is then in no list and expires after EMPTIED_MS.
        operator: What only the operator sees.
        kicked: Who was kicked from the lobby, the last KICKED_MAX; empty after the start.
        invited: The tokens of the game before that take reserved seats, one for each (Game.reserved).
    """

    game_id: str
    game: Game
    etag: str
    tokens: tuple[SeatToken, ...]
    created_ms: int
    updated_ms: int
    listing: Listing = Listing()
    is_emptied: bool = False
    operator: Operator = NO_OPERATOR
    kicked: tuple[Kicked, ...] = ()
    invited: tuple[SeatToken, ...] = ()

    @property
    def state(self) -> GameState:
        """The kind of the game's phase."""
        return STATE_OF_PHASE[type(self.game.phase)]

    @property
    def has_record(self) -> bool:
        """Whether the game is over and was dealt, so that it has a record and is archived."""
        return self.state.is_over and self.game.round is not None


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long a game is kept, in seconds: in the lobby, started, over, and finished but not archived yet.

    The time begins when the game is next due, otherwise with its last change, so a long turn does not outlast its game.
    """

    lobby: int
    started: int
    finished: int
    unarchived: int = 0

    def milliseconds(self, record: Record) -> int:
        """Returns how long a game is kept after a change."""
        if record.is_emptied:
            return EMPTIED_MS
        if record.has_record:
            return max(self.finished, self.unarchived) * 1000
        if record.state.is_over:
            return self.finished * 1000
        seconds = self.lobby if record.state is GameState.LOBBY else self.started
        at_ms = due_ms(record.game)
        return seconds * 1000 + (0 if at_ms is None else max(0, at_ms - record.updated_ms))


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
    """

    revision: int
    etag: str
    time_ms: int
    nonce: bytes
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class StoredChange:
    """One change in a game's event stream, with the stored bytes that its etag hashes (see `lineage`)."""

    revision: int
    etag: str
    change: bytes


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """An entry of the outbox: a game that may have ended.

    Attributes:
        game_id: The game.
        entry_id: Identifies the entry.
        at_ms: When it was appended, by the store's clock.
    """

    game_id: str
    entry_id: str
    at_ms: int


def code_name(join_code: str) -> str:
    """Returns the name under which a game's join code points at the game."""
    return f"code:{join_code}"


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


class Subscription:
    """A watcher's notifications that a game may have changed."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._notified_at = 0.0

    def notify(self) -> None:
        """Wakes the watcher."""
        if not self._changed.is_set():
            self._notified_at = time.perf_counter()
            self._changed.set()

    async def wait(self) -> float:
        """Waits until the watcher has been notified since the last call; returns when that was (time.perf_counter)."""
        await self._changed.wait()
        self._changed.clear()
        return self._notified_at


@dataclass(frozen=True, slots=True)
class Due:
    """A game whose time has come, claimed by a server.

    Attributes:
        game_id: The game.
        at_ms: The time that was set for it.
        claimed_ms: When the claim ends. Until then no other server finds the game.
    """

    game_id: str
    at_ms: int
    claimed_ms: int


class Sighting(Enum):
    """A server's report of the owner of a seat."""

    CALL = "call"
    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Seen:
    """When the owner of a seat was seen last, and until when a watch of theirs counts as open (0: none is open)."""

    last_ms: int
    open_until_ms: int = 0


class LogKind(Enum):
    """What an entry of the change log announces."""

    CHANGED = "changed"
    DELETED = "deleted"
    REWRITTEN = "rewritten"


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry of the change log.

    Attributes:
        place: Its place in its part of the log: milliseconds of the store's clock, hyphen, a number.
        game_id: The game.
        kind: What happened or was about to happen.
        revision: The game's revision after that; 0 for a deletion.
        etag: The game's etag after that; NO_ETAG for a deletion. A change with another etag is another change.
    """

    place: str
    game_id: str
    kind: LogKind
    revision: int = 0
    etag: str = NO_ETAG

    @property
    def time_ms(self) -> int:
        """When the entry was stored, by the store's clock."""
        return int(self.place.partition("-")[0])


@dataclass(frozen=True, slots=True)
class LogPage:
    """Entries of a part of the change log, in order, and the store's time before they were read."""

    now_ms: int
    entries: tuple[LogEntry, ...]


def place_before(now_ms: int) -> str:
    """Returns the place before which every entry was stored before a time."""
    return f"{now_ms - 1}-{2**64 - 1}"


@dataclass(frozen=True, slots=True)
class WholePage:
    """A page of a list.

    Attributes:
        games: The games.
        unreadable: The ids of games that this server cannot read.
        cursor: The next cursor; "" after the last page.
    """

    games: tuple[Record, ...]
    unreadable: tuple[str, ...]
    cursor: str


class _Numbered(Protocol):
    @property
    def revision(self) -> int: ...


_N = TypeVar("_N", bound=_Numbered)


async def read_in_pages(
    read: Callable[[str, int, int], Awaitable[Sequence[_N]]], game_id: str, last_revision: int
) -> list[_N]:
    """Returns a game's changes up to a revision, as far as they are kept, in order.

    Args:
        read: GameStore.events or GameStore.stored_changes.
        game_id: The game.
        last_revision: The revision after the last change.
    """
    found: list[_N] = []
    while (first := found[-1].revision + 1 if found else 1) <= last_revision:
        page = await read(game_id, first, min(CHANGES_AT_ONCE, last_revision - first + 1))
        if not page:
            break
        found += page
        await asyncio.sleep(0)  # other calls go on between pages
    return [change for change in found if change.revision <= last_revision]


class GameStore(Protocol):
    """A store of games. Every method may raise StoreUnavailable; reads may raise StoredFormatUnknown.

    Attributes:
        observe: Receives each operation's name, result and duration (timing.timed).
        report: Receives failovers and moved slots.
        log_ms: How long the change log has its entries; 0: there is no log.
        log_parts: The number of parts of the change log. All entries of a game are in one part.
    """

    observe: Observer
    report: Reporter
    log_ms: int
    log_parts: int

    async def now_ms(self) -> int:
        """Returns the time by the store's clock, in milliseconds since 1970."""

    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        """Returns the game, the time, and the memo of a request, in one round trip."""

    def cached(self, game_id: str) -> Loaded | None:
        """Returns the game as this process last saw it, with the estimated store time and no memo; None if unknown.

        Others may have changed or deleted the game since. Use it only to decide a change whose commit sets until_ms;
        never answer a request from it.
        """

    async def commit(self, commit: Commit) -> Outcome:
        """Stores a change in one atomic round trip."""

    async def delete(self, game_id: str, record: Record | None = None) -> None:
        """Deletes a game and all that belongs to it, notifies its watchers, and announces it in the change log.

        Args:
            game_id: The game.
            record: The game; None if it cannot be read. Lists may then name it for up to an hour.
        """

    async def rewrite(self, previous_etag: str, record: Record, stream: Sequence[tuple[bytes, str]]) -> Outcome:
        """Replaces a game and its whole stream in one atomic step, and drops its memos.

        Its lifetime does not change. Watchers are notified, and the change log announces it.

        Args:
            previous_etag: The game's etag before; with another one it is a conflict.
            record: The game, at the same revision.
            stream: The stored bytes of all changes, each with its etag. The last is the record's revision.
        """

    async def read_log(self, part: int, after: str, limit: int) -> LogPage:
        """Returns at most `limit` entries of a part of the change log after a place."""

    async def log_length(self) -> int:
        """Returns the number of entries of the change log."""

    async def save_draft(self, record: Record, draft: Draft) -> int | None:
        """Saves a draft of the turn in progress, in place of any other, in one atomic round trip.

        A seat that saves drafts all the time may save one in DRAFT_MS. Watchers are notified if they may see drafts.

        Args:
            record: The game that the draft was checked on.
            draft: The draft.

        Returns:
            The draft's number; None, without effect, if the game has changed since or the turn's deadline has passed.

        Raises:
            TooManyDrafts: The seat saves too many.
        """

    async def draft(self, game_id: str) -> Draft | None:
        """Returns the draft of a game that was saved last, maybe in an earlier turn; None if it cannot be read."""

    async def events(self, game_id: str, first_revision: int, limit: int) -> tuple[Entry, ...]:
        """Returns at most `limit` entries of a game's stream from a revision on, in order."""

    async def bounds(self, game_id: str) -> tuple[int, int]:
        """Returns the revisions of the oldest and the newest entry in a game's stream; (0, 0) if it is empty."""

    def changes(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        """Subscribes to a game's changes."""

    def drafts(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        """Subscribes to the drafts of a game that everyone may see."""

    async def secret(self) -> bytes:
        """Returns 32 random bytes that all servers on the store share; creates them on the first call."""

    async def check_room(self, most_age: float = 0.0) -> None:
        """Raises StoreFull if the store has no room for a new game beside the growth of all unfinished ones.

        Args:
            most_age: How old the measurement may be, in seconds.
        """

    async def index(self, record: Record) -> None:
        """Puts a game into its lists (lists.lists_of), and removes it from all others."""

    async def page(
        self, state: GameState, cursor: str, limit: int, *, is_public: bool = False
    ) -> tuple[tuple[Record, ...], str]:
        """Returns games of a state after a cursor, newest first, and the next cursor. "" is the first and the last one.

        A page has fewer games than the limit if the list names games that have expired or changed state; the call
        repairs those entries. It omits games that this server cannot read.

        Args:
            state: The state.
            cursor: The place in the list (lists.list_member of a game).
            limit: Most games.
            is_public: Whether to return public games only.
        """

    async def whole_page(self, state: GameState, cursor: str, limit: int) -> WholePage:
        """As `page`, with the games that this server cannot read."""

    async def oldest_open(self, match: str, limit: int) -> tuple[Record, ...]:
        """Returns public games with a free seat and a match key (lists.match_key), oldest first."""

    async def count(self) -> dict[GameState, int]:
        """Returns how many games are listed under each state."""

    async def point(self, name: str, game_id: str, instead_of: str = "", *, is_brief: bool = False) -> str:
        """Points a name at a game, and returns the game that the name points at after that.

        A name that points at another game than `instead_of` is left as it is. Of concurrent callers all get the same
        game. A name is kept a little longer than a lobby after the last call that set it; if `is_brief`, BRIEF_MS.
        """

    async def pointed(self, name: str) -> str:
        """Returns the id of the game that a name points at; "" if there is none."""

    async def arm(self, game_id: str, at_ms: int) -> None:
        """Makes a game due at a time, in place of any time set before."""

    async def rearm(self, due: Due, at_ms: int | None) -> None:
        """Ends a claim: makes the game due at a time, or never (None). Does nothing if the game was armed since."""

    async def claim(self, limit: int, skip: Collection[str] = ()) -> Sequence[Due]:
        """Claims games whose time has come for CLAIM_MS, so that other servers skip them; returns the earliest first.

        If more are due, the claimed ones are the earliest of their part: a store may keep its deadlines in parts.

        Args:
            limit: Most games.
            skip: Ids of games not to claim.
        """

    async def report_presence(self, game_id: str, server: str, sightings: Mapping[int, Sighting]) -> None:
        """Stores sightings until the game expires, and notifies of watches that opened or closed. No game: no effect.

        Args:
            game_id: The game.
            server: The reporting server. A watch that it reports as open is so for PRESENCE_MS.
            sightings: By seat.
        """

    async def presence(self, game_id: str) -> Mapping[int, Seen]:
        """Returns when the owners of seats were seen, by seat."""

    def presence_changes(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        """Subscribes to watches of a game that open or close."""

    async def append_to_outbox(self, game_id: str) -> int:
        """Appends an entry that names a game to the outbox, and returns its time by the store's clock."""

    async def claim_from_outbox(self, limit: int, claim_ms: int) -> Sequence[OutboxEntry]:
        """Claims entries of the outbox that no server has claimed within the last claim_ms, new entries first.

        Args:
            limit: Most entries.
            claim_ms: How long an earlier claim lasts.
        """

    async def acknowledge(self, entry: OutboxEntry) -> None:
        """Removes an entry from the outbox."""

    async def outbox_size(self) -> int:
        """Returns the number of entries in the outbox."""

    async def stored_changes(self, game_id: str, first_revision: int, limit: int) -> tuple[StoredChange, ...]:
        """Returns at most `limit` changes of a game from a revision on, in order, as they are stored."""

    async def shorten(self, record: Record, kept_ms: int) -> bool:
        """Keeps a game no longer than kept_ms from now; returns False, without effect, if it has changed since."""

    async def ping(self) -> None:
        """Returns if the store accepts writes."""

    async def close(self) -> None:
        """Releases the store's connections."""
