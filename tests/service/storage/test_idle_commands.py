"""An idle server sends few commands: counted at the Redis servers, for each check of its health and each sweep."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from service.model.record import GameState
from service.storage.redis.store import RedisStore, connect
from support.harness import HISTORY, LIFETIMES, running_redis
from tools.redis_cluster import RedisCluster, redis_cluster
from tools.redis_servers import RedisServer

ROUNDS = 5
IN_SCRIPTS = {"time", "zrangebyscore", "zrevrangebylex", "zcard"}
"""What the scripts call; Redis counts it too."""
OF_OTHERS = {"client|setinfo", "hello", "info", "ping", "replconf"}
"""What tests and replicas send."""


@dataclass(frozen=True)
class Servers:
    """Primaries of a store, and how many replicas must have a change."""

    url: str
    primaries: Sequence[RedisServer]
    replicas: int

    def sent(self) -> Counter[str]:
        """Returns how many commands of each name the primaries have got from the store."""
        sent: Counter[str] = Counter()
        for server in self.primaries:
            with server.client() as client:
                statistics = client.info("commandstats")
            sent.update({name.removeprefix("cmdstat_"): command["calls"] for name, command in statistics.items()})
        return Counter({name: count for name, count in sent.items() if name not in IN_SCRIPTS | OF_OTHERS})


@pytest.fixture(scope="module")
def replicated() -> Iterator[RedisCluster]:
    """Runs a cluster of three primaries with a replica each."""
    with redis_cluster("--appendonly", "no", replicas=1) as nodes:
        yield nodes


@pytest.fixture(params=["one", "cluster", pytest.param("cluster with replicas", marks=pytest.mark.slow)])
def servers(request: pytest.FixtureRequest) -> Iterator[Servers]:
    """Yields the servers of each kind of store."""
    if request.param == "one":
        with running_redis() as server:
            yield Servers(server.url, [server], 0)
    else:
        is_replicated = request.param.endswith("replicas")
        cluster: RedisCluster = request.getfixturevalue("replicated" if is_replicated else "cluster")
        cluster.empty()
        yield Servers(cluster.url, cluster.primaries, int(is_replicated))


async def test_an_idle_server_sends_few_commands(servers: Servers) -> None:
    store = RedisStore(connect(servers.url, servers.replicas), LIFETIMES, HISTORY)
    count = len(servers.primaries)

    async def sweep() -> None:
        assert not await store.deadlines.claim(32)
        assert not (await store.lists.page([GameState.LOBBY], "", 20)).games

    for work in (store.ping, sweep, store.lists.count):  # they open connections, check rights and load scripts
        await work()
    before = servers.sent()
    for _ in range(ROUNDS):
        await store.ping()
    checked = servers.sent()
    assert checked - before == Counter({"set": ROUNDS, **({"wait": ROUNDS} if servers.replicas else {})}), (
        "one write, to the primaries in turn"
    )
    for _ in range(ROUNDS):
        await sweep()
    swept = servers.sent()
    assert swept - checked == Counter(evalsha=2 * ROUNDS * count), "a claim and a page for each primary"
    await store.lists.count()
    assert servers.sent() - swept == Counter(evalsha=count)
    await store.close()
