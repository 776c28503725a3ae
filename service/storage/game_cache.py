"""A cache of the games that a process last saw, and estimates of the store's clock.

No request is answered from it alone. A load compares the game's bytes and skips decoding if they are the same. A change
may be decided on a cached game, and is stored only if the store finds the game unchanged and the time right.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from service.model.change import Loaded
from service.model.record import Record
from service.storage.snapshot import decode_record

GAMES: Final = 4_096
"""Most games in the cache, about 10 KiB each; the least recently used are dropped."""


class GameCache:
    """Games by id, each with its stored bytes and its clock.

    The games of a cluster are on servers with different clocks, so each game has the clock of the last reply about it.

    Args:
        clock: The store's clock if it can be read locally; for tests.
        games: Most games to keep.
    """

    def __init__(self, clock: Callable[[], int] | None = None, games: int = GAMES) -> None:
        self._clock = clock
        self._most = games
        self._games: OrderedDict[str, tuple[bytes, Record, float | None]] = OrderedDict()
        """Stored bytes, the game, and what its clock is ahead of the local monotonic one."""
        self._offset_ms: float | None = None
        """The same of the server that replied last."""

    def put(self, snapshot: bytes, record: Record) -> None:
        """Stores a game and its bytes, from the reply whose time was set last."""
        self._games[record.game_id] = snapshot, record, self._offset_ms
        self._games.move_to_end(record.game_id)
        if len(self._games) > self._most:
            self._games.popitem(last=False)

    def evict(self, game_id: str) -> None:
        """Drops a game that has changed or is gone."""
        self._games.pop(game_id, None)

    def decode(self, game_id: str, snapshot: bytes | None) -> Record | None:
        """Returns a game from its stored bytes, decoded only if they are new. Raises StoredFormatUnknown.

        The bytes are from the reply whose time was set last.
        """
        known = self._games.get(game_id)
        if known and known[0] == snapshot:
            self.put(snapshot, known[1])
            return known[1]
        self.evict(game_id)
        if not snapshot:
            return None
        record = decode_record(snapshot)
        self.put(snapshot, record)
        return record

    def set_time(self, now_ms: int) -> None:
        """Sets the time in a reply. What is stored next is from the same reply."""
        self._offset_ms = now_ms - time.monotonic() * 1000

    def get(self, game_id: str) -> Loaded | None:
        """Returns a cached game with the estimated store time; None if the game or the time is unknown.

        The estimate lags by the latency of the last reply about the game, but is never before the game's last change.
        """
        known = self._games.get(game_id)
        if known is None:
            return None
        _, record, offset_ms = known
        if self._clock:
            now_ms = self._clock()
        elif offset_ms is None:
            return None
        else:
            now_ms = int(time.monotonic() * 1000 + offset_ms)
        return Loaded(max(now_ms, record.updated_ms), record, None)

    def now_ms(self) -> int | None:
        """Returns the estimated time of the server that replied last; None if it is unknown. It lags."""
        if self._clock:
            return self._clock()
        return None if self._offset_ms is None else int(time.monotonic() * 1000 + self._offset_ms)
