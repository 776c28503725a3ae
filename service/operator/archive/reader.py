"""Reads games from the archive that the store no longer has."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

import structlog

from service.errors import StoreUnavailable
from service.operator.archive.archived_game import ArchivedGame
from service.operator.archive.sink import Sink, SinkUnavailable

READS: Final = 8
"""Most reads at once. Anyone can ask for games that do not exist, and each such call reads."""
READ_SECONDS: Final = 3.0
"""Timeout of a read, including the wait for others."""
REMIND_SECONDS: Final = 60.0
"""The shortest time between two warnings of an archive that does not answer."""

_log = structlog.get_logger()


class ArchiveReader:
    """Reads archived games.

    Args:
        sink: Has the games.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._reads = asyncio.Semaphore(READS)
        self._calls = ArchiveCalls()

    async def read(self, game_id: str) -> ArchivedGame | None:
        """Returns a game, or None if the archive does not have it.

        Raises StoreUnavailable if the archive does not answer, StoredFormatUnknown.
        """
        async with self._calls.timed(READ_SECONDS), self._reads:
            return await self._sink.read(game_id)


class ArchiveCalls:
    """Calls of an archive, whose failures become StoreUnavailable. It logs one of them in REMIND_SECONDS."""

    def __init__(self) -> None:
        self._logged = -REMIND_SECONDS
        """When a failure was logged last (time.monotonic)."""

    @contextlib.asynccontextmanager
    async def timed(self, seconds: float) -> AsyncIterator[None]:
        """Raises StoreUnavailable if the archive fails, or takes longer."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except (SinkUnavailable, TimeoutError) as error:
            is_due = time.monotonic() - self._logged >= REMIND_SECONDS
            log: Callable[..., None] = _log.warning if is_due else _log.debug
            log("archive does not answer", error=str(error) or f"no reply within {seconds:g} s")
            if is_due:
                self._logged = time.monotonic()
            raise StoreUnavailable("the archive does not answer") from error
