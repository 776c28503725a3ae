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

from service.errors import status_of
from service.faults import Fault, MalformedRequest, Overloaded, ShuttingDown
from service.metrics import Metrics

REQUEST_ID: Final = "x-request-id"
DETAILS: Final = "grpc-status-details-bin"

_REQUEST_ID_FORM: Final = re.compile(r"[!-~]{1,64}")
_VERY_OFTEN: Final = "/rummikub.v1.ValidationService/"
_OF_THE_SERVER: Final = ("/grpc.health.v1.Health/", "/grpc.reflection.")
"""Methods about the server itself: they are answered at any time, and nobody waits for their streams to end."""

_log = structlog.get_logger()

Context: TypeAlias = "ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
OptionalHandler: TypeAlias = "grpc.RpcMethodHandler[Any, Any] | None"
Deserializer = Callable[[bytes], Any] | None


class Boundary(ServerInterceptor):
    """Wraps every handler.

    Args:
        metrics: Counts calls.
        stopping: Set when the server stops: new calls are refused then, those under way go on.
        max_calls: Most calls under way at once; more are refused.
    """

    def __init__(self, metrics: Metrics, stopping: asyncio.Event, max_calls: int) -> None:
        self._metrics = metrics
        self._stopping = stopping
        self._max_calls = max_calls
        self._handlers: dict[str, Handler] = {}
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def drained(self) -> None:
        """Returns when no call is under way, but for health and reflection."""
        await self._idle.wait()

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
            wrapped = grpc.unary_stream_rpc_method_handler(call.unary_stream(handler.unary_stream))
        else:
            wrapped = grpc.unary_unary_rpc_method_handler(call.unary_unary(handler.unary_unary))
        return cast("Handler", wrapped._replace(response_serializer=handler.response_serializer))

    def begin(self, method: str) -> None:
        """Counts a call in. Raises ShuttingDown, Overloaded."""
        if method.startswith(_OF_THE_SERVER):
            return
        if self._stopping.is_set():
            raise ShuttingDown
        if self._under_way >= self._max_calls:
            raise Overloaded
        self._under_way += 1
        self._idle.clear()

    def end(self, method: str) -> None:
        """Counts a call out."""
        if method.startswith(_OF_THE_SERVER):
            return
        self._under_way -= 1
        if not self._under_way:
            self._idle.set()

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

    def unary_unary(self, behavior: Callable[[Any, Context], Awaitable[Any]]) -> Callable[[bytes, Context], Any]:
        async def handle(data: bytes, context: Context) -> Any:  # noqa: ANN401 - any message or its bytes
            observed = _Observed(self._boundary, self._method, context)
            try:
                observed.begin()
                answer = await behavior(self._decoded(data), context)
                observed.end_well()
            except BaseException as error:
                await observed.end_badly(error)
                raise
            return answer

        return handle

    def unary_stream(self, behavior: Callable[[Any, Context], Any]) -> Callable[[bytes, Context], Any]:
        if not inspect.isasyncgenfunction(behavior):
            return self.unary_unary(behavior)  # it writes by itself

        async def handle(data: bytes, context: Context) -> AsyncIterator[Any]:
            async with (
                _Observed(self._boundary, self._method, context),
                aclosing(behavior(self._decoded(data), context)) as answers,
            ):
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
        self._request_id = _request_id(context)
        self._started = time.perf_counter()
        self._begun = False

    def begin(self) -> None:
        """Counts the call in. Raises Fault."""
        self._boundary.begin(self._method)
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
            self._boundary.end(self._method)

    async def _abort(self, error: Exception) -> None:
        status = status_of(error)
        if not isinstance(error, Fault):
            _log.exception("fault", method=self._method, request_id=self._request_id, exc_info=error)
        self._tell(status.code.name, status.reason)
        trailing = ((DETAILS, status.serialize()), (REQUEST_ID, self._request_id))
        try:
            await self._context.abort(status.code, status.message, trailing)
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
