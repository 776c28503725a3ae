"""The interceptor of the completion-queue server: the policy of calls for its methods, and errors as statuses.

It makes methods from plain functions of bytes. A function may have a fast variant that answers within a moment; all
other calls go to SlowCalls.
"""

import threading
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, Protocol

import grpc

from service.errors import Fault, RequestTimedOut, ShuttingDown
from service.fast_listener.calls import (
    CallDetails,
    CallResult,
    Cancel,
    Metadata,
    RefusedCall,
    StreamHandler,
    StreamMethod,
    UnaryMethod,
)
from service.grpc_api.call_origin import AuthContext
from service.grpc_api.call_policy import OK, REQUEST_ID, CallPolicy, MethodPolicy, check_size, request_id_of
from service.grpc_api.status import Status
from service.runtime.admission import Admission
from service.runtime.origins import Origin
from service.runtime.slow_calls import Dropped, SlowCalls, Steps


class StreamAnswerer(Protocol):
    """Answers the requests of one stream, in their order."""

    def in_steps(self, data: bytes, /) -> Steps:
        """Returns the response, in steps. Raises any Fault."""

    def at_once(self, data: bytes, /) -> bytes | None:
        """Returns the response within a moment; None if it may take longer or is an error. Raises nothing."""


class FastInterceptor:
    """Makes methods from functions that may raise any Fault, and implements AdmissionControl.

    Args:
        policy: The policy of the listener.
        slow_calls: Runs calls that are not answered at once.
        streams: Bounds the open streams.
    """

    def __init__(self, policy: CallPolicy, slow_calls: SlowCalls, streams: Admission) -> None:
        self.policy = policy
        self.refusals = policy.refusals
        self.refused_early_seconds = policy.refused_early_seconds
        self.late_delay = policy.late_delay
        self._slow_calls = slow_calls
        self._streams = _Streams(streams)
        self._methods: dict[str, MethodPolicy] = {}

    def enter(
        self, path: str, peer: str, metadata: Metadata, auth_context: AuthContext, deadline: float
    ) -> CallDetails | RefusedCall:
        method = self._method(path)
        start = method.start_trace
        trace = None if start is None else start(metadata)
        origin = None
        try:
            origin = method.identify(peer, metadata, auth_context)
            method.enter(origin)
        except Fault as error:
            caller = origin or self.policy.origin_without_key(peer, metadata)
            call = CallDetails(metadata, caller, deadline, trace)
            return RefusedCall(self._failed(method, call, perf_counter(), error), call)
        return CallDetails(metadata, origin, deadline, trace)

    def leave(self, path: str, call: CallDetails) -> None:
        self._methods[path].leave(call.origin)

    def timed_out(self, path: str, call: CallDetails, seconds: float) -> CallResult:
        return self._failed(self._methods[path], call, perf_counter() - seconds, RequestTimedOut())

    def _method(self, path: str) -> MethodPolicy:
        method = self._methods.get(path)
        if method is None:
            method = self._methods[path] = MethodPolicy(self.policy, path)
        return method

    def _failed(self, method: MethodPolicy, call: CallDetails, started: float, error: Exception) -> CallResult:
        """Returns the result for an exception, which waits if it is one of many refusals of its caller."""
        request_id = request_id_of(call.metadata)
        if isinstance(error, Dropped):
            method.ended(request_id, started, "CANCELLED", trace=call.trace)
            return CallResult(code=grpc.StatusCode.CANCELLED)
        status = method.failed(request_id, started, error, call.trace)
        return _result_of(status, request_id, self.policy.refusal_delay(error, status.reason, call.origin))

    def unary(
        self, path: str, steps: Callable[[bytes], Steps], at_once: Callable[[bytes], bytes | None]
    ) -> UnaryMethod:
        """Returns a unary method.

        Args:
            path: The method's path.
            steps: Returns the response, in steps.
            at_once: Returns the response within a moment; None if it may take longer or is an error. Raises nothing.
        """
        method, max_bytes = self._method(path), self.policy.max_bytes

        def succeeded(call: CallDetails, started: float, response: bytes) -> CallResult:
            request_id = request_id_of(call.metadata)
            method.succeeded(request_id, started, call.trace)
            return CallResult(response, ((REQUEST_ID, request_id),))

        def result_at_once(data: bytes, call: CallDetails) -> CallResult | None:
            started = perf_counter()
            try:
                response = at_once(data)
            except Exception as error:  # noqa: BLE001 - every call needs a result
                return self._failed(method, call, started, error)
            return None if response is None else succeeded(call, started, response)

        def start(data: bytes, call: CallDetails, on_result: Callable[[CallResult], None]) -> Cancel | CallResult:
            started = perf_counter()

            def done(outcome: Any) -> None:  # noqa: ANN401 - a response or an exception
                is_error = isinstance(outcome, Exception)
                on_result(
                    self._failed(method, call, started, outcome) if is_error else succeeded(call, started, outcome)
                )

            try:
                check_size(data, max_bytes)  # what is answered at once is shorter
                return self._submit(path, call, steps(data), len(data), done)
            except Fault as error:
                return self._failed(method, call, started, error)

        return UnaryMethod(result_at_once, start)

    def _submit(self, path: str, call: CallDetails, steps: Steps, size: int, done: Callable[[Any], None]) -> Cancel:
        """Queues a slow call and returns what cancels it. Raises Overloaded, ShuttingDown."""
        slow_call = self._slow_calls.submit(call.origin, path, size, call.deadline, steps, done)
        return lambda: self._slow_calls.cancel(slow_call)

    def stream(self, path: str, answerer: Callable[[], StreamAnswerer]) -> StreamMethod:
        """Returns a streaming method; each stream gets its own StreamAnswerer."""
        method = self._method(path)

        def open_stream(call: CallDetails, finish: Callable[[CallResult], None]) -> StreamHandler | CallResult:
            started = perf_counter()
            try:
                stream = _Stream(
                    self.policy, method, self._streams, answerer(), partial(self._submit, path, call), call
                )
                self._streams.add(stream, call.origin, lambda: finish(stream.failed(ShuttingDown())))
            except Exception as error:  # noqa: BLE001 - as above
                return self._failed(method, call, started, error)
            return stream

        return StreamMethod(open_stream)

    def end_streams(self) -> None:
        """Ends all streams with ShuttingDown, and opens no more; clients retry at another server."""
        self._streams.end()

    @property
    def open_streams(self) -> int:
        """The number of open streams."""
        return self._streams.count


class _Stream:
    """An open stream (StreamHandler).

    Args:
        policy: The policy of the listener.
        method: The policy of its method.
        streams: The set of open streams.
        answerer: Answers its requests.
        submit: Queues a slow call, as FastInterceptor._submit does.
        call: Its call.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - made in one place
        self,
        policy: CallPolicy,
        method: MethodPolicy,
        streams: "_Streams",
        answerer: StreamAnswerer,
        submit: Callable[[Steps, int, Callable[[Any], None]], Cancel],
        call: CallDetails,
    ) -> None:
        self._policy = policy
        self._method = method
        self._streams = streams
        self._answerer = answerer
        self._submit = submit
        self._call = call
        self._started = perf_counter()
        self._request_id = request_id_of(call.metadata)

    def at_once(self, data: bytes) -> bytes | CallResult | None:
        try:
            return self._answerer.at_once(data)
        except Exception as error:  # noqa: BLE001 - every stream needs a result
            return self.failed(error)

    def start(self, data: bytes, on_response: Callable[[bytes | CallResult], None]) -> Cancel | CallResult:
        def done(outcome: Any) -> None:  # noqa: ANN401 - a response or an exception
            on_response(self.failed(outcome) if isinstance(outcome, Exception) else outcome)

        try:
            check_size(data, self._policy.max_bytes)
            return self._submit(self._answerer.in_steps(data), len(data), done)
        except Fault as error:
            return self.failed(error)

    def end(self) -> CallResult:
        self._streams.remove(self)
        return CallResult(trailing=((REQUEST_ID, self._request_id),))

    def closed(self, result: CallResult, *, is_cancelled: bool) -> None:
        self._streams.remove(self)
        is_lost = is_cancelled and result.code is grpc.StatusCode.OK
        code = "CANCELLED" if is_lost else result.code.name
        trace = self._call.trace
        if code == OK:
            self._method.succeeded(self._request_id, self._started, trace)
        else:
            self._method.ended(self._request_id, self._started, code, result.reason, result.limit, trace=trace)

    def failed(self, error: Exception) -> CallResult:
        """Returns the result that ends the stream for an exception. `closed` records it."""
        self._streams.remove(self)
        if isinstance(error, Dropped):
            return CallResult(code=grpc.StatusCode.CANCELLED)
        status = self._method.status(self._request_id, error, self._call.trace)
        delay = self._policy.refusal_delay(error, status.reason, self._call.origin)
        return _result_of(status, self._request_id, delay)


class _Streams:
    """The open streams, each with its origin and a function that ends it."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._open: dict[_Stream, tuple[Origin, Callable[[], None]]] = {}
        self._is_ended = False
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """The number of open streams."""
        return len(self._open)

    def add(self, stream: _Stream, origin: Origin, end: Callable[[], None]) -> None:
        """Adds a stream. Raises ShuttingDown, Overloaded."""
        with self._lock:
            if self._is_ended:
                raise ShuttingDown
            self._admission.enter(origin)
            self._open[stream] = origin, end

    def remove(self, stream: _Stream) -> None:
        """Removes a stream if it is open."""
        with self._lock:
            removed = self._open.pop(stream, None)
        if removed is not None:
            self._admission.leave(removed[0])

    def end(self) -> None:
        """Ends the open streams and rejects new ones."""
        with self._lock:
            self._is_ended = True
            opened, self._open = tuple(self._open.values()), {}
        for _, end in opened:
            end()


def _result_of(status: Status, request_id: str, delay: float = 0.0) -> CallResult:
    """Returns the result with a status."""
    trailing = (*status.trailing_metadata, (REQUEST_ID, request_id))
    return CallResult(None, trailing, status.code, status.message, status.reason, status.limit, delay)
