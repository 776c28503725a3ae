"""The keys of a store and their content, in a form that any Redis or Valkey of any version can be given.

DUMP would be shorter, but its format belongs to one program and version: Redis reads none of Valkey 9.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import redis.asyncio as redis
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import SSLConnection

from service.runtime.redis_url import Address, Cluster, One, Options, Sentinel, parse_redis_url
from service.storage.redis.deployment import replicas_in
from service.storage.redis.keys import CLUSTER_PARTS, ONE_PART, PLAYER_PREFIX, UNFINISHED, keys_of
from service.storage.redis.sentinel import find_primary

AT_ONCE: Final = 8
"""Pipelines that are under way at the same time."""
BATCH: Final = 50
"""Games or keys of a pipeline."""
SCANNED: Final = 1_000
"""Keys or members that are read in one step of a scan."""
ID_LENGTH: Final = 32
"""The length of a game's id."""
SECONDS: Final = 10.0
"""Timeout of each command: a large value may take longer than a call of a game."""
_TIMEOUTS: Final = {"socket_timeout": SECONDS, "socket_connect_timeout": SECONDS}

_GAME_PREFIX: Final = "rummikub:{"
_NAME_PREFIX: Final = "rummikub:name:"
_READ: Final = """\
local found = {}
for number, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key)['ok']
  local items = {}
  if kind == 'string' then
    items = {redis.call('GET', key)}
  elseif kind == 'hash' then
    items = redis.call('HGETALL', key)
  elseif kind == 'zset' then
    items = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'stream' then
    for _, entry in ipairs(redis.call('XRANGE', key, '-', '+')) do
      table.insert(items, entry[1])
      table.insert(items, #entry[2])
      for _, value in ipairs(entry[2]) do table.insert(items, value) end
    end
  end
  found[number] = {kind, redis.call('PTTL', key), items}
end
return found
"""
"""A script that returns the kind, the lifetime and the items of each of its keys, which are in one slot."""
_WRITE_STREAM: Final = """\
local at = 1
while at < #ARGV do
  local last = at + 1 + tonumber(ARGV[at + 1])
  redis.call('XADD', KEYS[1], ARGV[at], unpack(ARGV, at + 2, last))
  at = last + 1
end
"""
"""A script that adds the items of a stream, which are many: as commands of their own they take three times as long."""


@dataclass(frozen=True, slots=True)
class Content:
    """A key and its content.

    Attributes:
        key: The key.
        kind: "string", "hash", "zset" or "stream"; "none" if there is no such key.
        left_ms: How long it lives on, in milliseconds; -1 without end.
        items: The value of a string; fields and values of a hash; members and scores of a sorted set; of each entry of
            a stream its id, the number of its fields and values, and these.
    """

    key: str
    kind: str
    left_ms: int
    items: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a store.

    Attributes:
        games: The ids of its games.
        names: The names of games, and the lists of players, which have no parts either.
        shared: Keys that span games, or are unknown.
    """

    games: set[str]
    names: set[str]
    shared: set[str]


class Keyspace:
    """A Redis or a Redis Cluster, with all its keys.

    Args:
        url: Where it is.
        replicas: The servers that Sentinels may promote.
    """

    def __init__(self, url: One | Cluster, replicas: Sequence[Address] = ()) -> None:
        self.shown = url.shown
        options = {**url.options, **_TIMEOUTS}
        self.client: Any
        if isinstance(url, Cluster):
            self.parts = CLUSTER_PARTS
            is_tls = options.pop("connection_class", None) is SSLConnection
            nodes = [ClusterNode(node.host, node.port) for node in url.nodes]
            self.client = redis.RedisCluster(startup_nodes=nodes, ssl=is_tls, **options)
        else:
            self.parts = ONE_PART
            self.client = _client(options)
        self.replicas = {
            str(replica): _client({**options, "host": replica.host, "port": replica.port}) for replica in replicas
        }

    @classmethod
    async def open(cls, url: str) -> Self:
        """Returns the store at a URL; behind Sentinels, on the primary that they name now, until it is closed."""
        parsed = parse_redis_url(url)
        if not isinstance(parsed, Sentinel):
            return cls(parsed)
        address = await find_primary(parsed, _TIMEOUTS)
        primary = One(parsed.shown, {**parsed.options, "host": address.host, "port": address.port})
        async with _client({**primary.options, **_TIMEOUTS}) as client:
            replication = await client.info("replication")
        return cls(primary, list(replicas_in(replication)))

    async def keys(self) -> Keys:
        """Returns all keys of the service."""
        keys = Keys(set(), set(), set())
        async for found in self.client.scan_iter(match="rummikub:*", count=SCANNED):
            key = found.decode()
            if key.startswith((_NAME_PREFIX, PLAYER_PREFIX)):
                keys.names.add(key)
            elif not is_key_of_game(key):
                keys.shared.add(key)
            elif key.endswith("}:game"):
                keys.games.add(key.removeprefix(_GAME_PREFIX).partition("}")[0])
        return keys

    async def games(self, games: Iterable[str]) -> list[Content]:
        """Returns the content of all keys of games, that of each game at one moment."""
        return await self._read([keys_of(game) for game in games])

    async def content(self, keys: Iterable[str]) -> list[Content]:
        """Returns the content of keys that are not of games."""
        return await self._read([[key] for key in keys])

    async def _read(self, groups: Sequence[Sequence[str]]) -> list[Content]:
        pipeline = self.client.pipeline(transaction=False)
        for group in groups:
            pipeline.eval(_READ, len(group), *group)
        found = []
        for group, answers in zip(groups, await pipeline.execute(), strict=True):
            for key, (kind, left_ms, items) in zip(group, answers, strict=True):
                found.append(Content(key, kind.decode(), left_ms, [_as_bytes(item) for item in items]))
        return found

    async def write(self, contents: Iterable[Content]) -> None:
        """Replaces keys by their content, in order. Keys without content are deleted."""
        pipeline = self.client.pipeline(transaction=False)
        for content in contents:
            pipeline.delete(content.key)
            if content.kind != "none":
                _WRITERS[content.kind](pipeline, content.key, content.items)
                if content.left_ms >= 0:
                    pipeline.pexpire(content.key, max(1, content.left_ms))
        await pipeline.execute()

    async def erase(self) -> None:
        """Deletes all keys of the service but UNFINISHED."""
        keys = [key.decode() async for key in self.client.scan_iter(match="rummikub:*", count=SCANNED)]
        await for_each((key for key in keys if key != UNFINISHED), self._delete)

    async def delete_games(self, games: Iterable[str]) -> None:
        """Deletes games."""
        await for_each((key for game in games for key in keys_of(game)), self._delete)

    async def _delete(self, keys: Sequence[str]) -> None:
        pipeline = self.client.pipeline(transaction=False)
        for key in keys:
            pipeline.delete(key)
        await pipeline.execute()

    async def close(self) -> None:
        """Closes the connections."""
        for client in (self.client, *self.replicas.values()):
            await client.aclose()


def _write_string(pipeline: Any, key: str, items: Sequence[bytes]) -> None:  # noqa: ANN401 - of one Redis or a cluster
    pipeline.set(key, items[0])


def _write_hash(pipeline: Any, key: str, items: Sequence[bytes]) -> None:  # noqa: ANN401
    pipeline.hset(key, items=list(items))


def _write_sorted_set(pipeline: Any, key: str, items: Sequence[bytes]) -> None:  # noqa: ANN401
    pipeline.zadd(key, {member: float(score) for member, score in zip(items[::2], items[1::2], strict=True)})


def _write_stream(pipeline: Any, key: str, items: Sequence[bytes]) -> None:  # noqa: ANN401
    pipeline.eval(_WRITE_STREAM, 1, key, *items)


_WRITERS: Final[dict[str, Callable[[Any, str, Sequence[bytes]], None]]] = {
    "string": _write_string,
    "hash": _write_hash,
    "zset": _write_sorted_set,
    "stream": _write_stream,
}


def _as_bytes(item: bytes | int) -> bytes:
    return item if isinstance(item, bytes) else b"%d" % item


def _client(options: Options) -> "redis.Redis":
    """Returns a client of one server."""
    return redis.Redis.from_pool(redis.ConnectionPool(**options))


def is_key_of_game(key: str) -> bool:
    """Returns whether a key belongs to one game; the hash tags of parts and probes are shorter than a game's id."""
    return key.startswith(_GAME_PREFIX) and len(key.removeprefix(_GAME_PREFIX).partition("}")[0]) == ID_LENGTH


async def for_each(items: Iterable[str], work: Callable[[Sequence[str]], Awaitable[object]]) -> None:
    """Does work on items, BATCH of them at once and AT_ONCE batches at the same time."""
    remaining = iter(items)

    async def worker() -> None:
        while batch := list(itertools.islice(remaining, BATCH)):
            await work(batch)

    workers = [asyncio.create_task(worker()) for _ in range(AT_ONCE)]
    try:
        await asyncio.gather(*workers)
    finally:  # after a failure the others must not use connections that are being closed
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
