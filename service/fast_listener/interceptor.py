"""The boundary of every call of the synchronous listener: what `interceptors` is for the others.

It makes methods of plain functions of bytes. Each may have a companion that answers what takes only a moment; all else
goes to the thread for slow calls.
"""

import itertools
import logging
import secrets
import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final, Protocol

import grpc
import structlog

from service.errors import Fault, Overloaded, RequestTimedOut, ShuttingDown
from service.fast_listener.calls import Caller, Cancel, End, Metadata, OpenStream, Streaming, Unary
from service.grpc_api.interceptor import DETAILS, REQUEST_ID, log_call, sent_request_id
from service.grpc_api.status import status_of
from service.metrics.metrics import Metrics
from service.runtime.admission import Admission, CallRoom
from service.runtime.slow_calls import Dropped, SlowCalls, Steps, in_one_step

_OK: Final = "OK"

_PROCESS: Final = secrets.token_hex(8)
_CALLS: Final = itertools.count()
"""What request ids are made of, as chance for each would cost more than all else here."""

_log = structlog.get_logger()


class Answerer(Protocol):
    """What answers the requests of one stream, in their order."""

    def __call__(self, data: bytes, /) -> bytes:
        """Returns the answer. Raises any Fault."""

    def at_once(self, data: bytes, /) -> bytes | None:
        """Returns the answer in a moment; None if it may take longer, or is a fault. Raises nothing."""


def _never_at_once(_data: bytes) -> None:
    """Says of every request that it may take longer."""


def _nothing_to_cancel() -> None:
    """Cancels a call that is over."""


class SynchronousBoundary:
    """Makes methods of functions, which may raise any Fault, and lets calls in (Gate).

    Args:
        metrics: Counts calls.
        slow_calls: Answers what is not answered at once.
        max_calls: Most calls under way at a time; more are refused.
        max_streams: Most streams at a time; more are refused.
        peer_share: The part of calls, and of streams, that one peer may hold.
    """

    def __init__(
        self, metrics: Metrics, slow_calls: SlowCalls, max_calls: int, max_streams: int, peer_share: float
    ) -> None:
        self._metrics = metrics
        self._slow_calls = slow_calls
        self._room = CallRoom(max_calls, peer_share)
        self._streams = _Streams(Admission(max_streams, peer_share))
        self._is_stopping = False

    def enter(self, path: str, caller: Caller) -> End | None:
        """See Gate."""
        try:
            self._room.enter(path, caller.peer)
        except Overloaded as error:
            return self._refused(path, caller, error)
        return None

    def leave(self, path: str, caller: Caller) -> None:
        """See Gate."""
        self._room.leave(path, caller.peer)

    def timed_out(self, path: str, caller: Caller) -> End:
        """See Gate."""
        return self._refused(path, caller, RequestTimedOut())

    def _refused(self, path: str, caller: Caller, error: Exception) -> End:
        return _Calls(path, self._metrics).refused(request_id_of(caller.metadata), perf_counter(), error)

    def unary(
        self,
        method: str,
        call: Callable[[bytes], bytes],
        at_once: Callable[[bytes], bytes | None] = _never_at_once,
    ) -> Unary:
        """Returns a method of one request and one answer.

        Args:
            method: Its path.
            call: Returns the answer.
            at_once: Returns the answer in a moment; None if it may take longer, or is a fault. Raises nothing.
        """
        return self.unary_in_steps(method, lambda data: in_one_step(call, data), at_once)

    def unary_in_steps(
        self, method: str, steps: Callable[[bytes], Steps], at_once: Callable[[bytes], bytes | None] = _never_at_once
    ) -> Unary:
        """Returns a method like `unary` whose slow answers are made in steps."""
        calls = _Calls(method, self._metrics)

        def answer_at_once(data: bytes, caller: Caller) -> End | None:
            started = perf_counter()
            try:
                self._check_stopping()
                answer = at_once(data)
            except Exception as error:  # noqa: BLE001 - no caller is to wait for an answer forever
                return calls.refused(request_id_of(caller.metadata), started, error)
            return None if answer is None else calls.answered(request_id_of(caller.metadata), started, answer)

        def begin(data: bytes, caller: Caller, answered: Callable[[End], None]) -> Cancel:
            started, request_id = perf_counter(), request_id_of(caller.metadata)

            def done(result: Any) -> None:  # noqa: ANN401 - an answer or an exception
                answered(calls.end(request_id, started, result))

            return self._begin(method, caller, steps(data), len(data), done)

        return Unary(answer_at_once, begin)

    def _begin(self, method: str, caller: Caller, steps: Steps, size: int, done: Callable[[Any], None]) -> Cancel:
        """Hands a call to the thread for slow calls."""
        try:
            call = self._slow_calls.submit((caller.peer, method), size, caller.deadline, steps, done)
        except Fault as error:
            done(error)
            return _nothing_to_cancel
        return lambda: self._slow_calls.cancel(call)

    def stream(self, method: str, answerer: Callable[[], Answerer]) -> Streaming:
        """Returns a method of a stream of requests, which a new Answerer answers in their order."""
        calls = _Calls(method, self._metrics)

        def open_stream(caller: Caller, hang_up: Callable[[End], None]) -> OpenStream | End:
            started, request_id = perf_counter(), request_id_of(caller.metadata)

            def begin(data: bytes, done: Callable[[Any], None]) -> Cancel:
                return self._begin(method, caller, in_one_step(answers, data), len(data), done)

            try:
                answers = answerer()
                stream = _Stream(calls, self._streams, answers, begin, request_id)
                self._streams.begin(stream, caller.peer, lambda: hang_up(_end_of(ShuttingDown(), request_id)))
            except Exception as error:  # noqa: BLE001 - as above
                return calls.refused(request_id, started, error)
            return stream

        return Streaming(open_stream)

    def stop(self) -> None:
        """Refuses new calls, and ends streams: what was not answered is to be sent to another server."""
        self._is_stopping = True
        self._streams.end()

    @property
    def open_streams(self) -> int:
        """How many streams are open."""
        return self._streams.count

    def _check_stopping(self) -> None:
        """Raises ShuttingDown."""
        if self._is_stopping:
            raise ShuttingDown


class _Calls:
    """The calls of a method, logged and counted as they end.

    Args:
        method: Its path.
        metrics: Counts them.
    """

    def __init__(self, method: str, metrics: Metrics) -> None:
        self._method = method
        self._metrics = metrics
        self._count_good = metrics.calls(method, _OK)
        self._logs_good = _log.bind().is_enabled_for(logging.DEBUG)

    def end(self, request_id: str, started: float, result: Any) -> End:  # noqa: ANN401 - an answer or an exception
        """Returns the end of a call that led to an answer or an exception."""
        if isinstance(result, Exception):
            return self.refused(request_id, started, result)
        return self.answered(request_id, started, result)

    def answered(self, request_id: str, started: float, answer: bytes | None) -> End:
        """Returns the end of a call that went well."""
        seconds = perf_counter() - started
        self._count_good(seconds)
        if self._logs_good:
            log_call(self._method, request_id, _OK, "", seconds)
        return End(answer, ((REQUEST_ID, request_id),))

    def refused(self, request_id: str, started: float, error: Exception) -> End:
        """Returns the end of a call that did not."""
        end = self.fault(request_id, error)
        self.over(request_id, started, end.code.name, end.reason)
        return end

    def fault(self, request_id: str, error: Exception) -> End:
        """Returns the end that an exception leads to. Logs what is not the caller's fault."""
        if isinstance(error, Dropped):
            return End(code=grpc.StatusCode.CANCELLED)
        if not isinstance(error, Fault):
            _log.exception("fault", method=self._method, request_id=request_id, exc_info=error)
        return _end_of(error, request_id)

    def over(self, request_id: str, started: float, code: str, reason: str) -> None:
        """Counts and logs a call that is over."""
        seconds = perf_counter() - started
        self._metrics.call(self._method, code, seconds)
        if self._logs_good or code != _OK:
            log_call(self._method, request_id, code, reason, seconds)


class _Stream:
    """An open stream.

    Args:
        calls: The calls of its method.
        streams: Where it is counted.
        answerer: Answers its requests.
        begin: Starts an answer that may take longer.
        request_id: Its request id.
    """

    def __init__(
        self,
        calls: _Calls,
        streams: "_Streams",
        answerer: Answerer,
        begin: Callable[[bytes, Callable[[Any], None]], Cancel],
        request_id: str,
    ) -> None:
        self._calls = calls
        self._streams = streams
        self._answerer = answerer
        self._begin = begin
        self._started = perf_counter()
        self._request_id = request_id

    def at_once(self, data: bytes) -> bytes | End | None:
        """See OpenStream."""
        try:
            return self._answerer.at_once(data)
        except Exception as error:  # noqa: BLE001 - no caller is to wait for an answer forever
            return self._failed(error)

    def begin(self, data: bytes, answered: Callable[[bytes | End], None]) -> Cancel:
        """See OpenStream."""
        return self._begin(
            data, lambda result: answered(self._failed(result) if isinstance(result, Exception) else result)
        )

    def end(self) -> End:
        """See OpenStream."""
        self._streams.leave(self)
        return End(trailing=((REQUEST_ID, self._request_id),))

    def over(self, end: End, *, is_cancelled: bool) -> None:
        """See OpenStream."""
        self._streams.leave(self)
        is_lost = is_cancelled and end.code is grpc.StatusCode.OK
        self._calls.over(self._request_id, self._started, "CANCELLED" if is_lost else end.code.name, end.reason)

    def _failed(self, error: Exception) -> End:
        self._streams.leave(self)
        return self._calls.fault(self._request_id, error)


class _Streams:
    """The streams that are open, each with its peer and what ends it."""

    def __init__(self, room: Admission) -> None:
        self._room = room
        self._open: dict[_Stream, tuple[str, Callable[[], None]]] = {}
        self._is_ended = False
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._open)

    def begin(self, stream: _Stream, peer: str, end: Callable[[], None]) -> None:
        """Adds a stream of a peer. Raises ShuttingDown, Overloaded."""
        with self._lock:
            if self._is_ended:
                raise ShuttingDown
            self._room.enter(peer)
            self._open[stream] = peer, end

    def leave(self, stream: _Stream) -> None:
        """Removes a stream, if it is there."""
        with self._lock:
            left = self._open.pop(stream, None)
        if left is not None:
            self._room.leave(left[0])

    def end(self) -> None:
        """Ends those that are open, and lets no more begin."""
        with self._lock:
            self._is_ended = True
            opened, self._open = tuple(self._open.values()), {}
        for _, end in opened:
            end()


def _end_of(error: Exception, request_id: str) -> End:
    """Returns the end that an exception leads to."""
    status = status_of(error)
    trailing = ((DETAILS, status.serialize()), (REQUEST_ID, request_id))
    return End(None, trailing, status.code, status.message, status.reason)


def request_id_of(metadata: Metadata) -> str:
    """Returns the caller's request id, else a new one."""
    return sent_request_id(metadata) or f"{_PROCESS}{next(_CALLS):08x}"
