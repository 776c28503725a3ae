"""Listeners: addresses at which a server serves some of its services."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from service.grpc_api.aio_server import aio_server
from service.grpc_api.certificates import server_credentials
from service.grpc_api.handlers import Service
from service.grpc_api.health import HealthServicer
from service.grpc_api.interceptor import CallInterceptor
from service.grpc_api.server_options import CLOSING_SECONDS, server_options
from service.runtime.addresses import address_error
from service.settings import Settings


class Listener(Protocol):
    """An address with services, and their calls.

    Attributes:
        variable: The variable that has the address.
        port: The port after `start`; for a unix socket another number.
    """

    variable: str
    port: int

    async def start(self) -> None:
        """Starts serving. Raises AddressInUseError."""

    def report_not_serving(self) -> None:
        """Sets health to NOT_SERVING for good; calls are still served."""

    def begin_shutdown(self) -> None:
        """Ends streams and calls whose request has not arrived. The policy rejects new calls already."""

    @property
    def calls_in_progress(self) -> int:
        """The number of calls in progress, apart from health and reflection."""

    async def drained(self) -> None:
        """Returns when no call is in progress."""

    async def stop(self) -> None:
        """Closes the connections."""

    async def ended(self) -> None:
        """Returns when the listener has ended without `stop`. Raises its error."""


class AioListener:
    """A listener on grpc.aio.

    Args:
        variable: The variable that has the address.
        address: The address.
        settings: The service's settings.
        interceptor: Wraps the handlers.
        services: The services.
        grpcio: The release of grpcio.
        health: Its health.
        end_streams: Ends the streams of a stopping server.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - made in one place
        self,
        variable: str,
        address: str,
        settings: Settings,
        interceptor: CallInterceptor,
        services: Sequence[Service],
        grpcio: str,
        health: HealthServicer,
        end_streams: Callable[[], None] = lambda: None,
    ) -> None:
        self.variable = variable
        self.port = 0
        self.interceptor = interceptor
        self.health = health
        self._address = address
        self._settings = settings
        self._end_streams = end_streams
        self._server = aio_server((interceptor,), server_options(settings), grpcio)
        for service in services:
            self._server.add_registered_method_handlers(service.name, dict(service.handlers))

    async def start(self) -> None:
        credentials = server_credentials(self._settings)
        try:
            if credentials is None:
                self.port = self._server.add_insecure_port(self._address)
            else:
                self.port = self._server.add_secure_port(self._address, credentials)
        except RuntimeError:
            raise address_error(self.variable, self._address) from None
        await self._server.start()

    def report_not_serving(self) -> None:
        self.health.shut_down()

    def begin_shutdown(self) -> None:
        self.interceptor.arrival.cancel_all()
        self._end_streams()

    @property
    def calls_in_progress(self) -> int:
        return self.interceptor.policy.calls.total

    async def drained(self) -> None:
        await self.interceptor.drained()

    async def stop(self) -> None:
        await self._server.stop(CLOSING_SECONDS)

    async def ended(self) -> None:
        await asyncio.shield(self._server.wait_for_termination())  # cancelling wait_for_termination stops the server
