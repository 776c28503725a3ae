"""A store on Redis 7, Valkey, or a compatible server: on one, or on a Redis Cluster.

All keys of a game share a hash tag, so a game is in one slot of a cluster, and each script touches the keys of one
game. Keys that span games (the lists by state, the deadlines) are separate and no turn needs them: they may lag, and
are repaired.

Commands go through Nodes (nodes.py), over held connections (connection.py): taking one from redis-py's pool
costs more than the round trip.
"""

import math
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from service.errors import StoreFull
from service.model.record import Lifetimes
from service.runtime.redis_url import Cluster, One, Sentinel, parse_redis_url
from service.storage.game_cache import GameCache
from service.storage.lists import open_list
from service.storage.redis.change_log import RedisChangeLog
from service.storage.redis.cluster import ClusterNodes
from service.storage.redis.connection import Connect, shared_connection
from service.storage.redis.deadlines import RedisDeadlines
from service.storage.redis.deployment import find_move, find_obstacle
from service.storage.redis.drafts import RedisDrafts
from service.storage.redis.games import RedisGames
from service.storage.redis.keys import (
    PROBE,
    SECRET,
    changes_channel,
    deadlines_key,
    drafts_channel,
    keys_of,
    list_key,
    outbox_key,
    pointer_key,
    presence_channel,
)
from service.storage.redis.lists import LISTS_BY_STATE, RedisLists
from service.storage.redis.names import RedisNames
from service.storage.redis.nodes import CONNECT_SECONDS, FAILURES, REPLY_SECONDS, Nodes, OneRedis, StoreTime, Word
from service.storage.redis.outbox import RedisOutbox
from service.storage.redis.presence import RedisPresence
from service.storage.redis.sentinel import sentinel_client
from service.storage.redis.streams import RedisStreams
from service.storage.store import GAME_GROWTH, NAME_MARGIN_MS, SECRET_BYTES, Store
from service.storage.timing import timed

CONNECTIONS: Final = 16
"""Most connections in a process's pool. Opening one takes longer than a command: with 64, the first 200 calls at once
took twice as long, and on a busy machine one of them timed out."""
RESERVE: Final = 0.1
"""The share of Redis's maxmemory that is reserved beside the growth of games: for lists, names and buffers."""

_CONNECTION: Final[Mapping[str, Any]] = {
    "max_connections": CONNECTIONS,
    "timeout": REPLY_SECONDS,
    "socket_timeout": REPLY_SECONDS,
    "socket_connect_timeout": CONNECT_SECONDS,
    "retry": Retry(NoBackoff(), 0),
    "retry_on_error": [],
    "health_check_interval": 0,
}
"""Options of redis-py's pools: short time-outs and no retries."""


def connect(url: str, replicas: int = 0, share: Connect = shared_connection) -> Nodes:
    """Returns the Redis servers of a URL. Raises RedisUrlError.

    Args:
        url: The URL, in a form of url.py.
        replicas: How many replicas must have a change before it is acknowledged.
        share: Connects for all commands of a server.
    """
    match parse_redis_url(url):
        case Cluster(nodes=nodes, options=options):
            return ClusterNodes(nodes, {**_CONNECTION, **options}, replicas, share)
        case one:
            return OneRedis(client_of(one), replicas, share)


def client_of(url: One | Sentinel) -> "redis.Redis":
    """Returns redis-py's client for one Redis, or for the primary that Sentinels name."""
    match url:
        case One(options=options):
            return redis.Redis.from_pool(redis.BlockingConnectionPool(**{**_CONNECTION, **options}))
        case Sentinel():
            return sentinel_client(url, _CONNECTION)


class RedisStore(Store):
    """Store on Redis.

    Args:
        nodes: From `connect`.
        lifetimes: How long games are kept after their last change.
        history: How many changes of a game are kept for watchers and history.
        clock: Replaces the clock of Redis, in milliseconds since 1970; for tests.
        log_ms: How long the change log has its entries; 0: there is no log.
    """

    def __init__(
        self,
        nodes: Nodes,
        lifetimes: Lifetimes,
        history: int,
        clock: Callable[[], int] | None = None,
        log_ms: int = 0,
    ) -> None:
        name_ms = lifetimes.lobby * 1000 + NAME_MARGIN_MS
        self.reports = nodes.reports
        self._nodes = nodes
        self._time, cache = StoreTime(nodes, clock), GameCache(clock)
        self._log = RedisChangeLog(nodes, self._time, log_ms)
        beside = RedisLists(nodes, self._time, name_ms), RedisDeadlines(nodes, self._time), self._log
        self.lists, self.deadlines, self.log = beside
        self.games = RedisGames(nodes, self._time, cache, lifetimes, history, beside)
        self.streams = RedisStreams(nodes)
        self.drafts = RedisDrafts(nodes, self._time, cache)
        self.names = RedisNames(nodes, name_ms)
        self.presence = RedisPresence(nodes, self._time)
        self.outbox = RedisOutbox(nodes, self._time)
        self._secret = secrets.token_bytes(SECRET_BYTES)
        self._has_room, self._measured_at = True, -math.inf
        """Whether there was room for another game, and when that was measured (time.monotonic)."""

    @timed("now_ms")
    async def now_ms(self) -> int:
        return await self._time.now_ms(PROBE)

    @timed("secret")
    async def secret(self) -> bytes:
        """Reads it on each call: the store may have lost its data and have a new secret."""
        kept = await self._nodes.execute(SECRET, "GET", SECRET)
        if not kept:
            kept = await self._nodes.execute(SECRET, "SET", SECRET, self._secret, "NX", "GET")
        if isinstance(kept, bytes):
            self._secret = kept
        return self._secret

    @timed("check_room")
    async def check_room(self, most_age: float = 0.0) -> None:
        """Raises StoreFull if any primary is full; never if Redis has no maxmemory."""
        if time.monotonic() - self._measured_at > most_age:
            self._has_room = await self._measure_room()
            self._measured_at = time.monotonic()
        if not self._has_room:
            raise StoreFull

    async def _measure_room(self) -> bool:
        """Returns whether every primary has room for its share of the unfinished games to grow."""
        primaries = [memory for memory in await self._nodes.memory() if memory.get("maxmemory")]
        if not primaries:
            return True
        counts = await self.lists.count()
        unfinished = sum(count for state, count in counts.items() if not state.is_over)
        growth = GAME_GROWTH * unfinished / len(primaries)
        return all(
            memory.get("used_memory", 0) - memory.get("mem_not_counted_for_evict", 0) + growth
            <= memory["maxmemory"] * (1 - RESERVE)
            for memory in primaries
        )

    @timed("ping")
    async def ping(self) -> None:
        """Writes, because a full store or a replica still answers reads."""
        await self._nodes.ping(self._touches())
        await self._log.keep()

    def _touches(self) -> list[tuple[str, tuple[Word, ...]]]:
        """Returns commands without effect on every kind of key and channel, and on the deadlines of every part.

        An ACL may deny some. Without the right to a game's channel, a commit would fail after its writes.
        """
        name = pointer_key("")
        lists = [list_key(self._nodes.parts[0], own) for own in (*LISTS_BY_STATE, open_list(""))]
        keys = [*map(deadlines_key, self._nodes.parts), *lists, *keys_of("")]
        channels = [changes_channel(""), drafts_channel(""), presence_channel("")]
        return [
            (SECRET, ("GET", SECRET)),
            (name, ("GET", name)),
            *((key, ("ZREM", key, "")) for key in keys),
            *((key, ("XDEL", key, "0-1")) for key in map(outbox_key, self._nodes.parts)),
            *((channel, (self._nodes.publish, channel, "")) for channel in channels),
            *self._log.touches(),
        ]

    async def close(self) -> None:
        await self._nodes.close()


async def obstacle_at(url: str) -> str:
    """Returns why the service cannot work with the store at a URL, and the remedy; "" if it can, or Redis is down."""
    match parse_redis_url(url):
        case Cluster(nodes=nodes, options=options) as parsed:
            first = One(parsed.shown, {**options, "host": nodes[0].host, "port": nodes[0].port})
            obstacle = await _obstacle_at(first, is_cluster=True)
            return obstacle or await _move_in(ClusterNodes(nodes, {**_CONNECTION, **options}))
        case one:
            return await _obstacle_at(one)


async def _obstacle_at(url: One | Sentinel, *, is_cluster: bool = False) -> str:
    async with client_of(url) as client:
        try:
            move = "" if is_cluster else await find_move(client.get)
            return move or await find_obstacle(client, is_cluster=is_cluster)
        except FAILURES:
            return ""


async def _move_in(nodes: ClusterNodes) -> str:
    try:
        return await nodes.find_move()
    finally:
        await nodes.close()
