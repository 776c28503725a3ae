"""The clock of a store in Redis."""

from collections.abc import Callable

from service.storage.redis.nodes import Nodes


class StoreTime:
    """The clock of Redis, or the clock of a test in its place.

    Args:
        nodes: The Redis servers.
        clock: Returns milliseconds since 1970; None for the clock of Redis.
    """

    def __init__(self, nodes: Nodes, clock: Callable[[], int] | None) -> None:
        self._nodes = nodes
        self._clock = clock

    @property
    def argument(self) -> int | str:
        """The time as an argument of scripts, which read the clock of Redis for ""."""
        return self._clock() if self._clock else ""

    def milliseconds(self, seconds: bytes, micros: bytes) -> int:
        """Returns the time in a reply to TIME."""
        return self._clock() if self._clock else int(seconds) * 1000 + int(micros) // 1000

    async def now_ms(self, key: str) -> int:
        """Returns the time of the Redis that has a key."""
        return self.milliseconds(*await self._nodes.execute(key, "TIME"))
