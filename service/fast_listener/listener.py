"""A server of one thread with gRPC health: it costs less than half of the CPU of the event loop's server.

Health has Check only, because a watcher would block all other calls. Reflection is served by the other listener.
"""

from collections.abc import Mapping
from typing import Final

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2

from service.fast_listener.calls import Caller, End, Gate, Method, Unary
from service.fast_listener.completion_queue_server import PollingServer
from service.grpc_api.server_options import CLOSING_SECONDS, credentials, options
from service.settings import Settings

_HEALTH_CHECK: Final = f"/{health.SERVICE_NAME}/Check"


class SynchronousServer:
    """A server beside the event loop's, with health.

    Args:
        services: What it serves: by the names of services, and then of RPCs.
        gate: Decides which calls get in.
        settings: How to serve.
    """

    def __init__(self, services: Mapping[str, Mapping[str, Method]], gate: Gate, settings: Settings) -> None:
        self._settings = settings
        self._healthy = {"", *services}
        self._is_refusing = False
        methods: dict[str, Method] = {_HEALTH_CHECK: Unary(self._check)}
        for service, rpcs in services.items():
            methods |= {f"/{service}/{name}": method for name, method in rpcs.items()}
        self._server = PollingServer(methods, gate, settings.request_seconds, options(settings))

    def start(self, address: str) -> int:
        """Serves at an address, and answers the port. Raises RuntimeError."""
        return self._server.start(address, credentials(self._settings))

    def _check(self, data: bytes, _caller: Caller) -> End:
        try:
            service = health_pb2.HealthCheckRequest.FromString(data).service
        except DecodeError:
            return End(code=grpc.StatusCode.INVALID_ARGUMENT, details="the request is no HealthCheckRequest")
        if service not in self._healthy:
            return End(code=grpc.StatusCode.NOT_FOUND)
        status = (
            health_pb2.HealthCheckResponse.NOT_SERVING if self._is_refusing else health_pb2.HealthCheckResponse.SERVING
        )
        return End(health_pb2.HealthCheckResponse(status=status).SerializeToString())

    def refuse(self) -> None:
        """Has health say that nothing is served here any more."""
        self._is_refusing = True

    def stop(self) -> None:
        """Closes the connections, and returns when the thread has ended."""
        self._server.stop(CLOSING_SECONDS)
