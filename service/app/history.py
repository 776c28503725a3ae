"""The history of a game from its creation on: the game at an earlier revision, and its record."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from engine.record import GameRecord, record_of
from engine.replay import replay
from service.errors import HistoryUnavailable
from service.storage.base import Entry, GameStore, Record

PAGE: Final = 100
"""How many changes are read at once: about 5 ms on the event loop."""


async def earlier_record(store: GameStore, record: Record, revision: int) -> Record:
    """Returns a game as it was stored at a revision, with today's tokens. Raises HistoryUnavailable.

    It has no join code, which after the start may be that of another game.
    """
    entries = await _changes(store, record, revision)
    game = await asyncio.to_thread(replay, [entry.events for entry in entries])
    last = entries[-1]
    seats = {player.seat for player in game.players}
    tokens = tuple(token for token in record.tokens if token.seat in seats)
    listing = replace(record.listing, join_code="")
    return Record(record.game_id, game, last.etag, tokens, record.created_ms, last.time_ms, listing)


async def exported(store: GameStore, record: Record) -> GameRecord:
    """Returns the record of a game. Raises HistoryUnavailable."""
    entries = await _changes(store, record, record.game.revision)
    return await asyncio.to_thread(record_of, [(entry.revision, entry.time_ms, entry.events) for entry in entries])


async def _changes(store: GameStore, record: Record, last_revision: int) -> Sequence[Entry]:
    """Returns all changes of a game up to a revision, read in pages. Raises HistoryUnavailable if one is missing."""
    entries: list[Entry] = []
    while len(entries) < last_revision:
        page = await store.events(record.game_id, len(entries) + 1, min(PAGE, last_revision - len(entries)))
        if not page or page[0].revision != len(entries) + 1:
            raise HistoryUnavailable(*await store.bounds(record.game_id))
        entries += page
        await asyncio.sleep(0)  # other calls go on between pages
    return entries
