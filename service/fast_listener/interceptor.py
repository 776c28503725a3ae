"""The interceptor of the completion-queue server: request ids, admission, metrics, log, and errors as statuses.

It makes methods from plain functions of bytes. A function may have a fast variant that answers within a moment; all
other calls go to SlowCalls.
"""

import itertools
import logging
import secrets
import threading
from collections.abc import Callable
from contextvars import copy_context
from time import monotonic, perf_counter
from typing import Any, Final, Protocol

import grpc
import structlog

from service.errors import Fault, RequestTimedOut, ShuttingDown
from service.fast_listener.calls import (
    CallDetails,
    CallResult,
    Cancel,
    Metadata,
    StreamHandler,
    StreamMethod,
    UnaryMethod,
)
from service.fast_listener.traced_methods import traced_result, traced_stream, traced_unary
from service.grpc_api.call_origin import AuthContext, Origins
from service.grpc_api.interceptor import PACED, REQUEST_ID, check_size, log_call, sent_request_id
from service.grpc_api.status import status_of
from service.metrics.metrics import Metrics
from service.runtime.admission import Admission, CallAdmission
from service.runtime.origins import Origin
from service.runtime.refusal_pace import LATE_PER_SECOND, PER_SECOND, RefusalPace
from service.runtime.slow_calls import Dropped, SlowCalls, Steps, in_one_step
from service.runtime.tracing import Tracing

_OK: Final = "OK"

_PROCESS: Final = secrets.token_hex(8)
_CALLS: Final = itertools.count()
"""Request ids are made of these two; a random one for each call would cost more than the rest of this module."""

_log = structlog.get_logger()


class StreamAnswerer(Protocol):
    """Answers the requests of one stream, in their order."""

    def in_steps(self, data: bytes, /) -> Steps:
        """Returns the response, in steps. Raises any Fault."""

    def at_once(self, data: bytes, /) -> bytes | None:
        """Returns the response within a moment; None if it may take longer or is an error. Raises nothing."""


def _never_at_once(_data: bytes) -> None:
    """The fast variant of a method without one."""


class FastInterceptor:
    """Makes methods from functions that may raise any Fault, and implements AdmissionControl.

    Args:
        metrics: Counts calls.
        slow_calls: Runs calls that are not answered at once.
        origins: Finds where calls come from, and rejects those without a valid key.
        admission: Bounds the calls in progress.
        streams: Bounds the open streams.
        max_bytes: The largest size of a request.
        tracing: Makes a span of each call; None if tracing is off.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - made in one place
        self,
        metrics: Metrics,
        slow_calls: SlowCalls,
        origins: Origins,
        admission: CallAdmission,
        streams: Admission,
        max_bytes: int,
        tracing: Tracing | None = None,
    ) -> None:
        self._metrics = metrics
        self._slow_calls = slow_calls
        self._origins = origins
        self._tracing = tracing
        self._admission = admission
        self._streams = _Streams(streams)
        self._max_bytes = max_bytes
        self._refusal_pace = RefusalPace(admission.calls.is_bounded, PER_SECOND)
        self._timeout_pace = RefusalPace(admission.calls.is_bounded, LATE_PER_SECOND)
        self._is_stopping = False

    @property
    def refusals(self) -> Admission:
        return self._admission.refusals

    def enter(self, path: str, peer: str, metadata: Metadata, auth_context: AuthContext) -> Origin | CallResult:
        origin = None
        try:
            origin = self._origins.origin_of(path, peer, metadata, auth_context)
            self._admission.enter(path, origin)
        except Fault as error:
            return self._paced(self._failed(path, metadata, error), origin or self.origin_without_key(peer, metadata))
        return origin

    def origin_without_key(self, peer: str, metadata: Metadata) -> Origin:
        return Origin(self._origins.address_of(peer, metadata))

    def _paced(self, result: CallResult, origin: Origin) -> CallResult:
        """Returns a result that waits if it is one of many refusals of its caller."""
        if result.reason not in PACED:
            return result
        return result._replace(delay=self._refusal_pace.delay(origin, monotonic()))

    def timeout_delay(self, origin: Origin) -> float:
        return self._timeout_pace.delay(origin, monotonic())

    def leave(self, path: str, call: CallDetails) -> None:
        self._admission.leave(path, call.origin)

    def timed_out(self, path: str, call: CallDetails, seconds: float) -> CallResult:
        return self._failed(path, call.metadata, RequestTimedOut(), seconds)

    def _failed(self, path: str, metadata: Metadata, error: Exception, seconds: float = 0.0) -> CallResult:
        """Returns the result of a call that has taken some seconds."""

        def failed() -> CallResult:
            started = perf_counter() - seconds
            return _MethodCalls(path, self._metrics).failed(request_id_of(metadata), started, error)

        return failed() if self._tracing is None else traced_result(self._tracing.call(path, metadata), failed)

    def unary(
        self,
        path: str,
        answer: Callable[[bytes], bytes],
        at_once: Callable[[bytes], bytes | None] = _never_at_once,
    ) -> UnaryMethod:
        """Returns a unary method.

        Args:
            path: The method's path.
            answer: Returns the response.
            at_once: Returns the response within a moment; None if it may take longer or is an error. Raises nothing.
        """
        return self.unary_in_steps(path, lambda data: in_one_step(answer, data), at_once)

    def unary_in_steps(
        self, path: str, steps: Callable[[bytes], Steps], at_once: Callable[[bytes], bytes | None] = _never_at_once
    ) -> UnaryMethod:
        """Returns a unary method like `unary` whose slow calls run in steps."""
        calls = _MethodCalls(path, self._metrics)

        def result_at_once(data: bytes, call: CallDetails) -> CallResult | None:
            started = perf_counter()
            try:
                self._check_stopping()
                check_size(data, self._max_bytes)
                response = at_once(data)
            except Exception as error:  # noqa: BLE001 - every call needs a result
                return calls.failed(request_id_of(call.metadata), started, error)
            return None if response is None else calls.succeeded(request_id_of(call.metadata), started, response)

        def start(data: bytes, call: CallDetails, on_result: Callable[[CallResult], None]) -> Cancel | CallResult:
            started, request_id = perf_counter(), request_id_of(call.metadata)

            def done(outcome: Any) -> None:  # noqa: ANN401 - a response or an exception
                on_result(calls.result(request_id, started, outcome))

            try:
                return self._submit(path, call, steps(data), len(data), done)
            except Fault as error:
                return self._paced(calls.failed(request_id, started, error), call.origin)

        method = UnaryMethod(result_at_once, start)
        return method if self._tracing is None else traced_unary(path, method, self._tracing)

    def _submit(self, path: str, call: CallDetails, steps: Steps, size: int, done: Callable[[Any], None]) -> Cancel:
        """Queues a slow call and returns what cancels it. Raises Overloaded, ShuttingDown.

        `done` gets the context of the call, which the log needs.
        """
        if self._tracing is not None:
            context, deliver = copy_context(), done
            done = lambda outcome: context.run(deliver, outcome)  # noqa: E731 - shorter than a function
        slow_call = self._slow_calls.submit(call.origin, path, size, call.deadline, steps, done)
        return lambda: self._slow_calls.cancel(slow_call)

    def stream(self, path: str, answerer: Callable[[], StreamAnswerer]) -> StreamMethod:
        """Returns a streaming method; each stream gets its own StreamAnswerer."""
        calls = _MethodCalls(path, self._metrics)

        def open_stream(call: CallDetails, finish: Callable[[CallResult], None]) -> StreamHandler | CallResult:
            started, request_id = perf_counter(), request_id_of(call.metadata)

            def start(data: bytes, done: Callable[[Any], None]) -> Cancel | CallResult:
                try:
                    return self._submit(path, call, answer.in_steps(data), len(data), done)
                except Fault as error:
                    return self._paced(stream.failed(error), call.origin)

            try:
                answer = answerer()
                stream = _Stream(calls, self._streams, answer, start, request_id, self._max_bytes)
                self._streams.add(stream, call.origin, lambda: finish(_error_result(ShuttingDown(), request_id)))
            except Exception as error:  # noqa: BLE001 - as above
                return self._paced(calls.failed(request_id, started, error), call.origin)
            return stream

        method = StreamMethod(open_stream)
        return method if self._tracing is None else traced_stream(path, method, self._tracing)

    def stop(self) -> None:
        """Rejects new calls and ends all streams with ShuttingDown; clients retry at another server."""
        self._is_stopping = True
        self._streams.end()

    @property
    def calls_in_progress(self) -> int:
        """The number of calls in progress, apart from health."""
        return self._admission.calls.total

    @property
    def open_streams(self) -> int:
        """The number of open streams."""
        return self._streams.count

    def _check_stopping(self) -> None:
        """Raises ShuttingDown."""
        if self._is_stopping:
            raise ShuttingDown


class _MethodCalls:
    """Results of one method's calls; counts and logs each call.

    Args:
        path: The method's path.
        metrics: Counts the calls.
    """

    def __init__(self, path: str, metrics: Metrics) -> None:
        self._path = path
        self._metrics = metrics
        self._count_ok = metrics.calls(path, _OK)
        self._logs_ok = _log.bind().is_enabled_for(logging.DEBUG)

    def result(self, request_id: str, started: float, outcome: Any) -> CallResult:  # noqa: ANN401 - a response or an exception
        """Returns the result for a response or an exception."""
        if isinstance(outcome, Exception):
            return self.failed(request_id, started, outcome)
        return self.succeeded(request_id, started, outcome)

    def succeeded(self, request_id: str, started: float, response: bytes | None) -> CallResult:
        """Returns the result for a response."""
        seconds = perf_counter() - started
        self._count_ok(seconds)
        if self._logs_ok:
            log_call(self._path, request_id, _OK, seconds)
        return CallResult(response, ((REQUEST_ID, request_id),))

    def failed(self, request_id: str, started: float, error: Exception) -> CallResult:
        """Returns the result for an exception."""
        result = self.error(request_id, error)
        self.record(request_id, started, result.code.name, result)
        return result

    def error(self, request_id: str, error: Exception) -> CallResult:
        """Returns the result for an exception without counting it. Logs exceptions that are not a Fault."""
        if isinstance(error, Dropped):
            return CallResult(code=grpc.StatusCode.CANCELLED)
        if not isinstance(error, Fault):
            _log.exception("fault", method=self._path, request_id=request_id, exc_info=error)
        return _error_result(error, request_id)

    def record(self, request_id: str, started: float, code: str, result: CallResult) -> None:
        """Counts and logs a call that is over."""
        seconds = perf_counter() - started
        self._metrics.call(self._path, code, seconds)
        self._metrics.refused(result.reason, result.limit)
        if self._logs_ok or code != _OK:
            log_call(self._path, request_id, code, seconds, result.reason, result.limit)


class _Stream:
    """An open stream (StreamHandler).

    Args:
        calls: The calls of its method.
        streams: The set of open streams.
        answerer: Answers its requests.
        start: Starts a response that may take longer.
        request_id: Its request id.
        max_bytes: The largest size of a request.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - made in one place
        self,
        calls: _MethodCalls,
        streams: "_Streams",
        answerer: StreamAnswerer,
        start: Callable[[bytes, Callable[[Any], None]], Cancel | CallResult],
        request_id: str,
        max_bytes: int,
    ) -> None:
        self._calls = calls
        self._streams = streams
        self._answerer = answerer
        self._start = start
        self._started = perf_counter()
        self._request_id = request_id
        self._max_bytes = max_bytes

    def at_once(self, data: bytes) -> bytes | CallResult | None:
        try:
            check_size(data, self._max_bytes)
            return self._answerer.at_once(data)
        except Exception as error:  # noqa: BLE001 - every stream needs a result
            return self.failed(error)

    def start(self, data: bytes, on_response: Callable[[bytes | CallResult], None]) -> Cancel | CallResult:
        return self._start(
            data,
            lambda outcome: on_response(self.failed(outcome) if isinstance(outcome, Exception) else outcome),
        )

    def end(self) -> CallResult:
        self._streams.remove(self)
        return CallResult(trailing=((REQUEST_ID, self._request_id),))

    def closed(self, result: CallResult, *, is_cancelled: bool) -> None:
        self._streams.remove(self)
        is_lost = is_cancelled and result.code is grpc.StatusCode.OK
        code = "CANCELLED" if is_lost else result.code.name
        self._calls.record(self._request_id, self._started, code, result)

    def failed(self, error: Exception) -> CallResult:
        """Returns the result that ends the stream for an exception."""
        self._streams.remove(self)
        return self._calls.error(self._request_id, error)


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


def _error_result(error: Exception, request_id: str) -> CallResult:
    """Returns the result for an exception."""
    status = status_of(error)
    trailing = (*status.trailing_metadata, (REQUEST_ID, request_id))
    return CallResult(None, trailing, status.code, status.message, status.reason, status.limit)


def request_id_of(metadata: Metadata) -> str:
    """Returns the client's request id, else a new one."""
    return sent_request_id(metadata) or f"{_PROCESS}{next(_CALLS):08x}"
