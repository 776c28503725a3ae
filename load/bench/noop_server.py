"""Servers that do nothing, of every kind that ours is compared with: what a call costs before any work is done.

`python -m load.bench.noop_server bare` answers every call with an empty message, each message of a
stream with another one, and prints where it listens, in the words of the service.
"""

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeAlias

import grpc
import grpc.aio
import structlog

from service.fast_listener.calls import Caller, Cancel, End, Gate, Method, Streaming, Unary
from service.fast_listener.interceptor import SynchronousBoundary
from service.fast_listener.listener import SynchronousServer
from service.grpc_api.server_options import options
from service.grpc_api.validation_service import NAME
from service.metrics.metrics import Metrics
from service.runtime.gc_tuning import tune_collector
from service.runtime.slow_calls import SlowCalls
from service.settings import Settings

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
"""The kinds, with what reports call them. The same listener is that of RUMMIKUB_VALIDATION_LISTEN."""

STOCK_THREADS: Final = 10
UNARIES: Final = ("ValidateTurn", "ValidateMelds", "BatchValidateTurns")
STREAM: Final = "StreamValidateTurns"
ANYWHERE: Final = "127.0.0.1:0"

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class _Anything(grpc.GenericRpcHandler):
    """Answers every method; those called Stream... message by message."""

    def __init__(self, unary: Handler, stream: Handler) -> None:
        self._unary = unary
        self._stream = stream

    def service(self, details: grpc.HandlerCallDetails) -> Handler:
        return self._stream if "/Stream" in str(details.method) else self._unary


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


def _serve_stock(threads: int) -> None:
    unary: Handler = grpc.unary_unary_rpc_method_handler(_nothing_at_once)
    handlers: list[grpc.GenericRpcHandler] = [_Anything(unary, grpc.stream_stream_rpc_method_handler(_nothing_each))]
    server = grpc.server(ThreadPoolExecutor(threads), handlers=handlers, options=[("grpc.so_reuseport", 0)])
    port = server.add_insecure_port(ANYWHERE)
    server.start()
    _say(port)
    server.wait_for_termination()


def _serve_synchronous(methods: Mapping[str, Method], gate: Gate) -> None:
    tune_collector()
    _say(SynchronousServer({NAME: methods}, gate, Settings()).start(ANYWHERE))
    signal.pause()


class _Nothing:
    """Answers the messages of a stream."""

    def __call__(self, data: bytes, /) -> bytes:
        return _nothing(data)

    at_once = __call__


class _Open:
    """Lets every call in."""

    def enter(self, path: str, caller: Caller) -> None:
        pass

    def leave(self, path: str, caller: Caller) -> None:
        pass

    def timed_out(self, _path: str, _caller: Caller) -> End:
        return End(code=grpc.StatusCode.DEADLINE_EXCEEDED)


class _BareStream:
    """A stream of messages, without a boundary."""

    def at_once(self, data: bytes) -> bytes:
        return _nothing(data)

    def begin(self, _data: bytes, _answered: object) -> Cancel:
        raise AssertionError

    def end(self) -> End:
        return End()

    def over(self, end: End, *, is_cancelled: bool) -> None:
        pass


def _serve_bare() -> None:
    unary = Unary(lambda data, _caller: End(_nothing(data)))
    streaming = Streaming(lambda _caller, _hang_up: _BareStream())
    _serve_synchronous({**dict.fromkeys(UNARIES, unary), STREAM: streaming}, _Open())


def _serve_with_boundary() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))  # the service's default
    settings = Settings()
    boundary = SynchronousBoundary(
        Metrics(), SlowCalls(settings.peer_share), settings.max_calls, settings.validation_streams, settings.peer_share
    )
    unaries = {name: boundary.unary(f"/{NAME}/{name}", _nothing, _nothing) for name in UNARIES}
    _serve_synchronous({**unaries, STREAM: boundary.stream(f"/{NAME}/{STREAM}", _Nothing)}, boundary)


async def _serve_aio() -> None:
    server = grpc.aio.server(options=options(Settings()))
    unary: Handler = grpc.unary_unary_rpc_method_handler(_nothing_later)
    server.add_generic_rpc_handlers((_Anything(unary, grpc.stream_stream_rpc_method_handler(_nothing_each_later)),))
    port = server.add_insecure_port(ANYWHERE)
    await server.start()
    tune_collector()
    _say(port)
    await server.wait_for_termination()


def _say(port: int) -> None:
    sys.stdout.write(f"  gRPC     127.0.0.1:{port}\nStop with Ctrl-C.\n")
    sys.stdout.flush()


def main() -> int:
    """Serves until it is ended."""
    parser = argparse.ArgumentParser(description="Serve, and do nothing.")
    parser.add_argument("kind", choices=NO_OPS, help="; ".join(f"{kind}: {name}" for kind, name in NO_OPS.items()))
    parser.add_argument("--threads", type=int, default=STOCK_THREADS, help=f"of the stock server ({STOCK_THREADS})")
    chosen = parser.parse_args()
    match chosen.kind:
        case "stock":
            _serve_stock(chosen.threads)
        case "bare":
            _serve_bare()
        case "boundary":
            _serve_with_boundary()
        case _:
            asyncio.run(_serve_aio())
    return 0


if __name__ == "__main__":
    sys.exit(main())
