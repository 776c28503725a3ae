"""A store that forwards every operation to another one. Tests override single operations, or `_forward` for all."""

from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar

from service.errors import StoreUnavailable
from service.storage.store import Store
from service.storage.timing import Reports

_T = TypeVar("_T")

PARTS: Final = ("games", "streams", "drafts", "lists", "names", "deadlines", "presence", "outbox", "log")


class DelegatingStore:
    """Store around another one, `_store`, which reports the operations that reach it.

    A method with the name of an operation (as in metrics) replaces it, in whatever part of the store it is.
    """

    games: Any
    streams: Any
    drafts: Any
    lists: Any
    names: Any
    deadlines: Any
    presence: Any
    outbox: Any
    log: Any

    def __init__(self, store: Store) -> None:
        self._store = store
        whole = _Part(self, store)
        for name in ("now_ms", "secret", "check_room", "ping", "close", "reports"):
            setattr(self, name, getattr(whole, name))
        for part in PARTS:
            setattr(self, part, _Part(self, getattr(store, part)))

    if TYPE_CHECKING:
        reports: Reports
        now_ms: Any
        secret: Any
        check_room: Any
        ping: Any
        close: Any

    async def _forward(self, _operation: str, reply: Awaitable[_T]) -> _T:
        return await reply


class _Part:
    """A part of a store, whose operations go through a DelegatingStore."""

    def __init__(self, store: DelegatingStore, part: object) -> None:
        self._store = store
        self._part = part

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any attribute of a part
        found = getattr(self._part, name)
        operation = getattr(found, "operation_name", "")
        if not operation:
            return found
        own = getattr(type(self._store), operation, None)

        async def forward(*args: object, **options: object) -> object:
            if own:
                return await own(self._store, *args, **options)
            return await self._store._forward(operation, found(*args, **options))  # noqa: SLF001 - its own part

        vars(forward)["operation_name"] = operation  # for a store around the store
        return forward


class MortalStore(DelegatingStore):
    """A store of a server that dies at one of its operations: before the store gets it, or before its reply comes.

    Args:
        store: The store.
        is_sent: Whether the store gets that operation.
    """

    def __init__(self, store: Store, *, is_sent: bool) -> None:
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
