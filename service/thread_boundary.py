"""The boundary of every call of the synchronous listener: what `interceptors` is for the others.

It wraps plain functions of bytes.
"""

import contextlib
import itertools
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NoReturn, TypeAlias

import grpc
import structlog
from grpc import _server

from service.errors import Status, status_of
from service.faults import Fault, Overloaded, ShuttingDown
from service.interceptors import DETAILS, REQUEST_ID, log_call, sent_request_id
from service.metrics import Metrics
from service.threads import CallThreads

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

SPARE_THREADS: Final = 4
"""Threads that refuse streams beyond the most."""

_PROCESS: Final = secrets.token_hex(8)
_CALLS: Final = itertools.count()
"""What request ids are made of, as chance for each would cost more than all else here."""

_log = structlog.get_logger()


class ThreadBoundary:
    """Makes handlers of functions, which may raise any Fault.

    Args:
        metrics: Counts calls.
        threads: Answer the calls that are no streams.
        max_calls: Most calls that wait for a thread; more are refused.
        max_streams: Most streams at a time, each of which has a thread of its own; more are refused.
    """

    def __init__(self, metrics: Metrics, threads: CallThreads, max_calls: int, max_streams: int) -> None:
        self._metrics = metrics
        self._threads = threads
        self._max_calls = max_calls
        self._streams = _Streams(max_streams)
        self._is_stopping = False
        self._logs_all = _log.bind().is_enabled_for(logging.DEBUG)

    def unary(self, method: str, call: Callable[[bytes], bytes]) -> Handler:
        """A handler of one request and one answer."""

        def handle(data: bytes, context: grpc.ServicerContext) -> bytes:
            started = time.perf_counter()
            request_id = _request_id(context)
            try:
                self._check()
                answer = call(data)
            except Exception as error:  # noqa: BLE001 - grpcio would answer with its text
                self._abort(method, context, request_id, started, error)
            context.set_trailing_metadata(((REQUEST_ID, request_id),))
            self._tell(method, request_id, "OK", started)
            return answer

        return grpc.unary_unary_rpc_method_handler(handle)

    def stream(self, method: str, answerer: Callable[[], Callable[[bytes], bytes]]) -> Handler:
        """A handler of a stream of requests, each answered in its order by what is made for the stream."""

        def handle(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            started = time.perf_counter()
            request_id = _request_id(context)
            fault: Exception | None = None
            try:
                self._check()
                with self._streams.open(context, request_id):
                    answer = answerer()
                    for data in requests:
                        yield answer(data)
            except GeneratorExit:
                self._tell(method, request_id, self._lost, started)
                return
            except Exception as error:  # noqa: BLE001 - grpcio would answer with its text
                fault = error
            if not context.is_active():
                self._tell(method, request_id, self._lost, started)
                _leave(context)
            if fault:
                self._abort(method, context, request_id, started, fault)
            context.set_trailing_metadata(((REQUEST_ID, request_id),))
            self._tell(method, request_id, "OK", started)

        handle.experimental_thread_pool = self._streams.threads  # type: ignore[attr-defined]
        return grpc.stream_stream_rpc_method_handler(handle)

    def stop(self) -> None:
        """Refuses new calls, and ends streams: what was not answered is to be sent to another server."""
        self._is_stopping = True
        self._streams.end(status_of(ShuttingDown()))

    def close(self) -> None:
        """Ends the threads of streams, all of which have ended."""
        self._streams.threads.shutdown()

    @property
    def under_way(self) -> int:
        """How many calls are under way."""
        return self._threads.under_way + self._streams.count

    @property
    def _lost(self) -> str:
        """How a stream has ended that its handler did not end."""
        return "UNAVAILABLE" if self._is_stopping else "CANCELLED"

    def _check(self) -> None:
        """Raises ShuttingDown, Overloaded."""
        if self._is_stopping:
            raise ShuttingDown
        if self._threads.waiting > self._max_calls:
            raise Overloaded

    def _abort(
        self, method: str, context: grpc.ServicerContext, request_id: str, started: float, error: Exception
    ) -> NoReturn:
        status = status_of(error)
        if not isinstance(error, Fault):
            _log.exception("fault", method=method, request_id=request_id, exc_info=error)
        self._tell(method, request_id, status.code.name, started, status.reason)
        context.set_trailing_metadata(((DETAILS, status.serialize()), (REQUEST_ID, request_id)))
        context.abort(status.code, status.message)

    def _tell(self, method: str, request_id: str, code: str, started: float, reason: str = "") -> None:
        seconds = time.perf_counter() - started
        self._metrics.call(method, code, seconds)
        if self._logs_all or code != "OK":
            log_call(method, request_id, code, reason, seconds)


class _Streams:
    """The streams that are open."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[grpc.ServicerContext, str] = {}
        self._is_ended = False
        self._lock = threading.Lock()
        self.threads = ThreadPoolExecutor(most + SPARE_THREADS, "stream")

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._open)

    @contextlib.contextmanager
    def open(self, context: grpc.ServicerContext, request_id: str) -> Iterator[None]:
        """Around a stream. Raises ShuttingDown, Overloaded."""
        with self._lock:
            if self._is_ended:
                raise ShuttingDown
            if len(self._open) >= self._most:
                raise Overloaded
            self._open[context] = request_id
        try:
            yield
        finally:
            with self._lock:
                del self._open[context]

    def end(self, status: Status) -> None:
        """Ends all with a status, and lets no more begin."""
        with self._lock:  # none of them ends by itself meanwhile: a call has one status
            self._is_ended = True
            for context, request_id in self._open.items():
                context.set_trailing_metadata(((DETAILS, status.serialize()), (REQUEST_ID, request_id)))
                context.set_code(status.code)
                context.set_details(status.message)
                _end(context, status.code)


def _end(context: grpc.ServicerContext, code: grpc.StatusCode) -> None:
    """Ends another thread's call, which waits for its client; nothing public does."""
    state, call = context._state, context._rpc_event.call  # type: ignore[attr-defined]  # noqa: SLF001 - see above
    with state.condition:
        _server._abort(state, call, code.value[0], b"")  # noqa: SLF001 - see above


def _leave(context: grpc.ServicerContext) -> NoReturn:
    """Leaves the handler of a call that has ended, so that grpcio neither answers nor logs it again."""
    _server._raise_rpc_error(context._state)  # type: ignore[attr-defined]  # noqa: SLF001 - nothing public does
    raise AssertionError  # it has raised


def _request_id(context: grpc.ServicerContext) -> str:
    """The caller's request id, else a new one."""
    return sent_request_id(context.invocation_metadata()) or f"{_PROCESS}{next(_CALLS):08x}"
