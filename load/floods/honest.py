"""Honest callers: a process that calls at a steady rate and reports the latency of each call.

Each of its clients has an address of its own (127.0.0.2 and so on), two connections and a game. It reads commands from
standard input, one per line: `phase <seconds>`. It answers each with one line of JSON: for each kind of call the
milliseconds of every call, counted from its due time, and the refusals by status and reason.
"""

import argparse
import asyncio
import itertools
import json
import sys
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, TypeAlias

import grpc.aio
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from load.corpus.turns import read as read_turns
from load.messages import TurnToSend, to_send
from rummikub.v1 import analysis_service_pb2 as an
from rummikub.v1 import game_pb2, meld_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1 import validation_service_pb2 as vs
from rummikub.v1.analysis_service_pb2_grpc import AnalysisServiceStub
from rummikub.v1.game_service_pb2_grpc import GameServiceStub
from rummikub.v1.turn_service_pb2_grpc import TurnServiceStub
from rummikub.v1.validation_service_pb2_grpc import ValidationServiceStub
from tools.server_process import from_another_address

CALL_SECONDS: Final = 60.0
"""Longer than any honest caller waits: a late answer must be recorded as late, not as an error."""
OWN_CONNECTION: Final = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0))

Call: TypeAlias = Callable[[], Awaitable[object]]


class Table:
    """A game of two players who only draw, and the calls around it."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._games = GameServiceStub(channel)
        self._turns = TurnServiceStub(channel)
        self._tokens: dict[int, str] = {}
        self._game: Any = None
        self._code = ""
        self._lock = asyncio.Lock()

    async def draw(self) -> None:
        """Draws for the player whose turn it is, in a new game when the pool is empty."""
        async with self._lock:  # a turn needs the revision of the previous answer
            game = await self._current()
            request = ts.PlayTurnRequest(
                game_id=game.game_id, expected_revision=game.revision, etag=game.etag, draw=ts.DrawTile()
            )
            answer = await self._turns.PlayTurn(request, metadata=self._to_move(), timeout=CALL_SECONDS)
            self._game = answer.game

    async def save_draft(self) -> None:
        """Saves a draft of the turn in progress."""
        async with self._lock:
            game = await self._current()
            seen = await self._games.GetGame(
                gs.GetGameRequest(game_id=game.game_id), metadata=self._to_move(), timeout=CALL_SECONDS
            )
            draft = game_pb2.Draft(table=[meld_pb2.Meld(tiles=seen.game.rack[:3])])
            request = ts.SaveDraftRequest(
                game_id=game.game_id, expected_revision=game.revision, etag=game.etag, draft=draft
            )
            await self._turns.SaveDraft(request, metadata=self._to_move(), timeout=CALL_SECONDS)

    async def watch(self) -> None:
        """Watches the game until the snapshot."""
        async with self._lock:
            game = await self._current()
        watching = self._games.WatchGame(gs.WatchGameRequest(game_id=game.game_id), timeout=CALL_SECONDS)
        async for _ in watching:
            break
        watching.cancel()

    async def create(self) -> None:
        """Creates a game that waits for players."""
        request = gs.CreateGameRequest(request_id=str(uuid.uuid4()))
        self._code = (await self._games.CreateGame(request, timeout=CALL_SECONDS)).game.join_code

    async def join(self) -> None:
        """Joins a new game by its code."""
        if not self._code:
            await self.create()
        code, self._code = self._code, ""
        request = gs.JoinGameRequest(join_code=code, name="Ann", request_id=str(uuid.uuid4()))
        await self._games.JoinGame(request, timeout=CALL_SECONDS)

    async def _current(self) -> Any:  # noqa: ANN401 - a message
        """Returns the game, a new one when the pool is empty."""
        if self._game is None or not self._game.pool_count:
            await self._start()
        return self._game

    def _to_move(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self._tokens[self._game.turn.seat]}"),)

    async def _start(self) -> None:
        rules = ruleset_pb2.Ruleset(turn_time_limit_seconds=0)
        created = await self._games.CreateGame(gs.CreateGameRequest(ruleset=rules))
        game_id = created.game.game_id
        for name in ("Ann", "Bob"):
            joined = await self._games.JoinGame(gs.JoinGameRequest(game_id=game_id, name=name))
            self._tokens[joined.seat] = joined.seat_token
        metadata = (("authorization", f"Bearer {created.host_token}"),)
        started = await self._games.StartGame(gs.StartGameRequest(game_id=game_id), metadata=metadata)
        self._game = started.game


def _kinds(main: grpc.aio.Channel, validation: grpc.aio.Channel, turns: Iterator[TurnToSend]) -> dict[str, Call]:
    """Returns the kinds of calls of a client by name. Each is called once a second."""
    table = Table(main)
    analysis = AnalysisServiceStub(main)

    def validate(channel: grpc.aio.Channel) -> Call:
        stub = ValidationServiceStub(channel)
        return lambda: stub.ValidateTurn(next(turns).turn, timeout=CALL_SECONDS)

    def stream(channel: grpc.aio.Channel) -> Call:
        stub = ValidationServiceStub(channel)

        async def call() -> None:
            async for _ in stub.StreamValidateTurns(
                iter([vs.StreamValidateTurnsRequest(turn=next(turns).turn)]), timeout=CALL_SECONDS
            ):
                pass

        return call

    def check(channel: grpc.aio.Channel) -> Call:
        stub = health_pb2_grpc.HealthStub(channel)
        return lambda: stub.Check(health_pb2.HealthCheckRequest(), timeout=CALL_SECONDS)

    def search() -> Awaitable[object]:
        return analysis.HasLegalTurn(an.HasLegalTurnRequest(position=next(turns).position), timeout=CALL_SECONDS)

    return {
        "ValidateTurn": validate(main),
        "StreamValidateTurns": stream(main),
        "PlayTurn": table.draw,
        "SaveDraft": table.save_draft,
        "WatchGame": table.watch,
        "CreateGame": table.create,
        "JoinGame by code": table.join,
        "HasLegalTurn": search,
        "health": check(main),
        "ValidateTurn, own listener": validate(validation),
        "StreamValidateTurns, own listener": stream(validation),
        "health, own listener": check(validation),
    }


async def _phase(clients: list[dict[str, Call]], seconds: float) -> dict[str, Any]:
    """Calls at a steady rate for some seconds; returns latencies and refusals."""
    milliseconds: dict[str, list[float]] = defaultdict(list)
    refusals: Counter[str] = Counter()

    async def one(name: str, call: Call, wait: float) -> None:
        due = time.perf_counter() + wait
        await asyncio.sleep(wait)
        try:
            await call()
        except grpc.aio.AioRpcError as error:
            refusals[f"{name}: {error.code().name} {reason_of(error)}".strip()] += 1
        milliseconds[name].append((time.perf_counter() - due) * 1e3)

    calls = [(name, call) for client in clients for name, call in client.items()]
    spread = [(place / len(calls), *named) for place, named in enumerate(calls)]
    await asyncio.gather(
        *(one(name, call, second + offset) for second in range(round(seconds)) for offset, name, call in spread)
    )
    return {"milliseconds": milliseconds, "refusals": dict(refusals)}


def reason_of(error: grpc.aio.AioRpcError) -> str:
    """Returns the reason of a refusal, or the status text if there is no reason."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            info = error_details_pb2.ErrorInfo()
            if any(detail.Unpack(info) for detail in status_pb2.Status.FromString(value).details):
                return str(info.reason)
    return str(error.details())


@asynccontextmanager
async def _client(number: int, ports: tuple[int, int], turns: Iterator[TurnToSend]) -> AsyncIterator[dict[str, Call]]:
    """Connects a client with an address of its own."""
    async with AsyncExitStack() as stack:
        channels = []
        for port in ports:
            relay = await stack.enter_async_context(from_another_address(port, f"127.0.0.{2 + number}"))
            channel = grpc.aio.insecure_channel(f"127.0.0.1:{relay}", OWN_CONNECTION)
            channels.append(await stack.enter_async_context(channel))
        yield _kinds(channels[0], channels[1], turns)


async def _serve(clients: int, ports: tuple[int, int]) -> None:
    turns = itertools.cycle([to_send(turn) for turn in read_turns()])
    async with AsyncExitStack() as stack:
        called = [await stack.enter_async_context(_client(number, ports, turns)) for number in range(clients)]
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await _phase(called, float(line.split()[1]))), flush=True)


def main() -> None:
    """Answers commands until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("main", type=int, help="the port of the server")
    parser.add_argument("validation", type=int, help="its port for ValidationService")
    parser.add_argument("--clients", type=int, default=20, help="the number of clients (20)")
    arguments = parser.parse_args()
    asyncio.run(_serve(arguments.clients, (arguments.main, arguments.validation)))


if __name__ == "__main__":
    main()
