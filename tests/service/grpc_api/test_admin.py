"""AdminService over gRPC: all of a game, its end, all changes, and who may call."""

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from engine.game import Playing
from engine.melding.ruleset import SABRA, MatchEnd
from engine.tiles import in_order
from rummikub.admin.v1 import admin_service_pb2 as pb
from rummikub.v1 import game_pb2, room_settings_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.app.views import ChangeView
from service.codec.admin import cursor_of, position
from service.codec.fields import filtered_page_token
from service.codec.tiles import tile_numbers
from service.errors import StoredFormatUnknown
from service.model.change import Loaded
from service.model.record import GameState
from service.operator.admin import OperatorFilter
from service.operator.change_feed import Changed, ChangeFeed, Update
from service.runtime.addresses import AddressInUseError
from support.archives import MemorySink, store_game
from support.delegating_store import DelegatingStore
from support.harness import (
    GameAtHand,
    bearer,
    error_info,
    field_violations,
    keys_file,
    memory_store,
    new_id,
    next_change,
    put_game,
    redis_store,
    server_settings,
)
from support.operator import Operated, admin_at, changes, operated, traces_of
from support.random_play import random_changes
from support.rooms import room
from support.stores import STORES_AND_CLUSTER, running_store
from tools.games import as_tiles, game_rules, options

pytestmark = pytest.mark.slow

LOG_MS = 60_000
ANN, BOB = "account 17 of Ann", "account 18 of Bob"
UNKNOWN_GAME = "0" * 32
TOKEN_OF_FINISHED = filtered_page_token(f"{1:015d}:{1:032x}", (OperatorFilter(), (GameState.FINISHED,)))
"""A page token of a list of another state."""
TOKEN = "the operator's token, of some length".replace(" ", "-").replace("'", "")


@pytest.fixture(params=STORES_AND_CLUSTER)
async def house(request: pytest.FixtureRequest) -> AsyncIterator[Operated]:
    """Yields a server with AdminService and a change log, on each kind of store."""
    async with running_store(request, clock=None, log_ms=LOG_MS) as store, operated(store) as house:
        yield house


async def labeled_game(house: Operated, *, start: bool = True, **labels: str) -> GameAtHand:
    """Returns a game of Ann and Bob with references, and with operator labels."""
    request = gs.CreateGameRequest(request_id=new_id(), operator_labels=labels, labels={"region": "eu"})
    created = await house.client.games.CreateGame(request)
    game = GameAtHand(house.client, created.game.game_id, host_token=created.host_token)
    for name, ref in (("Ann", ANN), ("Bob", BOB)):
        join = gs.JoinGameRequest(game_id=game.game_id, name=name, player_ref=ref, request_id=new_id())
        answer = await house.client.games.JoinGame(join, metadata=game.as_host() if name == "Ann" else ())
        game.tokens[answer.seat] = answer.seat_token
    if start:
        await game.start()
    return game


async def refusal(call: Any) -> grpc.aio.AioRpcError:  # noqa: ANN401 - any call
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return refused.value


# A game with everything visible


async def test_the_operator_sees_everything_of_a_game(house: Operated) -> None:
    game = await labeled_game(house, tournament="7")
    await game.draw()
    await game.save_draft()
    full = (await house.admin.GetGame(pb.GetGameRequest(game_id=game.game_id))).game
    record = (await house.store.games.load(game.game_id)).record
    assert record
    assert isinstance(record.game.phase, Playing)
    round_ = record.game.phase.round
    assert list(full.pool) == list(tile_numbers(round_.pool))
    assert [list(seat.rack) for seat in full.seats] == [
        list(tile_numbers(in_order(rack.tiles))) for rack in round_.racks
    ]
    assert [list(seat.rack) for seat in full.seats] == [list((await game.see(seat)).rack) for seat in (1, 2)]
    assert [(seat.player.name, seat.player.player_ref) for seat in full.seats] == [("Ann", ANN), ("Bob", BOB)]
    assert dict(full.operator_labels) == {"tournament": "7"}
    assert full.draft.seat == round_.turn.seat
    spectators = await game.see()
    assert (full.game.revision, full.game.etag, full.game.turn.seat) == (
        spectators.revision,
        spectators.etag,
        spectators.turn.seat,
    )


async def test_the_operator_sees_offered_tiles_and_join_codes(house: Operated) -> None:
    river = game_rules(turn_draw=ruleset_pb2.TURN_DRAW_TWO_RIVER)
    game = await house.client.new_game(ruleset=river)
    answer = await game.draw()
    full = (await house.admin.GetGame(pb.GetGameRequest(game_id=game.game_id))).game
    assert [list(seat.offered) for seat in full.seats if seat.offered] == [list(answer.tiles_drawn)]
    lobby = await labeled_game(house, start=False)
    full = (await house.admin.GetGame(pb.GetGameRequest(game_id=lobby.game_id))).game
    assert full.game.join_code == (await lobby.see(1)).join_code
    assert [list(seat.rack) for seat in full.seats] == [[], []]


async def test_the_operator_sees_racks_of_finished_rounds(house: Operated) -> None:
    hidden_until_the_end = options(
        racks_shown=room_settings_pb2.RACKS_SHOWN_AFTER_GAME,
        match_end=ruleset_pb2.MATCH_END_FIXED_ROUNDS,
        match_rounds=3,
        players_min=3,
    )
    game = await house.client.new_game(players=3, ruleset=hidden_until_the_end)
    for seat in (1, 2):
        resign = ts.ResignGameRequest(game_id=game.game_id, request_id=new_id())
        await house.client.turns.ResignGame(resign, metadata=game.as_seat(seat))
    full = (await house.admin.GetGame(pb.GetGameRequest(game_id=game.game_id))).game
    [result] = full.game.rounds
    assert [list(seat.rack) for seat in result.seats] == [list(seat.rack) for seat in full.seats]
    assert all(seat.rack for seat in full.seats)


# Lists


async def test_games_are_listed_by_labels_and_players(house: Operated) -> None:
    first = await labeled_game(house, tournament="7", table="a")
    second = await labeled_game(house, start=False, tournament="7")
    third = await house.client.new_game()

    async def listed(**wanted: Any) -> list[str]:  # noqa: ANN401 - any field
        request = pb.ListGamesRequest(filter=pb.GameFilter(**wanted))
        return [one.game.game_id for one in (await house.admin.ListGames(request)).games]

    assert await listed() == [third.game_id, second.game_id, first.game_id]
    assert await listed(operator_labels={"tournament": "7"}) == [second.game_id, first.game_id]
    assert await listed(operator_labels={"tournament": "7", "table": "a"}) == [first.game_id]
    assert await listed(labels={"region": "us"}) == []
    assert await listed(player_ref=BOB) == [second.game_id, first.game_id]
    assert await listed(player_ref="Bob") == []
    playing = pb.ListGamesRequest(states=[game_pb2.GAME_STATE_PLAYING], filter=pb.GameFilter(player_ref=ANN))
    [one] = (await house.admin.ListGames(playing)).games
    assert [(player.seat, player.player_ref) for player in one.players] == [(1, ANN), (2, BOB)]
    assert (one.visibility, dict(one.operator_labels)) == (
        game_pb2.VISIBILITY_UNLISTED,
        {"tournament": "7", "table": "a"},
    )


async def test_the_operator_sees_and_chooses_the_key_of_a_game(tmp_path: Path) -> None:
    keys = keys_file(tmp_path, web="", app="")
    async with operated(memory_store(log_ms=LOG_MS), keys_file=keys) as house:
        games = {
            name: (
                await house.client.games.CreateGame(
                    gs.CreateGameRequest(request_id=new_id()), metadata=(("x-api-key", name),)
                )
            ).game.game_id
            for name in ("web", "app")
        }
        for name, game_id in games.items():
            wanted = pb.GameFilter(key_name=name)
            [listed] = (await house.admin.ListGames(pb.ListGamesRequest(filter=wanted))).games
            full = (await house.admin.GetGame(pb.GetGameRequest(game_id=game_id))).game
            [change] = await changes(house.admin, pb.WatchGamesRequest(from_oldest=True, filter=wanted), 1)
            assert (listed.game.game_id, change.changed.game_id) == (game_id, game_id)
            assert {listed.key_name, full.key_name, change.changed.key_name} == {name}


async def test_a_change_of_a_game_from_a_position_is_marked() -> None:
    seats = [gs.StartSeat(seat=seat, rack=as_tiles([seat])) for seat in (1, 2)]
    position = gs.StartPosition(seats=seats, turn_seat=1)
    async with operated(memory_store(log_ms=LOG_MS)) as house:
        for request in (gs.CreateGameRequest(), gs.CreateGameRequest(position=position)):
            request.request_id = new_id()
            await house.client.games.CreateGame(request)
        told = await changes(house.admin, pb.WatchGamesRequest(from_oldest=True), 2)
        assert [update.changed.from_position for update in told] == [False, True]


@pytest.mark.parametrize("size", [1, 2, 3])
async def test_lists_have_pages(house: Operated, size: int) -> None:
    games = [await labeled_game(house, start=place % 2 == 0, table=str(place % 3)) for place in range(6)]
    for wanted in (pb.GameFilter(), pb.GameFilter(operator_labels={"table": "1"})):
        found: list[str] = []
        token = ""
        while True:
            request = pb.ListGamesRequest(page_size=size, page_token=token, filter=wanted)
            page = await house.admin.ListGames(request)
            found += [one.game.game_id for one in page.games]
            token = page.next_page_token
            if not token:
                break
        expected = {game.game_id for place, game in enumerate(games) if not wanted.operator_labels or place % 3 == 1}
        assert (set(found), len(found)) == (expected, len(expected))


# Interventions


async def test_the_operator_aborts_a_lobby_and_a_game_after_a_round(house: Operated) -> None:
    rules = room(SABRA, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=3, turn_time_limit_seconds=0)
    played = (change.applied.game for change in random_changes(1, 3, rules))
    late_game = next(game for game in played if game.results and isinstance(game.phase, Playing))
    late = await put_game(house.client, house.store, late_game, time.time_ns() // 1_000_000)
    for game in (await labeled_game(house, start=False), late):
        answer = await house.admin.AbortGame(pb.AbortGameRequest(game_id=game.game_id))
        assert answer.game.game.state == game_pb2.GAME_STATE_ABORTED
        assert (await game.see()).state == game_pb2.GAME_STATE_ABORTED
        again = await refusal(house.admin.AbortGame(pb.AbortGameRequest(game_id=game.game_id)))
        assert error_info(again).reason == "GAME_OVER"


async def test_the_operator_removes_a_player_from_the_lobby(house: Operated) -> None:
    game = await labeled_game(house, start=False)
    answer = await house.admin.KickPlayer(pb.KickPlayerRequest(game_id=game.game_id, seat=2))
    assert [seat.player.name for seat in answer.game.seats] == ["Ann"]
    void = await refusal(house.client.games.GetGame(gs.GetGameRequest(game_id=game.game_id), metadata=game.as_seat(2)))
    assert error_info(void).reason == "TOKEN_VOID"
    again = await refusal(house.admin.KickPlayer(pb.KickPlayerRequest(game_id=game.game_id, seat=2)))
    assert error_info(again).reason == "PLAYER_NOT_IN_GAME"


async def test_a_player_whom_the_operator_removes_from_a_game_resigns(house: Operated) -> None:
    game = await house.client.new_game(players=3)
    answer = await house.admin.KickPlayer(pb.KickPlayerRequest(game_id=game.game_id, seat=2))
    assert [player.resigned for player in answer.game.game.players] == [False, True, False]
    assert answer.game.game.state == game_pb2.GAME_STATE_PLAYING
    again = await refusal(house.admin.KickPlayer(pb.KickPlayerRequest(game_id=game.game_id, seat=2)))
    assert error_info(again).reason == "PLAYER_RESIGNED"


async def test_the_operator_replaces_a_lost_token(house: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    for game in (await labeled_game(house, start=False), await labeled_game(house)):
        seeing = gs.GetGameRequest(game_id=game.game_id)
        watch = house.client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id), metadata=game.as_seat(2))
        await watch.read()
        request = pb.ReissueSeatTokenRequest(game_id=game.game_id, seat=2)
        answers = [await house.admin.ReissueSeatToken(request) for _ in range(2)]
        first, last = (bearer(answer.seat_token) for answer in answers)
        for void in (game.as_seat(2), first):
            error = await refusal(house.client.games.GetGame(seeing, metadata=void))
            assert error_info(error).reason == "TOKEN_VOID"
        assert (await next_change(watch)).events[0].seat_token_renewed.seat == 2
        assert error_info(await refusal(watch.read())).reason == "TOKEN_VOID"
        seen = (await house.client.games.GetGame(seeing, metadata=last)).game
        assert (seen.seat, seen.revision) == (2, answers[1].game.game.revision)
        free = await refusal(house.admin.ReissueSeatToken(pb.ReissueSeatTokenRequest(game_id=game.game_id, seat=3)))
        assert error_info(free).reason == "PLAYER_NOT_IN_GAME"
        out, err = capsys.readouterr()
        assert "AdminService/ReissueSeatToken" in out + err
        assert not any(answer.seat_token in out + err for answer in answers)


async def test_a_deleted_game_is_gone_and_its_watches_end(house: Operated) -> None:
    game = await labeled_game(house, start=False)
    code = (await game.see(1)).join_code
    watch = house.client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id))
    await watch.read()
    await house.admin.DeleteGame(pb.DeleteGameRequest(game_id=game.game_id))
    for error in (
        await refusal(watch.read()),
        await refusal(house.client.games.GetGame(gs.GetGameRequest(game_id=game.game_id))),
        await refusal(house.admin.DeleteGame(pb.DeleteGameRequest(game_id=game.game_id))),
    ):
        assert error_info(error).reason == "GAME_NOT_FOUND"
    join = gs.JoinGameRequest(join_code=code, name="Eve")
    assert error_info(await refusal(house.client.games.JoinGame(join))).reason == "JOIN_CODE_UNKNOWN"


async def test_a_deleted_game_leaves_no_key(empty_redis_url: str) -> None:
    store = redis_store(empty_redis_url)
    async with operated(store) as house:
        game = await labeled_game(house)
        await game.draw()
        await game.save_draft()
        await house.admin.DeleteGame(pb.DeleteGameRequest(game_id=game.game_id))
        assert traces_of(empty_redis_url, game.game_id) == []
    await store.close()


async def test_statistics_count_games_and_changes(house: Operated) -> None:
    game = await labeled_game(house)
    await house.client.new_game(start=False)
    statistics = await house.admin.GetStatistics(pb.GetStatisticsRequest())
    counts = {one.state: one.count for one in statistics.games}
    assert (counts[game_pb2.GAME_STATE_LOBBY], counts[game_pb2.GAME_STATE_PLAYING]) == (1, 1)
    assert statistics.change_log_seconds == LOG_MS // 1000
    assert statistics.change_log_entries >= (await game.see()).revision
    assert statistics.store_time.ToMilliseconds() > 1_700_000_000_000


@pytest.mark.parametrize(
    ("rpc", "request_message", "field"),
    [
        ("GetGame", pb.GetGameRequest(), "game_id"),
        ("AbortGame", pb.AbortGameRequest(game_id="x"), "game_id"),
        ("KickPlayer", pb.KickPlayerRequest(game_id=UNKNOWN_GAME), "seat"),
        ("ReissueSeatToken", pb.ReissueSeatTokenRequest(game_id=UNKNOWN_GAME), "seat"),
        ("DeleteGame", pb.DeleteGameRequest(), "game_id"),
        ("ForgetPlayer", pb.ForgetPlayerRequest(), "player_ref"),
        ("ForgetPlayer", pb.ForgetPlayerRequest(player_ref="x" * 65), "player_ref"),
        ("ExportPlayer", pb.ExportPlayerRequest(), "player_ref"),
        ("ExportPlayer", pb.ExportPlayerRequest(player_ref="x" * 65), "player_ref"),
        ("ListGames", pb.ListGamesRequest(page_token="?"), "page_token"),  # noqa: S106 - a cursor
        (
            "ListGames",
            pb.ListGamesRequest(states=[game_pb2.GAME_STATE_LOBBY], page_token=TOKEN_OF_FINISHED),
            "page_token",
        ),
        ("ListGames", pb.ListGamesRequest(states=[game_pb2.GAME_STATE_LOBBY] * 6), "states"),
        (
            "ListGames",
            pb.ListGamesRequest(states=[game_pb2.GAME_STATE_LOBBY, game_pb2.GAME_STATE_UNSPECIFIED]),
            "states[1]",
        ),
        ("ListGames", pb.ListGamesRequest(filter=pb.GameFilter(labels={"A": ""})), "filter.labels"),
        ("ListGames", pb.ListGamesRequest(filter=pb.GameFilter(player_ref="x" * 65)), "filter.player_ref"),
        ("ListGames", pb.ListGamesRequest(filter=pb.GameFilter(key_name="Web")), "filter.key_name"),
        ("WatchGames", pb.WatchGamesRequest(cursor="?"), "cursor"),
        ("WatchGames", pb.WatchGamesRequest(cursor=cursor_of(("0-0", f"1-{2**64}"))), "cursor"),
        ("WatchGames", pb.WatchGamesRequest(filter=pb.GameFilter(operator_labels={"": ""})), "filter.operator_labels"),
    ],
)
async def test_an_invalid_request_names_its_field(rpc: str, request_message: Any, field: str) -> None:  # noqa: ANN401 - any request
    async with operated(memory_store(log_ms=LOG_MS)) as house:
        call = getattr(house.admin, rpc)(request_message)
        error = await refusal(call.read() if rpc in {"WatchGames", "ForgetPlayer", "ExportPlayer"} else call)
        assert (error.code(), field_violations(error)) == (grpc.StatusCode.INVALID_ARGUMENT, [field])


@pytest.mark.parametrize("field", ["player_ref", "operator_labels"])
async def test_players_requests_are_checked_too(field: str) -> None:
    values: dict[str, Any] = {"player_ref": "\u00e9" * 33, "operator_labels": {f"k{n}": "" for n in range(17)}}
    async with operated(memory_store()) as house:
        error = await refusal(
            house.client.games.JoinOrCreateGame(gs.JoinOrCreateGameRequest(name="Ann", **{field: values[field]}))
        )
        assert field_violations(error) == [field]
        assert values["player_ref"] not in (error.details() or "")


@pytest.mark.parametrize("number", [0, 2**64 - 1])
def test_a_cursor_may_have_any_place_of_the_log(number: int) -> None:
    assert position(cursor_of(("0-0", f"1-{number}"))) == ("0-0", f"1-{number}")


# All changes


async def test_all_changes_of_all_games_are_told_in_order(house: Operated) -> None:
    start = (await changes_now(house)).cursor
    games = [await labeled_game(house, table=str(number)) for number in range(2)]
    await games[0].draw()
    await house.admin.AbortGame(pb.AbortGameRequest(game_id=games[1].game_id))
    last = [(await game.see()).revision for game in games]
    told = await changes(house.admin, pb.WatchGamesRequest(cursor=start), sum(last))
    for number, game in enumerate(games):
        own = [one.changed for one in told if one.changed.game_id == game.game_id]
        assert [one.change.revision for one in own] == list(range(1, last[number] + 1))
        assert [dict(one.operator_labels) for one in own] == [{"table": str(number)}] * last[number]
        assert [player.player_ref for player in own[-1].players] == [ANN, BOB]
        listed = await house.client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id))
        assert [one.change for one in own] == list(listed.changes), "as spectators see them"


async def changes_now(house: Operated) -> pb.WatchGamesResponse:
    """Returns the first heartbeat of a watch that begins now."""
    call = house.admin.WatchGames(pb.WatchGamesRequest())
    first = await call.read()
    call.cancel()
    assert isinstance(first, pb.WatchGamesResponse)
    assert first.HasField("heartbeat")
    return first


async def test_a_watch_tells_later_changes_as_they_come(house: Operated) -> None:
    call = house.admin.WatchGames(pb.WatchGamesRequest(filter=pb.GameFilter(operator_labels={"table": "b"})))
    updates = aiter(call)
    await anext(updates)
    await labeled_game(house, start=False, table="a")
    game = await labeled_game(house, start=False, table="b")
    told: list[pb.GameChanged] = []
    while len(told) < 3:
        update = await anext(updates)
        told += [update.changed] if update.HasField("changed") else []
    call.cancel()
    assert [(one.game_id, one.change.revision) for one in told] == [(game.game_id, n) for n in (1, 2, 3)]


async def test_a_filtered_watch_of_a_busy_store_gets_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each read finds a change, and the filter admits none."""

    async def read(feed: ChangeFeed) -> list[Update]:
        await asyncio.sleep(0.001)
        return [Changed(feed.position, UNKNOWN_GAME, ChangeView(1, "", 0, ()), record)]

    record = (await store_game(memory_store(), until=1)).record

    monkeypatch.setattr(ChangeFeed, "read", read)
    async with operated(memory_store(log_ms=LOG_MS)) as house, asyncio.timeout(10):
        watch = aiter(house.admin.WatchGames(pb.WatchGamesRequest(filter=pb.GameFilter(player_ref="nobody"))))
        updates = [await anext(watch) for _ in range(3)]
    assert [(update.WhichOneof("update"), bool(update.cursor)) for update in updates] == [("heartbeat", True)] * 3


async def test_a_watch_of_a_player_has_the_end_of_the_story(house: Operated) -> None:
    """A player who has left a game is in it no more, but that they left is a change of the game."""
    start = (await changes_now(house)).cursor
    removed = await labeled_game(house, start=False)
    await house.admin.KickPlayer(pb.KickPlayerRequest(game_id=removed.game_id, seat=2))
    left = await labeled_game(house, start=False)
    leave = gs.LeaveGameRequest(game_id=left.game_id, request_id=new_id())
    await house.client.games.LeaveGame(leave, metadata=left.as_seat(2))
    request = pb.WatchGamesRequest(cursor=start, filter=pb.GameFilter(player_ref=BOB))
    found = [update.changed for update in await changes(house.admin, request, 8)]
    for game, end in ((removed, "player_kicked"), (left, "player_left")):
        own = [one.change for one in found if one.game_id == game.game_id]
        assert [change.revision for change in own] == [1, 2, 3, 4]
        assert [event.WhichOneof("event") for event in own[-1].events] == [end]
    assert not (await house.admin.ListGames(pb.ListGamesRequest(filter=pb.GameFilter(player_ref=BOB)))).games


async def test_a_filtered_watch_has_changes_of_games_that_cannot_be_read() -> None:
    class Newer(DelegatingStore):
        """A store with a game of a newer version."""

        newer = ""

        async def load(self, game_id: str, request_key: str = "") -> Loaded:
            if game_id == self.newer:
                raise StoredFormatUnknown
            return await self._store.games.load(game_id, request_key)

    store = Newer(memory_store(log_ms=LOG_MS))
    async with operated(store) as house:
        game = await labeled_game(house, start=False)
        store.newer = game.game_id
        request = pb.WatchGamesRequest(from_oldest=True, filter=pb.GameFilter(player_ref="nobody"))
        found = [update.changed for update in await changes(house.admin, request, 3)]
    assert [(one.game_id, one.change.revision, len(one.players)) for one in found] == [
        (game.game_id, revision, 0) for revision in (1, 2, 3)
    ]


async def test_a_host_whom_the_operator_removes_stays_out(house: Operated) -> None:
    game = await labeled_game(house, start=False)
    await house.admin.KickPlayer(pb.KickPlayerRequest(game_id=game.game_id, seat=1))
    code = (await game.see(2)).join_code
    back = gs.JoinGameRequest(join_code=code, name="Zoe", player_ref=ANN, request_id=new_id())
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await house.client.games.JoinGame(back)
    assert error_info(refused.value).reason == "PLAYER_KICKED"


async def test_a_watch_that_resumes_after_a_game_has_expired_is_sent_what_is_left_of_it() -> None:
    store, sink = memory_store(log_ms=LOG_MS), MemorySink()
    async with operated(store, sink=sink, sweep_seconds=3600) as house:
        start = (await changes_now(house)).cursor
        ended, aborted = await labeled_game(house, table="a"), await labeled_game(house, start=False, table="b")
        await house.admin.KickPlayer(pb.KickPlayerRequest(game_id=ended.game_id, seat=1))
        await house.admin.AbortGame(pb.AbortGameRequest(game_id=aborted.game_id))
        last = (await aborted.see()).revision
        async with asyncio.timeout(30):
            while await store.outbox.size():  # noqa: ASYNC110 - an outbox sends no notification
                await asyncio.sleep(0.01)
        for game in (ended, aborted):
            del store.memory.games[game.game_id]
        request = pb.WatchGamesRequest(cursor=start, filter=pb.GameFilter(operator_labels={"table": "a"}))
        *archived, expired = await changes(house.admin, request, 6)
    assert [(one.changed.game_id, one.changed.change.revision) for one in archived] == [
        (ended.game_id, revision) for revision in range(1, 6)
    ]
    assert {one.changed.state for one in archived} == {game_pb2.GAME_STATE_FINISHED}
    assert [player.player_ref for player in archived[-1].changed.players] == [ANN, BOB]
    assert (expired.expired.game_id, expired.expired.revision) == (aborted.game_id, last)


async def test_deletions_are_told_to_all(house: Operated) -> None:
    start = (await changes_now(house)).cursor
    game = await labeled_game(house, start=False)
    await house.admin.DeleteGame(pb.DeleteGameRequest(game_id=game.game_id))
    request = pb.WatchGamesRequest(cursor=start, filter=pb.GameFilter(player_ref="nobody"))
    [deleted] = await changes(house.admin, request, 1)
    assert deleted.deleted.game_id == game.game_id


async def test_a_stopping_server_says_where_to_resume() -> None:
    store = memory_store(log_ms=LOG_MS)
    async with AsyncExitStack() as stack:
        house = await stack.enter_async_context(operated(store))
        watch = aiter(house.admin.WatchGames(pb.WatchGamesRequest()))
        await anext(watch)
        first = await labeled_game(house, start=False)
        stopping = asyncio.create_task(house.server.stop())
        updates = [update async for update in watch]
        await stopping
    assert updates[-1].closing.retry_delay.ToMilliseconds() > 0
    async with operated(store) as house:
        second = await labeled_game(house, start=False)
        before = [one for one in updates if one.HasField("changed")]
        later = await changes(house.admin, pb.WatchGamesRequest(cursor=updates[-1].cursor), 6 - len(before))
        assert [one.changed.game_id for one in (*before, *later)] == [first.game_id] * 3 + [second.game_id] * 3


async def test_without_a_log_the_reason_says_what_to_set() -> None:
    async with operated(memory_store()) as house:
        error = await refusal(house.admin.WatchGames(pb.WatchGamesRequest()).read())
        assert (error.code(), error_info(error).reason) == (grpc.StatusCode.OUT_OF_RANGE, "HISTORY_UNAVAILABLE")
        assert "RUMMIKUB_CHANGE_LOG_SECONDS" in (error.details() or "")


# Who may call


async def test_there_is_no_admin_service_by_default() -> None:
    store = memory_store()
    async with operated(store, admin_listen="") as house:
        assert house.server.admin_port == 0
        path = "/rummikub.admin.v1.AdminService/GetStatistics"
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = house.client.channel.unary_unary(path)
        assert (await refusal(call(b""))).code() is grpc.StatusCode.UNIMPLEMENTED


async def test_players_and_operator_do_not_share_a_listener() -> None:
    async with operated(memory_store()) as house, admin_at(house.server.port) as other:
        error = await refusal(other.GetStatistics(pb.GetStatisticsRequest()))
        assert error.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize(
    "metadata",
    [(), bearer("x" * 43), bearer(TOKEN[:-1]), (*bearer(TOKEN), *bearer(TOKEN)), (("authorization", TOKEN),)],
)
async def test_only_the_token_lets_in(tmp_path: Path, metadata: tuple[tuple[str, str], ...]) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    async with operated(memory_store(log_ms=LOG_MS), admin_token_file=file) as house:
        await house.admin.GetStatistics(pb.GetStatisticsRequest(), metadata=bearer(TOKEN))
        for call in (
            house.admin.GetStatistics(pb.GetStatisticsRequest(), metadata=metadata),
            house.admin.WatchGames(pb.WatchGamesRequest(), metadata=metadata).read(),
        ):
            error = await refusal(call)
            assert (error.code(), error_info(error).reason) == (
                grpc.StatusCode.UNAUTHENTICATED,
                "AUTHORIZATION_MALFORMED",
            )
            assert TOKEN not in (error.details() or "")


async def test_a_new_token_needs_no_restart_and_a_lost_file_lets_nobody_in(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    async with operated(memory_store(), admin_token_file=file) as house:
        file.write_text(TOKEN[::-1])
        await refusal(house.admin.GetStatistics(pb.GetStatisticsRequest(), metadata=bearer(TOKEN)))
        await house.admin.GetStatistics(pb.GetStatisticsRequest(), metadata=bearer(TOKEN[::-1]))
        file.unlink()
        for metadata in ((), bearer(""), bearer(TOKEN)):
            await refusal(house.admin.GetStatistics(pb.GetStatisticsRequest(), metadata=metadata))


async def test_a_watch_ends_after_its_token_was_replaced(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    async with operated(memory_store(log_ms=LOG_MS), admin_token_file=file) as house, asyncio.timeout(30):
        watch = aiter(house.admin.WatchGames(pb.WatchGamesRequest(), metadata=bearer(TOKEN)))
        await anext(watch)
        file.write_text(TOKEN[::-1])
        error = await refusal(exhausted(watch))
    assert error_info(error).reason == "AUTHORIZATION_MALFORMED"


async def exhausted(watch: AsyncIterable[pb.WatchGamesResponse]) -> None:
    """Reads a stream to its end."""
    async for _ in watch:
        pass


async def test_a_unix_socket_needs_no_token(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/admin.sock"
    async with operated(memory_store(), admin_listen=address), grpc.aio.insecure_channel(address) as channel:
        path = "/rummikub.admin.v1.AdminService/GetStatistics"
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(path)
        assert pb.GetStatisticsResponse.FromString(await call(b"")).server_version
    with pytest.raises(AddressInUseError, match="RUMMIKUB_ADMIN_LISTEN=unix:"):
        async with operated(memory_store(), admin_listen=f"unix:{tmp_path}/none/admin.sock"):
            pass


@pytest.mark.parametrize("address", ["0.0.0.0:1", "192.0.2.1:1", "[::]:1", "rummikub.example:1"])
def test_an_address_that_others_reach_needs_a_token(address: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="RUMMIKUB_ADMIN_TOKEN_FILE"):
        server_settings(admin_listen=address)
    short = tmp_path / "token"
    short.write_text("short")
    with pytest.raises(ValueError, match="at least 22 characters"):
        server_settings(admin_listen=address, admin_token_file=short)
    short.write_text(TOKEN)
    assert server_settings(admin_listen=address, admin_token_file=short).admin_token() == TOKEN


@pytest.mark.parametrize("address", ["127.0.0.1:1", "[::1]:1", "localhost:1", "unix:/run/admin.sock"])
def test_a_private_address_needs_none(address: str) -> None:
    assert server_settings(admin_listen=address).admin_token() == ""
