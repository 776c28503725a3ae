"""The program `python -m service`: settings, signals, one process or several. `--help` explains the settings."""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Coroutine, Sequence
from importlib.metadata import version
from typing import Final

import structlog
import uvloop

from service.cli.greeting import ServedAt, greeting
from service.composition import archive_sink, build_server, choose_stored_format, open_store, store_url
from service.errors import StoreUnavailable
from service.health_check import PROGRAM
from service.metrics.exporter import serve_metrics
from service.metrics.metrics import Metrics, metrics_registry
from service.metrics.shared_counters import SharedCounters
from service.runtime.addresses import AddressInUseError, reserve_address
from service.runtime.gc_tuning import tune_gc
from service.runtime.keys import KeysFileError, read_keys
from service.runtime.open_tracing import TracingError, check, tracing_by
from service.runtime.process import limit_malloc_arenas, log_to_stderr, raise_file_limit, write_stdout
from service.runtime.tracing import Tracing
from service.server import ListenerEndedError, Server
from service.settings import MEMORY_URL, UNIX, Settings, SettingsError, explain, read_settings
from service.storage.embedded import EmbeddedStore, EmbeddedStoreError
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


def serve(given: Sequence[str] | None = None) -> None:
    """Serves until SIGTERM or SIGINT, with the given arguments, by default those of the process."""
    raise_file_limit()
    limit_malloc_arenas()
    arguments = _parser().parse_args(given)
    worker = WorkerArguments(*arguments.as_worker) if arguments.as_worker else None
    try:
        settings = read_settings(arguments.workers)
        choose_stored_format(settings)
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
    async with (
        archive_sink(settings) as sink,
        store_url(settings) as (url, embedded),
        open_store(url, settings) as store,
    ):
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
        await stack.enter_async_context(archive_sink(settings))  # refuses a setting that all workers would refuse
        address = stack.enter_context(reserve_address("RUMMIKUB_LISTEN", settings.listen))
        validation = ""
        if settings.validation_listen:
            validation = stack.enter_context(reserve_address("RUMMIKUB_VALIDATION_LISTEN", settings.validation_listen))
        admin = ""
        if settings.admin_listen:
            admin = stack.enter_context(reserve_address("RUMMIKUB_ADMIN_LISTEN", settings.admin_listen))
        url, embedded = await stack.enter_async_context(store_url(settings))
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
        async with archive_sink(settings) as sink, open_store(settings.redis_url, settings) as store:
            metrics = Metrics(SharedCounters(worker.counters), counts_store_events=worker.number == 1)
            server = build_server(settings, store, metrics=metrics, tracing=tracing, sink=sink)
            await server.start()
            tune_gc()
            channel.report_serving()
            failure = await _first_end(channel.ended(), server.ended(), _lame_duck(signals, server, settings))
            await server.stop()
            if failure:
                raise failure


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
