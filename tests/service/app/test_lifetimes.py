"""Games that expire: at once for all servers and with all their data, over killed servers and a stopped store."""

import asyncio
import itertools
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, fields
from typing import Any

import grpc.aio
import pytest
import redis

from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from service.model import record as stored_record
from service.model.record import EMPTIED_MS, GameState, Lifetimes
from service.storage.redis.lists import ORPHAN_MS
from service.storage.redis.store import RedisStore, connect
from support.delegating_store import MortalStore
from support.harness import (
    HISTORY,
    LIFETIMES,
    Client,
    FakeClock,
    GameAtHand,
    error_info,
    new_id,
    redis_store,
    running_server,
    server_settings,
    until,
)
from support.rpcs import new_message
from tools.games import creation, options
from tools.redis_servers import RedisServer

pytestmark = pytest.mark.slow

NO_SWEEPS = server_settings(sweep_seconds=3600)
UNTIMED = options(turn_time_limit_seconds=0)


@dataclass(frozen=True)
class Lifetime:
    """A time after which a game expires.

    Attributes:
        rpc: The call with which it begins.
        kept: The field of Lifetimes; empty for a lobby that all people have left.
        state: The state under which the game is listed; None if it is in no list.
        players: How many players the game has before the call.
    """

    rpc: str
    kept: str
    state: game_pb2.GameState.ValueType | None
    players: int = 2

    @property
    def milliseconds(self) -> int:
        """How long the harness keeps the game."""
        return getattr(LIFETIMES, self.kept) * 1000 if self.kept else EMPTIED_MS

    async def prepare(self, client: Client) -> tuple[GameAtHand, Any]:
        """Returns a game before the call, without an id if the call creates it; and the request."""
        if self.rpc == "CreateGame":
            public = game_pb2.VISIBILITY_PUBLIC
            request = gs.CreateGameRequest(request_id=new_id(), visibility=public, **creation(UNTIMED))
            return GameAtHand(client, ""), request
        game = await client.new_game(self.players, start=self.rpc == "ResignGame", ruleset=UNTIMED)
        return game, new_message(self.rpc, game_id=game.game_id, request_id=new_id())

    async def begin(self, game: GameAtHand, request: Any) -> None:  # noqa: ANN401 - any request
        """Sends the request, or repeats it."""
        metadata = game.as_seat(1) if 1 in game.tokens else ()
        stubs = game.client.turns if self.rpc == "ResignGame" else game.client.games
        answer = await getattr(stubs, self.rpc)(request, metadata=metadata)
        game.game_id = answer.game.game_id


LOBBY, PLAYING = game_pb2.GAME_STATE_LOBBY, game_pb2.GAME_STATE_PLAYING
FINISHED, ABORTED = game_pb2.GAME_STATE_FINISHED, game_pb2.GAME_STATE_ABORTED
LIVES = (
    Lifetime("CreateGame", "lobby", LOBBY),
    Lifetime("LeaveGame", "", None, players=1),
    Lifetime("StartGame", "started", PLAYING),
    Lifetime("ResignGame", "finished", FINISHED),
    Lifetime("AbortGame", "finished", ABORTED),
)
"""Every lifetime of a game, and every state that a game does not leave by itself."""


def test_every_lifetime_is_in_the_table() -> None:
    kept = {life.kept for life in LIVES if life.kept}
    assert kept | {"unarchived"} == {one.name for one in fields(Lifetimes)}  # tests/service/archive has that one


async def listed(client: Client, game: GameAtHand) -> list[game_pb2.GameState.ValueType]:
    """Returns the states under which a game is listed, after reading all lists, which repairs them."""
    found = []
    for _ in range(2):
        pages = [await client.games.ListGames(gs.ListGamesRequest(states=[state])) for state in STATES]
        found = [one.state for page in pages for one in page.games if one.game_id == game.game_id]
    return found


STATES = (LOBBY, PLAYING, game_pb2.GAME_STATE_ROUND_OVER, FINISHED, ABORTED)


async def reason_of(call: Any) -> str:  # noqa: ANN401 - any call
    """Returns the reason of a refused call."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return str(error_info(refused.value).reason)


@pytest.mark.parametrize("is_sent", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.rpc)
async def test_a_lifetime_begins_once_if_a_server_dies_between_any_two_steps(
    empty_redis_url: str, clock: FakeClock, life: Lifetime, *, is_sent: bool
) -> None:
    """All data of a game expires after every step; the other server completes the request, and finds the game."""
    keys = redis.Redis.from_url(empty_redis_url)
    async with AsyncExitStack() as stack:
        stack.callback(keys.close)
        stores = [redis_store(empty_redis_url, clock) for _ in range(2)]
        for store in stores:
            stack.push_async_callback(store.close)
        mortal = MortalStore(stores[0], is_sent=is_sent)
        _, dying = await stack.enter_async_context(running_server(mortal, NO_SWEEPS))
        _, client = await stack.enter_async_context(running_server(stores[1], NO_SWEEPS, seed=2))
        for step in itertools.count(1):
            game, request = await life.prepare(client)
            there = GameAtHand(dying, game.game_id, game.tokens)
            mortal.die_at(step)
            with suppress(grpc.aio.AioRpcError):
                await life.begin(there, request)
            has_died = mortal.is_dead
            mortal.die_at(None)
            assert all(keys.pttl(key) > 0 for key in keys.scan_iter("*{*}*"))
            await life.begin(game, request)
            revision = (await game.see()).revision
            await life.begin(game, request)
            assert (await game.see()).revision == revision
            found = {key: keys.pttl(key) for key in keys.scan_iter(f"*{{{game.game_id}}}*")}
            assert len(found) >= 3
            assert all(0 < kept_ms <= life.milliseconds for kept_ms in found.values())
            assert await listed(client, game) == ([] if life.state is None else [life.state])
            if not has_died:
                break
        assert step > STEPS


STEPS = 2
"""Each call takes at least as many operations of a store: load, and commit."""


@pytest.mark.parametrize("is_stopped", [False, True], ids=["running", "stopped"])
async def test_an_expired_game_is_gone_for_all_servers_with_all_its_data(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, *, is_stopped: bool
) -> None:
    """Redis expires games by the real clock, also those whose time is over while it is suspended."""
    monkeypatch.setattr(stored_record, "EMPTIED_MS", SHORT * 1000)
    async with AsyncExitStack() as stack:
        own = RedisServer()
        stack.callback(own.close)
        own.start()
        stores = [RedisStore(connect(own.url), Lifetimes(SHORT, SHORT, SHORT), HISTORY, clock) for _ in range(2)]
        clients = []
        for seed, store in enumerate(stores):
            stack.push_async_callback(store.close)
            clients.append((await stack.enter_async_context(running_server(store, NO_SWEEPS, seed)))[1])
        games = []
        for life in LIVES:
            game, request = await life.prepare(clients[0])
            await life.begin(game, request)
            games.append(game)
        copies = [GameAtHand(client, game.game_id) for game in games for client in clients]
        if is_stopped:
            own.pause()
            reasons = await asyncio.gather(*(reason_of(copy.see()) for copy in copies))
            assert set(reasons) == {"STORE_UNAVAILABLE"}
            await asyncio.sleep(SHORT)
            own.resume()
        keys = own.client()
        stack.callback(keys.close)
        until(lambda: not list(keys.scan_iter("*{*}*")))
        clock.advance(ORPHAN_MS / 1000 + 1)
        assert {await reason_of(copy.see()) for copy in copies} == {"GAME_NOT_FOUND"}
        for copy in copies:
            assert await listed(copy.client, copy) == []
        await asyncio.gather(*(store.lists.page([state], "", 100) for store in stores for state in GameState))
        assert await stores[1].lists.count() == dict.fromkeys(GameState, 0)
        assert not list(keys.scan_iter("*{*}*"))


SHORT = 2
"""The lifetime of games that are to expire, in seconds."""
