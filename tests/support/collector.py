"""An OTLP receiver for traces."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc.aio
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as pb_grpc
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

SECONDS = 20.0


def values(attributes: "list[KeyValue]") -> dict[str, object]:
    """Returns attributes as a dictionary."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value") or "string_value") for one in attributes}


@dataclass(frozen=True)
class Received:
    """A span, and the attributes of the process that sent it."""

    span: Span
    resource: Mapping[str, object]

    @property
    def name(self) -> str:
        return self.span.name

    @property
    def trace_id(self) -> str:
        return self.span.trace_id.hex()

    @property
    def span_id(self) -> str:
        return self.span.span_id.hex()

    @property
    def parent_id(self) -> str:
        return self.span.parent_span_id.hex()

    @property
    def attributes(self) -> dict[str, object]:
        return values(list(self.span.attributes))


class Collector(pb_grpc.TraceServiceServicer):
    """Keeps the spans that it receives."""

    def __init__(self) -> None:
        self.spans: list[Received] = []
        self.port = 0
        self._changed = asyncio.Event()

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a server that exports to this collector without delay."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.port}",
            "OTEL_BSP_SCHEDULE_DELAY": "20",
        }

    async def Export(  # noqa: N802 - gRPC's name
        self, request: pb.ExportTraceServiceRequest, _context: object
    ) -> pb.ExportTraceServiceResponse:
        for batch in request.resource_spans:
            resource = values(list(batch.resource.attributes))
            self.spans += (Received(span, resource) for scope in batch.scope_spans for span in scope.spans)
        self._changed.set()
        return pb.ExportTraceServiceResponse()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Returns when a condition on the spans is true."""
        async with asyncio.timeout(SECONDS):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def trace(self, trace_id: str, root: str) -> tuple[Received, list[Received]]:
        """Returns the span with a name of a trace, once it has arrived, and its children by time of their end.

        A parent ends after its children, and spans are exported in the order of their ends.
        """
        await self.until(lambda: any(one.name == root for one in self.of(trace_id)))
        [parent] = [one for one in self.of(trace_id) if one.name == root]
        children = [one for one in self.of(trace_id) if one.parent_id == parent.span_id]
        return parent, sorted(children, key=lambda one: one.span.end_time_unix_nano)

    def of(self, trace_id: str) -> list[Received]:
        """Returns the spans of a trace that have arrived."""
        return [one for one in self.spans if one.trace_id == trace_id]


@asynccontextmanager
async def running_collector() -> AsyncIterator[Collector]:
    """Runs a collector on a free port."""
    collector, server = Collector(), grpc.aio.server()
    pb_grpc.add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call]  # generated
    collector.port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield collector
    finally:
        await server.stop(0)
