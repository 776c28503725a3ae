"""The feed of all changes, on each store: every stored change, in order within a game, and nothing else."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from itertools import count

import pytest
import redis

from engine.events import GameCreated, PlayerJoined
from engine.game import Game
from engine.melding.ruleset import SABRA
from engine.replay import advance
from service.errors import HistoryUnavailable, StoredFormatUnknown, StoreUnavailable
from service.model.change import NO_ETAG, Commit, Committed, Conflict, Loaded, StoredChange, lineage
from service.model.change_log import LOG_GRACE_MS, LOG_MARGIN_MS, place_before
from service.model.record import Record
from service.operator.archive.archived_game import ArchivedGame, collect
from service.operator.archive.eraser import ArchiveEraser
from service.operator.archive.sink import Sink
from service.operator.change_feed import MARGIN_MS, PAGE, Changed, ChangeFeed, Deleted, Expired, Position, Update
from service.storage.redis.connection import shared_connection
from service.storage.redis.keys import keys_of, part_of
from service.storage.redis.store import RedisStore, connect
from service.storage.store import Store
from service.storage.stored_events import encode_change
from support.archives import MemorySink, StoredGame, store_game
from support.delegating_store import DelegatingStore
from support.harness import HISTORY, LIFETIMES, START_MS, FakeClock, memory_store, pooled, redis_store
from support.stores import STORES_AND_CLUSTER, running_store

pytestmark = pytest.mark.slow

LOG_MS = 60_000
REMOVED_AT_ONCE = 100
"""Redis removes entries in blocks of this size."""


UNSHARED = "redis without a shared connection"


@pytest.fixture(params=[*STORES_AND_CLUSTER, UNSHARED])
async def store(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Store]:
    """Yields each kind of store with a change log."""
    kind, share = ("redis", pooled) if request.param == UNSHARED else (request.param, shared_connection)
    async with running_store(request, clock, log_ms=LOG_MS, kind=kind, share=share) as store:
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


async def stored(store: Store, commit: Commit) -> Record:
    assert await store.games.commit(commit) == Committed()
    return commit.record


async def feed_at(
    store: Store, position: Position | None = None, *, sink: Sink | None = None, from_oldest: bool = False
) -> ChangeFeed:
    feed = ChangeFeed(store, ArchiveEraser(sink) if sink else None, position, from_oldest=from_oldest)
    await feed.start()
    return feed


async def read_all(feed: ChangeFeed) -> list[Update]:
    """Reads on until there is nothing new."""
    found: list[Update] = []
    while updates := await feed.read():
        found += updates
    return found


def changed(updates: Sequence[Update]) -> list[Changed]:
    return [update for update in updates if isinstance(update, Changed)]


def revisions(updates: Sequence[Update]) -> list[tuple[int, int]]:
    """Returns the game's number and the revision of each change."""
    return [(int(update.game_id, 16), update.change.revision) for update in changed(updates)]


def expired(updates: Sequence[Update]) -> list[tuple[int, int]]:
    """Returns the game's number and the revision of each update about changes that have expired."""
    return [(int(update.game_id, 16), update.revision) for update in updates if isinstance(update, Expired)]


def beside(store: Store, number: int) -> int:
    """Returns the number of another game whose changes are in the same part of the log."""
    parts = range(store.log.parts)
    part = part_of([*map(str, parts)], f"{number:032x}")
    return next(other for other in count(number + 1) if part_of([*map(str, parts)], f"{other:032x}") == part)


async def read(feed: ChangeFeed) -> list[tuple[int, int]]:
    return revisions(await feed.read())


async def test_every_change_is_told_once_and_in_order(store: Store) -> None:
    feed = await feed_at(store)
    first, second = await stored(store, created(1)), await stored(store, created(2))
    first = await stored(store, joined(first, "Ann"))
    await stored(store, joined(second, "Bob"))
    await stored(store, joined(first, "Cy"))
    told = await read(feed)
    assert sorted(told) == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]
    assert [change for change in told if change[0] == 1] == [(1, 1), (1, 2), (1, 3)]
    if store.log.parts == 1:
        assert told == [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3)]
    assert await read(feed) == []


async def test_an_update_has_the_change_and_the_game(store: Store) -> None:
    feed = await feed_at(store)
    game = await stored(store, created(1))
    game = await stored(store, joined(game, "Ann"))
    _, update = await feed.read()
    assert isinstance(update, Changed)
    assert update.record == game
    assert (update.change.etag, update.change.events) == (game.etag, (PlayerJoined(1, "Ann"),))


async def test_a_feed_begins_now_or_with_the_oldest_change(store: Store, clock: FakeClock) -> None:
    await stored(store, created(1))
    clock.advance(1)
    feed = await feed_at(store)
    await stored(store, created(2))
    assert await read(feed) == [(2, 1)]
    assert sorted(await read(await feed_at(store, from_oldest=True))) == [(1, 1), (2, 1)]


async def test_two_readers_get_everything(store: Store) -> None:
    feeds = [await feed_at(store), await feed_at(store)]
    game = await stored(store, created(1))
    assert [await read(feed) for feed in feeds] == [[(1, 1)]] * 2
    await stored(store, joined(game, "Ann"))
    assert [await read(feed) for feed in feeds] == [[(1, 2)]] * 2


async def test_a_reader_resumes_after_any_update(store: Store) -> None:
    feed = await feed_at(store)
    game = await stored(store, created(1))
    for name in ("Ann", "Bob", "Cy"):
        game = await stored(store, joined(game, name))
    updates = await feed.read()
    for place, update in enumerate(updates, 1):
        assert await read(await feed_at(store, update.position)) == revisions(updates[place:])


async def test_more_changes_than_a_page_are_told(store: Store) -> None:
    feed = await feed_at(store)
    for number in range(1, PAGE + 11):
        await stored(store, created(number))
    told = await read(feed) + await read(feed)
    assert sorted(told) == [(number, 1) for number in range(1, PAGE + 11)]


async def test_a_change_that_lost_against_another_is_not_told(store: Store) -> None:
    feed = await feed_at(store)
    game = await stored(store, created(1))
    late = joined(game, "Ann")
    await stored(store, joined(game, "Bob"))
    assert await store.games.commit(late) == Conflict()
    assert [update.change.events for update in changed(await feed.read())] == [
        (GameCreated(SABRA),),
        (PlayerJoined(1, "Bob"),),
    ]
    assert await read(feed) == []


async def test_an_entry_whose_change_never_comes_holds_up_no_other_game(store: Store, clock: FakeClock) -> None:
    feed = await feed_at(store)
    game = await stored(store, created(1))
    assert await store.games.commit(replace(joined(game, "Ann"), until_ms=START_MS - 1)) == Conflict()
    other = beside(store, 1)
    await stored(store, created(other))
    assert await read(feed) == [(1, 1), (other, 1)]
    again = await read(await feed_at(store, feed.position))
    assert again == [(other, 1)], "the open entry comes again, with all after it"
    clock.advance(LOG_GRACE_MS / 1000 + 0.001)
    assert await read(feed) == []
    again = await read(await feed_at(store, feed.position))
    assert again == [(other, 1)], "the game may be on a server with another clock"
    clock.advance(LOG_GRACE_MS / 1000)
    assert await read(feed) == []
    assert await read(await feed_at(store, feed.position)) == []


async def test_a_change_that_comes_after_its_entry_was_read_is_told(store: Store) -> None:
    feed = await feed_at(store)
    game = await stored(store, created(1))
    change = joined(game, "Ann")
    assert await store.games.commit(replace(change, until_ms=START_MS - 1)) == Conflict()
    assert await read(feed) == [(1, 1)]
    await stored(store, change)
    after = await stored(store, joined(change.record, "Bob"))
    assert await read(feed) == [(1, 2), (1, 2), (1, 3)], "both entries name it"
    await stored(store, joined(after, "Cy"))
    assert await read(feed) == [(1, 4)]


async def test_an_idle_feed_moves_on(store: Store, clock: FakeClock) -> None:
    feed = await feed_at(store)
    await stored(store, created(1))
    await feed.read()
    for _ in range(4):
        clock.advance(0.4 * LOG_MS / 1000)
        assert await feed.read() == []
        await feed_at(store, feed.position)
    assert feed.position == (place_before(clock.now_ms - LOG_MS // 2),) * store.log.parts


async def test_an_idle_feed_misses_no_change_after_a_failover_to_an_earlier_clock(clock: FakeClock) -> None:
    store = memory_store(clock, log_ms=10 * MARGIN_MS)
    feed = await feed_at(store)
    clock.advance(2 * MARGIN_MS / 1000)
    assert await feed.read() == []
    clock.advance(-0.9 * MARGIN_MS / 1000)
    await stored(store, created(1))
    assert await read(feed) == [(1, 1)]


async def test_a_reader_of_an_empty_log_may_have_missed_changes(store: Store, clock: FakeClock) -> None:
    feed = await feed_at(store)
    clock.advance(LOG_MS / 1000 + 1)
    with pytest.raises(HistoryUnavailable):
        await feed.read()


async def test_old_changes_are_read_while_the_log_has_them(store: Store, clock: FakeClock) -> None:
    """A quiet log has entries that are older than log_ms, because only writes remove them."""
    for number in range(1, PAGE + 51):
        await stored(store, created(number))
    clock.advance(2 * LOG_MS / 1000)
    feed = await feed_at(store, from_oldest=True)
    updates = await feed.read()
    last = updates[-1]
    updates = [*updates, *(await feed.read())]
    assert sorted(revisions(updates)) == [(number, 1) for number in range(1, PAGE + 51)]
    following = updates.index(last) + 1
    assert (await read(await feed_at(store, last.position)))[: PAGE // 2] == revisions(updates[following:])[: PAGE // 2]


async def test_a_position_that_is_too_old_is_refused(store: Store, clock: FakeClock) -> None:
    feed = await feed_at(store)
    numbers = [1]
    while len(numbers) <= REMOVED_AT_ONCE:
        numbers.append(beside(store, numbers[-1]))
    await stored(store, created(1))
    position = (await feed.read())[0].position
    games = [await stored(store, created(number)) for number in numbers[1:]]
    clock.advance(LOG_MS / 1000 + 1)
    await stored(store, joined(games[0], "Ann"))
    for lost in (position, (*position, *position)):
        with pytest.raises(HistoryUnavailable) as refused:
            await feed_at(store, lost)
        assert "from_oldest" in refused.value.message


async def test_a_deleted_game_is_told_and_gone(store: Store) -> None:
    feed = await feed_at(store)
    kept, deleted = await stored(store, created(1)), await stored(store, created(2))
    await store.lists.index(kept)
    await store.lists.index(deleted)
    await store.games.delete(deleted.game_id, deleted)
    assert {(update.game_id, type(update)) for update in await feed.read()} == {
        (kept.game_id, Changed),
        (deleted.game_id, Deleted),
    }
    assert (await store.games.load(deleted.game_id)).record is None
    assert await store.streams.bounds(deleted.game_id) == (0, 0)
    assert (await store.lists.page([kept.state], "", 10)).games == (kept,)


# Changes that the store does not have


class Losing(DelegatingStore):
    """A store whose games can expire at once."""

    lost: frozenset[str] = frozenset()

    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        loaded = await self._store.games.load(game_id, request_key)
        return replace(loaded, record=None) if game_id in self.lost else loaded

    async def stored_changes(self, game_id: str, first_revision: int, limit: int) -> tuple[StoredChange, ...]:
        return () if game_id in self.lost else await self._store.streams.stored_changes(game_id, first_revision, limit)


async def finished(store: Store, sink: MemorySink | None = None) -> StoredGame:
    """Returns a random game that has ended, in the archive too if there is one."""
    game = await store_game(store)
    if sink:
        await sink.write(await collect(store, game.record))
    return game


async def test_changes_of_an_expired_game_are_read_from_the_archive(store: Store) -> None:
    losing, sink = Losing(store), MemorySink()
    feed, later = await feed_at(losing, sink=sink), await feed_at(losing, sink=sink)
    game = await finished(store, sink)
    before = await read_all(feed)
    assert len(before) == game.record.game.revision
    losing.lost = frozenset({game.game_id})
    assert await read_all(later) == before


async def test_of_changes_that_are_nowhere_an_update_names_the_last(store: Store, clock: FakeClock) -> None:
    losing, start = Losing(store), (await feed_at(store)).position
    game, other = await finished(store), await stored(store, created(1))
    clock.advance(LOG_MARGIN_MS / 1000 + 0.001)
    losing.lost = frozenset({game.game_id})
    for sink in (None, MemorySink()):
        updates = await read_all(await feed_at(losing, start, sink=sink))
        assert expired(updates)[-1] == (int(game.game_id, 16), game.record.game.revision)
        assert len(expired(updates)) == 2, "one for each page"
        assert [update.record for update in changed(updates)] == [other]


async def test_changes_of_a_game_that_was_deleted_do_not_expire(store: Store) -> None:
    feed = await feed_at(store, sink=MemorySink())
    game = await stored(store, created(1))
    game = await stored(store, joined(game, "Ann"))
    await store.games.delete(game.game_id, game)
    assert [type(update) for update in await feed.read()] == [Deleted]


async def test_a_creation_that_failed_expires_when_it_can_no_longer_come(store: Store, clock: FakeClock) -> None:
    feed = await feed_at(store)
    assert await store.games.commit(replace(created(1), until_ms=START_MS - 1)) == Conflict()
    clock.advance(LOG_MARGIN_MS / 1000)
    assert await feed.read() == []
    clock.advance(0.001)
    assert expired(await feed.read()) == [(1, 1)]
    assert await feed.read() == []


async def test_changes_that_a_long_game_no_longer_has_expire(clock: FakeClock) -> None:
    store = memory_store(clock, history=2, log_ms=LOG_MS)
    feed = await feed_at(store)
    game = await stored(store, created(1))
    for name in ("Ann", "Bob", "Cy"):
        game = await stored(store, joined(game, name))
    updates = await feed.read()
    assert [*expired(updates), *revisions(updates)] == [(1, 2), (1, 3), (1, 4)]


async def test_an_archive_that_is_down_loses_no_change(store: Store) -> None:
    losing, sink = Losing(store), MemorySink()
    feed = await feed_at(losing, sink=sink)
    game = await finished(store, sink)
    losing.lost, sink.is_down = frozenset({game.game_id}), True
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await feed.read()
    sink.is_down = False
    assert len(changed(await read_all(feed))) == game.record.game.revision


async def test_an_archived_game_of_another_version_is_sent_without_events(store: Store) -> None:
    class Newer(MemorySink):
        async def read(self, _game_id: str) -> ArchivedGame | None:
            raise StoredFormatUnknown

    losing = Losing(store)
    feed = await feed_at(losing, sink=Newer())
    game = await finished(store)
    losing.lost = frozenset({game.game_id})
    updates = changed(await read_all(feed))
    assert [update.change.etag for update in updates] == [record.etag for record in game.records]
    assert {(update.record, update.change.events) for update in updates} == {(None, ())}


async def test_an_archived_game_whose_player_was_forgotten_has_its_new_changes(store: Store) -> None:
    losing, sink = Losing(store), MemorySink()
    feed = await feed_at(losing, sink=sink)
    game = await finished(store, sink)
    [archived] = sink.written
    sink.written = [replace(archived, etags=tuple(f"new {etag}" for etag in archived.etags))]
    losing.lost = frozenset({game.game_id})
    assert [update.change.etag for update in changed(await read_all(feed))] == list(sink.written[0].etags)


async def test_a_change_that_was_never_stored_is_not_sent_if_the_stored_one_cannot_be_read(store: Store) -> None:
    class Newer(DelegatingStore):
        """A store with changes of a newer version."""

        async def stored_changes(self, game_id: str, first_revision: int, limit: int) -> tuple[StoredChange, ...]:
            found = await self._store.streams.stored_changes(game_id, first_revision, limit)
            return tuple(replace(change, change=b"?") for change in found)

    feed = await feed_at(Newer(store))
    game = await stored(store, created(1))
    after = await stored(store, joined(game, "Bob"))
    assert await store.games.commit(joined(game, "Ann")) == Conflict()
    updates = changed(await feed.read())
    assert [update.change.etag for update in updates] == [game.etag, after.etag]
    assert all(update.change.events == () for update in updates)


# The log in Redis


async def test_a_store_without_a_log_says_so(clock: FakeClock) -> None:
    with pytest.raises(HistoryUnavailable) as refused:
        await feed_at(memory_store(clock))
    assert "RUMMIKUB_CHANGE_LOG_SECONDS" in refused.value.message


async def test_old_entries_are_removed(store: Store, clock: FakeClock) -> None:
    for number in range(250):
        await stored(store, created(number))
    clock.advance(LOG_MS / 1000 + 1)
    await stored(store, created(250))
    assert 1 <= await store.log.length() <= (REMOVED_AT_ONCE + 1) * store.log.parts


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
    first, second = [update.change for update in changed(await feed.read())]
    assert (first.revision, first.etag, first.events) == (1, damaged.etag, ())
    assert second.events
    await store.close()


async def test_a_commit_that_comes_too_late_is_refused(empty_redis_url: str, clock: FakeClock) -> None:
    """A reader has given up its entry, so it must not be stored."""
    store = redis_store(empty_redis_url, clock, log_ms=LOG_MS)
    game = await stored(store, created(1))
    slow = RedisStore(connect(empty_redis_url), LIFETIMES, HISTORY, LateClock(clock), LOG_MS)
    assert await slow.games.commit(joined(game, "Ann")) == Conflict()
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
