"""A server that does nothing: what a call costs before the service does any work.

It is grpc.aio's server with the options of ours, in a process of its own, without interceptors; it answers every method
with an empty message. `python -m load.noop_server` prints the port that it listens on.
"""

import asyncio
import sys

import grpc
import grpc.aio

from service.listener import options
from service.settings import Settings


class _Anything(grpc.GenericRpcHandler):
    """Answers every method."""

    def __init__(self) -> None:
        self._handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(_nothing)

    def service(self, _details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        return self._handler


async def _nothing(_data: bytes, _context: "grpc.aio.ServicerContext[bytes, bytes]") -> bytes:
    return b""


async def _serve() -> None:
    server = grpc.aio.server(options=options(Settings()))
    server.add_generic_rpc_handlers((_Anything(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(_serve())
