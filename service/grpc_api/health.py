"""The gRPC health service.

grpcio's asynchronous HealthServicer lacks List, and there one slow watcher delays other watchers and every change.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final, TypeAlias

import grpc
from google.protobuf.message import Message
from grpc.aio import ServicerContext
from grpc_health.v1 import health_pb2

from service.grpc_api.handlers import Handler, Service

SERVING: Final = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING: Final = health_pb2.HealthCheckResponse.NOT_SERVING
SERVICE_UNKNOWN: Final = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
SERVICE_NAME: Final = "grpc.health.v1.Health"

ServingStatus: TypeAlias = int
"""A value of HealthCheckResponse.ServingStatus."""


class HealthServicer:
    """The statuses of the services, for Check, List and Watch."""

    def __init__(self) -> None:
        self._statuses: dict[str, ServingStatus] = {}
        self._is_shutting_down = False
        self._changed = asyncio.Event()
        """Set at the next change, and then replaced."""

    def set(self, service: str, status: ServingStatus) -> None:
        """Sets the status of a service, "" being the server. Has no effect after `shut_down`."""
        if not self._is_shutting_down:
            self._statuses[service] = status
            self._notify()

    def shut_down(self) -> None:
        """Sets all statuses to NOT_SERVING for good."""
        self._is_shutting_down = True
        self._statuses = dict.fromkeys(self._statuses, NOT_SERVING)
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def service(self, *, is_whole: bool = True) -> Service:
        """Returns the service; if it is not whole, with Check only."""
        check = _handler(grpc.unary_unary_rpc_method_handler, self.check, health_pb2.HealthCheckRequest)
        if not is_whole:
            return Service(SERVICE_NAME, {"Check": check})
        listed = _handler(grpc.unary_unary_rpc_method_handler, self.list, health_pb2.HealthListRequest)
        watch = _handler(grpc.unary_stream_rpc_method_handler, self.watch, health_pb2.HealthCheckRequest)
        return Service(SERVICE_NAME, {"Check": check, "List": listed, "Watch": watch})

    async def check(
        self, request: health_pb2.HealthCheckRequest, context: "ServicerContext[Any, Any]"
    ) -> health_pb2.HealthCheckResponse:
        """Check."""
        status = self._statuses.get(request.service)
        if status is None:
            await context.abort(grpc.StatusCode.NOT_FOUND)
        return health_pb2.HealthCheckResponse(status=status)

    async def list(self, _request: object, _context: object) -> health_pb2.HealthListResponse:
        """List."""
        statuses = {name: health_pb2.HealthCheckResponse(status=status) for name, status in self._statuses.items()}
        return health_pb2.HealthListResponse(statuses=statuses)

    async def watch(
        self, request: health_pb2.HealthCheckRequest, _context: object
    ) -> AsyncGenerator[health_pb2.HealthCheckResponse, None]:
        """Watch: the current status and every change; a slow watcher may miss intermediate ones."""
        last = None
        while True:
            changed, status = self._changed, self._statuses.get(request.service, SERVICE_UNKNOWN)
            if status != last:
                yield health_pb2.HealthCheckResponse(status=status)
                last = status
            await changed.wait()


def _handler(form: Callable[..., Handler], call: Callable[..., Any], request: type[Message]) -> Handler:
    return form(
        call, request_deserializer=request.FromString, response_serializer=lambda message: message.SerializeToString()
    )
