"""A store that replies but refuses writes: it is full, has become a replica, or lacks its replicas."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass

import grpc.aio
import pytest

from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.storage.redis.keys import CLUSTER_PARTS, ONE_PART, list_key, part_of, slot_of
from support.harness import (
    FakeClock,
    GameAtHand,
    error_info,
    new_id,
    redis_store,
    running_redis,
    running_server,
    server_settings,
)
from tools.games import options
from tools.redis_cluster import RedisCluster
from tools.redis_servers import RedisServer

LIMIT = 30
REFUSED: dict[str, Callable[[RedisServer], object]] = {
    "full": lambda server: server.execute("CONFIG", "SET", "maxmemory", 1),
    "a replica": lambda server: server.execute("REPLICAOF", "127.0.0.1", 1),
    "without replicas": lambda server: server.execute("CONFIG", "SET", "min-replicas-to-write", 1),
}
"""Ways to make a Redis refuse writes."""
TAKEN: dict[str, Callable[[RedisServer], object]] = {
    "full": lambda server: server.execute("CONFIG", "SET", "maxmemory", 0),
    "a replica": lambda server: server.execute("REPLICAOF", "NO", "ONE"),
    "without replicas": lambda server: server.execute("CONFIG", "SET", "min-replicas-to-write", 0),
}
"""Ways to make a Redis accept writes again."""
KINDS = [("redis", how) for how in REFUSED] + [("cluster", how) for how in REFUSED if how != "a replica"]
"""Kinds of stores, and how all of their servers refuse writes. A replica in a cluster redirects them to its primary."""


@dataclass(frozen=True)
class Servers:
    """The servers of a store, and how they refuse writes.

    Attributes:
        url: The URL of the store.
        primaries: All of them accept writes, or none.
        how: A key of REFUSED.
        parts: The parts of the store's lists.
        owner: Returns the server that has a key.
    """

    url: str
    primaries: Sequence[RedisServer]
    how: str
    parts: Sequence[str]
    owner: Callable[[str], RedisServer]

    def refuse(self) -> None:
        """Makes the servers refuse writes."""
        for server in self.primaries:
            REFUSED[self.how](server)

    def take(self) -> None:
        """Makes the servers accept writes again."""
        for server in self.primaries:
            TAKEN[self.how](server)


@pytest.fixture(params=KINDS, ids=" ".join)
def servers(request: pytest.FixtureRequest) -> Iterator[Servers]:
    """Yields the empty servers of each kind of store, for each way to refuse writes."""
    kind, how = request.param
    if kind == "redis":
        with running_redis() as server:
            yield Servers(server.url, [server], how, ONE_PART, lambda _: server)
        return
    url: str = request.getfixturevalue("limited_cluster_url")
    cluster: RedisCluster = request.getfixturevalue("cluster")
    servers = Servers(url, cluster.primaries, how, CLUSTER_PARTS, lambda key: cluster.owner(slot_of(key)))
    yield servers
    servers.take()


@dataclass(frozen=True)
class Overdue:
    """A game whose turn is overdue, in a Redis that refuses writes.

    Attributes:
        game: The game.
        seen: The game before, as a spectator sees it.
        take_writes: Makes the Redis accept writes again.
    """

    game: GameAtHand
    seen: game_pb2.Game
    take_writes: Callable[[], None]


@pytest.fixture
async def overdue(servers: Servers, clock: FakeClock) -> AsyncIterator[Overdue]:
    store = redis_store(servers.url, clock)
    async with running_server(store, server_settings(sweep_seconds=3600)) as (_, client):
        game = await client.new_game(ruleset=options(turn_time_limit_seconds=LIMIT))
        await game.draw()
        seen = await game.see()
        clock.advance(LIMIT + 1)
        servers.refuse()
        yield Overdue(game, seen, servers.take)
    await store.close()


async def changes(game: GameAtHand) -> list[int]:
    """Returns the revisions of a game's history from ListChanges."""
    answer = await game.client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id, page_size=100))
    return [change.revision for change in answer.changes]


async def watch(game: GameAtHand, etag: str = "") -> AsyncIterator[gs.WatchGameResponse]:
    """Yields updates; resumes, as clients do, when the connection to a Redis that is no primary is dropped."""
    while True:
        request = gs.WatchGameRequest(game_id=game.game_id, etag=etag)
        try:
            async for update in game.client.games.WatchGame(request):
                etag = update.snapshot.etag or update.change.etag or etag
                yield update
        except grpc.aio.AioRpcError as error:
            if error_info(error).reason != "STORE_UNAVAILABLE":
                raise
        else:
            return


async def test_an_overdue_game_is_returned_as_stored(overdue: Overdue) -> None:
    game, seen = overdue.game, overdue.seen
    for seat in game.tokens:
        own = await game.see(seat)
        assert (own.revision, own.turn.seat) == (seen.revision, seen.turn.seat)
        assert own.turn.deadline.ToDatetime() < own.server_time.ToDatetime()
    assert await changes(game) == list(range(1, seen.revision + 1))
    listed = await game.client.games.ListGames(gs.ListGamesRequest(states=[game_pb2.GAME_STATE_PLAYING]))
    assert [summary.game_id for summary in listed.games] == [game.game_id]


async def test_an_overdue_game_can_be_watched_and_its_time_out_is_sent_once_stored(overdue: Overdue) -> None:
    game, seen = overdue.game, overdue.seen
    fresh, resumed = watch(game), watch(game, await game.etag_at(1))
    async with asyncio.timeout(20):
        assert (await anext(fresh)).snapshot.revision == seen.revision
        for revision in range(2, seen.revision + 1):
            assert (await anext(resumed)).change.revision == revision
        overdue.take_writes()
        while (await game.see()).revision == seen.revision:  # noqa: ASYNC110 - a new primary needs a moment
            await asyncio.sleep(0.05)
        for updates in (fresh, resumed):
            async for update in updates:
                if update.change.revision == seen.revision + 1:
                    break


async def test_mutations_of_an_overdue_game_are_refused_until_its_time_out_is_stored(overdue: Overdue) -> None:
    game, seen = overdue.game, overdue.seen
    turn = ts.PlayTurnRequest(game_id=game.game_id, etag=seen.etag, request_id=new_id(), draw=ts.DrawTile())
    draft = ts.SaveDraftRequest(game_id=game.game_id, etag=seen.etag)
    metadata = game.as_seat(seen.turn.seat)
    for change in (
        game.client.turns.PlayTurn(turn, metadata=metadata),
        game.client.turns.SaveDraft(draft, metadata=metadata),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await change
        assert error_info(refusal.value).reason == "STORE_UNAVAILABLE"
    overdue.take_writes()
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await game.client.turns.PlayTurn(turn, metadata=metadata)
    assert error_info(refusal.value).reason == "TURN_TIMED_OUT"


async def test_lists_are_readable_when_they_cannot_be_repaired(servers: Servers) -> None:
    store = redis_store(servers.url)
    async with running_server(store, server_settings(sweep_seconds=3600)) as (_, client):
        game = await client.new_game()
        part = part_of(servers.parts, game.game_id)
        lobby, playing = list_key(part, "games:lobby"), list_key(part, "games:playing")
        [member] = servers.owner(playing).execute("ZRANGE", playing, 0, -1)
        servers.owner(lobby).execute("ZADD", lobby, 0, member.decode(), 0, "of no server")
        servers.refuse()
        for state, expected in ((game_pb2.GAME_STATE_LOBBY, []), (game_pb2.GAME_STATE_PLAYING, [game.game_id])):
            listed = await client.games.ListGames(gs.ListGamesRequest(states=[state]))
            assert [summary.game_id for summary in listed.games] == expected
    await store.close()
