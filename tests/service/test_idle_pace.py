"""An idle worker sends at most 20 commands a second, however many primaries: counted at fake ones, in virtual time."""

import asyncio
import selectors
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from redis.asyncio.connection import ConnectionPool

from service.composition import build_server
from service.model.record import Lifetimes
from service.runtime.redis_url import Address
from service.settings import Settings
from service.storage.redis.cluster import ClusterNodes
from service.storage.redis.slots import SlotMap
from service.storage.redis.store import RedisStore
from support.archives import MemorySink

MOST_A_SECOND = 20
"""The limit that docs/operation.md promises."""
SECONDS = 120


class VirtualSelector(selectors.DefaultSelector):
    """Never waits: the time of its loop passes instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += timeout or 0.0
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time passes as fast as its tasks run."""

    def __init__(self) -> None:
        self._virtual = VirtualSelector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


class IdleCluster:
    """Primaries without games, which count commands."""

    def __init__(self, primaries: int) -> None:
        addresses = [Address("10.0.0.1", number) for number in range(1, primaries + 1)]
        owners = tuple(addresses[slot * primaries // 16_384] for slot in range(16_384))
        self.map = SlotMap(owners, {address: frozenset() for address in addresses})
        self.sent: Counter[str] = Counter()
        self.probed: set[int] = set()

    def connection(self, pool: ConnectionPool, _reply_seconds: float) -> "IdleConnection":
        return IdleConnection(self, pool.connection_kwargs["port"])


class IdleConnection:
    """A CommandConnection to a primary of an IdleCluster."""

    current = None
    is_open = False

    def __init__(self, cluster: IdleCluster, port: int) -> None:
        self._cluster = cluster
        self._port = port

    async def execute(self, *command: str | int | bytes, is_asking: bool = False) -> object:  # noqa: ARG002 - the protocol's
        self._cluster.sent[str(command[0])] += 1
        if command[0] == "SET":
            self._cluster.probed.add(self._port)
        return list(_replies(command[3:])) if command[0] == "EVALSHA" else None

    def drop(self, _: object) -> None:
        """Does nothing."""

    async def close(self) -> None:
        """Does nothing."""


def _replies(calls: Sequence[str | int | bytes]) -> Iterator[list[object]]:
    """Yields a reply for each key of a script that runs for several: 0 for numbers, else an empty list."""
    while calls:
        _, count, first, *_ = calls
        yield [b"", 0 if first in {"ZCARD", "XLEN", "PEXPIRE"} else []]
        calls = calls[2 + int(count) :]


@pytest.mark.parametrize("primaries", [1, 3, 12, 16, 44])
@pytest.mark.parametrize("has_archive", [False, True], ids=["", "archive"])
def test_an_idle_worker_sends_few_commands_however_many_primaries(primaries: int, *, has_archive: bool) -> None:
    cluster = IdleCluster(primaries)

    class Nodes(ClusterNodes):
        async def _newest_map(self) -> SlotMap:
            return cluster.map

        async def _inspect(self, address: Address) -> Address:
            return address

    async def run() -> None:
        nodes = Nodes([*cluster.map.nodes], {}, share=cluster.connection)
        store = RedisStore(nodes, Lifetimes(1, 1, 1), history=10, log_ms=3_600_000)
        server = build_server(Settings(), store, sink=MemorySink() if has_archive else None)
        await store.ping()
        cluster.sent.clear()
        cluster.probed.clear()
        server.start_background()
        await asyncio.sleep(SECONDS)
        sent, tasks = Counter(cluster.sent), asyncio.all_tasks() - {asyncio.current_task()}
        server.stopping.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        a_second = sent.total() / SECONDS
        assert 2 <= a_second + sent["SET"] / SECONDS <= MOST_A_SECOND, "each probe is followed by WAIT if changes are"
        assert len(cluster.probed) == primaries

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run())
