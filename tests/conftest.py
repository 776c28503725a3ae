"""Fixtures for all tests."""

import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest
import redis

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # before grpc is imported: in-process servers log like real ones

from service.storage.base import GameStore
from support.harness import Client, FakeClock, memory_store, redis_server, redis_store, running_server

MEASURED: Final = Path(__file__).parent / "engine"
"""The folder of tests that must cover every branch of the engine; oracles in it are not measured."""

OPERATION: Final = Path(__file__).parents[1] / "docs" / "operation.md"

SLOW: Final = (
    "engine/test_*_oracle.py",
    "engine/test_bots.py",
    "engine/test_random_games.py",
    "load/test_compile_solver.py",
    "load/test_run.py",
    "service/app/test_hidden_tiles.py",
    "service/app/test_timers.py",
    "service/app/test_whole_games.py",
    "service/grpc_api/test_pages.py",
    "service/storage/test_embedded.py",
    "service/storage/test_fail*.py",
    "service/storage/test_power_loss.py",
    "service/test_demo.py",
    "service/test_supervisor.py",
)
"""Patterns of the files whose few cases take most of the time."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks slow files, and tests outside of the coverage measurement, which would more than double their time."""
    for item in items:
        if MEASURED not in item.path.parents or item.path.stem.endswith("_oracle"):
            item.add_marker(pytest.mark.unmeasured)
        if any(map(item.path.match, SLOW)):
            item.add_marker(pytest.mark.slow)


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
    [rights] = re.findall(r"ACL SETUSER rummikub on >PASSWORD (.*)", OPERATION.read_text(encoding="utf-8"))
    client = redis.Redis.from_url(empty_redis_url)
    client.execute_command("ACL", "SETUSER", "rummikub", "reset", "on", ">password", *rights.split())  # type: ignore[no-untyped-call]
    client.close()
    return empty_redis_url.replace("unix://", "unix://rummikub:password@")


@pytest.fixture
def clock() -> FakeClock:
    """Returns the store's clock, which tests advance."""
    return FakeClock()


@pytest.fixture(params=["memory", "redis"])
async def store(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[GameStore]:
    """Yields each kind of store, empty, on the clock."""
    if request.param == "memory":
        yield memory_store(clock)
    else:
        redis_backed = redis_store(request.getfixturevalue("limited_redis_url"), clock)
        yield redis_backed
        await redis_backed.close()


@pytest.fixture
async def client(store: GameStore) -> AsyncIterator[Client]:
    """Yields a client of an in-process server, for each kind of store."""
    async with running_server(store) as (_, client):
        yield client
