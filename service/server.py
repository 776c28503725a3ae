"""The server: all components on one event loop, and their ordered shutdown."""

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from typing import Any, ClassVar, Final

import grpc.aio
import structlog
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from service.analysis.pool import COMMAND, AnalysisPool, PriorityAnalysis
from service.app.bots import Bots
from service.app.changes import BOT_WAIT_MS
from service.app.games import Games
from service.app.identity import Chance, SystemChance
from service.app.presence import FLUSH_SECONDS
from service.app.sweeper import Sweeper
from service.app.watch import Watch
from service.errors import StoreUnavailable, TooManyGames, TooManyGuesses
from service.grpc_api import health
from service.grpc_api.aio_server import aio_server
from service.grpc_api.analysis_service import AnalysisServicer
from service.grpc_api.game_service import GameServicer
from service.grpc_api.grpcio_version import INSTALLED, TESTED, is_tested
from service.grpc_api.handlers import RequestReader
from service.grpc_api.health import HealthServicer
from service.grpc_api.interceptor import CallInterceptor
from service.grpc_api.server_options import CLOSING_SECONDS, server_credentials, server_options
from service.grpc_api.turn_service import TurnServicer
from service.grpc_api.turn_validator import Validator
from service.grpc_api.validation_listener import AioValidationListener, ValidationListener
from service.grpc_api.validation_service import ValidationServicer
from service.metrics.exporter import serve_metrics
from service.metrics.metrics import Metrics
from service.runtime.addresses import address_error
from service.runtime.admission import Admission, CallAdmission
from service.runtime.connections import shut_down_connections
from service.runtime.rate_limit import RateLimit
from service.runtime.slow_calls import SlowCalls
from service.settings import Settings
from service.storage.base import GameStore

PING_SECONDS: Final = 0.5
"""The interval of the store's health checks."""
REMIND_CHECKS: Final = 60
"""A log entry repeats after this number of failed checks."""
COUNT_SECONDS: Final = 10.0
"""The interval of game counts."""

LAST_ANSWERS_SECONDS: Final = 0.25
"""Grace period for the last answers to leave the process."""

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
    """

    grpcio: ClassVar[str] = INSTALLED
    """The release of grpcio. Its private parts are used only if it is tested (grpcio_version)."""

    def __init__(
        self,
        settings: Settings,
        store: GameStore,
        chance: Chance | None = None,
        analysis_command: Sequence[str] = COMMAND,
        metrics: Metrics | None = None,
    ) -> None:
        self._settings = settings
        self._stopping = asyncio.Event()
        self.metrics = metrics or Metrics()
        self._store = store
        self._store.observe = self.metrics.store
        games = Games(self._store, chance or SystemChance(), BOT_WAIT_MS + settings.bot_delay_ms)
        self._presence = games.presence
        watch = Watch(games, self._store, settings.heartbeat_seconds, self._stopping)
        self.sweeper = Sweeper(games, self._store, settings.sweep_seconds, self._stopping)
        validation = Validator()
        self.slow_calls = SlowCalls(settings.peer_share)
        self._validation = ValidationServicer(validation, self.slow_calls, self._stopping)
        self._validation_listener = self._build_validation_listener(validation)
        self.analysis = AnalysisPool(
            settings.analysis_workers, settings.analysis_queue, self.metrics, settings.peer_share, analysis_command
        )
        bot_searches = max(1, settings.analysis_workers - 1)  # leaves one for callers
        self._bots = Bots(
            games, PriorityAnalysis(self.analysis), bot_searches, settings.bot_delay_ms / 1000, self._stopping
        )
        reader = RequestReader(self.slow_calls)
        guesses = RateLimit(settings.join_guesses_per_minute, TooManyGuesses)
        self._services = (
            GameServicer(games, watch, RateLimit(settings.games_per_minute, TooManyGames), guesses).service(),
            TurnServicer(games, reader).service(),
            self._validation.service(),
            AnalysisServicer(games, self.analysis, reader).service(),
        )
        admission = CallAdmission(settings.max_calls, settings.peer_share)
        self._interceptor = CallInterceptor(self.metrics, self._stopping, admission, settings.request_seconds)
        self._health = HealthServicer()
        self._server = self._build()
        self._tasks: list[asyncio.Task[None]] = []
        self._failed_checks = 0
        self._last_failure = ""
        self.port = 0
        self.validation_port = 0
        self.metrics_port = 0

    def _build(self) -> grpc.aio.Server:
        server = aio_server((self._interceptor,), server_options(self._settings), self.grpcio)
        for service in self._services:
            server.add_registered_method_handlers(service.name, dict(service.handlers))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = (*(service.name for service in self._services), health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, server)
        return server

    def _build_validation_listener(self, validation: Validator) -> ValidationListener | None:
        """Returns the listener for RUMMIKUB_VALIDATION_LISTEN; None if that is unset."""
        if not self._settings.validation_listen:
            return None
        if is_tested(self.grpcio):
            from service.fast_listener.validation_listener import (  # noqa: PLC0415 - it imports private parts of grpcio
                FastValidationListener,
            )

            return FastValidationListener(self._settings, validation, self.slow_calls, self.metrics)
        _log.warning(
            "grpcio release not tested: RUMMIKUB_VALIDATION_LISTEN is served by grpc.aio, at twice the CPU a call",
            grpcio=self.grpcio,
            tested=TESTED,
        )
        streams = Admission(self._settings.validation_streams, self._settings.peer_share)
        servicer = ValidationServicer(validation, self.slow_calls, self._stopping, streams)
        return AioValidationListener(self._settings, servicer, self.metrics, self._stopping, self.grpcio)

    async def start(self) -> None:
        """Starts serving. Raises AddressInUseError."""
        self._set_health(is_up=False)
        try:
            self.port = self._listen()
        except RuntimeError:
            raise address_error("RUMMIKUB_LISTEN", self._settings.listen) from None
        if self._validation_listener is not None:
            self.validation_port = await self._validation_listener.start()
        await self._server.start()
        await self._check_store()
        self._spawn("store-check", self._every(PING_SECONDS, self._check_store))
        self._spawn("game-count", self._every(COUNT_SECONDS, self._count_games))
        self._spawn("sweeper", self.sweeper.run())
        self._spawn("presence", self._every(FLUSH_SECONDS, self._presence.flush))

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

    async def _count_games(self) -> None:
        with contextlib.suppress(StoreUnavailable):
            counts = await self._store.count()
            self.metrics.games({state.value: count for state, count in counts.items()})

    async def ended(self) -> ListenerEndedError:
        """Returns the error to report when a listener has ended unexpectedly."""
        ends = {asyncio.create_task(self._ended(), name="RUMMIKUB_LISTEN")}
        if self._validation_listener is not None:
            ends.add(asyncio.create_task(self._validation_listener.ended(), name="RUMMIKUB_VALIDATION_LISTEN"))
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

    async def stop(self) -> None:
        """Stops serving: health changes, streams end (watches with the revision to resume from), calls finish.

        New calls are meanwhile rejected with a reason. A GOAWAY at this point would make the core cancel calls that
        cross it, and clients do not retry those.
        """
        self._health.shut_down()
        self._presence.stop()
        self._stopping.set()
        self._interceptor.cancel_pending_requests()
        self._validation.end_streams()
        if self._validation_listener is not None:
            self._validation_listener.begin_shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.drain_seconds):
                await self._drained()
        await asyncio.to_thread(self.slow_calls.close)
        await asyncio.sleep(LAST_ANSWERS_SECONDS)
        shut_down_connections({self.port, self.validation_port})
        closing = [self._server.stop(CLOSING_SECONDS)]
        if self._validation_listener is not None:
            closing.append(self._validation_listener.stop())
        await asyncio.gather(*closing)
        await self._bots.close()
        await self.analysis.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _drained(self) -> None:
        """Returns when no call is in progress."""
        await self._interceptor.drained()
        if self._validation_listener is not None:
            await self._validation_listener.drained()
        await self.slow_calls.drained()
