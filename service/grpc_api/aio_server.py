"""grpcio's asynchronous server, but that the calls of each method are taken by themselves.

grpcio takes all calls in one loop, which reads the name of the method that is called as text, and ends the whole server
at a name that is none: one request of anybody would do. Here the core finds the method by its bytes, and all calls of
methods that nobody serves are answered without their names.

What is relied upon is grpcio's `cygrpc`, which is not public (grpcio is pinned):

* `AioServer._make_request_call_future` is asked once, when serving begins, for the next call of each registered method,
  and with None for that of all others. What it answers is waited for; one that never comes keeps the loop waiting, and
  one that fails as the server stops ends it.
* `_handle_rpc` answers a call, with the handler that `resolve_handler` of what it is given finds;
  `_schedule_rpc_coro` has it do so, and ends it with its client.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import grpc
import grpc.aio
from grpc._cython import cygrpc
from grpc.aio import ServerInterceptor
from grpc.aio import _server as grpcio

Handlers = Mapping[str, "grpc.RpcMethodHandler[Any, Any]"]


class AsynchronousServer(grpcio.Server):
    """The server. It serves registered methods only.

    Args:
        interceptors: Around every call of a registered method.
        options: Of grpcio's core.
    """

    def __init__(self, interceptors: Sequence[ServerInterceptor], options: Sequence[tuple[str, int]]) -> None:
        self._loop = cygrpc.get_working_loop()
        self._server = _TakingServer(self._loop, tuple(interceptors), tuple(options))


class _TakingServer(cygrpc.AioServer):  # type: ignore[misc]  # grpcio's is untyped
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        interceptors: tuple[ServerInterceptor, ...],
        options: tuple[tuple[str, int], ...],
    ) -> None:
        super().__init__(loop, None, (), interceptors, options, None)
        self._runs_on = loop
        self._around = interceptors
        self._methods = _Methods()
        self._calls: set[asyncio.Task[None]] = set()

    def add_registered_method_handlers(self, handlers: Handlers) -> None:
        super().add_registered_method_handlers(handlers)
        self._methods.handlers |= handlers

    def _make_request_call_future(self, method: bytes | None) -> asyncio.Task[None]:
        return self._runs_on.create_task(self._take_known(method) if method else self._take_unknown())

    async def _take_known(self, method: bytes) -> None:
        name = method.decode()
        while True:
            self._answer(await self._request_registered_call(method), name, self._around)

    async def _take_unknown(self) -> None:
        while True:
            self._answer(await self._request_call(), "", ())

    def _answer(self, call: object, method: str, around: tuple[ServerInterceptor, ...]) -> None:
        answering = cygrpc._handle_rpc(method, self._methods, around, call, self._runs_on, False)  # noqa: FBT003, SLF001 - no limit
        task = self._runs_on.create_task(cygrpc._schedule_rpc_coro(answering, call, self._runs_on, method))  # noqa: SLF001
        self._calls.add(task)  # the loop alone would let it go
        task.add_done_callback(self._calls.discard)


class _Methods:
    """The methods that are served, by their paths."""

    def __init__(self) -> None:
        self.handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}

    def resolve_handler(self, call: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any] | None":
        """What serves a call; None if nothing does."""
        return self.handlers.get(call.method)
