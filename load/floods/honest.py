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
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, TypeAlias

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from load.calls import OWN_CONNECTION, reason_of
from load.corpus.turns import read as read_turns
from load.messages import TurnToSend, to_send
from load.tables import LONG_ROUNDS, Table, new_table, sends_once
from rummikub.v1 import analysis_service_pb2 as an
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import validation_service_pb2 as vs
from rummikub.v1.analysis_service_pb2_grpc import AnalysisServiceStub
from rummikub.v1.validation_service_pb2_grpc import ValidationServiceStub
from tools.games import Client, new_id
from tools.server_process import from_another_address

CALL_SECONDS: Final = 60.0
"""Longer than any honest caller waits: a late answer must be recorded as late, not as an error."""
OWN_LISTENER: Final = ", own listener"
"""Ends the names of kinds of calls at the validation listener."""

Call: TypeAlias = Callable[[], Awaitable[object]]


class _Seats:
    """The calls of a client around its game of two, who only draw; a new game begins when the pool is empty."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._client = Client(channel)
        self._table: Table | None = None
        self._code = ""
        self._lock = asyncio.Lock()

    async def draw(self) -> None:
        """Draws for the player whose turn it is."""
        async with self._lock:  # a turn needs the revision of the previous answer
            await (await self._current()).draw(self._client, CALL_SECONDS)

    async def save_draft(self) -> None:
        """Saves a draft of the turn in progress."""
        async with self._lock:
            table = await self._current()
            await self._client.turns.SaveDraft(
                table.draft(await table.rack(self._client, CALL_SECONDS)), metadata=table.to_move, timeout=CALL_SECONDS
            )

    async def read(self) -> None:
        """Reads the game as the player whose turn it is."""
        async with self._lock:
            table = await self._current()
        await table.rack(self._client, CALL_SECONDS)

    async def watch(self) -> None:
        """Watches the game until the snapshot."""
        async with self._lock:
            table = await self._current()
        watching = self._client.games.WatchGame(gs.WatchGameRequest(game_id=table.game_id), timeout=CALL_SECONDS)
        async for _ in watching:
            break
        watching.cancel()

    async def create(self) -> None:
        """Creates a game that waits for players."""
        request = gs.CreateGameRequest(request_id=new_id())
        self._code = (await self._client.games.CreateGame(request, timeout=CALL_SECONDS)).game.join_code

    async def join(self) -> None:
        """Joins a new game by its code."""
        if not self._code:
            await self.create()
        code, self._code = self._code, ""
        request = gs.JoinGameRequest(join_code=code, name="Ann", request_id=new_id())
        await self._client.games.JoinGame(request, timeout=CALL_SECONDS)

    async def _current(self) -> Table:
        if self._table is None or not self._table.game.pool_count:
            self._table = await new_table(sends_once(self._client), LONG_ROUNDS, timeout=CALL_SECONDS)
        return self._table


def _kinds(main: grpc.aio.Channel, validation: grpc.aio.Channel, turns: Iterator[TurnToSend]) -> dict[str, Call]:
    """Returns the kinds of calls of a client by name. Each is called once a second."""
    seats = _Seats(main)
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
        "PlayTurn": seats.draw,
        "SaveDraft": seats.save_draft,
        "GetGame": seats.read,
        "WatchGame": seats.watch,
        "CreateGame": seats.create,
        "JoinGame by code": seats.join,
        "HasLegalTurn": search,
        "health": check(main),
        f"ValidateTurn{OWN_LISTENER}": validate(validation),
        f"StreamValidateTurns{OWN_LISTENER}": stream(validation),
        f"health{OWN_LISTENER}": check(validation),
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


async def _serve(clients: int, ports: tuple[int, int], without: Collection[str]) -> None:
    turns = itertools.cycle([to_send(turn) for turn in read_turns()])
    async with AsyncExitStack() as stack:
        called = [await stack.enter_async_context(_client(number, ports, turns)) for number in range(clients)]
        for kinds in called:
            for name in without:
                del kinds[name]
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await _phase(called, float(line.split()[1]))), flush=True)


def main() -> None:
    """Answers commands until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("main", type=int, help="the port of the server")
    parser.add_argument("validation", type=int, help="its port for ValidationService")
    parser.add_argument("--clients", type=int, default=20, help="the number of clients (20)")
    parser.add_argument("--without", nargs="*", default=(), metavar="KIND", help="kinds of calls to leave out")
    arguments = parser.parse_args()
    asyncio.run(_serve(arguments.clients, (arguments.main, arguments.validation), arguments.without))


if __name__ == "__main__":
    main()
