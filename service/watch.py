"""Watching a game: a snapshot or a place to resume from, then every change out of the store's event stream.

A watcher holds no queue: it has a cursor and reads on when its reader has taken what came before. Only what is stored
is ever told.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from typing import Final

from engine.events import GameEnded, PlayerLeft
from service.faults import EtagMismatch, GameNotFound, HistoryUnavailable
from service.games import Games
from service.identity import SPECTATOR, Caller
from service.sight import ChangeSight, GameSight, see_change, see_game
from service.storage.base import Entry, GameStore, Record, State, Subscription

LAG: Final = 64
"""A watcher who is more changes behind gets a snapshot."""
READERS: Final = 16
"""Watchers who read from the store at the same time: a change that wakes many must not keep turns from the store."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The game as it is, in place of all changes before."""

    game: GameSight


@dataclass(frozen=True, slots=True)
class Alive:
    """Nothing has changed since this revision."""

    revision: int


@dataclass(frozen=True, slots=True)
class Closing:
    """The server stops; where to resume."""

    revision: int
    etag: str


Update = Snapshot | ChangeSight | Alive | Closing


@dataclass(frozen=True, slots=True)
class _Place:
    """What a watcher has been told: up to which revision, with which etag, as whom.

    Attributes:
        revision: Up to here.
        etag: Of that revision.
        caller: Who watches.
        seat: The caller's seat.
        seated: A revision at which the seat is known to be the caller's: whoever left it before was somebody else.
    """

    revision: int
    etag: str
    caller: Caller
    seat: int | None
    seated: int


class Watch:
    """Watches games on a store.

    Args:
        games: To look at games.
        store: To read their streams.
        heartbeat_seconds: The longest silence.
        stopping: Set when the server stops.
    """

    def __init__(self, games: Games, store: GameStore, heartbeat_seconds: float, stopping: asyncio.Event) -> None:
        self._games = games
        self._store = store
        self._heartbeat_seconds = heartbeat_seconds
        self._stopping = stopping
        self._readers = asyncio.Semaphore(READERS)

    async def watch(self, game_id: str, caller: Caller, from_revision: int, etag: str) -> AsyncGenerator[Update, None]:
        """A game's updates from a revision on; 0 begins with a snapshot. Ends with the game, or with the server."""
        async with self._store.changes(game_id) as subscription:
            record, seat, now_ms = await self._games.look(game_id, caller)
            place = _Place(record.game.revision, record.etag, caller, seat, record.game.revision)
            if from_revision:
                place = await self._resume(record, replace(place, revision=from_revision, etag=etag))
            else:
                yield Snapshot(see_game(record, seat, now_ms))
            is_live, is_over = not from_revision, _is_last(record, place)
            while True:
                entries = await self._entries(game_id, place, is_live=is_live)
                if entries is None:
                    record, place, now_ms = await self._fresh(game_id, place)
                    is_over = _is_last(record, place)
                    yield Snapshot(see_game(record, place.seat, now_ms))
                    continue
                for entry in entries[:LAG]:
                    yield see_change(entry, place.seat)
                    place = _after(place, entry)
                    is_over = is_over or _ends_the_game(entry)
                if len(entries) > LAG:
                    continue
                if is_over:
                    return
                if from_revision and not is_live and not entries:
                    yield Alive(place.revision)  # so that who resumes knows that the stream is there
                is_live = True
                if self._stopping.is_set():
                    yield Closing(place.revision, place.etag)
                    return
                if not await self._wait(subscription):
                    yield Alive(place.revision)

    async def _resume(self, record: Record, place: _Place) -> _Place:
        """The place of a caller who comes back, if the stream still has it and its lineage is theirs."""
        if place.revision == record.game.revision:
            found = record.etag
        else:
            entries = await self._store.events(record.game_id, place.revision, 1)
            if not entries or entries[0].revision != place.revision:
                raise HistoryUnavailable(*await self._store.bounds(record.game_id))
            found = entries[0].etag
        if place.etag not in {"", found}:
            raise EtagMismatch(record.game.revision)
        return replace(place, etag=found)

    async def _entries(self, game_id: str, place: _Place, *, is_live: bool) -> tuple[Entry, ...] | None:
        """What follows a place, at most one entry more than LAG; None for a live watcher who is too far behind.

        Who resumes is told everything, and refused if that is not kept.
        """
        async with self._readers:
            entries = await self._store.events(game_id, place.revision, LAG + 2)
        if not entries or entries[0].revision != place.revision:
            oldest, newest = await self._store.bounds(game_id)
            if not newest:
                raise GameNotFound
            if is_live and place.revision < oldest:
                return None
            raise HistoryUnavailable(oldest, newest)
        if entries[0].etag != place.etag:
            raise EtagMismatch(entries[-1].revision)
        return None if is_live and len(entries) > LAG + 1 else entries[1:]

    async def _fresh(self, game_id: str, place: _Place) -> tuple[Record, _Place, int]:
        """The game as it is, for a watcher who fell behind; whose token is void by now watches as a spectator."""
        try:
            record, seat, now_ms = await self._games.look(game_id, place.caller)
        except GameNotFound:
            record, seat, now_ms = await self._games.look(game_id, SPECTATOR)
        revision = record.game.revision
        return record, _Place(revision, record.etag, place.caller, seat, revision), now_ms

    async def _wait(self, subscription: Subscription) -> bool:
        """Waits for a change or for the server's end; False when the heartbeat is due."""
        waits = {asyncio.create_task(subscription.wait()), asyncio.create_task(self._stopping.wait())}
        try:
            done, _ = await asyncio.wait(waits, timeout=self._heartbeat_seconds, return_when=asyncio.FIRST_COMPLETED)
            return bool(done)
        finally:
            for wait in waits:
                wait.cancel()


def _is_last(record: Record, place: _Place) -> bool:
    """Whether nothing can follow a place: the game has ended there."""
    return record.state is State.FINISHED and record.game.revision == place.revision


def _ends_the_game(entry: Entry) -> bool:
    return any(isinstance(event, GameEnded) for event in entry.events)


def _after(place: _Place, entry: Entry) -> _Place:
    """The place after a change; a watcher whose seat is given up goes on as a spectator."""
    after = replace(place, revision=entry.revision, etag=entry.etag)
    left = any(isinstance(event, PlayerLeft) and event.seat == place.seat for event in entry.events)
    return replace(after, caller=SPECTATOR, seat=None) if left and entry.revision > place.seated else after
