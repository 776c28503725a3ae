"""Limits of what one address may do, and what clients see of a server's end."""

import asyncio
import socket
from collections import Counter

import grpc
import grpc.aio
import pytest

from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import ruleset_pb2
from service.errors import TooManyGames
from service.runtime import rate_limit
from service.runtime.connections import shut_down_connections
from service.runtime.rate_limit import RateLimit
from service.storage.redis import RESERVE
from support.harness import (
    Client,
    RedisServer,
    error_info,
    from_another_address,
    memory_store,
    redis_store,
    running_server,
    server_settings,
)

UNLIMITED = ruleset_pb2.Ruleset(turn_time_limit_seconds=0)


async def refused_with(call: "grpc.aio.UnaryUnaryCall[gs.CreateGameRequest, gs.CreateGameResponse]") -> str:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await call
    return str(error_info(refusal.value).reason)


# New games


def test_a_minutes_games_may_be_created_at_once_and_then_one_after_the_other() -> None:
    limit = RateLimit(6)
    for _ in range(6):
        limit.take("a", 100.0)
    with pytest.raises(TooManyGames):
        limit.take("a", 109.9)
    limit.take("b", 109.9)
    limit.take("a", 110.1)
    with pytest.raises(TooManyGames):
        limit.take("a", 110.2)
    for _ in range(6):
        limit.take("a", 1_000.0)
    with pytest.raises(TooManyGames):
        limit.take("a", 1_000.0)


def test_without_a_limit_any_number_may_be_created() -> None:
    limit = RateLimit(0)
    for _ in range(1_000):
        limit.take("a", 0.0)


def test_few_addresses_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "PEERS_MAX", 2)
    limit = RateLimit(1)
    for peer in ("a", "b", "c", "a"):
        limit.take(peer, 0.0)
    with pytest.raises(TooManyGames):
        limit.take("a", 0.0)


async def test_an_address_that_creates_too_many_games_keeps_no_other_from_it() -> None:
    settings = server_settings(games_per_minute=3)
    async with running_server(memory_store(), settings) as (server, client), from_another_address(server.port) as port:
        for _ in range(3):
            await client.games.CreateGame(gs.CreateGameRequest())
        assert await refused_with(client.games.CreateGame(gs.CreateGameRequest())) == "TOO_MANY_GAMES"
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            game = await Client(channel).new_game()
            assert (await game.see()).revision == 4, "a game that is there goes on"


async def test_the_last_of_the_stores_memory_is_for_games_that_exist() -> None:
    full = RedisServer()
    full.start()
    store = redis_store(full.url)
    try:
        async with running_server(store) as (_, client):
            game = await client.new_game(ruleset=UNLIMITED)
            with full.client() as keys:
                used = keys.info("memory")["used_memory"]
                keys.config_set("maxmemory", round(used / (1 - RESERVE) - 10_000))
                assert await refused_with(client.games.CreateGame(gs.CreateGameRequest())) == "STORE_FULL"
                lists = keys.zcard("rummikub:games:lobby")
                for _ in range(10):
                    await game.draw()
                assert keys.zcard("rummikub:games:lobby") == lists, "a refused creation leaves nothing"
                keys.config_set("maxmemory", used * 3)
            await client.games.CreateGame(gs.CreateGameRequest())
    finally:
        await store.close()
        full.close()


# The end of a server


def test_connections_at_a_port_are_shut_down_and_others_are_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_server(("127.0.0.1", 0)) as other:
        ports = [one.getsockname()[1] for one in (listening, other)]
        clients = [socket.create_connection(("127.0.0.1", port), 5) for port in ports]
        servers = [one.accept()[0] for one in (listening, other)]
        servers[0].sendall(b"the last answer")
        assert shut_down_connections({ports[0]}) == 1
        assert clients[0].recv(100) == b"the last answer"
        assert clients[0].recv(100) == b""
        servers[1].sendall(b"goes on")
        assert clients[1].recv(100) == b"goes on"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", ports[0]), 5)
        for one in (*clients, *servers):
            one.close()


async def test_no_call_is_cancelled_by_a_server_that_stops() -> None:
    """CANCELLED is not repeated by clients, UNAVAILABLE is."""
    ends = Counter[grpc.StatusCode]()

    async def call_on(port: int) -> None:
        options = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options) as channel:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
                "/rummikub.v1.ValidationService/ListRulesets"
            )
            while True:
                try:
                    await call(b"", timeout=5)
                except grpc.aio.AioRpcError as error:
                    ends[error.code()] += 1
                    if "connect" in (error.details() or ""):
                        return

    for _ in range(5):
        settings = server_settings(validation_listen="127.0.0.1:0")
        async with running_server(memory_store(), settings) as (server, _), asyncio.TaskGroup() as calling:
            for port in (server.port, server.validation_port):
                for _ in range(10):
                    calling.create_task(call_on(port))
            await asyncio.sleep(0.2)  # for calls to be under way: there is nothing to be notified by
            await server.stop()
    assert set(ends) == {grpc.StatusCode.UNAVAILABLE}
