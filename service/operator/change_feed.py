"""The feed of all changes: reads the change log of a store, and the changes that its entries name from their games.

An entry is stored before its change, so the change may not be there yet, or never come. The feed sets such an entry
aside and goes on. It drops it when the game has another change at the revision, or LOG_MARGIN_MS after the entry, as
no change is stored later than that. So each stored change is sent at least once, and those of a game in order: an entry
that is set aside is looked at again together with all later ones of its game.

A game may have expired before its changes are read. Then they are read from the archive. For changes that are in
neither, an update says that they have expired.

The position of a feed is before the first entry that is set aside, so a reader that resumes misses nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, TypeAlias

from service.app.views import ChangeView
from service.errors import HistoryUnavailable
from service.model.change_log import LOG_START, LogEntry, LogKind, LogPage, place_before
from service.model.record import Record
from service.operator.archive.eraser import ArchiveEraser
from service.operator.logged_game import EntryStatus, LoggedGame, LoggedGames
from service.storage.store import Store

PAGE: Final = 100
"""Entries of the log that are read at once."""
MARGIN_MS: Final = 60_000
"""How far the position of an idle feed stays behind the store's clock; half of log_ms if that is less.

After a failover, the clock of the new primary may be behind, and its entries would be before the position.
"""

NO_LOG: Final = "the servers keep no changes; set RUMMIKUB_CHANGE_LOG_SECONDS on each of them"
TOO_OLD: Final = (
    "the changes after this cursor are no longer kept; send from_oldest without a cursor, and read the listed games"
)

Position = tuple[str, ...]
"""A place in each part of the change log."""


@dataclass(frozen=True, slots=True)
class _Update:
    """An update about a game, and where to resume after it."""

    position: Position
    game_id: str


@dataclass(frozen=True, slots=True)
class Changed(_Update):
    """A game has changed.

    Attributes:
        change: The change as spectators see it, without events if this server cannot read it.
        record: The game as it was when it was read; None if this server cannot read it.
    """

    change: ChangeView
    record: Record | None


@dataclass(frozen=True, slots=True)
class Deleted(_Update):
    """A game was deleted."""


@dataclass(frozen=True, slots=True)
class Rewritten(_Update):
    """The history of a game was rewritten."""


@dataclass(frozen=True, slots=True)
class Expired(_Update):
    """Changes of a game up to a revision are no longer stored, and were not sent."""

    revision: int


Update: TypeAlias = Changed | Deleted | Rewritten | Expired


class ChangeFeed:
    """A reader of the change log.

    Args:
        store: The store.
        archive: Has games that have expired; None: finished games are not archived.
        position: Where to begin; None: now.
        from_oldest: Whether to begin with the oldest entries instead of now.
    """

    def __init__(
        self,
        store: Store,
        archive: ArchiveEraser | None,
        position: Position | None,
        *,
        from_oldest: bool = False,
    ) -> None:
        self._store = store
        self._archive = archive
        self._position = position
        self._from_oldest = from_oldest
        self._parts: list[_PartReader] = []

    @property
    def position(self) -> Position:
        """Where to resume."""
        return tuple(part.position for part in self._parts)

    async def start(self) -> None:
        """Checks the position. Raises HistoryUnavailable."""
        if not self._store.log.kept_ms:
            raise HistoryUnavailable(0, 0, NO_LOG)
        numbers = range(self._store.log.parts)
        if self._position is None:
            pages = [await self._store.log.read(part, LOG_START, 1) for part in numbers]
            places = [LOG_START if self._from_oldest else place_before(page.now_ms) for page in pages]
        else:
            places = list(self._position)
        if len(places) != len(numbers):  # the log was moved to a store with another number of parts
            places = [min(places, key=_order)] * len(numbers)
        games = LoggedGames(self._store, self._archive)
        self._parts = [
            _PartReader(self._store, games, part, place) for part, place in zip(numbers, places, strict=True)
        ]
        for reader in self._parts:
            await reader.page()

    async def read(self) -> Sequence[Update]:
        """Returns what is new, in the order of the log; nothing if there is nothing new. Raises HistoryUnavailable."""
        return [
            _update(entry, status, game, self.position)
            for part in self._parts
            for entry, status, game in await part.read()
        ]


class _PartReader:
    """Reads one part of the log.

    Attributes:
        position: The place after which a reader resumes.
    """

    def __init__(self, store: Store, games: LoggedGames, part: int, place: str) -> None:
        self._store = store
        self._games = games
        self._part = part
        self._place = place
        """The place up to which the part was read."""
        self._margin_ms = min(MARGIN_MS, store.log.kept_ms // 2)
        self._set_aside: tuple[LogEntry, ...] = ()
        self.position = place

    async def page(self) -> LogPage:
        """Returns the next entries. Raises HistoryUnavailable if others may have been removed before them."""
        page = await self._store.log.read(self._part, self._place, PAGE)
        is_old = _time_ms(self._place) < page.now_ms - self._store.log.kept_ms
        if is_old and self._place != LOG_START and await self._may_have_lost():
            raise HistoryUnavailable(0, 0, TOO_OLD)
        return page

    async def _may_have_lost(self) -> bool:
        """Returns whether entries after the place may have been removed: not while an earlier one is still there."""
        oldest = (await self._store.log.read(self._part, LOG_START, 1)).entries
        return not oldest or _order(oldest[0].place) > _order(self._place)

    async def read(self) -> Iterator[tuple[LogEntry, EntryStatus, LoggedGame]]:
        """Reads on. Returns the entries to send; taking one moves the position past it."""
        page = await self.page()
        pending = (*self._set_aside, *page.entries)
        games = await self._games.read(pending, page.now_ms)
        statuses = [games[entry.game_id].status(entry, page.now_ms) for entry in pending]
        self._place = page.entries[-1].place if page.entries else self._place
        if len(page.entries) < PAGE:
            self._place = max(self._place, place_before(page.now_ms - self._margin_ms), key=_order)
        self._set_aside = tuple(
            entry for entry, status in zip(pending, statuses, strict=True) if status is EntryStatus.OPEN
        )
        return self._take(pending, statuses, games, self._place)

    def _take(
        self, pending: Sequence[LogEntry], statuses: Sequence[EntryStatus], games: Mapping[str, LoggedGame], end: str
    ) -> Iterator[tuple[LogEntry, EntryStatus, LoggedGame]]:
        first_aside = self._set_aside[0] if self._set_aside else None
        last_expired = _last_expired(pending, statuses)
        follows_one = False
        for entry, status, following in zip_longest(pending, statuses, pending[1:]):
            follows_one = follows_one or entry is first_aside
            open_entry = first_aside if follows_one else following
            self.position = end if open_entry is None else _just_before(open_entry.place)
            is_expired = status is EntryStatus.EXPIRED and last_expired[entry.game_id] is entry
            if status is EntryStatus.STORED or is_expired:
                yield entry, status, games[entry.game_id]
        if not pending:
            self.position = end


def _update(entry: LogEntry, status: EntryStatus, game: LoggedGame, position: Position) -> Update:
    """Returns the update about an entry whose status is STORED or EXPIRED."""
    if status is EntryStatus.EXPIRED:
        return Expired(position, entry.game_id, entry.revision)
    match entry.kind:
        case LogKind.CHANGED:
            return Changed(position, entry.game_id, game.change(entry), game.record)
        case LogKind.DELETED:
            return Deleted(position, entry.game_id)
        case LogKind.REWRITTEN:
            return Rewritten(position, entry.game_id)


def _last_expired(entries: Sequence[LogEntry], statuses: Sequence[EntryStatus]) -> Mapping[str, LogEntry]:
    """Returns by game the last entry that is expired, or that says that the game was deleted.

    One update is enough for the expired changes before it.
    """
    return {
        entry.game_id: entry
        for entry, status in zip(entries, statuses, strict=True)
        if status is EntryStatus.EXPIRED or (entry.kind is LogKind.DELETED and status is EntryStatus.STORED)
    }


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
