"""Watching games: a snapshot or a revision to resume from, then every change from the store's event stream.

A watcher has no queue. It has a position in the history, and gets later changes from its game's feed (watch_feed.py),
or from the store if the feed no longer keeps them.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass
from enum import Flag
from typing import Final

from engine.drafts import Draft
from engine.ruleset import Spectators
from service.app.games import Games
from service.app.identity import SPECTATOR, Caller, token_in
from service.app.views import ChangeView, GameSnapshotView, SeatPresence
from service.app.watch_feed import (
    LAG,
    Feed,
    Presences,
    SharedChange,
    SharedGame,
    SharedView,
    WakeQueue,
    changed_presence,
)
from service.errors import EtagMismatch, GameNotFound, HistoryUnavailable, SpectatorsNotAllowed
from service.storage.base import GameStore, Record

CLOSING_MS: Final = 1_000
"""The shortest wait before a watcher of a stopping server reconnects."""
CLOSING_SPREAD_MS: Final = 2
"""How much longer each watcher waits than the one before: about what its return costs another server."""


class Content(Flag):
    """What a watcher gets after each change."""

    CHANGES = 1
    GAMES = 2
    BOTH = CHANGES | GAMES


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The current game, in place of all earlier changes."""

    shared: SharedView[GameSnapshotView]


@dataclass(frozen=True, slots=True)
class Change:
    """The next change."""

    shared: SharedView[ChangeView]


@dataclass(frozen=True, slots=True)
class GameAfter:
    """The game after the next change."""

    shared: SharedView[GameSnapshotView]


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


@dataclass(frozen=True, slots=True)
class PresenceChange:
    """The owner of a seat has connected or gone away."""

    seat: SeatPresence


Update = Snapshot | Change | GameAfter | LiveDraft | PresenceChange | Heartbeat | Closing


@dataclass(slots=True)
class _Position:
    """A watcher's position in the history, and what it may see.

    Attributes:
        revision: The last revision that the watcher got.
        etag: That revision's etag.
        caller: The watcher.
        token: The seat of the caller's token, HOST for the host token; None for a spectator.
        content: What the watcher gets after each change.
        loaded: A game that was loaded. The token was valid in it; whoever lost it before was another player.
        spectators: The game's option.
        has_started: Whether a round of the game has started.
        turn_revision: The revision of the turn in progress; 0 if there is none.
        draft_number: The number of the last draft that the watcher got of this turn.
        record: The game at this position, for a watcher of games; None before a resuming watcher reaches `loaded`.
        presence: The presence of the players as the watcher knows it; None if it knows none.
    """

    revision: int
    etag: str
    caller: Caller
    token: int | None
    content: Content
    loaded: SharedGame
    spectators: Spectators
    has_started: bool
    turn_revision: int
    draft_number: int
    record: Record | None
    presence: Presences | None

    @classmethod
    def at(cls, loaded: SharedGame, caller: Caller, content: Content) -> "_Position":
        """Returns the position of a loaded game.

        Raises GameNotFound for a token of another game, SpectatorsNotAllowed.
        """
        record = loaded.record
        position = cls(
            revision=record.game.revision,
            etag=record.etag,
            caller=caller,
            token=token_in(record, caller),
            content=content,
            loaded=loaded,
            spectators=record.game.ruleset.spectators,
            has_started=record.game.round is not None,
            turn_revision=loaded.turn_revision,
            draft_number=loaded.draft_number,
            record=record,
            presence=loaded.presence,
        )
        position._check_allowed()
        return position

    @property
    def seat(self) -> int | None:
        """The seat whose view the watcher gets; None for a spectator's."""
        return self.token or None

    def _check_allowed(self) -> None:
        """Raises SpectatorsNotAllowed if the watcher may not see the game."""
        if self.token is None and self.has_started and self.spectators is Spectators.OFF:
            raise SpectatorsNotAllowed

    def skip_to(self, loaded: SharedGame) -> None:
        """Moves to a loaded game. If the caller's token is revoked, the watcher becomes a spectator.

        Raises SpectatorsNotAllowed.
        """
        self.loaded, self.record = loaded, loaded.record
        self.revision, self.etag = loaded.record.game.revision, loaded.record.etag
        self.turn_revision, self.draft_number = loaded.turn_revision, loaded.draft_number
        self.presence = loaded.presence
        self.has_started = loaded.record.game.round is not None
        try:
            self.token = token_in(loaded.record, self.caller)
        except GameNotFound:
            self.token = None
        self._check_allowed()

    def go_back(self, revision: int, etag: str) -> None:
        """Moves to the revision from which a watcher resumes."""
        if revision != self.revision:
            self.record = None
        self.revision, self.etag = revision, etag
        self.draft_number, self.presence = 0, None

    def advance(self, change: SharedChange, presence: Presences | None) -> Iterator[Update]:
        """Moves past a change and yields its updates. A watcher whose token is revoked becomes a spectator.

        Raises SpectatorsNotAllowed.

        Args:
            change: The next change.
            presence: The presence of the players, for the game after the change.
        """
        view = change.view_for(self.seat)
        self.revision, self.etag = change.revision, change.etag
        if change.turn_revision is not None:
            self.turn_revision, self.draft_number = change.turn_revision, 0
        if self.token in change.revoked and change.revision > self.loaded.record.game.revision:
            self.caller, self.token = SPECTATOR, None
        self.has_started = self.has_started or change.starts_a_round
        self._check_allowed()
        if Content.CHANGES in self.content:
            yield Change(view)
        if Content.GAMES in self.content:
            after = self._after(change, presence)
            if after is not None:
                self.record, self.presence, self.draft_number = after.record, after.presence, after.draft_number
                yield GameAfter(after.view_for(self.seat))

    def see_presence(self, presence: Presences | None) -> list[PresenceChange]:
        """Returns what is new to the watcher in the presence of the players."""
        before, self.presence = self.presence, presence
        return [PresenceChange(seat) for seat in changed_presence(before, presence)]

    def _after(self, change: SharedChange, presence: Presences | None) -> SharedGame | None:
        """Returns the game after the next change; None if it is unknown because it is older than the loaded one."""
        if self.record is not None:
            return change.after(self.record, presence)
        loaded = self.loaded.record
        if change.revision < loaded.game.revision:
            return None
        if change.etag != loaded.etag:
            raise EtagMismatch(loaded.game.revision)
        return self.loaded


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

    async def watch(  # noqa: C901, PLR0913 - the whole life of a watcher
        self,
        game_id: str,
        caller: Caller,
        after_revision: int,
        etag: str,
        content: Content = Content.CHANGES,
        *,
        until_rematch: bool = False,
    ) -> AsyncGenerator[Update, None]:
        """Yields a game's updates after a revision; 0 begins with a snapshot. Ends with the game or the server.

        With until_rematch it ends with the announcement of the rematch instead of the game.
        """
        async with self._feed(game_id) as feed, contextlib.AsyncExitStack() as connection:
            snapshot = await feed.snapshot()
            position = _Position.at(snapshot, caller, content)
            connection.enter_context(self._games.presence.watching(game_id, caller))
            await feed.turn()
            feed.start_at(snapshot.record)
            revision = position.revision
            is_live = _begins_with_snapshot(position, after_revision, etag)
            if is_live:
                yield Snapshot(snapshot.view_for(position.seat))
            else:
                await self._resume(feed, position, after_revision, etag)
            is_resuming, is_over = not is_live, _is_last(snapshot.record, position, until_rematch)
            while True:
                changes = await self._changes(feed, position, revision, is_live=is_live)
                if changes is None:
                    snapshot = await self._skip_ahead(feed, position)
                    is_over = _is_last(snapshot.record, position, until_rematch)
                    yield Snapshot(snapshot.view_for(position.seat))
                    continue
                for change in changes[:LAG]:
                    for update in position.advance(change, feed.presence):
                        yield update
                    is_over = is_over or change.announces_rematch or (change.ends_the_game and not until_rematch)
                if len(changes) > LAG:
                    continue
                if is_over:
                    return
                if is_resuming and not is_live and not changes:
                    is_live = True
                    yield Heartbeat(position.revision)  # confirms to a resuming watcher that the stream works
                    continue  # a change during the yield has woken nobody
                is_live = True
                if position.seat is None:
                    await connection.aclose()  # a seat that was given up is no longer watched by its former owner
                news = position.see_presence(feed.presence)
                for update in news:
                    yield update
                if changes or news:
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

    async def _resume(self, feed: Feed, position: _Position, revision: int, etag: str) -> None:
        """Moves a position to the revision that a caller resumes from. Raises HistoryUnavailable, EtagMismatch."""
        newest = position.revision
        found = position.etag if revision == newest else feed.etag_at(revision)
        if found is None:
            page = await feed.read(revision)
            if page.revision != revision:
                raise HistoryUnavailable(*await feed.bounds())
            found = page.etag
        if etag not in {"", found}:
            raise EtagMismatch(newest)
        position.go_back(revision, found)

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

    async def _skip_ahead(self, feed: Feed, position: _Position) -> SharedGame:
        """Moves a watcher who fell behind to the current game."""
        snapshot = await feed.snapshot()
        position.skip_to(snapshot)
        await feed.turn()
        feed.start_at(snapshot.record)
        return snapshot


def _begins_with_snapshot(position: _Position, after_revision: int, etag: str) -> bool:
    """Returns whether a stream begins with a snapshot: of a new watcher, or one of games that has another revision."""
    is_current = after_revision == position.revision and etag in {"", position.etag}
    return not after_revision or (position.content is Content.GAMES and not is_current)


def _is_last(record: Record, position: _Position, until_rematch: bool) -> bool:
    """Returns whether the last change to send has been sent at a position."""
    is_over = bool(record.game.rematch_game_id) if until_rematch else record.state.is_over
    return is_over and record.game.revision == position.revision


def _next_draft(feed: Feed, position: _Position) -> SharedView[Draft] | None:
    """Returns the draft of the turn in progress if the watcher has not got it yet."""
    draft = feed.draft
    if draft is None or draft.view.turn_revision != position.turn_revision:
        return None
    return draft if draft.view.number > position.draft_number else None
