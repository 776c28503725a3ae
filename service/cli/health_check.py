"""`rummikub-server --health`: checks the health of a running server."""

import asyncio
import contextlib
import ssl
import sys
from pathlib import Path
from typing import Final

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from service.runtime.process import write_stdout
from service.settings import Settings

TIMEOUT_SECONDS: Final = 3.0
NO_PROXY: Final = ("grpc.enable_http_proxy", 0)


async def health_check(program: str, settings: Settings) -> int:
    """Prints the health of the server at RUMMIKUB_LISTEN; returns the exit code, 0 for SERVING and 1 otherwise."""
    host, _, port = settings.listen.rpartition(":")
    host = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)  # noqa: S104 - an address to replace
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS), contextlib.AsyncExitStack() as stack:
            channel = await _tls_channel(settings, host, port) if settings.tls_cert else _channel(host, port)
            await stack.enter_async_context(channel)
            answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
    except (OSError, grpc.aio.AioRpcError) as error:  # TimeoutError is an OSError
        problem = error.code().name if isinstance(error, grpc.aio.AioRpcError) else str(error) or "timeout"
        sys.stderr.write(f"{program}: no answer from {host}:{port}: {problem}\n")
        return 1
    write_stdout(f"{health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)}\n")
    return 0 if answer.status == health_pb2.HealthCheckResponse.SERVING else 1


def _channel(host: str, port: str) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(f"{host}:{port}", [NO_PROXY])


async def _tls_channel(settings: Settings, host: str, port: str) -> grpc.aio.Channel:
    """Returns a channel that trusts just the server's certificate, for whatever host it is. Raises OSError.

    If clients need a certificate, it sends the server's own.
    """
    cert, key = settings.tls_cert, settings.tls_key
    assert cert, "the setting is set"  # noqa: S101 - for the type
    assert key, "both are set together"  # noqa: S101 - for the type
    name = await _certificate_name(cert, host.strip("[]"), int(port), key if settings.tls_client_ca else None)
    chain = cert.read_bytes()
    own = (key.read_bytes(), chain) if settings.tls_client_ca else ()
    credentials = grpc.ssl_channel_credentials(chain, *own)
    return grpc.aio.secure_channel(f"{host}:{port}", credentials, [NO_PROXY, ("grpc.ssl_target_name_override", name)])


async def _certificate_name(cert: Path, host: str, port: int, key: Path | None) -> str:
    """Returns a host name in the server's certificate, which must be the given one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["h2"])
    context.load_verify_locations(cert)
    if key:
        context.load_cert_chain(cert, key)
    _, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        certificate = writer.get_extra_info("peercert")
    finally:
        writer.close()
    common_names = (value for part in certificate["subject"] for kind, value in part if kind == "commonName")
    names = (value for kind, value in certificate.get("subjectAltName", ()) if kind in {"DNS", "IP Address"})
    return str(next(names, next(common_names, ""))).replace("*", "health")
