"""Presence: which owners of seats watch their game, and when they were seen last.

It is soft state beside the game: no revision, no event, no part of a commit. Calls and watches only mark a seat here;
a background task reports each seat at most once in REPORT_SECONDS, several games at a time. If the store does not
answer, reports are dropped, and the next one is made REPORT_SECONDS later.
"""

import asyncio
import contextlib
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from service.app.identity import new_server_id
from service.app.views import SeatPresence
from service.errors import Fault, StoreUnavailable
from service.model.change import Loaded
from service.model.presence import Seen, Sighting
from service.storage.store import Store

REPORT_SECONDS: Final = 15.0
"""The shortest time between two reports of a seat, unless its watch opens or closes."""
GAMES_AT_ONCE: Final = 64
"""Games that are reported concurrently."""

_Key = tuple[str, int]
"""A game and a seat."""


class Presence:
    """Marks owners of seats as seen, and reports them to the store.

    Args:
        store: Keeps the presence of all servers.

    Attributes:
        report_seconds: The shortest time between two reports of a seat, unless its watch opens or closes.
    """

    def __init__(self, store: Store) -> None:
        self.report_seconds = REPORT_SECONDS
        self._store = store
        self._server = new_server_id()
        self._open: Counter[_Key] = Counter()
        """How many watches of each seat are open."""
        self._pending: dict[_Key, Sighting] = {}
        self._reported: dict[_Key, float] = {}
        """When each seat was reported last; entries older than REPORT_SECONDS are dropped."""
        self._next_renewal = 0.0
        self._is_stopping = False

    def seen(self, game_id: str, seat: int | None) -> None:
        """Marks the owner of a seat as seen, after a call with its valid token. None and HOST have no seat."""
        if seat:
            key = (game_id, seat)
            if time.monotonic() - self._reported.get(key, -math.inf) >= self.report_seconds:
                self._report(key, Sighting.CALL)

    def _report(self, key: _Key, sighting: Sighting) -> None:
        self._reported[key] = time.monotonic()
        if sighting is not Sighting.CALL or key not in self._pending:
            self._pending[key] = sighting

    @contextlib.contextmanager
    def watching(self, game_id: str, seat: int | None) -> Iterator[None]:
        """Counts an open watch of a seat's owner within the context. None and HOST have no seat."""
        if not seat:
            yield
            return
        key = (game_id, seat)
        self._open[key] += 1
        self._report(key, Sighting.OPEN)
        try:
            yield
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]
                if not self._is_stopping:
                    self._report(key, Sighting.CLOSED)

    def stop(self) -> None:
        """Reports no more closed watches: owners whose server stops connect to another one."""
        self._is_stopping = True

    async def flush(self) -> None:
        """Reports the owners who were marked, and open watches every REPORT_SECONDS."""
        if time.monotonic() >= self._next_renewal:
            self._renew()
        pending, self._pending = self._pending, {}
        games: defaultdict[str, dict[int, Sighting]] = defaultdict(dict)
        for (game_id, seat), sighting in pending.items():
            games[game_id][seat] = sighting
        items = iter(games.items())
        with contextlib.suppress(StoreUnavailable):
            while some := list(islice(items, GAMES_AT_ONCE)):
                reports = (self._store.presence.report(game_id, self._server, seats) for game_id, seats in some)
                await asyncio.gather(*reports)

    def _renew(self) -> None:
        now = time.monotonic()
        self._next_renewal = now + self.report_seconds
        self._reported = {key: at for key, at in self._reported.items() if now - at < self.report_seconds}
        for key in self._open:
            self._report(key, Sighting.OPEN)

    async def read(self, game_id: str) -> Mapping[int, Seen] | None:
        """Returns when the owners of a game's seats were seen; None if the store does not answer."""
        try:
            return await self._store.presence.read(game_id)
        except Fault:
            return None


def presence_in(loaded: Loaded, seen: Mapping[int, Seen] | None) -> Mapping[int, SeatPresence] | None:
    """Returns the presence of each player of a game who is not a bot; None if it is unknown."""
    if loaded.record is None or seen is None:
        return None
    people = [player.seat for player in loaded.record.game.players if not player.bot]
    found = {seat: seen.get(seat, Seen(0)) for seat in people}
    return {seat: SeatPresence(seat, found[seat].open_until_ms > loaded.now_ms, found[seat].last_ms) for seat in people}
