"""Absent players over gRPC: bots stand in, owners return; and the next round, which starts once after its pause."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import grpc.aio
import pytest

from rummikub.v1 import game_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.model.record import Record
from service.server import Server
from service.storage.store import Store
from support.harness import (
    LIFETIMES,
    Client,
    FakeClock,
    GameAtHand,
    due,
    error_info,
    new_id,
    redis_store,
    running_server,
    server_process,
    server_settings,
)
from tools.games import options

pytestmark = pytest.mark.slow

LIMIT = 30
PAUSE = 20
SOON = options(turn_time_limit_seconds=LIMIT, absent_after_timeouts=1)
ROUNDS = options(
    turn_time_limit_seconds=LIMIT,
    match_end=ruleset_pb2.MATCH_END_FIXED_ROUNDS,
    match_rounds=3,
    absent_after_timeouts=0,
    round_pause_seconds=PAUSE,
)
NO_SWEEPS = server_settings(sweep_seconds=3600)
LONG_SECONDS = 60.0


@pytest.fixture
async def served(store: Store) -> AsyncIterator[tuple[Server, Client]]:
    """Runs a server on each store in turn; its sweeper runs only when the test calls it."""
    async with running_server(store, NO_SWEEPS) as (server, client):
        yield server, client


@pytest.fixture
def client(served: tuple[Server, Client]) -> Client:
    """Returns the server's client."""
    return served[1]


async def to_absence(game: GameAtHand, clock: FakeClock) -> int:
    """Lets the turn in progress time out; returns its seat."""
    seat = (await game.see()).turn.seat
    clock.advance(LIMIT + 1)
    assert (await game.see()).players[seat - 1].is_absent
    return seat


async def until(game: GameAtHand, is_so: Callable[[game_pb2.Game], bool]) -> game_pb2.Game:
    """Watches a game until a condition holds; returns the game."""
    watching = game.client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id))
    async with asyncio.timeout(LONG_SECONDS):
        async for _ in watching:
            seen = await game.see()
            if is_so(seen):
                watching.cancel()
                return seen
    raise AssertionError("the game ended before the condition held")


async def come_back(game: GameAtHand, seat: int) -> game_pb2.Game:
    request = ts.ReturnToSeatRequest(game_id=game.game_id, request_id=new_id())
    return (await game.client.turns.ReturnToSeat(request, metadata=game.as_seat(seat))).game


async def events(game: GameAtHand) -> list[str]:
    """Returns the types of all events."""
    answer = await game.client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id, page_size=200))
    return [event.WhichOneof("event") or "" for change in answer.changes for event in change.events]


async def refusal(call: Awaitable[object]) -> str:
    """Returns the reason of a refused call."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return str(error_info(refused.value).reason)


# Absent players


async def test_a_bot_plays_for_an_absent_player_until_the_player_returns(client: Client, clock: FakeClock) -> None:
    game = await client.new_game(2, ruleset=SOON)
    away = await to_absence(game, clock)
    here = 3 - away
    for _ in range(3):
        seen = await game.see()
        assert seen.players[away - 1].bot_level == game_pb2.BOT_LEVEL_MEDIUM
        assert not seen.players[here - 1].is_absent
        await game.draw(here)
        await until(game, lambda now: now.turn.seat == here)
    returned = await come_back(game, away)
    assert not returned.players[away - 1].is_absent
    assert returned.players[away - 1].bot_level == game_pb2.BOT_LEVEL_UNSPECIFIED
    revision = (await game.draw(here)).game.revision
    assert (await game.see()).revision == revision
    await game.draw(away)
    found = await events(game)
    assert [found.count(kind) for kind in ("turn_timed_out", "player_absent", "player_returned")] == [1, 1, 1]


async def test_the_owner_of_a_seat_returns_by_taking_the_turn_from_the_bot(store: Store, clock: FakeClock) -> None:
    slow = server_settings(sweep_seconds=3600, bot_delay_ms=10_000)
    async with running_server(store, slow) as (_, client):
        game = await client.new_game(2, ruleset=SOON)
        away = await to_absence(game, clock)
        await game.draw(3 - away)
        validated = ts.PlayTurnRequest(draw=ts.DrawTile(), validate_only=True)
        await game.take(validated, away)
        assert (await game.see()).players[away - 1].is_absent  # nothing was stored
        drawn = (await game.draw(away)).game
        assert not drawn.players[away - 1].is_absent
        assert drawn.turn.seat == 3 - away
        await game.draw(3 - away)
        assert (await events(game))[-5:-2] == ["player_returned", "tiles_drawn", "turn_started"]


async def test_only_absent_players_return(client: Client, clock: FakeClock) -> None:
    game = await client.new_game(2, ruleset=SOON)
    assert await refusal(come_back(game, 1)) == "PLAYER_NOT_ABSENT"
    assert await refusal(come_back(game, 0)) == "NOT_A_PLAYER"
    away = await to_absence(game, clock)
    assert await refusal(come_back(game, 3 - away)) == "PLAYER_NOT_ABSENT"
    await come_back(game, away)
    assert await refusal(come_back(game, away)) == "PLAYER_NOT_ABSENT"


async def test_no_client_can_send_the_request_id_of_a_bot(client: Client) -> None:
    game = await client.new_game(2, ruleset=SOON)
    request = ts.ReturnToSeatRequest(game_id=game.game_id, request_id=f"bot {game.game_id} 5")
    assert await refusal(client.turns.ReturnToSeat(request, metadata=game.as_seat(1))) == "FIELD_INVALID"


async def test_a_game_whose_people_are_all_absent_is_abandoned(
    served: tuple[Server, Client], store: Store, clock: FakeClock
) -> None:
    server, client = served
    game = await client.new_game(3, ruleset=SOON)
    for _ in range(3):
        clock.advance(LIMIT + 1)
        await server.sweeper.sweep()
    seen = await game.see()
    assert (seen.state, seen.abandoned, list(seen.winner_seats)) == (game_pb2.GAME_STATE_FINISHED, True, [])
    assert not seen.rounds
    assert not seen.HasField("turn")
    clock.advance(LIMIT + 1)
    await server.sweeper.sweep()
    assert await due(store) == []


async def test_another_server_stands_in_when_the_first_is_killed(redis_url: str) -> None:
    rules = options(turn_time_limit_seconds=1, absent_after_timeouts=1)
    environment = {"RUMMIKUB_REDIS_URL": redis_url, "RUMMIKUB_SWEEP_SECONDS": "0.1", "RUMMIKUB_BOT_DELAY_MS": "0"}
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(server_process(environment))
        second = await stack.enter_async_context(server_process(environment))
        clients = []
        for process in (first, second):
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(process.target))
            clients.append(Client(channel))
        game = await clients[0].new_game(3, ruleset=rules)
        await until(game, lambda now: any(player.is_absent for player in now.players))
        await first.kill()
        at_second = GameAtHand(clients[1], game.game_id, game.tokens)
        ended = await until(at_second, lambda now: now.state == game_pb2.GAME_STATE_FINISHED)
        assert ended.abandoned
        found = await events(at_second)
        assert (found.count("player_absent"), found.count("game_ended")) == (3, 1)


# The pause between rounds


async def to_round_end(game: GameAtHand, clock: FakeClock) -> game_pb2.Game:
    """Times out every turn until the pool is empty and all have passed."""
    while (seen := await game.see()).state == game_pb2.GAME_STATE_PLAYING:
        clock.advance(LIMIT + 1)
    assert seen.state == game_pb2.GAME_STATE_ROUND_OVER
    return seen


async def rounds_started(game: GameAtHand) -> int:
    return (await events(game)).count("round_started")


def milliseconds(game: game_pb2.Game) -> int:
    return game.next_round_time.ToMilliseconds()


async def looks(game: GameAtHand) -> None:
    await game.see()


async def looks_as_a_seat(game: GameAtHand) -> None:
    assert len((await game.see(1)).rack) == 14


async def starts_the_round(game: GameAtHand) -> None:
    request = ts.StartNextRoundRequest(game_id=game.game_id, request_id=new_id())
    assert await refusal(game.client.turns.StartNextRound(request, metadata=game.as_seat(1))) == "ROUND_IN_PROGRESS"


async def plays_at_the_old_revision(game: GameAtHand) -> None:
    record = (await game.client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id, page_size=200))).changes
    request = ts.PlayTurnRequest(game_id=game.game_id, etag=record[-2].etag, request_id=new_id(), draw=ts.DrawTile())
    assert await refusal(game.client.turns.PlayTurn(request, metadata=game.as_seat(1))) == "STALE_STATE"


@pytest.mark.parametrize(
    "call", [looks, looks_as_a_seat, starts_the_round, plays_at_the_old_revision], ids=lambda call: str(call.__name__)
)
async def test_any_call_starts_the_next_round_once_after_the_pause(
    client: Client, store: Store, clock: FakeClock, call: Callable[[GameAtHand], Awaitable[None]]
) -> None:
    game = await client.new_game(2, ruleset=ROUNDS)
    over = await to_round_end(game, clock)
    assert milliseconds(over) == clock.now_ms + PAUSE * 1000
    clock.advance(PAUSE)
    assert (await game.see()).revision == over.revision
    clock.advance(0.001)
    await call(game)
    seen = await game.see()
    assert (seen.state, seen.round, seen.revision) == (game_pb2.GAME_STATE_PLAYING, 2, over.revision + 1)
    assert not seen.HasField("next_round_time")
    assert seen.turn.deadline.ToMilliseconds() == clock.now_ms + LIMIT * 1000
    assert await store.streams.bounds(game.game_id) == (1, over.revision + 1)


async def test_the_sweeper_starts_the_next_round_before_the_last_turn_would_have_ended(
    served: tuple[Server, Client], store: Store, clock: FakeClock
) -> None:
    """A long turn's deadline was written when the round began; the pause is over long before."""
    server, client = served
    two = options(match_end=ruleset_pb2.MATCH_END_FIXED_ROUNDS, match_rounds=2)
    rules = {**options(turn_time_limit_seconds=86_400, deal_hand_size=5), **two}
    game = await client.new_game(2, ruleset=rules)
    while (seen := await game.see()).state == game_pb2.GAME_STATE_PLAYING:
        await (game.draw() if seen.pool_count else game.pass_on())
    clock.advance(30)
    assert await server.sweeper.sweep() == 0
    clock.advance(0.001)
    assert await server.sweeper.sweep() == 1
    await server.sweeper.sweep()
    assert await store.streams.bounds(game.game_id) == (1, seen.revision + 1)
    assert (await game.see()).round == 2
    assert await server.sweeper.sweep() == 0


async def test_a_player_starts_the_next_round_before_the_pause_is_over(
    served: tuple[Server, Client], clock: FakeClock
) -> None:
    server, client = served
    game = await client.new_game(2, ruleset=ROUNDS)
    await to_round_end(game, clock)
    request = ts.StartNextRoundRequest(game_id=game.game_id, request_id=new_id())
    await client.turns.StartNextRound(request, metadata=game.as_seat(2))
    clock.advance(PAUSE + 1)
    await server.sweeper.sweep()
    assert await rounds_started(game) == 2


async def test_without_a_pause_only_a_player_starts_the_next_round(
    served: tuple[Server, Client], clock: FakeClock
) -> None:
    server, client = served
    game = await client.new_game(2, ruleset={**ROUNDS, **options(round_pause_seconds=0)})
    assert not (await to_round_end(game, clock)).HasField("next_round_time")
    clock.advance(1_000_000)
    await server.sweeper.sweep()
    assert await rounds_started(game) == 1


# Lifetimes


@pytest.mark.parametrize(("limit", "extra_ms"), [(0, 0), (30, 30_000), (86_400, 86_400_000)])
async def test_a_game_is_kept_beyond_the_time_at_which_it_is_due(
    empty_redis_url: str, clock: FakeClock, limit: int, extra_ms: int
) -> None:
    store = redis_store(empty_redis_url, clock)
    async with running_server(store, NO_SWEEPS) as (_, client):
        game = await client.new_game(2, ruleset=options(turn_time_limit_seconds=limit))
        record = (await store.games.load(game.game_id)).record
        assert isinstance(record, Record)
        assert LIFETIMES.milliseconds(record) == LIFETIMES.started * 1000 + extra_ms
    await store.close()
