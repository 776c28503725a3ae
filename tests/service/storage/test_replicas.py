"""RUMMIKUB_REDIS_REPLICAS: a change is acknowledged when enough replicas have it."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final, cast

import pytest
from redis import exceptions
from redis.asyncio.connection import AbstractConnection

from service.errors import StoreUnavailable
from service.storage.base import Commit, Committed, Conflict
from service.storage.redis.cluster import ClusterNodes
from service.storage.redis.keys import slot_of
from service.storage.redis.nodes import OneRedis
from service.storage.redis.replicas import ReplicaWaiter
from service.storage.redis.store import RedisStore, connect
from support.commits import GAME, MEMO, creation, joining
from support.harness import HISTORY, LIFETIMES, START_MS, primary_and_replica, until
from tools.redis_cluster import redis_cluster
from tools.redis_servers import RedisServer


@asynccontextmanager
async def waiting_store(
    url: str, replicas: int = 1, clock: Callable[[], int] | None = None, log_ms: int = 0
) -> AsyncIterator[RedisStore]:
    """Yields a store that waits for replicas."""
    store = RedisStore(connect(url, replicas), LIFETIMES, HISTORY, clock, log_ms)
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
def pair() -> Iterator[tuple[RedisServer, RedisServer]]:
    """Runs a primary and its replica."""
    with primary_and_replica() as servers:
        yield servers


async def acknowledged(store: RedisStore, commit: Commit) -> object:
    """Returns the outcome of a commit, repeated until it is acknowledged. A new replica needs a moment."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await store.commit(commit)
            except StoreUnavailable:
                await asyncio.sleep(0.05)


async def test_a_change_is_acknowledged_when_a_replica_has_it(pair: tuple[RedisServer, RedisServer]) -> None:
    primary, replica = pair
    async with waiting_store(primary.url) as store, waiting_store(primary.url, 0) as hasty:
        record = creation().record
        await acknowledged(store, creation())
        replica.pause()
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
                await store.commit(joining(record, "Ada"))
        with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
            await store.load(GAME, "Ada")  # its answer could be sent
        assert (await store.load(GAME)).record == joining(record, "Ada").record, "it is stored"
        assert await store.commit(replace(creation(), request_key="other")) == Conflict()
        assert await hasty.commit(joining(record, "Ada")) == MEMO
        replica.resume()
        assert await acknowledged(store, joining(creation().record, "Ada")) == MEMO
        assert (await store.load(GAME, "Ada")).memo == MEMO


Call = Callable[[RedisStore], Awaitable[object]]


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.delete(GAME, creation().record),
        lambda store: store.rewrite(creation().record.etag, joining(creation().record, "Ada").record, []),
        lambda store: store.append_to_outbox(GAME),
    ],
    ids=["delete", "rewrite", "append_to_outbox"],
)
async def test_what_a_caller_relies_on_is_acknowledged_when_a_replica_has_it(
    pair: tuple[RedisServer, RedisServer], call: Call
) -> None:
    primary, replica = pair
    async with waiting_store(primary.url) as store:
        await acknowledged(store, creation())
        replica.pause()
        with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
            await call(store)
        replica.resume()


async def test_a_log_entry_is_on_a_replica_before_its_change_is_stored(pair: tuple[RedisServer, RedisServer]) -> None:
    primary, replica = pair
    async with waiting_store(primary.url, clock=lambda: START_MS, log_ms=60_000) as store:
        assert await acknowledged(store, creation()) == Committed()
        replica.pause()
        with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
            await store.commit(joining(creation().record, "Ada"))
        assert (await store.load(GAME)).record == creation().record
        replica.resume()


async def test_other_calls_do_not_wait_for_replicas(pair: tuple[RedisServer, RedisServer]) -> None:
    primary, replica = pair
    async with waiting_store(primary.url) as store:
        await acknowledged(store, creation())
        replica.pause()
        commit = asyncio.create_task(store.commit(joining(creation().record, "Ada")))
        while (await store.load(GAME)).record == creation().record:
            pass
        for _ in range(20):
            await store.load(GAME)
        assert not commit.done()
        with pytest.raises(StoreUnavailable):
            await commit
        replica.resume()


async def test_concurrent_changes_share_a_wait(pair: tuple[RedisServer, RedisServer]) -> None:
    primary, _ = pair
    async with waiting_store(primary.url) as store:
        await acknowledged(store, creation("f" * 32))
        before = primary.tell("INFO", "commandstats")["cmdstat_wait"]["calls"]
        outcomes = await asyncio.gather(*(store.commit(creation(f"{number:032x}")) for number in range(200)))
        assert outcomes == [Committed()] * 200
        assert primary.tell("INFO", "commandstats")["cmdstat_wait"]["calls"] - before < 50


async def test_a_wait_begun_before_a_lost_connection_is_not_confirmed_after_it(
    pair: tuple[RedisServer, RedisServer],
) -> None:
    """The new connection may lead to a process that lost the change."""
    primary, _ = pair
    async with waiting_store(primary.url) as store:
        await acknowledged(store, creation())
        nodes = store._nodes  # noqa: SLF001 - the moment between commit and WAIT cannot be reached from outside
        assert isinstance(nodes, OneRedis)
        waiter = nodes._replicas  # noqa: SLF001 - as above
        assert waiter
        opened = await waiter.open()
        primary.tell("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        with pytest.raises((exceptions.ConnectionError, OSError)):
            await waiter.confirm(opened)
        again = await waiter.open()
        assert again != opened
        with pytest.raises(exceptions.ConnectionError):
            await waiter.confirm(opened)
        await waiter.confirm(again)


async def test_a_primary_that_restarted_without_a_change_does_not_acknowledge_it() -> None:
    with primary_and_replica("--min-replicas-to-write", "0") as (primary, replica):
        async with waiting_store(primary.url) as store:
            await acknowledged(store, creation())
            primary.kill()
            primary.start()
            until(lambda: replica.tell("INFO", "replication")["master_link_status"] == "up")
            assert await acknowledged(store, joining(creation().record, "Ada")) in {Committed(), MEMO}


async def test_a_shard_without_its_replica_holds_up_no_other() -> None:
    with redis_cluster("--appendonly", "no", replicas=1) as cluster:
        async with waiting_store(cluster.url) as store:
            assert isinstance(store._nodes, ClusterNodes)  # noqa: SLF001 - what connect returned
            await acknowledged(store, creation())
            primary = cluster.owner(slot_of(GAME))
            [replica] = cluster.replicas_of(primary)
            ids = (f"{number:032x}" for number in range(1_000))
            elsewhere = [game_id for game_id in ids if cluster.owner(slot_of(game_id)) is not primary][:20]
            replica.pause()
            lost = asyncio.create_task(store.commit(joining(creation().record, "Ada")))
            began = time.monotonic()
            outcomes = await asyncio.gather(*(store.commit(creation(game_id)) for game_id in elsewhere))
            assert outcomes == [Committed()] * len(elsewhere)
            assert not lost.done(), f"{time.monotonic() - began} s"
            with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
                await lost
            replica.resume()
            assert await acknowledged(store, joining(creation().record, "Ada")) == MEMO


# A primary that leaves the cluster

LIMIT: Final = 2.0
"""How long a call that must fail may take."""


class SilentConnection:
    """A connection that replies to nothing, and that a test may keep from being opened."""

    def __init__(self) -> None:
        self.can_open = asyncio.Event()
        self.has_sent = asyncio.Event()

    async def connect(self) -> None:
        await self.can_open.wait()

    async def disconnect(self, *, nowait: bool) -> None:
        """Closes nothing."""

    def pack_commands(self, commands: list[object]) -> list[object]:
        return commands

    async def send_packed_command(self, _: list[object]) -> None:
        self.has_sent.set()

    async def read_response(self) -> None:
        await asyncio.Event().wait()


def waiter_on(connection: SilentConnection, probe: Callable[[], str] = lambda: "probe") -> ReplicaWaiter:
    return ReplicaWaiter(lambda: cast("AbstractConnection", connection), probe, 1)


async def test_calls_fail_that_wait_for_a_connection_that_is_closed() -> None:
    """They were not cancelled themselves, so they must not raise CancelledError."""
    waiter = waiter_on(SilentConnection())
    calls = [asyncio.create_task(waiter.open()) for _ in range(2)]
    await asyncio.sleep(0)
    await waiter.close()
    for call in calls:
        with pytest.raises(exceptions.ConnectionError, match="was closed while it was opened"):
            await asyncio.wait_for(call, LIMIT)


async def test_a_cancelled_call_does_not_cancel_the_opening_of_the_connection() -> None:
    connection = SilentConnection()
    waiter = waiter_on(connection)
    cancelled, other = (asyncio.create_task(waiter.open()) for _ in range(2))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    connection.can_open.set()
    assert await asyncio.wait_for(other, LIMIT) == 1
    await waiter.close()


async def test_calls_fail_whose_wait_is_interrupted_by_close() -> None:
    connection = SilentConnection()
    connection.can_open.set()
    waiter = waiter_on(connection)
    opened = await waiter.open()
    during = asyncio.create_task(waiter.confirm(opened))
    await connection.has_sent.wait()
    behind = asyncio.create_task(waiter.confirm(opened))
    await asyncio.sleep(0)
    await waiter.close()
    for call in (during, behind):
        with pytest.raises(exceptions.ConnectionError):
            await asyncio.wait_for(call, LIMIT)


async def test_calls_fail_at_a_primary_without_slots() -> None:
    def no_probe() -> str:
        raise exceptions.ConnectionError("the primary has no slots")

    connection = SilentConnection()
    connection.can_open.set()
    waiter = waiter_on(connection, no_probe)
    opened = await waiter.open()
    with pytest.raises(exceptions.ConnectionError, match="has no slots"):
        await asyncio.wait_for(waiter.confirm(opened), LIMIT)
    await waiter.close()
