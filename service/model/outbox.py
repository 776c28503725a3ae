"""The outbox: entries that name games that may have ended, for the archive."""

from dataclasses import dataclass
from typing import Final

OUTBOX_VALID_MS: Final = 3_000
"""How long after its entry in the outbox the commit that ends a game may be stored."""
OUTBOX_MARGIN_MS: Final = 2 * OUTBOX_VALID_MS
"""After this time, a game that an entry names and that has not ended does not end by the commit of that entry. It is
longer than OUTBOX_VALID_MS because entry and game may be on servers with different clocks."""


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """An entry of the outbox: a game that may have ended.

    Attributes:
        game_id: The game.
        entry_id: Identifies the entry.
        at_ms: When it was appended, by the store's clock.
    """

    game_id: str
    entry_id: str
    at_ms: int
