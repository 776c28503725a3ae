"""ClusterNodes on primaries of its own: health while some of them fail, and connections after a change of the map."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio.connection import ConnectionPool
from structlog.testing import capture_logs

from service.errors import StoreUnavailable
from service.runtime.redis_url import Address
from service.storage.redis import cluster
from service.storage.redis.cluster import ClusterNodes
from service.storage.redis.connection import exception_of
from service.storage.redis.keys import MARK, UNFINISHED, slot_of
from service.storage.redis.slots import SlotMap

ONE, TWO, THREE = (Address("10.0.0.1", port) for port in (1, 2, 3))
KEYS = [f"key {number}" for number in range(20)]
"""Keys of both primaries."""


def map_of(*primaries: Address) -> SlotMap:
    """Returns a map in which primaries own slots in turn."""
    owners = tuple(primaries[slot % len(primaries)] for slot in range(16_384))
    return SlotMap(owners, {primary: frozenset() for primary in primaries})


MARKS = [("GET", MARK), ("GET", UNFINISHED)]


class FakeCluster:
    """Primaries, and what each replies instead of OK."""

    def __init__(self) -> None:
        self.errors: dict[Address, str] = {}
        self.map = map_of(ONE, TWO)
        self.closed: list[Address] = []

    def connection(self, pool: ConnectionPool, _reply_seconds: float) -> "FakeConnection":
        return FakeConnection(self, Address(pool.connection_kwargs["host"], pool.connection_kwargs["port"]))


class FakeConnection:
    """A CommandConnection to a node of a FakeCluster."""

    current = None
    is_open = False

    def __init__(self, nodes: FakeCluster, address: Address) -> None:
        self._nodes = nodes
        self._address = address

    async def execute(self, *command: str | int | bytes, is_asking: bool = False) -> bytes | None:  # noqa: ARG002 - the protocol's
        if error := self._nodes.errors.get(self._address):
            raise exception_of(error)
        return None if command in MARKS else b"OK"

    def drop(self, _: object) -> None:
        """Does nothing."""

    async def close(self) -> None:
        self._nodes.closed.append(self._address)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """Replaces the nodes of a cluster."""

    nodes = FakeCluster()

    async def no_risk(_: object, *, is_cluster: bool) -> str:
        assert is_cluster
        return ""

    monkeypatch.setattr(cluster, "find_risk", no_risk)
    return nodes


@pytest.fixture
async def nodes(fake: FakeCluster) -> AsyncIterator[ClusterNodes]:
    class Nodes(ClusterNodes):
        async def _newest_map(self) -> SlotMap:
            return fake.map

    one = Nodes([ONE], {}, share=fake.connection)
    yield one
    await one.close()


TOUCHES = [(key, ("SET", key, 1)) for key in KEYS]
REFUSALS = (
    "CLUSTERDOWN The cluster is down",
    "LOADING Redis is loading the dataset in memory",
    "MISCONF Redis is configured to save RDB snapshots",
    "NOREPLICAS Not enough good replicas to write.",
    "OOM command not allowed when used memory > 'maxmemory'.",
)
"""What a primary replies that accepts no writes."""


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: error.partition(" ")[0])
async def test_a_store_is_healthy_while_any_primary_accepts_writes(
    nodes: ClusterNodes, fake: FakeCluster, error: str
) -> None:
    fake.errors[TWO] = error
    with capture_logs() as logs:
        for _ in range(2):
            await nodes.ping(TOUCHES)
    assert [(log["result"], log["address"]) for log in logs] == [("a primary accepts no writes", str(TWO))]
    fake.errors[ONE] = error
    with capture_logs(), pytest.raises(StoreUnavailable):
        await nodes.ping(TOUCHES)


async def test_a_store_without_rights_on_one_primary_is_unhealthy(nodes: ClusterNodes, fake: FakeCluster) -> None:
    fake.errors[TWO] = "NOPERM this user has no permissions to run the 'set' command"
    with capture_logs(), pytest.raises(StoreUnavailable, match="NoPermission"):
        await nodes.ping(TOUCHES)


async def test_a_store_is_healthy_while_a_primary_has_lost_its_last_slot(
    nodes: ClusterNodes, fake: FakeCluster
) -> None:
    slot = slot_of(KEYS[0])
    owners = tuple(TWO if number == slot else ONE for number in range(16_384))
    fake.map = SlotMap(owners, {primary: frozenset() for primary in (ONE, TWO)})
    fake.errors[TWO] = f"MOVED {slot} {ONE}"
    assert await nodes.execute(KEYS[0], "GET", KEYS[0]) == b"OK"
    with capture_logs() as logs:
        await nodes.ping(TOUCHES)
    assert logs == []


@pytest.mark.parametrize("error", ["MOVED 1", "MOVED 1 10.0.0.1", "ASK x 10.0.0.1:1"])
async def test_a_malformed_redirection_makes_the_store_unavailable(
    nodes: ClusterNodes, fake: FakeCluster, error: str
) -> None:
    fake.errors = dict.fromkeys((ONE, TWO), error)
    with capture_logs(), pytest.raises(StoreUnavailable, match=error):
        await nodes.execute(KEYS[0], "GET", KEYS[0])


async def test_a_change_of_the_map_closes_only_connections_to_nodes_that_left_it(
    nodes: ClusterNodes, fake: FakeCluster
) -> None:
    """A primary that imports its first slot is in no map yet, and has calls in flight."""
    await nodes.ping(TOUCHES)
    moving = next(key for key in KEYS if fake.map.owners[slot_of(key)] == ONE)
    fake.errors[ONE] = f"ASK {slot_of(moving)} {THREE}"
    assert await nodes.execute(moving, "GET", moving) == b"OK"
    fake.map = map_of(ONE)
    await nodes._learn_soon()  # noqa: SLF001 - the moment of the next reading cannot be chosen from outside
    async with asyncio.timeout(20):
        while not fake.closed:  # noqa: ASYNC110 - a closed connection has no other sign
            await asyncio.sleep(0)
    assert fake.closed == [TWO]


@pytest.mark.slow  # redis-py ends the handshake that it waits for, of five seconds, before it is cancelled
async def test_calls_that_wait_for_a_map_fail_when_the_store_is_closed_and_no_task_is_left() -> None:
    """They were not cancelled themselves, so they must not raise CancelledError."""
    is_asked, can_reply = asyncio.Event(), asyncio.Event()

    async def be_silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_asked.set()
        await can_reply.wait()
        writer.close()

    async with await asyncio.start_server(be_silent, "127.0.0.1", 0) as server:
        tasks = asyncio.all_tasks()
        nodes = ClusterNodes([Address(*server.sockets[0].getsockname()[:2])], {})
        call = asyncio.create_task(nodes.execute(KEYS[0], "GET", KEYS[0]))
        await is_asked.wait()
        await nodes.close()
        with pytest.raises(StoreUnavailable, match="the store was closed"):
            await call
        assert [task for task in asyncio.all_tasks() - tasks if "be_silent" not in repr(task)] == []
        with pytest.raises(StoreUnavailable):
            await nodes.execute(KEYS[0], "GET", KEYS[0])
        can_reply.set()
