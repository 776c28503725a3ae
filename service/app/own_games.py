"""Watching the games of one person: an inbox of games that take days, the source of a push gateway, a bot's life line.

A stream subscribes to the changes of each of its games. It reads a game again when it has changed, once for all changes
that came meanwhile, so it needs no queue.

A person has one stream. At the same server a second one ends the first at once. Across servers, a name in the store
names the person's last stream, and each stream looks at it with its heartbeats: one round trip, and no messages
between servers. So an older stream continues for one heartbeat at most.
"""

import asyncio
import contextlib
import hashlib
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, TypeAlias, TypeVar

from service.storage.store import Store, Subscription

Find: TypeAlias = Callable[[], Awaitable[Sequence[str]]]
"""Returns the ids of a person's games."""
_T = TypeVar("_T")
Read: TypeAlias = Callable[[Sequence[str]], Awaitable[Sequence[_T]]]
"""Returns some of them as the person sees them."""

HEARTBEATS_KEPT: Final = 3
"""How many heartbeats the store remembers the last stream of a person after it has looked."""


class OwnGamesWatch:
    """The streams of people's games at one server, one a person.

    Args:
        store: Has the games.
        heartbeat_seconds: The longest time without an update.
        stopping: Set when the server stops.
    """

    def __init__(self, store: Store, heartbeat_seconds: float, stopping: asyncio.Event) -> None:
        self._store = store
        self._heartbeat_seconds = heartbeat_seconds
        self._stopping = stopping
        self._open: dict[str, asyncio.Event] = {}
        """By person: what ends the stream."""

    async def watch(
        self, person: str, find: Find, read: Read[_T], inbox: str = ""
    ) -> AsyncGenerator[Sequence[_T], None]:
        """Yields all games of a person, then those that have changed; none as a heartbeat.

        An inbox, which `find` returns as a game, is read again with each heartbeat: challenges expire. After a
        notification of it the person may have new games.

        It ends when the server stops, or when the same person opens another stream, here or at another server.
        """
        place, time = _Place(self._store, person, self._heartbeat_seconds), asyncio.get_running_loop().time
        async with self._only(person) as ended, _Changes(self._store) as changes:
            ends = [asyncio.create_task(event.wait()) for event in (ended, self._stopping)]
            try:
                is_last = await place.take()
                await changes.follow(await find())
                looks_at = time() + self._heartbeat_seconds
                while is_last and not (ended.is_set() or self._stopping.is_set()):
                    changed = changes.take()
                    yield await read(changed) if changed else ()
                    woken = asyncio.create_task(changes.any.wait())
                    waited = {woken, *ends}
                    try:
                        done, _ = await asyncio.wait(
                            waited, timeout=max(0.0, looks_at - time()), return_when=asyncio.FIRST_COMPLETED
                        )
                    finally:
                        woken.cancel()
                    is_due = not done or time() >= looks_at
                    if is_due:
                        is_last = await place.keep()
                        changes.note(inbox)
                        looks_at = time() + self._heartbeat_seconds
                    if is_due or changes.has(inbox):
                        await changes.follow(await find())
            finally:
                for end in ends:
                    end.cancel()

    @contextlib.asynccontextmanager
    async def _only(self, person: str) -> AsyncIterator[asyncio.Event]:
        """Yields what ends a person's stream, after it has ended the one before."""
        ended = asyncio.Event()
        before = self._open.get(person)
        if before:
            before.set()
        self._open[person] = ended
        try:
            yield ended
        finally:
            if self._open.get(person) is ended:
                del self._open[person]


class _Place:
    """The place of a person's last stream, which one stream of all servers has."""

    def __init__(self, store: Store, person: str, heartbeat_seconds: float) -> None:
        self._names = store.names
        self._name = f"stream:{hashlib.sha256(person.encode()).hexdigest()[:32]}"
        self._own = secrets.token_hex(16)
        self._kept_ms = round(HEARTBEATS_KEPT * heartbeat_seconds * 1_000)

    async def take(self) -> bool:
        """Takes the place from an older stream; returns False if a newer one has taken it meanwhile."""
        older = await self._names.find(self._name)
        return await self._point(older)

    async def keep(self) -> bool:
        """Returns whether no newer stream has taken the place, and keeps it for the next heartbeats."""
        return await self._point(self._own)

    async def _point(self, instead_of: str) -> bool:
        return await self._names.point(self._name, self._own, instead_of, kept_ms=self._kept_ms) == self._own


class _Changes:
    """Which of the followed games have changed.

    Attributes:
        any: Set while there are some.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._subscriptions = contextlib.AsyncExitStack()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changed: dict[str, None] = {}
        self.any = asyncio.Event()

    async def __aenter__(self) -> "_Changes":
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks.values():
            task.cancel()
        await self._subscriptions.aclose()

    async def follow(self, game_ids: Sequence[str]) -> None:
        """Follows games too, which count as changed at first."""
        for game_id in game_ids:
            if game_id and game_id not in self._tasks:
                subscription = await self._subscriptions.enter_async_context(self._store.streams.subscribe(game_id))
                self._tasks[game_id] = asyncio.create_task(self._forward(game_id, subscription))
                self.note(game_id)

    async def _forward(self, game_id: str, subscription: Subscription) -> None:
        while True:
            await subscription.wait()
            self.note(game_id)

    def note(self, game_id: str) -> None:
        """Counts a followed game as changed."""
        if game_id in self._tasks:
            self._changed[game_id] = None
            self.any.set()

    def has(self, game_id: str) -> bool:
        """Returns whether a game has changed since the last `take`."""
        return game_id in self._changed

    def take(self) -> Sequence[str]:
        """Returns the games that have changed since the last call."""
        changed, self._changed = [*self._changed], {}
        self.any.clear()
        return changed
