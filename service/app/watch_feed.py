"""Feeds: everything that the watchers of one game on this server share.

A feed reads each change once from the store, and all viewers of one kind (a seat, or spectators) share one view and its
bytes. Feeds report only stored changes.

Waking a thousand watchers would block other calls for too long, so a WakeQueue wakes a few in each iteration of the
event loop, taking the feeds in turn.
"""

import asyncio
import contextlib
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final, Generic, NoReturn, TypeVar

from engine.events import Event, GameAborted, GameEnded, RematchCreated, RoundEnded, TurnStarted
from engine.game import Playing
from engine.replay import advance
from engine.room_settings import DraftVisibility
from engine.unions import Draft, RoundStart
from service.app.games import Games
from service.app.identity import Caller, revoked_by
from service.app.views import ChangeView, GameSnapshotView, SeatPresence, change_view, snapshot_view
from service.errors import Fault, GameNotFound, StoreUnavailable
from service.model.change import Entry
from service.model.record import Record
from service.storage.lists import listing_after
from service.storage.store import Store

LAG: Final = 64
"""A live watcher who is more changes behind gets a snapshot."""
RECENT: Final = 8
"""How many changes a feed keeps."""
WOKEN_AT_ONCE: Final = 64
"""How many watchers are woken in one iteration of the event loop, in about 4 ms."""

_T = TypeVar("_T")
Presences = Mapping[int, SeatPresence]
"""The presence of a game's players, by seat."""


@dataclass(slots=True, eq=False)
class SharedView(Generic[_T]):
    """A view that all viewers of one kind share.

    Attributes:
        view: The view.
        encoded: Its bytes by the form of the update, each set by the first viewer who encodes it.
    """

    view: _T
    encoded: dict[Hashable, bytes] = field(default_factory=dict)


class SharedGame:
    """A game for several watchers, with a view for each kind of viewer.

    Args:
        record: The game.
        now_ms: The store's time of its views.
        presence: The presence of its players, if that is known.
        draft: The last draft, if it is known.
    """

    def __init__(self, record: Record, now_ms: int, presence: Presences | None, draft: Draft | None = None) -> None:
        self.record = record
        self.presence = presence
        self._now_ms = now_ms
        self._draft = draft
        self.turn_revision = 0
        """The revision of the turn in progress; 0 if there is none."""
        if isinstance(record.game.phase, Playing):
            self.turn_revision = record.game.phase.round.turn.revision
        self.draft_number = draft.number if draft and draft.turn_revision == self.turn_revision else 0
        """The number of that turn's draft; 0 if there is none."""
        self._views: dict[int | None, SharedView[GameSnapshotView]] = {}

    def view_for(self, viewer: int | None) -> SharedView[GameSnapshotView]:
        """Returns a viewer's view."""
        view = self._views.get(viewer)
        if view is None:
            view = self._views[viewer] = SharedView(
                snapshot_view(self.record, viewer, self._now_ms, self._draft, self.presence)
            )
        return view


class SharedChange:
    """A change that all watchers of a game get, with a view for each kind of viewer."""

    __slots__ = (
        "_after",
        "_entry",
        "_views",
        "announces_rematch",
        "ends_the_game",
        "etag",
        "notified_at",
        "previous_etag",
        "revision",
        "revoked",
        "starts_a_round",
        "turn_revision",
    )

    def __init__(self, entry: Entry, previous_etag: str) -> None:
        self._entry = entry
        self._views: dict[int | None, SharedView[ChangeView]] = {}
        self._after: SharedGame | None = None
        self.notified_at: float | None = None
        """When this server was notified of the change (time.perf_counter); None if it was read otherwise."""
        self.revision = entry.revision
        self.etag = entry.etag
        self.previous_etag = previous_etag
        self.revoked = revoked_by(entry.events)
        self.starts_a_round = any(isinstance(event, RoundStart) for event in entry.events)
        self.ends_the_game = any(isinstance(event, GameEnded | GameAborted) for event in entry.events)
        self.announces_rematch = any(isinstance(event, RematchCreated) for event in entry.events)
        turns = [revision for event in entry.events if (revision := _next_turn(event)) is not None]
        self.turn_revision = turns[-1] if turns else None
        """The revision of the turn that starts with this change; 0 if only a turn ends; None if none does."""

    def view_for(self, viewer: int | None) -> SharedView[ChangeView]:
        """Returns a viewer's view."""
        view = self._views.get(viewer)
        if view is None:
            view = self._views[viewer] = SharedView(change_view(self._entry, viewer))
        return view

    def after(self, before: Record, presence: Presences | None) -> SharedGame:
        """Returns the game after the change, as of the change's time; its tokens are those before the change.

        All watchers get the presence that the first one passes.
        """
        if self._after is None:
            entry = self._entry
            game = advance(before.game, entry.events)
            listing = listing_after(before.listing, entry.events)
            after = replace(before, game=game, etag=entry.etag, updated_ms=entry.time_ms, listing=listing)
            self._after = SharedGame(after, entry.time_ms, presence)
        return self._after


def _next_turn(event: Event) -> int | None:
    """Returns the revision of the turn that an event starts; 0 if it ends the last one; None if it does neither."""
    match event:
        case TurnStarted(turn):
            return turn.revision
        case RoundEnded() | GameEnded() | GameAborted():
            return 0
        case _:
            return None


class ChangePage:
    """Changes that were read from the store together.

    Attributes:
        revision: The revision of the first entry, which watchers know already; 0 if there is none.
        etag: The first entry's etag.
        changes: The changes after it.
    """

    __slots__ = ("changes", "etag", "revision")

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.revision, self.etag = (entries[0].revision, entries[0].etag) if entries else (0, "")
        self.changes = [SharedChange(entry, before.etag) for before, entry in pairwise(entries)]

    @property
    def end(self) -> tuple[int, str]:
        """Revision and etag of the last entry."""
        return (self.changes[-1].revision, self.changes[-1].etag) if self.changes else (self.revision, self.etag)


class WakeQueue:
    """Resolves the futures of waiting watchers, a few at a time, taking the feeds in turn."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[object, deque[tuple[asyncio.Future[bool], object]]] = OrderedDict()
        self._handle: asyncio.Handle | None = None

    def wake(self, feed: object, futures: "list[asyncio.Future[bool]]", result: object) -> None:
        """Resolves futures soon: with a boolean, or with an exception."""
        self._waiting.setdefault(feed, deque()).extend((future, result) for future in futures)
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_soon(self._wake_some)

    async def turn(self, feed: object) -> None:
        """Returns when it is the caller's turn."""
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


class CoalescedRead(Generic[_T]):
    """A read that concurrent callers share. A caller never gets the result of a read that began before its call.

    Args:
        read: The read.
    """

    def __init__(self, read: Callable[[], Awaitable[_T]]) -> None:
        self._read = read
        self._running: asyncio.Task[_T] | None = None
        self._next: asyncio.Task[_T] | None = None

    async def __call__(self) -> _T:
        """Returns the result of a read that begins after this call."""
        if self._next is None:
            self._next = asyncio.create_task(self._run_after(self._running))
            self._next.add_done_callback(_retrieve_exception)
        return await asyncio.shield(self._next)

    async def _run_after(self, before: "asyncio.Task[_T] | None") -> _T:
        if before is not None:
            await asyncio.wait({before})
        self._running, self._next = self._next, None
        return await self._read()

    def close(self) -> None:
        """Drops the function and its last result. There are no more calls."""
        self._read, self._running = _closed, None


async def _closed() -> NoReturn:
    raise AssertionError("no watcher is left")


def _in_background(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Starts a task in a context of its own, because what it reads is not for one watcher's trace."""
    return asyncio.create_task(work, context=Context())


def _retrieve_exception(task: "asyncio.Task[Any]") -> None:
    """Retrieves a task's exception, so that asyncio does not log it if all callers are gone."""
    if not task.cancelled():
        task.exception()


class Feed:
    """Follows one game for all its watchers with the same key on this server.

    Args:
        game_id: The game.
        key: The name of the watchers' key; for another than the game's, the game does not exist.
        games: Loads the game.
        store: Has the game's stream.
        heartbeat_seconds: The longest time between two wake-ups of a watcher.
        wake_queue: Wakes watchers.
        stopping: Set when the server stops.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - made in one place
        self,
        game_id: str,
        key: str,
        games: Games,
        store: Store,
        heartbeat_seconds: float,
        wake_queue: WakeQueue,
        stopping: asyncio.Event,
    ) -> None:
        self._game_id = game_id
        self._key = key
        self._store = store
        self._heartbeat_seconds = heartbeat_seconds
        self._wake_queue = wake_queue
        self._stopping = stopping
        self._recent: deque[SharedChange] = deque(maxlen=RECENT)
        self._head: tuple[int, str] | None = None
        """Revision and etag up to which the feed has read; None if it must start again from a snapshot."""
        self._was_notified = False
        """Whether a change was notified while the feed had no head: it may follow the snapshot at which it starts."""
        self._waiting: list[asyncio.Future[bool]] = []
        self._reads: dict[int, asyncio.Task[ChangePage]] = {}
        self.watchers = 0
        self._games = games
        self.presence: Presences | None = None
        """The presence of the players as it was read last; None if it is unknown."""
        self.snapshot = CoalescedRead(self._snapshot)
        """Returns the current game. Raises GameNotFound."""
        self.draft: SharedView[Draft] | None = None
        """The last draft of the game, if everyone may see it. It may be of an earlier turn."""
        self._tasks: list[asyncio.Task[None]] = []
        self._follows_drafts = False
        self._is_closed = False

    def start(self) -> None:
        """Starts to follow the game."""
        work = (self._follow(), self._follow_presence(), self._wake_at_the_end())
        self._tasks += map(_in_background, work)

    async def close(self) -> None:
        """Stops; the last watcher is gone. Drops what refers to the feed: garbage may stay for long (gc_tuning)."""
        self._is_closed = True
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        self.snapshot.close()

    def start_at(self, record: Record) -> None:
        """Sets the head to a loaded game, unless the feed has a head. Follows the game's drafts if all may see them."""
        if self._head is None:
            self._recent.clear()
            self._head = record.game.revision, record.etag
        if record.game.settings.draft_visibility is DraftVisibility.EVERYONE and not self._follows_drafts:
            self._follows_drafts = True
            self._tasks.append(_in_background(self._follow_drafts()))

    async def _follow(self) -> None:
        """Reads changes, and wakes watchers for them and for heartbeats.

        The loop checks a flag because cancellation may be lost: redis-py may swallow it in a read.
        """
        async with self._store.streams.subscribe(self._game_id) as subscription:
            while not self._is_closed:
                notified_at = None
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._heartbeat_seconds):
                        notified_at = await subscription.wait()
                try:
                    is_news = await self._read_on(notified_at)
                except Fault as error:
                    self._wake(error)
                else:
                    if is_news or notified_at is None:
                        self._wake(is_news)

    async def _follow_presence(self) -> None:
        """Reads the presence of players, and wakes watchers if it has changed.

        It reads after a notification; while someone is connected also with every heartbeat, because a server that dies
        does not notify.
        """
        async with self._store.presence.subscribe(self._game_id) as subscription:
            while not self._is_closed:
                is_due = any(seat.is_connected for seat in (self.presence or {}).values())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._heartbeat_seconds):
                        await subscription.wait()
                        is_due = True
                if is_due:
                    before = self.presence
                    with contextlib.suppress(Fault):
                        await self.snapshot()
                    if changed_presence(before, self.presence):
                        self._wake(True)  # noqa: FBT003 - the futures' result

    async def _snapshot(self) -> SharedGame:
        loaded, presence = await self._games.load_with_presence(self._game_id, Caller(key=self._key))
        if presence is not None:
            self.presence = presence
        if loaded.record is None:
            raise GameNotFound
        is_playing = isinstance(loaded.record.game.phase, Playing)
        draft = await self._store.drafts.latest(self._game_id) if is_playing else None
        return SharedGame(loaded.record, loaded.now_ms, self.presence, draft)

    async def _follow_drafts(self) -> None:
        """Reads the last draft whenever there is a new one, and wakes watchers. A failure waits for the next draft."""
        async with self._store.drafts.subscribe(self._game_id) as subscription:
            while not self._is_closed:
                with contextlib.suppress(StoreUnavailable):
                    draft = await self._store.drafts.latest(self._game_id)
                    if draft and (self.draft is None or draft != self.draft.view):
                        self.draft = SharedView(draft)
                        self._wake(True)  # noqa: FBT003 - the futures' result
                await subscription.wait()

    async def _read_on(self, notified_at: float | None = None) -> bool:
        """Reads the changes after the head; returns whether watchers must check for changes.

        If the stream no longer has the head, the feed drops its state, and each watcher checks its own position.
        """
        if self._head is None:
            self._was_notified = True
            return True
        head = self._head
        page = await self._page(head[0])
        if self._head != head:
            return True
        if (page.revision, page.etag) != head or len(page.changes) > LAG:
            self._recent.clear()
            self._head = None
            return True
        for change in page.changes:
            change.notified_at = notified_at
        self._recent.extend(page.changes)
        self._head = page.end
        return bool(page.changes)

    async def _page(self, revision: int) -> ChangePage:
        return ChangePage(await self._store.streams.entries(self._game_id, revision, LAG + 2))

    async def _wake_at_the_end(self) -> None:
        await self._stopping.wait()
        self._wake(True)  # noqa: FBT003 - the futures' result

    def _wake(self, result: object) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._wake_queue.wake(self, waiting, result)

    async def wait(self) -> bool:
        """Returns True when there may be changes or a draft, False when a heartbeat is due.

        Raises the errors of reading.
        """
        if self._stopping.is_set():
            return True
        if self._was_notified and self._head is not None:
            self._was_notified = False
            if await self._read_on():
                self._wake(True)  # noqa: FBT003 - the futures' result
                return True
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return await future

    async def turn(self) -> None:
        """Returns when it is the caller's turn, if many watchers continue at the same time."""
        await self._wake_queue.turn(self)

    def recent_after(self, revision: int, etag: str) -> list[SharedChange] | None:
        """Returns the kept changes after a revision; None if the feed does not reach back to it."""
        if self._head is None:
            return None
        if revision >= self._head[0]:
            return [] if self._head == (revision, etag) or revision > self._head[0] else None
        found = [change for change in self._recent if change.revision > revision]
        is_next = bool(found) and found[0].revision == revision + 1 and found[0].previous_etag == etag
        return found if is_next else None

    def etag_at(self, revision: int) -> str | None:
        """Returns the etag of a revision, if the feed keeps its change."""
        return next((change.etag for change in self._recent if change.revision == revision), None)

    async def read(self, revision: int) -> ChangePage:
        """Returns the stored changes from a revision on. Watchers at the same revision share one read."""
        read = self._reads.get(revision)
        if read is None:
            read = self._reads[revision] = asyncio.create_task(self._page(revision))
            read.add_done_callback(lambda _: self._reads.pop(revision))
            read.add_done_callback(_retrieve_exception)
        page = await asyncio.shield(read)
        await self.turn()
        return page

    async def bounds(self) -> tuple[int, int]:
        """Returns the oldest and the newest revision in the stream."""
        return await self._store.streams.bounds(self._game_id)


def changed_presence(before: Presences | None, now: Presences | None) -> list[SeatPresence]:
    """Returns the players who have connected or gone away, or whose presence was unknown before."""
    known = before or {}
    return [
        seat
        for seat in (now or {}).values()
        if seat.seat not in known or known[seat.seat].is_connected != seat.is_connected
    ]
