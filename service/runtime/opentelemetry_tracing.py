"""Tracing with OpenTelemetry's SDK, exported by OTLP over gRPC. Only open_tracing.py imports this module.

The SDK reads the standard OTEL_ variables. It exports on a thread of its own, and drops spans if its queue is full, so
no call waits for a collector. Spans have names, codes, reasons, durations and the request id; no content, and no
metadata of a request.
"""

import contextlib
import logging
import threading
import uuid
from collections.abc import Callable, Mapping, MutableMapping
from importlib.metadata import version
from time import time_ns
from typing import Any, Final, TypeVar

import structlog
from opentelemetry.context import Context, attach, detach
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from service.runtime.tracing import CallTrace, Metadata, StoreObserver

SERVICE: Final = "rummikub-server"
"""The default of OTEL_SERVICE_NAME."""
FLUSH_SECONDS: Final = 1.0
"""How long a stopping server tries to export its last spans."""

_W3C: Final = TraceContextTextMapPropagator()
_HEADERS: Final = frozenset({"traceparent", "tracestate"})
_NO_PARENT: Final = Context()
_FAULTS: Final = frozenset({"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"})
"""Codes that are the server's fault by OpenTelemetry's conventions; their spans have the status ERROR."""

_log = structlog.get_logger()
_T = TypeVar("_T")


class OpenTelemetryTracing:
    """Tracing (see there).

    Args:
        worker: The number of this worker; None if it is the only process.
        store: The value of db.system.name.
    """

    def __init__(self, worker: int | None, store: str) -> None:
        _log_to_structlog()
        self._store = store
        self._exporter = OTLPSpanExporter()
        self._processor = BatchSpanProcessor(self._exporter)
        provider = TracerProvider(resource=_resource(worker), shutdown_on_exit=False)
        provider.add_span_processor(self._processor)
        self._tracer = provider.get_tracer("rummikub-service", version("rummikub-service"))

    def call(self, path: str, metadata: Metadata) -> CallTrace:
        carrier: dict[str, list[str]] = {}
        for key, value in metadata or ():
            if key in _HEADERS and isinstance(value, str):
                carrier.setdefault(key, []).append(value)
        parent = _W3C.extract(carrier, _NO_PARENT) if carrier else _NO_PARENT
        method = path.removeprefix("/")
        attributes = {"rpc.system.name": "grpc", "rpc.method": method}
        return _CallSpan(self._tracer.start_span(method, parent, SpanKind.SERVER, attributes))

    def store_observer(self, observer: StoreObserver) -> StoreObserver:

        def observe(operation: str, result: str, seconds: float) -> None:
            observer(operation, result, seconds)
            attributes = {"db.system.name": self._store, "db.operation.name": operation}
            self._add_ended(f"store {operation}", SpanKind.CLIENT, attributes, result, seconds)

        return observe

    def search(self, kind: str, result: str, waited: float, seconds: float) -> None:
        attributes: dict[str, str | float] = {"rummikub.search.kind": kind, "rummikub.search.wait_seconds": waited}
        self._add_ended("search", SpanKind.INTERNAL, attributes, result, seconds)

    def _add_ended(
        self, name: str, kind: SpanKind, attributes: Mapping[str, str | float], result: str, seconds: float
    ) -> None:
        """Makes a span of something that has just ended, if it was part of a call in progress that is recorded."""
        if not get_current_span().is_recording():
            return
        ended = time_ns()
        span = self._tracer.start_span(name, None, kind, attributes, start_time=ended - round(seconds * 1e9))
        if result != "ok":
            span.set_attribute("error.type", result)
            span.set_status(Status(StatusCode.ERROR))
        span.end(ended)

    def add_ids(self, _logger: object, _level: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        context = get_current_span().get_span_context()
        if context.is_valid:
            entry["trace_id"], entry["span_id"] = f"{context.trace_id:032x}", f"{context.span_id:016x}"
        return entry

    def close(self) -> None:
        """See Tracing. Cancels an export that is in progress after FLUSH_SECONDS."""
        flush = threading.Thread(target=self._processor.shutdown, name="last-spans", daemon=True)
        flush.start()
        flush.join(FLUSH_SECONDS)
        if flush.is_alive():
            self._exporter.shutdown()
            flush.join(FLUSH_SECONDS)


class _CallSpan:
    """CallTrace."""

    __slots__ = ("_span",)

    def __init__(self, span: Span) -> None:
        self._span = span

    def enter(self) -> None:
        attach(set_span_in_context(self._span))

    def run(self, function: Callable[..., _T], *arguments: Any) -> _T:  # noqa: ANN401 - the function's own
        token = attach(set_span_in_context(self._span))
        try:
            return function(*arguments)
        finally:
            detach(token)

    def end(self, code: str, reason: str, request_id: str) -> None:
        span = self._span
        span.set_attribute("rpc.response.status_code", code)
        if request_id:
            span.set_attribute("rummikub.request_id", request_id)
        if reason:
            span.set_attribute("rummikub.reason", reason)
        if code in _FAULTS:
            span.set_attribute("error.type", code)
            span.set_status(Status(StatusCode.ERROR))
        span.end()


def _resource(worker: int | None) -> Resource:
    """Returns the attributes of this process. Those of the environment win, and each worker has its own instance id."""
    given = OTELResourceDetector().detect().attributes
    instance = given.get("service.instance.id", uuid.uuid4().hex)
    defaults = {"service.name": SERVICE, "service.version": version("rummikub-service")}
    own = {"service.instance.id": instance if worker is None else f"{instance}-{worker}"}
    return Resource.create({**defaults, **given, **own})


class _StructlogHandler(logging.Handler):
    """Logs the SDK's warnings, such as those of an unreachable collector, in the service's form."""

    def emit(self, record: logging.LogRecord) -> None:
        """Logs a record."""
        with contextlib.suppress(Exception):
            _log.warning("tracing", error=record.getMessage())


def _log_to_structlog() -> None:
    logger = logging.getLogger("opentelemetry")
    logger.propagate = False
    logger.setLevel(logging.WARNING)
    logger.handlers = [_StructlogHandler()]
    logging.getLogger("opentelemetry.trace").setLevel(logging.ERROR)  # its warnings quote the metadata of callers
