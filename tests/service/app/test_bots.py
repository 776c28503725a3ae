"""Bots over gRPC: players add them and see them, and any server plays each of their turns exactly once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import grpc
import grpc.aio
import pytest

from engine.actions import Action, Join, StartGame
from engine.effort import Budget
from engine.events import Event, PlayerResigned, TurnStarted, TurnTimedOut
from engine.game import Game, Playing, bots_to_act, round_of
from engine.melding.actions import DrawTile, PlayTiles
from engine.melding.events import ErrorClaimed, TileDrawn, TilesPlayed, TurnPassed
from engine.melding.melds import ProposedMeld
from engine.melding.presets import PRESETS
from engine.melding.ruleset import Preset, StartDrawDetermines, StartPlayer, with_options
from engine.replay import replay
from engine.room_settings import RoomSettings
from engine.seats import HOST, BotLevel
from engine.turns import Applied, apply, create
from rummikub.v1 import game_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.analysis.queries import Query
from service.app.bots import Bots
from service.app.changes import BOT_WAIT_MS, ChangeLoop
from service.app.commands.command import NO_ANSWER, Answer, GameCommand, RequestIdentity
from service.app.commands.turns import PlayTurn, TurnRequest
from service.app.history import OffLoopRunner
from service.app.identity import Caller, digest, new_shuffle
from service.errors import StoreUnavailable
from service.model.change import NO_ETAG, Commit, Outcome, lineage
from service.model.record import Record
from service.storage.store import Store
from service.storage.stored_events import encode_change
from support.delegating_store import DelegatingStore
from support.harness import (
    START_MS,
    Client,
    FakeClock,
    GameAtHand,
    SeededChance,
    due,
    error_info,
    field_violations,
    new_id,
    put_game,
    redis_store,
    running_server,
    server_process,
    server_settings,
)
from support.rooms import Room, room
from tools.games import Options, options

pytestmark = pytest.mark.slow

T = TypeVar("T")

EASY, MEDIUM, HARD = game_pb2.BOT_LEVEL_EASY, game_pb2.BOT_LEVEL_MEDIUM, game_pb2.BOT_LEVEL_HARD
UNTIMED = options(turn_time_limit_seconds=0)
SHORT = options(turn_time_limit_seconds=0, deal_hand_size=7, initial_meld_threshold=0)
"""Rounds that are soon over."""
TWO_ROUNDS = options(
    turn_time_limit_seconds=0,
    match_end=ruleset_pb2.MATCH_END_FIXED_ROUNDS,
    match_rounds=2,
    deal_hand_size=5,
    initial_meld_threshold=0,
)
CLAIMS = options(
    turn_time_limit_seconds=0,
    turn_invalid_submission=ruleset_pb2.TURN_INVALID_SUBMISSION_PENALISE_ON_UNANIMOUS_CLAIM,
)
LONG_SECONDS = 60.0
"""Timeout in seconds; nothing here takes so long."""


async def add_bot(game: GameAtHand, level: game_pb2.BotLevel.ValueType, name: str = "", seat: int = 1) -> int:
    """Adds a bot on behalf of a lobby player; returns its seat."""
    request = gs.AddBotRequest(game_id=game.game_id, level=level, name=name, request_id=new_id())
    return (await game.client.games.AddBot(request, metadata=game.as_seat(seat))).seat


async def new_game(
    client: Client, *levels: game_pb2.BotLevel.ValueType, ruleset: Options = UNTIMED, start: bool = True
) -> GameAtHand:
    """Returns a game of a person at seat 1 and bots, started by default."""
    game = await client.new_game(players=1, start=False, ruleset=ruleset)
    for level in levels:
        await add_bot(game, level)
    if start:
        await game.start()
    return game


async def resign(game: GameAtHand) -> None:
    """Resigns seat 1, which leaves only bots."""
    await game.client.turns.ResignGame(ts.ResignGameRequest(game_id=game.game_id), metadata=game.as_seat(1))


async def until(
    game: GameAtHand, is_so: Callable[[game_pb2.Game], bool], client: Client | None = None
) -> game_pb2.Game:
    """Watches a game as seat 1 until a condition holds; returns the game."""
    watching = (client or game.client).games.WatchGame(gs.WatchGameRequest(game_id=game.game_id))
    request = gs.GetGameRequest(game_id=game.game_id)
    async with asyncio.timeout(LONG_SECONDS):
        async for _ in watching:
            seen = (await (client or game.client).games.GetGame(request, metadata=game.as_seat(1))).game
            if is_so(seen):
                watching.cancel()
                return seen
    raise AssertionError("the game ended before the condition held")


def is_over(game: game_pb2.Game) -> bool:
    return game.state != game_pb2.GAME_STATE_PLAYING


async def play_round(game: GameAtHand, *clients: Client) -> game_pb2.Game:
    """Draws or passes in every turn of seat 1 until the round is over, through any of the clients."""
    turns = 0
    while True:
        client = clients[turns % len(clients)] if clients else game.client
        seen = await until(game, lambda now: is_over(now) or now.turn.seat == 1, client)
        if is_over(seen):
            return seen
        turns += 1
        await (replace(game, client=client).draw(1) if seen.pool_count else replace(game, client=client).pass_on(1))


async def stored_events(store: Store, game_id: str) -> list[tuple[Event, ...]]:
    """Returns a game's events by change, after a check that replaying them gives the snapshot."""
    record = (await store.games.load(game_id)).record
    entries = await store.streams.entries(game_id, 1, 10_000)
    assert record
    assert [entry.revision for entry in entries] == list(range(1, record.game.revision + 1))
    assert replay(entry.events for entry in entries) == record.game
    etag = NO_ETAG
    for entry in entries:
        etag = lineage(etag, encode_change(entry.revision, entry.time_ms, entry.nonce, entry.events, entry.cause))
    assert record.etag == etag
    return [entry.events for entry in entries]


def check_turns(changes: list[tuple[Event, ...]]) -> None:
    """Asserts that each player acted once in each turn, or resigned, and that no turn timed out."""
    seat, has_acted = 0, True
    for event in (event for change in changes for event in change):
        match event:
            case TurnStarted(turn):
                assert has_acted, f"seat {seat} did not act in its turn"
                seat, has_acted = turn.seat, False
            case TilesPlayed() | TileDrawn() | TurnPassed():
                assert (event.seat, has_acted) == (seat, False), f"seat {event.seat} acted twice or out of turn"
                has_acted = True
            case PlayerResigned(resigned):
                has_acted = has_acted or resigned == seat
            case TurnTimedOut():
                raise AssertionError(f"seat {seat} timed out")
            case _:
                pass


# Causes


async def test_a_change_that_a_bot_makes_says_so(client: Client) -> None:
    game = await new_game(client, EASY)
    if (await until(game, lambda now: now.turn.seat == 1)).revision == 4:  # it has begun with seat 1
        await game.draw(1)
        await until(game, lambda now: now.turn.seat == 1)
    changes = (await client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id))).changes
    by_bot = [change.cause_seat for change in changes if change.cause == game_pb2.CHANGE_CAUSE_BOT]
    assert by_bot == [2]


# In the lobby


async def test_a_bot_is_seated_and_visible_to_all(client: Client) -> None:
    game = await client.new_game(players=1, start=False)
    request = gs.AddBotRequest(game_id=game.game_id, level=HARD, request_id=new_id())
    answer = await client.games.AddBot(request, metadata=game.as_seat(1))
    assert (answer.seat, answer.game.seat) == (2, 1)
    assert await add_bot(game, EASY, "Zoë") == 3
    assert await add_bot(game, MEDIUM) == 4
    expected = [("player 1", 0), ("Bot Rosa", HARD), ("Zoë", EASY), ("Bot Bruno", MEDIUM)]
    for seat in (0, 1):
        assert [(player.name, player.bot_level) for player in (await game.see(seat)).players] == expected
    changes = (await client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id))).changes
    joined = [event.player_joined for change in changes for event in change.events if event.HasField("player_joined")]
    assert [(event.name, event.bot_level) for event in joined] == expected


async def test_a_bot_gets_an_unused_name(client: Client) -> None:
    game = await client.new_game(players=1, start=False)
    await game.join("Bot Rosa")
    await add_bot(game, EASY)
    assert [player.name for player in (await game.see()).players] == ["player 1", "Bot Rosa", "Bot Bruno"]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (gs.AddBotRequest(), "level"),
        (gs.AddBotRequest(level=game_pb2.BotLevel.ValueType(7)), "level"),
        (gs.AddBotRequest(level=game_pb2.BotLevel.ValueType(-1)), "level"),
        (gs.AddBotRequest(level=EASY, name=" x"), "name"),
        (gs.AddBotRequest(level=EASY, name="x" * 41), "name"),
        (gs.AddBotRequest(level=EASY, request_id="short"), "request_id"),
    ],
)
async def test_a_malformed_request_names_its_field(client: Client, request_: gs.AddBotRequest, field: str) -> None:
    game = await client.new_game(players=1, start=False)
    request = gs.AddBotRequest(game_id=game.game_id)
    request.MergeFrom(request_)
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await client.games.AddBot(request, metadata=game.as_seat(1))
    assert (error.value.code(), field_violations(error.value)) == (grpc.StatusCode.INVALID_ARGUMENT, [field])
    assert len((await game.see()).players) == 1


async def test_only_players_of_the_game_add_bots(client: Client) -> None:
    game, other = await client.new_game(players=1, start=False), await client.new_game(players=1, start=False)
    request = gs.AddBotRequest(game_id=game.game_id, level=EASY)
    for metadata, reason in (((), "NOT_A_PLAYER"), (other.as_seat(1), "TOKEN_VOID")):
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await client.games.AddBot(request, metadata=metadata)
        assert error_info(error.value).reason == reason


async def test_a_repeated_request_adds_one_bot(client: Client) -> None:
    game = await client.new_game(players=1, start=False)
    request = gs.AddBotRequest(game_id=game.game_id, level=EASY, request_id=new_id())
    first = await client.games.AddBot(request, metadata=game.as_seat(1))
    assert await client.games.AddBot(request, metadata=game.as_seat(1)) == first
    assert len((await game.see()).players) == 2


async def test_bots_do_not_start_a_game(client: Client) -> None:
    game = await new_game(client, EASY, MEDIUM, HARD, start=False)
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await client.games.StartGame(gs.StartGameRequest(game_id=game.game_id))
    assert error_info(error.value).reason == "NOT_A_PLAYER"
    assert (await game.see()).state == game_pb2.GAME_STATE_LOBBY


# Whole games


async def test_a_game_with_bots_ends(store: Store) -> None:
    async with running_server(store) as (_, client):
        game = await new_game(client, EASY, MEDIUM, HARD)
        seen = await play_round(game)
        assert seen.state == game_pb2.GAME_STATE_FINISHED
        assert 1 not in seen.winner_seats
    check_turns(await stored_events(store, game.game_id))


async def test_two_servers_play_each_turn_of_a_bot_once(store: Store) -> None:
    async with running_server(store) as (_, client), running_server(store, seed=2) as (_, second):
        game = await new_game(client, EASY, MEDIUM, ruleset=SHORT)
        assert (await play_round(game, client, second)).state == game_pb2.GAME_STATE_FINISHED
    check_turns(await stored_events(store, game.game_id))


async def test_bots_play_on_when_the_person_resigns(store: Store) -> None:
    async with running_server(store) as (_, client):
        game = await new_game(client, EASY, MEDIUM, ruleset=SHORT)
        await resign(game)
        seen = await until(game, is_over)
        assert seen.state == game_pb2.GAME_STATE_FINISHED
        assert set(seen.winner_seats) <= {2, 3}


async def test_a_game_of_several_rounds_ends_when_only_bots_remain(store: Store) -> None:
    async with running_server(store) as (_, client):
        left_in_the_round = await new_game(client, EASY, MEDIUM, ruleset=TWO_ROUNDS)
        await resign(left_in_the_round)
        seen = await until(left_in_the_round, is_over)
        assert (seen.state, seen.round) == (game_pb2.GAME_STATE_FINISHED, 1)
        assert set(seen.winner_seats) <= {2, 3}
        left_after_it = await new_game(client, EASY, MEDIUM, ruleset=TWO_ROUNDS)
        assert (await play_round(left_after_it)).state == game_pb2.GAME_STATE_ROUND_OVER
        await resign(left_after_it)
        seen = await until(left_after_it, is_over)
        assert (seen.state, seen.round) == (game_pb2.GAME_STATE_FINISHED, 1)
        assert set(seen.winner_seats) <= {2, 3}


async def test_bots_start_no_round(store: Store) -> None:
    async with running_server(store) as (_, client):
        game = await new_game(client, MEDIUM, MEDIUM, ruleset=TWO_ROUNDS)
        assert (await play_round(game)).state == game_pb2.GAME_STATE_ROUND_OVER
        next_round = ts.StartNextRoundRequest(game_id=game.game_id)
        await client.turns.StartNextRound(next_round, metadata=game.as_seat(1))
        seen = await play_round(game)
        assert (seen.state, seen.round) == (game_pb2.GAME_STATE_FINISHED, 2)


async def test_a_bots_tiles_are_visible_to_no_other_seat(store: Store) -> None:
    async with running_server(store) as (_, client):
        game = await new_game(client, EASY, HARD)
        await play_round(game)
        for viewer in (0, 1):
            request = gs.WatchGameRequest(game_id=game.game_id, etag=game.etags[1])
            updates = client.games.WatchGame(request, metadata=game.as_seat(viewer))
            events = [event async for update in updates for event in update.change.events]
            drawn = [event.tiles_drawn for event in events if event.HasField("tiles_drawn")]
            assert {draw.seat for draw in drawn} == {1, 2, 3}
            assert {draw.seat for draw in drawn if draw.tiles} == ({1} if viewer else set())
            dealt = [event.round_started for event in events if event.HasField("round_started")]
            assert [len(deal.rack) for deal in dealt] == [14 if viewer else 0]


async def test_bots_agree_with_a_claim_of_an_illegal_play(store: Store) -> None:
    async with running_server(store) as (_, client):
        game = await new_game(client, EASY, MEDIUM, ruleset=CLAIMS)
        before = await until(game, lambda now: now.turn.seat == 1)
        shown = await game.play_illegally(1)
        assert shown.game.turn.shown_play.revision == shown.game.revision
        after = await until(game, lambda now: len(now.rack) > len(before.rack))
        assert len(after.rack) == len(before.rack) + before.ruleset.melding.turn.penalty_tiles
        request = gs.ListChangesRequest(game_id=game.game_id, after_revision=shown.game.revision - 1)
        changes = (await client.games.ListChanges(request)).changes
        votes = [
            event.error_claimed for change in changes for event in change.events if event.HasField("error_claimed")
        ]
        assert [(vote.seat, vote.agrees) for vote in votes] == [(2, True), (3, True)]


async def test_a_bot_plays_in_the_rematch(client: Client) -> None:
    game = await new_game(client, EASY)
    await resign(game)
    again = await game.rematch(1)
    taking = gs.JoinGameRequest(game_id=again.game_id, name="player 1")
    again.tokens[1] = (await client.games.JoinGame(taking, metadata=game.as_seat(1))).seat_token
    await again.start()
    if (await again.see()).turn.seat == 1:
        await again.draw(1)
    await until(again, lambda seen: seen.turn.seat == 1)


# Servers that die, stop, or miss a notification


async def test_another_server_continues_when_the_first_is_killed(empty_redis_url: str) -> None:
    environment = {
        "RUMMIKUB_REDIS_URL": empty_redis_url,
        "RUMMIKUB_BOT_DELAY_MS": "20",
        "RUMMIKUB_SWEEP_SECONDS": "0.1",
    }
    async with server_process(environment) as first, server_process(environment) as second:
        async with grpc.aio.insecure_channel(first.target) as channel:
            game = await new_game(Client(channel), EASY, MEDIUM, EASY)
            await resign(game)
            amid = await until(game, lambda now: now.revision > 15)
        await first.kill()
        assert not is_over(amid)
        async with grpc.aio.insecure_channel(second.target) as channel:
            game.client = Client(channel)
            # no call may touch the game: only the second server's sweeper may find it
            watching = game.client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id, etag=game.etags[1]))
            async with asyncio.timeout(LONG_SECONDS):
                changes = [update.change async for update in watching if update.HasField("change")]
    assert changes[-1].events[-1].HasField("game_ended")
    store = redis_store(empty_redis_url)
    check_turns(await stored_events(store, game.game_id))
    await store.close()


async def test_a_stopping_server_leaves_its_bots_to_other_servers(store: Store) -> None:
    slow = server_settings(bot_delay_ms=60_000)
    async with running_server(store, slow) as (_, client):
        game = await new_game(client, EASY, EASY)
        await resign(game)
        waiting = await game.see()
    record = (await store.games.load(game.game_id)).record
    assert record
    assert record.game.revision == waiting.revision
    assert bots_to_act(record.game)


def bots_turn(rules: Room, now_ms: int) -> Game:
    """Returns a game of bots in its first turn."""
    game = create(rules.ruleset, rules.settings).game
    for number, level in enumerate((BotLevel.EASY, BotLevel.MEDIUM), 1):
        game = is_applied(game, Join(f"bot {number}", level), now_ms)
    return is_applied(game, StartGame(HOST, new_shuffle(SeededChance(3), rules.ruleset, 2)), now_ms)


def is_applied(game: Game, action: Action, now_ms: int) -> Game:
    outcome = apply(game, action, now_ms)
    assert isinstance(outcome, Applied), outcome
    return outcome.game


async def test_a_game_slows_its_bots_down(store: Store, clock: FakeClock) -> None:
    rules = room(PRESETS[Preset.SABRA], turn_time_limit_seconds=0, bot_pause_ms=10_000)
    async with running_server(store, server_settings(sweep_seconds=LONG_SECONDS)) as (_, client):
        game = await put_game(client, store, bots_turn(rules, clock.now_ms), clock.now_ms)
        clock.advance(BOT_WAIT_MS / 1000 + 10)
        assert (await game.see()).revision == 1  # reading wakes the bot, which pauses
        await asyncio.sleep(0.3)
        assert (await game.see()).revision == 1
    quick = room(PRESETS[Preset.SABRA], turn_time_limit_seconds=0, bot_pause_ms=1)
    async with running_server(store, server_settings(sweep_seconds=LONG_SECONDS)) as (_, client):
        game = await put_game(client, store, bots_turn(quick, clock.now_ms), clock.now_ms)
        clock.advance(BOT_WAIT_MS / 1000 + 1)
        assert (await game.see()).revision == 1
        assert (await until(game, is_over)).state == game_pb2.GAME_STATE_FINISHED


async def test_reading_a_game_wakes_a_forgotten_bot(store: Store, clock: FakeClock) -> None:
    rules = room(PRESETS[Preset.SABRA], turn_time_limit_seconds=0)
    async with running_server(store, server_settings(sweep_seconds=LONG_SECONDS)) as (_, client):
        game = await put_game(client, store, bots_turn(rules, clock.now_ms), clock.now_ms)
        clock.advance(BOT_WAIT_MS / 1000 - 1)
        assert (await game.see()).revision == 1
        assert (await game.see()).revision == 1
        clock.advance(1)
        assert (await game.see()).revision == 1
        assert (await until(game, is_over)).state == game_pb2.GAME_STATE_FINISHED


async def test_the_sweeper_wakes_a_bot_before_its_deadline(store: Store, clock: FakeClock) -> None:
    async with running_server(store, server_settings(bot_delay_ms=60_000)) as (_, client):
        game = await new_game(client, EASY, EASY)
        await resign(game)
    clock.advance(61 + BOT_WAIT_MS / 1000)
    assert [game_id for game_id, _ in await due(store)] == [game.game_id]
    async with running_server(store, server_settings(sweep_seconds=0.05)) as (_, client):
        game.client = client
        watching = client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id, etag=game.etags[1]))
        async with asyncio.timeout(LONG_SECONDS):
            changes = [update.change async for update in watching if update.HasField("change")]
        assert changes[-1].events[-1].HasField("game_ended")


class Unheard(DelegatingStore):
    """A store whose next commit stores the change, then hangs ("never") or raises StoreUnavailable ("away")."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.how = ""
        self.has_stored = asyncio.Event()

    async def commit(self, commit: Commit) -> Outcome:
        outcome = await self._store.games.commit(commit)
        how, self.how = self.how, ""
        if how:
            self.has_stored.set()
        if how == "never":
            await asyncio.Event().wait()
        if how == "away":
            raise StoreUnavailable
        return outcome


@pytest.mark.parametrize("how", ["never", "away"])
async def test_a_bot_acts_although_the_commit_of_the_previous_turn_got_no_reply(
    store: Store, clock: FakeClock, how: str
) -> None:
    """The store's clock stands still, so the bot never looks forgotten."""
    unheard = Unheard(store)
    async with running_server(unheard, server_settings(sweep_seconds=LONG_SECONDS)) as (_, client):
        game = await new_game(client, EASY)
        before = await until(game, lambda now: now.turn.seat == 1)
        unheard.how = how
        draw = ts.PlayTurnRequest(game_id=game.game_id, etag=before.etag, draw=ts.DrawTile(), request_id=new_id())
        call = client.turns.PlayTurn(draw, metadata=game.as_seat(1))
        async with asyncio.timeout(LONG_SECONDS):
            await unheard.has_stored.wait()
            if how == "never":
                call.cancel()
            else:
                await call
        assert clock.now_ms == START_MS
        await until(game, lambda now: now.turn.seat == 1 and now.revision > before.revision + 1)


# With a time limit


async def test_bots_play_after_the_sweeper_applies_a_time_out(store: Store, clock: FakeClock) -> None:
    timed = options(turn_time_limit_seconds=60)
    async with running_server(store, server_settings(sweep_seconds=0.05)) as (_, client):
        game = await new_game(client, EASY, MEDIUM, ruleset=timed)
        before = await until(game, lambda now: now.turn.seat == 1)
        clock.advance(61)
        after = await until(game, lambda now: now.turn.seat == 1 and now.revision > before.revision)
        assert after.revision == before.revision + 3
        assert after.players[0].tile_count == before.players[0].tile_count + 1


async def test_a_bots_delay_stays_within_its_turn(store: Store) -> None:
    hasty = options(turn_time_limit_seconds=1)
    async with running_server(store, server_settings(bot_delay_ms=60_000)) as (_, client):
        game = await new_game(client, EASY, EASY, ruleset=hasty)
        await resign(game)
        revision = (await game.see()).revision
        await until(game, lambda now: now.revision >= revision + 2)
    check_turns(await stored_events(store, game.game_id))


# Bots without a server


class Here:
    """An analysis pool that answers at once in the event loop, counts calls, and fails the first `failures` of them."""

    def __init__(self, failures: int = 0) -> None:
        self.asked = 0
        self._failures = failures

    async def ask(self, question: Query[T], seconds: float) -> T:
        await asyncio.sleep(0)
        assert seconds > 0
        self.asked += 1
        if self.asked <= self._failures:
            raise RuntimeError("a search has failed")
        return question.answer(Budget(nodes=1_000))


async def finished(store: Store, game_id: str) -> Record:
    """Waits until a game is over; returns its record."""
    async with asyncio.timeout(LONG_SECONDS), store.streams.subscribe(game_id) as subscription:
        while True:
            record = (await store.games.load(game_id)).record
            if record and not isinstance(record.game.phase, Playing):
                return record
            await subscription.wait()


async def put_bots(store: Store, now_ms: int, turn_time_limit_seconds: int = 0) -> str:
    """Stores a game of bots without any notification."""
    game = bots_turn(room(PRESETS[Preset.SABRA], turn_time_limit_seconds=turn_time_limit_seconds), now_ms)
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        return (await put_game(Client(channel), store, game, now_ms)).game_id


async def test_servers_notified_of_the_same_bot_store_one_turn(store: Store, clock: FakeClock) -> None:
    game_id = await put_bots(store, clock.now_ms)
    thinkers = (Here(), Here())
    several = [ChangeLoop(store, SeededChance(number)) for number in range(2)]
    bots = [Bots(changes, thinker, 1, 0.0, asyncio.Event()) for changes, thinker in zip(several, thinkers, strict=True)]

    def tell_all(record: Record) -> None:
        for each in bots:
            each.on_bot_turn(record)

    for changes in several:
        changes.on_bot_turn(tell_all)
    record = (await store.games.load(game_id)).record
    assert record
    tell_all(record)
    after = await finished(store, game_id)
    entries = await store.streams.entries(game_id, 2, 10_000)
    assert [entry.revision for entry in entries] == list(range(2, after.game.revision + 1))
    assert all(thinker.asked > 10 for thinker in thinkers)
    for each in bots:
        await each.close()


async def test_a_bot_whose_search_fails_draws(store: Store, clock: FakeClock) -> None:
    game_id = await put_bots(store, clock.now_ms)
    bots = Bots(ChangeLoop(store, SeededChance(1)), Here(failures=1), 1, 0.0, asyncio.Event())
    record = (await store.games.load(game_id)).record
    assert record
    bots.on_bot_turn(record)
    await finished(store, game_id)
    first = (await store.streams.entries(game_id, 2, 1))[0]
    assert isinstance(first.events[0], TileDrawn)
    await bots.close()


class Meanwhile(ChangeLoop):
    """A change loop that runs a callback before the first vote."""

    def __init__(self, store: Store, happen: Callable[[ChangeLoop], Awaitable[object]]) -> None:
        super().__init__(store, SeededChance(1))
        self._to_happen = [happen]

    async def run(self, command: GameCommand, answer: Answer = NO_ANSWER, runner: OffLoopRunner | None = None) -> bytes:
        while self._to_happen:
            await self._to_happen.pop()(self)
        return await super().run(command, answer, runner)


def shown_play(now_ms: int) -> Game:
    """Returns a game of a person, who has shown an illegal play and has the turn, and two bots."""
    rules = with_options(
        PRESETS[Preset.GUIDE_B],
        {"start_player": StartPlayer.FIXED_SEAT, "start_draw_determines": StartDrawDetermines.STARTER_ONLY},
    )
    game = is_applied(create(rules, RoomSettings(turn_time_limit_seconds=0)).game, Join("person"), now_ms)
    for number in (1, 2):
        game = is_applied(game, Join(f"bot {number}", BotLevel.EASY), now_ms)
    game = is_applied(game, StartGame(HOST, new_shuffle(SeededChance(3), rules, 3)), now_ms)
    return is_applied(game, PlayTiles(1, (ProposedMeld(round_of(game).rack(1).tiles[:2]),)), now_ms)


async def acts_of(number: int, bots: Bots, store: Store, game_id: str) -> list[Event]:
    """Notifies bots of a game and waits for a number of changes; returns the first event of each."""
    record = (await store.games.load(game_id)).record
    assert record
    async with asyncio.timeout(LONG_SECONDS), store.streams.subscribe(game_id) as subscription:
        bots.on_bot_turn(record)
        while len(entries := await store.streams.entries(game_id, 2, 10)) < number:
            await subscription.wait()
    return [entry.events[0] for entry in entries]


async def test_a_bot_whose_vote_is_too_late_takes_its_turn(store: Store, clock: FakeClock) -> None:
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        game = await put_game(Client(channel), store, shown_play(clock.now_ms), clock.now_ms)

    async def the_person_draws(changes: ChangeLoop) -> None:
        record = (await store.games.load(game.game_id)).record
        assert record
        turn = TurnRequest(game.game_id, 1, record.etag, validate_only=False, action=DrawTile)
        await changes.run_cached(PlayTurn(RequestIdentity(Caller(digest(game.tokens[1])), "", b""), game.game_id, turn))

    bots = Bots(Meanwhile(store, the_person_draws), Here(), 1, 0.0, asyncio.Event())
    acts = await acts_of(3, bots, store, game.game_id)
    assert [act.seat for act in acts if isinstance(act, TileDrawn | TilesPlayed)] == [1, 2, 3]
    await bots.close()


class Nowhere:
    """An analysis pool whose queue is always full."""

    async def ask(self, question: Query[T], _seconds: float) -> T:
        await asyncio.Event().wait()
        return question.answer(Budget(nodes=0))


async def test_bots_vote_at_once_when_the_analysis_queue_is_full(store: Store, clock: FakeClock) -> None:
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        game = await put_game(Client(channel), store, shown_play(clock.now_ms), clock.now_ms)
    bots = Bots(ChangeLoop(store, SeededChance(1)), Nowhere(), 1, 0.0, asyncio.Event())
    votes = await acts_of(2, bots, store, game.game_id)
    assert votes == [ErrorClaimed(2, agrees=True), ErrorClaimed(3, agrees=True)]
    await bots.close()


async def test_a_bot_draws_before_its_deadline_when_the_analysis_queue_is_full(store: Store, clock: FakeClock) -> None:
    game_id = await put_bots(store, clock.now_ms, turn_time_limit_seconds=60)
    clock.advance(59.8)
    bots = Bots(ChangeLoop(store, SeededChance(1)), Nowhere(), 1, 0.0, asyncio.Event())
    first, *_ = await acts_of(1, bots, store, game_id)
    assert isinstance(first, TileDrawn)
    await bots.close()


async def test_a_waiting_bot_does_not_act_after_the_server_stops(store: Store, clock: FakeClock) -> None:
    game_id = await put_bots(store, clock.now_ms)
    stopping, thinker = asyncio.Event(), Here()
    bots = Bots(ChangeLoop(store, SeededChance(1)), thinker, 1, LONG_SECONDS, stopping)
    record = (await store.games.load(game_id)).record
    assert record
    bots.on_bot_turn(record)
    [playing] = [task for task in asyncio.all_tasks() if task.get_name() == f"bots-{game_id}"]
    done, _ = await asyncio.wait([playing], timeout=0.1)
    assert not done
    stopping.set()
    await playing
    assert thinker.asked == 0
    assert not await store.streams.entries(game_id, 2, 1)
