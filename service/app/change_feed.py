"""The feed of all changes: reads the change log of a store, and the changes that its entries name from their games.

An entry is stored before its change, so the change may not be there yet, or never come. The feed sets such an entry
aside and goes on. It drops it when the game has another change at the revision, or LOG_GRACE_MS after the entry, as
no change is stored later than that. So each stored change is told at least once, and those of a game in order: an entry
that is set aside is looked at again together with all later ones of its game.

The position of a feed is before the first entry that is set aside, so a reader that resumes misses nothing.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from service.app.views import ChangeView, change_view
from service.errors import HistoryUnavailable, StoredFormatUnknown
from service.storage.base import (
    LOG_GRACE_MS,
    LOG_START,
    Entry,
    GameStore,
    LogEntry,
    LogKind,
    LogPage,
    Record,
    place_before,
)

PAGE: Final = 100
"""Entries of the log that are read at once."""
MARGIN_MS: Final = 1_000
"""How far the position of an idle feed stays behind the store's clock."""

NO_LOG: Final = "the servers keep no changes; set RUMMIKUB_CHANGE_LOG_SECONDS on each of them"
TOO_OLD: Final = (
    "the changes after this cursor are no longer kept; send from_oldest without a cursor, and read the listed games"
)

Position = tuple[str, ...]
"""A place in each part of the change log."""


@dataclass(frozen=True, slots=True)
class Told:
    """An entry of the log whose change is stored, or whose game was deleted or rewritten.

    Attributes:
        position: Where to resume after it.
        game_id: The game.
        kind: What happened.
        change: A change as spectators see it, without events if this server cannot read it; None for other kinds.
        record: The game as it was when it was read; None if it is gone or cannot be read.
    """

    position: Position
    game_id: str
    kind: LogKind
    change: ChangeView | None
    record: Record | None


@dataclass(frozen=True, slots=True)
class _Stored:
    """What the store has of a game: the game, and changes by revision.

    `entries` is None if they cannot be read, `record` if the game is gone or cannot be read.
    """

    record: Record | None
    entries: Mapping[int, Entry] | None
    is_gone: bool

    def has(self, entry: LogEntry) -> bool:
        """Returns whether what an entry announces has happened."""
        if entry.kind is LogKind.DELETED:
            return self.is_gone
        if self.entries is None:
            return True
        change = self.entries.get(entry.revision)
        return change is not None and change.etag == entry.etag

    def may_get(self, entry: LogEntry, now_ms: int) -> bool:
        """Returns whether what an entry announces may still happen."""
        if now_ms > entry.time_ms + LOG_GRACE_MS:
            return False
        return entry.kind is not LogKind.CHANGED or all(revision < entry.revision for revision in self.entries or ())

    def change(self, entry: LogEntry) -> ChangeView | None:
        """Returns the change that an entry announces."""
        if entry.kind is not LogKind.CHANGED:
            return None
        if self.entries is None:
            return ChangeView(entry.revision, entry.etag, entry.time_ms, ())
        return change_view(self.entries[entry.revision], None)


class ChangeFeed:
    """A reader of the change log.

    Args:
        store: The store.
        position: Where to begin; None: now.
        from_oldest: Whether to begin with the oldest entries instead of now.
    """

    def __init__(self, store: GameStore, position: Position | None, *, from_oldest: bool = False) -> None:
        self._store = store
        self._position = position
        self._from_oldest = from_oldest
        self._parts: list[_PartReader] = []

    @property
    def position(self) -> Position:
        """Where to resume."""
        return tuple(part.position for part in self._parts)

    async def start(self) -> None:
        """Checks the position. Raises HistoryUnavailable."""
        if not self._store.log_ms:
            raise HistoryUnavailable(0, 0, NO_LOG)
        numbers = range(self._store.log_parts)
        if self._position is None:
            pages = [await self._store.read_log(part, LOG_START, 1) for part in numbers]
            places = [LOG_START if self._from_oldest else place_before(page.now_ms) for page in pages]
        else:
            places = list(self._position)
        if len(places) != len(numbers):  # the log was moved to a store with another number of parts
            places = [min(places, key=_order)] * len(numbers)
        self._parts = [_PartReader(self._store, part, place) for part, place in zip(numbers, places, strict=True)]
        for reader in self._parts:
            await reader.page()

    async def read(self) -> Sequence[Told]:
        """Returns what is new, in the order of the log; nothing if there is nothing new. Raises HistoryUnavailable."""
        return [
            Told(self.position, entry.game_id, entry.kind, stored.change(entry), stored.record)
            for part in self._parts
            for entry, stored in await part.read()
        ]


class _PartReader:
    """Reads one part of the log.

    Attributes:
        position: The place after which a reader resumes.
    """

    def __init__(self, store: GameStore, part: int, place: str) -> None:
        self._store = store
        self._part = part
        self._place = place
        """The place up to which the part was read."""
        self._set_aside: tuple[LogEntry, ...] = ()
        self.position = place

    async def page(self) -> LogPage:
        """Returns the next entries. Raises HistoryUnavailable if others may have been removed before them."""
        page = await self._store.read_log(self._part, self._place, PAGE)
        is_lost = _time_ms(self._place) < page.now_ms - self._store.log_ms
        if is_lost and self._place != LOG_START:
            raise HistoryUnavailable(0, 0, TOO_OLD)
        return page

    async def read(self) -> Iterator[tuple[LogEntry, _Stored]]:
        """Reads on. Returns the entries whose announcement holds; taking one moves the position past it."""
        page = await self.page()
        pending = (*self._set_aside, *page.entries)
        games = await self._games(pending)
        self._place = page.entries[-1].place if page.entries else self._place
        if len(page.entries) < PAGE:
            self._place = max(self._place, place_before(page.now_ms - MARGIN_MS), key=_order)
        self._set_aside = tuple(
            entry
            for entry in pending
            if not games[entry.game_id].has(entry) and games[entry.game_id].may_get(entry, page.now_ms)
        )
        return self._take(pending, games, self._place)

    def _take(
        self, pending: Sequence[LogEntry], games: Mapping[str, _Stored], end: str
    ) -> Iterator[tuple[LogEntry, _Stored]]:
        aside = set(self._set_aside)
        first_aside = next((entry for entry in pending if entry in aside), None)
        follows_one = False
        for entry, following in zip_longest(pending, pending[1:]):
            follows_one = follows_one or entry is first_aside
            open_entry = first_aside if follows_one else following
            self.position = end if open_entry is None else _just_before(open_entry.place)
            if games[entry.game_id].has(entry):
                yield entry, games[entry.game_id]
        if not pending:
            self.position = end

    async def _games(self, entries: Sequence[LogEntry]) -> dict[str, _Stored]:
        """Returns what the store has of the games of entries."""
        revisions: defaultdict[str, set[int]] = defaultdict(set)
        for entry in entries:
            revisions[entry.game_id].add(entry.revision)
        found = await asyncio.gather(*(self._game(game_id, wanted) for game_id, wanted in revisions.items()))
        return dict(zip(revisions, found, strict=True))

    async def _game(self, game_id: str, revisions: set[int]) -> _Stored:
        entries: dict[int, Entry] | None = None
        record, is_gone = None, False
        try:
            first = min(revisions)
            found = await self._store.events(game_id, first, max(revisions) - first + 1)
            entries = {entry.revision: entry for entry in found}
            record = (await self._store.load(game_id)).record
            is_gone = record is None
        except StoredFormatUnknown:  # the store has logged it
            pass
        return _Stored(record, entries, is_gone)


def _order(place: str) -> tuple[int, int]:
    """Returns the key by which places are ordered."""
    time_ms, number = place.split("-")
    return int(time_ms), int(number)


def _time_ms(place: str) -> int:
    return _order(place)[0]


def _just_before(place: str) -> str:
    """Returns the place before an entry's, and after that of every earlier one."""
    time_ms, number = _order(place)
    return f"{time_ms}-{number - 1}" if number else place_before(time_ms)
