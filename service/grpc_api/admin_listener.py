"""AdminService at RUMMIKUB_ADMIN_LISTEN, apart from the listener of players."""

import asyncio

from service.grpc_api.admin_service import AdminServicer
from service.grpc_api.aio_listener import AioListener
from service.grpc_api.call_origin import Origins
from service.grpc_api.call_policy import CallPolicy
from service.grpc_api.interceptor import CallInterceptor
from service.metrics.metrics import Metrics
from service.runtime.proxies import TrustedProxies
from service.runtime.tracing import Tracing
from service.settings import Settings


def admin_listener(  # noqa: PLR0913, PLR0917 - made in one place
    settings: Settings,
    servicer: AdminServicer,
    metrics: Metrics,
    stopping: asyncio.Event,
    grpcio: str,
    tracing: Tracing | None,
) -> AioListener:
    """Returns the listener, which serves AdminService only. Its callers need no key, and share all of its calls.

    Args:
        settings: The service's settings.
        servicer: AdminService.
        metrics: Counts calls.
        stopping: Set when the server stops.
        grpcio: The release of grpcio.
        tracing: Makes spans; None if tracing is off.
    """
    origins = Origins(None, TrustedProxies(()))
    policy = CallPolicy(metrics, origins, settings, stopping.is_set, tracing=tracing, peer_share=1.0)
    interceptor = CallInterceptor(policy, stopping, settings.request_seconds)
    return AioListener(
        settings, "RUMMIKUB_ADMIN_LISTEN", settings.admin_listen, servicer.service(), interceptor, grpcio
    )
