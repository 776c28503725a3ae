"""Every sink of the archive, on real servers; and the tables and objects that are documented."""

import asyncio
import contextlib
import json
import sqlite3
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import obstore
import pytest

from service.admin_program.command import AdminError
from service.admin_program.program import parsed
from service.errors import StoredFormatUnknown
from service.model.record import OperatorData, PlayerRef
from service.operator.archive import postgresql_sink, sqlite_sink
from service.operator.archive.archived_game import (
    ArchivedGame,
    Head,
    collect,
    deletion_line,
    from_line,
    head_of_line,
    player_digest,
    to_line,
)
from service.operator.archive.open_sink import open_sink
from service.operator.archive.postgresql_sink import CREATE_TABLE, PostgresqlSink
from service.operator.archive.s3_sink import S3Sink
from service.operator.archive.sink import Sink, SinkUnavailable, WriteResult
from service.operator.archive.sqlite_sink import SqliteSink
from service.settings import SettingsError
from service.storage.memory import MemoryStore
from support.archives import Database, ObjectStorage, store_game
from support.harness import HISTORY, FakeClock

pytestmark = pytest.mark.slow


async def archived(until: int | None = None, seed: int = 40) -> ArchivedGame:
    """Returns a random game, whole or up to a revision, as it is archived."""
    store = MemoryStore(HISTORY, FakeClock())
    return await collect(store, (await store_game(store, seed, until=until)).record)


def with_players(game: ArchivedGame, *refs: str) -> ArchivedGame:
    """Returns a game whose people have references."""
    player_refs = tuple(PlayerRef(seat, seat, ref) for seat, ref in enumerate(refs, 1))
    return replace(game, record=replace(game.record, operator_data=OperatorData(player_refs=player_refs)))


FAR_MS = 4_000_000_000_000
"""A time after all games."""
ANN, BOB = player_digest("ann"), player_digest("Bøb / %")


@pytest.fixture
async def sink(archive_url: str) -> AsyncIterator[Sink]:
    opened = open_sink(archive_url)
    yield opened
    await opened.close()


# All sinks


async def test_a_game_is_read_as_it_was_written(sink: Sink) -> None:
    game, other = await archived(), await archived(until=30)
    assert await sink.read("0" * 32) is None
    await asyncio.gather(sink.write(game), sink.write(other))
    assert await sink.read(game.record.game_id) == game
    assert await sink.read(other.record.game_id) == other


async def test_a_game_that_is_written_again_replaces_the_first(archive_url: str, sink: Sink) -> None:
    store = MemoryStore(HISTORY, FakeClock())
    stored = await store_game(store)
    whole = await collect(store, stored.record)
    before = ArchivedGame(stored.records[-2], whole.changes[:-1], whole.etags[:-1], whole.text)
    another = open_sink(archive_url)  # of another server
    for game in (before, before, whole, whole):
        assert await another.write(game) is WriteResult.WRITTEN
        assert await sink.read(stored.game_id) == game
    assert await another.write(before) is WriteResult.LATER
    assert await sink.read(stored.game_id) == whole
    await another.close()


async def test_another_game_of_the_same_id_does_not_replace_the_first(sink: Sink) -> None:
    first = with_players(await archived(), "ann")
    for created_ms in (first.record.created_ms + 1, first.record.created_ms - 1):
        another = replace(first, record=replace(first.record, created_ms=created_ms))
        assert await sink.write(first) is WriteResult.WRITTEN
        assert await sink.write(another) is WriteResult.ANOTHER
        assert await sink.write(with_players(another, "Bøb / %")) is WriteResult.ANOTHER
    assert await sink.read(first.record.game_id) == first
    assert (await sink.games_of(ANN), await sink.games_of(BOB)) == ([first.record.game_id], [])


async def test_a_sink_that_is_down_is_unavailable_and_comes_back(archive_server: ObjectStorage | Database) -> None:
    game, other = await archived(), await archived(until=20)
    sink = open_sink(archive_server.url)
    await sink.write(game)
    archive_server.stop()
    for _ in range(2):
        for call in (
            sink.write(other),
            sink.read(game.record.game_id),
            sink.delete(game.record.game_id),
            sink.games_of(ANN),
        ):
            with pytest.raises(SinkUnavailable):
                await call
    archive_server.start()
    assert await sink.read(game.record.game_id) == game
    await sink.write(other)
    assert await sink.read(other.record.game_id) == other
    await sink.close()


async def test_a_cancelled_call_leaves_the_sink_usable(sink: Sink) -> None:
    game = await archived()
    for _ in range(5):
        writing = asyncio.create_task(sink.write(game))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
    await sink.write(game)
    assert await sink.read(game.record.game_id) == game


# Removals


async def test_a_deleted_game_is_gone_for_good(archive_url: str, sink: Sink) -> None:
    game, other = with_players(await archived(), "ann"), with_players(await archived(until=20), "ann")
    game_id = game.record.game_id
    assert await sink.write(game) is WriteResult.WRITTEN
    assert await sink.write(other) is WriteResult.WRITTEN
    assert await sink.delete(game_id)
    late = open_sink(archive_url)  # of a server that read the game before
    for _ in range(2):
        assert await late.write(game) is WriteResult.DELETED
        assert await sink.read(game_id) is None
        assert await sink.games_of(ANN) == [other.record.game_id]
    assert not await late.delete(game_id)
    assert await sink.read(other.record.game_id) == other
    await late.close()


async def test_a_game_that_is_deleted_before_it_is_written_is_never_written(sink: Sink) -> None:
    game = await archived()
    assert not await sink.delete(game.record.game_id)
    assert await sink.write(game) is WriteResult.DELETED
    assert await sink.read(game.record.game_id) is None


async def test_old_games_are_pruned_and_marks_of_deletions_stay(sink: Sink) -> None:
    games = [with_players(await archived(until=length), "ann") for length in (20, 21, 22)]
    gone, deleted, renewed = (game.record.game_id for game in games)
    for game in games:
        await sink.write(game)
    await sink.delete(deleted)
    assert await sink.prune(min(game.record.updated_ms for game in games)) == 0
    assert await sink.prune(FAR_MS) == 2
    assert await sink.prune(FAR_MS) == 0
    assert (await sink.read(gone), await sink.games_of(ANN)) == (None, [])
    assert await sink.write(games[1]) is WriteResult.DELETED
    assert await sink.write(games[2]) is WriteResult.WRITTEN
    assert await sink.games_of(ANN) == [renewed]


async def test_the_command_prunes_old_games(
    archive_url: str, sink: Sink, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AdminError, match="set RUMMIKUB_ARCHIVE_URL"):
        await run_admin("prune-archive", "--days", "30")
    monkeypatch.setenv("RUMMIKUB_ARCHIVE_URL", archive_url)
    game = await archived()
    await sink.write(game)
    await run_admin("prune-archive", "--days", "30")
    deleted = 0 if archive_url.startswith("s3") else 1  # the object is new, and the game's last change is years ago
    assert capfd.readouterr().out == f"{deleted} games are deleted\n"
    assert (await sink.read(game.record.game_id) is None) == deleted
    with pytest.raises(SystemExit):
        await run_admin("prune-archive", "--days", "29")


async def run_admin(*arguments: str) -> None:
    """Runs a command of rummikub-admin."""
    chosen = parsed(arguments)
    await chosen.run(chosen)


async def test_games_are_found_by_their_players(sink: Sink) -> None:
    games = [with_players(await archived(until=length), "ann") for length in (20, 21)]
    games.append(with_players(await archived(until=22), "someone", "Bøb / %", "ann", "ann"))
    games.append(await archived(until=23))
    for game in games * 2:
        assert await sink.write(game) is WriteResult.WRITTEN
    assert sorted(await sink.games_of(ANN)) == sorted(game.record.game_id for game in games[:3])
    assert await sink.games_of(BOB) == [games[2].record.game_id]
    assert await sink.games_of(player_digest("an")) == []


async def test_a_player_who_was_forgotten_in_a_game_does_not_come_back(archive_url: str, sink: Sink) -> None:
    whole = await archived()
    game_id, both, ann, bob = (
        whole.record.game_id,
        *(with_players(whole, *r) for r in (("ann", "Bøb / %"), ("ann",), ("Bøb / %",))),
    )
    late = open_sink(archive_url)
    assert await sink.write(both) is WriteResult.WRITTEN
    assert await sink.write(bob) is WriteResult.WRITTEN
    for _ in range(2):
        assert await late.write(both) is WriteResult.FORGOTTEN
        assert await late.write(ann) is WriteResult.FORGOTTEN
        assert await sink.read(game_id) == bob
        assert await sink.games_of(ANN) == []
        assert await sink.games_of(BOB) == [game_id]
    assert await late.write(whole) is WriteResult.WRITTEN
    assert await sink.games_of(BOB) == []
    await late.close()


async def until_done(call: Callable[[], Awaitable[object]]) -> object:
    """Repeats a call until the sink takes it, as a worker and an operator do."""
    while True:
        with contextlib.suppress(SinkUnavailable):
            return await call()


async def test_a_deletion_prevails_over_writes_at_the_same_time(archive_url: str) -> None:
    sinks = [open_sink(archive_url) for _ in range(4)]
    await asyncio.gather(*(sink.read("0" * 32) for sink in sinks), return_exceptions=True)  # creates the table
    for length in range(5, 9):
        game = with_players(await archived(until=length), "ann")
        calls: list[Callable[[], Awaitable[object]]] = [partial(sink.write, game) for sink in sinks[1:]]
        calls.insert(length % 4, partial(sinks[0].delete, game.record.game_id))
        await asyncio.gather(*map(until_done, calls))
        assert await sinks[1].read(game.record.game_id) is None
        assert await sinks[1].games_of(ANN) == []
    await asyncio.gather(*(sink.close() for sink in sinks))


# PostgreSQL


async def test_of_a_deleted_game_only_the_id_remains(database: Database) -> None:
    database.execute("DROP TABLE IF EXISTS rummikub_games")
    game, sink = with_players(await archived(), "ann"), PostgresqlSink(database.url)
    await sink.write(game)
    await sink.delete(game.record.game_id)
    await sink.close()
    [row] = database.execute("SELECT * FROM rummikub_games")
    assert [value for value in row if value is not None] == [game.record.game_id]


async def test_a_row_has_the_record_as_text(database: Database) -> None:
    database.execute("DROP TABLE IF EXISTS rummikub_games")
    game, sink = with_players(await archived(), "ann"), PostgresqlSink(database.url)
    await sink.write(game)
    await sink.close()
    rows = database.execute(
        "SELECT game_id, extract(epoch from created_at) * 1000, extract(epoch from updated_at) * 1000, revision, etag,"
        " players, record FROM rummikub_games"
    )
    record = game.record
    assert rows == [
        (record.game_id, record.created_ms, record.updated_ms, record.game.revision, record.etag, [ANN], game.text)
    ]


async def test_a_table_that_exists_needs_no_right_to_create_one(database: Database) -> None:
    database.execute("DROP TABLE IF EXISTS rummikub_games")
    database.execute("DROP USER IF EXISTS writer")
    database.execute(CREATE_TABLE)
    database.execute("CREATE USER writer PASSWORD 'writer'")
    database.execute("GRANT SELECT, INSERT, UPDATE ON rummikub_games TO writer")
    game = await archived()
    sink = PostgresqlSink(database.url.replace(f"owner:{Database.PASSWORD}", "writer:writer"))
    await sink.write(game)
    assert await sink.read(game.record.game_id) == game
    assert await sink.delete(game.record.game_id)
    await sink.close()
    database.execute("DROP OWNED BY writer")
    database.execute("DROP USER writer")


async def test_servers_that_create_the_table_at_the_same_time_agree(database: Database) -> None:
    database.execute("DROP TABLE IF EXISTS rummikub_games")
    game = await archived()
    sinks = [PostgresqlSink(database.url) for _ in range(8)]
    await asyncio.gather(*(sink.write(game) for sink in sinks), return_exceptions=True)  # a loser is retried
    await asyncio.gather(*(sink.write(game) for sink in sinks))
    await asyncio.gather(*(sink.close() for sink in sinks))
    assert database.execute("SELECT count(*) FROM rummikub_games") == [(1,)]


async def test_a_read_that_hangs_holds_up_no_write_and_keeps_its_connection_when_it_is_cancelled(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.execute("DROP TABLE IF EXISTS rummikub_games")
    game, sink = await archived(), PostgresqlSink(database.url)
    await sink.write(game)
    assert await sink.read(game.record.game_id) == game
    with monkeypatch.context() as hanging:
        hanging.setattr(postgresql_sink, "_READ", "SELECT pg_sleep(600), %s::text")
        reading = asyncio.create_task(sink.read(game.record.game_id))
        async with asyncio.timeout(30):
            while not database.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"):  # noqa: ASYNC110 - no notification
                await asyncio.sleep(0.01)
            await sink.write(game)
            before = connections(database)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
    assert await sink.read(game.record.game_id) == game
    assert connections(database) == before
    assert len(before) == 2
    await sink.close()


def connections(database: Database) -> list[tuple[object, ...]]:
    """Returns the processes of the server that serve sinks."""
    backends = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
    return database.execute(f"{backends} AND pid <> pg_backend_pid() ORDER BY pid")


async def test_a_wrong_password_is_reported_without_it(database: Database) -> None:
    sink = PostgresqlSink(database.url.replace(Database.PASSWORD, "wrong-password"))
    with pytest.raises(SinkUnavailable, match="password authentication failed") as refused:
        await sink.write(await archived())
    assert "wrong-password" not in str(refused.value)


# S3


async def test_an_object_is_the_line_under_the_prefix(storage: ObjectStorage) -> None:
    game = await archived()
    await open_sink(storage.url).write(game)
    bucket = storage.bucket(storage.SECRET)
    found = await obstore.get_async(bucket, f"some/games/{game.record.game_id}.json")
    assert bytes(await found.bytes_async()) == to_line(game)
    assert found.attributes["Content-Type"] == "application/json"


def objects_of(storage: ObjectStorage, game: ArchivedGame) -> dict[str, bytes]:
    """Returns the objects that have a game's id in their name, by name."""
    bucket = storage.bucket(storage.SECRET)
    names = [item["path"] for chunk in obstore.list(bucket) for item in chunk]
    return {name: bytes(obstore.get(bucket, name).bytes()) for name in names if game.record.game_id in name}


async def test_of_a_deleted_game_only_its_deletion_remains(storage: ObjectStorage) -> None:
    game, sink = with_players(await archived(seed=47), "ann", "Bøb / %"), open_sink(storage.url)
    await sink.write(game)
    assert set(objects_of(storage, game)) == {
        f"some/games/{game.record.game_id}.json",
        *(f"some/games/players/{player}/{game.record.game_id}" for player in (ANN, BOB)),
    }
    await sink.delete(game.record.game_id)
    left = {f"some/games/{game.record.game_id}.json": deletion_line(game.record.game_id)}
    assert objects_of(storage, game) == left


async def test_an_object_that_changes_between_read_and_write_is_not_replaced(storage: ObjectStorage) -> None:
    class Overtaken(S3Sink):
        """A sink that another one overtakes after each first read."""

        overtakes: Callable[[], Awaitable[object]] | None = None

        async def _line(self, game_id: str) -> tuple[bytes, str | None]:
            found = await super()._line(game_id)
            if self.overtakes:
                overtakes, self.overtakes = self.overtakes, None
                await overtakes()
            return found

    whole = await archived(until=31)
    game_id, game = whole.record.game_id, with_players(whole, "ann")
    sink, other = Overtaken(storage.url), S3Sink(storage.url)
    sink.overtakes = lambda: other.write(whole)
    assert await sink.write(game) is WriteResult.FORGOTTEN
    assert set(objects_of(storage, game)) == {f"some/games/{game_id}.json"}
    assert await sink.read(game_id) == whole
    sink.overtakes = lambda: other.write(replace(whole, text="another"))
    assert await sink.delete(game_id)
    assert await other.read(game_id) is None
    another = with_players(await archived(until=32), "ann")
    sink.overtakes = lambda: other.delete(another.record.game_id)
    assert await sink.write(another) is WriteResult.DELETED
    assert list(objects_of(storage, another).values()) == [deletion_line(another.record.game_id)]


async def test_a_game_of_another_version_is_neither_read_nor_replaced_but_deleted(storage: ObjectStorage) -> None:
    game, sink = await archived(until=33), open_sink(storage.url)
    name, bucket = f"some/games/{game.record.game_id}.json", storage.bucket(storage.SECRET)
    await obstore.put_async(bucket, name, b'{"format":2}')
    with pytest.raises(StoredFormatUnknown):
        await sink.read(game.record.game_id)
    with pytest.raises(StoredFormatUnknown):
        await sink.write(game)
    assert await sink.delete(game.record.game_id)
    assert list(objects_of(storage, game).values()) == [deletion_line(game.record.game_id)]


async def test_wrong_credentials_are_reported_without_them(
    object_storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", object_storage.KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")
    with pytest.raises(SinkUnavailable) as refused:
        await open_sink(object_storage.url).write(await archived())
    assert not any(secret in str(refused.value) for secret in ("wrong-secret", object_storage.KEY))


# SQLite


def all_bytes(folder: Path) -> bytes:
    """Returns the contents of all files."""
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def test_a_database_has_a_row_for_each_game(tmp_path: Path) -> None:
    games = [with_players(await archived(), "ann"), await archived(until=30)]
    sink = open_sink(f"sqlite://{tmp_path}/arch%20ive/games.sqlite3")
    for game in games:
        await sink.write(game)
    await sink.delete(games[1].record.game_id)
    await sink.close()
    record = games[0].record
    with contextlib.closing(sqlite3.connect(tmp_path / "arch ive" / "games.sqlite3")) as database:
        rows = database.execute("SELECT * FROM games ORDER BY created_ms IS NULL")
        assert [row[:-1] for row in rows] == [
            (record.game_id, record.created_ms, record.updated_ms, record.game.revision, record.etag, games[0].text),
            (games[1].record.game_id, None, None, None, None, None),
        ]
        assert database.execute("SELECT * FROM players").fetchall() == [(record.game_id, ANN)]


async def test_of_what_was_removed_no_byte_remains(tmp_path: Path) -> None:
    game = with_players(await archived(), "ann")
    sink = SqliteSink(tmp_path / "games.sqlite3")
    await sink.write(game)
    assert all(part in all_bytes(tmp_path) for part in (ANN.encode(), game.text.encode()[:200], game.history()[:200]))
    await sink.write(with_players(game))
    assert ANN.encode() not in all_bytes(tmp_path)
    await sink.delete(game.record.game_id)
    assert not any(part in all_bytes(tmp_path) for part in (game.text.encode()[:200], game.history()[:200]))
    await sink.close()


async def test_a_write_that_fails_halfway_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that fails does nothing more; another one writes the game."""
    game, path = with_players(await archived(until=30), "ann"), tmp_path / "games.sqlite3"
    dying, sink = SqliteSink(path), SqliteSink(path)
    await dying.write(game)
    with monkeypatch.context() as failing:
        failing.setattr(sqlite_sink, "_clear", fails_halfway)
        for call in (dying.write(with_players(game)), dying.delete(game.record.game_id)):
            with pytest.raises(SinkUnavailable, match="disk I/O error"):
                await call
    assert await sink.read(game.record.game_id) == game
    assert await sink.games_of(ANN) == [game.record.game_id]
    assert await sink.write(with_players(game)) is WriteResult.WRITTEN
    await dying.close()
    await sink.close()


def fails_halfway(database: sqlite3.Connection, game_id: str) -> None:
    """Deletes the row of a game only, as a disk that fails then."""
    database.execute("DELETE FROM games WHERE game_id = ?", (game_id,))
    raise sqlite3.OperationalError("disk I/O error")


def test_a_deletion_is_a_line() -> None:
    line = deletion_line("0" * 32)
    assert json.loads(line) == {"format": 1, "game_id": "0" * 32, "deleted": True}
    assert head_of_line(line) is None
    with pytest.raises(StoredFormatUnknown):
        from_line(line)


async def test_the_head_of_a_line_has_its_players() -> None:
    game = with_players(await archived(until=30), "ann")
    assert game.head == Head(game.record.created_ms, game.record.game.revision, frozenset({ANN}))
    assert head_of_line(to_line(game)) == game.head


async def test_a_database_is_for_its_owner_only(tmp_path: Path) -> None:
    sink = SqliteSink(tmp_path / "games" / "games.sqlite3")
    await sink.write(await archived(until=5))
    await sink.close()
    [file] = (tmp_path / "games").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "games").stat().st_mode) == 0o700


async def test_a_database_that_is_in_use_or_damaged_is_unavailable(
    tmp_path: Path,
) -> None:
    path = tmp_path / "games.sqlite3"
    game, sink = await archived(), SqliteSink(path, busy_seconds=0.1)
    await sink.write(game)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for call in (sink.write(game), sink.read(game.record.game_id), sink.games_of(ANN)):
            with pytest.raises(SinkUnavailable, match="database is locked"):
                await call
    assert await sink.read(game.record.game_id) == game
    await sink.close()
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(SettingsError, match=r"ARCHIVE_URL: the database cannot be used .*file is not a database"):
        open_sink(f"sqlite://{path}")


# URLs


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("sqlite:///proc/none/such", "the folder cannot be used (No such file or directory)"),
        ("s3://bucket/prefix?endpoint=http://a&colour=red", "expected s3://bucket/prefix?endpoint=URL&region=NAME"),
        ("s3://bucket/prefix?endpoint", "bad query field"),
        ("s3://key:password@bucket", "without user and password"),
        ("s3://bucket?endpoint=http://key:password@host", "without user and password"),
        ("postgresql://user:password@host/%zz", "expected postgresql://user:password@host:port/database"),
        ("postgresql://user:password@host/db?colour=red", "expected postgresql://user:password@host:port/database"),
    ],
)
def test_an_archive_that_cannot_be_is_refused_without_its_password(url: str, problem: str) -> None:
    with pytest.raises(SettingsError) as refused:
        open_sink(url)
    assert str(refused.value).startswith("RUMMIKUB_ARCHIVE_URL: ")
    assert problem in str(refused.value)
    assert "key:password" not in str(refused.value)


@pytest.mark.parametrize("prefix", ["", "/prefix", "/some/games/"])
@pytest.mark.parametrize("options", ["", "?region=eu-west-1", "?endpoint=http://127.0.0.1:1"])
def test_prefix_endpoint_and_region_are_optional(prefix: str, options: str) -> None:
    assert isinstance(open_sink(f"s3://bucket{prefix}{options}"), S3Sink)


def test_a_variable_of_s3_that_is_not_valid_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONDITIONAL_PUT", "sometimes")
    with pytest.raises(SettingsError, match=r'RUMMIKUB_ARCHIVE_URL: .*"sometimes"'):
        open_sink("s3://bucket")


@pytest.mark.parametrize(("url", "library"), [("s3://bucket", "obstore"), ("postgresql://host", "psycopg")])
def test_a_missing_library_is_named_by_its_extra(url: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scheme = url.partition(":")[0]
    monkeypatch.delitem(sys.modules, f"service.operator.archive.{scheme}_sink", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(SettingsError, match=rf"install rummikub-service\[{scheme}\] for {scheme}://"):
        open_sink(url)
