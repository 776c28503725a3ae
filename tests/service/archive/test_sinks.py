"""Every sink of the archive, on real servers; and the files, tables and objects that are documented."""

import asyncio
import base64
import contextlib
import fcntl
import gzip
import json
import os
import sqlite3
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import obstore
import pytest

from engine.record_text import parse_record
from service.errors import StoredFormatUnknown
from service.model.record import OperatorData, PlayerRef
from service.operator.archive import file_index, file_sink, postgresql_sink
from service.operator.archive.archived_game import (
    ArchivedGame,
    LineHead,
    collect,
    deletion_line,
    from_line,
    head_of_line,
    player_digest,
    to_line,
)
from service.operator.archive.file_sink import FileSink
from service.operator.archive.open_sink import open_sink
from service.operator.archive.postgresql_sink import CREATE_TABLE, PostgresqlSink
from service.operator.archive.s3_sink import S3Sink
from service.operator.archive.sink import Sink, SinkUnavailable, WriteResult
from service.settings import SettingsError
from service.storage.memory import MemoryStore
from support.archives import Database, ObjectStorage, store_game
from support.harness import HISTORY, START_MS, FakeClock

pytestmark = pytest.mark.slow

DAY = 86_400


async def archived(until: int | None = None, seed: int = 40) -> ArchivedGame:
    """Returns a random game, whole or up to a revision, as it is archived."""
    store = MemoryStore(HISTORY, FakeClock())
    return await collect(store, (await store_game(store, seed, until=until)).record)


def with_players(game: ArchivedGame, *refs: str) -> ArchivedGame:
    """Returns a game whose people have references."""
    player_refs = tuple(PlayerRef(seat, seat, ref) for seat, ref in enumerate(refs, 1))
    return replace(game, record=replace(game.record, operator_data=OperatorData(player_refs=player_refs)))


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
    for length in range(5, 15):
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


# Files


def lines_in(folder: Path) -> dict[str, list[bytes]]:
    """Returns the lines of all files, by name in order."""
    return {path.name: path.read_bytes().splitlines(keepends=True) for path in sorted(folder.glob("*.jsonl"))}


def reverse_lines(folder: Path) -> None:
    """Turns round the order of the lines of the only file."""
    [file] = folder.glob("*.jsonl")
    file.write_bytes(b"".join(reversed(file.read_bytes().splitlines(keepends=True))))


def remove_lines(folder: Path) -> None:
    """Removes the only file of lines."""
    [file] = folder.glob("*.jsonl")
    file.unlink()


def blank_lines(folder: Path) -> None:
    """Overwrites the only file with spaces, as if a backup had an older index than the files."""
    [file] = folder.glob("*.jsonl")
    file.write_bytes(b" " * len(file.read_bytes()))


def all_bytes(folder: Path) -> bytes:
    """Returns the contents of all files, also of the index."""
    return b"".join(path.read_bytes() for path in folder.iterdir())


def blank(line: bytes) -> bytes:
    """Returns what a line is after it was replaced."""
    return b" " * (len(line) - 1) + b"\n"


async def test_a_file_has_a_line_for_each_game(tmp_path: Path) -> None:
    games = [await archived(), await archived(until=30)]
    sink = open_sink(f"file://{tmp_path}/arch%20ive/games")
    folder = tmp_path / "arch ive" / "games"
    assert lines_in(folder) == {}
    for game in games:
        await sink.write(game)
        [lines] = lines_in(folder).values()
        assert from_line(lines[-1]) == game
    await sink.close()
    [lines] = lines_in(folder).values()
    assert len(lines) == 2
    values = json.loads(lines[0])
    assert set(values) == {
        "format",
        "game_id",
        "created_ms",
        "updated_ms",
        "revision",
        "etag",
        "players",
        "record",
        "history",
    }
    assert gzip.decompress(base64.b64decode(values["record"])).decode() == games[0].text
    assert parse_record(games[0].text).winners


async def test_a_line_that_is_replaced_or_deleted_is_blank(tmp_path: Path) -> None:
    """Also if another process wrote it; what is not a game's stays as it is."""
    whole = with_players(await archived(until=30), "ann")
    without, game_id = with_players(whole), whole.record.game_id
    first, second = FileSink(tmp_path), FileSink(tmp_path)
    await first.write(whole)
    other = await archived(until=20)
    await first.write(other)
    await second.write(without)
    blanked, *rest = (line for lines in lines_in(tmp_path).values() for line in lines if line != to_line(without))
    assert (blanked, rest) == (blank(to_line(whole)), [to_line(other)])
    assert await first.delete(game_id)
    lines = [line for lines in lines_in(tmp_path).values() for line in lines]
    assert sorted(lines) == sorted(
        [blank(to_line(whole)), blank(to_line(without)), to_line(other), deletion_line(game_id)]
    )
    assert ANN.encode() not in all_bytes(tmp_path)
    await first.close()
    await second.close()


async def test_a_line_that_a_killed_process_has_not_blanked_is_blanked_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game, other = with_players(await archived(until=30), "ann"), await archived(until=20)
    dying, sink = FileSink(tmp_path), FileSink(tmp_path)
    await dying.write(game)
    with monkeypatch.context() as killed:
        killed.setattr(FileSink, "_blank_unused", lambda _: {})
        await dying.write(with_players(game))
    assert ANN.encode() in all_bytes(tmp_path)
    await sink.write(other)
    assert ANN.encode() not in all_bytes(tmp_path)
    assert await sink.read(game.record.game_id) == with_players(game)
    await dying.close()
    await sink.close()


FAILURE = OSError(5, "Input/output error")


def writes_half(file: int, data: bytes) -> None:
    """Fails as a full disk does, or a process that is killed."""
    os.write(file, data[: len(data) // 2])
    raise FAILURE


@pytest.mark.parametrize("step", ["the reservation", "half of the line", "the index", "the blanking"])
async def test_a_write_that_fails_halfway_leaves_nothing_that_a_removal_misses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The process that fails does nothing more; another one writes the game and removes the player."""
    game = with_players(await archived(until=30), "ann")
    dying, sink = FileSink(tmp_path), FileSink(tmp_path)
    with monkeypatch.context() as failing:
        match step:
            case "the reservation":
                failing.setattr(file_index.FileIndex, "reserve", raises(FAILURE))
            case "half of the line":
                failing.setattr(file_sink, "_write_all", writes_half)
                failing.setattr(os, "ftruncate", raises(FAILURE))
            case "the index":
                failing.setattr(file_index.FileIndex, "put", raises(FAILURE))
            case _:
                failing.setattr(FileSink, "_blank_unused", raises(FAILURE))
        with pytest.raises(SinkUnavailable, match="Input/output error"):
            await dying.write(game)
    assert await sink.write(game) is WriteResult.WRITTEN
    assert await sink.read(game.record.game_id) == game
    assert await sink.write(with_players(game)) is WriteResult.WRITTEN
    assert ANN.encode() not in all_bytes(tmp_path)
    written = [line for lines in lines_in(tmp_path).values() for line in lines if not line.isspace()]
    assert written == [to_line(with_players(game))]
    await dying.close()
    await sink.close()


async def test_a_line_that_cannot_be_blanked_fails_only_the_removal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is blanked as soon as that is possible."""
    whole, other = await archived(until=30), await archived(until=20)
    game, game_id = with_players(whole, "ann"), whole.record.game_id
    sink = FileSink(tmp_path)
    await sink.write(game)
    with monkeypatch.context() as read_only:
        read_only.setattr(file_sink._LineFiles, "blank", raises(PermissionError(13, "Permission denied")))  # noqa: SLF001 - the disk is no server
        for removal in (sink.write(whole), sink.delete(game_id)):
            with pytest.raises(SinkUnavailable, match="Permission denied"):
                await removal
        assert await sink.write(other) is WriteResult.WRITTEN
    assert to_line(game) in all_bytes(tmp_path)
    assert await sink.delete(game_id)
    assert not await sink.delete(game_id)
    assert to_line(game) not in all_bytes(tmp_path)
    assert await sink.read(other.record.game_id) == other
    await sink.close()


async def test_a_game_that_is_archived_again_unchanged_is_not_written_again(tmp_path: Path) -> None:
    game, sink = await archived(), FileSink(tmp_path)
    for _ in range(3):
        assert await sink.write(game) is WriteResult.WRITTEN
    assert [*lines_in(tmp_path).values()] == [[to_line(game)]]
    await sink.close()


@contextlib.contextmanager
def lock_of(folder: Path) -> Iterator[None]:
    """Locks a folder as another process does."""
    with (folder / "lock").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def raises(error: Exception) -> Callable[..., object]:
    """Returns a function that raises an error."""

    def raising(*_: object, **__: object) -> object:
        raise error

    return raising


def test_a_deletion_is_a_line() -> None:
    line = deletion_line("0" * 32)
    assert json.loads(line) == {"format": 1, "game_id": "0" * 32, "deleted": True}
    assert head_of_line(line) is None
    with pytest.raises(StoredFormatUnknown):
        from_line(line)


async def test_the_head_of_a_line_has_its_players() -> None:
    game = with_players(await archived(until=30), "ann")
    assert game.head == LineHead(game.record.created_ms, game.record.game.revision, frozenset({ANN}))
    assert head_of_line(to_line(game)) == game.head


async def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "games")
    await sink.write(await archived(until=5))
    await sink.close()
    files = sorted((tmp_path / "games").iterdir())
    assert [file.name for file in files[1:]] == ["index.sqlite3", "lock"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "games").stat().st_mode) == 0o700


async def test_a_game_whose_file_was_moved_is_not_found(tmp_path: Path) -> None:
    """It is written again if a server asks for it, and the other games stay."""
    game, other = await archived(), await archived(until=20)
    sink = FileSink(tmp_path / "games")
    await sink.write(game)
    [file] = (tmp_path / "games").glob("*.jsonl")
    file.rename(tmp_path / file.name)
    await sink.close()
    sink = FileSink(tmp_path / "games")
    assert await sink.read(game.record.game_id) is None
    for one in (other, game):
        assert await sink.write(one) is WriteResult.WRITTEN
    assert (await sink.read(game.record.game_id), await sink.read(other.record.game_id)) == (game, other)
    await sink.close()


async def test_a_player_is_forgotten_in_a_game_whose_file_was_moved(tmp_path: Path) -> None:
    game = with_players(await archived(), "ann")
    sink = FileSink(tmp_path)
    await sink.write(game)
    remove_lines(tmp_path)
    assert await sink.games_of(ANN) == [game.record.game_id]
    await sink.unlist(ANN, game.record.game_id)
    assert await sink.games_of(ANN) == []
    assert await sink.write(game) is WriteResult.FORGOTTEN
    assert ANN.encode() not in all_bytes(tmp_path)
    await sink.close()


async def test_a_file_that_was_edited_gives_away_no_other_game(tmp_path: Path) -> None:
    games = [await archived(until=30, seed=seed) for seed in (40, 41)]
    sink = FileSink(tmp_path)
    for game in games:
        await sink.write(game)
    for spoil in (reverse_lines, blank_lines):
        spoil(tmp_path)
        for game in games:
            with pytest.raises(StoredFormatUnknown):
                await sink.read(game.record.game_id)
    await sink.close()


async def test_a_folder_whose_index_is_in_use_or_damaged_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (file_index, file_sink):
        monkeypatch.setattr(module, "BUSY_SECONDS", 0.1)
    game, sink = await archived(), FileSink(tmp_path)
    await sink.write(game)
    with contextlib.closing(sqlite3.connect(tmp_path / file_index.NAME, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for call in (sink.write(game), sink.read(game.record.game_id), sink.games_of(ANN)):
            with pytest.raises(SinkUnavailable, match="database is locked"):
                await call
    with lock_of(tmp_path), pytest.raises(SinkUnavailable, match="another process has locked it"):
        await sink.write(game)
    assert await sink.read(game.record.game_id) == game
    await sink.close()
    (tmp_path / file_index.NAME).write_bytes(b"no database" * 1000)
    with pytest.raises(SettingsError, match=r"ARCHIVE_URL: the folder's index cannot be used .*file is not a database"):
        open_sink(f"file://{tmp_path}")


async def test_a_new_file_begins_with_the_day_and_when_the_old_one_is_full(tmp_path: Path) -> None:
    games = [await archived(seed=seed, until=30) for seed in range(7)]
    now = START_MS / 1000
    sink = FileSink(tmp_path, bytes_max=int(2.5 * max(len(to_line(game)) for game in games)), clock=lambda: now)
    for game, seconds in zip(games, (0, 1, 2, 3, 4, DAY, DAY + 1), strict=True):
        now = START_MS / 1000 + seconds
        await sink.write(game)
    await sink.close()
    files = lines_in(tmp_path)
    assert [len(lines) for lines in files.values()] == [2, 2, 1, 2]
    assert [line for lines in files.values() for line in lines] == list(map(to_line, games))
    assert [name[:16] for name in files] == ["games-2027-01-15"] * 3 + ["games-2027-01-16"]


async def test_processes_on_one_machine_write_files_of_their_own(tmp_path: Path) -> None:
    games = [[await archived(until=10 * number + length) for length in range(1, 11)] for number in range(3)]
    sinks = [FileSink(tmp_path) for _ in games]
    await asyncio.gather(*(sink.write(game) for sink, part in zip(sinks, games, strict=True) for game in part))
    assert sorted(map(sorted, lines_in(tmp_path).values())) == sorted(sorted(map(to_line, part)) for part in games)
    for part in games:
        assert [await sinks[0].read(game.record.game_id) for game in part] == part
    await asyncio.gather(*(sink.close() for sink in sinks))


async def test_a_line_is_on_disk_before_the_index_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths, indexed, fsync = list[int](), list[bool](), os.fsync

    def observed(file: int) -> None:
        lengths.append(os.fstat(file).st_size)
        indexed.append(index.place_of(game.record.game_id) is not None)
        fsync(file)

    game, sink, index = await archived(), FileSink(tmp_path), file_index.FileIndex(tmp_path)
    monkeypatch.setattr(os, "fsync", observed)
    await sink.write(game)
    assert lengths[-1] == len(to_line(game))
    assert indexed == [False, False], "the folder has a new name, the file a line; SQLite has its own calls"
    assert index.place_of(game.record.game_id)
    index.close()
    await sink.close()


async def test_after_a_failed_write_no_part_of_a_line_remains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    game, other, sink = await archived(), await archived(until=20), FileSink(tmp_path)
    await sink.write(game)
    write, is_full = os.write, True

    def writes_a_part(file: int, data: memoryview) -> int:
        if is_full and len(data) < 100:
            raise OSError(28, "No space left on device")
        return write(file, data[: max(1, len(data) // 2)])

    monkeypatch.setattr(os, "write", writes_a_part)
    with pytest.raises(SinkUnavailable, match="No space left on device"):
        await sink.write(other)
    assert (await sink.read(game.record.game_id), await sink.read(other.record.game_id)) == (game, None)
    is_full = False
    await sink.write(other)
    await sink.close()
    assert list(lines_in(tmp_path).values()) == [[to_line(game)], [to_line(other)]]


# URLs


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("file:///proc/none/such", "the folder cannot be used (No such file or directory)"),
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
