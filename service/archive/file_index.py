"""The index of an archive of files: an SQLite database that says in which line of which file a game is."""

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from service.archive.archived_game import LineHead

NAME: Final = "index.sqlite3"
BUSY_SECONDS: Final = 4.0
"""How long a call waits for other processes."""
_SCHEMA: Final = """\
PRAGMA synchronous = EXTRA;
PRAGMA secure_delete = ON;
CREATE TABLE IF NOT EXISTS games (
  game_id TEXT PRIMARY KEY, created_ms INTEGER, revision INTEGER, file TEXT, start INTEGER, length INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS players (game_id TEXT, player TEXT, PRIMARY KEY (game_id, player)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS games_of ON players (player, game_id);
CREATE TABLE IF NOT EXISTS replaced (game_id TEXT, file TEXT, start INTEGER, length INTEGER);
"""
"""A deleted game has NULL in all columns but game_id. `replaced` has the lines that are to be blanked."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a line is: the name of its file, its first byte, and its length in bytes."""

    file: str
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class Indexed:
    """A game that the index has: the head of its line; None if it is deleted."""

    head: LineHead | None


class FileIndex:
    """The index in a folder. All calls, also the constructor, raise sqlite3.Error and OSError.

    A change is one transaction, which excludes those of other threads and processes.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / NAME
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # SQLite would let others read it
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path, BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        self._database.executescript(_SCHEMA)

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Makes the calls of its block one transaction, which is durable at its end; undoes it if the block raises."""
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    def find(self, game_id: str) -> Indexed | None:
        """Returns a game, within `changing`; None if it was neither written nor deleted."""
        query = "SELECT created_ms, revision FROM games WHERE game_id = ?"
        row = self._database.execute(query, (game_id,)).fetchone()
        if row is None:
            return None
        created_ms, revision = row
        if revision is None:
            return Indexed(None)
        players = self._database.execute("SELECT player FROM players WHERE game_id = ?", (game_id,))
        return Indexed(LineHead(created_ms, revision, frozenset(player for (player,) in players)))

    def put(self, game_id: str, head: LineHead, place: Place) -> None:
        """Sets the line of a game, within `changing`."""
        self.delete(game_id)
        values = (game_id, head.created_ms, head.revision, place.file, place.start, place.length)
        self._database.execute("REPLACE INTO games VALUES (?, ?, ?, ?, ?, ?)", values)
        self._database.executemany("INSERT INTO players VALUES (?, ?)", [(game_id, player) for player in head.players])

    def delete(self, game_id: str) -> None:
        """Marks a game as deleted, within `changing`. The line that it had is to be blanked."""
        place = "SELECT game_id, file, start, length FROM games WHERE game_id = ? AND file IS NOT NULL"
        self._database.execute(f"INSERT INTO replaced {place}", (game_id,))
        self._database.execute("DELETE FROM players WHERE game_id = ?", (game_id,))
        self._database.execute("REPLACE INTO games (game_id) VALUES (?)", (game_id,))

    def place_of(self, game_id: str) -> Place | None:
        """Returns where the line of a game is; None if it was not written, or was deleted."""
        query = "SELECT file, start, length FROM games WHERE game_id = ? AND file IS NOT NULL"
        with self._lock:
            row = self._database.execute(query, (game_id,)).fetchone()
        return Place(*row) if row else None

    def games_of(self, player: str) -> Sequence[str]:
        """Returns the ids of the games of a player (player_digest)."""
        with self._lock:
            rows = self._database.execute("SELECT game_id FROM players WHERE player = ?", (player,)).fetchall()
        return [game_id for (game_id,) in rows]

    def replaced(self) -> Sequence[tuple[str, Place]]:
        """Returns the games and the places of the lines that are to be blanked."""
        with self._lock:
            rows = self._database.execute("SELECT game_id, file, start, length FROM replaced").fetchall()
        return [(game_id, Place(*place)) for game_id, *place in rows]

    def blanked(self, place: Place) -> None:
        """Notes that a line has been blanked."""
        with self._lock:
            self._database.execute("DELETE FROM replaced WHERE (file, start) = (?, ?)", (place.file, place.start))

    def close(self) -> None:
        """Closes the database."""
        with self._lock:
            self._database.close()
