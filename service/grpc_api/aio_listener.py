"""A listener of its own for one service, on grpc.aio."""

import asyncio
from collections.abc import Mapping

from service.grpc_api.aio_server import aio_server
from service.grpc_api.certificates import server_credentials
from service.grpc_api.handlers import Handler, Service
from service.grpc_api.interceptor import CallInterceptor
from service.grpc_api.server_options import CLOSING_SECONDS, server_options
from service.runtime.addresses import address_error
from service.settings import Settings


class AioListener:
    """The listener.

    Args:
        settings: The service's settings.
        variable: The variable that has the address.
        address: The address.
        service: The service.
        interceptor: Wraps its handlers.
        grpcio: The release of grpcio.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - made in two places
        self,
        settings: Settings,
        variable: str,
        address: str,
        service: Service,
        interceptor: CallInterceptor,
        grpcio: str,
    ) -> None:
        self._settings = settings
        self._variable = variable
        self._address = address
        self._interceptor = interceptor
        self._server = aio_server((interceptor,), server_options(settings), grpcio)
        self.add_handlers(service.name, service.handlers)

    def add_handlers(self, service_name: str, handlers: Mapping[str, Handler]) -> None:
        """Serves methods of a service, before the start."""
        self._server.add_registered_method_handlers(service_name, dict(handlers))

    async def start(self) -> int:
        """Starts serving and returns the port, for a unix socket another number. Raises AddressInUseError."""
        credentials = server_credentials(self._settings)
        try:
            if credentials is None:
                port = self._server.add_insecure_port(self._address)
            else:
                port = self._server.add_secure_port(self._address, credentials)
        except RuntimeError:
            raise address_error(self._variable, self._address) from None
        await self._server.start()
        return port

    def begin_shutdown(self) -> None:
        """Rejects calls whose request has not arrived. `stopping` is set already."""
        self._interceptor.arrival.cancel_all()

    @property
    def calls_in_progress(self) -> int:
        """The number of calls in progress, apart from health."""
        return self._interceptor.policy.calls.total

    async def drained(self) -> None:
        """Returns when no call is in progress."""
        await self._interceptor.drained()

    async def stop(self) -> None:
        """Closes the connections."""
        await self._server.stop(CLOSING_SECONDS)

    async def ended(self) -> None:
        """Returns when the listener has ended without `stop`. Raises its error."""
        await asyncio.shield(self._server.wait_for_termination())  # cancelling wait_for_termination stops the server
