"""What the completion-queue server and its methods exchange: calls of bytes, and how they end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import grpc

Metadata: TypeAlias = Sequence[tuple[str, str | bytes]]


class Caller(NamedTuple):
    """Who calls, and until when.

    Attributes:
        metadata: The call's metadata.
        peer: The peer's address (admission.peer_address).
        deadline: When the call times out, by time.monotonic(); infinity without a deadline.
    """

    metadata: Metadata
    peer: str
    deadline: float


class End(NamedTuple):
    """How a call ends.

    Attributes:
        message: The answer, of a call that has one at its end.
        trailing: Its trailing metadata.
        code: Its status.
        details: The status message.
        reason: Why it was refused, for the log.
    """

    message: bytes | None = None
    trailing: Metadata = ()
    code: grpc.StatusCode = grpc.StatusCode.OK
    details: str = ""
    reason: str = ""


Cancel: TypeAlias = Callable[[], None]
"""Ends the work on an answer that nobody waits for. Does nothing once it is there."""


def _never_begun(_data: bytes, _caller: Caller, _answered: Callable[[End], None]) -> Cancel:
    """Begins no call of a method that answers all calls at once."""
    raise AssertionError


@dataclass(frozen=True, slots=True)
class Unary:
    """A method of one request and one answer. Neither function raises.

    Attributes:
        at_once: Returns the end of a call in a moment, or None if that may take longer. All other calls wait meanwhile.
        begin: Starts what may take longer. Its last argument is called once with the end, by any thread.
    """

    at_once: Callable[[bytes, Caller], End | None]
    begin: Callable[[bytes, Caller, Callable[[End], None]], Cancel] = _never_begun


class OpenStream(Protocol):
    """A stream of requests, each answered before the next one is received. Nothing here raises."""

    def at_once(self, data: bytes) -> bytes | End | None:
        """Returns the answer to a request, or the stream's end, in a moment; None if that may take longer."""

    def begin(self, data: bytes, answered: Callable[[bytes | End], None]) -> Cancel:
        """Starts the answer that may take longer. `answered` is called once, by any thread."""

    def end(self) -> End:
        """Returns the stream's end when the client has sent its last request or is gone."""

    def over(self, end: End, *, is_cancelled: bool) -> None:
        """Called last. A cancelled stream's client may not have received the end."""


@dataclass(frozen=True, slots=True)
class Streaming:
    """A method of many requests and as many answers.

    Attributes:
        open: Returns the stream that begins, or its end. Any thread may call its last argument at any time to end the
            stream.
    """

    open: Callable[[Caller, Callable[[End], None]], OpenStream | End]


Method: TypeAlias = Unary | Streaming


class Gate(Protocol):
    """Decides which calls get in, from their headers on."""

    def enter(self, path: str, caller: Caller) -> End | None:
        """Counts a call in and returns None, or returns its end if it is refused."""

    def leave(self, path: str, caller: Caller) -> None:
        """Counts a call out that was let in."""

    def timed_out(self, path: str, caller: Caller) -> End:
        """Returns the end of a call whose request did not arrive in time."""
