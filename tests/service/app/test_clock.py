"""The store's clock: deadlines, time-outs that are applied exactly once by any caller, and the sweeper."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack

import grpc.aio
import pytest
import redis.asyncio as aredis
from google.protobuf.timestamp_pb2 import Timestamp

from engine.game import Finished, Game, Playing, RoundOver
from engine.timers import is_due
from rummikub.v1 import game_pb2, ruleset_pb2, score_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.errors import StoreUnavailable
from service.model.change import Loaded
from service.model.record import GameState
from service.server import Server
from service.storage.redis.store import RedisStore
from service.storage.store import Store
from support.delegating_store import DelegatingStore
from support.harness import (
    START_MS,
    Client,
    FakeClock,
    GameAtHand,
    bearer,
    due,
    error_info,
    memory_store,
    new_id,
    redis_store,
    running_server,
    server_settings,
)
from support.soak import few_of
from tools.games import options
from tools.redis_servers import RedisServer

pytestmark = pytest.mark.slow

LIMIT = 30
TIMED = options(turn_time_limit_seconds=LIMIT, turn_timeout_clean=ruleset_pb2.TURN_TIMEOUT_CLEAN_DRAW_PENALTY)
"""Rules under which each time-out draws three tiles, although no draft is saved."""
ENDLESS = options(
    turn_time_limit_seconds=LIMIT,
    turn_timeout_clean=ruleset_pb2.TURN_TIMEOUT_CLEAN_DRAW_PENALTY,
    absent_after_timeouts=0,
    round_pause_seconds=0,
)
"""Rules under which a game that nobody plays goes on until a round ends."""
NO_SWEEPS = server_settings(sweep_seconds=3600)
"""Sweep interval of a server whose sweeper runs only when the test calls it."""


def ms(timestamp: Timestamp) -> int:
    """Returns milliseconds since 1970."""
    return timestamp.seconds * 1000 + timestamp.nanos // 1_000_000


@pytest.fixture
async def served(store: Store) -> AsyncIterator[tuple[Server, Client]]:
    """Runs a server on each store in turn; its sweeper runs only when the test calls it."""
    async with running_server(store, NO_SWEEPS) as (server, client):
        yield server, client


@pytest.fixture
def server(served: tuple[Server, Client]) -> Server:
    """Returns the server."""
    return served[0]


@pytest.fixture
def client(served: tuple[Server, Client]) -> Client:
    """Returns the server's client."""
    return served[1]


async def history(game: GameAtHand, seat: int = 0) -> list[game_pb2.GameChange]:
    """Returns all changes of a game."""
    found: list[game_pb2.GameChange] = []
    token = ""
    while True:
        request = gs.ListChangesRequest(game_id=game.game_id, page_size=200, page_token=token)
        answer = await game.client.games.ListChanges(request, metadata=game.as_seat(seat))
        found += answer.changes
        token = answer.next_page_token
        if not token:
            return found


async def time_outs(game: GameAtHand, seat: int = 0) -> list[game_pb2.TurnTimedOut]:
    """Returns all time-outs of a game."""
    events = [event for change in await history(game, seat) for event in change.events]
    return [event.turn_timed_out for event in events if event.HasField("turn_timed_out")]


async def refusal(call: Awaitable[object]) -> str:
    """Returns the reason of a refused call."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return str(error_info(refused.value).reason)


def draw_on(game: GameAtHand, seen: game_pb2.Game, seat: int = 0, *, validate_only: bool = False) -> Awaitable[object]:
    """Draws at the revision of a game seen earlier."""
    request = ts.PlayTurnRequest(
        game_id=game.game_id,
        etag=seen.etag,
        request_id=new_id(),
        validate_only=validate_only,
        draw=ts.DrawTile(),
    )
    return game.client.turns.PlayTurn(request, metadata=game.as_seat(seat or seen.turn.seat))


# Deadlines


async def test_every_turn_has_a_deadline_by_the_stores_clock(client: Client, clock: FakeClock) -> None:
    game = await client.new_game(ruleset=TIMED, start=False)
    clock.advance(1000)
    started = await game.start()
    assert ms(started.turn.deadline) == clock.now_ms + LIMIT * 1000
    for seconds in (0.001, 7, 29.999):
        clock.advance(seconds)
        drawn = (await game.draw()).game
        assert ms(drawn.turn.deadline) == clock.now_ms + LIMIT * 1000
        assert ms(drawn.update_time) == clock.now_ms
        assert ms(drawn.create_time) == START_MS


async def test_a_turn_is_accepted_at_its_deadline_and_refused_a_millisecond_later(
    client: Client, clock: FakeClock
) -> None:
    game = await client.new_game(ruleset=TIMED)
    clock.advance(LIMIT)
    await game.draw()
    seen = await game.see()
    before = await game.see(seen.turn.seat)
    clock.advance(LIMIT + 0.001)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await draw_on(game, seen)
    assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    info = error_info(refused.value)
    assert (info.reason, dict(info.metadata)) == ("TURN_TIMED_OUT", {"revision": str(seen.revision + 1)})
    after = await game.see(seen.turn.seat)
    assert after.revision == seen.revision + 1
    assert len(after.rack) == len(before.rack) + 3
    assert after.pool_count == before.pool_count - 3
    assert after.turn.seat != seen.turn.seat
    assert ms(after.turn.deadline) == clock.now_ms + LIMIT * 1000


async def test_a_play_is_not_judged_after_the_deadline(client: Client, clock: FakeClock) -> None:
    game = await client.new_game(ruleset=TIMED)
    seen = await game.see()
    clock.advance(LIMIT + 1)
    assert await refusal(draw_on(game, seen, validate_only=True)) == "TURN_TIMED_OUT"
    assert len(await time_outs(game)) == 1


async def test_without_a_time_limit_no_turn_times_out(client: Client, server: Server, clock: FakeClock) -> None:
    game = await client.new_game(ruleset=options(turn_time_limit_seconds=0))
    seen = await game.see()
    assert not seen.turn.HasField("deadline")
    clock.advance(10 * 365 * 86_400)
    assert await server.sweeper.sweep() == 0
    assert await game.see() == with_server_time(seen, await game.see())
    await draw_on(game, seen)


def with_server_time(game: game_pb2.Game, later: game_pb2.Game) -> game_pb2.Game:
    """Returns a game with the server time of a later reading."""
    seen_again = game_pb2.Game()
    seen_again.CopyFrom(game)
    seen_again.server_time.CopyFrom(later.server_time)
    return seen_again


# Calls that may apply a time-out


async def looks(game: GameAtHand, _seen: game_pb2.Game) -> None:
    await game.see()


async def looks_as_the_seat(game: GameAtHand, seen: game_pb2.Game) -> None:
    await game.see(seen.turn.seat)


async def lists_turns(game: GameAtHand, _seen: game_pb2.Game) -> None:
    await history(game)


async def watches(game: GameAtHand, _seen: game_pb2.Game) -> None:
    async for update in game.client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id)):
        assert update.snapshot.revision == _seen.revision + 1
        break


async def resumes_watching(game: GameAtHand, seen: game_pb2.Game) -> None:
    request = gs.WatchGameRequest(game_id=game.game_id, etag=seen.etag)
    async for update in game.client.games.WatchGame(request):
        assert update.change.revision == seen.revision + 1
        break


async def draws_too_late(game: GameAtHand, seen: game_pb2.Game) -> None:
    assert await refusal(draw_on(game, seen)) == "TURN_TIMED_OUT"


async def draws_for_another_seat(game: GameAtHand, seen: game_pb2.Game) -> None:
    other = next(player.seat for player in seen.players if player.seat != seen.turn.seat)
    assert await refusal(draw_on(game, seen, other)) in {"TURN_TIMED_OUT", "STALE_STATE"}


async def starts_again(game: GameAtHand, _seen: game_pb2.Game) -> None:
    assert await refusal(game.start()) == "GAME_ALREADY_STARTED"


async def joins(game: GameAtHand, _seen: game_pb2.Game) -> None:
    assert await refusal(game.join("late")) == "GAME_ALREADY_STARTED"


CALLS = [
    looks,
    looks_as_the_seat,
    lists_turns,
    watches,
    resumes_watching,
    draws_too_late,
    draws_for_another_seat,
    starts_again,
    joins,
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: str(call.__name__))
async def test_any_call_applies_a_time_out_once(
    client: Client,
    store: Store,
    clock: FakeClock,
    call: Callable[[GameAtHand, game_pb2.Game], Awaitable[None]],
) -> None:
    game = await client.new_game(ruleset=TIMED)
    seen = await game.see()
    clock.advance(LIMIT + 0.001)
    await call(game, seen)
    assert await store.streams.bounds(game.game_id) == (1, seen.revision + 1)
    clock.advance(LIMIT)  # the next player has the full time
    now = await game.see()
    assert now.revision == seen.revision + 1
    assert now.turn.seat != seen.turn.seat
    assert [(timed_out.seat, timed_out.tile_count) for timed_out in await time_outs(game)] == [(seen.turn.seat, 3)]


async def test_the_sweeper_applies_a_time_out_once_without_any_call(
    client: Client, server: Server, store: Store, clock: FakeClock
) -> None:
    game = await client.new_game(ruleset=TIMED)
    revision = (await game.see()).revision
    clock.advance(LIMIT)
    assert await server.sweeper.sweep() == 0
    clock.advance(0.001)
    assert await server.sweeper.sweep() == 1
    assert await store.streams.bounds(game.game_id) == (1, revision + 1)
    assert await server.sweeper.sweep() == 0
    assert len(await time_outs(game)) == 1


async def test_two_servers_and_concurrent_calls_apply_a_time_out_once(store: Store, clock: FakeClock) -> None:
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(running_server(store, NO_SWEEPS, seed)) for seed in (1, 2)]
        game = await servers[0][1].new_game(players=3, ruleset=TIMED)
        for turn in range(1, 6):
            seen = await game.see()
            clock.advance(LIMIT + 0.001)
            copies = [GameAtHand(client, game.game_id, game.tokens) for _, client in servers]
            answers = await asyncio.gather(
                *(server.sweeper.sweep() for server, _ in servers),
                *(copy.see(seat) for copy in copies for seat in range(4)),
                *(draw_on(copy, seen, seat) for copy in copies for seat in range(1, 4)),
                *(history(copy) for copy in copies),
                return_exceptions=True,
            )
            errors = [answer for answer in answers if isinstance(answer, BaseException)]
            assert all(isinstance(error, grpc.aio.AioRpcError) for error in errors)
            reasons = [error_info(error).reason for error in errors if isinstance(error, grpc.aio.AioRpcError)]
            assert len(reasons) == 6
            assert set(reasons) <= {"TURN_TIMED_OUT", "STALE_STATE"}
            after = await game.see()
            assert after.revision == seen.revision + 1
            assert ms(after.turn.deadline) == clock.now_ms + LIMIT * 1000
            assert len(await time_outs(game)) == turn


async def test_a_turn_at_its_deadline_and_its_time_out_are_never_both_stored(store: Store, clock: FakeClock) -> None:
    """The clock passes the deadline during the call; exactly one of the two is stored."""
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(running_server(store, NO_SWEEPS, seed)) for seed in (1, 2)]
        game = await servers[0][1].new_game(ruleset=ENDLESS)
        won = set()
        for ticks in (*range(0, 120, 6), 0, EVER):
            seen = await game.see()
            clock.advance(LIMIT)
            calls = [asyncio.ensure_future(draw_on(game, seen)), asyncio.create_task(servers[1][0].sweeper.sweep())]
            for _ in range(ticks):
                if calls[0].done():
                    break
                await asyncio.sleep(0)
            clock.advance(0.001)
            calls.append(asyncio.create_task(servers[1][0].sweeper.sweep()))
            drawn, *_ = await asyncio.gather(*calls, return_exceptions=True)
            await servers[0][0].sweeper.sweep()
            changes = await history(game)
            events = [event.WhichOneof("event") for event in changes[seen.revision].events]
            assert changes[-1].revision == seen.revision + 1
            assert events == ["turn_timed_out" if isinstance(drawn, BaseException) else "tiles_drawn", "turn_started"]
            won.add(events[0])
        assert won == {"tiles_drawn", "turn_timed_out"}


EVER = 1_000_000
"""More event loop iterations than a call takes."""

# Penalties


@pytest.mark.parametrize(("players", "left_over"), [(2, 0), (3, 1), (4, 2)])
async def test_time_outs_draw_three_tiles_then_the_rest_then_pass_until_the_round_is_blocked(
    client: Client, server: Server, clock: FakeClock, players: int, left_over: int
) -> None:
    game = await client.new_game(players=players, ruleset=ENDLESS)
    pool = (await game.see()).pool_count
    while (await game.see()).state == game_pb2.GAME_STATE_PLAYING:
        clock.advance(LIMIT + 0.001)
        assert await server.sweeper.sweep() == 1
    expected = [3] * (pool // 3) + [left_over or 3][: 1 if left_over else 0] + [0] * players
    found = await time_outs(game)
    assert [timed_out.tile_count for timed_out in found] == expected
    first = found[0].seat - 1
    assert [timed_out.seat for timed_out in found] == [(first + n) % players + 1 for n in range(len(found))]
    end = await game.see()
    assert end.state == game_pb2.GAME_STATE_FINISHED
    assert end.rounds[0].round_end == score_pb2.ROUND_END_BLOCKED
    assert end.pool_count == 0
    assert sum(player.tile_count for player in end.players) == 106
    clock.advance(LIMIT + 1)
    await server.sweeper.sweep()
    assert await server.sweeper.sweep() == 0


async def test_only_the_player_who_timed_out_sees_the_penalty_tiles(client: Client, clock: FakeClock) -> None:
    game = await client.new_game(ruleset=TIMED)
    seat = (await game.see()).turn.seat
    before = list((await game.see(seat)).rack)
    clock.advance(LIMIT + 1)
    after = list((await game.see(seat)).rack)
    (own,) = await time_outs(game, seat)
    assert sorted([*before, *own.tiles]) == after
    for other in {0, 1, 2} - {seat}:
        (seen,) = await time_outs(game, other)
        assert (seen.seat, seen.tile_count, list(seen.tiles)) == (seat, 3, [])


# The sweeper


async def test_the_sweeper_finds_the_deadlines_of_later_rounds(
    client: Client, server: Server, store: Store, clock: FakeClock
) -> None:
    rules = {**ENDLESS, **options(match_end=ruleset_pb2.MATCH_END_FIXED_ROUNDS, match_rounds=3)}
    game = await client.new_game(ruleset=rules)
    for number in (1, 2, 3):
        while (seen := await game.see()).state == game_pb2.GAME_STATE_PLAYING:
            assert seen.round == number
            clock.advance(LIMIT + 0.001)
            assert await server.sweeper.sweep() == 1
            assert (await store.streams.bounds(game.game_id))[1] == seen.revision + 1
        clock.advance(LIMIT + 1)
        await server.sweeper.sweep()  # the sweeper finds that the round is over
        clock.advance(10 * LIMIT)
        assert await server.sweeper.sweep() == 0
        if number < 3:
            request = ts.StartNextRoundRequest(game_id=game.game_id, request_id=new_id())
            await client.turns.StartNextRound(request, metadata=game.as_seat(2))
    assert (await game.see()).state == game_pb2.GAME_STATE_FINISHED


async def test_the_sweeper_drops_finished_and_expired_games(
    client: Client, server: Server, store: Store, clock: FakeClock
) -> None:
    game = await client.new_game(ruleset=TIMED)
    request = ts.ResignGameRequest(game_id=game.game_id, request_id=new_id())
    await client.turns.ResignGame(request, metadata=game.as_seat(1))
    await store.deadlines.arm("f" * 32, clock.now_ms)  # a game that does not exist
    clock.advance(LIMIT + 1)
    assert await server.sweeper.sweep() == 2
    clock.advance(1_000_000)
    assert await due(store) == []


async def test_many_games_are_timed_out_by_one_sweep(
    client: Client, server: Server, store: Store, clock: FakeClock
) -> None:
    games = [await client.new_game(ruleset=TIMED) for _ in range(5)]
    for number in range(220):  # more than one batch of the sweeper, all due before the games
        await store.deadlines.arm(f"{number:032x}", START_MS - 1)
    clock.advance(LIMIT + 1)
    assert await server.sweeper.sweep() == 225
    for game in games:
        assert (await store.streams.bounds(game.game_id))[1] == 5


@pytest.fixture
async def redis_backed(empty_redis_url: str, clock: FakeClock) -> AsyncIterator[RedisStore]:
    """Returns a store on Redis."""
    store = redis_store(empty_redis_url, clock)
    yield store
    await store.close()


async def test_games_of_a_newer_server_delay_no_other_game_and_are_timed_out_once_readable(
    redis_backed: RedisStore, empty_redis_url: str, clock: FakeClock
) -> None:
    raw = aredis.Redis.from_url(empty_redis_url)
    async with running_server(redis_backed, NO_SWEEPS) as (server, client):
        strange, plain = [await client.new_game(ruleset=TIMED) for _ in range(2)]
        key = f"rummikub:{{{strange.game_id}}}:game"
        snapshot = await raw.hget(key, "snapshot")
        assert snapshot
        await raw.hset(key, "snapshot", b'{"format":999}')
        for number in range(120):
            other = f"rummikub:{{{number:032x}}}:game"
            await raw.hset(other, "snapshot", b"what a newer server writes")
            await redis_backed.deadlines.arm(f"{number:032x}", START_MS - 1)
        clock.advance(LIMIT + 1)
        assert await server.sweeper.sweep() == 122
        assert len(await time_outs(plain)) == 1
        assert await refusal(strange.see()) == "STORED_FORMAT_UNKNOWN"
        assert await server.sweeper.sweep() == 0  # they are postponed
        await raw.hset(key, "snapshot", snapshot)
        clock.advance(60)
        await server.sweeper.sweep()
        assert (await redis_backed.streams.bounds(strange.game_id))[1] == 5
    await raw.aclose()


class LosesItsConnection(DelegatingStore):
    """A store that can report a lost connection on the next load of a game."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(memory_store(clock))
        self.loses = False

    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        if self.loses and game_id:
            self.loses = False
            raise StoreUnavailable
        return await self._store.games.load(game_id, request_key)


async def test_a_lost_connection_does_not_postpone_a_time_out(clock: FakeClock) -> None:
    store = LosesItsConnection(clock)
    async with running_server(store, NO_SWEEPS) as (server, client):
        game = await client.new_game(ruleset=TIMED)
        clock.advance(LIMIT + 1)
        store.loses = True
        assert await server.sweeper.sweep() == 1
        assert not store.loses
        assert (await store.streams.bounds(game.game_id))[1] == 5


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """Runs a Redis server that a test may stop."""
    server = RedisServer()
    server.start()
    yield server
    server.close()


async def test_the_sweeper_continues_after_the_store_was_unavailable(own_redis: RedisServer, clock: FakeClock) -> None:
    store = redis_store(own_redis.url, clock)
    async with running_server(store, server_settings(sweep_seconds=0.05)) as (server, client):
        game = await client.new_game(ruleset=TIMED)
        seen = await game.see()
        own_redis.stop()
        with pytest.raises(StoreUnavailable):
            await server.sweeper.sweep()
        own_redis.start()
        clock.advance(LIMIT + 1)
        async with asyncio.timeout(20):
            async with store.streams.subscribe(game.game_id) as subscription:
                while (await store.streams.bounds(game.game_id))[1] == seen.revision:
                    await subscription.wait()
        assert (await store.streams.bounds(game.game_id))[1] == seen.revision + 1
    await store.close()


async def act_at_random(client: Client, game: GameAtHand, phase: object, rng: random.Random) -> None:
    """Makes a random legal call on a game, or none."""
    seats = [seat for seat in game.tokens if seat]
    match phase:
        case Playing(round_) if rng.random() < 0.5:
            etag = (await game.see()).etag
            request = ts.PlayTurnRequest(game_id=game.game_id, etag=etag, request_id=new_id())
            getattr(request, "draw" if round_.pool else "pass_turn").SetInParent()
            await client.turns.PlayTurn(request, metadata=game.as_seat(round_.turn.seat))
        case RoundOver() if rng.random() < 0.5:
            started = ts.StartNextRoundRequest(game_id=game.game_id, request_id=new_id())
            await client.turns.StartNextRound(started, metadata=game.as_seat(rng.choice(seats)))
        case _:
            pass


async def stored_game(store: Store, game_id: str) -> Game:
    """Returns a stored game without applying a time-out."""
    record = (await store.games.load(game_id)).record
    assert record
    return record.game


@pytest.mark.parametrize("seed", few_of(range(12), 3))
async def test_nothing_is_due_after_a_sweep_of_randomly_changed_games(seed: int) -> None:
    """Draws, new rounds, sweeps and clock jumps happen at random; after each sweep no turn or pause is over."""
    rng = random.Random(seed)
    clock = FakeClock()
    store = memory_store(clock)
    rules = options(
        turn_time_limit_seconds=rng.choice((1, 5, 30)),
        match_end=ruleset_pb2.MATCH_END_FIXED_ROUNDS,
        match_rounds=4,
        absent_after_timeouts=0,
        round_pause_seconds=rng.choice((0, 5, 60)),
    )
    async with running_server(store, NO_SWEEPS, seed) as (server, client):
        games = [await client.new_game(players=rng.randint(2, 4), ruleset=rules) for _ in range(3)]
        limit = rules["turn_time_limit_seconds"]
        swept = {GameState.PLAYING: 0, GameState.ROUND_OVER: 0}
        for _ in range(250):
            clock.advance(rng.choice((0, 0.001, limit / 2, limit, limit + 0.001, 7 * limit)))
            for game in rng.sample(games, rng.randint(0, 3)):
                phase = (await stored_game(store, game.game_id)).phase
                try:
                    await act_at_random(client, game, phase, rng)
                except grpc.aio.AioRpcError as error:
                    if error.code() not in {grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.ABORTED}:
                        raise
            await server.sweeper.sweep()
            for game in games:
                found = await stored_game(store, game.game_id)
                assert not is_due(found, clock.now_ms)
                swept[GameState.PLAYING] += isinstance(found.phase, Playing)
                swept[GameState.ROUND_OVER] += isinstance(found.phase, RoundOver)
        assert all(swept.values())
        clock.advance(10_000)
        await server.sweeper.sweep()
        for game in games:
            if isinstance((await stored_game(store, game.game_id)).phase, Finished):
                assert game.game_id not in {game_id for game_id, _ in await due(store)}


async def test_calls_of_spectators_and_with_wrong_tokens_apply_a_time_out_and_reveal_nothing(
    client: Client, store: Store, clock: FakeClock
) -> None:
    game = await client.new_game(ruleset=TIMED)
    revision = (await game.see()).revision
    clock.advance(LIMIT + 1)
    request = gs.GetGameRequest(game_id=game.game_id)
    wrong = client.games.GetGame(request, metadata=bearer("A" * 43))
    assert await refusal(wrong) == "TOKEN_VOID"
    assert (await store.streams.bounds(game.game_id))[1] == revision + 1


# Banks

BANK = 60
CLOCKS = options(turn_time_limit_seconds=0, clock_total_seconds=BANK)


def time_left(game: game_pb2.Game) -> list[float]:
    """Returns the seconds on the clock of each player."""
    return [player.time_left.ToMilliseconds() / 1000 for player in game.players]


async def draw_after(game: GameAtHand, clock: FakeClock, seconds: float) -> game_pb2.Game:
    """Draws for the seat to move after some time; returns the game."""
    clock.advance(seconds)
    return (await game.draw()).game


async def test_the_clock_of_a_player_runs_in_their_turns_by_the_stores_clock(client: Client, clock: FakeClock) -> None:
    game = await client.new_game(ruleset=CLOCKS)
    first = (await game.see()).turn.seat - 1
    assert time_left(await game.see()) == [BANK, BANK]
    seen = await draw_after(game, clock, 12.5)
    assert (time_left(seen)[first], time_left(seen)[1 - first]) == (BANK - 12.5, BANK)
    seen = await draw_after(game, clock, 1)
    assert (time_left(seen)[first], time_left(seen)[1 - first]) == (BANK - 12.5, BANK - 1)
    assert ms(seen.turn.deadline) == clock.now_ms + (BANK - 12.5) * 1000
    stopped = [event.clock_stopped for change in await history(game) for event in change.events]
    left = [one.time_left.ToMilliseconds() / 1000 for one in stopped if one.seat]
    assert left == [BANK - 12.5, BANK - 1]


@pytest.mark.parametrize("call", [looks, draws_too_late, joins], ids=lambda call: str(call.__name__))
async def test_an_empty_bank_resigns_the_player_once(
    client: Client,
    store: Store,
    clock: FakeClock,
    call: Callable[[GameAtHand, game_pb2.Game], Awaitable[None]],
) -> None:
    game = await client.new_game(players=3, ruleset=CLOCKS)
    seen = await game.see()
    clock.advance(BANK + 0.001)
    await call(game, seen)
    assert await store.streams.bounds(game.game_id) == (1, seen.revision + 1)
    after = await game.see()
    assert [player.seat for player in after.players if player.resigned] == [seen.turn.seat]
    assert time_left(after)[seen.turn.seat - 1] == 0
    assert ms(after.turn.deadline) == clock.now_ms + BANK * 1000


async def test_the_sweeper_finds_a_bank_that_is_empty_before_the_turn_before_would_have_ended(
    client: Client, server: Server, store: Store, clock: FakeClock
) -> None:
    game = await client.new_game(players=3, ruleset=CLOCKS)
    short = (await game.see()).turn.seat
    for seconds in (55, 0, 0):
        await draw_after(game, clock, seconds)
    assert (await game.see()).turn.seat == short  # with five seconds left
    await draw_after(game, clock, 0)
    clock.advance(5.001)  # in another player's turn of 60 seconds
    assert await server.sweeper.sweep() == 1
    await draw_after(game, clock, 0)
    revision = (await draw_after(game, clock, 0)).revision
    clock.advance(5.001)
    await server.sweeper.sweep()
    assert await store.streams.bounds(game.game_id) == (1, revision + 1)
    assert (await game.see()).players[short - 1].resigned


async def test_a_turn_may_last_14_days(client: Client, server: Server, store: Store, clock: FakeClock) -> None:
    limit = 14 * 86_400
    game = await client.new_game(ruleset=options(turn_time_limit_seconds=limit))
    seen = await game.see()
    clock.advance(limit)
    assert await server.sweeper.sweep() == 0
    clock.advance(0.001)
    assert await server.sweeper.sweep() == 1
    assert await store.streams.bounds(game.game_id) == (1, seen.revision + 1)
