"""The interceptor of all calls: request ids, admission, log, metrics, and exceptions as statuses.

grpcio would send an exception's text to the client, and would answer malformed bytes with INTERNAL before the handler
runs. Therefore all handlers, including those of health and reflection, receive raw bytes and decode in here or below.
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
from service.runtime.admission import SERVER_METHODS, CallAdmission, peer_address

REQUEST_ID: Final = "x-request-id"

_REQUEST_ID_FORM: Final = re.compile(r"[!-~]{1,64}")
_FREQUENT: Final = ("/rummikub.v1.ValidationService/", "/grpc.health.v1.Health/")
NO_REQUEST: Final = "The method requires exactly one request message."
"""The message of other gRPC libraries for a call that ends without a request."""

_log = structlog.get_logger()

Context: TypeAlias = "ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
OptionalHandler: TypeAlias = "grpc.RpcMethodHandler[Any, Any] | None"
Deserializer: TypeAlias = Callable[[bytes], Any] | None


class _NoRequestError(Exception):
    """The call ended without a request."""


class CallInterceptor(ServerInterceptor):
    """Wraps every handler.

    Every method is served with a stream of requests, so that its handler starts when the headers arrive: calls are
    counted and rejected before their request arrives, and a late request times out.

    Args:
        metrics: Counts calls.
        stopping: Set when the server stops; new calls are then rejected, and those in progress continue.
        admission: Bounds the calls in progress.
        request_seconds: Timeout for the arrival of a call's request.
    """

    def __init__(
        self, metrics: Metrics, stopping: asyncio.Event, admission: CallAdmission, request_seconds: float
    ) -> None:
        self._metrics = metrics
        self._stopping = stopping
        self._admission = admission
        self._request_seconds = request_seconds
        self._handlers: dict[str, Handler] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._awaiting_request: dict[asyncio.Task[Any], float] = {}
        """The calls whose request has not arrived, with its timeout, in the order of the timeouts."""
        self._cancelled: dict[asyncio.Task[Any], Fault] = {}
        """The calls that this interceptor has cancelled, with the error to answer."""
        self._timer: asyncio.TimerHandle | None = None

    async def drained(self) -> None:
        """Returns when no call is in progress, apart from health and reflection."""
        await self._idle.wait()

    def cancel_pending_requests(self) -> None:
        """Rejects the calls whose request has not arrived."""
        for task in tuple(self._awaiting_request):
            self._cancel(task, ShuttingDown())

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[OptionalHandler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> OptionalHandler:
        """Returns the wrapped handler, which is made once for each method."""
        method = str(handler_call_details.method)
        wrapped = self._handlers.get(method)
        if wrapped is None:
            handler = await continuation(handler_call_details)
            if handler is None:
                return None  # grpcio answers UNIMPLEMENTED
            wrapped = self._handlers[method] = self._wrap(handler, method)
        return wrapped

    def _wrap(self, handler: Any, method: str) -> Handler:  # noqa: ANN401 - grpcio's is untyped
        wrapper = _HandlerWrapper(self, method, handler.request_deserializer)
        serializer = handler.response_serializer
        if handler.request_streaming and handler.response_streaming:
            stream = wrapper.stream_stream(handler.stream_stream)
            return grpc.stream_stream_rpc_method_handler(stream, response_serializer=serializer)
        if handler.response_streaming:
            stream = wrapper.unary_stream(handler.unary_stream)
            return grpc.stream_stream_rpc_method_handler(stream, response_serializer=serializer)
        unary: Any = wrapper.unary_unary(handler.unary_unary)
        return grpc.stream_unary_rpc_method_handler(unary, response_serializer=serializer)

    def enter(self, method: str, peer: str) -> None:
        """Admits a call. Raises ShuttingDown, Overloaded."""
        is_server_method = method.startswith(SERVER_METHODS)
        if self._stopping.is_set() and not is_server_method:
            raise ShuttingDown
        self._admission.enter(method, peer)
        if not is_server_method:
            self._idle.clear()

    def leave(self, method: str, peer: str) -> None:
        """Releases an admitted call."""
        self._admission.leave(method, peer)
        if not self._admission.calls.total:
            self._idle.set()

    async def request(self, context: Context) -> bytes:
        """Returns the one request of a call. Raises RequestTimedOut, ShuttingDown, _NoRequestError."""
        task = asyncio.current_task()
        assert task is not None, "a handler runs in a task"  # noqa: S101 - for the type
        loop = asyncio.get_running_loop()
        self._awaiting_request[task] = loop.time() + self._request_seconds
        if self._timer is None:
            self._timer = loop.call_later(self._request_seconds, self._time_out_late_calls)
        try:
            data = await context.read()
        except asyncio.CancelledError:
            error = self._cancelled.pop(task, None)
            if error is None:
                raise
            task.uncancel()
            raise error from None
        finally:
            self._awaiting_request.pop(task, None)
        if data is grpc.aio.EOF:
            raise _NoRequestError
        return cast("bytes", data)

    def _time_out_late_calls(self) -> None:
        """Times out the calls whose request is late, and sets the timer for the next timeout."""
        self._timer = None
        loop = asyncio.get_running_loop()
        for task, timeout in tuple(self._awaiting_request.items()):
            if timeout > loop.time():
                self._timer = loop.call_at(timeout, self._time_out_late_calls)
                return
            self._cancel(task, RequestTimedOut())

    def _cancel(self, task: "asyncio.Task[Any]", error: Fault) -> None:
        del self._awaiting_request[task]
        self._cancelled[task] = error
        task.cancel()

    def record(self, method: str, request_id: str, code: str, reason: str, seconds: float) -> None:
        """Logs and counts a finished call. Nothing of the request's content is logged."""
        self._metrics.call(method, code, seconds)
        log_call(method, request_id, code, reason, seconds)


@cache
def _bound_log() -> Any:  # noqa: ANN401 - structlog's are untyped
    """Returns the bound logger, once logging is configured: an unbound one reads the configuration for each line."""
    return _log.bind()


def log_call(method: str, request_id: str, code: str, reason: str, seconds: float) -> None:
    """Logs a finished call. Successful calls of ValidationService are frequent and have level debug."""
    logger = _bound_log()
    log = logger.debug if code == "OK" and method.startswith(_FREQUENT) else logger.info
    fields = {"reason": reason} if reason else {}
    log("call", method=method, code=code, request_id=request_id, ms=round(seconds * 1000, 3), **fields)


class _HandlerWrapper:
    """Wraps the handlers of one method."""

    def __init__(self, interceptor: CallInterceptor, method: str, deserializer: Deserializer) -> None:
        self._interceptor = interceptor
        self._method = method
        self._deserializer = deserializer

    def unary_unary(self, behavior: Callable[[Any, Context], Awaitable[Any]]) -> Callable[[Any, Context], Any]:
        async def handle(_requests: object, context: Context) -> Any:  # noqa: ANN401 - any message or its bytes
            call = _Call(self._interceptor, self._method, context)
            try:
                call.enter()
                response = await behavior(self._decoded(await self._interceptor.request(context)), context)
                call.succeed()
            except BaseException as error:
                await call.fail(error)
                raise
            return response

        return handle

    def unary_stream(self, behavior: Callable[[Any, Context], Any]) -> Callable[[Any, Context], Any]:
        if not inspect.isasyncgenfunction(behavior):
            return self.unary_unary(behavior)  # it writes to the context

        async def handle(_requests: object, context: Context) -> AsyncIterator[Any]:
            async with _Call(self._interceptor, self._method, context):
                data = await self._interceptor.request(context)
                async with aclosing(behavior(self._decoded(data), context)) as responses:
                    async for response in responses:
                        yield response

        return handle

    def stream_stream(self, behavior: Callable[[Any, Context], Any]) -> Callable[[AsyncIterator[bytes], Context], Any]:
        async def handle(stream: AsyncIterator[bytes], context: Context) -> AsyncIterator[Any]:
            async with (
                _Call(self._interceptor, self._method, context),
                aclosing(behavior(self._decoded_stream(stream), context)) as responses,
            ):
                async for response in responses:
                    yield response

        return handle

    async def _decoded_stream(self, stream: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        """Yields the decoded requests.

        A generator expression would open the stream at once, and grpcio warns about an opened stream that is not read.
        """
        async for data in stream:
            yield self._decoded(data)

    def _decoded(self, data: bytes) -> Any:  # noqa: ANN401 - a message, or bytes if the handler has no deserializer
        if self._deserializer is None:
            return data
        try:
            return self._deserializer(data)
        except DecodeError:
            raise MalformedRequest from None


class _Call:
    """A call: turns its exception into a status, then records it.

    Streams use it as a context manager; for unary calls that would cost more than the work it does.
    """

    def __init__(self, interceptor: CallInterceptor, method: str, context: Context) -> None:
        self._interceptor = interceptor
        self._method = method
        self._context = context
        self._peer = peer_address(context.peer())
        self._request_id = _request_id(context)
        self._started = time.perf_counter()
        self._is_admitted = False

    def enter(self) -> None:
        """Admits the call. Raises Fault."""
        self._interceptor.enter(self._method, self._peer)
        self._is_admitted = True

    async def __aenter__(self) -> None:
        try:
            self.enter()
        except Fault as error:
            await self._abort(error)

    async def __aexit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if error is None:
            self.succeed()
        else:
            await self.fail(error)

    def succeed(self) -> None:
        """Records a successful call."""
        self._context.set_trailing_metadata(((REQUEST_ID, self._request_id),))
        self._record("OK")
        self._leave()

    async def fail(self, error: BaseException) -> None:
        """Records a failed call, and aborts it with the exception's status unless it is over already."""
        try:
            match error:
                case AbortError():
                    self._record(_code_name(self._context))
                case InternalError():
                    self._record("CANCELLED")
                    raise _client_disconnected() from None
                case GeneratorExit():
                    self._record("CANCELLED")
                case asyncio.CancelledError() if _is_task_cancelled():
                    self._record("CANCELLED")
                case _NoRequestError():
                    await self._abort_with(grpc.StatusCode.UNIMPLEMENTED, NO_REQUEST)
                case asyncio.CancelledError():
                    fault = RuntimeError("an operation that the call awaited was cancelled")
                    await self._abort(fault.with_traceback(error.__traceback__))
                case Exception():
                    await self._abort(error)
                case _:
                    pass
        finally:
            self._leave()

    def _leave(self) -> None:
        if self._is_admitted:
            self._interceptor.leave(self._method, self._peer)

    async def _abort(self, error: Exception) -> None:
        status = status_of(error)
        if not isinstance(error, Fault):
            _log.exception("fault", method=self._method, request_id=self._request_id, exc_info=error)
        await self._abort_with(status.code, status.message, status.reason, status.trailing_metadata())

    async def _abort_with(
        self, code: grpc.StatusCode, message: str, reason: str = "", trailing: tuple[tuple[str, str | bytes], ...] = ()
    ) -> None:
        self._record(code.name, reason)
        try:
            await self._context.abort(code, message, (*trailing, (REQUEST_ID, self._request_id)))
        except InternalError:
            raise _client_disconnected() from None

    def _record(self, code: str, reason: str = "") -> None:
        seconds = time.perf_counter() - self._started
        self._interceptor.record(self._method, self._request_id, code, reason, seconds)


def _client_disconnected() -> asyncio.CancelledError:
    """Returns the exception that ends a call without a client; grpcio would log its own InternalError as a fault."""
    return asyncio.CancelledError()


def _is_task_cancelled() -> bool:
    """Returns whether the call's task was cancelled, by the client or the server, and not just something it awaited."""
    task = asyncio.current_task()
    return task is not None and bool(task.cancelling())


def _code_name(context: Context) -> str:
    """Returns the name of the code that a call was aborted with."""
    code = context.code()
    return code.name if isinstance(code, grpc.StatusCode) else str(code)


def _request_id(context: Context) -> str:
    """Returns the client's request id, else a new one."""
    return sent_request_id(context.invocation_metadata()) or secrets.token_hex(8)


def sent_request_id(metadata: Iterable[tuple[str, str | bytes]] | None) -> str:
    """Returns the x-request-id of a call if it is valid, else ""."""
    for key, value in metadata or ():
        if key == REQUEST_ID and isinstance(value, str) and _REQUEST_ID_FORM.fullmatch(value):
            return value
    return ""
