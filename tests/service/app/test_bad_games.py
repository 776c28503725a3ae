"""Games that are corrupt, incomplete, or stored by a newer server affect no other game, and creations are listed."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

import grpc
import grpc.aio
import pytest
import redis.asyncio as aredis
from structlog.testing import capture_logs

from rummikub.v1 import game_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.app.changes import ChangeLoop
from service.app.sweeper import MEND_BATCH, PUT_OFF_MS, SweepBounds, Sweeper
from service.errors import StoreUnavailable
from service.model.change import Entry, Loaded
from service.model.deadlines import CLAIM_MS, Due
from service.model.record import GameState, Record
from service.server import Server
from service.storage.formats import FORMATS
from service.storage.memory import MemoryStore
from service.storage.redis.keys import ONE_PART, deadlines_key
from service.storage.redis.lists import ORPHAN_MS
from service.storage.snapshot import encode_record
from service.storage.store import Store
from support.delegating_store import DelegatingStore
from support.harness import (
    Client,
    FakeClock,
    GameAtHand,
    SeededChance,
    bearer,
    due,
    error_info,
    field_violations,
    memory_store,
    new_id,
    redis_store,
    running_server,
    server_settings,
)
from support.stores import STORES, STORES_AND_CLUSTER, running_store
from tools.games import game_rules, options
from tools.redis_servers import HOST

pytestmark = pytest.mark.slow

BATCH, CHECKS = SweepBounds().batch, SweepBounds().checks
LIMIT = 30
TIMED = options(turn_time_limit_seconds=LIMIT)
STARTED_REVISION = 4
"""The revision of a two-player game that has just started."""
LOBBIES = "rummikub:games:lobby"
PUBLIC_LOBBIES = "rummikub:public:lobby"
"""The Redis key of the list of games in the lobby."""
NO_SWEEPS = server_settings(sweep_seconds=3600)
"""Sweep interval of a server whose sweeper runs only when the test calls it."""

_T = TypeVar("_T")


class Hands(Protocol):
    """Access to the internals of a store."""

    async def put_snapshot(self, game_id: str, data: bytes) -> None:
        """Replaces the bytes of a game's snapshot."""

    async def put_etag(self, game_id: str, etag: str) -> None:
        """Replaces the etag beside a game's snapshot, so that every commit conflicts."""

    async def forget_requests(self, game_id: str) -> None:
        """Deletes a game's memos, as an eviction does."""


@dataclass(frozen=True)
class MemoryHands:
    """Access to a memory store."""

    store: MemoryStore

    async def put_snapshot(self, game_id: str, data: bytes) -> None:
        self.store.memory.games[game_id].snapshot = data

    async def put_etag(self, game_id: str, etag: str) -> None:
        self.store.memory.games[game_id].etag = etag

    async def forget_requests(self, game_id: str) -> None:
        assert self.store.memory.games[game_id].memos
        self.store.memory.games[game_id].memos.clear()


@dataclass(frozen=True)
class RedisHands:
    """Access to a Redis store."""

    raw: "aredis.Redis | aredis.RedisCluster"

    @staticmethod
    def key(game_id: str, part: str) -> str:
        return f"rummikub:{{{game_id}}}:{part}"

    async def put_snapshot(self, game_id: str, data: bytes) -> None:
        assert await self.raw.hset(self.key(game_id, "game"), "snapshot", data) == 0  # 0: the field exists

    async def put_etag(self, game_id: str, etag: str) -> None:
        assert await self.raw.hset(self.key(game_id, "game"), "etag", etag) == 0

    async def forget_requests(self, game_id: str) -> None:
        assert await self.raw.delete(self.key(game_id, "requests")) == 1

    async def lose_stream(self, game_id: str) -> None:
        assert await self.raw.delete(self.key(game_id, "events")) == 1

    async def spoil(self, game_id: str, part: str) -> None:
        """Overwrites one key of a game with foreign data."""
        key = self.key(game_id, part)
        if part == "events":
            assert await self.raw.delete(key) == 1
            await self.raw.xadd(key, {"not": "ours"}, "1-0")
        else:
            for name in await self.raw.hkeys(key):
                await self.raw.hset(key, name, "not ours")

    async def expire(self, game_id: str) -> None:
        """Makes a game expire."""
        for part in ("game", "requests", "events"):
            assert await self.raw.pexpire(self.key(game_id, part), 0)


@pytest.fixture
async def redis_hands(empty_redis_url: str) -> AsyncIterator[RedisHands]:
    raw = aredis.Redis.from_url(empty_redis_url)
    yield RedisHands(raw)
    await raw.aclose()


@pytest.fixture
async def hands(store: Store, request: pytest.FixtureRequest) -> AsyncIterator[Hands]:
    """Returns the access that fits the store."""
    if isinstance(store, MemoryStore):
        yield MemoryHands(store)
        return
    raw: aredis.Redis | aredis.RedisCluster
    if store.log.parts > 1:
        raw = aredis.RedisCluster(host=HOST, port=request.getfixturevalue("cluster").nodes[0].port)
    else:
        raw = aredis.Redis.from_url(request.getfixturevalue("redis_url"))
    yield RedisHands(raw)
    await raw.aclose()


@pytest.fixture
async def redis_backed(empty_redis_url: str, clock: FakeClock) -> AsyncIterator[Store]:
    """Returns a store on Redis."""
    store = redis_store(empty_redis_url, clock)
    yield store
    await store.close()


@pytest.fixture(params=STORES_AND_CLUSTER)
async def store(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Store]:
    """Yields each kind of store, empty, on the clock."""
    async with running_store(request, clock) as store:
        yield store


@pytest.fixture
async def server(store: Store) -> AsyncIterator[tuple[Server, Client]]:
    """Runs a server on each store in turn; its sweeper runs only when the test calls it."""
    async with running_server(store, NO_SWEEPS) as served:
        yield served


@dataclass
class FlakyStore(DelegatingStore):
    """A store that fails chosen operations, before or after they take effect."""

    store: Store
    failing: set[str] = field(default_factory=set)
    losing: set[str] = field(default_factory=set)
    broken: list[BaseException] = field(default_factory=list)
    paged: int = 0
    after_page: Callable[[int], None] = lambda _: None
    after_rearm: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        super().__init__(self.store)

    async def _forward(self, operation: str, answer: Awaitable[_T]) -> _T:
        if operation in self.failing:
            cast("Coroutine[Any, Any, _T]", answer).close()
            raise StoreUnavailable
        if operation == "claim" and self.broken:
            cast("Coroutine[Any, Any, _T]", answer).close()
            raise self.broken.pop(0)
        result = await answer
        if operation in self.losing:
            self.losing.remove(operation)
            raise StoreUnavailable
        if operation == "page":
            self.paged += 1
            self.after_page(self.paged)
        if operation == "rearm":
            self.after_rearm()
        return result


async def listed(client: Client, state: game_pb2.GameState.ValueType, page_size: int = 100) -> list[str]:
    """Returns the ids of all games in a state, in order, over all pages."""
    found: list[str] = []
    token = ""
    while True:
        request = gs.ListGamesRequest(states=[state], page_size=page_size, page_token=token)
        answer = await client.games.ListGames(request)
        found += [game.game_id for game in answer.games]
        token = answer.next_page_token
        if not token:
            return found


async def refusal(call: Awaitable[object]) -> tuple[str, str]:
    """Returns the code and the reason of a refused call."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return refused.value.code().name, error_info(refused.value).reason


async def is_timed_out(store: Store, game: GameAtHand) -> bool:
    """Returns whether the first turn has timed out, without applying the time-out."""
    _, newest = await store.streams.bounds(game.game_id)
    assert newest in {STARTED_REVISION, STARTED_REVISION + 1}
    return newest == STARTED_REVISION + 1


async def record_of(store: Store, game_id: str) -> Record:
    record = (await store.games.load(game_id)).record
    assert record
    return record


LOBBY = game_pb2.GAME_STATE_LOBBY
PLAYING = game_pb2.GAME_STATE_PLAYING
NOT_READABLE = ("UNAVAILABLE", "STORED_FORMAT_UNKNOWN")
NOT_STORED = ("UNAVAILABLE", "STORE_UNAVAILABLE")

BAD: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda snapshot: snapshot[: len(snapshot) // 2],
    "newer": lambda snapshot: snapshot.replace(b'"format":%d' % FORMATS.newest, b'"format":%d' % (FORMATS.newest + 1)),
    "another phase": lambda snapshot: snapshot.replace(b'"type":"Playing"', b'"type":"Paused"'),
    "not ours": lambda _: b"\xff\x00",
    "no number": lambda snapshot: snapshot.replace(b'"created_ms":1', b'"created_ms":"x","was":1'),
    "no such seat": lambda snapshot: snapshot.replace(b'"turn":[', b'"turn":[9,null,1],"was":['),
}
"""Ways to damage a snapshot."""


async def spoil(store: Store, hands: Hands, game_id: str, kind: str) -> bytes:
    """Damages a game; returns its good snapshot."""
    good = encode_record(await record_of(store, game_id))
    bad = BAD[kind](good)
    assert bad != good
    await hands.put_snapshot(game_id, bad)
    return good


# Unreadable games


@pytest.mark.parametrize("kind", BAD)
async def test_a_bad_game_does_not_stop_other_games_from_timing_out_or_being_listed(
    server: tuple[Server, Client], store: Store, hands: Hands, clock: FakeClock, kind: str
) -> None:
    sweeper, client = server[0].sweeper, server[1]
    games = []
    for _ in range(3):
        games.append(await client.new_game(ruleset=TIMED))
        clock.advance(1)
    oldest, bad, newest = games
    await spoil(store, hands, bad.game_id, kind)
    clock.advance(LIMIT + 1)
    assert await sweeper.sweep() == 3
    assert await is_timed_out(store, oldest)
    assert await is_timed_out(store, newest)
    assert not await is_timed_out(store, bad)
    clock.advance(PUT_OFF_MS / 2000)
    assert await sweeper.sweep() == 0  # it is postponed
    for page_size in (1, 2, 3, 100):
        assert await listed(client, PLAYING, page_size) == [newest.game_id, oldest.game_id]
    assert await refusal(bad.see()) == NOT_READABLE
    assert await refusal(bad.see(1)) == NOT_READABLE
    assert await refusal(bad.join("late")) == NOT_READABLE


@pytest.mark.parametrize("part", ["game", "requests", "events"])
async def test_the_log_names_an_unreadable_game_and_reveals_no_content(
    redis_backed: Store, redis_hands: RedisHands, part: str
) -> None:
    async with running_server(redis_backed, NO_SWEEPS) as (_, client):
        game = await client.new_game()
        turn = ts.PlayTurnRequest(game_id=game.game_id, etag=game.etag, request_id=new_id(), draw=ts.DrawTile())
        player = game.as_seat((await game.see()).turn.seat)
        await client.turns.PlayTurn(turn, metadata=player)
        asks: dict[str, Callable[[], Awaitable[object]]] = {
            "game": game.see,
            "requests": lambda: client.turns.PlayTurn(turn, metadata=player),
            "events": lambda: client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id)),
        }
        await redis_hands.spoil(game.game_id, part)
        with capture_logs() as logs:
            assert await refusal(asks[part]()) == NOT_READABLE
        told = [entry for entry in logs if entry["event"] == "store"]
        assert told == [{"event": "store", "error": "cannot be read", "game_id": game.game_id, "log_level": "warning"}]


async def test_a_repaired_game_is_timed_out_at_its_postponed_time(
    server: tuple[Server, Client], store: Store, hands: Hands, clock: FakeClock
) -> None:
    sweeper, client = server[0].sweeper, server[1]
    game = await client.new_game(ruleset=TIMED)
    good = await spoil(store, hands, game.game_id, "newer")
    clock.advance(LIMIT + 1)
    assert await sweeper.sweep() == 1
    await hands.put_snapshot(game.game_id, good)
    assert not await is_timed_out(store, game)
    clock.advance(PUT_OFF_MS / 1000 + 0.001)
    assert await sweeper.sweep() == 1
    assert await is_timed_out(store, game)
    assert await listed(client, PLAYING) == [game.game_id]


async def test_a_game_that_one_server_cannot_read_is_timed_out_at_once_by_one_that_can(
    server: tuple[Server, Client], store: Store, hands: Hands, clock: FakeClock
) -> None:
    """During a rolling update, an older server may find a newer server's game first."""
    game = await server[1].new_game(ruleset=TIMED)
    newer = Sweeper(ChangeLoop(store, SeededChance(2)), store, 1.0, asyncio.Event())
    good = await spoil(store, hands, game.game_id, "newer")
    clock.advance(LIMIT + 1)
    assert await server[0].sweeper.sweep() == 1
    await hands.put_snapshot(game.game_id, good)
    assert await newer.sweep() == 1
    assert await is_timed_out(store, game)
    await spoil(store, hands, game.game_id, "newer")
    clock.advance(LIMIT + 1)
    assert await server[0].sweeper.sweep() == 1  # the next turn has a new deadline


async def test_each_sweep_postpones_a_limited_number_of_bad_games(
    server: tuple[Server, Client],
    store: Store,
    hands: Hands,
    clock: FakeClock,
) -> None:
    bounds = SweepBounds(checks=1, unreadable=2)
    sweeper = Sweeper(ChangeLoop(store, SeededChance(1)), store, 1.0, asyncio.Event(), bounds)
    for _ in range(5):
        bad = await server[1].new_game(ruleset=TIMED)
        await spoil(store, hands, bad.game_id, "newer")
    clock.advance(LIMIT + 1)
    assert await sweeper.sweep() == 5
    assert len(await due(store, BATCH)) == 2
    clock.advance(PUT_OFF_MS / 1000 + 0.001)
    assert await sweeper.sweep() == 5


@pytest.mark.timeout(60)
async def test_more_bad_games_than_a_batch_do_not_delay_other_games(
    server: tuple[Server, Client], store: Store, hands: Hands, clock: FakeClock
) -> None:
    sweeper, client = server[0].sweeper, server[1]
    for _ in range(BATCH + 50):
        bad = await client.new_game(players=0, start=False)
        await hands.put_snapshot(bad.game_id, b'{"format":999}')
        await store.deadlines.arm(bad.game_id, clock.now_ms)  # due before the good game
    good = await client.new_game(ruleset=TIMED)
    clock.advance(LIMIT + 1)
    assert await sweeper.sweep() == BATCH + 51
    assert await is_timed_out(store, good)
    clock.advance(PUT_OFF_MS / 2000)
    assert await sweeper.sweep() == 0
    clock.advance(PUT_OFF_MS / 1000 + 1)  # due again, together with the good game's next turn
    assert await sweeper.sweep() == BATCH + 51


@pytest.mark.timeout(30)
async def test_games_whose_commits_always_conflict_do_not_stop_a_sweep(
    server: tuple[Server, Client],
    store: Store,
    hands: Hands,
    clock: FakeClock,
) -> None:
    """Their stored etag is not the etag of their snapshot: every commit conflicts, and they stay overdue."""
    client, bounds = server[1], SweepBounds(batch=3)
    sweeper = Sweeper(ChangeLoop(store, SeededChance(1)), store, 1.0, asyncio.Event(), bounds)
    for _ in range(4):
        bad = await client.new_game(ruleset=TIMED)
        await hands.put_etag(bad.game_id, "0" * 32)
    clock.advance(1)
    good = await client.new_game(ruleset=TIMED)
    clock.advance(LIMIT + 1)
    assert await sweeper.sweep() == 5
    assert await is_timed_out(store, good)
    clock.advance(PUT_OFF_MS / 2000)
    assert await sweeper.sweep() == 0


async def test_a_game_without_its_event_stream_does_not_delay_other_games(
    redis_backed: Store, redis_hands: RedisHands, clock: FakeClock
) -> None:
    async with running_server(redis_backed, NO_SWEEPS) as (server, client):
        bad = await client.new_game(ruleset=TIMED)
        clock.advance(1)
        good = await client.new_game(ruleset=TIMED)
        await redis_hands.lose_stream(bad.game_id)
        clock.advance(LIMIT + 1)
        assert await server.sweeper.sweep() == 2
        assert await is_timed_out(redis_backed, good)
        assert (await record_of(redis_backed, bad.game_id)).game.revision == STARTED_REVISION
        clock.advance(PUT_OFF_MS / 2000)
        assert await server.sweeper.sweep() == 0
        assert (await bad.see()).revision == STARTED_REVISION, "the stored game is returned"
        assert await refusal(bad.draw()) == NOT_STORED
        assert (await good.draw()).game.revision == STARTED_REVISION + 2
        assert set(await listed(client, PLAYING)) == {bad.game_id, good.game_id}


# The sweeper loop


async def test_a_cancelled_sweeper_ends(store: Store) -> None:
    class Hanging(DelegatingStore):
        async def claim(self, _limit: int, _skip: Collection[str] = ()) -> Sequence[Due]:
            claiming.set()
            await asyncio.Event().wait()
            return ()

    claiming = asyncio.Event()
    hanging = Hanging(store)
    task = asyncio.create_task(Sweeper(ChangeLoop(hanging, SeededChance(1)), hanging, 0.001, asyncio.Event()).run())
    await claiming.wait()
    task.cancel()
    async with asyncio.timeout(5):
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_the_sweeper_survives_any_exception_of_the_store(
    server: tuple[Server, Client], store: Store, clock: FakeClock
) -> None:
    game = await server[1].new_game(ruleset=TIMED)
    clock.advance(LIMIT + 1)
    stopping = asyncio.Event()
    broken: list[BaseException] = [
        RuntimeError("unexpected"),
        StoreUnavailable(),
        ValueError("unexpected"),
        KeyError("x"),
    ]
    broken.append(asyncio.CancelledError())
    flaky = FlakyStore(store, broken=broken, after_rearm=stopping.set)
    sweeper = Sweeper(ChangeLoop(flaky, SeededChance(1)), flaky, 0.001, stopping)
    with capture_logs() as logs:
        await asyncio.wait_for(sweeper.run(), 10)
    assert not broken
    assert await is_timed_out(store, game)
    levels = [entry["log_level"] for entry in logs if entry["event"] == "sweep"]
    assert levels == ["error", "debug", "error", "error", "error"]


class StuckGames(ChangeLoop):
    """A change loop that hangs for one game."""

    def __init__(self, store: Store, stuck: str) -> None:
        super().__init__(store, SeededChance(1))
        self._stuck = stuck

    async def settle(self, game_id: str) -> Loaded:
        if game_id == self._stuck:
            await asyncio.Event().wait()
        return await super().settle(game_id)


async def test_a_hanging_game_does_not_delay_other_games(
    server: tuple[Server, Client], store: Store, clock: FakeClock
) -> None:
    stuck = await server[1].new_game(ruleset=TIMED)
    clock.advance(1)
    other = await server[1].new_game(ruleset=TIMED)
    clock.advance(LIMIT + 1)
    games = StuckGames(store, stuck.game_id)
    async with asyncio.timeout(10):
        assert await Sweeper(games, store, 1.0, asyncio.Event(), SweepBounds(check_seconds=0.05)).sweep() == 2
    assert await is_timed_out(store, other)
    assert not await is_timed_out(store, stuck)


async def test_a_slow_game_does_not_delay_other_games(
    server: tuple[Server, Client], store: Store, clock: FakeClock
) -> None:
    stuck = await server[1].new_game(ruleset=TIMED)
    clock.advance(1)
    other = await server[1].new_game(ruleset=TIMED)
    clock.advance(LIMIT + 1)
    sweeper = Sweeper(StuckGames(store, stuck.game_id), store, 1.0, asyncio.Event())
    async with asyncio.timeout(5), store.streams.subscribe(other.game_id) as subscription:
        sweep = asyncio.create_task(sweeper.sweep())
        while not await is_timed_out(store, other):
            await subscription.wait()
    assert not sweep.done()
    sweep.cancel()
    await asyncio.wait([sweep])


class SlowGames(ChangeLoop):
    """A change loop that finishes when the test allows it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, SeededChance(1))
        self.may_end = asyncio.Event()
        self.asked = 0

    async def settle(self, game_id: str) -> Loaded:
        self.asked += 1
        await self.may_end.wait()
        return await super().settle(game_id)


async def test_a_time_out_that_outlasts_a_sweep_is_applied_when_it_is_decided(
    server: tuple[Server, Client], store: Store, clock: FakeClock
) -> None:
    game = await server[1].new_game(ruleset=TIMED)
    clock.advance(LIMIT + 1)
    games = SlowGames(store)
    sweeper = Sweeper(games, store, 1.0, asyncio.Event(), SweepBounds(check_seconds=0.05))
    async with asyncio.timeout(10), store.streams.subscribe(game.game_id) as subscription:
        for _ in range(2):
            assert await sweeper.sweep() == 1
            clock.advance(PUT_OFF_MS / 1000 + 1)
        assert games.asked == 1
        games.may_end.set()
        while not await is_timed_out(store, game):
            await subscription.wait()


async def test_servers_claim_different_games(store: Store, clock: FakeClock) -> None:
    for number in range(3 * BATCH):
        await store.deadlines.arm(f"{number:032x}", clock.now_ms)
    clock.advance(1)
    looks = Counter[str]()

    class Looking(ChangeLoop):
        async def settle(self, game_id: str) -> Loaded:
            looks.update([game_id])
            return await super().settle(game_id)

    sweepers = [Sweeper(Looking(store, SeededChance(1)), store, 1.0, asyncio.Event()) for _ in range(5)]
    assert sum(await asyncio.gather(*(sweeper.sweep() for sweeper in sweepers))) == 3 * BATCH
    assert set(looks.values()) == {1}
    assert len(looks) == 3 * BATCH


async def test_a_game_claimed_by_a_dead_server_is_soon_claimed_by_another(store: Store, clock: FakeClock) -> None:
    await store.deadlines.arm("a" * 32, clock.now_ms)
    clock.advance(1)
    await store.deadlines.claim(1)  # a server that dies claims the game
    other = Sweeper(ChangeLoop(store, SeededChance(1)), store, 1.0, asyncio.Event())
    assert await other.sweep() == 0
    clock.advance(CLAIM_MS / 1000 + 0.001)
    assert await other.sweep() == 1


async def test_a_stopping_server_claims_no_more_games(store: Store, clock: FakeClock) -> None:
    for number in range(BATCH - 1):
        await store.deadlines.arm(f"{number:032x}", clock.now_ms)
    clock.advance(1)
    stopping = asyncio.Event()
    flaky = FlakyStore(store, after_rearm=stopping.set)
    await Sweeper(ChangeLoop(flaky, SeededChance(1)), flaky, 1.0, stopping).sweep()
    assert BATCH - 1 - CHECKS <= len(await due(store, BATCH)) < BATCH - 1


class LateGames(ChangeLoop):
    """A change loop whose first reply is so late that the next turn is overdue too."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        super().__init__(store, SeededChance(1))
        self._answers_of = store
        self._clock = clock
        self._is_late = True

    async def settle(self, game_id: str) -> Loaded:
        loaded = await super().settle(game_id)
        if self._is_late:
            self._is_late = False
            self._clock.advance(LIMIT + 1)
            loaded = await self._answers_of.games.load(game_id)
        return loaded


async def test_a_turn_that_is_overdue_when_it_starts_is_not_postponed(
    server: tuple[Server, Client], store: Store, clock: FakeClock
) -> None:
    game = await server[1].new_game(ruleset=TIMED)
    clock.advance(LIMIT + 1)
    sweeper = Sweeper(LateGames(store, clock), store, 1.0, asyncio.Event())
    for turn in (1, 2):
        assert await sweeper.sweep() == 1
        assert (await store.streams.bounds(game.game_id))[1] == STARTED_REVISION + turn


# Creations and lists


@dataclass(frozen=True)
class Creating:
    """A server on a store that may fail, with its store and clock."""

    client: Client
    flaky: FlakyStore
    clock: FakeClock

    async def create(self, request_id: str) -> game_pb2.Game:
        return (await self.hosted(request_id))[1]

    async def hosted(self, request_id: str) -> tuple[GameAtHand, game_pb2.Game]:
        """Creates a game; returns it with the host token, and as the response shows it."""
        request = gs.CreateGameRequest(request_id=request_id, visibility=game_pb2.VISIBILITY_PUBLIC)
        created = await self.client.games.CreateGame(request)
        return GameAtHand(self.client, created.game.game_id, host_token=created.host_token), created.game

    async def listed_once(self, *game_ids: str) -> None:
        """Asserts that exactly these games are listed and counted, in their state only."""
        for page_size in (1, 100):
            assert sorted(await listed(self.client, LOBBY, page_size)) == sorted(game_ids)
        await self.flaky.store.lists.page(
            [GameState.LOBBY], "", 100
        )  # repairs the list of all games, as the sweeper does
        assert await self.flaky.store.lists.count() == {**dict.fromkeys(GameState, 0), GameState.LOBBY: len(game_ids)}


@pytest.fixture
async def creating(store: Store, clock: FakeClock) -> AsyncIterator[Creating]:
    flaky = FlakyStore(store)
    async with running_server(flaky, NO_SWEEPS) as (_, client):
        yield Creating(client, flaky, clock)


async def test_a_creation_that_fails_to_be_listed_creates_no_game_and_its_retry_creates_one(creating: Creating) -> None:
    request_id = new_id()
    creating.flaky.failing = {"index"}
    assert await refusal(creating.create(request_id)) == NOT_STORED
    assert await refusal(creating.create("")) == NOT_STORED
    await creating.listed_once()
    creating.flaky.failing = set()
    creating.clock.advance(60)
    game = await creating.create(request_id)
    assert game.create_time.ToMilliseconds() == creating.clock.now_ms  # created by the retry
    assert await creating.create(request_id) == game
    await creating.listed_once(game.game_id)


async def test_a_creation_that_is_listed_but_not_stored_is_invisible_and_its_retry_is_listed_once(
    creating: Creating,
) -> None:
    request_id = new_id()
    creating.flaky.failing = {"commit"}
    for _ in range(3):
        assert await refusal(creating.create(request_id)) == NOT_STORED
        creating.clock.advance(1)
    assert await listed(creating.client, LOBBY) == []
    creating.flaky.failing = set()
    game = await creating.create(request_id)
    other = await creating.create(new_id())
    await creating.listed_once(game.game_id, other.game_id)


async def test_a_creation_whose_reply_is_lost_is_answered_and_listed_once(creating: Creating) -> None:
    request_id = new_id()
    creating.flaky.losing = {"commit"}
    game = await creating.create(request_id)
    assert not creating.flaky.losing
    assert await creating.create(request_id) == game
    await creating.listed_once(game.game_id)


async def create_raw(client: Client, request: bytes) -> bytes:
    """Returns the bytes of the response."""
    rpc: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
    rpc = client.channel.unary_unary("/rummikub.v1.GameService/CreateGame")
    return await rpc(request)


async def test_a_retried_creation_gets_the_same_bytes_from_another_server(creating: Creating, store: Store) -> None:
    rules = game_rules(geometry_jokers=4, match_end=ruleset_pb2.MATCH_END_FIXED_ROUNDS, match_rounds=3)
    public = game_pb2.VISIBILITY_PUBLIC
    sent = gs.CreateGameRequest(ruleset=rules, request_id=new_id(), visibility=public).SerializeToString()
    first = await create_raw(creating.client, sent)
    game = GameAtHand(creating.client, gs.CreateGameResponse.FromString(first).game.game_id)
    await game.join("Ada")  # the game changes in between
    creating.clock.advance(100)
    async with running_server(store, NO_SWEEPS, seed=2) as (_, second):
        assert await create_raw(second, sent) == first
    assert await create_raw(creating.client, sent) == first
    await creating.listed_once(game.game_id)


async def test_different_or_missing_request_ids_create_different_games(creating: Creating) -> None:
    ids = [new_id(), new_id(), "", "", "a" * 22, "a" * 23]
    games = {(await creating.create(request_id)).game_id for request_id in ids}
    assert len(games) == len(ids)
    await creating.listed_once(*games)


@pytest.mark.parametrize("length", [1, 8, 21])
async def test_a_guessable_request_id_is_refused_without_a_token(creating: Creating, length: int) -> None:
    game = await creating.client.new_game(players=1, start=False)
    calls: tuple[Callable[[str], Awaitable[object]], ...] = (
        creating.create,
        lambda request_id: creating.client.games.JoinGame(
            gs.JoinGameRequest(game_id=game.game_id, name="Ben", request_id=request_id)
        ),
    )
    for call in calls:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call("x" * length)
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert field_violations(refused.value) == ["request_id"]
    assert [player.name for player in (await game.see()).players] == ["player 1"]
    await creating.listed_once(game.game_id)
    for call in calls:
        await call("x" * 22)
    assert len((await game.see()).players) == 2


async def test_a_request_id_of_a_seat_may_be_short(client: Client) -> None:
    game = await client.new_game(start=False)
    request = gs.StartGameRequest(game_id=game.game_id, request_id="x" * 8)
    first = await client.games.StartGame(request, metadata=game.as_seat(1))
    assert await client.games.StartGame(request, metadata=game.as_seat(1)) == first
    stranger = await refusal(client.games.StartGame(request, metadata=bearer("y" * 43)))
    assert stranger == ("UNAUTHENTICATED", "TOKEN_VOID")


@pytest.mark.parametrize("is_started", [False, True])
async def test_a_retried_creation_without_its_memo_is_aborted_and_changes_no_list(
    creating: Creating, hands: Hands, is_started: bool
) -> None:
    request_id = new_id()
    game, _ = await creating.hosted(request_id)
    if is_started:
        for name in ("Ada", "Ben"):
            await game.join(name)
        await game.start()
    before = await game.see()
    counted = await creating.flaky.store.lists.count()
    await hands.forget_requests(game.game_id)
    for _ in range(2):
        creating.clock.advance(1)
        code, _ = await refusal(creating.create(request_id))
        assert code == "ABORTED"
    after = await game.see()
    assert (after.revision, after.etag, after.create_time) == (before.revision, before.etag, before.create_time)
    assert await creating.flaky.store.lists.count() == counted
    assert await listed(creating.client, LOBBY) == ([] if is_started else [game.game_id])
    assert await listed(creating.client, PLAYING) == ([game.game_id] if is_started else [])


# Expired games


async def test_expired_games_leave_the_lists_when_the_lists_are_read(
    redis_backed: Store, redis_hands: RedisHands, clock: FakeClock
) -> None:
    async with running_server(redis_backed, NO_SWEEPS) as (_, client):
        expired = [await client.new_game(start=start) for start in (False, True, False)]
        alive = [await client.new_game(start=start) for start in (False, True)]
        for game in expired:
            await redis_hands.expire(game.game_id)
            assert await refusal(game.see()) == ("NOT_FOUND", "GAME_NOT_FOUND")
        everything = {**dict.fromkeys(GameState, 0), GameState.LOBBY: 3, GameState.PLAYING: 2}
        for state in (GameState.LOBBY, GameState.PLAYING):
            await redis_backed.lists.page([state], "", 100)
        assert await redis_backed.lists.count() == everything  # a creation may be in progress
        clock.advance(ORPHAN_MS / 1000 + 1)
        for state in (GameState.LOBBY, GameState.PLAYING):
            await redis_backed.lists.page([state], "", 100)
        assert await listed(client, LOBBY) == [alive[0].game_id]
        assert await listed(client, PLAYING) == [alive[1].game_id]
        assert await redis_backed.lists.count() == {
            **dict.fromkeys(GameState, 0),
            GameState.LOBBY: 1,
            GameState.PLAYING: 1,
        }


async def test_the_sweeper_repairs_lists_that_are_not_read(
    redis_backed: Store, redis_hands: RedisHands, clock: FakeClock
) -> None:
    async with running_server(redis_backed, NO_SWEEPS) as (_, client):
        for _ in range(2 * MEND_BATCH + 5):
            game = await client.new_game(players=0, start=False)
            await redis_hands.expire(game.game_id)
        playing = await client.new_game()
        await redis_hands.expire(playing.game_id)
        alive = await client.new_game()
        clock.advance(ORPHAN_MS / 1000 + 1)
        before = await redis_backed.lists.count()
        assert (before[GameState.LOBBY], before[GameState.PLAYING]) == (2 * MEND_BATCH + 5, 2)
        stopping = asyncio.Event()
        pages = 2 * (
            3 + len(GameState) - 1
        )  # three pages of lobby games, one for each other state; the public ones too
        flaky = FlakyStore(redis_backed, after_page=lambda paged: stopping.set() if paged == pages else None)
        await asyncio.wait_for(Sweeper(ChangeLoop(flaky, SeededChance(1)), flaky, 0.001, stopping).run(), 10)
        after = await redis_backed.lists.count()
        assert (after[GameState.LOBBY], after[GameState.PLAYING]) == (0, 1)
        assert await listed(client, PLAYING) == [alive.game_id]


async def test_an_expired_game_is_claimed_no_more(
    redis_backed: Store, redis_hands: RedisHands, clock: FakeClock
) -> None:
    async with running_server(redis_backed, NO_SWEEPS) as (server, client):
        game = await client.new_game(ruleset=TIMED)
        await redis_hands.expire(game.game_id)
        clock.advance(LIMIT + 1)
        assert await due(redis_backed) == [(game.game_id, clock.now_ms - 1000)]
        assert await server.sweeper.sweep() == 1
        clock.advance(1_000_000)
        assert await due(redis_backed) == []


# Foreign members among the deadlines and in the lists


FOREIGN_DEADLINES: dict[str, tuple[bytes, float]] = {
    "not text": (b"\xff", 1),
    "no id": (b"not ours", 1),
    "no id, no time": (b"\xff", float("-inf")),
    "no time": (b"f" * 32, float("-inf")),
    "no whole number": (b"f" * 32, 0.5),
    "a number that is too small": (b"f" * 32, -1e300),
}


@pytest.mark.parametrize("kind", FOREIGN_DEADLINES)
async def test_foreign_deadlines_delay_no_game_and_are_removed(
    redis_backed: Store, redis_hands: RedisHands, clock: FakeClock, kind: str
) -> None:
    member, score = FOREIGN_DEADLINES[kind]
    async with running_server(redis_backed, NO_SWEEPS) as (server, client):
        game = await client.new_game(ruleset=TIMED)
        await redis_hands.raw.zadd(deadlines_key(*ONE_PART), {member: score})
        clock.advance(LIMIT + 1)
        await server.sweeper.sweep()
        assert await is_timed_out(redis_backed, game)
        assert await redis_hands.raw.zrange(deadlines_key(*ONE_PART), 0, -1) == [game.game_id.encode()]


@pytest.mark.parametrize("score", [float("-inf"), -1e300, 0.5])
async def test_a_game_with_a_malformed_deadline_is_timed_out_and_stays_listed(
    redis_backed: Store, redis_hands: RedisHands, clock: FakeClock, score: float
) -> None:
    async with running_server(redis_backed, NO_SWEEPS) as (server, client):
        game = await client.new_game(ruleset=TIMED)
        await redis_hands.raw.zadd(deadlines_key(*ONE_PART), {game.game_id: score})
        await server.sweeper.sweep()
        assert not await is_timed_out(redis_backed, game)
        clock.advance(LIMIT + 1)
        await server.sweeper.sweep()
        assert await is_timed_out(redis_backed, game)


@pytest.mark.parametrize("member", [b"\xff", b"not ours", b"000000000000001:not ours"])
async def test_foreign_list_members_are_skipped_and_removed(
    redis_backed: Store, redis_hands: RedisHands, member: bytes
) -> None:
    async with running_server(redis_backed, NO_SWEEPS) as (_, client):
        games = [await client.new_game(start=False) for _ in range(2)]
        for key in (LOBBIES, PUBLIC_LOBBIES):
            await redis_hands.raw.zadd(key, {member: 0})
        assert sorted(await listed(client, LOBBY)) == sorted(game.game_id for game in games)
        await redis_backed.lists.page([GameState.LOBBY], "", 100)
        assert (await redis_backed.lists.count())[GameState.LOBBY] == 2
        assert await redis_hands.raw.zcard(PUBLIC_LOBBIES) == 2


# Trimmed histories


KEPT = 5


@pytest.fixture(params=STORES)
async def short_memory(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Store]:
    """Returns each store in turn; it keeps only a few changes of a game."""
    if request.param == "memory":
        yield memory_store(clock, history=KEPT)
    else:
        store = redis_store(request.getfixturevalue("empty_redis_url"), clock, history=KEPT)
        yield store
        await store.close()


async def revisions(game: GameAtHand, after: int, page_size: int = 200) -> list[int]:
    """Returns the revisions of a game's changes after one, over all pages."""
    found: list[int] = []
    token = ""
    while True:
        request = gs.ListChangesRequest(
            game_id=game.game_id, after_revision=after, page_size=page_size, page_token=token
        )
        answer = await game.client.games.ListChanges(request)
        found += [change.revision for change in answer.changes]
        token = answer.next_page_token
        if not token:
            return found


async def test_a_trimmed_history_begins_with_the_oldest_stored_change(short_memory: Store) -> None:
    async with running_server(short_memory, NO_SWEEPS) as (_, client):
        game = await client.new_game()
        assert await revisions(game, 0) == [1, 2, 3, 4]
        for _ in range(8):
            await game.draw()
        newest = (await game.see()).revision
        oldest = newest - KEPT + 1
        assert await revisions(game, 0) == list(range(oldest, newest + 1))
        assert await revisions(game, 0, page_size=2) == list(range(oldest, newest + 1))
        for after in (oldest - 1, oldest, oldest + 2, newest):
            assert await revisions(game, after) == list(range(after + 1, newest + 1))
        for after in (1, oldest - 2, newest + 1, newest + 100):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await revisions(game, after)
            assert refused.value.code() == grpc.StatusCode.OUT_OF_RANGE
            info = error_info(refused.value)
            assert info.reason == "HISTORY_UNAVAILABLE"
            assert dict(info.metadata) == {"oldest": str(oldest), "newest": str(newest)}


async def test_a_page_that_was_trimmed_meanwhile_is_refused_not_skipped(
    short_memory: Store,
) -> None:
    async with running_server(short_memory, NO_SWEEPS) as (_, client):
        game = await client.new_game()
        first = await client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id, page_size=2))
        assert [change.revision for change in first.changes] == [1, 2]
        for _ in range(KEPT):
            await game.draw()
        following = gs.ListChangesRequest(game_id=game.game_id, page_size=2, page_token=first.next_page_token)
        assert await refusal(client.games.ListChanges(following)) == ("OUT_OF_RANGE", "HISTORY_UNAVAILABLE")


class ChangingStore(DelegatingStore):
    """A store in which a game changes after each read of its changes."""

    change: Callable[[], Awaitable[object]] | None = None

    async def events(self, game_id: str, first_revision: int, limit: int) -> tuple[Entry, ...]:
        found = await self._store.streams.entries(game_id, first_revision, limit)
        if self.change:
            await self.change()
        return found


async def test_a_change_while_the_end_of_the_history_is_listed_is_no_error() -> None:
    store = ChangingStore(memory_store(FakeClock()))
    async with running_server(store, NO_SWEEPS) as (_, client):
        game = await client.new_game()
        newest = (await game.see()).revision
        store.change = game.draw
        assert await revisions(game, newest) == []
        store.change = None
        assert await revisions(game, newest) == [newest + 1]
