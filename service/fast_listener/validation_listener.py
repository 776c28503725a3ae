"""ValidationService on the completion-queue server, at less than half the CPU of grpc.aio.

Health has Check only, because a Watch would block all other calls. Reflection is available at RUMMIKUB_LISTEN.
"""

import asyncio
from functools import partial
from typing import Final

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

from service.codec.turn_validator import Validator
from service.fast_listener.calls import CallDetails, CallResult, Method, UnaryMethod
from service.fast_listener.completion_queue_server import CompletionQueueServer
from service.fast_listener.interceptor import FastInterceptor
from service.grpc_api import health
from service.grpc_api.call_policy import CallPolicy
from service.grpc_api.certificates import server_credentials
from service.grpc_api.limits import stream_limit
from service.grpc_api.rpcs.validation import NAME, RPCS, ValidationRpc
from service.grpc_api.server_options import CLOSING_SECONDS, server_options
from service.runtime.addresses import address_error
from service.runtime.slow_calls import SlowCalls
from service.settings import Settings

DRAIN_POLL_SECONDS: Final = 0.01
"""The polling interval of a stopping server."""


class FastValidationListener:
    """The listener (grpc_api.listener.Listener).

    Args:
        settings: The service's settings.
        validator: Judges turns and reads melds.
        slow_calls: Runs slow calls.
        policy: The policy of its calls.
    """

    variable = "RUMMIKUB_VALIDATION_LISTEN"

    def __init__(self, settings: Settings, validator: Validator, slow_calls: SlowCalls, policy: CallPolicy) -> None:
        self.port = 0
        self._settings = settings
        self._is_serving = True
        self.interceptor = FastInterceptor(policy, slow_calls, stream_limit(settings))
        methods = {rpc.path: self._method(rpc, validator) for rpc in RPCS}
        methods[f"/{health.SERVICE_NAME}/Check"] = UnaryMethod(self._check)
        options = server_options(settings)
        self._server = CompletionQueueServer(methods, self.interceptor, settings.request_seconds, options)

    def _method(self, rpc: ValidationRpc, validator: Validator) -> Method:
        if rpc.stream is not None:
            return self.interceptor.stream(rpc.path, partial(rpc.stream, validator))
        return self.interceptor.unary(rpc.path, rpc.steps(validator), rpc.at_once(validator))

    def _check(self, data: bytes, _call: CallDetails) -> CallResult:
        try:
            service = health_pb2.HealthCheckRequest.FromString(data).service
        except DecodeError:
            return CallResult(
                code=grpc.StatusCode.INVALID_ARGUMENT, details="the bytes are not a HealthCheckRequest message"
            )
        if service not in {"", NAME}:
            return CallResult(code=grpc.StatusCode.NOT_FOUND)
        status = health.SERVING if self._is_serving else health.NOT_SERVING
        return CallResult(health_pb2.HealthCheckResponse(status=status).SerializeToString())

    async def start(self) -> None:
        address = self._settings.validation_listen
        try:
            self.port = self._server.start(address, server_credentials(self._settings))
        except RuntimeError:
            raise address_error(self.variable, address) from None

    def report_not_serving(self) -> None:
        self._is_serving = False

    def begin_shutdown(self) -> None:
        self.interceptor.end_streams()
        self._server.end_refusals()

    @property
    def calls_in_progress(self) -> int:
        return self.interceptor.policy.calls.total

    async def drained(self) -> None:
        """Returns when no stream is open and no refusal waits.

        The caller also waits for SlowCalls. Other calls take a moment.
        """
        while self.interceptor.open_streams or self.interceptor.refusals.total:  # noqa: ASYNC110 - see the next line
            await asyncio.sleep(DRAIN_POLL_SECONDS)  # threads end streams and cannot set an asyncio.Event

    async def stop(self) -> None:
        """Closes the connections and returns when the thread has ended."""
        await asyncio.to_thread(self._server.stop, CLOSING_SECONDS)

    async def ended(self) -> None:
        """Never returns: a fault ends one call and never the listener."""
        await asyncio.Event().wait()
