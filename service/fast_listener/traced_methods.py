"""Wrappers that make a span of each call at the completion-queue server. They are used only if tracing is on."""

from collections.abc import Callable

import grpc

from service.fast_listener.calls import (
    CallDetails,
    CallResult,
    Cancel,
    StreamHandler,
    StreamMethod,
    UnaryMethod,
)
from service.grpc_api.interceptor import REQUEST_ID
from service.runtime.tracing import CallTrace, Tracing


def traced_unary(path: str, method: UnaryMethod, tracing: Tracing) -> UnaryMethod:
    """Returns a unary method that makes spans."""
    unary = _TracedUnary(path, method, tracing)
    return UnaryMethod(unary.at_once, unary.start)


def traced_stream(path: str, method: StreamMethod, tracing: Tracing) -> StreamMethod:
    """Returns a streaming method that makes a span of each stream."""
    return StreamMethod(_TracedStreams(path, method, tracing).open)


class _TracedUnary:
    """The functions of a unary method. One thread uses them."""

    def __init__(self, path: str, method: UnaryMethod, tracing: Tracing) -> None:
        self._path = path
        self._method = method
        self._tracing = tracing
        self._unanswered: CallTrace | None = None
        """The span of a call that was not answered at once, until `start`, which follows immediately."""

    def at_once(self, data: bytes, call: CallDetails) -> CallResult | None:
        trace = self._tracing.call(self._path, call.metadata)
        result = trace.run(self._method.at_once, data, call)
        if result is not None:
            _end(trace, result)
        else:
            self._unanswered = trace
        return result

    def start(self, data: bytes, call: CallDetails, on_result: Callable[[CallResult], None]) -> Cancel | CallResult:
        trace, self._unanswered = self._unanswered, None
        assert trace is not None, "at_once precedes"  # noqa: S101 - for the type

        def finish(result: CallResult) -> None:
            _end(trace, result)
            on_result(result)

        started = trace.run(self._method.start, data, call, finish)
        if isinstance(started, CallResult):
            _end(trace, started)
        return started


class _TracedStreams:
    """The function of a streaming method."""

    def __init__(self, path: str, method: StreamMethod, tracing: Tracing) -> None:
        self._path = path
        self._method = method
        self._tracing = tracing

    def open(self, call: CallDetails, finish: Callable[[CallResult], None]) -> StreamHandler | CallResult:
        trace = self._tracing.call(self._path, call.metadata)
        opened = trace.run(self._method.open, call, finish)
        if isinstance(opened, CallResult):
            _end(trace, opened)
            return opened
        return _TracedStream(opened, trace)


class _TracedStream:
    """An open stream (StreamHandler)."""

    def __init__(self, handler: StreamHandler, trace: CallTrace) -> None:
        self._handler = handler
        self._trace = trace
        self.at_once = handler.at_once
        self.start = handler.start
        self.end = handler.end

    def closed(self, result: CallResult, *, is_cancelled: bool) -> None:
        self._trace.run(lambda: self._handler.closed(result, is_cancelled=is_cancelled))
        is_lost = is_cancelled and result.code is grpc.StatusCode.OK
        _end(self._trace, result, "CANCELLED" if is_lost else "")


def traced_result(trace: CallTrace, answer: Callable[[], CallResult]) -> CallResult:
    """Returns the result of a call that ends at once, and ends its span."""
    result = trace.run(answer)
    _end(trace, result)
    return result


def _end(trace: CallTrace, result: CallResult, code: str = "") -> None:
    request_id = next((value for key, value in result.trailing if key == REQUEST_ID), "")
    trace.end(code or result.code.name, result.reason, str(request_id))
