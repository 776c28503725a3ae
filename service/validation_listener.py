"""ValidationService at an address of its own, if there is one (RUMMIKUB_VALIDATION_LISTEN)."""

import asyncio

from service.addresses import cannot_listen
from service.listener import SynchronousServer
from service.metrics import Metrics
from service.servicers.validation import NAME, synchronous_service
from service.settings import Settings
from service.synchronous_boundary import SynchronousBoundary
from service.threads import CallThreads
from service.validation import Validation

DRAIN_POLL_SECONDS = 0.01
"""How often is looked whether calls are under way when the server stops."""


class ValidationListener:
    """The listener, which is nothing without an address.

    Args:
        settings: Where and how to serve.
        validation: What answers.
        metrics: Counts calls.
    """

    def __init__(self, settings: Settings, validation: Validation, metrics: Metrics) -> None:
        self._settings = settings
        self._server: SynchronousServer | None = None
        if settings.validation_listen:
            threads = CallThreads()
            self._boundary = SynchronousBoundary(metrics, threads, settings.max_calls, settings.validation_streams)
            services = {NAME: synchronous_service(validation, self._boundary)}
            self._server = SynchronousServer(services, threads, settings)

    def start(self) -> int:
        """Serves, and answers the port; 0 without an address. Raises AddressInUseError."""
        if self._server is None:
            return 0
        try:
            return self._server.start(self._settings.validation_listen)
        except RuntimeError:
            raise cannot_listen("RUMMIKUB_VALIDATION_LISTEN", self._settings.validation_listen) from None

    def refuse(self) -> None:
        """Health says so, new calls are refused, streams end."""
        if self._server is not None:
            self._server.refuse()
            self._boundary.stop()

    async def drained(self) -> None:
        """Returns when no call is under way."""
        while self._server is not None and self._boundary.under_way:  # noqa: ASYNC110 - as below
            await asyncio.sleep(DRAIN_POLL_SECONDS)  # threads that end a call tell nobody

    def stop(self) -> None:
        """Closes the connections, and returns when all threads have ended."""
        if self._server is not None:
            self._boundary.give_up()
            self._server.stop()
