"""The sweeper: times out overdue turns of games that nobody calls on.

Every replica runs one. There is no leader: a time-out is a commit like any other, fenced by the game's history, so only
one of all sweepers and callers applies it. The store's list of deadlines is a hint when to look, never later than the
turn's deadline; the deadline itself is in the game.
"""

import asyncio
import contextlib
from typing import Final

import structlog

from engine.game import Playing
from service.faults import Fault, StoreUnavailable
from service.games import Games
from service.storage.base import GameStore, Loaded, State

BATCH: Final = 100
"""Games that one sweep looks at before it asks again."""

_log = structlog.get_logger()


class Sweeper:
    """Looks at games whose time has come.

    Args:
        games: To time out overdue turns.
        store: To find them.
        interval_seconds: Between two sweeps.
        stopping: Set when the server stops.
    """

    def __init__(self, games: Games, store: GameStore, interval_seconds: float, stopping: asyncio.Event) -> None:
        self._games = games
        self._store = store
        self._interval_seconds = interval_seconds
        self._stopping = stopping

    async def run(self) -> None:
        """Sweeps until the server stops."""
        while not self._stopping.is_set():
            try:
                await self.sweep()
            except StoreUnavailable:
                _log.warning("sweep", result="store unavailable")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), self._interval_seconds)

    async def sweep(self) -> int:
        """Looks once at every game whose time has come; returns how many."""
        looked = 0
        while due := await self._store.due(BATCH):
            for game_id in due:
                await self._look(game_id)
            looked += len(due)
            if len(due) < BATCH:
                break
        return looked

    async def _look(self, game_id: str) -> None:
        try:
            loaded = await self._games.settle(game_id)
        except StoreUnavailable:
            raise
        except Fault as fault:
            _log.warning("sweep", game_id=game_id, result=type(fault).__name__)
            return
        await self._store.rearm(game_id, _next_look(loaded))


def _next_look(loaded: Loaded) -> int | None:
    """When to look at a game again: never later than its next deadline; None: never."""
    record = loaded.record
    if record is None or record.state is State.FINISHED:
        return None
    if isinstance(record.game.phase, Playing):
        return record.game.phase.round.turn.deadline_ms
    return loaded.now_ms + record.game.ruleset.turn_time_limit_seconds * 1000
