"""Every timer of a game is applied once: by two servers, over kills between any two steps, and by a stopped store."""

import asyncio
import itertools
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import grpc.aio
import pytest

from engine.melding.presets import GAME_OPTIONS
from engine.room_settings import AbsentAction, ClockFlag
from rummikub.v1 import game_pb2, room_settings_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.app.changes import ChangeLoop
from service.app.sweeper import Sweeper
from service.errors import StoreUnavailable
from service.model.change import Commit, Outcome
from service.model.deadlines import CLAIM_MS
from service.model.record import GameState
from service.server import Server
from service.storage.store import Store
from support.delegating_store import DelegatingStore, MortalStore
from support.harness import (
    Client,
    FakeClock,
    GameAtHand,
    SeededChance,
    error_info,
    memory_store,
    redis_store,
    running_server,
    server_process,
    server_settings,
)
from support.soak import few_of
from support.stores import STORES
from tools.redis_servers import RedisServer

pytestmark = pytest.mark.slow

_T = TypeVar("_T")
LIMIT = 30
"""When every timer of the table is due, in seconds."""
NO_SWEEPS = server_settings(sweep_seconds=3600)


@dataclass(frozen=True)
class Timer:
    """A timer, and what it changes.

    Attributes:
        name: What it is.
        options: The options of the ruleset that matter.
        events: The types of the events of its change.
        players: How many play.
        timed_out: How many turns have timed out before.
        state: The state of the game in which it runs.
        goes_on: Whether another timer runs after it.
    """

    name: str
    options: Mapping[str, Any]
    events: Sequence[str]
    players: int = 3
    timed_out: int = 0
    state: GameState = GameState.PLAYING
    goes_on: bool = True

    def within(self, seconds: int) -> "Timer":
        """Returns the timer with another time instead of LIMIT."""
        return replace(
            self, options={name: seconds if value == LIMIT else value for name, value in self.options.items()}
        )

    async def start(self, client: Client, clock: FakeClock) -> GameAtHand:
        """Returns a game in which the timer has just begun to run."""
        game = await client.new_game(self.players, ruleset=self.options)
        for _ in range(self.timed_out):
            clock.advance(LIMIT + 0.001)
            await game.see()
        while self.state is GameState.ROUND_OVER and (seen := await game.see()).state == game_pb2.GAME_STATE_PLAYING:
            await (game.draw() if seen.pool_count else game.pass_on())
        return game


TURN = {"turn_time_limit_seconds": LIMIT}
BANK = {"turn_time_limit_seconds": 0, "clock_total_seconds": LIMIT}
ABSENT = {**TURN, "absent_after_timeouts": 1}
OVER = ("turn_timed_out", "turn_started")
STANDS_IN = ("turn_timed_out", "player_absent", "turn_started")
TIMERS = (
    Timer(
        "everybody is absent",
        {**ABSENT, "absent_action": room_settings_pb2.ABSENT_ACTION_BOT_EASY},
        ("turn_timed_out", "player_absent", "game_ended"),
        players=2,
        timed_out=1,
        goes_on=False,
    ),
    Timer("turn", TURN, OVER),
    Timer("absent, off", {**ABSENT, "absent_action": room_settings_pb2.ABSENT_ACTION_OFF}, OVER),
    Timer(
        "absent, resigned",
        {**ABSENT, "absent_action": room_settings_pb2.ABSENT_ACTION_RESIGN},
        ("turn_timed_out", "player_absent", "player_resigned", "turn_started"),
    ),
    Timer("absent, easy bot", {**ABSENT, "absent_action": room_settings_pb2.ABSENT_ACTION_BOT_EASY}, STANDS_IN),
    Timer("absent, medium bot", {**ABSENT, "absent_action": room_settings_pb2.ABSENT_ACTION_BOT_MEDIUM}, STANDS_IN),
    Timer("absent, hard bot", {**ABSENT, "absent_action": room_settings_pb2.ABSENT_ACTION_BOT_HARD}, STANDS_IN),
    Timer(
        "bank, resigned",
        {**BANK, "clock_flag": room_settings_pb2.CLOCK_FLAG_RESIGN},
        ("turn_timed_out", "player_resigned", "clock_stopped", "turn_started"),
    ),
    Timer(
        "bank, timed out",
        {**BANK, "clock_flag": room_settings_pb2.CLOCK_FLAG_TIME_OUT_EACH_TURN, "clock_increment_seconds": LIMIT},
        ("turn_timed_out", "clock_stopped", "turn_started"),
    ),
    Timer(
        "pause",
        {
            **TURN,
            "round_pause_seconds": LIMIT,
            "deal_hand_size": 21,
            "match_end": ruleset_pb2.MATCH_END_FIXED_ROUNDS,
            "match_rounds": 2,
        },
        ("round_started", "turn_started"),
        players=4,
        state=GameState.ROUND_OVER,
    ),
)
"""Every timer that changes a game. The games of one test begin in this order, at the same time but for the first."""
EVERY_TIMER = pytest.mark.parametrize("timer", TIMERS, ids=lambda timer: timer.name)


def test_every_option_of_time_is_in_the_table() -> None:
    timed = {option for option in GAME_OPTIONS if option.endswith(("_seconds", "_timeouts"))}
    assert timed <= {option for timer in TIMERS for option in timer.options}
    for option, values in (("absent_action", AbsentAction), ("clock_flag", ClockFlag)):
        assert len({timer.options[option] for timer in TIMERS if option in timer.options}) == len(values)


@dataclass(frozen=True)
class Place:
    """Two servers on one store.

    Attributes:
        stores: The store, as each server has it.
        servers: The servers.
        clients: A client of each.
        clock: The store's clock.
    """

    stores: Sequence[Store]
    servers: Sequence[Server]
    clients: Sequence[Client]
    clock: FakeClock

    def copies(self, game: GameAtHand) -> list[GameAtHand]:
        """Returns a game as each server serves it."""
        return [GameAtHand(client, game.game_id, game.tokens) for client in self.clients]

    async def sweep_all(self) -> None:
        """Lets every server sweep."""
        await asyncio.gather(*(server.sweeper.sweep() for server in self.servers))


@asynccontextmanager
async def place_on(stores: Sequence[Store], clock: FakeClock) -> AsyncIterator[Place]:
    """Runs a server on each of two views of a store. Their sweepers run only when the test calls them."""
    async with AsyncExitStack() as stack:
        running = [
            await stack.enter_async_context(running_server(store, NO_SWEEPS, seed)) for seed, store in enumerate(stores)
        ]
        yield Place(stores, [server for server, _ in running], [client for _, client in running], clock)


@pytest.fixture(params=STORES)
async def stores(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Sequence[Store]]:
    """Yields one store as two servers have it: on Redis each has its own cache and connections."""
    if request.param == "memory":
        yield [memory_store(clock)] * 2
        return
    url = request.getfixturevalue("empty_redis_url")
    on_redis = [redis_store(url, clock) for _ in range(2)]
    yield on_redis
    for store in on_redis:
        await store.close()


async def changes_after(game: GameAtHand, revision: int) -> list[list[str]]:
    """Returns the types of the events of each change after a revision."""
    request = gs.ListChangesRequest(game_id=game.game_id, after_revision=revision, page_size=200)
    changes = (await game.client.games.ListChanges(request)).changes
    return [[event.WhichOneof("event") or "" for event in change.events] for change in changes]


async def check_applied_once(place: Place, timer: Timer, game: GameAtHand, revision: int) -> None:
    """Checks that a timer has changed a game once, for every server, and that the next one is applied too."""
    for copy in place.copies(game):
        assert await changes_after(copy, revision) == [list(timer.events)]
        assert (await copy.see()).revision == revision + 1


async def check_next_is_applied(place: Place, timer: Timer, game: GameAtHand, revision: int) -> None:
    """Checks that the second server applies the timer that runs after a timer."""
    place.clock.advance(2 * LIMIT + 0.001)
    await place.servers[1].sweeper.sweep()
    assert (await place.stores[1].streams.bounds(game.game_id))[1] == revision + 1 + timer.goes_on


# Two servers


class Race:
    """Holds the commits of servers until all of them have decided on one."""

    def __init__(self) -> None:
        self._missing: set[Racing] = set()
        self._is_on = asyncio.Event()
        self._is_on.set()

    def hold(self, stores: Sequence["Racing"]) -> None:
        """Holds commits from now on."""
        self._missing = set(stores)
        self._is_on.clear()

    async def arrive(self, store: "Racing") -> None:
        """Returns when all servers have decided."""
        self._missing.discard(store)
        if not self._missing:
            self._is_on.set()
        await self._is_on.wait()


class Racing(DelegatingStore):
    """A store of a server that takes part in a race."""

    def __init__(self, store: Store, race: Race) -> None:
        super().__init__(store)
        self._race = race

    async def commit(self, commit: Commit) -> Outcome:
        await self._race.arrive(self)
        return await self._store.games.commit(commit)


@EVERY_TIMER
async def test_two_servers_apply_a_timer_once(stores: Sequence[Store], clock: FakeClock, timer: Timer) -> None:
    race = Race()
    racing = [Racing(store, race) for store in stores]
    async with place_on(racing, clock) as place:
        game = await timer.start(place.clients[0], clock)
        revision = (await game.see()).revision
        clock.advance(LIMIT)
        await place.sweep_all()
        assert await changes_after(game, revision) == []
        clock.advance(0.001)
        race.hold(racing)
        await asyncio.gather(
            *(server.sweeper.sweep() for server in place.servers),
            *(copy.see(seat) for copy in place.copies(game) for seat in game.tokens),
            *(changes_after(copy, 0) for copy in place.copies(game)),
        )
        await check_applied_once(place, timer, game, revision)
        await place.sweep_all()
        await check_applied_once(place, timer, game, revision)
        await check_next_is_applied(place, timer, game, revision)


# Killed servers


@pytest.mark.parametrize("case", few_of(itertools.product(TIMERS, (False, True)), 8))
async def test_a_timer_is_applied_once_if_a_server_dies_between_any_two_steps(
    stores: Sequence[Store], clock: FakeClock, case: tuple[Timer, bool]
) -> None:
    """Only the other server lives on, and finds the game at the latest when the dead one's claim ends."""
    timer, is_sent = case
    async with place_on(stores, clock) as place:
        for step in itertools.count(1):
            game = await timer.start(place.clients[1], clock)
            revision = (await game.see()).revision
            clock.advance(LIMIT + 0.001)
            mortal = MortalStore(stores[0], is_sent=is_sent)
            mortal.die_at(step)
            dying = Sweeper(ChangeLoop(mortal, SeededChance(step)), mortal, 0, asyncio.Event())
            with suppress(StoreUnavailable, ExceptionGroup):
                await dying.sweep()
            clock.advance(CLAIM_MS / 1000 + 0.001)
            await place.servers[1].sweeper.sweep()
            await check_applied_once(place, timer, game, revision)
            await check_next_is_applied(place, timer, game, revision)
            if not mortal.is_dead:
                break
            await end(game)
        assert step > STEPS


STEPS = 6
"""A timer's change takes more operations of a store than this: claim, load, read the draft, commit, load, rearm."""


async def end(game: GameAtHand) -> None:
    """Ends a game, so that nothing in it is due."""
    for seat in range(1, len(game.tokens)):
        request = ts.ResignGameRequest(game_id=game.game_id)
        with suppress(grpc.aio.AioRpcError):
            await game.client.turns.ResignGame(request, metadata=game.as_seat(seat))


class KillingWire:
    """A proxy between a server process and its Redis, which kills the process at one of its commands on games.

    Args:
        redis: The Redis.
        is_sent: Whether Redis gets the last command.
    """

    def __init__(self, redis: RedisServer, *, is_sent: bool) -> None:
        self._socket = redis.socket
        self._is_sent = is_sent
        self._left = 0
        self._games: list[bytes] = []
        self._pid = 0

    def kill(self, pid: int, games: Sequence[GameAtHand], step: int) -> None:
        """Kills a process when it sends its `step`-th command on any of the games from now on."""
        self._games = [game.game_id.encode() for game in games]
        self._pid, self._left = pid, step

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, commands = await asyncio.open_unix_connection(self._socket)
        telling = asyncio.create_task(pump(answers, writer))
        while data := await reader.read(65_536):
            self._left -= any(game_id in data for game_id in self._games)
            is_last = self._pid and not self._left
            if is_last:
                telling.cancel()
                os.kill(self._pid, signal.SIGKILL)
            if self._is_sent or not is_last:
                commands.write(data)
            if is_last:
                break
        await commands.drain()
        commands.close()
        writer.close()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forwards all data."""
    while data := await reader.read(65_536):
        writer.write(data)


@pytest.mark.parametrize("killed", few_of([(1, False), (4, True), (8, False), (12, True)], 2))
async def test_timers_are_applied_once_if_a_server_process_is_killed_while_it_applies_them(
    killed: tuple[int, bool],
) -> None:
    """By the real clock, and so without the timer that needs an earlier time-out. The next timers may follow."""
    step, is_sent = killed
    timers = [timer.within(SOON) for timer in TIMERS if not timer.timed_out]
    async with AsyncExitStack() as stack:
        redis = RedisServer()
        stack.callback(redis.close)
        redis.start()
        store = redis_store(redis.url)
        stack.push_async_callback(store.close)
        server, client = await stack.enter_async_context(running_server(store, NO_SWEEPS))
        wire = KillingWire(redis, is_sent=is_sent)
        listener = await stack.enter_async_context(await asyncio.start_server(wire.serve, "127.0.0.1", 0))
        url = f"redis://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        environment = {"RUMMIKUB_REDIS_URL": url, "RUMMIKUB_SWEEP_SECONDS": "0.1"}
        process = await stack.enter_async_context(server_process(environment))
        games = [await timer.start(client, FakeClock()) for timer in timers]
        revisions = [(await store.streams.bounds(game.game_id))[1] for game in games]
        wire.kill(process.pid, games, step)
        assert await process.ended() == -signal.SIGKILL
        async with asyncio.timeout(LONG_SECONDS):
            for game, revision in zip(games, revisions, strict=True):
                while (await store.streams.bounds(game.game_id))[1] == revision:
                    await server.sweeper.sweep()
                    await asyncio.sleep(0.1)
        for timer, game, revision in zip(timers, games, revisions, strict=True):
            entries = await store.streams.entries(game.game_id, revision + 1, 100)
            assert (await changes_after(game, revision))[0] == list(timer.events)
            times = [entry.time_ms for entry in entries]
            assert all(later - earlier >= SOON * 1000 for earlier, later in itertools.pairwise(times))


SOON = 4
"""When every timer is due, in real seconds: time enough to begin all games."""
LONG_SECONDS = 30


# A store that stops


class Stopping(DelegatingStore):
    """A store on a Redis that is suspended when an operation is sent for the first time."""

    def __init__(self, store: Store, redis: RedisServer, operation: str) -> None:
        super().__init__(store)
        self._redis = redis
        self._operation = operation
        self.is_armed = False

    async def _forward(self, operation: str, reply: Awaitable[_T]) -> _T:
        if self.is_armed and operation == self._operation:
            self.is_armed = False
            self._redis.pause()
        return await reply


@pytest.mark.parametrize("operation", few_of(("claim", "load", "draft", "arm", "commit", "rearm"), 3))
async def test_timers_are_applied_once_if_the_store_stops_and_goes_on(clock: FakeClock, operation: str) -> None:
    """Redis executes what it was sent meanwhile when it goes on, after the callers were told that it is unavailable."""
    async with AsyncExitStack() as stack:
        redis = RedisServer()
        stack.callback(redis.close)
        redis.start()
        stores = [redis_store(redis.url, clock) for _ in range(2)]
        for store in stores:
            stack.push_async_callback(store.close)
        stopping = Stopping(stores[0], redis, operation)
        place = await stack.enter_async_context(place_on([stopping, stores[1]], clock))
        games = [await timer.start(place.clients[1], clock) for timer in TIMERS]
        revisions = [(await game.see()).revision for game in games]
        clock.advance(LIMIT + 0.001)
        stopping.is_armed = True
        with pytest.raises((StoreUnavailable, ExceptionGroup)):
            await place.servers[0].sweeper.sweep()
        calls = [copy.see() for game in games for copy in place.copies(game)]
        assert {reason_of(end) for end in await asyncio.gather(*calls, return_exceptions=True)} == {"STORE_UNAVAILABLE"}
        redis.resume()
        clock.advance(CLAIM_MS / 1000 + 0.001)
        await place.sweep_all()
        await place.sweep_all()
        for timer, game, revision in zip(TIMERS, games, revisions, strict=True):
            await check_applied_once(place, timer, game, revision)
        clock.advance(LIMIT + 0.001)
        await place.sweep_all()
        for timer, game, revision in zip(TIMERS, games, revisions, strict=True):
            assert (await stores[0].streams.bounds(game.game_id))[1] == revision + 1 + timer.goes_on


def reason_of(end: object) -> str:
    """Returns the reason of a refused call."""
    assert isinstance(end, grpc.aio.AioRpcError), end
    return str(error_info(end).reason)
