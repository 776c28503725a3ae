"""Fixtures for all tests."""

import gc
import os
import re
import signal
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import Final

import pytest
import redis

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # before grpc is imported: in-process servers log like real ones
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of servers start, and each would compile all of its modules
# Tests fork to start processes beside gRPC's threads. With gRPC's fork handlers, 2% of the children abort before exec.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
from service.grpc_api import call_origin
from service.runtime.origins import RIGHTS
from service.storage.store import Store
from support.harness import Client, FakeClock, redis_server, running_server
from support.stores import STORES, running_store
from tools.redis_cluster import RedisCluster, redis_cluster

gc.disable()  # what is collected stays: to look for garbage in it would take a third of the time
# A run in the background of a script ignores SIGINT, and so would the servers that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

MEASURED: Final = Path(__file__).parent / "engine"
"""The folder of tests that must cover every branch of the engine, but for those with the marker `unmeasured`."""

OPERATION: Final = Path(__file__).parents[1] / "docs" / "operation.md"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Looks for garbage from here on, but not among what was collected."""
    collected = yield
    gc.freeze()
    gc.enable()
    return collected


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests outside of the folder whose coverage is measured."""
    for item in items:
        if MEASURED not in item.path.parents:
            item.add_marker(pytest.mark.unmeasured)


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """Runs a Redis-compatible server for this worker."""
    with redis_server() as url:
        yield url


@pytest.fixture
def empty_redis_url(redis_url: str) -> str:
    """Returns the URL of the emptied server."""
    client = redis.Redis.from_url(redis_url)
    client.flushdb()
    client.close()
    return redis_url


@pytest.fixture
def limited_redis_url(empty_redis_url: str) -> str:
    """Returns the URL of the emptied server for a user with exactly the rights that the operator's page names."""
    client = redis.Redis.from_url(empty_redis_url)
    client.execute_command(*limited_user())  # type: ignore[no-untyped-call]
    client.close()
    return empty_redis_url.replace("unix://", "unix://rummikub:password@")


def limited_user() -> list[str]:
    """Returns the command that creates a user with exactly the rights that the operator's page names."""
    [rights] = re.findall(r"ACL SETUSER rummikub on >PASSWORD (.*)", OPERATION.read_text(encoding="utf-8"))
    return ["ACL", "SETUSER", "rummikub", "reset", "on", ">password", *rights.split()]


@pytest.fixture(scope="session")
def cluster() -> Iterator[RedisCluster]:
    """Runs a Redis Cluster of three primaries for this worker."""
    with redis_cluster("--appendonly", "no") as nodes:
        for node in nodes.nodes:
            node.execute(*limited_user())
        yield nodes


@pytest.fixture
def limited_cluster_url(cluster: RedisCluster) -> str:
    """Returns the URL of the emptied cluster for a user with exactly the rights that the operator's page names."""
    cluster.empty()
    return cluster.url.replace("redis+cluster://", "redis+cluster://rummikub:password@")


@pytest.fixture(scope="module")
def all_rights() -> Iterator[None]:
    """Gives callers without a key the rights that only a key has, so that they may call every RPC."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(call_origin, "KEYLESS_RIGHTS", frozenset(RIGHTS))
        yield


@pytest.fixture
def clock() -> FakeClock:
    """Returns the store's clock, which tests advance."""
    return FakeClock()


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Store]:
    """Yields a store in memory and one on Redis, empty, on the clock."""
    async with running_store(request, clock) as store:
        yield store


@pytest.fixture
async def client(store: Store) -> AsyncIterator[Client]:
    """Yields a client of an in-process server, for each kind of store."""
    async with running_server(store) as (_, client):
        yield client
