"""Measures the archive: what a game takes in it, and what archiving adds to a turn.

`python -m load.bench.archive` prints both. Two servers on one Redis, with and without an archive of files, get the same
calls alternately, so that other load on the machine affects both alike.
"""

import argparse
import asyncio
import gzip
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import grpc.aio
import redis.asyncio as aredis

from engine.game import Finished
from engine.melding.ruleset import SABRA
from load.bench.play import HISTORY
from rummikub.v1 import game_service_pb2 as gs
from service.archive.archived_game import ArchivedGame, collect, from_line, to_line
from service.storage.memory import MemoryStore
from support.archives import store_game
from support.random_play import random_changes
from tools.games import Client, new_id
from tools.redis_servers import running_redis
from tools.server_process import server_process

GAMES: Final = 40
TURNS: Final = 20
"""Turns of a game before its end."""
PLAYED: Final = 60
"""Games that are played at each server."""


def line_of(name: str, values: Sequence[float]) -> str:
    """Returns the median and the range of values."""
    return f"{name:44} median {statistics.median(values):8.1f}   {min(values):8.1f} to {max(values):8.1f}"


async def measure_sizes(games: int) -> None:
    """Prints the sizes of random games of three players, and the time that the archive takes for one."""
    figures: defaultdict[str, list[float]] = defaultdict(list)
    seed = 0
    while len(figures["changes"]) < games:
        seed += 1
        if not isinstance(list(random_changes(seed, 3, SABRA))[-1].applied.game.phase, Finished):
            continue
        store = MemoryStore(HISTORY)
        stored = await store_game(store, seed, SABRA)
        began = time.perf_counter()
        game = await collect(store, stored.record)
        line = to_line(game)
        written = time.perf_counter()
        from_line(line)
        figures["changes"].append(len(game.changes))
        _add_sizes(figures, game, line)
        figures["time to make the line (ms)"].append((written - began) * 1e3)
        figures["time to read the line (ms)"].append((time.perf_counter() - written) * 1e3)
    print(f"{games} random games")
    print("\n".join(line_of(name, values) for name, values in figures.items()))


def _add_sizes(figures: "defaultdict[str, list[float]]", game: ArchivedGame, line: bytes) -> None:
    figures["record (bytes)"].append(len(game.text))
    figures["record, compressed (bytes)"].append(len(gzip.compress(game.text.encode())))
    figures["history, compressed (bytes)"].append(len(game.history()))
    figures["line of a file (bytes)"].append(len(line))


async def measure_turns(games: int) -> None:
    """Prints the latency of turns and of ends of games, and the entries in the outbox, without and with an archive."""
    with tempfile.TemporaryDirectory() as folder, running_redis() as server:
        environment = {"RUMMIKUB_REDIS_URL": server.url, "RUMMIKUB_GAMES_PER_MINUTE": "0"}
        archived = {**environment, "RUMMIKUB_ARCHIVE_URL": f"file://{folder}"}
        store = aredis.Redis.from_url(server.url)
        async with server_process(environment) as without, server_process(archived) as with_archive:
            figures: defaultdict[str, list[float]] = defaultdict(list)
            for _ in range(games):
                for name, process in (("without", without), ("with", with_archive)):
                    async with grpc.aio.insecure_channel(process.target) as channel:
                        await _play(f"{name} archive", Client(channel), store, figures)
        await store.aclose()
    print(f"\n{games} games of {TURNS} turns at each server")
    print("\n".join(line_of(name, values) for name, values in figures.items()))


async def _play(name: str, client: Client, store: "aredis.Redis", figures: "defaultdict[str, list[float]]") -> None:
    game = await client.new_game()
    appended = await _appended(store)
    for _ in range(TURNS):
        began = time.perf_counter()
        await game.draw()
        figures[f"GetGame and PlayTurn, {name} (ms)"].append((time.perf_counter() - began) * 1e3)
    figures[f"entries by turns, {name}"].append(await _appended(store) - appended)
    request = gs.ResignGameRequest(game_id=game.game_id, request_id=new_id())
    began = time.perf_counter()
    await client.games.ResignGame(request, metadata=game.as_seat(1))
    figures[f"ResignGame, {name} (ms)"].append((time.perf_counter() - began) * 1e3)
    figures[f"entries by the end, {name}"].append(await _appended(store) - appended)


async def _appended(store: "aredis.Redis") -> int:
    """Returns how many entries the outbox has ever got."""
    if not await store.exists("rummikub:outbox"):
        return 0
    return int((await store.xinfo_stream("rummikub:outbox"))["entries-added"])


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=GAMES)
    parser.add_argument("--played", type=int, default=PLAYED)
    arguments = parser.parse_args()
    asyncio.run(measure_sizes(arguments.games))
    asyncio.run(measure_turns(arguments.played))


if __name__ == "__main__":
    main()
