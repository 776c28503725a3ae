"""The deadlines in Redis: one sorted set of games by time in each part."""

import asyncio
from collections.abc import Collection, Sequence
from itertools import count

from service.storage.base import CLAIM_MS, Due
from service.storage.redis.keys import deadlines_key, part_of
from service.storage.redis.nodes import Nodes, Script
from service.storage.redis.time import StoreTime


class RedisDeadlines:
    """Claims and arms games, each in its part.

    Args:
        nodes: The Redis servers.
        time: The clock of the store.
    """

    def __init__(self, nodes: Nodes, time: StoreTime) -> None:
        self._nodes = nodes
        self._time = time
        self._claim = Script.read("claim.lua", nodes.publish)
        self._rearm = Script.read("rearm.lua", nodes.publish)
        self._first_parts = count()

    async def arm(self, game_id: str, at_ms: int) -> None:
        """See GameStore."""
        key = self._key(game_id)
        await self._nodes.execute(key, "ZADD", key, at_ms, game_id)

    async def disarm(self, game_id: str) -> None:
        """Makes a game never due."""
        key = self._key(game_id)
        await self._nodes.execute(key, "ZREM", key, game_id)

    async def rearm(self, due: Due, at_ms: int | None) -> None:
        """See GameStore."""
        arguments = (due.game_id, due.claimed_ms, "" if at_ms is None else at_ms)
        await self._nodes.run(self._rearm, [self._key(due.game_id)], arguments)

    def _key(self, game_id: str) -> str:
        return deadlines_key(part_of(self._nodes.parts, game_id))

    async def claim(self, limit: int, skip: Collection[str]) -> Sequence[Due]:
        """See GameStore.

        Each round claims an equal share of what is left of the limit from every part that may have more, all at once.
        Each call begins with another part, so that no part is last each time. A part that fails holds up no other.
        """
        parts = self._nodes.parts
        first = next(self._first_parts) % len(parts)
        waiting = [*parts[first:], *parts[:first]]
        skipped = {part: [game_id for game_id in skip if part_of(parts, game_id) == part] for part in parts}
        found: list[Due] = []
        failures: list[BaseException] = []
        while waiting and len(found) < limit:
            share, more = divmod(limit - len(found), len(waiting))
            shares = {part: share + (place < more) for place, part in enumerate(waiting)}
            asked = [part for part in waiting if shares[part]]
            claims = await asyncio.gather(
                *(self._claim_in(part, shares[part], skipped[part]) for part in asked), return_exceptions=True
            )
            for part, some in zip(asked, claims, strict=True):
                if isinstance(some, BaseException):
                    failures.append(some)
                else:
                    found += some
                if isinstance(some, BaseException) or len(some) < shares[part]:
                    waiting.remove(part)
        if len(failures) == len(parts):
            raise failures[0]
        return sorted(found, key=lambda due: due.at_ms)

    async def _claim_in(self, part: str, limit: int, skip: Sequence[str]) -> Sequence[Due]:
        """Returns at most `limit` games of a part, claimed, earliest first."""
        found = await self._nodes.run(self._claim, [deadlines_key(part)], [limit, self._time.argument, CLAIM_MS, *skip])
        claims = zip(found[::3], found[1::3], found[2::3], strict=True)
        return [Due(game_id.decode(), int(at_ms), int(claimed_ms)) for game_id, at_ms, claimed_ms in claims]
