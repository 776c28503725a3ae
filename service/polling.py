"""A gRPC server with one thread that all calls go through, and that answers at once what takes a moment only.

grpcio's own synchronous server gives a thread to each call and each stream; waking it costs more than all else. This
one stands on the same core: batches of operations are started on a call, and a queue tells when they are done. What is
relied upon is grpcio's `cygrpc`, which is not public (grpcio is pinned; `taking` relies upon other parts of it):

* `CompletionQueue.poll` tells what happened, to one thread. Its event has the tag that the batch or request was started
  with, and the batch's operations, of which those that receive have what came.
* `Call.start_server_batch` may be called by any thread. Its event comes when all its operations are done, whether they
  succeeded or the call was cancelled. Of each kind one operation is under way at a time.
* A message that does not come (the client has sent all, or is gone) is None. ReceiveCloseOnServer is done when a call
  is over, and tells whether it was cancelled; a call whose last reference goes before that is cancelled.

So a call of one request costs three events: it comes, its message comes, and it is over. A message of a stream costs
one: its answer is sent, and the next message has come. Neither holds a thread while it waits for its client.

Messages of several streams that have come are all judged before one is answered, which takes a quarter off the cost of
each: what judging needs stays in the processor's caches, which sending empties. For calls of one request that is no
gain, as little of what is taken together is their messages.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import grpc
import structlog
from grpc._cython import cygrpc

from service.calls import End, Metadata, Method, OpenStream, Unary
from service.threads import CallThreads

_NEXT_CALL: Final = "next call"
_SHUTDOWN: Final = "shutdown"
"""Tags; those of batches are functions that answer how many events more are to come than before."""

_TAKEN_TOGETHER: Final = 16
"""Most events that are taken while the first answer of a stream among them waits."""
_AT_ONCE: Final = 0.0
"""A deadline, in seconds since 1970, that is over."""

_NO_SUCH_METHOD: Final = End(code=grpc.StatusCode.UNIMPLEMENTED, details="Method not found!")
_NO_MESSAGE: Final = End(code=grpc.StatusCode.UNIMPLEMENTED, details="The method requires exactly one request message.")

_log = structlog.get_logger()


class PollingServer:
    """A server.

    Args:
        methods: What it serves, by paths.
        threads: Answer what cannot be answered at once. They end with the server.
        options: Of grpcio's core.
    """

    def __init__(self, methods: Mapping[str, Method], threads: CallThreads, options: Sequence[tuple[str, int]]) -> None:
        self._methods = {path.encode(): method for path, method in methods.items()}
        self._threads = threads
        self._queue = cygrpc.CompletionQueue()
        self._server = cygrpc.Server(options, False)  # noqa: FBT003 - no xDS
        self._server.register_completion_queue(self._queue)
        self._lock = threading.Lock()
        self._is_stopping = False
        self._awaited = 2
        """Events to come: the next call, the shutdown; and for each call that it is over."""
        self._answered: _Answered = []
        self._thread: threading.Thread | None = None

    def start(self, address: str, credentials: grpc.ServerCredentials | None) -> int:
        """Serves at an address, and answers the port. Raises RuntimeError."""
        secrets = () if credentials is None else (credentials._credentials,)  # type: ignore[attr-defined]  # noqa: SLF001 - as grpcio does
        port: int = self._server.add_http2_port(address.encode(), *secrets)
        if not port:
            raise RuntimeError(f"cannot listen at {address}")
        self._server.start()
        self._request_call()
        self._thread = threading.Thread(target=self._poll, name="calls-poll", daemon=True)
        self._thread.start()
        return port

    def stop(self, seconds: float) -> None:
        """Takes no more calls, cancels after some seconds those that are left, and returns when all is over."""
        if self._thread is not None:
            with self._lock:
                self._is_stopping = True
                self._server.shutdown(self._queue, _SHUTDOWN)
            self._thread.join(seconds)
            self._server.cancel_all_calls()
        self._threads.shutdown()
        if self._thread is not None:
            self._thread.join(seconds)  # not forever, should a fault of ours have left a call without an end
            self._server.destroy()

    def _poll(self) -> None:
        while self._awaited:
            self._take(self._queue.poll())
            if self._answered:
                self._look_for_more()
                self._send_answers()

    def _take(self, event: Any) -> None:  # noqa: ANN401 - cygrpc has no types
        try:
            self._awaited += self._more_awaited_after(event)
        except Exception:  # noqa: BLE001 - other calls go on
            _log.exception("a call was not answered")

    def _look_for_more(self) -> None:
        """Takes what has happened already, but not for long: the answers of streams wait."""
        for _ in range(_TAKEN_TOGETHER):
            event = self._queue.poll(_AT_ONCE)
            if event.tag is None:
                return
            self._take(event)

    def _send_answers(self) -> None:
        """Sends the answers of streams."""
        for stream, answer in self._answered:
            try:
                stream.send(answer)
            except Exception:  # noqa: BLE001 - as above
                _log.exception("a stream was not answered")
        self._answered.clear()

    def _more_awaited_after(self, event: Any) -> int:  # noqa: ANN401 - cygrpc has no types
        if event.tag is _NEXT_CALL:
            return self._begun(event)
        if event.tag is _SHUTDOWN:
            return -1
        more: int = event.tag(event)
        return more

    def _begun(self, event: Any) -> int:  # noqa: ANN401 - as above
        """A call has come, or no more will."""
        if not event.success:
            return -1
        more = 1 if self._request_call() else 0
        method = self._methods.get(event.call_details.method)
        if method is None:
            _finish(event.call, _NO_SUCH_METHOD, _ended)
        elif isinstance(method, Unary):
            _UnaryCall(event.call, event.invocation_metadata, method, self._threads)
        else:
            _StreamCall(event.call, self._threads, self._answered).open(method.open, event.invocation_metadata)
        return more

    def _request_call(self) -> bool:
        """Asks for the next call, unless there is none any more."""
        with self._lock:
            if not self._is_stopping:
                self._server.request_call(self._queue, self._queue, _NEXT_CALL)
            return not self._is_stopping


class _UnaryCall:
    """A call of one request and one answer."""

    __slots__ = ("_call", "_metadata", "_method", "_threads")

    def __init__(self, call: Any, metadata: Metadata, method: Unary, threads: CallThreads) -> None:  # noqa: ANN401 - as above
        self._call = call
        self._metadata = metadata
        self._method = method
        self._threads = threads
        call.start_server_batch((cygrpc.ReceiveMessageOperation(0),), self._received)

    def _received(self, event: Any) -> int:  # noqa: ANN401 - as above
        message = event.batch_operations[0].message()
        end = _NO_MESSAGE if message is None else self._method.at_once(message, self._metadata)
        if end is None:
            self._threads.submit(self._answer, message)
        else:
            _finish(self._call, end, _ended)
        return 0

    def _answer(self, message: bytes) -> None:
        _finish(self._call, self._method.answer(message, self._metadata), _ended)


class _StreamCall:
    """A stream. The thread that polls or another one answers, but only one at a time; any thread may end it."""

    __slots__ = ("_answered", "_call", "_end", "_lock", "_stream", "_threads", "_unsent")

    def __init__(self, call: Any, threads: CallThreads, answered: "_Answered") -> None:  # noqa: ANN401 - as above
        self._call = call
        self._threads = threads
        self._answered = answered
        self._lock = threading.Lock()
        self._stream: OpenStream | None = None
        """None again when it is over: it knows this call, so they would wait for the collector of cycles."""
        self._end: End | None = None
        self._unsent = _initial_metadata()

    def open(self, open_stream: Callable[[Metadata, Callable[[End], None]], OpenStream | End], sent: Metadata) -> None:
        """Begins."""
        opened = open_stream(sent, self.finish)
        if isinstance(opened, End):
            _finish(self._call, opened, _ended)
        else:
            self._stream = opened
            with self._lock:
                self._go_on()

    def _received(self, event: Any) -> int:  # noqa: ANN401 - as above
        stream, message = self._stream, event.batch_operations[-1].message()
        if stream is None:
            return 0
        answer = stream.end() if message is None else stream.at_once(message)
        if answer is None:
            self._threads.submit(self._answer, message)
        else:
            self._answered.append((self, answer))
        return 0

    def _answer(self, message: bytes) -> None:
        """Answers in a thread, unless the stream ended while the message waited for one."""
        stream = self._stream
        if stream is not None:
            self.send(stream.answer(message))

    def send(self, answer: bytes | End) -> None:
        """Sends the answer to a message, and waits for the next one; or ends the stream."""
        if isinstance(answer, End):
            self.finish(answer)
            return
        with self._lock:
            unsent, self._unsent = self._unsent, ()
            self._go_on(*unsent, cygrpc.SendMessageOperation(answer, 0))

    def _go_on(self, *operations: Any) -> None:  # noqa: ANN401 - as above
        """Waits for the next message, unless the stream has ended."""
        if self._end is None:
            self._call.start_server_batch((*operations, cygrpc.ReceiveMessageOperation(0)), self._received)

    def finish(self, end: End) -> None:
        """Ends the stream, unless it has ended."""
        with self._lock:
            if self._end is None:
                self._end = end
                _finish(self._call, end, self._over, self._unsent)

    def _over(self, event: Any) -> int:  # noqa: ANN401 - as above
        stream, self._stream = self._stream, None
        if stream is not None and self._end is not None:
            stream.over(self._end, is_cancelled=_is_cancelled(event))
        return -1


_Answered: TypeAlias = list[tuple[_StreamCall, bytes | End]]
"""Streams, and what each is to be sent."""


def _initial_metadata() -> tuple[Any, ...]:
    return (cygrpc.SendInitialMetadataOperation(None, 0),)


def _finish(call: Any, end: End, over: Callable[[Any], int], unsent: tuple[Any, ...] | None = None) -> None:  # noqa: ANN401 - as above
    """Sends a call's end, with what has to be sent before; `over` is the tag of the call's last event."""
    operations = _initial_metadata() if unsent is None else unsent
    if end.message is not None:
        operations = (*operations, cygrpc.SendMessageOperation(end.message, 0))
    status = cygrpc.SendStatusFromServerOperation(end.trailing, end.code.value[0], end.details, 0)
    call.start_server_batch((*operations, status, cygrpc.ReceiveCloseOnServerOperation(0)), over)


def _is_cancelled(event: Any) -> bool:  # noqa: ANN401 - as above
    cancelled: bool = event.batch_operations[-1].cancelled()
    return cancelled


def _ended(_event: object) -> int:
    """The tag of the last event of a call that nobody needs to be told of."""
    return -1
