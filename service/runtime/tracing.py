"""Traces of calls, store operations and searches: the interface. open_tracing.py starts them."""

from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, Protocol, TypeVar

StoreObserver = Callable[[str, str, float], None]
"""Receives an operation's name, `ok` or the exception's name, and the seconds it took."""
SearchObserver = Callable[[str, str, float, float], None]
"""Receives a search's kind, `ok` or the exception's name, the seconds it waited, and the seconds it took in all."""
Metadata = Iterable[tuple[str, str | bytes]] | None
_T = TypeVar("_T")


class CallTrace(Protocol):
    """The span of a call in progress."""

    def enter(self) -> None:
        """Makes this the current span until the current task ends."""

    def run(self, function: Callable[..., _T], *arguments: Any) -> _T:  # noqa: ANN401 - the function's own
        """Returns a function's result; meanwhile this is the current span."""

    def end(self, code: str, reason: str, request_id: str) -> None:
        """Ends the span.

        Args:
            code: The name of the status code.
            reason: The name of the ErrorReason of a refusal, else "".
            request_id: The call's request id.
        """


class Tracing(Protocol):
    """Makes spans, and exports them in the background."""

    def call(self, path: str, metadata: Metadata) -> CallTrace:
        """Starts the span of a call, as a child of the span that its metadata names."""

    def store_observer(self, observer: StoreObserver) -> StoreObserver:
        """Returns an observer that also makes a span of each store operation of a call."""

    def search(self, kind: str, result: str, waited: float, seconds: float) -> None:
        """Makes a span of a search that has just ended (SearchObserver)."""

    def add_ids(self, _logger: object, _level: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Adds trace_id and span_id of the current span to a log entry; a processor for structlog."""

    def close(self) -> None:
        """Exports the remaining spans, for a short time at most, and stops."""
