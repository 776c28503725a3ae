"""Traces of calls, store operations and searches: the interface, and its start from OpenTelemetry's variables.

Without the variable of an endpoint there is no Tracing: nothing is wrapped, and OpenTelemetry is not imported.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Final, Protocol, TypeVar

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""The variables that turn tracing on."""
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")

StoreObserver = Callable[[str, str, float], None]
"""Receives an operation's name, `ok` or the exception's name, and the seconds it took."""
SearchObserver = Callable[[str, str, float, float], None]
"""Receives a search's kind, `ok` or the exception's name, the seconds it waited, and the seconds it took in all."""
Metadata = Iterable[tuple[str, str | bytes]] | None
_T = TypeVar("_T")


class TracingError(Exception):
    """Traces cannot be exported as the environment requests; the message says what to do."""


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


def is_requested(environment: Mapping[str, str]) -> bool:
    """Returns whether the environment turns tracing on. OTEL_SDK_DISABLED=true and OTEL_TRACES_EXPORTER=none win."""
    return (
        any(environment.get(name) for name in ENDPOINTS)
        and environment.get("OTEL_SDK_DISABLED", "").strip().lower() != "true"
        and environment.get("OTEL_TRACES_EXPORTER", "otlp") != "none"
    )


def check(environment: Mapping[str, str]) -> None:
    """Raises TracingError if tracing is requested and cannot work."""
    if not is_requested(environment):
        return
    protocol = next((environment[name] for name in _PROTOCOLS if environment.get(name)), "grpc")
    if protocol != "grpc":
        raise TracingError(f"OTLP over {protocol} is not supported; set OTEL_EXPORTER_OTLP_PROTOCOL=grpc or unset it")
    try:
        import service.runtime.opentelemetry_tracing  # noqa: F401, PLC0415 - an optional dependency
    except ImportError as error:
        raise TracingError(
            f"{' or '.join(name for name in ENDPOINTS if environment.get(name))} is set, and {error.name} is not "
            "installed; install rummikub-service[otel], or unset the variable"
        ) from None


@contextlib.contextmanager
def tracing_by(environment: Mapping[str, str], worker: int | None, store: str) -> Iterator[Tracing | None]:
    """Exports traces within the context, if the environment requests it. Raises TracingError.

    Args:
        environment: The environment's variables.
        worker: The number of this worker; None if it is the only process.
        store: OpenTelemetry's name for the kind of store.
    """
    check(environment)
    if not is_requested(environment):
        yield None
        return
    from service.runtime.opentelemetry_tracing import OpenTelemetryTracing  # noqa: PLC0415 - as above

    with contextlib.closing(OpenTelemetryTracing(worker, store)) as tracing:
        yield tracing
