"""No-op servers of two kinds, to measure the cost of a call without its work.

`python -m load.bench.noop_server aio` answers every call, and every message of a stream, with an empty message. It
prints its address in the format of the service.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeAlias

import grpc
import grpc.aio

from service.grpc_api.server_options import server_options
from service.runtime.gc_tuning import tune_gc
from service.settings import Settings

STOCK: Final = "stock"
AIO: Final = "aio"
NO_OPS: Final = {
    STOCK: "no-op, stock grpc.server",
    AIO: "no-op, grpc.aio",
}
"""The kinds with their names in reports."""

STOCK_THREADS: Final = 10
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
        case _:
            asyncio.run(_serve_aio())
    return 0


if __name__ == "__main__":
    sys.exit(main())
