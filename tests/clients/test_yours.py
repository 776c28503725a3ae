"""The examples of docs/yours.md run: ratings, a Swiss tournament, records to Parquet. Push has tests of its own."""

import asyncio
import json
import os
import re
import runpy
import secrets
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from clients.test_bot_programs import PYTHON, arena, program
from rummikub import aio
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from support.harness import ROOT, Client, GameAtHand, memory_store, new_id
from support.operator import operated

pytestmark = pytest.mark.slow

EXAMPLES = ROOT / "clients" / "python" / "examples"


async def finished_game(client: Client) -> GameAtHand:
    """Returns a game of Ada and Ben, in which Ada has resigned."""
    created = await client.games.CreateGame(gs.CreateGameRequest(request_id=new_id()))
    game = GameAtHand(client, created.game.game_id, host_token=created.host_token)
    for name in ("Ada", "Ben"):
        joining = gs.JoinGameRequest(game_id=game.game_id, name=name, player_ref=name.lower(), request_id=new_id())
        joined = await client.games.JoinGame(joining)
        game.tokens[joined.seat] = joined.seat_token
    await client.games.StartGame(gs.StartGameRequest(game_id=game.game_id), metadata=game.as_host())
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
