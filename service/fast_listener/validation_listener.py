"""ValidationService at an address of its own, if there is one (RUMMIKUB_VALIDATION_LISTEN)."""

import asyncio

from service.fast_listener.interceptor import SynchronousBoundary
from service.fast_listener.listener import SynchronousServer
from service.fast_listener.methods import validation_methods
from service.grpc_api.turn_validator import Validator
from service.grpc_api.validation_service import NAME
from service.metrics.metrics import Metrics
from service.runtime.addresses import cannot_listen
from service.runtime.slow_calls import SlowCalls
from service.settings import Settings

DRAIN_POLL_SECONDS = 0.01
"""How often a stopping server looks whether streams are open."""


class ValidationListener:
    """The listener, which is nothing without an address.

    Args:
        settings: Where and how to serve.
        validation: What answers.
        slow_calls: Answers what may take long.
        metrics: Counts calls.
    """

    def __init__(self, settings: Settings, validation: Validator, slow_calls: SlowCalls, metrics: Metrics) -> None:
        self._settings = settings
        self._server: SynchronousServer | None = None
        if settings.validation_listen:
            self._boundary = SynchronousBoundary(
                metrics, slow_calls, settings.max_calls, settings.validation_streams, settings.peer_share
            )
            services = {NAME: validation_methods(validation, self._boundary)}
            self._server = SynchronousServer(services, self._boundary, settings)

    def start(self) -> int:
        """Serves, and returns the port; 0 without an address. Raises AddressInUseError."""
        if self._server is None:
            return 0
        try:
            return self._server.start(self._settings.validation_listen)
        except RuntimeError:
            raise cannot_listen("RUMMIKUB_VALIDATION_LISTEN", self._settings.validation_listen) from None

    def refuse(self) -> None:
        """Reports NOT_SERVING, refuses new calls, and ends streams."""
        if self._server is not None:
            self._server.refuse()
            self._boundary.stop()

    async def drained(self) -> None:
        """Returns when no stream is open."""
        while self._server is not None and self._boundary.open_streams:  # noqa: ASYNC110 - as below
            await asyncio.sleep(DRAIN_POLL_SECONDS)  # the threads that end streams notify no one

    def stop(self) -> None:
        """Closes the connections, and returns when the thread has ended."""
        if self._server is not None:
            self._server.stop()
