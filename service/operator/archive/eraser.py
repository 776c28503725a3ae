"""Removes games and players from the archive, for the operator."""

from collections.abc import Sequence
from typing import Final

from service.operator.archive.archived_game import ArchivedGame, player_digest
from service.operator.archive.reader import ArchiveCalls
from service.operator.archive.sink import Sink, WriteResult

SECONDS: Final = 5.0
"""Timeout of an operation."""


class ArchiveEraser:
    """The operator's access to the archive. Its methods raise StoreUnavailable if the archive does not answer.

    Args:
        sink: Has the games.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._calls = ArchiveCalls()

    async def read(self, game_id: str) -> ArchivedGame | None:
        """Returns a game; None if the archive does not have it. Raises StoredFormatUnknown."""
        async with self._calls.timed(SECONDS):
            return await self._sink.read(game_id)

    async def write(self, game: ArchivedGame) -> WriteResult:
        """Writes a game (Sink.write)."""
        async with self._calls.timed(SECONDS):
            return await self._sink.write(game)

    async def delete(self, game_id: str) -> bool:
        """Deletes a game for good; returns whether there was one (Sink.delete)."""
        async with self._calls.timed(SECONDS):
            return await self._sink.delete(game_id)

    async def games_of(self, player_ref: str) -> Sequence[str]:
        """Returns the ids of a person's games (Sink.games_of)."""
        async with self._calls.timed(SECONDS):
            return await self._sink.games_of(player_digest(player_ref))

    async def unlist(self, player_ref: str, game_id: str) -> None:
        """Removes what leads from a person to a game (Sink.unlist)."""
        async with self._calls.timed(SECONDS):
            await self._sink.unlist(player_digest(player_ref), game_id)
