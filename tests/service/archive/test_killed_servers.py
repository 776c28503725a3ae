"""Processes that are killed around the end of a game, and archives that are: each game is in the archive, as played."""

import asyncio
import contextlib
import random
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import grpc.aio
import pytest
import redis

from engine.record_text import parse_record
from rummikub.v1 import game_pb2
from rummikub.v1 import record_service_pb2 as rs
from rummikub.v1 import turn_service_pb2 as ts
from service.codec.fields import encode_etag
from service.operator.archive.archived_game import ArchivedGame, from_history
from service.operator.archive.sqlite_sink import SqliteSink
from service.storage.redis.keys import ONE_PART, outbox_key
from service.storage.redis.outbox import GROUP
from support.archives import Database, ObjectStorage, etag_of
from support.grpc_play import Fleet, play_game
from support.harness import ROOT, Client, GameAtHand, ServerProcess, new_id, server_process

pytestmark = pytest.mark.slow

OUTBOX = outbox_key(ONE_PART[0])

MORTAL = str(ROOT / "tests" / "support" / "mortal_server.py")
PATIENCE_SECONDS = 60.0


def in_file(path: Path) -> list[ArchivedGame]:
    """Returns the games of a database; none if it has no table yet."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        try:
            return [from_history(*row) for row in database.execute("SELECT history, record FROM games")]
        except sqlite3.OperationalError:
            return []


def in_table(database: Database) -> list[ArchivedGame]:
    """Returns the games of the table; none if it does not exist."""
    if database.execute("SELECT to_regclass('rummikub_games')::text") == [(None,)]:
        return []
    return [
        from_history(bytes(history), str(text))  # type: ignore[call-overload]
        for history, text in database.execute("SELECT history, record FROM rummikub_games")
    ]


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110 - other processes send no notification
            await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def mortal_server(environment: Mapping[str, str], moment: str) -> AsyncIterator[ServerProcess]:
    """Runs a server that kills itself at a moment (support/mortal_server.py)."""
    process = ServerProcess(environment, program=(MORTAL, moment))
    await process.start()
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            await process.kill()


@pytest.mark.parametrize(
    ("kind", "moment"),
    [
        *(("sqlite", moment) for moment in ("commit", "archive", "acknowledge")),
        ("postgresql", "archive"),
        *(pytest.param("postgresql", moment, marks=pytest.mark.soak) for moment in ("commit", "acknowledge")),
    ],
)
async def test_a_game_is_archived_whose_server_is_killed(
    request: pytest.FixtureRequest, tmp_path: Path, empty_redis_url: str, kind: str, moment: str
) -> None:
    """The end of the game is requested again at another server, which archives the game."""
    url, games = f"sqlite://{tmp_path}/games.sqlite3", partial(in_file, tmp_path / "games.sqlite3")
    if kind == "postgresql":
        database: Database = request.getfixturevalue("database")
        database.execute("DROP TABLE IF EXISTS rummikub_games")
        url, games = database.url, partial(in_table, database)
    environment = {"RUMMIKUB_REDIS_URL": empty_redis_url, "RUMMIKUB_ARCHIVE_URL": url}
    outbox: redis.Redis = redis.Redis.from_url(empty_redis_url)
    async with (
        mortal_server(environment, moment) as dying,
        grpc.aio.insecure_channel(dying.target) as channel,
    ):
        game = await Client(channel).new_game()
        await game.draw()
        await game.draw()
        resign = ts.ResignGameRequest(game_id=game.game_id, request_id=new_id())
        with contextlib.suppress(grpc.aio.AioRpcError):
            await game.client.turns.ResignGame(resign, metadata=game.as_seat(1))
        assert await dying.ended() == -9
    assert outbox.xlen(OUTBOX) == 1
    assert len(games()) == (moment == "acknowledge")
    async with (
        mortal_server(environment, "never") as survivor,
        grpc.aio.insecure_channel(survivor.target) as channel,
    ):
        client = Client(channel)
        final = (await client.turns.ResignGame(resign, metadata=game.as_seat(1))).game
        assert final.state == game_pb2.GAME_STATE_FINISHED
        await eventually(lambda: not outbox.xlen(OUTBOX))
        found = games()
        assert [found_game.record.game_id for found_game in found] == [game.game_id], "no part of an attempt is left"
        assert {etag_of(found_game.record) for found_game in found} == {final.etag}
        export = rs.ExportGameRequest(game_id=game.game_id, form=rs.RECORD_FORM_TEXT)
        assert {found_game.text for found_game in found} == {(await client.records.ExportGame(export)).text}
        checked = await client.records.ImportRecord(rs.ImportRecordRequest(text=found[0].text))
        assert (checked.is_complete, checked.HasField("fault")) == (True, False)
    outbox.close()


async def test_every_game_of_servers_that_are_killed_at_random_is_archived(
    tmp_path: Path, empty_redis_url: str
) -> None:
    """Players play whole games while one server after the other is killed and started again."""
    environment = {"RUMMIKUB_REDIS_URL": empty_redis_url, "RUMMIKUB_ARCHIVE_URL": f"sqlite://{tmp_path}/games.sqlite3"}
    rng = random.Random(36)
    async with contextlib.AsyncExitStack() as stack:
        servers, clients = [], []
        for _ in range(2):
            server = await stack.enter_async_context(server_process(environment))
            servers.append(server)
            options = [("grpc.max_reconnect_backoff_ms", 200)]
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(server.target, options))
            clients.append(Client(channel))
        fleet = Fleet(clients, rng)
        games = [await clients[number % 2].new_game() for number in range(3)]
        playing = [asyncio.create_task(play_game(fleet, game, rng)) for game in games]
        for number in range(2):
            await asyncio.wait(playing, timeout=rng.uniform(0.3, 0.8))
            await servers[number % 2].kill()
            await servers[number % 2].start_again()
        played = await asyncio.gather(*playing)
        client = redis.Redis.from_url(empty_redis_url)
        await eventually(lambda: not client.xlen(OUTBOX))
        client.close()
    path = tmp_path / "games.sqlite3"
    archived, sink = {game.record.game_id: game for game in in_file(path)}, SqliteSink(path)
    for one in played:
        game = archived[one.game.game_id]
        assert await sink.read(one.game.game_id) == game
        assert (etag_of(game.record), game.record.game.revision) == (one.final.etag, one.final.revision)
        revisions = {at: encode_etag(at, etag) for at, etag in enumerate(game.etags, game.first_revision)}
        assert all(revisions[revision] == etag for revision, etag in one.etags.items())
        assert parse_record(game.text).moves[-1].revision == one.final.revision
    await sink.close()


async def seen_by_all(games: Sequence[GameAtHand]) -> list[game_pb2.Game]:
    """Returns the views of all seats and of spectators, without the time of the answer."""
    views = [await game.see(seat) for game in games for seat in game.tokens]
    for view in views:
        view.ClearField("server_time")
    return views


@pytest.mark.parametrize("kind", ["s3", pytest.param("postgresql", marks=pytest.mark.soak)])
async def test_games_wait_for_an_archive_that_is_down_and_are_read_from_it(
    request: pytest.FixtureRequest, empty_redis_url: str, kind: str
) -> None:
    """The server has two workers. It is killed and started again while the archive is down."""
    place: Database | ObjectStorage = request.getfixturevalue("object_storage" if kind == "s3" else "database")
    environment = {"RUMMIKUB_REDIS_URL": empty_redis_url, "RUMMIKUB_ARCHIVE_URL": place.url, "RUMMIKUB_WORKERS": "2"}
    environment |= place.environment if isinstance(place, ObjectStorage) else {}
    keys: redis.Redis = redis.Redis.from_url(empty_redis_url)
    place.stop()
    async with server_process(environment) as server:
        async with grpc.aio.insecure_channel(server.target) as channel:
            games = [await Client(channel).new_game() for _ in range(5)]
            for game in games:
                await game.draw()
                resign = ts.ResignGameRequest(game_id=game.game_id, request_id=new_id())
                await game.client.turns.ResignGame(resign, metadata=game.as_seat(1))
            before = await seen_by_all(games)
            await eventually(lambda: keys.xpending(OUTBOX, GROUP)["pending"] > 0)
        await server.kill()
        assert keys.xlen(OUTBOX) == len(games)
        place.start()
        await server.start_again()
        async with grpc.aio.insecure_channel(server.target) as channel:
            games = [replace(game, client=Client(channel)) for game in games]
            await eventually(lambda: not keys.xlen(OUTBOX))
            for game in games:
                keys.delete(*keys.scan_iter(f"*{game.game_id}*"))
            assert await seen_by_all(games) == before
            assert await server.terminate() == 0
    keys.close()
