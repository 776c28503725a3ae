"""RUMMIKUB_VALIDATION_LISTEN, on the completion queue and on grpc.aio: its answers are those of RUMMIKUB_LISTEN.

Every test that uses `both` or `listening` runs twice: with fast_listener, and with the fallback for untested releases
of grpcio. The fast runs use the private parts of grpcio whatever release is installed, so `make canary` shows whether
they work on a new one.
"""

import asyncio
import contextlib
import itertools
import os
import random
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2

from conformance.grpc_answers import turn_request
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import meld_pb2, tile_pb2
from rummikub.v1 import validation_service_pb2 as vs
from service.codec.turn_validator import StreamValidator, Validator
from service.codec.validation import BATCH_MAX
from service.composition import Tuning
from service.grpc_api import grpcio_version
from service.grpc_api.listener import AioListener
from service.runtime.refusal_pace import Pacing
from service.runtime.slow_calls import OVERHEAD_BYTES, Pace
from service.server import Server
from support import malformed_protobuf as wire
from support.certificates import self_signed
from support.conformance_cases import load
from support.conformance_messages import ruleset_of, table_of, tiles_of
from support.harness import (
    error_info,
    field_violations,
    from_another_address,
    keys_file,
    memory_store,
    retry_ms,
    running_server,
    server_process,
    server_settings,
    status_details,
)

pytestmark = pytest.mark.slow

T = TypeVar("T")

SUITE = load()
SERVICE = "rummikub.v1.ValidationService"
VALIDATE = f"/{SERVICE}/ValidateTurn"
STREAM = f"/{SERVICE}/StreamValidateTurns"
SCORE = f"/{SERVICE}/ScoreRound"
RUN = meld_pb2.Meld(tiles=[tile_pb2.TILE_RED_11, tile_pb2.TILE_RED_12, tile_pb2.TILE_RED_13])
SEARCHING = ruleset_of({"joker_retrieval_mode": "LOCKED"})
"""Rules that need a search."""
TURN = vs.ValidateTurnRequest(
    ruleset=SEARCHING, table_after=meld_pb2.Table(melds=[RUN]), rack=RUN.tiles, has_melded=False
).SerializeToString()
"""A legal turn that SlowCalls answers."""
BATCH = f"/{SERVICE}/BatchValidateTurns"
TURNS = vs.BatchValidateTurnsRequest(turns=[vs.ValidateTurnRequest.FromString(TURN)]).SerializeToString()
"""A batch, which SlowCalls always answers."""
QUICK = vs.ValidateTurnRequest(
    table_after=meld_pb2.Table(melds=[RUN]), rack=RUN.tiles, has_melded=True
).SerializeToString()
"""A legal turn that is answered at once after the first request with its rules."""
SOON = 20.0
"""A timeout in seconds, much longer than any step here takes."""
ENDED = vs.ScoreRoundRequest(racks=[vs.RackToScore(seat=1), vs.RackToScore(seat=2, rack=RUN.tiles)]).SerializeToString()
"""A round to score."""

Answer: TypeAlias = bytes | tuple[grpc.StatusCode, str, bytes]


@dataclass(frozen=True)
class ListenerClient:
    """A client of one listener; it sends and receives bytes."""

    channel: grpc.aio.Channel

    def call(
        self, method: str, data: bytes = TURN, metadata: Sequence[tuple[str, str]] = ()
    ) -> "grpc.aio.UnaryUnaryCall[bytes, bytes]":
        """Starts a unary call."""
        unary: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(method)
        return unary(data, metadata=tuple(metadata), timeout=SOON)

    def stream(self, metadata: Sequence[tuple[str, str]] = ()) -> "grpc.aio.StreamStreamCall[bytes, bytes]":
        """Starts a stream."""
        stream: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = self.channel.stream_stream(STREAM)
        return stream(metadata=tuple(metadata))

    async def open_stream(self, turn: bytes = TURN) -> "grpc.aio.StreamStreamCall[bytes, bytes]":
        """Returns a stream that has answered one turn."""
        stream = self.stream()
        await next_answer(stream, turn)
        return stream

    def without_message(self, method: str = VALIDATE) -> "grpc.aio.StreamUnaryCall[bytes, bytes]":
        """Starts a unary call without sending its request."""
        call: grpc.aio.StreamUnaryMultiCallable[bytes, bytes] = self.channel.stream_unary(method)
        return call()

    async def answer(self, method: str, data: bytes = TURN) -> Answer:
        """Returns the response, or the status with its details."""
        try:
            return await self.call(method, data)
        except grpc.aio.AioRpcError as error:
            return error.code(), error.details() or "", status_details(error).SerializeToString()


def stream_request(data: bytes = TURN, correlation_id: str = "") -> bytes:
    """Returns a request of a stream."""
    turn = vs.ValidateTurnRequest.FromString(data)
    return vs.StreamValidateTurnsRequest(turn=turn, correlation_id=correlation_id).SerializeToString()


async def next_answer(stream: "grpc.aio.StreamStreamCall[bytes, bytes]", turn: bytes = TURN) -> bytes:
    """Sends a turn on a stream and returns the answer."""
    await stream.write(stream_request(turn))
    answer = await asyncio.wait_for(stream.read(), SOON)
    assert isinstance(answer, bytes)
    return answer


async def refusal(call: Awaitable[object]) -> grpc.aio.AioRpcError:
    """Returns the error of a call that must fail."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await asyncio.wait_for(call, SOON)
    return refused.value


async def read_to_end(stream: "grpc.aio.StreamStreamCall[bytes, bytes]") -> None:
    """Reads a stream to its end."""
    while await stream.read() is not grpc.aio.EOF:
        pass


@asynccontextmanager
async def client_of(port: int) -> AsyncIterator[ListenerClient]:
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        yield ListenerClient(channel)


Listening: TypeAlias = Callable[..., AbstractAsyncContextManager[tuple[Server, ListenerClient]]]
"""Starts a server with a tuning and changed settings, and a client of RUMMIKUB_VALIDATION_LISTEN."""

HOURLY = Pacing(per_second=1 / 3_600, at_once=0)
"""Each refusal waits until its call or the server ends."""
SERVERS = [pytest.param(grpcio_version.TESTED[0], id="fast"), pytest.param("0", id="fallback")]
"""Releases of grpcio: with fast_listener, and without private parts of grpcio."""


def lost_code(server: Server) -> str:
    """Returns the counted code of a stream that its client cancels between two requests.

    grpc.aio, at either address, ends the requests of such a stream as if the client had sent all.
    """
    return "CANCELLED" if is_fast(server) else "OK"


def is_fast(server: Server) -> bool:
    return not isinstance(server.listeners[1], AioListener)


def listening_with(grpcio: str) -> Listening:
    @asynccontextmanager
    async def listening(tuning: Tuning = Tuning(), **changes: object) -> AsyncIterator[tuple[Server, ListenerClient]]:
        settings, tuning = server_settings(validation_listen="127.0.0.1:0", **changes), replace(tuning, grpcio=grpcio)
        async with (
            running_server(memory_store(), settings, tuning=tuning) as (server, _),
            client_of(server.validation_port) as client,
        ):
            yield server, client

    return listening


@pytest.fixture(params=SERVERS)
def listening(request: pytest.FixtureRequest) -> Listening:
    return listening_with(request.param)


@pytest.fixture
def fast_listening() -> Listening:
    return listening_with(grpcio_version.TESTED[0])


@dataclass(frozen=True)
class Both:
    """A server with clients of both listeners."""

    server: Server
    main: ListenerClient
    validation: ListenerClient

    async def answer(self, method: str, data: bytes) -> Answer:
        """Returns the answer of both listeners, which must be equal."""
        main, validation = await asyncio.gather(*(one.answer(method, data) for one in (self.main, self.validation)))
        assert main == validation
        return main

    def counted(self, method: str, code: str) -> float:
        """Returns the number of calls that ended with a code."""
        return (
            self.server.metrics.registry.get_sample_value("rummikub_calls_total", {"method": method, "code": code}) or 0
        )


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=SERVERS)
async def both(request: pytest.FixtureRequest) -> AsyncIterator[Both]:
    async with listening_with(request.param)() as (server, validation), client_of(server.port) as main:
        yield Both(server, main, validation)


async def until(condition: Callable[[], T]) -> T:
    """Waits for a condition; returns its first true value."""
    async with asyncio.timeout(SOON):
        while not (value := condition()):  # noqa: ASYNC110 - threads change it
            await asyncio.sleep(0.01)
        return value


class BatchGate:
    """Blocks all batches until `open`: between two steps, or within a step, which blocks the slow-calls thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, blocks_thread: bool = False) -> None:
        self.started = 0
        self._opened = threading.Event()
        plain = Validator.batch

        def waiting(validation: Validator, data: bytes) -> Generator[Any, None, bytes]:
            self.started += 1
            while not self._opened.wait(SOON if blocks_thread else 0.001):
                yield
            return (yield from plain(validation, data))

        monkeypatch.setattr(Validator, "batch", waiting)

    async def has_started(self, calls: int) -> None:
        """Returns when a number of calls has started."""
        await until(lambda: self.started == calls)

    def open(self) -> None:
        """Lets all batches continue."""
        self._opened.set()


# Answers


def requests() -> Iterable[tuple[str, Message]]:
    """Yields every conformance case as a request of each RPC that takes it."""
    for meld in SUITE.melds:
        yield "ValidateMelds", vs.ValidateMeldsRequest(ruleset=ruleset_of(meld.ruleset), melds=table_of([meld.meld]))
    turns = [turn_request(turn, turn.ruleset) for turn in SUITE.turns]
    yield from (("ValidateTurn", turn) for turn in turns)
    for first in range(0, len(turns), BATCH_MAX):
        yield "BatchValidateTurns", vs.BatchValidateTurnsRequest(turns=turns[first : first + BATCH_MAX])
    for case in SUITE.round_scores:
        racks = [vs.RackToScore(seat=rack.seat, rack=tiles_of(rack.rack)) for rack in case.racks]
        yield "ScoreRound", vs.ScoreRoundRequest(ruleset=ruleset_of(case.ruleset), racks=racks)
    yield "ListRulesets", vs.ListRulesetsRequest()
    yield "ListMessages", vs.ListMessagesRequest(language="ja")


@pytest.mark.asyncio(loop_scope="module")
async def test_both_listeners_answer_every_case_alike(both: Both) -> None:
    for name, request in requests():
        assert isinstance(await both.answer(f"/{SERVICE}/{name}", request.SerializeToString()), bytes)


@pytest.mark.asyncio(loop_scope="module")
async def test_both_listeners_answer_a_stream_of_all_turns_alike(both: Both) -> None:
    turns = [turn_request(turn, turn.ruleset).SerializeToString() for turn in SUITE.turns]
    streams = [both.main.stream(), both.validation.stream()]
    for number, data in enumerate(turns):
        for stream in streams:
            await stream.write(stream_request(data, str(number)))
        main, validation = [await stream.read() for stream in streams]
        assert main == validation
    for stream in streams:
        await stream.done_writing()
        assert await stream.read() is grpc.aio.EOF
        assert await stream.code() is grpc.StatusCode.OK


@pytest.mark.parametrize("data", [b"\xff", b"\x12\x02\x0a\x05", b"\x22\x01\x00", b"\x0a\x02\x08\x7f"])
@pytest.mark.parametrize(
    "rpc", ["ValidateMelds", "ValidateTurn", "BatchValidateTurns", "ScoreRound", "ListRulesets", "ListMessages"]
)
@pytest.mark.asyncio(loop_scope="module")
async def test_both_listeners_reject_invalid_requests_alike(rpc: str, data: bytes, both: Both) -> None:
    answer = await both.answer(f"/{SERVICE}/{rpc}", data)
    if rpc in {"ValidateTurn", "ScoreRound"} or data == b"\xff":
        assert not isinstance(answer, bytes)
        assert answer[0] is grpc.StatusCode.INVALID_ARGUMENT


async def end_of_stream(caller: ListenerClient, messages: Sequence[bytes]) -> list[Answer]:
    """The answers of a stream; the last one may be its status with the details."""
    stream, answers = caller.stream(), list[Answer]()
    try:
        for message in messages:
            await stream.write(message)
            answer = await stream.read()
            assert isinstance(answer, bytes)
            answers.append(answer)
        await stream.done_writing()
        await read_to_end(stream)
    except grpc.aio.AioRpcError as error:
        answers.append((error.code(), error.details() or "", status_details(error).SerializeToString()))
    return answers


@pytest.mark.asyncio(loop_scope="module")
async def test_both_listeners_answer_corrupted_turns_alike(both: Both) -> None:
    rng = random.Random(1)
    for number in range(200):
        turn = wire.spoiled(QUICK, rng)
        await both.answer(VALIDATE, turn)
        messages = [stream_request(QUICK), wire.spoiled(stream_request(QUICK, str(number)), rng), stream_request(QUICK)]
        main, validation = [await end_of_stream(caller, messages) for caller in (both.main, both.validation)]
        assert main == validation


@pytest.mark.asyncio(loop_scope="module")
async def test_a_stream_keeps_its_ruleset_until_a_turn_states_another(both: Both) -> None:
    """SlowCalls answers every other turn, which is an initial meld."""
    initial = [vs.ValidateTurnRequest.FromString(turn) for turn in (QUICK, TURN) * 4]
    for place, points in ((0, 0), (3, 40), (4, 30), (7, 0)):
        initial[place].ruleset.initial_meld.threshold = points
    messages = [stream_request(turn.SerializeToString(), str(place)) for place, turn in enumerate(initial)]
    main, validation = [await end_of_stream(caller, messages) for caller in (both.main, both.validation)]
    assert main == validation
    assert len(set(main)) == len(messages)


@pytest.mark.asyncio(loop_scope="module")
async def test_compressed_messages_are_accepted_and_large_ones_rejected(both: Both) -> None:
    unary: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = both.validation.channel.unary_unary(VALIDATE)
    for turn in (TURN, QUICK):
        assert await unary(turn, compression=grpc.Compression.Gzip) == await unary(turn)
    for size, code, reason in (
        (300_000, grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_REQUEST"),
        (2_000_000, grpc.StatusCode.RESOURCE_EXHAUSTED, ""),
    ):
        large = TURN + wire.part(wire.UNKNOWN, bytes(size))
        for caller in (both.main, both.validation):
            stream = caller.stream()
            await stream.write(large)
            for refused in (await refusal(caller.call(VALIDATE, large)), await refusal(read_to_end(stream))):
                assert refused.code() is code
                assert not reason or error_info(refused).reason == reason


@pytest.mark.asyncio(loop_scope="module")
async def test_an_error_names_field_and_reason(both: Both) -> None:
    turn = vs.ValidateTurnRequest(rack=[tile_pb2.TILE_UNSPECIFIED], has_melded=True).SerializeToString()
    refused = await refusal(both.validation.call(VALIDATE, turn))
    assert (error_info(refused).reason, field_violations(refused)) == ("TILE_UNKNOWN", ["rack[0]"])
    stream = both.validation.stream()
    await next_answer(stream)
    await stream.write(stream_request(turn))
    refused = await refusal(read_to_end(stream))
    assert (error_info(refused).reason, field_violations(refused)) == ("TILE_UNKNOWN", ["turn.rack[0]"])


@pytest.mark.asyncio(loop_scope="module")
async def test_calls_have_request_ids(both: Both) -> None:
    given, made = (("x-request-id", "mine-1"),), set()
    for turn in (TURN, QUICK):
        call = both.validation.call(VALIDATE, turn, metadata=given)
        await call
        assert dict(await call.trailing_metadata() or ())["x-request-id"] == "mine-1"
        for metadata in ((), (("x-request-id", "not of the form"),)):
            call = both.validation.call(VALIDATE, turn, metadata=metadata)
            await call
            made.add(dict(await call.trailing_metadata() or ())["x-request-id"])
    assert len(made) == 4
    assert all(re.fullmatch("[0-9a-f]{16,64}", str(one)) for one in made)
    refused = await refusal(both.validation.call(VALIDATE, b"\xff", given))
    assert dict(refused.trailing_metadata() or ())["x-request-id"] == "mine-1"
    stream = both.validation.stream(given)
    await next_answer(stream)
    await stream.done_writing()
    assert dict(await stream.trailing_metadata() or ())["x-request-id"] == "mine-1"


async def test_metrics_include_the_calls_of_both_listeners(listening: Listening) -> None:
    async with listening() as (server, validation), client_of(server.port) as main:
        both = Both(server, main, validation)
        for one in (main, validation):
            await one.answer(VALIDATE)
            await one.answer(VALIDATE, QUICK)
            await one.answer(VALIDATE, b"\xff")
            stream = await one.open_stream()
            await stream.done_writing()
            assert await stream.code() is grpc.StatusCode.OK
        lost = await validation.open_stream()
        lost.cancel()
        kinds = ((VALIDATE, "OK"), (VALIDATE, "INVALID_ARGUMENT"), (STREAM, "OK"), (STREAM, "CANCELLED"))
        expected = [4, 2, 2, 1] if is_fast(server) else [4, 2, 3, 0]  # see lost_code
        await until(lambda: [both.counted(*kind) for kind in kinds] == expected)


async def health_of(caller: ListenerClient, service: str) -> int:
    data = health_pb2.HealthCheckRequest(service=service).SerializeToString()
    answer = health_pb2.HealthCheckResponse.FromString(await caller.call("/grpc.health.v1.Health/Check", data))
    return int(answer.status)


@pytest.mark.asyncio(loop_scope="module")
async def test_health_check(both: Both) -> None:
    for service in ("", SERVICE):
        assert await health_of(both.validation, service) == health_pb2.HealthCheckResponse.SERVING
    for service, code in (("rummikub.v1.GameService", grpc.StatusCode.NOT_FOUND), ("?", grpc.StatusCode.NOT_FOUND)):
        data = health_pb2.HealthCheckRequest(service=service).SerializeToString()
        assert (await refusal(both.validation.call("/grpc.health.v1.Health/Check", data))).code() is code
    malformed = await refusal(both.validation.call("/grpc.health.v1.Health/Check", b"\xff"))
    assert malformed.code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    "method", ["/rummikub.v1.GameService/ListGames", f"/{SERVICE}/NoSuchRpc", "/grpc.health.v1.Health/List", "/x"]
)
@pytest.mark.asyncio(loop_scope="module")
async def test_other_methods_are_unimplemented(method: str, both: Both) -> None:
    data = gs.ListGamesRequest().SerializeToString()
    assert (await refusal(both.validation.call(method, data))).code() is grpc.StatusCode.UNIMPLEMENTED


async def test_without_an_address_there_is_no_listener() -> None:
    async with running_server(memory_store()) as (server, _):
        assert server.validation_port == 0


async def test_tls(listening: Listening, tmp_path: Path) -> None:
    self_signed(tmp_path, "DNS:localhost")
    pair = {"tls_cert": str(tmp_path / "cert.pem"), "tls_key": str(tmp_path / "key.pem")}
    async with listening(**pair) as (server, plain):
        credentials = grpc.ssl_channel_credentials((tmp_path / "cert.pem").read_bytes())
        async with grpc.aio.secure_channel(f"localhost:{server.validation_port}", credentials) as channel:
            assert isinstance(await ListenerClient(channel).answer(VALIDATE), bytes)
        assert (await refusal(plain.call(VALIDATE))).code() is grpc.StatusCode.UNAVAILABLE


# Internal errors


async def test_an_internal_error_reveals_nothing(
    listening: Listening, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(*_: object) -> bytes:
        raise RuntimeError("secret")

    for at_once in (False, True):
        if at_once:
            monkeypatch.setattr(Validator, "turn_at_once", failing)
            monkeypatch.setattr(StreamValidator, "at_once", failing)
        else:
            monkeypatch.setattr(Validator, "_respond", failing)
        async with listening() as (_, caller):
            stream = caller.stream()
            await stream.write(stream_request())
            for refused in (await refusal(caller.call(VALIDATE)), await refusal(read_to_end(stream))):
                assert (refused.code(), error_info(refused).reason) == (grpc.StatusCode.INTERNAL, "INTERNAL_ERROR")
                assert "secret" not in str(refused)
            assert isinstance(await caller.answer(f"/{SERVICE}/ListRulesets", b""), bytes)
    assert "Traceback" not in capsys.readouterr().err


# Load


@pytest.mark.parametrize("blocks_thread", [False, True])
async def test_fast_calls_do_not_wait_for_slow_ones(
    listening: Listening, monkeypatch: pytest.MonkeyPatch, *, blocks_thread: bool
) -> None:
    gate = BatchGate(monkeypatch, blocks_thread=blocks_thread)
    async with listening() as (server, caller), client_of(server.port) as other:
        stream = await caller.open_stream(QUICK)
        assert isinstance(
            await caller.answer(VALIDATE, QUICK), bytes
        )  # later requests with these rules are answered at once
        slow = [one.call(BATCH, TURNS) for one in (caller, other) for _ in range(10)]
        await gate.has_started(1)
        for one in (caller, other):
            assert isinstance(await one.answer(VALIDATE, QUICK), bytes)
            assert isinstance(await one.answer(SCORE, ENDED), bytes)
            assert isinstance(await one.answer(f"/{SERVICE}/ListRulesets", b""), bytes)
        await next_answer(stream, QUICK)
        gate.open()
        assert len({await call for call in slow}) == 1


async def test_a_slow_turn_does_not_wait_for_batches_of_its_client(
    listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = BatchGate(monkeypatch)
    async with listening() as (_, caller):
        slow = [caller.call(BATCH, TURNS) for _ in range(10)]
        await gate.has_started(1)
        assert isinstance(await caller.answer(VALIDATE, TURN), bytes)
        gate.open()
        assert len({await call for call in slow}) == 1


async def test_many_batches_of_a_client_delay_another_client_by_slices_only(
    listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = BatchGate(monkeypatch)
    async with (
        listening() as (server, caller),
        from_another_address(server.validation_port) as port,
        client_of(port) as other,
    ):
        slow = [caller.call(BATCH, TURNS) for _ in range(10)]
        await gate.has_started(1)
        theirs = other.call(BATCH, TURNS)
        await gate.has_started(2)  # it starts before nine older batches
        gate.open()
        assert len({await call for call in (*slow, theirs)}) == 1


async def test_calls_beyond_max_calls_are_rejected(listening: Listening, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = BatchGate(monkeypatch)
    async with listening(max_calls=10, peer_share=1) as (_, caller):
        calls = [caller.call(BATCH, TURNS) for _ in range(30)]
        await until(lambda: sum(call.done() for call in calls) == 20)
        assert await health_of(caller, SERVICE) == health_pb2.HealthCheckResponse.SERVING
        gate.open()
        answers = await asyncio.gather(*calls, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, grpc.aio.AioRpcError)]
    assert {(one.code(), error_info(one).reason) for one in refused} == {(grpc.StatusCode.UNAVAILABLE, "OVERLOADED")}
    assert {retry_ms(one) for one in refused} == {1_000}
    assert len(refused) == 20


async def test_one_address_gets_its_peer_share_of_calls_and_streams(
    listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = BatchGate(monkeypatch)
    async with (
        listening(max_calls=20, validation_streams=4, peer_share=0.5) as (server, caller),
        from_another_address(server.validation_port) as port,
        client_of(port) as other,
    ):
        streams = [await caller.open_stream() for _ in range(2)]
        assert error_info(await refusal(read_to_end(caller.stream()))).reason == "OVERLOADED"
        calls = [caller.call(BATCH, TURNS) for _ in range(30)]
        await until(lambda: sum(call.done() for call in calls) == 22)
        assert isinstance(await other.answer(VALIDATE, TURN), bytes)
        await other.open_stream()
        assert error_info(await refusal(caller.call(VALIDATE, QUICK))).reason == "OVERLOADED"
        gate.open()
        await asyncio.gather(*calls, return_exceptions=True)
        await next_answer(streams[0])
        assert isinstance(await caller.answer(VALIDATE, QUICK), bytes)


async def test_streams_beyond_the_limit_are_rejected(listening: Listening) -> None:
    async with listening(validation_streams=2) as (_, caller):
        opened = [await caller.open_stream() for _ in range(2)]
        for _ in range(8):
            refused = await refusal(read_to_end(caller.stream()))
            assert (refused.code(), error_info(refused).reason) == (grpc.StatusCode.UNAVAILABLE, "OVERLOADED")
        await opened[0].done_writing()
        assert await opened[0].code() is grpc.StatusCode.OK
        await caller.open_stream()
        await next_answer(opened[1])


async def test_an_open_stream_needs_no_thread(listening: Listening) -> None:
    async with listening(validation_streams=400) as (_, caller):
        await caller.open_stream()
        before = threading.active_count()
        streams = [caller.stream() for _ in range(300)]
        for turn in (QUICK, TURN):
            assert len({await next_answer(stream, turn) for stream in streams}) == 1
        assert threading.active_count() <= before + 1
        for stream in streams:
            await stream.done_writing()
            assert await stream.code() is grpc.StatusCode.OK


@pytest.mark.asyncio(loop_scope="module")
async def test_calls_without_a_request_delay_no_other_call(both: Both) -> None:
    async with AsyncExitStack() as stack:
        for port in (both.server.validation_port, both.server.port):
            idle = []
            for _ in range(4):
                other = await stack.enter_async_context(client_of(port))
                idle += [other.without_message() for _ in range(150)]
            assert isinstance(await both.answer(VALIDATE, TURN), bytes)
            for call in idle:
                assert not call.done()
                call.cancel()
            assert isinstance(await both.answer(VALIDATE, TURN), bytes)


async def test_a_call_without_a_request_is_counted_and_times_out(listening: Listening) -> None:
    async with (
        listening(max_calls=10, peer_share=1, request_seconds=2) as (server, own),
        client_of(server.port) as main,
    ):
        for caller in (own, main):
            idle = [caller.without_message() for _ in range(10)]
            await until(lambda: listener_calls(server) == 10)
            assert error_info(await refusal(caller.call(VALIDATE))).reason == "OVERLOADED"
            for call in idle:
                late = await refusal(call)
                assert (late.code(), error_info(late).reason) == (
                    grpc.StatusCode.DEADLINE_EXCEEDED,
                    "REQUEST_TIMED_OUT",
                )
            assert isinstance(await caller.answer(VALIDATE), bytes)


async def test_an_address_that_is_refused_again_and_again_waits_for_its_refusals(listening: Listening) -> None:
    async with (
        listening(Tuning(HOURLY), max_calls=10, validation_streams=2, peer_share=0.5) as (server, own),
        client_of(server.port) as main,
        from_another_address(server.validation_port) as own_port,
        from_another_address(server.port) as main_port,
        client_of(own_port) as other_own,
        client_of(main_port) as other_main,
    ):
        waiting: list[asyncio.Future[grpc.aio.AioRpcError]] = []
        for caller, other in ((own, other_own), (main, other_main)):
            opened = await caller.open_stream()
            waiting.append(asyncio.ensure_future(refusal(read_to_end(caller.stream()))))
            held = [caller.without_message() for _ in range(4)]  # with the stream, half of all calls
            waiting.append(asyncio.ensure_future(refusal(caller.call(VALIDATE))))
            assert isinstance(await other.answer(VALIDATE), bytes)
            await next_answer(opened)
            assert not any(future.done() for future in waiting)
            assert not any(call.done() for call in held)
        await server.stop()
        assert [error_info(await refused).reason for refused in waiting] == ["OVERLOADED"] * 4


def waiting_refusals(server: Server) -> int:
    """Returns the number of refusals that wait at both listeners."""
    interceptors: list[Any] = [listener.interceptor for listener in server.listeners]  # type: ignore[attr-defined]
    return sum(one.policy.refusals.total for one in interceptors)


async def test_refusals_for_want_of_memory_wait_too(listening: Listening) -> None:
    async with (
        listening(Tuning(HOURLY, Pace(bytes_max=1)), peer_share=0.5) as (server, own),
        client_of(server.port) as main,
    ):
        waiting: list[asyncio.Future[grpc.aio.AioRpcError]] = []
        for caller in (own, main):
            waiting.append(asyncio.ensure_future(refusal(caller.call(BATCH, TURNS))))
            stream = caller.stream()
            await stream.write(stream_request())
            waiting.append(asyncio.ensure_future(refusal(read_to_end(stream))))
        await until(lambda: waiting_refusals(server) == len(waiting))
        assert not any(future.done() for future in waiting)
        assert listener_calls(server) == 0, "they hold no call"
        await server.stop()
        assert [error_info(await refused).metadata["limit"] for refused in waiting] == ["request_bytes"] * 4


async def test_a_refusal_ends_with_its_client(listening: Listening, tmp_path: Path) -> None:
    pace = Pace(bytes_max=2 * OVERHEAD_BYTES + 1_000)  # enough for short requests
    long = vs.ValidateTurnRequest(table_after=meld_pb2.Table(melds=[RUN] * 100), has_melded=True)
    batch = vs.BatchValidateTurnsRequest(turns=[long]).SerializeToString()
    settings = {"peer_share": 0.5, "validation_streams": 2, "keys_file": keys_file(tmp_path, web="")}
    key = (("x-api-key", "web"),)
    async with listening(Tuning(HOURLY, pace), **settings) as (server, own), client_of(server.port) as main:
        for caller in (own, main):
            opened = caller.stream(key)
            await opened.write(stream_request(QUICK))
            await opened.read()
            without_key, slow = caller.call(VALIDATE, QUICK), caller.call(BATCH, batch, key)
            second, third = caller.stream(key), caller.stream(key)
            await third.write(stream_request(long.SerializeToString()))
            calls = (without_key, slow, second, third)
            await until(lambda: waiting_refusals(server) == len(calls))  # noqa: B023 - it is awaited here
            for call in calls:
                call.cancel()
            await until(lambda: waiting_refusals(server) == 0)
            opened.cancel()
        await until(lambda: listener_calls(server) == 0)


async def test_addresses_share_the_refusals_that_may_wait(fast_listening: Listening, tmp_path: Path) -> None:
    tuning = Tuning(replace(HOURLY, waiting_max=6))
    async with (
        fast_listening(tuning, peer_share=0.5, keys_file=keys_file(tmp_path, web="")) as (server, caller),
        from_another_address(server.validation_port) as port,
        client_of(port) as other,
    ):
        calls = [caller.call(VALIDATE) for _ in range(10)]
        await until(lambda: sum(call.done() for call in calls) == 7)
        theirs = other.call(VALIDATE)
        await until(lambda: waiting_refusals(server) == 4)
        assert not theirs.done()
        for call in (*calls, theirs):
            call.cancel()


async def test_a_call_without_a_request_has_lasted_until_its_timeout(listening: Listening) -> None:
    async with listening(request_seconds=0.5) as (server, own), client_of(server.port) as main:
        for number, caller in enumerate((own, main), 1):
            assert error_info(await refusal(caller.without_message())).reason == "REQUEST_TIMED_OUT"
            lasted = server.metrics.registry.get_sample_value("rummikub_call_seconds_sum", {"method": VALIDATE})
            assert lasted is not None
            assert lasted >= 0.5 * number


async def test_calls_without_a_request_time_out_at_a_pace(listening: Listening) -> None:
    tuning = Tuning(Pacing(late_per_second=1, at_once=1))
    async with listening(tuning, peer_share=0.5, request_seconds=0.5) as (server, own), client_of(server.port) as main:
        idle = [caller.without_message() for caller in (own, main) for _ in range(50)]
        await until(lambda: any(call.done() for call in idle[:50]) and any(call.done() for call in idle[50:]))
        await asyncio.sleep(0.5)  # without a pace, all would end
        assert sum(call.done() for call in idle) < len(idle) / 2
        assert isinstance(await own.answer(VALIDATE), bytes)
        assert isinstance(await main.answer(VALIDATE), bytes)
        await server.stop()
        reasons = {error_info(await refusal(call)).reason for call in idle}
        assert reasons == {"REQUEST_TIMED_OUT", "SHUTTING_DOWN"}


def listener_calls(server: Server) -> int:
    """Returns the number of calls in progress at both listeners."""
    return sum(listener.calls_in_progress for listener in server.listeners)


async def test_a_call_that_waits_for_its_timeout_takes_its_request_and_ends_with_its_client(
    listening: Listening,
) -> None:
    tuning = Tuning(Pacing(late_per_second=1 / 3_600, at_once=0, wait_max_seconds=3_600))
    settings = {"peer_share": 0.5, "max_calls": 10, "request_seconds": 0.5}
    async with listening(tuning, **settings) as (server, own), client_of(server.port) as main:
        for caller in (own, main):
            late = [caller.without_message() for _ in range(5)]
            await asyncio.sleep(1)  # longer than its timeout
            await late[0].write(TURN)
            await late[0].done_writing()
            assert isinstance(await late[0], bytes)
            for call in late:
                call.cancel()
            await until(lambda: not listener_calls(server))


@pytest.mark.asyncio(loop_scope="module")
async def test_a_call_that_ends_without_a_request_is_rejected(both: Both) -> None:
    for caller in (both.validation, both.main):
        for _ in range(20):
            call = caller.without_message()
            await call.done_writing()
            assert await asyncio.wait_for(call.code(), SOON) is grpc.StatusCode.UNIMPLEMENTED
            assert "exactly one request" in (await call.details() or "")


@pytest.mark.parametrize("is_late", [False, True], ids=["cancelled", "late"])
async def test_a_cancelled_or_late_call_stops_its_work(
    listening: Listening, monkeypatch: pytest.MonkeyPatch, *, is_late: bool
) -> None:
    gate = BatchGate(monkeypatch)
    async with listening(drain_seconds=60) as (server, own), client_of(server.port) as main:
        for caller in (own, main):
            begun = gate.started
            batch: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = caller.channel.unary_unary(BATCH)
            await caller.answer(VALIDATE)  # connects, which may take longer than the deadline
            calls = [batch(TURNS, timeout=3.0 if is_late else SOON) for _ in range(10)]
            await until(lambda: gate.started > begun)  # noqa: B023 - it is awaited here
            for call in () if is_late else reversed(calls):
                call.cancel()
            ends = await asyncio.gather(*calls, return_exceptions=True)
            assert not any(isinstance(end, bytes) for end in ends)
            await until(lambda: not server.slow_calls.under_way)
            assert is_late or gate.started < begun + 5, "most queued calls never started"
        await asyncio.wait_for(server.stop(), SOON)


async def test_a_lame_duck_serves_calls_and_streams_at_both_listeners(listening: Listening) -> None:
    async with listening() as (server, own), client_of(server.port) as main:
        open_before = [await caller.open_stream() for caller in (own, main)]
        server.report_not_serving()
        for caller, stream in zip((own, main), open_before, strict=True):
            assert await health_of(caller, SERVICE) == health_pb2.HealthCheckResponse.NOT_SERVING
            assert isinstance(await caller.answer(VALIDATE), bytes)
            assert await next_answer(stream)
            assert await next_answer(await caller.open_stream())


async def test_a_stream_may_end_before_its_turn_is_started(
    listening: Listening, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    gate = BatchGate(monkeypatch, blocks_thread=True)
    async with listening(drain_seconds=60) as (server, caller):
        slow = [caller.call(BATCH, TURNS) for _ in range(2)]
        await gate.has_started(1)
        stream = caller.stream()
        await stream.write(stream_request())
        await until(lambda: server.slow_calls.under_way == 3)
        stopping = asyncio.ensure_future(server.stop())
        assert error_info(await refusal(read_to_end(stream))).reason == "SHUTTING_DOWN"
        labels = {"method": STREAM, "code": "UNAVAILABLE"}
        await until(lambda: server.metrics.registry.get_sample_value("rummikub_calls_total", labels))
        await until(lambda: server.slow_calls.under_way == 2)
        gate.open()
        assert len({await call for call in slow}) == 1
        await asyncio.wait_for(stopping, SOON)
    assert "Traceback" not in "".join(capfd.readouterr())


async def test_a_stream_may_end_before_the_answer_to_its_turn_is_sent(
    fast_listening: Listening, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    judging, may_go_on = threading.Event(), threading.Event()
    plain = StreamValidator.at_once

    def held(turns: StreamValidator, data: bytes) -> bytes | None:
        judging.set()
        assert may_go_on.wait(SOON)
        return plain(turns, data)

    async with fast_listening(drain_seconds=60) as (server, caller):
        streams = [await caller.open_stream() for _ in range(3)]
        monkeypatch.setattr(StreamValidator, "at_once", held)
        for stream in streams:
            await stream.write(stream_request(QUICK))
        await until(judging.is_set)
        stopping = asyncio.ensure_future(server.stop())
        for stream in streams:
            assert error_info(await refusal(read_to_end(stream))).reason == "SHUTTING_DOWN"
        may_go_on.set()
        await asyncio.wait_for(stopping, SOON)
        labels = {"method": STREAM, "code": "UNAVAILABLE"}
        assert server.metrics.registry.get_sample_value("rummikub_calls_total", labels) == len(streams)
    assert "Traceback" not in "".join(capfd.readouterr())


async def check_own_answers(caller: ListenerClient, name: int) -> None:
    """Sends turns on a stream and checks that each answer has its correlation id."""
    stream = caller.stream()
    for number in range(50):
        await stream.write(stream_request(QUICK, f"{name}-{number}"))
    await stream.done_writing()
    for number in range(50):
        answer = await asyncio.wait_for(stream.read(), SOON)
        assert isinstance(answer, bytes)
        assert vs.StreamValidateTurnsResponse.FromString(answer).correlation_id == f"{name}-{number}"
    assert await stream.code() is grpc.StatusCode.OK


async def cancel_stream(caller: ListenerClient, number: int) -> None:
    """Cancels a stream that awaits answers."""
    stream = caller.stream()
    for _ in range(number % 5):
        await stream.write(stream_request(QUICK))
    stream.cancel()
    assert await stream.code() is grpc.StatusCode.CANCELLED


async def test_concurrent_streams_get_their_own_answers_while_others_are_cancelled(listening: Listening) -> None:
    async with listening() as (server, caller), AsyncExitStack() as stack:
        await caller.answer(VALIDATE, QUICK)  # later ones are answered at once
        callers = [await stack.enter_async_context(client_of(server.validation_port)) for _ in range(8)]
        async with asyncio.TaskGroup() as group:
            for name, one in enumerate(callers):
                group.create_task(check_own_answers(one, name))
                for number in range(10):
                    group.create_task(cancel_stream(one, number))
        await asyncio.wait_for(server.stop(), SOON)


async def test_a_disconnected_client_releases_its_stream(listening: Listening) -> None:
    async with listening(validation_streams=1) as (server, caller):
        async with client_of(server.validation_port) as other:
            await other.open_stream()
        codes: list[grpc.StatusCode] = []
        while not codes or codes[-1] is grpc.StatusCode.UNAVAILABLE:  # until the server notices the disconnect
            stream = caller.stream()
            await stream.done_writing()
            with contextlib.suppress(grpc.aio.AioRpcError):
                await asyncio.wait_for(read_to_end(stream), SOON)
            codes.append(await stream.code())
        assert codes[-1] is grpc.StatusCode.OK


async def test_a_deadline_ends_a_call_and_a_stream(listening: Listening, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = BatchGate(monkeypatch)
    async with listening(validation_streams=1) as (server, caller):
        unary: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = caller.channel.unary_unary(BATCH)
        streams: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = caller.channel.stream_stream(STREAM)
        call, stream = unary(TURNS, timeout=3), streams(timeout=3)
        await next_answer(stream)
        for late in (call, read_to_end(stream)):
            assert (await refusal(late)).code() is grpc.StatusCode.DEADLINE_EXCEEDED
        metric = server.metrics.registry.get_sample_value
        labels = {"method": STREAM, "code": lost_code(server)}
        await until(lambda: metric("rummikub_calls_total", labels))
        await caller.open_stream()
        gate.open()
        assert isinstance(await caller.answer(BATCH, TURNS), bytes)
        await asyncio.wait_for(server.stop(), SOON)


async def test_a_client_that_reads_no_answers_delays_no_other_client(listening: Listening) -> None:
    async with listening(drain_seconds=60) as (server, caller):
        with grpc.insecure_channel(f"127.0.0.1:{server.validation_port}") as channel:
            stream: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(STREAM)
            answers = stream(iter(itertools.repeat(stream_request(correlation_id="x" * 64))))
            assert await asyncio.to_thread(next, answers)
            await asyncio.sleep(1)  # until the flow-control window is full
            assert isinstance(await caller.answer(VALIDATE), bytes)
            await next_answer(await caller.open_stream())
            await asyncio.wait_for(server.stop(), SOON)


# Shutdown


async def test_a_stopping_server_finishes_calls_and_rejects_new_ones(
    listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = BatchGate(monkeypatch)
    async with listening(drain_seconds=60) as (server, caller):
        call = caller.call(BATCH, TURNS)
        await gate.has_started(1)
        stopping = asyncio.ensure_future(server.stop())
        while True:
            answer = await caller.answer(f"/{SERVICE}/ListRulesets", b"")
            if not isinstance(answer, bytes):
                break
        refused = await refusal(caller.call(VALIDATE))
        assert (refused.code(), error_info(refused).reason) == (grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN")
        refused = await refusal(read_to_end(caller.stream()))
        assert (refused.code(), error_info(refused).reason) == (grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN")
        assert await health_of(caller, SERVICE) == health_pb2.HealthCheckResponse.NOT_SERVING
        assert not stopping.done()
        gate.open()
        assert vs.BatchValidateTurnsResponse.FromString(await call).turns
        await asyncio.wait_for(stopping, SOON)


async def play_until_rejected(port: int, answers: list[Answer]) -> None:
    """Sends turns one after the other until one is rejected; adds their answers to a list."""
    async with client_of(port) as caller:
        while not answers or isinstance(answers[-1], bytes):
            answers.append(await caller.answer(VALIDATE, QUICK))


async def test_a_stopping_server_answers_each_turn_or_rejects_it_with_a_reason(
    listening: Listening,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = BatchGate(monkeypatch)
    async with listening(drain_seconds=60) as (server, caller):
        right = await caller.answer(VALIDATE)
        under_way = caller.call(BATCH, TURNS)  # keeps the server draining
        await gate.has_started(1)
        answers_of: list[list[Answer]] = [[] for _ in range(8)]
        busy = [asyncio.ensure_future(play_until_rejected(server.validation_port, own)) for own in answers_of]
        await until(lambda: all(answers_of))
        stopping = asyncio.ensure_future(server.stop())
        await asyncio.gather(*busy)
        for *answers, refused in answers_of:
            assert {*answers} == {right}
            assert refused[0] is grpc.StatusCode.UNAVAILABLE
            assert "stopping" in str(refused[1])
        gate.open()
        assert await under_way
        await asyncio.wait_for(stopping, SOON)


async def test_streams_end_with_the_server(listening: Listening, capfd: pytest.CaptureFixture[str]) -> None:
    async with listening(drain_seconds=60) as (server, caller):
        given = (("x-request-id", "mine-2"),)
        streams = [caller.stream(given) for _ in range(20)]
        for stream in streams:
            await next_answer(stream)
        waiting = [asyncio.ensure_future(refusal(read_to_end(stream))) for stream in streams]
        await asyncio.wait_for(server.stop(), SOON)
        for refused in await asyncio.gather(*waiting):
            assert (refused.code(), error_info(refused).reason) == (grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN")
            assert dict(refused.trailing_metadata() or ())["x-request-id"] == "mine-2"
        counted = server.metrics.registry.get_sample_value(
            "rummikub_calls_total", {"method": STREAM, "code": "UNAVAILABLE"}
        )
        assert counted == 20
    assert "Traceback" not in "".join(capfd.readouterr())


def end_of_a_busy_stream(port: int, turn: bytes, answered: set[int], number: int) -> object:
    """Keeps a stream busy until it ends; returns its code. Adds to `answered` after an answer."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stream: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(STREAM)
        answers = stream(iter(itertools.repeat(stream_request(turn))))
        with contextlib.suppress(grpc.RpcError):
            for answer in answers:
                assert answer
                answered.add(number)
        return answers.code()


@pytest.mark.parametrize("turn", [TURN, QUICK], ids=["slow", "answered at once"])
async def test_busy_streams_end_with_the_server(
    listening: Listening, turn: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(4):
        async with listening(drain_seconds=60) as (server, _), asyncio.TaskGroup() as group:
            port, answered = server.validation_port, set[int]()
            busy = [
                group.create_task(asyncio.to_thread(end_of_a_busy_stream, port, turn, answered, number))
                for number in range(4)
            ]
            await until(lambda answered=answered, busy=busy: len(answered) == len(busy))  # type: ignore[misc]
            await asyncio.wait_for(server.stop(), SOON)
        # a client that keeps writing may see the connection close before it reads the status
        assert {one.result() for one in busy} <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
    assert "Traceback" not in "".join(capfd.readouterr())


async def test_a_stopped_server_leaves_no_threads(listening: Listening, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(threading.enumerate())
    gate = BatchGate(monkeypatch)
    async with listening() as (_, caller):
        stream = await caller.open_stream()
        calls = [caller.call(BATCH, TURNS) for _ in range(8)]
        idle = caller.without_message()
        await gate.has_started(1)
        gate.open()
        for call in calls:
            await call
        assert set(threading.enumerate()) - before
        await stream.done_writing()
        idle.cancel()
    left = {thread.name for thread in threading.enumerate() if thread not in before}
    assert not {name for name in left if name.startswith(("call", "stream", "slow"))}


async def test_a_stopping_server_does_not_wait_for_requests(listening: Listening) -> None:
    async with listening(drain_seconds=60) as (server, caller):
        idle = caller.without_message()
        await caller.answer(VALIDATE)
        await asyncio.wait_for(server.stop(), SOON)
        assert await asyncio.wait_for(idle.code(), SOON) in {grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE}


async def test_a_long_batch_delays_a_stop_by_no_more_than_drain_seconds(
    listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, stopping = threading.Event(), threading.Event()

    def endless(_validation: Validator, _data: bytes) -> Generator[None, None, bytes]:
        begun.set()
        stopping.wait()
        while True:
            yield

    monkeypatch.setattr(Validator, "batch", endless)
    async with listening(drain_seconds=0) as (server, caller):
        call = caller.call(f"/{SERVICE}/BatchValidateTurns", b"")
        refused = asyncio.ensure_future(refusal(call))
        await until(begun.is_set)
        stopping.set()
        await asyncio.wait_for(server.stop(), SOON)
        assert (await refused).code() is grpc.StatusCode.UNAVAILABLE


# Processes


def validation_environment(**variables: str) -> dict[str, str]:
    return {"RUMMIKUB_REDIS_URL": "memory://", "RUMMIKUB_VALIDATION_LISTEN": "127.0.0.1:0", **variables}


async def test_sigterm_ends_streams_and_the_process() -> None:
    async with server_process(validation_environment()) as process, client_of(process.validation_port) as caller:
        assert process.validation_port != process.port
        stream = await caller.open_stream()
        waiting = asyncio.ensure_future(refusal(read_to_end(stream)))
        assert await process.terminate() == 0
        refused = await waiting
        assert (refused.code(), error_info(refused).reason) == (grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN")


async def test_calls_are_answered_if_the_log_cannot_be_written() -> None:
    reader, log = os.pipe()
    os.close(reader)  # writes fail, as on a full disk
    try:
        async with AsyncExitStack() as stack:
            environment = validation_environment(RUMMIKUB_LOG_LEVEL="info")
            process = await stack.enter_async_context(server_process(environment, stderr=log))
            for port in (process.port, process.validation_port):
                caller = await stack.enter_async_context(client_of(port))
                for data in (b"\xff", TURN, b"\xff"):
                    answer = await caller.answer(VALIDATE, data)
                    assert answer[0] is grpc.StatusCode.INVALID_ARGUMENT or data is TURN
                assert isinstance(await caller.answer(SCORE, ENDED), bytes)
            assert await process.terminate() == 0
    finally:
        os.close(log)


async def test_workers_share_the_validation_address(tmp_path: Path) -> None:
    variables = {"RUMMIKUB_WORKERS": "2", "RUMMIKUB_DATA_DIR": str(tmp_path), "RUMMIKUB_REDIS_URL": ""}
    async with server_process(validation_environment(**variables)) as process, AsyncExitStack() as stack:
        callers = [await stack.enter_async_context(client_of(process.validation_port)) for _ in range(8)]
        answers = await asyncio.gather(*(one.answer(VALIDATE) for one in callers))
        assert len(set(answers)) == 1
        streams = [await one.open_stream() for one in callers]
        waiting = [asyncio.ensure_future(refusal(read_to_end(stream))) for stream in streams]
        assert await process.terminate() == 0
        assert {error_info(await one).reason for one in waiting} == {"SHUTTING_DOWN"}
