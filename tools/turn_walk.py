"""Counts the walk of a PlayTurn through the project: function calls, files, and moves between files.

A server in this process, on a Redis of its own, plays a game of four seats turn by turn; a profile hook notes each
entry of a function of `service/` and `engine/`. Resumptions of coroutines and generators are no entries. The first
turns are not counted.

    python -m tools.turn_walk [--turns N] [--list]
"""

import argparse
import asyncio
import itertools
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

import grpc.aio

from engine.effort import Budget
from engine.melding.actions import ClaimError
from engine.melding.bots import action_without_search, choose_action
from engine.seats import BotLevel
from engine.sight import see
from rummikub.v1 import game_service_pb2 as gs
from service.app.views import snapshot_view
from service.codec.turns import encode_turn_request
from service.composition import build_server
from service.model.record import GameState, Lifetimes
from service.settings import Settings
from service.storage.redis.store import RedisStore, connect
from tools.games import Client, bearer, new_id
from tools.redis_servers import running_redis

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = (f"{ROOT}/service/", f"{ROOT}/engine/")
WARM_UP: Final = 8
"""Turns that are not counted."""
PLAYERS: Final = ("Ada", "Ben", "Cleo", "Dan")


@dataclass(slots=True)
class Walk:
    """The functions that one turn entered, in order, each with its file."""

    entered: list[tuple[str, str]] = field(default_factory=list)

    @property
    def files(self) -> set[str]:
        """The files of the functions."""
        return {path for path, _ in self.entered}

    @property
    def moves(self) -> int:
        """How often it went from one file to another."""
        paths = [path for path, _ in self.entered]
        return sum(before != after for before, after in itertools.pairwise(paths))


class Walks:
    """Notes walks while it is the profile hook of this process."""

    def __init__(self) -> None:
        self._first: dict[CodeType, int] = {}
        """Of each function the instruction at which its frames begin; a later one means that a frame is resumed."""
        self._walk = Walk()

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Notes the entry of a function of the project (sys.setprofile)."""
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(FOLDERS):
            return
        if frame.f_lasti <= self._first.setdefault(code, frame.f_lasti):
            self._walk.entered.append((code.co_filename.removeprefix(f"{ROOT}/"), code.co_qualname))

    def take(self) -> Walk:
        """Returns what was noted since the last call."""
        taken, self._walk = self._walk, Walk()
        return taken


async def turn_walks(redis_url: str, turns: int) -> dict[str, list[Walk]]:
    """Plays turns; returns their walks by kind of action."""
    store = RedisStore(connect(redis_url), Lifetimes(lobby=1_800, started=3_600, finished=7_200), 10_000)
    server = build_server(Settings(listen="127.0.0.1:0", sweep_seconds=3_600.0), store)
    await server.start()
    walks, found = Walks(), dict[str, list[Walk]]()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            client = Client(channel)
            created = await client.games.CreateGame(gs.CreateGameRequest())
            game_id = created.game.game_id
            tokens = {}
            for name in PLAYERS:
                join = gs.JoinGameRequest(game_id=game_id, name=name, request_id=new_id())
                joined = await client.games.JoinGame(join)
                tokens[joined.seat] = bearer(joined.seat_token)
            await client.games.StartGame(gs.StartGameRequest(game_id=game_id), metadata=bearer(created.host_token))
            for number in range(turns + WARM_UP):
                loaded = await store.games.load(game_id)
                record = loaded.record
                if record is None or record.game.round is None or record.state is not GameState.PLAYING:
                    break
                seat = record.game.round.turn.seat
                view = see(record.game, seat)
                action = action_without_search(view) or choose_action(view, BotLevel.EXPERT, Budget(nodes=20_000))
                if isinstance(action, ClaimError):
                    raise TypeError("the ruleset has no claims")
                request = encode_turn_request(snapshot_view(record, seat, loaded.now_ms), action)
                request.request_id = new_id()
                walks.take()
                sys.setprofile(walks)
                try:
                    await client.turns.PlayTurn(request, metadata=tokens[seat])
                finally:
                    sys.setprofile(None)
                if number >= WARM_UP:
                    found.setdefault(type(action).__name__, []).append(walks.take())
    finally:
        await server.stop()
        await store.close()
    return found


def main() -> None:
    """Prints the medians, and the calls of a median turn by file."""
    parser = argparse.ArgumentParser(prog="tools.turn_walk", description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=60, help="turns to count")
    parser.add_argument("--list", action="store_true", help="print the functions of one turn in order")
    chosen = parser.parse_args()
    with running_redis() as redis:
        found = asyncio.run(turn_walks(redis.url, chosen.turns))
    for action, walks in found.items():
        calls = [len(walk.entered) for walk in walks]
        files, moves = [len(walk.files) for walk in walks], [walk.moves for walk in walks]
        print(
            f"{action}: {len(walks)} turns; medians: {statistics.median(calls):.0f} calls, "
            f"{statistics.median(files):.0f} files, {statistics.median(moves):.0f} moves between files"
        )
        if chosen.list:
            for path, name in sorted(walks, key=lambda walk: len(walk.entered))[len(walks) // 2].entered:
                print(f"  {path} {name}")


if __name__ == "__main__":
    main()
