"""`rummikub-server --health`: checks the health of a running server.

Containers run it every few seconds, so it imports little, not even protobuf. It reads its settings by itself, and does
not fail because of a file that the running server does not use, such as a new keys file with an error.
"""

import contextlib
import os
import socket
import ssl
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

import grpc

PROGRAM: Final = "rummikub-server"
DEFAULT_LISTEN: Final = "127.0.0.1:50051"
TIMEOUT_SECONDS: Final = 3.0
NO_PROXY: Final = ("grpc.enable_http_proxy", 0)
STATUSES: Final = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
"""The values of HealthCheckResponse.ServingStatus."""


class Target(NamedTuple):
    """The server to check.

    Attributes:
        listen: Its address.
        has_tls: Whether it uses TLS.
        own: Its certificate chain and private key, if clients need a certificate: then the check sends the server's.
    """

    listen: str
    has_tls: bool = False
    own: tuple[Path, Path] | None = None


def read_target() -> Target:
    """Returns the server that the environment describes."""
    cert, key = _setting("TLS_CERT"), _setting("TLS_KEY")
    own = (Path(cert), Path(key)) if _setting("TLS_CLIENT_CA") else None
    return Target(_setting("LISTEN") or DEFAULT_LISTEN, bool(cert), own)


def _setting(name: str) -> str:
    """Returns a setting, whose name may be in lower case; "" if it is unset."""
    return next((value for given, value in os.environ.items() if given.upper() == f"RUMMIKUB_{name}"), "")


def health_check(target: Target) -> int:
    """Prints the health of a server; returns the exit code, 0 for SERVING and 1 otherwise."""
    host, _, port = target.listen.rpartition(":")
    host = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)  # noqa: S104 - an address to replace
    until = time.monotonic() + TIMEOUT_SECONDS
    try:
        with _channel(host, port, target, until) as channel:
            check: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/grpc.health.v1.Health/Check")
            answer = check(b"", timeout=until - time.monotonic())
    except (OSError, ValueError, grpc.RpcError) as error:
        problem = error.code().name if isinstance(error, grpc.Call) else str(error) or "timeout"
        sys.stderr.write(f"{PROGRAM}: no answer from {host}:{port}: {problem}\n")
        return 1
    status = STATUSES[answer[1] if answer else 0]  # its only field is the number 1, a varint
    with contextlib.suppress(OSError):  # the exit code is enough
        os.write(sys.stdout.fileno(), f"{status}\n".encode())
    return 0 if status == "SERVING" else 1


def _channel(host: str, port: str, target: Target, until: float) -> grpc.Channel:
    """Returns a channel to the server. It trusts the certificate that the server has. Raises OSError, ValueError."""
    if not target.has_tls:
        return grpc.insecure_channel(f"{host}:{port}", [NO_PROXY])
    address = host.strip("[]"), int(port)
    certificate, _ = _handshake(address, target, until, None)
    _, name = _handshake(address, target, until, certificate)
    own = (target.own[1].read_bytes(), target.own[0].read_bytes()) if target.own else ()
    credentials = grpc.ssl_channel_credentials(certificate.encode(), *own)
    return grpc.secure_channel(f"{host}:{port}", credentials, [NO_PROXY, ("grpc.ssl_target_name_override", name)])


def _handshake(address: tuple[str, int], target: Target, until: float, trusted: str | None) -> tuple[str, str]:
    """Returns the server's certificate (PEM) and, if it is the trusted one, a host name in it. Raises OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.set_alpn_protocols(["h2"])
    if trusted is None:
        context.verify_mode = ssl.CERT_NONE  # it then has no names
    else:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.load_verify_locations(cadata=trusted)
    if target.own:
        context.load_cert_chain(*target.own)
    with (
        socket.create_connection(address, until - time.monotonic()) as connection,
        context.wrap_socket(connection) as secured,
    ):
        encoded, decoded = secured.getpeercert(binary_form=True), secured.getpeercert() or {}
    subject: tuple[tuple[tuple[str, str], ...], ...] = decoded.get("subject", ())  # type: ignore[assignment]  # typeshed's is wider
    alternatives: tuple[tuple[str, str], ...] = decoded.get("subjectAltName", ())  # type: ignore[assignment]  # as above
    common_names = (value for part in subject for kind, value in part if kind == "commonName")
    names = (value for kind, value in alternatives if kind in {"DNS", "IP Address"})
    name = next(names, next(common_names, "")).replace("*", "health")
    return ssl.DER_cert_to_PEM_cert(encoded or b""), name
