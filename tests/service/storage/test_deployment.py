"""Redis deployments: configurations refused at startup, checks of the health service, and warnings."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from service.errors import StoreUnavailable
from service.storage.redis.deployment import (
    CLUSTER,
    EVICTING,
    HALF_MOVED,
    LAGGING,
    MOVED_AWAY,
    NO_CLUSTER,
    NOT_ON_DISK,
    UNGUARDED,
)
from service.storage.redis.keys import MARK, UNFINISHED, slot_of
from support.commits import GAME
from support.harness import primary_and_replica, redis_store, run_service, running_redis, server_process, until
from tools.redis_cluster import RedisCluster
from tools.redis_servers import RedisServer
from tools.servers import free_port

pytestmark = pytest.mark.slow

THIRDS = ((0, 5_460), (5_461, 10_922), (10_923, 16_383))
"""The slots of each node of a three-node cluster."""
STATES = ("lobby", "playing", "round_over", "finished", "aborted")
KEYS = (
    *(f"rummikub:{name}" for name in ("secret", "probe", "deadlines", "outbox", "name:", "open:")),
    *(f"rummikub:{kind}:{state}" for kind in ("games", "public") for state in STATES),
    *(f"rummikub:{{}}:{part}" for part in ("game", "requests", "events", "draft", "presence")),
)
"""Keys that every server uses, and the kinds of keys and channels of games, all with an empty name or id."""
CHANNELS = tuple(f"rummikub:{{}}:{part}" for part in ("changed", "drafted", "seen"))
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@contextmanager
def cluster_node(first: int = 0, last: int = 16_383) -> Iterator[RedisServer]:
    """Runs a node of a Redis Cluster that owns a range of slots."""
    options = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()), "--cluster-require-full-coverage", "no")
    with running_redis(*options) as node:
        node.execute("CLUSTER", "ADDSLOTSRANGE", first, last)
        until(lambda: b"cluster_state:ok" in node.execute("CLUSTER", "INFO"))
        yield node


def forbid(server: RedisServer, *rules: str) -> None:
    """Removes rights from the default user, as a managed Redis does."""
    server.execute("ACL", "SETUSER", "default", *rules)


async def health(target: str) -> int:
    """Returns the overall health status of a server."""
    async with grpc.aio.insecure_channel(target) as channel:
        answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=10)
    status: int = answer.status
    return status


async def ping(url: str) -> list[str]:
    """Returns the problems that a store logs during a ping."""
    store = redis_store(url)
    try:
        with capture_logs() as logs:
            await store.ping()
    finally:
        await store.close()
    return [str(log.get("problem")) for log in logs]


# Clusters


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_cluster_node_is_refused_at_startup(workers: str) -> None:
    with cluster_node() as node:
        refused = run_service(RUMMIKUB_REDIS_URL=node.url, RUMMIKUB_WORKERS=workers)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == f"rummikub-server: RUMMIKUB_REDIS_URL: {CLUSTER}\n"


def test_a_redis_that_is_no_cluster_node_is_refused_at_startup_by_a_url_of_a_cluster() -> None:
    port = free_port()
    with running_redis(port=port):
        refused = run_service(RUMMIKUB_REDIS_URL=f"redis+cluster://127.0.0.1:{port}")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == f"rummikub-server: RUMMIKUB_REDIS_URL: {NO_CLUSTER}\n"


def test_replicas_need_a_redis() -> None:
    for url in ("", "memory://"):
        refused = run_service(RUMMIKUB_REDIS_URL=url, RUMMIKUB_REDIS_REPLICAS="1")
        assert refused.returncode == 1
        assert "RUMMIKUB_REDIS_REPLICAS=1" in refused.stderr


async def test_a_cluster_node_that_is_detected_after_startup_is_not_used(tmp_path: Path) -> None:
    with cluster_node() as node, (tmp_path / "log").open("w+") as log:
        node.pause()
        async with server_process({"RUMMIKUB_REDIS_URL": node.url}, log.fileno()) as process:
            assert await health(process.target) == NOT_SERVING
            node.resume()
            until(lambda: CLUSTER in (tmp_path / "log").read_text())
            assert await health(process.target) == NOT_SERVING
            assert await process.terminate() == 0
        problems = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
        assert [problem["event"] for problem in problems if problem.get("error") == CLUSTER] == [
            "store does not answer"
        ]


@pytest.mark.parametrize("slots", THIRDS)
async def test_a_cluster_node_without_info_rights_is_not_healthy(slots: tuple[int, int]) -> None:
    with cluster_node(*slots) as node:
        forbid(node, "-info")
        with pytest.raises(StoreUnavailable):
            await ping(node.url)


async def test_each_primary_of_a_cluster_is_checked_until_it_answers_and_again_after_a_failure(
    cluster: RedisCluster, limited_cluster_url: str
) -> None:
    store = redis_store(limited_cluster_url)
    everywhere = [f"127.0.0.1:{node.port}" for node in cluster.nodes]
    with capture_logs() as logs:
        await store.ping()
        await store.ping()
    assert {log["problem"] for log in logs} == {NOT_ON_DISK}
    assert sorted(log["address"] for log in logs) == sorted(everywhere)
    failing = cluster.nodes[1]
    with capture_logs() as logs:
        for least in (1, 0, 0):
            failing.execute("CONFIG", "SET", "min-replicas-to-write", least)
            await store.ping()
    assert [(log["event"], log["address"]) for log in logs] == [
        ("cluster", everywhere[1]),
        ("store may lose turns", everywhere[1]),
    ]
    await store.close()


# Migrations

MARKS = pytest.mark.parametrize(("key", "problem"), [(MARK, MOVED_AWAY), (UNFINISHED, HALF_MOVED)])


@MARKS
async def test_a_store_whose_games_have_moved_is_not_used(key: str, problem: str) -> None:
    with running_redis() as server:
        store = redis_store(server.url)
        await store.ping()
        server.execute("SET", key, 0)
        refused = run_service(RUMMIKUB_REDIS_URL=server.url)
        assert (refused.returncode, refused.stderr) == (1, f"rummikub-server: RUMMIKUB_REDIS_URL: {problem}\n")
        server.stop()
        with pytest.raises(StoreUnavailable):
            await store.ping()
        server.start()
        with pytest.raises(StoreUnavailable, match=problem):
            await store.ping()
        server.execute("DEL", key)
        await store.ping()
        await store.close()


@MARKS
async def test_a_cluster_whose_games_have_moved_is_not_used(
    cluster: RedisCluster, limited_cluster_url: str, key: str, problem: str
) -> None:
    store = redis_store(limited_cluster_url)
    await store.ping()
    node = cluster.owner(slot_of(key))
    node.execute("SET", key, 0)
    refused = run_service(RUMMIKUB_REDIS_URL=limited_cluster_url)
    assert (refused.returncode, refused.stderr) == (1, f"rummikub-server: RUMMIKUB_REDIS_URL: {problem}\n")
    for primary in cluster.primaries:
        primary.execute("CONFIG", "SET", "min-replicas-to-write", 1)  # as a migration does
    with pytest.raises(StoreUnavailable, match=problem):
        await store.ping()
    for primary in cluster.primaries:
        primary.execute("CONFIG", "SET", "min-replicas-to-write", 0)  # as a restart does
        primary.execute("CLIENT", "KILL", "TYPE", "normal")
    with pytest.raises(StoreUnavailable):
        await store.ping()
    with pytest.raises(StoreUnavailable, match=problem):
        await store.ping()
    node.execute("DEL", key)
    await store.ping()
    await store.close()


# Keys


async def test_rights_are_checked_again_on_a_new_connection_and_after_a_call_that_lacks_one(
    cluster: RedisCluster,
) -> None:
    with running_redis() as server:
        for url, servers in ((server.url, [server]), (cluster.url, cluster.primaries)):
            store = redis_store(url)
            await store.ping()
            for check in ("a call", "a new connection"):
                for one in servers:
                    forbid(one, "-spublish", "-publish")
                if check == "a call":
                    with pytest.raises(StoreUnavailable, match="NoPermission"):
                        await store.games.delete(GAME)
                else:
                    for one in servers:
                        one.execute("CLIENT", "KILL", "TYPE", "normal")
                    with suppress(StoreUnavailable):
                        await store.ping()
                for _ in range(2):
                    with pytest.raises(StoreUnavailable, match="NoPermission"):
                        await store.ping()
                for one in servers:
                    forbid(one, "+spublish", "+publish")
                await store.ping()
            await store.close()


async def test_a_store_is_healthy_exactly_with_rights_to_every_key_and_channel() -> None:
    with running_redis() as server:
        for kind, prefix, names in (("resetkeys", "~", KEYS), ("resetchannels", "&", CHANNELS)):
            forbid(server, kind, *(prefix + name for name in names))
            assert await ping(server.url) == []
            for missing in names:
                forbid(server, kind, *(prefix + name for name in names if name != missing))
                with pytest.raises(StoreUnavailable, match="NoPermission"):
                    await ping(server.url)
            forbid(server, kind, f"{prefix}*")


async def test_a_server_without_rights_to_a_key_is_not_serving() -> None:
    with running_redis() as server:
        forbid(server, "resetkeys", "~rummikub:{*")
        async with server_process({"RUMMIKUB_REDIS_URL": server.url}) as process:
            assert await health(process.target) == NOT_SERVING
            forbid(server, "resetkeys", "~rummikub:*")
            async with grpc.aio.insecure_channel(process.target) as channel:
                watched = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=30)
                async for answer in watched:
                    if answer.status != NOT_SERVING:
                        break
            assert await health(process.target) != NOT_SERVING


# Replicas


async def test_a_primary_that_accepts_writes_without_replicas_causes_a_warning(tmp_path: Path) -> None:
    with primary_and_replica() as (primary, _), (tmp_path / "log").open("w+") as log:
        async with server_process({"RUMMIKUB_REDIS_URL": primary.url}, log.fileno()) as process:
            assert await process.terminate() == 0
        [told] = (json.loads(line) for line in (tmp_path / "log").read_text().splitlines())
    assert (told["level"], told["problem"]) == ("warning", UNGUARDED)


async def test_a_primary_causes_one_warning_while_it_stays_reachable() -> None:
    with primary_and_replica() as (primary, _):
        store = redis_store(primary.url)
        with capture_logs() as logs:
            await store.ping()
            await store.ping()
        await store.close()
        assert [log["problem"] for log in logs] == [UNGUARDED]


@pytest.mark.parametrize(("lag", "problem"), [("0", UNGUARDED), ("11", LAGGING)])
async def test_a_primary_that_takes_its_replicas_for_present_too_long_causes_a_warning(lag: str, problem: str) -> None:
    with primary_and_replica("--min-replicas-to-write", "1", "--min-replicas-max-lag", lag) as (primary, _):
        assert await ping(primary.url) == [problem]


async def test_no_warning_for_a_primary_that_requires_replicas_has_none_or_hides_its_settings() -> None:
    with primary_and_replica("--min-replicas-to-write", "1") as (primary, _):
        assert await ping(primary.url) == []
    with running_redis() as alone:
        assert await ping(alone.url) == []
    with primary_and_replica() as (primary, _):
        for refused in ("-config", "-info"):
            forbid(primary, refused)
            assert await ping(primary.url) == []


async def test_a_primary_that_misses_its_replicas_causes_no_warning_a_call() -> None:
    with running_redis("--min-replicas-to-write", "1") as primary:
        store = redis_store(primary.url)
        with capture_logs() as logs, pytest.raises(StoreUnavailable, match="NOREPLICAS"):
            await store.ping()
        await store.close()
    assert {log["log_level"] for log in logs} == {"debug"}


@pytest.mark.parametrize(
    ("option", "value", "problem"), [("appendonly", "no", NOT_ON_DISK), ("maxmemory-policy", "allkeys-lru", EVICTING)]
)
async def test_a_redis_that_may_lose_games_causes_a_warning(option: str, value: str, problem: str) -> None:
    with running_redis(f"--{option}", value) as server:
        assert await ping(server.url) == [problem]
