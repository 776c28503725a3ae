"""The HTTP server for Prometheus's scrapes."""

import contextlib
import re
import socket
import socketserver
import threading
from collections.abc import Iterator
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app

from service.runtime.addresses import address_error

SILENCE_SECONDS: Final = 10.0
"""A silent connection is closed after this time, because it holds a thread."""
MOST_CONNECTIONS: Final = 32
"""Most connections at a time, because the gRPC listeners share the process's file descriptors."""
_COMPARABLE_VERSION: Final = re.compile(r"([0-9]{1,4}(\.[0-9]{1,4})*)?")
"""Format versions that prometheus_client can compare; it raises TypeError for others."""


@contextlib.contextmanager
def serve_metrics(
    address: str,
    registry: CollectorRegistry,
    silence_seconds: float = SILENCE_SECONDS,
    most_connections: int = MOST_CONNECTIONS,
) -> Iterator[int]:
    """Serves metrics at RUMMIKUB_METRICS_LISTEN within the context; yields the port. Raises AddressInUseError."""
    host, _, port = address.rpartition(":")
    try:
        server = _listen(host.strip("[]"), int(port), silence_seconds, most_connections)
    except (OSError, UnicodeError):
        raise address_error("RUMMIKUB_METRICS_LISTEN", address) from None
    server.set_app(make_wsgi_app(registry))
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _listen(host: str, port: int, silence_seconds: float, most_connections: int) -> "_Server":
    """Returns a listening server. Raises OSError, UnicodeError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, place = found[0]
    return _Server(family, (str(place[0]), port), silence_seconds, most_connections)


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    """An HTTP server with a thread for each connection, which is closed after some seconds of silence.

    Beyond a number of connections the oldest connection is shut down; a scrape takes only a moment.
    """

    daemon_threads = True

    def __init__(
        self, family: socket.AddressFamily, address: tuple[str, int], silence_seconds: float, most_connections: int
    ) -> None:
        self.address_family = family
        self.silence_seconds = silence_seconds
        self._most_connections = most_connections
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        super().__init__(address, _ScrapeHandler)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as in the base class
        """Counts a connection in the order of acceptance, which the threads of the connections do not keep."""
        with self._lock:
            self._open.append(request)
            for oldest in self._open[: -self._most_connections]:
                with contextlib.suppress(OSError):  # its client has closed it
                    oldest.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - as in the base class
        """Closes a connection whose handler is done."""
        with self._lock:
            self._open.remove(request)
        super().shutdown_request(request)


class _ScrapeHandler(WSGIRequestHandler):
    """A connection. It writes nothing to standard error, even if the connection breaks."""

    server: _Server

    def handle(self) -> None:
        self.connection.settimeout(self.server.silence_seconds)
        with contextlib.suppress(OSError):
            super().handle()

    def get_environ(self) -> dict[str, Any]:
        """Returns the WSGI environment without the accepted formats whose version cannot be compared."""
        environ = super().get_environ()
        accepted = environ.get("HTTP_ACCEPT", "").split(",")
        environ["HTTP_ACCEPT"] = ",".join(filter(_has_comparable_version, accepted))
        return environ

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


def _has_comparable_version(accepted: str) -> bool:
    """Returns whether prometheus_client can parse the version in one format of an Accept header."""
    parameters = (parameter.strip().partition("=") for parameter in accepted.split(";"))
    return all(_COMPARABLE_VERSION.fullmatch(value) for name, _, value in parameters if name == "version")
