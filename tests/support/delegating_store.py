"""A store that forwards every operation to another one. Tests override single operations, or `_forward` for all."""

from collections.abc import Awaitable, Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from engine.melding.drafts import Draft
from service.errors import StoreUnavailable
from service.model.change import Commit, Entry, Loaded, Outcome, StoredChange
from service.model.change_log import LogPage
from service.model.deadlines import Due
from service.model.outbox import OutboxEntry
from service.model.presence import Seen, Sighting
from service.model.record import GameState, Record
from service.storage.base import GameStore, Subscription, WholePage
from service.storage.timing import Observer, Reporter

_T = TypeVar("_T")


class DelegatingStore:
    """GameStore around another one, which observes the operations that reach it."""

    def __init__(self, store: GameStore) -> None:
        self._store = store
        self.log_ms, self.log_parts = store.log_ms, store.log_parts

    async def _forward(self, _operation: str, reply: Awaitable[_T]) -> _T:
        return await reply

    @property
    def observe(self) -> Observer:
        return self._store.observe

    @observe.setter
    def observe(self, observe: Observer) -> None:
        self._store.observe = observe

    @property
    def report(self) -> Reporter:
        return self._store.report

    @report.setter
    def report(self, report: Reporter) -> None:
        self._store.report = report

    async def now_ms(self) -> int:
        return await self._forward("now_ms", self._store.now_ms())

    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        return await self._forward("load", self._store.load(game_id, request_key))

    def cached(self, game_id: str) -> Loaded | None:
        return self._store.cached(game_id)

    async def commit(self, commit: Commit) -> Outcome:
        return await self._forward("commit", self._store.commit(commit))

    async def delete(self, game_id: str, record: Record | None = None) -> None:
        await self._forward("delete", self._store.delete(game_id, record))

    async def rewrite(self, previous_etag: str, record: Record, stream: Sequence[tuple[bytes, str]]) -> Outcome:
        return await self._forward("rewrite", self._store.rewrite(previous_etag, record, stream))

    async def read_log(self, part: int, after: str, limit: int) -> LogPage:
        return await self._forward("read_log", self._store.read_log(part, after, limit))

    async def log_length(self) -> int:
        return await self._forward("log_length", self._store.log_length())

    async def save_draft(self, record: Record, draft: Draft) -> int | None:
        return await self._forward("save_draft", self._store.save_draft(record, draft))

    async def draft(self, game_id: str) -> Draft | None:
        return await self._forward("draft", self._store.draft(game_id))

    async def events(self, game_id: str, first_revision: int, limit: int) -> tuple[Entry, ...]:
        return await self._forward("events", self._store.events(game_id, first_revision, limit))

    async def bounds(self, game_id: str) -> tuple[int, int]:
        return await self._forward("bounds", self._store.bounds(game_id))

    def changes(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        return self._store.changes(game_id)

    def drafts(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        return self._store.drafts(game_id)

    async def secret(self) -> bytes:
        return await self._forward("secret", self._store.secret())

    async def check_room(self, most_age: float = 0.0) -> None:
        await self._forward("check_room", self._store.check_room(most_age))

    async def index(self, record: Record) -> None:
        await self._forward("index", self._store.index(record))

    async def page(
        self, state: GameState, cursor: str, limit: int, *, is_public: bool = False
    ) -> tuple[tuple[Record, ...], str]:
        return await self._forward("page", self._store.page(state, cursor, limit, is_public=is_public))

    async def whole_page(self, state: GameState, cursor: str, limit: int) -> WholePage:
        return await self._forward("whole_page", self._store.whole_page(state, cursor, limit))

    async def oldest_open(self, match: str, limit: int) -> tuple[Record, ...]:
        return await self._forward("oldest_open", self._store.oldest_open(match, limit))

    async def count(self) -> dict[GameState, int]:
        return await self._forward("count", self._store.count())

    async def point(self, name: str, game_id: str, instead_of: str = "", *, is_brief: bool = False) -> str:
        return await self._forward("point", self._store.point(name, game_id, instead_of, is_brief=is_brief))

    async def pointed(self, name: str) -> str:
        return await self._forward("pointed", self._store.pointed(name))

    async def arm(self, game_id: str, at_ms: int) -> None:
        await self._forward("arm", self._store.arm(game_id, at_ms))

    async def rearm(self, due: Due, at_ms: int | None) -> None:
        await self._forward("rearm", self._store.rearm(due, at_ms))

    async def claim(self, limit: int, skip: Collection[str] = ()) -> Sequence[Due]:
        return await self._forward("claim", self._store.claim(limit, skip))

    async def report_presence(self, game_id: str, server: str, sightings: Mapping[int, Sighting]) -> None:
        await self._forward("report_presence", self._store.report_presence(game_id, server, sightings))

    async def presence(self, game_id: str) -> Mapping[int, Seen]:
        return await self._forward("presence", self._store.presence(game_id))

    def presence_changes(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        return self._store.presence_changes(game_id)

    async def append_to_outbox(self, game_id: str) -> int:
        return await self._forward("append_to_outbox", self._store.append_to_outbox(game_id))

    async def claim_from_outbox(self, limit: int, claim_ms: int) -> Sequence[OutboxEntry]:
        return await self._forward("claim_from_outbox", self._store.claim_from_outbox(limit, claim_ms))

    async def acknowledge(self, entry: OutboxEntry) -> None:
        await self._forward("acknowledge", self._store.acknowledge(entry))

    async def outbox_size(self) -> int:
        return await self._forward("outbox_size", self._store.outbox_size())

    async def stored_changes(self, game_id: str, first_revision: int, limit: int) -> tuple[StoredChange, ...]:
        return await self._forward("stored_changes", self._store.stored_changes(game_id, first_revision, limit))

    async def shorten(self, record: Record, kept_ms: int) -> bool:
        return await self._forward("shorten", self._store.shorten(record, kept_ms))

    async def ping(self) -> None:
        await self._forward("ping", self._store.ping())

    async def close(self) -> None:
        await self._store.close()


class MortalStore(DelegatingStore):
    """A store of a server that dies at one of its operations: before the store gets it, or before its reply comes.

    Args:
        store: The store.
        is_sent: Whether the store gets that operation.
    """

    def __init__(self, store: GameStore, *, is_sent: bool) -> None:
        super().__init__(store)
        self._is_sent = is_sent
        self._left: int | None = None

    def die_at(self, step: int | None) -> None:
        """Dies at an operation from now on, counted from 1; None: lives again."""
        self._left = step

    @property
    def is_dead(self) -> bool:
        return self._left is not None and self._left <= 0

    async def _forward(self, _operation: str, reply: Awaitable[_T]) -> _T:
        if self._left is None:
            return await reply
        self._left -= 1
        if not self.is_dead:
            return await reply
        if self._left == 0 and self._is_sent:
            await reply
        elif isinstance(reply, Coroutine):
            reply.close()
        raise StoreUnavailable
