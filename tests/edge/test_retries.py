"""What the edge sends again, and where it sends calls when servers are unhealthy, before two scripted servers."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from rummikub.v1 import analysis_service_pb2 as ans
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1.analysis_service_pb2_grpc import AnalysisServiceStub
from rummikub.v1.game_service_pb2_grpc import GameServiceStub
from rummikub.v1.turn_service_pb2_grpc import TurnServiceStub
from service.errors import AnalysisUnavailable, Overloaded, ShuttingDown, StoreUnavailable
from service.grpc_api.health import NOT_SERVING, SERVING, HealthServicer
from service.grpc_api.status import Status, status_of
from support.edge import EdgeProcess
from support.harness import CONTRACT
from tools.edge_config import PLAIN, LocalEdge, local
from tools.servers import free_port
from tools.web import collect_page, running_envoy

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
CUT_OFF = Status(grpc.StatusCode.CANCELLED, "INTERNAL_ERROR", "cut off")
SEARCHES_OF_RECORDS = {
    ("rummikub.v1.RecordService", name) for name in ("ImportRecord", "ReviewGame", "ParsePosition", "FormatPosition")
}
WRITES_WITHOUT_REQUEST_ID = {"SaveDraft", "ForgetSeat", "AcceptChallenge", "DeclineChallenge", "CancelChallenge"}


@dataclass
class ScriptedServer(grpc.GenericRpcHandler):
    """A server with real health that answers the first calls with given statuses, and all others with an empty message.

    Attributes:
        failures: The statuses of its next calls.
        calls: How often each method was called.
        health: Its health.
        server: The server, while it listens.
    """

    failures: list[Status] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    health: HealthServicer = field(default_factory=HealthServicer)
    server: grpc.aio.Server | None = None

    def service(self, details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        method = str(details.method).rpartition("/")[2]

        async def answer(_request: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]") -> bytes:
            self.calls[method] += 1
            if self.failures:
                status = self.failures.pop(0)
                await context.abort(status.code, status.message, status.trailing_metadata)
            return b""

        return grpc.unary_unary_rpc_method_handler(answer)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Serves within the context; yields the port."""
        server = self.server = grpc.aio.server()
        service = self.health.service()
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.name, dict(service.handlers)),))
        self.health.set("", SERVING)
        server.add_generic_rpc_handlers((self,))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            yield port
        finally:
            await server.stop(None)


@dataclass
class Edge:
    """An edge before two servers."""

    servers: tuple[ScriptedServer, ScriptedServer]
    channel: grpc.aio.Channel
    admin: EdgeProcess

    async def states(self) -> list[dict[str, Any]]:
        """Returns what the edge knows about the health of each server."""
        clusters = (await self.admin.send("GET", "/clusters?format=json")).json["cluster_statuses"]
        [hosts] = [cluster["host_statuses"] for cluster in clusters if cluster["name"] == "service"]
        return [host["health_status"] for host in hosts]

    def fail_first(self, status: Status) -> None:
        """Makes the first call at either server fail; a second one succeeds only at the other server."""
        for server in self.servers:
            server.failures = [status]

    def called(self, method: str) -> int:
        """Returns how often the servers were called."""
        return sum(server.calls[method] for server in self.servers)

    async def play(self) -> None:
        await TurnServiceStub(self.channel).PlayTurn(ts.PlayTurnRequest(), timeout=20)

    async def read(self) -> None:
        await GameServiceStub(self.channel).GetGame(gs.GetGameRequest(), timeout=20)

    async def search(self) -> None:
        await AnalysisServiceStub(self.channel).SuggestTurn(ans.SuggestTurnRequest(), timeout=20)


@dataclass
class Proxy:
    """A TCP proxy before a server. While it breaks, it cuts new connections at their first bytes; others go on."""

    port: int
    is_breaking: bool = False

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Serves within the context; yields the port."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        async with server:
            yield server.sockets[0].getsockname()[1]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_breaking:
            await reader.read(1)
            writer.transport.abort()
            return
        upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self.port)
        await asyncio.gather(copy(reader, upstream_writer), copy(upstream_reader, writer))


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copies a direction of a connection until its end."""
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def edge_before(
    servers: tuple[ScriptedServer, ScriptedServer], ports: Sequence[int], folder: Path
) -> AsyncIterator[Edge]:
    """Runs an edge before two servers at the given ports."""
    port, admin = free_port(), free_port()
    upstreams = [("127.0.0.1", port) for port in ports]
    text = local(LocalEdge(("127.0.0.1", port), upstreams, upstreams, collect_page(folder)))
    text += f"\nadmin: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {admin}}}}}}}\n"
    with running_envoy(text, folder) as process:
        await EdgeProcess(port, process).ready()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", [("grpc.enable_retries", 0)]) as channel:
            yield Edge(servers, channel, EdgeProcess(admin, process))


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Edge]:
    servers = ScriptedServer(), ScriptedServer()
    async with AsyncExitStack() as stack:
        ports = [await stack.enter_async_context(server.listening()) for server in servers]
        yield await stack.enter_async_context(edge_before(servers, ports, tmp_path))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - another process sends no notification
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(("call", "method"), [(Edge.play, "PlayTurn"), (Edge.search, "SuggestTurn")])
async def test_a_change_or_search_that_a_stopping_server_refused_is_sent_to_another(
    edge: Edge, call: Callable[[Edge], Awaitable[None]], method: str
) -> None:
    edge.servers[0].failures = [status_of(ShuttingDown())] * 20
    for _ in range(10):
        await call(edge)
    assert edge.servers[1].calls[method] == 10


@pytest.mark.parametrize(
    ("call", "method", "status"),
    [
        pytest.param(Edge.play, "PlayTurn", status_of(StoreUnavailable()), id="change, outcome unknown"),
        pytest.param(Edge.play, "PlayTurn", CUT_OFF, id="change, cut off"),
        pytest.param(Edge.search, "SuggestTurn", status_of(AnalysisUnavailable()), id="search that ended its process"),
        pytest.param(Edge.search, "SuggestTurn", CUT_OFF, id="search, cut off"),
    ],
)
async def test_a_change_or_search_that_may_have_had_an_effect_is_never_sent_again(
    edge: Edge, call: Callable[[Edge], Awaitable[None]], method: str, status: Status
) -> None:
    edge.fail_first(status)
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call(edge)
    assert failed.value.code() is status.code
    assert edge.called(method) == 1


@pytest.mark.parametrize("status", [status_of(StoreUnavailable()), CUT_OFF])
async def test_a_read_is_sent_again_whatever_became_of_it(edge: Edge, status: Status) -> None:
    edge.servers[0].failures = [status] * 20
    for _ in range(10):
        await edge.read()
    assert edge.servers[1].calls["GetGame"] == 10


async def test_no_call_fails_when_a_server_is_gone(edge: Edge) -> None:
    assert edge.servers[0].server
    await edge.servers[0].server.stop(None)
    for _ in range(20):
        await edge.play()
        await edge.read()
    assert edge.servers[1].calls == {"PlayTurn": 20, "GetGame": 20}


async def test_a_refusal_of_an_overloaded_server_is_not_multiplied(edge: Edge) -> None:
    edge.fail_first(status_of(Overloaded("calls")))
    with pytest.raises(grpc.aio.AioRpcError):
        await edge.read()
    assert edge.called("GetGame") == 1


async def test_calls_go_around_a_lame_duck_and_reach_it_if_no_other_serves(edge: Edge) -> None:
    lame, other = edge.servers
    lame.health.set("", NOT_SERVING)
    async with asyncio.timeout(20):
        before = -1
        while lame.calls["PlayTurn"] != before:  # until a row of calls avoids it
            before = lame.calls["PlayTurn"]
            for _ in range(20):
                await edge.play()
    other.health.set("", NOT_SERVING)
    await asyncio.gather(*(edge.play() for _ in range(20)))


async def test_a_healthy_server_that_breaks_calls_is_ejected_for_a_while(tmp_path: Path) -> None:
    broken, other = servers = ScriptedServer(), ScriptedServer()
    async with AsyncExitStack() as stack:
        proxy = Proxy(await stack.enter_async_context(broken.listening()))
        ports = [await stack.enter_async_context(server.listening()) for server in (proxy, other)]
        edge = await stack.enter_async_context(edge_before(servers, ports, tmp_path))
        proxy.is_breaking = True
        async with asyncio.timeout(20):
            while not any("failed_outlier_check" in state for state in await edge.states()):
                with suppress(grpc.aio.AioRpcError):
                    await edge.play()
        assert not any("failed_active_health_check" in state for state in await edge.states())
        await asyncio.sleep(1.5)  # the edge collects changes of health for a second; a health check succeeds meanwhile
        for _ in range(10):
            await edge.play()
        assert not broken.calls["PlayTurn"]
        proxy.is_breaking = False
        async with asyncio.timeout(20):
            while not broken.calls["PlayTurn"]:
                await edge.play()


async def test_a_server_is_not_ejected_for_statuses_which_a_client_can_cause(edge: Edge) -> None:
    for code in (UNAVAILABLE, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNIMPLEMENTED):
        edge.servers[0].failures += [Status(code, "INTERNAL_ERROR", "refused")] * 20
    async with asyncio.timeout(20):
        while edge.servers[0].failures:
            with suppress(grpc.aio.AioRpcError):
                await edge.play()
    await asyncio.sleep(2.5)  # longer than the interval of its decisions
    stats = (await edge.admin.send("GET", "/stats?filter=^cluster.service.outlier_detection")).body.decode()
    assert "ejections_enforced_total: 0\n" in stats
    assert "ejections_detected_consecutive_5xx: 0\n" not in stats, "Envoy has seen the statuses"


def test_exactly_the_calls_that_only_read_a_game_are_sent_again() -> None:
    methods = {(service.full_name, method.name): method for service in CONTRACT for method in service.methods}
    [pattern] = re.findall(r"safe_regex: \{regex: '(/rummikub.*)'\}\}\n +route: .*\*reads", PLAIN.read_text())
    paths = re.findall(r"path: (/rummikub\S+)\}\n +route: .*\*reads", PLAIN.read_text())
    sent_again = {name for name in methods if (path := "/{}/{}".format(*name)) in paths or re.fullmatch(pattern, path)}
    reading = {
        (service, name)
        for (service, name), method in methods.items()
        if "request_id" not in method.input_type.fields_by_name
        and name not in WRITES_WITHOUT_REQUEST_ID
        # searches; services with a route of their own
        and not service.endswith((".AnalysisService", ".PuzzleService", ".ValidationService"))
        and (service, name) not in SEARCHES_OF_RECORDS
    }
    watches = {("rummikub.v1.GameService", name) for name in ("WatchGame", "WatchOwnGames")}
    assert sent_again == reading - watches, "their route is before this one"
