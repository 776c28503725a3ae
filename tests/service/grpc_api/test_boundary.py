"""A server's operation: TLS, health, reflection, metrics, log, request ids, overload and shutdown."""

import asyncio
import contextlib
import fcntl
import json
import os
import platform
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import grpc
import grpc.aio
import pytest
from google.protobuf import descriptor_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families

from rummikub.v1 import game_pb2, meld_pb2, tile_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1 import validation_service_pb2 as vs
from service.composition import Tuning, build_server
from service.health_check import DEFAULT_LISTEN, STATUSES
from service.metrics import exporter as exporter_module
from service.metrics.exporter import serve_metrics
from service.metrics.metrics import Metrics as ServiceMetrics
from service.model.change import Commit, Outcome
from service.server import Intervals
from service.settings import Settings
from support.certificates import openssl, self_signed
from support.delegating_store import DelegatingStore
from support.grpc_play import random_turn
from support.harness import (
    ROOT,
    Client,
    GameAtHand,
    bearer,
    error_info,
    keys_file,
    memory_store,
    redis_store,
    retry_ms,
    running_server,
    server_process,
    server_settings,
)
from tools.redis_servers import RedisServer

pytestmark = pytest.mark.slow

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
STATEFUL = ("", "rummikub.v1.GameService", "rummikub.v1.TurnService", "rummikub.v1.ChallengeService")
STATELESS = (
    "rummikub.v1.ValidationService",
    "rummikub.v1.AnalysisService",
    "rummikub.v1.PuzzleService",
    "rummikub.v1.RecordService",
)
CONTRACT = {*STATEFUL[1:], *STATELESS}
LIMIT_OF_FILES = 128
HEAP_BYTES = 1 << 26
"""The size and alignment of the heaps of glibc's further arenas."""
STORE_CHECKS_SECONDS = 10.0
"""A timeout for noticing that the store is down or up again."""

# TLS


def of_an_authority(folder: Path, names: str) -> None:
    """Makes cert.pem and key.pem like `self_signed`, but signed by an authority that is not in cert.pem."""
    authority = folder / "authority"
    authority.mkdir()
    self_signed(authority, "", "/CN=An authority")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "key.pem"]
    openssl(folder, "req", *key, "-out", "request.pem", "-subj", "/CN=ignored", "-addext", f"subjectAltName={names}")
    signed_by = ["-CA", "authority/cert.pem", "-CAkey", "authority/key.pem", "-copy_extensions", "copyall"]
    openssl(folder, "x509", "-req", "-in", "request.pem", "-out", "cert.pem", "-days", "2", *signed_by)


async def health_of(port: int, to: int = asyncio.subprocess.PIPE, /, **variables: str) -> tuple[int, str, str]:
    """Runs `python -m service --health`; returns its exit code, output and errors. The output goes to `to`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RUMMIKUB_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "service",
        "--health",
        cwd=ROOT,
        env={**clean, "RUMMIKUB_LISTEN": f"127.0.0.1:{port}", **variables},
        stdout=to,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode is not None
    return process.returncode, (out or b"").decode(), err.decode()


async def test_the_health_check_succeeds_though_its_answer_cannot_be_written() -> None:
    async with running_server(memory_store()) as (server, _):
        full = os.open("/dev/full", os.O_WRONLY)
        try:
            assert await health_of(server.port, full) == (0, "", "")
        finally:
            os.close(full)


async def test_a_server_with_tls_serves_tls_and_nothing_else(tmp_path: Path) -> None:
    self_signed(tmp_path, "DNS:localhost")
    variables = {"RUMMIKUB_TLS_CERT": str(tmp_path / "cert.pem"), "RUMMIKUB_TLS_KEY": str(tmp_path / "key.pem")}
    async with server_process({"RUMMIKUB_REDIS_URL": "memory://", **variables}) as process:
        credentials = grpc.ssl_channel_credentials((tmp_path / "cert.pem").read_bytes())
        async with grpc.aio.secure_channel(f"localhost:{process.port}", credentials) as channel:
            game = await Client(channel).new_game()
            assert (await game.draw()).tiles_drawn
        async with grpc.aio.insecure_channel(process.target) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as refusal:
                await Client(channel).validation.ListRulesets(vs.ListRulesetsRequest(), timeout=10)
            assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda folder: self_signed(folder, "DNS:rummikub.example,DNS:other.example"), id="names"),
        pytest.param(lambda folder: self_signed(folder, "DNS:*.rummikub.example"), id="wildcard"),
        pytest.param(lambda folder: self_signed(folder, "email:host@rummikub.example,IP:192.0.2.1"), id="address"),
        pytest.param(lambda folder: self_signed(folder, ""), id="no alternative name"),
        pytest.param(lambda folder: of_an_authority(folder, "DNS:rummikub.example"), id="authority"),
    ],
)
async def test_the_health_check_works_with_a_certificate_for_any_other_host(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path)
    pair = {name: str(tmp_path / f"{name.removeprefix('tls_')}.pem") for name in ("tls_cert", "tls_key")}
    async with running_server(memory_store(), server_settings(**pair)) as (server, _):
        variables = {f"RUMMIKUB_{name.upper()}": value for name, value in pair.items()}
        assert await health_of(server.port, **variables) == (0, "SERVING\n", "")


async def test_the_health_check_does_not_fail_with_files_that_the_server_does_not_use(tmp_path: Path) -> None:
    self_signed(tmp_path, "DNS:rummikub.example")
    files = {
        "tls_cert": tmp_path / "cert.pem",
        "tls_key": tmp_path / "key.pem",
        "keys_file": keys_file(tmp_path, web=""),
    }
    async with running_server(memory_store(), server_settings(**files)) as (server, _):
        for file in files.values():
            file.write_text("typo =")
        variables = {f"RUMMIKUB_{name.upper()}": str(file) for name, file in files.items()}
        assert await health_of(server.port, **variables) == (0, "SERVING\n", "")
        server.report_not_serving()
        assert await health_of(server.port, **variables) == (1, "NOT_SERVING\n", "")
    code, out, err = await health_of(server.port, **variables)
    assert (code, out) == (1, "")
    assert err.startswith(f"rummikub-server: no answer from 127.0.0.1:{server.port}: ")
    assert len(err.splitlines()) == 1


async def test_the_health_check_imports_little() -> None:
    program = "import sys, service.__main__, service.health_check; print(*sys.modules)"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    loaded = set(out.decode().split())
    assert "grpc" in loaded
    assert not loaded & {"google.protobuf", "pydantic", "redis", "service.settings", "structlog", "uvloop"}


def test_the_health_check_knows_the_default_address_and_the_statuses() -> None:
    assert Settings.model_fields["listen"].default == DEFAULT_LISTEN
    assert tuple(health_pb2.HealthCheckResponse.ServingStatus.keys()) == STATUSES


# Health


async def statuses(client: Client, service: str) -> AsyncIterator[int]:
    """Yields the current health of a service, and its changes."""
    stub = health_pb2_grpc.HealthStub(client.channel)
    async for answer in stub.Watch(health_pb2.HealthCheckRequest(service=service)):
        yield answer.status


async def check(client: Client, service: str = "") -> int:
    """Returns the health of a service."""
    stub = health_pb2_grpc.HealthStub(client.channel)
    status: int = (await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=10)).status
    return status


async def test_health_follows_the_store_while_validation_goes_on() -> None:
    async with AsyncExitStack() as stack:
        redis = RedisServer()
        stack.callback(redis.close)
        redis.start()
        store = redis_store(redis.url)
        stack.push_async_callback(store.close)
        server, client = await stack.enter_async_context(running_server(store))
        game = await client.new_game()
        watches = [statuses(client, name) for name in STATEFUL]
        assert [await anext(watch) for watch in watches] == [SERVING] * len(STATEFUL)

        redis.stop()
        async with asyncio.timeout(STORE_CHECKS_SECONDS):
            assert [await anext(watch) for watch in watches] == [NOT_SERVING] * len(STATEFUL)
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await game.see()
        assert error_info(refusal.value).reason == "STORE_UNAVAILABLE"
        assert retry_ms(refusal.value)
        assert [await check(client, name) for name in STATELESS] == [SERVING] * len(STATELESS)
        assert (await client.validation.ListRulesets(vs.ListRulesetsRequest())).rulesets
        assert await health_of(server.port) == (1, "NOT_SERVING\n", "")

        redis.start()
        async with asyncio.timeout(STORE_CHECKS_SECONDS):
            assert [await anext(watch) for watch in watches] == [SERVING] * len(STATEFUL)
        assert (await game.see()).revision > 0
        assert await health_of(server.port) == (0, "SERVING\n", "")


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Returns an HTTP/2 frame."""
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


def headers_of(rpc: str) -> bytes:
    """Returns the headers of a call of Health."""
    headers = {":method": "POST", ":scheme": "http", ":path": f"/grpc.health.v1.Health/{rpc}", ":authority": "x"}
    headers |= {"te": "trailers", "content-type": "application/grpc"}
    texts = [text.encode() for header in headers.items() for text in header]
    sent = [bytes((len(text),)) + text for text in texts]
    return b"".join(b"\0" + name + value for name, value in zip(sent[::2], sent[1::2], strict=True))


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


async def watch_without_reading(port: int) -> asyncio.StreamWriter:
    """Opens a connection that watches health with a flow-control window of 0."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(PREFACE + frame(4, 0, 0, b"\0\4" + bytes(4)))  # a window of 0
    writer.write(frame(1, 4, 1, headers_of("Watch")) + frame(0, 1, 1, bytes(5)))
    kind = None
    while kind != 1:  # the headers; the response waits for the window
        head = await reader.readexactly(9)
        await reader.readexactly(int.from_bytes(head[:3]))
        kind = head[3]
    return writer


async def test_who_watches_health_without_reading_keeps_nobody_waiting() -> None:
    async with running_server(memory_store()) as (server, client):
        with contextlib.closing(await watch_without_reading(server.port)):
            async with asyncio.timeout(STORE_CHECKS_SECONDS):
                watch = statuses(client, "")
                assert await anext(watch) == SERVING
                await asyncio.gather(server.stop(), anext(watch))


async def test_the_health_of_an_unknown_service_is_not_found() -> None:
    async with running_server(memory_store()) as (_, client):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await check(client, "rummikub.v1.NoService")
    assert refusal.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_refused_health_check_that_is_given_up_is_no_fault(capfd: pytest.CaptureFixture[str]) -> None:
    asked, given_up = b"\0\0\0\0\3\x0a\1x", bytes((0, 0, 0, 8))
    async with running_server(memory_store()) as (server, client):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(PREFACE + frame(4, 0, 0, b""))
        for stream in range(1, 2000, 2):
            writer.write(frame(1, 4, stream, headers_of("Check")) + frame(0, 1, stream, asked))
            for _ in range(stream % 16):  # so that some are cancelled while they run
                await asyncio.sleep(0)
            writer.write(frame(3, 0, stream, given_up))
        assert await check(client) == SERVING
        writer.write(frame(6, 0, 0, bytes(8)))
        while b"\0\0\x08\6\1" not in await reader.read(65_536):
            pass
        writer.close()
    told = capfd.readouterr()
    assert "Error" not in told.out + told.err


async def test_a_health_check_that_finds_nobody_fails_with_a_sentence() -> None:
    async with running_server(memory_store()) as (server, _):
        port = server.port
    code, out, err = await health_of(port)
    assert (code, out) == (1, "")
    assert err == f"rummikub-server: no answer from 127.0.0.1:{port}: UNAVAILABLE\n"


# Reflection


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_reflection_lists_and_describes_all_services(version: str) -> None:
    """grpcio-reflection has the messages of v1alpha only; those of v1 have the same bytes."""
    services = {
        *CONTRACT,
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    }
    async with running_server(memory_store()) as (_, client):
        reflect: grpc.aio.StreamStreamMultiCallable[
            reflection_pb2.ServerReflectionRequest, reflection_pb2.ServerReflectionResponse
        ] = client.channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            reflection_pb2.ServerReflectionRequest.SerializeToString,
            reflection_pb2.ServerReflectionResponse.FromString,
        )
        asked = [
            reflection_pb2.ServerReflectionRequest(list_services=""),
            *(reflection_pb2.ServerReflectionRequest(file_containing_symbol=name) for name in sorted(services)),
        ]
        listed, *described = [answer async for answer in reflect(iter(asked))]
    assert {service.name for service in listed.list_services_response.service} == services
    rpcs = {
        f"{file.package}.{service.name}": {method.name for method in service.method}
        for answer in described
        for data in answer.file_descriptor_response.file_descriptor_proto
        for file in [descriptor_pb2.FileDescriptorProto.FromString(data)]
        for service in file.service
    }
    assert rpcs.keys() == services
    assert "PlayTurn" in rpcs["rummikub.v1.TurnService"]
    assert "WatchGame" in rpcs["rummikub.v1.GameService"]


# Metrics


class Metrics:
    """Reads a server's metrics as Prometheus does."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/metrics"

    async def read(self) -> dict[tuple[str, ...], float]:
        """Returns the samples by name and label values, in the order of the label names."""
        text = await asyncio.to_thread(self._text)
        return {
            (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def _text(self) -> str:
        with urllib.request.urlopen(self._url, timeout=10) as answer:  # noqa: S310 - http, our own
            text: str = answer.read().decode()
            return text

    async def until(self, condition: Callable[[dict[tuple[str, ...], float]], bool]) -> dict[tuple[str, ...], float]:
        """Returns the metrics once they meet a condition."""
        async with asyncio.timeout(10):
            while not condition(found := await self.read()):
                pass
            return found


async def test_metrics_tell_calls_latencies_and_games() -> None:
    tuning = Tuning(intervals=Intervals(count=0.05))
    async with running_server(memory_store(), tuning=tuning) as (server, client):
        with server.serve_metrics() as port:
            metrics = Metrics(port)
            began = time.perf_counter()
            await client.new_game(start=False)
            await client.new_game(start=False)
            game = await client.new_game()
            await game.draw()
            for _ in range(3):
                with pytest.raises(grpc.aio.AioRpcError):
                    await client.games.GetGame(gs.GetGameRequest(game_id="0" * 32))
            took = time.perf_counter() - began
            found = await metrics.until(lambda samples: samples.get(("rummikub_games", "playing")) == 1)
    games, turns = "/rummikub.v1.GameService", "/rummikub.v1.TurnService"
    expected = {
        ("OK", f"{games}/CreateGame"): 3,
        ("OK", f"{games}/JoinGame"): 6,
        ("OK", f"{games}/StartGame"): 1,
        ("OK", f"{games}/GetGame"): 1,
        ("NOT_FOUND", f"{games}/GetGame"): 3,
        ("OK", f"{turns}/PlayTurn"): 1,
    }
    assert {key[1:]: value for key, value in found.items() if key[0] == "rummikub_calls_total"} == expected
    assert found["rummikub_call_seconds_count", f"{games}/GetGame"] == 4
    seconds = sum(value for key, value in found.items() if key[0] == "rummikub_call_seconds_sum")
    assert 0 < seconds < took
    stored = {key[1:]: value for key, value in found.items() if key[0] == "rummikub_store_seconds_count"}
    assert stored["commit", "ok"] == 3 + 6 + 1 + 1, "one commit for each create, join, start and play"
    assert stored["load", "ok"] >= 6
    in_store = found["rummikub_store_seconds_sum", "commit", "ok"]
    assert 0 < in_store < took
    assert {key[1]: value for key, value in found.items() if key[0] == "rummikub_games"} == {
        "lobby": 2,
        "playing": 1,
        "round_over": 0,
        "finished": 0,
        "aborted": 0,
    }
    assert found["rummikub_store_up",] == 1
    assert found["rummikub_build_info", version("grpcio"), version("rummikub-service")] == 1
    assert found["rummikub_event_loop_lag_seconds",] >= 0


async def test_metrics_of_processes_include_those_that_a_server_starts() -> None:
    with serve_metrics("127.0.0.1:0", ServiceMetrics().registry) as port:
        metrics = Metrics(port)
        alone = await metrics.until(lambda samples: ("process_resident_memory_bytes",) in samples)
        spin = "import os, time\nhere = open(os.devnull)\nwhile time.process_time() < 0.5: pass\nprint(1)\ninput()"
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", spin, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert child.stdout
        await child.stdout.readline()
        both = await metrics.until(lambda samples: ("process_open_fds",) in samples)
        await child.communicate(b"\n")
        after = await metrics.until(lambda samples: ("process_open_fds",) in samples)
    assert both["process_cpu_seconds_total",] >= alone["process_cpu_seconds_total",] + 0.4
    assert after["process_cpu_seconds_total",] >= both["process_cpu_seconds_total",], "a counter never decreases"
    assert both["process_resident_memory_bytes",] > alone["process_resident_memory_bytes",] + 4_000_000
    assert alone["process_open_fds",] + 4 <= both["process_open_fds",] < both["process_max_fds",]


@pytest.fixture(scope="module")
def metrics_url() -> Iterator[str]:
    with exporter_module.serve_metrics("127.0.0.1:0", ServiceMetrics().registry) as port:
        yield f"http://127.0.0.1:{port}/metrics"


@pytest.mark.parametrize("version", ["x", '"1.0.0"', "1.x", "1..0", "9" * 5000, "1.0.0"])
@pytest.mark.parametrize("form", ["application/openmetrics-text", "text/plain"])
def test_metrics_are_served_whatever_version_of_their_format_is_accepted(
    form: str, version: str, metrics_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    accept = {"Accept": f"{form}; version={version}, text/plain;q=0.5"}
    request = urllib.request.Request(metrics_url, headers=accept)  # noqa: S310 - http, our own
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - http, our own
        assert b"rummikub_store_up 0.0" in answer.read()
        assert answer.headers["Content-Type"].startswith(form if version == "1.0.0" else "text/plain")
    assert capfd.readouterr().err == ""


async def test_who_asks_for_no_metrics_keeps_no_thread_and_fills_no_log(capfd: pytest.CaptureFixture[str]) -> None:
    async with running_server(memory_store()) as (server, _):
        serving = serve_metrics("127.0.0.1:0", server.metrics.registry, silence_seconds=0.05)
        with serving as port, socket.create_connection(("127.0.0.1", port), 10) as silent:
            assert await asyncio.to_thread(silent.recv, 1) == b"", "the connection is closed"
    assert capfd.readouterr().err == ""


async def test_who_asks_for_metrics_without_an_end_takes_few_connections_at_a_time(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async with running_server(memory_store()) as (server, _):
        serving = serve_metrics("127.0.0.1:0", server.metrics.registry, most_connections=3)
        with serving as port, contextlib.ExitStack() as stack:
            address = "127.0.0.1", port
            unending = [stack.enter_context(socket.create_connection(address, 5)) for _ in range(4)]
            assert await asyncio.to_thread(unending[0].recv, 1) == b"", "the oldest connection is closed"
            assert (await Metrics(port).read())["rummikub_store_up",] == 1
            assert await asyncio.to_thread(unending[1].recv, 1) == b""
            unending[3].sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            answer = await asyncio.to_thread(unending[3].recv, 12)
            assert answer == b"HTTP/1.0 200", "the newest stay open"
    assert capfd.readouterr().err == ""


async def test_more_clients_are_served_than_the_limit_of_open_files_would_let_in_at_first() -> None:
    """A listener without free descriptors accepts no connection until clients disconnect."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard > 2 * LIMIT_OF_FILES, "this machine's hard limit is too low for the test"
    async with AsyncExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT_OF_FILES, hard))  # the server inherits it
        try:
            process = await stack.enter_async_context(server_process({"RUMMIKUB_REDIS_URL": "memory://"}))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(LIMIT_OF_FILES):
            stack.enter_context(socket.create_connection(("127.0.0.1", process.port), 5))
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(process.target))
        assert (await Client(channel).validation.ListRulesets(vs.ListRulesetsRequest(), timeout=10)).rulesets


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has arenas")
async def test_memory_that_a_thread_has_given_back_serves_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the server's memory would grow with each burst of calls."""
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    async with AsyncExitStack() as stack:
        process = await stack.enter_async_context(server_process({"RUMMIKUB_REDIS_URL": "memory://"}))
        for _ in range(8):
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(process.target))
            assert (await Client(channel).validation.ListRulesets(vs.ListRulesetsRequest(), timeout=10)).rulesets
        assert heaps_of_further_arenas(process.pid) == 1


def heaps_of_further_arenas(pid: int) -> int:
    """Returns the number of heaps of further arenas in a process."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    mapped = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) (....) 0+ 00:00 0 *$", maps, re.MULTILINE)
    parts = [(int(begin, 16), int(end, 16), access) for begin, end, access in mapped]
    return sum(
        used == "rw-p" and rest == "---p" and begin % HEAP_BYTES == 0 and end == begin + HEAP_BYTES
        for (begin, middle, used), (follows, end, rest) in pairwise(parts)
        if middle == follows
    )


async def test_metrics_tell_a_store_that_is_away() -> None:
    async with AsyncExitStack() as stack:
        redis = RedisServer()
        stack.callback(redis.close)
        redis.start()
        store = redis_store(redis.url)
        stack.push_async_callback(store.close)
        server, _ = await stack.enter_async_context(running_server(store))
        metrics = Metrics(stack.enter_context(server.serve_metrics()))
        assert (await metrics.read())["rummikub_store_up",] == 1
        redis.stop()
        found = await metrics.until(lambda samples: samples["rummikub_store_up",] == 0)
        assert found["rummikub_store_seconds_count", "ping", "StoreUnavailable"] >= 2
        redis.start()
        await metrics.until(lambda samples: samples["rummikub_store_up",] == 1)


# Log


async def played_turns(game: GameAtHand, most: int) -> int:
    """Plays legal turns; returns their number."""
    rng = random.Random(1)
    for played in range(most):
        state = await game.see()
        if state.state != game_pb2.GAME_STATE_PLAYING:
            return played
        seat = state.turn.seat
        request = random_turn(await game.see(seat), rng)
        await game.client.turns.PlayTurn(request, metadata=game.as_seat(seat))
    return most


async def refused_calls(game: GameAtHand) -> dict[str, str]:
    """Plays a single tile, sends an unknown token and a malformed one; returns the messages by reason."""
    state = await game.see()
    own = await game.see(state.turn.seat)
    single = meld_pb2.Meld(tiles=[next(tile for tile in own.rack if tile != tile_pb2.TILE_JOKER)])
    request = ts.PlayTurnRequest(game_id=game.game_id, etag=state.etag)
    request.play.table.melds.extend(
        [*(meld_pb2.Meld(tiles=meld.tiles, kind=meld.kind) for meld in state.table.melds), single]
    )
    asked = gs.GetGameRequest(game_id=game.game_id)
    token = game.tokens[state.turn.seat]
    refusals = {}
    for call in (
        game.client.turns.PlayTurn(request, metadata=bearer(token)),
        game.client.games.GetGame(asked, metadata=bearer(token[::-1])),
        game.client.games.GetGame(asked, metadata=(("authorization", token),)),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await call
        refusals[error_info(refusal.value).reason] = str(refusal.value.details())
    return refusals


async def watched_with_a_ticket(game: GameAtHand) -> str:
    """Opens a watch with a ticket of seat 1, and returns the ticket."""
    request = gs.CreateWatchTicketRequest(game_id=game.game_id)
    ticket = (await game.client.games.CreateWatchTicket(request, metadata=game.as_seat(1))).ticket
    call = game.client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id, ticket=ticket))
    await anext(aiter(call))
    call.cancel()
    return ticket


async def test_the_log_is_json_with_request_ids_and_without_tokens_or_tiles(
    capfd: pytest.CaptureFixture[str],
) -> None:
    tile_name = re.compile(r"\b(?:[RBKOY](?:1[0-3]|[1-9])[a-h]?)\b|TILE_(?!UNKNOWN)|JOKER")
    async with server_process({"RUMMIKUB_REDIS_URL": "memory://", "RUMMIKUB_LOG_LEVEL": "info"}) as process:
        async with grpc.aio.insecure_channel(process.target) as channel:
            game = await Client(channel).new_game()
            played = await played_turns(game, 20)
            other = await Client(channel).new_game()  # the first one may be over
            refusals = await refused_calls(other)
            ticket = await watched_with_a_ticket(game)
            await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        assert await process.terminate() == 0
    assert any(tile_name.search(message) for message in refusals.values()), (
        "the test needs a message with a tile's name"
    )
    lines = capfd.readouterr().err.splitlines()
    entries = [json.loads(line) for line in lines]
    calls = [entry for entry in entries if entry["event"] == "call"]
    assert {entry["event"] for entry in entries} == {"call", "stopping"}
    assert not [entry for entry in calls if "Health" in entry["method"]], "proxies ask every few seconds"
    assert all(entry["level"] == "info" and entry["timestamp"] for entry in entries)
    assert len({entry["request_id"] for entry in calls}) == len(calls)
    assert sum(entry["method"].endswith("/PlayTurn") and entry["code"] == "OK" for entry in calls) == played
    assert sorted(entry["reason"] for entry in calls if entry["code"] not in {"OK", "CANCELLED"}) == sorted(refusals)
    assert not [line for line in lines if tile_name.search(line)]
    tokens = (*game.tokens.values(), *other.tokens.values())
    secrets = [text for token in tokens if token for text in (token, token[::-1])]
    assert len(secrets) == 8
    secrets.append(ticket)
    assert not [line for line in lines if any(secret in line for secret in secrets)]


# Request ids


def request_id(trailing: grpc.aio.Metadata | None) -> str:
    """Returns the only request id in trailing metadata."""
    (found,) = [value for key, value in trailing or () if key == "x-request-id"]
    assert isinstance(found, str)
    return found


async def request_ids(client: Client, sent: str | None) -> list[str]:
    """Returns the request ids of a successful call, a failed one and a finished stream."""
    metadata = () if sent is None else (("x-request-id", sent),)
    good = client.validation.ListRulesets(vs.ListRulesetsRequest(), metadata=metadata)
    await good
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await client.games.GetGame(gs.GetGameRequest(game_id="0" * 32), metadata=metadata)
    stream = client.validation.StreamValidateTurns(
        iter([vs.StreamValidateTurnsRequest(turn=vs.ValidateTurnRequest(has_melded=True))]), metadata=metadata
    )
    assert len([answer async for answer in stream]) == 1
    return [
        request_id(grpc.aio.Metadata(*await good.trailing_metadata())),
        request_id(refusal.value.trailing_metadata()),
        request_id(grpc.aio.Metadata(*await stream.trailing_metadata())),
    ]


@pytest.mark.parametrize("sent", ["a", "c0ffee-42/{x}:~!", "x" * 64])
async def test_a_request_id_is_echoed(sent: str) -> None:
    async with running_server(memory_store()) as (_, client):
        assert await request_ids(client, sent) == [sent] * 3


@pytest.mark.parametrize("sent", [None, "", "two words", "x" * 65])
async def test_a_request_id_that_is_missing_or_ill_formed_is_replaced(sent: str | None) -> None:
    async with running_server(memory_store()) as (_, client):
        ids = await request_ids(client, sent)
    assert all(re.fullmatch(r"[0-9a-f]{24}", made) for made in ids)
    assert len({*ids}) == 3


# Overload


async def test_more_calls_than_allowed_are_refused_while_health_answers() -> None:
    async with running_server(memory_store(), server_settings(max_calls=1)) as (_, client):
        game = await client.new_game()
        watch = client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id))
        first = await watch.read()
        assert isinstance(first, gs.WatchGameResponse)
        assert first.HasField("snapshot")
        for _ in range(2):
            with pytest.raises(grpc.aio.AioRpcError) as refusal:
                await game.see()
            assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
            assert error_info(refusal.value).reason == "OVERLOADED"
            assert retry_ms(refusal.value)
        assert await check(client) == SERVING
        watch.cancel()
        assert (await answered_again(game)).game_id == game.game_id


async def answered_again(game: GameAtHand) -> game_pb2.Game:
    """Returns a game once the server is no longer overloaded."""
    async with asyncio.timeout(10):
        while True:
            try:
                return await game.see()
            except grpc.aio.AioRpcError as error:
                if error_info(error).reason != "OVERLOADED":
                    raise


# Addresses


@pytest.fixture
def taken() -> Iterator[str]:
    """An address that is in use."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("variable", ["RUMMIKUB_LISTEN", "RUMMIKUB_VALIDATION_LISTEN", "RUMMIKUB_METRICS_LISTEN"])
async def test_an_address_in_use_ends_the_server_and_its_store_with_a_sentence(
    variable: str, taken: str, tmp_path: Path
) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RUMMIKUB_")}
    free = {"RUMMIKUB_LISTEN": "127.0.0.1:0", "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0"}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "service",
        cwd=ROOT,
        env={**clean, **free, "RUMMIKUB_DATA_DIR": str(tmp_path), variable: taken},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, out) == (1, b"")
    sentence = [line for line in err.decode().splitlines() if line.startswith("rummikub-server: ")]
    assert len(sentence) == 1
    assert sentence[0].startswith(f"rummikub-server: {variable}={taken}: ")
    assert b"Traceback" not in err
    with (tmp_path / "lock").open() as lock:  # the store's process holds the lock until it ends
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


# Shutdown


@pytest.fixture
def failing_at_unknown_methods(tmp_path: Path) -> dict[str, str]:
    """Variables of a server whose listener crashes at a call of an unknown method."""
    (tmp_path / "sitecustomize.py").write_text(
        "from service.grpc_api import aio_server\n"
        "run = aio_server._AcceptLoops._run\n"
        "def failing(self, call, method, interceptors):\n"
        "    run(self, call, method or 1 / 0, interceptors)\n"
        "aio_server._AcceptLoops._run = failing\n"
    )
    return {"RUMMIKUB_REDIS_URL": "memory://", "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}


async def call_unknown_method(target: str) -> None:
    """Calls an unknown method of a server that may not answer."""
    async with grpc.aio.insecure_channel(target) as channel:
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            "/rummikub.v1.GameService/NoSuchMethod"
        )
        with pytest.raises(grpc.aio.AioRpcError):
            await method(b"", timeout=2)


async def test_a_server_whose_listener_has_ended_by_a_fault_ends_with_a_sentence(
    failing_at_unknown_methods: dict[str, str], tmp_path: Path
) -> None:
    with (tmp_path / "log").open("w+") as log:
        async with server_process(failing_at_unknown_methods, log.fileno()) as process:
            await call_unknown_method(process.target)
            assert await process.ended() == 1
        log.seek(0)
        [*_, sentence] = log.read().splitlines()
    assert sentence.startswith("rummikub-server: RUMMIKUB_LISTEN has ended by itself")


async def test_a_server_that_is_asked_to_stop_ends_all_streams_and_itself_at_once() -> None:
    async with AsyncExitStack() as stack:
        environment = {"RUMMIKUB_REDIS_URL": "memory://", "RUMMIKUB_DRAIN_SECONDS": "25"}
        process = await stack.enter_async_context(server_process(environment))
        client = Client(await stack.enter_async_context(grpc.aio.insecure_channel(process.target)))
        game = await client.new_game()
        call = client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id))
        watch = aiter(call)
        first = await anext(watch)
        assert first.HasField("snapshot")
        reflection = reflection_pb2_grpc.ServerReflectionStub(client.channel).ServerReflectionInfo()
        await reflection.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        assert (await reflection.read()).list_services_response.service
        validation = client.validation.StreamValidateTurns()
        await validation.write(vs.StreamValidateTurnsRequest(turn=vs.ValidateTurnRequest(has_melded=True)))
        assert isinstance(await validation.read(), vs.StreamValidateTurnsResponse)
        health = statuses(client, "")
        assert await anext(health) == SERVING

        ending = asyncio.create_task(process.terminate())
        last = [update async for update in watch]
        assert [update.WhichOneof("update") for update in last] == ["closing"]
        assert last[0].closing.etag == first.snapshot.etag
        assert await call.code() is grpc.StatusCode.OK
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await validation.read()
        assert error_info(refusal.value).reason == "SHUTTING_DOWN"
        assert await anext(health) == NOT_SERVING
        assert await asyncio.wait_for(ending, 15) == 0, "within less than drain_seconds"


@pytest.mark.parametrize("last", [signal.SIGTERM, signal.SIGINT])
async def test_a_lame_duck_serves_while_its_health_says_not_serving(last: signal.Signals) -> None:
    environment = {"RUMMIKUB_REDIS_URL": "memory://", "RUMMIKUB_LAME_DUCK_SECONDS": "600"}
    environment["RUMMIKUB_VALIDATION_LISTEN"] = "127.0.0.1:0"
    async with AsyncExitStack() as stack:
        process = await stack.enter_async_context(server_process(environment))
        client = Client(await stack.enter_async_context(grpc.aio.insecure_channel(process.target)))
        game = await client.new_game()
        watch = aiter(client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id)))
        assert (await anext(watch)).HasField("snapshot")
        health = statuses(client, "")
        assert await anext(health) == SERVING

        os.kill(process.pid, signal.SIGTERM)
        assert await anext(health) == NOT_SERVING
        own_connection = [("grpc.use_local_subchannel_pool", 1)]
        for target in (process.target, process.validation_target):
            new = Client(await stack.enter_async_context(grpc.aio.insecure_channel(target, own_connection)))
            assert await check(new) == NOT_SERVING
            assert (await new.validation.ListRulesets(vs.ListRulesetsRequest())).rulesets
        await game.draw()
        assert (await anext(watch)).HasField("change")
        await client.new_game()

        os.kill(process.pid, last)
        assert [update.WhichOneof("update") async for update in watch] == ["closing"]
        assert await process.ended() == 0


async def test_a_lame_duck_stops_by_itself_and_an_interrupt_skips_it() -> None:
    for seconds, number in (("0.2", signal.SIGTERM), ("600", signal.SIGINT)):
        environment = {"RUMMIKUB_REDIS_URL": "memory://", "RUMMIKUB_LAME_DUCK_SECONDS": seconds}
        async with server_process(environment) as process:
            os.kill(process.pid, number)
            assert await process.ended() == 0


class Held(DelegatingStore):
    """A store whose commits can be blocked."""

    def __init__(self) -> None:
        super().__init__(memory_store())
        self.may_go = asyncio.Event()
        self.may_go.set()
        self.is_held = asyncio.Event()

    async def commit(self, commit: Commit) -> Outcome:
        if not self.may_go.is_set():
            self.is_held.set()
        await self.may_go.wait()
        return await self._store.games.commit(commit)


async def test_a_call_under_way_is_answered_before_the_server_stops() -> None:
    store = Held()
    server = build_server(server_settings(drain_seconds=30), store)
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        game = await Client(channel).new_game()
        store.may_go.clear()
        drawing = asyncio.create_task(game.draw())
        await asyncio.wait_for(store.is_held.wait(), 10)
        stopping = asyncio.create_task(server.stop())
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await game.see()
        assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
        assert error_info(refusal.value).reason == "SHUTTING_DOWN"
        assert ("rummikub-retry-elsewhere", "1") in tuple(refusal.value.trailing_metadata())
        assert not stopping.done()
        store.may_go.set()
        assert len((await asyncio.wait_for(drawing, 10)).tiles_drawn) == 1
        await asyncio.wait_for(stopping, 10)
    assert (await store.streams.bounds(game.game_id))[1] == 5


async def test_a_call_that_does_not_end_holds_a_stopping_server_no_longer_than_its_drain() -> None:
    store = Held()
    server = build_server(server_settings(drain_seconds=0.2), store)
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        game = await Client(channel).new_game()
        store.may_go.clear()
        drawing = asyncio.create_task(game.draw())
        await asyncio.wait_for(store.is_held.wait(), 10)
        await asyncio.wait_for(server.stop(), 5)
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await drawing
    assert refusal.value.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
    assert (await store.streams.bounds(game.game_id))[1] == 4
