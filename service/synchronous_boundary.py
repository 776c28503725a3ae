"""The boundary of every call of the synchronous listener: what `interceptors` is for the others.

It makes methods of plain functions of bytes, each with a companion, if there is one, that answers what takes a moment.
"""

import itertools
import logging
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import Final, Protocol

import grpc
import structlog

from service.calls import End, Metadata, OpenStream, Streaming, Unary
from service.errors import status_of
from service.faults import Fault, Overloaded, ShuttingDown
from service.interceptors import DETAILS, REQUEST_ID, log_call, sent_request_id
from service.metrics import Metrics
from service.threads import CallThreads

_OK: Final = "OK"

_PROCESS: Final = secrets.token_hex(8)
_CALLS: Final = itertools.count()
"""What request ids are made of, as chance for each would cost more than all else here."""

PARTS_SECONDS: Final = 0.002
"""For how long one thread makes parts of its answer before the next one may."""

_log = structlog.get_logger()


class Answerer(Protocol):
    """What answers the requests of one stream, in their order."""

    def __call__(self, data: bytes, /) -> bytes:
        """The answer. Raises any Fault."""

    def at_once(self, data: bytes, /) -> bytes | None:
        """The same if it takes a moment only. None: it may take longer, or be a fault. Raises nothing."""


def _never_at_once(_data: bytes) -> None:
    """Says of every request that it may take longer."""


class SynchronousBoundary:
    """Makes methods of functions, which may raise any Fault.

    Args:
        metrics: Counts calls.
        threads: Answer what is not answered at once.
        max_calls: Most calls that wait for a thread; more are refused.
        max_streams: Most streams at a time; more are refused.
    """

    def __init__(self, metrics: Metrics, threads: CallThreads, max_calls: int, max_streams: int) -> None:
        self._metrics = metrics
        self._threads = threads
        self._max_calls = max_calls
        self._streams = _Streams(max_streams)
        self._is_stopping = False
        self._has_given_up = False
        self._making_parts = threading.Lock()

    def unary(
        self, method: str, call: Callable[[bytes], bytes], at_once: Callable[[bytes], bytes | None] = _never_at_once
    ) -> Unary:
        """A method of one request and one answer.

        Args:
            method: Its path.
            call: What answers.
            at_once: The same if it takes a moment only. None: it may take longer, or be a fault. Raises nothing.
        """
        calls = _Calls(method, self._metrics)

        def answer_at_once(data: bytes, metadata: Metadata) -> End | None:
            started = perf_counter()
            try:
                self._check_stopping()
                answer = at_once(data)
                if answer is None:
                    self._check_threads()
                    return None
            except Exception as error:  # noqa: BLE001 - nobody is to wait for an answer forever
                return calls.refused(request_id_of(metadata), started, error)
            return calls.answered(request_id_of(metadata), started, answer)

        def answer(data: bytes, metadata: Metadata) -> End:
            started = perf_counter()
            try:
                self._check_stopping()
                answer = call(data)
            except Exception as error:  # noqa: BLE001 - as above
                return calls.refused(request_id_of(metadata), started, error)
            return calls.answered(request_id_of(metadata), started, answer)

        return Unary(answer_at_once, answer)

    def stream(self, method: str, answerer: Callable[[], Answerer]) -> Streaming:
        """A method of a stream of requests, each answered in its order by what is made for the stream."""
        calls = _Calls(method, self._metrics)

        def open_stream(metadata: Metadata, hang_up: Callable[[End], None]) -> OpenStream | End:
            started, request_id = perf_counter(), request_id_of(metadata)
            try:
                stream = _Stream(calls, self._streams, self._check_threads, request_id, hang_up)
                return stream.opened(answerer())
            except Exception as error:  # noqa: BLE001 - as above
                return calls.refused(request_id, started, error)

        return Streaming(open_stream)

    def stop(self) -> None:
        """Refuses new calls, and ends streams: what was not answered is to be sent to another server."""
        self._is_stopping = True
        for stream in self._streams.end():
            stream.hang_up(_end_of(ShuttingDown(), stream.request_id))

    def give_up(self) -> None:
        """Ends the calls that are answered part by part: none is waited for any more."""
        self._has_given_up = True

    def until_given_up(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """The parts of an answer that may take long. Raises ShuttingDown when it is not waited for any more.

        One thread makes parts at a time, of all such answers, and some in a row: so what is answered at once competes
        with one of them for Python's lock, and not with as many as there are, and they wake one another seldom.
        """
        remaining = iter(parts)
        while not self._has_given_up:
            with self._making_parts:
                made = list(_until(perf_counter() + PARTS_SECONDS, remaining))
            if not made:
                return
            yield from made
        raise ShuttingDown

    @property
    def under_way(self) -> int:
        """How many calls are under way."""
        return self._threads.under_way + self._streams.count

    def _check_stopping(self) -> None:
        """Raises ShuttingDown."""
        if self._is_stopping:
            raise ShuttingDown

    def _check_threads(self) -> None:
        """Raises Overloaded."""
        if self._threads.waiting > self._max_calls:
            raise Overloaded


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

    def answered(self, request_id: str, started: float, answer: bytes | None) -> End:
        """The end of a call that went well."""
        seconds = perf_counter() - started
        self._count_good(seconds)
        if self._logs_good:
            log_call(self._method, request_id, _OK, "", seconds)
        return End(answer, ((REQUEST_ID, request_id),))

    def refused(self, request_id: str, started: float, error: Exception) -> End:
        """The end of a call that did not."""
        end = self.fault(request_id, error)
        self.over(request_id, started, end.code.name, end.reason)
        return end

    def fault(self, request_id: str, error: Exception) -> End:
        """The end that an exception leads to. What is no fault of the caller's is logged."""
        if not isinstance(error, Fault):
            _log.exception("fault", method=self._method, request_id=request_id, exc_info=error)
        return _end_of(error, request_id)

    def over(self, request_id: str, started: float, code: str, reason: str) -> None:
        """A call is over."""
        seconds = perf_counter() - started
        self._metrics.call(self._method, code, seconds)
        if self._logs_good or code != _OK:
            log_call(self._method, request_id, code, reason, seconds)


class _Stream:
    """An open stream.

    Args:
        calls: It is one of them.
        streams: Has its place.
        check_threads: Raises Overloaded if no more may wait for a thread.
        request_id: Its request id.
        hang_up: Ends it.
    """

    _answerer: Answerer

    def __init__(
        self,
        calls: _Calls,
        streams: "_Streams",
        check_threads: Callable[[], None],
        request_id: str,
        hang_up: Callable[[End], None],
    ) -> None:
        self._calls = calls
        self._streams = streams
        self._check_threads = check_threads
        self._started = perf_counter()
        self.request_id = request_id
        self.hang_up = hang_up

    def opened(self, answerer: Answerer) -> OpenStream:
        """The stream in its place. Raises ShuttingDown, Overloaded."""
        self._answerer = answerer
        self._streams.begin(self)
        return self

    def at_once(self, data: bytes) -> bytes | End | None:
        """See OpenStream."""
        try:
            answer = self._answerer.at_once(data)
            if answer is None:
                self._check_threads()
        except Exception as error:  # noqa: BLE001 - nobody is to wait for an answer forever
            return self._failed(error)
        return answer

    def answer(self, data: bytes) -> bytes | End:
        """See OpenStream."""
        try:
            return self._answerer(data)
        except Exception as error:  # noqa: BLE001 - as above
            return self._failed(error)

    def end(self) -> End:
        """See OpenStream."""
        self._streams.leave(self)
        return End(trailing=((REQUEST_ID, self.request_id),))

    def over(self, end: End, *, is_cancelled: bool) -> None:
        """See OpenStream."""
        is_lost = is_cancelled and end.code is grpc.StatusCode.OK
        self._calls.over(self.request_id, self._started, "CANCELLED" if is_lost else end.code.name, end.reason)

    def _failed(self, error: Exception) -> End:
        self._streams.leave(self)
        return self._calls.fault(self.request_id, error)


class _Streams:
    """The places of streams that are open."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: set[_Stream] = set()
        self._is_ended = False
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._open)

    def begin(self, stream: _Stream) -> None:
        """A place for a stream. Raises ShuttingDown, Overloaded."""
        with self._lock:
            if self._is_ended:
                raise ShuttingDown
            if len(self._open) >= self._most:
                raise Overloaded
            self._open.add(stream)

    def leave(self, stream: _Stream) -> None:
        """Frees its place, if it has one."""
        with self._lock:
            self._open.discard(stream)

    def end(self) -> set[_Stream]:
        """Those that are open; no more begin."""
        with self._lock:
            self._is_ended = True
            ended, self._open = self._open, set()
            return ended


def _until(end: float, parts: Iterator[bytes]) -> Iterator[bytes]:
    """Parts, one at least, until it is that late."""
    for part in parts:
        yield part
        if perf_counter() >= end:
            return


def _end_of(error: Exception, request_id: str) -> End:
    """The end that an exception leads to."""
    status = status_of(error)
    trailing = ((DETAILS, status.serialize()), (REQUEST_ID, request_id))
    return End(None, trailing, status.code, status.message, status.reason)


def request_id_of(metadata: Metadata) -> str:
    """The caller's request id, else a new one."""
    return sent_request_id(metadata) or f"{_PROCESS}{next(_CALLS):08x}"
