"""How a Redis may be deployed: what is refused at the start, what health asks, and what is warned of."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from load.servers import free_port
from service.errors import StoreUnavailable
from service.storage.base import GameState
from service.storage.redis import DEADLINES, PROBE, SECRET
from service.storage.redis_deployment import CLUSTER, UNGUARDED
from support.harness import (
    RedisServer,
    primary_and_replica,
    redis_store,
    run_service,
    running_redis,
    server_process,
    until,
)

THIRDS = ((0, 5_460), (5_461, 10_922), (10_923, 16_383))
"""The slots of each node of a cluster of three."""
KEYS = (SECRET, PROBE, DEADLINES, *(f"rummikub:games:{state.value}" for state in GameState))
"""What every server needs, whichever games are played."""
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@contextmanager
def cluster_node(first: int = 0, last: int = 16_383) -> Iterator[RedisServer]:
    """A node of a Redis Cluster that has a range of the slots."""
    options = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()), "--cluster-require-full-coverage", "no")
    with running_redis(*options) as node:
        node.tell("CLUSTER", "ADDSLOTSRANGE", first, last)
        until(lambda: b"cluster_state:ok" in node.tell("CLUSTER", "INFO"))
        yield node


def forbid(server: RedisServer, *rules: str) -> None:
    """Takes rights away from everybody, as a managed Redis does."""
    server.tell("ACL", "SETUSER", "default", *rules)


async def health(target: str) -> int:
    """The overall health of a server."""
    async with grpc.aio.insecure_channel(target) as channel:
        answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=10)
    status: int = answer.status
    return status


async def ping(url: str) -> list[str]:
    """What the log tells while a store is asked whether it is up."""
    store = redis_store(url)
    try:
        with capture_logs() as logs:
            await store.ping()
    finally:
        await store.close()
    return [str(log.get("problem")) for log in logs]


# Clusters


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_node_of_a_cluster_is_refused_at_the_start(workers: str) -> None:
    with cluster_node() as node:
        refused = run_service(RUMMIKUB_REDIS_URL=node.url, RUMMIKUB_WORKERS=workers)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == f"rummikub-server: RUMMIKUB_REDIS_URL: {CLUSTER}\n"


async def test_a_node_of_a_cluster_that_answers_later_is_not_served_from(tmp_path: Path) -> None:
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
async def test_no_node_of_a_cluster_that_hides_what_it_is_counts_as_up(slots: tuple[int, int]) -> None:
    with cluster_node(*slots) as node:
        forbid(node, "-info")
        with pytest.raises(StoreUnavailable):
            await ping(node.url)


# Keys


@pytest.mark.parametrize("missing", KEYS)
async def test_a_store_in_which_a_key_cannot_be_used_does_not_count_as_up(missing: str) -> None:
    with running_redis() as server:
        forbid(server, "resetkeys", *(f"~{key}" for key in KEYS))
        assert await ping(server.url) == []
        forbid(server, "resetkeys", *(f"~{key}" for key in KEYS if key != missing))
        with pytest.raises(StoreUnavailable):
            await ping(server.url)


# Replicas


async def test_a_primary_that_takes_writes_without_replicas_is_warned_of(tmp_path: Path) -> None:
    with primary_and_replica() as (primary, _), (tmp_path / "log").open("w+") as log:
        async with server_process({"RUMMIKUB_REDIS_URL": primary.url}, log.fileno()) as process:
            assert await process.terminate() == 0
        [told] = (json.loads(line) for line in (tmp_path / "log").read_text().splitlines())
    assert (told["level"], told["problem"]) == ("warning", UNGUARDED)


async def test_a_primary_is_warned_of_once_as_long_as_it_answers() -> None:
    with primary_and_replica() as (primary, _):
        store = redis_store(primary.url)
        with capture_logs() as logs:
            await store.ping()
            await store.ping()
        await store.close()
        assert [log["problem"] for log in logs] == [UNGUARDED]


async def test_nothing_is_warned_of_where_a_primary_needs_replicas_or_has_none_or_does_not_say() -> None:
    with primary_and_replica("--min-replicas-to-write", "1") as (primary, _):
        assert await ping(primary.url) == []
    with running_redis() as alone:
        assert await ping(alone.url) == []
    with primary_and_replica() as (primary, _):
        for refused in ("-config", "-info"):
            forbid(primary, refused)
            assert await ping(primary.url) == []
