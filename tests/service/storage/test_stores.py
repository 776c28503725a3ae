"""The contract of every store (service/storage/store.py), tested on each one; and the specifics of the Redis store."""

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import replace

import pytest
import redis
import redis.asyncio as aredis
from redis.crc import key_slot
from structlog.testing import capture_logs

from engine.actions import Join, Resign, StartGame
from engine.events import Event, PlayerJoined
from engine.game import Game, round_of
from engine.melding.actions import DrawTile
from engine.melding.drafts import Draft
from engine.melding.melds import MeldKind, ProposedMeld
from engine.melding.ruleset import SABRA, Ruleset
from engine.melding.table import tiles_on
from engine.room_settings import DEFAULT_SETTINGS, DraftVisibility
from engine.seats import HOST
from engine.tiles import Tile
from engine.turns import Applied, apply, create
from service.app.identity import new_shuffle
from service.errors import StoreUnavailable, TooManyDrafts
from service.model.change import NO_ETAG, Commit, Committed, Conflict, Loaded, Memo, lineage
from service.model.deadlines import CLAIM_MS, Due
from service.model.presence import PRESENCE_MS, Sighting
from service.model.record import EMPTIED_MS, GameState, Listing, Record, SeatToken, Visibility
from service.storage.game_cache import GameCache
from service.storage.lists import match_key
from service.storage.redis import connection as redis_connection
from service.storage.redis.connection import Connect, shared_connection
from service.storage.redis.keys import CLUSTER_PARTS, part_of
from service.storage.redis.nodes import OneRedis
from service.storage.redis.store import RedisStore, connect
from service.storage.snapshot import FINGERPRINT_BYTES
from service.storage.store import BRIEF_MS, DRAFT_MS, DRAFTS_AT_ONCE, NAME_MARGIN_MS, ListPage, Store, Subscription
from service.storage.stored_events import encode_change
from support.harness import (
    HISTORY,
    LIFETIMES,
    START_MS,
    FakeClock,
    SeededChance,
    due,
    memory_store,
    pooled,
    redis_store,
)
from support.rooms import Rules, parts, room
from support.stores import ALL_STORES, running_store
from tools.redis_servers import RedisServer

GAME = "0123456789abcdef0123456789abcdef"
OTHER_GAME = "fedcba9876543210fedcba9876543210"
NONCE = bytes(16)
MEMO = Memo(fingerprint=bytes(range(FINGERPRINT_BYTES)), answer=b"\x00\xff the first answer", salt=b"salt\x00\xff")


@pytest.fixture(params=ALL_STORES)
async def store(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Store]:
    """Yields each kind of store, empty, on the clock."""
    async with running_store(request, clock) as store:
        yield store


def commit_of(
    game_id: str, before: Record | None, after: tuple[Game, tuple[Event, ...]], now_ms: int, nonce: bytes = NONCE
) -> Commit:
    """Returns a commit of a change."""
    game, events = after
    change = encode_change(game.revision, now_ms, nonce, events)
    previous = before.etag if before else NO_ETAG
    created_ms = before.created_ms if before else now_ms
    tokens = tuple(SeatToken(player.seat, bytes([player.seat]) * 32) for player in game.players)
    record = Record(game_id, game, lineage(previous, change), tokens, created_ms, now_ms)
    return Commit(previous, record, change)


def creation(game_id: str = GAME, now_ms: int = START_MS, ruleset: Rules = SABRA) -> Commit:
    """Returns a commit that creates a game."""
    created = create(*parts(ruleset))
    return commit_of(game_id, None, (created.game, created.events), now_ms)


def joining(record: Record, name: str, now_ms: int = START_MS, nonce: bytes = NONCE) -> Commit:
    """Returns a commit in which the next player joins."""
    applied = apply(record.game, Join(name), now_ms)
    assert isinstance(applied, Applied)
    return commit_of(record.game_id, record, (applied.game, applied.events), now_ms, nonce)


def starting(record: Record, now_ms: int = START_MS) -> Commit:
    """Returns a commit that starts a game."""
    action = StartGame(HOST, new_shuffle(SeededChance(1), record.game.ruleset, len(record.game.players)))
    applied = apply(record.game, action, now_ms)
    assert isinstance(applied, Applied)
    return commit_of(record.game_id, record, (applied.game, applied.events), now_ms)


def resigning(record: Record) -> Commit:
    """Returns a commit in which the first seat resigns."""
    applied = apply(record.game, Resign(1), START_MS)
    assert isinstance(applied, Applied)
    return commit_of(record.game_id, record, (applied.game, applied.events), START_MS)


def drawing(record: Record, now_ms: int = START_MS) -> Commit:
    """Returns a commit in which the player to move draws."""
    round_ = record.game.round
    assert round_
    applied = apply(record.game, DrawTile(round_.turn.seat), now_ms)
    assert isinstance(applied, Applied)
    return commit_of(record.game_id, record, (applied.game, applied.events), now_ms)


async def stored(store: Store, commit: Commit) -> Record:
    """Stores a change, which must be accepted; returns its record."""
    assert await store.games.commit(commit) == Committed()
    return commit.record


async def started_game(store: Store, game_id: str = GAME) -> list[Record]:
    """Starts a game of two; returns every record on the way."""
    records = [await stored(store, creation(game_id))]
    for name in ("Ada", "Ben"):
        records.append(await stored(store, joining(records[-1], name)))
    return [*records, await stored(store, starting(records[-1]))]


async def everything(store: Store, game_id: str = GAME, request_key: str = "") -> tuple[object, ...]:
    """Returns all data of a game in a store."""
    loaded = await store.games.load(game_id, request_key)
    return loaded, await store.streams.entries(game_id, 1, HISTORY), await store.streams.bounds(game_id)


# Commits


async def test_a_stored_game_loads_equal_with_the_stores_time(store: Store, clock: FakeClock) -> None:
    records = await started_game(store)
    clock.advance(1.5)
    loaded = await store.games.load(GAME)
    assert loaded.record == records[-1]
    assert loaded.now_ms == START_MS + 1500
    assert loaded.memo is None


async def test_a_game_that_was_never_stored_is_not_found(store: Store) -> None:
    loaded = await store.games.load(GAME, "some-request")
    assert loaded.record is None
    assert loaded.memo is None
    assert await store.streams.entries(GAME, 1, 10) == ()
    assert await store.streams.bounds(GAME) == (0, 0)


async def test_a_commit_on_another_history_conflicts_and_stores_nothing(store: Store) -> None:
    records = await started_game(store)
    before = await everything(store, GAME, "late")
    for stale in records[:-1]:
        late = joining(records[0], "Zoe") if stale is records[0] else drawing(records[-1])
        outcome = await store.games.commit(replace(late, previous_etag=stale.etag, request_key="late", memo=MEMO))
        assert outcome == Conflict()
    assert await store.games.commit(replace(drawing(records[-1]), previous_etag=NO_ETAG)) == Conflict()
    assert await everything(store, GAME, "late") == before
    assert await store.games.commit(drawing(records[-1])) == Committed()


async def test_a_game_is_created_once(store: Store) -> None:
    first = creation(now_ms=START_MS)
    assert await store.games.commit(first) == Committed()
    assert await store.games.commit(creation(now_ms=START_MS + 1)) == Conflict()
    assert (await store.games.load(GAME)).record == first.record
    assert await store.streams.bounds(GAME) == (1, 1)


async def test_a_change_of_a_missing_game_conflicts(store: Store) -> None:
    orphan = joining(creation().record, "Ada")
    assert await store.games.commit(orphan) == Conflict()
    assert (await store.games.load(GAME)).record is None
    assert await store.streams.bounds(GAME) == (0, 0)


async def test_exactly_one_of_several_concurrent_commits_is_stored(store: Store) -> None:
    record = await stored(store, creation())
    rivals = [joining(record, f"player {number}", nonce=bytes([number]) * 16) for number in range(8)]
    outcomes = await asyncio.gather(*(store.games.commit(rival) for rival in rivals))
    assert outcomes.count(Committed()) == 1
    assert outcomes.count(Conflict()) == 7
    winner = rivals[outcomes.index(Committed())]
    assert (await store.games.load(GAME)).record == winner.record
    entries = await store.streams.entries(GAME, 1, 10)
    assert [entry.etag for entry in entries] == [record.etag, winner.record.etag]


@pytest.mark.parametrize(
    ("later_ms", "until_ms", "is_stored"),
    [(0, 0, True), (0, 500, True), (500, 500, True), (501, 500, False), (-1, 500, False), (10_000, None, True)],
)
async def test_a_change_decided_by_a_servers_clock_is_stored_only_before_its_limit(
    store: Store, clock: FakeClock, later_ms: int, until_ms: int | None, *, is_stored: bool
) -> None:
    record = await stored(store, creation())
    clock.advance(60)
    decided = joining(record, "Ada", clock.now_ms)
    late = replace(decided, until_ms=None if until_ms is None else clock.now_ms + until_ms)
    clock.advance(later_ms / 1000)
    assert await store.games.commit(late) == (Committed() if is_stored else Conflict())
    assert (await store.games.load(GAME)).record == (decided.record if is_stored else record)
    assert await store.streams.bounds(GAME) == ((1, 2) if is_stored else (1, 1))


# Caching


async def test_a_cached_game_equals_a_load_without_the_memo(store: Store, clock: FakeClock) -> None:
    assert store.games.cached(GAME) is None
    record = await stored(store, replace(creation(), request_key="request-1", memo=MEMO))
    for name in ("Ada", "Ben"):
        clock.advance(1)
        recalled = store.games.cached(GAME)
        assert recalled in {None, await store.games.load(GAME)}
        record = await stored(store, joining(record, name))
    assert store.games.cached(OTHER_GAME) is None


async def test_a_conflict_removes_a_game_from_the_cache(
    redis_backed: RedisStore, empty_redis_url: str, clock: FakeClock
) -> None:
    other = redis_store(empty_redis_url, clock)
    record = await stored(redis_backed, creation())
    changed = await stored(other, joining(record, "Ada"))
    assert redis_backed.games.cached(GAME) == Loaded(START_MS, record, None)  # the cache is stale
    assert await redis_backed.games.commit(joining(record, "Ben")) == Conflict()
    assert redis_backed.games.cached(GAME) is None
    assert (await redis_backed.games.load(GAME)).record == changed
    assert redis_backed.games.cached(GAME) == Loaded(START_MS, changed, None)
    await other.close()


async def test_an_expired_game_is_removed_from_the_cache_and_not_recreated(
    redis_backed: RedisStore, raw: "aredis.Redis"
) -> None:
    record = await stored(redis_backed, creation())
    await raw.flushdb()
    assert await redis_backed.games.commit(joining(record, "Ada")) == Conflict()
    assert (await redis_backed.games.load(GAME)).record is None
    assert redis_backed.games.cached(GAME) is None
    assert not await raw.keys()


async def test_a_retried_request_removes_a_game_from_the_cache(redis_backed: RedisStore) -> None:
    record = await stored(redis_backed, creation())
    request = replace(joining(record, "Ada"), request_key="request-1", memo=MEMO)
    await stored(redis_backed, request)
    assert await redis_backed.games.commit(request) == MEMO
    assert redis_backed.games.cached(GAME) is None


async def test_a_full_cache_evicts_the_least_recently_used_games() -> None:
    cache = GameCache(lambda: START_MS, games=3)
    records = [creation(f"{number:032x}").record for number in range(5)]
    for record in records[:3]:
        cache.put(b"", record)
    assert cache.decode(records[0].game_id, b"") == records[0]  # marks it as recently used
    for record in records[3:]:
        cache.put(b"", record)
    known = [record for record in records if cache.get(record.game_id)]
    assert known == [records[0], *records[3:]]


async def test_the_time_of_a_cached_game_is_the_redis_servers_time(empty_redis_url: str, raw: "aredis.Redis") -> None:
    store = redis_store(empty_redis_url)
    record = await stored(store, creation(now_ms=0))
    seconds, micros = await raw.time()
    recalled = store.games.cached(GAME)
    assert recalled
    assert -10_000 < recalled.now_ms - (seconds * 1000 + micros // 1000) < 10_000
    change = replace(joining(record, "Ada", recalled.now_ms), until_ms=recalled.now_ms + 60_000)
    assert await store.games.commit(change) == Committed()
    await store.close()


async def test_a_cached_game_has_the_clock_of_its_own_server() -> None:
    """A turn that is decided by the clock of another server of a cluster, which is ahead, would be a conflict."""
    cache, hour_ms = GameCache(), 3_600_000
    record, other = creation(now_ms=0).record, creation(OTHER_GAME, now_ms=0).record

    def hours() -> int:
        cache.set_time(START_MS + 9 * hour_ms)
        cache.put(b"", other)
        recalled = cache.get(GAME)
        assert recalled
        return (recalled.now_ms - START_MS) // hour_ms

    cache.set_time(START_MS)
    cache.put(b"", record)
    assert hours() == 0
    cache.set_time(START_MS + hour_ms)
    cache.decode(GAME, b"")
    assert hours() == 1


async def test_a_cached_games_time_is_not_before_its_last_change(empty_redis_url: str) -> None:
    """If the clock of Redis is set back, the estimated time is wrong, and a turn needs a load first."""
    store = redis_store(empty_redis_url)
    future_ms = 4_000_000_000_000
    record = await stored(store, creation(now_ms=future_ms))
    recalled = store.games.cached(GAME)
    assert recalled
    assert recalled.now_ms == future_ms
    change = replace(joining(record, "Ada", recalled.now_ms), until_ms=recalled.now_ms + 1000)
    assert await store.games.commit(change) == Conflict()
    await store.close()


# Memos


async def test_a_retried_request_gets_its_stored_memo_byte_for_byte(store: Store) -> None:
    record = await stored(store, creation())
    request = replace(joining(record, "Ada"), request_key="request-1", memo=MEMO)
    after = await stored(store, request)
    assert (await store.games.load(GAME, "request-1")).memo == MEMO
    after = await stored(store, joining(after, "Ben"))
    before = await everything(store)
    other_memo = Memo(bytes(FINGERPRINT_BYTES), b"another answer")
    again = replace(joining(after, "Cleo"), request_key="request-1", memo=other_memo)
    assert await store.games.commit(request) == MEMO  # its etag no longer matches
    assert await store.games.commit(again) == MEMO  # its etag would match
    assert await everything(store) == before
    assert (await store.games.load(GAME, "request-1")).memo == MEMO


async def test_a_conflicting_commit_stores_no_memo(store: Store) -> None:
    record = await stored(store, creation())
    await stored(store, joining(record, "Ada"))
    assert await store.games.commit(replace(joining(record, "Ben"), request_key="request-1", memo=MEMO)) == Conflict()
    assert (await store.games.load(GAME, "request-1")).memo is None


async def test_a_memo_belongs_to_its_game_and_its_request(store: Store) -> None:
    await stored(store, replace(creation(), request_key="request-1", memo=MEMO))
    await stored(store, creation(OTHER_GAME))
    assert (await store.games.load(GAME, "request-1")).memo == MEMO
    assert (await store.games.load(GAME, "request-2")).memo is None
    assert (await store.games.load(GAME)).memo is None
    assert (await store.games.load(OTHER_GAME, "request-1")).memo is None


async def test_a_memo_may_be_without_salt_and_of_any_bytes(store: Store) -> None:
    memo = Memo(bytes(FINGERPRINT_BYTES), bytes(range(256)) * 300)
    await stored(store, replace(creation(), request_key="request-1", memo=memo))
    assert (await store.games.load(GAME, "request-1")).memo == memo


# Event streams


async def test_the_event_stream_has_every_change_once_in_order(store: Store) -> None:
    records = await started_game(store)
    for _ in range(5):
        records.append(await stored(store, drawing(records[-1])))
    entries = await store.streams.entries(GAME, 1, 100)
    assert [entry.revision for entry in entries] == list(range(1, len(records) + 1))
    assert [entry.etag for entry in entries] == [record.etag for record in records]
    assert all(entry.events for entry in entries)
    assert await store.streams.bounds(GAME) == (1, len(records))
    assert await store.streams.entries(GAME, 3, 2) == entries[2:4]
    assert await store.streams.entries(GAME, len(records) + 1, 10) == ()


@pytest.fixture(params=ALL_STORES)
async def forgetful_store(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Store]:
    """Yields each kind of store; it keeps three changes of a game."""
    async with running_store(request, clock, history=3) as store:
        yield store


async def test_a_stream_keeps_its_newest_changes_and_returns_its_bounds(forgetful_store: Store) -> None:
    records = await started_game(forgetful_store)
    assert await forgetful_store.streams.bounds(GAME) == (2, 4)
    await stored(forgetful_store, drawing(records[-1]))
    assert await forgetful_store.streams.bounds(GAME) == (3, 5)
    entries = await forgetful_store.streams.entries(GAME, 1, 10)
    assert [entry.revision for entry in entries] == [3, 4, 5]


# The clock and the secret


async def test_the_time_is_that_of_the_clock(store: Store, clock: FakeClock) -> None:
    clock.advance(1)
    assert await store.now_ms() == (await store.games.load(GAME)).now_ms == clock.now_ms


async def test_all_servers_on_a_store_share_one_secret(store: Store) -> None:
    secrets = await asyncio.gather(*(store.secret() for _ in range(8)))
    assert len(set(secrets)) == 1
    assert len(secrets[0]) == 32


async def test_servers_that_start_at_the_same_time_agree_on_one_secret(empty_redis_url: str) -> None:
    stores = [redis_store(empty_redis_url) for _ in range(8)]
    secrets = await asyncio.gather(*(store.secret() for store in stores))
    assert len(set(secrets)) == 1
    for store in stores:
        await store.close()


async def test_servers_agree_on_one_secret_after_the_store_lost_it(empty_redis_url: str, raw: "aredis.Redis") -> None:
    early, late = redis_store(empty_redis_url), redis_store(empty_redis_url)
    first = await early.secret()
    await raw.flushdb()
    assert await late.secret() == await early.secret() != first
    await raw.flushdb()
    assert await early.secret() == await late.secret()
    for store in (early, late):
        await store.close()


def test_two_stores_have_two_secrets() -> None:
    assert asyncio.run(memory_store().secret()) != asyncio.run(memory_store().secret())


# Lists


async def listed(store: Store, state: GameState, limit: int = 100) -> list[str]:
    """Returns the ids of all games in a list, over all pages."""
    return await listed_in(store, [state], limit)


async def listed_in(store: Store, states: Iterable[GameState], limit: int = 100) -> list[str]:
    """Returns the ids of all games of some states, over all pages."""
    found: list[str] = []
    cursor = ""
    for _ in range(100):
        page = await store.lists.page(states, cursor, limit)
        cursor = page.cursor
        assert len(page.games) <= limit
        found += [record.game_id for record in page.games]
        if not cursor:
            return found
    raise AssertionError("the pages do not end")


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
async def test_games_are_listed_newest_first_each_once(store: Store, limit: int) -> None:
    ids = [f"{number:032x}" for number in (5, 3, 9, 1, 7, 8, 2)]
    for age, game_id in enumerate(ids):
        record = await stored(store, creation(game_id, START_MS + age // 2))  # pairs of equal age
        await store.lists.index(record)
    by_age = sorted(ids, key=lambda game_id: (ids.index(game_id) // 2, game_id), reverse=True)
    assert await listed(store, GameState.LOBBY, limit) == by_age
    assert await listed(store, GameState.PLAYING, limit) == []


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 100])
async def test_games_of_several_states_are_merged_by_age(store: Store, limit: int) -> None:
    for number in (1, 2, 3, 4, 5):
        await store.lists.index(await stored(store, creation(f"{number:032x}", START_MS + number)))
    records = await started_game(store)
    await store.lists.index(records[-1])
    lobby = [f"{number:032x}" for number in (5, 4, 3, 2, 1)]
    assert await listed(store, GameState.LOBBY, limit) == lobby
    both = await listed_in(store, (GameState.PLAYING, GameState.LOBBY), limit)
    assert sorted(both) == sorted([*lobby, GAME])
    assert [game for game in both if game != GAME] == lobby


async def test_a_game_in_the_list_of_another_of_the_states_is_listed_once(store: Store) -> None:
    records = await started_game(store)
    await store.lists.index(records[0])  # only once, as if the server died after the start
    assert await listed_in(store, (GameState.LOBBY, GameState.PLAYING), 1) == [GAME]


async def test_a_game_created_between_pages_shifts_none_of_them(store: Store) -> None:
    for number in range(1, 5):
        await store.lists.index(await stored(store, creation(f"{number:032x}", START_MS + number)))
    first = await store.lists.page([GameState.LOBBY], "", 2)
    await store.lists.index(await stored(store, creation(f"{9:032x}", START_MS + 9)))
    second = await store.lists.page([GameState.LOBBY], first.cursor, 2)
    assert [int(record.game_id, 16) for record in (*first.games, *second.games)] == [4, 3, 2, 1]


async def test_a_game_is_listed_and_counted_only_under_its_state(store: Store) -> None:
    records = await started_game(store)
    none = dict.fromkeys(GameState, 0)
    await store.lists.index(records[0])
    assert await store.lists.count() == {**none, GameState.LOBBY: 1}
    await store.lists.index(records[-1])
    await store.lists.index(records[-1])
    assert await store.lists.count() == {**none, GameState.PLAYING: 1}
    assert await listed(store, GameState.LOBBY) == []
    assert await listed(store, GameState.PLAYING) == [GAME]


async def test_reading_a_list_repairs_a_missed_change_of_state(store: Store) -> None:
    records = await started_game(store)
    await store.lists.index(records[0])  # only once, as if the server died after the start
    assert await listed(store, GameState.LOBBY) == []
    assert await listed(store, GameState.PLAYING) == [GAME]
    assert (await store.lists.count())[GameState.LOBBY] == 0


async def test_a_list_removes_games_that_have_expired(
    redis_backed: RedisStore, raw: "aredis.Redis", clock: FakeClock
) -> None:
    await redis_backed.lists.index(await stored(redis_backed, creation(GAME)))
    await redis_backed.lists.index(await stored(redis_backed, creation(OTHER_GAME, START_MS + 1)))
    await raw.delete(f"rummikub:{{{GAME}}}:game")
    clock.advance(7200)
    assert await listed(redis_backed, GameState.LOBBY) == [OTHER_GAME]
    assert (await redis_backed.lists.count())[GameState.LOBBY] == 1


async def test_a_list_skips_games_of_a_newer_server_and_keeps_them(
    redis_backed: RedisStore, raw: "aredis.Redis"
) -> None:
    for game_id in (GAME, OTHER_GAME):
        await redis_backed.lists.index(await stored(redis_backed, creation(game_id)))
    await raw.hset(f"rummikub:{{{GAME}}}:game", "snapshot", b'{"format":999}')
    assert await listed(redis_backed, GameState.LOBBY) == [OTHER_GAME]
    assert (await redis_backed.lists.count())[GameState.LOBBY] == 2


async def test_a_listed_game_that_is_never_stored_leaves_its_list_after_an_hour(
    redis_backed: RedisStore, clock: FakeClock
) -> None:
    """A creation lists its game before it stores it, so that every stored game is listed; failed creations expire."""
    await redis_backed.lists.index(creation().record)
    assert await listed(redis_backed, GameState.LOBBY) == []
    assert (await redis_backed.lists.count())[GameState.LOBBY] == 1
    clock.advance(3601)
    assert await listed(redis_backed, GameState.LOBBY) == []
    assert (await redis_backed.lists.count())[GameState.LOBBY] == 0


PUBLIC = Listing(Visibility.PUBLIC, "CDFGHJ", (("league", "1"),))
MATCH = match_key(Ruleset(), DEFAULT_SETTINGS, PUBLIC.labels)


def changed(commit: Commit, **changes: object) -> Commit:
    """Returns a commit with another record."""
    return replace(commit, record=replace(commit.record, **changes))  # type: ignore[arg-type]


async def public_game(store: Store, game_id: str = GAME, now_ms: int = START_MS) -> Record:
    """Stores and lists a public game in the lobby."""
    record = await stored(store, changed(creation(game_id, now_ms), listing=PUBLIC))
    await store.lists.index(record)
    return record


async def ids_in(store: Store, state: GameState) -> list[list[str]]:
    """Returns the games in the list of all games, in the list of public ones, and those with a free seat."""
    pages = [(await store.lists.page([state], "", 100, is_public=is_public)).games for is_public in (False, True)]
    return [[record.game_id for record in records] for records in (*pages, await store.lists.oldest_open(MATCH, 100))]


async def test_a_listing_is_stored_with_its_game(store: Store) -> None:
    record = await public_game(store)
    assert record.listing == PUBLIC
    assert (await store.games.load(GAME)).record == record


async def test_only_public_games_are_in_public_lists(store: Store) -> None:
    await store.lists.index(await stored(store, creation(OTHER_GAME)))
    await public_game(store)
    assert await ids_in(store, GameState.LOBBY) == [[OTHER_GAME, GAME], [GAME], [GAME]]
    assert (await store.lists.count())[GameState.LOBBY] == 2


async def test_a_started_game_is_not_open_and_an_emptied_one_is_in_no_list(store: Store) -> None:
    record = await public_game(store)
    for name in ("Ada", "Ben"):
        record = await stored(store, changed(joining(record, name), listing=PUBLIC))
    await store.lists.index(replace(record, is_emptied=True))
    assert await ids_in(store, GameState.LOBBY) == [[], [], []]
    await store.lists.index(record)
    assert await ids_in(store, GameState.LOBBY) == [[GAME], [GAME], [GAME]]
    started = await stored(store, changed(starting(record), listing=PUBLIC))
    await store.lists.index(started)
    assert await ids_in(store, GameState.LOBBY) == [[], [], []]
    assert await ids_in(store, GameState.PLAYING) == [[GAME], [GAME], []]


async def test_reading_open_games_repairs_a_missed_start(store: Store) -> None:
    record = await public_game(store)
    for name in ("Ada", "Ben"):
        record = await stored(store, changed(joining(record, name), listing=PUBLIC))
    await stored(store, changed(starting(record), listing=PUBLIC))
    assert await store.lists.oldest_open(MATCH, 10) == ()
    assert await ids_in(store, GameState.PLAYING) == [[GAME], [GAME], []]


async def test_open_games_come_oldest_first_and_only_those_that_match(store: Store) -> None:
    for number in (2, 1, 3):
        await public_game(store, f"{number:032x}", START_MS + number)
    assert [int(record.game_id, 16) for record in await store.lists.oldest_open(MATCH, 2)] == [1, 2]
    assert await store.lists.oldest_open(match_key(Ruleset(), DEFAULT_SETTINGS, ()), 10) == ()
    assert await store.lists.oldest_open(match_key(Ruleset(players_max=3), DEFAULT_SETTINGS, PUBLIC.labels), 10) == ()


async def test_the_list_of_open_games_expires_with_the_youngest_of_them(
    redis_backed: RedisStore, raw: "aredis.Redis"
) -> None:
    await public_game(redis_backed)
    assert LIFETIMES.lobby * 1000 < await raw.pttl(f"rummikub:open:{MATCH}") <= LIFETIMES.lobby * 1000 + NAME_MARGIN_MS
    assert await raw.pttl("rummikub:public:lobby") == -1


async def test_an_emptied_lobby_expires_after_a_minute(redis_backed: RedisStore, raw: "aredis.Redis") -> None:
    record = await stored(redis_backed, creation())
    await stored(redis_backed, changed(joining(record, "Ada"), is_emptied=True))
    for part in ("game", "events"):
        assert 0 < await raw.pttl(f"rummikub:{{{GAME}}}:{part}") <= EMPTIED_MS


# Names


async def test_a_name_points_at_the_first_game_until_it_is_replaced(store: Store) -> None:
    assert await store.names.find("code:X") == ""
    assert await store.names.point("code:X", GAME) == GAME
    assert await store.names.point("code:X", OTHER_GAME) == GAME
    assert await store.names.point("code:X", GAME) == GAME
    assert await store.names.find("code:X") == GAME
    assert await store.names.find("code:Y") == ""
    assert await store.names.point("code:X", OTHER_GAME, "f" * 32) == GAME
    assert await store.names.point("code:X", OTHER_GAME, GAME) == OTHER_GAME
    assert await store.names.point("code:X", GAME, GAME) == OTHER_GAME


async def test_concurrent_callers_point_a_name_at_one_game(store: Store) -> None:
    games = await asyncio.gather(
        *(store.names.point("meeting:X", f"{number:032x}", kept_ms=BRIEF_MS) for number in range(20))
    )
    assert len(set(games)) == 1


async def test_a_name_is_kept_longer_than_a_lobby_and_a_brief_one_less_than_an_emptied_one(
    redis_backed: RedisStore, raw: "aredis.Redis"
) -> None:
    await redis_backed.names.point("code:X", GAME)
    await redis_backed.names.point("meeting:X", GAME, kept_ms=BRIEF_MS)
    assert LIFETIMES.lobby * 1000 < await raw.pttl("rummikub:name:code:X") <= LIFETIMES.lobby * 1000 + NAME_MARGIN_MS
    assert 0 < await raw.pttl("rummikub:name:meeting:X") <= BRIEF_MS < EMPTIED_MS
    await raw.pexpire("rummikub:name:code:X", 1000)
    await redis_backed.names.point("code:X", GAME)
    assert await raw.pttl("rummikub:name:code:X") > LIFETIMES.lobby * 1000


# Deadlines


async def test_a_game_is_due_after_its_deadline_and_not_at_it(store: Store, clock: FakeClock) -> None:
    await store.deadlines.arm(GAME, START_MS + 1000)
    assert await due(store) == []
    clock.advance(1)
    assert await due(store) == []
    clock.advance(0.001)
    assert await due(store) == [(GAME, START_MS + 1000)]
    assert await due(store) == [(GAME, START_MS + 1000)], "due until it is claimed"


def games_of_one_part(count: int) -> list[str]:
    """Returns the ids of games whose deadlines are in one part of a cluster."""
    ids = (f"{number:032x}" for number in itertools.count())
    return list(itertools.islice((game_id for game_id in ids if part_of(CLUSTER_PARTS, game_id) == PART), count))


PART = CLUSTER_PARTS[7]


async def test_a_claimed_game_cannot_be_claimed_until_the_claim_ends(store: Store, clock: FakeClock) -> None:
    game, other = games_of_one_part(2)
    await store.deadlines.arm(game, START_MS)
    await store.deadlines.arm(other, START_MS + 1)
    clock.advance(1)
    [claim] = await store.deadlines.claim(1)
    assert claim == Due(game, START_MS, clock.now_ms + CLAIM_MS)
    assert await due(store) == [(other, START_MS + 1)]
    assert await store.deadlines.claim(10, skip=[other]) in ((), [])
    clock.advance(CLAIM_MS / 1000)
    assert await due(store) == [(other, START_MS + 1)]
    clock.advance(0.001)
    assert await due(store) == [(other, START_MS + 1), (game, claim.claimed_ms)]


async def test_the_most_overdue_games_are_claimed_first(store: Store, clock: FakeClock) -> None:
    armed = [(game_id, START_MS + number) for number, game_id in enumerate(games_of_one_part(5))]
    for number in (3, 1, 4, 0, 2):
        await store.deadlines.arm(*armed[number])
    clock.advance(60)
    assert await due(store, 3) == armed[:3]
    assert await due(store) == armed


@pytest.mark.parametrize("limit", [1, 7, 32, 100])
async def test_a_claim_has_as_many_games_as_are_due_up_to_its_limit(store: Store, clock: FakeClock, limit: int) -> None:
    ids = games_of_one_part(20) + [f"{number:032x}" for number in range(1_000, 1_020)]
    for number, game_id in enumerate(ids):
        await store.deadlines.arm(game_id, START_MS + number)
    clock.advance(60)
    claimed: list[str] = []
    for start in range(0, len(ids), limit):
        claims = await store.deadlines.claim(limit)
        assert len(claims) == min(limit, len(ids) - start)
        assert [claim.at_ms for claim in claims] == sorted(claim.at_ms for claim in claims)
        claimed += [claim.game_id for claim in claims]
    assert sorted(claimed) == sorted(ids)
    assert not await store.deadlines.claim(limit)


async def test_no_part_is_served_last_at_each_claim(store: Store, clock: FakeClock) -> None:
    """If more games are due than a server checks, each part gets its share."""
    ids = [f"{number:032x}" for number in range(400)]
    for game_id in ids:
        await store.deadlines.arm(game_id, START_MS)
    clock.advance(60)
    claimed = [claim.game_id for _ in range(10) for claim in await store.deadlines.claim(16)]
    parts = Counter(part_of(CLUSTER_PARTS, game_id) for game_id in claimed)
    if isinstance(store, RedisStore) and len(store._nodes.parts) > 1:  # noqa: SLF001 - only a cluster has parts
        assert set(parts.values()) == {10}


async def test_arming_replaces_the_deadline(store: Store, clock: FakeClock) -> None:
    await store.deadlines.arm(GAME, START_MS + 1000)
    await store.deadlines.arm(GAME, START_MS + 9000)
    clock.advance(5)
    assert await due(store) == []
    await store.deadlines.arm(GAME, START_MS + 4000)
    assert await due(store) == [(GAME, START_MS + 4000)]


async def test_rearming_postpones_or_drops_a_game(store: Store, clock: FakeClock) -> None:
    await store.deadlines.arm(GAME, START_MS)
    await store.deadlines.arm(OTHER_GAME, START_MS)
    clock.advance(1)
    claims = {claim.game_id: claim for claim in await store.deadlines.claim(10)}
    await store.deadlines.rearm(claims[GAME], START_MS + 5000)
    await store.deadlines.rearm(claims[OTHER_GAME], None)
    assert await due(store) == []
    clock.advance(60)
    assert await due(store) == [(GAME, START_MS + 5000)]


async def test_rearming_does_not_overwrite_a_newer_deadline(store: Store, clock: FakeClock) -> None:
    await store.deadlines.arm(GAME, START_MS - 1)
    [seen] = await store.deadlines.claim(10)
    await store.deadlines.arm(GAME, START_MS + 2)
    await store.deadlines.rearm(seen, None)
    await store.deadlines.rearm(seen, START_MS + 99_000)
    await store.deadlines.rearm(Due(OTHER_GAME, START_MS, START_MS), START_MS)  # has no deadline
    clock.advance(60)
    assert await due(store) == [(GAME, START_MS + 2)]


# Subscriptions


BELL = "b" * 32
"""A game whose change notification arrives after all earlier notifications."""


async def told(subscription: Subscription) -> None:
    """Waits until a subscription is notified."""
    await asyncio.wait_for(subscription.wait(), 10)


async def caught_up(store: Store, *subscriptions: Subscription) -> None:
    """Waits until earlier notifications have arrived, including those of new subscriptions, and clears them."""
    record = (await store.games.load(BELL)).record or await stored(store, creation(BELL))
    async with store.streams.subscribe(BELL) as bell:
        for _ in range(2):  # the first may be due to the subscription, the second is due to a change
            record = await stored(store, commit_of(BELL, record, renamed(record), START_MS))
            await told(bell)
    for subscription in subscriptions:
        await is_told(subscription)


def renamed(record: Record) -> tuple[Game, tuple[Event, ...]]:
    """Returns a change that any lobby accepts, no matter how often."""
    game = replace(record.game, players=(), revision=record.game.revision + 1)
    return game, (PlayerJoined(1, f"player {record.game.revision}"),)


async def is_told(subscription: Subscription) -> bool:
    """Returns whether a subscription has an unread notification; clears it."""
    looking = asyncio.create_task(subscription.wait())
    await asyncio.sleep(0)
    is_done = looking.done()
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    return is_done


async def test_watchers_are_notified_of_changes_of_their_game_only(store: Store) -> None:
    record = await stored(store, creation())
    async with (
        store.streams.subscribe(GAME) as one,
        store.streams.subscribe(GAME) as another,
        store.streams.subscribe(OTHER_GAME) as elsewhere,
    ):
        await caught_up(store, one, another, elsewhere)
        assert not await is_told(one)
        await stored(store, joining(record, "Ada"))
        await asyncio.gather(told(one), told(another))
        await caught_up(store)
        assert not await is_told(elsewhere)


async def test_a_change_is_stored_before_watchers_are_notified(store: Store) -> None:
    record = await stored(store, creation())
    async with store.streams.subscribe(GAME) as subscription:
        await caught_up(store, subscription)
        storing = asyncio.create_task(store.games.commit(joining(record, "Ada")))
        await told(subscription)
        assert (await store.streams.bounds(GAME)) == (1, 2)
        await storing


async def test_watchers_are_not_notified_of_conflicting_commits(store: Store) -> None:
    record = await stored(store, creation())
    await stored(store, joining(record, "Ada"))
    async with store.streams.subscribe(GAME) as subscription:
        await caught_up(store, subscription)
        assert await store.games.commit(joining(record, "Ben")) == Conflict()
        await caught_up(store)
        assert not await is_told(subscription)


async def test_a_watcher_who_resubscribes_is_notified_again(store: Store) -> None:
    record = await stored(store, creation())
    for name in ("Ada", "Ben", "Cleo"):
        async with store.streams.subscribe(GAME) as subscription:
            await caught_up(store, subscription)
            record = await stored(store, joining(record, name))
            await told(subscription)


async def test_a_watcher_is_notified_after_others_subscribe_and_unsubscribe(store: Store) -> None:
    record = await stored(store, creation())
    async with store.streams.subscribe(GAME) as staying:
        async with store.streams.subscribe(GAME), store.streams.subscribe(OTHER_GAME):
            await caught_up(store)
        await caught_up(store, staying)
        await stored(store, joining(record, "Ada"))
        await told(staying)


# Drafts


OPEN_DRAFTS = room(draft_visibility=DraftVisibility.EVERYONE)


def a_draft(record: Record, *tiles: int, is_legal: bool = False) -> Draft:
    """Returns a draft of the turn in progress with one meld."""
    turn = round_of(record.game).turn
    meld = ProposedMeld(tuple(map(Tile, tiles)), MeldKind.RUN, (Tile(7),))
    return Draft(turn.seat, turn.revision, (meld, ProposedMeld(())), is_legal)


async def test_the_last_draft_is_kept_and_changes_no_game(store: Store) -> None:
    *_, record = await started_game(store)
    before = await everything(store)
    assert await store.drafts.latest(GAME) is None
    for number, is_legal in ((1, False), (2, True), (3, False)):
        draft = a_draft(record, number, 53, is_legal=is_legal)
        assert await store.drafts.save(record, draft) == number
        assert await store.drafts.latest(GAME) == replace(draft, number=number)
    assert await everything(store) == before
    assert await store.drafts.latest(OTHER_GAME) is None
    assert await store.games.commit(drawing(record)) == Committed()


async def test_a_draft_of_another_history_or_of_no_game_is_not_saved(store: Store) -> None:
    *_, record = await started_game(store)
    draft = a_draft(record, 1)
    after = await stored(store, drawing(record))
    assert await store.drafts.save(record, draft) is None
    assert await store.drafts.save(replace(after, etag="0" * 32), a_draft(after, 1)) is None
    assert await store.drafts.save(replace(after, game_id=OTHER_GAME), a_draft(after, 1)) is None
    assert await store.drafts.latest(GAME) is None
    assert await store.drafts.save(after, a_draft(after, 2)) == 1


async def test_a_draft_is_saved_until_the_deadline(store: Store, clock: FakeClock) -> None:
    *_, record = await started_game(store)
    deadline_ms = round_of(record.game).turn.deadline_ms
    assert deadline_ms
    clock.now_ms = deadline_ms
    assert await store.drafts.save(record, a_draft(record, 1)) == 1
    clock.now_ms = deadline_ms + 1
    assert await store.drafts.save(record, a_draft(record, 2)) is None
    kept = await store.drafts.latest(GAME)
    assert kept
    assert tiles_on(kept.table) == (1,)


async def test_a_seat_saves_drafts_at_a_limited_rate(store: Store, clock: FakeClock) -> None:
    *_, record = await started_game(store)
    for number in range(DRAFTS_AT_ONCE):
        assert await store.drafts.save(record, a_draft(record, 1)) == number + 1
    for _ in range(3):
        with pytest.raises(TooManyDrafts):
            await store.drafts.save(record, a_draft(record, 2))
    kept = await store.drafts.latest(GAME)
    assert kept
    assert (kept.number, tiles_on(kept.table)) == (DRAFTS_AT_ONCE, (1,))
    for number in range(3):
        clock.advance(DRAFT_MS / 1000)
        assert await store.drafts.save(record, a_draft(record, 3)) == DRAFTS_AT_ONCE + 1 + number
        with pytest.raises(TooManyDrafts):
            await store.drafts.save(record, a_draft(record, 4))
    after = await stored(store, drawing(record))
    assert await store.drafts.save(after, a_draft(after, 5)) == DRAFTS_AT_ONCE + 4
    clock.advance(DRAFTS_AT_ONCE * DRAFT_MS / 1000)
    for _ in range(DRAFTS_AT_ONCE):
        assert await store.drafts.save(after, a_draft(after, 6))
    with pytest.raises(TooManyDrafts):
        await store.drafts.save(after, a_draft(after, 7))


@pytest.mark.parametrize("ruleset", [Ruleset(), OPEN_DRAFTS], ids=["owner", "everyone"])
async def test_watchers_are_notified_of_drafts_that_they_may_see(store: Store, ruleset: Rules) -> None:
    record = await stored(store, creation(ruleset=ruleset))
    for name in ("Ada", "Ben"):
        record = await stored(store, joining(record, name))
    record = await stored(store, starting(record))
    async with (
        store.drafts.subscribe(GAME) as drafts,
        store.streams.subscribe(GAME) as changes,
        store.drafts.subscribe(OTHER_GAME) as elsewhere,
    ):
        await caught_up(store, drafts, changes, elsewhere)
        assert await store.drafts.save(record, a_draft(record, 1)) == 1
        await caught_up(store)
        assert await is_told(drafts) == (ruleset is OPEN_DRAFTS)
        assert not await is_told(changes)
        assert not await is_told(elsewhere)


async def test_a_draft_expires_with_its_game(redis_backed: RedisStore, raw: "aredis.Redis") -> None:
    *_, record = await started_game(redis_backed)
    await raw.pexpire(f"rummikub:{{{GAME}}}:game", 70_000)
    await redis_backed.drafts.save(record, a_draft(record, 1))
    assert 60_000 < await raw.pttl(f"rummikub:{{{GAME}}}:draft") <= 70_000


@pytest.mark.parametrize(
    ("field", "value"), [("draft", "?"), ("draft", '{"format":2}'), ("draft", "{}"), ("number", "x"), ("due:2", "x")]
)
async def test_a_draft_that_cannot_be_read_is_none_and_is_replaced(
    redis_backed: RedisStore, raw: "aredis.Redis", field: str, value: str
) -> None:
    *_, record = await started_game(redis_backed)
    await redis_backed.drafts.save(record, a_draft(record, 1))
    await raw.hset(f"rummikub:{{{GAME}}}:draft", field, value)
    assert (await redis_backed.drafts.latest(GAME) is None) == (field != "due:2")
    assert await redis_backed.drafts.save(record, a_draft(record, 2))
    kept = await redis_backed.drafts.latest(GAME)
    assert kept
    assert tiles_on(kept.table) == (2,)


# The Redis store


@pytest.fixture
async def redis_backed(empty_redis_url: str, clock: FakeClock) -> AsyncIterator[RedisStore]:
    """Returns a store on Redis."""
    store = redis_store(empty_redis_url, clock)
    yield store
    await store.close()


@pytest.fixture
async def raw(empty_redis_url: str) -> AsyncIterator["aredis.Redis"]:
    """A direct client of the same Redis."""
    client = aredis.Redis.from_url(empty_redis_url)
    yield client
    await client.aclose()


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """Runs a Redis server that a test may stop."""
    server = RedisServer()
    server.start()
    yield server
    server.close()


async def test_stream_ids_are_revisions(redis_backed: RedisStore, raw: "aredis.Redis") -> None:
    await started_game(redis_backed)
    entries = await raw.xrange(f"rummikub:{{{GAME}}}:events")
    assert entries
    assert [entry[0] for entry in entries] == [b"1-0", b"2-0", b"3-0", b"4-0"]


@pytest.mark.parametrize("revision", [1, 3, 4, 6, 40])
async def test_redis_rejects_a_gap_or_a_repeat_of_revisions(
    redis_backed: RedisStore, raw: "aredis.Redis", revision: int
) -> None:
    records = await started_game(redis_backed)
    good = drawing(records[-1])
    assert good.record.game.revision == 5
    wrong = replace(good, record=replace(good.record, game=replace(good.record.game, revision=revision)))
    before = await everything(redis_backed)
    memos = await raw.hgetall(f"rummikub:{{{GAME}}}:requests")
    with pytest.raises(StoreUnavailable):
        await redis_backed.games.commit(replace(wrong, request_key="request-1", memo=MEMO))
    assert await everything(redis_backed) == before
    assert await raw.hgetall(f"rummikub:{{{GAME}}}:requests") == memos
    assert await redis_backed.games.commit(good) == Committed()


async def test_a_game_without_its_stream_accepts_no_change(redis_backed: RedisStore, raw: "aredis.Redis") -> None:
    records = await started_game(redis_backed)
    await raw.delete(f"rummikub:{{{GAME}}}:events")
    with pytest.raises(StoreUnavailable):
        await redis_backed.games.commit(drawing(records[-1]))
    assert (await redis_backed.games.load(GAME)).record == records[-1]


async def test_every_change_resets_the_time_to_live_of_all_keys_of_a_game(
    redis_backed: RedisStore, raw: "aredis.Redis"
) -> None:
    record = await stored(redis_backed, replace(creation(), request_key="request-1", memo=MEMO))
    keys = [f"rummikub:{{{GAME}}}:{part}" for part in ("game", "requests", "events")]
    for key in keys:
        await raw.pexpire(key, 1000)
    await stored(redis_backed, joining(record, "Ada"))
    for key in keys:
        assert LIFETIMES.lobby * 1000 - 60_000 < await raw.pttl(key) <= LIFETIMES.lobby * 1000


async def test_the_time_to_live_of_a_games_keys_depends_on_its_state(
    redis_backed: RedisStore, raw: "aredis.Redis"
) -> None:
    records = await started_game(redis_backed)
    keys = [f"rummikub:{{{GAME}}}:{part}" for part in ("game", "requests", "events")]
    seconds = [round((await raw.pttl(key)) / 1000) for key in keys if await raw.exists(key)]
    kept = LIFETIMES.started + records[-1].game.settings.turn_time_limit_seconds  # from the deadline on
    assert all(kept - 60 < one <= kept for one in seconds)
    await redis_backed.drafts.save(records[-1], a_draft(records[-1], 1))
    await redis_backed.presence.report(GAME, "server 1", {1: Sighting.OPEN})
    keys += [f"rummikub:{{{GAME}}}:{part}" for part in ("draft", "presence")]
    await stored(redis_backed, replace(resigning(records[-1]), request_key="request-9", memo=MEMO))
    seconds = [round((await raw.pttl(key)) / 1000) for key in keys]
    finished = LIFETIMES.finished
    assert all(
        kept - 60 < one <= kept
        for one, kept in zip(seconds, (finished, 3_600, finished, finished, finished), strict=True)
    )


async def test_the_latest_memos_of_each_sender_are_kept(store: Store) -> None:
    *_, record = await started_game(store)
    record = await stored(store, replace(drawing(record), request_key="a" * 32, memo=MEMO))
    key = "{:032x}".format
    for number in range(20):
        sender = ("", "2")[number % 2]
        record = await stored(store, replace(drawing(record), request_key=key(number), memo=MEMO, sender=sender))
    kept = [number for number in range(20) if (await store.games.load(GAME, key(number))).memo]
    assert kept == [*range(4, 20)]
    assert (await store.games.load(GAME, "a" * 32)).memo is None


async def test_all_keys_of_a_game_hash_to_one_slot(redis_backed: RedisStore, raw: "aredis.Redis") -> None:
    *_, record = await started_game(redis_backed)
    record = await stored(redis_backed, replace(drawing(record), request_key="request-1", memo=MEMO))
    await redis_backed.drafts.save(record, a_draft(record, 1))
    await redis_backed.presence.report(GAME, "server 1", {1: Sighting.OPEN})
    keys = [key async for key in raw.scan_iter(match=f"*{GAME}*")]
    assert len(keys) == 5
    assert {key_slot(key) for key in keys} == {key_slot(GAME.encode())}


async def test_scripts_access_only_the_keys_that_they_declare(own_redis: RedisServer, clock: FakeClock) -> None:
    """A user with rights on the declared keys only can load, commit, save drafts, and read due games."""
    admin = aredis.Redis.from_url(own_redis.url)
    keys = [f"~rummikub:{{{GAME}}}:{part}" for part in ("game", "requests", "events", "draft", "presence")]
    channels = [f"&rummikub:{{{GAME}}}:{channel}" for channel in ("changed", "seen")]
    rules = ["on", ">secret", *keys, "~rummikub:deadlines", *channels, "+@all"]
    await admin.execute_command("ACL", "SETUSER", "narrow", *rules)  # type: ignore[no-untyped-call]
    store = redis_store(own_redis.url.replace("unix://", "unix://narrow:secret@"), clock)
    records = await started_game(store)
    drawn = await stored(store, replace(drawing(records[-1]), request_key="request-1", memo=MEMO))
    assert (await store.games.load(GAME, "request-1")).memo == MEMO
    await store.presence.report(GAME, "server 1", {1: Sighting.OPEN})
    assert list(await store.presence.read(GAME)) == [1]
    assert await store.drafts.save(drawn, a_draft(drawn, 1)) == 1
    await store.deadlines.arm(GAME, START_MS - 1)
    assert await due(store) == [(GAME, START_MS - 1)]
    [claim] = await store.deadlines.claim(10)
    await store.deadlines.rearm(claim, None)
    assert await due(store) == []
    with pytest.raises(StoreUnavailable):  # the user has no rights on other games
        await store.games.load(OTHER_GAME)
    await store.close()
    await admin.aclose()


async def test_the_default_clock_is_the_redis_servers(empty_redis_url: str, raw: "aredis.Redis") -> None:
    store = redis_store(empty_redis_url)
    seconds, micros = await raw.time()
    loaded = await store.games.load(GAME)
    assert 0 <= loaded.now_ms - (seconds * 1000 + micros // 1000) < 10_000
    await store.deadlines.arm(GAME, loaded.now_ms - 1)
    await store.deadlines.arm(OTHER_GAME, loaded.now_ms + 60_000)
    assert [game_id for game_id, _ in await due(store)] == [GAME]
    await store.close()


# Unreachable Redis


@pytest.mark.slow
async def test_a_paused_redis_is_unavailable_within_two_seconds_and_recovers(
    own_redis: RedisServer, clock: FakeClock
) -> None:
    store = redis_store(own_redis.url, clock)
    records = await started_game(store)
    await started_game(store, OTHER_GAME)
    own_redis.pause()
    started = time.monotonic()
    answers = await asyncio.gather(
        store.games.load(GAME),
        store.games.commit(drawing(records[-1])),
        store.streams.entries(GAME, 1, 10),
        store.lists.page([GameState.LOBBY], "", 10),
        store.deadlines.claim(10),
        store.ping(),
        return_exceptions=True,
    )
    took = time.monotonic() - started
    own_redis.resume()
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 6
    assert 0.5 < took < 5, "one after the other, the six would take six seconds"
    for _ in range(10):  # no connection returns the reply to an earlier call
        for game_id in (GAME, OTHER_GAME):
            record = (await store.games.load(game_id)).record
            assert record
            assert record.game_id == game_id
    await store.close()


async def test_a_stopped_redis_is_unavailable_at_once_and_has_all_data_after_a_restart(
    own_redis: RedisServer, clock: FakeClock
) -> None:
    store = redis_store(own_redis.url, clock)
    records = await started_game(store)
    own_redis.stop()
    started = time.monotonic()
    for _ in range(20):
        with pytest.raises(StoreUnavailable):
            await store.games.load(GAME)
    assert time.monotonic() - started < 10, "after timeouts, the loads would take twenty seconds"
    own_redis.start()
    assert (await store.games.load(GAME)).record == records[-1]
    assert await store.games.commit(drawing(records[-1])) == Committed()
    await store.close()


@pytest.fixture
def primary() -> Iterator[RedisServer]:
    """Runs a Redis that replaces another one at its address."""
    with closing(RedisServer()) as server:
        server.start()
        yield server


@pytest.fixture
async def own_store(own_redis: RedisServer, clock: FakeClock) -> AsyncIterator[RedisStore]:
    """Returns a store on the test's own Redis."""
    store = redis_store(own_redis.url, clock)
    yield store
    await store.close()


async def becomes_a_replica(server: RedisServer) -> None:
    """Turns a Redis into a replica of an unreachable primary."""
    async with aredis.Redis.from_url(server.url) as admin:
        await admin.replicaof("127.0.0.1", "1")


@pytest.mark.parametrize("notices", ["commit", "ping"])
async def test_a_store_reconnects_to_the_new_primary_when_its_redis_has_become_a_replica(
    own_redis: RedisServer, own_store: RedisStore, primary: RedisServer, notices: str
) -> None:
    """The old primary keeps its connections open, and a failover by name or address need not close them."""
    record = await stored(own_store, creation())
    await asyncio.gather(*(own_store.ping() for _ in range(5)))
    await becomes_a_replica(own_redis)
    primary.socket.replace(own_redis.socket)
    with pytest.raises(StoreUnavailable):
        await (own_store.ping() if notices == "ping" else own_store.games.commit(joining(record, "Ada")))
    await asyncio.gather(*(own_store.ping() for _ in range(5)))
    assert (await own_store.games.load(GAME)).record is None
    await stored(own_store, creation())


async def test_watchers_are_notified_by_the_new_primary_after_a_failover(
    own_redis: RedisServer, own_store: RedisStore, primary: RedisServer
) -> None:
    """A replica without its primary publishes nothing and keeps the connection open."""
    async with own_store.streams.subscribe(GAME) as subscription:
        await asyncio.gather(own_store.ping(), caught_up(own_store, subscription))
        await becomes_a_replica(own_redis)
        primary.socket.replace(own_redis.socket)
        with pytest.raises(StoreUnavailable):
            await own_store.ping()
        await own_store.ping()
        await told(subscription)
        await caught_up(own_store, subscription)
        await stored(own_store, creation())
        await told(subscription)


async def test_a_late_reply_of_the_old_redis_does_not_drop_the_connection_to_the_new_one(
    own_redis: RedisServer, own_store: RedisStore, primary: RedisServer
) -> None:
    await asyncio.gather(own_store.ping(), own_store.games.load(GAME))
    await becomes_a_replica(own_redis)
    own_redis.pause()
    late = asyncio.create_task(own_store.ping())
    for _ in range(5):  # its commands are sent
        await asyncio.sleep(0)
    assert isinstance(own_store._nodes, OneRedis)  # noqa: SLF001 - a timely reply of the old Redis drops it like this
    connection = own_store._nodes._connection  # noqa: SLF001 - as above
    connection.drop(connection.current)
    primary.socket.replace(own_redis.socket)
    await stored(own_store, creation())
    primary.pause()
    under_way = asyncio.create_task(own_store.games.load(GAME))
    own_redis.resume()
    with pytest.raises(StoreUnavailable):
        await late
    primary.resume()
    assert (await under_way).record


@pytest.mark.parametrize("fails", ["full", "connection lost"])
async def test_a_game_that_cannot_move_to_its_new_list_stays_on_the_old_one(
    own_redis: RedisServer, clock: FakeClock, fails: str
) -> None:
    """Otherwise no list would have the game, and no repair would find it."""
    store = redis_store(own_redis.url, clock)
    *_, lobby, started = await started_game(store)
    await store.lists.index(lobby)
    with closing(redis.Redis.from_url(own_redis.url)) as admin:
        if fails == "full":
            admin.config_set("maxmemory", 1)
        else:
            admin.client_kill_filter(_type="normal", skipme=True)
        with suppress(StoreUnavailable):  # the lost connection may be detected before
            await store.lists.index(started)
        admin.config_set("maxmemory", 0)
    found = [record for state in GameState for record in (await store.lists.page([state], "", 10)).games]
    found += (await store.lists.page([started.state], "", 10)).games
    assert started in found
    await store.close()


async def test_scripts_are_sent_again_after_redis_lost_them(redis_backed: RedisStore, raw: "aredis.Redis") -> None:
    record = await stored(redis_backed, creation())
    await raw.script_flush()
    await stored(redis_backed, joining(record, "Ada"))


class FakeRedis:
    """Counts connections and scripts; if it greets, accepts a handshake; replies `answer` to a script and hangs up."""

    def __init__(self, *, greets: bool, answer: bytes = b"") -> None:
        self.connections = 0
        self.scripts = 0
        self._greets = greets
        self._answer = answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while self._greets:
            data = await reader.read(65536)
            if not data or b"EVALSHA" in data:
                self.scripts += data.count(b"EVALSHA")
                writer.write(self._answer)
                break
            writer.write(b"+OK\r\n" * max(1, data.count(b"\r\n*") + data.startswith(b"*")))
        writer.close()


@asynccontextmanager
async def fake_redis(*, greets: bool, answer: bytes = b"") -> AsyncIterator[tuple[FakeRedis, str]]:
    """Yields a fake Redis on a free port, with its URL."""
    fake = FakeRedis(greets=greets, answer=answer)
    server = await asyncio.start_server(fake.serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield fake, f"redis://127.0.0.1:{port}?protocol=2"


async def test_a_script_without_a_reply_is_not_retried(clock: FakeClock) -> None:
    async with fake_redis(greets=True) as (fake, url):
        store = redis_store(url, clock)
        with pytest.raises(StoreUnavailable):
            await store.games.commit(creation())
        await store.close()
    assert (fake.connections, fake.scripts) == (1, 1)


@pytest.mark.parametrize(
    ("answer", "lines"),
    [(b"-LOADING Redis is loading the dataset in memory\r\n", 0), (b"-OOM command not allowed\r\n", 1)],
    ids=["starting", "full"],
)
async def test_a_redis_that_is_loading_causes_no_warnings(clock: FakeClock, answer: bytes, lines: int) -> None:
    async with fake_redis(greets=True, answer=answer) as (_, url):
        store = redis_store(url, clock)
        with capture_logs() as logs, pytest.raises(StoreUnavailable):
            await store.games.load(GAME)
        await store.close()
    assert len([entry for entry in logs if entry["log_level"] == "warning"]) == lines


async def test_a_refused_connection_is_not_retried(clock: FakeClock) -> None:
    async with fake_redis(greets=False) as (fake, url):
        store = redis_store(url, clock)
        with pytest.raises(StoreUnavailable):
            await store.ping()
        await store.close()
    assert fake.connections == 1


async def test_the_call_after_a_lost_connection_reconnects(redis_backed: RedisStore, raw: "aredis.Redis") -> None:
    record = await stored(redis_backed, creation())
    for name in ("Ada", "Ben", "Cleo"):
        await raw.client_kill_filter(_type="normal", skipme=True)
        with suppress(StoreUnavailable):  # the connection may be found closed only by the next call
            await redis_backed.games.load(GAME)
        assert (await redis_backed.games.load(GAME)).record == record
        record = await stored(redis_backed, joining(record, name))


async def test_all_calls_share_one_connection(redis_backed: RedisStore, raw: "aredis.Redis") -> None:
    record = await stored(redis_backed, creation())
    before = len(await raw.client_list())
    loads = (redis_backed.games.load(GAME) for _ in range(100))
    *_, outcome = await asyncio.gather(*loads, redis_backed.games.commit(joining(record, "Ada")))
    assert outcome == Committed()
    assert len(await raw.client_list()) == before


async def test_concurrent_calls_share_one_connection_attempt(clock: FakeClock) -> None:
    async with fake_redis(greets=False) as (fake, url):
        store = redis_store(url, clock)
        calls = [asyncio.create_task(store.games.load(GAME)) for _ in range(10)]
        await asyncio.sleep(0)
        calls[0].cancel()  # the call that began the attempt
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        await store.close()
    assert fake.connections == 1
    assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError, *[StoreUnavailable] * 9]


async def test_closing_a_store_ends_waiting_calls(own_redis: RedisServer, clock: FakeClock) -> None:
    store = redis_store(own_redis.url, clock)
    await stored(store, creation())
    own_redis.pause()
    calls = [asyncio.create_task(store.games.load(GAME)) for _ in range(3)]
    await asyncio.sleep(0)
    await store.close()
    own_redis.resume()
    assert [type(outcome) for outcome in await asyncio.gather(*calls, return_exceptions=True)] == [StoreUnavailable] * 3


async def test_closing_a_store_during_a_connection_attempt_ends_waiting_calls(clock: FakeClock) -> None:
    async with silent_redis() as url:
        store = redis_store(url, clock)
        calls = [asyncio.create_task(store.games.load(GAME)) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await store.close()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 3


@asynccontextmanager
async def silent_redis() -> AsyncIterator[str]:
    """Yields the URL of a server that accepts connections and never replies."""

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    async with server:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def subscribed(raw: "aredis.Redis") -> set[str]:
    """Returns the channels with subscribers."""
    return {str(channel) for channel in await raw.pubsub_channels()}


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Polls a condition until it holds."""
    async with asyncio.timeout(10):
        while not await condition():  # noqa: ASYNC110 - the condition has no event
            await asyncio.sleep(0.01)


async def test_all_watchers_of_a_process_share_one_connection_and_unsubscribe(
    redis_backed: RedisStore, raw: "aredis.Redis"
) -> None:
    record = await stored(redis_backed, creation())
    async with AsyncExitStack() as watchers:
        ids = [GAME] * 50 + [f"{number:032x}" for number in range(50)]
        subscriptions = [await watchers.enter_async_context(redis_backed.streams.subscribe(game_id)) for game_id in ids]
        await caught_up(redis_backed, *subscriptions)
        assert len(await subscribed(raw)) == 51
        assert len([client for client in await raw.client_list() if int(client["sub"])]) == 1
        await stored(redis_backed, joining(record, "Ada"))
        await asyncio.gather(*map(told, subscriptions[:50]))
    await caught_up(redis_backed)

    async def none_is_left() -> bool:
        return not await subscribed(raw)

    await eventually(none_is_left)


@pytest.mark.slow
async def test_a_lost_subscription_connection_is_reestablished(redis_backed: RedisStore, raw: "aredis.Redis") -> None:
    record = await stored(redis_backed, creation())
    async with redis_backed.streams.subscribe(GAME) as subscription:
        for name in ("Ada", "Ben", "Cleo"):
            await caught_up(redis_backed, subscription)
            assert await raw.client_kill_filter(_type="pubsub") == 1
            record = await stored(redis_backed, joining(record, name))
            await told(subscription)  # the channel is subscribed again
    in_use = [client for client in await raw.client_list() if int(client["sub"])]
    assert len(in_use) <= 1


async def test_watchers_who_subscribe_while_the_connection_is_lost_are_notified(
    redis_backed: RedisStore, raw: "aredis.Redis"
) -> None:
    record = await stored(redis_backed, creation())
    async with redis_backed.streams.subscribe(OTHER_GAME):
        await caught_up(redis_backed)
        await raw.client_kill_filter(_type="pubsub")
        async with redis_backed.streams.subscribe(GAME) as subscription:
            await told(subscription)
            await caught_up(redis_backed, subscription)
            await stored(redis_backed, joining(record, "Ada"))
            await told(subscription)
            assert len([client for client in await raw.client_list() if int(client["sub"])]) == 1


@pytest.mark.slow
async def test_a_lost_subscription_connection_leaves_no_subscription_behind(
    redis_backed: RedisStore, raw: "aredis.Redis"
) -> None:
    """The loss and a new watcher may interleave in any order."""
    async with redis_backed.streams.subscribe(OTHER_GAME):
        for steps in range(12):
            await caught_up(redis_backed)
            before = len(await raw.client_list())
            await raw.client_kill_filter(_type="pubsub")
            for _ in range(steps):
                await asyncio.sleep(0)
            async with redis_backed.streams.subscribe(GAME) as subscription:
                await told(subscription)
                await caught_up(redis_backed, subscription)
                assert len(await raw.client_list()) == before


async def test_watchers_survive_a_redis_restart(own_redis: RedisServer, clock: FakeClock) -> None:
    store = redis_store(own_redis.url, clock)
    record = await stored(store, creation())
    async with store.streams.subscribe(GAME) as subscription:
        await caught_up(store, subscription)
        own_redis.stop()
        own_redis.start()
        await told(subscription)
        await caught_up(store, subscription)
        await stored(store, joining(record, "Ada"))
        await told(subscription)
    await store.close()


@pytest.mark.slow
async def test_watchers_detect_a_redis_that_stops_responding(own_redis: RedisServer, clock: FakeClock) -> None:
    """A dead connection that was not closed is dropped, and reestablished when Redis responds again."""
    store = redis_store(own_redis.url, clock)
    await stored(store, creation())
    admin = aredis.Redis.from_url(own_redis.url)

    async def listener() -> set[str]:
        return {client["id"] for client in await admin.client_list() if int(client["sub"])}

    async def feed_is_lost() -> bool:
        return any(entry["event"] == "feed" for entry in logs)

    with capture_logs() as logs:
        async with store.streams.subscribe(GAME) as subscription:
            await caught_up(store, subscription)
            before = await listener()
            own_redis.pause()
            await eventually(feed_is_lost)
            own_redis.resume()
            await told(subscription)
            assert await listener() != before
    await admin.aclose()
    await store.close()


async def test_a_cancelled_subscription_does_not_affect_others(redis_backed: RedisStore, raw: "aredis.Redis") -> None:
    record = await stored(redis_backed, creation())

    async def watch_for_a_moment(game_id: str) -> None:
        async with redis_backed.streams.subscribe(game_id) as subscription:
            await subscription.wait()
            await subscription.wait()

    async with redis_backed.streams.subscribe(GAME) as staying:
        await caught_up(redis_backed, staying)
        before = [client["id"] for client in await raw.client_list() if int(client["sub"])]
        rng = random.Random(3)
        for _ in range(30):
            moments = [asyncio.create_task(watch_for_a_moment(f"{number:032x}")) for number in range(4)]
            for _ in range(rng.randrange(8)):
                await asyncio.sleep(0)
            for moment in moments:
                moment.cancel()
            await asyncio.gather(*moments, return_exceptions=True)
        await caught_up(redis_backed, staying)
        assert [client["id"] for client in await raw.client_list() if int(client["sub"])] == before
        await stored(redis_backed, joining(record, "Ada"))
        await told(staying)


async def test_a_cancelled_call_leaves_no_reply_to_the_next(redis_backed: RedisStore) -> None:
    """A client that disconnects cancels its call at any point; replies must still match their calls."""
    ids = [f"{number:032x}" for number in range(8)]
    for game_id in ids:
        await stored(redis_backed, creation(game_id))
    rng = random.Random(1)
    for _ in range(30):
        calls = [asyncio.create_task(redis_backed.games.load(game_id)) for game_id in ids]
        for _ in range(rng.randrange(12)):
            await asyncio.sleep(0)
        for call in rng.sample(calls, 4):
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        for call, game_id in zip(calls, ids, strict=True):
            if not call.cancelled():
                record = call.result().record
                assert record
                assert record.game_id == game_id
    for game_id in ids:
        record = (await redis_backed.games.load(game_id)).record
        assert record
        assert record.game_id == game_id


async def test_a_cancelled_commit_is_stored_completely_or_not_at_all(redis_backed: RedisStore) -> None:
    seen = set()
    for number in range(40):
        game_id = f"{number:032x}"
        commit = replace(creation(game_id), request_key="request-1", memo=MEMO)
        call = asyncio.create_task(redis_backed.games.commit(commit))
        for _ in range(number):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        loaded = await redis_backed.games.load(game_id, "request-1")
        is_stored = loaded.record is not None
        seen.add(is_stored)
        assert (loaded.memo == MEMO) is is_stored
        assert await redis_backed.streams.bounds(game_id) == ((1, 1) if is_stored else (0, 0))
    assert seen == {True, False}


async def test_the_pool_never_exceeds_its_connection_limit(redis_backed: RedisStore, raw: "aredis.Redis") -> None:
    await stored(redis_backed, creation())
    loads = await asyncio.gather(*(redis_backed.games.load(GAME) for _ in range(500)))
    assert all(loaded.record for loaded in loads)
    clients = await raw.client_list()
    assert len(clients) <= 64 + 1


@pytest.mark.parametrize("share", [shared_connection, pooled])
async def test_a_store_works_with_and_without_redis_pys_private_attributes(
    own_redis: RedisServer, clock: FakeClock, share: Connect
) -> None:
    store = redis_store(own_redis.url, clock, share=share)
    assert (await store.games.load(GAME)).record is None
    record = await stored(store, creation())
    lost = asyncio.create_task(store.games.load(GAME))
    await asyncio.sleep(0)
    lost.cancel()
    loads = await asyncio.gather(*(store.games.load(GAME) for _ in range(100)))
    assert all(loaded.record == record for loaded in loads)
    await store.lists.index(record)
    assert await store.lists.page([record.state], "", 10) == ListPage((record,), (), "")
    assert [entry.revision for entry in await store.streams.entries(GAME, 1, 10)] == [1]
    assert await store.streams.bounds(GAME) == (1, 1)
    own_redis.stop()
    with pytest.raises(StoreUnavailable):
        await store.games.load(GAME)
    own_redis.start()
    await store.games.load(GAME)
    await store.close()


@pytest.mark.parametrize("share", [shared_connection, pooled])
async def test_a_refused_write_raises_one_exception_with_and_without_redis_pys_private_attributes(
    own_redis: RedisServer, share: Connect
) -> None:
    own_redis.execute("CONFIG", "SET", "min-replicas-to-write", 1)
    pool = aredis.BlockingConnectionPool.from_url(own_redis.url)
    connection = share(pool, 1.0)
    with pytest.raises(redis_connection.NoReplicasError, match="NOREPLICAS"):
        await connection.execute("SET", "key", 1)
    await connection.close()


def test_every_kind_of_url_is_supported() -> None:
    for url in ("redis://127.0.0.1:1/0", "rediss://127.0.0.1:1/0", "unix:///nowhere/redis.sock"):
        nodes = connect(url)
        assert isinstance(nodes, OneRedis)
        options = nodes._client.connection_pool.connection_kwargs  # noqa: SLF001 - no public attribute shows it
        assert options["socket_timeout"] == options["socket_connect_timeout"] == 1.0


# Observed operations


async def test_every_operation_is_observed_with_its_name_and_result(store: Store) -> None:
    observed: list[tuple[str, str]] = []

    def observe(operation: str, result: str, seconds: float) -> None:
        assert 0 <= seconds < 60
        observed.append((operation, result))

    store.reports.operation = observe
    record = await stored(store, creation())
    await store.games.load(GAME)
    await store.streams.entries(GAME, 1, 10)
    await store.streams.bounds(GAME)
    await store.secret()
    await store.check_room()
    await store.lists.index(record)
    await store.lists.page([GameState.LOBBY], "", 10)
    await store.lists.oldest_open(MATCH, 10)
    await store.names.point("code:X", GAME)
    await store.names.find("code:X")
    await store.lists.count()
    await store.deadlines.arm(GAME, START_MS)
    await store.deadlines.rearm(Due(GAME, START_MS, START_MS), None)
    await store.deadlines.claim(10)
    await store.ping()
    operations = [
        "commit",
        "load",
        "events",
        "bounds",
        "secret",
        "check_room",
        "index",
        "page",
        "oldest_open",
        "point_name",
        "find_name",
        "count",
        "arm",
        "rearm",
        "claim",
        "ping",
    ]
    assert observed == [(operation, "ok") for operation in operations]


async def test_a_failed_operation_is_observed_with_the_name_of_its_error(
    own_redis: RedisServer, clock: FakeClock
) -> None:
    observed: list[tuple[str, str]] = []
    store = redis_store(own_redis.url, clock)
    store.reports.operation = lambda name, result, _: observed.append((name, result))
    own_redis.stop()
    with pytest.raises(StoreUnavailable):
        await store.games.load(GAME)
    await store.close()
    assert observed == [("load", "StoreUnavailable")]


# Presence


async def seen_in(store: Store, clock: FakeClock) -> dict[int, tuple[int, bool]]:
    """Returns how many seconds ago each owner was seen, and whether a watch of theirs is open."""
    found = await store.presence.read(GAME)
    now_ms = clock.now_ms
    return {seat: ((now_ms - seen.last_ms) // 1000, seen.open_until_ms > now_ms) for seat, seen in found.items()}


async def test_presence_tells_when_owners_were_seen_and_who_watches(store: Store, clock: FakeClock) -> None:
    await started_game(store)
    assert await store.presence.read(GAME) == {}
    await store.presence.report(GAME, "server 1", {1: Sighting.OPEN, 2: Sighting.CALL})
    clock.advance(10)
    assert await seen_in(store, clock) == {1: (10, True), 2: (10, False)}
    await store.presence.report(GAME, "server 1", {1: Sighting.CALL})
    assert await seen_in(store, clock) == {1: (0, True), 2: (10, False)}
    await store.presence.report(GAME, "server 1", {1: Sighting.CLOSED})
    assert await seen_in(store, clock) == {1: (0, False), 2: (10, False)}


async def test_a_watch_counts_as_open_while_any_server_reports_it(store: Store, clock: FakeClock) -> None:
    await started_game(store)
    for server in ("server 1", "server 2"):
        await store.presence.report(GAME, server, {1: Sighting.OPEN})
    await store.presence.report(GAME, "server 1", {1: Sighting.CLOSED})
    assert await seen_in(store, clock) == {1: (0, True)}
    clock.advance(PRESENCE_MS / 1000 - 1)
    assert await seen_in(store, clock) == {1: (39, True)}
    clock.advance(1)  # the other server died
    assert await seen_in(store, clock) == {1: (40, False)}


@pytest.mark.slow
async def test_only_watches_that_open_or_close_are_notified(store: Store, clock: FakeClock) -> None:
    await started_game(store)

    async def is_notified(server: str, sighting: Sighting) -> bool:
        await store.presence.report(GAME, server, {1: sighting})
        try:
            await asyncio.wait_for(subscription.wait(), 0.3)
        except TimeoutError:
            return False
        return True

    async with store.presence.subscribe(GAME) as subscription, store.streams.subscribe(GAME) as changes:
        with suppress(TimeoutError):  # a subscription may begin with a notification
            await asyncio.wait_for(asyncio.gather(subscription.wait(), changes.wait()), 0.5)
        reports = [Sighting.CALL, Sighting.OPEN, Sighting.OPEN, Sighting.CALL, Sighting.CLOSED, Sighting.CLOSED]
        assert [await is_notified("server 1", sighting) for sighting in reports] == [
            False,
            True,
            False,
            False,
            True,
            False,
        ]
        assert await is_notified("server 1", Sighting.OPEN)
        clock.advance(PRESENCE_MS / 1000 + 1)
        assert await is_notified("server 1", Sighting.OPEN), "it had expired"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(changes.wait(), 0.1)


async def test_a_game_that_is_not_stored_has_no_presence(store: Store) -> None:
    await store.presence.report(GAME, "server 1", {1: Sighting.OPEN})
    assert await store.presence.read(GAME) == {}


async def test_the_presence_of_a_seat_is_dropped_when_it_is_vacated(store: Store, clock: FakeClock) -> None:
    *_, record = await started_game(store)
    for server in ("server 1", "server 2"):
        await store.presence.report(GAME, server, {1: Sighting.OPEN, 2: Sighting.OPEN})
    await stored(store, replace(drawing(record), vacated=1))
    assert await seen_in(store, clock) == {2: (0, True)}
    await store.presence.report(GAME, "server 1", {1: Sighting.CLOSED})
    assert await seen_in(store, clock) == {2: (0, True)}, "the former owner's watch has closed"


async def test_presence_expires_with_its_game(redis_backed: RedisStore, raw: "aredis.Redis") -> None:
    await started_game(redis_backed)
    await redis_backed.presence.report(GAME, "server 1", {1: Sighting.CALL})
    game, presence = [await raw.pttl(f"rummikub:{{{GAME}}}:{part}") for part in ("game", "presence")]
    assert 0 < presence <= game + 50


async def test_a_report_drops_the_watches_of_servers_that_died(
    redis_backed: RedisStore, raw: "aredis.Redis", clock: FakeClock
) -> None:
    await started_game(redis_backed)
    for number in range(5):
        await redis_backed.presence.report(GAME, f"server {number}", {1: Sighting.OPEN})
    clock.advance(PRESENCE_MS / 1000 + 1)
    await redis_backed.presence.report(GAME, "server 9", {1: Sighting.OPEN})
    assert sorted(await raw.hkeys(f"rummikub:{{{GAME}}}:presence")) == [b"1", b"1:server 9"]
