"""The boundary of every call: request id, log, metrics, and every exception turned into a status.

grpcio would answer an exception with its text, and malformed bytes with INTERNAL before the handler runs; so all
handlers, those of health and reflection too, get raw bytes, and decode in here or below.
"""

import asyncio
import inspect
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing
from functools import cache
from typing import Any, Final, TypeAlias, cast

import grpc
import structlog
from google.protobuf.message import DecodeError
from grpc.aio import AbortError, InternalError, ServerInterceptor, ServicerContext

from service.errors import Fault, MalformedRequest, RequestTimedOut, ShuttingDown
from service.grpc_api.status import status_of
from service.metrics.metrics import Metrics
from service.runtime.admission import SERVER_METHODS, CallRoom, peer_address

REQUEST_ID: Final = "x-request-id"
DETAILS: Final = "grpc-status-details-bin"

_REQUEST_ID_FORM: Final = re.compile(r"[!-~]{1,64}")
_VERY_OFTEN: Final = "/rummikub.v1.ValidationService/"
NO_REQUEST: Final = "The method requires exactly one request message."
"""What gRPC libraries answer to a call that ends without a request."""

_log = structlog.get_logger()

Context: TypeAlias = "ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
OptionalHandler: TypeAlias = "grpc.RpcMethodHandler[Any, Any] | None"
Deserializer = Callable[[bytes], Any] | None


class _NoRequestError(Exception):
    """The call has ended without a request."""


class Boundary(ServerInterceptor):
    """Wraps every handler.

    Every method is served as one with a stream of requests, so that a handler runs from a call's headers on: calls are
    counted, and refused, before their request arrives, and a request that does not arrive is not waited for forever.

    Args:
        metrics: Counts calls.
        stopping: Set when the server stops: new calls are refused then, those under way go on.
        room: Where calls are counted.
        request_seconds: How long the request of a call may take to arrive.
    """

    def __init__(self, metrics: Metrics, stopping: asyncio.Event, room: CallRoom, request_seconds: float) -> None:
        self._metrics = metrics
        self._stopping = stopping
        self._room = room
        self._request_seconds = request_seconds
        self._handlers: dict[str, Handler] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._expected: dict[asyncio.Task[Any], float] = {}
        """Calls whose request has not arrived, with the time when it must have, in the order of these times."""
        self._given_up: dict[asyncio.Task[Any], Fault] = {}
        """Calls whose request is no longer waited for, and why."""
        self._timer: asyncio.TimerHandle | None = None

    async def drained(self) -> None:
        """Returns when no call is under way, but for health and reflection."""
        await self._idle.wait()

    def stop_expecting(self) -> None:
        """Refuses the calls whose request has not arrived."""
        for task in tuple(self._expected):
            self._give_up(task, ShuttingDown())

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[OptionalHandler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> OptionalHandler:
        """The handler, wrapped once a method."""
        method = str(handler_call_details.method)
        wrapped = self._handlers.get(method)
        if wrapped is None:
            handler = await continuation(handler_call_details)
            if handler is None:
                return None  # grpcio answers UNIMPLEMENTED
            wrapped = self._handlers[method] = self._wrap(handler, method)
        return wrapped

    def _wrap(self, handler: Any, method: str) -> Handler:  # noqa: ANN401 - grpcio's is untyped
        call = _Call(self, method, handler.request_deserializer)
        wrapped: Any
        if handler.request_streaming and handler.response_streaming:
            wrapped = grpc.stream_stream_rpc_method_handler(call.stream_stream(handler.stream_stream))
        elif handler.response_streaming:
            wrapped = grpc.stream_stream_rpc_method_handler(call.unary_stream(handler.unary_stream))
        else:
            wrapped = grpc.stream_unary_rpc_method_handler(call.unary_unary(handler.unary_unary))
        return cast("Handler", wrapped._replace(response_serializer=handler.response_serializer))

    def begin(self, method: str, peer: str) -> None:
        """Counts a call in. Raises ShuttingDown, Overloaded."""
        is_about_server = method.startswith(SERVER_METHODS)
        if self._stopping.is_set() and not is_about_server:
            raise ShuttingDown
        self._room.enter(method, peer)
        if not is_about_server:
            self._idle.clear()

    def end(self, method: str, peer: str) -> None:
        """Counts a call out."""
        self._room.leave(method, peer)
        if not self._room.calls.total:
            self._idle.set()

    async def request(self, context: Context) -> bytes:
        """Returns the one request of a call. Raises RequestTimedOut, ShuttingDown, _NoRequestError."""
        task = asyncio.current_task()
        assert task is not None, "a handler runs in a task"  # noqa: S101 - for the type
        loop = asyncio.get_running_loop()
        self._expected[task] = loop.time() + self._request_seconds
        if self._timer is None:
            self._timer = loop.call_later(self._request_seconds, self._look_for_late)
        try:
            data = await context.read()
        except asyncio.CancelledError:
            why = self._given_up.pop(task, None)
            if why is None:
                raise
            task.uncancel()
            raise why from None
        finally:
            self._expected.pop(task, None)
        if data is grpc.aio.EOF:
            raise _NoRequestError
        return cast("bytes", data)

    def _look_for_late(self) -> None:
        """Gives up requests that have not arrived in time, and looks again when the next one must have."""
        self._timer = None
        loop = asyncio.get_running_loop()
        for task, until in tuple(self._expected.items()):
            if until > loop.time():
                self._timer = loop.call_at(until, self._look_for_late)
                return
            self._give_up(task, RequestTimedOut())

    def _give_up(self, task: "asyncio.Task[Any]", why: Fault) -> None:
        del self._expected[task]
        self._given_up[task] = why
        task.cancel()

    def told(self, method: str, request_id: str, code: str, reason: str, seconds: float) -> None:
        """Logs and counts a finished call. Nothing of the request's content is logged."""
        self._metrics.call(method, code, seconds)
        log_call(method, request_id, code, reason, seconds)


@cache
def _calls() -> Any:  # noqa: ANN401 - structlog's are untyped
    """The log, bound when the first call ends: an unbound one looks its configuration up for every line."""
    return _log.bind()


def log_call(method: str, request_id: str, code: str, reason: str, seconds: float) -> None:
    """Logs a finished call. Good ones of a service that is called at every drag of a tile are for level debug."""
    calls = _calls()
    log = calls.debug if code == "OK" and method.startswith(_VERY_OFTEN) else calls.info
    told = {"reason": reason} if reason else {}
    log("call", method=method, code=code, request_id=request_id, ms=round(seconds * 1000, 3), **told)


class _Call:
    """Makes the wrapped handlers of one method."""

    def __init__(self, boundary: Boundary, method: str, deserializer: Deserializer) -> None:
        self._boundary = boundary
        self._method = method
        self._deserializer = deserializer

    def unary_unary(self, behavior: Callable[[Any, Context], Awaitable[Any]]) -> Callable[[Any, Context], Any]:
        async def handle(_requests: object, context: Context) -> Any:  # noqa: ANN401 - any message or its bytes
            observed = _Observed(self._boundary, self._method, context)
            try:
                observed.begin()
                answer = await behavior(self._decoded(await self._boundary.request(context)), context)
                observed.end_well()
            except BaseException as error:
                await observed.end_badly(error)
                raise
            return answer

        return handle

    def unary_stream(self, behavior: Callable[[Any, Context], Any]) -> Callable[[Any, Context], Any]:
        if not inspect.isasyncgenfunction(behavior):
            return self.unary_unary(behavior)  # it writes by itself

        async def handle(_requests: object, context: Context) -> AsyncIterator[Any]:
            async with _Observed(self._boundary, self._method, context):
                data = await self._boundary.request(context)
                async with aclosing(behavior(self._decoded(data), context)) as answers:
                    async for answer in answers:
                        yield answer

        return handle

    def stream_stream(self, behavior: Callable[[Any, Context], Any]) -> Callable[[AsyncIterator[bytes], Context], Any]:
        async def handle(stream: AsyncIterator[bytes], context: Context) -> AsyncIterator[Any]:
            async with _Observed(self._boundary, self._method, context):
                requests = (self._decoded(data) async for data in stream)  # grpcio warns where nobody reads it
                async with aclosing(behavior(requests, context)) as answers:
                    async for answer in answers:
                        yield answer

        return handle

    def _decoded(self, data: bytes) -> Any:  # noqa: ANN401 - bytes, or a message where the handler wants one
        if self._deserializer is None:
            return data
        try:
            return self._deserializer(data)
        except DecodeError:
            raise MalformedRequest from None


class _Observed:
    """Around a call: what it raises becomes a status; when it is done it is told.

    A context manager for streams; for other calls that would cost more than what it does.
    """

    def __init__(self, boundary: Boundary, method: str, context: Context) -> None:
        self._boundary = boundary
        self._method = method
        self._context = context
        self._peer = peer_address(context.peer())
        self._request_id = _request_id(context)
        self._started = time.perf_counter()
        self._begun = False

    def begin(self) -> None:
        """Counts the call in. Raises Fault."""
        self._boundary.begin(self._method, self._peer)
        self._begun = True

    async def __aenter__(self) -> None:
        try:
            self.begin()
        except Fault as error:
            await self._abort(error)

    async def __aexit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if error is None:
            self.end_well()
        else:
            await self.end_badly(error)

    def end_well(self) -> None:
        """The call has answered."""
        self._context.set_trailing_metadata(((REQUEST_ID, self._request_id),))
        self._tell("OK")
        self._end()

    async def end_badly(self, error: BaseException) -> None:
        """The call has raised: aborts it with the status of that, unless its end needs none."""
        try:
            match error:
                case AbortError():
                    self._tell(_code_name(self._context))
                case InternalError():
                    self._tell("CANCELLED")
                    raise _client_is_gone() from None
                case GeneratorExit():
                    self._tell("CANCELLED")
                case asyncio.CancelledError() if _is_given_up():
                    self._tell("CANCELLED")
                case _NoRequestError():
                    await self._refuse(grpc.StatusCode.UNIMPLEMENTED, NO_REQUEST)
                case asyncio.CancelledError():
                    unasked = RuntimeError("what the call waited for was cancelled")
                    await self._abort(unasked.with_traceback(error.__traceback__))
                case Exception():
                    await self._abort(error)
                case _:
                    pass
        finally:
            self._end()

    def _end(self) -> None:
        if self._begun:
            self._boundary.end(self._method, self._peer)

    async def _abort(self, error: Exception) -> None:
        status = status_of(error)
        if not isinstance(error, Fault):
            _log.exception("fault", method=self._method, request_id=self._request_id, exc_info=error)
        await self._refuse(status.code, status.message, status.reason, ((DETAILS, status.serialize()),))

    async def _refuse(
        self, code: grpc.StatusCode, message: str, reason: str = "", trailing: tuple[tuple[str, bytes], ...] = ()
    ) -> None:
        self._tell(code.name, reason)
        try:
            await self._context.abort(code, message, (*trailing, (REQUEST_ID, self._request_id)))
        except InternalError:
            raise _client_is_gone() from None

    def _tell(self, code: str, reason: str = "") -> None:
        seconds = time.perf_counter() - self._started
        self._boundary.told(self._method, self._request_id, code, reason, seconds)


def _client_is_gone() -> asyncio.CancelledError:
    """What ends a call that cannot be answered any more: grpcio would log its own error as a fault."""
    return asyncio.CancelledError()


def _is_given_up() -> bool:
    """Whether the call itself is cancelled, by its caller or the server's end, and not something that it waited for."""
    task = asyncio.current_task()
    return task is not None and bool(task.cancelling())


def _code_name(context: Context) -> str:
    """The name of the code that a call was aborted with."""
    code = context.code()
    return code.name if isinstance(code, grpc.StatusCode) else str(code)


def _request_id(context: Context) -> str:
    """The caller's request id, else a new one."""
    return sent_request_id(context.invocation_metadata()) or secrets.token_hex(8)


def sent_request_id(metadata: Iterable[tuple[str, str | bytes]] | None) -> str:
    """The x-request-id of a call if it is of its form, else ""."""
    for key, value in metadata or ():
        if key == REQUEST_ID and isinstance(value, str) and _REQUEST_ID_FORM.fullmatch(value):
            return value
    return ""
