"""The composition root: settings, store, server, signals. `python -m service --help` explains the settings."""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final

import structlog
import uvloop

from service.analysis.complex_turns import ComplexTurns
from service.analysis.pool import COMMAND, AnalysisPool, PriorityAnalysis
from service.app.bots import Bots
from service.app.changes import BOT_WAIT_MS
from service.app.identity import Chance, SystemChance
from service.app.sweeper import Sweeper
from service.app.use_cases import use_cases
from service.app.watch import Watch
from service.cli.greeting import ServedAt, greeting
from service.codec.turn_validator import Validator
from service.errors import StoreUnavailable
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
from service.health_check import PROGRAM
from service.metrics.exporter import serve_metrics
from service.metrics.metrics import Metrics, metrics_registry
from service.metrics.shared_counters import SharedCounters
from service.model.record import Lifetimes
from service.operator.admin import Admin
from service.operator.archive.eraser import ArchiveEraser
from service.operator.archive.open_sink import open_sink
from service.operator.archive.reader import ArchiveReader
from service.operator.archive.sink import Sink
from service.operator.archive.worker import ArchiveWorker
from service.runtime.addresses import AddressInUseError, reserve_address
from service.runtime.gc_tuning import tune_gc
from service.runtime.keys import Keys, KeysFileError, read_keys
from service.runtime.open_tracing import TracingError, check, tracing_by
from service.runtime.origins import TrustedProxies
from service.runtime.process import limit_malloc_arenas, log_to_stderr, raise_file_limit, write_stdout
from service.runtime.slow_calls import SlowCalls
from service.runtime.tracing import Tracing
from service.server import ADMIN_LISTEN, VALIDATION_LISTEN, ListenerEndedError, Server, StoreMonitor
from service.settings import MEMORY_URL, PREFIX, UNIX, Settings, SettingsError, explain, read_settings
from service.storage.embedded import EmbeddedStore, EmbeddedStoreError
from service.storage.memory import MemoryStore
from service.storage.redis.store import RedisStore, connect, obstacle_at
from service.storage.store import Store
from service.supervisor import (
    OPTION,
    UNUSABLE_SETTINGS,
    Supervisor,
    SupervisorChannel,
    SupervisorError,
    WorkerArguments,
    share,
)

KILL_SECONDS: Final = 10.0
"""Grace period beyond lame_duck_seconds and drain_seconds before workers are killed."""

_log = structlog.get_logger()


def serve() -> None:
    """Serves until SIGTERM or SIGINT."""
    raise_file_limit()
    limit_malloc_arenas()
    arguments = _parser().parse_args()
    worker = WorkerArguments(*arguments.as_worker) if arguments.as_worker else None
    try:
        settings = read_settings(arguments.workers)
        if settings.keys_file:
            read_keys(settings.keys_file)
        check(os.environ)
        with _tracing(settings, worker) as tracing:
            number, processors = worker.number if worker else None, (tracing.add_ids,) if tracing else ()
            log_to_stderr(settings.log_level, number, processors)
            uvloop.run(_serve(settings, worker, tracing))
    except (SettingsError, KeysFileError) as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        sys.exit(UNUSABLE_SETTINGS if worker else 1)
    except (
        EmbeddedStoreError,
        AddressInUseError,
        ListenerEndedError,
        SupervisorError,
        TracingError,
    ) as error:
        sys.exit(f"{PROGRAM}: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="The Rummikub rules service: games, turns and validation over gRPC.",
        epilog=f"settings, from the environment:\n{explain()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # __main__ looks for --health
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('rummikub-service')}")
    parser.add_argument(
        "--health", action="store_true", help="check the health of the server at RUMMIKUB_LISTEN: exit code 0 or 1"
    )
    parser.add_argument("--workers", metavar="N", help="number of worker processes; overrides RUMMIKUB_WORKERS")
    parser.add_argument(OPTION, nargs=3, type=int, help=argparse.SUPPRESS)
    return parser


def build_server(  # noqa: PLR0913 - what may be chosen
    settings: Settings,
    store: Store,
    *,
    chance: Chance | None = None,
    analysis_command: Sequence[str] = COMMAND,
    metrics: Metrics | None = None,
    tracing: Tracing | None = None,
    sink: Sink | None = None,
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
    """
    metrics, stopping = metrics or Metrics(), asyncio.Event()
    store.reports.operation = tracing.store_observer(metrics.store) if tracing else metrics.store
    store.reports.event = metrics.store_event
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
    slow_calls = SlowCalls(settings.peer_share)
    keys = Keys(settings.keys_file) if settings.keys_file else None
    limits, reader = limits_of(settings), RequestReader(slow_calls)
    services = tuple(
        served(name, rpcs, Backend(app, watch, analysis, limits, reader, metrics)) for name, rpcs in SERVICES.items()
    )
    listeners = _Listeners(settings, metrics, stopping, tracing, Validator(complex_turns.judge), slow_calls, keys)
    main = listeners.main(services)
    eraser = ArchiveEraser(sink) if sink else None
    others = (listeners.validation(), listeners.admin(Admin(app.changes, app.games, store, eraser)))
    return Server(
        settings,
        stopping,
        metrics,
        (main, *filter(None, others)),
        StoreMonitor(store, metrics, main.health, [VALIDATION, *SERVICES]),
        keys,
        app.presence,
        watch,
        Sweeper(app.changes, store, settings.sweep_seconds, stopping),
        ArchiveWorker(store, sink, settings.archived_ttl_seconds, metrics, stopping) if sink else None,
        slow_calls,
        complex_turns,
        analysis,
        Bots(app.changes, PriorityAnalysis(analysis), bot_searches, settings.bot_delay_ms / 1000, stopping),
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
        if is_tested(INSTALLED):
            from service.fast_listener.validation_listener import (  # noqa: PLC0415 - it imports private parts of grpcio
                FastValidationListener,
            )

            return FastValidationListener(self.settings, self.validator, self.slow_calls, self._policy())
        _log.warning(
            "grpcio release not tested: RUMMIKUB_VALIDATION_LISTEN is served by grpc.aio, at twice the CPU a call",
            grpcio=INSTALLED,
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
        policy = CallPolicy(self.metrics, origins, settings, self.stopping.is_set, tracing=self.tracing, peer_share=1.0)
        services = [served(rpcs.admin.NAME, rpcs.admin.RPCS, backend)]
        return self._aio(ADMIN_LISTEN, settings.admin_listen, services, HealthServicer(), policy=policy)

    def _validation_service(self) -> tuple[Service, Callable[[], None]]:
        """Returns ValidationService on grpc.aio, and what ends its streams."""
        streams = Streams(stream_limit(self.settings), self.stopping)
        backend = ValidationBackend(self.validator, self.slow_calls, streams)
        return served(VALIDATION, rpcs.validation.RPCS, backend), streams.end

    def _policy(self) -> CallPolicy:
        """Returns the policy of a listener for players."""
        origins = Origins(self.keys, TrustedProxies(self.settings.trusted_proxies, self.settings.proxy_hops))
        return CallPolicy(self.metrics, origins, self.settings, self.stopping.is_set, tracing=self.tracing)

    def _aio(  # noqa: PLR0913, PLR0917 - what listeners differ in
        self,
        variable: str,
        address: str,
        services: Sequence[Service],
        servicer: HealthServicer,
        end_streams: Callable[[], None] = lambda: None,
        policy: CallPolicy | None = None,
    ) -> AioListener:
        interceptor = CallInterceptor(policy or self._policy(), self.stopping, self.settings.request_seconds)
        return AioListener(variable, address, self.settings, interceptor, services, INSTALLED, servicer, end_streams)


class _StopSignals:
    """The signals to stop. SIGTERM begins the lame duck; a second one, or SIGINT at any time, skips it.

    Attributes:
        requested: Set when the process is to stop.
        skip_lame_duck: Set when it is to stop without the lame duck.
    """

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.skip_lame_duck = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._on_terminate)
        loop.add_signal_handler(signal.SIGINT, self._on_interrupt)

    def _on_terminate(self) -> None:
        if self.requested.is_set():
            self.skip_lame_duck.set()
        self.requested.set()

    def _on_interrupt(self) -> None:
        self.requested.set()
        self.skip_lame_duck.set()


def _tracing(settings: Settings, worker: WorkerArguments | None) -> contextlib.AbstractContextManager[Tracing | None]:
    """Returns the context of this process's traces. A supervisor has none: its workers export theirs."""
    environment = os.environ if worker or settings.workers == 1 else {}
    store = "memory" if settings.redis_url == MEMORY_URL else "redis"
    return tracing_by(environment, worker.number if worker else None, store)


async def _serve(settings: Settings, worker: WorkerArguments | None, tracing: Tracing | None) -> None:
    """Serves until SIGTERM or SIGINT: as a worker, as a supervisor of workers, or as the only process."""
    signals = _StopSignals()
    if worker:
        await _serve_as_worker(worker, settings, signals, tracing)
    elif settings.workers > 1:
        await _serve_with_workers(settings, signals)
    else:
        await _serve_alone(settings, signals, tracing)


async def _serve_alone(settings: Settings, signals: _StopSignals, tracing: Tracing | None) -> None:
    async with _sink(settings) as sink, _store_url(settings) as (url, embedded), _store(url, settings) as store:
        server = build_server(settings, store, tracing=tracing, sink=sink)
        with server.serve_metrics() as metrics_port:
            await server.start()
            served_at = ServedAt(
                _with_port(settings.listen, server.port),
                _with_port(settings.validation_listen, server.validation_port),
                _with_port(settings.admin_listen, server.admin_port),
                _with_port(settings.metrics_listen, metrics_port),
            )
            tune_gc()
            write_stdout(greeting(PROGRAM, settings, served_at, store_is_up=await _answers(store)))
            failure = await _first_end(server.ended(), *_endings(embedded), _lame_duck(signals, server, settings))
            _log.info("stopping", waits_at_most_seconds=settings.drain_seconds)
            await server.stop()
            if failure:
                raise failure


async def _serve_with_workers(settings: Settings, signals: _StopSignals) -> None:
    """Runs the supervisor, the embedded store if there is one, and the merged metrics."""
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(_sink(settings))  # refuses a setting that all workers would refuse
        address = stack.enter_context(reserve_address("RUMMIKUB_LISTEN", settings.listen))
        validation = ""
        if settings.validation_listen:
            validation = stack.enter_context(reserve_address("RUMMIKUB_VALIDATION_LISTEN", settings.validation_listen))
        admin = ""
        if settings.admin_listen:
            admin = stack.enter_context(reserve_address("RUMMIKUB_ADMIN_LISTEN", settings.admin_listen))
        url, embedded = await stack.enter_async_context(_store_url(settings))
        worker_settings = [
            {
                "listen": address,
                "validation_listen": validation,
                "admin_listen": admin,
                "redis_url": url,
                "workers": str(settings.workers),
                "analysis_workers": str(share(settings.analysis_workers, settings.workers, number)),
            }
            for number in range(1, settings.workers + 1)
        ]
        supervisor = Supervisor(worker_settings, grace_seconds(settings))
        registry = metrics_registry(supervisor.metrics.read)
        metrics_port = stack.enter_context(serve_metrics(settings.metrics_listen, registry))
        supervisor.start()
        served_at = ServedAt(address, validation, admin, _with_port(settings.metrics_listen, metrics_port))
        greet = asyncio.create_task(_greet_when_serving(settings, served_at, supervisor))
        failure = await _first_end(supervisor.failed(), *_endings(embedded), _stop_request(signals))
        greet.cancel()
        _log.info("stopping", waits_at_most_seconds=settings.lame_duck_seconds + settings.drain_seconds)
        await supervisor.stop(signals.skip_lame_duck)
        if failure:
            raise failure


def grace_seconds(settings: Settings) -> float:
    """Returns how long a server may take to stop after SIGTERM."""
    return settings.lame_duck_seconds + settings.drain_seconds + KILL_SECONDS


async def _greet_when_serving(settings: Settings, served_at: ServedAt, supervisor: Supervisor) -> None:
    await supervisor.serving()
    write_stdout(greeting(PROGRAM, settings, served_at, store_is_up=supervisor.metrics.store_is_up))


async def _serve_as_worker(
    worker: WorkerArguments, settings: Settings, signals: _StopSignals, tracing: Tracing | None
) -> None:
    """Serves until a signal or the supervisor's end."""
    with contextlib.closing(SupervisorChannel(worker)) as channel:
        async with _sink(settings) as sink, _store(settings.redis_url, settings) as store:
            metrics = Metrics(SharedCounters(worker.counters), counts_store_events=worker.number == 1)
            server = build_server(settings, store, metrics=metrics, tracing=tracing, sink=sink)
            await server.start()
            tune_gc()
            channel.report_serving()
            failure = await _first_end(channel.ended(), server.ended(), _lame_duck(signals, server, settings))
            await server.stop()
            if failure:
                raise failure


@contextlib.asynccontextmanager
async def _store_url(settings: Settings) -> AsyncIterator[tuple[str, EmbeddedStore | None]]:
    """Yields the store's URL; runs the embedded store within the context. Raises SettingsError."""
    if settings.redis_url:
        await _check_suitable(settings.redis_url)
        yield settings.redis_url, None
        return
    embedded = EmbeddedStore(settings.data_dir, settings.data_memory_mb)
    try:
        await embedded.start()
        yield embedded.url, embedded
    finally:
        await embedded.stop()


async def _check_suitable(url: str) -> None:
    """Raises SettingsError if the service cannot use the store at a URL."""
    obstacle = "" if url == MEMORY_URL else await obstacle_at(url)
    if obstacle:
        raise SettingsError(f"{PREFIX}REDIS_URL: {obstacle}")


@contextlib.asynccontextmanager
async def _store(url: str, settings: Settings) -> AsyncIterator[Store]:
    """Yields the store at a URL."""
    if url == MEMORY_URL:
        yield MemoryStore(settings.history, log_ms=settings.change_log_seconds * 1000)
        return
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
async def _sink(settings: Settings) -> AsyncIterator[Sink | None]:
    """Yields the archive, if there is one. Raises SettingsError."""
    if not settings.archive_url:
        yield None
        return
    sink = open_sink(settings.archive_url)
    try:
        yield sink
    finally:
        await sink.close()


async def _answers(store: Store) -> bool:
    try:
        await store.ping()
    except StoreUnavailable:
        return False
    return True


def _endings(embedded: EmbeddedStore | None) -> tuple[Coroutine[None, None, Exception], ...]:
    return (embedded.ended(),) if embedded else ()


async def _stop_request(signals: _StopSignals) -> None:
    """Returns when a stop is requested."""
    await signals.requested.wait()


async def _lame_duck(signals: _StopSignals, server: Server, settings: Settings) -> None:
    """Returns when the server is to stop: lame_duck_seconds after the request, unless the lame duck is skipped.

    Until then the server serves, but its health reports NOT_SERVING, so that proxies send new calls elsewhere.
    """
    await signals.requested.wait()
    server.report_not_serving()
    if settings.lame_duck_seconds:
        _log.info("lame duck", seconds=settings.lame_duck_seconds)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(signals.skip_lame_duck.wait(), settings.lame_duck_seconds)


async def _first_end(*endings: Coroutine[None, None, Exception | None]) -> Exception | None:
    """Waits for the first ending and returns its error, None for a normal stop. Of several, the first named counts."""
    tasks = [asyncio.create_task(ending) for ending in endings]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    ended = next(task for task in tasks if task.done())
    for task in tasks:
        task.cancel()
    return ended.result()


def _with_port(address: str, port: int) -> str:
    """Returns an address with the port that the system assigned; "" for no address."""
    if address.startswith(UNIX):
        return address
    return f"{address.rpartition(':')[0]}:{port}" if address else ""
