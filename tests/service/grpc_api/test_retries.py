"""Channels with the recommended service config wait as long as the server asks, and stop when most calls fail."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

import grpc
import grpc.aio
import pytest

from rummikub import SERVICE_CONFIG, Rummikub, new_request_id
from rummikub.v1 import game_service_pb2 as gs
from service.errors import StoreUnavailable
from service.grpc_api import status
from service.settings import Settings
from support.delegating_store import DelegatingStore
from support.harness import Client, FakeClock, memory_store, retry_ms, running_server

T = TypeVar("T")

SLOW_BACKOFF = SERVICE_CONFIG.replace('"0.2s"', '"60s"').replace('"2s"', '"60s"')
"""The recommended service config, with a backoff that no test waits for."""


class FailingStore(DelegatingStore):
    """A store that refuses the next creations of games."""

    def __init__(self) -> None:
        super().__init__(memory_store(FakeClock()))
        self.failures = 0
        self.calls = 0

    async def _forward(self, operation: str, reply: Awaitable[T]) -> T:
        found = await super()._forward(operation, reply)
        if operation == "check_room":
            self.calls += 1
            if self.failures:
                self.failures -= 1
                raise StoreUnavailable
        return found


@pytest.fixture
def store() -> FailingStore:
    return FailingStore()


@asynccontextmanager
async def retrying_client(store: FailingStore, service_config: str) -> AsyncIterator[Client]:
    """Yields a client of a server whose channel retries."""
    options = (("grpc.service_config", service_config),)
    async with (
        running_server(store) as (server, _),
        grpc.aio.insecure_channel(f"127.0.0.1:{server.port}", options) as channel,
    ):
        yield Client(channel)


def set_delay(monkeypatch: pytest.MonkeyPatch, milliseconds: int) -> None:
    """Sets the delay before a retry after a failure of the store."""
    changed = replace(status.CONSTANT[StoreUnavailable], retry_ms=milliseconds)
    monkeypatch.setitem(status.CONSTANT, StoreUnavailable, changed)


async def test_a_channel_retries_after_the_delay_that_the_server_asks_for(
    store: FailingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_delay(monkeypatch, 20)
    async with retrying_client(store, SLOW_BACKOFF) as client:
        store.failures = 2
        await client.games.CreateGame(gs.CreateGameRequest(), timeout=10)
    assert store.calls == 3


async def test_a_channel_stops_retrying_while_most_calls_fail(
    store: FailingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_delay(monkeypatch, 1)
    async with retrying_client(store, SERVICE_CONFIG) as client:
        store.failures = 1_000
        for _ in range(60):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await client.games.CreateGame(gs.CreateGameRequest(), timeout=10)
            assert retry_ms(refused.value) == 1
    attempts = json.loads(SERVICE_CONFIG)["methodConfig"][0]["retryPolicy"]["maxAttempts"]
    half = json.loads(SERVICE_CONFIG)["retryThrottling"]["maxTokens"] // 2
    assert store.calls == half + 60 - half // attempts, "calls are repeated until half of the tokens are spent"


@pytest.mark.slow
async def test_a_lost_connection_stops_no_retry(store: FailingStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "RETRY_MS", 50)
    calls = Settings.model_fields["max_streams"].default
    async with retrying_client(store, SERVICE_CONFIG) as client:
        store.failures = 2 * calls
        creations = (client.games.CreateGame(gs.CreateGameRequest(), timeout=10) for _ in range(calls))
        await asyncio.gather(*creations)
    assert store.calls == 3 * calls


@pytest.mark.parametrize(("options", "attempts"), [({}, 5), ({"grpc.service_config": "{}"}, 1)])
async def test_the_python_client_retries_unless_it_is_told_not_to(
    store: FailingStore, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], attempts: int
) -> None:
    set_delay(monkeypatch, 1)
    store.failures = 1_000
    async with running_server(store) as (server, _):
        with Rummikub(f"127.0.0.1:{server.port}", options=options) as service:
            request = gs.CreateGameRequest(request_id=new_request_id())
            with pytest.raises(grpc.RpcError, match="the store does not answer"):
                await asyncio.to_thread(service.games.CreateGame, request)
    assert store.calls % attempts == 0
    assert 1 <= store.calls // attempts <= 2, "the server tries a request with a request id twice"
