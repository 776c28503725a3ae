"""Options of both listeners."""

from typing import Final

from service.settings import Settings

PENDING_MAX: Final = 1_000_000
"""Calls that the core may queue before we request them. max_calls and max_streams limit calls instead."""
PENDING_SECONDS: Final = 3_600
"""How long the core may queue a call; its default is 30 seconds."""
RECEIVED: Final = 2
"""How many times as large as max_message_bytes a request may be that the interceptor refuses with a reason.

The core refuses larger ones without a reason, when their length arrives.
"""
CLOSING_SECONDS: Final = 0.5
"""Grace period for connections to receive their last answers."""


def server_options(settings: Settings) -> tuple[tuple[str, int], ...]:
    """Returns the options of gRPC's core for a listener."""
    return (
        *_age_options(settings.max_connection_age_seconds),
        ("grpc.max_receive_message_length", RECEIVED * settings.max_message_bytes),
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


def _age_options(seconds: float) -> tuple[tuple[str, int], ...]:
    """Returns the options of a connection's age; none for 0.

    The core varies the age by a tenth, announces the end (GOAWAY), serves calls that cross the announcement, and
    closes the connection when its last call has ended, however long a watch takes.
    """
    return (("grpc.max_connection_age_ms", max(1, round(seconds * 1000))),) if seconds else ()
