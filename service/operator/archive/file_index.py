"""The index of an archive of files: an SQLite database that says in which line of which file a game is."""

import contextlib
import os
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from service.operator.archive.archived_game import LineHead

NAME: Final = "index.sqlite3"
BUSY_SECONDS: Final = 2.0
"""How long a call waits for other processes that use the database."""
_SCHEMA: Final = """\
PRAGMA synchronous = EXTRA;
PRAGMA secure_delete = ON;
CREATE TABLE IF NOT EXISTS games (
  game_id TEXT PRIMARY KEY, created_ms INTEGER, revision INTEGER, file TEXT, start INTEGER, length INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS players (game_id TEXT, player TEXT, PRIMARY KEY (game_id, player)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS games_of ON players (player, game_id);
CREATE TABLE IF NOT EXISTS unused (game_id TEXT, file TEXT, start INTEGER, length INTEGER);
"""
"""A deleted game has NULL in all columns but game_id. `unused` has the lines that are to be blanked."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a line is: the name of its file, its first byte, and its length in bytes."""

    file: str
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class IndexedLine:
    """The line of a game: its head, and where it is."""

    head: LineHead
    place: Place


class FileIndex:
    """The index in a folder, for one thread at a time. All calls raise sqlite3.Error; the constructor also OSError.

    A change is durable when its call returns.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / NAME
        with contextlib.suppress(FileExistsError):  # SQLite would let others read it
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        self._database = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            self._database.executescript(_SCHEMA)
        except sqlite3.Error:
            self._database.close()
            raise

    def is_deleted(self, game_id: str) -> bool:
        """Returns whether a game was deleted."""
        query = "SELECT game_id FROM games WHERE game_id = ? AND file IS NULL"
        return self._database.execute(query, (game_id,)).fetchone() is not None

    def find(self, game_id: str) -> IndexedLine | None:
        """Returns the line of a game; None if it was not written, or was deleted."""
        query = "SELECT created_ms, revision, file, start, length FROM games WHERE game_id = ? AND file IS NOT NULL"
        row = self._database.execute(query, (game_id,)).fetchone()
        if row is None:
            return None
        created_ms, revision, *place = row
        players = self._database.execute("SELECT player FROM players WHERE game_id = ?", (game_id,))
        return IndexedLine(LineHead(created_ms, revision, frozenset(player for (player,) in players)), Place(*place))

    def has_line(self, game_id: str) -> bool:
        """Returns whether files have a line of a game: the one of `find`, or one that is to be blanked."""
        query = "SELECT game_id FROM unused WHERE game_id = ?"
        is_unused = self._database.execute(query, (game_id,)).fetchone() is not None
        return is_unused or self.place_of(game_id) is not None

    def place_of(self, game_id: str) -> Place | None:
        """Returns where the line of a game is; None if it was not written, or was deleted."""
        query = "SELECT file, start, length FROM games WHERE game_id = ? AND file IS NOT NULL"
        row = self._database.execute(query, (game_id,)).fetchone()
        return Place(*row) if row else None

    def games_of(self, player: str) -> Sequence[str]:
        """Returns the ids of the games of a player (player_digest)."""
        rows = self._database.execute("SELECT game_id FROM players WHERE player = ?", (player,))
        return [game_id for (game_id,) in rows]

    def reserve(self, game_id: str, place: Place) -> None:
        """Notes where a line is about to be written. It counts as unused until `put` or `delete` names it."""
        values = (game_id, place.file, place.start, place.length)
        self._database.execute("INSERT INTO unused VALUES (?, ?, ?, ?)", values)

    def put(self, game_id: str, head: LineHead, place: Place) -> None:
        """Sets the line of a game. The one before is unused from now on."""
        values = (game_id, head.created_ms, head.revision, place.file, place.start, place.length)
        with self._database:  # commits, or undoes what raises
            self._replace_line(game_id, place)
            self._database.execute("REPLACE INTO games VALUES (?, ?, ?, ?, ?, ?)", values)
            rows = [(game_id, player) for player in head.players]
            self._database.executemany("INSERT INTO players VALUES (?, ?)", rows)

    def delete(self, game_id: str, place: Place) -> None:
        """Marks a game as deleted, which a line says. The line of the game is unused from now on."""
        with self._database:
            self._replace_line(game_id, place)
            self._database.execute("REPLACE INTO games (game_id) VALUES (?)", (game_id,))

    def _replace_line(self, game_id: str, place: Place) -> None:
        """Begins a transaction, in which the line at a place is used, and the one before unused."""
        self._database.execute("BEGIN IMMEDIATE")
        self.forget_unused(place)
        line = "SELECT game_id, file, start, length FROM games WHERE game_id = ? AND file IS NOT NULL"
        self._database.execute(f"INSERT INTO unused {line}", (game_id,))
        self._database.execute("DELETE FROM players WHERE game_id = ?", (game_id,))

    def unlist(self, player: str, game_id: str) -> None:
        """Removes a player from a game."""
        self._database.execute("DELETE FROM players WHERE (game_id, player) = (?, ?)", (game_id, player))

    def unused(self) -> Sequence[tuple[str, Place]]:
        """Returns the games and the places of the lines that are to be blanked."""
        rows = self._database.execute("SELECT game_id, file, start, length FROM unused")
        return [(game_id, Place(*place)) for game_id, *place in rows]

    def forget_unused(self, place: Place) -> None:
        """Notes that a line need not be blanked any more."""
        self._database.execute("DELETE FROM unused WHERE (file, start) = (?, ?)", (place.file, place.start))

    def close(self) -> None:
        """Closes the database."""
        self._database.close()
