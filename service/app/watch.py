"""Watching games: a snapshot or a revision to resume from, then every change from the store's event stream.

A watcher has no queue. It has a position in the history (watcher.py), and gets later changes from its game's feed
(watch_feed.py), or from the store if the feed no longer keeps them.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Final, TypeVar

from service.app.games import Games
from service.app.identity import Caller
from service.app.own_games import Find, OwnGamesWatch, Read
from service.app.watch_feed import Feed, WakeQueue
from service.app.watch_updates import Change, Closing, Content, Snapshot, Update
from service.app.watcher import Position, Watcher
from service.errors import GameNotFound
from service.storage.store import Store

CLOSING_MS: Final = 1_000
"""The shortest wait before a watcher of a stopping server reconnects."""
CLOSING_SPREAD_MS: Final = 2
"""How much longer each watcher waits than the one before: about what its return costs another server."""


_T = TypeVar("_T")


class Watch:
    """Watches games in a store.

    Args:
        games: Loads games.
        store: Has their streams.
        heartbeat_seconds: The longest time without an update.
        stopping: Set when the server stops.
    """

    def __init__(self, games: Games, store: Store, heartbeat_seconds: float, stopping: asyncio.Event) -> None:
        self._games = games
        self._store = store
        self._heartbeat_seconds = heartbeat_seconds
        self._stopping = stopping
        self._wake_queue = WakeQueue()
        self._own_games = OwnGamesWatch(store, heartbeat_seconds, stopping)
        self._feeds: dict[tuple[str, str], Feed] = {}
        self._closed = 0
        self.watchers = 0
        """The number of open watches."""

    async def watch(  # noqa: PLR0913 - the contract's fields
        self,
        game_id: str,
        caller: Caller,
        after_revision: int,
        etag: str,
        content: Content = Content.CHANGES,
        *,
        until_rematch: bool = False,
        is_poll: bool = False,
    ) -> AsyncGenerator[Update, None]:
        """Yields a game's updates after a revision; 0 begins with a snapshot. Ends with the game or the server.

        With until_rematch it ends with the announcement of the rematch instead of the game. The caller of a poll is not
        connected by it: other players would see it come and go with each poll.
        """
        async with self._feed(game_id, caller.key) as feed:
            snapshot = await feed.snapshot()
            position = Position.at(snapshot, caller, content)
            with self._games.presence.watching(game_id, None if is_poll else position.viewer):
                await feed.turn()
                feed.start_at(snapshot.record)
                watcher = Watcher(feed, position, self._stopping, self.next_delay_ms, until_rematch)
                for update in await watcher.begin(after_revision, etag):
                    yield update
                while not watcher.is_done:
                    for update in await watcher.step():
                        yield update

    async def watch_own(
        self, person: str, find: Find, read: Read[_T], inbox: str = ""
    ) -> AsyncGenerator[Sequence[_T], None]:
        """Yields the games of a person, as OwnGamesWatch.watch does."""
        self.watchers += 1
        try:
            async with contextlib.aclosing(self._own_games.watch(person, find, read, inbox)) as updates:
                async for update in updates:
                    yield update
        finally:
            self.watchers -= 1

    @property
    def is_stopping(self) -> bool:
        """Whether the server stops."""
        return self._stopping.is_set()

    async def wait(self, game_id: str, caller: Caller, after_revision: int, seconds: float) -> None:
        """Returns when a game has a change after a revision, or can have none; after some seconds at the latest.

        A game that is only in the archive can have none. Raises TokenVoid, SpectatorsNotAllowed.
        """
        updates = self.watch(game_id, caller, 0, "", until_rematch=True, is_poll=True)
        with contextlib.suppress(TimeoutError, GameNotFound):
            async with asyncio.timeout(seconds), contextlib.aclosing(updates):
                async for update in updates:
                    match update:
                        case Snapshot(shared) if shared.view.view.revision <= after_revision:
                            pass
                        case Snapshot() | Change() | Closing():
                            return
                        case _:
                            pass

    @contextlib.asynccontextmanager
    async def _feed(self, game_id: str, key: str) -> AsyncIterator[Feed]:
        """Yields the feed of a game for callers with a key, which exists as long as there are such watchers."""
        feed = self._feeds.get((game_id, key))
        if feed is None:
            feed = self._feeds[game_id, key] = Feed(
                game_id, key, self._games, self._store, self._heartbeat_seconds, self._wake_queue, self._stopping
            )
            feed.start()
        feed.watchers += 1
        self.watchers += 1
        try:
            yield feed
        finally:
            self.watchers -= 1
            feed.watchers -= 1
            if not feed.watchers:
                del self._feeds[game_id, key]  # before closing: a new watcher needs a new feed
                await feed.close()

    def next_delay_ms(self) -> int:
        """Returns how long the next watcher of a stopping server waits, so that watchers do not all return at once."""
        self._closed += 1
        return CLOSING_MS + self._closed * CLOSING_SPREAD_MS
