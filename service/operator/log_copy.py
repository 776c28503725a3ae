"""Copies the change log between stores with different numbers of parts.

Each entry goes to the part of its game. Entries stay in the order of their places, and no place becomes smaller, so a
reader whose place is before an entry at the source is before it at the target too. Places grow only where the parts of
a cluster are merged: two entries may have the same place there, and later copies append.
"""

import heapq
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from service.storage.redis.keys import change_log_key, part_of

PAGE: Final = 1_000
"""Entries that are read from a part, or written, in one round trip."""

_Place: TypeAlias = tuple[int, int]
_Fields: TypeAlias = Mapping[bytes, bytes]


class ChangeLogCopy:
    """A copy of the change log, which can be continued.

    Args:
        source: redis-py's client of the store to read.
        source_parts: The prefixes of its parts.
        target: redis-py's client of the store to write.
        target_parts: The prefixes of its parts.
    """

    def __init__(
        self,
        source: Any,  # noqa: ANN401 - redis-py's client of one Redis or of a cluster
        source_parts: Sequence[str],
        target: Any,  # noqa: ANN401 - as above
        target_parts: Sequence[str],
    ) -> None:
        self._source = source
        self._target = target
        self._target_parts = target_parts
        self._read = {change_log_key(part): (0, 0) for part in source_parts}
        """The last place that was read from each key."""
        self._written = {change_log_key(part): (0, 0) for part in target_parts}
        """The last place that was written to each key."""

    async def clear(self) -> None:
        """Deletes the log of the target, which names no game that still exists."""
        for key in self._written:
            await self._target.delete(key)

    async def append(self) -> None:
        """Appends what the source has now and had not at the last call."""
        parts = [self._entries(key) for key in self._read]
        heads: list[tuple[_Place, int, _Fields]] = []

        async def advance(number: int) -> None:
            entry = await anext(parts[number], None)
            if entry:
                heapq.heappush(heads, (entry[0], number, entry[1]))

        for number in range(len(parts)):
            await advance(number)
        batch: list[tuple[_Place, _Fields]] = []
        while heads:
            place, number, fields = heapq.heappop(heads)
            batch.append((place, fields))
            await advance(number)
            if len(batch) == PAGE or not heads:
                await self._write(batch)
                batch = []

    async def _entries(self, key: str) -> AsyncIterator[tuple[_Place, _Fields]]:
        """Yields the entries of a part from the last one that was read to the newest at the time of the call."""
        newest = await self._source.xrevrange(key, count=1)
        while newest and self._read[key] < _place(newest[0][0]):
            page = await self._source.xrange(key, f"({_text(self._read[key])}", newest[0][0], PAGE)
            if not page:
                return
            for entry_id, fields in page:
                self._read[key] = _place(entry_id)
                yield self._read[key], fields

    async def _write(self, entries: Sequence[tuple[_Place, _Fields]]) -> None:
        pipeline = self._target.pipeline(transaction=False)
        for place, fields in entries:
            key = change_log_key(part_of(self._target_parts, fields[b"game"].decode()))
            time_ms, number = self._written[key]
            self._written[key] = max(place, (time_ms, number + 1))
            pipeline.xadd(key, fields, id=_text(self._written[key]))
        await pipeline.execute()

    async def expire(self) -> None:
        """Gives the log of the target the longest lifetime that a part of the source's has."""
        left_ms = max([await self._source.pttl(key) for key in self._read])
        for key in self._written:
            if left_ms > 0:
                await self._target.pexpire(key, left_ms)


def _place(entry_id: bytes) -> _Place:
    time_ms, number = entry_id.split(b"-")
    return int(time_ms), int(number)


def _text(place: _Place) -> str:
    return f"{place[0]}-{place[1]}"
