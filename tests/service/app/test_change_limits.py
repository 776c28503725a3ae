"""What a seat can make of a game without playing: bounded in number, in what is stored, and in its pace."""

import grpc.aio
import pytest
import redis

from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from service.app.change_pace import SEAT_CHANGES
from service.composition import Tuning
from service.server import Intervals
from service.storage.store import Store
from support.harness import Client, FakeClock, GameAtHand, error_info, new_id, running_server
from support.stores import running_store
from tools.games import game_rules


async def renew(game: GameAtHand, seat: int) -> None:
    """Replaces the token of a seat."""
    request = gs.RenewSeatTokenRequest(game_id=game.game_id, request_id=new_id())
    answer = await game.client.games.RenewSeatToken(request, metadata=game.as_seat(seat))
    game.tokens[seat] = answer.seat_token


async def leave(game: GameAtHand, seat: int) -> None:
    """Leaves the lobby."""
    request = gs.LeaveGameRequest(game_id=game.game_id, request_id=new_id())
    await game.client.games.LeaveGame(request, metadata=game.as_seat(seat))


async def test_a_token_that_is_gone_leaves_nothing_in_the_store(
    request: pytest.FixtureRequest, empty_redis_url: str, clock: FakeClock
) -> None:
    sizes, tuning = [], Tuning(intervals=Intervals(presence=0.01))
    with redis.Redis.from_url(empty_redis_url) as stored:
        async with (
            running_store(request, clock, kind="redis") as store,
            running_server(store, tuning=tuning) as (_, client),
        ):
            game = await client.new_game(start=False)
            for _ in range(3):
                for _ in range(10):
                    clock.advance(20)
                    await renew(game, 1)
                    await game.see(1)
                    await leave(game, 2)
                    await game.join("Ben", 2)
                sizes.append([stored.hlen(f"rummikub:{{{game.game_id}}}:{key}") for key in ("requests", "presence")])
    assert sizes[1] == sizes[2]


async def test_what_does_not_change_is_no_revision_and_has_one_answer(store: Store) -> None:
    async with running_server(store) as (_, client):
        game = await client.new_game(start=False)
        first = await game.ready(1)
        request = gs.SetReadyRequest(game_id=game.game_id, is_ready=True, request_id=new_id())
        again = await client.games.SetReady(request, metadata=game.as_seat(1))
        assert again.game.revision == first.revision
        await game.ready(1, is_ready=False)
        assert await client.games.SetReady(request, metadata=game.as_seat(1)) == again
        assert not (await game.see()).players[0].is_ready
        changes = await client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id))
        assert [change.revision for change in changes.changes] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("sender", ["seat", "host"])
async def test_a_seat_makes_changes_that_cost_nothing_at_a_pace(store: Store, clock: FakeClock, sender: str) -> None:
    async def change(number: int) -> None:
        if sender == "seat":
            await game.ready(1, is_ready=number % 2 == 0)
        else:
            add = gs.AddBotRequest(game_id=game.game_id, level=game_pb2.BOT_LEVEL_EASY)
            bot = await client.games.AddBot(add, metadata=game.as_host())
            await game.kick(bot.seat)

    async with running_server(store) as (_, client):
        game = await client.new_game(players=1, start=False)
        made = 0

        async def change_too_often() -> None:
            nonlocal made
            for made in range(SEAT_CHANGES + 1):
                await change(made)

        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await change_too_often()
        assert error_info(refusal.value).metadata["limit"] == "seat_changes"
        revision = (await game.see()).revision
        with pytest.raises(grpc.aio.AioRpcError):
            await change(made)
        assert (await game.see()).revision == revision
        clock.advance(2)
        await change(made)


async def test_strangers_join_no_more_often_than_they_leave(client: Client) -> None:
    game = await client.new_game(players=1, start=False, ruleset=game_rules(players_max=2))
    for _ in range(SEAT_CHANGES):
        await leave(game, await game.join("Eve"))
    seat = await game.join("Eve")
    for call, reason in ((leave(game, seat), "OVERLOADED"), (game.join("Zoe"), "GAME_FULL")):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await call
        assert error_info(refusal.value).reason == reason


async def test_turns_have_no_pace(client: Client) -> None:
    game = await client.new_game()
    for _ in range(2 * SEAT_CHANGES):
        await game.draw()
