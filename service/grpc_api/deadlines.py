"""How long a search of a call, or its wait for a change, may last."""

import asyncio
from typing import Final

from service.grpc_api.handlers import Context

SEARCH_SHARE: Final = 0.9
"""The share of the time until a call's deadline for its search; the rest is for encoding and the network."""


def until_deadline(context: Context) -> float | None:
    """Returns the end of a search by the event loop's clock; None if the call has no deadline."""
    left = context.time_remaining()
    return None if left is None else _now() + left * SEARCH_SHARE


def left_until(seconds: float, until: float | None) -> float:
    """Returns the remaining time of a search, by its time limit and the call's deadline."""
    return seconds if until is None else min(seconds, until - _now())


def _now() -> float:
    return asyncio.get_running_loop().time()
