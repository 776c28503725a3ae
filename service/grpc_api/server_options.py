"""Options and credentials of both listeners."""

from typing import Final

import grpc

from service.settings import Settings

PENDING_MAX: Final = 1_000_000
"""Calls that the core may queue before we request them. max_calls and max_streams limit calls instead."""
PENDING_SECONDS: Final = 3_600
"""How long the core may queue a call; its default is 30 seconds."""
CLOSING_SECONDS: Final = 0.5
"""Grace period for connections to receive their last answers."""


def server_options(settings: Settings) -> tuple[tuple[str, int], ...]:
    """Returns the options of gRPC's core for a listener."""
    return (
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        ("grpc.max_metadata_size", settings.max_metadata_bytes),
        ("grpc.absolute_max_metadata_size", 2 * settings.max_metadata_bytes),
        ("grpc.max_concurrent_streams", settings.max_streams),
        ("grpc.so_reuseport", int(settings.workers > 1)),
        # beyond these limits the core ends calls as CANCELLED; the interceptor rejects them with a reason
        ("grpc.server.max_pending_requests", PENDING_MAX),
        ("grpc.server.max_pending_requests_hard_limit", PENDING_MAX),
        ("grpc.server_max_unrequested_time_in_server", PENDING_SECONDS),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    )


def server_credentials(settings: Settings) -> grpc.ServerCredentials | None:
    """Returns the TLS credentials; None without TLS."""
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return grpc.ssl_server_credentials([(settings.tls_key.read_bytes(), settings.tls_cert.read_bytes())])
