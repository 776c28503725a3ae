"""The interface between the completion-queue server and its methods: calls as bytes, and their results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import grpc

from service.grpc_api.call_origin import AuthContext
from service.runtime.admission import Admission
from service.runtime.origins import Origin
from service.runtime.tracing import CallTrace

Metadata: TypeAlias = Sequence[tuple[str, str | bytes]]


class CallDetails(NamedTuple):
    """A call in progress.

    Attributes:
        metadata: The call's metadata.
        origin: Where it comes from.
        deadline: The deadline by time.monotonic(); infinity without one.
        trace: Its span; None if tracing is off.
    """

    metadata: Metadata
    origin: Origin
    deadline: float
    trace: CallTrace | None


class CallResult(NamedTuple):
    """The result of a call.

    Attributes:
        message: The response of a unary call that succeeded.
        trailing: The trailing metadata.
        code: The status code.
        details: The status message.
        reason: The error reason, for log and metrics.
        limit: The limit that refuses the call, if the reason does not say it.
        delay: How many seconds the result waits before it is sent.
    """

    message: bytes | None = None
    trailing: Metadata = ()
    code: grpc.StatusCode = grpc.StatusCode.OK
    details: str = ""
    reason: str = ""
    limit: str = ""
    delay: float = 0.0


class RefusedCall(NamedTuple):
    """A call that was refused before it was admitted, and its result."""

    result: CallResult
    call: CallDetails


Cancel: TypeAlias = Callable[[], None]
"""Cancels the work on a call. Has no effect once the call has its result."""


def _never_started(_data: bytes, _call: CallDetails, _on_result: Callable[[CallResult], None]) -> Cancel | CallResult:
    """The `start` of a method that answers all calls at once."""
    raise AssertionError


@dataclass(frozen=True, slots=True)
class UnaryMethod:
    """A unary-unary method. Neither function raises.

    Attributes:
        at_once: Returns the result of a call within a moment, because it blocks all other calls; None if the call may
            take longer.
        start: Starts a call that may take longer, or returns the refusal. Its last argument is called once with the
            result, from any thread, unless the call is refused. Called after `at_once`, by the same thread.
    """

    at_once: Callable[[bytes, CallDetails], CallResult | None]
    start: Callable[[bytes, CallDetails, Callable[[CallResult], None]], Cancel | CallResult] = _never_started


class StreamHandler(Protocol):
    """An open stream. Each request is answered before the next one is received. No method raises."""

    def at_once(self, data: bytes) -> bytes | CallResult | None:
        """Returns the response to a request, or the stream's result, within a moment; None if it may take longer."""

    def start(self, data: bytes, on_response: Callable[[bytes | CallResult], None]) -> Cancel | CallResult:
        """Starts a response that may take longer, or returns the refusal that ends the stream.

        Calls `on_response` once, from any thread, unless it is refused.
        """

    def end(self) -> CallResult:
        """Returns the stream's result after the client's last request, or when the client is gone."""

    def closed(self, result: CallResult, *, is_cancelled: bool) -> None:
        """Called last. The client of a cancelled stream may not have received the result."""


@dataclass(frozen=True, slots=True)
class StreamMethod:
    """A stream-stream method with one response for each request.

    Attributes:
        open: Returns the handler of a new stream, or the result that ends it. Any thread may call its last argument at
            any time to end the stream.
    """

    open: Callable[[CallDetails, Callable[[CallResult], None]], StreamHandler | CallResult]


Method: TypeAlias = UnaryMethod | StreamMethod


class AdmissionControl(Protocol):
    """Admits or rejects each call when its headers arrive."""

    refusals: Admission
    """Bounds the refusals that wait."""
    refused_early_seconds: float
    """How long before the deadline of its call a refusal is sent at the latest."""

    def enter(
        self, path: str, peer: str, metadata: Metadata, auth_context: AuthContext, deadline: float
    ) -> CallDetails | RefusedCall:
        """Admits or refuses a call."""

    def leave(self, path: str, call: CallDetails) -> None:
        """Releases an admitted call."""

    def late_delay(self, origin: Origin) -> float:
        """Returns how many seconds later than at its timeout a call of a caller ends whose request is late."""

    def timed_out(self, path: str, call: CallDetails, seconds: float) -> CallResult:
        """Returns the result of a call whose request has not arrived for some seconds."""
