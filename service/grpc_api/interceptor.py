"""The interceptor of grpc.aio: the policy of calls for handlers, and exceptions as statuses.

grpcio would send an exception's text to the client, and would answer malformed bytes with INTERNAL before the handler
runs. Therefore all handlers, including those of health and reflection, receive raw bytes and decode in here or below.
"""

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from time import perf_counter
from typing import Any, Final, TypeAlias

import grpc
from google.protobuf.message import DecodeError
from grpc.aio import AbortError, InternalError, ServerInterceptor, ServicerContext

from service.errors import Fault, MalformedRequest, RequestTooLarge
from service.grpc_api.call_origin import set_current_origin
from service.grpc_api.call_policy import REQUEST_ID, CallPolicy, MethodPolicy, request_id_of
from service.grpc_api.request_arrival import NO_REQUEST, NoRequestError, RequestArrival, seconds_left
from service.runtime.cancellation import is_task_cancelled
from service.runtime.origins import Origin

DRAIN_POLL_SECONDS: Final = 0.01
"""The polling interval of a stopping server."""

Context: TypeAlias = "ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
OptionalHandler: TypeAlias = "grpc.RpcMethodHandler[Any, Any] | None"
Deserializer: TypeAlias = Callable[[bytes], Any] | None


class CallInterceptor(ServerInterceptor):
    """Wraps every handler.

    Every method is served with a stream of requests, so that its handler starts when the headers arrive: calls are
    counted and rejected before their request arrives, and a late request times out.

    Args:
        policy: The policy of the listener.
        stopping: Set when the server stops.
        request_seconds: The timeout for the arrival of a call's request.
    """

    def __init__(self, policy: CallPolicy, stopping: asyncio.Event, request_seconds: float) -> None:
        self.policy = policy
        self._stopping = stopping
        self.arrival = RequestArrival(request_seconds, policy.late_delay)
        self._handlers: dict[str, Handler] = {}

    async def drained(self) -> None:
        """Returns when no call is in progress and no refusal waits, apart from health and reflection."""
        while self.policy.calls.total or self.policy.refusals.total:  # noqa: ASYNC110 - threads may leave, too
            await asyncio.sleep(DRAIN_POLL_SECONDS)

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
        wrapper = _HandlerWrapper(self, MethodPolicy(self.policy, method), handler.request_deserializer)
        serializer = handler.response_serializer
        if handler.request_streaming and handler.response_streaming:
            stream = wrapper.stream_stream(handler.stream_stream)
            return grpc.stream_stream_rpc_method_handler(stream, response_serializer=serializer)
        if handler.response_streaming:
            stream = wrapper.unary_stream(handler.unary_stream)
            return grpc.stream_stream_rpc_method_handler(stream, response_serializer=serializer)
        unary: Any = wrapper.unary_unary(handler.unary_unary)
        return grpc.stream_unary_rpc_method_handler(unary, response_serializer=serializer)

    async def wait_to_refuse(self, delay: float, origin: Origin) -> None:
        """Returns when a refusal may be sent: at once if the server stops, or if too many wait."""
        waiting = self.policy.refusals
        if waiting.try_enter(origin):
            try:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), delay)
            finally:
                waiting.leave(origin)


class _HandlerWrapper:
    """Wraps the handlers of one method."""

    def __init__(self, interceptor: CallInterceptor, method: MethodPolicy, deserializer: Deserializer) -> None:
        self._interceptor = interceptor
        self._method = method
        self._deserializer = deserializer
        self._receive = interceptor.arrival.receive
        self._max_bytes = interceptor.policy.max_bytes

    def unary_unary(self, behavior: Callable[[Any, Context], Awaitable[Any]]) -> Callable[[Any, Context], Any]:
        async def handle(requests: object, context: Context) -> Any:  # noqa: ANN401 - any message or its bytes
            call = _Call(self._interceptor, self._method, context)
            try:
                try:
                    origin = call.enter()  # the request is not kept here: a refusal may wait for a minute
                    response = await behavior(self._decoded(await self._receive(context, origin)), context)
                    call.succeed()
                except BaseException as error:
                    await call.fail(error)
                    raise
            except AbortError as abort:
                _forget_frames(abort)
                del requests, context, call
                raise
            return response

        return handle

    def unary_stream(self, behavior: Callable[[Any, Context], Any]) -> Callable[[Any, Context], Any]:
        if not inspect.isasyncgenfunction(behavior):
            return self.unary_unary(behavior)  # it writes to the context

        async def handle(requests: object, context: Context) -> AsyncIterator[Any]:
            try:
                async with (
                    _Call(self._interceptor, self._method, context) as origin,
                    aclosing(behavior(self._decoded(await self._receive(context, origin)), context)) as responses,
                ):
                    async for response in responses:
                        yield response
            except AbortError as abort:
                _forget_frames(abort)
                del requests, context
                raise

        return handle

    def stream_stream(self, behavior: Callable[[Any, Context], Any]) -> Callable[[AsyncIterator[bytes], Context], Any]:
        async def handle(stream: AsyncIterator[bytes], context: Context) -> AsyncIterator[Any]:
            try:
                async with (
                    _Call(self._interceptor, self._method, context),
                    aclosing(behavior(self._decoded_stream(stream), context)) as responses,
                ):
                    async for response in responses:
                        yield response
            except AbortError as abort:
                _forget_frames(abort)
                del stream, context
                raise

        return handle

    async def _decoded_stream(self, stream: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        """Yields the decoded requests.

        A generator expression would open the stream at once, and grpcio warns about an opened stream that is not read.
        """
        async for data in stream:
            yield self._decoded(data)

    def _decoded(self, data: bytes) -> Any:  # noqa: ANN401 - a message, or bytes if the handler has no deserializer
        if len(data) > self._max_bytes:
            raise RequestTooLarge
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

    def __init__(self, interceptor: CallInterceptor, method: MethodPolicy, context: Context) -> None:
        metadata = context.invocation_metadata()
        self._interceptor = interceptor
        self._method = method
        self._context = context
        self._metadata = metadata
        self._request_id = request_id_of(metadata)
        self._started = perf_counter()
        self._origin: Origin | None = None
        """None for a caller without a valid key."""
        self._is_admitted = False
        self._trace = None
        if method.start_trace is not None:
            self._trace = method.start_trace(metadata)
            self._trace.enter()  # each call has a task of its own, so the span is current until the call ends

    def enter(self) -> Origin:
        """Admits the call and returns its origin. Raises Fault."""
        context = self._context
        self._origin = origin = self._method.identify(context.peer(), self._metadata, context.auth_context)
        self._method.enter(origin)
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
        self._method.succeeded(self._request_id, self._started, self._trace)
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
            self._method.leave(self._origin)

    async def _abort(self, error: Exception) -> None:
        status = self._method.failed(self._request_id, self._started, error, self._trace)
        _forget_request(error)
        policy, context = self._interceptor.policy, self._context
        origin = self._origin or policy.origin_without_key(context.peer(), self._metadata)
        delay = policy.refusal_delay(error, status.reason, origin, seconds_left(context))
        if delay:
            self._leave()
            await self._interceptor.wait_to_refuse(delay, origin)
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

    def _record(self, code: str) -> None:
        self._method.ended(self._request_id, self._started, code, trace=self._trace)


def _forget_request(error: BaseException) -> None:
    """Drops the frames of an exception, which have the request: a refusal may wait for a minute."""
    error.__traceback__ = error.__context__ = error.__cause__ = None


def _forget_frames(abort: AbortError) -> None:
    """Drops the frames of the end of a call, which have its context, and that has the end: a reference cycle.

    Garbage of calls that were in progress during a collection would stay until one of all generations (gc_tuning). The
    handler that raises the end must have no context either.
    """
    abort.__traceback__ = None


def _client_disconnected() -> asyncio.CancelledError:
    """Returns the exception that ends a call without a client; grpcio would log its own InternalError as a fault."""
    return asyncio.CancelledError()


def _code_name(context: Context) -> str:
    """Returns the name of the code that a call was aborted with."""
    code = context.code()
    return code.name if isinstance(code, grpc.StatusCode) else str(code)
