"""A cache of the games that a process last saw, and an estimate of the store's clock.

No request is answered from it alone. A load compares the game's bytes and skips decoding if they are the same. A change
may be decided on a cached game, and is stored only if the store finds the game unchanged and the time right.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from service.storage.base import Loaded, Record
from service.storage.snapshot import decode_record

GAMES: Final = 4_096
"""Most games in the cache, about 10 KiB each; the least recently used are dropped."""


class GameCache:
    """Games by id, each with its stored bytes, and the store's clock.

    Args:
        clock: The store's clock if it can be read locally; for tests.
        games: Most games to keep.
    """

    def __init__(self, clock: Callable[[], int] | None = None, games: int = GAMES) -> None:
        self._clock = clock
        self._most = games
        self._games: OrderedDict[str, tuple[bytes, Record]] = OrderedDict()
        self._offset_ms: float | None = None

    def put(self, snapshot: bytes, record: Record) -> None:
        """Stores a game and its bytes."""
        self._games[record.game_id] = snapshot, record
        self._games.move_to_end(record.game_id)
        if len(self._games) > self._most:
            self._games.popitem(last=False)

    def evict(self, game_id: str) -> None:
        """Drops a game that has changed or is gone."""
        self._games.pop(game_id, None)

    def decode(self, game_id: str, snapshot: bytes | None) -> Record | None:
        """Returns a game from its stored bytes, decoded only if they are new. Raises StoredFormatUnknown."""
        known = self._games.get(game_id)
        if known and known[0] == snapshot:
            self._games.move_to_end(game_id)
            return known[1]
        self.evict(game_id)
        if not snapshot:
            return None
        record = decode_record(snapshot)
        self.put(snapshot, record)
        return record

    def set_time(self, now_ms: int) -> None:
        """Sets the store's current time."""
        self._offset_ms = now_ms - time.monotonic() * 1000

    def get(self, game_id: str) -> Loaded | None:
        """Returns a cached game with the estimated store time; None if the game or the time is unknown.

        The estimate lags by the latency of the last reply, but is never before the game's last change.
        """
        known = self._games.get(game_id)
        now_ms = self.now_ms()
        if known is None or now_ms is None:
            return None
        return Loaded(max(now_ms, known[1].updated_ms), known[1], None)

    def now_ms(self) -> int | None:
        """Returns the estimated store time; None if it is unknown. It lags, and is never ahead."""
        if self._clock:
            return self._clock()
        return None if self._offset_ms is None else int(time.monotonic() * 1000 + self._offset_ms)
