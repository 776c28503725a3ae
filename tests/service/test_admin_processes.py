"""The operator's feed and commands, with servers in other processes on a real Redis."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import grpc.aio
import pytest

from rummikub.admin.v1 import admin_service_pb2 as pb
from rummikub.v1 import game_service_pb2 as gs
from service.admin_program.command import AdminError
from service.admin_program.program import parsed
from support.certificates import client_certificate, self_signed
from support.harness import ROOT, Client, GameAtHand, ServerProcess, new_id, running_redis, server_process
from support.operator import admin_at

pytestmark = pytest.mark.slow

TOKEN = "a-token-of-the-operator-for-tests"  # noqa: S105 - of a server that lives for one test
KILLS = 3


def settings_for(redis_url: str) -> dict[str, str]:
    return {
        "RUMMIKUB_REDIS_URL": redis_url,
        "RUMMIKUB_ADMIN_LISTEN": "127.0.0.1:0",
        "RUMMIKUB_CHANGE_LOG_SECONDS": "600",
        "RUMMIKUB_HEARTBEAT_SECONDS": "0.1",
    }


async def new_game(client: Client, name: str, ref: str = "") -> GameAtHand:
    """Returns a started game of two, the first with a name and a reference."""
    created = await client.games.CreateGame(gs.CreateGameRequest(request_id=new_id()))
    game = GameAtHand(client, created.game.game_id, host_token=created.host_token)
    join = gs.JoinGameRequest(game_id=game.game_id, name=name, player_ref=ref, request_id=new_id())
    answer = await client.games.JoinGame(join, metadata=game.as_host())
    game.tokens[answer.seat] = answer.seat_token
    await game.join("somebody else")
    await game.start()
    return game


async def told_from(server: ServerProcess, cursor: str) -> AsyncIterator[pb.WatchGamesResponse]:
    """Yields the updates of a watch until its server dies."""
    async with admin_at(server.admin_port) as admin:
        try:
            async for update in admin.WatchGames(pb.WatchGamesRequest(cursor=cursor, from_oldest=True)):
                yield update
        except grpc.aio.AioRpcError:
            return


async def play(server: ServerProcess, games: list[str]) -> None:
    """Plays games on a server until it dies."""
    async with grpc.aio.insecure_channel(server.target) as channel:
        try:
            while True:
                game = await new_game(Client(channel), "Ann")
                games.append(game.game_id)
                for _ in range(10):
                    await game.draw()
        except grpc.aio.AioRpcError:
            return


async def test_a_reader_misses_no_change_when_servers_are_killed(empty_redis_url: str) -> None:
    games: list[str] = []
    told: dict[str, list[tuple[int, str]]] = {}
    cursor = ""
    async with server_process(settings_for(empty_redis_url)) as server:
        for _ in range(KILLS):
            playing = [asyncio.create_task(play(server, games)) for _ in range(2)]
            updates = 0
            async for update in told_from(server, cursor):
                cursor = update.cursor
                updates += note(told, update)
                if updates == 40:
                    await server.kill()
            await asyncio.gather(*playing)
            await server.start_again()
        history = await histories(server, games)
        async for update in told_from(server, cursor):
            note(told, update)
            if all(len(told.get(game_id, ())) == len(changes) for game_id, changes in history.items()):
                break
    assert len(games) > KILLS
    assert {game_id: told[game_id] for game_id in history} == history


def note(told: dict[str, list[tuple[int, str]]], update: pb.WatchGamesResponse) -> bool:
    """Notes a change that is new, and returns whether it is. Revisions of a game never skip one."""
    if not update.HasField("changed"):
        return False
    known = told.setdefault(update.changed.game_id, [])
    change = update.changed.change.revision, update.changed.change.etag
    if change in known:
        return False
    assert change[0] == len(known) + 1
    known.append(change)
    return True


async def histories(server: ServerProcess, games: list[str]) -> dict[str, list[tuple[int, str]]]:
    """Returns the stored changes of games."""
    async with grpc.aio.insecure_channel(server.target) as channel:
        client = Client(channel)
        found: dict[str, list[tuple[int, str]]] = {}
        for game_id in games:
            answer = await client.games.ListChanges(gs.ListChangesRequest(game_id=game_id, page_size=200))
            found[game_id] = [(change.revision, change.etag) for change in answer.changes]
        return found


# The commands


class Ran(NamedTuple):
    """The exit code of a command, and what it printed."""

    code: int
    output: str
    errors: str


Commands = Callable[..., Awaitable[Ran]]


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str]) -> Commands:
    """Returns a function that runs a command of rummikub-admin for a server here."""

    async def run(server: ServerProcess, name: str, *arguments: str, token: Path | None = None) -> Ran:
        where = ("--address", f"127.0.0.1:{server.admin_port}", *(("--token-file", str(token)) if token else ()))
        capfd.readouterr()
        try:
            chosen = parsed([name, *where, *arguments])
            code, error = await asyncio.wait_for(chosen.run(chosen), 60), ""
        except AdminError as failure:
            code, error = 1, str(failure)
        return Ran(code, capfd.readouterr().out, error)

    return run


def environment() -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


async def process(server: ServerProcess, *arguments: str) -> Ran:
    """Runs a command of rummikub-admin in a process of its own."""
    program = (sys.executable, "-c", "from service.admin_program.program import main; main()")
    process = await asyncio.create_subprocess_exec(
        *program,
        arguments[0],
        *("--address", f"127.0.0.1:{server.admin_port}"),
        *arguments[1:],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    output, errors = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode is not None
    return Ran(process.returncode, output.decode(), errors.decode())


async def test_the_commands_do_what_they_say(empty_redis_url: str, tmp_path: Path, command: Commands) -> None:
    async def told_by(server: ServerProcess, *arguments: str, token: Path) -> str:
        code, output, errors = await command(server, *arguments, token=token)
        assert (code, errors) == (0, "")
        return output

    token = tmp_path / "token"
    token.write_text(TOKEN)
    settings = {**settings_for(empty_redis_url), "RUMMIKUB_ADMIN_TOKEN_FILE": str(token)}
    async with server_process(settings) as server, grpc.aio.insecure_channel(server.target) as channel:
        client = Client(channel)
        first, second = await new_game(client, "Ann", "ref-of-ann"), await new_game(client, "Ben", "ref-of-ben")
        listed = [json.loads(line) for line in (await told_by(server, "games", token=token)).splitlines()]
        assert [one["game"]["gameId"] for one in listed] == [second.game_id, first.game_id]
        only = await told_by(server, "games", "--player-ref", "ref-of-ann", "--state", "playing", token=token)
        assert json.loads(only)["game"]["gameId"] == first.game_id
        full = json.loads(await told_by(server, "game", first.game_id, token=token))
        assert [seat["player"].get("playerRef", "") for seat in full["seats"]] == ["ref-of-ann", ""]
        assert all(seat["rack"] for seat in full["seats"])
        [data] = (await told_by(server, "export-player", "ref-of-ann", token=token)).splitlines()
        assert (json.loads(data)["gameId"], len(json.loads(data)["game"]["rack"])) == (first.game_id, 14)
        assert "forgotten in 1 of " in await told_by(server, "forget", "ref-of-ann", token=token)
        assert (await first.see()).players[0].name == "Player 1"
        first.tokens[2] = (await told_by(server, "reissue", first.game_id, "2", token=token)).strip()
        assert (await first.see(2)).seat == 2
        assert "seat 1 has resigned" in await told_by(server, "kick", second.game_id, "1", token=token)
        assert "is aborted" in await told_by(server, "abort", first.game_id, token=token)
        assert "is deleted" in await told_by(server, "delete", second.game_id, token=token)
        statistics: Any = json.loads(await told_by(server, "stats", token=token))
        counts = {one["state"]: one.get("count", 0) for one in statistics["games"]}
        assert (counts["GAME_STATE_ABORTED"], sum(counts.values())) == (1, 1)


async def test_the_command_watch_resumes_from_its_file(empty_redis_url: str, tmp_path: Path) -> None:
    cursor_file = tmp_path / "cursor"
    async with (
        server_process(settings_for(empty_redis_url)) as server,
        grpc.aio.insecure_channel(server.target) as channel,
    ):
        game = await new_game(Client(channel), "Ann")
        revision = (await game.see()).revision
        first = await revisions_watched(server, cursor_file, revision, "--from-oldest")
        await game.draw()
        await game.draw()
        later = await revisions_watched(server, cursor_file, revision + 2)
    seen = [*first, *later]
    assert sorted(set(seen)) == list(range(1, revision + 3))
    assert seen[:revision] == list(range(1, revision + 1))


async def revisions_watched(server: ServerProcess, cursor_file: Path, last: int, *arguments: str) -> list[int]:
    """Returns the revisions that a watch tells up to the last one; it is then killed."""
    program = (sys.executable, "-c", "from service.admin_program.program import main; main()", "watch")
    where = ("--address", f"127.0.0.1:{server.admin_port}", "--cursor-file", str(cursor_file))
    process = await asyncio.create_subprocess_exec(
        *program, *where, *arguments, env=environment(), stdout=subprocess.PIPE
    )
    assert process.stdout
    revisions: list[int] = []
    async with asyncio.timeout(60):
        while last not in revisions:
            line = json.loads(await process.stdout.readline())
            revisions.append(line["changed"]["change"]["revision"])
    process.kill()
    await process.wait()
    return revisions


async def test_an_error_says_what_to_do(empty_redis_url: str, tmp_path: Path, command: Commands) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    settings = {**settings_for(empty_redis_url), "RUMMIKUB_ADMIN_TOKEN_FILE": str(token)}
    async with server_process(settings) as server:
        for given, arguments, expected in (
            (None, ("stats",), "--token-file"),
            (token, ("stats", "--token-file", "/none"), "--token-file /none: No such file"),
            (token, ("games", "--label", "x"), "expected KEY=VALUE"),
            (token, ("game", "x"), "game_id: expected 32 hexadecimal digits"),
            (token, ("watch", "--cursor-file", "/none/cursor"), "--cursor-file /none/cursor: No such file"),
            (token, ("kick", "0" * 32, "7"), "NOT_FOUND: there is no such game"),
        ):
            code, output, errors = await command(server, *arguments, token=given)
            assert (code, output) == (1, ""), arguments
            assert expected in errors


async def test_a_watch_of_servers_that_keep_no_changes_says_which_setting_to_set(
    empty_redis_url: str, command: Commands
) -> None:
    async with server_process({**settings_for(empty_redis_url), "RUMMIKUB_CHANGE_LOG_SECONDS": "0"}) as server:
        code, output, errors = await command(server, "watch", "--from-oldest")
    assert (code, output) == (1, "")
    assert errors.endswith("set RUMMIKUB_CHANGE_LOG_SECONDS on each of them")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("kick", "0" * 32, "-1"), "argument seat: -1 is no seat: expected 1 or more"),
        (("kick", "0" * 32, "99999999999"), "argument seat: 99999999999 is no seat: expected 1 or more"),
        (("kick", "0" * 32, "one"), "argument seat: invalid"),
        (("games", "--player-ref", b"\xff"), "player-ref: expected UTF-8"),
        (("games", "--label", b"a=\xff"), "label: expected UTF-8"),
        (("forget", b"\xff"), "player-ref: expected UTF-8"),
        (("game", b"\xff"), "game-id: expected UTF-8"),
    ],
)
def test_a_wrong_argument_is_named(
    arguments: tuple[str | bytes, ...], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        parsed([os.fsdecode(argument) for argument in arguments])
    output, errors = capsys.readouterr()
    assert (end.value.code, output) == (2, "")
    assert expected in errors


async def test_a_store_that_is_down_is_not_blamed_on_the_address(command: Commands) -> None:
    with running_redis() as own:
        async with server_process(settings_for(own.url)) as server:
            own.stop()
            code, _, errors = await command(server, "stats")
    assert code == 1
    assert "UNAVAILABLE: the store does not answer" in errors
    assert "--address" not in errors


async def test_an_interrupted_watch_ends_without_a_traceback(empty_redis_url: str, tmp_path: Path) -> None:
    cursor_file = tmp_path / "cursor"
    async with server_process(settings_for(empty_redis_url)) as server:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from service.admin_program.program import main; main()", "watch"),
            *("--address", f"127.0.0.1:{server.admin_port}", "--cursor-file", str(cursor_file)),
            env=environment(),
            stderr=subprocess.PIPE,
        )
        async with asyncio.timeout(60):
            while not cursor_file.exists():  # noqa: ASYNC110 - a file sends no notification
                await asyncio.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, errors = await process.communicate()
    assert (process.returncode, errors) == (130, b"")


async def test_the_commands_use_tls(empty_redis_url: str, tmp_path: Path, command: Commands) -> None:
    self_signed(tmp_path, "IP:127.0.0.1")
    tls = {"RUMMIKUB_TLS_CERT": str(tmp_path / "cert.pem"), "RUMMIKUB_TLS_KEY": str(tmp_path / "key.pem")}
    async with server_process({**settings_for(empty_redis_url), **tls}) as server:
        _, output, _ = await command(server, "stats", "--ca-file", str(tmp_path / "cert.pem"))
        assert json.loads(output)["serverVersion"]
        code, _, errors = await command(server, "stats")
    assert code == 1
    assert "UNAVAILABLE" in errors


async def test_the_commands_send_a_client_certificate(empty_redis_url: str, tmp_path: Path, command: Commands) -> None:
    authority, client = tmp_path / "authority", tmp_path / "client"
    for folder in (authority, client):
        folder.mkdir()
    self_signed(tmp_path, "IP:127.0.0.1")
    self_signed(authority, "", "/CN=An authority")
    client_certificate(authority, client, "/CN=operator.example")
    tls = {"RUMMIKUB_TLS_CERT": str(tmp_path / "cert.pem"), "RUMMIKUB_TLS_KEY": str(tmp_path / "key.pem")}
    tls["RUMMIKUB_TLS_CLIENT_CA"] = str(authority / "cert.pem")
    ca = ("--ca-file", str(tmp_path / "cert.pem"))
    pair = ("--cert-file", str(client / "cert.pem"), "--key-file", str(client / "key.pem"))
    async with server_process({**settings_for(empty_redis_url), **tls}) as server:
        _, output, _ = await command(server, "stats", *ca, *pair)
        assert json.loads(output)["serverVersion"]
        code, _, errors = await command(server, "stats", *ca)
    assert code == 1
    assert "--cert-file" in errors


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--ca-file", "x", "--cert-file", "x"), "--cert-file is given without --key-file"),
        (("--ca-file", "x", "--key-file", "x"), "--key-file is given without --cert-file"),
        (("--cert-file", "x", "--key-file", "x"), "without --ca-file"),
        (("--ca-file", "/none", "--cert-file", "/none", "--key-file", "/none"), "-file /none: No such file"),
    ],
)
async def test_options_for_tls_are_complete(options: tuple[str, ...], expected: str, command: Commands) -> None:
    code, _, errors = await command(ServerProcess({}), "stats", *options)
    assert code == 1
    assert expected in errors


async def test_a_server_that_is_not_there_is_named() -> None:
    server = ServerProcess({})
    server.admin_port = 1
    code, _, errors = await process(server, "stats")
    assert code == 1
    assert errors.startswith("rummikub-admin: ")
    assert "RUMMIKUB_ADMIN_LISTEN" in errors


async def test_workers_share_the_operator_s_address(empty_redis_url: str) -> None:
    settings = {**settings_for(empty_redis_url), "RUMMIKUB_WORKERS": "2"}
    async with server_process(settings) as server, grpc.aio.insecure_channel(server.target) as channel:
        game = await new_game(Client(channel), "Ann")
        for _ in range(4):
            async with admin_at(server.admin_port) as admin:
                answer = await admin.GetGame(pb.GetGameRequest(game_id=game.game_id))
                assert len(answer.game.seats) == 2
        await server.terminate()
