"""Measures validation: the server's CPU per call relative to no-op calls, throughput and latency.

Four listeners, in their own processes, get the same bytes alternately, so that other load on the machine affects all
alike: two that do nothing (noop_server.py), and the service's two. All values that are compared come from the same
round, a moment apart.
"""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
from google.protobuf.message import Message
from rich.console import Console
from rich.progress import Progress

from load.bench.figures import Size
from load.bench.measured_servers import (
    SERVICE_SETTINGS,
    MeasuredServer,
    ready,
    serving,
)
from load.bench.noop_server import NO_OPS, STREAM
from load.bench.validation_loads import Generator, Load, LoadError, Sent
from load.bench.validation_report import (
    AIO_SERVICE,
    BATCH,
    CLIENTS,
    ILLEGAL,
    LEGAL,
    LEGAL_BATCH,
    LEGAL_FEW,
    LEGAL_MANY,
    LEGAL_STREAM,
    LONG_STREAM,
    MELDS,
    SERVICE,
    SHORT_STREAM,
    Measured,
    Slice,
    report_of,
)
from load.bench.validation_turns import MeasuredTurn, Turns, batch_request, read, stream_requests
from rummikub.v1 import validation_service_pb2 as pb

ROOT: Final = Path(__file__).resolve().parents[2]

ROUNDS: Final = 8
QUICK_ROUNDS: Final = 3
FULL_ROUNDS: Final = 24
QUICK_DIVISOR: Final = 4
"""A quick run makes this many times fewer calls."""
BODIES: Final = 4
"""Bodies that each server gets in a round, in order."""
LONG: Final = 10
"""The length of a long stream in short streams."""
CHECKED_CALLS: Final = 500
"""Calls made while answers are checked."""
WIDTH: Final = 180
"""The width of the widest table."""
OWN_CONNECTION: Final = (("grpc.use_local_subchannel_pool", 1),)
ANSWERS: Final[dict[str, Callable[[bytes], Message]]] = {
    "ValidateTurn": pb.ValidateTurnResponse.FromString,
    "ValidateMelds": pb.ValidateMeldsResponse.FromString,
    "BatchValidateTurns": pb.BatchValidateTurnsResponse.FromString,
    STREAM: pb.StreamValidateTurnsResponse.FromString,
}


def measure(size: Size, console: Console) -> dict[str, Any]:
    """Returns the report."""
    with contextlib.ExitStack() as stack, _listeners() as listeners:
        rounds = size.choose(QUICK_ROUNDS, ROUNDS, FULL_ROUNDS)
        bench = Bench(Generator(stack), listeners, _cases(read(), size.choose(QUICK_DIVISOR, 1, 1)))
        with Progress(console=console) as progress:
            step = progress.add_task("Measuring", total=rounds)
            bench.measure(rounds, lambda: progress.advance(step))
    return report_of(bench.measured)


# Servers


@dataclass(frozen=True, slots=True)
class Listener:
    """A target of calls, and the process whose CPU they use."""

    server: MeasuredServer
    target: str
    does_nothing: bool


@contextlib.contextmanager
def _listeners() -> Iterator[dict[str, Listener]]:
    """Starts all servers at the same time; yields their listeners by name."""
    with contextlib.ExitStack() as stack:
        no_ops = {name: stack.enter_context(serving("load.bench.noop_server", name)) for name in NO_OPS}
        alone = {**SERVICE_SETTINGS, "RUMMIKUB_REDIS_URL": "memory://"}
        service = stack.enter_context(serving("service", settings=alone))
        listeners = {}
        for name, process in no_ops.items():
            server = ready(process)
            listeners[name] = Listener(server, server.validation, does_nothing=True)
        server = ready(service)
        listeners[SERVICE] = Listener(server, server.validation, does_nothing=False)
        listeners[AIO_SERVICE] = Listener(server, server.main, does_nothing=False)
        yield listeners


# Calls


@dataclass(frozen=True, slots=True)
class Case:
    """Calls to measure: loads that alternate, the number of calls, and the number of connections."""

    name: str
    loads: tuple[Load, ...]
    calls: int
    clients: int = CLIENTS
    bodies: int = BODIES


def _cases(turns: Turns, divisor: int) -> list[Case]:
    """Returns the cases, with the number of calls divided by `divisor`."""
    legal, illegal = tuple(map(turn_load, turns.legal)), tuple(map(turn_load, turns.illegal))
    few, many = 400 // divisor, 800 // divisor
    return [
        Case(LEGAL, legal, few),
        Case(ILLEGAL, illegal, few),
        Case(MELDS, tuple(map(melds_load, turns.legal)), few),
        Case(LEGAL_FEW, legal, many, clients=1, bodies=1),
        Case(LEGAL_MANY, legal, many, clients=32, bodies=1),
        Case(BATCH, (batch_load(turns.mixed),), 100 // divisor, bodies=1),
        Case(LEGAL_BATCH, (batch_load(turns.legal),), 100 // divisor, bodies=1),
        Case(SHORT_STREAM, (stream_load(turns.mixed),), 48 // divisor, bodies=1),
        Case(LEGAL_STREAM, (stream_load(turns.legal),), 48 // divisor, bodies=1),
        Case(LONG_STREAM, (stream_load(turns.mixed * LONG),), CLIENTS, bodies=1),
    ]


def turn_load(turn: MeasuredTurn) -> Load:
    """Returns a load of ValidateTurn."""
    return Load("ValidateTurn", (turn.request.SerializeToString(),), (turn.answer.SerializeToString(),), 1)


def melds_load(turn: MeasuredTurn) -> Load:
    """Returns a load of ValidateMelds with the same table."""
    return Load("ValidateMelds", (turn.melds.SerializeToString(),), (turn.readings.SerializeToString(),), 1)


def batch_load(turns: Sequence[MeasuredTurn]) -> Load:
    """Returns a load of BatchValidateTurns."""
    answer = pb.BatchValidateTurnsResponse(turns=[turn.answer for turn in turns])
    request = batch_request(turns).SerializeToString()
    return Load("BatchValidateTurns", (request,), (answer.SerializeToString(),), len(turns))


def stream_load(turns: Sequence[MeasuredTurn]) -> Load:
    """Returns a load of StreamValidateTurns."""
    requests = stream_requests(turns)
    answers = [
        pb.StreamValidateTurnsResponse(turn=turn.answer, correlation_id=request.correlation_id)
        for turn, request in zip(turns, requests, strict=True)
    ]
    messages = tuple(request.SerializeToString() for request in requests)
    return Load(STREAM, messages, tuple(answer.SerializeToString() for answer in answers), len(turns))


# Measurement


class Bench:
    """Measures servers.

    Args:
        making_calls: The generator of calls.
        listeners: The listeners to measure, by name.
        cases: The calls to send.
    """

    def __init__(self, making_calls: Generator, listeners: dict[str, Listener], cases: Sequence[Case]) -> None:
        self._generator = making_calls
        self._listeners = listeners
        self._cases = cases
        self.measured = Measured(defaultdict(list))

    def measure(self, rounds: int, done: Callable[[], object]) -> None:
        """Checks and measures everything `rounds` times."""
        self._warm_up()
        for place in range(rounds):
            self._check_answers()
            for case in self._cases:
                self._measure_case(case, place)
            self.measured.rounds += 1
            done()

    def _warm_up(self) -> None:
        """Sends every body once to every server, to warm up caches."""
        for case in self._cases:
            for load in case.loads[:: len(case.loads) // 8 or 1]:
                for listener in self._listeners.values():
                    self._send(listener, load, calls=1, clients=1)

    def _measure_case(self, case: Case, place: int) -> None:
        """Measures a slice of each listener with the same bodies; every round begins with another listener."""
        loads = [case.loads[(place * case.bodies + body) % len(case.loads)] for body in range(case.bodies)]
        names = list(self._listeners)
        for number, load in enumerate(loads):
            first = (place + number) % len(names)
            for name in names[first:] + names[:first]:
                self.measured.slices[case.name, name].append(self._slice(self._listeners[name], load, case))

    def _slice(self, listener: Listener, load: Load, case: Case) -> Slice:
        before = listener.server.cpu_seconds()
        sent = self._send(listener, load, case.calls, case.clients)
        cpu = listener.server.cpu_seconds() - before
        return Slice(case.calls * load.turns, cpu, sent.cpu_seconds, sent.seconds, sent.milliseconds)

    def _send(self, listener: Listener, load: Load, calls: int, clients: int) -> Sent:
        """Makes calls; raises LoadError unless the answers have the right number of bytes."""
        sent = self._generator.send(listener.target, load, calls, clients)
        right = calls * load.answered(nothing=listener.does_nothing)
        if sent.answered != right:
            raise LoadError(f"{load.method} at {listener.target}: {sent.answered} bytes of answers, not {right}")
        return sent

    # Answers

    def _check_answers(self) -> None:
        """Compares the service's answers with those of the plain rules, while it is under load."""
        for listener in self._listeners.values():
            if listener.does_nothing:
                continue
            with ThreadPoolExecutor(1) as background:
                noise = background.submit(self._send, listener, self._cases[0].loads[0], CHECKED_CALLS, CLIENTS)
                self.measured.checked += check(listener.target, [load for case in self._cases for load in case.loads])
                noise.result()


def check(target: str, loads: Sequence[Load]) -> int:
    """Sends each load once to a server, with another client; returns the number of right answers.

    Raises:
        LoadError: An answer was wrong.
    """
    checked = 0
    with grpc.insecure_channel(target, OWN_CONNECTION) as channel:
        for load in dict.fromkeys(loads):
            decode = ANSWERS[load.method]
            answers = _answers(channel, load)
            if list(map(decode, answers)) != list(map(decode, load.answers)):
                raise LoadError(f"{load.method} at {target}: an answer is wrong")
            checked += len(answers)
    return checked


def _answers(channel: grpc.Channel, load: Load) -> list[bytes]:
    if load.is_stream:
        stream: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(load.path)
        return list(stream(iter(load.messages)))
    unary: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(load.path)
    return [unary(load.messages[0])]
