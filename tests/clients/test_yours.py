"""The examples of docs/yours.md run. Push has tests of its own."""

import asyncio
import json
import os
import re
import runpy
import secrets
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.error import HTTPError

import grpc.aio
import pytest

from clients.test_bot_programs import PYTHON, arena, program
from rummikub import aio
from rummikub.admin.v1 import admin_service_pb2 as pb
from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.runtime.join_tickets import new_ticket_key
from support.harness import (
    ROOT,
    Client,
    FakeClock,
    GameAtHand,
    client_with_key,
    error_info,
    keys_file,
    memory_store,
    new_id,
    running_server,
    server_settings,
)
from support.join_tickets import ENTRY, signed
from support.operator import operated

pytestmark = pytest.mark.slow

EXAMPLES = ROOT / "clients" / "python" / "examples"


async def started_game(client: Client) -> GameAtHand:
    """Returns a game of Ada and Ben."""
    created = await client.games.CreateGame(gs.CreateGameRequest(request_id=new_id()))
    game = GameAtHand(client, created.game.game_id, host_token=created.host_token)
    for name in ("Ada", "Ben"):
        joining = gs.JoinGameRequest(game_id=game.game_id, name=name, player_ref=name.lower(), request_id=new_id())
        joined = await client.games.JoinGame(joining)
        game.tokens[joined.seat] = joined.seat_token
    await client.games.StartGame(gs.StartGameRequest(game_id=game.game_id), metadata=game.as_host())
    return game


async def finished_game(client: Client) -> GameAtHand:
    """Returns a game of Ada and Ben, in which Ada has resigned."""
    game = await started_game(client)
    await client.turns.ResignGame(ts.ResignGameRequest(game_id=game.game_id), metadata=game.as_seat(1))
    return game


async def ratings_after(
    port: int, file: Path, until: Callable[[dict[str, list[float]]], bool]
) -> dict[str, list[float]]:
    """Runs the example until it has handled an update and the ratings are as wanted; returns them."""

    def written_ns() -> int:
        return file.stat().st_mtime_ns if file.exists() else 0

    def ratings() -> dict[str, list[float]]:
        return dict(json.loads(file.read_text())["ratings"])

    before = written_ns()
    command = (str(EXAMPLES / "ratings.py"), f"127.0.0.1:{port}", str(file))
    process = await asyncio.create_subprocess_exec(sys.executable, *command)
    try:
        async with asyncio.timeout(60):
            while True:
                await asyncio.sleep(0.05)
                if written_ns() != before and until(found := ratings()):
                    return found
    finally:
        process.kill()
        await process.wait()


async def test_each_game_changes_the_ratings_once(tmp_path: Path) -> None:
    file = tmp_path / "ratings.json"
    async with operated(memory_store(log_ms=600_000)) as house:
        port = house.server.admin_port
        await finished_game(house.client)
        first = await ratings_after(port, file, bool)
        assert first["ben"][0] > 25 > first["ada"][0]
        again = await ratings_after(port, file, bool)
        assert again == first, "a game that was counted is not counted again"
        await finished_game(house.client)
        second = await ratings_after(port, file, lambda ratings: ratings != first)
        assert second["ben"][0] > first["ben"][0]


async def test_ratings_go_on_after_a_restart_of_a_server_with_a_token(tmp_path: Path) -> None:
    file, store = tmp_path / "ratings.json", memory_store(log_ms=600_000)
    token, token_file = secrets.token_hex(16), tmp_path / "token"
    token_file.write_text(token)
    async with operated(store, admin_token_file=token_file) as house:
        port = house.server.admin_port
        rating = await asyncio.create_subprocess_exec(
            *(sys.executable, str(EXAMPLES / "ratings.py"), f"127.0.0.1:{port}", str(file)),
            env={**os.environ, "ADMIN_TOKEN": token},
        )
        await finished_game(house.client)
        first = await until_ratings(file, bool)
    try:
        async with operated(store, admin_token_file=token_file, admin_listen=f"127.0.0.1:{port}") as house:
            await finished_game(house.client)
            await until_ratings(file, lambda ratings: ratings != first)
    finally:
        rating.kill()
        await rating.wait()


async def until_ratings(file: Path, until: Callable[[dict[str, list[float]]], bool]) -> dict[str, list[float]]:
    """Waits until a file has ratings as wanted, and returns them."""

    def ratings() -> dict[str, list[float]]:
        return dict(json.loads(file.read_text())["ratings"]) if file.exists() else {}

    async with asyncio.timeout(60):
        while True:
            if until(found := ratings()):
                return found
            await asyncio.sleep(0.05)


class OneComes:
    """A client of a tournament, to whose games only Ann comes."""

    def __init__(self, client: aio.Rummikub) -> None:
        self._client = client
        self.games, self.seated = self, client.seated

    async def CreateGame(self, request: gs.CreateGameRequest) -> gs.CreateGameResponse:  # noqa: N802 - a method of a stub
        created = await self._client.games.CreateGame(request)
        joining = gs.JoinGameRequest(game_id=created.game.game_id, player_ref="ann", name="ann", request_id=new_id())
        await self._client.games.JoinGame(joining)
        return created


async def test_a_player_whose_opponent_does_not_come_has_the_point() -> None:
    play = runpy.run_path(str(EXAMPLES / "swiss.py"))["play"]
    play.__globals__["JOIN_SECONDS"] = 0.1
    async with operated(memory_store()) as house, aio.Rummikub(f"127.0.0.1:{house.server.port}") as client:
        assert await asyncio.wait_for(play(OneComes(client), ("ann", "bob")), 30) == ["ann"]


async def test_a_swiss_tournament_of_programs_is_played(tmp_path: Path, empty_redis_url: str) -> None:
    names = ["ann", "bob", "cleo"]
    async with AsyncExitStack() as stack:
        server, _ = await stack.enter_async_context(arena(tmp_path, empty_redis_url))
        for name in names:
            await stack.enter_async_context(program(PYTHON, name, server, tmp_path))
        swiss = await asyncio.create_subprocess_exec(
            *(sys.executable, str(EXAMPLES / "swiss.py"), server.target, "1", *names),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "API_KEY": "web"},
        )
        printed, _ = await asyncio.wait_for(swiss.communicate(), 150)
    assert swiss.returncode == 0
    standings = {name: float(points) for points, name in re.findall(r"(?m)^ *([\d.]+) (\w+)$", printed.decode())}
    assert standings.keys() == set(names)
    assert sum(standings.values()) == 2, "one rests, and has a point"


def test_swiss_pairs_have_not_met_while_that_is_possible() -> None:
    paired = runpy.run_path(str(EXAMPLES / "swiss.py"))["paired"]
    assert paired(["a", "b", "c", "d"], set()) == [("a", "b"), ("c", "d")]
    met = {frozenset("ab"), frozenset("cd")}
    assert paired(["a", "b", "c", "d"], met) == [("a", "c"), ("b", "d")]
    assert paired(["a", "b"], met) is None


async def test_records_become_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow, of 55 MB: pip install pyarrow")
    file = tmp_path / "moves.parquet"
    async with operated(memory_store()) as house:
        game = await finished_game(house.client)
        writing = await asyncio.create_subprocess_exec(
            sys.executable,
            *(str(EXAMPLES / "records_to_parquet.py"), f"127.0.0.1:{house.server.port}", str(file), game.game_id),
        )
        assert await asyncio.wait_for(writing.wait(), 60) == 0
    rows = parquet.read_table(file).to_pylist()
    assert [row["kind"] for row in rows] == ["DEAL", "RESIGN"]
    assert rows[-1]["player"] == "Ada"


@asynccontextmanager
async def chat(port: int, **environment: str) -> AsyncIterator[str]:
    """Runs the example for the server at a port, and yields the URL of its rooms."""
    command = (sys.executable, str(EXAMPLES / "chat.py"), f"127.0.0.1:{port}", "0")
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, env={**os.environ, **environment}
    )
    try:
        assert process.stdout
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}"
    finally:
        process.kill()
        await process.wait()


async def chatted(room: str, proof: str, text: str = "", method: str = "POST", **headers: str) -> object:
    """Returns the messages of a room after one's own, or the reason of a refusal."""
    sent = {"Authorization": f"Bearer {proof}", **headers}
    request = urllib.request.Request(room, text.encode(), sent, method=method)  # noqa: S310 - local

    def call() -> object:
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - local
                return json.load(answer)
        except HTTPError as error:
            return error.read().decode()

    return await asyncio.to_thread(call)


async def test_a_chat_room_is_for_the_players_of_its_game() -> None:
    async with operated(memory_store()) as house, chat(house.server.port) as rooms:
        game, other = await house.client.new_game(), await house.client.new_game()
        room = f"{rooms}/{game.game_id}"
        assert await chatted(room, game.tokens[1], "hello") == [{"seat": 1, "text": "hello"}]
        said = [{"seat": 1, "text": "hello"}, {"seat": 2, "text": "hi"}]
        assert await chatted(room, game.tokens[2], "hi") == said
        assert await chatted(room, game.tokens[2], "a body", "GET") == said
        assert "invalid literal" in str(await chatted(room, game.tokens[2], "hi", **{"Content-Length": "-1"}))
        for stranger in (other.tokens[1], game.host_token):
            assert await chatted(room, stranger, "let me in") == "you have no seat in this game"
        assert "seats[0].seat_token" in str(await chatted(room, "", "let me in"))
        await house.client.turns.ResignGame(ts.ResignGameRequest(game_id=game.game_id), metadata=game.as_seat(1))
        assert await chatted(room, game.tokens[2], "good game") == "the game is over"
        assert await chatted(room, game.tokens[2]) == said
        assert await chatted(f"{rooms}/{other.game_id}", other.tokens[1]) == []


async def test_a_join_ticket_opens_the_chat_rooms_of_its_player(tmp_path: Path) -> None:
    settings = server_settings(keys_file=keys_file(tmp_path, web=ENTRY))
    async with (
        running_server(memory_store(FakeClock()), settings) as (server, _),
        client_with_key(server.port, "web") as client,
        chat(server.port, API_KEY="web") as rooms,
    ):
        seats = [gs.SeatReservation(seat=2, player_ref="ben", name="Ben")]
        created = await client.games.CreateGame(gs.CreateGameRequest(reserved_seats=seats, request_id=new_id()))
        room = f"{rooms}/{created.game.game_id}"
        joining = gs.JoinGameRequest(
            game_id=created.game.game_id, join_ticket=signed("ada", name="Ada"), request_id=new_id()
        )
        await client.games.JoinGame(joining)
        assert await chatted(room, signed("ada"), "hello") == [{"seat": 1, "text": "hello"}]
        assert await chatted(room, signed("ben"), "hi") == "you have no seat in this game", "only reserved"
        assert (
            await chatted(room, signed("ada", seconds=-1))
            == "this join_ticket has expired; get a new one from the back end"
        )


def room_ticket(private: str, name: str, room: str, paid: Path) -> "subprocess.CompletedProcess[str]":
    """Runs the example of payments for a player."""
    command = (sys.executable, str(EXAMPLES / "paid_rooms.py"), "web", name.lower(), name, room)
    environment = {**os.environ, "PAID_FILE": str(paid)}
    return subprocess.run(command, input=private, capture_output=True, text=True, check=False, env=environment)


async def test_a_paid_room_is_joined_after_its_purchase(tmp_path: Path) -> None:
    private, public = new_ticket_key()
    paid = tmp_path / "paid"
    paid.write_text("ada gold\n")
    settings = server_settings(keys_file=keys_file(tmp_path, web=f'ticket_keys = ["{public}"]\nrequire_tickets = true'))
    async with (
        running_server(memory_store(), settings) as (server, _),
        client_with_key(server.port, "web") as client,
    ):
        creation = gs.CreateGameRequest(labels={"room": "gold"}, request_id=new_id())
        game_id = (await client.games.CreateGame(creation)).game.game_id

        async def join(ticket: str) -> gs.JoinGameResponse:
            joining = gs.JoinGameRequest(game_id=game_id, join_ticket=ticket.strip(), request_id=new_id())
            return await client.games.JoinGame(joining)

        assert (await join(room_ticket(private, "Ada", "gold", paid).stdout)).seat == 1
        refused = room_ticket(private, "Ben", "gold", paid)
        assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", "ben has not bought gold\n")
        free = room_ticket(private, "Ben", "free", paid)
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await join(free.stdout)
        assert error_info(raised.value).reason == "TICKET_OUT_OF_SCOPE"


async def test_a_report_leads_to_a_look_a_kick_and_forgetting() -> None:
    async with operated(memory_store()) as house:

        async def moderated(game: GameAtHand, reported: str, action: str = "show") -> tuple[int | None, str]:
            moderating = await asyncio.create_subprocess_exec(
                *(sys.executable, str(EXAMPLES / "moderation.py"), f"127.0.0.1:{house.server.admin_port}"),
                *(game.game_id, reported, action),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            printed, _ = await asyncio.wait_for(moderating.communicate(), 60)
            return moderating.returncode, printed.decode()

        game = await finished_game(house.client)
        code, printed = await moderated(game, "Ada")
        assert (code, printed.splitlines()[0]) == (0, "seat 1: Ada, player_ref ada")
        assert [line.split()[-1] for line in printed.splitlines()[1:]] == ["player_joined", "player_resigned"]
        assert await moderated(game, "cleo") == (1, "0 players of this game are cleo\n")

        for action in ("kick", "abort"):
            running = await started_game(house.client)
            assert await moderated(running, "ben", action) == (0, "")
            seen = (await house.admin.GetGame(pb.GetGameRequest(game_id=running.game_id))).game.game
            ended = {"kick": (game_pb2.GAME_STATE_FINISHED, [1]), "abort": (game_pb2.GAME_STATE_ABORTED, [])}
            assert (seen.state, list(seen.winner_seats)) == ended[action]

        code, printed = await moderated(game, "ada", "forget")
        assert code == 0
        assert game.game_id in printed
        assert await moderated(game, "Ada") == (1, "0 players of this game are Ada\n")

        created = await house.client.games.CreateGame(gs.CreateGameRequest(request_id=new_id()))
        lobby = GameAtHand(house.client, created.game.game_id)
        for name, player_ref in (("Ada", "eve"), ("eve", ""), ("Fay", "")):
            joining = gs.JoinGameRequest(game_id=lobby.game_id, name=name, player_ref=player_ref, request_id=new_id())
            await house.client.games.JoinGame(joining)
        assert await moderated(lobby, "eve", "kick") == (1, "2 players of this game are eve\n")
        assert await moderated(lobby, "Fay") == (0, "seat 3: Fay, player_ref none: no more is known\n")
        assert await moderated(lobby, "Fay", "forget") == (1, "Fay has no player_ref\n")
