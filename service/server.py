"""The server: everything put together on one event loop, and taken down in order."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine, Sequence
from typing import Any, Final

import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from service.analysis.pool import COMMAND, Ahead, AnalysisPool
from service.app.bots import Bots
from service.app.games import BOT_WAIT_MS, Games
from service.app.identity import Chance, SystemChance
from service.app.sweeper import Sweeper
from service.app.watch import Watch
from service.errors import StoreUnavailable
from service.fast_listener.validation_listener import ValidationListener
from service.grpc_api.aio_server import AsynchronousServer
from service.grpc_api.analysis_service import AnalysisServicer
from service.grpc_api.game_service import GameServicer
from service.grpc_api.handlers import Reader
from service.grpc_api.interceptor import Boundary
from service.grpc_api.server_options import CLOSING_SECONDS, credentials, options
from service.grpc_api.turn_service import TurnServicer
from service.grpc_api.turn_validator import Validator
from service.grpc_api.validation_service import ValidationServicer
from service.metrics.metrics import Metrics, served
from service.runtime.addresses import cannot_listen
from service.runtime.admission import CallRoom
from service.runtime.connections import hang_up
from service.runtime.rate_limit import RateLimit
from service.runtime.slow_calls import SlowCalls
from service.settings import Settings
from service.storage.base import GameStore
from service.storage.measured import MeasuredStore

PING_SECONDS: Final = 0.5
"""How often the store is asked whether it answers."""
REMIND_CHECKS: Final = 60
"""After how many failed checks in a row the log says again that the store is away."""
COUNT_SECONDS: Final = 10.0
"""How often the games are counted."""

FLUSH_SECONDS: Final = 0.05
"""How long the last answers have to leave the process."""

SERVING: Final = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING: Final = health_pb2.HealthCheckResponse.NOT_SERVING
SERVICE_UNKNOWN: Final = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN

STATELESS: Final = frozenset({"rummikub.v1.ValidationService", "rummikub.v1.AnalysisService"})
"""They need no store, but for a seat's own position, and so serve while that is away."""

_log = structlog.get_logger()


class ListenerEndedError(Exception):
    """Nothing is served any more though nobody asked for that; the message says what to do."""


class _Health(health.aio.HealthServicer):  # type: ignore[misc]  # grpcio's is untyped
    """Health with the RPC that grpcio's asynchronous servicer lacks, and with watchers who may be slow.

    grpcio's keeps others from watching and statuses from being set until a watcher has taken the last one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._changed = asyncio.Event()
        """Set with the next change, and another one then."""

    async def List(self, _request: object, _context: object) -> health_pb2.HealthListResponse:  # noqa: N802 - the RPC
        statuses = {name: health_pb2.HealthCheckResponse(status=status) for name, status in self._server_status.items()}
        return health_pb2.HealthListResponse(statuses=statuses)

    async def Watch(  # noqa: N802 - the RPC
        self, request: health_pb2.HealthCheckRequest, _context: object
    ) -> AsyncGenerator[health_pb2.HealthCheckResponse, None]:
        told = None
        while True:
            changed, status = self._changed, self._server_status.get(request.service, SERVICE_UNKNOWN)
            if status != told:
                yield health_pb2.HealthCheckResponse(status=status)
                told = status
            await changed.wait()

    async def set(self, service: str, status: health_pb2.HealthCheckResponse.ServingStatus.ValueType) -> None:
        await super().set(service, status)
        self._tell()

    async def enter_graceful_shutdown(self) -> None:
        await super().enter_graceful_shutdown()
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Server:
    """A server on a store.

    Args:
        settings: Where and how to serve.
        store: Where games are kept; closed by whoever opened it.
        chance: Where randomness comes from.
        analysis_command: What starts a worker of exact analysis.
        metrics: Counts what happens.
    """

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
        self._store = MeasuredStore(store, self.metrics.store)
        games = Games(self._store, chance or SystemChance(), BOT_WAIT_MS + settings.bot_delay_ms)
        watch = Watch(games, self._store, settings.heartbeat_seconds, self._stopping)
        self.sweeper = Sweeper(games, self._store, settings.sweep_seconds, self._stopping)
        validation = Validator()
        self.slow_calls = SlowCalls(settings.peer_share)
        self._validation = ValidationServicer(validation, self.slow_calls, self._stopping)
        self._validation_listener = ValidationListener(settings, validation, self.slow_calls, self.metrics)
        self.analysis = AnalysisPool(
            settings.analysis_workers, settings.analysis_queue, self.metrics, settings.peer_share, analysis_command
        )
        thoughts = max(1, settings.analysis_workers - 1)  # one is left to callers
        self._bots = Bots(games, Ahead(self.analysis), thoughts, settings.bot_delay_ms / 1000, self._stopping)
        reader = Reader(self.slow_calls)
        self._services = (
            GameServicer(games, watch, RateLimit(settings.games_per_minute)).service(),
            TurnServicer(games, reader).service(),
            self._validation.service(),
            AnalysisServicer(games, self.analysis, reader).service(),
        )
        room = CallRoom(settings.max_calls, settings.peer_share)
        self._boundary = Boundary(self.metrics, self._stopping, room, settings.request_seconds)
        self._health = _Health()
        self._server = self._build()
        self._tasks: list[asyncio.Task[None]] = []
        self._failed_checks = 0
        self._last_failure = ""
        self.port = 0
        self.validation_port = 0
        self.metrics_port = 0

    def _build(self) -> AsynchronousServer:
        server = AsynchronousServer((self._boundary,), options(self._settings))
        for service in self._services:
            server.add_registered_method_handlers(service.name, dict(service.handlers))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = (*(service.name for service in self._services), health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, server)
        return server

    async def start(self) -> None:
        """Listens, and serves. Raises AddressInUseError."""
        await self._set_health(is_up=False)
        try:
            self.port = self._listen()
        except RuntimeError:
            raise cannot_listen("RUMMIKUB_LISTEN", self._settings.listen) from None
        self.validation_port = self._validation_listener.start()
        await self._server.start()
        await self._check_store()
        self._spawn("store-check", self._every(PING_SECONDS, self._check_store))
        self._spawn("game-count", self._every(COUNT_SECONDS, self._count_games))
        self._spawn("sweeper", self.sweeper.run())

    def _listen(self) -> int:
        secrets = credentials(self._settings)
        if secrets is None:
            return self._server.add_insecure_port(self._settings.listen)
        return self._server.add_secure_port(self._settings.listen, secrets)

    def serve_metrics(self) -> contextlib.AbstractContextManager[object]:
        """Serves metrics on their own port, as long as the context lasts. Raises AddressInUseError."""
        stack = contextlib.ExitStack()
        self.metrics_port = stack.enter_context(served(self._settings.metrics_listen, self.metrics.registry))
        return stack

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))

    async def _every(self, seconds: float, work: Any) -> None:  # noqa: ANN401 - a coroutine function
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)
            await work()

    async def _check_store(self) -> None:
        """Asks the store. One slow answer is no failure: health would flap on all servers at once."""
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
            await self._set_health(is_up=not self._failed_checks)

    async def _set_health(self, *, is_up: bool) -> None:
        self.metrics.store_up(is_up)
        for name in ("", *(service.name for service in self._services)):
            await self._health.set(name, SERVING if is_up or name in STATELESS else NOT_SERVING)

    async def _count_games(self) -> None:
        with contextlib.suppress(StoreUnavailable):
            counts = await self._store.count()
            self.metrics.games({state.value: count for state, count in counts.items()})

    async def ended(self) -> ListenerEndedError:
        """Returns when RUMMIKUB_LISTEN has ended by itself, with what to say then."""
        try:
            await asyncio.shield(self._server.wait_for_termination())  # else to stop waiting would end it
        except Exception:  # noqa: BLE001 - whatever it was, nothing is served there any more
            _log.exception("listener has ended")
        return ListenerEndedError("RUMMIKUB_LISTEN has ended by itself (why is in the log): start the server again")

    async def stop(self) -> None:
        """Stops serving: health says so, streams end, watches with where to resume, calls under way are waited for."""
        await self._health.enter_graceful_shutdown()
        self._stopping.set()
        self._boundary.stop_expecting()
        self._validation.end_streams()
        self._validation_listener.refuse()
        # New calls are refused with a reason meanwhile. Were the connections told to go away now, the core would cancel
        # calls that cross that message, and clients do not send those again.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.drain_seconds):
                await self._boundary.drained()
                await self._validation_listener.drained()
                await self.slow_calls.drained()
        await asyncio.to_thread(self.slow_calls.close)
        await asyncio.sleep(FLUSH_SECONDS)
        hang_up({self.port, self.validation_port})
        await asyncio.gather(self._server.stop(CLOSING_SECONDS), asyncio.to_thread(self._validation_listener.stop))
        await self._bots.close()
        await self.analysis.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
