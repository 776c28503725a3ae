"""Drafts over gRPC: who sees them, what they change (nothing but a time-out), and their limits."""

import asyncio
import contextlib
import gc
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import replace
from typing import TypeVar

import grpc.aio
import pytest

from engine.game import Game, Playing
from engine.melding.drafts import Draft
from engine.melding.ruleset import SABRA, TurnTimeoutDirty
from engine.room_settings import DraftVisibility
from engine.seats import Turn
from rummikub.v1 import game_pb2, meld_pb2, room_settings_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.app.changes import BOT_WAIT_MS
from service.app.identity import SPECTATOR
from service.app.use_cases import use_cases
from service.app.watch import Watch
from service.app.watch_updates import (
    Change,
    LiveDraft,
    Snapshot,
    Update,
)
from service.server import Server
from service.storage.redis.store import RedisStore
from service.storage.store import DRAFT_MS, DRAFTS_AT_ONCE, Store
from support.delegating_store import DelegatingStore
from support.harness import (
    Client,
    FakeClock,
    GameAtHand,
    SeededChance,
    as_tiles,
    error_info,
    put_game,
    redis_store,
    running_server,
    server_settings,
    status_details,
)
from support.positions import game_at
from support.rooms import Rules, room
from tools.games import Options, game_rules, options

pytestmark = pytest.mark.slow

LIMIT = 30
VIEWERS = (0, 1, 2, 3)
TIMED = options(turn_time_limit_seconds=LIMIT)
OPEN = options(turn_time_limit_seconds=LIMIT, draft_visibility=room_settings_pb2.DRAFT_VISIBILITY_EVERYONE)
PASSING = options(
    turn_time_limit_seconds=LIMIT, turn_timeout_clean=ruleset_pb2.TURN_TIMEOUT_CLEAN_PASS, penalty_tiles=7
)
NO_SWEEPS = server_settings(sweep_seconds=3600.0)
QUIET_SECONDS = 0.2
"""How long a test waits for an update that must not come."""
_T = TypeVar("_T")


def draft_of(*melds: Sequence[int]) -> game_pb2.Draft:
    """Returns a draft of melds."""
    return game_pb2.Draft(table=meld_pb2.Table(melds=[meld_pb2.Meld(tiles=as_tiles(meld)) for meld in melds]))


async def own_draft(game: GameAtHand, count: int = 1) -> game_pb2.Draft:
    """Returns a draft of some tiles on the rack of the seat to move."""
    seat = (await game.see()).turn.seat
    return draft_of((await game.see(seat)).rack[:count])


async def reason_of(call: Awaitable[_T]) -> str:
    """Returns the reason of a refusal."""
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await call
    return str(error_info(refusal.value).reason)


@contextlib.asynccontextmanager
async def watching(game: GameAtHand, seat: int = 0, etag: str = "") -> AsyncIterator["Watcher"]:
    """Yields a watcher of a game."""
    request = gs.WatchGameRequest(game_id=game.game_id, etag=etag)
    call = game.client.games.WatchGame(request, metadata=game.as_seat(seat))
    try:
        yield Watcher(call)
    finally:
        call.cancel()


class Watcher:
    """A watch without heartbeats and presence, which come by themselves."""

    def __init__(self, call: "grpc.aio.UnaryStreamCall[gs.WatchGameRequest, gs.WatchGameResponse]") -> None:
        self._updates = aiter(call)
        self._next: asyncio.Future[gs.WatchGameResponse] | None = None

    async def next(self) -> gs.WatchGameResponse:
        """Returns the next update."""
        while True:
            if self._next is None:
                self._next = asyncio.ensure_future(anext(self._updates))
            update = await asyncio.wait_for(asyncio.shield(self._next), 30)
            self._next = None
            if update.WhichOneof("update") not in {"heartbeat", "presence"}:
                return update

    async def assert_quiet(self) -> None:
        """Checks that no update comes for a moment."""
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(self.next(), QUIET_SECONDS)


# What a draft is, and who sees it


async def test_a_draft_changes_no_game(client: Client, store: Store) -> None:
    game = await client.new_game(3, ruleset=TIMED)
    before, bounds = await game.see(), await store.streams.bounds(game.game_id)
    seat = before.turn.seat
    for number in (1, 2, 3):
        saved = await game.save_draft(await own_draft(game, number))
        assert (saved.draft_number, saved.is_legal) == (number, False)
    after = await game.see()
    assert (after.revision, after.etag, after.update_time) == (before.revision, before.etag, before.update_time)
    assert await store.streams.bounds(game.game_id) == bounds
    request = ts.PlayTurnRequest(game_id=game.game_id, etag=before.etag, draw=ts.DrawTile())
    played = await client.turns.PlayTurn(request, metadata=game.as_seat(seat))
    assert played.game.revision == before.revision + 1
    assert not (await game.see(seat)).turn.HasField("draft")


@pytest.mark.parametrize("rules", [TIMED, OPEN], ids=["owner", "everyone"])
async def test_a_draft_is_visible_to_its_player_or_to_everyone(client: Client, rules: Options) -> None:
    game = await client.new_game(3, ruleset=rules)
    before = await game.see()
    seat = before.turn.seat
    first, second, third = (await game.see(seat)).rack[:3]
    table = [
        meld_pb2.Meld(tiles=[first, second], kind=meld_pb2.MELD_KIND_GROUP, declared_faces=as_tiles([7])),
        meld_pb2.Meld(tiles=[third]),
        meld_pb2.Meld(),
    ]
    saved = await game.save_draft(game_pb2.Draft(table=meld_pb2.Table(melds=table)))
    expected = game_pb2.SavedDraft(seat=seat, table=meld_pb2.Table(melds=table), number=saved.draft_number)
    for viewer in VIEWERS:
        turn = (await game.see(viewer)).turn
        assert turn.HasField("draft") == (viewer == seat or rules is OPEN)
        assert turn.draft == (expected if turn.HasField("draft") else game_pb2.SavedDraft())
        assert (turn.step, turn.deadline, turn.revision) == (
            game_pb2.TURN_STEP_OPEN,
            before.turn.deadline,
            before.revision,
        )
        async with watching(game, viewer) as watcher:
            assert (await watcher.next()).snapshot.turn == turn
    await game.draw()
    for viewer in VIEWERS:
        assert not (await game.see(viewer)).turn.HasField("draft")


async def test_a_legal_draft_says_so(client: Client, store: Store) -> None:
    game = await put_game(client, store, untimed("[B1 K1 O1] / 1*{R4 R5 R6 K1} 2{K2} / {O9} / 1"))
    table = ([14, 27, 40], [4, 5, 6])
    assert (await game.save_draft(draft_of(*table))).is_legal
    assert (await game.see(1)).turn.draft.is_legal
    assert not (await game.save_draft(draft_of(*table, [27]))).is_legal


async def test_a_missing_draft_is_the_current_table(client: Client, store: Store) -> None:
    game = await put_game(client, store, untimed("[R4 R5 R6] | [B1 K1 O1] / 1*{R1 R2} 2{K2} / {O9} / 1"))
    await game.save_draft()
    seen = await game.see(1)
    assert [list(meld.tiles) for meld in seen.turn.draft.table.melds] == [list(meld.tiles) for meld in seen.table.melds]
    await game.save_draft(game_pb2.Draft())
    seen = await game.see(1)
    assert seen.turn.HasField("draft")
    assert list(seen.turn.draft.table.melds) == []


def untimed(position: str, rules: Rules = SABRA) -> Game:
    return game_at(position, room(rules, turn_time_limit_seconds=0))


async def test_a_draft_lasts_for_its_turn_whatever_else_happens_in_it(client: Client) -> None:
    claims = ruleset_pb2.TURN_INVALID_SUBMISSION_PENALISE_ON_UNANIMOUS_CLAIM
    game = await client.new_game(3, ruleset=game_rules(turn_invalid_submission=claims))
    started = await game.see()
    seat = started.turn.seat
    await game.save_draft(await own_draft(game))
    await game.play_illegally()
    seen = await game.see(seat)
    assert (seen.revision, seen.turn.revision) == (started.revision + 1, started.revision)
    assert seen.turn.draft.number == 1
    assert (await game.save_draft(await own_draft(game, 2))).draft_number == 2


async def test_a_draft_for_another_state_is_refused(client: Client) -> None:
    game = await client.new_game(2, ruleset=TIMED)
    await game.draw()
    seen = await game.see()
    metadata = game.as_seat(seen.turn.seat)
    for etag in (game.etags[seen.revision - 1], f"{seen.revision}-{'0' * 32}"):
        request = ts.SaveDraftRequest(game_id=game.game_id, etag=etag)
        assert await reason_of(client.turns.SaveDraft(request, metadata=metadata)) == "STALE_STATE"
    assert await reason_of(game.save_draft(seat=3 - seen.turn.seat)) == "NOT_YOUR_TURN"


# Time-outs


@pytest.mark.parametrize(
    ("rules", "count", "tiles"),
    [(TIMED, None, 1), (TIMED, 0, 1), (TIMED, 2, 3), (PASSING, None, 0), (PASSING, 2, 7)],
)
async def test_a_draft_decides_the_penalty_of_a_time_out(
    client: Client, clock: FakeClock, rules: Options, count: int | None, tiles: int
) -> None:
    game = await client.new_game(3, ruleset=rules)
    seat = (await game.see()).turn.seat
    if count is not None:
        await game.save_draft(await own_draft(game, count))
    clock.advance(LIMIT + 1)
    for viewer in VIEWERS:
        assert (await game.see(viewer)).players[seat - 1].tile_count == 14 + tiles
        request = gs.ListChangesRequest(game_id=game.game_id)
        changes = (await client.games.ListChanges(request, metadata=game.as_seat(viewer))).changes
        timed_out = changes[-1].events[0].turn_timed_out
        assert (timed_out.seat, timed_out.tile_count) == (seat, tiles)
        assert len(timed_out.tiles) == (tiles if viewer == seat else 0)


async def test_a_draft_of_an_earlier_turn_does_not_count(client: Client, clock: FakeClock) -> None:
    game = await client.new_game(2, ruleset=TIMED)
    await game.save_draft(await own_draft(game, 2))
    await game.draw()
    seat = (await game.see()).turn.seat
    clock.advance(LIMIT + 1)
    assert (await game.see()).players[seat - 1].tile_count == 14 + 1


async def test_a_legal_draft_is_played_on_time_out_if_the_rules_allow_it(
    client: Client, store: Store, clock: FakeClock
) -> None:
    commits = replace(SABRA, turn_timeout_dirty=TurnTimeoutDirty.COMMIT_IF_VALID_ELSE_REVERT)
    start = game_at(". / 1*{R4 R5 R6 K1} 2{K2} / {O9} / 1", commits)
    assert isinstance(start.phase, Playing)
    timed = replace(start.phase.round, turn=Turn(1, clock() + 1000))
    game = await put_game(client, store, replace(start, phase=Playing(timed)), clock())
    await game.save_draft(draft_of([4, 5, 6]))
    clock.advance(2)
    assert list((await game.see(1)).rack) == [27]
    changes = (await client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id))).changes
    kinds = [event.WhichOneof("event") for event in changes[-1].events]
    assert kinds == ["turn_timed_out", "tiles_played", "turn_started"]


async def test_a_draft_after_the_deadline_is_refused(client: Client, clock: FakeClock) -> None:
    game = await client.new_game(2, ruleset=TIMED)
    seen = await game.see()
    clock.advance(LIMIT)
    await game.save_draft(await own_draft(game))
    clock.advance(0.001)
    request = ts.SaveDraftRequest(game_id=game.game_id, etag=seen.etag)
    metadata = game.as_seat(seen.turn.seat)
    assert await reason_of(client.turns.SaveDraft(request, metadata=metadata)) == "TURN_TIMED_OUT"
    assert (await game.see()).players[seen.turn.seat - 1].tile_count == 14 + 3


async def test_servers_share_drafts_and_any_of_them_applies_the_time_out(
    empty_redis_url: str, clock: FakeClock
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        clients: list[Client] = []
        servers: list[Server] = []
        for seed in (1, 2, 3):
            store = redis_store(empty_redis_url, clock)
            stack.push_async_callback(store.close)
            server, client = await stack.enter_async_context(running_server(store, NO_SWEEPS, seed))
            servers.append(server)
            clients.append(client)
        game = await clients[0].new_game(2, ruleset=OPEN)
        elsewhere = GameAtHand(clients[1], game.game_id, game.tokens)
        seat = (await game.see()).turn.seat
        async with watching(elsewhere) as watcher:
            await watcher.next()
            draft = await own_draft(game, 2)
            await game.save_draft(draft)
            update = (await watcher.next()).draft
            assert (update.seat, list(update.table.melds), update.number) == (seat, list(draft.table.melds), 1)
            assert (await elsewhere.see(seat)).turn.draft == update
            clock.advance(LIMIT + 1)
            assert await servers[2].sweeper.sweep() == 1
            [late, *_] = (await watcher.next()).change.events
            assert late.turn_timed_out.tile_count == 3
        assert (await game.see()).players[seat - 1].tile_count == 14 + 3


# Watching


async def test_watchers_see_the_table_move(client: Client) -> None:
    game = await client.new_game(3, ruleset=OPEN)
    seat = (await game.see()).turn.seat
    async with contextlib.AsyncExitStack() as stack:
        watchers = [await stack.enter_async_context(watching(game, viewer)) for viewer in VIEWERS]
        for watcher in watchers:
            await watcher.next()
        for count in (1, 2):
            draft = await own_draft(game, count)
            saved = await game.save_draft(draft)
            expected = game_pb2.SavedDraft(seat=seat, table=draft.table, number=saved.draft_number)
            for watcher in watchers:
                assert (await watcher.next()).draft == expected
        await game.draw()
        for watcher in watchers:
            assert (await watcher.next()).change.events
            await watcher.assert_quiet()
        await game.save_draft(await own_draft(game))
        for watcher in watchers:
            assert (await watcher.next()).draft.seat != seat


async def test_a_resuming_watcher_gets_the_latest_draft_after_the_changes(client: Client) -> None:
    game = await client.new_game(2, ruleset=OPEN)
    first = (await game.see()).revision
    await game.save_draft(await own_draft(game))
    await game.draw()
    for count in (1, 2, 3):
        await game.save_draft(await own_draft(game, count))
    async with watching(game, etag=game.etags[first]) as watcher:
        assert (await watcher.next()).change.revision == first + 1
        assert len((await watcher.next()).draft.table.melds[0].tiles) == 3
        await watcher.assert_quiet()


async def test_a_snapshot_has_the_draft_and_no_update_repeats_it(client: Client) -> None:
    game = await client.new_game(2, ruleset=OPEN)
    await game.save_draft(await own_draft(game))
    async with watching(game) as watcher:
        assert (await watcher.next()).snapshot.turn.draft.number == 1
        await watcher.assert_quiet()
        await game.save_draft(await own_draft(game, 2))
        assert (await watcher.next()).draft.number == 2


async def test_no_draft_follows_the_end_of_its_turn(client: Client, store: Store) -> None:
    rules = room(SABRA, draft_visibility=DraftVisibility.EVERYONE)
    game = await put_game(client, store, untimed("[R4 R5 R6] / 1*{R7} 2{K2} / {O9} / 1", rules))
    async with watching(game, etag=game.etag) as watcher:
        await game.save_draft(draft_of([4, 5, 6, 7]))
        play = ts.PlayTiles(table=draft_of([4, 5, 6, 7]).table)
        await game.take(ts.PlayTurnRequest(play=play))
        while (await watcher.next()).WhichOneof("update") != "change":
            pass
        with pytest.raises(StopAsyncIteration):
            await watcher.next()


async def test_watchers_do_not_see_the_drafts_of_others_unless_the_rules_show_them(client: Client) -> None:
    game = await client.new_game(2, ruleset=TIMED)
    seat = (await game.see()).turn.seat
    async with contextlib.AsyncExitStack() as stack:
        for viewer in (0, 1, 2):
            watcher = await stack.enter_async_context(watching(game, viewer))
            await watcher.next()
            await game.save_draft(await own_draft(game))
            await watcher.assert_quiet()
    assert (await game.see(seat)).turn.HasField("draft")


MANY = 100


async def test_a_slow_watcher_gets_the_latest_draft_and_none_of_an_earlier_turn(
    client: Client, store: Store, clock: FakeClock
) -> None:
    everyone = room_settings_pb2.DRAFT_VISIBILITY_EVERYONE
    rules = options(turn_time_limit_seconds=0, draft_visibility=everyone)
    game = await client.new_game(2, ruleset=rules)
    watch = Watch(use_cases(store, SeededChance(1), BOT_WAIT_MS).games, store, 60.0, asyncio.Event())
    async with (
        contextlib.aclosing(watch.watch(game.game_id, SPECTATOR, 0, "")) as slow,
        contextlib.aclosing(watch.watch(game.game_id, SPECTATOR, 0, "")) as quick,
    ):
        for updates in (slow, quick):
            assert isinstance(await anext(updates), Snapshot)
        draft = await own_draft(game, 3)
        await save_at_the_permitted_rate(game, clock, draft, 1)
        assert (await next_draft(quick)).number == 1  # the feed follows the game's drafts
        before = drafts_in_memory()
        assert before > 0
        await save_at_the_permitted_rate(game, clock, draft, MANY)
        while (await next_draft(quick)).number <= MANY:
            pass
        assert drafts_in_memory() <= before + 1
        assert (await next_draft(slow)).number == 1 + MANY
        await save_at_the_permitted_rate(game, clock, draft, MANY)
        await game.draw()
        await save_at_the_permitted_rate(game, clock, await own_draft(game, 3), MANY)
        revision = (await game.see()).turn.revision
        while (seen := await next_draft(quick)).number <= 3 * MANY:
            assert seen.turn_revision in {revision - 1, revision}
        update = await anext(slow)
        assert isinstance(update, Change)
        assert update.shared.view.revision == revision
        last = await next_draft(slow)
        assert (last.turn_revision, last.number) == (revision, 1 + 3 * MANY)
        assert drafts_in_memory() <= before + 1


async def save_at_the_permitted_rate(game: GameAtHand, clock: FakeClock, draft: game_pb2.Draft, count: int) -> None:
    """Saves a draft several times for the seat to move."""
    seen = await game.see()
    request = ts.SaveDraftRequest(game_id=game.game_id, etag=seen.etag, draft=draft)
    for _ in range(count):
        clock.advance(DRAFT_MS / 1000)
        await game.client.turns.SaveDraft(request, metadata=game.as_seat(seen.turn.seat))


async def next_draft(updates: AsyncIterator[Update]) -> Draft:
    """Returns the next draft of a watch."""
    while True:
        update = await asyncio.wait_for(anext(updates), 30)
        if isinstance(update, LiveDraft):
            return update.shared.view


def drafts_in_memory() -> int:
    """Returns how many drafts this process holds."""
    gc.collect()
    return sum(isinstance(one, Draft) for one in gc.get_objects())


# Abuse


async def test_a_seat_saves_only_so_many_drafts(client: Client, clock: FakeClock) -> None:
    game = await client.new_game(2, ruleset=TIMED)
    for _ in range(DRAFTS_AT_ONCE):
        await game.save_draft()
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await game.save_draft()
    assert (refusal.value.code(), error_info(refusal.value).reason) == (grpc.StatusCode.UNAVAILABLE, "OVERLOADED")
    assert any(detail.type_url.endswith("RetryInfo") for detail in status_details(refusal.value).details)
    clock.advance(DRAFT_MS / 1000)
    assert (await game.save_draft()).draft_number == DRAFTS_AT_ONCE + 1
    assert await reason_of(game.save_draft()) == "OVERLOADED"
    await game.draw()
    await game.save_draft()  # the other seat has its own limit


class Counting(DelegatingStore):
    """Notes the operations of a store by the task, so by the call, that needs them."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.operations: dict[asyncio.Task[object] | None, list[str]] = defaultdict(list)

    async def _forward(self, operation: str, reply: Awaitable[_T]) -> _T:
        self.operations[asyncio.current_task()].append(operation)
        return await reply


DRAFTS = 500
MANY_DRAFTS = 10_000
AT_ONCE = 50


@pytest.mark.parametrize("drafts", [DRAFTS, pytest.param(MANY_DRAFTS, marks=pytest.mark.soak)])
@pytest.mark.parametrize("rules", [TIMED, OPEN], ids=["owner", "everyone"])
async def test_drafts_without_end_in_a_turn_cost_nobody_else_anything(
    empty_redis_url: str, clock: FakeClock, rules: Options, drafts: int
) -> None:
    """The clock stands still, so that a seat may save 20 drafts; then each of 20 more is due when it is sent."""
    store = redis_store(empty_redis_url, clock)
    counting = Counting(store)
    async with running_server(counting, NO_SWEEPS) as (_, client), watched_bytes(client, rules) as (game, received):
        seen = await game.see()
        history, keys = await history_of(game), await stored(store, game)
        metadata = game.as_seat(seen.turn.seat)
        draft = await own_draft(game, 3)
        request = ts.SaveDraftRequest(game_id=game.game_id, etag=seen.etag, draft=draft)
        ends: Counter[str] = Counter()
        before = received.total()
        for _ in range(drafts // AT_ONCE):
            calls = (client.turns.SaveDraft(request, metadata=metadata) for _ in range(AT_ONCE))
            for end in await asyncio.gather(*calls, return_exceptions=True):
                ends["saved" if isinstance(end, ts.SaveDraftResponse) else reason(end)] += 1
        assert ends == {"saved": DRAFTS_AT_ONCE, "OVERLOADED": drafts - DRAFTS_AT_ONCE}
        assert (await history_of(game), await stored(store, game)) == (history, keys)
        await asyncio.sleep(QUIET_SECONDS)
        most = DRAFTS_AT_ONCE * (draft.ByteSize() + 20) if rules is OPEN else 0
        assert received.total() - before <= most
        counting.operations.clear()
        turn = ts.PlayTurnRequest(game_id=game.game_id, etag=seen.etag, draw=ts.DrawTile())
        answer = await client.turns.PlayTurn(turn, metadata=metadata)
        assert answer.game.revision == seen.revision + 1
        assert [made for made in counting.operations.values() if "commit" in made] == [["commit"]]
    await store.close()


def reason(end: object) -> str:
    assert isinstance(end, grpc.aio.AioRpcError)
    return str(error_info(end).reason)


async def history_of(game: GameAtHand) -> gs.ListChangesResponse:
    return await game.client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id))


async def stored(store: RedisStore, game: GameAtHand) -> tuple[object, ...]:
    """Returns the game and the whole stream as stored."""
    return await store.games.load(game.game_id), await store.streams.entries(game.game_id, 1, 100)


@contextlib.asynccontextmanager
async def watched_bytes(client: Client, rules: Options) -> AsyncIterator[tuple[GameAtHand, "Counter[str]"]]:
    """Yields a new game and a count of the bytes that its two watchers receive besides heartbeats."""
    game, received = await client.new_game(2, ruleset=rules), Counter[str]()

    async def count(seat: int) -> None:
        call = client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id), metadata=game.as_seat(seat))
        async for update in call:
            kind = str(update.WhichOneof("update"))
            if kind in {"draft", "change"}:
                received[kind] += update.ByteSize()

    watchers = [asyncio.create_task(count(seat)) for seat in (0, 3 - (await game.see()).turn.seat)]
    await asyncio.sleep(QUIET_SECONDS)
    try:
        yield game, received
    finally:
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)
