"""The client for asyncio works in every event loop, wherever it was made."""

import asyncio
import threading
from collections.abc import Iterator

import grpc
import pytest

from rummikub import CreateGameRequest, GetGameRequest, aio
from support.harness import memory_store, running_server


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    """The address of a server in another thread, with a loop of its own."""
    serving, ended = threading.Event(), threading.Event()
    address: list[str] = []

    async def serve() -> None:
        async with running_server(memory_store()) as (server, _):
            address.append(f"127.0.0.1:{server.port}")
            serving.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert serving.wait(60)
    yield address[0]
    ended.set()
    thread.join()


async def play_a_bit(service: aio.Rummikub) -> str:
    """Creates a game and reads it, by a call and by a watch; returns its id."""
    created = await service.games.CreateGame(CreateGameRequest())
    host = service.seated(created.host_token)
    game_id = created.game.game_id
    assert (await host.games.GetGame(GetGameRequest(game_id=game_id))).game.game_id == game_id
    async with host.watch(game_id) as watch:
        assert (await anext(watch)).snapshot.game_id == game_id
    return game_id


def test_a_client_that_was_made_outside_of_a_loop(target: str) -> None:
    service = aio.Rummikub(target)
    assert asyncio.run(play_a_bit(service))


def test_a_client_in_one_loop_after_the_other(target: str) -> None:
    service = aio.Rummikub(target)
    seat = service.seated("0" * 43)  # of no game
    games = {asyncio.run(play_a_bit(service)) for _ in range(3)}
    assert len(games) == 3

    async def refused() -> grpc.StatusCode:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await seat.games.GetGame(GetGameRequest(game_id=games.pop()))
        return error.value.code()

    assert asyncio.run(refused()) is grpc.StatusCode.UNAUTHENTICATED

    async def close() -> None:
        await service.games.CreateGame(CreateGameRequest())
        await service.close()
        with pytest.raises(grpc.aio.UsageError, match="closed"):
            await seat.games.GetGame(GetGameRequest())

    asyncio.run(close())


def test_a_client_in_two_loops_at_once(target: str) -> None:
    service = aio.Rummikub(target)
    meeting = threading.Barrier(2)
    found: list[str] = []

    async def play() -> None:
        found.append(await play_a_bit(service))
        meeting.wait()  # both loops have their connection
        found.append(await play_a_bit(service))

    threads = [threading.Thread(target=asyncio.run, args=(play(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 4


def test_a_call_without_a_loop_says_so() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        aio.Rummikub("127.0.0.1:1").games.GetGame(GetGameRequest())
