"""The path of a game from lobby to end, as a front end plays it."""

import grpc.aio
import pytest

from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from support.harness import Client, error_info


async def test_a_game_is_created_joined_started_and_played(client: Client) -> None:
    game = await client.new_game(players=3)
    seen = await game.see(2)
    assert seen.state == game_pb2.GAME_STATE_PLAYING
    assert seen.seat == 2
    assert len(seen.rack) == 14
    assert seen.pool_count == 106 - 3 * 14
    drawn = await game.draw()
    assert len(drawn.tiles_drawn) == 1
    assert drawn.game.pool_count == seen.pool_count - 1
    assert drawn.game.revision == seen.revision + 1
    assert set(drawn.tiles_drawn) <= set(drawn.game.rack)


async def test_leaving_the_lobby_frees_a_seat_and_voids_its_token(client: Client) -> None:
    game = await client.new_game(players=2, start=False)
    await client.games.LeaveGame(gs.LeaveGameRequest(game_id=game.game_id), metadata=game.as_seat(1))
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await game.see(1)
    assert error_info(refusal.value).reason == "TOKEN_VOID"
    assert await game.join("late") == 1
    assert [player.name for player in (await game.see()).players] == ["late", "player 2"]
