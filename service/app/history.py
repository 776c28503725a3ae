"""The history of a game from its creation on: the game at an earlier revision, and its record."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

from engine.record import GameRecord, record_of
from engine.replay import replay
from service.errors import HistoryUnavailable
from service.storage.base import Entry, Record, read_in_pages

_TO_READ: Final = "an earlier revision needs all changes up to it; send revision 0 for the game as it is now"
_TO_EXPORT: Final = "a record needs all of them, so the game has no record any more"


class History(Protocol):
    """The changes of games: a GameStore, or a game of the archive."""

    async def events(self, game_id: str, first_revision: int, limit: int) -> tuple[Entry, ...]:
        """See GameStore."""

    async def bounds(self, game_id: str) -> tuple[int, int]:
        """See GameStore."""


async def record_at(history: History, record: Record, revision: int) -> Record:
    """Returns a game as it was at a revision, for views, without its join code. Raises HistoryUnavailable."""
    listing = replace(record.listing, join_code="")
    if revision == record.game.revision:
        return replace(record, listing=listing)
    if revision > record.game.revision:
        raise HistoryUnavailable(*await history.bounds(record.game_id), _TO_READ)
    entries = await _changes(history, record, revision, _TO_READ)
    game = await asyncio.to_thread(replay, [entry.events for entry in entries])
    last = entries[-1]
    return replace(record, game=game, etag=last.etag, updated_ms=last.time_ms, listing=listing)


async def exported(history: History, record: Record) -> GameRecord:
    """Returns the record of a game. Raises HistoryUnavailable."""
    entries = await _changes(history, record, record.game.revision, _TO_EXPORT)
    return await asyncio.to_thread(record_of, [(entry.revision, entry.time_ms, entry.events) for entry in entries])


async def _changes(history: History, record: Record, last_revision: int, advice: str) -> Sequence[Entry]:
    """Returns all changes of a game up to a revision. Raises HistoryUnavailable if one is missing."""
    entries = await read_in_pages(history.events, record.game_id, last_revision)
    if [entry.revision for entry in entries] != list(range(1, last_revision + 1)):
        raise HistoryUnavailable(*await history.bounds(record.game_id), advice)
    return entries
