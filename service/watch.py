"""Watching a game: a snapshot or a place to resume from, then every change out of the store's event stream.

A watcher holds no queue: it has a cursor and reads on when its reader has taken what came before. Only what is stored
is ever told.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Final

from engine.events import GameEnded, PlayerLeft
from service.faults import EtagMismatch, GameNotFound, HistoryUnavailable
from service.games import Games
from service.identity import SPECTATOR, Caller
from service.sight import ChangeSight, GameSight, see_change, see_game
from service.storage.base import Entry, GameStore, Record, State, Subscription

LAG: Final = 64
"""A watcher who is more changes behind gets a snapshot."""


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
    """What a watcher has been told: up to which revision, with which etag, as whom."""

    revision: int
    etag: str
    caller: Caller
    seat: int | None


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

    async def watch(self, game_id: str, caller: Caller, from_revision: int, etag: str) -> AsyncGenerator[Update, None]:
        """A game's updates from a revision on; 0 begins with a snapshot. Ends with the game, or with the server."""
        async with self._store.changes(game_id) as subscription:
            record, seat, now_ms = await self._games.look(game_id, caller)
            if from_revision:
                place = await self._resume(record, _Place(from_revision, etag, caller, seat))
            else:
                place = _Place(record.game.revision, record.etag, caller, seat)
                yield Snapshot(see_game(record, seat, now_ms))
            is_live, is_over = False, _is_last(record, place)
            while True:
                entries = await self._entries(game_id, place)
                if is_live and len(entries) > LAG:
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
        return _Place(place.revision, found, place.caller, place.seat)

    async def _entries(self, game_id: str, place: _Place) -> tuple[Entry, ...]:
        """What follows a place: at most one entry more than LAG. The store must still have the place itself."""
        entries = await self._store.events(game_id, place.revision, LAG + 2)
        if not entries:
            raise GameNotFound
        if entries[0].revision != place.revision:
            raise HistoryUnavailable(*await self._store.bounds(game_id))
        if entries[0].etag != place.etag:
            raise EtagMismatch(entries[-1].revision)
        return entries[1:]

    async def _fresh(self, game_id: str, place: _Place) -> tuple[Record, _Place, int]:
        """The game as it is, for a watcher who fell behind; whose token is void by now watches as a spectator."""
        try:
            record, seat, now_ms = await self._games.look(game_id, place.caller)
        except GameNotFound:
            record, seat, now_ms = await self._games.look(game_id, SPECTATOR)
        return record, _Place(record.game.revision, record.etag, place.caller, seat), now_ms

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
    left = any(isinstance(event, PlayerLeft) and event.seat == place.seat for event in entry.events)
    return _Place(entry.revision, entry.etag, SPECTATOR if left else place.caller, None if left else place.seat)
