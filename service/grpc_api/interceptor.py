"""The interceptor of all calls: request ids, admission, log, metrics, and exceptions as statuses.

grpcio would send an exception's text to the client, and would answer malformed bytes with INTERNAL before the handler
runs. Therefore all handlers, including those of health and reflection, receive raw bytes and decode in here or below.
"""

import asyncio
import contextlib
import inspect
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing
from functools import cache, partial
from typing import Any, Final, TypeAlias

import grpc
import structlog
from google.protobuf.message import DecodeError
from grpc.aio import AbortError, InternalError, ServerInterceptor, ServicerContext

from service.errors import Fault, MalformedRequest, RequestTooLarge, ShuttingDown, TooManyDrafts, TooManyElements
from service.grpc_api.call_origin import Origins, set_current_origin
from service.grpc_api.request_arrival import NO_REQUEST, NoRequestError, RequestArrival, seconds_left
from service.grpc_api.status import status_of
from service.metrics.metrics import LIMITS, Metrics
from service.runtime.admission import SERVER_METHODS, CallAdmission
from service.runtime.cancellation import is_task_cancelled
from service.runtime.origins import Origin
from service.runtime.refusal_pace import DRAFT_REFUSALS_PER_SECOND, LATE_PER_SECOND, PER_SECOND, RefusalPace
from service.runtime.tracing import Tracing
from service.settings import Settings

REQUEST_ID: Final = "x-request-id"

_REQUEST_ID_FORM: Final = re.compile(r"[!-~]{1,64}")
_FREQUENT: Final = ("/rummikub.v1.ValidationService/", "/grpc.health.v1.Health/")

PACED: Final = LIMITS - {"REQUEST_TIMED_OUT"}
"""The reasons of refusals that are paced. Calls with late requests have a pace of their own."""
PACED_FAULTS: Final = (TooManyElements, RequestTooLarge)
"""Faults whose refusals are paced too: a request of 300 bytes that unpacks to 260 KB costs a millisecond to refuse."""

_log = structlog.get_logger()

Context: TypeAlias = "ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
OptionalHandler: TypeAlias = "grpc.RpcMethodHandler[Any, Any] | None"
Deserializer: TypeAlias = Callable[[bytes], Any] | None


class CallInterceptor(ServerInterceptor):
    """Wraps every handler.

    Every method is served with a stream of requests, so that its handler starts when the headers arrive: calls are
    counted and rejected before their request arrives, and a late request times out.

    Args:
        metrics: Counts calls.
        stopping: Set when the server stops; new calls are then rejected, and those in progress continue.
        origins: Finds where calls come from, and rejects those without a valid key.
        admission: Bounds the calls in progress.
        settings: The timeout for the arrival of a call's request, and its largest size.
        tracing: Makes a span of each call, apart from health and reflection; None if tracing is off.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - made in one place
        self,
        metrics: Metrics,
        stopping: asyncio.Event,
        origins: Origins,
        admission: CallAdmission,
        settings: Settings,
        tracing: Tracing | None = None,
    ) -> None:
        self._metrics = metrics
        self._stopping = stopping
        self._origins = origins
        self._admission = admission
        self._tracing = tracing
        self._refusal_pace = RefusalPace(admission.calls.is_bounded, PER_SECOND)
        self._draft_refusal_pace = RefusalPace(admission.calls.is_bounded, DRAFT_REFUSALS_PER_SECOND)
        self.arrival = RequestArrival(
            settings.request_seconds, RefusalPace(admission.calls.is_bounded, LATE_PER_SECOND)
        )
        self._max_bytes = settings.max_message_bytes
        self._handlers: dict[str, Handler] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def calls_in_progress(self) -> int:
        """The number of calls in progress, apart from health and reflection."""
        return self._admission.calls.total

    async def drained(self) -> None:
        """Returns when no call is in progress and no refusal waits, apart from health and reflection."""
        await self._idle.wait()

    def cancel_pending_requests(self) -> None:
        """Rejects the calls whose request has not arrived."""
        self.arrival.cancel_all()

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
        new_call: _NewCall = _Call
        if self._tracing is not None and not method.startswith(SERVER_METHODS):
            new_call = partial(_TracedCall, self._tracing)
        wrapper = _HandlerWrapper(self, method, handler.request_deserializer, new_call, self._max_bytes)
        serializer = handler.response_serializer
        if handler.request_streaming and handler.response_streaming:
            stream = wrapper.stream_stream(handler.stream_stream)
            return grpc.stream_stream_rpc_method_handler(stream, response_serializer=serializer)
        if handler.response_streaming:
            stream = wrapper.unary_stream(handler.unary_stream)
            return grpc.stream_stream_rpc_method_handler(stream, response_serializer=serializer)
        unary: Any = wrapper.unary_unary(handler.unary_unary)
        return grpc.stream_unary_rpc_method_handler(unary, response_serializer=serializer)

    def identify(self, method: str, context: Context) -> Origin:
        """Returns the origin of a call. Raises ShuttingDown, ApiKeyInvalid, ApiKeyNotAllowed."""
        if self._stopping.is_set() and not method.startswith(SERVER_METHODS):
            raise ShuttingDown
        return self._origins.origin_of(method, context.peer(), context.invocation_metadata(), context.auth_context)

    def origin_without_key(self, context: Context) -> Origin:
        """Returns where a call without a valid key comes from."""
        return Origin(self._origins.address_of(context.peer(), context.invocation_metadata()))

    def enter(self, method: str, origin: Origin) -> None:
        """Admits a call. Raises Overloaded."""
        self._admission.enter(method, origin)
        if not method.startswith(SERVER_METHODS):
            self._idle.clear()

    def leave(self, method: str, origin: Origin) -> None:
        """Releases an admitted call."""
        self._admission.leave(method, origin)
        self._check_idle()

    def _check_idle(self) -> None:
        if not (self._admission.calls.total or self._admission.refusals.total):
            self._idle.set()

    async def wait_to_refuse(self, error: Exception, origin: Origin, context: Context) -> None:
        """Returns when a refusal may be sent that protects the server: later if it is one of many."""
        pace = self._draft_refusal_pace if isinstance(error, TooManyDrafts) else self._refusal_pace
        delay = pace.delay(origin, asyncio.get_running_loop().time(), seconds_left(context))
        waiting = self._admission.refusals
        if delay and waiting.try_enter(origin):
            self._idle.clear()
            try:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), delay)
            finally:
                waiting.leave(origin)
                self._check_idle()

    def record(  # noqa: PLR0913, PLR0917 - what a call is
        self, method: str, request_id: str, code: str, seconds: float, reason: str, limit: str
    ) -> None:
        """Logs and counts a finished call. Nothing of the request's content is logged."""
        self._metrics.call(method, code, seconds)
        if reason:
            self._metrics.refused(reason, limit)
        log_call(method, request_id, code, seconds, reason, limit)


@cache
def _bound_log() -> Any:  # noqa: ANN401 - structlog's are untyped
    """Returns the bound logger, once logging is configured: an unbound one reads the configuration for each line."""
    return _log.bind()


def log_call(  # noqa: PLR0913, PLR0917 - what a call is
    method: str, request_id: str, code: str, seconds: float, reason: str = "", limit: str = ""
) -> None:
    """Logs a finished call. Successful calls of ValidationService are frequent and have level debug."""
    logger = _bound_log()
    log = logger.debug if code == "OK" and method.startswith(_FREQUENT) else logger.info
    fields: dict[str, object] = {"method": method, "code": code, "request_id": request_id}
    if reason:
        fields["reason"] = reason
    if limit:
        fields["limit"] = limit
    log("call", ms=round(seconds * 1000, 3), **fields)


def check_size(data: bytes, most: int) -> None:
    """Raises RequestTooLarge if a request has more bytes than `most`."""
    if len(data) > most:
        raise RequestTooLarge


class _HandlerWrapper:
    """Wraps the handlers of one method."""

    def __init__(
        self,
        interceptor: CallInterceptor,
        method: str,
        deserializer: Deserializer,
        new_call: "_NewCall",
        max_bytes: int,
    ) -> None:
        self._interceptor = interceptor
        self._method = method
        self._deserializer = deserializer
        self._new_call = new_call
        self._max_bytes = max_bytes

    def unary_unary(self, behavior: Callable[[Any, Context], Awaitable[Any]]) -> Callable[[Any, Context], Any]:
        async def handle(_requests: object, context: Context) -> Any:  # noqa: ANN401 - any message or its bytes
            call = self._new_call(self._interceptor, self._method, context)
            try:
                origin = call.enter()
                response = await behavior(await self._received(context, origin), context)
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
            async with (
                self._new_call(self._interceptor, self._method, context) as origin,
                aclosing(behavior(await self._received(context, origin), context)) as responses,
            ):
                async for response in responses:
                    yield response

        return handle

    def stream_stream(self, behavior: Callable[[Any, Context], Any]) -> Callable[[AsyncIterator[bytes], Context], Any]:
        async def handle(stream: AsyncIterator[bytes], context: Context) -> AsyncIterator[Any]:
            async with (
                self._new_call(self._interceptor, self._method, context),
                aclosing(behavior(self._decoded_stream(stream), context)) as responses,
            ):
                async for response in responses:
                    yield response

        return handle

    async def _received(self, context: Context, origin: Origin) -> Any:  # noqa: ANN401 - as `_decoded`
        """Returns the decoded request. The callers do not keep it: a refusal may wait for a minute."""
        return self._decoded(await self._interceptor.arrival.receive(context, origin))

    async def _decoded_stream(self, stream: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        """Yields the decoded requests.

        A generator expression would open the stream at once, and grpcio warns about an opened stream that is not read.
        """
        async for data in stream:
            yield self._decoded(data)

    def _decoded(self, data: bytes) -> Any:  # noqa: ANN401 - a message, or bytes if the handler has no deserializer
        check_size(data, self._max_bytes)
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
        self._request_id = _request_id(context)
        self._started = time.perf_counter()
        self._origin: Origin | None = None
        """None for a caller without a valid key."""
        self._is_admitted = False

    def enter(self) -> Origin:
        """Admits the call and returns its origin. Raises Fault."""
        self._origin = origin = self._interceptor.identify(self._method, self._context)
        self._interceptor.enter(self._method, origin)
        self._is_admitted = True
        set_current_origin(origin)
        return origin

    async def __aenter__(self) -> Origin:
        try:
            return self.enter()
        except Fault as error:
            await self._abort(error)
            raise

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
                case asyncio.CancelledError() if is_task_cancelled():
                    self._record("CANCELLED")
                case NoRequestError():
                    self._record(grpc.StatusCode.UNIMPLEMENTED.name)
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
        """Releases the call unless it was released before."""
        if self._is_admitted and self._origin is not None:
            self._is_admitted = False
            self._interceptor.leave(self._method, self._origin)

    async def _abort(self, error: Exception) -> None:
        status = status_of(error)
        if not isinstance(error, Fault):
            _log.exception("fault", method=self._method, request_id=self._request_id, exc_info=error)
        self._record(status.code.name, status.reason, status.limit)
        _forget_request(error)
        if status.reason in PACED or isinstance(error, PACED_FAULTS):
            self._leave()
            origin = self._origin or self._interceptor.origin_without_key(self._context)
            await self._interceptor.wait_to_refuse(error, origin, self._context)
        await self._abort_with(status.code, status.message, status.trailing_metadata)

    async def _abort_with(
        self, code: grpc.StatusCode, message: str, trailing: tuple[tuple[str, str | bytes], ...] = ()
    ) -> None:
        try:
            await self._context.abort(code, message, (*trailing, (REQUEST_ID, self._request_id)))
        except InternalError:
            raise _client_disconnected() from None
        except AbortError as abort:
            abort.__context__ = None
            raise

    def _record(self, code: str, reason: str = "", limit: str = "") -> None:
        seconds = time.perf_counter() - self._started
        self._interceptor.record(self._method, self._request_id, code, seconds, reason, limit)


def _forget_request(error: BaseException) -> None:
    """Drops the frames of an exception, which have the request: grpcio keeps the end of a call in a reference cycle."""
    error.__traceback__ = error.__context__ = error.__cause__ = None


_NewCall: TypeAlias = Callable[[CallInterceptor, str, Context], _Call]


class _TracedCall(_Call):
    """A call with a span. Each call has a task of its own, so the span is current until the call ends."""

    def __init__(self, tracing: Tracing, interceptor: CallInterceptor, method: str, context: Context) -> None:
        super().__init__(interceptor, method, context)
        self._trace = tracing.call(method, context.invocation_metadata())
        self._trace.enter()

    def _record(self, code: str, reason: str = "", limit: str = "") -> None:
        super()._record(code, reason, limit)
        self._trace.end(code, reason, self._request_id)


def _client_disconnected() -> asyncio.CancelledError:
    """Returns the exception that ends a call without a client; grpcio would log its own InternalError as a fault."""
    return asyncio.CancelledError()


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
