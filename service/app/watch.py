"""Watching games: a snapshot or a revision to resume from, then every change from the store's event stream.

A watcher has no queue. It has a position in the history, and gets later changes from its game's feed (watch_feed.py),
or from the store if the feed no longer keeps them.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Final

from engine.drafts import Draft
from service.app.games import Games
from service.app.identity import SPECTATOR, Caller, seat_in
from service.app.views import ChangeView, GameSnapshotView
from service.app.watch_feed import LAG, Feed, SharedChange, SharedSnapshot, SharedView, WakeQueue
from service.errors import EtagMismatch, GameNotFound, HistoryUnavailable
from service.storage.base import GameState, GameStore, Record

CLOSING_MS: Final = 1_000
"""The shortest wait before a watcher of a stopping server reconnects."""
CLOSING_SPREAD_MS: Final = 2
"""How much longer each watcher waits than the one before: about what its return costs another server."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The current game, in place of all earlier changes."""

    shared: SharedView[GameSnapshotView]


@dataclass(frozen=True, slots=True)
class Change:
    """The next change."""

    shared: SharedView[ChangeView]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Nothing has changed since this revision."""

    revision: int


@dataclass(frozen=True, slots=True)
class Closing:
    """The server stops: the revision to resume from, and how long to wait before."""

    revision: int
    etag: str
    delay_ms: int


@dataclass(frozen=True, slots=True)
class LiveDraft:
    """The latest draft of the turn in progress. Others before it may be missing."""

    shared: SharedView[Draft]


Update = Snapshot | Change | Heartbeat | Closing | LiveDraft


@dataclass(slots=True)
class _Position:
    """A watcher's position in the history, and its seat.

    Attributes:
        revision: The last revision that the watcher got.
        etag: That revision's etag.
        caller: The watcher.
        seat: The caller's seat; None for a spectator.
        seated: A revision at which the seat was the caller's. A player who left the seat before was another one.
        turn_revision: The revision of the turn in progress; 0 if there is none.
        draft_number: The number of the last draft that the watcher got of this turn.
    """

    revision: int
    etag: str
    caller: Caller
    seat: int | None
    seated: int
    turn_revision: int
    draft_number: int = 0

    def advance(self, change: SharedChange) -> None:
        """Moves past a change. A watcher whose seat is given up becomes a spectator."""
        self.revision, self.etag = change.revision, change.etag
        if change.turn_revision is not None:
            self.turn_revision, self.draft_number = change.turn_revision, 0
        if self.seat in change.seats_left and change.revision > self.seated:
            self.caller, self.seat = SPECTATOR, None


class Watch:
    """Watches games in a store.

    Args:
        games: Loads games.
        store: Has their streams.
        heartbeat_seconds: The longest time without an update.
        stopping: Set when the server stops.
    """

    def __init__(self, games: Games, store: GameStore, heartbeat_seconds: float, stopping: asyncio.Event) -> None:
        self._games = games
        self._store = store
        self._heartbeat_seconds = heartbeat_seconds
        self._stopping = stopping
        self._wake_queue = WakeQueue()
        self._feeds: dict[str, Feed] = {}
        self._closed = 0

    async def watch(  # noqa: C901 - the whole life of a watcher
        self, game_id: str, caller: Caller, after_revision: int, etag: str
    ) -> AsyncGenerator[Update, None]:
        """Yields a game's updates after a revision; 0 begins with a snapshot. Ends with the game or the server."""
        async with self._feed(game_id) as feed:
            snapshot = await feed.snapshot()
            seat = seat_in(snapshot.record, caller)
            await feed.turn()
            feed.start_at(snapshot.record)
            revision = snapshot.record.game.revision
            position = _Position(revision, snapshot.record.etag, caller, seat, revision, snapshot.turn_revision)
            if after_revision:
                await self._resume(feed, snapshot.record, position, after_revision, etag)
            else:
                position.draft_number = snapshot.draft_number
                yield Snapshot(snapshot.view_for(seat))
            is_live, is_over = not after_revision, _is_last(snapshot.record, position)
            while True:
                changes = await self._changes(feed, position, revision, is_live=is_live)
                if changes is None:
                    snapshot = await self._skip_ahead(feed, position)
                    is_over = _is_last(snapshot.record, position)
                    yield Snapshot(snapshot.view_for(position.seat))
                    continue
                for change in changes[:LAG]:
                    shared = change.view_for(position.seat)
                    position.advance(change)
                    is_over = is_over or change.ends_the_game
                    yield Change(shared)
                if len(changes) > LAG:
                    continue
                if is_over:
                    return
                if after_revision and not is_live and not changes:
                    yield Heartbeat(position.revision)  # confirms to a resuming watcher that the stream works
                is_live = True
                if changes:
                    continue
                if self._stopping.is_set():
                    yield Closing(position.revision, position.etag, self._next_delay_ms())
                    return
                draft = _next_draft(feed, position)
                if draft is not None:
                    position.draft_number = draft.view.number
                    yield LiveDraft(draft)
                    continue
                if not await feed.wait():
                    yield Heartbeat(position.revision)

    @contextlib.asynccontextmanager
    async def _feed(self, game_id: str) -> AsyncIterator[Feed]:
        """Yields the feed of a game, which exists as long as the game has watchers."""
        feed = self._feeds.get(game_id)
        if feed is None:
            feed = self._feeds[game_id] = Feed(
                game_id, self._games, self._store, self._heartbeat_seconds, self._wake_queue, self._stopping
            )
            feed.start()
        feed.watchers += 1
        try:
            yield feed
        finally:
            feed.watchers -= 1
            if not feed.watchers:
                del self._feeds[game_id]  # before closing: a new watcher needs a new feed
                await feed.close()

    def _next_delay_ms(self) -> int:
        """Returns how long the next watcher of a stopping server waits, so that watchers do not all return at once."""
        self._closed += 1
        return CLOSING_MS + self._closed * CLOSING_SPREAD_MS

    async def _resume(self, feed: Feed, record: Record, position: _Position, revision: int, etag: str) -> None:
        """Moves a position to the revision that a caller resumes from. Raises HistoryUnavailable, EtagMismatch."""
        found = record.etag if revision == record.game.revision else feed.etag_at(revision)
        if found is None:
            page = await feed.read(revision)
            if page.revision != revision:
                raise HistoryUnavailable(*await feed.bounds())
            found = page.etag
        if etag not in {"", found}:
            raise EtagMismatch(record.game.revision)
        position.revision, position.etag = revision, found

    async def _changes(
        self, feed: Feed, position: _Position, known: int, *, is_live: bool
    ) -> list[SharedChange] | None:
        """Returns the changes after a position, at most LAG + 1; None if a live watcher is too far behind.

        A resuming watcher gets every change. Raises HistoryUnavailable if the stream no longer has them.

        Args:
            feed: The game's feed.
            position: The watcher's position.
            known: A revision that the game has had.
            is_live: Whether the watcher has every change before its position.
        """
        recent = feed.recent_after(position.revision, position.etag)
        if recent or (recent is not None and position.revision >= known and not self._stopping.is_set()):
            return recent
        page = await feed.read(position.revision)
        if page.revision != position.revision:
            oldest, newest = await feed.bounds()
            if not newest:
                raise GameNotFound
            if is_live and position.revision < oldest:
                return None
            raise HistoryUnavailable(oldest, newest)
        if page.etag != position.etag:
            raise EtagMismatch(page.end[0])
        return None if is_live and len(page.changes) > LAG else page.changes

    async def _skip_ahead(self, feed: Feed, position: _Position) -> SharedSnapshot:
        """Moves a watcher who fell behind to the current game. If its token is revoked, it becomes a spectator."""
        snapshot = await feed.snapshot()
        try:
            position.seat = seat_in(snapshot.record, position.caller)
        except GameNotFound:
            position.seat = None
        await feed.turn()
        feed.start_at(snapshot.record)
        position.revision = position.seated = snapshot.record.game.revision
        position.etag = snapshot.record.etag
        position.turn_revision, position.draft_number = snapshot.turn_revision, snapshot.draft_number
        return snapshot


def _next_draft(feed: Feed, position: _Position) -> SharedView[Draft] | None:
    """Returns the draft of the turn in progress if the watcher has not got it yet."""
    draft = feed.draft
    if draft is None or draft.view.turn_revision != position.turn_revision:
        return None
    return draft if draft.view.number > position.draft_number else None


def _is_last(record: Record, position: _Position) -> bool:
    """Returns whether the game has ended at a position."""
    return record.state is GameState.FINISHED and record.game.revision == position.revision
