"""A completion-queue server with gRPC health, at less than half the CPU of grpc.aio.

Health has Check only, because a Watch would block all other calls. Reflection is available at RUMMIKUB_LISTEN.
"""

from collections.abc import Mapping
from typing import Final

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

from service.fast_listener.calls import AdmissionControl, CallDetails, CallResult, Method, UnaryMethod
from service.fast_listener.completion_queue_server import CompletionQueueServer
from service.grpc_api import health
from service.grpc_api.certificates import server_credentials
from service.grpc_api.server_options import CLOSING_SECONDS, server_options
from service.settings import Settings

_HEALTH_CHECK: Final = f"/{health.SERVICE_NAME}/Check"


class FastListener:
    """The server.

    Args:
        services: The methods by service and name.
        admission: Admits or rejects calls.
        settings: The service's settings.
    """

    def __init__(
        self, services: Mapping[str, Mapping[str, Method]], admission: AdmissionControl, settings: Settings
    ) -> None:
        self._settings = settings
        self._service_names = {"", *services}
        self._is_stopping = False
        methods: dict[str, Method] = {_HEALTH_CHECK: UnaryMethod(self._check)}
        for service, rpcs in services.items():
            methods |= {f"/{service}/{name}": method for name, method in rpcs.items()}
        self._server = CompletionQueueServer(methods, admission, settings.request_seconds, server_options(settings))

    def start(self, address: str) -> int:
        """Starts serving and returns the port. Raises RuntimeError."""
        return self._server.start(address, server_credentials(self._settings))

    def _check(self, data: bytes, _call: CallDetails) -> CallResult:
        try:
            service = health_pb2.HealthCheckRequest.FromString(data).service
        except DecodeError:
            return CallResult(
                code=grpc.StatusCode.INVALID_ARGUMENT, details="the bytes are not a HealthCheckRequest message"
            )
        if service not in self._service_names:
            return CallResult(code=grpc.StatusCode.NOT_FOUND)
        status = health.NOT_SERVING if self._is_stopping else health.SERVING
        return CallResult(health_pb2.HealthCheckResponse(status=status).SerializeToString())

    def report_not_serving(self) -> None:
        """Sets health to NOT_SERVING."""
        self._is_stopping = True

    def end_refusals(self) -> None:
        """Sends the refusals that wait, and lets no more wait."""
        self._server.end_refusals()

    def stop(self) -> None:
        """Closes the connections and returns when the thread has ended."""
        self._server.stop(CLOSING_SECONDS)
