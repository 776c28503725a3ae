"""A server that does nothing, on grpcio's stock synchronous server: the baseline of a load test's validation calls.

`python -m load.baseline_server` answers every call with an empty message, every message of a stream with another one,
and prints where it listens, in the words of the service.
"""

import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import grpc

THREADS: Final = 64
"""More than users, since a stream keeps one busy."""


class _Anything(grpc.GenericRpcHandler):
    """Answers every method; those called Stream... message by message."""

    def __init__(self) -> None:
        self._unary: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(
            lambda _data, _context: b""
        )
        self._stream: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(_nothing_each)

    def service(self, details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        return self._stream if "/Stream" in details.method else self._unary


def _nothing_each(messages: Iterator[bytes], _context: grpc.ServicerContext) -> Iterator[bytes]:
    for _ in messages:
        yield b""


def main() -> int:
    """Serves until SIGTERM or SIGINT."""
    server = grpc.server(ThreadPoolExecutor(THREADS), handlers=[_Anything()], options=[("grpc.so_reuseport", 0)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    signal.signal(signal.SIGTERM, lambda _number, _frame: server.stop(None))
    sys.stdout.write(f"  gRPC     127.0.0.1:{port}\nStop with Ctrl-C.\n")
    sys.stdout.flush()
    server.wait_for_termination()
    return 0


if __name__ == "__main__":
    sys.exit(main())
