"""RedisStore on a Redis Cluster: slots that move, primaries that fail, and games played meanwhile."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count, islice

import pytest
from structlog.testing import capture_logs

from rummikub.v1 import game_pb2
from service.errors import StoreUnavailable
from service.model.change import Commit, Committed, Conflict
from service.model.record import GameState, Record
from service.storage.redis.connection import Connect, shared_connection
from service.storage.redis.keys import CLUSTER_PARTS, deadlines_key, keys_of, part_of, pointer_key, slot_of
from service.storage.redis.nodes import REPLY_SECONDS
from service.storage.redis.store import RedisStore
from support.commits import GAME, MEMO, creation, joining
from support.grpc_play import Fleet, history, lost_or_doubled, play_game
from support.harness import START_MS, FakeClock, pooled, redis_store, running_server, server_settings, until
from tools.games import options
from tools.redis_cluster import ClusterNode, RedisCluster, redis_cluster

pytestmark = pytest.mark.slow

SLOT = slot_of(GAME)
NODE_TIMEOUT_MS = 1_000
LIMIT = 30


async def stored(store: RedisStore, commit: Commit) -> Record:
    """Stores a change, which must be accepted; returns its record."""
    assert await store.games.commit(commit) == Committed()
    return commit.record


async def answered(store: RedisStore, commit: Commit) -> Record:
    """Stores a change as a client does: repeats it, under its request id, until it is answered."""
    async with asyncio.timeout(30):
        while True:
            try:
                assert await store.games.commit(commit) in {Committed(), MEMO}
            except StoreUnavailable:
                await asyncio.sleep(0.05)
            else:
                return commit.record


@pytest.fixture
async def on_cluster(limited_cluster_url: str, clock: FakeClock) -> AsyncIterator[RedisStore]:
    """Yields a store on the cluster."""
    store = redis_store(limited_cluster_url, clock)
    yield store
    await store.close()


@pytest.fixture
def target(cluster: RedisCluster) -> Iterator[ClusterNode]:
    """Yields a primary that does not have the slot of GAME. Afterwards the slot is where it was."""
    source = cluster.owner(SLOT)
    yield next(node for node in cluster.primaries if node is not source)
    if cluster.owner(SLOT) is not source:
        cluster.move_slot(SLOT, source)


# Parts


def test_each_part_is_in_the_middle_of_its_sixteenth_of_the_slots() -> None:
    for number, part in enumerate(CLUSTER_PARTS):
        assert slot_of(f"{part}deadlines") == pytest.approx(number * 1024 + 512, abs=32)


def test_a_game_belongs_to_the_part_of_its_own_sixteenth_of_the_slots() -> None:
    rng = random.Random(1)
    for _ in range(1_000):
        game_id = f"{rng.getrandbits(128):032x}"
        assert part_of(CLUSTER_PARTS, game_id) == CLUSTER_PARTS[slot_of(keys_of(game_id)[0]) // 1024]


# Slots that move


async def test_a_game_is_read_and_changed_while_its_slot_moves(
    on_cluster: RedisStore, cluster: RedisCluster, target: ClusterNode
) -> None:
    """The keys of a game may be on both nodes; then each of them replies TRYAGAIN or ASK."""
    moved: asyncio.Queue[tuple[str, int]] = asyncio.Queue()
    on_cluster.reports.event = lambda name, count: moved.put_nowait((name, count))
    record = await stored(on_cluster, creation())
    source = cluster.open_slot(SLOT, target)
    assert await on_cluster.streams.bounds(GAME) == (1, 1)
    first, *others = cluster.keys_in(SLOT, source)
    await asyncio.to_thread(cluster.move_key, first, source, target)
    changing = asyncio.create_task(on_cluster.games.commit(joining(record, "Ada")))
    loading = asyncio.create_task(on_cluster.games.load(GAME, "created"))
    await asyncio.sleep(0.05)
    assert not changing.done()
    for key in others:
        await asyncio.to_thread(cluster.move_key, key, source, target)
    assert await on_cluster.streams.bounds(GAME) == (1, 1), "ASK is followed"
    await asyncio.to_thread(cluster.close_slot, SLOT, target)
    assert await changing == Committed()
    assert (await loading).memo == MEMO
    assert (await on_cluster.games.load(GAME)).record == joining(record, "Ada").record
    assert await on_cluster.streams.bounds(GAME) == (1, 2)
    assert await asyncio.wait_for(moved.get(), 10) == ("slots_moved", 1)


@pytest.mark.parametrize("share", [shared_connection, pooled])
async def test_a_name_is_read_and_set_where_its_slot_moves_to(
    limited_cluster_url: str, cluster: RedisCluster, share: Connect
) -> None:
    on_cluster = redis_store(limited_cluster_url, share=share)
    await on_cluster.names.point("code:A", GAME)
    slot = slot_of(pointer_key("code:A"))
    source = cluster.owner(slot)
    target = next(node for node in cluster.primaries if node is not source)
    cluster.open_slot(slot, target)
    for key in cluster.keys_in(slot, source):
        cluster.move_key(key, source, target)
    assert await on_cluster.names.find("code:A") == GAME
    assert await on_cluster.names.point("code:A", "f" * 32, GAME) == "f" * 32
    cluster.close_slot(slot, target)
    assert await on_cluster.names.find("code:A") == "f" * 32
    cluster.move_slot(slot, source)
    await on_cluster.close()


async def test_games_are_claimed_where_the_slot_of_their_part_moves_to(
    on_cluster: RedisStore, cluster: RedisCluster
) -> None:
    slot = slot_of(deadlines_key(part_of(CLUSTER_PARTS, GAME)))
    source = cluster.owner(slot)
    ids = (f"{number:032x}" for number in count())
    key_of = {game_id: deadlines_key(part_of(CLUSTER_PARTS, game_id)) for game_id in (GAME, *islice(ids, 100))}
    beside = next(
        game_id for game_id, key in key_of.items() if slot_of(key) != slot and cluster.owner(slot_of(key)) is source
    )
    due = {GAME, beside}
    for game_id in due:
        await on_cluster.deadlines.arm(game_id, START_MS - 1)
    target = next(node for node in cluster.primaries if node is not source)

    async def claimed() -> set[str]:
        claims = await on_cluster.deadlines.claim(10)
        for claim in claims:
            await on_cluster.deadlines.rearm(claim, claim.at_ms)
        return {claim.game_id for claim in claims}

    assert await claimed() == due
    cluster.open_slot(slot, target)
    assert await claimed() == due
    for key in cluster.keys_in(slot, source):
        cluster.move_key(key, source, target)
    assert await claimed() == due
    cluster.close_slot(slot, target)
    assert await claimed() == due
    cluster.move_slot(slot, source)


async def test_commits_are_stored_once_while_their_slot_moves_back_and_forth(
    on_cluster: RedisStore, cluster: RedisCluster, target: ClusterNode
) -> None:
    source = cluster.owner(SLOT)
    record = await stored(on_cluster, creation())

    async def move() -> None:
        for node in (target, source) * 3:
            await asyncio.to_thread(cluster.move_slot, SLOT, node)

    moving = asyncio.create_task(move())
    records = [record]
    while not moving.done():
        game = replace(records[-1].game, players=())
        records.append(await answered(on_cluster, joining(replace(records[-1], game=game), f"request {len(records)}")))
    await moving
    entries = await on_cluster.streams.entries(GAME, 1, 10_000)
    assert [entry.etag for entry in entries] == [record.etag for record in records]


async def test_a_slot_that_stays_half_moved_makes_calls_fail_in_time(
    on_cluster: RedisStore, cluster: RedisCluster, target: ClusterNode
) -> None:
    record = await stored(on_cluster, creation())
    source = cluster.open_slot(SLOT, target)
    [first, *_] = cluster.keys_in(SLOT, source)
    cluster.move_key(first, source, target)
    began = time.monotonic()
    async with asyncio.timeout(30):
        with pytest.raises(StoreUnavailable, match="TryAgain"):
            await on_cluster.games.commit(joining(record, "Ada"))
    assert time.monotonic() - began > 0.5
    cluster.move_slot(SLOT, target)
    assert await on_cluster.streams.bounds(GAME) == (1, 1)
    assert await on_cluster.games.commit(joining(record, "Ada")) == Committed()


async def test_a_game_does_not_change_while_its_slot_is_open_even_if_no_key_has_moved(
    on_cluster: RedisStore, cluster: RedisCluster, target: ClusterNode
) -> None:
    """A commit names the keys of the draft and of presence, which may not exist.

    Redis replies TRYAGAIN for them. For a game that it does not have, one node replies ASK and the other one TRYAGAIN.
    """
    record = await stored(on_cluster, creation())
    cluster.open_slot(SLOT, target)
    for change in (joining(record, "Ada"), creation(_other_id_in_slot())):
        with pytest.raises(StoreUnavailable, match=r"TryAgain|AskError"):
            await on_cluster.games.commit(change)
    assert await on_cluster.streams.bounds(GAME) == (1, 1)
    cluster.abandon_move(SLOT)
    assert await on_cluster.games.commit(joining(record, "Ada")) == Committed()


def _other_id_in_slot() -> str:
    """Returns the id of another game in the slot of GAME."""
    return next(game_id for game_id in map("{:032x}".format, count()) if slot_of(game_id) == SLOT)


async def test_watchers_are_notified_after_their_slot_has_moved(
    on_cluster: RedisStore, cluster: RedisCluster, target: ClusterNode
) -> None:
    """The old node ends the subscription; the new one is asked for it. A hint in between is not needed."""
    record = await stored(on_cluster, creation())
    async with asyncio.timeout(20), on_cluster.streams.subscribe(GAME) as subscription:
        await subscription.wait()  # subscribed
        await asyncio.to_thread(cluster.move_slot, SLOT, target)
        await subscription.wait()  # subscribed again
        await stored(on_cluster, joining(record, "Ada"))
        await subscription.wait()


async def test_a_store_learns_of_a_moved_slot_from_the_first_call(
    on_cluster: RedisStore, cluster: RedisCluster, target: ClusterNode
) -> None:
    record = await stored(on_cluster, creation())
    await asyncio.to_thread(cluster.move_slot, SLOT, target)
    assert (await on_cluster.games.load(GAME)).record == record
    assert await on_cluster.games.commit(replace(joining(record, "Ada"), previous_etag="0" * 32)) == Conflict()


# Primaries that fail


@pytest.fixture
def own_cluster() -> Iterator[RedisCluster]:
    """Runs a cluster, with a replica of each primary, whose nodes a test may kill."""
    options = ("--appendonly", "no", "--cluster-require-full-coverage", "no")
    with redis_cluster(*options, replicas=1, node_timeout_ms=NODE_TIMEOUT_MS) as nodes:
        yield nodes


@asynccontextmanager
async def store_on(cluster: RedisCluster, clock: FakeClock | None = None) -> AsyncIterator[RedisStore]:
    store = redis_store(cluster.url, clock)
    try:
        yield store
    finally:
        await store.close()


async def test_a_replica_takes_over_the_games_of_a_killed_primary(own_cluster: RedisCluster, clock: FakeClock) -> None:
    reported: list[tuple[str, int]] = []
    async with store_on(own_cluster, clock) as store, asyncio.timeout(60):
        store.reports.event = lambda name, count: reported.append((name, count))
        record = await stored(store, creation())
        primary = own_cluster.owner(SLOT)
        elsewhere = next(
            game_id
            for game_id in (f"{number:032x}" for number in range(1_000))
            if own_cluster.owner(slot_of(game_id)) is not primary
        )
        other = await stored(store, creation(elsewhere))
        async with store.streams.subscribe(GAME) as subscription:
            await subscription.wait()
            [replica] = own_cluster.replicas_of(primary)
            keys = primary.execute("CLUSTER", "COUNTKEYSINSLOT", SLOT)
            await asyncio.to_thread(until, lambda: replica.execute("CLUSTER", "COUNTKEYSINSLOT", SLOT) == keys)
            primary.kill()
            with pytest.raises(StoreUnavailable):
                await store.games.commit(joining(record, "Ada"))
            await store.deadlines.arm(elsewhere, START_MS - 1)
            assert [due.game_id for due in await store.deadlines.claim(10)] == [elsewhere], (
                "other parts are swept meanwhile"
            )
            await stored(store, joining(other, "Ben"))
            record = await answered(store, joining(record, "Ada"))
            await subscription.wait()
            assert ("failovers", 1) in reported
            assert [name for name, _ in reported if name != "failovers"] == []
            primary.start()
            await asyncio.to_thread(own_cluster.wait_until_whole)
            await stored(store, joining(record, "Cleo"))
            await subscription.wait()
        assert await store.streams.bounds(GAME) == (1, 3)


async def test_a_primary_that_does_not_reply_holds_up_one_claim_of_the_others(
    own_cluster: RedisCluster, clock: FakeClock
) -> None:
    ids = [f"{number:032x}" for number in range(60)]
    silent = own_cluster.owner(slot_of(f"{part_of(CLUSTER_PARTS, GAME)}deadlines"))
    others = [one for one in ids if own_cluster.owner(slot_of(f"{part_of(CLUSTER_PARTS, one)}deadlines")) is not silent]
    async with store_on(own_cluster, clock) as store:
        for game_id in ids:
            await store.deadlines.arm(game_id, START_MS - 1)
            await store.outbox.append(game_id)
        silent.pause()
        for seconds in (30, 0.9 * REPLY_SECONDS):
            async with asyncio.timeout(seconds):
                due, entries, size = await asyncio.gather(
                    store.deadlines.claim(100), store.outbox.claim(100, 0), store.outbox.size()
                )
            assert sorted(entry.game_id for entry in entries) == others
            assert size == len(others)
            assert sorted(one.game_id for one in due) == (others if seconds == 30 else [])
        silent.resume()
        async with asyncio.timeout(30):
            while await store.outbox.size() < len(ids):  # noqa: ASYNC110 - a part has no sign that it replies again
                await asyncio.sleep(0.05)


async def test_a_store_without_any_node_is_unavailable_and_recovers(own_cluster: RedisCluster) -> None:
    async with store_on(own_cluster) as store:
        for node in own_cluster.nodes:
            node.pause()
        with capture_logs(), pytest.raises(StoreUnavailable):
            await store.ping()
        for node in own_cluster.nodes:
            node.resume()
        async with asyncio.timeout(30):
            while True:
                try:
                    await store.ping()
                    break
                except StoreUnavailable:
                    await asyncio.sleep(0.1)
        assert (await store.games.load(GAME)).record is None


# Games


async def test_games_on_two_servers_lose_and_double_no_turn(limited_cluster_url: str, cluster: RedisCluster) -> None:
    stores = [redis_store(limited_cluster_url) for _ in range(2)]
    async with running_server(stores[0]) as (_, one), running_server(stores[1]) as (_, two):
        games = [await one.new_game(players=2 + number % 3) for number in range(4)]
        fleet = Fleet([one, two], random.Random(2))
        playing = [asyncio.create_task(play_game(fleet, game, random.Random(n))) for n, game in enumerate(games)]
        slots = [slot_of(game.game_id) for game in games]
        for slot in slots:
            node = next(node for node in cluster.primaries if node is not cluster.owner(slot))
            await asyncio.to_thread(cluster.move_slot, slot, node)
        for task in playing:
            played = await task
            assert played.final.state == game_pb2.GAME_STATE_FINISHED
            assert not lost_or_doubled(played, await history(one, played.game))
    for store in stores:
        await store.close()


async def test_the_sweeper_times_out_the_games_of_all_parts(on_cluster: RedisStore, clock: FakeClock) -> None:
    settings = server_settings(sweep_seconds=3_600)
    async with running_server(on_cluster, settings) as (server, client):
        games = [await client.new_game(ruleset=options(turn_time_limit_seconds=LIMIT)) for _ in range(40)]
        before = [(await on_cluster.games.load(game.game_id)).record for game in games]
        clock.advance(LIMIT + 1)
        assert await server.sweeper.sweep() == len(games)
        for game, record in zip(games, before, strict=True):
            after = (await on_cluster.games.load(game.game_id)).record
            assert record
            assert after
            assert after.game.revision > record.game.revision
        assert (await on_cluster.lists.count())[GameState.PLAYING] == len(games)
