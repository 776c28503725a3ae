"""Presence: when the owners of seats were seen."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

PRESENCE_MS: Final = 40_000
"""How long a reported watch counts as open. Servers report it again every 15 seconds."""


class Sighting(Enum):
    """A server's report of the owner of a seat."""

    CALL = "call"
    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Seen:
    """When the owner of a seat was seen last, and until when a watch of theirs counts as open (0: none is open)."""

    last_ms: int
    open_until_ms: int = 0
