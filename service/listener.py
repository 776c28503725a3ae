"""A second listener, for calls that need no event loop: grpcio's synchronous server costs half the CPU a call.

A call there holds a thread, so it is nothing for watchers; validation is a plain function of bytes. For the same reason
health has Check alone here, and reflection is served by the other listener.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any, Final, cast

import grpc
from google.protobuf.message import DecodeError
from grpc._cython import cygrpc  # type: ignore[attr-defined] # grpcio is pinned: see _OnceItsMessageHasCome
from grpc._server import _CLOSED, _OPEN, _RECEIVE_MESSAGE_TOKEN, _abort, _possibly_finish_call
from grpc_health.v1 import health, health_pb2

from service.servicers.rpc import Service
from service.settings import Settings
from service.threads import SUBMITTED, CallThreads, let_it_finish

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
        # the core drops what waits too long without a word; the boundary refuses with one
        ("grpc.server.max_pending_requests", 2 * settings.max_calls),
        ("grpc.server.max_pending_requests_hard_limit", 4 * settings.max_calls),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    )


def credentials(settings: Settings) -> grpc.ServerCredentials | None:
    """What TLS is served with; None: no TLS."""
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return grpc.ssl_server_credentials([(settings.tls_key.read_bytes(), settings.tls_cert.read_bytes())])


class _OnceItsMessageHasCome(Executor):
    """Gives a call to threads when its message is there.

    grpcio has the call's thread wait for the message, so that callers who send none would keep all threads; and the
    thread is woken twice. This takes its place, between the two halves of what grpcio does, for calls of one message.
    """

    def __init__(self, threads: CallThreads) -> None:
        self._threads = threads

    def submit(self, fn: Callable[..., Any], /, *args: Any, **_kwargs: Any) -> Future[Any]:  # noqa: ANN401 - as Executor
        """To be called by grpcio's own thread, which holds the lock of the call."""
        answer, event, state, behavior, _wait, *as_bytes = args

        def come(received: Any) -> Any:  # noqa: ANN401 - as grpcio's own
            message = received.batch_operations[0].message()
            with state.condition:
                if message is not None:
                    self._threads.submit(fn, answer, event, state, behavior, lambda: message, *as_bytes)
                elif state.client is _OPEN:
                    _refuse(event, state)
                return _possibly_finish_call(state, _RECEIVE_MESSAGE_TOKEN)

        event.call.start_server_batch((cygrpc.ReceiveMessageOperation(0),), come)
        state.due.add(_RECEIVE_MESSAGE_TOKEN)
        return SUBMITTED


def _refuse(event: Any, state: Any) -> None:  # noqa: ANN401 - grpcio's own
    """Ends a call that has no message, as grpcio does."""
    state.client = _CLOSED
    method = event.call_details.method.decode()
    details = f'"{method}" requires exactly one request message.'
    _abort(state, event.call, grpc.StatusCode.UNIMPLEMENTED.value[0], details.encode())


class ThreadedServer:
    """A synchronous server, with health.

    Args:
        services: What it serves.
        threads: Answer the calls.
        settings: How to serve.
    """

    def __init__(self, services: Sequence[Service], threads: CallThreads, settings: Settings) -> None:
        self._settings = settings
        self._threads = threads
        self._health = health.HealthServicer()
        self._server = grpc.server(_OnceItsMessageHasCome(threads), options=options(settings))  # type: ignore[arg-type] # it only submits
        for service in services:
            handler = grpc.method_handlers_generic_handler(service.name, dict(service.handlers))
            self._server.add_generic_rpc_handlers((handler,))
            self._health.set(service.name, health_pb2.HealthCheckResponse.SERVING)
        check: grpc.RpcMethodHandler[Any, Any] = grpc.unary_unary_rpc_method_handler(self._check)
        handler = grpc.method_handlers_generic_handler(health.SERVICE_NAME, {"Check": check})
        self._server.add_generic_rpc_handlers((handler,))

    def start(self, address: str) -> int:
        """Serves at an address, and answers the port. Raises RuntimeError."""
        secrets = credentials(self._settings)
        port = self._server.add_secure_port(address, secrets) if secrets else self._server.add_insecure_port(address)
        let_it_finish()
        self._server.start()
        return port

    def _check(self, data: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            request = health_pb2.HealthCheckRequest.FromString(data)
        except DecodeError:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the request is no HealthCheckRequest")
        return cast("bytes", self._health.Check(request, context).SerializeToString())

    def refuse(self) -> None:
        """Has health say that nothing is served here any more."""
        self._health.enter_graceful_shutdown()

    def stop(self) -> None:
        """Closes the connections, and returns when the threads have ended."""
        self._server.stop(CLOSING_SECONDS).wait()
        self._threads.shutdown()
