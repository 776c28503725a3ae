"""The deadlines in Redis: one sorted set of games by time in each part."""

from collections.abc import Collection, Mapping, Sequence

from service.model.deadlines import CLAIM_MS, Due
from service.storage.redis.keys import deadlines_key, part_of
from service.storage.redis.nodes import Nodes, Script, StoreTime
from service.storage.redis.parts import Parts
from service.storage.timing import timed


class RedisDeadlines:
    """Deadlines in Redis: claims and arms games, each in its part.

    Args:
        nodes: The Redis servers.
        time: The clock of the store.
    """

    def __init__(self, nodes: Nodes, time: StoreTime) -> None:
        self.reports = nodes.reports
        self._nodes = nodes
        self._time = time
        self._claim = Script.read("claim.lua", nodes.publish)
        self._rearm = Script.read("rearm.lua", nodes.publish)
        self._parts = Parts(nodes.parts)

    @property
    def servers(self) -> int:
        return self._nodes.servers_of([*map(deadlines_key, self._nodes.parts)])

    @timed("arm")
    async def arm(self, game_id: str, at_ms: int) -> None:
        key = self._key(game_id)
        needs_replicas = self._nodes.needs_replicas(key, game_id)
        await self._nodes.execute(key, "ZADD", key, at_ms, game_id, needs_replicas=needs_replicas)

    async def disarm(self, game_id: str) -> None:
        """Makes a game never due."""
        key = self._key(game_id)
        await self._nodes.execute(key, "ZREM", key, game_id)

    @timed("rearm")
    async def rearm(self, due: Due, at_ms: int | None) -> None:
        arguments = (due.game_id, due.claimed_ms, "" if at_ms is None else at_ms)
        await self._nodes.run(self._rearm, [self._key(due.game_id)], arguments)

    def _key(self, game_id: str) -> str:
        return deadlines_key(part_of(self._nodes.parts, game_id))

    @timed("claim")
    async def claim(self, limit: int, skip: Collection[str] = ()) -> Sequence[Due]:

        async def claim_in(shares: Mapping[str, int]) -> Sequence[Sequence[Due] | BaseException]:
            skipped: dict[str, list[str]] = {part: [] for part in shares}
            for game_id in skip:
                skipped.get(part_of(self._nodes.parts, game_id), []).append(game_id)
            calls = {
                deadlines_key(part): (some, self._time.argument, CLAIM_MS, *skipped[part])
                for part, some in shares.items()
            }
            return [_due(found) for found in await self._nodes.run_each(self._claim, calls)]

        return sorted(await self._parts.claim(limit, claim_in), key=lambda due: due.at_ms)


def _due(found: Sequence[bytes] | BaseException) -> Sequence[Due] | BaseException:
    """Returns claimed games from a reply; an error as it is."""
    if isinstance(found, BaseException):
        return found
    claims = zip(found[::3], found[1::3], found[2::3], strict=True)
    return [Due(game_id.decode(), int(at_ms), int(claimed_ms)) for game_id, at_ms, claimed_ms in claims]
