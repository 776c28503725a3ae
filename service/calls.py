"""What the synchronous server and the methods that it serves tell each other: calls of bytes, and how they end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import grpc

Metadata: TypeAlias = Sequence[tuple[str, str | bytes]]


class End(NamedTuple):
    """How a call ends.

    Attributes:
        message: The answer, of a call that has one at its end.
        trailing: Its trailing metadata.
        code: Its status.
        details: What the status says.
        reason: Why it was refused, for the log.
    """

    message: bytes | None = None
    trailing: Metadata = ()
    code: grpc.StatusCode = grpc.StatusCode.OK
    details: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Unary:
    """A method of one request and one answer. Neither function raises.

    Attributes:
        at_once: Is asked first, of the request and its metadata, and must not take long: all calls wait for it. None:
            it might.
        answer: Is asked then, in a thread that nobody waits for.
    """

    at_once: Callable[[bytes, Metadata], End | None]
    answer: Callable[[bytes, Metadata], End]


class OpenStream(Protocol):
    """A stream of requests, each answered before the next is looked at. Nothing here raises."""

    def at_once(self, data: bytes) -> bytes | End | None:
        """The answer to a request, or the stream's end. It must not take long, as all calls wait. None: it might."""

    def answer(self, data: bytes) -> bytes | End:
        """The same, asked then in a thread that nobody waits for."""

    def end(self) -> End:
        """The stream's end when there are no more requests: the client has said so, or is gone."""

    def over(self, end: End, *, is_cancelled: bool) -> None:
        """Nothing more happens. Cancelled: the client may not have been told of the end."""


@dataclass(frozen=True, slots=True)
class Streaming:
    """A method of many requests and as many answers.

    Attributes:
        open: Is asked of the metadata when a stream begins, and gives the stream, or its end. The function that it
            gets may be called by any thread and at any time to end the stream.
    """

    open: Callable[[Metadata, Callable[[End], None]], OpenStream | End]


Method: TypeAlias = Unary | Streaming
