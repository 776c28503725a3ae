"""The sweeper: times out overdue turns of games that nobody calls on, and finds bots that were forgotten.

Every replica runs one. There is no leader: each claims the games that it looks at for a moment, so the others look at
others. A time-out is a commit like any other, fenced by the game's history, so only one of all sweepers and callers
applies it. The store's list of deadlines is a hint when to look, never later than the turn's deadline; the deadline
itself is in the game.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from typing import Final

import structlog

from service.app.games import Games
from service.errors import StoredFormatUnknown, StoreUnavailable
from service.storage.base import Due, GameStore, Loaded, State

BATCH: Final = 32
"""Games that a sweep claims at a time: as many as it can look at long before the claims end."""
LOOKS: Final = 8
"""Games that are looked at at the same time: a time-out may wait, as for a search, or until it may be told of one."""
MEND_BATCH: Final = 20
"""Games of the lists that are gone through after a sweep."""
LOOK_SECONDS: Final = 10.0
"""How long a look is waited for: a time-out may take a search that its rules ask for, and wait for room for that."""
PUT_OFF_MS: Final = 30_000
"""When to look again at a game that could not be looked at."""
LEFT_MOST: Final = 1_000
"""Most games whose place a server that cannot read them leaves as it is: each sweep goes past them."""
NO_GAME: Final = ""
"""The id of no game: loading it tells the store's time."""

_log = structlog.get_logger()


class Sweeper:
    """Looks at games whose time has come.

    Args:
        games: To time out overdue turns.
        store: To find them.
        interval_seconds: Between two sweeps.
        stopping: Set when the server stops.
    """

    def __init__(self, games: Games, store: GameStore, interval_seconds: float, stopping: asyncio.Event) -> None:
        self._games = games
        self._store = store
        self._interval_seconds = interval_seconds
        self._stopping = stopping
        self._under_way: dict[str, asyncio.Task[Loaded]] = {}
        self._left: dict[str, int] = {}

    async def run(self) -> None:
        """Sweeps until the server stops, and now and then goes on through the lists of games, which mends them."""
        try:
            await self._sweep_on()
        finally:
            for look in self._under_way.values():
                look.cancel()

    async def _sweep_on(self) -> None:
        lists = itertools.cycle(State)
        cursor = ""
        state = next(lists)
        while not self._stopping.is_set():
            try:
                await self.sweep()
                _, cursor = await self._store.page(state, cursor, MEND_BATCH)
                if not cursor:
                    state = next(lists)
            except* StoreUnavailable:
                _log.debug("sweep", result="store unavailable")
            except* Exception:  # noqa: BLE001 - whatever one sweep meets, the next one is tried
                _log.exception("sweep")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), self._interval_seconds)

    async def sweep(self) -> int:
        """Looks once at every game whose time has come and that no other server has claimed; returns how many."""
        looked = 0
        await self._return_to_left()
        while not self._stopping.is_set():
            found = await self._store.claim(BATCH, tuple(self._left))
            waiting = iter(found)
            async with asyncio.TaskGroup() as looks:
                for _ in range(LOOKS):
                    looks.create_task(self._look_through(waiting))
            for due in waiting:  # of a server that stops
                await self._store.rearm(due, due.at_ms)
            looked += len(found)
            if len(found) < BATCH:
                break
        return looked

    async def _return_to_left(self) -> None:
        """Looks again at games that were left, when those that could not be looked at are."""
        if self._left:
            now_ms = (await self._store.load(NO_GAME)).now_ms
            self._left = {game_id: until_ms for game_id, until_ms in self._left.items() if until_ms >= now_ms}

    async def _look_through(self, waiting: Iterator[Due]) -> None:
        """Looks at games one after the other, until none waits or the server stops."""
        for due in waiting:
            await self._look(due)
            if self._stopping.is_set():
                return

    async def _look(self, due: Due) -> None:
        """Times out an overdue turn. A game that cannot be looked at is put off, so that it keeps no other waiting.

        One that this server cannot read is left as it is: a newer one may, and would come too late to what was put off.
        What is waited for no longer goes on: a search that takes long would never come to its end.
        """
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                loaded = await asyncio.shield(self._look_under_way(due.game_id))
            next_look = self._next_look(due, loaded)
        except Exception as error:  # noqa: BLE001 - one bad game must not stop the others' clocks
            await self._store.ping()  # if the store is away, the sweep ends here
            _log.warning("sweep", game_id=due.game_id, result=type(error).__name__)
            next_look = (await self._store.load(NO_GAME)).now_ms + PUT_OFF_MS
            if isinstance(error, StoredFormatUnknown) and len(self._left) < LEFT_MOST:
                self._left[due.game_id] = next_look
                next_look = due.at_ms
        await self._store.rearm(due, next_look)

    def _look_under_way(self, game_id: str) -> asyncio.Task[Loaded]:
        """The look at a game that has not ended, or a new one."""
        if game_id not in self._under_way:
            look = self._under_way[game_id] = asyncio.create_task(self._settled(game_id))
            look.add_done_callback(lambda _: self._under_way.pop(game_id))
        return self._under_way[game_id]

    async def _settled(self, game_id: str) -> Loaded:
        """The game after its time-out. It may be the connection that failed, and not the game, so it is tried twice."""
        try:
            return await self._games.settle(game_id)
        except StoreUnavailable:
            await self._store.ping()
            return await self._games.settle(game_id)

    def _next_look(self, due: Due, loaded: Loaded) -> int | None:
        """When to look at a game again; None: not before it is armed anew, by a round that starts or a bot's turn.

        A game that is due no later than it was, as no commit fits what is stored of it, is put off.
        """
        next_look = self._games.next_look(loaded)
        is_late = next_look is not None and next_look <= due.at_ms
        return loaded.now_ms + PUT_OFF_MS if is_late else next_look
