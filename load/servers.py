"""Servers for load tests and benchmarks, each in a process of its own on a free port, ended with whoever uses them."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final

from service.runtime.parent_death import end_with_parent

ROOT: Final = Path(__file__).resolve().parents[1]
START_SECONDS: Final = 30.0
STOP_SECONDS: Final = 20.0
BASELINE_THREADS: Final = 64
"""More than users, since a stream keeps one busy."""


class ServerError(Exception):
    """A server did not start; the message says which."""


@contextlib.contextmanager
def service() -> Iterator[tuple[str, str]]:
    """The service, on the store of RUMMIKUB_REDIS_URL, else on an embedded, temporary one.

    Yields:
        Where it listens, and where for ValidationService: the same, unless RUMMIKUB_VALIDATION_LISTEN is set.
    """
    with tempfile.TemporaryDirectory(prefix="rummikub-load-") as data:
        settings = {
            "RUMMIKUB_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_DATA_DIR": data,
            "RUMMIKUB_LOG_LEVEL": "warning",
            "TMPDIR": data,  # so that nothing is left of a server that is killed
        }
        with _serving("service", settings=settings) as addresses:
            yield addresses[0], addresses[-1]


@contextlib.contextmanager
def baseline() -> Iterator[str]:
    """The server that does nothing, and where it listens."""
    with _serving("load.bench.noop_server", "stock", "--threads", str(BASELINE_THREADS)) as addresses:
        yield addresses[0]


def end_in_order() -> None:
    """Has SIGTERM end this process as an exception would, so that what it has started ends first."""
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def free_port(wanted: int = 0) -> int:
    """The port that is wanted if it is free on this machine, else one that is."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def _serving(module: str, *arguments: str, settings: Mapping[str, str] | None = None) -> Iterator[list[str]]:
    # Ctrl-C is for Locust, which the servers have to survive
    with started(module, *arguments, environment={**os.environ, **(settings or {})}, own_session=True) as process:
        yield addresses_of(process)


@contextlib.contextmanager
def started(
    module: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    own_session: bool = False,
    checkout: Path = ROOT,
) -> Iterator[subprocess.Popen[str]]:
    """A server that was started and may not serve yet: `addresses_of` waits for that.

    `checkout` names another checkout of the project, with a .venv of its own, to compare with.
    """
    python = sys.executable if checkout == ROOT else str(checkout / ".venv" / "bin" / "python")
    with subprocess.Popen(
        [python, "-m", module, *arguments],
        cwd=checkout,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=own_session,
        preexec_fn=partial(end_with_parent, os.getpid()),  # noqa: PLW1509 - set before other threads start
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def addresses_of(process: subprocess.Popen[str]) -> list[str]:
    """What a server says of where it serves gRPC, up to the line behind it. Raises ServerError."""
    too_late = threading.Timer(START_SECONDS, process.kill)
    too_late.start()
    found: list[str] = []
    try:
        for line in process.stdout or ():
            match line.split():
                case ["gRPC", address, *_]:
                    found.append(address.rstrip(","))
                case _ if found:
                    return found
                case _:
                    pass  # its name
    finally:
        too_late.cancel()
    raise ServerError("a server ended before it served: what it said is above")
