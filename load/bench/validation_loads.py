"""The load generator of the benchmark of validation: two processes that make calls and count the bytes of answers."""

import contextlib
import json
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from load.bench.noop_server import STREAM
from service.grpc_api.rpcs.validation import NAME
from tools.servers import ROOT

PREFIX_BYTES: Final = 5
PROCESSES: Final = 2


class LoadError(Exception):
    """Calls failed or returned wrong answers."""


@dataclass(frozen=True, slots=True)
class Load:
    """A call to repeat.

    Attributes:
        method: The RPC.
        messages: The requests: one message, or those of a stream.
        answers: The answers of ValidationService.
        turns: The number of turns (or tables) that it validates.
    """

    method: str
    messages: tuple[bytes, ...]
    answers: tuple[bytes, ...]
    turns: int

    @property
    def path(self) -> str:
        """The path of the RPC."""
        return f"/{NAME}/{self.method}"

    @property
    def is_stream(self) -> bool:
        """Whether the RPC is a stream."""
        return self.method == STREAM

    def answered(self, *, nothing: bool) -> int:
        """Returns the bytes of a call's answer, including framing; of a no-op answer, one empty message per request."""
        return len(framed([b""] * len(self.messages) if nothing else self.answers))


@dataclass(frozen=True, slots=True)
class Sent:
    """Finished calls: the time of each, the time of all, the generator's CPU, and the bytes of the answers."""

    milliseconds: tuple[float, ...]
    seconds: float
    cpu_seconds: float
    answered: int


def framed(messages: Sequence[bytes]) -> bytes:
    """Returns messages with gRPC's framing: a zero byte (not compressed), four bytes of length, and the message."""
    return b"".join(b"\0" + struct.pack(">I", len(message)) + message for message in messages)


class Generator:
    """Processes (validation_client.py) that share the connections; `stack` ends them."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._body = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rummikub-bench-"))) / "body"
        self._processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "load.bench.validation_client"],
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(PROCESSES)
        ]

    def send(self, target: str, load: Load, calls: int, clients: int) -> Sent:
        """Makes calls over connections that carry one call at a time each. Raises LoadError."""
        self._body.write_bytes(framed(load.messages))
        processes = self._processes[: min(clients, calls)]
        started = time.perf_counter()
        for place, process in enumerate(processes):
            asked = {
                "target": target,
                "path": load.path,
                "body": str(self._body),
                "is_stream": load.is_stream,
                "calls": _part(calls, len(processes), place),
                "clients": _part(min(clients, calls), len(processes), place),
            }
            if process.stdin:
                process.stdin.write(f"{json.dumps(asked)}\n")
                process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for process in processes if process.stdout]
        seconds = time.perf_counter() - started
        for answer in answers:
            if "error" in answer:
                raise LoadError(f"{load.method} at {target}: {answer['error']}")
        milliseconds = [value for answer in answers for value in answer["milliseconds"]]
        cpu = sum(answer["cpu_seconds"] for answer in answers)
        return Sent(tuple(milliseconds), seconds, cpu, sum(answer["answered"] for answer in answers))


def _part(whole: int, parts: int, place: int) -> int:
    return whole // parts + (place < whole % parts)
