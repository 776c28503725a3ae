"""The feed of all changes, on each store: every stored change, in order within a game, and nothing else."""

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import count

import pytest
import redis

from engine.events import GameCreated, PlayerJoined
from engine.game import Game
from engine.replay import advance
from engine.ruleset import SABRA
from service.app.change_feed import MARGIN_MS, PAGE, ChangeFeed, Position, Told
from service.errors import HistoryUnavailable
from service.storage.base import (
    LOG_GRACE_MS,
    NO_ETAG,
    Commit,
    Committed,
    Conflict,
    GameStore,
    LogKind,
    Record,
    lineage,
    place_before,
)
from service.storage.redis import connection as redis_connection
from service.storage.redis.keys import keys_of, part_of
from service.storage.redis.store import RedisStore, connect
from service.storage.stored_events import encode_change
from support.harness import HISTORY, LIFETIMES, START_MS, FakeClock, memory_store, redis_store
from support.stores import ALL_STORES, running_store

LOG_MS = 60_000


UNSHARED = "redis without a shared connection"


@pytest.fixture(params=[*ALL_STORES, UNSHARED])
async def store(
    request: pytest.FixtureRequest, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[GameStore]:
    """Yields each kind of store with a change log."""
    monkeypatch.setattr(redis_connection, "CAN_SHARE", request.param != UNSHARED)
    kind = "redis" if request.param == UNSHARED else request.param
    async with running_store(request, clock, log_ms=LOG_MS, kind=kind) as store:
        yield store


def created(number: int) -> Commit:
    """Returns the creation of a game."""
    events = (GameCreated(SABRA),)
    return _commit(Record(f"{number:032x}", Game(SABRA), NO_ETAG, (), START_MS, START_MS), events)


def joined(before: Record, name: str) -> Commit:
    """Returns a change of a game by which a player joins."""
    return _commit(before, (PlayerJoined(len(before.game.players) + 1, name),))


def _commit(before: Record, events: tuple[GameCreated | PlayerJoined, ...]) -> Commit:
    game = advance(before.game if before.game.revision else None, events)
    nonce = repr(events).encode().ljust(16)[-16:]
    change = encode_change(game.revision, START_MS, nonce, events)
    return Commit(before.etag, replace(before, game=game, etag=lineage(before.etag, change)), change)


async def stored(store: GameStore, commit: Commit) -> Record:
    assert await store.commit(commit) == Committed()
    return commit.record


async def feed_at(store: GameStore, position: Position | None = None, *, from_oldest: bool = False) -> ChangeFeed:
    feed = ChangeFeed(store, position, from_oldest=from_oldest)
    await feed.start()
    return feed


def revisions(told: "list[Told] | tuple[Told, ...]") -> list[tuple[int, int]]:
    """Returns the game's number and the revision of each change."""
    return [(int(one.game_id, 16), one.change.revision) for one in told if one.change]


def beside(store: GameStore, number: int) -> int:
    """Returns the number of another game whose changes are in the same part of the log."""
    parts = range(store.log_parts)
    part = part_of([*map(str, parts)], f"{number:032x}")
    return next(other for other in count(number + 1) if part_of([*map(str, parts)], f"{other:032x}") == part)


async def read(feed: ChangeFeed) -> list[tuple[int, int]]:
    return revisions(list(await feed.read()))


async def test_every_change_is_told_once_and_in_order(store: GameStore) -> None:
    feed = await feed_at(store)
    first, second = await stored(store, created(1)), await stored(store, created(2))
    first = await stored(store, joined(first, "Ann"))
    await stored(store, joined(second, "Bob"))
    await stored(store, joined(first, "Cy"))
    told = await read(feed)
    assert sorted(told) == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]
    assert [change for change in told if change[0] == 1] == [(1, 1), (1, 2), (1, 3)]
    if store.log_parts == 1:
        assert told == [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3)]
    assert await read(feed) == []


async def test_an_update_has_the_change_and_the_game(store: GameStore) -> None:
    feed = await feed_at(store)
    game = await stored(store, created(1))
    game = await stored(store, joined(game, "Ann"))
    _, told = await feed.read()
    assert told.kind is LogKind.CHANGED
    assert told.record == game
    assert told.change
    assert (told.change.etag, told.change.events) == (game.etag, (PlayerJoined(1, "Ann"),))


async def test_a_feed_begins_now_or_with_the_oldest_change(store: GameStore, clock: FakeClock) -> None:
    await stored(store, created(1))
    clock.advance(1)
    feed = await feed_at(store)
    await stored(store, created(2))
    assert await read(feed) == [(2, 1)]
    assert sorted(await read(await feed_at(store, from_oldest=True))) == [(1, 1), (2, 1)]


async def test_two_readers_get_everything(store: GameStore) -> None:
    feeds = [await feed_at(store), await feed_at(store)]
    game = await stored(store, created(1))
    assert [await read(feed) for feed in feeds] == [[(1, 1)]] * 2
    await stored(store, joined(game, "Ann"))
    assert [await read(feed) for feed in feeds] == [[(1, 2)]] * 2


async def test_a_reader_resumes_after_any_update(store: GameStore) -> None:
    feed = await feed_at(store)
    game = await stored(store, created(1))
    for name in ("Ann", "Bob", "Cy"):
        game = await stored(store, joined(game, name))
    told = list(await feed.read())
    for place, one in enumerate(told, 1):
        assert revisions(list(await (await feed_at(store, one.position)).read())) == revisions(told[place:])


async def test_more_changes_than_a_page_are_told(store: GameStore) -> None:
    feed = await feed_at(store)
    for number in range(1, PAGE + 11):
        await stored(store, created(number))
    told = await read(feed) + await read(feed)
    assert sorted(told) == [(number, 1) for number in range(1, PAGE + 11)]


async def test_a_change_that_lost_against_another_is_not_told(store: GameStore) -> None:
    feed = await feed_at(store)
    game = await stored(store, created(1))
    late = joined(game, "Ann")
    await stored(store, joined(game, "Bob"))
    assert await store.commit(late) == Conflict()
    assert [one.change.events for one in await feed.read() if one.change] == [
        (GameCreated(SABRA),),
        (PlayerJoined(1, "Bob"),),
    ]
    assert await read(feed) == []


async def test_an_entry_whose_change_never_comes_holds_up_no_other_game(store: GameStore, clock: FakeClock) -> None:
    feed = await feed_at(store)
    game = await stored(store, created(1))
    expired = replace(joined(game, "Ann"), until_ms=START_MS - 1)
    assert await store.commit(expired) == Conflict()
    other = beside(store, 1)
    await stored(store, created(other))
    told = list(await feed.read())
    assert revisions(told) == [(1, 1), (other, 1)]
    again = await read(await feed_at(store, feed.position))
    assert again == [(other, 1)], "the open entry comes again, with all after it"
    clock.advance(LOG_GRACE_MS / 1000 + 0.001)
    assert await read(feed) == []
    assert await read(await feed_at(store, feed.position)) == []


async def test_a_change_that_comes_after_its_entry_was_read_is_told(store: GameStore) -> None:
    feed = await feed_at(store)
    game = await stored(store, created(1))
    change = joined(game, "Ann")
    assert await store.commit(replace(change, until_ms=START_MS - 1)) == Conflict()
    assert await read(feed) == [(1, 1)]
    await stored(store, change)
    after = await stored(store, joined(change.record, "Bob"))
    assert await read(feed) == [(1, 2), (1, 2), (1, 3)], "both entries name it"
    await stored(store, joined(after, "Cy"))
    assert await read(feed) == [(1, 4)]


async def test_an_idle_feed_moves_on(store: GameStore, clock: FakeClock) -> None:
    feed = await feed_at(store)
    await stored(store, created(1))
    await feed.read()
    clock.advance(2 * LOG_MS / 1000)
    with pytest.raises(HistoryUnavailable):
        await feed.read()
    feed = await feed_at(store)
    clock.advance(LOG_MS / 2000)
    await feed.read()
    assert feed.position == (place_before(clock.now_ms - MARGIN_MS),) * store.log_parts
    clock.advance(LOG_MS / 1500)
    await feed.read()
    await feed_at(store, feed.position)


async def test_a_position_that_is_too_old_is_refused(store: GameStore, clock: FakeClock) -> None:
    feed = await feed_at(store)
    game = await stored(store, created(1))
    await feed.read()
    position = feed.position
    clock.advance(LOG_MS / 1000 + 1)
    await stored(store, joined(game, "Ann"))
    for lost in (position, (*position, *position)):
        with pytest.raises(HistoryUnavailable) as refused:
            await feed_at(store, lost)
        assert "from_oldest" in refused.value.advice


async def test_a_deleted_game_is_told_and_gone(store: GameStore) -> None:
    feed = await feed_at(store)
    kept, deleted = await stored(store, created(1)), await stored(store, created(2))
    await store.index(kept)
    await store.index(deleted)
    await store.delete(deleted)
    assert {(one.game_id, one.kind) for one in await feed.read()} == {
        (kept.game_id, LogKind.CHANGED),
        (deleted.game_id, LogKind.DELETED),
    }
    assert (await store.load(deleted.game_id)).record is None
    assert await store.bounds(deleted.game_id) == (0, 0)
    listed, _ = await store.page(kept.state, "", 10)
    assert listed == (kept,)


async def test_a_store_without_a_log_says_so(clock: FakeClock) -> None:
    with pytest.raises(HistoryUnavailable) as refused:
        await feed_at(memory_store(clock))
    assert "RUMMIKUB_CHANGE_LOG_SECONDS" in refused.value.advice


async def test_old_entries_are_removed(store: GameStore, clock: FakeClock) -> None:
    for number in range(250):
        await stored(store, created(number))
    clock.advance(LOG_MS / 1000 + 1)
    await stored(store, created(250))
    assert 1 <= await store.log_length() <= 101 * store.log_parts, "Redis removes entries in blocks of a hundred"


async def test_a_log_that_no_server_writes_disappears(empty_redis_url: str, clock: FakeClock) -> None:
    store = redis_store(empty_redis_url, clock, log_ms=LOG_MS)
    await stored(store, created(1))
    await store.ping()
    with redis.Redis.from_url(empty_redis_url) as client:
        assert 0 < client.pttl("rummikub:changes") <= 2 * LOG_MS
    await store.close()


async def test_without_a_log_redis_has_none(empty_redis_url: str) -> None:
    store = redis_store(empty_redis_url)
    await stored(store, created(1))
    await store.ping()
    with redis.Redis.from_url(empty_redis_url) as client:
        assert not client.exists("rummikub:changes")
    await store.close()


async def test_an_entry_is_there_before_its_commit(empty_redis_url: str, clock: FakeClock) -> None:
    """Redis's own record of commands shows the order."""
    store = redis_store(empty_redis_url, clock, log_ms=LOG_MS)
    game = await stored(store, created(1))  # opens the connection and loads the script
    with redis.Redis.from_url(empty_redis_url) as client, client.monitor() as monitor:
        commands = monitor.listen()
        await stored(store, joined(game, "Ann"))
        seen = [next(commands) for _ in range(2)]
    assert [one["command"].split()[0] for one in seen] == ["XADD", "EVALSHA"]
    assert seen[0]["client_address"] == seen[1]["client_address"]
    await store.close()


async def test_a_game_that_cannot_be_read_holds_up_no_other(empty_redis_url: str, clock: FakeClock) -> None:
    store = redis_store(empty_redis_url, clock, log_ms=LOG_MS)
    feed = await feed_at(store)
    damaged = await stored(store, created(1))
    await stored(store, created(2))
    with redis.Redis.from_url(empty_redis_url) as client:
        stream = keys_of(damaged.game_id)[2]
        client.delete(stream)
        client.xadd(stream, {"change": b"damaged", "etag": damaged.etag}, "1-0")
    first, second = [one.change for one in await feed.read()]
    assert first
    assert (first.revision, first.etag, first.events) == (1, damaged.etag, ())
    assert second
    assert second.events
    await store.close()


async def test_a_commit_that_comes_too_late_is_refused(empty_redis_url: str, clock: FakeClock) -> None:
    """A reader has given up its entry, so it must not be stored."""
    store = redis_store(empty_redis_url, clock, log_ms=LOG_MS)
    game = await stored(store, created(1))
    slow = RedisStore(connect(empty_redis_url), LIFETIMES, HISTORY, LateClock(clock), LOG_MS)
    assert await slow.commit(joined(game, "Ann")) == Conflict()
    await store.close()
    await slow.close()


class LateClock:
    """A clock that jumps ahead after its second reading, which is that of an entry in the change log."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._readings = 0

    def __call__(self) -> int:
        self._readings += 1
        return self._clock() + (LOG_GRACE_MS + 1 if self._readings > 2 else 0)
