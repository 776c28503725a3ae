"""Seats of players who have resigned over gRPC: who takes them over, and what the one who resigned no longer sees."""

from collections.abc import AsyncIterator, Awaitable

import grpc
import grpc.aio
import pytest
from google.protobuf.duration_pb2 import Duration

from rummikub.admin.v1 import admin_service_pb2 as pb
from rummikub.v1 import error_reason_pb2, game_pb2, room_settings_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import record_service_pb2 as rs
from rummikub.v1 import turn_service_pb2 as ts
from service.app.change_pace import SEAT_CHANGES
from support.fold import fold
from support.harness import Client, GameAtHand, bearer, error_info, memory_store, new_id
from support.operator import Operated, operated
from tools.games import changes_of

pytestmark = pytest.mark.slow

HARD = game_pb2.BOT_LEVEL_HARD
UNTIMED = room_settings_pb2.RoomSettings(turn_time_limit=Duration())
SLOW = room_settings_pb2.RoomSettings(turn_time_limit=Duration(), bot_pause=Duration(seconds=10))
"""No time-outs, and bots that do not act within a test."""
OPEN = room_settings_pb2.RoomSettings(open_seat=room_settings_pb2.OPEN_SEAT_ANYONE, turn_time_limit=Duration())


class Watcher:
    """A watch of a seat's owner."""

    def __init__(self, game: GameAtHand, seat: int) -> None:
        request = gs.WatchGameRequest(game_id=game.game_id)
        self._updates = aiter(game.client.games.WatchGame(request, metadata=game.as_seat(seat)))

    async def next(self) -> gs.WatchGameResponse:
        while True:
            update = await anext(self._updates)
            if update.WhichOneof("update") in {"snapshot", "change"}:
                return update

    async def end(self) -> str:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await self.next()
        code: grpc.StatusCode = raised.value.code()
        return str(code.name)


async def add_bot(game: GameAtHand, seat: int, by: int = 0, name: str = "") -> gs.AddBotResponse:
    """Adds a bot for the owner of the host token, or for a seat."""
    request = gs.AddBotRequest(game_id=game.game_id, level=HARD, seat=seat, name=name, request_id=new_id())
    return await game.client.games.AddBot(request, metadata=game.as_seat(by) if by else game.as_host())


async def take(game: GameAtHand, seat: int, name: str = "Zoe", ref: str = "") -> gs.JoinGameResponse:
    request = gs.JoinGameRequest(game_id=game.game_id, name=name, seat=seat, player_ref=ref, request_id=new_id())
    return await game.client.games.JoinGame(request)


async def resign(game: GameAtHand, seat: int) -> None:
    request = ts.ResignGameRequest(game_id=game.game_id, request_id=new_id())
    await game.client.turns.ResignGame(request, metadata=game.as_seat(seat))


async def refusal(call: Awaitable[object]) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return str(error_info(raised.value).reason)


def player(game: game_pb2.Game, seat: int) -> game_pb2.Player:
    return next(one for one in game.players if one.seat == seat)


async def test_a_bot_plays_on_for_a_player_who_resigned(client: Client) -> None:
    game = await client.new_game(players=3, settings=UNTIMED)
    await resign(game, 2)
    left = player(await game.see(), 2)
    taken = await add_bot(game, 2)
    assert (taken.seat, taken.game.HasField("seat")) == (2, False)
    bot = player(taken.game, 2)
    assert (bot.name, bot.bot_level, bot.resigned) == ("Bot Rosa", HARD, False)
    assert (bot.tile_count, bot.total_points) == (left.tile_count, left.total_points)
    while not any(one.tiles_played.seat == 2 or one.tiles_drawn.seat == 2 for one in await events_of(game)):
        seat = (await game.see()).turn.seat
        if seat != 2:
            await game.draw(seat)


async def events_of(game: GameAtHand) -> list[game_pb2.GameEvent]:
    return [event for change in await changes_of(game.client, game.game_id) for event in change.events]


async def test_the_one_who_resigned_sees_nothing_of_the_seat_any_more(client: Client) -> None:
    game = await client.new_game(players=3, settings=SLOW)
    await resign(game, 2)
    asking = gs.GetGameRequest(game_id=game.game_id)
    assert (await client.games.GetGame(asking, metadata=game.as_seat(2))).game.rack
    watcher = Watcher(game, 2)
    await watcher.next()
    await add_bot(game, 2)
    event = (await watcher.next()).change.events[0]
    assert event.seat_taken_over == game_pb2.SeatTakenOver(seat=2, name="Bot Rosa", bot_level=HARD)
    assert await watcher.end() == "UNAUTHENTICATED"
    assert await refusal(client.games.GetGame(asking, metadata=game.as_seat(2))) == "TOKEN_VOID"
    own = gs.OwnSeat(game_id=game.game_id, seat_token=game.tokens[2])
    (listed,) = (await client.games.ListOwnGames(gs.ListOwnGamesRequest(seats=[own]))).games
    assert listed == gs.OwnGame(game_id=game.game_id, refusal=error_reason_pb2.TOKEN_VOID)


async def test_a_person_plays_on_with_a_token_and_the_rack_of_the_seat(client: Client) -> None:
    game = await client.new_game(players=3, settings=OPEN)
    rack = (await game.see(2)).rack
    await resign(game, 2)
    before = {viewer: await game.see(viewer) for viewer in (0, 1, 3)}
    request = gs.JoinGameRequest(game_id=game.game_id, name="Zoe", seat=2, request_id=new_id())
    joined = await client.games.JoinGame(request)
    assert (joined.seat, joined.game.seat, joined.game.rack) == (2, 2, rack)
    assert (await client.games.JoinGame(request)).seat_token == joined.seat_token
    for viewer, seen in before.items():
        listing = gs.ListChangesRequest(game_id=game.game_id, after_revision=seen.revision)
        changes = (await client.games.ListChanges(listing, metadata=game.as_seat(viewer))).changes
        assert [change.cause_seat for change in changes] == [2]
        assert fold(seen, changes[0]) == await game.see(viewer)
    game.tokens[2] = joined.seat_token
    while (seat := (await game.see()).turn.seat) != 2:
        await game.draw(seat)
    assert (await game.draw(2)).game.seat == 2


async def test_who_takes_the_seat_of_the_host_is_host_and_the_host_token_is_void(client: Client) -> None:
    game = await client.new_game(players=3, settings=OPEN)
    await resign(game, 1)
    joined = await take(game, 1)
    assert player(joined.game, 1).is_host
    assert await refusal(add_bot(game, 2)) == "TOKEN_VOID"
    game.tokens[1] = joined.seat_token
    await resign(game, 2)
    assert (await add_bot(game, 2, by=1)).seat == 2


async def test_if_the_host_has_resigned_any_player_may_add_a_bot_and_a_player_is_host(client: Client) -> None:
    game = await client.new_game(players=3, settings=SLOW)
    await resign(game, 1)
    added = await add_bot(game, 1, by=3)
    assert [one.seat for one in added.game.players if one.is_host] == [2]


async def test_the_host_may_give_up_the_own_seat_to_a_bot_and_sees_what_spectators_see(client: Client) -> None:
    game = await client.new_game(players=3, settings=SLOW)
    await resign(game, 1)
    added = await add_bot(game, 1, by=1)
    assert (added.game.HasField("seat"), list(added.game.rack)) == (False, [])
    assert await refusal(client.games.GetGame(gs.GetGameRequest(game_id=game.game_id), metadata=game.as_seat(1)))


async def test_refusals(client: Client) -> None:
    game = await client.new_game(players=3, settings=SLOW)
    assert await refusal(add_bot(game, 2)) == "SEAT_TAKEN"
    await resign(game, 2)
    assert await refusal(take(game, 2)) == "GAME_ALREADY_STARTED"
    assert await refusal(add_bot(game, 2, by=3)) == "NOT_THE_HOST"
    assert await refusal(add_bot(game, 4)) == "PLAYER_NOT_IN_GAME"
    assert await refusal(add_bot(game, 2, name="Player 3")) == "PLAYER_ALREADY_JOINED"
    adding = gs.AddBotRequest(game_id=game.game_id, level=HARD)
    assert await refusal(client.games.AddBot(adding, metadata=game.as_host())) == "GAME_ALREADY_STARTED"
    joining = gs.JoinGameRequest(game_id=game.game_id, name="Zoe", seat=2)
    assert await refusal(client.games.JoinGame(joining, metadata=game.as_seat(3))) == "PLAYER_ALREADY_JOINED"
    await resign(game, 3)
    assert await refusal(add_bot(game, 2)) == "GAME_OVER"


async def test_a_seat_changes_hands_at_a_limited_pace(client: Client) -> None:
    game = await client.new_game(players=3, settings=OPEN)
    for _ in range(SEAT_CHANGES):
        await resign(game, 2)
        game.tokens[2] = (await take(game, 2)).seat_token
    await resign(game, 2)
    assert await refusal(take(game, 2)) == "OVERLOADED"


async def test_the_record_of_the_game_has_the_new_player(client: Client) -> None:
    game = await client.new_game(players=3, settings=OPEN)
    await resign(game, 2)
    await take(game, 2)
    await resign(game, 1)
    await resign(game, 3)
    record = (await client.records.ExportGame(rs.ExportGameRequest(game_id=game.game_id))).record
    (move,) = [move for move in record.moves if move.player.name]
    assert (move.seat, move.player.seat, move.player.name) == (2, 2, "Zoe")
    imported = await client.records.ImportRecord(rs.ImportRecordRequest(record=record))
    assert imported.moves_played == len(record.moves)
    assert "2 takeover person Zoe" in imported.text
    assert (await client.records.ImportRecord(rs.ImportRecordRequest(text=imported.text))).record == record


# References


@pytest.fixture
async def house() -> AsyncIterator[Operated]:
    async with operated(memory_store()) as house:
        yield house


async def refs(house: Operated, game: GameAtHand) -> dict[int, str]:
    full = (await house.admin.GetGame(pb.GetGameRequest(game_id=game.game_id))).game
    return {seat.player.seat: seat.player.player_ref for seat in full.seats}


async def game_of_refs(house: Operated) -> GameAtHand:
    """Returns a game of three with references, in which seat 2 has resigned."""
    game = await house.client.new_game(players=0, start=False, settings=OPEN)
    for seat, name in enumerate(("Ada", "Ben", "Cleo"), 1):
        joined = await take(game, seat, name, ref=name.lower())
        game.tokens[seat] = joined.seat_token
    await house.client.games.StartGame(gs.StartGameRequest(game_id=game.game_id), metadata=game.as_host())
    await resign(game, 2)
    return game


async def test_the_reference_of_the_seat_is_that_of_the_new_player(house: Operated) -> None:
    game = await game_of_refs(house)
    assert await refusal(take(game, 2, ref="cleo")) == "PLAYER_ALREADY_JOINED"
    await take(game, 2, ref="zoe")
    assert await refs(house, game) == {1: "ada", 2: "zoe", 3: "cleo"}


async def test_who_resigned_may_come_back_with_the_same_reference(house: Operated) -> None:
    game = await game_of_refs(house)
    await take(game, 2, "Ben", ref="ben")
    assert await refs(house, game) == {1: "ada", 2: "ben", 3: "cleo"}


async def test_a_bot_has_no_reference_of_the_one_who_resigned(house: Operated) -> None:
    game = await game_of_refs(house)
    await add_bot(game, 2)
    assert await refs(house, game) == {1: "ada", 2: "", 3: "cleo"}


@pytest.mark.parametrize("ref", ["ben", "zoe"])
async def test_a_player_of_a_seat_is_forgotten_and_the_other_is_not(house: Operated, ref: str) -> None:
    game = await game_of_refs(house)
    token = (await take(game, 2, ref="zoe")).seat_token
    async for _ in house.admin.ForgetPlayer(pb.ForgetPlayerRequest(player_ref=ref)):
        pass
    joined = [event.player_joined.name for event in await events_of(game) if event.HasField("player_joined")]
    taken = [event.seat_taken_over.name for event in await events_of(game) if event.HasField("seat_taken_over")]
    kept = {"ben": "Player 2", "zoe": "Ben"}[ref]
    assert (joined, taken) == (["Ada", kept, "Cleo"], ["Zoe" if ref == "ben" else "Player 2"])
    seen = await house.client.games.GetGame(gs.GetGameRequest(game_id=game.game_id), metadata=bearer(token))
    assert player(seen.game, 2).name == taken[0]


async def test_the_new_player_has_the_own_name_deleted(house: Operated) -> None:
    game = await game_of_refs(house)
    token = (await take(game, 2, ref="zoe")).seat_token
    await house.client.games.ForgetSeat(gs.ForgetSeatRequest(game_id=game.game_id), metadata=bearer(token))
    taken = [event.seat_taken_over.name for event in await events_of(game) if event.HasField("seat_taken_over")]
    joined = [event.player_joined.name for event in await events_of(game) if event.HasField("player_joined")]
    assert (joined, taken) == (["Ada", "Ben", "Cleo"], ["Player 2"])
