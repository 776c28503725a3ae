"""Load generators for the benchmark of validation: h2load if it is installed, else Python processes.

h2load is written in C and uses a tenth of the CPU that it measures. It repeats one body and ignores the content of
answers. Therefore bodies alternate, and the bytes of the answers are counted and compared with those of right answers.
"""

import contextlib
import json
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from load.bench.noop_server import STREAM
from service.grpc_api.validation_service import NAME
from tools.servers import ROOT

HOW_TO_INSTALL: Final = (
    "h2load is not installed (Debian, Ubuntu: apt install nghttp2-client; macOS: brew install nghttp2)"
)
PREFIX_BYTES: Final = 5
PYTHON_PROCESSES: Final = 2
_HEADERS: Final = ("content-type: application/grpc", "te: trailers")
_SUCCEEDED: Final = re.compile(r"(\d+) succeeded, (\d+) failed, (\d+) errored")
_DATA: Final = re.compile(r"\((\d+)\) data")


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


class Generator(Protocol):
    """A load generator."""

    @property
    def name(self) -> str:
        """Its name with its version."""

    def send(self, target: str, load: Load, calls: int, clients: int) -> Sent:
        """Makes calls over connections that carry one call at a time each. Raises LoadError."""


def framed(messages: Sequence[bytes]) -> bytes:
    """Returns messages with gRPC's framing: a zero byte (not compressed), four bytes of length, and the message."""
    return b"".join(b"\0" + struct.pack(">I", len(message)) + message for message in messages)


@contextlib.contextmanager
def generator(*, python: bool = False) -> Iterator[Generator]:
    """Returns the best available generator."""
    with tempfile.TemporaryDirectory(prefix="rummikub-bench-") as folder, contextlib.ExitStack() as stack:
        h2load = shutil.which("h2load")
        if h2load and not python:
            yield H2Load(h2load, Path(folder))
        else:
            yield PythonLoad(Path(folder), stack)


class H2Load:
    """A generator that runs h2load, a process per load.

    Args:
        command: The path of h2load.
        folder: Receives bodies and the times of calls.
    """

    def __init__(self, command: str, folder: Path) -> None:
        said = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
        self.name = said.strip()
        self._command = command
        self._body = folder / "body"
        self._log = folder / "log"

    def send(self, target: str, load: Load, calls: int, clients: int) -> Sent:
        self._body.write_bytes(framed(load.messages))
        self._log.unlink(missing_ok=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(self.arguments(target, load, calls, clients), capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        succeeded, data = _SUCCEEDED.search(done.stdout), _DATA.search(done.stdout)
        if not succeeded or not data or [int(number) for number in succeeded.groups()] != [calls, 0, 0]:
            raise LoadError(f"h2load: {load.method} at {target}: {done.stdout}{done.stderr}")
        return _sent(self._log.read_text(), cpu, int(data[1]))

    def arguments(self, target: str, load: Load, calls: int, clients: int) -> list[str]:
        """Returns the command line of h2load."""
        load_options = [f"--requests={calls}", f"--clients={min(clients, calls)}", "--max-concurrent-streams=1"]
        files = [f"--data={self._body}", f"--log-file={self._log}"]
        headers = [f"--header={header}" for header in _HEADERS]
        return [self._command, *load_options, *files, *headers, f"http://{target}{load.path}"]


def _sent(log: str, cpu_seconds: float, answered: int) -> Sent:
    """Parses h2load's log: for each call its start, its status and its duration in microseconds."""
    rows = [line.split("\t") for line in log.splitlines()]
    begun, took = [int(row[0]) for row in rows], [int(row[2]) for row in rows]
    ended = max(begin + time_taken for begin, time_taken in zip(begun, took, strict=True))
    return Sent(tuple(us / 1e3 for us in took), (ended - min(begun)) / 1e6, cpu_seconds, answered)


class PythonLoad:
    """A generator that runs Python processes (validation_client.py), which share the connections.

    Args:
        folder: Receives bodies.
        stack: Ends the processes.
    """

    name: Final = f"{PYTHON_PROCESSES} processes of Python"

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self._body = folder / "body"
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
            for _ in range(PYTHON_PROCESSES)
        ]

    def send(self, target: str, load: Load, calls: int, clients: int) -> Sent:
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
