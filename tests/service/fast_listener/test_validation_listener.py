"""ValidationService at an address of its own: the same answers as at the other, and an end that nobody waits for."""

import asyncio
import contextlib
import itertools
import os
import random
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

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
from service.grpc_api.turn_validator import StreamValidator, Validator
from service.server import Server
from support import malformed_protobuf as wire
from support.conformance_cases import load
from support.conformance_messages import ruleset_of, table_of, tiles_of
from support.harness import (
    error_info,
    field_violations,
    from_another_address,
    memory_store,
    running_server,
    self_signed,
    server_process,
    server_settings,
    status_details,
)

T = TypeVar("T")

SUITE = load()
SERVICE = "rummikub.v1.ValidationService"
VALIDATE = f"/{SERVICE}/ValidateTurn"
STREAM = f"/{SERVICE}/StreamValidateTurns"
SCORE = f"/{SERVICE}/ScoreRound"
RUN = meld_pb2.Meld(tiles=[tile_pb2.TILE_RED_11, tile_pb2.TILE_RED_12, tile_pb2.TILE_RED_13])
SEARCHING = ruleset_of({"joker_retrieval_mode": "LOCKED"})
"""Rules that search."""
TURN = vs.ValidateTurnRequest(ruleset=SEARCHING, table_after=[RUN], rack=RUN.tiles).SerializeToString()
"""A legal turn that the thread for slow calls answers."""
BATCH = f"/{SERVICE}/BatchValidateTurns"
TURNS = vs.BatchValidateTurnsRequest(turns=[vs.ValidateTurnRequest.FromString(TURN)]).SerializeToString()
"""A batch, which the thread for slow calls always answers."""
QUICK = vs.ValidateTurnRequest(table_after=[RUN], rack=RUN.tiles, has_melded=True).SerializeToString()
"""A legal turn that is answered at once by the thread that polls, if its rules were asked before."""
SOON = 20.0
"""Much longer than anything here takes, in seconds."""
ENDED = vs.ScoreRoundRequest(racks=[vs.RackToScore(seat=1), vs.RackToScore(seat=2, rack=RUN.tiles)]).SerializeToString()
"""A round to score."""

Answer = bytes | tuple[grpc.StatusCode, str, bytes]


@dataclass(frozen=True)
class Caller:
    """A client of a listener, which sends and gets bytes."""

    channel: grpc.aio.Channel

    def call(
        self, method: str, data: bytes = TURN, metadata: Sequence[tuple[str, str]] = ()
    ) -> "grpc.aio.UnaryUnaryCall[bytes, bytes]":
        """A call of one request and one answer."""
        unary: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(method)
        return unary(data, metadata=tuple(metadata), timeout=SOON)

    def stream(self, metadata: Sequence[tuple[str, str]] = ()) -> "grpc.aio.StreamStreamCall[bytes, bytes]":
        """A stream of turns."""
        stream: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = self.channel.stream_stream(STREAM)
        return stream(metadata=tuple(metadata))

    async def open_stream(self, turn: bytes = TURN) -> "grpc.aio.StreamStreamCall[bytes, bytes]":
        """A stream that has answered once."""
        stream = self.stream()
        await one_more(stream, turn)
        return stream

    def without_message(self, method: str = VALIDATE) -> "grpc.aio.StreamUnaryCall[bytes, bytes]":
        """A call of one request that never comes."""
        call: grpc.aio.StreamUnaryMultiCallable[bytes, bytes] = self.channel.stream_unary(method)
        return call()

    async def answer(self, method: str, data: bytes = TURN) -> Answer:
        """An answer's bytes, or the status with its details."""
        try:
            return await self.call(method, data)
        except grpc.aio.AioRpcError as error:
            return error.code(), error.details() or "", status_details(error).SerializeToString()


def asked(data: bytes = TURN, correlation_id: str = "") -> bytes:
    """A turn of a stream."""
    turn = vs.ValidateTurnRequest.FromString(data)
    return vs.StreamValidateTurnsRequest(turn=turn, correlation_id=correlation_id).SerializeToString()


async def one_more(stream: "grpc.aio.StreamStreamCall[bytes, bytes]", turn: bytes = TURN) -> bytes:
    """The answer to one more turn of a stream."""
    await stream.write(asked(turn))
    answer = await asyncio.wait_for(stream.read(), SOON)
    assert isinstance(answer, bytes)
    return answer


async def refusal(call: Awaitable[object]) -> grpc.aio.AioRpcError:
    """How a call is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await asyncio.wait_for(call, SOON)
    return refused.value


async def rest(stream: "grpc.aio.StreamStreamCall[bytes, bytes]") -> None:
    """Reads a stream to its end."""
    while await stream.read() is not grpc.aio.EOF:
        pass


@asynccontextmanager
async def caller_of(port: int) -> AsyncIterator[Caller]:
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        yield Caller(channel)


@asynccontextmanager
async def listening(**changes: object) -> AsyncIterator[tuple[Server, Caller]]:
    """A server in this process, with a client of its listener for validation."""
    settings = server_settings(validation_listen="127.0.0.1:0", **changes)
    async with running_server(memory_store(), settings) as (server, _), caller_of(server.validation_port) as caller:
        yield server, caller


@dataclass(frozen=True)
class Both:
    """A server with clients of both its listeners."""

    server: Server
    plain: Caller
    synchronous: Caller

    async def answer(self, method: str, data: bytes) -> Answer:
        """What both answer."""
        plain, synchronous = await asyncio.gather(*(one.answer(method, data) for one in (self.plain, self.synchronous)))
        assert plain == synchronous
        return plain

    def counted(self, method: str, code: str) -> float:
        """How many calls have ended so."""
        return (
            self.server.metrics.registry.get_sample_value("rummikub_calls_total", {"method": method, "code": code}) or 0
        )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both() -> AsyncIterator[Both]:
    async with listening() as (server, synchronous), caller_of(server.port) as plain:
        yield Both(server, plain, synchronous)


async def until(condition: Callable[[], T]) -> T:
    """The first true value of a condition."""
    async with asyncio.timeout(SOON):
        while not (value := condition()):  # noqa: ASYNC110 - threads: there is nothing to be told by
            await asyncio.sleep(0.01)
        return value


class Gate:
    """Keeps batches waiting until it is opened: between two steps, or within one, which holds the thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, holds_the_thread: bool = False) -> None:
        self.came = 0
        self._opened = threading.Event()
        plain = Validator.batch

        def waiting(validation: Validator, data: bytes) -> Generator[None, None, bytes]:
            self.came += 1
            while not self._opened.wait(SOON if holds_the_thread else 0.001):
                yield
            return (yield from plain(validation, data))

        monkeypatch.setattr(Validator, "batch", waiting)

    async def has(self, calls: int) -> None:
        """Returns when so many calls have begun."""
        await until(lambda: self.came == calls)

    def open(self) -> None:
        """Lets all go on."""
        self._opened.set()


# The same as at the other address


def requests() -> Iterable[tuple[str, Message]]:
    """Every case, as a request of each RPC that can ask it."""
    for meld in SUITE.melds:
        yield "ValidateMelds", vs.ValidateMeldsRequest(ruleset=ruleset_of(meld.ruleset), melds=table_of([meld.meld]))
    turns = [turn_request(turn, turn.ruleset) for turn in SUITE.turns]
    yield from (("ValidateTurn", turn) for turn in turns)
    yield "BatchValidateTurns", vs.BatchValidateTurnsRequest(turns=turns)
    for case in SUITE.round_scores:
        racks = [vs.RackToScore(seat=rack.seat, rack=tiles_of(rack.rack)) for rack in case.racks]
        yield "ScoreRound", vs.ScoreRoundRequest(ruleset=ruleset_of(case.ruleset), racks=racks)
    yield "ListRulesets", vs.ListRulesetsRequest()


@pytest.mark.asyncio(loop_scope="module")
async def test_every_case_is_answered_as_at_the_other_address(both: Both) -> None:
    for name, request in requests():
        assert isinstance(await both.answer(f"/{SERVICE}/{name}", request.SerializeToString()), bytes)


@pytest.mark.asyncio(loop_scope="module")
async def test_all_turns_in_a_stream_are_answered_as_at_the_other_address(both: Both) -> None:
    turns = [turn_request(turn, turn.ruleset).SerializeToString() for turn in SUITE.turns]
    streams = [both.plain.stream(), both.synchronous.stream()]
    for number, data in enumerate(turns):
        for stream in streams:
            await stream.write(asked(data, str(number)))
        plain, synchronous = [await stream.read() for stream in streams]
        assert plain == synchronous
    for stream in streams:
        await stream.done_writing()
        assert await stream.read() is grpc.aio.EOF
        assert await stream.code() is grpc.StatusCode.OK


@pytest.mark.parametrize("data", [b"\xff", b"\x12\x02\x0a\x05", b"\x22\x01\x00", b"\x0a\x02\x08\x7f"])
@pytest.mark.parametrize("rpc", ["ValidateMelds", "ValidateTurn", "BatchValidateTurns", "ScoreRound", "ListRulesets"])
@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_wrong_is_refused_as_at_the_other_address(rpc: str, data: bytes, both: Both) -> None:
    answer = await both.answer(f"/{SERVICE}/{rpc}", data)
    if rpc in {"ValidateTurn", "ScoreRound"} or data == b"\xff":
        assert not isinstance(answer, bytes)
        assert answer[0] is grpc.StatusCode.INVALID_ARGUMENT


async def end_of_stream(caller: Caller, messages: Sequence[bytes]) -> list[Answer]:
    """The answers of a stream; the last one may be its status with the details."""
    stream, answers = caller.stream(), list[Answer]()
    try:
        for message in messages:
            await stream.write(message)
            answer = await stream.read()
            assert isinstance(answer, bytes)
            answers.append(answer)
        await stream.done_writing()
        await rest(stream)
    except grpc.aio.AioRpcError as error:
        answers.append((error.code(), error.details() or "", status_details(error).SerializeToString()))
    return answers


@pytest.mark.asyncio(loop_scope="module")
async def test_turns_in_bytes_that_were_spoiled_are_answered_as_at_the_other_address(both: Both) -> None:
    rng = random.Random(1)
    for number in range(200):
        turn = wire.spoiled(QUICK, rng)
        await both.answer(VALIDATE, turn)
        messages = [asked(QUICK), wire.spoiled(asked(QUICK, str(number)), rng), asked(QUICK)]
        plain, synchronous = [await end_of_stream(caller, messages) for caller in (both.plain, both.synchronous)]
        assert plain == synchronous


@pytest.mark.asyncio(loop_scope="module")
async def test_a_stream_s_rules_hold_until_others_are_stated_whoever_answers(both: Both) -> None:
    """Of every two turns one is answered by a thread, as nothing was melded before."""
    initial = [vs.ValidateTurnRequest.FromString(turn) for turn in (QUICK, TURN) * 4]
    for place, points in ((0, 0), (3, 40), (4, 30), (7, 0)):
        initial[place].ruleset.initial_meld_threshold = points
    messages = [asked(turn.SerializeToString(), str(place)) for place, turn in enumerate(initial)]
    plain, synchronous = [await end_of_stream(caller, messages) for caller in (both.plain, both.synchronous)]
    assert plain == synchronous
    assert len(set(plain)) == len(messages)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_message_may_be_compressed_and_must_not_be_too_large(both: Both) -> None:
    unary: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = both.synchronous.channel.unary_unary(VALIDATE)
    for turn in (TURN, QUICK):
        assert await unary(turn, compression=grpc.Compression.Gzip) == await unary(turn)
    large = TURN + wire.part(wire.UNKNOWN, bytes(2_000_000))
    assert (await refusal(both.synchronous.call(VALIDATE, large))).code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    stream = both.synchronous.stream()
    await stream.write(large)
    assert (await refusal(rest(stream))).code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.asyncio(loop_scope="module")
async def test_a_refusal_names_the_field_and_the_reason(both: Both) -> None:
    turn = vs.ValidateTurnRequest(rack=[tile_pb2.TILE_UNSPECIFIED]).SerializeToString()
    refused = await refusal(both.synchronous.call(VALIDATE, turn))
    assert (error_info(refused).reason, field_violations(refused)) == ("TILE_UNKNOWN", ["rack[0]"])
    stream = both.synchronous.stream()
    await one_more(stream)
    await stream.write(asked(turn))
    refused = await refusal(rest(stream))
    assert (error_info(refused).reason, field_violations(refused)) == ("TILE_UNKNOWN", ["turn.rack[0]"])


@pytest.mark.asyncio(loop_scope="module")
async def test_calls_have_request_ids(both: Both) -> None:
    given, made = (("x-request-id", "mine-1"),), set()
    for turn in (TURN, QUICK):
        call = both.synchronous.call(VALIDATE, turn, metadata=given)
        await call
        assert dict(await call.trailing_metadata() or ())["x-request-id"] == "mine-1"
        for metadata in ((), (("x-request-id", "not of the form"),)):
            call = both.synchronous.call(VALIDATE, turn, metadata=metadata)
            await call
            made.add(dict(await call.trailing_metadata() or ())["x-request-id"])
    assert len(made) == 4
    assert all(re.fullmatch("[0-9a-f]{16,64}", str(one)) for one in made)
    refused = await refusal(both.synchronous.call(VALIDATE, b"\xff", given))
    assert dict(refused.trailing_metadata() or ())["x-request-id"] == "mine-1"
    stream = both.synchronous.stream(given)
    await one_more(stream)
    await stream.done_writing()
    assert dict(await stream.trailing_metadata() or ())["x-request-id"] == "mine-1"


async def test_calls_of_both_addresses_are_counted_together() -> None:
    async with listening() as (server, synchronous), caller_of(server.port) as plain:
        both = Both(server, plain, synchronous)
        for one in (plain, synchronous):
            await one.answer(VALIDATE)
            await one.answer(VALIDATE, QUICK)
            await one.answer(VALIDATE, b"\xff")
            stream = await one.open_stream()
            await stream.done_writing()
            assert await stream.code() is grpc.StatusCode.OK
        lost = await synchronous.open_stream()
        lost.cancel()
        kinds = ((VALIDATE, "OK"), (VALIDATE, "INVALID_ARGUMENT"), (STREAM, "OK"), (STREAM, "CANCELLED"))
        await until(lambda: [both.counted(*kind) for kind in kinds] == [4, 2, 2, 1])


async def health_of(caller: Caller, service: str) -> int:
    data = health_pb2.HealthCheckRequest(service=service).SerializeToString()
    answer = health_pb2.HealthCheckResponse.FromString(await caller.call("/grpc.health.v1.Health/Check", data))
    return int(answer.status)


@pytest.mark.asyncio(loop_scope="module")
async def test_health_can_be_checked(both: Both) -> None:
    for service in ("", SERVICE):
        assert await health_of(both.synchronous, service) == health_pb2.HealthCheckResponse.SERVING
    for service, code in (("rummikub.v1.GameService", grpc.StatusCode.NOT_FOUND), ("?", grpc.StatusCode.NOT_FOUND)):
        data = health_pb2.HealthCheckRequest(service=service).SerializeToString()
        assert (await refusal(both.synchronous.call("/grpc.health.v1.Health/Check", data))).code() is code
    malformed = await refusal(both.synchronous.call("/grpc.health.v1.Health/Check", b"\xff"))
    assert malformed.code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    "method", ["/rummikub.v1.GameService/ListGames", f"/{SERVICE}/NoSuchRpc", "/grpc.health.v1.Health/List", "/x"]
)
@pytest.mark.asyncio(loop_scope="module")
async def test_nothing_else_is_served(method: str, both: Both) -> None:
    data = gs.ListGamesRequest().SerializeToString()
    assert (await refusal(both.synchronous.call(method, data))).code() is grpc.StatusCode.UNIMPLEMENTED


async def test_without_an_address_there_is_no_such_listener() -> None:
    async with running_server(memory_store()) as (server, _):
        assert server.validation_port == 0


async def test_tls_is_served_here_too(tmp_path: Path) -> None:
    self_signed(tmp_path, "DNS:localhost")
    pair = {"tls_cert": str(tmp_path / "cert.pem"), "tls_key": str(tmp_path / "key.pem")}
    async with listening(**pair) as (server, plain):
        credentials = grpc.ssl_channel_credentials((tmp_path / "cert.pem").read_bytes())
        async with grpc.aio.secure_channel(f"localhost:{server.validation_port}", credentials) as channel:
            assert isinstance(await Caller(channel).answer(VALIDATE), bytes)
        assert (await refusal(plain.call(VALIDATE))).code() is grpc.StatusCode.UNAVAILABLE


# Faults


async def test_a_fault_of_ours_tells_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(_validation: Validator, _data: bytes) -> bytes:
        raise RuntimeError("secret")

    def failing_too(_turns: StreamValidator, data: bytes) -> bytes:
        return failing(Validator(), data)

    for at_once in (False, True):
        monkeypatch.setattr(Validator, "turn_at_once" if at_once else "validate_turn", failing)
        monkeypatch.setattr(StreamValidator, "at_once" if at_once else "__call__", failing_too)
        async with listening() as (_, caller):
            stream = caller.stream()
            await stream.write(asked())
            for refused in (await refusal(caller.call(VALIDATE)), await refusal(rest(stream))):
                assert (refused.code(), error_info(refused).reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
                assert "secret" not in str(refused)
            assert isinstance(await caller.answer(f"/{SERVICE}/ListRulesets", b""), bytes)
    assert "Traceback" not in capsys.readouterr().err


# Callers that keep a server busy


@pytest.mark.parametrize("holds_the_thread", [False, True])
async def test_quick_calls_do_not_wait_for_slow_ones(
    monkeypatch: pytest.MonkeyPatch, *, holds_the_thread: bool
) -> None:
    gate = Gate(monkeypatch, holds_the_thread=holds_the_thread)
    async with listening() as (server, caller), caller_of(server.port) as other:
        stream = await caller.open_stream(QUICK)
        assert isinstance(await caller.answer(VALIDATE, QUICK), bytes)  # its rules are known from now on
        slow = [one.call(BATCH, TURNS) for one in (caller, other) for _ in range(10)]
        await gate.has(1)
        for one in (caller, other):
            assert isinstance(await one.answer(VALIDATE, QUICK), bytes)
            assert isinstance(await one.answer(SCORE, ENDED), bytes)
            assert isinstance(await one.answer(f"/{SERVICE}/ListRulesets", b""), bytes)
        await one_more(stream, QUICK)
        gate.open()
        assert len({await call for call in slow}) == 1


async def test_a_slow_turn_does_not_wait_for_batches_of_its_own_client(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    async with listening() as (_, caller):
        slow = [caller.call(BATCH, TURNS) for _ in range(10)]
        await gate.has(1)
        assert isinstance(await caller.answer(VALIDATE, TURN), bytes)
        gate.open()
        assert len({await call for call in slow}) == 1


async def test_a_client_with_many_batches_delays_another_client_by_slices_only(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    async with (
        listening() as (server, caller),
        from_another_address(server.validation_port) as port,
        caller_of(port) as other,
    ):
        slow = [caller.call(BATCH, TURNS) for _ in range(10)]
        await gate.has(1)
        theirs = other.call(BATCH, TURNS)
        await gate.has(2)  # it is begun although nine have waited for longer
        gate.open()
        assert len({await call for call in (*slow, theirs)}) == 1


async def test_more_calls_than_may_be_under_way_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    async with listening(max_calls=10, peer_share=1) as (_, caller):
        calls = [caller.call(BATCH, TURNS) for _ in range(30)]
        await until(lambda: sum(call.done() for call in calls) == 20)
        assert await health_of(caller, SERVICE) == health_pb2.HealthCheckResponse.SERVING
        gate.open()
        answers = await asyncio.gather(*calls, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, grpc.aio.AioRpcError)]
    assert {(one.code(), error_info(one).reason) for one in refused} == {(grpc.StatusCode.UNAVAILABLE, "OVERLOADED")}
    assert len(refused) == 20


async def test_one_address_gets_a_part_of_the_calls_and_streams_only(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    async with (
        listening(max_calls=20, validation_streams=4, peer_share=0.5) as (server, caller),
        from_another_address(server.validation_port) as port,
        caller_of(port) as other,
    ):
        streams = [await caller.open_stream() for _ in range(2)]
        assert error_info(await refusal(rest(caller.stream()))).reason == "OVERLOADED"
        calls = [caller.call(BATCH, TURNS) for _ in range(30)]
        await until(lambda: sum(call.done() for call in calls) == 22)
        assert isinstance(await other.answer(VALIDATE, TURN), bytes)
        await other.open_stream()
        assert error_info(await refusal(caller.call(VALIDATE, QUICK))).reason == "OVERLOADED"
        gate.open()
        await asyncio.gather(*calls, return_exceptions=True)
        await one_more(streams[0])
        assert isinstance(await caller.answer(VALIDATE, QUICK), bytes)


async def test_more_streams_than_may_be_open_are_refused() -> None:
    async with listening(validation_streams=2) as (_, caller):
        opened = [await caller.open_stream() for _ in range(2)]
        for _ in range(8):
            refused = await refusal(rest(caller.stream()))
            assert (refused.code(), error_info(refused).reason) == (grpc.StatusCode.UNAVAILABLE, "OVERLOADED")
        await opened[0].done_writing()
        assert await opened[0].code() is grpc.StatusCode.OK
        await caller.open_stream()
        await one_more(opened[1])


async def test_an_open_stream_needs_no_thread() -> None:
    async with listening(validation_streams=400) as (_, caller):
        await caller.open_stream()
        before = threading.active_count()
        streams = [caller.stream() for _ in range(300)]
        for turn in (QUICK, TURN):
            assert len({await one_more(stream, turn) for stream in streams}) == 1
        assert threading.active_count() <= before + 1
        for stream in streams:
            await stream.done_writing()
            assert await stream.code() is grpc.StatusCode.OK


@pytest.mark.asyncio(loop_scope="module")
async def test_callers_who_send_no_message_keep_nobody_waiting(both: Both) -> None:
    async with AsyncExitStack() as stack:
        for port in (both.server.validation_port, both.server.port):
            idle = []
            for _ in range(4):
                other = await stack.enter_async_context(caller_of(port))
                idle += [other.without_message() for _ in range(150)]
            assert isinstance(await both.answer(VALIDATE, TURN), bytes)
            for call in idle:
                assert not call.done()
                call.cancel()
            assert isinstance(await both.answer(VALIDATE, TURN), bytes)


async def test_a_call_without_a_message_is_counted_and_ends_after_some_seconds() -> None:
    async with (
        listening(max_calls=10, peer_share=1, request_seconds=0.5) as (server, own),
        caller_of(server.port) as main,
    ):
        for caller in (own, main):
            idle = [caller.without_message() for _ in range(10)]
            await asyncio.sleep(0.1)  # for them to arrive: a call that waits notifies no one
            assert error_info(await refusal(caller.call(VALIDATE))).reason == "OVERLOADED"
            for call in idle:
                late = await refusal(call)
                assert (late.code(), error_info(late).reason) == (
                    grpc.StatusCode.DEADLINE_EXCEEDED,
                    "REQUEST_TIMED_OUT",
                )
            assert isinstance(await caller.answer(VALIDATE), bytes)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_call_that_ends_without_a_message_is_refused(both: Both) -> None:
    for caller in (both.synchronous, both.plain):
        for _ in range(20):
            call = caller.without_message()
            await call.done_writing()
            assert await asyncio.wait_for(call.code(), SOON) is grpc.StatusCode.UNIMPLEMENTED
            assert "exactly one request" in (await call.details() or "")


@pytest.mark.parametrize("is_late", [False, True], ids=["cancelled", "late"])
async def test_work_on_a_call_ends_with_the_call(monkeypatch: pytest.MonkeyPatch, *, is_late: bool) -> None:
    gate = Gate(monkeypatch)
    async with listening(drain_seconds=60) as (server, own), caller_of(server.port) as main:
        for caller in (own, main):
            begun = gate.came
            batch: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = caller.channel.unary_unary(BATCH)
            calls = [batch(TURNS, timeout=0.3 if is_late else SOON) for _ in range(10)]
            await until(lambda: gate.came > begun)  # noqa: B023 - it is awaited here
            for call in () if is_late else reversed(calls):
                call.cancel()
            ends = await asyncio.gather(*calls, return_exceptions=True)
            assert not any(isinstance(end, bytes) for end in ends)
            await until(lambda: not server.slow_calls.under_way)
            assert is_late or gate.came < begun + 5, "most of those that waited were never begun"
        await asyncio.wait_for(server.stop(), SOON)


async def test_a_stream_may_end_before_its_turn_is_begun(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    gate = Gate(monkeypatch, holds_the_thread=True)
    async with listening(drain_seconds=60) as (server, caller):
        slow = [caller.call(BATCH, TURNS) for _ in range(2)]
        await gate.has(1)
        stream = caller.stream()
        await stream.write(asked())
        await until(lambda: server.slow_calls.under_way == 3)
        stopping = asyncio.ensure_future(server.stop())
        assert error_info(await refusal(rest(stream))).reason == "SHUTTING_DOWN"
        labels = {"method": STREAM, "code": "UNAVAILABLE"}
        await until(lambda: server.metrics.registry.get_sample_value("rummikub_calls_total", labels))
        await until(lambda: server.slow_calls.under_way == 2)
        gate.open()
        assert len({await call for call in slow}) == 1
        await asyncio.wait_for(stopping, SOON)
    assert "Traceback" not in "".join(capfd.readouterr())


async def test_a_stream_may_end_before_the_answer_to_its_turn_is_sent(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    judging, may_go_on = threading.Event(), threading.Event()
    plain = StreamValidator.at_once

    def held(turns: StreamValidator, data: bytes) -> bytes | None:
        judging.set()
        assert may_go_on.wait(SOON)
        return plain(turns, data)

    async with listening(drain_seconds=60) as (server, caller):
        streams = [await caller.open_stream() for _ in range(3)]
        monkeypatch.setattr(StreamValidator, "at_once", held)
        for stream in streams:
            await stream.write(asked(QUICK))
        await until(judging.is_set)
        stopping = asyncio.ensure_future(server.stop())
        for stream in streams:
            assert error_info(await refusal(rest(stream))).reason == "SHUTTING_DOWN"
        may_go_on.set()
        await asyncio.wait_for(stopping, SOON)
        labels = {"method": STREAM, "code": "UNAVAILABLE"}
        assert server.metrics.registry.get_sample_value("rummikub_calls_total", labels) == len(streams)
    assert "Traceback" not in "".join(capfd.readouterr())


async def told_apart(caller: Caller, name: int) -> None:
    """Has a stream answer turn after turn, each with its own id."""
    stream = caller.stream()
    for number in range(50):
        await stream.write(asked(QUICK, f"{name}-{number}"))
    await stream.done_writing()
    for number in range(50):
        answer = await asyncio.wait_for(stream.read(), SOON)
        assert isinstance(answer, bytes)
        assert vs.StreamValidateTurnsResponse.FromString(answer).correlation_id == f"{name}-{number}"
    assert await stream.code() is grpc.StatusCode.OK


async def given_up(caller: Caller, number: int) -> None:
    """Cancels a stream with answers still to come."""
    stream = caller.stream()
    for _ in range(number % 5):
        await stream.write(asked(QUICK))
    stream.cancel()
    assert await stream.code() is grpc.StatusCode.CANCELLED


async def test_streams_that_are_judged_together_get_their_own_answers_though_others_are_given_up() -> None:
    async with listening() as (server, caller), AsyncExitStack() as stack:
        await caller.answer(VALIDATE, QUICK)  # from now on it is answered at once
        callers = [await stack.enter_async_context(caller_of(server.validation_port)) for _ in range(8)]
        async with asyncio.TaskGroup() as group:
            for name, one in enumerate(callers):
                group.create_task(told_apart(one, name))
                for number in range(10):
                    group.create_task(given_up(one, number))
        await asyncio.wait_for(server.stop(), SOON)


async def test_a_client_that_vanishes_leaves_its_stream_to_others() -> None:
    async with listening(validation_streams=1) as (server, caller):
        async with caller_of(server.validation_port) as other:
            await other.open_stream()
        codes: list[grpc.StatusCode] = []
        while not codes or codes[-1] is grpc.StatusCode.UNAVAILABLE:  # until the server has seen it go
            stream = caller.stream()
            await stream.done_writing()
            with contextlib.suppress(grpc.aio.AioRpcError):
                await asyncio.wait_for(rest(stream), SOON)
            codes.append(await stream.code())
        assert codes[-1] is grpc.StatusCode.OK


async def test_a_deadline_ends_a_call_and_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    async with listening(validation_streams=1) as (server, caller):
        unary: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = caller.channel.unary_unary(BATCH)
        streams: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = caller.channel.stream_stream(STREAM)
        call, stream = unary(TURNS, timeout=0.5), streams(timeout=0.5)
        await one_more(stream)
        for late in (call, rest(stream)):
            assert (await refusal(late)).code() is grpc.StatusCode.DEADLINE_EXCEEDED
        metric = server.metrics.registry.get_sample_value
        labels = {"method": STREAM, "code": "CANCELLED"}
        await until(lambda: metric("rummikub_calls_total", labels))
        await caller.open_stream()
        gate.open()
        assert isinstance(await caller.answer(BATCH, TURNS), bytes)
        await asyncio.wait_for(server.stop(), SOON)


async def test_who_reads_no_answers_keeps_nobody_waiting() -> None:
    async with listening(drain_seconds=60) as (server, caller):
        with grpc.insecure_channel(f"127.0.0.1:{server.validation_port}") as channel:
            stream: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(STREAM)
            answers = stream(iter(itertools.repeat(asked(correlation_id="x" * 64))))
            assert await asyncio.to_thread(next, answers)
            await asyncio.sleep(1)  # until nothing more is taken: nobody is told
            assert isinstance(await caller.answer(VALIDATE), bytes)
            await one_more(await caller.open_stream())
            await asyncio.wait_for(server.stop(), SOON)


# The end


async def test_a_call_under_way_is_answered_while_new_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    async with listening(drain_seconds=60) as (server, caller):
        call = caller.call(BATCH, TURNS)
        await gate.has(1)
        stopping = asyncio.ensure_future(server.stop())
        while True:
            answer = await caller.answer(f"/{SERVICE}/ListRulesets", b"")
            if not isinstance(answer, bytes):
                break
        refused = await refusal(caller.call(VALIDATE))
        assert (refused.code(), error_info(refused).reason) == (grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN")
        refused = await refusal(rest(caller.stream()))
        assert (refused.code(), error_info(refused).reason) == (grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN")
        assert await health_of(caller, SERVICE) == health_pb2.HealthCheckResponse.NOT_SERVING
        assert not stopping.done()
        gate.open()
        assert vs.BatchValidateTurnsResponse.FromString(await call).turns
        await asyncio.wait_for(stopping, SOON)


async def outcomes_until_refused(port: int) -> list[Answer]:
    """What a client gets that sends one turn after the other, in the end that the server is stopping."""
    async with caller_of(port) as caller:
        answers = [await caller.answer(VALIDATE, QUICK)]
        while isinstance(answers[-1], bytes):
            answers.append(await caller.answer(VALIDATE, QUICK))
        return answers


async def test_turns_are_answered_or_refused_with_a_word_while_the_server_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate(monkeypatch)
    async with listening(drain_seconds=60) as (server, caller):
        right = await caller.answer(VALIDATE)
        under_way = caller.call(BATCH, TURNS)  # so that the server has to wait
        await gate.has(1)
        busy = [asyncio.ensure_future(outcomes_until_refused(server.validation_port)) for _ in range(8)]
        await asyncio.sleep(0.2)
        stopping = asyncio.ensure_future(server.stop())
        for *answers, refused in await asyncio.gather(*busy):
            assert {*answers} == {right}
            assert refused[0] is grpc.StatusCode.UNAVAILABLE
            assert "stopping" in str(refused[1])
        gate.open()
        assert await under_way
        await asyncio.wait_for(stopping, SOON)


async def test_streams_end_with_the_server(capfd: pytest.CaptureFixture[str]) -> None:
    async with listening(drain_seconds=60) as (server, caller):
        given = (("x-request-id", "mine-2"),)
        streams = [caller.stream(given) for _ in range(20)]
        for stream in streams:
            await one_more(stream)
        waiting = [asyncio.ensure_future(refusal(rest(stream))) for stream in streams]
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
    """How a stream ends that always has a turn to judge; tells when it has had an answer."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stream: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(STREAM)
        answers = stream(iter(itertools.repeat(asked(turn))))
        with contextlib.suppress(grpc.RpcError):
            for answer in answers:
                assert answer
                answered.add(number)
        return answers.code()


@pytest.mark.parametrize("turn", [TURN, QUICK], ids=["slow", "answered at once"])
async def test_streams_that_are_busy_end_with_the_server_too(turn: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(4):
        async with listening(drain_seconds=60) as (server, _), asyncio.TaskGroup() as group:
            port, answered = server.validation_port, set[int]()
            busy = [
                group.create_task(asyncio.to_thread(end_of_a_busy_stream, port, turn, answered, number))
                for number in range(4)
            ]
            await until(lambda answered=answered, busy=busy: len(answered) == len(busy))  # type: ignore[misc]
            await asyncio.wait_for(server.stop(), SOON)
        # a client that keeps writing may find the connection closed before it has read how its stream has ended
        assert {one.result() for one in busy} <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
    assert "Traceback" not in "".join(capfd.readouterr())


async def test_nothing_is_left_of_a_server_that_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(threading.enumerate())
    gate = Gate(monkeypatch)
    async with listening() as (_, caller):
        stream = await caller.open_stream()
        calls = [caller.call(BATCH, TURNS) for _ in range(8)]
        idle = caller.without_message()
        await gate.has(1)
        gate.open()
        for call in calls:
            await call
        assert set(threading.enumerate()) - before
        await stream.done_writing()
        idle.cancel()
    left = {thread.name for thread in threading.enumerate() if thread not in before}
    assert not {name for name in left if name.startswith(("call", "stream", "slow"))}


async def test_a_server_s_end_waits_for_no_message() -> None:
    async with listening(drain_seconds=60) as (server, caller):
        idle = caller.without_message()
        await caller.answer(VALIDATE)
        await asyncio.wait_for(server.stop(), SOON)
        assert await asyncio.wait_for(idle.code(), SOON) in {grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE}


async def test_a_long_batch_holds_a_stopping_server_no_longer_than_its_drain(monkeypatch: pytest.MonkeyPatch) -> None:
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
    async with server_process(validation_environment()) as process, caller_of(process.validation_port) as caller:
        assert process.validation_port != process.port
        stream = await caller.open_stream()
        waiting = asyncio.ensure_future(refusal(rest(stream)))
        assert await process.terminate() == 0
        refused = await waiting
        assert (refused.code(), error_info(refused).reason) == (grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN")


async def test_calls_are_answered_though_nobody_reads_the_log() -> None:
    reader, log = os.pipe()
    os.close(reader)  # whoever writes there fails, as on a full disk
    try:
        async with AsyncExitStack() as stack:
            environment = validation_environment(RUMMIKUB_LOG_LEVEL="info")
            process = await stack.enter_async_context(server_process(environment, stderr=log))
            for port in (process.port, process.validation_port):
                caller = await stack.enter_async_context(caller_of(port))
                for data in (b"\xff", TURN, b"\xff"):
                    answer = await caller.answer(VALIDATE, data)
                    assert answer[0] is grpc.StatusCode.INVALID_ARGUMENT or data is TURN
                assert isinstance(await caller.answer(SCORE, ENDED), bytes)
            assert await process.terminate() == 0
    finally:
        os.close(log)


async def test_workers_serve_validation_at_an_address_that_they_share(tmp_path: Path) -> None:
    variables = {"RUMMIKUB_WORKERS": "2", "RUMMIKUB_DATA_DIR": str(tmp_path), "RUMMIKUB_REDIS_URL": ""}
    async with server_process(validation_environment(**variables)) as process, AsyncExitStack() as stack:
        callers = [await stack.enter_async_context(caller_of(process.validation_port)) for _ in range(8)]
        answers = await asyncio.gather(*(one.answer(VALIDATE) for one in callers))
        assert len(set(answers)) == 1
        streams = [await one.open_stream() for one in callers]
        waiting = [asyncio.ensure_future(refusal(rest(stream))) for stream in streams]
        assert await process.terminate() == 0
        assert {error_info(await one).reason for one in waiting} == {"SHUTTING_DOWN"}
