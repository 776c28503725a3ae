"""DeleteGame and ForgetPlayer reach the archive, over failing archives and servers that are archiving the game."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import grpc.aio
import pytest
import redis
from structlog.testing import capture_logs

from rummikub.admin.v1 import admin_service_pb2 as pb
from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import record_service_pb2 as rs
from rummikub.v1 import turn_service_pb2 as ts
from service.errors import StoredFormatUnknown, StoreUnavailable
from service.metrics.metrics import Metrics
from service.model.change import StoredChange
from service.model.outbox import OUTBOX_MARGIN_MS, OutboxEntry
from service.model.record import OperatorData, PlayerRef, Record
from service.operator.archive.archived_game import ArchivedGame, player_digest, to_line
from service.operator.archive.open_sink import open_sink
from service.operator.archive.sink import Sink, WriteResult
from service.operator.archive.worker import ArchiveWorker, Result
from service.storage.store import Store
from support.archives import MemorySink, etag_of
from support.delegating_store import DelegatingStore
from support.harness import (
    FakeClock,
    GameAtHand,
    error_info,
    memory_store,
    new_id,
    redis_store,
    without_presence,
)
from support.operator import Operated, changes, operated

pytestmark = pytest.mark.slow

NAME, REF = "Annabella Unmistakable", "reference-of-annabella"
KEPT_SECONDS = 90
LOG_MS = 60_000


class Unclaimed(DelegatingStore):
    """A store whose outbox is left to the tests, and which can lose a game as if it had expired."""

    async def claim_from_outbox(self, _limit: int, _claim_ms: int) -> Sequence[OutboxEntry]:
        return ()

    async def expire(self, game_id: str) -> None:
        record = (await self._store.games.load(game_id)).record
        assert record
        await self._store.games.delete(game_id, record)


class Eager(DelegatingStore):
    """A store whose claims end at once, so that a test need not wait for them."""

    async def claim_from_outbox(self, limit: int, _claim_ms: int) -> Sequence[OutboxEntry]:
        return await self._store.outbox.claim(limit, 0)


def worker_of(store: Store, sink: Sink) -> ArchiveWorker:
    return ArchiveWorker(Eager(store), sink, KEPT_SECONDS, Metrics(), asyncio.Event())


@dataclass(frozen=True)
class House:
    """A server with an archive in memory, whose worker does nothing; the store with its outbox."""

    operated: Operated
    sink: MemorySink
    store: Unclaimed
    outbox: Store

    async def archive(self) -> list[Result | None]:
        """Archives the games of the outbox."""
        return await worker_of(self.outbox, self.sink).archive_batch()


@pytest.fixture
async def house(store: Store) -> AsyncIterator[House]:
    sink, served = MemorySink(), Unclaimed(store)
    async with operated(served, sink=sink, sweep_seconds=3600) as house:
        yield House(house, sink, served, store)


async def finished_game(house: Operated, *, is_finished: bool = True, player_ref: str = REF) -> GameAtHand:
    """Returns a game of Bob and Annabella, who has a reference; Bob has resigned."""
    created = await house.client.games.CreateGame(gs.CreateGameRequest(request_id=new_id()))
    game = GameAtHand(house.client, created.game.game_id, host_token=created.host_token)
    await game.join("Bob")
    join = gs.JoinGameRequest(game_id=game.game_id, name=NAME, player_ref=player_ref, request_id=new_id())
    answer = await house.client.games.JoinGame(join)
    game.tokens[answer.seat] = answer.seat_token
    await game.start()
    await game.draw()
    if is_finished:
        await resign(game)
    return game


async def resign(game: GameAtHand) -> None:
    request = ts.ResignGameRequest(game_id=game.game_id, request_id=new_id())
    await game.client.turns.ResignGame(request, metadata=game.as_seat(1))


async def refusal(call: Awaitable[object]) -> tuple[str, str]:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return refused.value.code().name, error_info(refused.value).reason


async def delete(house: Operated, game_id: str) -> None:
    await house.admin.DeleteGame(pb.DeleteGameRequest(game_id=game_id))


NOT_FOUND = ("NOT_FOUND", "GAME_NOT_FOUND")


async def assert_gone(game: GameAtHand) -> None:
    """Checks that no call of a player finds a game."""
    games, game_id = game.client.games, game.game_id
    for call in (
        games.GetGame(gs.GetGameRequest(game_id=game_id), metadata=game.as_seat(1)),
        games.GetGame(gs.GetGameRequest(game_id=game_id, revision=3)),
        games.ListChanges(gs.ListChangesRequest(game_id=game_id)),
        game.client.records.ExportGame(rs.ExportGameRequest(game_id=game_id)),
    ):
        assert await refusal(call) == NOT_FOUND


async def forget(house: Operated) -> list[str]:
    """Forgets Annabella; returns the ids of the games."""
    progress = [one async for one in house.admin.ForgetPlayer(pb.ForgetPlayerRequest(player_ref=REF))]
    assert [one.is_done for one in progress] == [False] * (len(progress) - 1) + [True]
    assert [one.games_read for one in progress] == sorted(one.games_read for one in progress)
    return [game_id for one in progress for game_id in one.forgotten_game_ids]


def traces(game: ArchivedGame) -> list[bytes]:
    """Returns the parts of an archived game that have Annabella's name or reference."""
    parts = (str(game.record).encode(), *game.changes, game.text.encode(), to_line(game))
    texts = (NAME, REF, player_digest(REF))
    return [part for part in parts if any(text.encode() in part for text in texts)]


# DeleteGame


async def test_a_deleted_game_leaves_the_archive_too(house: House) -> None:
    game = await finished_game(house.operated)
    assert await house.archive() == [Result.ARCHIVED]
    await delete(house.operated, game.game_id)
    assert house.sink.written == []
    await assert_gone(game)
    assert await refusal(delete(house.operated, game.game_id)) == NOT_FOUND


async def test_a_game_that_only_the_archive_has_is_deleted(house: House) -> None:
    game = await finished_game(house.operated)
    await house.archive()
    await house.store.expire(game.game_id)
    assert (await game.see()).state == game_pb2.GAME_STATE_FINISHED
    await delete(house.operated, game.game_id)
    assert house.sink.written == []
    await assert_gone(game)
    assert await refusal(delete(house.operated, game.game_id)) == NOT_FOUND


async def test_the_operator_sees_a_game_that_only_the_archive_has(house: House) -> None:
    game = await finished_game(house.operated)
    await house.archive()
    request = pb.GetGameRequest(game_id=game.game_id)
    before = (await house.operated.admin.GetGame(request)).game
    await house.store.expire(game.game_id)
    after = (await house.operated.admin.GetGame(request)).game
    for full in (before, after):
        full.game.ClearField("server_time")
        full.game.CopyFrom(without_presence(full.game))
    assert after == before
    assert [seat.player.player_ref for seat in after.seats] == ["", REF]
    house.sink.is_down = True
    assert await refusal(house.operated.admin.GetGame(request)) == ("UNAVAILABLE", "STORE_UNAVAILABLE")
    house.sink.is_down = False
    await delete(house.operated, game.game_id)
    assert await refusal(house.operated.admin.GetGame(request)) == NOT_FOUND


async def test_a_game_that_waits_in_the_outbox_is_not_archived_after_its_deletion(
    house: House, clock: FakeClock
) -> None:
    game = await finished_game(house.operated)
    await delete(house.operated, game.game_id)
    assert await house.archive() == [None]
    clock.advance(OUTBOX_MARGIN_MS / 1000 + 1)
    assert await house.archive() == [Result.NOT_ENDED]
    assert (await house.outbox.outbox.size(), house.sink.written) == (0, [])


async def test_a_game_that_is_deleted_while_a_worker_archives_it_is_not_archived(house: House) -> None:
    """The worker has read the game before, and writes it after."""

    class Late(DelegatingStore):
        async def stored_changes(self, game_id: str, first_revision: int, limit: int) -> tuple[StoredChange, ...]:
            found = await self._store.streams.stored_changes(game_id, first_revision, limit)
            if not deleted:
                deleted.append(game_id)
                await delete(house.operated, game_id)
            return found

    deleted: list[str] = []
    game = await finished_game(house.operated)
    assert await worker_of(Late(house.outbox), house.sink).archive_batch() == [Result.DELETED]
    assert deleted == [game.game_id]
    assert house.sink.written == []
    await assert_gone(game)


async def test_a_deletion_is_not_acknowledged_while_the_archive_is_down(house: House) -> None:
    kept, expired = [await finished_game(house.operated) for _ in range(2)]
    await house.archive()
    await house.store.expire(expired.game_id)
    house.sink.is_down = True
    for game in (kept, expired):
        assert await refusal(delete(house.operated, game.game_id)) == ("UNAVAILABLE", "STORE_UNAVAILABLE")
    house.sink.is_down = False
    for game in (kept, expired):
        assert (await game.see()).state == game_pb2.GAME_STATE_FINISHED
        await delete(house.operated, game.game_id)
        await assert_gone(game)
    assert house.sink.written == []


async def test_a_deletion_by_a_server_that_dies_halfway_is_completed_by_the_next_call(house: House) -> None:
    class Dying(Unclaimed):
        async def delete(self, _game_id: str, _record: Record | None = None) -> None:
            raise StoreUnavailable

    game = await finished_game(house.operated)
    async with operated(Dying(house.outbox), sink=house.sink) as dying:
        assert (await refusal(delete(dying, game.game_id)))[0] == "UNAVAILABLE"
    assert await house.archive() == [Result.DELETED], "it is no longer archived"
    assert house.sink.written == []
    await delete(house.operated, game.game_id)
    await assert_gone(game)


async def test_the_deletion_of_an_archived_game_is_announced() -> None:
    store, sink = memory_store(log_ms=LOG_MS), MemorySink()
    served = Unclaimed(store)
    async with operated(served, sink=sink) as house:
        game = await finished_game(house)
        await worker_of(store, sink).archive_batch()
        store.memory.games.clear()
        await delete(house, game.game_id)
        told = await changes(house.admin, pb.WatchGamesRequest(from_oldest=True), 1)
    assert told[0].deleted.game_id == game.game_id


async def test_an_archived_game_of_another_version_is_deleted(house: House) -> None:
    class Unreadable(MemorySink):
        async def read(self, _game_id: str) -> ArchivedGame | None:
            raise StoredFormatUnknown

    sink = Unreadable()
    async with operated(Unclaimed(house.outbox), sink=sink) as operating:
        game = await finished_game(operating)
        await worker_of(house.outbox, sink).archive_batch()
        await house.store.expire(game.game_id)
        await delete(operating, game.game_id)
    assert sink.written == []


# ForgetPlayer


async def test_a_forgotten_player_leaves_archived_games(house: House) -> None:
    kept, expired, playing = [await finished_game(house.operated, is_finished=number < 2) for number in range(3)]
    await house.archive()
    await house.store.expire(expired.game_id)
    etags = [(await game.see()).etag for game in (kept, expired)]
    assert sorted(await forget(house.operated)) == sorted(game.game_id for game in (kept, expired, playing))
    for game, etag in zip((kept, expired), etags, strict=True):
        archived = await house.sink.read(game.game_id)
        assert archived
        assert traces(archived) == []
        seen = await game.see()
        assert (seen.etag, [player.name for player in seen.players]) == (etag_of(archived.record), ["Bob", "Player 2"])
        assert seen.etag != etag
        listed = await game.client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id))
        assert listed.changes[-1].etag == seen.etag
        assert NAME not in str(listed)
        export = rs.ExportGameRequest(game_id=game.game_id, form=rs.RECORD_FORM_TEXT)
        assert "Player 2" in (await game.client.records.ExportGame(export)).text
    assert await forget(house.operated) == []
    await resign(playing)
    await house.archive()
    last = await house.sink.read(playing.game_id)
    assert last
    assert traces(last) == []


@pytest.mark.parametrize("player_ref", ["", REF])
async def test_the_owner_of_a_seat_is_forgotten_in_the_archive(house: House, player_ref: str) -> None:
    kept, expired = [await finished_game(house.operated, player_ref=player_ref) for _ in range(2)]
    await house.archive()
    await house.store.expire(expired.game_id)
    [data] = await exported(expired)
    assert (data.seat, data.changes[0].revision, data.changes[-1].revision) == (2, 1, data.game.revision)
    assert list(data.game.rack)
    for game in (kept, expired):
        assert await forget_seat(game) == "Player 2"
        archived = await house.sink.read(game.game_id)
        assert archived
        assert traces(archived) == []
        assert [player.name for player in (await game.see()).players] == ["Bob", "Player 2"]
        assert (await game.see()).etag == etag_of(archived.record)
        writes = len(house.sink.written)
        assert await forget_seat(game) == "Player 2"
        assert len(house.sink.written) == writes
    await house.archive()
    assert not any(traces(game) for game in house.sink.written[2:])


async def test_the_owner_of_a_seat_is_forgotten_while_the_game_is_archived(house: House) -> None:
    """Without a reference the archive cannot know that the older copy has the name."""

    class Late(DelegatingStore):
        async def stored_changes(self, game_id: str, first_revision: int, limit: int) -> tuple[StoredChange, ...]:
            found = await self._store.streams.stored_changes(game_id, first_revision, limit)
            if not forgotten:
                forgotten.append(await forget_seat(game))
            return found

    forgotten: list[str] = []
    game = await finished_game(house.operated, player_ref="")
    await worker_of(Late(house.outbox), house.sink).archive_batch()
    await house.archive()
    archived = await house.sink.read(game.game_id)
    assert archived
    assert (forgotten, traces(archived)) == (["Player 2"], [])


async def forget_seat(game: GameAtHand) -> str:
    """Forgets Annabella by her token; returns the name in place of hers."""
    request = gs.ForgetSeatRequest(game_id=game.game_id)
    return (await game.client.games.ForgetSeat(request, metadata=game.as_seat(2))).name


async def exported(game: GameAtHand) -> list[gs.OwnData]:
    seat = gs.OwnSeat(game_id=game.game_id, seat_token=game.tokens[2])
    page = await game.client.games.ExportOwnGames(gs.ExportOwnGamesRequest(seats=[seat]))
    assert not page.next_page_token
    return [page.game]


async def test_the_operator_exports_archived_games_too(house: House) -> None:
    kept, expired = [await finished_game(house.operated) for _ in range(2)]
    await house.archive()
    await house.store.expire(expired.game_id)
    parts = [part async for part in house.operated.admin.ExportPlayer(pb.ExportPlayerRequest(player_ref=REF))]
    assert [part.game.game_id for part in parts if part.HasField("game")] == [kept.game_id, expired.game_id]
    assert all(part.game.player_ref == REF for part in parts if part.HasField("game"))
    assert not any(part.failed_game_ids for part in parts)


async def test_a_player_is_forgotten_in_a_game_that_a_worker_archives_meanwhile(house: House) -> None:
    """The worker has read the game before, and writes it after; the archive does not have it when it is searched."""

    class Late(DelegatingStore):
        async def stored_changes(self, game_id: str, first_revision: int, limit: int) -> tuple[StoredChange, ...]:
            found = await self._store.streams.stored_changes(game_id, first_revision, limit)
            if not forgotten:
                forgotten.extend(await forget(house.operated))
            return found

    forgotten: list[str] = []
    game = await finished_game(house.operated)
    assert await worker_of(Late(house.outbox), house.sink).archive_batch() == [Result.ARCHIVED]
    assert forgotten == [game.game_id]
    assert [bool(traces(written)) for written in house.sink.written] == [True, False]


async def test_a_player_whom_the_store_has_forgotten_is_forgotten_in_the_archive(house: House) -> None:
    """The server that forgot the player in the store died before it came to the archive."""
    game = await finished_game(house.operated)
    await house.archive()
    house.sink.is_down = True
    assert await refusal(forget(house.operated)) == ("UNAVAILABLE", "STORE_UNAVAILABLE")
    house.sink.is_down = False
    assert await forget(house.operated) == [game.game_id]
    [_, archived] = house.sink.written
    assert traces(archived) == []
    assert etag_of(archived.record) == (await game.see()).etag


async def test_two_players_who_are_forgotten_at_the_same_time_do_not_come_back(house: House) -> None:
    """The other one is forgotten between the read and the write of the archived game."""

    class Overtaken(MemorySink):
        async def write(self, game: ArchivedGame) -> WriteResult:
            if overtakes:
                await overtakes.pop()()
            return await super().write(game)

    sink = Overtaken()
    overtakes: list[Callable[[], Awaitable[object]]] = []
    async with operated(Unclaimed(house.outbox), sink=sink) as operating:
        game = await finished_game(operating)
        await worker_of(house.outbox, sink).archive_batch()
        await house.store.expire(game.game_id)
        [archived] = sink.written
        refs = (*archived.record.operator_data.player_refs, PlayerRef(2, 1, "bob"))
        sink.written = [
            replace(archived, record=replace(archived.record, operator_data=OperatorData(player_refs=refs)))
        ]

        async def forget_bob() -> None:
            async for _ in operating.admin.ForgetPlayer(pb.ForgetPlayerRequest(player_ref="bob")):
                pass

        overtakes.append(forget_bob)
        assert await forget(operating) == [game.game_id]
        found = await sink.read(game.game_id)
        assert found
        assert found.players == ()
        assert [player.name for player in found.record.game.players] == ["Player 1", "Player 2"]


async def test_a_player_is_forgotten_in_all_games_that_can_be_read_and_others_are_named(house: House) -> None:
    class Unreadable(MemorySink):
        async def read(self, game_id: str) -> ArchivedGame | None:
            if game_id == bad.game_id:
                raise StoredFormatUnknown
            return await super().read(game_id)

    sink = Unreadable()
    async with operated(Unclaimed(house.outbox), sink=sink) as operating:
        bad, good = [await finished_game(operating) for _ in range(2)]
        await worker_of(house.outbox, sink).archive_batch()
        for game in (bad, good):
            await house.store.expire(game.game_id)
        with capture_logs() as logs:
            assert await refusal(forget(operating)) == ("UNAVAILABLE", "STORED_FORMAT_UNKNOWN")
        assert [log["game_id"] for log in logs if "forgotten" in log["event"]] == [bad.game_id]
        found = await sink.read(good.game_id)
        assert found
        assert traces(found) == []


async def test_a_game_without_its_first_changes_can_be_archived_after_a_player_was_forgotten() -> None:
    """The arrival of the player is not stored; the history stays a chain."""
    store, sink = memory_store(history=2), MemorySink()
    async with operated(Unclaimed(store), sink=sink) as house:
        game = await finished_game(house)
        assert await forget(house) == [game.game_id]
        assert await worker_of(store, sink).archive_batch() == [Result.ARCHIVED]
        [archived] = sink.written
        assert (traces(archived), archived.text) == ([], "")
        assert etag_of(archived.record) == (await game.see()).etag


# On real archives


async def test_players_and_games_leave_a_real_archive(empty_redis_url: str, archive_url: str) -> None:
    """Two servers, each with a sink of its own; Redis has lost the games."""
    sinks = [open_sink(archive_url) for _ in "ab"]
    stores = [redis_store(empty_redis_url) for _ in "ab"]
    async with contextlib.AsyncExitStack() as stack:
        for close in (*(sink.close for sink in sinks), *(store.close for store in stores)):
            stack.push_async_callback(close)
        first, second = [
            await stack.enter_async_context(operated(store, sink=sink))
            for store, sink in zip(stores, sinks, strict=True)
        ]
        forgotten, deleted = [await finished_game(first) for _ in range(2)]
        async with asyncio.timeout(30):
            while await stores[0].outbox.size():  # noqa: ASYNC110 - an outbox sends no notification
                await asyncio.sleep(0.05)
        with redis.Redis.from_url(empty_redis_url) as keys:
            for game in (forgotten, deleted):
                keys.delete(*keys.scan_iter(f"*{game.game_id}*"))
        assert NAME in str(await deleted.see())
        await delete(second, deleted.game_id)
        await assert_gone(deleted)
        assert await forget(second) == [forgotten.game_id]
        assert [player.name for player in (await forgotten.see()).players] == ["Bob", "Player 2"]
        found = await sinks[0].read(forgotten.game_id)
        assert found
        assert traces(found) == []
        assert await sinks[0].games_of(player_digest(REF)) == []
