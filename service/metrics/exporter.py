"""The HTTP server for Prometheus's scrapes. It has no protection: docs/internet.md."""

import contextlib
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, start_http_server

from service.runtime.addresses import address_error


@contextlib.contextmanager
def serve_metrics(address: str, registry: CollectorRegistry) -> Iterator[int]:
    """Serves metrics at RUMMIKUB_METRICS_LISTEN within the context; yields the port. Raises AddressInUseError."""
    host, _, port = address.rpartition(":")
    try:
        server, thread = start_http_server(int(port), host.strip("[]"), registry)
    except (OSError, UnicodeError):
        raise address_error("RUMMIKUB_METRICS_LISTEN", address) from None
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
