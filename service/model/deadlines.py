"""Deadlines: games whose time has come."""

from dataclasses import dataclass
from typing import Final

CLAIM_MS: Final = 2_000
"""How long a claim lasts. If the claiming server dies, another one finds the game this much later."""


@dataclass(frozen=True, slots=True)
class Due:
    """A game whose time has come, claimed by a server.

    Attributes:
        game_id: The game.
        at_ms: The time that was set for it.
        claimed_ms: When the claim ends. Until then no other server finds the game.
    """

    game_id: str
    at_ms: int
    claimed_ms: int
