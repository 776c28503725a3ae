"""Fixtures of all tests."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest
import redis

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # before grpc is imported: servers in this process log as in their own

from service.storage.base import GameStore
from support.harness import Client, FakeClock, memory_store, redis_server, redis_store, running_server

MEASURED: Final = Path(__file__).parent / "engine"
"""The tests that have to reach every branch of the engine, without the oracles among them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks all other tests, for which coverage is not measured: they would take more than twice as long."""
    for item in items:
        if MEASURED not in item.path.parents or item.path.stem.endswith("_oracle"):
            item.add_marker(pytest.mark.unmeasured)


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A real Redis-compatible server for this worker."""
    with redis_server() as url:
        yield url


@pytest.fixture
def empty_redis_url(redis_url: str) -> str:
    """The same, emptied."""
    client = redis.Redis.from_url(redis_url)
    client.flushdb()
    client.close()
    return redis_url


@pytest.fixture
def clock() -> FakeClock:
    """The store's clock, moved by hand."""
    return FakeClock()


@pytest.fixture(params=["memory", "redis"])
async def store(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[GameStore]:
    """Each store in turn, empty, on the clock."""
    if request.param == "memory":
        yield memory_store(clock)
    else:
        redis_backed = redis_store(request.getfixturevalue("empty_redis_url"), clock)
        yield redis_backed
        await redis_backed.close()


@pytest.fixture
async def client(store: GameStore) -> AsyncIterator[Client]:
    """A client of a server in this process, on each store in turn."""
    async with running_server(store) as (_, client):
        yield client
