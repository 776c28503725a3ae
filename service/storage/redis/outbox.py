"""The outbox in Redis: in each part a stream of games that may have ended, which the servers read as one group.

All servers are one consumer. Unacknowledged entries are claimed again when their claim ends, so a dead server leaves
nothing behind.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from service.model.outbox import OutboxEntry
from service.storage.redis.keys import outbox_key, part_of
from service.storage.redis.nodes import COMMAND, Nodes, Script, StoreTime
from service.storage.redis.parts import Parts
from service.storage.timing import timed

GROUP: Final = "archive"
CONSUMER: Final = "servers"


class RedisOutbox:
    """Outbox in Redis.

    Args:
        nodes: The Redis servers.
        time: The clock of the store.
    """

    def __init__(self, nodes: Nodes, time: StoreTime) -> None:
        self.reports = nodes.reports
        self._nodes = nodes
        self._time = time
        self._claim = Script.read("claim_outbox.lua", nodes.publish)
        self._parts = Parts(nodes.parts)

    @property
    def servers(self) -> int:
        return self._nodes.servers_of([*map(outbox_key, self._nodes.parts)])

    def _key(self, game_id: str) -> str:
        return outbox_key(part_of(self._nodes.parts, game_id))

    @timed("append_to_outbox")
    async def append(self, game_id: str) -> int:
        key, now = self._key(game_id), self._time.argument
        place = f"{now}-*" if now else "*"
        entry_id: bytes = await self._nodes.execute(key, "XADD", key, place, "game", game_id, needs_replicas=True)
        return _time_ms(entry_id.decode())

    @timed("claim_from_outbox")
    async def claim(self, limit: int, claim_ms: int) -> Sequence[OutboxEntry]:

        async def claim_in(shares: Mapping[str, int]) -> Sequence[Sequence[OutboxEntry] | BaseException]:
            calls = {outbox_key(part): (GROUP, CONSUMER, some, claim_ms) for part, some in shares.items()}
            return list(map(_entries, await self._nodes.run_each(self._claim, calls)))

        return await self._parts.claim(limit, claim_in)

    @timed("acknowledge")
    async def acknowledge(self, entry: OutboxEntry) -> None:
        """The entry is deleted first: an acknowledged entry that stays is never claimed again."""
        key = self._key(entry.game_id)
        await self._nodes.execute(key, "XDEL", key, entry.entry_id)
        await self._nodes.execute(key, "XACK", key, GROUP, entry.entry_id)

    @timed("outbox_size")
    async def size(self) -> int:
        return await self._parts.total(
            lambda parts: self._nodes.run_each(COMMAND, {outbox_key(part): ("XLEN",) for part in parts})
        )


def _entries(found: Sequence[bytes] | BaseException) -> Sequence[OutboxEntry] | BaseException:
    """Returns entries from a reply; an error as it is."""
    return found if isinstance(found, BaseException) else list(map(_entry, found[::2], found[1::2]))


def _entry(entry_id: bytes, game_id: bytes) -> OutboxEntry:
    place = entry_id.decode()
    return OutboxEntry(game_id.decode(errors="replace"), place, _time_ms(place))


def _time_ms(entry_id: str) -> int:
    return int(entry_id.partition("-")[0])
