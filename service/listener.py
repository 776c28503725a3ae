"""A second listener, for calls that need no event loop: a server of one thread costs less than half of the CPU.

All calls there wait for one another, which suits plain functions of bytes, but not watchers. So health has Check alone
here, and reflection is served by the other listener.
"""

from collections.abc import Mapping
from typing import Final

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2

from service.calls import Caller, End, Gate, Method, Unary
from service.polling import PollingServer
from service.settings import Settings

_HEALTH_CHECK: Final = f"/{health.SERVICE_NAME}/Check"
PENDING_MAX: Final = 1_000_000
"""Calls that the core may hold before it is asked for them. What limits calls is max_calls and max_streams."""
PENDING_SECONDS: Final = 3_600
"""How long it may hold one; grpcio's default is 30 seconds."""
CLOSING_SECONDS: Final = 0.5
"""How long connections have to take their last answers."""


def options(settings: Settings) -> tuple[tuple[str, int], ...]:
    """The options of every listener."""
    return (
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        ("grpc.max_metadata_size", settings.max_metadata_bytes),
        ("grpc.absolute_max_metadata_size", 2 * settings.max_metadata_bytes),
        ("grpc.max_concurrent_streams", settings.max_streams),
        ("grpc.so_reuseport", int(settings.workers > 1)),
        # calls that wait to be taken: the core would end them as CANCELLED, the boundary refuses them with a reason
        ("grpc.server.max_pending_requests", PENDING_MAX),
        ("grpc.server.max_pending_requests_hard_limit", PENDING_MAX),
        ("grpc.server_max_unrequested_time_in_server", PENDING_SECONDS),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    )


def credentials(settings: Settings) -> grpc.ServerCredentials | None:
    """What TLS is served with; None: no TLS."""
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return grpc.ssl_server_credentials([(settings.tls_key.read_bytes(), settings.tls_cert.read_bytes())])


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
