"""Clients that balance their calls over several servers by themselves, as docs/concepts/deployment.md shows."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import grpc.aio
import pytest

from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import validation_service_pb2 as vs
from service.grpc_api.server_options import server_options
from service.server import Server
from support.harness import ROOT, Client, memory_store, running_server, server_settings

METHOD = "/rummikub.v1.ValidationService/ListRulesets"
PAGE = (ROOT / "docs" / "concepts" / "deployment.md").read_text(encoding="utf-8")


def service_config() -> str:
    """Returns the service config that the page shows."""
    [text] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    return json.dumps(json.loads(text))


def served(server: Server) -> float:
    """Returns the number of calls that a server has answered."""
    return server.metrics.registry.get_sample_value("rummikub_calls_total", {"method": METHOD, "code": "OK"}) or 0


async def call(client: Client) -> None:
    await client.validation.ListRulesets(vs.ListRulesetsRequest(), timeout=20)


async def until(condition: Callable[[], bool], meanwhile: Callable[[], Awaitable[None]]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await meanwhile()


async def test_a_client_balances_and_leaves_a_lame_duck_without_a_failed_call() -> None:
    async with AsyncExitStack() as stack:
        lame, other = [(await stack.enter_async_context(running_server(memory_store())))[0] for _ in range(2)]
        target = f"ipv4:127.0.0.1:{lame.port},127.0.0.1:{other.port}"
        options = [("grpc.service_config", service_config())]
        client = Client(await stack.enter_async_context(grpc.aio.insecure_channel(target, options)))
        await until(lambda: served(lame) > 5 and served(other) > 5, lambda: call(client))

        lame.report_not_serving()
        before = -1.0
        while served(lame) != before:  # until a row of calls avoids it
            before = served(lame)
            for _ in range(20):
                await call(client)
        stopping = asyncio.create_task(lame.stop())
        while not stopping.done():
            await call(client)
        assert served(lame) == before


@asynccontextmanager
async def counting_relay(port: int) -> AsyncIterator[tuple[int, list[int]]]:
    """Forwards connections to a port; yields its own port, and a list that gets an entry for each connection."""
    connections: list[int] = []

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(len(connections))
        there, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(carry(reader, back), carry(there, writer), return_exceptions=True)

    async with await asyncio.start_server(relay, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], connections


async def test_an_old_connection_is_replaced_while_its_calls_and_watches_go_on() -> None:
    async with AsyncExitStack() as stack:
        settings = server_settings(max_connection_age_seconds=0.3)
        server, _ = await stack.enter_async_context(running_server(memory_store(), settings))
        port, connections = await stack.enter_async_context(counting_relay(server.port))
        options = [("grpc.use_local_subchannel_pool", 1)]
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(f"127.0.0.1:{port}", options))
        client = Client(channel)
        game = await client.new_game()
        watch = aiter(client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id)))
        assert (await anext(watch)).HasField("snapshot")
        await until(lambda: len(connections) >= 4, lambda: call(client))
        await game.draw()
        assert (await anext(watch)).HasField("change")


@pytest.mark.parametrize("seconds", [0, 5])
def test_connections_have_an_age_only_if_it_is_set(seconds: float) -> None:
    options = dict(server_options(server_settings(max_connection_age_seconds=seconds)))
    assert options.get("grpc.max_connection_age_ms") == (5_000 if seconds else None)
