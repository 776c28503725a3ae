"""Where the archive writes games."""

from collections.abc import Sequence
from typing import Protocol

from service.archive.archived_game import ArchivedGame


class SinkUnavailable(Exception):  # noqa: N818 - not a defect of the service
    """The sink does not take or return a game now. The message says why, without contents and passwords."""


class Sink(Protocol):
    """A place for archived games. Its methods raise SinkUnavailable.

    A removal is final, whatever servers write later what they read before it: a deleted game stays deleted, and a
    game never gets back a player who was forgotten in it. A sink that is not readable cannot refuse such a write;
    there the mark of a deletion counts.

    Attributes:
        is_readable: Whether the games that were written are found.
    """

    is_readable: bool

    async def write(self, game: ArchivedGame) -> bool:
        """Writes a game, in place of what was written under its id before. Returns once the game is durable.

        Returns False, without effect, if the game was deleted, or has a player whom the archive has forgotten in it.
        """

    async def read(self, game_id: str) -> ArchivedGame | None:
        """Returns a game; None if there is none, or the sink is not readable. Raises StoredFormatUnknown too."""

    async def delete(self, game_id: str) -> bool:
        """Deletes a game for good, if it was written or not. Returns once that is durable.

        Returns whether there was a game; True if the sink is not readable.
        """

    async def games_of(self, player: str) -> Sequence[str]:
        """Returns the ids of the games of a player (player_digest); none if the sink is not readable.

        It may name a game that was deleted, or in which the player was forgotten.
        """

    async def unlist(self, player: str, game_id: str) -> None:
        """Has `games_of` a player no longer name a game in which the player was forgotten."""

    async def close(self) -> None:
        """Releases connections and files."""


def reason_of(error: Exception) -> str:
    """Returns the kind of an error and the first line of its text, for logs. Details may have contents."""
    first_line, *_ = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {first_line[:200]}"
