"""No-op servers of several kinds, to measure the cost of a call without its work.

`python -m load.bench.noop_server bare` answers every call, and every message of a stream, with an empty message. It
prints its address in the format of the service.
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

from service.fast_listener.calls import (
    AdmissionControl,
    CallDetails,
    CallResult,
    Cancel,
    Method,
    StreamMethod,
    UnaryMethod,
)
from service.fast_listener.interceptor import FastInterceptor
from service.fast_listener.listener import FastListener
from service.grpc_api.call_origin import Origins
from service.grpc_api.server_options import server_options
from service.grpc_api.validation_service import NAME
from service.metrics.metrics import Metrics
from service.runtime.admission import Admission, CallAdmission
from service.runtime.gc_tuning import tune_gc
from service.runtime.origins import Origin
from service.runtime.proxies import TrustedProxies
from service.runtime.slow_calls import SlowCalls, Steps, in_one_step
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
"""The kinds with their names in reports. The same listener is the one of RUMMIKUB_VALIDATION_LISTEN."""

STOCK_THREADS: Final = 10
UNARIES: Final = ("ValidateTurn", "ValidateMelds", "BatchValidateTurns")
STREAM: Final = "StreamValidateTurns"
ANYWHERE: Final = "127.0.0.1:0"

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class _AnyMethod(grpc.GenericRpcHandler):
    """Handles every method; those named Stream... are streaming."""

    def __init__(self, unary: Handler, stream: Handler) -> None:
        self._unary = unary
        self._stream = stream

    def service(self, details: grpc.HandlerCallDetails) -> Handler:
        return self._stream if "/Stream" in str(details.method) else self._unary


def _empty(_data: bytes) -> bytes:
    return b""


def _empty_unary(data: bytes, _context: object) -> bytes:
    return _empty(data)


def _empty_stream(messages: Iterator[bytes], _context: object) -> Iterator[bytes]:
    yield from map(_empty, messages)


async def _empty_unary_aio(data: bytes, _context: object) -> bytes:
    return _empty(data)


async def _empty_stream_aio(messages: AsyncIterator[bytes], _context: object) -> AsyncIterator[bytes]:
    async for data in messages:
        yield _empty(data)


def _serve_stock(threads: int) -> None:
    unary: Handler = grpc.unary_unary_rpc_method_handler(_empty_unary)
    handlers: list[grpc.GenericRpcHandler] = [_AnyMethod(unary, grpc.stream_stream_rpc_method_handler(_empty_stream))]
    server = grpc.server(ThreadPoolExecutor(threads), handlers=handlers, options=[("grpc.so_reuseport", 0)])
    port = server.add_insecure_port(ANYWHERE)
    server.start()
    _print_address(port)
    server.wait_for_termination()


def _serve_fast(methods: Mapping[str, Method], admission: AdmissionControl) -> None:
    tune_gc()
    _print_address(FastListener({NAME: methods}, admission, Settings()).start(ANYWHERE))
    signal.pause()


class _EmptyAnswerer:
    """Answers the messages of a stream (StreamAnswerer)."""

    def in_steps(self, data: bytes, /) -> Steps:
        return in_one_step(_empty, data)

    def at_once(self, data: bytes, /) -> bytes:
        return _empty(data)


ANYONE: Final = Origin("")


class _NoAdmissionControl:
    """Admits every call."""

    refusals = Admission(1, 1.0, "calls")

    def enter(self, _path: str, _peer: str, _metadata: object, _auth_context: object) -> Origin:
        return ANYONE

    def origin_without_key(self, _peer: str, _metadata: object) -> Origin:
        return ANYONE

    def leave(self, path: str, call: CallDetails) -> None:
        pass

    def timeout_delay(self, _origin: Origin) -> float:
        return 0.0

    def timed_out(self, _path: str, _call: CallDetails, _seconds: float) -> CallResult:
        return CallResult(code=grpc.StatusCode.DEADLINE_EXCEEDED)


class _BareStream:
    """A stream without an interceptor (StreamHandler)."""

    def at_once(self, data: bytes) -> bytes:
        return _empty(data)

    def start(self, _data: bytes, _on_response: object) -> Cancel:
        raise AssertionError

    def end(self) -> CallResult:
        return CallResult()

    def closed(self, result: CallResult, *, is_cancelled: bool) -> None:
        pass


def _serve_bare() -> None:
    unary = UnaryMethod(lambda data, _call: CallResult(_empty(data)))
    streaming = StreamMethod(lambda _call, _finish: _BareStream())
    _serve_fast({**dict.fromkeys(UNARIES, unary), STREAM: streaming}, _NoAdmissionControl())


def _serve_with_interceptor() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))  # the service's default
    settings = Settings()
    admission = CallAdmission(settings.max_calls, settings.peer_share)
    streams = Admission(settings.validation_streams, settings.peer_share, "streams")
    origins = Origins(None, TrustedProxies(()))
    slow_calls, most = SlowCalls(settings.peer_share), settings.max_message_bytes
    interceptor = FastInterceptor(Metrics(), slow_calls, origins, admission, streams, most)
    unaries = {name: interceptor.unary(f"/{NAME}/{name}", _empty, _empty) for name in UNARIES}
    _serve_fast({**unaries, STREAM: interceptor.stream(f"/{NAME}/{STREAM}", _EmptyAnswerer)}, interceptor)


async def _serve_aio() -> None:
    server = grpc.aio.server(options=server_options(Settings()))
    unary: Handler = grpc.unary_unary_rpc_method_handler(_empty_unary_aio)
    server.add_generic_rpc_handlers((_AnyMethod(unary, grpc.stream_stream_rpc_method_handler(_empty_stream_aio)),))
    port = server.add_insecure_port(ANYWHERE)
    await server.start()
    tune_gc()
    _print_address(port)
    await server.wait_for_termination()


def _print_address(port: int) -> None:
    sys.stdout.write(f"  gRPC     127.0.0.1:{port}\nStop with Ctrl-C.\n")
    sys.stdout.flush()


def main() -> int:
    """Serves until it is killed."""
    parser = argparse.ArgumentParser(description="Serve without doing any work.")
    parser.add_argument("kind", choices=NO_OPS, help="; ".join(f"{kind}: {name}" for kind, name in NO_OPS.items()))
    parser.add_argument(
        "--threads", type=int, default=STOCK_THREADS, help=f"threads of the stock server (default {STOCK_THREADS})"
    )
    chosen = parser.parse_args()
    match chosen.kind:
        case "stock":
            _serve_stock(chosen.threads)
        case "bare":
            _serve_bare()
        case "boundary":
            _serve_with_interceptor()
        case _:
            asyncio.run(_serve_aio())
    return 0


if __name__ == "__main__":
    sys.exit(main())
