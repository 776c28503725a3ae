"""The server: all components on one event loop, and their ordered shutdown."""

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from typing import Any, ClassVar, Final

import grpc.aio
import structlog
from grpc_health.v1 import health_pb2_grpc

from service.analysis.complex_turns import ComplexTurns
from service.analysis.pool import COMMAND, AnalysisPool, PriorityAnalysis
from service.app.bots import Bots
from service.app.changes import BOT_WAIT_MS
from service.app.identity import Chance, SystemChance
from service.app.presence import FLUSH_SECONDS
from service.app.sweeper import Sweeper
from service.app.use_cases import UseCases, use_cases
from service.app.watch import Watch
from service.errors import StoreUnavailable
from service.grpc_api import health
from service.grpc_api.admin_listener import admin_listener
from service.grpc_api.admin_service import AdminServicer
from service.grpc_api.aio_listener import AioListener
from service.grpc_api.aio_server import aio_server
from service.grpc_api.call_origin import Origins
from service.grpc_api.call_policy import CallPolicy
from service.grpc_api.certificates import server_credentials
from service.grpc_api.grpcio_version import INSTALLED, TESTED, is_tested
from service.grpc_api.handlers import RequestReader
from service.grpc_api.health import HealthServicer
from service.grpc_api.interceptor import CallInterceptor
from service.grpc_api.limits import limits_of, stream_limit
from service.grpc_api.reflection import add_reflection
from service.grpc_api.rpc import Backend, served
from service.grpc_api.server_options import CLOSING_SECONDS, server_options
from service.grpc_api.services import SERVICES
from service.grpc_api.turn_validator import Validator
from service.grpc_api.validation_listener import AioValidationListener, ValidationListener
from service.grpc_api.validation_service import ValidationServicer
from service.metrics.exporter import serve_metrics
from service.metrics.metrics import Metrics
from service.operator.admin import Admin
from service.operator.archive.eraser import ArchiveEraser
from service.operator.archive.reader import ArchiveReader
from service.operator.archive.sink import Sink
from service.operator.archive.worker import ArchiveWorker
from service.runtime.addresses import address_error
from service.runtime.connections import shut_down_connections
from service.runtime.keys import RELOAD_SECONDS, Keys
from service.runtime.proxies import TrustedProxies
from service.runtime.slow_calls import SlowCalls
from service.runtime.tracing import Tracing
from service.settings import Settings
from service.storage.store import Store

PING_SECONDS: Final = 0.5
"""The interval of the store's health checks."""
REMIND_CHECKS: Final = 60
"""A log entry repeats after this number of failed checks."""
COUNT_SECONDS: Final = 10.0
"""The interval of game counts."""
LOAD_SECONDS: Final = 0.5
"""The interval at which gauges of the server's load are set, which costs calls nothing."""

LAST_ANSWERS_SECONDS: Final = 0.25
"""Grace period for the last answers to leave the process."""

UNIX_PORT: Final = 1
"""gRPC's port number of a unix socket."""

STATELESS: Final = frozenset({"rummikub.v1.ValidationService", "rummikub.v1.AnalysisService"})
"""Services that stay SERVING without a store; only AnalysisService's questions about a seat's own game need it."""

_log = structlog.get_logger()


class ListenerEndedError(Exception):
    """A listener has ended unexpectedly; the message says what to do."""


class Server:
    """A server on a store.

    Args:
        settings: The service's settings.
        store: The store, which the caller closes.
        chance: The source of randomness.
        analysis_command: The command of an analysis worker.
        metrics: Counts calls and operations.
        tracing: Makes spans; None if tracing is off. The caller closes it.
        sink: The archive, which the caller closes; None: finished games are not archived.
    """

    grpcio: ClassVar[str] = INSTALLED
    """The release of grpcio. Its private parts are used only if it is tested (grpcio_version)."""

    def __init__(  # noqa: PLR0913, PLR0917 - the service's parts
        self,
        settings: Settings,
        store: Store,
        chance: Chance | None = None,
        analysis_command: Sequence[str] = COMMAND,
        metrics: Metrics | None = None,
        tracing: Tracing | None = None,
        sink: Sink | None = None,
    ) -> None:
        self._settings = settings
        self._stopping = asyncio.Event()
        self.metrics = metrics or Metrics()
        self._store = store
        self._tracing = tracing
        self._store.reports.operation = tracing.store_observer(self.metrics.store) if tracing else self.metrics.store
        self._store.reports.event = self.metrics.store_event
        app = use_cases(
            self._store,
            chance or SystemChance(),
            BOT_WAIT_MS + settings.bot_delay_ms,
            ArchiveReader(sink) if sink else None,
        )
        self._presence = app.presence
        self._watch = Watch(app.games, self._store, settings.heartbeat_seconds, self._stopping)
        self.sweeper = Sweeper(app.changes, self._store, settings.sweep_seconds, self._stopping)
        self.archive = self._build_archive(sink)
        self.complex_turns = ComplexTurns(self.metrics, analysis_command)
        validation = Validator(self.complex_turns.judge)
        self.slow_calls = SlowCalls(settings.peer_share)
        self._keys = Keys(settings.keys_file) if settings.keys_file else None
        self._origins = Origins(self._keys, TrustedProxies(settings.trusted_proxies, settings.proxy_hops))
        self._validation = ValidationServicer(validation, self.slow_calls, self._stopping, stream_limit(settings))
        self._validation_listener = self._build_validation_listener(validation)
        self._admin_listener = self._build_admin_listener(app, ArchiveEraser(sink) if sink else None)
        self.analysis = AnalysisPool(
            settings.analysis_workers, settings.analysis_queue, self.metrics, settings.peer_share, analysis_command
        )
        if tracing:
            self.analysis.observe = tracing.search
        bot_searches = max(1, settings.analysis_workers - 1)  # leaves one for callers
        self._bots = Bots(
            app.changes, PriorityAnalysis(self.analysis), bot_searches, settings.bot_delay_ms / 1000, self._stopping
        )
        app.changes.on_cached(self.metrics.game_cache_lookup)
        backend = Backend(
            app, self._watch, self.analysis, limits_of(settings), RequestReader(self.slow_calls), self.metrics
        )
        self._services = (
            *(served(name, rpcs, backend) for name, rpcs in SERVICES.items()),
            self._validation.service(),
        )
        self._interceptor = self._build_interceptor()
        self._health = HealthServicer()
        self._server = self._build()
        self._tasks: list[asyncio.Task[None]] = []
        self._reporting: asyncio.Task[None] | None = None
        self._failed_checks = 0
        self._last_failure = ""
        self.port = 0
        self.validation_port = 0
        self.admin_port = 0
        self.metrics_port = 0

    def _build_archive(self, sink: Sink | None) -> ArchiveWorker | None:
        """Returns the worker that archives games; None without an archive."""
        if sink is None:
            return None
        return ArchiveWorker(self._store, sink, self._settings.archived_ttl_seconds, self.metrics, self._stopping)

    def _build(self) -> grpc.aio.Server:
        server = aio_server((self._interceptor,), server_options(self._settings), self.grpcio)
        for service in self._services:
            server.add_registered_method_handlers(service.name, dict(service.handlers))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        add_reflection(server, (*(service.name for service in self._services), health.SERVICE_NAME))
        return server

    def _build_validation_listener(self, validation: Validator) -> ValidationListener | None:
        """Returns the listener for RUMMIKUB_VALIDATION_LISTEN; None if that is unset."""
        if not self._settings.validation_listen:
            return None
        if is_tested(self.grpcio):
            from service.fast_listener.validation_listener import (  # noqa: PLC0415 - it imports private parts of grpcio
                FastValidationListener,
            )

            return FastValidationListener(self._settings, validation, self.slow_calls, self._build_policy())
        _log.warning(
            "grpcio release not tested: RUMMIKUB_VALIDATION_LISTEN is served by grpc.aio, at twice the CPU a call",
            grpcio=self.grpcio,
            tested=TESTED,
        )
        servicer = ValidationServicer(validation, self.slow_calls, self._stopping, stream_limit(self._settings))
        return AioValidationListener(self._settings, servicer, self._build_interceptor(), self.grpcio)

    def _build_policy(self) -> CallPolicy:
        """Returns the policy of a listener for players."""
        return CallPolicy(self.metrics, self._origins, self._settings, self._stopping.is_set, tracing=self._tracing)

    def _build_interceptor(self) -> CallInterceptor:
        """Returns the interceptor of a listener for players."""
        return CallInterceptor(self._build_policy(), self._stopping, self._settings.request_seconds)

    def _build_admin_listener(self, app: UseCases, archive: ArchiveEraser | None) -> AioListener | None:
        """Returns the listener for RUMMIKUB_ADMIN_LISTEN; None if that is unset."""
        settings = self._settings
        if not settings.admin_listen:
            return None
        admin = Admin(app.changes, app.games, self._store, archive)
        servicer = AdminServicer(admin, settings.admin_token, settings.heartbeat_seconds, self._stopping)
        return admin_listener(settings, servicer, self.metrics, self._stopping, self.grpcio, self._tracing)

    async def start(self) -> None:
        """Starts serving. Raises AddressInUseError."""
        self._set_health(is_up=False)
        self.complex_turns.start()
        try:
            self.port = self._listen()
        except RuntimeError:
            raise address_error("RUMMIKUB_LISTEN", self._settings.listen) from None
        if self._validation_listener is not None:
            self.validation_port = await self._validation_listener.start()
        if self._admin_listener is not None:
            self.admin_port = await self._admin_listener.start()
        await self._server.start()
        await self._check_store()
        self._spawn("store-check", self._every(PING_SECONDS, self._check_store))
        self._spawn("game-count", self._every(COUNT_SECONDS, self._count_games))
        self._spawn("sweeper", self.sweeper.run())
        if self._keys is not None:
            self._spawn("keys-file", self._every(RELOAD_SECONDS, self._reload_keys))
        if self.archive:
            self._spawn("archive", self.archive.run())
        self._spawn("presence", self._every(FLUSH_SECONDS, self._presence.flush))
        self._reporting = asyncio.create_task(self._report_load(), name="load")

    def _listen(self) -> int:
        credentials = server_credentials(self._settings)
        if credentials is None:
            return self._server.add_insecure_port(self._settings.listen)
        return self._server.add_secure_port(self._settings.listen, credentials)

    def serve_metrics(self) -> contextlib.AbstractContextManager[object]:
        """Serves metrics on their own port within the context. Raises AddressInUseError."""
        stack = contextlib.ExitStack()
        self.metrics_port = stack.enter_context(serve_metrics(self._settings.metrics_listen, self.metrics.registry))
        return stack

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))

    async def _every(self, seconds: float, work: Any) -> None:  # noqa: ANN401 - a coroutine function
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)
            await work()

    async def _check_store(self) -> None:
        """Pings the store and sets health. Tolerates one slow answer, so that health does not flap on all servers."""
        try:
            await self._store.ping()
        except StoreUnavailable as error:
            self._failed_checks += 1
            if self._failed_checks % REMIND_CHECKS == 1 or str(error) != self._last_failure:
                _log.warning("store does not answer", error=str(error), checks=self._failed_checks)
            self._last_failure = str(error)
        else:
            if self._failed_checks:
                _log.warning("store answers again", checks=self._failed_checks)
            self._failed_checks = 0
        if self._failed_checks != 1:
            self._set_health(is_up=not self._failed_checks)

    def _set_health(self, *, is_up: bool) -> None:
        self.metrics.store_up(is_up)
        for name in ("", *(service.name for service in self._services)):
            self._health.set(name, health.SERVING if is_up or name in STATELESS else health.NOT_SERVING)

    async def _reload_keys(self) -> None:
        assert self._keys is not None, "the task runs only with a keys file"  # noqa: S101 - for the type
        self._keys.reload()

    async def _count_games(self) -> None:
        with contextlib.suppress(StoreUnavailable):
            counts = await self._store.lists.count()
            self.metrics.games({state.value: count for state, count in counts.items()})

    async def _report_load(self) -> None:
        """Sets the gauges of the load, also while the server stops."""
        while True:
            calls = self._interceptor.policy.calls.total
            if self._validation_listener is not None:
                calls += self._validation_listener.calls_in_progress
            self.metrics.load(calls, self._watch.watchers, self.sweeper.lag_seconds)
            await asyncio.sleep(LOAD_SECONDS)

    async def ended(self) -> ListenerEndedError:
        """Returns the error to report when a listener has ended unexpectedly."""
        ends = {asyncio.create_task(self._ended(), name="RUMMIKUB_LISTEN")}
        if self._validation_listener is not None:
            ends.add(asyncio.create_task(self._validation_listener.ended(), name="RUMMIKUB_VALIDATION_LISTEN"))
        if self._admin_listener is not None:
            ends.add(asyncio.create_task(self._admin_listener.ended(), name="RUMMIKUB_ADMIN_LISTEN"))
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
        name = min(end.get_name() for end in done)
        _log.error("listener has ended", listener=name, exc_info=min(done, key=asyncio.Task.get_name).exception())
        return ListenerEndedError(f"{name} has ended by itself; see the log for the reason, then restart the server")

    async def _ended(self) -> None:
        """Returns when RUMMIKUB_LISTEN has ended. Raises its error."""
        await asyncio.shield(self._server.wait_for_termination())  # cancelling wait_for_termination stops the server

    def report_not_serving(self) -> None:
        """Sets health to NOT_SERVING for good at both listeners; calls are still served, new ones too."""
        self._health.shut_down()
        if self._validation_listener is not None:
            self._validation_listener.report_not_serving()

    async def stop(self) -> None:
        """Stops serving: health changes, streams end (watches with the revision to resume from), calls finish.

        New calls are meanwhile rejected with a reason. A GOAWAY at this point would make the core cancel calls that
        cross it, and clients do not retry those.
        """
        self.report_not_serving()
        self._presence.stop()
        self._stopping.set()
        self._interceptor.arrival.cancel_all()
        self._validation.end_streams()
        if self._validation_listener is not None:
            self._validation_listener.begin_shutdown()
        if self._admin_listener is not None:
            self._admin_listener.begin_shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.drain_seconds):
                await self._drained()
        await asyncio.to_thread(self.slow_calls.close)
        await asyncio.sleep(LAST_ANSWERS_SECONDS)
        shut_down_connections({self.port, self.validation_port, self.admin_port} - {UNIX_PORT})
        closing = [self._server.stop(CLOSING_SECONDS)]
        if self._validation_listener is not None:
            closing.append(self._validation_listener.stop())
        if self._admin_listener is not None:
            closing.append(self._admin_listener.stop())
        await asyncio.gather(*closing)
        await self._bots.close()
        await self.analysis.close()
        await self.complex_turns.close()
        if self._reporting is not None:
            self._reporting.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _drained(self) -> None:
        """Returns when no call is in progress."""
        await self._interceptor.drained()
        if self._validation_listener is not None:
            await self._validation_listener.drained()
        if self._admin_listener is not None:
            await self._admin_listener.drained()
        await self.slow_calls.drained()
