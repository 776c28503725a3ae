"""Servers for load tests, benchmarks and `make web`: each runs in a process on a free port and ends with its user."""

import contextlib
import itertools
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

from service.runtime.parent_death import end_with_parent

ROOT: Final = Path(__file__).resolve().parents[1]
START_SECONDS: Final = 180.0
"""How long a server may take to start. Only a very busy machine needs more than a few seconds of it."""
STOP_SECONDS: Final = 20.0
SERVER_PORTS: Final = range(10_000, 32_768)
"""Ports that Linux gives to nobody by itself."""


class ServerError(Exception):
    """A server did not start; the message names it."""


@contextlib.contextmanager
def service() -> Iterator[tuple[str, str]]:
    """Runs the service on the store of RUMMIKUB_REDIS_URL, by default on a temporary embedded store.

    Yields:
        Its address, and the address of ValidationService, which differs only if RUMMIKUB_VALIDATION_LISTEN is set.
    """
    with tempfile.TemporaryDirectory(prefix="rummikub-load-") as data:
        settings = {
            "RUMMIKUB_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_DATA_DIR": data,
            "RUMMIKUB_LOG_LEVEL": "warning",
            "TMPDIR": data,  # deleted with the folder if the server is killed
        }
        with serving("service", settings=settings) as addresses:
            yield addresses[0], addresses[-1]


def end_in_order() -> None:
    """Turns SIGTERM into SystemExit, so that context managers stop the child processes."""
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def free_port(wanted: int = 0) -> int:
    """Returns the wanted port if it is free on this machine, else another free port, each only once.

    The others are below the ports that the system gives to connections and to servers without a port of their own, so
    a server that is stopped for a while finds its port free again.
    """
    for port in itertools.chain((wanted,) if wanted else (), _ports()):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise ServerError("no port is free on this machine")


@cache
def _ports() -> Iterator[int]:
    """Returns the one iterator of this process over all ports for servers, in random order."""
    return iter(random.SystemRandom().sample(SERVER_PORTS, len(SERVER_PORTS)))  # tests may seed the other generator


@contextlib.contextmanager
def serving(module: str, *arguments: str, settings: Mapping[str, str] | None = None) -> Iterator[list[str]]:
    """Runs a server in a session of its own, so that Ctrl-C does not end it; yields its addresses."""
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
    """Starts a server process; use `addresses_of` to wait until it serves.

    `checkout` names another checkout of the project, with its own .venv, to compare with.
    """
    python = sys.executable if checkout == ROOT else str(checkout / ".venv" / "bin" / "python")
    command = [python, "-m", module, *arguments]
    with start_process(
        command, cwd=checkout, env=environment, stdout=subprocess.PIPE, start_new_session=own_session
    ) as process:
        try:
            yield process
        finally:
            stop_process(process)


def late() -> ServerError:
    """Returns the error of a server that does not serve in time."""
    return ServerError(f"a server did not serve within {START_SECONDS:g} s; its log is above")


def ended(status: int) -> ServerError:
    """Returns the error of a server that ended before it served, by its exit status."""
    return ServerError(f"a server ended with status {status} before it served; its log is above")


def stop_process(process: subprocess.Popen[str]) -> None:
    """Stops a process; kills it if it has not ended within STOP_SECONDS."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def start_process(
    command: Sequence[str],
    death_signal: signal.Signals = signal.SIGTERM,
    **options: Any,  # noqa: ANN401 - options of subprocess.Popen
) -> subprocess.Popen[str]:
    """Starts a process that gets a signal when this process ends, even if this process is killed.

    SIGTERM is blocked during the fork: Python ignores exceptions in fork handlers, and would lose its SystemExit there.
    """

    def before_exec(parent: int) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        end_with_parent(parent, death_signal)

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        return subprocess.Popen(command, text=True, preexec_fn=partial(before_exec, os.getpid()), **options)  # noqa: PLW1509 - no threads yet
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def addresses_of(process: subprocess.Popen[str]) -> list[str]:
    """Returns the gRPC addresses that a server prints, once it serves. Raises ServerError; a late one is killed."""
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        process.kill()

    too_late = threading.Timer(START_SECONDS, end)
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
                    pass  # the server's name
    finally:
        too_late.cancel()
    raise late() if is_late.is_set() else ended(process.wait())
