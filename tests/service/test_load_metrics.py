"""Metrics of a server's load: calls, watchers, the sweeper, the delay of watches and the cache of games."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import grpc.aio
import pytest

from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1 import validation_service_pb2 as vs
from service.composition import Tuning
from service.model.change import Loaded
from service.server import Intervals, Server
from support import harness
from support.delegating_store import DelegatingStore
from support.harness import (
    Client,
    FakeClock,
    memory_store,
    redis_store,
    server_settings,
)
from tools.games import options

LIMIT = 30
TIMED = options(turn_time_limit_seconds=LIMIT)
NO_SWEEPS = server_settings(sweep_seconds=3600)


running_server = partial(harness.running_server, tuning=Tuning(intervals=Intervals(load=0.01)))
"""Runs a server that sets its gauges often."""


def sample(server: Server, name: str, **labels: str) -> float | None:
    return server.metrics.registry.get_sample_value(name, labels)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - a gauge is sampled
            await asyncio.sleep(0.005)


async def test_open_calls_and_watchers_are_counted_at_both_listeners() -> None:
    settings = server_settings(validation_listen="127.0.0.1:0")
    async with running_server(memory_store(), settings) as (server, client):
        game = await client.new_game()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.validation_port}") as channel:
            stream = Client(channel).validation.StreamValidateTurns()
            await stream.write(vs.StreamValidateTurnsRequest(turn=vs.ValidateTurnRequest(has_melded=True)))
            await stream.read()
            watches = [client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id)) for _ in range(2)]
            for watch in watches:
                await watch.read()
            await until(lambda: sample(server, "rummikub_calls_in_progress") == 3)
            assert sample(server, "rummikub_watchers") == 2
            for call in (*watches, stream):
                call.cancel()
            await until(lambda: sample(server, "rummikub_calls_in_progress") == 0)
            assert sample(server, "rummikub_watchers") == 0


@pytest.mark.parametrize("content", [gs.WATCH_CONTENT_CHANGES, gs.WATCH_CONTENT_BOTH])
async def test_each_change_that_is_told_to_a_live_watcher_has_a_delay(content: gs.WatchContent.ValueType) -> None:
    async with running_server(memory_store()) as (server, client):
        game = await client.new_game()
        request = gs.WatchGameRequest(game_id=game.game_id, content=content)
        watches = [aiter(client.games.WatchGame(request)) for _ in range(2)]
        for watch in watches:
            assert (await anext(watch)).HasField("snapshot")
        for _ in range(3):
            await game.draw()
            for watch in watches:
                while not (await anext(watch)).HasField("change"):
                    pass
        assert sample(server, "rummikub_watch_delay_seconds_count") == 6
        assert 0 < (sample(server, "rummikub_watch_delay_seconds_sum") or 0) < 60


async def test_changes_before_a_watcher_came_have_no_delay() -> None:
    async with running_server(memory_store()) as (server, client):
        game = await client.new_game()
        resuming = client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id, etag=game.etags[1]))
        assert (await anext(aiter(resuming))).HasField("change")
        assert sample(server, "rummikub_watch_delay_seconds_count") == 0


@asynccontextmanager
async def two_servers(url: str) -> AsyncIterator[list[tuple[Server, Client]]]:
    async with AsyncExitStack() as stack:
        servers = []
        for seed in (1, 2):
            store = redis_store(url)
            stack.push_async_callback(store.close)
            servers.append(await stack.enter_async_context(running_server(store, NO_SWEEPS, seed)))
        yield servers


async def test_turns_are_counted_by_whether_the_server_remembered_the_game(empty_redis_url: str) -> None:
    async with two_servers(empty_redis_url) as [(one, here), (other, there)]:
        game = await here.new_game()
        for client in (here, here, there):
            seen = await game.see()
            turn = ts.PlayTurnRequest(game_id=game.game_id, etag=seen.etag, draw=ts.DrawTile())
            await client.turns.PlayTurn(turn, metadata=game.as_seat(seen.turn.seat))
        counts = [
            [sample(server, "rummikub_game_cache_lookups_total", result=result) for result in ("hit", "miss")]
            for server in (one, other)
        ]
        assert counts == [[2, 0], [0, 1]]


class Held(DelegatingStore):
    """A store whose loads of games can be blocked."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(memory_store(clock))
        self.may_go = asyncio.Event()
        self.may_go.set()
        self.is_held = asyncio.Event()

    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        if game_id and not self.may_go.is_set():
            self.is_held.set()
            await self.may_go.wait()
        return await self._store.games.load(game_id, request_key)


async def test_the_sweep_lag_is_how_long_the_oldest_due_game_has_waited(clock: FakeClock) -> None:
    store = Held(clock)
    async with running_server(store, NO_SWEEPS) as (server, client):
        await client.new_game(ruleset=TIMED)
        assert await server.sweeper.sweep() == 0
        assert server.sweeper.lag_seconds == 0
        clock.advance(LIMIT + 7)
        store.may_go.clear()
        sweeping = asyncio.create_task(server.sweeper.sweep())
        await asyncio.wait_for(store.is_held.wait(), 10)
        during = server.sweeper.lag_seconds
        assert during >= 7
        await until(lambda: (sample(server, "rummikub_sweep_lag_seconds") or 0) > during)
        store.may_go.set()
        assert await sweeping == 1
        assert server.sweeper.lag_seconds == pytest.approx(7)
        assert await server.sweeper.sweep() == 0
        assert server.sweeper.lag_seconds == 0
