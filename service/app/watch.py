"""Watching games: a snapshot or a place to resume from, then every change out of the store's event stream.

All watchers of a game on this server share what is read and encoded for them: a `_Feed` reads each change once, and
viewers of one kind (a seat, or spectators) get the same bytes. A watcher holds no queue. It has a place in the history,
and takes what the feed remembers beyond it, or reads on from the store. Nobody is told what is not stored.

Waking a thousand watchers takes longer than other calls should wait, so a few are woken in each turn of the event loop,
those of different games in turn.
"""

import asyncio
import contextlib
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Generic, TypeVar

from engine.events import GameEnded, PlayerLeft
from service.app.games import Games, seat_in
from service.app.identity import SPECTATOR, Caller
from service.app.views import ChangeSight, GameSight, see_change, see_game
from service.errors import EtagMismatch, Fault, GameNotFound, HistoryUnavailable
from service.storage.base import Entry, GameStore, Loaded, Record, State

LAG: Final = 64
"""A watcher who is more changes behind gets a snapshot."""
RECENT: Final = 8
"""How many changes a feed remembers."""
WOKEN_AT_ONCE: Final = 64
"""How many watchers are woken in one turn of the event loop: some 4 ms."""
CLOSING_MS: Final = 1_000
"""How long the watchers of a stopping server wait at least before they connect again."""
CLOSING_SPREAD_MS: Final = 2
"""How much longer each of them waits than the one before: about what its return takes of another server."""

_T = TypeVar("_T")


@dataclass(slots=True, eq=False)
class Seen(Generic[_T]):
    """What all viewers of one kind see.

    Attributes:
        sight: What they see.
        data: It as bytes, kept here by whoever encodes it first.
    """

    sight: _T
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The game as it is, in place of all changes before."""

    seen: Seen[GameSight]


@dataclass(frozen=True, slots=True)
class Change:
    """The next change."""

    seen: Seen[ChangeSight]


@dataclass(frozen=True, slots=True)
class Alive:
    """Nothing has changed since this revision."""

    revision: int


@dataclass(frozen=True, slots=True)
class Closing:
    """The server stops: where to resume, and how long to wait before."""

    revision: int
    etag: str
    delay_ms: int


Update = Snapshot | Change | Alive | Closing


class _SharedChange:
    """A change that all watchers of a game get, in what each kind of viewer sees."""

    __slots__ = ("_entry", "_seen", "ends_the_game", "etag", "previous_etag", "revision", "seats_left")

    def __init__(self, entry: Entry, previous_etag: str) -> None:
        self._entry = entry
        self._seen: dict[int | None, Seen[ChangeSight]] = {}
        self.revision = entry.revision
        self.etag = entry.etag
        self.previous_etag = previous_etag
        self.seats_left = {event.seat for event in entry.events if isinstance(event, PlayerLeft)}
        self.ends_the_game = any(isinstance(event, GameEnded) for event in entry.events)

    def seen_by(self, seat: int | None) -> Seen[ChangeSight]:
        """Returns what a seat, or a spectator, sees."""
        seen = self._seen.get(seat)
        if seen is None:
            seen = self._seen[seat] = Seen(see_change(self._entry, seat))
        return seen


class _Page:
    """Changes that were read from the store together.

    Attributes:
        revision: The first one's, which watchers know already; 0 of an empty page.
        etag: The first one's.
        changes: Those after it.
    """

    __slots__ = ("changes", "etag", "revision")

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.revision, self.etag = (entries[0].revision, entries[0].etag) if entries else (0, "")
        self.changes = [_SharedChange(entry, before.etag) for before, entry in pairwise(entries)]

    @property
    def end(self) -> tuple[int, str]:
        """Revision and etag of the last entry."""
        return (self.changes[-1].revision, self.changes[-1].etag) if self.changes else (self.revision, self.etag)


class _SharedLook:
    """A game as it was loaded once for several watchers."""

    def __init__(self, loaded: Loaded) -> None:
        if loaded.record is None:
            raise GameNotFound
        self.record: Record = loaded.record
        self._now_ms = loaded.now_ms
        self._seen: dict[int | None, Seen[GameSight]] = {}

    def seen_by(self, seat: int | None) -> Seen[GameSight]:
        """Returns what a seat, or a spectator, sees."""
        seen = self._seen.get(seat)
        if seen is None:
            seen = self._seen[seat] = Seen(see_game(self.record, seat, self._now_ms))
        return seen


@dataclass(slots=True)
class _Place:
    """What a watcher was told: up to which revision, with which etag, as whom.

    Attributes:
        revision: Up to here.
        etag: Of that revision.
        caller: Who watches.
        seat: The caller's seat.
        seated: A revision at which the seat is known to be the caller's: whoever left it before was somebody else.
    """

    revision: int
    etag: str
    caller: Caller
    seat: int | None
    seated: int

    def pass_by(self, change: _SharedChange) -> None:
        """Moves behind a change. A watcher whose seat is given up goes on as a spectator."""
        self.revision, self.etag = change.revision, change.etag
        if self.seat in change.seats_left and change.revision > self.seated:
            self.caller, self.seat = SPECTATOR, None


class _Turns:
    """Wakes watchers a few at a time: futures by feed, whose feeds take turns."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[object, deque[tuple[asyncio.Future[bool], object]]] = OrderedDict()
        self._handle: asyncio.Handle | None = None

    def wake(self, feed: object, futures: "list[asyncio.Future[bool]]", result: object) -> None:
        """Resolves futures soon: to a flag, or with an exception."""
        self._waiting.setdefault(feed, deque()).extend((future, result) for future in futures)
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_soon(self._wake_some)

    async def turn(self, feed: object) -> None:
        """Waits for a turn of the caller's own."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.wake(feed, [future], True)  # noqa: FBT003 - the future's result
        await future

    def _wake_some(self) -> None:
        self._handle = None
        for _ in range(WOKEN_AT_ONCE):
            if not self._waiting:
                return
            feed, futures = self._waiting.popitem(last=False)
            _resolve(*futures.popleft())
            if futures:
                self._waiting[feed] = futures
        if self._waiting:
            self._handle = asyncio.get_running_loop().call_soon(self._wake_some)


def _resolve(future: "asyncio.Future[bool]", result: object) -> None:
    if future.done():  # its watcher is gone
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(bool(result))


class _Together(Generic[_T]):
    """A read that several watchers share: whoever comes while it is under way gets the next one, never an older answer.

    Args:
        read: The read.
    """

    def __init__(self, read: Callable[[], Awaitable[_T]]) -> None:
        self._read = read
        self._under_way: asyncio.Task[_T] | None = None
        self._next: asyncio.Task[_T] | None = None

    async def __call__(self) -> _T:
        """Returns the answer to a read that begins after this call."""
        if self._next is None:
            self._next = asyncio.create_task(self._run(self._under_way))
            self._next.add_done_callback(_note_exception)
        return await asyncio.shield(self._next)

    async def _run(self, before: "asyncio.Task[_T] | None") -> _T:
        if before is not None:
            await asyncio.wait({before})
        self._under_way, self._next = self._next, None
        return await self._read()


def _note_exception(task: "asyncio.Task[Any]") -> None:
    """Marks a task's exception as seen: its callers may all be gone."""
    if not task.cancelled():
        task.exception()


class _Feed:
    """What the watchers of one game on this server share.

    Args:
        game_id: The game.
        games: To load the game.
        store: To read its stream.
        heartbeat_seconds: The longest silence.
        turns: To wake watchers.
        stopping: Set when the server stops.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - made in one place
        self,
        game_id: str,
        games: Games,
        store: GameStore,
        heartbeat_seconds: float,
        turns: _Turns,
        stopping: asyncio.Event,
    ) -> None:
        self._game_id = game_id
        self._store = store
        self._heartbeat_seconds = heartbeat_seconds
        self._turns = turns
        self._stopping = stopping
        self._recent: deque[_SharedChange] = deque(maxlen=RECENT)
        self._head: tuple[int, str] | None = None
        """Revision and etag up to which the feed has read; None where it has to begin anew."""
        self._waiting: list[asyncio.Future[bool]] = []
        self._reads: dict[int, asyncio.Task[_Page]] = {}
        self.watchers = 0
        self.look = _Together(lambda: _looked(games, game_id))
        """Returns the game as it is (_SharedLook)."""
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._is_closed = False

    def start(self) -> None:
        """Begins to follow the game."""
        self._tasks = (asyncio.create_task(self._follow()), asyncio.create_task(self._wake_at_the_end()))

    async def close(self) -> None:
        """Ends: the last watcher is gone."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)

    def adopt(self, record: Record) -> None:
        """Begins at a game as it was loaded, unless the feed knows where it is."""
        if self._head is None:
            self._recent.clear()
            self._head = record.game.revision, record.etag

    async def _follow(self) -> None:
        """Reads what changes, and wakes watchers: for changes, or for a sign of life.

        A cancelled task is not enough to end this: redis-py may swallow the cancellation of a read.
        """
        async with self._store.changes(self._game_id) as subscription:
            while not self._is_closed:
                has_changed = False
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._heartbeat_seconds):
                        await subscription.wait()
                        has_changed = True
                try:
                    is_news = await self._read_on()
                except Fault as error:
                    self._wake(error)
                else:
                    if is_news or not has_changed:
                        self._wake(is_news)

    async def _read_on(self) -> bool:
        """Reads the changes after the head; whether there is something that watchers have to look at.

        Where the head is not in the stream any more, the feed forgets all, and each watcher finds out by its own place.
        """
        if self._head is None:
            return True
        head = self._head
        page = await self._page(head[0])
        if self._head != head:
            return True
        if (page.revision, page.etag) != head or len(page.changes) > LAG:
            self._recent.clear()
            self._head = None
            return True
        self._recent.extend(page.changes)
        self._head = page.end
        return bool(page.changes)

    async def _page(self, revision: int) -> _Page:
        return _Page(await self._store.events(self._game_id, revision, LAG + 2))

    async def _wake_at_the_end(self) -> None:
        await self._stopping.wait()
        self._wake(True)  # noqa: FBT003 - the futures' result

    def _wake(self, result: object) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._turns.wake(self, waiting, result)

    async def wait(self) -> bool:
        """Waits until there may be something to tell; False when a sign of life is due. Raises what reading raises."""
        if self._stopping.is_set():
            return True
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return await future

    async def turn(self) -> None:
        """Waits for a turn, where many watchers go on at the same time."""
        await self._turns.turn(self)

    def recent_after(self, place: _Place) -> list[_SharedChange] | None:
        """Returns the changes after a place that the feed remembers; None if it does not remember back to there."""
        if self._head is None:
            return None
        if place.revision >= self._head[0]:
            return [] if self._head == (place.revision, place.etag) or place.revision > self._head[0] else None
        found = [change for change in self._recent if change.revision > place.revision]
        is_next = bool(found) and found[0].revision == place.revision + 1 and found[0].previous_etag == place.etag
        return found if is_next else None

    def etag_at(self, revision: int) -> str | None:
        """Returns the etag of a revision, if the feed remembers it."""
        return next((change.etag for change in self._recent if change.revision == revision), None)

    async def read(self, revision: int) -> _Page:
        """Returns the stored changes from a revision on: watchers at the same place read them once."""
        read = self._reads.get(revision)
        if read is None:
            read = self._reads[revision] = asyncio.create_task(self._page(revision))
            read.add_done_callback(lambda _: self._reads.pop(revision))
            read.add_done_callback(_note_exception)
        page = await asyncio.shield(read)
        await self.turn()
        return page

    async def bounds(self) -> tuple[int, int]:
        """Returns the oldest and the newest revision in the stream."""
        return await self._store.bounds(self._game_id)


async def _looked(games: Games, game_id: str) -> _SharedLook:
    return _SharedLook(await games.load(game_id))


class Watch:
    """Watches games on a store.

    Args:
        games: To load games.
        store: To read their streams.
        heartbeat_seconds: The longest silence.
        stopping: Set when the server stops.
    """

    def __init__(self, games: Games, store: GameStore, heartbeat_seconds: float, stopping: asyncio.Event) -> None:
        self._games = games
        self._store = store
        self._heartbeat_seconds = heartbeat_seconds
        self._stopping = stopping
        self._turns = _Turns()
        self._feeds: dict[str, _Feed] = {}
        self._closed = 0

    async def watch(  # noqa: C901 - the whole way of a watcher
        self, game_id: str, caller: Caller, from_revision: int, etag: str
    ) -> AsyncGenerator[Update, None]:
        """Yields a game's updates after a revision; 0 begins with a snapshot. Ends with the game, or the server."""
        async with self._fed(game_id) as feed:
            look = await feed.look()
            seat = seat_in(look.record, caller)
            await feed.turn()
            feed.adopt(look.record)
            revision = look.record.game.revision
            place = _Place(revision, look.record.etag, caller, seat, revision)
            if from_revision:
                await self._resume(feed, look.record, place, from_revision, etag)
            else:
                yield Snapshot(look.seen_by(seat))
            is_live, is_over = not from_revision, _is_last(look.record, place)
            while True:
                changes = await self._changes(feed, place, revision, is_live=is_live)
                if changes is None:
                    look = await self._look_again(feed, place)
                    is_over = _is_last(look.record, place)
                    yield Snapshot(look.seen_by(place.seat))
                    continue
                for change in changes[:LAG]:
                    seen = change.seen_by(place.seat)
                    place.pass_by(change)
                    is_over = is_over or change.ends_the_game
                    yield Change(seen)
                if len(changes) > LAG:
                    continue
                if is_over:
                    return
                if from_revision and not is_live and not changes:
                    yield Alive(place.revision)  # so that who resumes knows that the stream is there
                is_live = True
                if changes:
                    continue
                if self._stopping.is_set():
                    yield Closing(place.revision, place.etag, self._next_delay_ms())
                    return
                if not await feed.wait():
                    yield Alive(place.revision)

    @contextlib.asynccontextmanager
    async def _fed(self, game_id: str) -> AsyncIterator[_Feed]:
        """Yields the feed of a game, which lasts as long as somebody watches the game."""
        feed = self._feeds.get(game_id)
        if feed is None:
            feed = self._feeds[game_id] = _Feed(
                game_id, self._games, self._store, self._heartbeat_seconds, self._turns, self._stopping
            )
            feed.start()
        feed.watchers += 1
        try:
            yield feed
        finally:
            feed.watchers -= 1
            if not feed.watchers:
                del self._feeds[game_id]  # first: a watcher who comes now needs another one
                await feed.close()

    def _next_delay_ms(self) -> int:
        """Returns how long the next watcher of a stopping server waits, so that they do not come back all at once."""
        self._closed += 1
        return CLOSING_MS + self._closed * CLOSING_SPREAD_MS

    async def _resume(self, feed: _Feed, record: Record, place: _Place, revision: int, etag: str) -> None:
        """Moves a place to where a caller comes back, if the stream has it and its lineage is the caller's."""
        found = record.etag if revision == record.game.revision else feed.etag_at(revision)
        if found is None:
            page = await feed.read(revision)
            if page.revision != revision:
                raise HistoryUnavailable(*await feed.bounds())
            found = page.etag
        if etag not in {"", found}:
            raise EtagMismatch(record.game.revision)
        place.revision, place.etag = revision, found

    async def _changes(self, feed: _Feed, place: _Place, known: int, *, is_live: bool) -> list[_SharedChange] | None:
        """Returns the changes after a place, at most one more than LAG; None for a live watcher too far behind.

        A resuming watcher gets every change, and is refused if they are not kept.

        Args:
            feed: The game's.
            place: The watcher's.
            known: A revision that the game has had.
            is_live: Whether the watcher has been told everything before.
        """
        recent = feed.recent_after(place)
        if recent or (recent is not None and place.revision >= known and not self._stopping.is_set()):
            return recent
        page = await feed.read(place.revision)
        if page.revision != place.revision:
            oldest, newest = await feed.bounds()
            if not newest:
                raise GameNotFound
            if is_live and place.revision < oldest:
                return None
            raise HistoryUnavailable(oldest, newest)
        if page.etag != place.etag:
            raise EtagMismatch(page.end[0])
        return None if is_live and len(page.changes) > LAG else page.changes

    async def _look_again(self, feed: _Feed, place: _Place) -> _SharedLook:
        """Moves a watcher who fell behind to the game as it is; one whose token is void by now becomes a spectator."""
        look = await feed.look()
        try:
            place.seat = seat_in(look.record, place.caller)
        except GameNotFound:
            place.seat = None
        await feed.turn()
        feed.adopt(look.record)
        place.revision = place.seated = look.record.game.revision
        place.etag = look.record.etag
        return look


def _is_last(record: Record, place: _Place) -> bool:
    """Whether nothing can follow a place: the game has ended there."""
    return record.state is State.FINISHED and record.game.revision == place.revision
