"""RUMMIKUB_REDIS_REPLICAS: a change is acknowledged when enough replicas have it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import replace
from itertools import count
from typing import Final, cast

import pytest
from redis import exceptions
from redis.asyncio.connection import AbstractConnection
from structlog.testing import capture_logs

from service.errors import StoreUnavailable
from service.model.change import Commit, Committed, Conflict
from service.storage.redis.cluster import ClusterNodes
from service.storage.redis.keys import CLUSTER_PARTS, PROBE, outbox_key, part_of, pointer_key, probe_key, slot_of
from service.storage.redis.nodes import OneRedis
from service.storage.redis.replicas import ReplicaWaiter
from service.storage.redis.store import RedisStore, connect
from support.commits import GAME, MEMO, creation, joining
from support.harness import HISTORY, LIFETIMES, START_MS, primary_and_replica, until
from tools.redis_cluster import ClusterNode, RedisCluster, redis_cluster
from tools.redis_servers import RedisServer

pytestmark = pytest.mark.slow


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
                return await store.games.commit(commit)
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
                await store.games.commit(joining(record, "Ada"))
        with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
            await store.games.load(GAME, "Ada")  # its answer could be sent
        assert (await store.games.load(GAME)).record == joining(record, "Ada").record, "it is stored"
        assert await store.games.commit(replace(creation(), request_key="other")) == Conflict()
        assert await hasty.games.commit(joining(record, "Ada")) == MEMO
        replica.resume()
        assert await acknowledged(store, joining(creation().record, "Ada")) == MEMO
        assert (await store.games.load(GAME, "Ada")).memo == MEMO


Call = Callable[[RedisStore], Awaitable[object]]


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.games.delete(GAME, creation().record),
        lambda store: store.games.rewrite(creation().record.etag, joining(creation().record, "Ada").record, []),
        lambda store: store.outbox.append(GAME),
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


async def test_a_store_with_too_few_replicas_is_unhealthy(pair: tuple[RedisServer, RedisServer]) -> None:
    primary, replica = pair
    async with waiting_store(primary.url) as store:
        await acknowledged(store, creation())
        replica.pause()
        with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
            await store.ping()
        replica.resume()
        await store.ping()


async def test_a_log_entry_is_on_a_replica_before_its_change_is_stored(pair: tuple[RedisServer, RedisServer]) -> None:
    primary, replica = pair
    async with waiting_store(primary.url, clock=lambda: START_MS, log_ms=60_000) as store:
        assert await acknowledged(store, creation()) == Committed()
        replica.pause()
        with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
            await store.games.commit(joining(creation().record, "Ada"))
        assert (await store.games.load(GAME)).record == creation().record
        replica.resume()


async def test_other_calls_do_not_wait_for_replicas(pair: tuple[RedisServer, RedisServer]) -> None:
    primary, replica = pair
    async with waiting_store(primary.url) as store:
        await acknowledged(store, creation())
        replica.pause()
        commit = asyncio.create_task(store.games.commit(joining(creation().record, "Ada")))
        while (await store.games.load(GAME)).record == creation().record:
            pass
        for _ in range(20):
            await store.games.load(GAME)
        assert not commit.done()
        with pytest.raises(StoreUnavailable):
            await commit
        replica.resume()


async def test_concurrent_changes_share_a_wait(pair: tuple[RedisServer, RedisServer]) -> None:
    primary, _ = pair
    async with waiting_store(primary.url) as store:
        await acknowledged(store, creation("f" * 32))
        before = primary.execute("INFO", "commandstats")["cmdstat_wait"]["calls"]
        outcomes = await asyncio.gather(*(store.games.commit(creation(f"{number:032x}")) for number in range(200)))
        assert outcomes == [Committed()] * 200
        assert primary.execute("INFO", "commandstats")["cmdstat_wait"]["calls"] - before < 50


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
        primary.execute("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        with pytest.raises((exceptions.ConnectionError, OSError)):
            await waiter.confirm(opened, PROBE)
        again = await waiter.open()
        assert again != opened
        with pytest.raises(exceptions.ConnectionError):
            await waiter.confirm(opened, PROBE)
        await waiter.confirm(again, PROBE)


async def test_a_primary_that_restarted_without_a_change_does_not_acknowledge_it() -> None:
    with primary_and_replica("--min-replicas-to-write", "0") as (primary, replica):
        async with waiting_store(primary.url) as store:
            await acknowledged(store, creation())
            primary.kill()
            primary.start()
            until(lambda: replica.execute("INFO", "replication")["master_link_status"] == "up")
            assert await acknowledged(store, joining(creation().record, "Ada")) in {Committed(), MEMO}


@pytest.fixture(scope="module")
def cluster() -> Iterator[RedisCluster]:
    """Runs a cluster of three primaries with a replica each. A part of a list may be on another primary than a game."""
    with redis_cluster("--appendonly", "no", replicas=1) as nodes:
        yield nodes


@pytest.fixture
def emptied(cluster: RedisCluster) -> RedisCluster:
    """Returns the emptied cluster."""
    cluster.empty()
    return cluster


async def test_a_shard_without_its_replica_holds_up_no_other(emptied: RedisCluster) -> None:
    async with waiting_store(emptied.url) as store:
        assert isinstance(store._nodes, ClusterNodes)  # noqa: SLF001 - what connect returned
        await acknowledged(store, creation())
        primary = emptied.owner(slot_of(GAME))
        [replica] = emptied.replicas_of(primary)
        ids = (f"{number:032x}" for number in count())
        elsewhere = (game_id for game_id in ids if emptied.owner(slot_of(game_id)) is not primary)
        replica.pause()

        async def holds_up() -> bool:
            lost = asyncio.create_task(store.games.commit(joining(creation().record, "Ada")))
            outcomes = await asyncio.gather(*(store.games.commit(creation(next(elsewhere))) for _ in range(20)))
            assert outcomes == [Committed()] * 20
            is_over = lost.done()
            with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
                await lost
            return is_over

        # The commits elsewhere take longer than REPLICAS_SECONDS once or twice on a busy machine, but not each time.
        assert not all([await holds_up() for _ in range(5)])
        replica.resume()
        assert await acknowledged(store, joining(creation().record, "Ada")) == MEMO


def ids_by_primary(cluster: RedisCluster, key_of: Callable[[str], str]) -> tuple[ClusterNode, str, str]:
    """Returns a primary with keys of two games: of one that it has, and of one that another primary has."""

    def homes(game_id: str) -> tuple[ClusterNode, ClusterNode]:
        return cluster.owner(slot_of(key_of(game_id))), cluster.owner(slot_of(game_id))

    apart = next(game_id for game_id in map("{:032x}".format, count()) if len(set(map(id, homes(game_id)))) == 2)
    primary, _ = homes(apart)
    together = next(game_id for game_id in map("{:032x}".format, count()) if homes(game_id) == (primary, primary))
    return primary, together, apart


@pytest.mark.parametrize(
    ("call", "key_of"),
    [
        (
            lambda store, game_id: store.deadlines.arm(game_id, START_MS),
            lambda game_id: part_of(CLUSTER_PARTS, game_id),
        ),
        (
            lambda store, game_id: store.lists.index(creation(game_id).record),
            lambda game_id: part_of(CLUSTER_PARTS, game_id),
        ),
        (lambda store, game_id: store.names.point(game_id, game_id), pointer_key),
    ],
    ids=["arm", "index", "point"],
)
async def test_what_belongs_to_a_game_on_another_primary_is_on_a_replica_before_the_game_is_stored(
    emptied: RedisCluster, call: Callable[[RedisStore, str], Awaitable[object]], key_of: Callable[[str], str]
) -> None:
    primary, together, apart = ids_by_primary(emptied, key_of)
    [replica] = emptied.replicas_of(primary)
    async with waiting_store(emptied.url) as store:
        await acknowledged(store, creation(together))
        replica.pause()
        await call(store, together)  # its commit waits
        with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
            await call(store, apart)
        replica.resume()
        await call(store, apart)


# Slots that move


@contextmanager
def with_newcomer(cluster: RedisCluster) -> Iterator[tuple[RedisCluster, ClusterNode]]:
    """Yields a cluster after a primary without slots has joined it, and this primary, which has a replica."""
    with closing(ClusterNode("--appendonly", "no")) as primary, closing(ClusterNode("--appendonly", "no")) as replica:
        for node in (primary, replica):
            node.start()
            node.node_id = node.execute("CLUSTER", "MYID").decode()
        wider = RedisCluster([*cluster.nodes, primary, replica], cluster.size + 1)
        wider.meet()
        replica.execute("CLUSTER", "REPLICATE", primary.node_id)
        until(lambda: replica.execute("ROLE")[3:4] == [b"connected"] and primary.info()["cluster_state"] == "ok")
        yield wider, primary


def in_slots_of(primary: ClusterNode, cluster: RedisCluster, others_than: int) -> Iterator[str]:
    """Yields ids of games of a primary, in other slots than one."""
    ids = (f"{number:032x}" for number in count())
    return (game_id for game_id in ids if (slot := slot_of(game_id)) != others_than and cluster.owner(slot) is primary)


async def test_a_primary_with_too_few_replicas_is_logged_and_all_of_them_are_unhealthy(emptied: RedisCluster) -> None:
    replicas = [replica for primary in emptied.primaries for replica in emptied.replicas_of(primary)]
    async with waiting_store(emptied.url) as store:
        for primary in emptied.primaries:
            await acknowledged(store, creation(next(in_slots_of(primary, emptied, 0))))
        replicas[0].pause()
        with capture_logs() as logs:
            await store.ping()
            await store.ping()
        assert [(log["result"], log["error"]) for log in logs if "result" in log] == [
            ("a primary accepts no writes", "TooFewReplicasError: 0 of 1 replicas have the change")
        ]
        for replica in replicas[1:]:
            replica.pause()
        with capture_logs(), pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
            await store.ping()
        for replica in replicas:
            replica.resume()
        emptied.wait_until_whole()
        await store.ping()


@pytest.mark.parametrize(
    ("setting", "value", "error"),
    [("min-replicas-to-write", 2, "NoReplicasError"), ("maxmemory", 1, "OutOfMemoryError")],
)
async def test_a_primary_that_refuses_writes_leaves_the_others_healthy(
    emptied: RedisCluster, setting: str, value: int, error: str
) -> None:
    refusing = emptied.primaries[0]
    async with waiting_store(emptied.url) as store:
        await store.ping()
        refusing.execute("CONFIG", "SET", setting, value)
        with capture_logs() as logs:
            for _ in range(3):
                await store.ping()
        refusing.execute("CONFIG", "SET", setting, 0)
        assert [(log["result"], log["error"].partition(":")[0]) for log in logs if "result" in log] == [
            ("a primary accepts no writes", error)
        ]
        await store.ping()


async def test_a_change_is_acknowledged_while_the_slot_of_its_primarys_probe_moves(emptied: RedisCluster) -> None:
    async with waiting_store(emptied.url) as store:
        await acknowledged(store, creation())
        source = emptied.owner(slot_of(GAME))
        target = next(node for node in emptied.primaries if node is not source)
        [probe] = source.execute("KEYS", "*:probe")
        slot = slot_of(probe.decode())
        elsewhere = in_slots_of(source, emptied, slot)
        emptied.open_slot(slot, target)
        emptied.move_key(probe, source, target)
        assert await store.games.commit(creation(next(elsewhere))) == Committed()
        emptied.close_slot(slot, target)
        assert await store.games.commit(creation(next(elsewhere))) == Committed()


async def test_a_write_is_acknowledged_by_a_primary_that_imports_its_first_slot(emptied: RedisCluster) -> None:
    key = outbox_key(part_of(CLUSTER_PARTS, GAME))
    slot = slot_of(key)
    with with_newcomer(emptied) as (cluster, newcomer):
        async with waiting_store(cluster.url) as store:
            await acknowledged(store, creation())
            cluster.open_slot(slot, newcomer)
            await store.outbox.append(GAME)
            assert set(cluster.keys_in(slot, newcomer)) == {key.encode(), probe_key(slot).encode()}
            cluster.abandon_move(slot)


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


def waiter_on(connection: SilentConnection) -> ReplicaWaiter:
    return ReplicaWaiter(lambda: cast("AbstractConnection", connection), 1)


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
    during = asyncio.create_task(waiter.confirm(opened, PROBE))
    await connection.has_sent.wait()
    behind = asyncio.create_task(waiter.confirm(opened, PROBE))
    await asyncio.sleep(0)
    await waiter.close()
    for call in (during, behind):
        with pytest.raises(exceptions.ConnectionError):
            await asyncio.wait_for(call, LIMIT)
