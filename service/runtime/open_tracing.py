"""Starts tracing from OpenTelemetry's variables. Without the variable of an endpoint, OpenTelemetry is not imported."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Final

from service.runtime.tracing import Tracing

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""The variables that turn tracing on."""
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


class TracingError(Exception):
    """Traces cannot be exported as the environment requests; the message says what to do."""


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
