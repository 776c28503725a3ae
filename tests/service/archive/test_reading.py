"""GetGame, ListChanges and ExportGame of games that only the archive has: the answers are those from before."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from enum import Enum

import grpc.aio
import pytest
import redis
from structlog.testing import capture_logs

from engine.room_settings import SETTINGS as ROOM
from engine.room_settings import Bots, Spectators
from rummikub.v1 import error_reason_pb2, game_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import record_service_pb2 as rs
from rummikub.v1 import turn_service_pb2 as ts
from service.app.games import OWN_GAMES_AT_ONCE
from service.errors import StoredFormatUnknown
from service.model.change import Entry, Loaded
from service.model.outbox import OutboxEntry
from service.operator.archive import reader
from service.operator.archive.archived_game import ArchivedGame, collect
from service.operator.archive.open_sink import open_sink
from service.operator.archive.sink import Sink, SinkUnavailable
from service.storage.store import Store
from support.archives import TWO_ROUNDS, MemorySink, StoredGame, store_game
from support.delegating_store import DelegatingStore
from support.grpc_play import history
from support.harness import (
    Client,
    GameAtHand,
    bearer,
    error_info,
    memory_store,
    new_id,
    redis_store,
    retry_ms,
    running_server,
    server_settings,
    without_presence,
)
from support.rooms import Rules, room
from support.soak import few_of

pytestmark = pytest.mark.slow

SETTINGS = server_settings(sweep_seconds=3600, heartbeat_seconds=0.05)


class Expiring(DelegatingStore):
    """A store whose games can all expire at once, and whose outbox is left to the tests."""

    has_expired = False

    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        loaded = await self._store.games.load(game_id, request_key)
        return replace(loaded, record=None, memo=None) if self.has_expired else loaded

    async def bounds(self, game_id: str) -> tuple[int, int]:
        return (0, 0) if self.has_expired else await self._store.streams.bounds(game_id)

    async def events(self, game_id: str, first_revision: int, limit: int) -> tuple[Entry, ...]:
        return () if self.has_expired else await self._store.streams.entries(game_id, first_revision, limit)

    async def claim_from_outbox(self, _limit: int, _claim_ms: int) -> Sequence[OutboxEntry]:
        return ()


@asynccontextmanager
async def served(sink: Sink | None) -> AsyncIterator[tuple[Expiring, Client]]:
    store = Expiring(memory_store())
    async with running_server(store, SETTINGS, sink=sink) as (_, client):
        yield store, client


async def archived(store: Store, sink: MemorySink, ruleset: Rules = TWO_ROUNDS) -> StoredGame:
    """Returns a random game that is in the store and in the archive."""
    stored = await store_game(store, ruleset=ruleset)
    sink.written.append(await collect(store, stored.record))
    return stored


async def refusal(call: Awaitable[object]) -> tuple[str, str]:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return refused.value.code().name, error_info(refused.value).reason


async def seen(game: GameAtHand, seat: int, revision: int | None = None) -> game_pb2.Game:
    """Returns a game as a seat sees it, without the time of the answer and the presence of the players."""
    request = gs.GetGameRequest(game_id=game.game_id, revision=revision)
    found = without_presence((await game.client.games.GetGame(request, metadata=game.as_seat(seat))).game)
    found.ClearField("server_time")
    return found


async def all_answers(game: GameAtHand) -> list[object]:
    """Returns what every viewer gets of a game, now and earlier."""
    answers: list[object] = []
    last = (await game.see()).revision
    for seat in game.tokens:
        answers += [await seen(game, seat, revision) for revision in (None, 3, 5, last // 2, last)]
        for after, size in ((0, 200), (0, 7), (last - 3, 50), (last, 5)):
            listing = gs.ListChangesRequest(game_id=game.game_id, after_revision=after, page_size=size)
            answers.append(await game.client.games.ListChanges(listing, metadata=game.as_seat(seat)))
    answers.append(await history(game.client, game))
    seats = [gs.OwnSeat(game_id=game.game_id, seat_token=token) for token in game.tokens.values() if token]
    answers.append(await game.client.games.ListOwnGames(gs.ListOwnGamesRequest(seats=seats)))
    exports = [rs.ExportGameRequest(game_id=game.game_id, form=form) for form in rs.RecordForm.values()]
    return answers + [await game.client.records.ExportGame(export) for export in exports]


async def test_an_archived_game_is_as_everyone_saw_it() -> None:
    sink = MemorySink()
    async with served(sink) as (store, client):
        game = (await archived(store, sink)).at(client)
        before = await all_answers(game)
        store.has_expired = True
        assert await all_answers(game) == before


async def told(game: GameAtHand) -> list[object]:
    """Returns what every viewer gets of a game, or the refusals."""
    calls: list[Awaitable[object]] = []
    for seat in game.tokens:
        listing, metadata = gs.ListChangesRequest(game_id=game.game_id, page_size=200), game.as_seat(seat)
        export = rs.ExportGameRequest(game_id=game.game_id)
        calls += [seen(game, seat), game.client.games.ListChanges(listing, metadata=metadata)]
        calls += [game.client.records.ExportGame(export, metadata=metadata)]
    found = await asyncio.gather(*calls, return_exceptions=True)
    return [error_info(one).reason if isinstance(one, grpc.aio.AioRpcError) else one for one in found]


@pytest.mark.parametrize("number", few_of(range(6), 2))
async def test_an_archived_game_tells_no_more_than_before_in_any_room(number: int) -> None:
    """Each room has the next value of every choice."""
    choices = {name: row.values for name, row in ROOM.items() if isinstance(row.default, Enum)}
    chosen = {name: values[number % len(values)] for name, values in choices.items()} | {"bots": Bots.ALLOWED}
    rules = room(TWO_ROUNDS, **chosen)  # random games have bots
    sink = MemorySink()
    async with served(sink) as (store, client):
        game = (await archived(store, sink, rules)).at(client)
        before = await told(game)
        store.has_expired = True
        assert await told(game) == before


async def test_an_archived_game_refuses_those_whom_it_refused() -> None:
    sink = MemorySink()
    async with served(sink) as (store, client):
        game = (await archived(store, sink, room(TWO_ROUNDS, spectators=Spectators.OFF))).at(client)
        store.has_expired = True
        request = gs.GetGameRequest(game_id=game.game_id)
        assert await refusal(client.games.GetGame(request)) == ("PERMISSION_DENIED", "SPECTATORS_NOT_ALLOWED")
        foreign = client.games.GetGame(request, metadata=bearer("f" * 43))
        assert await refusal(foreign) == ("UNAUTHENTICATED", "TOKEN_VOID")
        assert (await game.see(1)).seat == 1


async def test_revisions_that_an_archived_game_has_not_had_are_refused() -> None:
    sink = MemorySink()
    async with served(sink) as (store, client):
        game = await archived(store, sink)
        store.has_expired = True
        last = game.record.game.revision
        later = gs.GetGameRequest(game_id=game.game_id, revision=last + 1)
        assert await refusal(client.games.GetGame(later)) == ("OUT_OF_RANGE", "HISTORY_UNAVAILABLE")
        waiting = gs.ListChangesRequest(game_id=game.game_id, after_revision=last, wait_seconds=25)
        assert not (await client.games.ListChanges(waiting, timeout=20)).changes  # at once: no change can follow
        after = gs.ListChangesRequest(game_id=game.game_id, after_revision=last + 1)
        assert await refusal(client.games.ListChanges(after)) == ("OUT_OF_RANGE", "HISTORY_UNAVAILABLE")


async def test_an_archived_game_is_over_for_changes_and_watchers() -> None:
    sink = MemorySink()
    async with served(sink) as (store, client):
        game = (await archived(store, sink)).at(client)
        store.has_expired = True
        turn = ts.PlayTurnRequest(game_id=game.game_id, etag=f"9-{'0' * 32}", draw=ts.DrawTile(), request_id=new_id())
        for call in (
            game.rematch(1),
            client.turns.PlayTurn(turn, metadata=game.as_seat(1)),
            client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id)).read(),
        ):
            assert await refusal(call) == ("NOT_FOUND", "GAME_NOT_FOUND")


async def test_a_game_that_was_never_archived_is_not_found() -> None:
    sink = MemorySink()
    async with served(sink) as (_, client):
        for call in (
            client.games.GetGame(gs.GetGameRequest(game_id="0" * 32)),
            client.games.GetGame(gs.GetGameRequest(game_id="0" * 32, revision=3)),
            client.games.ListChanges(gs.ListChangesRequest(game_id="0" * 32)),
            client.records.ExportGame(rs.ExportGameRequest(game_id="0" * 32)),
        ):
            assert await refusal(call) == ("NOT_FOUND", "GAME_NOT_FOUND")


@pytest.fixture
def short_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives the archive 50 ms for a read."""
    monkeypatch.setattr(reader, "READ_SECONDS", 0.05)


@pytest.mark.usefixtures("short_reads")
async def test_an_archive_that_is_down_is_told_apart_from_a_missing_game() -> None:
    class Bad(MemorySink):
        error: Exception | None = None

        async def read(self, _game_id: str) -> ArchivedGame | None:
            if self.error:
                raise self.error
            await asyncio.Event().wait()
            return None

    sink = Bad()
    async with served(sink) as (_, client):
        for error in (None, SinkUnavailable("down")):
            sink.error = error
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await client.games.GetGame(gs.GetGameRequest(game_id="0" * 32))
            assert error_info(refused.value).reason == "STORE_UNAVAILABLE"
            assert retry_ms(refused.value)
        sink.error = StoredFormatUnknown()
        call = client.games.GetGame(gs.GetGameRequest(game_id="0" * 32))
        assert await refusal(call) == ("UNAVAILABLE", "STORED_FORMAT_UNKNOWN")


@pytest.mark.usefixtures("short_reads")
async def test_own_games_of_the_store_are_listed_while_the_archive_is_down() -> None:
    """The games that only the archive may have are refused for now, at the price of one wait."""

    class Hanging(MemorySink):
        reads = 0

        async def read(self, _game_id: str) -> ArchivedGame | None:
            self.reads += 1
            await asyncio.Event().wait()
            return None

    sink = Hanging()
    async with served(sink) as (_, client):
        game = await client.new_game()
        own = [gs.OwnSeat(game_id=f"{number:032x}", seat_token=game.tokens[2]) for number in range(49)]
        own.append(gs.OwnSeat(game_id=game.game_id, seat_token=game.tokens[2]))
        found = (await client.games.ListOwnGames(gs.ListOwnGamesRequest(seats=own))).games
    assert {one.refusal for one in found[:-1]} == {error_reason_pb2.STORE_UNAVAILABLE}
    assert (found[-1].game.game_id, found[-1].seat) == (game.game_id, 2)
    assert sink.reads <= OWN_GAMES_AT_ONCE


@pytest.mark.usefixtures("short_reads")
async def test_an_archive_that_does_not_answer_is_logged_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(MemorySink):
        async def read(self, _game_id: str) -> ArchivedGame | None:
            await asyncio.Event().wait()
            return None

    with capture_logs() as logs:
        async with served(Hanging()) as (_, client):
            for seconds in (60.0, 60.0, 60.0, 0.0):
                monkeypatch.setattr(reader, "REMIND_SECONDS", seconds)
                await refusal(client.games.GetGame(gs.GetGameRequest(game_id="0" * 32)))
    warnings = [
        log["error"] for log in logs if log["event"] == "archive does not answer" and log["log_level"] == "warning"
    ]
    assert warnings == ["no reply within 0.05 s"] * 2


async def test_few_reads_are_made_at_once() -> None:
    """Anyone can ask for games that do not exist."""

    class Counting(MemorySink):
        reading = most = 0

        async def read(self, _game_id: str) -> ArchivedGame | None:
            self.reading += 1
            self.most = max(self.most, self.reading)
            if self.most >= reader.READS:
                full.set()
            await asyncio.wait_for(full.wait(), 30)  # as many as may are at it
            await asyncio.sleep(0.01)  # and more would come
            self.reading -= 1
            return None

    full, sink = asyncio.Event(), Counting()
    async with served(sink) as (_, client):
        calls = (client.games.GetGame(gs.GetGameRequest(game_id=f"{number:032x}")) for number in range(50))
        refusals = await asyncio.gather(*map(refusal, calls))
        assert set(refusals) == {("NOT_FOUND", "GAME_NOT_FOUND")}
    assert sink.most == reader.READS


async def test_a_game_is_read_from_a_real_archive_after_redis_lost_it(empty_redis_url: str, archive_url: str) -> None:
    """The whole way: two players, one server, and each kind of archive."""
    store, sink = redis_store(empty_redis_url), open_sink(archive_url)
    keys: redis.Redis = redis.Redis.from_url(empty_redis_url)
    async with running_server(store, SETTINGS, sink=sink) as (_, client):
        game = await client.new_game()
        await game.draw()
        resign = ts.ResignGameRequest(game_id=game.game_id, request_id=new_id())
        await client.turns.ResignGame(resign, metadata=game.as_seat(1))
        before = await all_answers(game)
        state = (await game.see()).state
        async with asyncio.timeout(30):
            while await store.outbox.size():  # noqa: ASYNC110 - an outbox sends no notification
                await asyncio.sleep(0.05)
        for key in keys.scan_iter(f"*{game.game_id}*"):
            assert keys.pttl(key) <= 3_600_000
            keys.delete(key)
        assert await all_answers(game) == before
        assert state == game_pb2.GAME_STATE_FINISHED
    await store.close()
    await sink.close()
    keys.close()
