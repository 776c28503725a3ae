"""ValidationService at RUMMIKUB_VALIDATION_LISTEN on grpc.aio, for untested releases of grpcio."""

import asyncio
from typing import Protocol

import grpc
from grpc_health.v1 import health_pb2

from service.grpc_api import health
from service.grpc_api.aio_listener import AioListener
from service.grpc_api.call_origin import Origins
from service.grpc_api.health import HealthServicer
from service.grpc_api.interceptor import CallInterceptor
from service.grpc_api.validation_service import NAME, ValidationServicer
from service.metrics.metrics import Metrics
from service.runtime.admission import CallAdmission
from service.runtime.tracing import Tracing
from service.settings import Settings


class ValidationListener(Protocol):
    """The listener at RUMMIKUB_VALIDATION_LISTEN: ValidationService and health's Check."""

    async def start(self) -> int:
        """Starts serving and returns the port. Raises AddressInUseError."""

    def report_not_serving(self) -> None:
        """Sets health to NOT_SERVING; calls are still served."""

    def begin_shutdown(self) -> None:
        """Reports NOT_SERVING, rejects new calls and ends streams."""

    @property
    def calls_in_progress(self) -> int:
        """The number of calls in progress, apart from health."""

    async def drained(self) -> None:
        """Returns when no stream is open."""

    async def stop(self) -> None:
        """Closes the connections."""

    async def ended(self) -> None:
        """Returns when the listener has ended without `stop`. Raises its error."""


class AioValidationListener(AioListener):
    """The listener on grpc.aio.

    Args:
        settings: The service's settings.
        servicer: ValidationService, with a bound on its streams.
        metrics: Counts calls.
        origins: Finds where calls come from.
        stopping: Set when the server stops.
        grpcio: The release of grpcio.
        tracing: Makes spans; None if tracing is off.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - made in one place
        self,
        settings: Settings,
        servicer: ValidationServicer,
        metrics: Metrics,
        origins: Origins,
        stopping: asyncio.Event,
        grpcio: str,
        tracing: Tracing | None,
    ) -> None:
        admission = CallAdmission(settings.max_calls, settings.peer_share)
        interceptor = CallInterceptor(metrics, stopping, origins, admission, settings, tracing)
        address, service = settings.validation_listen, servicer.service()
        super().__init__(settings, "RUMMIKUB_VALIDATION_LISTEN", address, service, interceptor, grpcio)
        self._servicer = servicer
        self._health = HealthServicer()
        for name in ("", NAME):
            self._health.set(name, health.SERVING)
        self.add_handlers(health.SERVICE_NAME, {"Check": self._check_handler()})

    def _check_handler(self) -> "grpc.RpcMethodHandler[health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse]":
        return grpc.unary_unary_rpc_method_handler(
            self._health.Check,
            request_deserializer=health_pb2.HealthCheckRequest.FromString,
            response_serializer=health_pb2.HealthCheckResponse.SerializeToString,
        )

    def report_not_serving(self) -> None:
        self._health.shut_down()

    def begin_shutdown(self) -> None:
        """See ValidationListener. `stopping` is set already."""
        self.report_not_serving()
        super().begin_shutdown()
        self._servicer.end_streams()
