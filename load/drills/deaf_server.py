"""Runs the service without listening to Sentinels, to compare: `python -m load.drills.deaf_server`."""

import redis.asyncio as redis

from service.program import serve
from service.storage.redis.sentinel import Primary


async def _hear_nothing(_primary: Primary, _sentinel: "redis.Redis") -> None:
    """Returns at once."""


if __name__ == "__main__":
    Primary._listen = _hear_nothing  # type: ignore[method-assign, assignment]  # noqa: SLF001 - only here
    serve()
