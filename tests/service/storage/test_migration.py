"""`rummikub-admin migrate`: games move between embedded stores, one Redis and a Redis Cluster while they are played."""

import asyncio
import random
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio as redis

from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.errors import StoreUnavailable
from service.model.change import Committed
from service.model.change_log import LOG_START, LogEntry
from service.model.presence import Sighting
from service.model.record import GameState, OperatorData, PlayerRef, Record
from service.operator import migration
from service.operator.change_feed import Changed, ChangeFeed, Position
from service.operator.content import AT_ONCE, BATCH, Content, Keyspace
from service.operator.log_copy import ChangeLogCopy
from service.operator.migration import MigrationError, migrate, undo
from service.storage.embedded import EmbeddedStore
from service.storage.redis.deployment import GUARD, MAX_LAG, REFUSE_ALL
from service.storage.redis.keys import CLUSTER_PARTS, MARK, ONE_PART, UNFINISHED, keys_of
from service.storage.store import Store
from support.commits import GAME, creation, joining, put_everywhere
from support.grpc_play import Fleet, history, lost_or_doubled, play_game
from support.harness import (
    ROOT,
    Client,
    FakeClock,
    GameAtHand,
    bearer,
    new_id,
    redis_store,
    running_redis,
    running_server,
    server_settings,
    without_presence,
)
from tools.redis_cluster import RedisCluster
from tools.redis_servers import HOST, RedisServer, WatchedServers, watched_servers

pytestmark = pytest.mark.slow

GAMES = 4
LOG_MS = 60_000


@pytest.fixture
async def source() -> AsyncIterator[RedisServer]:
    """Runs the Redis to move from."""
    with running_redis() as server:
        yield server


@pytest.fixture
def target(cluster: RedisCluster) -> Iterator[str]:
    """Yields the URL of the emptied cluster, which accepts writes afterwards."""
    cluster.empty()
    yield cluster.url
    for node in cluster.nodes:
        node.execute("CONFIG", "SET", "min-replicas-to-write", 0)


@pytest.fixture
def other() -> Iterator[RedisServer]:
    """Runs a single Redis to move to."""
    with running_redis() as server:
        yield server


@pytest.fixture(params=["Redis, cluster", "embedded, Redis", pytest.param("embedded, cluster", marks=pytest.mark.soak)])
def pair(request: pytest.FixtureRequest, source: RedisServer, target: str, embedded: EmbeddedStore) -> tuple[str, str]:
    """Returns the URLs of stores between which games move."""
    urls = {"Redis": source.url, "cluster": target, "embedded": embedded.url}
    here, there = request.param.split(", ")
    return urls[here], urls[there]


def silent(_: str) -> None:
    """Discards progress."""


async def answered_draw(game: GameAtHand) -> tuple[ts.PlayTurnRequest, int, ts.PlayTurnResponse]:
    """Draws; returns the request, its seat and the answer."""
    seen = await game.see()
    request = ts.PlayTurnRequest(game_id=game.game_id, etag=seen.etag, request_id=new_id(), draw=ts.DrawTile())
    answer = await game.client.turns.PlayTurn(request, metadata=game.as_seat(seen.turn.seat))
    return request, seen.turn.seat, answer


async def seen_by_all(client: Client, game: GameAtHand) -> list[game_pb2.Game]:
    """Returns a game as a spectator and each of its seats see it at a server."""
    request = gs.GetGameRequest(game_id=game.game_id)
    games = [await client.games.GetGame(request, metadata=game.as_seat(seat)) for seat in game.tokens]
    seen = [without_presence(answer.game) for answer in games]
    for one in seen:
        one.ClearField("server_time")
    return seen


async def test_games_go_on_in_another_store_and_back_with_their_tokens_and_request_ids(pair: tuple[str, str]) -> None:
    here, there = pair
    async with AsyncExitStack() as stack:

        async def client_on(url: str) -> Client:
            store = redis_store(url)
            stack.push_async_callback(store.close)
            settings = server_settings(sweep_seconds=3_600)
            _, client = await stack.enter_async_context(running_server(store, settings))
            return client

        before = await client_on(here)
        resting = await before.new_game(start=False)
        asked = await before.new_game()
        request, seat, answer = await answered_draw(asked)
        await asked.save_draft()
        games = [await before.new_game(players=2 + number % 3) for number in range(GAMES)]
        fleet = Fleet([before], random.Random(1))
        playing = [asyncio.create_task(play_game(fleet, game, random.Random(n))) for n, game in enumerate(games)]
        await fleet.has_taken(GAMES * 3)
        seen = await seen_by_all(before, asked)
        lines: list[str] = []
        moved = await migrate(here, there, lines.append)
        assert moved.games == GAMES + 2
        assert lines[-1] == f"all {GAMES + 2} games are equal"
        assert not any(task.done() for task in playing), "the games ended before they were moved"
        after = await client_on(there)
        assert await seen_by_all(after, asked) == seen
        fleet.clients = [after]
        turns = fleet.turns
        await fleet.has_taken(turns + GAMES)
        assert await after.turns.PlayTurn(request, metadata=asked.as_seat(seat)) == answer
        assert (await after.games.GetGame(gs.GetGameRequest(game_id=asked.game_id))).game.revision
        resting_request = gs.GetGameRequest(game_id=resting.game_id)
        code = (await after.games.GetGame(resting_request, metadata=bearer(resting.host_token))).game.join_code
        joined = await after.games.JoinGame(gs.JoinGameRequest(join_code=code, name="Zoe", request_id=new_id()))
        assert joined.game.game_id == resting.game_id
        listed = await after.games.ListGames(gs.ListGamesRequest(states=[game_pb2.GAME_STATE_LOBBY], page_size=50))
        assert [summary.game_id for summary in listed.games] == [resting.game_id]

        await migrate(there, here, silent)
        fleet.clients = [await client_on(here)]
        for played in await asyncio.gather(*playing):
            assert played.final.state == game_pb2.GAME_STATE_FINISHED
            assert not lost_or_doubled(played, await history(fleet.clients[0], played.game))
        assert await fleet.clients[0].turns.PlayTurn(request, metadata=asked.as_seat(seat)) == answer


async def test_lists_deadlines_outbox_and_lifetimes_move(source: RedisServer, target: str) -> None:
    old, new = redis_store(source.url), redis_store(target)
    ids = [f"{number:032x}" for number in range(2 * BATCH)]
    await put_everywhere(old, ids)
    one = creation(ids[0]).record
    await old.lists.note_players(replace(one, operator_data=OperatorData(player_refs=(PlayerRef(1, 1, "ada"),))))
    secret = await old.secret()
    lifetime = source.execute("PTTL", f"rummikub:{{{ids[0]}}}:game")
    await migrate(source.url, target, silent)
    assert (await new.lists.count())[GameState.LOBBY] == len(ids)
    records = (await new.lists.page([GameState.LOBBY], "", 500)).games
    assert sorted(record.game_id for record in records) == ids
    assert sorted([due.game_id for _ in range(4) for due in await new.deadlines.claim(50)]) == ids
    assert await new.names.find(f"code:{ids[7]}") == ids[7]
    assert await new.lists.games_of("", "ada") == [ids[0]]
    assert sorted(entry.game_id for entry in await new.outbox.claim(len(ids) + 1, 10_000)) == ids
    assert await new.secret() == secret
    with pytest.raises(StoreUnavailable):
        await old.games.commit(joining(creation(ids[0]).record, "Ada"))
    assert 0 < source.execute("PTTL", f"rummikub:{{{ids[0]}}}:game") <= lifetime
    for store in (old, new):
        await store.close()


async def joined(store: Store, before: Record, name: str) -> Record:
    """Stores that a player joins; returns the game."""
    commit = joining(before, name)
    assert await store.games.commit(commit) == Committed()
    return commit.record


async def told(store: Store, position: Position | None) -> tuple[list[tuple[str, int]], Position]:
    """Returns the changes after a position (None: all) as games and revisions, and where to resume."""
    feed = ChangeFeed(store, None, position, from_oldest=True)
    await feed.start()
    changes: list[tuple[str, int]] = []
    while page := await feed.read():
        changes += [(update.game_id, update.change.revision) for update in page if isinstance(update, Changed)]
    return changes, feed.position


async def test_a_watcher_of_all_changes_resumes_after_its_store_has_moved(
    source: RedisServer, target: str, clock: FakeClock
) -> None:
    old, new = (redis_store(url, clock, log_ms=LOG_MS) for url in (source.url, target))
    ids = [f"{number:032x}" for number in range(2 * BATCH)]
    games = []
    for game_id in ids:
        assert await old.games.commit(creation(game_id)) == Committed()
        clock.advance(0.001)
        games.append(creation(game_id).record)
    seen, position = await told(old, None)
    assert seen == [(game_id, 1) for game_id in ids]
    games = [await joined(old, game, "Ann") for game in games]
    games[0] = await joined(old, games[0], "Bob")

    await migrate(source.url, target, silent)
    seen, position = await told(new, position)
    assert {*seen} >= {*((game_id, 2) for game_id in ids), (ids[0], 3)}
    assert [revision for game_id, revision in seen if game_id == ids[0]][-2:] == [2, 3]
    games = [await joined(new, game, "Eve") for game in games]
    await new.ping()

    await migrate(target, source.url, silent)
    seen, position = await told(old, position)
    assert {*seen} >= {(game.game_id, game.game.revision) for game in games}
    games[0] = await joined(old, games[0], "Zoe")
    assert (ids[0], games[0].game.revision) in (await told(old, position))[0]
    assert (await told(old, None))[0].count((ids[0], 1)) == 1
    assert 0 < source.execute("PTTL", "rummikub:changes") <= 2 * LOG_MS
    for store in (old, new):
        await store.close()


async def test_a_change_log_is_merged_in_order_and_can_be_continued(
    source: RedisServer, cluster: RedisCluster, target: str, clock: FakeClock
) -> None:
    parted = redis_store(target, clock, log_ms=LOG_MS)
    ids = [f"{number:032x}" for number in range(BATCH)]
    async with (
        redis.RedisCluster(host=HOST, port=cluster.nodes[0].port) as there,
        redis.Redis(unix_socket_path=str(source.socket)) as here,
    ):
        copy = ChangeLogCopy(there, CLUSTER_PARTS, here, ONE_PART)
        for game_id in ids:
            await parted.games.commit(creation(game_id))  # at one time, so parts have entries of the same place
        await copy.append()
        for game_id in reversed(ids):
            clock.advance(0.001)
            await joined(parted, creation(game_id).record, "Ann")
        await copy.append()
        await copy.append()
    one = redis_store(source.url, clock, log_ms=LOG_MS)
    entries = (await one.log.read(0, LOG_START, 1_000)).entries
    assert sorted(entry.game_id for entry in entries[: len(ids)]) == ids
    assert [entry.game_id for entry in entries[len(ids) :]] == ids[::-1]
    assert {entry.revision for entry in entries[: len(ids)]} == {1}
    parts = [await parted.log.read(part, LOG_START, 1_000) for part in range(parted.log.parts)]
    before = {(entry.game_id, entry.revision): entry for page in parts for entry in page.entries}
    assert all(_place(entry) >= _place(before[entry.game_id, entry.revision]) for entry in entries)
    for store in (one, parted):
        await store.close()


def _place(entry: LogEntry) -> tuple[int, ...]:
    return tuple(map(int, entry.place.split("-")))


async def test_a_game_that_is_deleted_after_it_was_copied_does_not_move(
    source: RedisServer, cluster: RedisCluster, target: str
) -> None:
    old = redis_store(source.url)
    await old.games.commit(creation())
    await old.games.commit(creation("f" * 32))

    def delete(line: str) -> None:
        if "refuses writes" in line:
            source.execute("UNLINK", *keys_of(GAME))

    assert (await migrate(source.url, target, delete)).games == 1
    assert not [key for node in cluster.nodes for key in node.execute("KEYS", f"*{GAME}*")]
    assert await undo(source.url, target, silent) == 1
    await old.close()


async def test_the_number_of_tasks_does_not_grow_with_the_number_of_games(
    source: RedisServer, other: RedisServer
) -> None:
    old = redis_store(source.url)
    games = 2 * AT_ONCE * BATCH
    for number in range(games):
        await old.games.commit(creation(f"{number:032x}"))
    moving = asyncio.create_task(migrate(source.url, other.url, silent))
    most = 0
    while not moving.done():
        most = max(most, len(asyncio.all_tasks()))
        await asyncio.sleep(0)
    assert (await moving).games == games
    assert AT_ONCE < most < 8 * AT_ONCE
    await old.close()


async def test_a_game_that_only_the_target_has_makes_a_migration_fail(source: RedisServer, other: RedisServer) -> None:
    old = redis_store(source.url)
    await old.games.commit(creation())

    def create(line: str) -> None:
        if "refuses writes" in line:
            other.execute("HSET", keys_of("f" * 32)[0], "etag", "x")

    with pytest.raises(MigrationError, match="1 games that the source lacks"):
        await migrate(source.url, other.url, create)
    await joined(old, creation().record, "Ann")
    await old.close()


class InterruptingWire:
    """A proxy to a Redis that lets a game change before each of the first scripts that read games is forwarded."""

    def __init__(self, redis: RedisServer, change: Callable[[], Awaitable[object]], changes: int) -> None:
        self._socket = redis.socket
        self._change = change
        self.changes_left = changes
        self._replied = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        replies, commands = await asyncio.open_unix_connection(self._socket)
        pumping = asyncio.create_task(self._pump(replies, writer))
        while data := await reader.read(1 << 20):
            for part in re.split(rb"(?=\*\d+\r\n\$4\r\nEVAL)", data):
                if b"EVAL" in part[:20] and b"'HGETALL'" in part and self.changes_left:
                    self.changes_left -= 1
                    await self._change()
                self._replied.clear()
                commands.write(part)
                if part and self.changes_left:
                    await self._replied.wait()  # Redis has executed this part before the game changes again
        pumping.cancel()
        commands.close()
        writer.close()

    async def _pump(self, replies: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await replies.read(1 << 20):
            writer.write(data)
            self._replied.set()


async def test_a_game_that_changes_while_it_is_copied_is_moved_whole(source: RedisServer, other: RedisServer) -> None:
    old, new = redis_store(source.url), redis_store(other.url)
    records = [creation().record]
    await old.games.commit(creation())

    async def change() -> None:
        records.append(
            await joined(
                old, replace(records[-1], game=replace(records[-1].game, players=())), f"player {len(records)}"
            )
        )

    wire = InterruptingWire(source, change, 1)
    async with await asyncio.start_server(wire.serve, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()[:2]
        await migrate(f"redis://{host}:{port}", other.url, silent)
    assert wire.changes_left == 0
    last = records[-1].game.revision
    assert ((await new.games.load(GAME)).record, await new.streams.bounds(GAME)) == (records[-1], (1, last))
    await new.games.commit(joining(replace(records[-1], game=replace(records[-1].game, players=())), "Bob"))
    for store in (old, new):
        await store.close()


async def test_what_is_copied_after_the_source_refuses_writes_does_not_grow_with_the_games(
    source: RedisServer, other: RedisServer
) -> None:
    old = redis_store(source.url)
    for number in range(2 * BATCH):
        commit = creation(f"{number:032x}")
        await old.games.commit(commit)
        await old.presence.report(commit.record.game_id, "server", {1: Sighting.OPEN})
    copied: list[int] = []

    def count(line: str) -> None:
        if "refuses writes" in line or line.startswith("all"):
            copied.append(source.execute("INFO", "commandstats")["cmdstat_type"]["calls"])

    await migrate(source.url, other.url, count)
    before, after = copied
    assert before >= 5 * 2 * BATCH
    assert after - before == 1, "the secret"
    await old.close()


@pytest.mark.parametrize(
    ("changes", "copied"), [([10, 3, 2, 1, 0], [10, 3, 2, 1]), ([11, 4, 0], [11, 4])], ids=["fewer", "as many"]
)
async def test_most_changes_are_copied_before_the_source_refuses_writes(
    source: RedisServer, other: RedisServer, monkeypatch: pytest.MonkeyPatch, changes: list[int], copied: list[int]
) -> None:
    monkeypatch.setattr(migration, "FEW", 2)
    compare = migration._differing  # noqa: SLF001 - games change before each comparison
    old = redis_store(source.url)
    for number in range(20):
        await old.games.commit(creation(f"{number:032x}"))
    left, lines = iter(changes), list[str]()

    async def change_and_compare(*arguments: Any) -> set[str]:  # noqa: ANN401 - as above
        for number in range(next(left)):
            source.execute("CONFIG", "SET", GUARD, 0)
            source.execute("HINCRBY", keys_of(f"{number:032x}")[3], "number", 1)
        return await compare(*arguments)

    monkeypatch.setattr(migration, "_differing", change_and_compare)
    await migrate(source.url, other.url, lines.append)
    assert [int(re.findall(r"\d+", line)[0]) for line in lines if line.endswith("have changed")] == copied
    await old.close()


async def test_a_draft_moves_that_is_saved_after_its_game_was_copied(source: RedisServer, other: RedisServer) -> None:
    old, new = redis_store(source.url), redis_store(other.url)
    async with running_server(old, server_settings(sweep_seconds=3_600)) as (_, client):
        game = await client.new_game()
        await game.save_draft()

    def save(line: str) -> None:
        if line == "copying 0 games that have changed":
            source.execute("HINCRBY", keys_of(game.game_id)[3], "number", 1)

    await migrate(source.url, other.url, save)
    draft = await new.drafts.latest(game.game_id)
    assert draft
    assert draft.number == 2
    for store in (old, new):
        await store.close()


async def test_a_key_in_its_last_millisecond_does_not_become_permanent(other: RedisServer) -> None:
    store = await Keyspace.open(other.url)
    keys = ("rummikub:name:a", "rummikub:name:b")
    await store.write(Content(key, "string", left_ms, [b"x"]) for key, left_ms in zip(keys, (0, -1), strict=True))
    await asyncio.sleep(0.01)
    assert [(found.kind, found.left_ms) for found in await store.content(keys)] == [("none", -2), ("string", -1)]
    await store.close()


async def test_undo_lets_the_source_accept_writes_unless_games_have_changed(source: RedisServer, target: str) -> None:
    old, new = redis_store(source.url), redis_store(target)
    await old.games.commit(creation())
    with pytest.raises(MigrationError, match="nothing to undo"):
        await undo(source.url, target, silent)
    await migrate(source.url, target, silent)
    await new.games.commit(joining(creation().record, "Ada"))
    with pytest.raises(MigrationError, match="1 games have changed"):
        await undo(source.url, target, silent)
    source.execute("CONFIG", "SET", "min-replicas-to-write", 0)
    await old.games.commit(joining(creation().record, "Ada"))
    assert await undo(source.url, target, silent) == 1
    assert (await old.games.load(GAME)).record == joining(creation().record, "Ada").record
    for store in (old, new):
        await store.close()


async def test_undo_refuses_writes_at_the_target_before_it_compares(
    source: RedisServer, other: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = redis_store(source.url), redis_store(other.url)
    await old.games.commit(creation())
    await migrate(source.url, other.url, silent)
    compare, compared = migration._check_unchanged, []  # noqa: SLF001 - to see what holds meanwhile

    async def observed(*arguments: Any) -> None:  # noqa: ANN401 - as above
        compared.append(other.execute("CONFIG", "GET", GUARD)[GUARD.encode()])
        await compare(*arguments)

    monkeypatch.setattr(migration, "_check_unchanged", observed)
    record = await joined(new, creation().record, "Ann")
    with pytest.raises(MigrationError, match="1 games have changed"):
        await undo(source.url, other.url, silent)
    record = await joined(new, record, "Bob")
    assert other.execute("GET", MARK) is None

    await migrate(other.url, source.url, silent)
    assert await undo(other.url, source.url, silent) == 1
    with pytest.raises(StoreUnavailable):
        await old.games.commit(joining(record, "Eve"))
    record = await joined(new, record, "Eve")
    assert compared == [str(REFUSE_ALL).encode()] * 2
    await migrate(other.url, source.url, silent)
    assert (await old.games.load(GAME)).record == record
    for store in (old, new):
        await store.close()


async def test_undo_can_be_repeated_after_it_was_killed(source: RedisServer, other: RedisServer) -> None:
    old = redis_store(source.url)
    await old.games.commit(creation())
    await migrate(source.url, other.url, silent)
    other.execute("SET", MARK, 0)
    other.execute("CONFIG", "SET", GUARD, REFUSE_ALL)
    assert await undo(source.url, other.url, silent) == 1
    await joined(old, creation().record, "Ann")
    assert other.execute("GET", MARK) == b"0"
    await old.close()


async def test_undo_of_a_store_that_cannot_refuse_writes_needs_stopped_servers(
    source: RedisServer, other: RedisServer
) -> None:
    old = redis_store(source.url)
    await old.games.commit(creation())
    await migrate(source.url, other.url, silent)
    other.execute("ACL", "SETUSER", "default", "-config")
    with pytest.raises(MigrationError, match="--stopped"):
        await undo(source.url, other.url, silent)
    assert await undo(source.url, other.url, silent, is_stopped=True) == 1
    await joined(old, creation().record, "Ann")
    await old.close()


async def test_a_migration_that_failed_can_be_repeated(source: RedisServer, other: RedisServer) -> None:
    old, new = redis_store(source.url), redis_store(other.url)
    await old.games.commit(creation())
    await old.games.commit(creation("f" * 32))

    def fail(line: str) -> None:
        if line.startswith("copying the last"):
            raise MigrationError("the first error")

    with pytest.raises(MigrationError, match="the first error"):
        await migrate(source.url, other.url, fail)
    assert (await new.games.load(GAME)).record, "it was copied"
    source.execute("UNLINK", *keys_of("f" * 32))
    record = await joined(old, creation().record, "Ann")
    assert (await migrate(source.url, other.url, silent)).games == 1
    assert (await new.games.load(GAME)).record == record
    assert other.execute("GET", UNFINISHED) is None
    for store in (old, new):
        await store.close()


async def test_nodes_with_different_settings_are_not_moved(
    other: RedisServer, cluster: RedisCluster, target: str
) -> None:
    different = cluster.nodes[1]
    for name, value in ((GUARD, 0), (MAX_LAG, 10)):
        different.execute("CONFIG", "SET", name, value + 1)
        with pytest.raises(MigrationError, match=rf"{name} is .*{value + 1} at 127.0.0.1:{different.port}"):
            await migrate(target, other.url, silent)
        assert different.execute("CONFIG", "GET", name)[name.encode()].decode() == str(value + 1)
        different.execute("CONFIG", "SET", name, value)


async def test_a_migration_that_fails_leaves_the_source_as_it_was(source: RedisServer, target: str) -> None:
    old = redis_store(source.url)
    await old.games.commit(creation())
    source.execute("SET", "rummikub:{of nobody}", "?")
    source.execute("SADD", "rummikub:unknown", "?")
    with pytest.raises(MigrationError, match="unknown key"):
        await migrate(source.url, target, silent)
    await old.games.commit(joining(creation().record, "Ada"))
    assert source.execute("GET", "rummikub:migrated") is None
    await old.close()


async def test_a_source_that_could_not_be_restored_is_restored_by_undo(source: RedisServer, other: RedisServer) -> None:
    old = redis_store(source.url)
    await old.games.commit(creation())

    def fail(line: str) -> None:
        if line.endswith("refuses writes from now on"):
            source.execute("HSET", keys_of(GAME)[0], "etag", "of a turn after the copy")
        elif line.startswith("copying the last"):
            source.execute("ACL", "SETUSER", "default", "-config|set")
            raise MigrationError("the first error")

    with pytest.raises(MigrationError, match=r"the first error; .*unix://.*--from unix://.* --to unix://.* --undo"):
        await migrate(source.url, other.url, fail)
    source.execute("ACL", "SETUSER", "default", "+config")
    assert source.execute("GET", MARK) is not None
    assert await undo(source.url, other.url, silent) == 1
    assert source.execute("GET", MARK) is None
    assert source.execute("CONFIG", "GET", GUARD)[GUARD.encode()] == b"0"
    await old.close()


async def test_each_node_of_a_source_is_restored_on_its_own(
    other: RedisServer, cluster: RedisCluster, target: str
) -> None:
    failing, *rest = cluster.nodes

    def fail(line: str) -> None:
        if line.startswith("copying the last"):
            failing.execute("ACL", "SETUSER", "default", "-config|set")
            raise MigrationError("the first error")

    try:
        with pytest.raises(MigrationError, match=rf"the first error; .*:{failing.port} .*--undo"):
            await migrate(target, other.url, fail)
    finally:
        failing.execute("ACL", "SETUSER", "default", "+config")
    assert {node.execute("CONFIG", "GET", GUARD)[GUARD.encode()] for node in rest} == {b"0"}
    await undo(target, other.url, silent)
    assert failing.execute("CONFIG", "GET", GUARD)[GUARD.encode()] == b"0"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_lets_the_source_accept_writes_again(
    source: RedisServer, other: RedisServer, number: signal.Signals
) -> None:
    old = redis_store(source.url)
    await old.games.commit(creation())
    program = (
        "import os, signal; from service.admin_program import migrate, program\n"
        f"is_ignored = signal.getsignal({number:d}) is signal.SIG_IGN  # as nohup sets it\n"
        f"is_ignored and signal.signal({number:d}, signal.SIG_DFL)\n"
        "report = migrate.report\n"
        f"kill = lambda line: 'copying the last' in line and os.kill(os.getpid(), {number:d})\n"
        "migrate.report = lambda line: (report(line), kill(line))\n"
        "program.main()"
    )
    command = [sys.executable, "-c", program, "migrate", "--from", source.url, "--to", other.url]
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (1, "rummikub-admin: interrupted\n")
    assert done.stdout.splitlines()[-1] == f"{source.url} accepts writes again"
    await joined(old, creation().record, "Ann")
    assert source.execute("GET", MARK) is None
    await old.close()


def guards(group: WatchedServers) -> set[str]:
    """Returns how many replicas a write needs at each of the servers."""
    return {server.execute("CONFIG", "GET", GUARD)[GUARD.encode()].decode() for server in group.servers}


async def test_games_move_to_and_from_a_primary_behind_sentinels(source: RedisServer) -> None:
    with watched_servers("--min-replicas-to-write", "1", replicas=1, sentinels=1) as group:
        one, watched = redis_store(source.url), redis_store(group.url)
        await one.games.commit(creation())
        await migrate(source.url, group.url, silent)
        record = await joined(watched, creation().record, "Ann")

        await migrate(group.url, source.url, silent)
        assert guards(group) == {str(REFUSE_ALL)}, "a replica that is promoted must refuse writes too"
        assert await undo(group.url, source.url, silent) == 1
        assert guards(group) == {"1"}

        assert (await one.games.load(GAME)).record == record
        for store in (one, watched):
            await store.close()


async def test_a_migration_stops_if_no_sentinel_names_a_primary(source: RedisServer) -> None:
    with pytest.raises(MigrationError, match="no Sentinel names a primary"):
        await migrate(source.url, "redis+sentinel://127.0.0.1:1/games", silent)


async def test_a_migration_stops_if_no_node_of_a_cluster_replies(source: RedisServer) -> None:
    with pytest.raises(MigrationError, match="a store does not reply"):
        await migrate(source.url, "redis+cluster://127.0.0.1:1", silent)


async def test_games_are_not_moved_onto_others_nor_from_a_redis_that_cannot_stop_writes(
    source: RedisServer, target: str
) -> None:
    old, new = redis_store(source.url), redis_store(target)
    await old.games.commit(creation())
    await new.games.commit(creation("f" * 32))
    with pytest.raises(MigrationError, match="has games already"):
        await migrate(source.url, target, silent)
    for denied in ("-config|set", "-config"):
        source.execute("ACL", "SETUSER", "default", denied)
        with pytest.raises(MigrationError, match="--stopped"):
            await migrate(source.url, target, silent)
        assert source.execute("GET", MARK) is None
        source.execute("ACL", "SETUSER", "default", "+config")
    source.execute("CONFIG", "SET", "min-replicas-max-lag", 0)
    with pytest.raises(MigrationError, match="min-replicas-max-lag"):
        await migrate(source.url, target, silent)
    source.execute("CONFIG", "SET", "min-replicas-max-lag", 10)
    source.execute("SET", UNFINISHED, "")
    with pytest.raises(MigrationError, match="it lacks games"):
        await migrate(source.url, target, silent)
    with pytest.raises(MigrationError, match="the same"):
        await migrate(source.url, source.url, silent)
    for store in (old, new):
        await store.close()


def admin(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs rummikub-admin in a process of its own, whose log is not that of the tests."""
    command = [sys.executable, "-c", "from service.admin_program.program import main; main()", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_names_the_setting_of_a_folder(source: RedisServer, tmp_path: Path) -> None:
    urls = ["--from", source.url, "--to", str(tmp_path)]
    setting = f"RUMMIKUB_DATA_DIR={tmp_path} and no RUMMIKUB_REDIS_URL"
    assert admin("migrate", *urls).stdout.splitlines()[-1] == f"restart all servers with the new {setting}"
    assert admin("migrate", *urls, "--undo").stdout.splitlines()[-1].endswith("with the former RUMMIKUB_REDIS_URL")


def test_the_command_moves_games_and_reports_problems(source: RedisServer, target: str) -> None:
    urls = ["--from", source.url, "--to", target]
    moved = admin("migrate", *urls)
    assert (moved.returncode, moved.stdout.splitlines()[-1]) == (
        0,
        "restart all servers with the new RUMMIKUB_REDIS_URL",
    )
    again = admin("migrate", *urls)
    assert again.returncode == 1
    assert "was moved away from before" in again.stderr
    undone = admin("migrate", *urls, "--undo")
    assert undone.returncode == 0
    assert undone.stdout.splitlines()[-1].endswith("restart the servers with the former RUMMIKUB_REDIS_URL")
    assert "expected redis://" in admin("migrate", "--from", "http://x", "--to", target).stderr
    assert "neither a URL" in admin("migrate", "--from", source.url, "--to", "localhost:6379").stderr
