"""The composition root: settings, store, server, signals. `python -m service --help` explains the settings."""

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Coroutine
from importlib.metadata import version
from typing import Final

import structlog
import uvloop

from service.cli.greeting import ServedAt, greeting
from service.cli.health_check import health_check
from service.errors import StoreUnavailable
from service.metrics.exporter import serve_metrics
from service.metrics.metrics import Metrics, metrics_registry
from service.metrics.shared_counters import SharedCounters
from service.runtime.addresses import AddressInUseError, reserve_address
from service.runtime.gc_tuning import tune_gc
from service.runtime.process import limit_malloc_arenas, log_to_stderr, raise_file_limit, write_stdout
from service.server import ListenerEndedError, Server
from service.settings import MEMORY_URL, PREFIX, Settings, SettingsError, explain, read_settings
from service.storage.base import GameStore, Lifetimes
from service.storage.embedded import EmbeddedStore, EmbeddedStoreError
from service.storage.memory import MemoryStore
from service.storage.redis import RedisStore, connect, obstacle_at
from service.supervisor import OPTION, Supervisor, SupervisorChannel, SupervisorError, WorkerArguments, share

NAME: Final = "rummikub-server"
KILL_SECONDS: Final = 10.0
"""Grace period beyond drain_seconds before workers are killed."""

_log = structlog.get_logger()


def main() -> None:
    """Serves until SIGTERM or SIGINT, or checks a running server's health."""
    raise_file_limit()
    limit_malloc_arenas()
    arguments = _parser().parse_args()
    worker = WorkerArguments(*arguments.as_worker) if arguments.as_worker else None
    try:
        settings = read_settings(arguments.workers)
        log_to_stderr(settings.log_level, worker.number if worker else None)
        if arguments.health:
            sys.exit(asyncio.run(health_check(NAME, settings)))
        uvloop.run(_serve(settings, worker))
    except (SettingsError, EmbeddedStoreError, AddressInUseError, ListenerEndedError, SupervisorError) as error:
        sys.exit(f"{NAME}: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="The Rummikub rules service: games, turns and validation over gRPC.",
        epilog=f"settings, from the environment:\n{explain()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('rummikub-service')}")
    parser.add_argument(
        "--health", action="store_true", help="check the health of the server at RUMMIKUB_LISTEN: exit code 0 or 1"
    )
    parser.add_argument("--workers", metavar="N", help="number of worker processes; overrides RUMMIKUB_WORKERS")
    parser.add_argument(OPTION, nargs=3, type=int, help=argparse.SUPPRESS)
    return parser


async def _serve(settings: Settings, worker: WorkerArguments | None) -> None:
    """Serves until SIGTERM or SIGINT: as a worker, as a supervisor of workers, or as the only process."""
    stop_requested = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_requested.set)
    if worker:
        await _serve_as_worker(worker, settings, stop_requested)
    elif settings.workers > 1:
        await _serve_with_workers(settings, stop_requested)
    else:
        await _serve_alone(settings, stop_requested)


async def _serve_alone(settings: Settings, stop_requested: asyncio.Event) -> None:
    async with _store_url(settings) as (url, embedded), _store(url, settings) as store:
        server = Server(settings, store)
        with server.serve_metrics():
            await server.start()
            served_at = ServedAt(
                _with_port(settings.listen, server.port),
                _with_port(settings.validation_listen, server.validation_port),
                _with_port(settings.metrics_listen, server.metrics_port),
            )
            tune_gc()
            write_stdout(greeting(NAME, settings, served_at, store_is_up=await _answers(store)))
            failure = await _stop_or_failure(stop_requested, server.ended(), *_endings(embedded))
            _log.info("stopping", waits_at_most_seconds=settings.drain_seconds)
            await server.stop()
            if failure:
                raise failure


async def _serve_with_workers(settings: Settings, stop_requested: asyncio.Event) -> None:
    """Runs the supervisor, the embedded store if there is one, and the merged metrics."""
    async with contextlib.AsyncExitStack() as stack:
        address = stack.enter_context(reserve_address("RUMMIKUB_LISTEN", settings.listen))
        validation = ""
        if settings.validation_listen:
            validation = stack.enter_context(reserve_address("RUMMIKUB_VALIDATION_LISTEN", settings.validation_listen))
        url, embedded = await stack.enter_async_context(_store_url(settings))
        worker_settings = [
            {
                "listen": address,
                "validation_listen": validation,
                "redis_url": url,
                "workers": str(settings.workers),
                "analysis_workers": str(share(settings.analysis_workers, settings.workers, number)),
            }
            for number in range(1, settings.workers + 1)
        ]
        supervisor = Supervisor(worker_settings, settings.drain_seconds + KILL_SECONDS)
        registry = metrics_registry(supervisor.metrics.read)
        metrics_port = stack.enter_context(serve_metrics(settings.metrics_listen, registry))
        supervisor.start()
        served_at = ServedAt(address, validation, _with_port(settings.metrics_listen, metrics_port))
        greet = asyncio.create_task(_greet_when_serving(settings, served_at, supervisor))
        failure = await _stop_or_failure(stop_requested, supervisor.failed(), *_endings(embedded))
        greet.cancel()
        _log.info("stopping", waits_at_most_seconds=settings.drain_seconds)
        await supervisor.stop()
        if failure:
            raise failure


async def _greet_when_serving(settings: Settings, served_at: ServedAt, supervisor: Supervisor) -> None:
    await supervisor.serving()
    write_stdout(greeting(NAME, settings, served_at, store_is_up=supervisor.metrics.store_is_up))


async def _serve_as_worker(worker: WorkerArguments, settings: Settings, stop_requested: asyncio.Event) -> None:
    """Serves until a signal or the supervisor's end."""
    with contextlib.closing(SupervisorChannel(worker)) as channel:
        async with _store(settings.redis_url, settings) as store:
            server = Server(settings, store, metrics=Metrics(SharedCounters(worker.counters)))
            await server.start()
            tune_gc()
            channel.report_serving()
            failure = await _stop_or_failure(stop_requested, channel.ended(), server.ended())
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
    embedded = EmbeddedStore(settings.data_dir)
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
async def _store(url: str, settings: Settings) -> AsyncIterator[GameStore]:
    """Yields the store at a URL."""
    if url == MEMORY_URL:
        yield MemoryStore(settings.history)
        return
    lifetimes = Lifetimes(settings.lobby_ttl_seconds, settings.game_ttl_seconds, settings.finished_ttl_seconds)
    store = RedisStore(connect(url), lifetimes, settings.history)
    try:
        yield store
    finally:
        await store.close()


async def _answers(store: GameStore) -> bool:
    try:
        await store.ping()
    except StoreUnavailable:
        return False
    return True


def _endings(embedded: EmbeddedStore | None) -> tuple[Coroutine[None, None, Exception], ...]:
    return (embedded.ended(),) if embedded else ()


async def _stop_or_failure(
    stop_requested: asyncio.Event, *endings: Coroutine[None, None, Exception | None]
) -> Exception | None:
    """Waits for a stop request or the first ending; returns the ending's error, None for a normal stop."""
    requested = asyncio.create_task(stop_requested.wait())
    tasks = [asyncio.create_task(ending) for ending in endings]
    await asyncio.wait([requested, *tasks], return_when=asyncio.FIRST_COMPLETED)
    ended = next((task for task in tasks if task.done()), None)
    for task in (requested, *tasks):
        task.cancel()
    return ended.result() if ended else None


def _with_port(address: str, port: int) -> str:
    """Returns an address with the port that the system assigned; "" for no address."""
    return f"{address.rpartition(':')[0]}:{port}" if address else ""


if __name__ == "__main__":
    main()
