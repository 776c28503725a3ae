"""WatchGame: each viewer gets every change once and in order, across lost connections and server restarts."""

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import TypeVar

import grpc.aio
import pytest
import redis.asyncio as aredis

from engine.actions import Action, Join, Leave, StartGame
from engine.melding.actions import DrawTile
from engine.melding.ruleset import Ruleset
from engine.seats import HOST
from engine.sight import see
from engine.turns import Applied, apply, create
from rummikub.v1 import game_pb2, room_settings_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.app.changes import BOT_WAIT_MS
from service.app.identity import SPECTATOR, Caller, digest, new_shuffle
from service.app.use_cases import use_cases
from service.app.views import ChangeView, GameSnapshotView
from service.app.watch import Watch
from service.app.watch_feed import LAG, RECENT, Feed
from service.app.watch_updates import (
    Change,
    Closing,
    Content,
    GameAfter,
    Heartbeat,
    PresenceChange,
    Snapshot,
    Update,
)
from service.codec import games as codec
from service.composition import build_server
from service.errors import StoreUnavailable, TokenVoid
from service.model.change import NO_ETAG, Commit, Committed, Loaded, Outcome, lineage
from service.model.presence import Seen
from service.model.record import Record, SeatToken
from service.storage.memory import MemoryStore
from service.storage.store import Store
from service.storage.stored_events import encode_change
from support.delegating_store import DelegatingStore
from support.fold import completed, fold
from support.harness import (
    Client,
    FakeClock,
    GameAtHand,
    SeededChance,
    error_info,
    memory_store,
    new_id,
    redis_store,
    running_server,
    server_settings,
    without_presence,
)
from support.rooms import parts, room
from support.stores import STORES
from tools.games import options

pytestmark = pytest.mark.slow

UNLIMITED = options(turn_time_limit_seconds=0, start_by=room_settings_pb2.START_BY_ANYONE)


def no_etag(revision: int) -> str:
    """Returns an etag that no game has at a revision."""
    return f"{revision}-{'0' * 32}"


class Watcher:
    """A WatchGame stream, read update by update.

    Args:
        game: The game.
        seat: Who watches.
        after: The etag or the revision from which to resume.
        content: What to send for each change.
        view: How much of a game to send.
    """

    def __init__(
        self,
        game: GameAtHand,
        seat: int = 0,
        after: str | int = "",
        content: gs.WatchContent.ValueType = gs.WATCH_CONTENT_UNSPECIFIED,
        view: gs.GameView.ValueType = gs.GAME_VIEW_UNSPECIFIED,
    ) -> None:
        etag = after if isinstance(after, str) else game.etags.get(after, no_etag(after))
        request = gs.WatchGameRequest(game_id=game.game_id, etag=etag, content=content, view=view)
        self.call = game.client.games.WatchGame(request, metadata=game.as_seat(seat))
        self._updates = aiter(self.call)
        self._first: game_pb2.Game | None = None
        """The first game of the stream."""

    async def next(self) -> gs.WatchGameResponse:
        """Returns the next update that is no heartbeat and no presence, without the presence of players."""
        async with asyncio.timeout(10):
            while (update := await anext(self._updates)).WhichOneof("update") in {"heartbeat", "presence"}:
                pass
        for name in ("snapshot", "game"):
            if update.HasField(name):
                without_presence(getattr(update, name))
        return update

    async def presence(self) -> gs.Presence:
        """Returns the next update that is no heartbeat, which must be a presence."""
        async with asyncio.timeout(10):
            while (update := await anext(self._updates)).HasField("heartbeat"):
                pass
        assert update.HasField("presence"), update
        return update.presence

    async def heartbeat(self) -> int:
        """Returns the revision of the next update, which must be a heartbeat."""
        async with asyncio.timeout(10):
            while (update := await anext(self._updates)).HasField("presence"):
                pass
        assert update.HasField("heartbeat")
        return update.heartbeat.revision

    async def change(self) -> game_pb2.GameChange:
        """Returns the next update, which must be a change."""
        update = await self.next()
        assert update.HasField("change"), update
        return update.change

    async def snapshot(self) -> game_pb2.Game:
        """Returns the next update, which must be a snapshot."""
        update = await self.next()
        assert update.HasField("snapshot"), update
        assert update.snapshot.HasField("ruleset")
        self._first = update.snapshot
        return update.snapshot

    async def game(self) -> game_pb2.Game:
        """Returns the next update, which must be the game after a change, with what only the first game has."""
        update = await self.next()
        assert update.HasField("game"), update
        is_first = self._first is None
        self._first = self._first or update.game
        assert [update.game.HasField("ruleset"), bool(update.game.visibility)] == [is_first, is_first]
        return completed(update.game, self._first)

    async def changes_to(self, revision: int) -> list[game_pb2.GameChange]:
        """Returns the changes up to a revision."""
        found: list[game_pb2.GameChange] = []
        while not found or found[-1].revision < revision:
            found.append(await self.change())
        return found

    async def rest(self) -> list[gs.WatchGameResponse]:
        """Returns all updates until the stream ends, without heartbeats and presence."""
        async with asyncio.timeout(10):
            updates = [update async for update in self._updates]
        return [update for update in updates if update.WhichOneof("update") not in {"heartbeat", "presence"}]

    async def code(self) -> grpc.StatusCode:
        """Returns the status code of the stream."""
        return await asyncio.wait_for(self.call.code(), 10)


async def history(game: GameAtHand, seat: int = 0) -> list[game_pb2.GameChange]:
    """Returns all changes as a seat sees them."""
    request = gs.ListChangesRequest(game_id=game.game_id, page_size=200)
    return list((await game.client.games.ListChanges(request, metadata=game.as_seat(seat))).changes)


async def resign(game: GameAtHand, seat: int) -> game_pb2.Game:
    request = ts.ResignGameRequest(game_id=game.game_id, request_id=new_id())
    return (await game.client.turns.ResignGame(request, metadata=game.as_seat(seat))).game


async def leave(game: GameAtHand, seat: int) -> None:
    request = gs.LeaveGameRequest(game_id=game.game_id, request_id=new_id())
    await game.client.games.LeaveGame(request, metadata=game.as_seat(seat))


async def refused(watcher: Watcher) -> tuple[grpc.StatusCode, str, dict[str, str]]:
    """Returns the code, the reason and the metadata of a refused watch."""
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await watcher.next()
    info = error_info(refusal.value)
    return refusal.value.code(), info.reason, dict(info.metadata)


# Updates


async def test_a_watch_begins_with_a_snapshot_and_continues_with_every_change(client: Client) -> None:
    game = await client.new_game(players=2, ruleset=UNLIMITED)
    watcher = Watcher(game)
    assert await watcher.snapshot() == await seen_at(game, await game.see())
    for _ in range(10):
        drawn = (await game.draw()).game
        change = await watcher.change()
        assert (change.revision, change.etag) == (drawn.revision, drawn.etag)
        assert change.time == drawn.update_time


async def seen_at(game: GameAtHand, seen: game_pb2.Game) -> game_pb2.Game:
    """Asserts that a game looks the same when it is read again at the same time; returns it."""
    assert seen == await game.see()
    return seen


@pytest.mark.parametrize("seat", [0, 1, 2])
async def test_a_resume_from_any_revision_sends_each_later_change_once_in_order(client: Client, seat: int) -> None:
    game = await client.new_game(players=2, ruleset=UNLIMITED)
    for _ in range(12):
        await game.draw()
    changes = await history(game, seat)
    assert [change.revision for change in changes] == list(range(1, 17))
    for place, known in enumerate(changes):
        watcher = Watcher(game, seat, known.etag)
        if place + 1 < len(changes):
            assert await watcher.changes_to(len(changes)) == changes[place + 1 :]
        else:
            assert await watcher.heartbeat() == known.revision  # there is no new change
        watcher.call.cancel()
    drawn = (await game.draw()).game
    late = Watcher(game, seat, 16)
    assert (await late.change()).etag == drawn.etag


async def test_changes_during_a_resume_are_sent_once_in_order(client: Client) -> None:
    game = await client.new_game(players=2, ruleset=UNLIMITED)

    async def draw_often() -> None:
        for _ in range(40):
            await game.draw()

    drawing = asyncio.create_task(draw_often())
    watchers = []
    while not drawing.done():
        watchers.append(Watcher(game, 0, 1))
        assert (await watchers[-1].change()).revision == 2
    await drawing
    for watcher in watchers:
        assert [change.revision for change in await watcher.changes_to(44)] == list(range(3, 45))


async def test_each_seat_sees_its_own_tiles_and_a_spectator_none(client: Client) -> None:
    game = await client.new_game(players=2, start=False, ruleset=UNLIMITED)
    watchers = {seat: Watcher(game, seat) for seat in (0, 1, 2)}
    for watcher in watchers.values():
        await watcher.snapshot()
    await game.start()
    dealt = {seat: (await watcher.change()).events[0].round_started for seat, watcher in watchers.items()}
    assert list(dealt[0].rack) == []
    for seat in (1, 2):
        assert list(dealt[seat].rack) == list((await game.see(seat)).rack)
        assert len(dealt[seat].rack) == 14
    for _ in range(4):
        seat = (await game.see()).turn.seat
        drawn = (await game.draw()).tiles_drawn
        events = {viewer: (await watcher.change()).events[0].tiles_drawn for viewer, watcher in watchers.items()}
        assert list(events.pop(seat).tiles) == list(drawn)
        assert [(event.seat, event.tile_count, list(event.tiles)) for event in events.values()] == [(seat, 1, [])] * 2


async def test_an_idle_stream_sends_heartbeats(store: Store) -> None:
    async with running_server(store, server_settings(heartbeat_seconds=0.05)) as (_, client):
        game = await client.new_game(ruleset=UNLIMITED)
        watcher = Watcher(game)
        revision = (await watcher.snapshot()).revision
        assert [await watcher.heartbeat() for _ in range(3)] == [revision] * 3
        await game.draw()
        assert (await watcher.change()).revision == revision + 1
        assert await watcher.heartbeat() == revision + 1


async def test_a_stream_ends_after_the_games_last_change(client: Client) -> None:
    game = await client.new_game(ruleset=UNLIMITED)
    watchers = [Watcher(game), Watcher(game, 1), Watcher(game, 2, 1)]
    for watcher in watchers[:2]:
        await watcher.snapshot()
    last = await resign(game, 2)
    for watcher in watchers:
        updates = await watcher.rest()
        events = updates[-1].change.events
        assert updates[-1].change.revision == last.revision
        assert events[-1].HasField("game_ended")
        assert await watcher.code() is grpc.StatusCode.OK
    for late, expected in ((Watcher(game), "snapshot"), (Watcher(game, 0, last.revision - 1), "change")):
        assert [update.WhichOneof("update") for update in await late.rest()] == [expected]
        assert await late.code() is grpc.StatusCode.OK
    at_the_end = Watcher(game, 0, last.etag)
    assert await at_the_end.rest() == []
    assert await at_the_end.code() is grpc.StatusCode.OK


# Games instead of changes


GAMES, BOTH = gs.WATCH_CONTENT_GAMES, gs.WATCH_CONTENT_BOTH


@pytest.mark.parametrize("seat", [0, 1, 2])
async def test_a_watcher_of_games_gets_the_view_after_each_change(client: Client, seat: int) -> None:
    game = await client.new_game(players=2, start=False, ruleset=UNLIMITED)
    games, both = Watcher(game, seat, content=GAMES), Watcher(game, seat, content=BOTH)
    snapshot = await games.snapshot()
    assert snapshot == await both.snapshot()
    await game.start()
    for revision in range(4, 10):
        view = await games.game()
        assert view == await game.see(seat)
        assert (view.revision, view.server_time) == (revision, view.update_time)
        change = await both.change()
        snapshot = fold(snapshot, change)
        assert snapshot == view == await both.game()
        await game.draw()


async def test_the_watch_of_games_of_a_seat_that_is_abandoned_ends(client: Client) -> None:
    game = await client.new_game(players=2, start=False, ruleset=UNLIMITED)
    former = Watcher(game, 1, content=GAMES)
    assert (await former.snapshot()).seat == 1
    await leave(game, 1)
    with pytest.raises(grpc.aio.AioRpcError) as end:
        await former.change()
    assert error_info(end.value).reason == "TOKEN_VOID"


async def test_a_watcher_of_games_who_resumes_gets_the_current_game_if_it_has_another_one(client: Client) -> None:
    game = await client.new_game(ruleset=UNLIMITED)
    seen = await game.see()
    assert await Watcher(game, 0, seen.etag, GAMES).heartbeat() == seen.revision
    drawn = (await game.draw()).game
    for etag in (seen.etag, no_etag(drawn.revision), drawn.etag.replace("5-", "9-", 1)):
        assert (await Watcher(game, 0, etag, GAMES).snapshot()).etag == drawn.etag
    watcher = Watcher(game, 0, 9, GAMES)
    assert (await watcher.snapshot()).etag == drawn.etag
    later = (await game.draw()).game
    assert (await watcher.game()).etag == later.etag
    last = await resign(game, 1)
    assert (await watcher.game()).state == game_pb2.GAME_STATE_FINISHED
    assert await Watcher(game, 0, last.etag, GAMES).rest() == []


async def test_a_watcher_of_both_who_resumes_gets_every_change_and_games_from_the_newest_on(client: Client) -> None:
    game = await client.new_game(ruleset=UNLIMITED)
    seen = await game.see()
    for _ in range(12):
        await game.draw()
    watcher = Watcher(game, 1, seen.etag, BOTH)
    assert [(await watcher.change()).revision for _ in range(12)] == list(range(5, 17))
    assert (await watcher.game()) == await game.see(1)
    await game.draw()
    assert (await watcher.change()).revision == 17
    assert (await watcher.game()) == await game.see(1)
    assert (await refused(Watcher(game, 1, no_etag(5), BOTH)))[1] == "HISTORY_UNAVAILABLE"


async def test_each_watcher_of_one_game_gets_the_update_that_it_asked_for(store: Store) -> None:
    """Those who begin and those who resume share a load of the game, but not the bytes of an update."""
    async with running_server(Slow(store), server_settings(heartbeat_seconds=60)) as (_, client):
        game = await client.new_game(ruleset=UNLIMITED)
        seen = await game.see()
        await game.draw()
        begun, resumed = list[Watcher](), list[Watcher]()
        for _ in range(20):
            begun.append(Watcher(game, content=BOTH))
            resumed.append(Watcher(game, 0, seen.etag, BOTH))
        await asyncio.gather(*(watcher.snapshot() for watcher in begun))
        await asyncio.gather(*(watcher.change() for watcher in resumed))
        await asyncio.gather(*(watcher.game() for watcher in resumed))


async def test_an_unknown_content_is_refused(client: Client) -> None:
    game = await client.new_game()
    code, reason, _ = await refused(Watcher(game, content=gs.WatchContent.ValueType(4)))
    assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "FIELD_INVALID")


async def test_a_reader_of_games_who_is_behind_gets_each_game_or_a_snapshot(played: "Played") -> None:
    async with aclosing(played.watched(content=Content.GAMES)) as updates:
        assert isinstance(await anext(updates), Snapshot)
        await played.draw(RECENT + 4)
        for revision in range(5, RECENT + 9):
            update = await anext(updates)
            assert isinstance(update, GameAfter)
            assert update.shared.view.view.revision == revision
        record = await played.draw(LAG + 1)
        snapshot = await anext(updates)
        assert isinstance(snapshot, Snapshot)
        assert snapshot.shared.view.etag == record.etag
        record = await played.act()
        after = await anext(updates)
        assert isinstance(after, GameAfter)
        assert (after.shared.view.etag, after.shared.view.view) == (record.etag, see(record.game, None))


# Where to resume from


async def test_a_resume_with_the_etag_of_another_history_is_refused(client: Client) -> None:
    game = await client.new_game(ruleset=UNLIMITED)
    changes = await history(game)
    for change in changes:
        assert await refused(Watcher(game, 0, no_etag(change.revision))) == (
            grpc.StatusCode.OUT_OF_RANGE,
            "HISTORY_UNAVAILABLE",
            {"oldest": "1", "newest": "4"},
        )
    lineage = changes[2].etag.partition("-")[2]
    assert (await refused(Watcher(game, 0, f"2-{lineage}")))[1] == "HISTORY_UNAVAILABLE"


async def test_a_resume_from_a_future_revision_is_refused(client: Client) -> None:
    game = await client.new_game(ruleset=UNLIMITED)
    for revision in (5, 6, 10**9, 2**32 - 1):
        assert await refused(Watcher(game, 0, revision)) == (
            grpc.StatusCode.OUT_OF_RANGE,
            "HISTORY_UNAVAILABLE",
            {"oldest": "1", "newest": "4"},
        )


@pytest.fixture(params=STORES)
async def forgetful_store(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Store]:
    """Returns each store in turn; it keeps eight changes of a game."""
    if request.param == "memory":
        yield memory_store(clock, history=8)
    else:
        kept = redis_store(request.getfixturevalue("empty_redis_url"), clock, history=8)
        yield kept
        await kept.close()


async def test_a_resume_from_a_trimmed_revision_is_refused(forgetful_store: Store) -> None:
    async with running_server(forgetful_store) as (_, client):
        game = await client.new_game(ruleset=UNLIMITED)
        for _ in range(10):
            await game.draw()
        assert await refused(Watcher(game, 0, 6)) == (
            grpc.StatusCode.OUT_OF_RANGE,
            "HISTORY_UNAVAILABLE",
            {"oldest": "7", "newest": "14"},
        )
        assert len(await Watcher(game, 0, 7).changes_to(14)) == 7


# Abandoned seats


async def test_the_watch_of_a_seat_that_is_abandoned_ends_with_the_change(client: Client) -> None:
    """The former owner must not see the next owner's tiles."""
    game = await client.new_game(players=2, start=False, ruleset=UNLIMITED)
    former = Watcher(game, 1)
    assert (await former.snapshot()).seat == 1
    await leave(game, 1)
    assert await game.join("next") == 1
    await game.start()
    owner = Watcher(game, 1, 1)
    [last] = (await former.change()).events
    assert last.player_left.seat == 1
    with pytest.raises(grpc.aio.AioRpcError) as end:
        await former.change()
    assert error_info(end.value).reason == "TOKEN_VOID"
    assert list((await owner.changes_to(6))[-1].events[0].round_started.rack) == list((await game.see(1)).rack)


async def test_an_owner_can_resume_from_a_revision_before_taking_the_seat(client: Client) -> None:
    game = await client.new_game(players=2, start=False, ruleset=UNLIMITED)
    await leave(game, 1)
    await game.join("next")
    owner = Watcher(game, 1, 1)  # resumes from before it took the seat
    await owner.changes_to(5)
    await game.start()
    assert len((await owner.change()).events[0].round_started.rack) == 14


async def test_a_watcher_of_a_history_that_the_store_lost_gets_an_error(
    empty_redis_url: str, raw: "aredis.Redis", clock: FakeClock
) -> None:
    """A replica that replaces a Redis may lack the last changes."""
    store = redis_store(empty_redis_url, clock)
    async with running_server(store, server_settings(heartbeat_seconds=0.05)) as (_, client):
        game = await client.new_game(ruleset=UNLIMITED)
        keys = [f"rummikub:{{{game.game_id}}}:{part}" for part in ("game", "events")]
        dumps = [await raw.dump(key) for key in keys]
        await game.draw()
        early, late = Watcher(game), Watcher(game)
        for watcher in (early, late):
            assert (await watcher.snapshot()).revision == 5
        for key, dump in zip(keys, dumps, strict=True):
            assert dump
            await raw.restore(key, 0, dump, replace=True)
        assert await refused(early) == (
            grpc.StatusCode.OUT_OF_RANGE,
            "HISTORY_UNAVAILABLE",
            {"oldest": "1", "newest": "4"},
        )
        assert (await refused(late))[1] == "HISTORY_UNAVAILABLE"
        etag = (await game.draw()).game.etag
        other = Watcher(game, 0, etag)
        assert await other.heartbeat() == 5
    await store.close()


# Slow readers


class Played:
    """A game that the test changes directly in the store, with the tokens `seat 1` and `seat 2`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.game_id = "a" * 32
        self.record: Record | None = None
        self.etags = dict[int, str]()

    async def act(self, action: Action | None = None) -> Record:
        """Stores an action, or the next draw without one; the first call creates the game."""
        applied = create(*parts(room(turn_time_limit_seconds=0))) if self.record is None else self._applied(action)
        change = encode_change(applied.game.revision, 0, bytes(16), applied.events)
        previous = self.record.etag if self.record else NO_ETAG
        tokens = tuple(SeatToken(player.seat, digest(f"seat {player.seat}")) for player in applied.game.players)
        self.record = Record(self.game_id, applied.game, lineage(previous, change), tokens, 0, 0)
        assert await self.store.games.commit(Commit(previous, self.record, change)) == Committed()
        self.etags[applied.game.revision] = self.record.etag
        return self.record

    def _applied(self, action: Action | None) -> Applied:
        assert self.record
        round_ = self.record.game.round
        assert action or round_
        applied = apply(self.record.game, action or DrawTile(round_.turn.seat if round_ else 0), 0)
        assert isinstance(applied, Applied)
        return applied

    async def draw(self, times: int) -> Record:
        """Stores a number of draws; returns the last record."""
        for _ in range(times - 1):
            await self.act()
        return await self.act()

    async def start(self) -> Record:
        """Creates and starts a game of two."""
        for action in (None, Join("Ada"), Join("Ben")):
            await self.act(action)
        return await self.act(StartGame(HOST, new_shuffle(SeededChance(1), Ruleset(), 2)))

    def watched(
        self,
        caller: Caller = SPECTATOR,
        after_revision: int = 0,
        stopping: asyncio.Event | None = None,
        content: Content = Content.CHANGES,
    ) -> AsyncGenerator[Update, None]:
        """Returns a watcher's updates; the caller decides how fast to read them."""
        games = use_cases(self.store, SeededChance(1), BOT_WAIT_MS).games
        watch = Watch(games, self.store, 60.0, stopping or asyncio.Event())
        return watch.watch(self.game_id, caller, after_revision, self.etags.get(after_revision, ""), content)


@pytest.fixture
async def played(store: Store) -> Played:
    """Returns a started game at revision 4, in each store in turn."""
    game = Played(store)
    await game.start()
    return game


def revisions(updates: Sequence[Update]) -> list[int]:
    """Asserts that all updates are changes; returns their revisions."""
    assert all(isinstance(update, Change) for update in updates)
    return [update.shared.view.revision for update in updates if isinstance(update, Change)]


async def test_a_change_while_a_reader_takes_an_update_is_not_missed(played: Played) -> None:
    async with aclosing(played.watched(after_revision=4)) as updates:
        assert isinstance(await anext(updates), Heartbeat)
        await played.act()
        told = [await anext(updates) for _ in range(3)]
        assert revisions([update for update in told if not isinstance(update, PresenceChange)]) == [5]
        await played.act()
        assert revisions([await asyncio.wait_for(anext(updates), 10)]) == [6]


async def test_a_reader_slightly_behind_gets_every_change(played: Played) -> None:
    async with aclosing(played.watched()) as updates:
        assert isinstance(await anext(updates), Snapshot)
        await played.act()
        assert revisions([await anext(updates)]) == [5]
        for _ in range(LAG):
            await played.act()
        assert revisions([await anext(updates) for _ in range(LAG)]) == list(range(6, 6 + LAG))


async def test_a_reader_far_behind_gets_a_snapshot_instead_of_the_missed_changes(played: Played) -> None:
    seat_1 = Caller(digest("seat 1"))
    async with aclosing(played.watched()) as updates, aclosing(played.watched(seat_1)) as own:
        for watcher in (updates, own):
            assert isinstance(await anext(watcher), Snapshot)
        await played.act()
        for watcher in (updates, own):
            assert revisions([await anext(watcher)]) == [5]
        record = await played.draw(LAG + 1)
        for watcher, seat in ((updates, None), (own, 1)):
            snapshot = await anext(watcher)
            assert isinstance(snapshot, Snapshot)
            assert snapshot.shared.view.etag == record.etag
            assert snapshot.shared.view.view.seat == seat
            assert bool(snapshot.shared.view.view.rack) is (seat == 1)
        await played.act()
        assert revisions([await anext(updates), await anext(own)]) == [record.game.revision + 1] * 2


async def test_a_reader_who_is_slow_after_the_first_snapshot_gets_another(played: Played) -> None:
    async with aclosing(played.watched()) as updates:
        assert isinstance(await anext(updates), Snapshot)
        record = await played.draw(LAG + 1)
        snapshot = await anext(updates)
        assert isinstance(snapshot, Snapshot)
        assert snapshot.shared.view.view.revision == record.game.revision


async def test_a_resume_gets_every_change_no_matter_how_many(played: Played) -> None:
    record = await played.draw(LAG + 12)
    async with aclosing(played.watched(after_revision=1)) as updates:
        told = [await anext(updates) for _ in range(record.game.revision - 1)]
    assert revisions(told) == list(range(2, record.game.revision + 1))


async def test_a_reader_behind_the_oldest_stored_change_gets_a_snapshot(forgetful_store: Store) -> None:
    played = Played(forgetful_store)
    await played.start()
    async with aclosing(played.watched()) as updates:
        assert isinstance(await anext(updates), Snapshot)
        await played.act()
        assert revisions([await anext(updates)]) == [5]
        record = await played.draw(20)  # fewer than LAG, more than the store keeps
        snapshot = await anext(updates)
        assert isinstance(snapshot, Snapshot)
        assert snapshot.shared.view.etag == record.etag


async def test_the_watch_of_a_slow_reader_whose_seat_is_abandoned_ends(store: Store) -> None:
    played = Played(store)
    for action in (None, Join("Ada"), Join("Ben")):
        await played.act(action)
    async with aclosing(played.watched(Caller(digest("seat 1")))) as updates:
        assert isinstance(await anext(updates), Snapshot)
        await played.act(Leave(2))
        assert revisions([await anext(updates)]) == [4]
        await played.act(Leave(1))
        for number in range(LAG // 2 + 1):
            await played.act(Join(f"player {number}"))
            await played.act(Leave(1))
        with pytest.raises(TokenVoid):
            await anext(updates)


async def test_a_reader_who_does_not_read_uses_no_memory_as_the_game_continues(played: Played) -> None:
    """There is no queue per reader: unread changes exist only in the store."""
    watchers = [played.watched() for _ in range(20)]
    for watcher in watchers:
        assert isinstance(await anext(watcher), Snapshot)
    await played.act()
    for watcher in watchers:
        assert revisions([await anext(watcher)]) == [5]

    def updates_alive() -> int:
        gc.collect()
        return sum(isinstance(thing, ChangeView | GameSnapshotView) for thing in gc.get_objects())

    before = updates_alive()
    for _ in range(60):
        await played.act()
    assert updates_alive() <= before
    for watcher in watchers:
        await watcher.aclose()


async def test_a_watch_that_has_ended_leaves_no_garbage(played: Played) -> None:
    """A server collects garbage of all generations rarely, and a client may open and close watches in a loop."""
    gc.collect()
    gc.disable()
    try:
        watcher = played.watched()
        assert isinstance(await anext(watcher), Snapshot)
        await watcher.aclose()
        del watcher
        assert [one for one in gc.get_objects() if isinstance(one, Feed)] == []
    finally:
        gc.enable()


# Many watchers


_T = TypeVar("_T")


class Counting(DelegatingStore):
    """A store that counts its operations."""

    def __init__(self, store: Store) -> None:
        self.asked = Counter[str]()
        super().__init__(store)

    async def _forward(self, operation: str, reply: Awaitable[_T]) -> _T:
        self.asked.update([operation])
        return await super()._forward(operation, reply)


class Slow(Counting):
    """A store with slow loads, so that many callers wait for the same one."""

    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        await asyncio.sleep(0.02)
        return await self._store.games.load(game_id, request_key)


def without_lasting(game: game_pb2.Game) -> list[str]:
    """Clears the fields that never change; returns those that were set."""
    names = [field.name for field, _ in game.ListFields()]
    found = [name for name in names if name in {"ruleset", "settings", "visibility", "labels"}]
    for name in found:
        game.ClearField(name)  # type: ignore[arg-type]  # a name of the four
    return sorted(found)


@pytest.mark.parametrize("revision", [None, 3])
async def test_the_basic_view_is_the_full_one_without_what_never_changes(client: Client, revision: int | None) -> None:
    game = await client.new_game(ruleset=UNLIMITED)
    full, basic = [
        (await client.games.GetGame(gs.GetGameRequest(game_id=game.game_id, revision=revision, view=view))).game
        for view in (gs.GAME_VIEW_UNSPECIFIED, gs.GAME_VIEW_BASIC)
    ]
    for seen in (full, basic):
        without_presence(seen)
        seen.ClearField("server_time")
    assert without_lasting(full) == ["ruleset", "settings", "visibility"]
    assert basic == full


@pytest.mark.parametrize("content", [gs.WATCH_CONTENT_CHANGES, GAMES, BOTH])
@pytest.mark.parametrize("resumes", [False, True])
async def test_a_watch_of_the_basic_view_never_sends_what_never_changes(
    client: Client, content: gs.WatchContent.ValueType, *, resumes: bool
) -> None:
    game = await client.new_game(ruleset=UNLIMITED)
    etag = (await game.see()).etag if resumes else ""
    views = (gs.GAME_VIEW_FULL, gs.GAME_VIEW_BASIC)
    watchers = [Watcher(game, after=etag, content=content, view=view) for view in views]
    revisions = [await watcher.heartbeat() for watcher in watchers] if resumes else []
    first = [] if revisions else [await watcher.next() for watcher in watchers]
    await game.draw()
    await client.turns.ResignGame(ts.ResignGameRequest(game_id=game.game_id), metadata=game.as_seat(1))
    full, basic = [await watcher.rest() for watcher in watchers]
    found = []
    for updates in (full, basic, first):
        for update in updates:
            for name in ("snapshot", "game"):
                if update.HasField(name):
                    without_presence(getattr(update, name))
                    getattr(update, name).ClearField("server_time")
                    found.append(without_lasting(getattr(update, name)))
    assert basic == full
    has_first = not resumes or content != gs.WATCH_CONTENT_CHANGES
    assert [names for names in found if names] == [["ruleset", "settings", "visibility"]] * has_first


async def test_a_change_and_the_game_after_it_are_read_and_encoded_once_for_all_watchers(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting, encoded, views = Counting(store), list[ChangeView](), list[GameSnapshotView]()
    plain, plain_game = codec.encode_change, codec.encode_changed_game

    def encode(sight: ChangeView) -> game_pb2.GameChange:
        encoded.append(sight)
        return plain(sight)

    def encode_game(sight: GameSnapshotView) -> game_pb2.Game:
        views.append(sight)
        return plain_game(sight)

    monkeypatch.setattr(codec, "encode_change", encode)
    monkeypatch.setattr(codec, "encode_changed_game", encode_game)
    async with running_server(counting, server_settings(heartbeat_seconds=60)) as (_, client):
        game = await client.new_game(ruleset=UNLIMITED)
        watchers = [Watcher(game, number % 3, content=BOTH if number % 2 else GAMES) for number in range(150)]
        for watcher in watchers:
            await watcher.snapshot()
        counting.asked.clear()
        views.clear()
        last = 4
        for _ in range(5):
            last = (await game.draw()).game.revision
            assert {(await watcher.change()).revision for watcher in watchers[1::2]} == {last}
            assert {(await watcher.game()).revision for watcher in watchers} == {last}
    assert counting.asked["events"] <= 2 * 5, "each change may cause two notifications"
    assert len(encoded) == 3 * 5, "two seats and the spectators, five changes"
    assert len(views) == 3 * 5, "as many games"


@pytest.mark.parametrize("behind", [0, 3, 20])
async def test_watchers_who_resume_together_share_reads(store: Store, behind: int) -> None:
    counting = Slow(store)
    async with running_server(counting, server_settings(heartbeat_seconds=60)) as (_, client):
        game = await client.new_game(ruleset=UNLIMITED)
        seen = await game.see()
        for _ in range(behind):
            await game.draw()
        counting.asked.clear()
        watchers = [Watcher(game, number % 3, seen.etag) for number in range(100)]
        if behind:
            told = await asyncio.gather(*(watcher.changes_to(seen.revision + behind) for watcher in watchers))
            for number in range(3):
                assert all(changes == told[number] for changes in told[number::3])
        else:
            assert {await watcher.heartbeat() for watcher in watchers} == {seen.revision}
    assert counting.asked["load"] < 30
    assert counting.asked["events"] < 50, "some watchers finish before others start"


async def test_many_watchers_of_one_game_delay_watchers_of_others_only_briefly(client: Client) -> None:
    crowded, quiet = [await client.new_game(ruleset=UNLIMITED) for _ in range(2)]
    crowd = [Watcher(crowded) for _ in range(400)]
    other = Watcher(quiet)
    for watcher in (*crowd, other):
        await watcher.snapshot()
    order: list[str] = []

    async def note(happening: Awaitable[object], name: str) -> None:
        await happening
        order.append(name)

    telling = [asyncio.create_task(note(watcher.change(), "crowd")) for watcher in crowd]
    telling.append(asyncio.create_task(note(other.change(), "other")))
    await asyncio.gather(crowded.draw(), note(quiet.draw(), "drawn"))
    await asyncio.gather(*telling)
    assert order.index("other") - order.index("drawn") < 350


async def test_the_watchers_of_a_stopping_server_get_different_retry_delays(store: Store) -> None:
    async with running_server(store) as (server, client):
        game = await client.new_game(ruleset=UNLIMITED)
        watchers = [Watcher(game) for _ in range(50)]
        for watcher in watchers:
            await watcher.snapshot()
        stopping = asyncio.create_task(server.stop())
        delays = sorted([(await watcher.rest())[-1].closing.retry_delay.ToMilliseconds() for watcher in watchers])
        await stopping
    assert len(set(delays)) == 50
    assert delays[-1] - delays[0] >= 49


# Shutdown


async def test_a_stopping_server_sends_the_revision_from_which_another_server_resumes(
    store: Store, clock: FakeClock
) -> None:
    async with AsyncExitStack() as stack:
        first = build_server(server_settings(), store, chance=SeededChance(1))
        await first.start()
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(f"127.0.0.1:{first.port}"))
        game = await Client(channel).new_game(ruleset=UNLIMITED)
        watcher = Watcher(game, 1)
        told = [(await watcher.snapshot()).revision]
        await game.draw()
        told.append((await watcher.change()).revision)
        stopping = asyncio.create_task(first.stop())
        (last,) = await watcher.rest()
        closing = last.closing
        assert closing.etag == game.etags[told[-1]]
        assert closing.retry_delay.ToMilliseconds() > 0
        assert await watcher.code() is grpc.StatusCode.OK
        await asyncio.wait_for(stopping, 10)
        clock.advance(1)
        _, other = await stack.enter_async_context(running_server(store, seed=2))
        game = GameAtHand(other, game.game_id, game.tokens)
        await game.draw()
        resumed = Watcher(game, 1, closing.etag)
        await game.draw()
        told += [change.revision for change in await resumed.changes_to(7)]
        assert told == [4, 5, 6, 7]


async def test_a_stopping_server_sends_every_change_before_closing(played: Played) -> None:
    stopping = asyncio.Event()
    async with aclosing(played.watched(stopping=stopping)) as updates:
        assert isinstance(await anext(updates), Snapshot)
        record = await played.draw(5)
        stopping.set()
        assert revisions([await anext(updates) for _ in range(5)]) == [5, 6, 7, 8, 9]
        closing = await anext(updates)
        assert isinstance(closing, Closing)
        assert (closing.revision, closing.etag) == (9, record.etag)
        with pytest.raises(StopAsyncIteration):
            await anext(updates)


# Changes while a watch begins


class Held(DelegatingStore):
    """A store whose answers about presence wait, so that a snapshot is older than its watcher thinks."""

    def __init__(self, store: Store) -> None:
        self.is_asked, self.is_released, self.is_loaded = asyncio.Event(), asyncio.Event(), asyncio.Event()
        super().__init__(store)

    async def load(self, game_id: str, request_key: str = "") -> Loaded:
        loaded = await self._store.games.load(game_id, request_key)
        self.is_loaded.set()
        return loaded

    async def read_presence(self, game_id: str) -> Mapping[int, Seen]:
        self.is_asked.set()
        await self.is_released.wait()
        return await self._store.presence.read(game_id)


async def test_a_change_after_the_load_of_the_first_snapshot_is_sent_at_once(store: Store) -> None:
    held = Held(store)
    async with running_server(held, server_settings(heartbeat_seconds=3600)) as (_, client):
        game = await client.new_game(start=False)
        held.is_loaded.clear()
        watcher = Watcher(game)
        await held.is_asked.wait()
        await held.is_loaded.wait()
        await game.join("Cleo")
        await asyncio.sleep(0.05)  # its change is notified
        held.is_released.set()
        assert len((await watcher.snapshot()).players) == 2
        assert (await watcher.change()).events[0].player_joined.name == "Cleo"


# Failed commits


class Losing(DelegatingStore):
    """A store whose commits fail, without effect, while `is_losing` is set."""

    is_losing = False

    async def commit(self, commit: Commit) -> Outcome:
        if self.is_losing:
            raise StoreUnavailable
        return await self._store.games.commit(commit)


async def test_a_failed_commit_is_never_sent(store: Store) -> None:
    losing = Losing(store)
    async with running_server(losing, server_settings(heartbeat_seconds=0.05)) as (_, client):
        game = await client.new_game(ruleset=UNLIMITED)
        watcher = Watcher(game)
        revision = (await watcher.snapshot()).revision
        losing.is_losing = True
        with pytest.raises(grpc.aio.AioRpcError):
            await game.draw()
        assert await watcher.heartbeat() == revision
        losing.is_losing = False
        drawn = (await game.draw()).game
        change = await watcher.change()
        assert (change.revision, change.etag) == (revision + 1, drawn.etag)


# Connections


@pytest.fixture
async def raw(empty_redis_url: str) -> AsyncIterator["aredis.Redis"]:
    """A direct client of the same Redis."""
    client = aredis.Redis.from_url(empty_redis_url)
    yield client
    await client.aclose()


@asynccontextmanager
async def on_redis(url: str, clock: FakeClock) -> AsyncIterator[Client]:
    """Yields a client of a server on Redis with a long heartbeat interval."""
    store = redis_store(url, clock)
    async with running_server(store, server_settings(heartbeat_seconds=60)) as (_, client):
        yield client
    await store.close()


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Polls a condition until it holds."""
    async with asyncio.timeout(10):
        while not await condition():  # noqa: ASYNC110 - the condition has no event
            await asyncio.sleep(0.01)


async def listeners(raw: "aredis.Redis") -> int:
    """Returns the number of connections with subscriptions."""
    return len([client for client in await raw.client_list() if int(client["sub"])])


async def test_changes_arrive_after_the_subscription_connection_is_lost(
    empty_redis_url: str, raw: "aredis.Redis", clock: FakeClock
) -> None:
    async with on_redis(empty_redis_url, clock) as client:
        game = await client.new_game(ruleset=UNLIMITED)
        watcher = Watcher(game)
        revision = (await watcher.snapshot()).revision
        for number in range(1, 4):
            await game.draw()
            assert (await watcher.change()).revision == revision + number
            await raw.client_kill_filter(_type="pubsub")


async def test_a_hundred_watchers_of_a_server_share_one_connection_and_get_everything(
    empty_redis_url: str, raw: "aredis.Redis", clock: FakeClock
) -> None:
    async with on_redis(empty_redis_url, clock) as client:
        game = await client.new_game(ruleset=UNLIMITED)
        watchers = [Watcher(game, number % 3) for number in range(100)]
        for watcher in watchers:
            await watcher.snapshot()
        for _ in range(10):
            await game.draw()
        seen = await asyncio.gather(*(watcher.changes_to(14) for watcher in watchers))
        for number in range(3):
            expected = (await history(game, number))[4:]
            assert all(changes == expected for changes in seen[number::3])
        assert await listeners(raw) == 1


async def test_a_cancelled_watch_leaves_no_subscription(store: Store, empty_redis_url: str) -> None:
    raw = aredis.Redis.from_url(empty_redis_url)
    async with running_server(store) as (_, client):
        game = await client.new_game(ruleset=UNLIMITED)
        staying = Watcher(game)
        await staying.snapshot()
        for _ in range(20):
            watcher = Watcher(game)
            await watcher.snapshot()
            watcher.call.cancel()
        await game.draw()
        assert (await staying.change()).revision == 5
        staying.call.cancel()

        async def nobody_watches() -> bool:
            if isinstance(store, MemoryStore):
                return not store.memory.subscriptions
            return not [channel for channel in await raw.pubsub_channels() if game.game_id in str(channel)]

        await eventually(nobody_watches)
    await raw.aclose()


async def test_a_watch_that_is_cancelled_at_once_leaves_no_subscription(store: Store, empty_redis_url: str) -> None:
    raw = aredis.Redis.from_url(empty_redis_url)
    async with running_server(store) as (server, client):
        game = await client.new_game(ruleset=UNLIMITED)
        for ticks in range(30):
            watcher = Watcher(game, 0, 1)
            for _ in range(ticks):
                await asyncio.sleep(0)
            watcher.call.cancel()
        watcher = Watcher(game)
        await watcher.snapshot()
        await game.draw()
        assert (await watcher.change()).revision == 5
        watcher.call.cancel()
        await asyncio.wait_for(server.listeners[0].drained(), 10)
        if isinstance(store, MemoryStore):
            assert not store.memory.subscriptions
    await raw.aclose()
