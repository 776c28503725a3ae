"""`rummikub-admin backup` and `restore`: a store that is lost comes back in any other, whatever program holds it."""

import asyncio
import base64
import io
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import orjson
import pytest

from rummikub.v1 import game_pb2
from rummikub.v1 import turn_service_pb2 as ts
from service.model.record import GameState, OperatorData, PlayerRef
from service.operator.backup import BackupError, backup, restore
from service.operator.content import BATCH
from service.operator.forgetting import forget_in_game
from service.operator.migration import migrate
from service.storage.embedded import EmbeddedStore
from service.storage.redis.deployment import HALF_MOVED, find_move
from service.storage.redis.keys import SECRET, UNFINISHED, deadlines_key, keys_of, outbox_key
from support.commits import GAME, creation, joining, put_everywhere
from support.grpc_play import Fleet, history, play_game
from support.harness import ROOT, new_id, redis_store, running_redis, running_server, server_settings
from tools.redis_cluster import RedisCluster
from tools.redis_servers import RedisServer, valkey_program

pytestmark = pytest.mark.slow

GAMES = 4


@pytest.fixture
def source() -> Iterator[RedisServer]:
    """Runs the Redis that is saved."""
    with running_redis() as server:
        yield server


@pytest.fixture
def other() -> Iterator[RedisServer]:
    """Runs an empty Redis."""
    with running_redis() as server:
        yield server


@contextmanager
def running(program: str) -> Iterator[RedisServer]:
    """Runs a server of a program."""
    with closing(RedisServer(program=program)) as server:
        server.start()
        yield server


def silent(_: str) -> None:
    """Reports nothing."""


async def saved_lines(url: str) -> list[bytes]:
    """Returns the lines of a backup."""
    written = io.BytesIO()
    await backup(url, written.write, silent)
    return written.getvalue().splitlines(keepends=True)


def admin(*arguments: str | Path, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Runs rummikub-admin in a process of its own."""
    command = [sys.executable, "-c", "from service.admin_program.program import main; main()", *arguments]
    return subprocess.run(command, cwd=ROOT, input=given, capture_output=True, timeout=60, check=False)


async def test_games_go_on_after_their_store_was_lost_under_load(source: RedisServer, embedded: EmbeddedStore) -> None:
    old, new = redis_store(source.url), redis_store(embedded.url)
    settings = server_settings(sweep_seconds=3_600)
    async with running_server(old, settings) as (_, before), running_server(new, settings) as (_, after):
        games = [await before.new_game(players=2 + number % 3) for number in range(GAMES)]
        fleet = Fleet([before], random.Random(1))
        playing = [asyncio.create_task(play_game(fleet, game, random.Random(n))) for n, game in enumerate(games)]
        await fleet.has_taken(GAMES * 3)
        began = [len(await history(before, game)) for game in games]
        lines = await saved_lines(source.url)
        await fleet.has_taken(fleet.turns + GAMES)
        for task in playing:
            task.cancel()
        lost = [await history(before, game) for game in games]
        assert (await restore(lines, embedded.url, silent)).games == GAMES
        for game, changes, least in zip(games, lost, began, strict=True):
            back = await history(after, game)
            assert least <= len(back) <= len(changes)
            assert back == changes[: len(back)]
            at_hand = replace(game, client=after, etags={})
            seen = await at_hand.see()
            request = ts.PlayTurnRequest(game_id=game.game_id, etag=seen.etag, request_id=new_id(), draw=ts.DrawTile())
            answer = await after.turns.PlayTurn(request, metadata=game.as_seat(seen.turn.seat))
            assert await after.turns.PlayTurn(request, metadata=game.as_seat(seen.turn.seat)) == answer
            assert answer.game.state != game_pb2.GAME_STATE_LOBBY
    for store in (old, new):
        await store.close()


async def test_lists_deadlines_outbox_names_and_players_come_back(source: RedisServer, cluster: RedisCluster) -> None:
    cluster.empty()
    old, new = redis_store(source.url), redis_store(cluster.url)
    secret = await old.secret()
    ids = [f"{number:032x}" for number in range(2 * BATCH)]
    await put_everywhere(old, ids)
    source.execute("ZREM", deadlines_key("rummikub:"), ids[3])  # as if it had been created meanwhile
    one = creation(ids[0]).record
    await old.lists.note_players(replace(one, operator_data=OperatorData(player_refs=(PlayerRef(1, 1, "ada"),))))
    lifetime = source.execute("PTTL", keys_of(ids[0])[0])
    await restore(await saved_lines(source.url), cluster.url, silent)
    assert (await new.lists.count())[GameState.LOBBY] == len(ids)
    records = (await new.lists.page([GameState.LOBBY], "", 500)).games
    assert sorted(record.game_id for record in records) == ids
    assert sorted([due.game_id for _ in range(4) for due in await new.deadlines.claim(50)]) == ids
    assert await new.names.find(f"code:{ids[7]}") == ids[7]
    assert await new.lists.games_of("", "ada") == [ids[0]]
    assert sorted(entry.game_id for entry in await new.outbox.claim(len(ids) + 1, 10_000)) == ids
    assert await new.secret() == secret
    [left] = {node.execute("PTTL", keys_of(ids[0])[0]) for node in cluster.nodes if _has(node, keys_of(ids[0])[0])}
    assert 0 < left <= lifetime
    for store in (old, new):
        await store.close()


async def test_a_player_who_was_forgotten_before_a_backup_stays_forgotten(
    source: RedisServer, other: RedisServer
) -> None:
    old, new = redis_store(source.url), redis_store(other.url)
    await old.games.commit(creation())
    joined = joining(creation().record, "Annabella")
    refs = OperatorData(player_refs=(PlayerRef(joined.record.game.revision, 1, "reference"),))
    await old.games.commit(replace(joined, record=replace(joined.record, operator_data=refs)))
    assert await forget_in_game(old, GAME, "reference")
    await restore(await saved_lines(source.url), other.url, silent)
    record = (await new.games.load(GAME)).record
    assert record
    assert [player.name for player in record.game.players] == ["Player 1"]
    assert not record.operator_data.player_refs
    for store in (old, new):
        await store.close()


def _has(node: RedisServer, key: str) -> bool:
    return key.encode() in node.execute("KEYS", "rummikub:{*")


@pytest.mark.parametrize("direction", ["embedded to Redis", "Redis to embedded"])
async def test_games_move_between_programs_that_cannot_read_each_others_dumps(direction: str) -> None:
    debian = shutil.which("redis-server")
    if not debian:
        assert not os.environ.get("CI"), "redis-server is not installed"
        pytest.skip("redis-server is not installed; run: apt-get install redis-server")
    with running(valkey_program()) as valkey, running(debian) as redis:
        here, there = (valkey, redis) if direction == "embedded to Redis" else (redis, valkey)
        old, new = redis_store(here.url), redis_store(there.url)
        await old.games.commit(creation())
        assert (await migrate(here.url, there.url, silent)).games == 1
        assert (await new.games.load(GAME)).record == creation().record
        for store in (old, new):
            await store.close()


def changed(lines: list[bytes], sort: str) -> list[bytes]:
    """Returns a backup that is not as it was made."""
    match sort:
        case "cut off":
            return lines[:-1]
        case "cut off in a line":
            return [*lines[:-1], lines[-1][:-3]]
        case "lacks a line":
            return [line for line in lines if b"}:game" not in line]
        case "damaged":
            return [lines[0], b"{no\n", *lines[1:]]
        case "newer":
            return [json.dumps({"rummikub_backup": 99}).encode() + b"\n", *lines[1:]]
        case _:
            return [b"hello\n"]


@pytest.mark.parametrize(
    ("sort", "error"),
    [
        ("cut off", "cut off after 1 games"),
        ("cut off in a line", "cut off after 1 games"),
        ("lacks a line", "lacks lines"),
        ("damaged", "line 2 is damaged"),
        ("newer", "has form 99 and this version reads form 1"),
        ("other", "damaged"),
    ],
)
async def test_no_server_uses_what_a_bad_backup_has_left(
    source: RedisServer, other: RedisServer, sort: str, error: str
) -> None:
    old, new = redis_store(source.url), redis_store(other.url)
    await old.games.commit(creation())
    lines = await saved_lines(source.url)
    with pytest.raises(BackupError, match=error):
        await restore(changed(lines, sort), other.url, silent)
    if other.execute("EXISTS", UNFINISHED):
        with pytest.raises(BackupError, match="lacks games"):
            await saved_lines(other.url)
        assert await find_move(partial(asyncio.to_thread, other.execute, "GET")) == HALF_MOVED
    assert (await restore(lines, other.url, silent)).games == 1
    assert (await new.games.load(GAME)).record == creation().record
    for store in (old, new):
        await store.close()


async def test_a_store_with_games_is_not_overwritten(source: RedisServer, other: RedisServer) -> None:
    old, new = redis_store(source.url), redis_store(other.url)
    await old.games.commit(creation())
    await new.games.commit(creation("f" * 32))
    with pytest.raises(BackupError, match="has games already"):
        await restore(await saved_lines(source.url), other.url, silent)
    assert (await new.games.load("f" * 32)).record == creation("f" * 32).record
    for store in (old, new):
        await store.close()


async def test_the_commands_save_the_folder_of_a_running_store_and_restore_into_one_that_rests(
    embedded: EmbeddedStore, tmp_path: Path
) -> None:
    old = redis_store(embedded.url)
    await old.games.commit(creation())
    file, empty = tmp_path / "games.backup", tmp_path / "empty"
    empty.mkdir()
    saved = await asyncio.to_thread(admin, "backup", "--from", tmp_path / "data", "--to", file)
    assert (saved.returncode, saved.stderr.startswith(b"1 games in")) == (0, True), saved.stderr
    assert file.stat().st_mode & 0o077 == 0
    again = await asyncio.to_thread(admin, "backup", "--from", tmp_path / "data", "--to", file)
    assert b"exists: give another name" in again.stderr
    piped = await asyncio.to_thread(admin, "backup", "--from", embedded.url)
    restored = await asyncio.to_thread(admin, "restore", "--to", empty, given=piped.stdout)
    assert (restored.returncode, restored.stdout.startswith(b"1 games in")) == (0, True), restored.stderr
    await old.close()
    store = EmbeddedStore(empty)
    await store.start()
    new = redis_store(store.url)
    assert (await new.games.load(GAME)).record == creation().record
    await new.close()
    await store.stop()


MANY = BATCH
"""Games, so that a restore writes several batches of keys."""


async def stored_games(server: RedisServer) -> None:
    """Stores MANY games."""
    store = redis_store(server.url)
    for number in range(MANY):
        await store.games.commit(creation(f"{number:032x}"))
    await store.close()


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.93, 0.99])
async def test_an_interrupted_backup_goes_on_after_its_last_whole_game(
    source: RedisServer, other: RedisServer, tmp_path: Path, share: float
) -> None:
    await stored_games(source)
    file, cut = tmp_path / "games.backup", tmp_path / "games.backup.partial"
    lines = await saved_lines(source.url)
    whole = b"".join(lines)
    cut.write_bytes(whole[: max(len(lines[0]), round(share * len(whole)))])
    store = redis_store(source.url)
    await store.games.commit(creation("f" * 32))  # meanwhile
    resumed = await asyncio.to_thread(admin, "backup", "--from", source.url, "--to", file, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert f"{MANY + 1} games in".encode() in resumed.stderr
    assert not cut.exists()
    with file.open("rb") as backed_up:
        assert (await restore(backed_up, other.url, silent)).games == MANY + 1
    back = redis_store(other.url)
    for game in (*(f"{number:032x}" for number in range(MANY)), "f" * 32):
        assert (await back.games.load(game)).record == creation(game).record
    for one in (store, back):
        await one.close()


async def test_only_an_interrupted_backup_of_the_same_store_is_continued(
    source: RedisServer, other: RedisServer, tmp_path: Path
) -> None:
    for server in (source, other):
        await stored_games(server)
        server.execute("SET", SECRET, server.url)
    file, cut = tmp_path / "games.backup", tmp_path / "games.backup.partial"
    for arguments, error in (((), b"--resume goes on with a file"), (("--to", file), b"does not exist: begin without")):
        refused = await asyncio.to_thread(admin, "backup", "--from", source.url, *arguments, "--resume")
        assert (refused.returncode, error in refused.stderr) == (1, True), refused.stderr
    half = b"".join(await saved_lines(other.url))[:-2_000]
    for content, error in ((half, b"of another store"), (b"{}\n", b"no backup")):
        cut.write_bytes(content)
        refused = await asyncio.to_thread(admin, "backup", "--from", source.url, "--to", file, "--resume")
        assert (refused.returncode, error in refused.stderr) == (1, True), refused.stderr


class InputError(Exception):
    """The restore's input has failed."""


def until_interrupted(lines: list[bytes], after: int) -> Iterator[bytes]:
    """Yields some lines, then fails."""
    yield from lines[:after]
    raise InputError


async def test_an_interrupted_restore_goes_on_and_doubles_nothing(source: RedisServer, other: RedisServer) -> None:
    await stored_games(source)
    lines = await saved_lines(source.url)
    outbox = lines.pop()
    game = base64.b64encode(b"0" * 32).decode()
    lines += [orjson.dumps({"outbox": [base64.b64encode(b"game").decode(), game]}) + b"\n", outbox]
    for after in (len(lines) // 2, len(lines) - 1):
        with pytest.raises(InputError):
            await restore(until_interrupted(lines, after), other.url, silent)
    said: list[str] = []
    assert (await restore(lines, other.url, said.append)).games == MANY
    assert said[0].startswith("going on after ")
    assert int(said[0].split()[3]) >= BATCH
    back = redis_store(other.url)
    for number in range(MANY):
        assert (await back.games.load(f"{number:032x}")).record == creation(f"{number:032x}").record
    assert other.execute("XLEN", outbox_key("rummikub:")) == 1
    await back.close()


async def test_an_interrupted_restore_does_not_go_on_with_another_backup(
    source: RedisServer, other: RedisServer
) -> None:
    await stored_games(source)
    lines = await saved_lines(source.url)
    for another in ([lines[0], *lines[2:]], [lines[0], lines[-1]]):
        with pytest.raises(InputError):
            await restore(until_interrupted(lines, len(lines) - 1), other.url, silent)
        with pytest.raises(BackupError, match="another backup was interrupted here"):
            await restore(another, other.url, silent)
    said: list[str] = []
    assert (await restore(lines, other.url, said.append)).games == MANY
    assert said[0].startswith("deleting")
