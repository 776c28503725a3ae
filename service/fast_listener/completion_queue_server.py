"""A gRPC server on the core's completion queue: one thread takes all calls and answers most of them itself.

grpcio's own synchronous server gives a thread to each call and each stream; waking it costs more than all else. This
one stands on the same core: batches of operations are started on a call, and a queue reports when they are done. It
relies on grpcio's `cygrpc`, which is private (grpcio is pinned; `taking` relies on other parts of it):

* `CompletionQueue.poll` returns the next event to one thread. The event has the tag that the batch or request was
  started with, and the batch's operations, of which those that receive have what came.
* `Call.start_server_batch` may be called by any thread. Its event comes when all its operations are done, whether they
  succeeded or the call was cancelled. Of each kind one operation is under way at a time.
* A message that does not come (the client has sent all, or is gone) is None. ReceiveCloseOnServer is done when a call
  is over, and says whether it was cancelled; a call whose last reference goes before that is cancelled.

So a call of one request costs three events: it begins, its message comes, and it is over. A message of a stream costs
one: its answer is sent, and the next message has come. Neither holds a thread while it waits for its client. A call
whose answer may take long is answered elsewhere (Unary.begin); it has ReceiveCloseOnServer started then, so that its
cancellation, or its deadline, ends the work at once.

The server judges messages of several streams before it answers one, which takes a quarter off the cost of each: what
judging needs stays in the processor's caches, which sending empties. For calls of one request that is no gain.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import grpc
import structlog
from grpc._cython import cygrpc

from service.fast_listener.calls import Caller, Cancel, End, Gate, Method, OpenStream, Streaming, Unary
from service.runtime.admission import peer_address

_NEXT_CALL: Final = "next call"
_SHUTDOWN: Final = "shutdown"
"""Tags; those of batches are functions that return how many more events are to come than before."""

_TAKEN_TOGETHER: Final = 16
"""Most events that are taken while the first answer of a stream among them waits."""
_AT_ONCE: Final = 0.0
"""A deadline, in seconds since 1970, that has passed."""
_TICK_SECONDS: Final = 0.5
"""How often the server looks for requests that have not arrived in time."""

_NO_SUCH_METHOD: Final = End(code=grpc.StatusCode.UNIMPLEMENTED, details="Method not found!")
_NO_MESSAGE: Final = End(code=grpc.StatusCode.UNIMPLEMENTED, details="The method requires exactly one request message.")
_CANCELLED: Final = End(code=grpc.StatusCode.CANCELLED)

_log = structlog.get_logger()


class PollingServer:
    """A server.

    Args:
        methods: The methods by path.
        gate: Decides which calls get in.
        request_seconds: How long the request of a call may take to arrive.
        options: Options of grpcio's core.
    """

    def __init__(
        self,
        methods: Mapping[str, Method],
        gate: Gate,
        request_seconds: float,
        options: Sequence[tuple[str, int]],
    ) -> None:
        self._methods = {path.encode(): (path, method) for path, method in methods.items()}
        self._gate = gate
        self._request_seconds = request_seconds
        self._queue = cygrpc.CompletionQueue()
        self._server = cygrpc.Server(options, False)  # noqa: FBT003 - no xDS
        self._server.register_completion_queue(self._queue)
        self._lock = threading.Lock()
        self._is_stopping = False
        self._events = 2
        """Events to come: the next call, the shutdown, and those of the calls under way."""
        self._answered: _Answered = []
        self._expected: dict[_UnaryCall, float] = {}
        """Calls whose request has not arrived, with the time when it must have, in the order of these times."""
        self._thread: threading.Thread | None = None

    def start(self, address: str, credentials: grpc.ServerCredentials | None) -> int:
        """Serves at an address, and returns the port. Raises RuntimeError."""
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
        if self._thread is None:
            return
        with self._lock:
            self._is_stopping = True
            self._server.shutdown(self._queue, _SHUTDOWN)
        self._thread.join(seconds)
        self._server.cancel_all_calls()
        self._thread.join(seconds)  # not forever, should a fault of ours have left a call without an end
        self._server.destroy()

    def _poll(self) -> None:
        tick = time.monotonic() + _TICK_SECONDS
        while self._events:
            self._take(self._queue.poll(time.time() + _TICK_SECONDS))
            if self._answered:
                self._look_for_more()
                self._send_answers()
            if time.monotonic() > tick:
                tick = time.monotonic() + _TICK_SECONDS
                self._end_late_calls()

    def _take(self, event: Any) -> None:  # noqa: ANN401 - cygrpc has no types
        try:
            self._events += self._more_events_after(event)
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

    def _end_late_calls(self) -> None:
        """Ends the calls whose request has not arrived in time."""
        now = time.monotonic()
        for call, until in tuple(self._expected.items()):
            if until > now:
                return
            del self._expected[call]
            call.end_late()

    def _more_events_after(self, event: Any) -> int:  # noqa: ANN401 - cygrpc has no types
        if event.tag is None:
            return 0
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
        more = int(self._request_call())
        call = event.call
        path, method = self._methods.get(event.call_details.method, ("", None))
        if method is None:
            _finish(call, _NO_SUCH_METHOD, _ended)
            return more
        caller = Caller(
            event.invocation_metadata, peer_address(call.peer().decode()), _monotonic(event.call_details.deadline)
        )
        refused = self._gate.enter(path, caller)
        admitted = _Admitted(call, path, caller, self._gate)
        if refused is not None:
            _finish(call, refused, _ended)
        elif isinstance(method, Unary):
            unary = _UnaryCall(admitted, method, self._expected)
            self._expected[unary] = time.monotonic() + self._request_seconds
            unary.receive()
        else:
            _StreamCall(admitted, self._answered).open(method)
            more += 1
        return more

    def _request_call(self) -> bool:
        """Requests the next call, unless there is none any more."""
        with self._lock:
            if not self._is_stopping:
                self._server.request_call(self._queue, self._queue, _NEXT_CALL)
            return not self._is_stopping


class _Admitted(NamedTuple):
    """A call that was let in."""

    call: Any
    path: str
    caller: Caller
    gate: Gate

    def leave(self) -> None:
        """Counts it out."""
        self.gate.leave(self.path, self.caller)


class _UnaryCall:
    """A call of one request and one answer.

    One event is to come for it, or two from when a slow answer begins: the close, and the sent end.
    """

    __slots__ = ("_admitted", "_call", "_cancel", "_expected", "_method")

    def __init__(self, admitted: _Admitted, method: Unary, expected: "dict[_UnaryCall, float]") -> None:
        self._admitted = admitted
        self._call = admitted.call
        self._method = method
        self._expected = expected
        self._cancel: Cancel | None = None

    def receive(self) -> None:
        """Waits for the request."""
        self._call.start_server_batch((cygrpc.ReceiveMessageOperation(0),), self._received)

    def _received(self, event: Any) -> int:  # noqa: ANN401 - as above
        if self._expected.pop(self, None) is None:
            return 0  # it came too late
        message = event.batch_operations[0].message()
        end = _NO_MESSAGE if message is None else self._method.at_once(message, self._admitted.caller)
        if end is not None:
            _finish(self._call, end, self._over)
            return 0
        self._call.start_server_batch((cygrpc.ReceiveCloseOnServerOperation(0),), self._closed)
        self._cancel = self._method.begin(message, self._admitted.caller, self._answer)
        return 1

    def _answer(self, end: End) -> None:
        """Sends the end of a slow call; any thread may."""
        _finish(self._call, end, _sent, is_closing=False)

    def end_late(self) -> None:
        """Ends a call whose request did not arrive in time."""
        _, path, caller, gate = self._admitted
        _finish(self._call, gate.timed_out(path, caller), self._over)

    def _closed(self, event: Any) -> int:  # noqa: ANN401 - as above
        """A slow call is over. If it was cancelled, `begin` still gets to call back, which ends it for us too."""
        if _is_cancelled(event) and self._cancel is not None:
            self._cancel()
        return self._over(event)

    def _over(self, _event: object) -> int:
        self._cancel = None  # it knows this call, so they would wait for the collector of cycles
        self._admitted.leave()
        return -1


class _StreamCall:
    """A stream. The thread that polls or another one answers, but only one at a time; any thread may end it.

    Two events are to come for it at the end: the close, and the sent end.
    """

    __slots__ = ("_admitted", "_answered", "_call", "_cancel", "_end", "_lock", "_stream", "_unsent")

    def __init__(self, admitted: _Admitted, answered: "_Answered") -> None:
        self._admitted = admitted
        self._call = admitted.call
        self._answered = answered
        self._lock = threading.Lock()
        self._stream: OpenStream | None = None
        """None again when it is over: it knows this call, so they would wait for the collector of cycles."""
        self._cancel: Cancel | None = None
        self._end: End | None = None
        self._unsent = _initial_metadata()

    def open(self, method: Streaming) -> None:
        """Begins."""
        self._call.start_server_batch((cygrpc.ReceiveCloseOnServerOperation(0),), self._closed)
        opened = method.open(self._admitted.caller, self.finish)
        if isinstance(opened, End):
            self.finish(opened)
        else:
            self._stream = opened
            with self._lock:
                self._receive_after()

    def _received(self, event: Any) -> int:  # noqa: ANN401 - as above
        stream, message = self._stream, event.batch_operations[-1].message()
        if stream is None:
            return 0
        answer = stream.end() if message is None else stream.at_once(message)
        if answer is None:
            self._cancel = stream.begin(message, self.send)
        else:
            self._answered.append((self, answer))
        return 0

    def send(self, answer: bytes | End) -> None:
        """Sends the answer to a message, and waits for the next one; or ends the stream."""
        if isinstance(answer, End):
            self.finish(answer)
            return
        with self._lock:
            unsent, self._unsent = self._unsent, ()
            self._receive_after(*unsent, cygrpc.SendMessageOperation(answer, 0))

    def _receive_after(self, *operations: Any) -> None:  # noqa: ANN401 - as above
        """Waits for the next message, unless the stream has ended."""
        if self._end is None:
            self._call.start_server_batch((*operations, cygrpc.ReceiveMessageOperation(0)), self._received)

    def finish(self, end: End) -> None:
        """Ends the stream, unless it has ended."""
        with self._lock:
            if self._end is None:
                self._end = end
                _finish(self._call, end, _sent, self._unsent, is_closing=False)

    def _closed(self, event: Any) -> int:  # noqa: ANN401 - as above
        """The stream is over, perhaps before we have ended it."""
        cancel, self._cancel = self._cancel, None
        if cancel is not None:
            cancel()
        stream, self._stream = self._stream, None
        if stream is not None and self._end is None:
            stream.end()
        self.finish(_CANCELLED)
        if stream is not None and self._end is not None:
            stream.over(self._end, is_cancelled=_is_cancelled(event))
        self._admitted.leave()
        return -1


_Answered: TypeAlias = list[tuple[_StreamCall, bytes | End]]
"""Streams, and what each is to be sent."""


def _monotonic(deadline: float) -> float:
    """Returns a deadline, in seconds since 1970, by time.monotonic()."""
    return deadline - time.time() + time.monotonic()


def _initial_metadata() -> tuple[Any, ...]:
    return (cygrpc.SendInitialMetadataOperation(None, 0),)


def _finish(
    call: Any,  # noqa: ANN401 - as above
    end: End,
    tag: Callable[[Any], int],
    unsent: tuple[Any, ...] | None = None,
    *,
    is_closing: bool = True,
) -> None:
    """Sends a call's end, after what is unsent; with `is_closing` the event comes when the call is over."""
    operations = _initial_metadata() if unsent is None else unsent
    if end.message is not None:
        operations = (*operations, cygrpc.SendMessageOperation(end.message, 0))
    operations = (*operations, cygrpc.SendStatusFromServerOperation(end.trailing, end.code.value[0], end.details, 0))
    if is_closing:
        operations = (*operations, cygrpc.ReceiveCloseOnServerOperation(0))
    call.start_server_batch(operations, tag)


def _is_cancelled(event: Any) -> bool:  # noqa: ANN401 - as above
    cancelled: bool = event.batch_operations[-1].cancelled()
    return cancelled


def _ended(_event: object) -> int:
    """The tag of the last event of a call that was never let in."""
    return -1


def _sent(_event: object) -> int:
    """The tag of the event of a sent end."""
    return -1
