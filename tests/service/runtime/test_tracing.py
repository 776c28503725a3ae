"""Traces: what a real OTLP receiver gets, and that tracing never delays a call or a stop."""

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio
import pytest
from google.protobuf.duration_pb2 import Duration
from grpc_health.v1 import health_pb2, health_pb2_grpc

from rummikub.admin.v1 import admin_service_pb2 as admin_pb
from rummikub.v1 import analysis_service_pb2, meld_pb2, room_settings_pb2, tile_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1 import validation_service_pb2 as vs
from service.composition import Tuning
from service.errors import StoreUnavailable
from service.model.change import Loaded
from service.runtime.admission import Admission
from service.runtime.open_tracing import TracingError, check, is_requested, tracing_by
from service.runtime.opentelemetry_tracing import OpenTelemetryTracing
from service.runtime.tracing import CallTrace
from service.server import Server
from service.storage.store import Store
from service.storage.timing import timed
from support.collector import Collector, Received, running_collector
from support.delegating_store import DelegatingStore
from support.harness import (
    ROOT,
    Client,
    memory_store,
    run_service,
    running_redis,
    running_server,
    server_process,
    server_settings,
)
from support.operator import admin_at
from tools.games import options

pytestmark = pytest.mark.slow

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
OTHER_TRACE = "11111111111111111111111111111111"
PLAY_TURN = "rummikub.v1.TurnService/PlayTurn"
VALIDATE_TURN = "rummikub.v1.ValidationService/ValidateTurn"
UNLIMITED = options(turn_time_limit_seconds=0)
RUN = meld_pb2.Meld(tiles=[tile_pb2.TILE_RED_11, tile_pb2.TILE_RED_12, tile_pb2.TILE_RED_13])
LEGAL = vs.ValidateTurnRequest(table_after=meld_pb2.Table(melds=[RUN]), rack=RUN.tiles, has_melded=True)
BATCH = vs.BatchValidateTurnsRequest(turns=[LEGAL])
CALL_ATTRIBUTES = {
    "rpc.system.name",
    "rpc.method",
    "rpc.response.status_code",
    "rummikub.request_id",
    "rummikub.reason",
    "error.type",
}
CHILD_ATTRIBUTES = {
    "db.system.name",
    "db.operation.name",
    "error.type",
    "rummikub.search.kind",
    "rummikub.search.wait_seconds",
}
SERVER_KIND, CLIENT_KIND = 2, 3
ERROR_STATUS = 2

Metadata = tuple[tuple[str, str], ...]


def parent(trace_id: str = TRACE, *, is_sampled: bool = True) -> Metadata:
    """Returns the metadata of a caller's span."""
    return (("traceparent", f"00-{trace_id}-{PARENT}-0{is_sampled:d}"),)


PARENTS = parent()


@dataclass(frozen=True)
class Traced:
    """A traced server with its clients, and the collector of its spans."""

    server: Server
    client: Client
    validation: Client
    collector: Collector

    async def call(self, trace_id: str, root: str) -> tuple[Received, list[Received]]:
        return await self.collector.trace(trace_id, root)


@asynccontextmanager
async def traced_server(
    monkeypatch: pytest.MonkeyPatch, store: Store | None = None, *, is_fast: bool = True
) -> AsyncIterator[Traced]:
    async with AsyncExitStack() as stack:
        collector = await stack.enter_async_context(running_collector())
        for name, value in collector.environment.items():
            monkeypatch.setenv(name, value)
        tuning = Tuning() if is_fast else Tuning(grpcio="0")
        tracing = OpenTelemetryTracing(None, "memory")
        stack.push_async_callback(asyncio.to_thread, tracing.close)
        own = "127.0.0.1:0"
        settings = server_settings(validation_listen=own, admin_listen=own, heartbeat_seconds=0.2)
        server, client = await stack.enter_async_context(
            running_server(store or memory_store(), settings, tracing=tracing, tuning=tuning)
        )
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{server.validation_port}")
        yield Traced(server, client, Client(await stack.enter_async_context(channel)), collector)


@pytest.fixture
async def traced(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Traced]:
    async with traced_server(monkeypatch) as running:
        yield running


@pytest.fixture(params=[True, False], ids=["fast", "aio"])
async def listening(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Traced]:
    """Runs a server with either validation listener."""
    async with traced_server(monkeypatch, is_fast=request.param) as running:
        yield running


async def draw(client: Client, metadata: Metadata = PARENTS) -> str:
    """Draws a tile in a new game; returns the token of the player."""
    game = await client.new_game(ruleset=UNLIMITED)
    seen = await game.see()
    request = ts.PlayTurnRequest(game_id=game.game_id, etag=seen.etag, draw=ts.DrawTile())
    await client.turns.PlayTurn(request, metadata=(*game.as_seat(seen.turn.seat), *metadata))
    return game.tokens[seen.turn.seat]


async def test_a_turn_is_a_child_of_its_callers_span_and_parent_of_its_store_operations(traced: Traced) -> None:
    await draw(traced.client, (*parent(), ("x-request-id", "from-the-caller")))
    call, children = await traced.call(TRACE, PLAY_TURN)
    assert (call.parent_id, call.span.kind, call.span.status.code) == (PARENT, SERVER_KIND, 0)
    assert call.attributes == {
        "rpc.system.name": "grpc",
        "rpc.method": PLAY_TURN,
        "rpc.response.status_code": "OK",
        "rummikub.request_id": "from-the-caller",
    }
    assert [child.name for child in children][-1:] == ["store commit"]
    assert children[-1].span.kind == CLIENT_KIND
    assert children[-1].attributes == {"db.system.name": "memory", "db.operation.name": "commit"}
    for child in children:
        assert call.span.start_time_unix_nano <= child.span.start_time_unix_nano <= child.span.end_time_unix_nano
        assert child.span.end_time_unix_nano <= call.span.end_time_unix_nano


async def test_a_call_of_the_operator_has_a_span(traced: Traced) -> None:
    async with admin_at(traced.server.admin_port) as admin:
        await admin.GetStatistics(admin_pb.GetStatisticsRequest(), metadata=parent())
    call, children = await traced.call(TRACE, "rummikub.admin.v1.AdminService/GetStatistics")
    assert (call.parent_id, call.span.kind) == (PARENT, SERVER_KIND)
    assert [child.name for child in children] == ["store count", "store log_length", "store now_ms"]


async def test_a_call_without_a_caller_or_with_a_malformed_one_begins_a_trace(traced: Traced) -> None:
    await traced.client.validation.ListRulesets(vs.ListRulesetsRequest(), metadata=(("traceparent", "nonsense"),))
    await traced.client.validation.ListRulesets(vs.ListRulesetsRequest())
    await traced.collector.until(lambda: len(traced.collector.spans) == 2)
    first, second = traced.collector.spans
    assert first.parent_id == second.parent_id == ""
    assert first.trace_id != second.trace_id


async def test_a_span_has_the_state_of_its_callers_trace(traced: Traced, capfd: pytest.CaptureFixture[str]) -> None:
    states = (("tracestate", "vendor=1,other=2"), ("tracestate", "third=3"))
    await traced.client.validation.ListRulesets(vs.ListRulesetsRequest(), metadata=(*parent(), *states))
    malformed = (*parent(OTHER_TRACE), ("tracestate", "no state"))
    await traced.client.validation.ListRulesets(vs.ListRulesetsRequest(), metadata=malformed)
    await traced.collector.until(lambda: len(traced.collector.spans) == 2)
    first, second = traced.collector.spans
    assert (first.span.trace_state, second.span.trace_state) == ("vendor=1,other=2,third=3", "")
    assert "no state" not in "".join(capfd.readouterr()), "the log has nothing that callers send"


async def test_a_call_whose_caller_does_not_sample_has_no_span(traced: Traced) -> None:
    await draw(traced.client, parent(is_sampled=False))
    await draw(traced.client, parent(OTHER_TRACE))
    await traced.call(OTHER_TRACE, PLAY_TURN)
    assert traced.collector.of(TRACE) == []


async def test_a_suggestion_has_its_search_with_the_time_that_it_waited(traced: Traced) -> None:
    game = await traced.client.new_game(ruleset=options(hints=room_settings_pb2.HINTS_TURN))
    seat = (await game.see()).turn.seat
    request = analysis_service_pb2.SuggestTurnRequest(
        game_id=game.game_id, tier=analysis_service_pb2.HINT_TIER_TURN, time_limit=Duration(nanos=100_000_000)
    )
    await traced.client.analysis.SuggestTurn(request, metadata=(*game.as_seat(seat), *parent()))
    _, children = await traced.call(TRACE, "rummikub.v1.AnalysisService/SuggestTurn")
    assert children[-1].name == "search"
    assert "store load" in {child.name for child in children}
    attributes = children[-1].attributes
    assert attributes["rummikub.search.kind"] == "BestTurnQuery"
    assert 0 <= float(str(attributes["rummikub.search.wait_seconds"])) < 20


async def test_a_refusal_has_its_reason_and_is_no_error_of_the_server(traced: Traced) -> None:
    request = gs.GetGameRequest(game_id="0" * 32)
    with pytest.raises(grpc.aio.AioRpcError):
        await traced.client.games.GetGame(request, metadata=parent())
    call, _ = await traced.call(TRACE, "rummikub.v1.GameService/GetGame")
    assert call.attributes["rpc.response.status_code"] == "NOT_FOUND"
    assert call.attributes["rummikub.reason"] == "GAME_NOT_FOUND"
    assert call.span.status.code == 0
    assert "error.type" not in call.attributes


class FailingStore(DelegatingStore):
    """A store that does not answer loads."""

    @timed("load")
    async def load(self, _game_id: str, _request_key: str = "") -> Loaded:
        raise StoreUnavailable("closed")


async def test_a_store_that_does_not_answer_is_an_error_of_the_operation_and_of_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with traced_server(monkeypatch, FailingStore(memory_store())) as traced:
        with pytest.raises(grpc.aio.AioRpcError):
            await traced.client.games.GetGame(gs.GetGameRequest(game_id="0" * 32), metadata=parent())
        call, children = await traced.call(TRACE, "rummikub.v1.GameService/GetGame")
    assert (call.attributes["error.type"], call.span.status.code) == ("UNAVAILABLE", ERROR_STATUS)
    loads = [child for child in children if child.name == "store load"]
    assert {child.attributes["error.type"] for child in loads} == {"StoreUnavailable"}
    assert {child.span.status.code for child in loads} == {ERROR_STATUS}


async def test_a_watch_is_one_span_without_the_reads_that_all_watchers_share(traced: Traced) -> None:
    game = await traced.client.new_game(ruleset=UNLIMITED)
    watch = traced.client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id), metadata=parent())
    updates = aiter(watch)
    await anext(updates)
    for _ in range(3):
        revision = (await game.draw()).game.revision
        while (await anext(updates)).change.revision != revision:
            pass
    watch.cancel()
    call, children = await traced.call(TRACE, "rummikub.v1.GameService/WatchGame")
    assert call.attributes["rpc.response.status_code"] == "CANCELLED"
    assert "store load" in {child.name for child in children}
    assert "store events" not in {child.name for child in children}


@pytest.mark.parametrize(
    ("name", "data"), [("ValidateTurn", LEGAL.SerializeToString()), ("BatchValidateTurns", BATCH.SerializeToString())]
)
async def test_a_call_at_the_validation_listener_has_a_span(listening: Traced, name: str, data: bytes) -> None:
    send: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = listening.validation.channel.unary_unary(
        f"/rummikub.v1.ValidationService/{name}"
    )
    await send(data, metadata=(*parent(), ("x-request-id", "12345678")))
    call, _ = await listening.call(TRACE, f"rummikub.v1.ValidationService/{name}")
    assert call.parent_id == PARENT
    assert call.attributes["rpc.response.status_code"] == "OK"
    assert call.attributes["rummikub.request_id"] == "12345678"


async def test_every_span_of_a_slow_call_at_the_validation_listener_ends(
    traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    plain = OpenTelemetryTracing.call

    def counting(tracing: OpenTelemetryTracing, path: str, metadata: object) -> CallTrace:
        started.append(path)
        return plain(tracing, path, metadata)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(OpenTelemetryTracing, "call", counting)
    await traced.validation.validation.BatchValidateTurns(BATCH, metadata=parent())
    monkeypatch.setattr(traced.server.slow_calls, "_memory", Admission(1, 1.0, "request_bytes"))
    with pytest.raises(grpc.aio.AioRpcError):
        await traced.validation.validation.BatchValidateTurns(BATCH, metadata=parent())
    await traced.collector.until(lambda: len(traced.collector.of(TRACE)) == 2)
    answered, refused = traced.collector.of(TRACE)
    assert len(started) == 2
    assert "rummikub.reason" not in answered.attributes
    assert refused.attributes["rummikub.reason"] == "OVERLOADED"


async def test_a_malformed_request_at_the_validation_listener_has_its_reason(listening: Traced) -> None:
    send: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = listening.validation.channel.unary_unary(f"/{VALIDATE_TURN}")
    with pytest.raises(grpc.aio.AioRpcError):
        await send(b"\xff", metadata=parent())
    call, _ = await listening.call(TRACE, VALIDATE_TURN)
    assert call.attributes["rummikub.reason"] == "MALFORMED_REQUEST"


async def test_a_stream_at_the_validation_listener_is_one_span(listening: Traced) -> None:
    stream = listening.validation.validation.StreamValidateTurns(metadata=parent())
    for _ in range(3):
        await stream.write(vs.StreamValidateTurnsRequest(turn=LEGAL))
        await stream.read()
    await stream.done_writing()
    assert await stream.read() is grpc.aio.EOF
    path = "rummikub.v1.ValidationService/StreamValidateTurns"
    call, children = await listening.call(TRACE, path)
    assert call.attributes["rpc.response.status_code"] == "OK"
    assert children == []


async def test_a_cancelled_stream_at_the_validation_listener_says_so(traced: Traced) -> None:
    stream = traced.validation.validation.StreamValidateTurns(metadata=parent())
    await stream.write(vs.StreamValidateTurnsRequest(turn=LEGAL))
    await stream.read()
    stream.cancel()
    call, _ = await traced.call(TRACE, "rummikub.v1.ValidationService/StreamValidateTurns")
    assert call.attributes["rpc.response.status_code"] == "CANCELLED"


async def test_no_span_has_a_token_a_tile_or_anything_of_a_request(traced: Traced) -> None:
    token = await draw(traced.client)
    game = await traced.client.new_game(players=2, ruleset=UNLIMITED)
    with pytest.raises(grpc.aio.AioRpcError):
        await game.play_illegally()
    await traced.validation.validation.ValidateTurn(LEGAL, metadata=parent(OTHER_TRACE))
    await traced.call(OTHER_TRACE, VALIDATE_TURN)
    spans = traced.collector.spans
    assert len(spans) > 10
    for one in spans:
        is_call = one.span.kind == SERVER_KIND
        assert set(one.attributes) <= (CALL_ATTRIBUTES if is_call else CHILD_ATTRIBUTES)
        assert not one.span.events
        assert not one.span.status.message
        text = f"{one.name} {one.attributes}"
        hidden = (token, game.game_id, game.host_token, *filter(None, game.tokens.values()), "TILE_", "player 1")
        assert not any(secret in text for secret in hidden)


async def test_health_checks_and_work_without_a_call_have_no_spans(traced: Traced) -> None:
    for client in (traced.client, traced.validation):
        await health_pb2_grpc.HealthStub(client.channel).Check(health_pb2.HealthCheckRequest())
    await traced.server.sweeper.sweep()
    await traced.validation.validation.ValidateTurn(LEGAL, metadata=parent())
    await traced.call(TRACE, VALIDATE_TURN)
    assert {one.name for one in traced.collector.spans} == {VALIDATE_TURN}


async def test_log_lines_of_a_call_have_the_ids_of_its_span(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with running_collector() as collector:
        settings = {
            "RUMMIKUB_REDIS_URL": "memory://",
            "RUMMIKUB_LOG_LEVEL": "debug",
            "RUMMIKUB_VALIDATION_LISTEN": "127.0.0.1:0",
            **collector.environment,
        }
        with log.open("wb") as file:
            async with server_process(settings, file.fileno()) as server:
                async with (
                    grpc.aio.insecure_channel(server.target) as channel,
                    grpc.aio.insecure_channel(server.validation_target) as validation,
                ):
                    await draw(Client(channel))
                    await Client(validation).validation.ValidateTurn(LEGAL, metadata=parent())
                    await Client(validation).validation.BatchValidateTurns(BATCH, metadata=parent())
                await collector.until(lambda: len([one for one in collector.of(TRACE) if one.parent_id == PARENT]) == 3)
                assert await server.terminate() == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    calls = {line["method"]: line for line in lines if line["event"] == "call" and line.get("trace_id") == TRACE}
    spans = {f"/{one.name}": one for one in collector.of(TRACE) if one.parent_id == PARENT}
    assert len(calls) == 3
    assert {path: line["span_id"] for path, line in calls.items()} == {path: one.span_id for path, one in spans.items()}
    assert all("trace_id" not in line for line in lines if line["event"] == "stopping")
    assert {one.resource["service.name"] for one in collector.spans} == {"rummikub-server"}


async def test_each_worker_exports_under_its_own_instance_id_and_a_stop_flushes() -> None:
    async with running_collector() as collector:
        with running_redis() as redis:
            settings = {
                "RUMMIKUB_REDIS_URL": redis.url,
                "RUMMIKUB_WORKERS": "2",
                **collector.environment,
                "OTEL_BSP_SCHEDULE_DELAY": "3600000",
                "OTEL_SERVICE_NAME": "rules",
                "OTEL_RESOURCE_ATTRIBUTES": "service.instance.id=pod",
            }
            async with server_process(settings) as server:
                for _ in range(12):  # the kernel spreads connections over the workers
                    options = (("grpc.use_local_subchannel_pool", 1),)
                    async with grpc.aio.insecure_channel(server.target, options) as channel:
                        await Client(channel).validation.ListRulesets(vs.ListRulesetsRequest())
                assert collector.spans == []
                assert await server.terminate() == 0
    assert len(collector.spans) == 12
    assert {one.resource["service.name"] for one in collector.spans} == {"rules"}
    assert {one.resource["service.instance.id"] for one in collector.spans} <= {"pod-1", "pod-2"}


@pytest.fixture(params=["closed", "silent"])
def unreachable(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yields the address of a port that nobody listens at, or at which connections get no answer."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if request.param == "silent":
            listener.listen(100)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


async def test_a_collector_out_of_reach_fails_no_call_and_holds_up_no_stop(unreachable: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    settings = {
        "RUMMIKUB_REDIS_URL": "memory://",
        "OTEL_EXPORTER_OTLP_ENDPOINT": unreachable,
        "OTEL_BSP_SCHEDULE_DELAY": "20",
        "OTEL_BSP_MAX_QUEUE_SIZE": "8",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "4",
    }
    with log.open("wb") as file:
        async with server_process(settings, file.fileno()) as server:
            async with grpc.aio.insecure_channel(server.target) as channel:
                for _ in range(50):
                    await Client(channel).validation.ValidateTurn(LEGAL, timeout=5)
            began = time.monotonic()
            assert await server.terminate() == 0
            assert time.monotonic() - began < 10  # the exporter alone would wait for ten seconds
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert any(line["event"] == "tracing" for line in lines)


def without_opentelemetry(folder: Path) -> dict[str, str]:
    """Returns the variables of a Python in which OpenTelemetry is not installed."""
    package = folder / "opentelemetry"
    package.mkdir()
    (package / "__init__.py").write_text("raise ModuleNotFoundError('missing', name='opentelemetry')\n")
    return {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_that_shall_trace_and_cannot_says_what_to_install(tmp_path: Path, workers: str) -> None:
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317", "RUMMIKUB_WORKERS": workers}
    ended = run_service(**endpoint, **without_opentelemetry(tmp_path))
    assert ended.returncode == 1
    assert ended.stderr == (
        "rummikub-server: OTEL_EXPORTER_OTLP_ENDPOINT is set, and opentelemetry is not installed; "
        "install rummikub-service[otel], or unset the variable\n"
    )


async def test_a_server_without_opentelemetry_serves_if_it_shall_not_trace(tmp_path: Path) -> None:
    async with server_process({"RUMMIKUB_REDIS_URL": "memory://", **without_opentelemetry(tmp_path)}) as server:
        async with grpc.aio.insecure_channel(server.target) as channel:
            await Client(channel).validation.ListRulesets(vs.ListRulesetsRequest())
        assert await server.terminate() == 0


async def test_nothing_is_wrapped_if_tracing_is_off() -> None:
    program = "import sys, service.composition, service.fast_listener.validation_listener\n"
    program += "print('service.runtime.opentelemetry_tracing' in sys.modules)"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, cwd=ROOT, stdout=subprocess.PIPE)
    printed, _ = await process.communicate()
    assert printed == b"False\n"
    with tracing_by({}, None, "redis") as tracing:
        assert tracing is None
    store = memory_store()
    async with running_server(store) as (server, _):
        assert store.reports.operation == server.metrics.store


@pytest.mark.parametrize(
    ("variables", "is_on"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4317"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_SDK_DISABLED": "True"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_standard_variables_turn_tracing_on(variables: dict[str, str], is_on: bool) -> None:
    assert is_requested(variables) is is_on


def test_a_protocol_that_is_not_supported_is_refused() -> None:
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
    with pytest.raises(TracingError, match="OTLP over http/protobuf is not supported; set OTEL_EXPORTER_OTLP_PROTOCOL"):
        check(variables)
