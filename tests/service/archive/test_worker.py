"""The worker of the archive: each finished game at least once, over failing archives and servers that die anywhere."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

import grpc.aio
import pytest
import redis.asyncio as aredis
from structlog.testing import capture_logs

from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import record_service_pb2 as rs
from rummikub.v1 import turn_service_pb2 as ts
from service.errors import StoredFormatUnknown, StoreUnavailable
from service.metrics.metrics import MergedMetrics, Metrics, metrics_registry
from service.metrics.shared_counters import SharedCounters
from service.model.change import NO_ETAG, Commit, Committed, Conflict, Loaded, Outcome, StoredChange, lineage
from service.model.outbox import OUTBOX_MARGIN_MS, OUTBOX_VALID_MS, OutboxEntry
from service.model.record import Lifetimes
from service.operator.archive.archived_game import ArchivedGame, collect
from service.operator.archive.sink import Sink, WriteResult
from service.operator.archive.worker import BATCH, CLAIM_MS, ArchiveWorker, Result
from service.storage.redis.keys import keys_of
from service.storage.redis.store import RedisStore, connect
from service.storage.store import Store
from service.storage.stored_events import decode_entry, encode_change
from support.archives import MemorySink, StoredGame, etag_of, store_game
from support.delegating_store import DelegatingStore, MortalStore
from support.harness import (
    HISTORY,
    START_MS,
    Client,
    FakeClock,
    GameAtHand,
    memory_store,
    new_id,
    running_server,
    server_settings,
)
from support.stores import STORES_AND_CLUSTER, running_store

pytestmark = pytest.mark.slow

KEPT_SECONDS = 90
MANUAL = server_settings(sweep_seconds=3600)


@pytest.fixture(params=STORES_AND_CLUSTER)
async def store(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Store]:
    """Yields each kind of store, empty, on the clock."""
    async with running_store(request, clock) as store:
        yield store


class Eager(DelegatingStore):
    """A store whose claims end at once, so that a test need not wait for them.

    A claim from the parts of a cluster takes several steps. So it may have an entry twice.
    """

    claims_last = False

    async def claim_from_outbox(self, limit: int, claim_ms: int) -> Sequence[OutboxEntry]:
        assert claim_ms == CLAIM_MS
        found = await self._store.outbox.claim(limit, claim_ms if self.claims_last else 0)
        return list(dict.fromkeys(found))


def worker_of(
    store: Store, sink: Sink, metrics: Metrics | None = None, clock: Callable[[], float] = time.monotonic
) -> ArchiveWorker:
    return ArchiveWorker(Eager(store), sink, KEPT_SECONDS, metrics or Metrics(), asyncio.Event(), clock)


def counts(metrics: Metrics) -> dict[str, float]:
    """Returns the counters of archived games by result."""
    return {
        sample.labels["result"]: sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "rummikub_archived_games_total"
    }


def backlog(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("rummikub_archive_backlog")


async def resign(game: GameAtHand, request_id: str = "") -> game_pb2.Game:
    """Ends a game of two."""
    request = ts.ResignGameRequest(game_id=game.game_id, request_id=request_id or new_id())
    return (await game.client.turns.ResignGame(request, metadata=game.as_seat(1))).game


async def exported(client: Client, game_id: str) -> str:
    request = rs.ExportGameRequest(game_id=game_id, form=rs.RECORD_FORM_TEXT)
    return (await client.records.ExportGame(request)).text


# From the outbox to the archive


async def test_a_finished_game_is_archived_and_acknowledged(store: Store) -> None:
    game, sink, metrics = await store_game(store), MemorySink(), Metrics()
    await store.outbox.append(game.game_id)
    assert await worker_of(store, sink, metrics).archive_batch() == [Result.ARCHIVED]
    assert [written.record for written in sink.written] == [game.record]
    assert await store.outbox.size() == 0
    assert await worker_of(store, sink, metrics).archive_batch() == []
    assert counts(metrics) == {"archived": 1}


async def test_an_entry_of_a_game_that_goes_on_is_dropped_after_its_commit_cannot_come(
    store: Store, clock: FakeClock
) -> None:
    game, sink, metrics = await store_game(store, until=30), MemorySink(), Metrics()
    await store.outbox.append(game.game_id)
    await store.outbox.append("0" * 32)  # expired
    worker = worker_of(store, sink, metrics)
    clock.advance(OUTBOX_MARGIN_MS / 1000)
    assert await worker.archive_batch() == [None] * 2
    assert await store.outbox.size() == 2
    clock.advance(0.001)
    assert await worker.archive_batch() == [Result.NOT_ENDED] * 2
    assert (await store.outbox.size(), sink.written) == (0, [])
    assert counts(metrics) == {"not_ended": 2}


async def test_a_failed_write_leaves_the_entry_and_does_not_stop_others(store: Store) -> None:
    class Picky(MemorySink):
        async def write(self, game: ArchivedGame) -> WriteResult:
            if game.record == bad.record and self.is_down:
                raise ValueError("\x00")  # a defect
            self.written.append(game)
            return WriteResult.WRITTEN

    bad, good, sink, metrics = await store_game(store), await store_game(store, seed=47), Picky(), Metrics()
    sink.is_down = True
    for game in (bad, good):
        await store.outbox.append(game.game_id)
    seconds = 0.0
    worker = worker_of(store, sink, metrics, clock=lambda: seconds)
    assert set(await worker.archive_batch()) == {Result.FAILED, Result.ARCHIVED}
    seconds += CLAIM_MS / 1000
    assert await worker.archive_batch() == [Result.FAILED]
    sink.is_down = False
    seconds += 2 * CLAIM_MS / 1000
    assert await worker.archive_batch() == [Result.ARCHIVED]
    assert [game.record for game in sink.written] == [good.record, bad.record]
    assert counts(metrics) == {"archived": 2, "failed": 2}


async def test_a_damaged_game_stays_in_the_outbox_and_is_reported() -> None:
    store, sink, metrics = memory_store(), MemorySink(), Metrics()
    game = await store_game(store)
    await store.outbox.append(game.game_id)
    store.memory.games[game.game_id].stream.pop(7)
    with capture_logs() as logs:
        assert await worker_of(store, sink, metrics).archive_batch() == [Result.DAMAGED]
    assert [(log["log_level"], log["game_id"]) for log in logs] == [("error", game.game_id)]
    assert (await store.outbox.size(), sink.written, counts(metrics)) == (1, [], {"damaged": 1})


async def test_a_damaged_game_is_logged_once_and_looked_at_ever_less(store: Store) -> None:
    class Damaged(DelegatingStore):
        reads = 0

        async def stored_changes(self, game_id: str, first_revision: int, limit: int) -> tuple[StoredChange, ...]:
            self.reads += 1
            found = await self._store.streams.stored_changes(game_id, first_revision, limit)
            return tuple(change for change in found if change.revision != 7)

    seconds, damaged, metrics = 0.0, Damaged(store), Metrics()
    await store.outbox.append((await store_game(store)).game_id)
    worker = worker_of(damaged, MemorySink(), metrics, clock=lambda: seconds)
    tried: list[float] = []
    with capture_logs() as logs:
        while seconds < 12_000:
            reads = damaged.reads
            await worker.archive_batch()
            tried += [seconds] if damaged.reads > reads else []
            seconds += CLAIM_MS / 1000
    assert [log["log_level"] for log in logs] == ["error"]
    assert tried == [0, 10, 30, 70, 150, 310, 630, 1270, 2550, 4350, 6150, 7950, 9750, 11550]
    assert counts(metrics) == {"damaged": len(tried)}


@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "rewritten"])
async def test_a_game_that_is_removed_or_rewritten_while_it_is_read_is_not_damaged(
    store: Store, clock: FakeClock, *, is_deleted: bool
) -> None:
    class Racing(DelegatingStore):
        """A store in which the operator changes the game before the worker reads its changes."""

        is_changed = False

        async def stored_changes(self, game_id: str, first_revision: int, limit: int) -> tuple[StoredChange, ...]:
            if not self.is_changed:
                self.is_changed = True
                if is_deleted:
                    await self._store.games.delete(game_id, game.record)
                else:
                    last = decode_entry(game.changes[-1], game.record.etag)
                    change = encode_change(last.revision, last.time_ms, bytes(16), last.events)
                    etag = lineage(game.records[-2].etag, change)
                    etags = [*(record.etag for record in game.records[:-1]), etag]
                    stream = list(zip((*game.changes[:-1], change), etags, strict=True))
                    await self._store.games.rewrite(game.record.etag, replace(game.record, etag=etag), stream)
            return await self._store.streams.stored_changes(game_id, first_revision, limit)

    game = await store_game(store)
    await store.outbox.append(game.game_id)
    worker = worker_of(Racing(store), MemorySink())
    with capture_logs() as logs:
        await worker.archive_batch()
        clock.advance(OUTBOX_MARGIN_MS / 1000 + 1)
        await worker.archive_batch()
    assert (logs, await store.outbox.size()) == ([], 0)


async def test_a_game_whose_id_another_archived_game_has_is_reported_and_the_first_one_stays(store: Store) -> None:
    first, sink, metrics = await store_game(memory_store()), MemorySink(), Metrics()
    archived = await collect(store, (await store_game(store)).record)
    sink.written.append(replace(archived, record=replace(archived.record, created_ms=START_MS - 1)))
    await store.outbox.append(first.game_id)
    worker = worker_of(store, sink, metrics)
    with capture_logs() as logs:
        assert await worker.archive_batch() == [Result.ID_TAKEN]
        assert await worker.archive_batch() == []
    assert [(log["log_level"], log["game_id"]) for log in logs] == [("error", first.game_id)]
    assert [game.record.created_ms for game in sink.written] == [START_MS - 1]
    assert counts(metrics) == {"id_taken": 1}


async def test_a_game_whose_last_change_the_store_has_lost_is_archived_already(store: Store) -> None:
    """After a failover; the archive keeps the later revision."""
    source, sink = memory_store(), MemorySink()
    whole = await store_game(source, seed=REMATCH)
    await sink.write(await collect(source, whole.record))
    for commit in commits_of(whole)[:-1]:
        await store.games.commit(commit)
    await store.outbox.append(whole.game_id)
    assert await worker_of(store, sink).archive_batch() == [Result.ARCHIVED]
    assert [archived.record for archived in sink.written] == [whole.record]


async def test_a_write_that_takes_too_long_fails() -> None:
    class Stuck(MemorySink):
        async def write(self, _game: ArchivedGame) -> WriteResult:
            await asyncio.Event().wait()
            return WriteResult.WRITTEN

    store = memory_store()
    await store.outbox.append((await store_game(store)).game_id)
    worker = worker_of(store, Stuck())
    worker.write_seconds = 0.01
    assert await worker.archive_batch() == [Result.FAILED]
    assert await store.outbox.size() == 1


async def test_an_archived_game_is_kept_for_the_set_time_only(empty_redis_url: str, clock: FakeClock) -> None:
    """Until it is archived, a finished game is kept longer than an aborted one."""
    raw = aredis.Redis.from_url(empty_redis_url)
    store = RedisStore(connect(empty_redis_url), Lifetimes(1_800, 3_600, 600, unarchived=7_200), HISTORY, clock)
    game = await store_game(store)
    await store.outbox.append(game.game_id)
    snapshot, _, events, *_ = keys_of(game.game_id)
    assert 7_100_000 < await raw.pttl(snapshot) <= 7_200_000
    await worker_of(store, MemorySink()).archive_batch()
    for key in (snapshot, events):
        assert 0 < await raw.pttl(key) <= KEPT_SECONDS * 1000
    await raw.aclose()
    await store.close()


async def test_a_game_that_changes_while_it_is_written_is_written_again(store: Store) -> None:
    """The last change of this game announces a rematch, which another server stores during the first write."""

    class Slow(MemorySink):
        async def write(self, game: ArchivedGame) -> WriteResult:
            result = await super().write(game)
            if len(self.written) == 1:
                assert await store.games.commit(commits[-1]) == Committed()
            return result

    whole = await store_game(memory_store(), seed=REMATCH)
    commits = commits_of(whole)
    for commit in commits[:-1]:
        await store.games.commit(commit)
    sink = Slow()
    await store.outbox.append(whole.game_id)
    assert await worker_of(store, sink).archive_batch() == [Result.ARCHIVED]
    assert [game.record for game in sink.written] == list(whole.records[-2:])


def commits_of(game: StoredGame) -> list[Commit]:
    """Returns the commits of a game."""
    previous = (NO_ETAG, *(record.etag for record in game.records))
    return [Commit(*one) for one in zip(previous, game.records, game.changes, strict=False)]


REMATCH = 41
"""The seed of a random game that is finished and has a rematch."""


async def test_the_seed_has_a_rematch() -> None:
    whole = await store_game(memory_store(), seed=REMATCH)
    assert whole.record.game.rematch_game_id
    assert whole.records[-2].state is whole.record.state


# Paced


async def test_the_worker_waits_longer_while_the_archive_is_down_and_reports_it_once() -> None:
    store, sink, metrics = memory_store(), MemorySink(), Metrics()
    games = [await store_game(store, seed=seed) for seed in (40, 47)]
    for game in games:
        await store.outbox.append(game.game_id)
    worker = worker_of(store, sink, metrics)
    sink.is_down = True
    with capture_logs() as logs:
        pauses = [await worker.paced_round() for _ in range(7)]
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert backlog(metrics) == 2
    assert [log["error"] for log in logs if log["log_level"] == "warning"] == ["the sink is down"]
    sink.is_down = False
    with capture_logs() as logs:
        assert await worker.paced_round() == 1.0
    assert [log["event"] for log in logs] == ["archive answers again"]
    assert backlog(metrics) == 0
    assert await worker.paced_round() == 1.0
    assert counts(metrics) == {"archived": 2, "failed": 14}


async def test_the_worker_does_not_pause_while_more_waits() -> None:
    store, sink = memory_store(), MemorySink()
    game = await store_game(store)
    for _ in range(BATCH + 1):
        await store.outbox.append(game.game_id)
    worker = worker_of(store, sink)
    assert [await worker.paced_round() for _ in range(2)] == [0.0, 1.0]
    assert len(sink.written) == BATCH + 1


class UnreadableGames(DelegatingStore):
    """A store in which all games but one cannot be read."""

    readable = ""

    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        if game_id != self.readable:
            raise StoredFormatUnknown
        return await self._store.games.load(game_id, request_key)


async def test_a_batch_of_unreadable_games_does_not_keep_later_games_from_the_archive(store: Store) -> None:
    unreadable, sink = UnreadableGames(store), MemorySink()
    for number in range(BATCH):
        await store.outbox.append(f"{number:032x}")
    eager = Eager(unreadable)
    worker = ArchiveWorker(eager, sink, KEPT_SECONDS, Metrics(), asyncio.Event())
    eager.claims_last = True
    assert await worker.archive_batch() == [Result.FAILED] * BATCH
    eager.claims_last = False
    good = await store_game(store)
    unreadable.readable = good.game_id
    await store.outbox.append(good.game_id)
    assert (await worker.archive_batch()).count(Result.ARCHIVED) == 1
    assert [game.record for game in sink.written] == [good.record]


async def test_unreadable_games_do_not_lengthen_the_pause_and_are_named() -> None:
    """A pause that outlasts their claims would let them fill each batch."""
    store = memory_store()
    await store.outbox.append("0" * 32)
    worker = worker_of(UnreadableGames(store), MemorySink())
    with capture_logs() as logs:
        assert [await worker.paced_round() for _ in range(7)] == [1.0] * 7
    assert {(log["event"], log["game_id"]) for log in logs} == {("game cannot be archived", "0" * 32)}


async def test_the_worker_survives_a_store_that_is_away_and_defects() -> None:
    class Failing(DelegatingStore):
        error: BaseException = StoreUnavailable()

        async def claim_from_outbox(self, _limit: int, _claim_ms: int) -> Sequence[OutboxEntry]:
            raise self.error

    store = Failing(memory_store())
    worker = ArchiveWorker(store, MemorySink(), KEPT_SECONDS, Metrics(), asyncio.Event())
    assert await worker.paced_round() == 1.0
    for defect in (KeyError(), asyncio.CancelledError()):
        store.error = defect
        with capture_logs() as logs:
            assert await worker.paced_round() == 30.0
        assert [log["log_level"] for log in logs] == ["error"]


async def test_a_cancelled_worker_ends() -> None:
    class Hanging(DelegatingStore):
        async def claim_from_outbox(self, _limit: int, _claim_ms: int) -> Sequence[OutboxEntry]:
            claiming.set()
            await asyncio.Event().wait()
            return ()

    claiming = asyncio.Event()
    task = asyncio.create_task(worker_of(Hanging(memory_store()), MemorySink()).run())
    await claiming.wait()
    task.cancel()
    async with asyncio.timeout(5):
        with pytest.raises(asyncio.CancelledError):
            await task


def test_workers_of_a_server_add_their_games_and_report_the_latest_backlog() -> None:
    merged, ended, running = MergedMetrics(), SharedCounters(), SharedCounters()
    for counters in (ended, running):
        merged.add(counters)
        Metrics(counters).archived_game("archived")
    Metrics(running).archive_backlog(5)
    Metrics(ended).archive_backlog(3)
    registry = metrics_registry(merged.read)
    assert registry.get_sample_value("rummikub_archive_backlog") == 3
    merged.retire(ended)
    assert registry.get_sample_value("rummikub_archive_backlog") == 5
    assert registry.get_sample_value("rummikub_archived_games_total", {"result": "archived"}) == 2


# With servers


async def until_archived(store: Store, worker: ArchiveWorker, clock: FakeClock) -> None:
    """Runs a worker until the outbox is empty."""
    for _ in range(20):
        await worker.archive_batch()
        if not await store.outbox.size():
            return
        clock.advance(OUTBOX_MARGIN_MS / 1000)
    raise AssertionError("the outbox is not empty")


async def test_a_server_archives_the_games_that_end_and_no_others(store: Store) -> None:
    sink = MemorySink()
    async with running_server(store, MANUAL, sink=sink) as (server, client):
        ended, running = [await client.new_game() for _ in range(2)]
        undealt = await client.new_game(start=False)
        await client.games.AbortGame(
            gs.AbortGameRequest(game_id=undealt.game_id, request_id=new_id()), metadata=undealt.as_seat(1)
        )
        await running.draw()
        final = await resign(ended)
        async with asyncio.timeout(30):
            while await store.outbox.size():  # noqa: ASYNC110 - an outbox sends no notification
                await asyncio.sleep(0.05)
        [game] = sink.written
        assert (game.record.game_id, etag_of(game.record)) == (ended.game_id, final.etag)
        assert game.text == await exported(client, ended.game_id)
        checked = await client.records.ImportRecord(rs.ImportRecordRequest(text=game.text))
        assert checked.is_complete
        assert not checked.HasField("fault")
        assert checked.state == game_pb2.GAME_STATE_FINISHED
        assert counts(server.metrics) == {"archived": 1}


async def test_without_an_archive_no_outbox_is_written(store: Store) -> None:
    async with running_server(store, MANUAL) as (_, client):
        await resign(await client.new_game())
    assert await store.outbox.size() == 0


async def test_an_announced_rematch_is_archived_too(store: Store, clock: FakeClock) -> None:
    sink = MemorySink()
    async with running_server(store, MANUAL, sink=sink) as (_, client):
        game = await client.new_game()
        await resign(game)
        rematch = (await game.rematch(1)).game_id
        await until_archived(store, worker_of(store, sink), clock)
        assert sink.written[-1].record.game.rematch_game_id == rematch


@pytest.mark.parametrize("is_sent", [False, True], ids=["before", "after"])
async def test_a_game_is_archived_if_a_server_dies_between_any_two_steps_of_its_last_turn(
    empty_redis_url: str, clock: FakeClock, *, is_sent: bool
) -> None:
    """The worker runs at once after the death, and after the request was repeated at another server."""
    async with contextlib.AsyncExitStack() as stack:
        stores = [RedisStore(connect(empty_redis_url), Lifetimes(3_600, 3_600, 3_600), HISTORY, clock) for _ in "ab"]
        for store in stores:
            stack.push_async_callback(store.close)
        mortal = MortalStore(stores[0], is_sent=is_sent)
        idle = Unclaimed(stores[1])  # its own worker finds nothing
        dead = Unclaimed(mortal)
        _, dying = await stack.enter_async_context(running_server(dead, MANUAL, sink=MemorySink()))
        _, client = await stack.enter_async_context(running_server(idle, MANUAL, seed=2, sink=MemorySink()))
        sink = MemorySink()
        worker = worker_of(stores[1], sink)
        for step in itertools.count(1):
            game = await client.new_game()
            request_id = new_id()
            mortal.die_at(step)
            with contextlib.suppress(grpc.aio.AioRpcError):
                await resign(replace(game, client=dying), request_id)
            has_died = mortal.is_dead
            mortal.die_at(None)
            await worker.archive_batch()
            clock.advance(0.5)
            final = await resign(game, request_id)
            assert final.state == game_pb2.GAME_STATE_FINISHED
            await until_archived(stores[1], worker, clock)
            found = await sink.read(game.game_id)
            assert found
            assert etag_of(found.record) == final.etag
            assert found.text == await exported(client, game.game_id)
            if not has_died:
                break
        assert step > 3


class Unclaimed(DelegatingStore):
    """A store whose outbox seems empty, for servers whose workers are to stay idle."""

    async def claim_from_outbox(self, _limit: int, _claim_ms: int) -> Sequence[OutboxEntry]:
        return ()


@pytest.mark.parametrize("is_sent", [False, True], ids=["before", "after"])
async def test_a_game_is_archived_if_a_worker_dies_between_any_two_steps(store: Store, *, is_sent: bool) -> None:
    game = await store_game(store)
    for step in itertools.count(1):
        sink, mortal = MemorySink(), MortalStore(store, is_sent=is_sent)
        await store.outbox.append(game.game_id)
        dying = ArchiveWorker(ClaimsAtOnce(mortal), sink, KEPT_SECONDS, Metrics(), asyncio.Event())
        mortal.die_at(step)
        with contextlib.suppress(StoreUnavailable):
            await dying.archive_batch()
        has_died = mortal.is_dead
        await worker_of(store, sink).archive_batch()
        assert sink.written
        assert {written.record for written in sink.written} == {game.record}
        assert await store.outbox.size() == 0
        if not has_died:
            break
    assert step > 5, "claim, load, changes, shorten, acknowledge"


class ClaimsAtOnce(DelegatingStore):
    """A store whose claims end at once, and count as an operation of the server that dies."""

    async def claim_from_outbox(self, limit: int, _claim_ms: int) -> Sequence[OutboxEntry]:
        return await self._store.outbox.claim(limit, 0)


async def test_an_ending_is_not_stored_after_its_entry_may_have_been_dropped(store: Store, clock: FakeClock) -> None:
    """A server that pauses between entry and commit decides again, with a new entry."""

    class Pausing(Unclaimed):
        outcomes: list[Outcome]

        async def commit(self, commit: Commit) -> Outcome:
            if commit.record.state.is_over and not self.outcomes:
                clock.advance(OUTBOX_VALID_MS / 1000 + 0.001)
                await worker_of(store, sink).archive_batch()
            outcome = await self._store.games.commit(commit)
            if commit.record.state.is_over:
                self.outcomes.append(outcome)
            return outcome

    pausing, sink = Pausing(store), MemorySink()
    pausing.outcomes = []
    async with running_server(pausing, MANUAL, sink=MemorySink()) as (_, client):
        final = await resign(await client.new_game())
    assert pausing.outcomes[0] == Conflict()
    assert len(pausing.outcomes) == 2
    await until_archived(store, worker_of(store, sink), clock)
    assert [etag_of(game.record) for game in sink.written][-1] == final.etag


async def test_two_workers_share_the_games(store: Store) -> None:
    games = [await store_game(store, seed=seed) for seed in (40, 47)]
    for game in games * 5:
        await store.outbox.append(game.game_id)
    sinks = [MemorySink(), MemorySink()]
    workers = [ArchiveWorker(store, sink, KEPT_SECONDS, Metrics(), asyncio.Event()) for sink in sinks]
    results = await asyncio.gather(*(worker.archive_batch() for worker in workers))
    assert [result for some in results for result in some] == [Result.ARCHIVED] * 10
    assert await store.outbox.size() == 0
