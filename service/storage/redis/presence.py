"""Presence in Redis: a hash for each game, which expires with it."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

from service.model.presence import PRESENCE_MS, Seen, Sighting
from service.storage.redis.keys import keys_of, presence_channel, presence_key
from service.storage.redis.nodes import Nodes, Script, StoreTime
from service.storage.store import Subscription
from service.storage.stored_presence import read_presence
from service.storage.timing import timed


class RedisPresence:
    """StoredPresence in Redis.

    Args:
        nodes: The Redis servers.
        time: The clock of the store.
    """

    def __init__(self, nodes: Nodes, time: StoreTime) -> None:
        self.reports = nodes.reports
        self._nodes = nodes
        self._time = time
        self._report = Script.read("presence.lua", nodes.publish)

    @timed("report_presence")
    async def report(self, game_id: str, server: str, sightings: Mapping[int, Sighting]) -> None:
        pairs = (part for seat, sighting in sightings.items() for part in (seat, sighting.value))
        arguments = (server, PRESENCE_MS, presence_channel(game_id), self._time.argument, *pairs)
        await self._nodes.run(self._report, (keys_of(game_id)[0], presence_key(game_id)), arguments)

    @timed("read_presence")
    async def read(self, game_id: str) -> Mapping[int, Seen]:
        key = presence_key(game_id)
        stored = await self._nodes.execute(key, "HGETALL", key)
        pairs = (
            stored.items() if isinstance(stored, dict) else zip(stored[::2], stored[1::2], strict=True)
        )  # RESP3, RESP2
        return read_presence({name: int(time_ms) for name, time_ms in pairs})

    def subscribe(self, game_id: str) -> AbstractAsyncContextManager[Subscription]:
        return self._nodes.subscribe(presence_channel(game_id))
