"""A grpc.aio server with one accept loop per registered method.

grpc.aio accepts all calls in one loop, which decodes the method's path as UTF-8. One request with another path raises
UnicodeDecodeError there and ends the whole server. Here the core matches paths as bytes, and calls of unknown methods
are answered without looking at their path.

Private parts of grpcio's `cygrpc` that this relies on:

* `AioServer._make_request_call_future(method)` is called once for each registered method when serving begins, and once
  with None for all other methods. It returns an awaitable for the next call. One that never completes blocks grpcio's
  own loop; one that fails while the server stops ends it.
* `_request_registered_call` and `_request_call` await the next call.
* `_handle_rpc` runs a call with the handler that `resolve_handler` of its second argument returns.
  `_schedule_rpc_coro` cancels that when the client cancels.

The hook `_make_request_call_future` exists since early 2026, and grpcio plans to replace it with a persistent loop and
another constructor argument. Therefore only releases in `grpcio_version.TESTED` get this server.

Once a grpcio release accepts paths that are not UTF-8: delete this module and its tests, and call grpc.aio.server in
`listener`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import grpc
import grpc.aio
import structlog
from grpc._cython import cygrpc
from grpc.aio import ServerInterceptor
from grpc.aio import _server as grpc_aio

from service.grpc_api.grpcio_version import INSTALLED, TESTED, is_tested

Handlers: TypeAlias = Mapping[str, "grpc.RpcMethodHandler[Any, Any]"]
Options: TypeAlias = Sequence[tuple[str, int]]

_log = structlog.get_logger()


def aio_server(
    interceptors: Sequence[ServerInterceptor], options: Options, grpcio: str = INSTALLED
) -> "grpc.aio.Server":
    """Returns an AcceptLoopServer on tested releases of grpcio, else a plain grpc.aio server and a warning in the log.

    Args:
        interceptors: Run around every call of a registered method.
        options: Options of gRPC's core.
        grpcio: The release of grpcio.
    """
    if is_tested(grpcio):
        return cast("grpc.aio.Server", AcceptLoopServer(interceptors, options))
    _log.warning(
        "grpcio release not tested: using grpc.aio.server, which a path that is not UTF-8 may end",
        grpcio=grpcio,
        tested=TESTED,
    )
    return grpc.aio.server(interceptors=tuple(interceptors), options=tuple(options))


class AcceptLoopServer(grpc_aio.Server):
    """The server. It serves registered methods only.

    Args:
        interceptors: Run around every call of a registered method.
        options: Options of gRPC's core.
    """

    def __init__(self, interceptors: Sequence[ServerInterceptor], options: Options) -> None:
        self._loop = cygrpc.get_working_loop()
        self._core = self._server = _AcceptLoops(self._loop, tuple(interceptors), tuple(options))

    @property
    def accept_loops(self) -> int:
        """The number of accept loops that have started: one for each method, and one for unknown methods."""
        return self._core.started


class _AcceptLoops(cygrpc.AioServer):  # type: ignore[misc]  # grpcio's is untyped
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        interceptors: tuple[ServerInterceptor, ...],
        options: tuple[tuple[str, int], ...],
    ) -> None:
        super().__init__(loop, None, (), interceptors, options, None)
        self._event_loop = loop
        self._call_interceptors = interceptors
        self._methods = _Methods()
        self._calls: set[asyncio.Task[None]] = set()
        self.started = 0

    def add_registered_method_handlers(self, handlers: Handlers) -> None:
        super().add_registered_method_handlers(handlers)
        self._methods.handlers |= handlers

    def _make_request_call_future(self, method: bytes | None) -> asyncio.Task[None]:
        self.started += 1
        return self._event_loop.create_task(self._accept(method) if method else self._accept_unknown())

    async def _accept(self, method: bytes) -> None:
        name = method.decode()
        while True:
            self._run(await self._request_registered_call(method), name, self._call_interceptors)

    async def _accept_unknown(self) -> None:
        while True:
            self._run(await self._request_call(), "", ())

    def _run(self, call: object, method: str, interceptors: tuple[ServerInterceptor, ...]) -> None:
        rpc = cygrpc._handle_rpc(method, self._methods, interceptors, call, self._event_loop, False)  # noqa: FBT003, SLF001 - no concurrency limit
        task = self._event_loop.create_task(cygrpc._schedule_rpc_coro(rpc, call, self._event_loop, method))  # noqa: SLF001
        self._calls.add(task)  # the event loop holds weak references only
        task.add_done_callback(self._calls.discard)


class _Methods:
    """The registered handlers by path."""

    def __init__(self) -> None:
        self.handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}

    def resolve_handler(self, call: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any] | None":
        """Returns the handler of a call; None if the method is unknown."""
        return self.handlers.get(call.method)
