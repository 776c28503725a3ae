"""Reads games from the archive that the store no longer has."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

import structlog

from service.archive.archived_game import ArchivedGame
from service.archive.sink import Sink, SinkUnavailable
from service.errors import StoreUnavailable

READS: Final = 8
"""Most reads at once. Anyone can ask for games that do not exist, and each such call reads."""
READ_SECONDS: Final = 3.0
"""Timeout of a read, including the wait for others."""

_log = structlog.get_logger()


class ArchiveReader:
    """Reads archived games.

    Args:
        sink: Has the games.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._reads = asyncio.Semaphore(READS)

    async def read(self, game_id: str) -> ArchivedGame | None:
        """Returns a game, or None if the archive does not have it.

        Raises StoreUnavailable if the archive does not answer, StoredFormatUnknown.
        """
        if not self._sink.is_readable:
            return None
        async with answering(READ_SECONDS), self._reads:
            return await self._sink.read(game_id)


@contextlib.asynccontextmanager
async def answering(seconds: float) -> AsyncIterator[None]:
    """Raises StoreUnavailable if the archive fails, or takes longer."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except (SinkUnavailable, TimeoutError) as error:
        _log.debug("archive", error=str(error))
        raise StoreUnavailable("the archive does not answer") from error
