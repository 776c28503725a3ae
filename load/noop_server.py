"""A server that does nothing: what a call costs before the service does any work.

It is grpc.aio's server with the options of ours, in a process of its own, without interceptors; it answers every method
with an empty message. `python -m load.noop_server` prints the port that it listens on.
"""

import asyncio
import sys
from typing import Final

import grpc
import grpc.aio

OPTIONS: Final = (
    ("grpc.max_receive_message_length", 262_144),
    ("grpc.max_metadata_size", 8_192),
    ("grpc.absolute_max_metadata_size", 16_384),
    ("grpc.max_concurrent_streams", 1_000),
    ("grpc.so_reuseport", 0),
    ("grpc.server.max_pending_requests", 20_000),
    ("grpc.server.max_pending_requests_hard_limit", 40_000),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
)
"""Those of service/server.py, with the defaults of its settings."""


class _Anything(grpc.GenericRpcHandler):
    """Answers every method."""

    def __init__(self) -> None:
        self._handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(_nothing)

    def service(self, _details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        return self._handler


async def _nothing(_data: bytes, _context: "grpc.aio.ServicerContext[bytes, bytes]") -> bytes:
    return b""


async def _serve() -> None:
    server = grpc.aio.server(options=OPTIONS)
    server.add_generic_rpc_handlers((_Anything(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(_serve())
