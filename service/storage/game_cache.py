"""What a process remembers of a store: games as it has last seen them, and what the store's clock said.

Nothing is answered from it alone. A load brings a game's bytes, and finds here what they say if they are the same; a
change may be decided on a game of here, and is stored only if the store finds the game unchanged and the time right.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from service.storage.base import Loaded, Record
from service.storage.snapshot import decode_record

GAMES: Final = 4_096
"""Most games that a process remembers: those that were used last. Each takes about 10 KiB."""


class Recollection:
    """Games by id, each with its stored bytes; the store's clock.

    Args:
        clock: The store's clock where it can be read without asking the store; for tests.
        games: Most games to remember.
    """

    def __init__(self, clock: Callable[[], int] | None = None, games: int = GAMES) -> None:
        self._clock = clock
        self._most = games
        self._games: OrderedDict[str, tuple[bytes, Record]] = OrderedDict()
        self._ahead_ms: float | None = None

    def keep(self, snapshot: bytes, record: Record) -> None:
        """A game has been stored so."""
        self._games[record.game_id] = snapshot, record
        self._games.move_to_end(record.game_id)
        if len(self._games) > self._most:
            self._games.popitem(last=False)

    def forget(self, game_id: str) -> None:
        """A game is not what it was, or not there."""
        self._games.pop(game_id, None)

    def read(self, game_id: str, snapshot: bytes | None) -> Record | None:
        """What the bytes of a game say. Raises StoredFormatUnknown."""
        known = self._games.get(game_id)
        if known and known[0] == snapshot:
            self._games.move_to_end(game_id)
            return known[1]
        self.forget(game_id)
        if not snapshot:
            return None
        record = decode_record(snapshot)
        self.keep(snapshot, record)
        return record

    def saw_time(self, now_ms: int) -> None:
        """The store's clock has just said so."""
        self._ahead_ms = now_ms - time.monotonic() * 1000

    def recall(self, game_id: str) -> Loaded | None:
        """What a load would answer if nothing has changed.

        The time is a bit early, by what the answer took that told it last, but not before the game's last change.
        """
        known = self._games.get(game_id)
        now_ms = self._now_ms()
        if known is None or now_ms is None:
            return None
        return Loaded(max(now_ms, known[1].updated_ms), known[1], None)

    def _now_ms(self) -> int | None:
        if self._clock:
            return self._clock()
        return None if self._ahead_ms is None else int(time.monotonic() * 1000 + self._ahead_ms)
