"""Turns of games in a server's cache: one round trip, and the same result as after a load."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass

import grpc.aio
import pytest
import redis.asyncio as aredis

from rummikub.v1 import game_pb2
from rummikub.v1 import turn_service_pb2 as ts
from support.grpc_play import history, random_turn
from support.harness import (
    Client,
    FakeClock,
    GameAtHand,
    error_info,
    new_id,
    redis_store,
    running_server,
    server_settings,
)
from tools.games import options

NO_SWEEPS = server_settings(sweep_seconds=3600)
LIMIT = 30
TIMED = options(turn_time_limit_seconds=LIMIT)


@dataclass(frozen=True)
class Servers:
    """Two servers, each with its own store on one Redis."""

    clients: tuple[Client, Client]
    clock: FakeClock
    raw: "aredis.Redis"

    async def round_trips(self) -> int:
        """Returns the number of scripts that Redis has run."""
        told = await self.raw.info("commandstats")
        return sum(told.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("eval", "evalsha"))


@pytest.fixture
async def servers(empty_redis_url: str, clock: FakeClock) -> AsyncIterator[Servers]:
    async with AsyncExitStack() as stack:
        clients = []
        for seed in (1, 2):
            store = redis_store(empty_redis_url, clock)
            stack.push_async_callback(store.close)
            clients.append((await stack.enter_async_context(running_server(store, NO_SWEEPS, seed)))[1])
        raw = aredis.Redis.from_url(empty_redis_url)
        stack.push_async_callback(raw.aclose)
        yield Servers((clients[0], clients[1]), clock, raw)


def draw_on(client: Client, game: GameAtHand, etag: str, seat: int) -> Awaitable[ts.PlayTurnResponse]:
    """Draws in the game that has an etag."""
    request = ts.PlayTurnRequest(game_id=game.game_id, etag=etag, request_id=new_id(), draw=ts.DrawTile())
    return client.turns.PlayTurn(request, metadata=game.as_seat(seat))


async def refusal(call: Awaitable[object]) -> str:
    """Returns the reason of a refused call."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return str(error_info(refused.value).reason)


async def test_a_turn_takes_one_round_trip_for_a_cached_game_and_two_otherwise(
    servers: Servers,
) -> None:
    here, there = servers.clients
    game = await here.new_game(players=3, ruleset=TIMED)
    seen = await game.see()
    for client, round_trips in ((here, 1), (here, 1), (there, 2), (there, 1)):
        before = await servers.round_trips()
        servers.clock.advance(1)
        seen = (await draw_on(client, game, seen.etag, seen.turn.seat)).game
        assert await servers.round_trips() - before == round_trips


async def test_two_servers_play_a_game_alternately(servers: Servers) -> None:
    game = await servers.clients[0].new_game(players=4)
    rng = random.Random(7)
    seen = await game.see()
    while seen.state == game_pb2.GAME_STATE_PLAYING:
        own = await game.see(seen.turn.seat)
        taking = rng.choice(servers.clients).turns.PlayTurn(random_turn(own, rng), metadata=game.as_seat(own.seat))
        answer = await taking
        assert answer.game.revision == own.revision + 1
        seen = answer.game
    changes = await history(servers.clients[1], game)
    assert [change.revision for change in changes] == list(range(1, seen.revision + 1))
    assert changes[-1].etag == seen.etag


async def test_stale_cached_state_refuses_no_turn(servers: Servers) -> None:
    """In the stale cache it is another player's turn, with another revision and another etag."""
    here, there = servers.clients
    game = await here.new_game(players=2)
    first = await game.see()
    second = (await draw_on(there, game, first.etag, first.turn.seat)).game
    request = ts.PlayTurnRequest(game_id=game.game_id, etag=second.etag, draw=ts.DrawTile())
    third = (await here.turns.PlayTurn(request, metadata=game.as_seat(second.turn.seat))).game
    assert third.revision == first.revision + 2


async def test_stale_cached_state_accepts_no_turn(servers: Servers) -> None:
    """In the stale cache the turn is valid; another server has already played it."""
    here, there = servers.clients
    game = await here.new_game(players=2)
    seen = await game.see()
    taken = (await draw_on(there, game, seen.etag, seen.turn.seat)).game
    assert await refusal(draw_on(here, game, seen.etag, seen.turn.seat)) == "STALE_STATE"
    assert (await game.see()).etag == taken.etag


async def test_concurrent_turns_on_two_servers_with_a_cached_game_are_stored_once(servers: Servers) -> None:
    game = await servers.clients[0].new_game(players=2)
    there = GameAtHand(servers.clients[1], game.game_id, game.tokens)
    for _ in range(10):
        seen = await game.see()
        assert await there.see() == seen
        drawing = (draw_on(client, game, seen.etag, seen.turn.seat) for client in servers.clients)
        outcomes = await asyncio.gather(*drawing, return_exceptions=True)
        refused = [outcome for outcome in outcomes if isinstance(outcome, grpc.aio.AioRpcError)]
        assert [error_info(error).reason for error in refused] == ["STALE_STATE"]
        assert (await game.see()).revision == seen.revision + 1


async def test_a_cached_game_that_has_expired_is_not_found(servers: Servers) -> None:
    here, _ = servers.clients
    game = await here.new_game()
    seen = await game.see()
    await servers.raw.flushdb()
    assert await refusal(draw_on(here, game, seen.etag, seen.turn.seat)) == "GAME_NOT_FOUND"
    assert await refusal(game.see()) == "GAME_NOT_FOUND"
    assert not [key async for key in servers.raw.scan_iter("*:game")]


async def test_an_overdue_turn_of_a_cached_game_is_timed_out_first(servers: Servers) -> None:
    here, _ = servers.clients
    game = await here.new_game(ruleset=TIMED)
    seen = await game.see()
    servers.clock.advance(LIMIT)
    seen = (await draw_on(here, game, seen.etag, seen.turn.seat)).game  # at the deadline
    servers.clock.advance(LIMIT + 0.001)
    assert await refusal(draw_on(here, game, seen.etag, seen.turn.seat)) == "TURN_TIMED_OUT"
    events = [event.WhichOneof("event") for event in (await history(here, game))[-1].events]
    assert events == ["turn_timed_out", "turn_started"]


async def test_a_wrong_token_is_refused_for_a_cached_game(servers: Servers) -> None:
    here, _ = servers.clients
    game, other = await here.new_game(), await here.new_game()
    seen = await game.see()
    game.tokens[9] = other.tokens[1]
    assert await refusal(draw_on(here, game, seen.etag, 9)) == "TOKEN_VOID"
    assert await refusal(draw_on(here, game, seen.etag, 0)) == "NOT_A_PLAYER"
    assert (await game.see()) == seen


async def test_a_retried_turn_of_a_cached_game_gets_its_first_response(servers: Servers) -> None:
    here, there = servers.clients
    game = await here.new_game()
    seen = await game.see()
    request = ts.PlayTurnRequest(game_id=game.game_id, etag=seen.etag, request_id=new_id(), draw=ts.DrawTile())
    metadata = game.as_seat(seen.turn.seat)
    # This call fills the cache of the other server.
    assert (await GameAtHand(there, game.game_id, game.tokens).see()).revision == seen.revision
    first = await here.turns.PlayTurn(request, metadata=metadata)
    assert await there.turns.PlayTurn(request, metadata=metadata) == first
    assert await here.turns.PlayTurn(request, metadata=metadata) == first
    assert (await game.see()).revision == seen.revision + 1
