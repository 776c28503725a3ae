"""A gRPC server on the core's completion queue: one thread accepts all calls and answers most of them itself.

grpcio's synchronous server wakes a thread for each call, which costs more than the rest of a call. This server uses the
core directly: it starts batches of operations on a call, and a queue reports the completed ones as events.

Private parts of grpcio's `cygrpc` that this relies on (see `grpcio_version`):

* `CompletionQueue.poll` returns the next event, to one thread. An event has the tag of its batch or request, and the
  batch's operations; receiving operations hold the received data.
* Any thread may call `Call.start_server_batch`. Its event comes when all operations of the batch are done or the call
  was cancelled. Only one operation of each kind may be in progress.
* A received message is None after the client's last message, or when the client is gone. ReceiveCloseOnServer completes
  when the call is over, and reports whether it was cancelled. Dropping the last reference to a call cancels it.
* `auth_context` returns what the transport knows of a call's peer, by names in bytes.

A unary call takes three events: new call, message received, call over. Each message of a stream takes one: response
sent and next message received. No thread waits for a client. A slow unary call (UnaryMethod.start) is answered from
another thread; ReceiveCloseOnServer is then in progress, so that a cancellation or the deadline stops the work.

The server handles the messages of several streams before it sends the first response. This takes a quarter off the cost
of each message, because sending evicts the judging code and data from the CPU caches. UnaryMethod calls do not gain.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import grpc
import structlog
from grpc._cython import cygrpc

from service.fast_listener.calls import (
    AdmissionControl,
    CallDetails,
    CallResult,
    Cancel,
    Method,
    RefusedCall,
    StreamHandler,
    StreamMethod,
    UnaryMethod,
)
from service.runtime.admission import Admission
from service.runtime.origins import Origin

_NEXT_CALL: Final = "next call"
_SHUTDOWN: Final = "shutdown"
"""Tags. The tag of a batch is a function that handles its event and returns the change in the number of due events."""

_EVENTS_PER_ROUND: Final = 16
"""Most events that are handled while a stream's response waits to be sent."""
_AT_ONCE: Final = 0.0
"""A poll deadline in the past (seconds since 1970): poll returns immediately."""
_TICK_SECONDS: Final = 0.1
"""The interval of checks for late requests, and for refusals that wait."""

_NO_SUCH_METHOD: Final = CallResult(code=grpc.StatusCode.UNIMPLEMENTED, details="Method not found!")
_NO_MESSAGE: Final = CallResult(
    code=grpc.StatusCode.UNIMPLEMENTED, details="The method requires exactly one request message."
)
_CANCELLED: Final = CallResult(code=grpc.StatusCode.CANCELLED)

_log = structlog.get_logger()


class CompletionQueueServer:
    """The server.

    Args:
        methods: The methods by path.
        admission: Admits or rejects calls.
        request_seconds: Timeout for the arrival of a call's request.
        options: Options of gRPC's core.
    """

    def __init__(
        self,
        methods: Mapping[str, Method],
        admission: AdmissionControl,
        request_seconds: float,
        options: Sequence[tuple[str, int]],
    ) -> None:
        self._methods = {path.encode(): (path, method) for path, method in methods.items()}
        self._admission = admission
        self._request_seconds = request_seconds
        self._queue = cygrpc.CompletionQueue()
        self._server = cygrpc.Server(options, False)  # noqa: FBT003 - no xDS
        self._server.register_completion_queue(self._queue)
        self._lock = threading.Lock()
        self._is_stopping = False
        self._events = 2
        """The number of due events: the next call, the shutdown, and those of calls in progress."""
        self._responses: _Responses = []
        self._refusals = _WaitingRefusals(admission.refusals, admission.refused_early_seconds)
        self._awaiting_request: OrderedDict[_UnaryCall, float] = OrderedDict()
        """The calls whose request has not arrived, with its timeout, in the order of the timeouts."""
        self._thread: threading.Thread | None = None

    def start(self, address: str, credentials: grpc.ServerCredentials | None) -> int:
        """Listens on an address and starts serving; returns the port. Raises RuntimeError."""
        tls = () if credentials is None else (credentials._credentials,)  # type: ignore[attr-defined]  # noqa: SLF001 - as grpcio does
        port: int = self._server.add_http2_port(address.encode(), *tls)
        if not port:
            raise RuntimeError(f"cannot listen at {address}")
        self._server.start()
        self._request_call()
        self._thread = threading.Thread(target=self._poll, name="calls-poll", daemon=True)
        self._thread.start()
        return port

    def end_refusals(self) -> None:
        """Sends the refusals that wait, and lets no more wait."""
        self._refusals.is_ended = True

    def stop(self, seconds: float) -> None:
        """Accepts no more calls, cancels the rest after some seconds, and returns when the thread has ended."""
        if self._thread is None:
            return
        with self._lock:
            self._is_stopping = True
            self._server.shutdown(self._queue, _SHUTDOWN)
        self._thread.join(seconds)
        self._server.cancel_all_calls()
        self._thread.join(seconds)  # with a timeout, in case a bug left a call without a result
        self._server.destroy()

    def _poll(self) -> None:
        tick = time.monotonic() + _TICK_SECONDS
        while self._events:
            self._handle(self._queue.poll(time.time() + _TICK_SECONDS))
            if self._responses:
                self._handle_pending_events()
                self._send_responses()
            if time.monotonic() > tick:
                tick = time.monotonic() + _TICK_SECONDS
                self._end_late_calls()
                self._refusals.send_due()

    def _handle(self, event: Any) -> None:  # noqa: ANN401 - cygrpc has no types
        try:
            self._events += self._dispatch(event)
        except Exception:  # noqa: BLE001 - a bug in one call must not stop the server
            _log.exception("a call was not answered")

    def _handle_pending_events(self) -> None:
        """Handles events that are due already; only a few, because responses wait to be sent."""
        for _ in range(_EVENTS_PER_ROUND):
            event = self._queue.poll(_AT_ONCE)
            if event.tag is None:
                return
            self._handle(event)

    def _send_responses(self) -> None:
        for stream, response in self._responses:
            try:
                stream.send(response)
            except Exception:  # noqa: BLE001 - as above
                _log.exception("a stream was not answered")
        self._responses.clear()

    def _end_late_calls(self) -> None:
        """Ends the calls whose request is late."""
        while self._awaiting_request:
            call, timeout = next(iter(self._awaiting_request.items()))
            if timeout > time.monotonic():
                return
            del self._awaiting_request[call]
            call.arrived = timeout - self._request_seconds
            self._refusals.add(call.time_out, self._admission.late_delay(call.origin), call.origin, call.deadline)

    def _dispatch(self, event: Any) -> int:  # noqa: ANN401 - cygrpc has no types
        if event.tag is None:
            return 0
        if event.tag is _NEXT_CALL:
            return self._on_new_call(event)
        if event.tag is _SHUTDOWN:
            return -1
        change: int = event.tag(event)
        return change

    def _on_new_call(self, event: Any) -> int:  # noqa: ANN401 - as above
        """Starts a new call; the event fails when the server shuts down."""
        if not event.success:
            return -1
        more = int(self._request_call())
        call = event.call
        path, method = self._methods.get(event.call_details.method, ("", None))
        if method is None:
            _finish(call, _NO_SUCH_METHOD, _on_rejected_call_over)
            return more
        deadline = _monotonic(event.call_details.deadline)
        peer, auth_context = call.peer().decode(), partial(_auth_context, call)
        details = self._admission.enter(path, peer, event.invocation_metadata, auth_context, deadline)
        if isinstance(details, RefusedCall):
            return more + self._refuse(call, *details)
        admitted = _AdmittedCall(call, path, details, self._admission)
        if isinstance(method, UnaryMethod):
            unary = _UnaryCall(admitted, method, self._awaiting_request, self._refusals)
            self._awaiting_request[unary] = time.monotonic() + self._request_seconds
            unary.receive()
        else:
            _StreamCall(admitted, self._responses, self._refusals).open(method)
            more += 1
        return more

    def _refuse(self, call: Any, result: CallResult, details: CallDetails) -> int:  # noqa: ANN401 - as above
        """Refuses a new call, perhaps later. Returns how many events are due for it beyond the first."""
        if not result.delay:
            _finish(call, result, _on_rejected_call_over)
            return 0
        refused = _WaitingCall(call, result, self._refusals)
        call.start_server_batch((cygrpc.ReceiveCloseOnServerOperation(0),), refused.on_closed)
        refused.wait(details.origin, details.deadline)
        return 1

    def _request_call(self) -> bool:
        """Requests the next call; returns false if the server is stopping."""
        with self._lock:
            if not self._is_stopping:
                self._server.request_call(self._queue, self._queue, _NEXT_CALL)
            return not self._is_stopping


class _AdmittedCall(NamedTuple):
    """A call that AdmissionControl has admitted."""

    call: Any
    path: str
    details: CallDetails
    admission: AdmissionControl

    def leave(self) -> None:
        """Releases the call."""
        self.admission.leave(self.path, self.details)


class _UnaryCall:
    """A unary call.

    One event is due for it; two while a slow call is in progress: the close, and the sent result.
    """

    __slots__ = (
        "_admitted",
        "_awaiting_request",
        "_call",
        "_cancel",
        "_has_request",
        "_is_timed_out",
        "_method",
        "_refusals",
        "_refused",
        "arrived",
    )

    arrived: float
    """When the call arrived, by time.monotonic(). Set only if its request is late."""

    def __init__(
        self,
        admitted: _AdmittedCall,
        method: UnaryMethod,
        awaiting_request: "OrderedDict[_UnaryCall, float]",
        refusals: "_WaitingRefusals",
    ) -> None:
        self._admitted = admitted
        self._call = admitted.call
        self._method = method
        self._awaiting_request = awaiting_request
        self._refusals = refusals
        self._cancel: Cancel | None = None
        self._refused: _WaitingCall | None = None
        self._has_request = False
        self._is_timed_out = False

    @property
    def origin(self) -> Origin:
        """Where the call comes from."""
        return self._admitted.details.origin

    @property
    def deadline(self) -> float:
        """The call's deadline, by time.monotonic()."""
        return self._admitted.details.deadline

    def receive(self) -> None:
        """Starts receiving the request."""
        self._call.start_server_batch((cygrpc.ReceiveMessageOperation(0),), self._on_received)

    def _on_received(self, event: Any) -> int:  # noqa: ANN401 - as above
        if self._is_timed_out:
            return 0
        self._has_request = True
        if self._awaiting_request.pop(self, None) is None:
            self._refusals.discard(self.time_out)
        message = event.batch_operations[0].message()
        result = _NO_MESSAGE if message is None else self._method.at_once(message, self._admitted.details)
        if result is not None:
            _finish(self._call, result, self._on_over)
            return 0
        self._call.start_server_batch((cygrpc.ReceiveCloseOnServerOperation(0),), self._on_closed)
        started = self._method.start(message, self._admitted.details, self._send_result)
        if isinstance(started, CallResult):
            self._admitted.leave()
            self._refused = _WaitingCall(self._call, started, self._refusals)
            self._refused.wait(self.origin, self.deadline)
        else:
            self._cancel = started
        return 1

    def _send_result(self, result: CallResult) -> None:
        """Sends the result of a slow call, from any thread."""
        _finish(self._call, result, _on_sent, is_closing=False)

    def time_out(self) -> None:
        """Ends the call because its request is late, unless the request or the end of the call came after all."""
        if self._has_request:
            return
        self._is_timed_out = True
        _, path, details, admission = self._admitted
        result = admission.timed_out(path, details, time.monotonic() - self.arrived)
        _finish(self._call, result, self._on_over)

    def _on_closed(self, event: Any) -> int:  # noqa: ANN401 - as above
        """Handles the end of a slow call. A cancelled one still gets its result from `start`, which completes it."""
        if self._refused is not None:
            return self._refused.on_closed(event)
        if _is_cancelled(event) and self._cancel is not None:
            self._cancel()
        return self._on_over(event)

    def _on_over(self, _event: object) -> int:
        self._cancel = None  # breaks a reference cycle
        self._admitted.leave()
        return -1


class _StreamCall:
    """A stream. One thread at a time answers; any thread may end the stream.

    Two events are due at its end: the close, and the sent result.
    """

    __slots__ = (
        "_admitted",
        "_call",
        "_cancel",
        "_handler",
        "_lock",
        "_refusals",
        "_responses",
        "_result",
        "_send_refusal",
        "_unsent",
    )

    def __init__(self, admitted: _AdmittedCall, responses: "_Responses", refusals: "_WaitingRefusals") -> None:
        self._admitted = admitted
        self._call = admitted.call
        self._responses = responses
        self._refusals = refusals
        self._send_refusal: _Send | None = None
        """Sends the refusal that ended the stream. The stream then counts no more as a call."""
        self._lock = threading.Lock()
        self._handler: StreamHandler | None = None
        """None before the stream is open and after it is over, which breaks a reference cycle."""
        self._cancel: Cancel | None = None
        self._result: CallResult | None = None
        self._unsent = _initial_metadata()

    def open(self, method: StreamMethod) -> None:
        """Opens the stream and starts receiving."""
        self._call.start_server_batch((cygrpc.ReceiveCloseOnServerOperation(0),), self._on_closed)
        opened = method.open(self._admitted.details, self.finish)
        if isinstance(opened, CallResult):
            self._refuse(opened)
        else:
            self._handler = opened
            with self._lock:
                self._receive_next()

    def _refuse(self, result: CallResult) -> None:
        """Ends the stream with a refusal, perhaps later."""
        self._admitted.leave()
        self._send_refusal = partial(self.finish, result)
        details = self._admitted.details
        self._refusals.add(self._send_refusal, result.delay, details.origin, details.deadline)

    def _on_received(self, event: Any) -> int:  # noqa: ANN401 - as above
        handler, message = self._handler, event.batch_operations[-1].message()
        if handler is None:
            return 0
        response = handler.end() if message is None else handler.at_once(message)
        if response is None:
            started = handler.start(message, self.send)
            if isinstance(started, CallResult):
                self._refuse(started)
            else:
                self._cancel = started
        else:
            self._responses.append((self, response))
        return 0

    def send(self, response: bytes | CallResult) -> None:
        """Sends a response and starts receiving the next message; or sends the result."""
        if isinstance(response, CallResult):
            self.finish(response)
            return
        with self._lock:
            unsent, self._unsent = self._unsent, ()
            self._receive_next(*unsent, cygrpc.SendMessageOperation(response, 0))

    def _receive_next(self, *operations: Any) -> None:  # noqa: ANN401 - as above
        """Starts operations together with the next receive, unless the stream has ended."""
        if self._result is None:
            self._call.start_server_batch((*operations, cygrpc.ReceiveMessageOperation(0)), self._on_received)

    def finish(self, result: CallResult) -> None:
        """Ends the stream, unless it has ended. Any thread may call this."""
        with self._lock:
            if self._result is None:
                self._result = result
                _finish(self._call, result, _on_sent, self._unsent, is_closing=False)

    def _on_closed(self, event: Any) -> int:  # noqa: ANN401 - as above
        """Handles the end of the call, which may come before our result."""
        cancel, self._cancel = self._cancel, None
        if cancel is not None:
            cancel()
        handler, self._handler = self._handler, None
        if handler is not None and self._result is None:
            handler.end()
        if self._send_refusal is not None:
            self._refusals.discard(self._send_refusal)
        else:
            self._admitted.leave()
        self.finish(_CANCELLED)
        if handler is not None and self._result is not None:
            handler.closed(self._result, is_cancelled=_is_cancelled(event))
        self._send_refusal = None  # breaks a reference cycle
        return -1


_Send: TypeAlias = Callable[[], None]
"""Sends a refusal. It is also the identity of a waiting one."""


class _WaitingRefusals:
    """The refusals that are sent later. Their calls stay open meanwhile. For the polling thread.

    Args:
        bound: Bounds how many wait.
        early_seconds: How long before the deadline of its call a refusal is sent at the latest.
    """

    def __init__(self, bound: Admission, early_seconds: float) -> None:
        self._bound = bound
        self._early_seconds = early_seconds
        self._waiting: dict[_Send, tuple[float, Origin]] = {}
        """The refusals, each with the time when it is sent."""
        self.is_ended = False
        """Whether the server stops, so no refusal waits. Any thread may set this."""

    def add(self, send: _Send, delay: float, origin: Origin, deadline: float) -> None:
        """Sends a refusal after some seconds, but before the call's deadline; at once if too many wait."""
        now = time.monotonic()
        at = min(now + delay, deadline - self._early_seconds)
        if at <= now or self.is_ended or not self._bound.try_enter(origin):
            send()
        else:
            self._waiting[send] = at, origin

    def discard(self, send: _Send) -> bool:
        """Drops a refusal; returns whether it was waiting."""
        waiting = self._waiting.pop(send, None)
        if waiting is None:
            return False
        self._bound.leave(waiting[1])
        return True

    def send_due(self) -> None:
        """Sends the refusals whose time has come."""
        now = time.monotonic()
        for send in [send for send, (at, _) in self._waiting.items() if self.is_ended or at <= now]:
            self.discard(send)
            try:
                send()
            except Exception:  # noqa: BLE001 - a bug in one call must not stop the server
                _log.exception("a call was not answered")


class _WaitingCall:
    """A call that waits for its refusal. Two events are due: the close, and the sent refusal."""

    __slots__ = ("_call", "_refusals", "_result")

    def __init__(self, call: Any, result: CallResult, refusals: _WaitingRefusals) -> None:  # noqa: ANN401 - as above
        self._call = call
        self._result = result
        self._refusals = refusals

    def wait(self, origin: Origin, deadline: float) -> None:
        """Sends the refusal, perhaps later."""
        self._refusals.add(self._send, self._result.delay, origin, deadline)

    def _send(self) -> None:
        _finish(self._call, self._result, _on_sent, is_closing=False)

    def on_closed(self, _event: object) -> int:
        """Handles the end of the call. A refusal that still waits is sent at once, which releases the call."""
        if self._refusals.discard(self._send):
            self._send()
        return -1


_Responses: TypeAlias = list[tuple[_StreamCall, bytes | CallResult]]
"""Responses to send, with their streams."""


def _auth_context(call: Any) -> Mapping[str, Sequence[bytes]]:  # noqa: ANN401 - as above
    """Returns what the transport knows of a call's peer."""
    return {name.decode(): values for name, values in cygrpc.auth_context(call).items()}


def _monotonic(deadline: float) -> float:
    """Converts a deadline from seconds since 1970 to time.monotonic()."""
    return deadline - time.time() + time.monotonic()


def _initial_metadata() -> tuple[Any, ...]:
    return (cygrpc.SendInitialMetadataOperation(None, 0),)


def _finish(
    call: Any,  # noqa: ANN401 - as above
    result: CallResult,
    tag: Callable[[Any], int],
    unsent: tuple[Any, ...] | None = None,
    *,
    is_closing: bool = True,
) -> None:
    """Sends a call's result.

    Args:
        call: The call.
        result: Its result.
        tag: The tag of the event.
        unsent: Operations to start first; None: sending the initial metadata.
        is_closing: Whether the event comes when the call is over; otherwise when the result was sent.
    """
    operations = _initial_metadata() if unsent is None else unsent
    if result.message is not None:
        operations = (*operations, cygrpc.SendMessageOperation(result.message, 0))
    status = cygrpc.SendStatusFromServerOperation(result.trailing, result.code.value[0], result.details, 0)
    operations = (*operations, status)
    if is_closing:
        operations = (*operations, cygrpc.ReceiveCloseOnServerOperation(0))
    call.start_server_batch(operations, tag)


def _is_cancelled(event: Any) -> bool:  # noqa: ANN401 - as above
    cancelled: bool = event.batch_operations[-1].cancelled()
    return cancelled


def _on_rejected_call_over(_event: object) -> int:
    return -1


def _on_sent(_event: object) -> int:
    return -1
