"""Killed servers and several servers on one store: no acknowledged turn is lost, and no turn is applied twice."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio
import pytest

from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from service.model.change import Loaded
from service.storage.redis.nodes import REPLY_SECONDS
from support.delegating_store import DelegatingStore
from support.grpc_play import Fleet, Played, history, lost_or_doubled, play_game, random_turn
from support.harness import (
    Client,
    GameAtHand,
    ServerProcess,
    error_info,
    memory_store,
    new_id,
    redis_store,
    running_server,
    server_process,
)
from tools.redis_servers import RedisServer

pytestmark = pytest.mark.slow

GAMES = 3
KILLS = 2
HOW = ("before", "in its middle", "in its answer", "after", "too late")
"""Points at which a connection to Redis breaks when a script is sent."""
OFTEN = 0.03


@asynccontextmanager
async def client_of(process: ServerProcess) -> AsyncIterator[Client]:
    """Yields a client that reconnects quickly after a server restart."""
    options = [
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.initial_reconnect_backoff_ms", 50),
        ("grpc.max_reconnect_backoff_ms", 200),
    ]
    async with grpc.aio.insecure_channel(process.target, options=options) as channel:
        yield Client(channel)


async def play_all(fleet: Fleet, games: Sequence[GameAtHand]) -> list[Played]:
    """Plays games concurrently."""
    rngs = (random.Random(number) for number in range(len(games)))
    return await asyncio.gather(*(play_game(fleet, game, rng) for game, rng in zip(games, rngs, strict=True)))


@pytest.fixture(params=["limited_redis_url", "limited_cluster_url"])
def shared_url(request: pytest.FixtureRequest) -> str:
    """Returns the URL of an empty Redis, and of an empty Redis Cluster."""
    url: str = request.getfixturevalue(request.param)
    return url


@pytest.mark.timeout(240)
@pytest.mark.parametrize("kept", ["embedded", "limited_redis_url", "limited_cluster_url"])
async def test_a_killed_server_loses_no_acknowledged_turn_and_applies_none_twice(
    request: pytest.FixtureRequest, kept: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        environment = {"RUMMIKUB_DATA_DIR": str(tmp_path)}
        if kept != "embedded":
            environment = {"RUMMIKUB_REDIS_URL": request.getfixturevalue(kept)}
        process = await stack.enter_async_context(server_process(environment))
        client = await stack.enter_async_context(client_of(process))
        games = [await client.new_game(players=2 + number % 3) for number in range(GAMES)]
        fleet = Fleet([client], random.Random(1))
        playing = asyncio.create_task(play_all(fleet, games))
        for kill in range(1, KILLS + 1):
            await asyncio.wait_for(fleet.has_taken(kill * GAMES * 5), 60)
            await process.kill()
            await process.start_again()
            assert not playing.done(), "the games ended before the server was killed"
        for played in await playing:
            assert not lost_or_doubled(played, await history(client, played.game))
        assert fleet.resent > 0


async def test_two_servers_on_one_store_lose_and_double_no_turn(limited_redis_url: str) -> None:
    """Those on a cluster play in test_cluster.py."""
    async with AsyncExitStack() as stack:
        clients = []
        for _ in range(2):
            process = await stack.enter_async_context(server_process({"RUMMIKUB_REDIS_URL": limited_redis_url}))
            clients.append(await stack.enter_async_context(client_of(process)))
        games = [await clients[number % 2].new_game(players=2 + number % 3) for number in range(GAMES)]
        for played in await play_all(Fleet(clients, random.Random(2)), games):
            assert played.final.state == game_pb2.GAME_STATE_FINISHED
            assert not lost_or_doubled(played, await history(clients[0], played.game))


async def test_a_turn_sent_to_two_servers_at_once_is_applied_once(shared_url: str) -> None:
    async with AsyncExitStack() as stack:
        clients = []
        for _ in range(2):
            process = await stack.enter_async_context(server_process({"RUMMIKUB_REDIS_URL": shared_url}))
            clients.append(await stack.enter_async_context(client_of(process)))
        game = await clients[0].new_game(players=3)
        rng = random.Random(3)
        state = await game.see()
        for number in range(20):
            own = await game.see(state.turn.seat)
            first = random_turn(own, rng)
            second = type(first).FromString(first.SerializeToString())
            is_repeat = number % 2 == 0
            if not is_repeat:
                second.request_id = new_id()
            metadata = game.as_seat(state.turn.seat)
            answers = await asyncio.gather(
                *(
                    client.turns.PlayTurn(request, metadata=metadata)
                    for client, request in zip(clients, (first, second), strict=True)
                ),
                return_exceptions=True,
            )
            refusals = [answer for answer in answers if isinstance(answer, grpc.aio.AioRpcError)]
            if is_repeat:
                assert not refusals
                assert answers[0] == answers[1]
            else:
                assert [error_info(refusal).reason for refusal in refusals] == ["STALE_STATE"]
            following = await game.see()
            assert following.revision == state.revision + 1
            state = following
            if state.state == game_pb2.GAME_STATE_FINISHED:
                break


class BreakingWire:
    """A proxy to Redis that sometimes breaks a connection when a script is sent, in each way in turn.

    Too late: Redis gets the script after the server has given up on it and sent the next attempt.
    """

    def __init__(self, redis: RedisServer, seed: int) -> None:
        self._socket = redis.socket
        self._rng = random.Random(seed)
        self._ways = itertools.cycle(HOW)
        self.breaks = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, commands = await asyncio.open_unix_connection(self._socket)
        telling = asyncio.create_task(pump(answers, writer))
        while data := await reader.read(65_536):
            if b"EVAL" not in data or self._rng.random() > OFTEN:
                commands.write(data)
                continue
            how = next(self._ways)
            self.breaks += 1
            telling.cancel()
            await asyncio.wait([telling])
            if how == "too late":
                await asyncio.sleep(REPLY_SECONDS * 1.1)
            commands.write({"before": b"", "in its middle": data[: len(data) // 2]}.get(how, data))
            if how in {"in its answer", "after", "too late"}:
                answer = await answers.read(65_536)
                writer.write(answer[: len(answer) // 2] if how == "in its answer" else b"")
            break
        telling.cancel()
        commands.close()
        writer.close()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forwards all data."""
    while data := await reader.read(65_536):
        writer.write(data)


async def test_broken_connections_to_redis_lose_and_double_no_turn() -> None:
    async with AsyncExitStack() as stack:
        redis = RedisServer()
        stack.callback(redis.close)
        redis.start()
        clients, wires = [], [BreakingWire(redis, seed) for seed in (4, 5)]
        for wire in wires:
            listener = await stack.enter_async_context(await asyncio.start_server(wire.serve, "127.0.0.1", 0))
            url = f"redis://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
            process = await stack.enter_async_context(server_process({"RUMMIKUB_REDIS_URL": url}))
            clients.append(await stack.enter_async_context(client_of(process)))
        plain = redis_store(redis.url)
        stack.push_async_callback(plain.close)
        async with running_server(plain) as (_, client):
            games = [await client.new_game(players=2 + number % 3) for number in range(3)]
            for played in await play_all(Fleet(clients, random.Random(6)), games):
                assert not lost_or_doubled(played, await history(client, played.game))
        assert min(wire.breaks for wire in wires) >= len(HOW)


class GivesUp(DelegatingStore):
    """A store whose loads raise CancelledError without a cancelled caller, as a library's shutdown may."""

    def __init__(self) -> None:
        super().__init__(memory_store())

    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        await self._store.games.load(game_id, request_key)
        raise asyncio.CancelledError


async def test_a_cancellation_inside_the_server_is_reported_as_internal() -> None:
    async with running_server(GivesUp()) as (_, client):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await client.games.GetGame(gs.GetGameRequest(game_id="0" * 32))
    assert refusal.value.code() is grpc.StatusCode.INTERNAL
    assert error_info(refusal.value).reason == "INTERNAL_ERROR"
