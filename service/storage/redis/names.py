"""Names of games in Redis: a key each."""

from service.storage.redis.keys import pointer_key
from service.storage.redis.nodes import Nodes, Script
from service.storage.timing import timed


class RedisNames:
    """Names in Redis.

    Args:
        nodes: The Redis servers.
        name_ms: How long a name is kept after it was set.
    """

    def __init__(self, nodes: Nodes, name_ms: int) -> None:
        self.reports = nodes.reports
        self._nodes = nodes
        self._name_ms = name_ms
        self._point = Script.read("point.lua", nodes.publish)

    @timed("point_name")
    async def point(self, name: str, game_id: str, instead_of: str = "", *, kept_ms: int | None = None) -> str:
        key, arguments = pointer_key(name), (game_id, instead_of, kept_ms or self._name_ms)
        needs_replicas = bool if self._nodes.needs_replicas(key, game_id) else None
        found: bytes = await self._nodes.run(self._point, (key,), arguments, needs_replicas)
        return found.decode(errors="replace")

    @timed("find_name")
    async def find(self, name: str) -> str:
        key = pointer_key(name)
        game_id: bytes | None = await self._nodes.execute(key, "GET", key)
        return (game_id or b"").decode(errors="replace")
