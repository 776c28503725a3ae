"""CPU of a turn by the number of its watchers, and the memory of watchers, connections and watched games."""

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, TypeAlias

import grpc.aio

from engine.melding.presets import PRESETS
from engine.melding.ruleset import Preset
from load.bench.figures import quantiles
from load.bench.measured_servers import MeasuredServer, cpu_seconds_of
from load.bench.play import PLAY_TURN, Call, Server
from load.calls import opened
from load.capacity.measuring import (
    Step,
    Stopwatch,
    chosen,
    first_round,
    redis_cpu_seconds,
    resident_bytes,
    running_servers,
    shelf_on,
)
from load.corpus.turns import read as read_turns
from load.messages import to_send
from load.tables import Table, new_table, sends_once
from rummikub.v1 import game_service_pb2 as gs
from tools.games import Client
from tools.redis_servers import RedisServer

CROWDS: Final = (0, 3, 30, 300, 3_000)
QUICK_MOST: Final = 30
TURNS: Final = {0: 40, 3: 40, 30: 30, 300: 12, 3_000: 5}
"""Measured turns for each number of watchers."""
TABLES: Final = 1_000
QUICK_TABLES: Final = 30
"""Games with one watcher each. In a deployment of many servers, the players of a game are at different ones."""
OPEN_AT_ONCE: Final = 25
CONNECTIONS: Final = 500
QUICK_CONNECTIONS: Final = 20
HEARTBEAT_SECONDS: Final = 2.0
IDLE_SECONDS: Final = 10.0
QUICK_IDLE_SECONDS: Final = 4.0
REDIS_IDLE_SECONDS: Final = 2.0
QUICK_REDIS_IDLE_SECONDS: Final = 0.2
COLD_GAMES: Final = 6_000
"""More games than a server remembers (service/storage/game_cache.py), one turn in each."""
QUICK_COLD_GAMES: Final = 200
VALIDATIONS: Final = 4_000
QUICK_VALIDATIONS: Final = 200
VALIDATE_TURN: Final = "/rummikub.v1.ValidationService/ValidateTurn"
DEADLINE_SECONDS: Final = 120
STREAMS_A_CHANNEL: Final = 100


class Watcher:
    """A WatchGame or WatchOwnGames stream that records the arrival of its updates."""

    def __init__(self, call: "grpc.aio.UnaryStreamCall[Any, Any]") -> None:
        self._call = call
        self.revision = 0
        self.etag = ""
        self.told_at = 0.0
        self.ended = asyncio.create_task(self._read())

    async def _read(self) -> str:
        try:
            async for update in self._call:
                self.told_at = time.perf_counter()
                match update.WhichOneof("update"):
                    case "snapshot":
                        self.revision, self.etag = update.snapshot.revision, update.snapshot.etag
                    case "change":
                        self.revision, self.etag = update.change.revision, update.change.etag
                    case "game":
                        self.revision = update.game.game.revision
                    case "heartbeat":
                        self.revision = max(self.revision, update.heartbeat.revision)
                    case "closing":
                        return f"closing in {update.closing.retry_delay.ToMilliseconds()} ms"
                    case _:
                        pass  # presence and drafts come without a revision
        except grpc.aio.AioRpcError as refused:
            return refused.code().name
        except asyncio.CancelledError:
            return "cancelled"
        return "ended"

    def close(self) -> None:
        """Cancels the stream."""
        self._call.cancel()


async def measure(step: Step, *, quick: bool) -> dict[str, Any]:
    """Returns the costs of watched turns, watchers, heartbeats and validations on one server."""
    found: dict[str, Any] = {"crowds": {}}
    for count in chosen(CROWDS, QUICK_MOST) if quick else CROWDS:
        step(f"turns with {count:,} watchers")
        redis_idle_seconds = QUICK_REDIS_IDLE_SECONDS if quick else REDIS_IDLE_SECONDS
        found["crowds"][str(count)] = await _measure_crowd(count, redis_idle_seconds)
    tables = QUICK_TABLES if quick else TABLES
    idle_seconds = QUICK_IDLE_SECONDS if quick else IDLE_SECONDS
    step(f"{tables:,} games with a watcher each")
    found["tables"] = await _measure_tables(tables, idle_seconds, _watch_game)
    step(f"{tables:,} games with a stream of a player's own games each")
    found["own_games"] = await _measure_tables(tables, idle_seconds, _watch_own_games)
    step("watchers with a connection each")
    found["connection_bytes"] = await _measure_connections(QUICK_CONNECTIONS if quick else CONNECTIONS)
    step("turns in games that the server does not remember, and validations")
    found |= await _measure_calls(
        QUICK_COLD_GAMES if quick else COLD_GAMES, QUICK_VALIDATIONS if quick else VALIDATIONS
    )
    return found


def watch(table: Table, some: Sequence[grpc.aio.Channel], count: int) -> list[Watcher]:
    """Opens watches of a game; the first two of a hundred watchers are the players."""
    request = gs.WatchGameRequest(game_id=table.game_id)
    watchers = []
    for number in range(count):
        seat = number % STREAMS_A_CHANNEL + 1
        call = Client(some[number % len(some)]).games.WatchGame(request, metadata=table.as_seat(seat))
        watchers.append(Watcher(call))
    return watchers


async def until_at(watchers: Sequence[Watcher], revision: int) -> None:
    """Returns when all watchers have got a revision."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while late := [watcher for watcher in watchers if watcher.revision < revision]:
            ended = [watcher.ended.result() for watcher in late if watcher.ended.done()]
            if ended:
                raise AssertionError(f"{len(ended)} watchers have ended: {ended[0]}")
            await asyncio.sleep(0.002)


async def close(watchers: Sequence[Watcher]) -> None:
    """Cancels watches."""
    for watcher in watchers:
        watcher.close()
    await asyncio.gather(*(watcher.ended for watcher in watchers))


_Open: TypeAlias = Callable[[Table, grpc.aio.Channel], Watcher]
"""Opens a stream of a game."""


class _Meter:
    """The CPU of a server and its Redis since the last reading."""

    def __init__(self, server: MeasuredServer, redis: RedisServer) -> None:
        self._pid = server.processes[0]
        self._redis = redis
        self._last = self._now()

    def _now(self) -> tuple[float, float]:
        return cpu_seconds_of(self._pid), redis_cpu_seconds(self._redis)

    def read(self, calls: float = 1) -> tuple[float, float]:
        """Returns the microseconds of the server and of Redis for one of some calls."""
        before, self._last = self._last, self._now()
        server, redis = ((now - then) / calls * 1e6 for now, then in zip(self._last, before, strict=True))
        return server, redis


async def _idle_redis_us(redis: RedisServer, seconds: float) -> float:
    """Returns the microseconds of CPU that Redis uses in a second without turns."""
    cpu, stopwatch = redis_cpu_seconds(redis), Stopwatch()
    await asyncio.sleep(seconds)
    return (redis_cpu_seconds(redis) - cpu) / stopwatch.seconds * 1e6


async def _measure_crowd(count: int, idle_seconds: float) -> dict[str, Any]:
    async with (
        running_servers() as (redis, [server]),
        opened(server.main, count // STREAMS_A_CHANNEL + 2) as [own, *some],
    ):
        client = Client(own)
        table = await new_table(sends_once(client))
        for _ in range(5):
            await table.draw(client)
        memory = resident_bytes(server.processes[0])
        crowd = watch(table, some, count)
        await until_at(crowd, table.game.revision)
        for _ in range(2):
            await until_at(crowd, await table.draw(client))
        memory = resident_bytes(server.processes[0]) - memory
        turns = min(TURNS[count], table.game.pool_count - 1)
        idle_us = await _idle_redis_us(redis, idle_seconds)
        meter, stopwatch, told = _Meter(server, redis), Stopwatch(), []
        for _ in range(turns):
            started = time.perf_counter()
            await until_at(crowd, await table.draw(client))
            told += [(watcher.told_at - started) * 1e3 for watcher in crowd]
        turn_us, redis_turn_us = meter.read(turns)
        redis_turn_us = max(0.0, redis_turn_us - idle_us * stopwatch.seconds / turns)
        await close(crowd)
        return {
            "turn_us": turn_us,
            "redis_turn_us": redis_turn_us,
            "told_ms": quantiles(told) if told else None,
            "watcher_bytes": memory / count if count else None,
        }


async def _measure_tables(count: int, idle_seconds: float, open_one: _Open) -> dict[str, float]:
    """Many games with one watcher each: the cost of a turn, of a heartbeat, and of a watcher with its feed."""
    heartbeat = str(HEARTBEAT_SECONDS)
    async with (
        running_servers(RUMMIKUB_HEARTBEAT_SECONDS=heartbeat) as (redis, [server]),
        opened(server.main, count // STREAMS_A_CHANNEL + 1) as some,
    ):
        client = Client(some[0])
        tables = [await new_table(sends_once(client)) for _ in range(count)]
        memory = resident_bytes(server.processes[0])
        crowd: list[Watcher] = []
        for start in range(0, count, OPEN_AT_ONCE):
            opening = (_watcher(open_one, tables[number], some[number % len(some)]) for number in _places(start, count))
            crowd += await asyncio.gather(*opening)
        memory = resident_bytes(server.processes[0]) - memory
        meter, watch = _Meter(server, redis), Stopwatch()
        for table, watcher in zip(tables, crowd, strict=True):
            await until_at([watcher], await table.draw(client))
        turns, turn_seconds = meter.read(), watch.seconds
        await asyncio.sleep(idle_seconds)
        watched = meter.read()
        turn_us, redis_turn_us = (  # without the heartbeats meanwhile
            max(0.0, cost - idle * turn_seconds / idle_seconds) / count
            for cost, idle in zip(turns, watched, strict=True)
        )
        await close(crowd)
        meter.read()
        await asyncio.sleep(idle_seconds)
        alone = meter.read()
        heartbeats = count * idle_seconds / HEARTBEAT_SECONDS
        heartbeat_us, redis_heartbeat_us = (
            max(0.0, cost - base) / heartbeats for cost, base in zip(watched, alone, strict=True)
        )
        return {
            "turn_us": turn_us,
            "redis_turn_us": redis_turn_us,
            "heartbeat_us": heartbeat_us,
            "redis_heartbeat_us": redis_heartbeat_us,
            "watcher_bytes": memory / count,
        }


def _places(start: int, count: int) -> range:
    return range(start, min(start + OPEN_AT_ONCE, count))


def _watch_game(table: Table, channel: grpc.aio.Channel) -> Watcher:
    return watch(table, [channel], 1)[0]


def _watch_own_games(table: Table, channel: grpc.aio.Channel) -> Watcher:
    """Opens the stream of all games of a player, who has only this one."""
    seat = gs.OwnSeat(game_id=table.game_id, seat_token=table.tokens[1])
    return Watcher(Client(channel).games.WatchOwnGames(gs.WatchOwnGamesRequest(seats=[seat])))


async def _watcher(open_one: _Open, table: Table, channel: grpc.aio.Channel) -> Watcher:
    """Returns an open watch of a game. If the server is too busy, it tries again, as clients do."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            watcher = open_one(table, channel)
            while not watcher.ended.done():
                if watcher.revision:
                    return watcher
                await asyncio.sleep(0.002)
            await asyncio.sleep(1)


async def _measure_connections(count: int) -> float:
    """Returns the bytes that a watcher with a connection of its own takes beyond one on a shared connection."""
    grown = []
    for connections in (max(1, count // STREAMS_A_CHANNEL), count):
        async with running_servers() as (_, [server]), opened(server.main, connections + 1) as [own, *some]:
            table = await new_table(sends_once(Client(own)))
            memory = resident_bytes(server.processes[0])
            crowd = watch(table, some, count)
            await until_at(crowd, table.game.revision)
            grown.append(resident_bytes(server.processes[0]) - memory)
            await close(crowd)
    return max(0.0, (grown[1] - grown[0]) / count)


async def _measure_calls(cold_games: int, validations: int) -> dict[str, float]:
    async with running_servers() as (redis, [server]), shelf_on(redis) as shelf, AsyncExitStack() as stack:
        [main] = await stack.enter_async_context(opened(server.main, 1))
        [validation] = await stack.enter_async_context(opened(server.validation, 1))
        pid = server.processes[0]
        templates = [await first_round(shelf, PRESETS[Preset.SABRA], seed) for seed in range(10)]
        playing = Server(pid, main)
        remembered = await shelf.copies(templates, 10)
        await playing.send(PLAY_TURN, [game[:5] for game in remembered])
        meter = _Meter(server, redis)
        sent = await playing.send(PLAY_TURN, [game[5:] for game in remembered])
        warm = meter.read(len(sent))
        unknown = [game[:1] for game in await shelf.copies(templates, cold_games)]
        meter.read()
        cold = meter.read(len(await playing.send(PLAY_TURN, unknown)))
        turns = itertools.cycle([Call(to_send(turn).turn.SerializeToString()) for turn in read_turns()])
        calls = [[next(turns) for _ in range(10)] for _ in range(validations // 10)]
        await Server(pid, validation).send(VALIDATE_TURN, calls)
        meter.read()
        validation_us, _ = meter.read(len(await Server(pid, validation).send(VALIDATE_TURN, calls)))
        return {
            "warm_turn_us": warm[0],
            "redis_warm_turn_us": warm[1],
            "cold_turn_us": cold[0],
            "redis_cold_turn_us": cold[1],
            "validation_us": validation_us,
            "process_bytes": sum(map(resident_bytes, server.tree())),
        }
