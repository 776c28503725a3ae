"""The archive in PostgreSQL: one row for each game, in a table that the service creates if it is missing."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from service.operator.archive.archived_game import ArchivedGame, from_history
from service.operator.archive.sink import SinkUnavailable, WriteResult, reason_of

CONNECT_SECONDS: Final = 4
TABLE: Final = "rummikub_games"
CREATE_TABLE: Final = """\
CREATE TABLE IF NOT EXISTS rummikub_games (
  game_id text PRIMARY KEY,
  created_at timestamptz,
  updated_at timestamptz,
  revision integer,
  etag text,
  players text[],
  record text,
  history bytea
);
CREATE INDEX IF NOT EXISTS rummikub_games_players ON rummikub_games USING gin (players)"""
_WRITE: Final = """\
WITH written AS (
  INSERT INTO rummikub_games AS before (game_id, created_at, updated_at, revision, etag, players, record, history)
  VALUES (%(game_id)s, to_timestamp(%(created_ms)s / 1000.0), to_timestamp(%(updated_ms)s / 1000.0), %(revision)s,
    %(etag)s, %(players)s, %(record)s, %(history)s)
  ON CONFLICT (game_id) DO UPDATE SET (created_at, updated_at, revision, etag, players, record, history) =
    (excluded.created_at, excluded.updated_at, excluded.revision, excluded.etag, excluded.players, excluded.record,
     excluded.history)
  WHERE before.created_at = excluded.created_at AND before.revision <= excluded.revision
    AND before.players @> excluded.players
  RETURNING game_id)
SELECT CASE WHEN EXISTS (SELECT FROM written) THEN 'written' ELSE coalesce((
  SELECT CASE WHEN history IS NULL THEN 'deleted'
    WHEN created_at <> to_timestamp(%(created_ms)s / 1000.0) THEN 'another'
    WHEN revision > %(revision)s THEN 'later'
    ELSE 'forgotten' END
  FROM rummikub_games WHERE game_id = %(game_id)s), 'forgotten') END"""
"""Returns a WriteResult. A game only ever loses players, and a deleted one has NULL, so what was removed does not come
back. The last SELECT does not see a row that another server has added meanwhile: then the game is written again."""
_READ: Final = "SELECT history, coalesce(record, '') FROM rummikub_games WHERE game_id = %s AND history IS NOT NULL"
_DELETE: Final = """\
WITH before AS (SELECT history IS NOT NULL AS is_game FROM rummikub_games WHERE game_id = %(game_id)s)
INSERT INTO rummikub_games (game_id) VALUES (%(game_id)s)
ON CONFLICT (game_id) DO UPDATE SET (created_at, updated_at, revision, etag, players, record, history) =
  (NULL, NULL, NULL, NULL, NULL, NULL, NULL)
RETURNING coalesce((SELECT is_game FROM before), false)"""
_PRUNE: Final = """\
DELETE FROM rummikub_games WHERE game_id IN (
  SELECT game_id FROM rummikub_games WHERE updated_at < to_timestamp(%s / 1000.0) LIMIT 1000)"""
_GAMES_OF: Final = "SELECT game_id FROM rummikub_games WHERE players @> ARRAY[%s]::text[] ORDER BY game_id"


class PostgresqlSink:
    """Archived games in a table. Of a deleted game, a row with its id remains. The constructor raises ValueError.

    One connection serves all reads, another one all other calls: anyone may cause reads, and they hold up no write.

    Args:
        url: A connection URI of libpq.
    """

    def __init__(self, url: str) -> None:
        try:
            conninfo_to_dict(url)
        except psycopg.Error:  # its text may have the password
            raise ValueError("expected postgresql://user:password@host:port/database?option=value") from None
        self._reads, self._writes = _Connection(url), _Connection(url)

    async def write(self, game: ArchivedGame) -> WriteResult:
        record = game.record
        values = {
            "game_id": record.game_id,
            "created_ms": record.created_ms,
            "updated_ms": record.updated_ms,
            "revision": record.game.revision,
            "etag": record.etag,
            "players": list(game.players),
            "record": game.text or None,
            "history": await asyncio.to_thread(game.history),
        }
        async with self._writes.use() as connection:
            row = await (await connection.execute(_WRITE, values)).fetchone()
        return WriteResult(row[0]) if row else WriteResult.FORGOTTEN

    async def read(self, game_id: str) -> ArchivedGame | None:
        async with self._reads.use() as connection:
            row = await (await connection.execute(_READ, (game_id,))).fetchone()
        return await asyncio.to_thread(from_history, *row) if row else None

    async def delete(self, game_id: str) -> bool:
        async with self._writes.use() as connection:
            row = await (await connection.execute(_DELETE, {"game_id": game_id})).fetchone()
        return row == (True,)

    async def games_of(self, player: str) -> Sequence[str]:
        async with self._writes.use() as connection:
            rows = await (await connection.execute(_GAMES_OF, (player,))).fetchall()
        return [game_id for (game_id,) in rows]

    async def unlist(self, _player: str, _game_id: str) -> None:
        """See Sink. A row has its players, so writing the game is enough."""

    async def prune(self, before_ms: int) -> int:
        deleted = 0
        async with self._writes.use() as connection:
            while count := (await connection.execute(_PRUNE, (before_ms,))).rowcount:
                deleted += count
        return deleted

    async def close(self) -> None:
        await self._reads.close()
        await self._writes.close()


class _Connection:
    """A held connection for one caller at a time. The first one opens it, as does the first one after it was lost.

    psycopg ends the query of a caller who is cancelled, so the connection stays usable.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.AsyncConnection | None = None
        self._lock = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def use(self) -> AsyncIterator[psycopg.AsyncConnection]:
        """Yields the connection. Raises SinkUnavailable for errors of the database."""
        async with self._lock:
            try:
                if self._connection is None:
                    self._connection = await self._connect()
                yield self._connection
            except (psycopg.Error, OSError) as error:
                raise SinkUnavailable(reason_of(error)) from error
            finally:
                connection = self._connection
                if connection is not None and connection.info.transaction_status is not TransactionStatus.IDLE:
                    await self._close()

    async def _connect(self) -> psycopg.AsyncConnection:
        """Returns a connection to a database that has the table. Only creating the table needs that right."""
        connection = await psycopg.AsyncConnection.connect(
            self._url, autocommit=True, connect_timeout=CONNECT_SECONDS, client_encoding="utf8"
        )
        try:
            row = await (await connection.execute("SELECT to_regclass(%s)::text", (TABLE,))).fetchone()
            if row == (None,):
                await connection.execute(CREATE_TABLE)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def close(self) -> None:
        """Closes the connection once no caller uses it."""
        async with self._lock:
            await self._close()

    async def _close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.close()
