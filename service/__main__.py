"""The composition root: settings, store, server, signals. `python -m service --help` explains the settings."""

import argparse
import asyncio
import contextlib
import logging
import signal
import ssl
import sys
from collections.abc import AsyncIterator
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc

from service.embedded import EmbeddedStore, EmbeddedStoreError
from service.faults import StoreUnavailable
from service.server import AddressInUseError, Server
from service.settings import MEMORY_URL, Settings, SettingsError, explain, read_settings
from service.storage.base import GameStore
from service.storage.memory import MemoryStore
from service.storage.redis import RedisStore, connect

NAME = "rummikub-server"
HEALTH_SECONDS = 3.0
"""How long the health check waits for its answer."""

_log = structlog.get_logger()


def main() -> None:
    """Serves until SIGTERM or SIGINT, or asks a running server for its health."""
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
    arguments = parser.parse_args()
    try:
        settings = read_settings()
        _log_to_stderr(settings.log_level)
        if arguments.health:
            sys.exit(asyncio.run(_health(settings)))
        asyncio.run(_serve(settings))
    except (SettingsError, EmbeddedStoreError, AddressInUseError) as error:
        sys.exit(f"{NAME}: {error}")


def _log_to_stderr(level: str) -> None:
    """One JSON object a line on standard error."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


@contextlib.asynccontextmanager
async def _store(settings: Settings) -> AsyncIterator[tuple[GameStore, EmbeddedStore | None]]:
    """The store of the settings; the embedded one is started and ended with it."""
    if settings.redis_url == MEMORY_URL:
        yield MemoryStore(settings.history), None
        return
    async with contextlib.AsyncExitStack() as stack:
        url, embedded = settings.redis_url, None
        if not url:
            embedded = EmbeddedStore(settings.data_dir)
            stack.push_async_callback(embedded.stop)
            await embedded.start()
            url = embedded.url
        store = RedisStore(connect(url), settings.game_ttl_seconds * 1000, settings.history)
        stack.push_async_callback(store.close)
        yield store, embedded


async def _serve(settings: Settings) -> None:
    asked_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked_to_stop.set)
    async with _store(settings) as (store, embedded):
        server = Server(settings, store)
        with server.serve_metrics():
            await server.start()
            sys.stdout.write(await _greeting(settings, store, server))
            sys.stdout.flush()
            lost = await _asked_or_lost(asked_to_stop, embedded)
            _log.info("stopping", waits_at_most_seconds=settings.drain_seconds)
            await server.stop()
            if lost:
                raise lost


async def _asked_or_lost(asked_to_stop: asyncio.Event, embedded: EmbeddedStore | None) -> EmbeddedStoreError | None:
    """Returns when the server is to stop: because it was asked to, or because its embedded store has ended."""
    asked = asyncio.create_task(asked_to_stop.wait())
    lost = asyncio.create_task(embedded.ended()) if embedded else None
    await asyncio.wait([asked, lost] if lost else [asked], return_when=asyncio.FIRST_COMPLETED)
    if lost and lost.done():
        return lost.result()
    if lost:
        lost.cancel()
    return None


async def _greeting(settings: Settings, store: GameStore, server: Server) -> str:
    """Where what is, and what to type next."""
    where = _without_password(settings.redis_url) if settings.redis_url else f"embedded, in {settings.data_dir}"
    if settings.redis_url == MEMORY_URL:
        where = "in memory: games are lost when the server stops"
    try:
        await store.ping()
    except StoreUnavailable:
        where += " (does not answer yet: health is NOT_SERVING)"
    host = settings.listen.rpartition(":")[0]
    metrics_host = settings.metrics_listen.rpartition(":")[0]
    return f"""\
Rummikub rules service {version("rummikub-service")}
  gRPC     {host}:{server.port}{" (TLS)" if settings.tls_cert else ""}
  metrics  http://{metrics_host}:{server.metrics_port}/metrics
  store    {where}
Next, in another terminal:
  make demo                 plays a four-player round against this server
  .venv/bin/rummikub-server --help
                            explains the settings
  README.md                 plays a game from Python and with a generic gRPC client
Stop with Ctrl-C.
"""


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
    sys.stdout.write(f"{status}\n")
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
