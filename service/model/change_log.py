"""The change log: entries that announce changes of games, for the operator's feed."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from service.model.change import NO_ETAG

LOG_GRACE_MS: Final = 5_000
"""How long after its entry in the change log a change may be stored."""
LOG_MARGIN_MS: Final = 2 * LOG_GRACE_MS
"""After this time, a change that an entry announces and that is not stored does not come. It is longer than
LOG_GRACE_MS because entry and game may be on servers with different clocks."""
LOG_START: Final = "0-0"
"""The place before all entries of a change log."""


class LogKind(Enum):
    """What an entry of the change log announces."""

    CHANGED = "changed"
    DELETED = "deleted"
    REWRITTEN = "rewritten"


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry of the change log.

    Attributes:
        place: Its place in its part of the log: milliseconds of the store's clock, hyphen, a number.
        game_id: The game.
        kind: What happened or was about to happen.
        revision: The game's revision after that; 0 for a deletion.
        etag: The game's etag after that; NO_ETAG for a deletion. A change with another etag is another change.
    """

    place: str
    game_id: str
    kind: LogKind
    revision: int = 0
    etag: str = NO_ETAG

    @property
    def time_ms(self) -> int:
        """When the entry was stored, by the store's clock."""
        return int(self.place.partition("-")[0])


@dataclass(frozen=True, slots=True)
class LogPage:
    """Entries of a part of the change log, in order, and the store's time before they were read."""

    now_ms: int
    entries: tuple[LogEntry, ...]


def place_before(now_ms: int) -> str:
    """Returns the place before which every entry was stored before a time."""
    return f"{now_ms - 1}-{2**64 - 1}"
