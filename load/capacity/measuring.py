"""Shared parts of the measurements: servers, games that are played by recorded turns, memory and CPU of processes."""

import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from engine.unions import Ruleset
from load.bench.measured_servers import MeasuredServer, ready, serving
from load.bench.play import Shelf, Template
from load.corpus.recorded_turns import rounds
from tools.redis_servers import RedisServer, running_redis
from tools.servers import free_port

Step = Callable[[str], None]
"""Reports progress."""
SETTINGS: Final = {
    "RUMMIKUB_LISTEN": "127.0.0.1:0",
    "RUMMIKUB_VALIDATION_LISTEN": "127.0.0.1:0",
    "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0",
    "RUMMIKUB_LOG_LEVEL": "warning",
    "RUMMIKUB_PEER_SHARE": "1",
    "RUMMIKUB_GAMES_PER_MINUTE": "0",
    "RUMMIKUB_CHANGES_PER_SECOND": "0",
    "RUMMIKUB_MAX_CALLS": "100000",
    "RUMMIKUB_MAX_WATCHES": "100000",
    "RUMMIKUB_MAX_STREAMS": "1000",
}
"""All callers come from one address here."""


@asynccontextmanager
async def running_servers(count: int = 1, **settings: str) -> AsyncIterator[tuple[RedisServer, list[MeasuredServer]]]:
    """Runs servers on a Redis of their own, over TCP, with appendfsync always and without rewriting its log.

    A rewrite starts at a size of the log, so it can fall into any short measurement, and takes more CPU than the
    measured operations.
    """
    options = ("--appendfsync", "always", "--auto-aof-rewrite-percentage", "0")
    with running_redis(*options, port=free_port()) as redis, contextlib.ExitStack() as stack:
        environment = {**SETTINGS, **settings, "RUMMIKUB_REDIS_URL": redis.tcp_url}
        started = [stack.enter_context(serving("service", settings=environment)) for _ in range(count)]
        yield redis, [ready(process) for process in started]


@asynccontextmanager
async def shelf_on(redis: RedisServer) -> AsyncIterator[Shelf]:
    """Opens a shelf of recorded games in a Redis."""
    shelf = Shelf(redis.url)
    try:
        await shelf.open()
        yield shelf
    finally:
        await shelf.close()


async def first_round(shelf: Shelf, ruleset: Ruleset, seed: int) -> Template:
    """Stores a game at the start of its first round, with the turns of the round."""
    return await shelf.template(next(rounds(seed, ruleset, shelf.now_ms)))


def resident_bytes(pid: int) -> int:
    """Returns the resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024


def open_files(pid: int) -> int:
    """Returns the number of a process's open files."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def redis_cpu_seconds(redis: RedisServer) -> float:
    """Returns the user and system time of a Redis."""
    cpu: dict[str, Any] = redis.execute("INFO", "cpu")
    return float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])


def chosen(values: Sequence[int], most: int) -> list[int]:
    """Returns the values up to a bound."""
    return [value for value in values if value <= most]


class Stopwatch:
    """Wall-clock seconds since it was made."""

    def __init__(self) -> None:
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """The seconds so far."""
        return time.perf_counter() - self._started
