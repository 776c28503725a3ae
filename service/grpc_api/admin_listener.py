"""AdminService at RUMMIKUB_ADMIN_LISTEN, apart from the listener of players."""

import asyncio

from service.grpc_api.admin_service import AdminServicer
from service.grpc_api.aio_server import aio_server
from service.grpc_api.call_origin import Origins
from service.grpc_api.certificates import server_credentials
from service.grpc_api.interceptor import CallInterceptor
from service.grpc_api.server_options import CLOSING_SECONDS, server_options
from service.metrics.metrics import Metrics
from service.runtime.addresses import address_error
from service.runtime.admission import CallAdmission
from service.settings import Settings


class AdminListener:
    """The listener. It serves AdminService only.

    Args:
        settings: The service's settings.
        servicer: AdminService.
        metrics: Counts calls.
        stopping: Set when the server stops.
        grpcio: The release of grpcio.
    """

    def __init__(
        self, settings: Settings, servicer: AdminServicer, metrics: Metrics, stopping: asyncio.Event, grpcio: str
    ) -> None:
        self._settings = settings
        admission = CallAdmission(settings.max_calls, 1.0)
        self._interceptor = CallInterceptor(metrics, stopping, Origins(None), admission, settings.request_seconds)
        self._server = aio_server((self._interceptor,), server_options(settings), grpcio)
        service = servicer.service()
        self._server.add_registered_method_handlers(service.name, dict(service.handlers))

    async def start(self) -> int:
        """Starts serving and returns the port, for a unix socket another number. Raises AddressInUseError."""
        address, credentials = self._settings.admin_listen, server_credentials(self._settings)
        try:
            if credentials is None:
                port = self._server.add_insecure_port(address)
            else:
                port = self._server.add_secure_port(address, credentials)
        except RuntimeError:
            raise address_error("RUMMIKUB_ADMIN_LISTEN", address) from None
        await self._server.start()
        return port

    async def drained(self) -> None:
        """Returns when no call is in progress."""
        await self._interceptor.drained()

    def begin_shutdown(self) -> None:
        """Rejects calls whose request has not arrived. `stopping` is set already."""
        self._interceptor.cancel_pending_requests()

    async def stop(self) -> None:
        """Closes the connections."""
        await self._server.stop(CLOSING_SECONDS)

    async def ended(self) -> None:
        """Returns when the listener has ended without `stop`. Raises its error."""
        await asyncio.shield(self._server.wait_for_termination())  # cancelling wait_for_termination stops the server
