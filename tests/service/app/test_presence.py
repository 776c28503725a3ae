"""Presence: who watches and who was seen when, over several servers, without a write per call, without a revision."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import TypeVar

import grpc.aio
import pytest

from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.composition import Tuning
from service.errors import StoreUnavailable
from service.model.presence import PRESENCE_MS, Sighting
from service.server import Intervals
from service.storage.store import Store
from support import harness
from support.delegating_store import DelegatingStore
from support.harness import Client, FakeClock, GameAtHand, new_id, server_settings
from tools.games import options

UNLIMITED = options(turn_time_limit_seconds=0)
_T = TypeVar("_T")


HELD: list[object] = []
"""Streams of the test: grpc cancels a call that nothing refers to."""


running_server = partial(harness.running_server, tuning=Tuning(intervals=Intervals(presence=0.02)))
"""Runs a server that reports often."""


@pytest.fixture(autouse=True)
def _released() -> Iterator[None]:
    yield
    HELD.clear()


class Counting(DelegatingStore):
    """A store that counts its operations, and can refuse those of presence."""

    def __init__(self, store: Store) -> None:
        self.asked = Counter[str]()
        self.sighted = Counter[int]()
        self.is_down = False
        super().__init__(store)

    async def report_presence(self, game_id: str, server: str, sightings: Mapping[int, Sighting]) -> None:
        await self._forward("report_presence", self._store.presence.report(game_id, server, sightings))
        self.sighted.update(sightings.keys())

    async def _forward(self, operation: str, reply: Awaitable[_T]) -> _T:
        self.asked[operation] += 1
        if self.is_down and "presence" in operation:
            await reply
            raise StoreUnavailable
        return await super()._forward(operation, reply)


class Watching:
    """A WatchGame stream of a seat; 0: of a spectator."""

    def __init__(self, game: GameAtHand, seat: int, request: gs.WatchGameRequest | None = None) -> None:
        request = request or gs.WatchGameRequest(game_id=game.game_id)
        self.call = game.client.games.WatchGame(request, metadata=game.as_seat(seat))
        self._updates = aiter(self.call)
        HELD.append(self)

    async def next(self, kind: str) -> gs.WatchGameResponse:
        """Returns the next update of a kind, which only heartbeats may precede."""
        async with asyncio.timeout(20):
            while (update := await anext(self._updates)).HasField("heartbeat"):
                pass
        assert update.WhichOneof("update") == kind, update
        return update

    async def presence(self) -> tuple[int, bool]:
        """Returns the next update, which must be a presence: its seat, and whether its owner is connected."""
        update = (await self.next("presence")).presence
        return update.seat, update.is_connected


async def players(game: GameAtHand) -> list[game_pb2.Player]:
    """Returns the players as a spectator gets them."""
    answer = await game.client.games.GetGame(gs.GetGameRequest(game_id=game.game_id))
    return list(answer.game.players)


async def connected(game: GameAtHand) -> list[bool]:
    """Returns whether each player is connected."""
    return [player.is_connected for player in await players(game)]


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Polls a condition until it holds."""
    async with asyncio.timeout(20):
        while not await condition():  # noqa: ASYNC110 - presence is reported by a task of the server
            await asyncio.sleep(0.02)


async def until_connected(game: GameAtHand, expected: list[bool]) -> None:
    """Waits until the players are connected as expected."""

    async def is_expected() -> bool:
        return await connected(game) == expected

    await eventually(is_expected)


async def until_seen(game: GameAtHand, expected: list[bool]) -> None:
    """Waits until players have been seen as expected."""

    async def is_expected() -> bool:
        return [player.HasField("last_seen_time") for player in await players(game)] == expected

    await eventually(is_expected)


async def until_sighted(counting: Counting, seats: set[int]) -> None:
    """Waits until the owners of seats have been reported through a store."""

    async def is_expected() -> bool:
        return counting.sighted.keys() >= seats

    await eventually(is_expected)


@pytest.fixture
async def client(store: Store) -> AsyncIterator[Client]:
    async with running_server(store, server_settings(heartbeat_seconds=60)) as (_, client):
        yield client


async def test_a_player_is_connected_while_a_watch_with_the_token_is_open(client: Client) -> None:
    game = await client.new_game(players=2, ruleset=UNLIMITED)
    spectator = Watching(game, 0)
    assert [player.is_connected for player in (await spectator.next("snapshot")).snapshot.players] == [False, False]
    first, second = Watching(game, 2), Watching(game, 2)
    assert await spectator.presence() == (2, True)
    await until_connected(game, [False, True])
    first.call.cancel()
    await game.draw()
    await spectator.next("change")
    assert await connected(game) == [False, True]
    second.call.cancel()
    assert await spectator.presence() == (2, False)
    await until_connected(game, [False, False])


async def test_presence_is_no_change_of_the_game(client: Client) -> None:
    game = await client.new_game(players=2, ruleset=UNLIMITED)
    before = await game.see()
    Watching(game, 1)
    await until_connected(game, [True, False])
    after = await game.see()
    assert (after.revision, after.etag, after.update_time) == (before.revision, before.etag, before.update_time)


async def test_watches_at_any_server_count(store: Store) -> None:
    settings, counting = server_settings(heartbeat_seconds=60), Counting(store)
    async with running_server(store, settings) as (_, client), running_server(counting, settings, 2) as (_, other):
        game = await client.new_game(players=2, ruleset=UNLIMITED)
        elsewhere = GameAtHand(other, game.game_id, game.tokens)
        spectator = Watching(elsewhere, 0)
        await spectator.next("snapshot")
        watch = Watching(game, 1)
        assert await spectator.presence() == (1, True)
        watch_there = Watching(elsewhere, 1)
        snapshot = (await watch_there.next("snapshot")).snapshot
        assert [player.is_connected for player in snapshot.players] == [True, False]
        await until_sighted(counting, {1})
        watch.call.cancel()
        await asyncio.sleep(0.2)
        assert await connected(elsewhere) == [True, False]
        watch_there.call.cancel()
        assert await spectator.presence() == (1, False)


async def test_a_watch_of_a_server_that_died_ends_by_itself(store: Store, clock: FakeClock) -> None:
    async with running_server(store, server_settings(heartbeat_seconds=0.1)) as (_, client):
        game = await client.new_game(players=2, ruleset=UNLIMITED)
        await store.presence.report(game.game_id, "another", {1: Sighting.OPEN})
        spectator = Watching(game, 0)
        snapshot = (await spectator.next("snapshot")).snapshot
        assert [player.is_connected for player in snapshot.players] == [True, False]
        clock.advance(PRESENCE_MS / 1000 + 1)
        assert await spectator.presence() == (1, False)


async def test_calls_with_a_token_are_seen_and_refused_ones_are_not(client: Client, clock: FakeClock) -> None:
    game = await client.new_game(players=2, ruleset=UNLIMITED)
    await until_seen(game, [True, False])  # seat 1 started the game
    started = (await players(game))[0].last_seen_time
    assert started == (await game.see()).update_time
    clock.advance(60)
    wrong = GameAtHand(client, game.game_id, {2: "x" * 43})
    with pytest.raises(grpc.aio.AioRpcError, match="not valid in this game"):
        await wrong.see(2)
    await asyncio.sleep(0.1)
    assert [player.HasField("last_seen_time") for player in await players(game)] == [True, False]
    await game.see(2)
    await until_seen(game, [True, True])
    assert (await players(game))[1].last_seen_time.seconds == started.seconds + 60


async def test_an_owner_is_written_once_in_an_interval(store: Store) -> None:
    counting = Counting(store)
    async with running_server(counting) as (_, client):
        game = await client.new_game(players=2, ruleset=UNLIMITED)
        for _ in range(30):
            await game.draw()
            await game.see(1)
            await asyncio.sleep(0.005)
        await until_sighted(counting, {1, 2})
        await asyncio.sleep(0.1)  # and more would come
        assert counting.asked["commit"] >= 34
        assert counting.sighted == {1: 1, 2: 1}


async def test_open_watches_are_reported_again(store: Store) -> None:
    counting = Counting(store)
    async with running_server(counting) as (server, client):
        server.presence.report_seconds = 0.1
        game = await client.new_game(players=2, ruleset=UNLIMITED)
        await Watching(game, 1).next("snapshot")

        async def is_reported_often() -> bool:
            return counting.asked["report_presence"] >= 5

        await eventually(is_reported_often)


async def test_without_presence_games_go_on(store: Store) -> None:
    counting = Counting(store)
    counting.is_down = True
    async with running_server(counting) as (_, client):
        game = await client.new_game(players=2, ruleset=UNLIMITED)
        watch = Watching(game, 1)
        assert [player.HasField("is_connected") for player in (await watch.next("snapshot")).snapshot.players] == [
            False,
            False,
        ]
        await game.draw()
        await watch.next("change")
        assert [player.HasField("is_connected") for player in await players(game)] == [False, False]


async def test_the_owner_who_left_a_seat_is_not_its_new_owner(client: Client) -> None:
    game = await client.new_game(players=2, start=False, ruleset=UNLIMITED)
    former = Watching(game, 1)
    await former.next("snapshot")
    await until_connected(game, [True, False])
    leave = gs.LeaveGameRequest(game_id=game.game_id, request_id=new_id())
    await client.games.LeaveGame(leave, metadata=game.as_seat(1))
    await game.join("next")
    assert await connected(game) == [False, False]
    assert not (await players(game))[0].HasField("last_seen_time")


async def test_a_watcher_who_resumes_gets_the_presence_of_each_player(client: Client) -> None:
    game = await client.new_game(players=2, start=False, ruleset=UNLIMITED)
    add = gs.AddBotRequest(game_id=game.game_id, level=game_pb2.BOT_LEVEL_EASY, request_id=new_id())
    await client.games.AddBot(add, metadata=game.as_seat(1))
    seen = await game.see()
    Watching(game, 1)
    await until_connected(game, [True, False, False])
    assert [player.HasField("is_connected") for player in await players(game)] == [True, True, False], "bots have none"
    resumed = Watching(game, 2, gs.WatchGameRequest(game_id=game.game_id, etag=seen.etag))
    told = [await resumed.presence(), await resumed.presence()]
    assert told in ([(1, True), (2, False)], [(1, True), (2, True)])
    if told[1] == (2, False):
        assert await resumed.presence() == (2, True)


async def test_the_games_of_a_watcher_of_games_have_the_presence_of_players(client: Client) -> None:
    game = await client.new_game(players=2, ruleset=UNLIMITED)
    request = gs.WatchGameRequest(game_id=game.game_id, content=gs.WATCH_CONTENT_GAMES)
    spectator = Watching(game, 0, request)
    await spectator.next("snapshot")
    Watching(game, 1)
    assert await spectator.presence() == (1, True)
    await game.draw()
    assert [player.is_connected for player in (await spectator.next("game")).game.players] == [True, False]


async def test_other_responses_have_no_presence(client: Client) -> None:
    game = await client.new_game(players=2, ruleset=UNLIMITED)
    Watching(game, 1)
    await until_connected(game, [True, False])
    drawn: ts.PlayTurnResponse = await game.draw()
    assert not any(
        player.HasField("is_connected") or player.HasField("last_seen_time") for player in drawn.game.players
    )
