"""Each kind of store for tests: in memory, on one Redis, on a Redis Cluster."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from service.storage.redis.connection import Connect, shared_connection
from service.storage.store import Store
from support.harness import HISTORY, FakeClock, memory_store, redis_store

ALL_STORES: Final = ("memory", "redis", "cluster")
"""All stores, for tests of stores."""
_IN_MEMORY: Final = pytest.param("memory", marks=pytest.mark.soak)
"""That a store in memory keeps the same promises is shown by the tests of stores."""
STORES: Final = ("redis", _IN_MEMORY)
"""The stores that most tests use."""
STORES_AND_CLUSTER: Final = ("redis", "cluster", _IN_MEMORY)
"""The stores of tests about what many games share."""

_URLS: Final = {"redis": "limited_redis_url", "cluster": "limited_cluster_url"}
"""The fixtures of the emptied servers, for a user with the rights that the operator's page names."""


@asynccontextmanager
async def running_store(
    request: pytest.FixtureRequest,
    clock: FakeClock | None,
    history: int = HISTORY,
    log_ms: int = 0,
    *,
    kind: str | None = None,
    share: Connect = shared_connection,
) -> AsyncIterator[Store]:
    """Yields a store of a kind, by default the fixture's parameter, empty."""
    kind = kind or request.param
    if kind == "memory":
        yield memory_store(clock, history, log_ms)
    else:
        store = redis_store(request.getfixturevalue(_URLS[kind]), clock, history, log_ms, share)
        yield store
        await store.close()
