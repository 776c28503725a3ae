"""The servers that validation is measured on, each in a process of its own: four that do nothing, and the service.

`python -m load.bench_validation_servers bare` is one that does nothing; it prints where it listens in the words of the
service. All answer every call with an empty message, and each message of a stream with another one.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import grpc
import grpc.aio
import structlog

from load.servers import ROOT, STOP_SECONDS, ServerError, end_with_parent
from service.__main__ import tune_collector
from service.listener import ThreadedServer, options
from service.metrics import Metrics
from service.servicers.rpc import Service
from service.servicers.validation import NAME
from service.settings import Settings
from service.thread_boundary import ThreadBoundary
from service.threads import CallThreads

STOCK: Final = "stock"
BARE: Final = "bare"
BOUNDARY: Final = "boundary"
AIO: Final = "aio"
NO_OPS: Final = {
    STOCK: "no-op, stock grpc.server",
    BARE: "no-op, same listener",
    BOUNDARY: "no-op, same listener and boundary",
    AIO: "no-op, grpc.aio",
}
"""The servers that do nothing, with what reports call them."""

STOCK_THREADS: Final = 10
STREAMS: Final = 64
UNARIES: Final = ("ValidateTurn", "ValidateMelds", "BatchValidateTurns")
STREAM: Final = "StreamValidateTurns"
ANYWHERE: Final = "127.0.0.1:0"
SERVICE_SETTINGS: Final = {
    "RUMMIKUB_LISTEN": ANYWHERE,
    "RUMMIKUB_VALIDATION_LISTEN": ANYWHERE,
    "RUMMIKUB_METRICS_LISTEN": ANYWHERE,
}

_STAT: Final = Path("/proc/stat")

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


# Starting and watching them.


@dataclass(frozen=True, slots=True)
class MeasuredServer:
    """A server under load.

    Attributes:
        processes: Of the server, with those that it started.
        main: Where it listens.
        validation: Where it listens for ValidationService.
    """

    processes: tuple[int, ...]
    main: str
    validation: str

    def cpu_seconds(self) -> float:
        """User and system time of all threads of its processes (clock_getcpuclockid(3))."""
        return sum(map(cpu_seconds_of, self.processes))


@contextlib.contextmanager
def serving(module: str, arguments: Sequence[str] = (), settings: Mapping[str, str] | None = None) -> Iterator[int]:
    """A server that was started and may not serve yet; yields its process for `ready`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RUMMIKUB_")}
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**clean, **(settings or {})},
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=end_with_parent,  # noqa: PLW1509 - set before other threads start
    )
    _STARTED[process.pid] = process
    try:
        yield process.pid
    finally:
        del _STARTED[process.pid]
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()


_STARTED: Final[dict[int, "subprocess.Popen[str]"]] = {}


def ready(pid: int) -> MeasuredServer:
    """A server that was started, when it serves. Raises ServerError."""
    addresses: list[str] = []
    for line in _STARTED[pid].stdout or ():
        match line.split():
            case ["gRPC", address, *_]:
                addresses.append(address.rstrip(","))
            case ["Stop", *_]:
                return MeasuredServer((pid, *_descendants(pid)), addresses[0], addresses[-1])
            case _:
                pass  # its name, and what else it says
    raise ServerError("a server ended before it served: what it said is above")


def cpu_seconds_of(pid: int) -> float:
    """User and system time of a process, all its threads together."""
    return time.clock_gettime((~pid << 3) | 2)


def machine_busy_seconds() -> float:
    """For how long the machine's processors were busy, with whatever, all of them together."""
    user, nice, system, _idle, _waiting, *others = map(int, _STAT.read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + sum(others)) / os.sysconf("SC_CLK_TCK")


def _descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # ended meanwhile
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found, ahead = [], [pid]
    while ahead:
        parent = ahead.pop()
        children = [child for child, of in parents.items() if of == parent]
        found += children
        ahead += children
    return found


# Doing nothing.


def _nothing(_data: bytes) -> bytes:
    return b""


def _nothing_at_once(data: bytes, _context: object) -> bytes:
    return _nothing(data)


def _nothing_each(messages: Iterator[bytes], _context: object) -> Iterator[bytes]:
    yield from map(_nothing, messages)


async def _nothing_later(data: bytes, _context: object) -> bytes:
    return _nothing(data)


async def _nothing_each_later(messages: AsyncIterator[bytes], _context: object) -> AsyncIterator[bytes]:
    async for data in messages:
        yield _nothing(data)


def _generic(unary: Handler, stream: Handler) -> grpc.GenericRpcHandler:
    return grpc.method_handlers_generic_handler(NAME, {**dict.fromkeys(UNARIES, unary), STREAM: stream})


def _serve_stock() -> None:
    server = grpc.server(ThreadPoolExecutor(STOCK_THREADS), options=[("grpc.so_reuseport", 0)])
    unary: Handler = grpc.unary_unary_rpc_method_handler(_nothing_at_once)
    server.add_generic_rpc_handlers((_generic(unary, grpc.stream_stream_rpc_method_handler(_nothing_each)),))
    port = server.add_insecure_port(ANYWHERE)
    server.start()
    _say(port)
    server.wait_for_termination()


def _serve_threaded(handlers: Mapping[str, Handler], threads: CallThreads) -> None:
    tune_collector()
    _say(ThreadedServer([Service(NAME, handlers)], threads, Settings()).start(ANYWHERE))
    while True:
        time.sleep(3600)


def _serve_bare() -> None:
    def stream(messages: Iterator[bytes], context: object) -> Iterator[bytes]:
        yield from _nothing_each(messages, context)

    stream.experimental_thread_pool = ThreadPoolExecutor(STREAMS)  # type: ignore[attr-defined] # as the boundary has
    unary: Handler = grpc.unary_unary_rpc_method_handler(_nothing_at_once)
    handlers = dict.fromkeys(UNARIES, unary)
    _serve_threaded({**handlers, STREAM: grpc.stream_stream_rpc_method_handler(stream)}, CallThreads())


def _serve_with_boundary() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))  # the service's default
    settings, threads = Settings(), CallThreads()
    boundary = ThreadBoundary(Metrics(), threads, settings.max_calls, settings.validation_streams)
    unaries = {name: boundary.unary(f"/{NAME}/{name}", _nothing) for name in UNARIES}
    _serve_threaded({**unaries, STREAM: boundary.stream(f"/{NAME}/{STREAM}", lambda: _nothing)}, threads)


def _serve_aio() -> None:
    async def serve() -> None:
        server = grpc.aio.server(options=options(Settings()))
        unary: Handler = grpc.unary_unary_rpc_method_handler(_nothing_later)
        server.add_generic_rpc_handlers((_generic(unary, grpc.stream_stream_rpc_method_handler(_nothing_each_later)),))
        port = server.add_insecure_port(ANYWHERE)
        await server.start()
        tune_collector()
        _say(port)
        await server.wait_for_termination()

    asyncio.run(serve())


def _say(port: int) -> None:
    sys.stdout.write(f"  gRPC     127.0.0.1:{port}\nStop with Ctrl-C.\n")
    sys.stdout.flush()


def main() -> int:
    """Serves until it is ended."""
    serve = {STOCK: _serve_stock, BARE: _serve_bare, BOUNDARY: _serve_with_boundary, AIO: _serve_aio}
    parser = argparse.ArgumentParser(description="Serve, and do nothing.")
    parser.add_argument("kind", choices=serve, help="; ".join(f"{kind}: {name}" for kind, name in NO_OPS.items()))
    serve[parser.parse_args().kind]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
