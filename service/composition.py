"""The composition root: builds the server and what it stands on from the settings."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog

from service.analysis.complex_turns import ComplexTurns
from service.analysis.pool import COMMAND, AnalysisPool, PriorityAnalysis
from service.app.bots import Bots
from service.app.changes import BOT_WAIT_MS
from service.app.identity import Chance, SystemChance
from service.app.sweeper import Sweeper
from service.app.use_cases import use_cases
from service.app.watch import Watch
from service.codec.turn_validator import Validator
from service.grpc_api import rpcs
from service.grpc_api.call_origin import Origins
from service.grpc_api.call_policy import CallPolicy
from service.grpc_api.grpcio_version import INSTALLED, TESTED, is_tested
from service.grpc_api.handlers import RequestReader, Service
from service.grpc_api.health import SERVING, HealthServicer
from service.grpc_api.interceptor import CallInterceptor
from service.grpc_api.limits import limits_of, stream_limit
from service.grpc_api.listener import AioListener, Listener
from service.grpc_api.reflection import reflection_services
from service.grpc_api.rpc import Backend, served
from service.grpc_api.rpcs.admin import AdminBackend
from service.grpc_api.rpcs.validation import NAME as VALIDATION
from service.grpc_api.rpcs.validation import Streams, ValidationBackend
from service.grpc_api.services import SERVICES
from service.metrics.metrics import Metrics
from service.model.record import Lifetimes
from service.operator.admin import Admin
from service.operator.archive.eraser import ArchiveEraser
from service.operator.archive.open_sink import open_sink
from service.operator.archive.reader import ArchiveReader
from service.operator.archive.sink import Sink
from service.operator.archive.worker import ArchiveWorker
from service.operator.forgetting import forget_seat
from service.runtime.keys import RELOAD_SECONDS, Keys
from service.runtime.mounts import is_mounted
from service.runtime.origins import TrustedProxies
from service.runtime.refusal_pace import Pacing
from service.runtime.slow_calls import Pace, SlowCalls
from service.runtime.tracing import Tracing
from service.server import ADMIN_LISTEN, VALIDATION_LISTEN, Intervals, Server, StoreMonitor, every
from service.settings import MEMORY_URL, PREFIX, Settings, SettingsError
from service.storage.embedded import EmbeddedStore
from service.storage.formats import FORMATS, FormatNotWritten
from service.storage.memory import MemoryStore
from service.storage.store import Store

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Tuning:
    """Paces, intervals and versions that tests choose; an operator has no setting for them.

    Attributes:
        refusals: How refusals are paced.
        slow_calls: How long slow calls run.
        intervals: When the server does what it repeats.
        grpcio: The release of grpcio.
    """

    refusals: Pacing = Pacing()
    slow_calls: Pace = Pace()
    intervals: Intervals = Intervals()
    grpcio: str = INSTALLED


def build_server(  # noqa: PLR0913 - what may be chosen
    settings: Settings,
    store: Store,
    *,
    chance: Chance | None = None,
    analysis_command: Sequence[str] = COMMAND,
    metrics: Metrics | None = None,
    tracing: Tracing | None = None,
    sink: Sink | None = None,
    tuning: Tuning = Tuning(),
) -> Server:
    """Returns a server on a store.

    Args:
        settings: The service's settings.
        store: The store, which the caller closes.
        chance: The source of randomness.
        analysis_command: The command of an analysis worker.
        metrics: Counts calls and operations.
        tracing: Makes spans; None if tracing is off. The caller closes it.
        sink: The archive, which the caller closes; None: finished games are not archived.
        tuning: Paces and intervals for which there is no setting.
    """
    metrics, stopping = metrics or Metrics(), asyncio.Event()
    store.reports.operation = tracing.store_observer(metrics.store) if tracing else metrics.store
    store.reports.event = metrics.store_event
    metrics.stored_format(FORMATS.written)
    archive = ArchiveReader(sink) if sink else None
    app = use_cases(store, chance or SystemChance(), BOT_WAIT_MS + settings.bot_delay_ms, archive)
    app.changes.on_cached(metrics.game_cache_lookup)
    watch = Watch(app.games, store, settings.heartbeat_seconds, stopping)
    analysis = AnalysisPool(
        settings.analysis_workers, settings.analysis_queue, metrics, settings.peer_share, analysis_command
    )
    if tracing:
        analysis.observe = tracing.search
    bot_searches = max(1, settings.analysis_workers - 1)  # leaves one for callers
    complex_turns = ComplexTurns(metrics, analysis_command)
    slow_calls = SlowCalls(settings.peer_share, tuning.slow_calls)
    keys = Keys(settings.keys_file) if settings.keys_file else None
    limits, reader = limits_of(settings), RequestReader(slow_calls)
    eraser = ArchiveEraser(sink) if sink else None
    backend = Backend(app, watch, analysis, limits, reader, metrics, partial(forget_seat, store, eraser))
    services = tuple(served(name, rpcs, backend) for name, rpcs in SERVICES.items())
    validator = Validator(complex_turns.judge)
    listeners = _Listeners(settings, metrics, stopping, tracing, validator, slow_calls, keys, tuning)
    main = listeners.main(services)
    tasks: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {}
    if keys:
        tasks["keys-file"] = partial(every, RELOAD_SECONDS, stopping, keys.reload)
    if sink:
        tasks["archive"] = ArchiveWorker(store, sink, settings.archived_ttl_seconds, metrics, stopping).run
    others = (listeners.validation(), listeners.admin(Admin(app.changes, app.games, store, eraser)))
    return Server(
        settings,
        stopping,
        metrics,
        (main, *filter(None, others)),
        StoreMonitor(store, metrics, main.health, [VALIDATION, *SERVICES]),
        app.presence,
        watch,
        Sweeper(app.changes, store, settings.sweep_seconds, stopping),
        slow_calls,
        complex_turns,
        analysis,
        Bots(app.changes, PriorityAnalysis(analysis), bot_searches, settings.bot_delay_ms / 1000, stopping),
        tasks,
        tuning.intervals,
    )


@dataclass(frozen=True, slots=True)
class _Listeners:
    """Builds the listeners of a server."""

    settings: Settings
    metrics: Metrics
    stopping: asyncio.Event
    tracing: Tracing | None
    validator: Validator
    slow_calls: SlowCalls
    keys: Keys | None
    tuning: Tuning

    def main(self, services: Sequence[Service]) -> AioListener:
        """Returns the listener for RUMMIKUB_LISTEN."""
        validation, end_streams = self._validation_service()
        servicer = HealthServicer()
        own = [*services, validation, servicer.service()]
        return self._aio(
            "RUMMIKUB_LISTEN",
            self.settings.listen,
            [*own, *reflection_services(service.name for service in own)],
            servicer,
            end_streams,
        )

    def validation(self) -> Listener | None:
        """Returns the listener for RUMMIKUB_VALIDATION_LISTEN; None if that is unset."""
        if not self.settings.validation_listen:
            return None
        if is_tested(self.tuning.grpcio):
            from service.fast_listener.validation_listener import (  # noqa: PLC0415 - it imports private parts of grpcio
                FastValidationListener,
            )

            return FastValidationListener(self.settings, self.validator, self.slow_calls, self._player_policy())
        _log.warning(
            "grpcio release not tested: RUMMIKUB_VALIDATION_LISTEN is served by grpc.aio, at twice the CPU a call",
            grpcio=self.tuning.grpcio,
            tested=TESTED,
        )
        validation, end_streams = self._validation_service()
        servicer = HealthServicer()
        for name in ("", VALIDATION):
            servicer.set(name, SERVING)
        services = [validation, servicer.service(is_whole=False)]
        return self._aio(VALIDATION_LISTEN, self.settings.validation_listen, services, servicer, end_streams)

    def admin(self, admin: Admin) -> Listener | None:
        """Returns the listener for RUMMIKUB_ADMIN_LISTEN; None if that is unset.

        It serves AdminService only. Its callers need no key, and share all of its calls.
        """
        settings = self.settings
        if not settings.admin_listen:
            return None
        backend = AdminBackend(admin, settings.admin_token, settings.heartbeat_seconds, self.stopping)
        origins = Origins(None, TrustedProxies(()))
        policy = self._policy(origins, peer_share=1.0)
        services = [served(rpcs.admin.NAME, rpcs.admin.RPCS, backend)]
        return self._aio(ADMIN_LISTEN, settings.admin_listen, services, HealthServicer(), policy=policy)

    def _validation_service(self) -> tuple[Service, Callable[[], None]]:
        """Returns ValidationService on grpc.aio, and what ends its streams."""
        streams = Streams(stream_limit(self.settings), self.stopping)
        backend = ValidationBackend(self.validator, self.slow_calls, streams)
        return served(VALIDATION, rpcs.validation.RPCS, backend), streams.end

    def _player_policy(self) -> CallPolicy:
        """Returns the policy of a listener for players."""
        proxies = TrustedProxies(self.settings.trusted_proxies, self.settings.proxy_hops)
        return self._policy(Origins(self.keys, proxies), self.settings.peer_share)

    def _policy(self, origins: Origins, peer_share: float) -> CallPolicy:
        return CallPolicy(
            self.metrics,
            origins,
            self.settings,
            self.stopping.is_set,
            peer_share,
            tracing=self.tracing,
            pacing=self.tuning.refusals,
        )

    def _aio(  # noqa: PLR0913, PLR0917 - what listeners differ in
        self,
        variable: str,
        address: str,
        services: Sequence[Service],
        servicer: HealthServicer,
        end_streams: Callable[[], None] = lambda: None,
        policy: CallPolicy | None = None,
    ) -> AioListener:
        interceptor = CallInterceptor(policy or self._player_policy(), self.stopping, self.settings.request_seconds)
        grpcio = self.tuning.grpcio
        return AioListener(variable, address, self.settings, interceptor, services, grpcio, servicer, end_streams)


def choose_stored_format(settings: Settings) -> None:
    """Makes this process write the stored format of RUMMIKUB_STORED_FORMAT. Raises SettingsError."""
    if settings.stored_format is not None:
        try:
            FORMATS.choose(settings.stored_format)
        except FormatNotWritten as error:
            raise SettingsError(f"{PREFIX}STORED_FORMAT={settings.stored_format}: {error}") from None


@contextlib.asynccontextmanager
async def store_url(settings: Settings) -> AsyncIterator[tuple[str, EmbeddedStore | None]]:
    """Yields the store's URL; runs the embedded store within the context. Raises SettingsError."""
    if settings.redis_url:
        await _check_suitable(settings.redis_url)
        yield settings.redis_url, None
        return
    if settings.require_volume and "data_dir" not in settings.model_fields_set and not is_mounted(settings.data_dir):
        folder = settings.data_dir.absolute()
        raise SettingsError(
            f"no volume is mounted at {folder}, so all games would be lost with the container: run the image with "
            f"-v rummikub-data:{folder}, or set {PREFIX}REDIS_URL, or set {PREFIX}DATA_DIR={folder} to lose the games"
        )
    embedded = EmbeddedStore(settings.data_dir, settings.data_memory_mb)
    try:
        await embedded.start()
        yield embedded.url, embedded
    finally:
        await embedded.stop()


async def _check_suitable(url: str) -> None:
    """Raises SettingsError if the service cannot use the store at a URL."""
    if url == MEMORY_URL:
        return
    from service.storage.redis.store import obstacle_at  # noqa: PLC0415 - a store in memory needs no redis-py

    if obstacle := await obstacle_at(url):
        raise SettingsError(f"{PREFIX}REDIS_URL: {obstacle}")


@contextlib.asynccontextmanager
async def open_store(url: str, settings: Settings) -> AsyncIterator[Store]:
    """Yields the store at a URL."""
    if url == MEMORY_URL:
        yield MemoryStore(settings.history, log_ms=settings.change_log_seconds * 1000)
        return
    from service.storage.redis.store import RedisStore, connect  # noqa: PLC0415 - as above

    unarchived = settings.game_ttl_seconds if settings.archive_url else 0
    lifetimes = Lifetimes(
        settings.lobby_ttl_seconds, settings.game_ttl_seconds, settings.finished_ttl_seconds, unarchived
    )
    nodes, log_ms = connect(url, settings.redis_replicas), settings.change_log_seconds * 1000
    store = RedisStore(nodes, lifetimes, settings.history, log_ms=log_ms)
    try:
        yield store
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def archive_sink(settings: Settings) -> AsyncIterator[Sink | None]:
    """Yields the archive, if there is one. Raises SettingsError."""
    if not settings.archive_url:
        yield None
        return
    sink = open_sink(settings.archive_url)
    try:
        yield sink
    finally:
        await sink.close()
