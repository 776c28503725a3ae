"""Cost of lists, counts and the sweeper by the number of games in the store."""

import asyncio
import contextlib
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from engine.game import Lobby
from engine.melding.presets import PRESETS
from engine.melding.ruleset import Preset
from load.bench.figures import quantiles
from load.bench.measured_servers import cpu_seconds_of
from load.bench.play import HISTORY, LIFETIMES
from load.calls import opened
from load.capacity.measuring import (
    Step,
    chosen,
    redis_cpu_seconds,
    running_servers,
)
from load.corpus.recorded_turns import rounds
from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from service.app.changes import ChangeLoop
from service.app.identity import SystemChance
from service.app.sweeper import Sweeper
from service.errors import StoreUnavailable
from service.model.change import NO_ETAG, Commit, lineage
from service.model.record import GameState, Listing, Record, SeatToken, Visibility
from service.storage.lists import list_member
from service.storage.redis.store import RedisStore, connect
from service.storage.stored_events import encode_change
from tools.games import Client
from tools.redis_servers import RedisServer

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
LEAST_GAMES: Final = 10_000
"""Growth is measured from here: in smaller stores a filter that no game passes reads fewer than its maximum."""
QUICK_MOST: Final = 1_000
LOBBY_SHARE: Final = 0.1
PUBLIC_SHARE: Final = 0.5
AT_ONCE: Final = 50
"""Games that are stored concurrently."""
ATTEMPTS: Final = 10
CALLS: Final = 60
PAGE: Final = 50
DUE: Final = 1_000
QUICK_DUE: Final = 100
LABELS: Final = (("queue", "ranked"),)
NO_GAME_HAS: Final = {"queue": "nowhere"}


async def measure(step: Step, *, quick: bool, most_games: int) -> dict[str, Any]:
    """Returns the costs by the number of games."""
    async with running_servers(RUMMIKUB_SWEEP_SECONDS="3600") as (redis, [server]):
        store = RedisStore(connect(redis.url), LIFETIMES, HISTORY)
        shelf = _Games(store)
        found = {}
        try:
            for size in chosen(SIZES, QUICK_MOST if quick else most_games):
                step(f"{size:,} games")
                await shelf.fill(size, step)
                found[str(size)] = await _measure_size(
                    store, shelf, redis, (server.main, server.processes[0]), QUICK_DUE if quick else DUE
                )
        finally:
            await store.close()
    return found


class _Games:
    """Games in a store: a lobby or a game in its first round, public or not, by turns."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._now_ms = 0
        self.records: list[str] = []
        """The list members of public games in the lobby, oldest first."""
        self.playing: list[str] = []
        self._count = 0

    async def fill(self, size: int, step: Step) -> None:
        """Adds games up to a number."""
        self._now_ms = await self._store.now_ms()
        recorded = next(rounds(1, PRESETS[Preset.SABRA], self._now_ms))
        lobby = next(game for game, _ in reversed(recorded.before) if isinstance(game.phase, Lobby))
        playing = recorded.games[len(recorded.games) // 2]
        started = self._count
        while self._count < size:
            numbers = range(self._count, min(size, self._count + AT_ONCE))
            await asyncio.gather(*(self._add(number, lobby, playing) for number in numbers))
            self._count = numbers.stop
            if (self._count - started) % 100_000 == 0:
                step(f"{self._count:,} games are stored")

    async def _add(self, number: int, lobby: Any, playing: Any) -> None:  # noqa: ANN401 - games
        is_lobby, is_public = number % 10 < LOBBY_SHARE * 10, number // 10 % 10 < PUBLIC_SHARE * 10
        game = replace(lobby if is_lobby else playing, revision=1)
        listing = Listing(Visibility.PUBLIC if is_public else Visibility.UNLISTED, "", LABELS)
        change = encode_change(1, self._now_ms, bytes(16), ())
        tokens = tuple(SeatToken(player.seat, bytes(32)) for player in game.players)
        created_ms = self._now_ms - 1_000_000 + number
        record = Record(f"{number:032x}", game, lineage(NO_ETAG, change), tokens, created_ms, self._now_ms, listing)
        for _ in range(ATTEMPTS):
            with contextlib.suppress(StoreUnavailable):  # no reply in time, on a busy machine
                await self._store.lists.index(record)
                await self._store.games.commit(Commit(NO_ETAG, record, change))
                if not is_lobby:
                    await self._store.deadlines.arm(record.game_id, self._now_ms + 86_400_000)
                break
            await asyncio.sleep(1)
        if not is_lobby:
            self.playing.append(record.game_id)
        elif is_public:
            self.records.append(list_member(record))


async def _measure_size(
    store: RedisStore, shelf: _Games, redis: RedisServer, server: tuple[str, int], due: int
) -> dict[str, Any]:
    target, pid = server
    middle = shelf.records[len(shelf.records) // 2]

    async def page(cursor: str) -> None:
        await store.lists.page([GameState.LOBBY], cursor, PAGE, is_public=True)

    operations: dict[str, Callable[[], Awaitable[object]]] = {
        "first page": lambda: page(""),
        "page in the middle": lambda: page(middle),
        "count": store.lists.count,
        "check_room": store.check_room,
        "claim, none due": lambda: store.deadlines.claim(32),
    }
    found = {name: await _cost(redis, operation) for name, operation in operations.items()}
    async with opened(target, 1) as [channel]:
        client = Client(channel)
        public = gs.ListGamesRequest(states=[game_pb2.GAME_STATE_LOBBY], page_size=PAGE)
        unmatched = gs.ListGamesRequest(states=[game_pb2.GAME_STATE_LOBBY], page_size=PAGE, labels=NO_GAME_HAS)
        for name, request in (("ListGames", public), ("ListGames, a filter that no game passes", unmatched)):
            before = cpu_seconds_of(pid)
            found[name] = await _cost(redis, lambda request=request: client.games.ListGames(request))  # type: ignore[misc]
            found[name]["server_us"] = (cpu_seconds_of(pid) - before) / (CALLS + 1) * 1e6
    found["sweeper check"] = await _sweep_cost(shelf, redis, due)
    return found


async def _cost(redis: RedisServer, operation: Callable[[], Awaitable[object]]) -> dict[str, float]:
    """Returns the latency of an operation, and Redis's CPU for it."""
    await operation()
    milliseconds, cpu = [], redis_cpu_seconds(redis)
    for _ in range(CALLS):
        started = time.perf_counter()
        await operation()
        milliseconds.append((time.perf_counter() - started) * 1e3)
    return {
        "ms": statistics.median(milliseconds),
        "p95_ms": quantiles(milliseconds)["p95"],
        "redis_us": (redis_cpu_seconds(redis) - cpu) / CALLS * 1e6,
    }


async def _sweep_cost(shelf: _Games, redis: RedisServer, due: int) -> dict[str, float]:
    """Returns the cost of a game that the sweeper looks at because its entry is due, although its turn is not over."""
    games = list(islice(shelf.playing, due))
    store = RedisStore(connect(redis.url), LIFETIMES, HISTORY)  # one that remembers no game
    try:
        for start in range(0, len(games), AT_ONCE):
            await asyncio.gather(*(store.deadlines.arm(game_id, 1) for game_id in games[start : start + AT_ONCE]))
        sweeper = Sweeper(ChangeLoop(store, SystemChance()), store, 3600, asyncio.Event())
        cpu, started, own = redis_cpu_seconds(redis), time.perf_counter(), time.process_time()
        checked = await sweeper.sweep()
        return {
            "ms": (time.perf_counter() - started) / checked * 1e3,
            "server_us": (time.process_time() - own) / checked * 1e6,
            "redis_us": (redis_cpu_seconds(redis) - cpu) / checked * 1e6,
            "games": checked,
        }
    finally:
        await store.close()


def compared_sizes(found: Mapping[str, object]) -> tuple[int, int]:
    """Returns the number of games that growth is measured from, and the most games."""
    sizes = sorted(map(int, found))
    return next((size for size in sizes if size >= LEAST_GAMES), sizes[-1]), sizes[-1]


def growth(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, float]:
    """Returns how many times as much CPU each operation takes with the most games, of Redis and of a server."""
    least, most = (found[str(size)] for size in compared_sizes(found))
    return {
        f"{name}, {whose}": costs[key] / max(least[name][key], 1.0)
        for name, costs in most.items()
        for key, whose in (("redis_us", "Redis"), ("server_us", "server"))
        if key in costs
    }
