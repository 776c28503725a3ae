"""The composition root: settings, store, server, signals. `python -m service --help` explains the settings."""

import argparse
import asyncio
import contextlib
import ctypes
import logging
import os
import resource
import signal
import ssl
import sys
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO, cast
from urllib.parse import urlsplit

import grpc
import orjson
import structlog
import uvloop
from grpc_health.v1 import health_pb2, health_pb2_grpc

from service.errors import StoreUnavailable
from service.metrics.metrics import Metrics, registry, served
from service.metrics.shared_counters import Tally
from service.runtime.addresses import AddressInUseError, reserved
from service.runtime.gc_tuning import tune_collector
from service.server import ListenerEndedError, Server
from service.settings import MEMORY_URL, PREFIX, Settings, SettingsError, explain, read_settings
from service.storage.base import GameStore, Lifetimes
from service.storage.embedded import EmbeddedStore, EmbeddedStoreError
from service.storage.memory import MemoryStore
from service.storage.redis import RedisStore, connect, obstacle_at
from service.supervisor import OPTION, Parent, Place, Workers, WorkersError, share

NAME = "rummikub-server"
HEALTH_SECONDS = 3.0
"""How long the health check waits for its answer."""

LATE_SECONDS = 10.0
"""How much longer than they wait for calls workers may take to stop."""

M_ARENA_MAX = -8
"""What glibc's mallopt calls the most arenas (malloc.h)."""

ARENAS = 2
"""Parts of memory that threads allocate from. Each keeps what it once needed, and glibc makes eight a processor."""

_log = structlog.get_logger()


def main() -> None:
    """Serves until SIGTERM or SIGINT, or asks a running server for its health."""
    _open_what_is_closed()
    _allow_connections()
    _share_memory()
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="The Rummikub rules service: games, turns and validation over gRPC.",
        epilog=f"settings, from the environment:\n{explain()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('rummikub-service')}")
    parser.add_argument(
        "--health", action="store_true", help="ask the server at RUMMIKUB_LISTEN for its health: exit 0 or 1"
    )
    parser.add_argument("--workers", metavar="N", help="processes that serve, before RUMMIKUB_WORKERS")
    parser.add_argument(OPTION, nargs=3, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    place = Place(*arguments.as_worker) if arguments.as_worker else None
    try:
        settings = read_settings(arguments.workers)
        _log_to_stderr(settings.log_level, place)
        if arguments.health:
            sys.exit(asyncio.run(_health(settings)))
        uvloop.run(_serve(settings, place))
    except (SettingsError, EmbeddedStoreError, AddressInUseError, ListenerEndedError, WorkersError) as error:
        sys.exit(f"{NAME}: {error}")


def _open_what_is_closed() -> None:
    """Opens those of standard input, output and error that were closed, to nothing: no connection is to be one of them.

    uvloop ends the process when it closes one that is.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            file = Path(os.devnull).open(mode)  # noqa: SIM115 - as long as the process lives; it gets the lowest number
            os.set_inheritable(file.fileno(), True)  # noqa: FBT003 - its only parameter
            setattr(sys, name, file)


def _allow_connections() -> None:
    """Raises the limit of open files, one a connection, as far as this user may: it is often 1,024 for others' sake."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # some systems allow less than they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _share_memory() -> None:
    """Has threads use memory that others have given back, unless the environment says how many arenas there are.

    Else each flood of calls leaves more with the process than the one before, as other threads took its calls.
    """
    if "MALLOC_ARENA_MAX" not in os.environ:
        with contextlib.suppress(OSError, AttributeError):  # other C libraries than glibc have no arenas
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS)


def _log_to_stderr(level: str, place: Place | None) -> None:
    """One JSON object a line on standard error, written at once, as other workers write there too."""
    named = {"worker": place.number} if place else {}
    structlog.configure(
        processors=[
            lambda _logger, _level, entry: {**entry, **named},
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(orjson.dumps),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.BytesLoggerFactory(cast("BinaryIO", _NeverFailing(sys.stderr.buffer))),
        cache_logger_on_first_use=True,
    )


class _NeverFailing:
    """A file for the log: what cannot be written is lost (a full disk, a reader that is gone), and calls go on."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, line: bytes) -> None:
        """Writes a line if that is possible."""
        with contextlib.suppress(OSError):
            self._file.write(line)

    def flush(self) -> None:
        """Writes at once what was kept, if that is possible."""
        with contextlib.suppress(OSError):
            self._file.flush()


async def _serve(settings: Settings, place: Place | None) -> None:
    """Serves until SIGTERM or SIGINT: as one of several workers, with several, or alone."""
    asked_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked_to_stop.set)
    if place:
        await _serve_at(place, settings, asked_to_stop)
    elif settings.workers > 1:
        await _serve_with_workers(settings, asked_to_stop)
    else:
        await _serve_alone(settings, asked_to_stop)


async def _serve_alone(settings: Settings, asked_to_stop: asyncio.Event) -> None:
    async with _store_url(settings) as (url, embedded), _store(url, settings) as store:
        server = Server(settings, store)
        with server.serve_metrics():
            await server.start()
            served_at = ServedAt(
                _at(settings.listen, server.port),
                _at(settings.validation_listen, server.validation_port),
                _at(settings.metrics_listen, server.metrics_port),
            )
            tune_collector()
            _greet(settings, served_at, store_is_up=await _answers(store))
            lost = await _asked_or_lost(asked_to_stop, server.ended(), *_endings(embedded))
            _log.info("stopping", waits_at_most_seconds=settings.drain_seconds)
            await server.stop()
            if lost:
                raise lost


async def _serve_with_workers(settings: Settings, asked_to_stop: asyncio.Event) -> None:
    """Keeps workers and the embedded store, if there is one, and shows the workers' metrics."""
    async with contextlib.AsyncExitStack() as stack:
        address = stack.enter_context(reserved("RUMMIKUB_LISTEN", settings.listen))
        validation = ""
        if settings.validation_listen:
            validation = stack.enter_context(reserved("RUMMIKUB_VALIDATION_LISTEN", settings.validation_listen))
        url, embedded = await stack.enter_async_context(_store_url(settings))
        own_settings = [
            {
                "listen": address,
                "validation_listen": validation,
                "redis_url": url,
                "workers": str(settings.workers),
                "analysis_workers": str(share(settings.analysis_workers, settings.workers, number)),
            }
            for number in range(1, settings.workers + 1)
        ]
        workers = Workers(own_settings, settings.drain_seconds + LATE_SECONDS)
        metrics_port = stack.enter_context(served(settings.metrics_listen, registry(workers.metrics.read)))
        workers.start()
        served_at = ServedAt(address, validation, _at(settings.metrics_listen, metrics_port))
        greeting = asyncio.create_task(_greet_when_served(settings, served_at, workers))
        lost = await _asked_or_lost(asked_to_stop, workers.failed(), *_endings(embedded))
        greeting.cancel()
        _log.info("stopping", waits_at_most_seconds=settings.drain_seconds)
        await workers.stop()
        if lost:
            raise lost


async def _greet_when_served(settings: Settings, served_at: "ServedAt", workers: Workers) -> None:
    await workers.serving()
    _greet(settings, served_at, store_is_up=workers.metrics.store_is_up)


async def _serve_at(place: Place, settings: Settings, asked_to_stop: asyncio.Event) -> None:
    """Serves as a worker, until it is asked to stop or its parent has ended, however that was."""
    with contextlib.closing(Parent(place)) as parent:
        async with _store(settings.redis_url, settings) as store:
            server = Server(settings, store, metrics=Metrics(Tally(place.tally)))
            await server.start()
            tune_collector()
            parent.tell_serving()
            lost = await _asked_or_lost(asked_to_stop, parent.ended(), server.ended())
            await server.stop()
            if lost:
                raise lost


@contextlib.asynccontextmanager
async def _store_url(settings: Settings) -> AsyncIterator[tuple[str, EmbeddedStore | None]]:
    """Where the store is; the embedded one is started and ended with the context. Raises SettingsError."""
    if settings.redis_url:
        await _refuse_unsuitable(settings.redis_url)
        yield settings.redis_url, None
        return
    embedded = EmbeddedStore(settings.data_dir)
    try:
        await embedded.start()
        yield embedded.url, embedded
    finally:
        await embedded.stop()


async def _refuse_unsuitable(url: str) -> None:
    """Raises SettingsError if the service cannot work on what answers at a URL."""
    obstacle = "" if url == MEMORY_URL else await obstacle_at(url)
    if obstacle:
        raise SettingsError(f"{PREFIX}REDIS_URL: {obstacle}")


@contextlib.asynccontextmanager
async def _store(url: str, settings: Settings) -> AsyncIterator[GameStore]:
    """The store at a URL."""
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


async def _asked_or_lost(
    asked_to_stop: asyncio.Event, *endings: Coroutine[None, None, Exception | None]
) -> Exception | None:
    """Returns when the server is to stop: because it was asked to, or because what it needs has ended, and why."""
    asked = asyncio.create_task(asked_to_stop.wait())
    lost = [asyncio.create_task(ending) for ending in endings]
    await asyncio.wait([asked, *lost], return_when=asyncio.FIRST_COMPLETED)
    ended = next((task for task in lost if task.done()), None)
    for task in (asked, *lost):
        task.cancel()
    return ended.result() if ended else None


@dataclass(frozen=True, slots=True)
class ServedAt:
    """The addresses where this command serves; of validation alone "" without one."""

    everything: str
    validation: str
    metrics: str


def _at(address: str, port: int) -> str:
    """An address with the port that it has got."""
    return f"{address.rpartition(':')[0]}:{port}" if address else ""


def _greet(settings: Settings, served_at: ServedAt, *, store_is_up: bool) -> None:
    """Says where what is, and what to type next."""
    where = _without_password(settings.redis_url) if settings.redis_url else f"embedded, in {settings.data_dir}"
    if settings.redis_url == MEMORY_URL:
        where = "in memory: games are lost when the server stops"
    if not store_is_up:
        where += " (does not answer yet: health is NOT_SERVING)"
    tls = " (TLS)" if settings.tls_cert else ""
    validation = f"\n  gRPC     {served_at.validation}{tls}, ValidationService alone" if served_at.validation else ""
    workers = f"\n  workers  {settings.workers}" if settings.workers > 1 else ""
    _say(f"""\
Rummikub rules service {version("rummikub-service")}
  gRPC     {served_at.everything}{tls}{validation}
  metrics  http://{served_at.metrics}/metrics
  store    {where}{workers}
{_next_steps(settings)}
Stop with Ctrl-C.
""")


def _next_steps(settings: Settings) -> str:
    """What to type in another terminal: in a clone of the project there is more than where it is installed."""
    if not (Path(__file__).parents[1] / "Makefile").is_file():
        return f"{NAME} --help explains the settings."
    made_to_play = (
        "plays a four-player round against a server of its own: this one speaks TLS"
        if settings.tls_cert
        else "plays a four-player round against this server"
    )
    return f"""\
Next, in another terminal:
  make demo                 {made_to_play}
  .venv/bin/rummikub-server --help
                            explains the settings
  README.md                 plays a game from Python and with a generic gRPC client"""


def _say(text: str) -> None:
    """Writes on standard output at once, paths as the system has them. What cannot be written is lost, as in logs."""
    with contextlib.suppress(OSError):
        os.write(sys.stdout.fileno(), os.fsencode(text))


def _without_password(url: str) -> str:
    """A store's URL without what may be a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"


async def _health(settings: Settings) -> int:
    """0 if the server serves, 1 if not."""
    host, _, port = settings.listen.rpartition(":")
    host = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)  # noqa: S104 - an address to replace
    options: list[tuple[str, str | int]] = [("grpc.enable_http_proxy", 0)]
    try:
        async with asyncio.timeout(HEALTH_SECONDS), contextlib.AsyncExitStack() as stack:
            if settings.tls_cert:
                name = await _certified_name(settings.tls_cert, host.strip("[]"), int(port))
                credentials = grpc.ssl_channel_credentials(settings.tls_cert.read_bytes())
                options.append(("grpc.ssl_target_name_override", name))
                channel = grpc.aio.secure_channel(f"{host}:{port}", credentials, options)
            else:
                channel = grpc.aio.insecure_channel(f"{host}:{port}", options)
            await stack.enter_async_context(channel)
            answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
    except (OSError, grpc.aio.AioRpcError) as error:  # a time-out is an OSError
        problem = error.code().name if isinstance(error, grpc.aio.AioRpcError) else str(error) or "no time left"
        sys.stderr.write(f"{NAME}: no answer from {host}:{port}: {problem}\n")
        return 1
    status = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
    _say(f"{status}\n")
    return 0 if answer.status == health_pb2.HealthCheckResponse.SERVING else 1


async def _certified_name(cert: Path, host: str, port: int) -> str:
    """A name that the server's certificate is for: the health check trusts just that one, at whatever address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["h2"])
    context.load_verify_locations(cert)
    _, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        shown = writer.get_extra_info("peercert")
    finally:
        writer.close()
    common_names = (value for part in shown["subject"] for kind, value in part if kind == "commonName")
    names = (value for kind, value in shown.get("subjectAltName", ()) if kind in {"DNS", "IP Address"})
    return str(next(names, next(common_names, ""))).replace("*", "health")


if __name__ == "__main__":
    main()
