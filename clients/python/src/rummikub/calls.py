"""Channel options and the preparation of requests, for threads and asyncio alike."""

import uuid
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final, TypeVar

from google.protobuf.message import Message

M = TypeVar("M", bound=Message)

SERVICE_CONFIG: Final = files("rummikub").joinpath("service_config.json").read_text(encoding="utf-8")
"""The service config of a channel: retries with throttling, wait-for-ready, and deadlines for all calls but streams.

It is a copy of clients/service_config.json. A server's `grpc-retry-pushback-ms` replaces the backoff. Throttling stops
the retries of a channel after 250 failures; ten answers make up for a failure.
"""

_OPTIONS: Final[Mapping[str, Any]] = {
    "grpc.service_config": SERVICE_CONFIG,
    "grpc.use_local_subchannel_pool": 1,  # else channels to one server share a connection
    "grpc.keepalive_time_ms": 20_000,  # the server closes connections with more than one ping in 10 seconds
    "grpc.keepalive_timeout_ms": 10_000,
    "grpc.keepalive_permit_without_calls": 1,
    "grpc.http2.max_pings_without_data": 0,
    "grpc.initial_reconnect_backoff_ms": 200,
    "grpc.max_reconnect_backoff_ms": 5_000,  # gRPC's default of 120 seconds outlasts every restart
}


def check_target(target: str) -> None:
    """Raises ValueError if an address is a URL of HTTP, which gRPC would take for the name of a host."""
    if target.startswith(("http://", "https://")):
        raise ValueError(f"the target {target} is a URL: pass host:port, and credentials for TLS")


def channel_options(changes: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    """Returns the options of a channel, with changes."""
    return list({**_OPTIONS, **(changes or {})}.items())


def new_request_id() -> str:
    """Returns a request id: send it again with the same request when an answer was lost."""
    return str(uuid.uuid4())


def with_request_id(request: M) -> M:
    """Returns the request, or a copy with a fresh request_id if that field is empty."""
    if getattr(request, "request_id", None) != "":
        return request
    filled = type(request)()
    filled.CopyFrom(request)
    filled.MergeFrom(type(request)(request_id=new_request_id()))
    return filled


def credentials_of(token: str | None, api_key: str | None) -> tuple[tuple[str, str], ...]:
    """Returns the metadata of a token and of a front end's key; nothing without them."""
    own = (("authorization", f"Bearer {token}"),) if token else ()
    return (*own, ("x-api-key", api_key)) if api_key else own
