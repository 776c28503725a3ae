"""A server is stopped while many watch: how fast they come back to another one, each after its `retry_delay`."""

import asyncio
import os
import random
import resource
import signal
import time
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any, Final

import grpc.aio

from load.bench.figures import quantiles
from load.bench.measured_servers import cpu_seconds_of
from load.calls import opened
from load.capacity.measuring import Step, Stopwatch, open_files, running_servers
from load.capacity.watchers import STREAMS_A_CHANNEL
from load.tables import NO_TIME_LIMIT
from rummikub.v1 import game_service_pb2 as gs
from tools.games import Client, GameAtHand

WATCHERS: Final = 10_000
QUICK_WATCHERS: Final = 200
GAME_WATCHERS: Final = 4
TIMEOUT_SECONDS: Final = 300
OPEN_AT_ONCE: Final = 50


async def measure(step: Step, *, quick: bool, watchers: int = WATCHERS) -> dict[str, Any]:
    """Returns when the watchers of a stopped server came back, and what it cost the other server."""
    count = QUICK_WATCHERS if quick else watchers
    async with running_servers(2) as (_, [first, second]), AsyncExitStack() as stack:
        connections = count // STREAMS_A_CHANNEL
        some = await stack.enter_async_context(opened(first.main, connections))
        others = await stack.enter_async_context(opened(second.main, connections))
        step(f"{count:,} watchers")
        games = [await Client(some[0]).new_game(ruleset=NO_TIME_LIMIT) for _ in range(count // GAME_WATCHERS)]
        crowd = [
            _Watcher(games[number // GAME_WATCHERS], some[number % connections], others[number % connections])
            for number in range(count)
        ]
        for start in range(0, count, OPEN_AT_ONCE):
            await asyncio.gather(*(watcher.open() for watcher in crowd[start : start + OPEN_AT_ONCE]))
        files = open_files(first.processes[0])
        step("the server is stopped")
        cpu, watch = cpu_seconds_of(second.processes[0]), Stopwatch()
        stopped = time.perf_counter()
        os.kill(first.processes[0], signal.SIGTERM)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await asyncio.gather(*(watcher.come_back() for watcher in crowd))
        seconds, cpu = watch.seconds, cpu_seconds_of(second.processes[0]) - cpu
        for watcher in crowd:
            watcher.close()
        return _report(crowd, stopped, seconds, cpu, files)


class _Watcher:
    """A watcher that returns to another server after the delay that the first one names."""

    def __init__(self, game: GameAtHand, first: grpc.aio.Channel, second: grpc.aio.Channel) -> None:
        self._game = game
        self._first, self._second = first, second
        self._call: grpc.aio.UnaryStreamCall[gs.WatchGameRequest, gs.WatchGameResponse] | None = None
        self._etag = ""
        self.told_at = self.called_at = self.back_at = 0.0
        self.delay_seconds = 0.0
        self.answer_ms = 0.0
        self.end = ""
        self.retries = 0

    async def open(self) -> None:
        """Opens the watch and receives the snapshot."""
        request = gs.WatchGameRequest(game_id=self._game.game_id)
        self._call = Client(self._first).games.WatchGame(request, metadata=self._game.as_seat(1))
        self._updates = aiter(self._call)
        self._etag = (await anext(self._updates)).snapshot.etag

    async def come_back(self) -> None:
        """Waits for the end of the watch and its delay, then opens a watch at the other server."""
        await self._until_closing()
        await asyncio.sleep(self.delay_seconds)
        self.called_at = time.perf_counter()
        while not self.back_at:
            started = time.perf_counter()
            request = gs.WatchGameRequest(game_id=self._game.game_id, etag=self._etag)
            self._call = Client(self._second).games.WatchGame(request, metadata=self._game.as_seat(1))
            try:
                await self._call.read()
            except grpc.aio.AioRpcError:
                self.retries += 1
                await asyncio.sleep(1 + random.random())
            else:
                self.back_at = time.perf_counter()
                self.answer_ms = (self.back_at - started) * 1e3

    async def _until_closing(self) -> None:
        try:
            async for update in self._updates:
                if update.HasField("closing"):
                    self.delay_seconds = update.closing.retry_delay.ToMilliseconds() / 1e3
                    self.end = "closing"
        except grpc.aio.AioRpcError as error:
            self.end = self.end or error.code().name
        self.told_at = time.perf_counter()

    def close(self) -> None:
        """Cancels the watch."""
        if self._call is not None:
            self._call.cancel()


def _report(crowd: list[_Watcher], stopped: float, seconds: float, cpu: float, files: int) -> dict[str, Any]:
    by_second = Counter(int(watcher.called_at - stopped) for watcher in crowd)
    return {
        "watchers": len(crowd),
        "ends": dict(Counter(watcher.end for watcher in crowd)),
        "told_seconds": quantiles([watcher.told_at - stopped for watcher in crowd]),
        "delay_seconds": quantiles([watcher.delay_seconds for watcher in crowd]),
        "answer_ms": quantiles([watcher.answer_ms for watcher in crowd]),
        "all_back_seconds": seconds,
        "called_by_second": [by_second[second] for second in range(max(by_second) + 1)],
        "retries": sum(watcher.retries for watcher in crowd),
        "server_us": cpu / len(crowd) * 1e6,
        "open_files": files,
        "file_limit": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
    }
