"""A server with the operator's listener, and its client."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc.aio
import redis

from rummikub.admin.v1 import admin_service_pb2 as pb
from rummikub.admin.v1.admin_service_pb2_grpc import AdminServiceStub
from service.errors import StoredFormatUnknown
from service.operator.archive.sink import Sink
from service.runtime.redis_url import Cluster, parse_redis_url
from service.server import Server
from service.storage.store import Store
from service.storage.stored_events import decompress
from support.harness import Client, running_server, server_settings

if TYPE_CHECKING:
    from rummikub.admin.v1.admin_service_pb2_grpc import AdminServiceAsyncStub


Keys: TypeAlias = "redis.Redis | redis.RedisCluster"


@dataclass(frozen=True)
class Operated:
    """A server and its store, a client of players, and the operator's."""

    server: Server
    store: Store
    client: Client
    admin: "AdminServiceAsyncStub"


@asynccontextmanager
async def operated(store: Store, sink: Sink | None = None, **settings: object) -> AsyncIterator[Operated]:
    """Runs a server in this process with AdminService; yields it with clients."""
    changed = server_settings(**{"admin_listen": "127.0.0.1:0", "heartbeat_seconds": 0.05, **settings})
    async with running_server(store, changed, sink=sink) as (server, client), admin_at(server.admin_port) as admin:
        yield Operated(server, store, client, admin)


@asynccontextmanager
async def admin_at(port: int) -> "AsyncIterator[AdminServiceAsyncStub]":
    """Yields the operator's client of a server."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        yield AdminServiceStub(channel)


async def changes(
    admin: "AdminServiceAsyncStub", request: pb.WatchGamesRequest, count: int
) -> list[pb.WatchGamesResponse]:
    """Returns the next updates of a watch that are no heartbeats."""
    call = admin.WatchGames(request)
    found: list[pb.WatchGamesResponse] = []
    async for update in call:
        if not update.HasField("heartbeat"):
            found.append(update)
        if len(found) == count:
            break
    call.cancel()
    return found


def traces_of(url: str, *texts: str) -> list[bytes]:
    """Returns the keys at a URL that have one of some texts in their name or value, compressed or not."""
    with closing(_client(url)) as client:
        return [key for key in client.scan_iter() if _has(client, key, [text.encode() for text in texts])]


def _client(url: str) -> Keys:
    parsed = parse_redis_url(url)
    if isinstance(parsed, Cluster):
        return redis.RedisCluster(host=parsed.nodes[0].host, port=parsed.nodes[0].port)
    return redis.Redis.from_url(url)


def _has(client: Keys, key: bytes, texts: Sequence[bytes]) -> bool:
    kept = [key, *_parts(client, key)]
    return any(text in value for text in texts for value in (*kept, *map(_inflated, kept)))


def _parts(client: Keys, key: bytes) -> list[bytes]:
    """Returns all names and values at a key."""
    found: Any
    match client.type(key):
        case b"string":
            found = [client.get(key)]
        case b"hash":
            found = [part for pair in client.hgetall(key).items() for part in pair]
        case b"zset":
            found = client.zrange(key, 0, -1)
        case b"stream":
            entries: Any = client.xrange(key)
            found = [part for _, entry in entries for pair in entry.items() for part in pair]
        case other:
            raise AssertionError(f"a key of type {other!r}")
    return list(found)


def _inflated(value: bytes) -> bytes:
    try:
        return decompress(value)
    except StoredFormatUnknown:
        return b""
