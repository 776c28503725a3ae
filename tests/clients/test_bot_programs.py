"""The example bots of three languages play whole games, while their server is killed and started again."""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio
import pytest

import rummikub
from rummikub import aio
from rummikub.v1 import challenge_service_pb2 as cs
from support.harness import ROOT, keys_file, new_id, server_process
from support.join_tickets import ENTRY, signed
from support.typescript import compiled_client
from tools.server_process import ServerProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # two of them compile a client first

RULES = rummikub.Ruleset(
    melding=rummikub.MeldingRuleset(
        preset=rummikub.PRESET_SABRA,
        deal=rummikub.DealOptions(hand_size=7),
        initial_meld=rummikub.InitialMeldOptions(threshold=0),
    )
)
PYTHON = (sys.executable, str(ROOT / "clients" / "python" / "examples" / "bot.py"))


def ticket(ref: str, name: str, number: int = 0) -> str:
    """Returns a ticket of a program by the clock of this machine."""
    return signed(ref, exp=int(time.time()) + 3_000, name=name, bot=True, jti=str(number))


@asynccontextmanager
async def arena(folder: Path, redis_url: str) -> AsyncIterator[tuple[ServerProcess, aio.Rummikub]]:
    """Yields a server with a key of tickets, and a connection with the key."""
    environment = {
        "RUMMIKUB_REDIS_URL": redis_url,
        "RUMMIKUB_KEYS_FILE": str(keys_file(folder, web=f"{ENTRY}\nposition_searches = true")),
        "RUMMIKUB_HEARTBEAT_SECONDS": "1",
    }
    async with server_process(environment) as server, aio.Rummikub(server.target, api_key="web") as client:
        yield server, client


@asynccontextmanager
async def program(command: Sequence[str], name: str, server: ServerProcess, folder: Path) -> AsyncIterator[None]:
    """Runs a bot with a name, whose reference is the same."""
    tickets = folder / f"{name}.tickets"
    tickets.write_text("\n".join(ticket(name, name, number) for number in range(50)))
    environment = {
        **os.environ,
        "BOT_ADDRESS": server.target,
        "BOT_KEY": "web",
        "BOT_TICKETS": str(tickets),
    }
    process = await asyncio.create_subprocess_exec(*command, name, env=environment)
    try:
        yield
        assert process.returncode is None, "the bot ended"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def when(client: aio.Rummikub, game_id: str, minimum_revision: int, *, is_over: bool = False) -> rummikub.Game:
    """Returns a game at a revision or later, or its end; waits for a server that is away.

    Searches have a low priority, and a minute of them takes long beside busy tests.
    """
    async with asyncio.timeout(480):
        while True:
            try:
                game = (await client.games.GetGame(rummikub.GetGameRequest(game_id=game_id))).game
                if game.state == rummikub.GAME_STATE_FINISHED or (not is_over and game.revision >= minimum_revision):
                    return game
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
            await asyncio.sleep(0.1)


async def own_game(client: aio.Rummikub, join_ticket: str) -> rummikub.OwnGame:
    """Returns the first game of a player, once there is one."""
    async for update in client.games.WatchOwnGames(rummikub.WatchOwnGamesRequest(join_ticket=join_ticket)):
        if update.HasField("game"):
            return update.game
    raise AssertionError("the stream has ended")


async def plays_whole_games(command: Sequence[str], folder: Path, redis_url: str) -> None:
    """Lets a bot play with a bot of the service, in the middle of which the server is killed; then by a challenge."""
    async with arena(folder, redis_url) as (server, client):
        seat = rummikub.SeatReservation(seat=1, player_ref="deep", name="deep")
        creation = rummikub.CreateGameRequest(ruleset=RULES, reserved_seats=[seat], request_id=new_id())
        created = await client.games.CreateGame(creation)
        game_id, host = created.game.game_id, client.seated(created.host_token)
        # Before the program comes: a game starts by itself when its reserved seats are taken, if it has enough players.
        await host.games.AddBot(rummikub.AddBotRequest(game_id=game_id, level=rummikub.BOT_LEVEL_EASY))
        async with program(command, "deep", server, folder):
            await _plays(client, server, game_id)


async def _plays(client: aio.Rummikub, server: ServerProcess, game_id: str) -> None:
    game = await when(client, game_id, 9)
    assert (game.players[0].name, game.players[0].is_program) == ("deep", True)
    await server.kill()
    await server.start_again()
    game = await when(client, game_id, 0, is_over=True)
    assert all(player.timeouts_in_a_row == 0 and not player.is_absent for player in game.players)

    challenger = ticket("ann", "Ann")
    proposal = cs.ChallengePlayerRequest(join_ticket=challenger, player_ref="deep", ruleset=RULES)
    await client.challenges.ChallengePlayer(proposal)
    own = await own_game(client, challenger)
    joining = rummikub.JoinGameRequest(game_id=own.game_id, join_ticket=challenger, request_id=new_id())
    ann = client.seated((await client.games.JoinGame(joining)).seat_token)
    async for seen in ann.watch_games(own.game_id):
        if seen.revision and any(player.name == "deep" and player.tile_count for player in seen.players):
            break
    await ann.turns.ResignGame(rummikub.ResignGameRequest(game_id=own.game_id))
    assert (await when(client, own.game_id, 0, is_over=True)).winner_seats == [2]


async def test_a_python_bot_plays_whole_games(tmp_path: Path, empty_redis_url: str) -> None:
    await plays_whole_games(PYTHON, tmp_path, empty_redis_url)


@pytest.mark.skipif(not shutil.which("go"), reason="needs Go: https://go.dev/dl")
async def test_a_go_bot_plays_whole_games(tmp_path: Path, empty_redis_url: str) -> None:
    bot = tmp_path / "bot"
    folder = ROOT / "clients" / "go"
    build = await asyncio.create_subprocess_exec("go", "build", "-o", bot, "./examples/bot", cwd=folder)
    assert await build.wait() == 0
    await plays_whole_games((str(bot),), tmp_path, empty_redis_url)


@pytest.mark.skipif(not shutil.which("npm"), reason="needs Node.js: https://nodejs.org")
async def test_a_typescript_bot_plays_whole_games(tmp_path: Path, empty_redis_url: str) -> None:
    folder = await asyncio.to_thread(compiled_client)
    command = ("node", str(folder / "examples" / "bot.mjs"))
    await plays_whole_games(command, tmp_path, empty_redis_url)
