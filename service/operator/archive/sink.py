"""Where the archive writes games."""

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from service.operator.archive.archived_game import ArchivedGame, Head


class SinkUnavailable(Exception):  # noqa: N818 - not a defect of the service
    """The sink does not take or return a game now. The message says why, without contents and passwords."""


class WriteResult(Enum):
    """The result of a write: the entry under the game's id after it."""

    WRITTEN = "written"
    """The game."""
    LATER = "later"
    """A later revision of it, which stays."""
    FORGOTTEN = "forgotten"
    """The game without a player who was forgotten in it, which stays: read the game again."""
    DELETED = "deleted"
    """The mark of its deletion, which stays for good."""
    ANOTHER = "another"
    """Another game, which stays for good. A CreateGame that is repeated after its game expired makes such a game."""


def write_result(before: Head | None, game: ArchivedGame) -> WriteResult:
    """Returns WRITTEN if a game may replace an entry, else why not. None: the entry is the mark of a deletion."""
    if before is None:
        return WriteResult.DELETED
    if before.created_ms != game.record.created_ms:
        return WriteResult.ANOTHER
    if before.revision > game.record.game.revision:
        return WriteResult.LATER
    return WriteResult.WRITTEN if before.players.issuperset(game.players) else WriteResult.FORGOTTEN


class Sink(Protocol):
    """A place for archived games. Its methods raise SinkUnavailable.

    A removal is final, whatever servers write later what they read before it: a deleted game stays deleted, and a
    game never gets back a player who was forgotten in it.
    """

    async def write(self, game: ArchivedGame) -> WriteResult:
        """Writes a game, in place of an earlier revision. Returns once it is durable, or what it did not replace."""

    async def read(self, game_id: str) -> ArchivedGame | None:
        """Returns a game; None if there is none. Raises StoredFormatUnknown too."""

    async def delete(self, game_id: str) -> bool:
        """Deletes a game for good, whether it was written or not. Returns, once that is durable, whether it was."""

    async def games_of(self, player: str) -> Sequence[str]:
        """Returns the ids of the games of a player (player_digest).

        It may name a game that was deleted, or in which the player was forgotten.
        """

    async def unlist(self, player: str, game_id: str) -> None:
        """Has `games_of` a player no longer name a game in which the player was forgotten."""

    async def prune(self, before_ms: int) -> int:
        """Deletes games whose last change is older, without a mark; returns how many. Marks of deletions stay."""

    async def close(self) -> None:
        """Releases connections and files."""


def reason_of(error: Exception) -> str:
    """Returns the kind of an error and the first line of its text, for logs. Details may have contents."""
    first_line, *_ = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {first_line[:200]}"
