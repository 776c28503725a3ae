"""The games that entries of the change log name, as the store has them, else as the archive has them."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from service.app.views import ChangeView, change_view
from service.errors import StoredFormatUnknown
from service.model.change import StoredChange
from service.model.change_log import LOG_MARGIN_MS, LogEntry, LogKind
from service.model.record import Record
from service.operator.archive.eraser import ArchiveEraser
from service.storage.store import Store
from service.storage.stored_events import decode_entry


class EntryStatus(Enum):
    """Whether the change, deletion or rewriting that an entry announces was stored."""

    STORED = "stored"
    EXPIRED = "expired"
    """It is not stored, and it is unknown whether it was: its game is gone, or has had too many changes since."""
    OPEN = "open"
    """It is not stored, and may still be."""
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class LoggedGame:
    """A game as the store has it, or the archive if the store does not.

    Attributes:
        record: The game; None if it is gone or cannot be read.
        changes: Its changes by revision, from the first one on that an entry names; None if they cannot be read.
        is_gone: Whether the store does not have it. The record and the changes are those of the archive then.
    """

    record: Record | None
    changes: Mapping[int, StoredChange] | None
    is_gone: bool

    def status(self, entry: LogEntry, now_ms: int) -> EntryStatus:
        """Returns the status of an entry of the game."""
        if_missing = EntryStatus.OPEN if now_ms <= entry.time_ms + LOG_MARGIN_MS else EntryStatus.NEVER
        if entry.kind is LogKind.DELETED:
            return EntryStatus.STORED if self.is_gone else if_missing
        if self.changes is None or (self.is_gone and entry.kind is LogKind.REWRITTEN):
            return EntryStatus.STORED
        change = self.changes.get(entry.revision)
        if self.is_gone:  # only a creation can still be stored; the archive's changes may have been rewritten
            is_open = if_missing is EntryStatus.OPEN and entry.revision == 1
            return EntryStatus.STORED if change else EntryStatus.OPEN if is_open else EntryStatus.EXPIRED
        if change:
            return EntryStatus.STORED if change.etag == entry.etag else EntryStatus.NEVER
        if any(revision > entry.revision for revision in self.changes):  # the store keeps the last changes only
            return EntryStatus.EXPIRED if entry.kind is LogKind.CHANGED else EntryStatus.STORED
        return if_missing

    def change(self, entry: LogEntry) -> ChangeView:
        """Returns the change of an entry whose status is STORED, as spectators see it."""
        change = (self.changes or {}).get(entry.revision)
        if change:
            with contextlib.suppress(StoredFormatUnknown):
                return change_view(decode_entry(change.change, change.etag), None)
        return ChangeView(entry.revision, entry.etag, entry.time_ms, ())


class LoggedGames:
    """Reads games that entries name.

    Args:
        store: The store.
        archive: Has games that have expired; None: finished games are not archived.
    """

    def __init__(self, store: Store, archive: ArchiveEraser | None) -> None:
        self._store = store
        self._archive = archive

    async def read(self, entries: Sequence[LogEntry], now_ms: int) -> dict[str, LoggedGame]:
        """Returns the games of entries by id."""
        by_game: defaultdict[str, list[LogEntry]] = defaultdict(list)
        for entry in entries:
            by_game[entry.game_id].append(entry)
        found = await asyncio.gather(*(self._game(game_id, own, now_ms) for game_id, own in by_game.items()))
        return dict(zip(by_game, found, strict=True))

    async def _game(self, game_id: str, entries: Sequence[LogEntry], now_ms: int) -> LoggedGame:
        """Returns a game as the store has it; as the archive has it if it is gone and a change was not found."""
        revisions = [entry.revision for entry in entries if entry.kind is not LogKind.DELETED]
        stored = await self._stored_game(game_id, revisions or [0])
        is_needed = stored.is_gone and any(stored.status(entry, now_ms) is EntryStatus.EXPIRED for entry in entries)
        return await self._archived_game(self._archive, game_id) if self._archive and is_needed else stored

    async def _stored_game(self, game_id: str, revisions: Sequence[int]) -> LoggedGame:
        record, changes, is_gone = None, None, False
        first, last = min(revisions), max(revisions)
        with contextlib.suppress(StoredFormatUnknown):  # the store has logged it
            found = await self._store.streams.stored_changes(game_id, first, last - first + 1)
            changes = {change.revision: change for change in found}
        with contextlib.suppress(StoredFormatUnknown):  # as above
            record = (await self._store.games.load(game_id)).record
            is_gone = record is None
        return LoggedGame(record, changes, is_gone)

    @staticmethod
    async def _archived_game(archive: ArchiveEraser, game_id: str) -> LoggedGame:
        try:
            found = await archive.read(game_id)
        except StoredFormatUnknown:
            return LoggedGame(None, None, is_gone=True)
        if found is None:
            return LoggedGame(None, {}, is_gone=True)
        return LoggedGame(found.record, found.by_revision, is_gone=True)
