"""ValidationService at RUMMIKUB_VALIDATION_LISTEN on grpc.aio, for untested releases of grpcio."""

from typing import Protocol

import grpc
from grpc_health.v1 import health_pb2

from service.grpc_api import health
from service.grpc_api.aio_listener import AioListener
from service.grpc_api.health import HealthServicer
from service.grpc_api.interceptor import CallInterceptor
from service.grpc_api.validation_service import NAME, ValidationServicer
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
        interceptor: Wraps its handlers.
        grpcio: The release of grpcio.
    """

    def __init__(
        self, settings: Settings, servicer: ValidationServicer, interceptor: CallInterceptor, grpcio: str
    ) -> None:
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
