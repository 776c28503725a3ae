"""The sweeper: applies what is due in idle games, time-outs and next rounds, and finds forgotten bots.

Every server runs one, without a leader. Each claims the games that it checks for a moment, so the others skip them. A
time-out is a commit like any other, fenced by the game's history, so only one sweeper or caller applies it. The store's
list of deadlines is a hint when to check a game, never later than the game is due; the times themselves are in the
game.
"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import structlog

from service.app.changes import ChangeLoop
from service.errors import StoredFormatUnknown, StoreUnavailable
from service.model.change import Loaded
from service.model.deadlines import CLAIM_MS, Due
from service.model.record import GameState
from service.runtime.cancellation import is_task_cancelled
from service.storage.store import Store

MEND_BATCH: Final = 20
"""Listed games that are read, and thereby repaired, after a sweep."""
PUT_OFF_MS: Final = 30_000
"""The delay before a game whose check failed is checked again."""
CLAIMS_A_SECOND: Final = 8.0
"""Most commands a second that idle sweeps send. A sweep sends one to each server that has deadlines, at most 16."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SweepBounds:
    """The limits of one sweep.

    Attributes:
        batch: Games claimed at a time: few enough to check them all before the claims end.
        checks: Games checked concurrently, because a time-out may wait for a search.
        check_seconds: How long it waits for one check, whose time-out may search or wait for a thread.
        unreadable: Most unreadable games that this server leaves due; each claim must skip them.
    """

    batch: int = 32
    checks: int = 8
    check_seconds: float = 10.0
    unreadable: int = 1_000


class Sweeper:
    """Checks games whose time has come.

    Args:
        changes: Applies what is due.
        store: The store.
        interval_seconds: The pause between sweeps.
        stopping: Set when the server stops.
        bounds: The limits of one sweep.
    """

    def __init__(
        self,
        changes: ChangeLoop,
        store: Store,
        interval_seconds: float,
        stopping: asyncio.Event,
        bounds: SweepBounds = SweepBounds(),
    ) -> None:
        self._bounds = bounds
        self._changes = changes
        self._store = store
        self._interval_seconds = interval_seconds
        self._stopping = stopping
        self._lists = itertools.cycle(itertools.product(GameState, (False, True)))
        self._list = next(self._lists)
        """The list to read after the next sweep: its state, and whether it has public games only."""
        self._list_cursor = ""
        self._sweeps_until_mend = 0
        self._checks: dict[str, asyncio.Task[Loaded]] = {}
        self._unreadable: dict[str, int] = {}
        """Games that this server cannot read, and until when it skips them."""
        self._waited_seconds = 0.0
        """How long the oldest game of the last sweep had waited when it was claimed."""
        self._oldest_since: float | None = None
        """During a sweep: since when the oldest game that it claimed has waited (time.monotonic)."""

    @property
    def lag_seconds(self) -> float:
        """How long the oldest due game has waited during this sweep, or had waited in the last one; 0 without any."""
        if self._oldest_since is None:
            return self._waited_seconds
        return time.monotonic() - self._oldest_since

    @property
    def pause_seconds(self) -> float:
        """The pause before the next sweep: longer where a sweep asks many servers."""
        return max(self._interval_seconds, self._store.deadlines.servers / CLAIMS_A_SECOND)

    async def run(self) -> None:
        """Sweeps until the server stops. Between sweeps it reads pages of lists, which repairs the lists."""
        try:
            await self._sweep_repeatedly()
        finally:
            for check in self._checks.values():
                check.cancel()

    async def _sweep_repeatedly(self) -> None:
        while not self._stopping.is_set():
            try:
                await self._sweep_and_mend()
            except asyncio.CancelledError:
                if is_task_cancelled():
                    raise
                _log.exception("sweep")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), self.pause_seconds)

    async def _sweep_and_mend(self) -> None:
        """Sweeps, then may read a page of a list. Logs errors: a failed sweep must not stop later ones.

        It reads a page after as many sweeps as a page takes commands: one on one Redis.
        """
        try:
            await self.sweep()
            self._sweeps_until_mend -= 1
            if self._sweeps_until_mend > 0:
                return
            self._sweeps_until_mend = self._store.deadlines.servers
            state, is_public = self._list
            page = await self._store.lists.page([state], self._list_cursor, MEND_BATCH, is_public=is_public)
            self._list_cursor = page.cursor
            if not self._list_cursor:
                self._list = next(self._lists)
        except* StoreUnavailable:
            _log.debug("sweep", result="store unavailable")
        except* Exception:  # noqa: BLE001 - as the docstring says
            _log.exception("sweep")

    async def sweep(self) -> int:
        """Checks every game whose time has come and that no other server has claimed; returns how many."""
        checked, longest_wait = 0, 0.0
        await self._forget_expired_skips()
        while not self._stopping.is_set():
            found = await self._store.deadlines.claim(self._bounds.batch, tuple(self._unreadable))
            wait = max((due.claimed_ms - CLAIM_MS - due.at_ms for due in found), default=0) / 1000
            longest_wait = max(longest_wait, wait)
            self._oldest_since = time.monotonic() - wait
            waiting = iter(found)
            async with asyncio.TaskGroup() as tasks:
                for _ in range(self._bounds.checks):
                    tasks.create_task(self._check_each(waiting))
            for due in waiting:  # the server stops: give up the claims
                await self._store.deadlines.rearm(due, due.at_ms)
            checked += len(found)
            if len(found) < self._bounds.batch:
                break
        self._waited_seconds, self._oldest_since = longest_wait, None
        return checked

    async def _forget_expired_skips(self) -> None:
        """Stops skipping unreadable games whose PUT_OFF_MS have passed."""
        if self._unreadable:
            now_ms = await self._store.now_ms()
            skipped = self._unreadable.items()
            self._unreadable = {game_id: until_ms for game_id, until_ms in skipped if until_ms >= now_ms}

    async def _check_each(self, waiting: Iterator[Due]) -> None:
        """Checks games one after the other, until none waits or the server stops."""
        for due in waiting:
            await self._check(due)
            if self._stopping.is_set():
                return

    async def _check(self, due: Due) -> None:
        """Applies what is due in a game. A game whose check fails is put off, so it does not hold up others.

        A game that this server cannot read stays due, because a newer server may be able to read it. A check that takes
        longer than `check_seconds` continues in the background; otherwise a long search would never finish.
        """
        try:
            async with asyncio.timeout(self._bounds.check_seconds):
                loaded = await asyncio.shield(self._running_check(due.game_id))
            next_look = self._next_look(due, loaded)
        except Exception as error:  # noqa: BLE001 - one bad game must not stop other games' clocks
            await self._store.ping()  # if the store is down, the sweep ends here
            _log.warning("sweep", game_id=due.game_id, result=type(error).__name__)
            next_look = await self._store.now_ms() + PUT_OFF_MS
            if isinstance(error, StoredFormatUnknown) and len(self._unreadable) < self._bounds.unreadable:
                self._unreadable[due.game_id] = next_look
                next_look = due.at_ms
        await self._store.deadlines.rearm(due, next_look)

    def _running_check(self, game_id: str) -> asyncio.Task[Loaded]:
        """Returns the check of a game that is still running, or a new one."""
        if game_id not in self._checks:
            check = self._checks[game_id] = asyncio.create_task(self._settle(game_id))
            check.add_done_callback(lambda _: self._checks.pop(game_id))
        return self._checks[game_id]

    async def _settle(self, game_id: str) -> Loaded:
        """Returns a game after what was due in it. Tries twice, because only the connection may have failed."""
        try:
            return await self._changes.settle(game_id)
        except StoreUnavailable:
            await self._store.ping()
            return await self._changes.settle(game_id)

    def _next_look(self, due: Due, loaded: Loaded) -> int | None:
        """Returns when to check a game again; None: not before the start or end of a round or a bot's turn arms it.

        A game that is still due, because no commit fits its stored data, is put off.
        """
        next_look = self._changes.next_look(loaded)
        is_late = next_look is not None and next_look <= due.at_ms
        return loaded.now_ms + PUT_OFF_MS if is_late else next_look
