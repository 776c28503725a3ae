"""A store that tells how long each operation took, whichever store is inside."""

import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from service.storage.base import Commit, Due, Entry, GameStore, Loaded, Outcome, Record, State, Subscription

_T = TypeVar("_T")

Observer = Callable[[str, str, float], None]
"""Is told an operation's name, `ok` or the exception's name, and the seconds it took."""


class MeasuredStore:
    """GameStore around another one."""

    def __init__(self, store: GameStore, observe: Observer) -> None:
        self._store = store
        self._observe = observe

    async def _measured(self, operation: str, answer: Awaitable[_T]) -> _T:
        started = time.perf_counter()
        result = "ok"
        try:
            return await answer
        except Exception as error:
            result = type(error).__name__
            raise
        finally:
            self._observe(operation, result, time.perf_counter() - started)

    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        """See GameStore."""
        return await self._measured("load", self._store.load(game_id, request_key))

    def recall(self, game_id: str) -> Loaded | None:
        """See GameStore."""
        return self._store.recall(game_id)

    async def commit(self, commit: Commit) -> Outcome:
        """See GameStore."""
        return await self._measured("commit", self._store.commit(commit))

    async def events(self, game_id: str, first_revision: int, limit: int) -> tuple[Entry, ...]:
        """See GameStore."""
        return await self._measured("events", self._store.events(game_id, first_revision, limit))

    async def bounds(self, game_id: str) -> tuple[int, int]:
        """See GameStore."""
        return await self._measured("bounds", self._store.bounds(game_id))

    def changes(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        """See GameStore."""
        return self._store.changes(game_id)

    async def secret(self) -> bytes:
        """See GameStore."""
        return await self._measured("secret", self._store.secret())

    async def check_room(self) -> None:
        """See GameStore."""
        await self._measured("check_room", self._store.check_room())

    async def index(self, record: Record) -> None:
        """See GameStore."""
        await self._measured("index", self._store.index(record))

    async def page(self, state: State, cursor: str, limit: int) -> tuple[tuple[Record, ...], str]:
        """See GameStore."""
        return await self._measured("page", self._store.page(state, cursor, limit))

    async def count(self) -> dict[State, int]:
        """See GameStore."""
        return await self._measured("count", self._store.count())

    async def arm(self, game_id: str, at_ms: int) -> None:
        """See GameStore."""
        await self._measured("arm", self._store.arm(game_id, at_ms))

    async def rearm(self, due: Due, at_ms: int | None) -> None:
        """See GameStore."""
        await self._measured("rearm", self._store.rearm(due, at_ms))

    async def claim(self, limit: int, skip: Collection[str] = ()) -> Sequence[Due]:
        """See GameStore."""
        return await self._measured("claim", self._store.claim(limit, skip))

    async def ping(self) -> None:
        """See GameStore."""
        await self._measured("ping", self._store.ping())

    async def close(self) -> None:
        """See GameStore."""
        await self._store.close()
