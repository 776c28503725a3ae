"""The archive in an SQLite database, for servers on one machine: a row for each game."""

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from service.operator.archive.archived_game import ArchivedGame, Head, from_history
from service.operator.archive.sink import SinkUnavailable, WriteResult, reason_of, write_result

BUSY_SECONDS: Final = 2.0
"""How long a call waits for other processes that use the database."""
PRUNED_AT_ONCE: Final = 100
"""Games that are deleted in one transaction."""
_SCHEMA: Final = """\
PRAGMA synchronous = EXTRA;
PRAGMA secure_delete = ON;
CREATE TABLE IF NOT EXISTS games (
  game_id TEXT PRIMARY KEY, created_ms INTEGER, updated_ms INTEGER, revision INTEGER, etag TEXT,
  record TEXT, history BLOB
);
CREATE TABLE IF NOT EXISTS players (game_id TEXT, player TEXT, PRIMARY KEY (game_id, player)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS games_of ON players (player, game_id);
"""
"""A deleted game has NULL in all columns but game_id. SQLite overwrites what was deleted with zeros."""

_T = TypeVar("_T")


class SqliteSink:
    """Archived games in a database of this machine. The constructor raises OSError, ValueError.

    One thread makes all changes and another one all reads: anyone may cause reads, and they hold up no write.

    Args:
        path: The database; it and its folder are created if they do not exist.
        busy_seconds: How long a call waits for another process that uses the database.
    """

    def __init__(self, path: Path, busy_seconds: float = BUSY_SECONDS) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds hidden tiles and names
        try:
            self._changes, self._reads = _Connection(path, busy_seconds), _Connection(path, busy_seconds)
        except sqlite3.Error as error:
            raise ValueError(f"the database cannot be used ({reason_of(error)})") from error

    async def write(self, game: ArchivedGame) -> WriteResult:
        return await self._changes.run(lambda database: _write(database, game))

    async def read(self, game_id: str) -> ArchivedGame | None:
        return await self._reads.run(lambda database: _read(database, game_id))

    async def delete(self, game_id: str) -> bool:
        return await self._changes.run(lambda database: _delete(database, game_id))

    async def games_of(self, player: str) -> Sequence[str]:
        query = "SELECT game_id FROM players WHERE player = ?"
        rows = await self._reads.run(lambda database: database.execute(query, (player,)).fetchall())
        return [game_id for (game_id,) in rows]

    async def unlist(self, _player: str, _game_id: str) -> None:
        """See Sink. Writing the game is enough."""

    async def prune(self, before_ms: int) -> int:
        deleted = 0
        while count := await self._changes.run(lambda database: _prune(database, before_ms)):
            deleted += count
        return deleted

    async def close(self) -> None:
        await self._changes.close()
        await self._reads.close()


def _write(database: sqlite3.Connection, game: ArchivedGame) -> WriteResult:
    record = game.record
    history = game.history()
    with database:  # commits, or undoes what raises
        database.execute("BEGIN IMMEDIATE")
        before = database.execute(
            "SELECT created_ms, revision FROM games WHERE game_id = ?", (record.game_id,)
        ).fetchone()
        if before:
            players = database.execute("SELECT player FROM players WHERE game_id = ?", (record.game_id,))
            created_ms, revision = before
            head = Head(created_ms, revision, frozenset(player for (player,) in players)) if revision else None
            result = write_result(head, game)
            if result is not WriteResult.WRITTEN:
                return result
        _clear(database, record.game_id)
        values = (record.game_id, record.created_ms, record.updated_ms, record.game.revision, record.etag)
        database.execute("INSERT INTO games VALUES (?, ?, ?, ?, ?, ?, ?)", (*values, game.text or None, history))
        rows = [(record.game_id, player) for player in game.players]
        database.executemany("INSERT INTO players VALUES (?, ?)", rows)
    return WriteResult.WRITTEN


def _clear(database: sqlite3.Connection, game_id: str) -> None:
    database.execute("DELETE FROM games WHERE game_id = ?", (game_id,))
    database.execute("DELETE FROM players WHERE game_id = ?", (game_id,))


def _read(database: sqlite3.Connection, game_id: str) -> ArchivedGame | None:
    query = "SELECT history, coalesce(record, '') FROM games WHERE game_id = ? AND history IS NOT NULL"
    row = database.execute(query, (game_id,)).fetchone()
    return from_history(*row) if row else None


def _delete(database: sqlite3.Connection, game_id: str) -> bool:
    with database:
        database.execute("BEGIN IMMEDIATE")
        query = "SELECT game_id FROM games WHERE game_id = ? AND history IS NOT NULL"
        was_written = database.execute(query, (game_id,)).fetchone() is not None
        _clear(database, game_id)
        database.execute("INSERT INTO games (game_id) VALUES (?)", (game_id,))
    return was_written


def _prune(database: sqlite3.Connection, before_ms: int) -> int:
    """Deletes some games; servers write between two calls."""
    with database:
        database.execute("BEGIN IMMEDIATE")
        query = "SELECT game_id FROM games WHERE updated_ms < ? LIMIT ?"
        game_ids = [game_id for (game_id,) in database.execute(query, (before_ms, PRUNED_AT_ONCE))]
        for game_id in game_ids:
            _clear(database, game_id)
    return len(game_ids)


class _Connection:
    """A connection to a database, which one thread uses. The constructor raises sqlite3.Error."""

    def __init__(self, path: Path, busy_seconds: float) -> None:
        with contextlib.suppress(FileExistsError):  # SQLite would let others read it
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        self._path = path
        self._database = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
        self._thread = ThreadPoolExecutor(1, "archive")
        try:
            self._database.executescript(_SCHEMA)
        except sqlite3.Error:
            self._database.close()
            raise

    async def run(self, call: Callable[[sqlite3.Connection], _T]) -> _T:
        """Returns the result of a function. Raises SinkUnavailable."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, call, self._database)
        except sqlite3.Error as error:
            raise SinkUnavailable(f"{self._path}: {reason_of(error)}") from error

    async def close(self) -> None:
        """Closes the connection after the calls in progress."""
        await asyncio.to_thread(self._thread.shutdown)
        self._database.close()
