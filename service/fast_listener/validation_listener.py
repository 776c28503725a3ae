"""ValidationService at RUMMIKUB_VALIDATION_LISTEN on the completion-queue server."""

import asyncio
from typing import Final

from service.fast_listener.interceptor import FastInterceptor
from service.fast_listener.listener import FastListener
from service.fast_listener.methods import validation_methods
from service.grpc_api.call_policy import CallPolicy
from service.grpc_api.limits import stream_limit
from service.grpc_api.turn_validator import Validator
from service.grpc_api.validation_service import NAME
from service.runtime.addresses import address_error
from service.runtime.slow_calls import SlowCalls
from service.settings import Settings

DRAIN_POLL_SECONDS: Final = 0.01
"""The polling interval of a stopping server."""


class FastValidationListener:
    """The listener (validation_listener.ValidationListener).

    Args:
        settings: The service's settings.
        validation: Answers the requests.
        slow_calls: Runs slow calls.
        policy: The policy of its calls.
    """

    def __init__(self, settings: Settings, validation: Validator, slow_calls: SlowCalls, policy: CallPolicy) -> None:
        self._address = settings.validation_listen
        self._interceptor = FastInterceptor(policy, slow_calls, stream_limit(settings))
        services = {NAME: validation_methods(validation, self._interceptor)}
        self._listener = FastListener(services, self._interceptor, settings)

    async def start(self) -> int:
        """Starts serving and returns the port. Raises AddressInUseError."""
        try:
            return self._listener.start(self._address)
        except RuntimeError:
            raise address_error("RUMMIKUB_VALIDATION_LISTEN", self._address) from None

    def report_not_serving(self) -> None:
        self._listener.report_not_serving()

    def begin_shutdown(self) -> None:
        """Reports NOT_SERVING, rejects new calls and ends streams."""
        self.report_not_serving()
        self._interceptor.end_streams()
        self._listener.end_refusals()

    @property
    def calls_in_progress(self) -> int:
        return self._interceptor.policy.calls.total

    async def drained(self) -> None:
        """Returns when no stream is open and no refusal waits.

        The caller also waits for SlowCalls. Other calls take a moment.
        """
        while self._interceptor.open_streams or self._interceptor.refusals.total:  # noqa: ASYNC110 - see the next line
            await asyncio.sleep(DRAIN_POLL_SECONDS)  # threads end streams and cannot set an asyncio.Event

    async def stop(self) -> None:
        """Closes the connections and returns when the thread has ended."""
        await asyncio.to_thread(self._listener.stop)

    async def ended(self) -> None:
        """Never returns: a fault ends one call and never the listener."""
        await asyncio.Event().wait()
