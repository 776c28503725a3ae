"""What a store of games is: the sum of its parts, each a protocol. Callers take the part that they need.

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
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from engine.unions import Draft
from service.model.change import Commit, Entry, Loaded, Outcome, StoredChange
from service.model.change_log import LogPage
from service.model.deadlines import Due
from service.model.outbox import OutboxEntry
from service.model.presence import Seen, Sighting
from service.model.record import GameState, Record
from service.storage.timing import Reports

SECRET_BYTES: Final = 32
NAME_MARGIN_MS: Final = 60_000
"""How much longer a name of a game is kept than a lobby, so that a lobby never loses its join code."""
BRIEF_MS: Final = 10_000
"""How long a brief name of a game is kept: less than EMPTIED_MS, so it never outlives its game."""
DRAFT_MS: Final = 100
"""The time between two drafts of a seat that saves them all the time."""
DRAFTS_AT_ONCE: Final = 20
"""How many drafts a seat may save at once after a pause."""
CHANGES_AT_ONCE: Final = 100
"""How many changes of a game are read at once: about 5 ms on the event loop if they are decoded."""
GAME_GROWTH: Final = 32_768
"""The bytes that are reserved for each unfinished game: how much one of one round grows from its first change to its
last one."""


PLAYER_GAMES_MAX: Final = 50
"""Most games that a reference to a player finds."""
PLAYER_GAMES_MS: Final = 30 * 86_400_000
"""How long a reference finds its last games after the last arrival in one of them, or the start or end of a round."""


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
class ListPage:
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
        read: Streams.entries or Streams.stored_changes.
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


class StoredGames(Protocol):
    """Games, each with the event stream and the memos that its commits write."""

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

    async def shorten(self, record: Record, kept_ms: int) -> bool:
        """Keeps a game no longer than kept_ms from now; returns False, without effect, if it has changed since."""


class Streams(Protocol):
    """The event streams of games."""

    async def entries(self, game_id: str, first_revision: int, limit: int) -> tuple[Entry, ...]:
        """Returns at most `limit` entries of a game's stream from a revision on, in order."""

    async def stored_changes(self, game_id: str, first_revision: int, limit: int) -> tuple[StoredChange, ...]:
        """Returns at most `limit` changes of a game from a revision on, in order, as they are stored."""

    async def bounds(self, game_id: str) -> tuple[int, int]:
        """Returns the revisions of the oldest and the newest entry in a game's stream; (0, 0) if it is empty."""

    def subscribe(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        """Subscribes to a game's changes."""

    async def notify(self, game_id: str) -> None:
        """Notifies the subscribers of a game, or of a player's inbox, whose name has the same form."""


class StoredDrafts(Protocol):
    """The last draft of each game."""

    async def save(self, record: Record, draft: Draft) -> int | None:
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

    async def latest(self, game_id: str) -> Draft | None:
        """Returns the draft of a game that was saved last, maybe in an earlier turn; None if it cannot be read."""

    def subscribe(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        """Subscribes to the drafts of a game that everyone may see."""


class Lists(Protocol):
    """The lists of games (lists.py)."""

    async def index(self, record: Record) -> None:
        """Puts a game into its lists (lists.lists_of), and removes it from all others."""

    async def page(self, states: Iterable[GameState], cursor: str, limit: int, *, is_public: bool = False) -> ListPage:
        """Returns games of some states after a cursor, newest first. "" is the first cursor.

        A page has fewer games than the limit if the lists name games that have expired or changed state; the call
        repairs those entries.

        Args:
            states: The states.
            cursor: The place in the lists (lists.list_member of a game).
            limit: Most games.
            is_public: Whether to return public games only.
        """

    async def oldest_open(self, match: str, limit: int) -> tuple[Record, ...]:
        """Returns public games with a free seat and a match key (lists.match_key), oldest first."""

    async def count(self) -> dict[GameState, int]:
        """Returns how many games are listed under each state."""

    async def note_players(self, record: Record) -> None:
        """Makes the references of a game's people find it, in games of its key, for PLAYER_GAMES_MS."""

    async def games_of(self, key: str, player_ref: str) -> Sequence[str]:
        """Returns the ids of the last PLAYER_GAMES_MAX games of a key that a reference finds, newest first.

        They may be gone, or be without the person by now.
        """

    async def forget_player(self, player_ref: str) -> None:
        """Makes a reference find no game, of whatever key."""


class Names(Protocol):
    """Names that point at games, or at other short texts."""

    async def point(self, name: str, game_id: str, instead_of: str = "", *, kept_ms: int | None = None) -> str:
        """Points a name at a game, and returns the game that the name points at after that.

        A name that points at another game than `instead_of` is left as it is. Of concurrent callers all get the same
        game. A name is kept for kept_ms after the last call that set it; None: a little longer than a lobby.
        """

    async def find(self, name: str) -> str:
        """Returns the id of the game that a name points at; "" if there is none."""


class Deadlines(Protocol):
    """When games are due."""

    @property
    def servers(self) -> int:
        """How many servers a claim sends a command to, as far as that is known."""

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


class StoredPresence(Protocol):
    """When the owners of seats were seen."""

    async def report(self, game_id: str, server: str, sightings: Mapping[int, Sighting]) -> None:
        """Stores sightings until the game expires, and notifies of watches that opened or closed. No game: no effect.

        Args:
            game_id: The game.
            server: The reporting server. A watch that it reports as open is so for PRESENCE_MS.
            sightings: By seat.
        """

    async def read(self, game_id: str) -> Mapping[int, Seen]:
        """Returns when the owners of seats were seen, by seat."""

    def subscribe(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        """Subscribes to watches of a game that open or close."""


class Outbox(Protocol):
    """Games that may have ended, for the archive."""

    @property
    def servers(self) -> int:
        """How many servers a claim sends a command to, as far as that is known."""

    async def append(self, game_id: str) -> int:
        """Appends an entry that names a game, and returns its time by the store's clock."""

    async def claim(self, limit: int, claim_ms: int) -> Sequence[OutboxEntry]:
        """Claims entries that no server has claimed within the last claim_ms, new entries first.

        Args:
            limit: Most entries.
            claim_ms: How long an earlier claim lasts.
        """

    async def acknowledge(self, entry: OutboxEntry) -> None:
        """Removes an entry."""

    async def size(self) -> int:
        """Returns the number of entries."""


class ChangeLog(Protocol):
    """The change log.

    Attributes:
        kept_ms: How long it has its entries; 0: there is no log.
        parts: The number of its parts. All entries of a game are in one part.
    """

    kept_ms: int
    parts: int

    async def read(self, part: int, after: str, limit: int) -> LogPage:
        """Returns at most `limit` entries of a part after a place."""

    async def length(self) -> int:
        """Returns the number of entries."""


class Store(Protocol):
    """A store of games: its parts, and what concerns all of them.

    Every method of it and its parts may raise StoreUnavailable; reads may raise StoredFormatUnknown.

    Attributes:
        reports: Who is told of its operations and failovers.
    """

    reports: Reports
    games: StoredGames
    streams: Streams
    drafts: StoredDrafts
    lists: Lists
    names: Names
    deadlines: Deadlines
    presence: StoredPresence
    outbox: Outbox
    log: ChangeLog

    async def now_ms(self) -> int:
        """Returns the time by the store's clock, in milliseconds since 1970."""

    async def secret(self) -> bytes:
        """Returns 32 random bytes that all servers on the store share; creates them on the first call."""

    async def check_room(self, most_age: float = 0.0) -> None:
        """Raises StoreFull if the store has no room for a new game beside the growth of all unfinished ones.

        Args:
            most_age: How old the measurement may be, in seconds.
        """

    async def ping(self) -> None:
        """Returns if the store accepts writes."""

    async def close(self) -> None:
        """Releases the store's connections."""
