"""The client for asyncio works in one event loop after the other, wherever it was made."""

import asyncio
from collections.abc import Iterator

import grpc
import pytest

from rummikub import CreateGameRequest, GetGameRequest, aio
from tools.servers import service

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    """The address of a server in another process: the threads of one process cannot share grpc.aio."""
    with service() as (address, _):
        yield address


async def play_a_bit(rummikub: aio.Rummikub) -> str:
    """Creates a game and reads it, by a call and by a watch; returns its id."""
    created = await rummikub.games.CreateGame(CreateGameRequest())
    host = rummikub.seated(created.host_token)
    game_id = created.game.game_id
    assert (await host.games.GetGame(GetGameRequest(game_id=game_id))).game.game_id == game_id
    async with host.watch(game_id) as watch:
        assert (await anext(watch)).snapshot.game_id == game_id
    return game_id


def test_a_client_that_was_made_outside_of_a_loop(target: str) -> None:
    rummikub = aio.Rummikub(target)
    assert asyncio.run(play_a_bit(rummikub))


def test_a_client_in_one_loop_after_the_other(target: str) -> None:
    rummikub = aio.Rummikub(target)
    seat = rummikub.seated("0" * 43)  # of no game
    games = {asyncio.run(play_a_bit(rummikub)) for _ in range(3)}
    assert len(games) == 3

    async def refused() -> grpc.StatusCode:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await seat.games.GetGame(GetGameRequest(game_id=games.pop()))
        return error.value.code()

    assert asyncio.run(refused()) is grpc.StatusCode.UNAUTHENTICATED

    async def close() -> None:
        await rummikub.games.CreateGame(CreateGameRequest())
        await rummikub.close()
        with pytest.raises(grpc.aio.UsageError, match="closed"):
            await seat.games.GetGame(GetGameRequest())

    asyncio.run(close())


def test_a_call_without_a_loop_says_so() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        aio.Rummikub("127.0.0.1:1").games.GetGame(GetGameRequest())
