"""The outbox of every store: games that may have ended, until each is acknowledged; and what an archived game keeps."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
import redis.asyncio as aredis

from engine.events import GameCreated
from engine.melding.ruleset import Ruleset
from engine.turns import create
from service.app.identity import new_game_id
from service.model.change import NO_ETAG, Commit, Committed, lineage
from service.model.outbox import OutboxEntry
from service.model.record import Record
from service.storage.redis.keys import CLUSTER_PARTS, ONE_PART, keys_of, outbox_key, part_of
from service.storage.redis.outbox import GROUP
from service.storage.redis.store import RedisStore
from service.storage.store import Store
from service.storage.stored_events import encode_change
from support.harness import START_MS, FakeClock, SeededChance, redis_store
from support.stores import ALL_STORES, running_store

OUTBOX = outbox_key(ONE_PART[0])

CHANCE = SeededChance(36)
FOREVER_MS = 3_600_000
SHORT_MS = 300


@pytest.fixture(params=ALL_STORES)
async def store(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Store]:
    """Yields each kind of store, empty, on the clock."""
    async with running_store(request, clock) as store:
        yield store


@pytest.fixture
async def redis_backed(limited_redis_url: str, clock: FakeClock) -> AsyncIterator[RedisStore]:
    backed = redis_store(limited_redis_url, clock)
    yield backed
    await backed.close()


@pytest.fixture
async def raw(empty_redis_url: str) -> AsyncIterator["aredis.Redis"]:
    client = aredis.Redis.from_url(empty_redis_url)
    yield client
    await client.aclose()


def changed(before: Record | None, game_id: str) -> Commit:
    """Returns a commit of a further change, without a meaning, of a game."""
    game = create(Ruleset()).game if before is None else replace(before.game, revision=before.game.revision + 1)
    change = encode_change(game.revision, START_MS, CHANCE.token_bytes(16), (GameCreated(game.ruleset),))
    previous = before.etag if before else NO_ETAG
    return Commit(previous, Record(game_id, game, lineage(previous, change), (), START_MS, START_MS), change)


async def stored(store: Store, changes: int) -> tuple[Record, list[Commit]]:
    """Stores a game with a number of changes."""
    game_id, record, commits = new_game_id(CHANCE), None, list[Commit]()
    for _ in range(changes):
        commits.append(changed(record, game_id))
        record = commits[-1].record
        assert await store.games.commit(commits[-1]) == Committed()
    assert record
    return record, commits


async def append(store: Store, *games: str) -> None:
    for game_id in games:
        await store.outbox.append(game_id)


def games_of(entries: Sequence[OutboxEntry]) -> list[str]:
    return [entry.game_id for entry in entries]


def one_part(games: int) -> list[str]:
    """Returns ids of games whose entries are in one part, so that their order is kept on a cluster too."""
    ids = map("{:032x}".format, itertools.count())
    return list(itertools.islice((one for one in ids if part_of(CLUSTER_PARTS, one) == CLUSTER_PARTS[5]), games))


async def until_claims_end(clock: FakeClock) -> None:
    """Waits until claims of SHORT_MS have ended, by the clock of the store and by that of Redis."""
    clock.advance(SHORT_MS / 1000)
    await asyncio.sleep(SHORT_MS / 1000)


async def test_entries_are_claimed_in_order_with_their_times(store: Store, clock: FakeClock) -> None:
    first, second = one_part(2)
    assert list(await store.outbox.claim(10, FOREVER_MS)) == []
    assert await store.outbox.append(first) == START_MS
    clock.advance(2.0)
    assert await store.outbox.append(second) == START_MS + 2_000
    entries = await store.outbox.claim(10, FOREVER_MS)
    assert [(entry.game_id, entry.at_ms) for entry in entries] == [(first, START_MS), (second, START_MS + 2_000)]
    assert await store.outbox.size() == 2


async def test_a_claimed_entry_is_claimed_again_only_after_its_claim(store: Store, clock: FakeClock) -> None:
    games = one_part(3)
    await append(store, *games)
    assert games_of(await store.outbox.claim(2, FOREVER_MS)) == games[:2]
    assert games_of(await store.outbox.claim(2, FOREVER_MS)) == games[2:]
    assert list(await store.outbox.claim(2, FOREVER_MS)) == []
    await until_claims_end(clock)
    assert games_of(await store.outbox.claim(10, SHORT_MS)) == games


async def test_an_acknowledged_entry_is_gone(store: Store, clock: FakeClock) -> None:
    await append(store, "a", "b")
    first, second = await store.outbox.claim(10, FOREVER_MS)
    await store.outbox.acknowledge(first)
    await store.outbox.acknowledge(first)
    assert await store.outbox.size() == 1
    await until_claims_end(clock)
    assert list(await store.outbox.claim(10, SHORT_MS)) == [second]
    await store.outbox.acknowledge(second)
    assert await store.outbox.size() == 0
    await until_claims_end(clock)
    assert list(await store.outbox.claim(10, SHORT_MS)) == []


async def test_a_game_may_be_named_twice(store: Store, clock: FakeClock) -> None:
    await append(store, "a", "a")
    first, second = await store.outbox.claim(10, FOREVER_MS)
    await store.outbox.acknowledge(first)
    await until_claims_end(clock)
    assert list(await store.outbox.claim(10, SHORT_MS)) == [second]


@pytest.mark.parametrize("server", ["limited_redis_url", "limited_cluster_url"])
async def test_concurrent_servers_share_the_entries(
    request: pytest.FixtureRequest, clock: FakeClock, server: str
) -> None:
    url: str = request.getfixturevalue(server)
    one, other = redis_store(url, clock), redis_store(url, clock)
    names = [f"{number:032x}" for number in range(100)]
    await append(one, *names)
    claims = await asyncio.gather(*(store.outbox.claim(7, FOREVER_MS) for _ in range(10) for store in (one, other)))
    found = [entry.game_id for entries in claims for entry in entries]
    assert sorted(found) == names
    await one.close()
    await other.close()


async def test_new_entries_are_claimed_before_those_whose_claim_has_ended(store: Store, clock: FakeClock) -> None:
    games = one_part(100)
    await append(store, *games)
    await store.outbox.claim(60, FOREVER_MS)
    await until_claims_end(clock)
    assert games_of(await store.outbox.claim(70, SHORT_MS)) == games[60:] + games[:30]
    assert games_of(await store.outbox.claim(70, FOREVER_MS)) == []


async def test_entries_survive_the_loss_of_the_consumer_group(redis_backed: RedisStore, raw: "aredis.Redis") -> None:
    await append(redis_backed, "a", "b")
    first, _ = await redis_backed.outbox.claim(10, FOREVER_MS)
    await redis_backed.outbox.acknowledge(first)
    await raw.xgroup_destroy(OUTBOX, GROUP)
    assert games_of(await redis_backed.outbox.claim(10, FOREVER_MS)) == ["b"]


async def test_an_entry_that_was_deleted_and_not_acknowledged_is_forgotten(
    redis_backed: RedisStore, raw: "aredis.Redis"
) -> None:
    await append(redis_backed, "a", "b")
    first, _ = await redis_backed.outbox.claim(10, FOREVER_MS)
    await raw.xdel(OUTBOX, first.entry_id)  # the server died here, before XACK
    assert games_of(await redis_backed.outbox.claim(10, 0)) == ["b"]
    pending = await raw.xpending(OUTBOX, GROUP)
    assert pending["pending"] == 1


async def test_changes_are_returned_as_they_are_stored(store: Store) -> None:
    _, commits = await stored(store, 3)
    game_id = commits[0].record.game_id
    for first, limit in ((1, 10), (2, 1), (4, 10)):
        found = await store.streams.stored_changes(game_id, first, limit)
        assert [(change.revision, change.etag, change.change) for change in found] == [
            (commit.record.game.revision, commit.record.etag, commit.change) for commit in commits[first - 1 :][:limit]
        ]
    assert await store.streams.stored_changes("0" * 32, 1, 10) == ()


async def test_only_an_unchanged_game_is_shortened(store: Store) -> None:
    record, _ = await stored(store, 2)
    assert await store.games.shorten(record, 60_000)
    after = changed(record, record.game_id)
    assert await store.games.commit(after) == Committed()
    assert not await store.games.shorten(record, 60_000)
    assert await store.games.shorten(after.record, 60_000)
    assert await store.games.shorten(replace(record, game_id="0" * 32), 60_000), (
        "a game that has expired need not be kept"
    )


async def test_shortening_never_lengthens(redis_backed: RedisStore, raw: "aredis.Redis") -> None:
    record, _ = await stored(redis_backed, 2)
    game, _, events, *_ = keys_of(record.game_id)
    await raw.pexpire(events, 1_000)
    assert await redis_backed.games.shorten(record, 60_000)
    assert 50_000 < await raw.pttl(game) <= 60_000
    assert await raw.pttl(events) <= 1_000
