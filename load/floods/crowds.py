"""Crowds: the cost of many watchers of one game, many due games, and a long round.

Each part starts its own servers on its own Redis. `--checkout DIR` measures the servers of another checkout.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import grpc.aio
import redis
from google.protobuf.duration_pb2 import Duration
from grpc_health.v1 import health_pb2, health_pb2_grpc
from rich.console import Console

from load.bench.figures import printer, quantiles
from load.bench.measured_servers import MeasuredServer, cpu_seconds_of, ready, serving
from load.calls import OWN_CONNECTION, opened
from load.tables import NO_TIME_LIMIT
from rummikub.v1 import analysis_service_pb2, game_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from tools.games import Client, GameAtHand
from tools.redis_servers import RedisServer, running_redis
from tools.servers import ROOT, end_in_order

RESULTS: Final = Path("build") / "crowds.json"
WITH_HINTS: Final = ruleset_pb2.Ruleset(turn_time_limit_seconds=0, hints=ruleset_pb2.HINTS_TURN)
LIST_RULESETS: Final = "/rummikub.v1.ValidationService/ListRulesets"
STREAMS_A_CHANNEL: Final = 100
SETTINGS: Final = {
    "RUMMIKUB_LISTEN": "127.0.0.1:0",
    "RUMMIKUB_VALIDATION_LISTEN": "127.0.0.1:0",
    "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0",
    "RUMMIKUB_LOG_LEVEL": "warning",
    "RUMMIKUB_MAX_STREAMS": "1000",
}
NEW_SETTINGS: Final = {"RUMMIKUB_PEER_SHARE": "1", "RUMMIKUB_GAMES_PER_MINUTE": "0"}
"""Settings that servers need to accept a crowd from one address."""


class Watcher:
    """A WatchGame stream that records the arrival of its updates."""

    def __init__(self, call: "grpc.aio.UnaryStreamCall[gs.WatchGameRequest, gs.WatchGameResponse]") -> None:
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


@asynccontextmanager
async def _servers(count: int, checkout: Path) -> AsyncIterator[tuple[RedisServer, list[MeasuredServer]]]:
    with running_redis() as store, contextlib.ExitStack() as stack:
        settings = {**SETTINGS, "RUMMIKUB_REDIS_URL": store.url, **(NEW_SETTINGS if checkout == ROOT else {})}
        started = [stack.enter_context(serving("service", settings=settings, checkout=checkout)) for _ in range(count)]
        yield store, [ready(process) for process in started]


def _watch(channels: Sequence[grpc.aio.Channel], game: GameAtHand, count: int) -> list[Watcher]:
    """Opens watches on some channels; two of a hundred watchers are players."""
    watchers = []
    for number in range(count):
        seat = number % STREAMS_A_CHANNEL if number % STREAMS_A_CHANNEL in {1, 2} else 0
        client = Client(channels[number % len(channels)])
        request = gs.WatchGameRequest(game_id=game.game_id)
        watchers.append(Watcher(client.games.WatchGame(request, metadata=game.as_seat(seat))))
    return watchers


async def _until(condition: Callable[[], bool], seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - other processes notify no one
            await asyncio.sleep(0.005)


@asynccontextmanager
async def _looking(target: str, lags: list[float]) -> AsyncIterator[None]:
    """Records the latency of health checks from another process, which shows how long the server's loop is blocked."""
    command = [sys.executable, "-m", "load.floods.crowds", "--look", target]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None  # noqa: S101 - for the type
    await process.stdout.readline()
    try:
        yield
    finally:
        answer, _ = await process.communicate(b"")
        lags += json.loads(answer)


async def _look(target: str) -> None:
    """Checks the health of a server every 2 ms until standard input ends, and prints the latency of each check."""
    lags: list[float] = []
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    async with grpc.aio.insecure_channel(target, OWN_CONNECTION) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        await stub.Check(health_pb2.HealthCheckRequest())
        print(flush=True)
        while not ended.done():
            started = time.perf_counter()
            await stub.Check(health_pb2.HealthCheckRequest())
            lags.append((time.perf_counter() - started) * 1e3)
            await asyncio.sleep(0.002)
    print(json.dumps(lags))


async def _draws(
    game: GameAtHand, crowd: Sequence[Watcher], server: MeasuredServer, count: int
) -> tuple[float, list[float]]:
    """Draws tiles; returns the server's CPU seconds per draw, and the milliseconds until each update."""
    told: list[float] = []
    cpu = cpu_seconds_of(server.processes[0])
    for _ in range(count):
        started = time.perf_counter()
        revision = (await game.draw()).game.revision
        await _until(lambda: all(watcher.revision >= revision for watcher in crowd))  # noqa: B023 - awaited here
        told += [(watcher.told_at - started) * 1e3 for watcher in crowd]
    return (cpu_seconds_of(server.processes[0]) - cpu) / count, told


async def watchers(checkout: Path) -> dict[str, Any]:
    """3, 1,000 and 2,000 watchers of one game: the latency of updates, and the server's CPU for a turn."""
    found = {}
    for count in (3, 1_000, 2_000):
        async with AsyncExitStack() as stack:
            _, [server] = await stack.enter_async_context(_servers(1, checkout))
            [own, *some] = await stack.enter_async_context(opened(server.main, count // STREAMS_A_CHANNEL + 2))
            draws = 20 if count == 3 else 5
            game = await Client(own).new_game(ruleset=NO_TIME_LIMIT)
            await _draws(game, (), server, 5)
            alone, _ = await _draws(game, (), server, 20)
            crowd = _watch(some, game, count)
            await _until(lambda: all(watcher.revision for watcher in crowd))  # noqa: B023 - awaited here
            await _draws(game, crowd, server, 2)
            cpu, told = await _draws(game, crowd, server, draws)
            lags: list[float] = []
            async with _looking(server.main, lags):
                await _draws(game, crowd, server, draws)
            found[str(count)] = {
                "told_ms": quantiles(told),
                "cpu_us_a_turn_alone": alone * 1e6,
                "cpu_us_a_watcher": (cpu - alone) / count * 1e6,
                "health_check_ms": quantiles(lags),
            }
            for watcher in crowd:
                watcher.close()
            await asyncio.gather(*(watcher.ended for watcher in crowd))
    return found


async def churn(checkout: Path) -> dict[str, Any]:
    """Watchers come and go five times a second for 20 s: the latency for those who stay, and abandoned connections."""
    async with _servers(1, checkout) as (store, [server]), opened(server.main, 2) as (one, other):
        game = await Client(one).new_game(ruleset=NO_TIME_LIMIT)
        [staying] = _watch([one], game, 1)
        is_back = lambda: staying.revision > 0  # noqa: E731 - binds the current watcher
        others = [await Client(one).new_game(ruleset=NO_TIME_LIMIT) for _ in range(10)]
        await _until(is_back)
        with redis.Redis(unix_socket_path=str(store.socket)) as raw:
            connections = raw.info("stats")["total_connections_received"]
            told = []
            end = time.monotonic() + 20
            for place in itertools.count():
                if time.monotonic() > end:
                    break
                [passing] = _watch([other], others[place % 10], 1)
                started = time.perf_counter()
                revision = (await game.draw()).game.revision
                await _until(lambda: staying.revision >= revision)  # noqa: B023 - awaited here
                told.append((staying.told_at - started) * 1e3)
                passing.close()
                await asyncio.sleep(0.2)
                if (await game.see()).pool_count == 0:
                    staying.close()
                    game = await Client(one).new_game(ruleset=NO_TIME_LIMIT)
                    [staying] = _watch([one], game, 1)
                    await _until(is_back)
            connections = raw.info("stats")["total_connections_received"] - connections
        staying.close()
        return {"told_ms": quantiles(told), "new_connections_to_redis": connections}


async def resume(checkout: Path) -> dict[str, Any]:
    """2,000 watchers of one game whose server is replaced: the time until each has resumed."""
    count = 2_000
    async with _servers(2, checkout) as (_, [first, second]), AsyncExitStack() as stack:
        some = await stack.enter_async_context(opened(first.main, count // STREAMS_A_CHANNEL))
        others = await stack.enter_async_context(opened(second.main, count // STREAMS_A_CHANNEL))
        game = await Client(some[0]).new_game(ruleset=NO_TIME_LIMIT)
        crowd = _watch(some, game, count)
        await _until(lambda: all(watcher.revision for watcher in crowd))
        cpu, started = cpu_seconds_of(second.processes[0]), time.perf_counter()

        async def come_back(number: int) -> float:
            client = Client(others[number % len(others)])
            request = gs.WatchGameRequest(
                game_id=game.game_id, after_revision=crowd[number].revision, etag=crowd[number].etag
            )
            began = time.perf_counter()
            call = client.games.WatchGame(request)
            await call.read()
            back = (time.perf_counter() - began) * 1e3
            call.cancel()
            return back

        back = await asyncio.gather(*(come_back(number) for number in range(count)))
        lasted = time.perf_counter() - started
        cpu = cpu_seconds_of(second.processes[0]) - cpu
        for watcher in crowd:
            watcher.close()
        return {"back_ms": quantiles(back), "all_back_s": lasted, "cpu_us_a_watcher": cpu / count * 1e6}


async def restarts(checkout: Path) -> dict[str, Any]:
    """Ten servers that are stopped while 30 clients call and 10 open watches: the outcomes of their calls."""
    ends: Counter[str] = Counter()
    for _ in range(10):
        async with AsyncExitStack() as stack:
            _, [server] = await stack.enter_async_context(_servers(1, checkout))
            channels = await stack.enter_async_context(opened(server.main, 20))
            own = await stack.enter_async_context(opened(server.validation, 10))
            game = await Client(channels[0]).new_game(ruleset=NO_TIME_LIMIT)
            calling = [asyncio.create_task(_call_on(channel, ends)) for channel in (*channels, *own)]
            calling += [asyncio.create_task(_watch_on(channel, game.game_id, ends)) for channel in channels[:10]]
            await asyncio.sleep(1)
            os.kill(server.processes[0], signal.SIGTERM)
            await asyncio.sleep(2)
            for one in calling:
                one.cancel()
            await asyncio.gather(*calling, return_exceptions=True)
    return dict(ends.most_common())


async def _call_on(channel: grpc.aio.Channel, ends: "Counter[str]") -> None:
    """Calls repeatedly until the task is cancelled."""
    list_rulesets: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(LIST_RULESETS)
    while True:
        try:
            await list_rulesets(b"", timeout=5)
            ends["OK"] += 1
        except grpc.aio.AioRpcError as error:
            ends[_end(error)] += 1
            await asyncio.sleep(0.02)


async def _watch_on(channel: grpc.aio.Channel, game_id: str, ends: "Counter[str]") -> None:
    """Opens watches repeatedly, and cancels each after its first update."""
    client = Client(channel)
    while True:
        call = client.games.WatchGame(gs.WatchGameRequest(game_id=game_id))
        try:
            await call.read()
            call.cancel()
            ends["OK, a watch"] += 1
        except grpc.aio.AioRpcError as error:
            ends[f"{_end(error)}, a watch"] += 1
            await asyncio.sleep(0.02)


def _end(error: grpc.aio.AioRpcError) -> str:
    return f"{error.code().name} {(error.details() or '')[:40]}".strip()


async def sweeps(checkout: Path) -> dict[str, Any]:
    """2,000 due games with one, three and five servers: how often a game is read."""
    from service.storage.redis.keys import keys_of  # noqa: PLC0415 - the names of the keys

    games = 2_000
    found = {}
    for servers in (1, 3, 5):
        async with _servers(servers, checkout) as (store, running):
            async with grpc.aio.insecure_channel(running[0].main, OWN_CONNECTION) as channel:
                template = await Client(channel).new_game(ruleset=ruleset_pb2.Ruleset(turn_time_limit_seconds=86_400))
            with redis.Redis(unix_socket_path=str(store.socket)) as raw:
                dumps = [raw.dump(key) for key in keys_of(template.game_id)]
                ids = [f"{number:032x}" for number in range(games)]
                loads = raw.info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0)
                with raw.pipeline(transaction=False) as pipe:
                    for game_id in ids:
                        for key, dump in zip(keys_of(game_id), dumps, strict=True):
                            if dump:
                                pipe.restore(key, 0, dump)
                    pipe.execute()
                raw.config_resetstat()
                raw.zadd("rummikub:deadlines", dict.fromkeys(ids, 1))
                while raw.zcount("rummikub:deadlines", 0, int(time.time() * 1000) + 10_000):  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.05)
                stats = raw.info("commandstats")
                looks = stats["cmdstat_hget"]["calls"]
                found[str(servers)] = {"hash_reads_a_game": looks / games, "loads_before": loads}
    return found


async def memory(checkout: Path) -> dict[str, Any]:
    """A round of four players, played to its end with the service's own hints: its memory in Redis."""
    async with _servers(1, checkout) as (store, [server]), opened(server.main, 1) as [channel]:
        client = Client(channel)
        game = await client.new_game(4, ruleset=WITH_HINTS)
        while (seen := await game.see()).state == game_pb2.GAME_STATE_PLAYING:
            await _take_a_turn(client, game, seen)
        with redis.Redis(unix_socket_path=str(store.socket)) as raw:
            sizes = {
                key.decode().rpartition(":")[2]: (raw.memory_usage(key, samples=0), raw.pttl(key))
                for key in raw.scan_iter(f"*{game.game_id}*")
            }
        an_hour_later = sum(size or 0 for size, ttl_ms in sizes.values() if ttl_ms > 3_600_000)
        return {
            "changes": seen.revision,
            "bytes": {name: size for name, (size, _) in sizes.items()},
            "sum": sum(size or 0 for size, _ in sizes.values()),
            "an_hour_after_the_end": an_hour_later,
        }


async def _take_a_turn(client: Client, game: GameAtHand, seen: game_pb2.Game) -> None:
    request = analysis_service_pb2.SuggestTurnRequest(
        game_id=game.game_id, tier=analysis_service_pb2.HINT_TIER_TURN, time_limit=Duration(nanos=200_000_000)
    )
    player = game.as_seat(seen.turn.seat)
    found = await client.analysis.SuggestTurn(request, metadata=player)
    await client.turns.PlayTurn(found.turn, metadata=player)


PARTS: Final[dict[str, Callable[[Path], Awaitable[dict[str, Any]]]]] = {
    "watchers": watchers,
    "churn": churn,
    "resume": resume,
    "restarts": restarts,
    "sweeps": sweeps,
    "memory": memory,
}


def main() -> int:
    """Runs the named parts, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"all, or some of {', '.join(PARTS)}")
    parser.add_argument("--look", metavar="TARGET", help=argparse.SUPPRESS)
    parser.add_argument(
        "--checkout", type=Path, default=ROOT, help="use the servers of another checkout, with its .venv"
    )
    chosen = parser.parse_args()
    unknown = sorted(set(chosen.parts) - set(PARTS))
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}")
    if chosen.look:
        asyncio.run(_look(chosen.look))
        return 0
    end_in_order()
    console: Console = printer()
    report: dict[str, Any] = {}
    for name in chosen.parts or PARTS:
        report[name] = asyncio.run(PARTS[name](chosen.checkout))  # type: ignore[arg-type]  # coroutine functions
        console.print(f"[bold]{name}[/bold]: {PARTS[name].__doc__}", highlight=False)
        console.print_json(json.dumps(report[name]))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
