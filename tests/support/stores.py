"""Each kind of store for tests: in memory, on one Redis, on a Redis Cluster."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from service.storage.store import Store
from support.harness import HISTORY, FakeClock, memory_store, redis_store

STORES: Final = ("memory", "redis")
"""The stores that most tests use."""
ALL_STORES: Final = (*STORES, "cluster")
"""All stores, for tests of stores."""

_URLS: Final = {"redis": "limited_redis_url", "cluster": "limited_cluster_url"}
"""The fixtures of the emptied servers, for a user with the rights that the operator's page names."""


@asynccontextmanager
async def running_store(
    request: pytest.FixtureRequest,
    clock: FakeClock | None,
    history: int = HISTORY,
    log_ms: int = 0,
    kind: str | None = None,
) -> AsyncIterator[Store]:
    """Yields a store of a kind, by default the fixture's parameter, empty."""
    kind = kind or request.param
    if kind == "memory":
        yield memory_store(clock, history, log_ms)
    else:
        store = redis_store(request.getfixturevalue(_URLS[kind]), clock, history, log_ms)
        yield store
        await store.close()
