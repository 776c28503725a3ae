"""Honest callers: a process that calls at a steady rate and reports the latency of each call.

It reads commands from standard input, one per line: `phase <seconds>`. It answers each with one line of JSON: for each
kind of call the milliseconds of every call, counted from its due time, and the refusals by status and reason.
"""

import argparse
import asyncio
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import grpc.aio
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from load.corpus.turns import read as read_turns
from load.messages import to_send
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import ruleset_pb2
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1.game_service_pb2_grpc import GameServiceStub
from rummikub.v1.turn_service_pb2_grpc import TurnServiceStub
from rummikub.v1.validation_service_pb2_grpc import ValidationServiceStub

CALLS_A_SECOND: Final = 20
"""Calls of each kind."""
CALL_SECONDS: Final = 60.0
"""Longer than any honest caller waits: a late answer must be recorded as late, not as an error."""
OWN_CONNECTION: Final = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0))

Call: TypeAlias = Callable[[], Awaitable[object]]


class Table:
    """A game of two players who only draw: every call is a PlayTurn that changes the game."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._games = GameServiceStub(channel)
        self._turns = TurnServiceStub(channel)
        self._tokens: dict[int, str] = {}
        self._game: Any = None
        self._lock = asyncio.Lock()

    async def draw(self) -> None:
        """Draws for the player whose turn it is, in a new game when the pool is empty."""
        async with self._lock:  # a turn needs the revision of the previous answer
            if self._game is None or not self._game.pool_count:
                await self.new_game()
            metadata = (("authorization", f"Bearer {self._tokens[self._game.turn.seat]}"),)
            request = ts.PlayTurnRequest(
                game_id=self._game.game_id,
                expected_revision=self._game.revision,
                etag=self._game.etag,
                draw=ts.DrawTile(),
            )
            answer = await self._turns.PlayTurn(request, metadata=metadata, timeout=CALL_SECONDS)
            self._game = answer.game

    async def new_game(self) -> None:
        """Starts a game."""
        rules = ruleset_pb2.Ruleset(turn_time_limit_seconds=0)
        created = await self._games.CreateGame(gs.CreateGameRequest(ruleset=rules))
        game_id = created.game.game_id
        for name in ("Ann", "Bob"):
            joined = await self._games.JoinGame(gs.JoinGameRequest(game_id=game_id, name=name))
            self._tokens[joined.seat] = joined.seat_token
        metadata = (("authorization", f"Bearer {created.host_token}"),)
        started = await self._games.StartGame(gs.StartGameRequest(game_id=game_id), metadata=metadata)
        self._game = started.game


def _kinds(main: grpc.aio.Channel, validation: grpc.aio.Channel) -> dict[str, Call]:
    """Returns the kinds of calls by name."""
    turns = itertools.cycle([to_send(turn).turn for turn in read_turns()])
    table = Table(main)

    def validate(channel: grpc.aio.Channel) -> Call:
        stub = ValidationServiceStub(channel)
        return lambda: stub.ValidateTurn(next(turns), timeout=CALL_SECONDS)

    def check(channel: grpc.aio.Channel) -> Call:
        stub = health_pb2_grpc.HealthStub(channel)
        return lambda: stub.Check(health_pb2.HealthCheckRequest(), timeout=CALL_SECONDS)

    return {
        "ValidateTurn": validate(main),
        "PlayTurn": table.draw,
        "health": check(main),
        "ValidateTurn, own listener": validate(validation),
        "health, own listener": check(validation),
    }


async def _phase(kinds: dict[str, Call], seconds: float) -> dict[str, Any]:
    """Calls at a steady rate for some seconds; returns latencies and refusals."""
    milliseconds: dict[str, list[float]] = {name: [] for name in kinds}
    refusals: Counter[str] = Counter()

    async def one(name: str, call: Call, wait: float) -> None:
        due = time.perf_counter() + wait
        await asyncio.sleep(wait)
        try:
            await call()
        except grpc.aio.AioRpcError as error:
            refusals[f"{name}: {error.code().name} {reason_of(error)}".strip()] += 1
        milliseconds[name].append((time.perf_counter() - due) * 1e3)

    places = range(round(seconds * CALLS_A_SECOND))
    await asyncio.gather(*(one(name, call, place / CALLS_A_SECOND) for place in places for name, call in kinds.items()))
    return {"milliseconds": milliseconds, "refusals": dict(refusals)}


def reason_of(error: grpc.aio.AioRpcError) -> str:
    """Returns the reason of a refusal, or the status text if there is no reason."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            info = error_details_pb2.ErrorInfo()
            if any(detail.Unpack(info) for detail in status_pb2.Status.FromString(value).details):
                return str(info.reason)
    return str(error.details())


async def _serve(main_target: str, validation_target: str) -> None:
    async with (
        grpc.aio.insecure_channel(main_target, OWN_CONNECTION) as main_channel,
        grpc.aio.insecure_channel(validation_target, OWN_CONNECTION) as validation_channel,
    ):
        kinds = _kinds(main_channel, validation_channel)
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await _phase(kinds, float(line.split()[1]))), flush=True)


def main() -> None:
    """Answers commands until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("main", help="the address of the server")
    parser.add_argument("validation", help="its address for ValidationService")
    arguments = parser.parse_args()
    asyncio.run(_serve(arguments.main, arguments.validation))


if __name__ == "__main__":
    main()
