"""The event streams of games in Redis. commit.lua writes them."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import ParamSpec, TypeAlias, TypeVar

import structlog

from service.errors import StoredFormatUnknown
from service.model.change import Entry, StoredChange
from service.storage.redis.keys import changes_channel, keys_of
from service.storage.redis.nodes import Nodes
from service.storage.store import Subscription
from service.storage.stored_events import decode_entry, decompress
from service.storage.timing import timed

_log = structlog.get_logger()
_P = ParamSpec("_P")
_T = TypeVar("_T")

_Stream: TypeAlias = Sequence[tuple[bytes, Sequence[bytes]]]
"""The reply to XRANGE: ids, each with its fields and values."""


class RedisStreams:
    """Streams in Redis."""

    def __init__(self, nodes: Nodes) -> None:
        self.reports = nodes.reports
        self._nodes = nodes

    @timed("events")
    async def entries(self, game_id: str, first_revision: int, limit: int) -> tuple[Entry, ...]:
        stored = await self._read(game_id, first_revision, limit)
        return tuple(read_stored(game_id, _entry, fields) for _, fields in stored)

    @timed("stored_changes")
    async def stored_changes(self, game_id: str, first_revision: int, limit: int) -> tuple[StoredChange, ...]:
        return tuple(
            StoredChange(_revision([(entry_id, fields)]), *read_stored(game_id, _etag_and_change, fields))
            for entry_id, fields in await self._read(game_id, first_revision, limit)
        )

    async def _read(self, game_id: str, first_revision: int, limit: int) -> _Stream:
        """Returns at most `limit` changes of a game from a revision on, undecoded."""
        key = keys_of(game_id)[2]
        stored: _Stream = await self._nodes.execute(key, "XRANGE", key, f"{first_revision}-0", "+", "COUNT", limit)
        return stored

    @timed("bounds")
    async def bounds(self, game_id: str) -> tuple[int, int]:
        stream = keys_of(game_id)[2]
        oldest: _Stream = await self._nodes.execute(stream, "XRANGE", stream, "-", "+", "COUNT", 1)
        newest: _Stream = await self._nodes.execute(stream, "XREVRANGE", stream, "+", "-", "COUNT", 1)
        return _revision(oldest), _revision(newest)

    def subscribe(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        return self._nodes.subscribe(changes_channel(game_id))

    @timed("notify")
    async def notify(self, game_id: str) -> None:
        channel = changes_channel(game_id)
        await self._nodes.execute(channel, self._nodes.publish, channel, "")


def read_stored(game_id: str, read: Callable[_P, _T], *stored: _P.args, **options: _P.kwargs) -> _T:
    """Decodes stored bytes of a game. If they cannot be read, it logs the game's id and none of the bytes."""
    try:
        return read(*stored, **options)
    except StoredFormatUnknown:
        _log.warning("store", error="cannot be read", game_id=game_id)
        raise


def _revision(entries: _Stream) -> int:
    return int(entries[0][0].partition(b"-")[0]) if entries else 0


def _entry(fields: Sequence[bytes]) -> Entry:
    """Returns a stream's entry from alternating names and values. Raises StoredFormatUnknown."""
    etag, change = _etag_and_change(fields)
    return decode_entry(change, etag)


def _etag_and_change(fields: Sequence[bytes]) -> tuple[str, bytes]:
    """Returns an etag and the bytes that it hashes from alternating names and values. Raises StoredFormatUnknown."""
    values = dict(zip(fields[::2], fields[1::2], strict=True))
    return values.get(b"etag", b"").decode(errors="replace"), decompress(values.get(b"change", b""))
