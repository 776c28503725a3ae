"""Connections of callers, and the reasons of refusals."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import grpc.aio

from rummikub.errors import error_info

OWN_CONNECTION: Final = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0))
"""Options of a channel that shares its connection with no other one."""


@asynccontextmanager
async def opened(target: str, count: int) -> AsyncIterator[list[grpc.aio.Channel]]:
    """Opens connections to a server."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(grpc.aio.insecure_channel(target, OWN_CONNECTION)) for _ in range(count)]


def reason_of(error: grpc.aio.AioRpcError) -> str:
    """Returns the reason of a refusal, or the status text if there is no reason."""
    return error_info(error).reason or str(error.details())
