"""The change log in Redis: in each part a stream with an entry for each change of a game.

An entry is stored before its commit, in a round trip of its own: the part may be on another server of a cluster, and a
change must not be stored if its entry was refused. Only stores with a change log pay for that.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from service.model.change import NO_ETAG
from service.model.change_log import LOG_GRACE_MS, LogEntry, LogKind, LogPage
from service.model.record import Record
from service.storage.redis.keys import change_log_key, part_of
from service.storage.redis.nodes import COMMAND, Nodes, StoreTime, Word
from service.storage.timing import timed

KEEP_SECONDS: Final = 60.0
"""The longest interval at which the log's lifetime is extended."""


class RedisChangeLog:
    """ChangeLog in Redis.

    Args:
        nodes: The Redis servers.
        time: The clock of the store.
        log_ms: How long entries are kept; 0: there is no log.
    """

    def __init__(self, nodes: Nodes, time: StoreTime, log_ms: int) -> None:
        self.reports = nodes.reports
        self._nodes = nodes
        self._time = time
        self.kept_ms, self.parts = log_ms, len(nodes.parts)
        self._keep_at = 0.0

    async def announce(
        self, game_id: str, kind: LogKind, now_ms: int | None, record: Record | None = None
    ) -> int | None:
        """Adds an entry and removes old ones. Returns until when its change may be stored; None without a log.

        Args:
            game_id: The game.
            kind: What is about to happen.
            now_ms: The time as far as it is known, by which old entries are found.
            record: The game after that; None if it is deleted.
        """
        if not self.kept_ms:
            return None
        key, now = change_log_key(part_of(self._nodes.parts, game_id)), self._time.argument
        place = f"{now}-*" if now else "*"
        revision, etag = (record.game.revision, record.etag) if record else (0, NO_ETAG)
        change = ("game", game_id, "kind", kind.value, "revision", revision, "etag", etag)
        oldest = ("MINID", "~", max(0, (now_ms or 0) - self.kept_ms))
        added: bytes = await self._nodes.execute(key, "XADD", key, *oldest, place, *change, needs_replicas=True)
        return int(added.partition(b"-")[0]) + LOG_GRACE_MS

    @timed("read_log")
    async def read(self, part: int, after: str, limit: int) -> LogPage:
        key = change_log_key(self._nodes.parts[part])
        now_ms = await self._time.now_ms(key)
        found = await self._nodes.execute(key, "XRANGE", key, f"({after}", "+", "COUNT", limit)
        return LogPage(now_ms, tuple(_entry(place, fields) for place, fields in found))

    @timed("log_length")
    async def length(self) -> int:
        return sum([await self._nodes.execute(key, "XLEN", key) for key in map(change_log_key, self._nodes.parts)])

    async def keep(self) -> None:
        """Keeps the log for now, from time to time: a log that no server keeps any more disappears."""
        now = asyncio.get_running_loop().time()
        if self.kept_ms and now >= self._keep_at:
            self._keep_at = now + min(KEEP_SECONDS, self.kept_ms / 2_000)
            keys = map(change_log_key, self._nodes.parts)
            await self._nodes.run_each(COMMAND, dict.fromkeys(keys, ("PEXPIRE", 2 * self.kept_ms)))

    def touches(self) -> Sequence[tuple[str, tuple[Word, ...]]]:
        """Returns a command without effect on each part."""
        keys = map(change_log_key, self._nodes.parts if self.kept_ms else ())
        return [(key, ("XDEL", key, "0-1")) for key in keys]


def _entry(place: bytes, fields: Sequence[bytes]) -> LogEntry:
    """Returns an entry from alternating names and values."""
    values = {name.decode(): value.decode() for name, value in zip(fields[::2], fields[1::2], strict=True)}
    kind = LogKind(values["kind"])
    return LogEntry(place.decode(), values["game"], kind, int(values["revision"]), values["etag"])
