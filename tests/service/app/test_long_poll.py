"""ListChanges with wait_seconds: a long poll for callers that cannot read a stream."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import grpc.aio
import pytest

from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.storage.store import Store
from support.harness import (
    Client,
    FakeClock,
    GameAtHand,
    error_info,
    memory_store,
    new_id,
    running_server,
    server_settings,
)
from tools.games import options

UNLIMITED = options(turn_time_limit_seconds=0)
LONG = 20
"""More seconds than any test here takes."""


@pytest.fixture
async def client(store: Store) -> AsyncIterator[Client]:
    async with running_server(store, server_settings(heartbeat_seconds=0.05)) as (_, client):
        yield client


async def poll(
    game: GameAtHand, after: int, wait: int, seat: int = 0, timeout_seconds: float = LONG
) -> tuple[list[int], float]:
    """Returns the revisions of the changes in a response, and the seconds that it took."""
    request = gs.ListChangesRequest(game_id=game.game_id, after_revision=after, wait_seconds=wait)
    sent = time.monotonic()
    answer = await game.client.games.ListChanges(request, metadata=game.as_seat(seat), timeout=timeout_seconds)
    return [change.revision for change in answer.changes], time.monotonic() - sent


@contextlib.asynccontextmanager
async def waiting(
    game: GameAtHand, seat: int = 0, wait: int = LONG
) -> AsyncIterator[asyncio.Task[tuple[list[int], float]]]:
    """Yields a poll for what follows the current game, which waits."""
    task = asyncio.create_task(poll(game, (await game.see()).revision, wait, seat))
    await asyncio.sleep(0.3)
    assert not task.done()
    yield task
    task.cancel()


async def test_a_poll_returns_the_next_change_as_soon_as_it_is_there(client: Client) -> None:
    game = await client.new_game(ruleset=UNLIMITED)
    async with waiting(game, seat=1) as polled:
        drawn = (await game.draw()).game
        assert (await polled)[0] == [drawn.revision]


async def test_a_poll_with_changes_to_list_does_not_wait(client: Client) -> None:
    game = await client.new_game(ruleset=UNLIMITED)
    revision = (await game.see()).revision
    revisions, seconds = await poll(game, revision - 1, LONG)
    assert revisions == [revision]
    assert seconds < LONG / 2


@pytest.mark.parametrize(("wait", "timeout_seconds"), [(1, LONG), (LONG, 5.0)])
async def test_a_poll_without_a_change_is_empty_after_its_time_and_before_its_deadline(
    client: Client, wait: int, timeout_seconds: float
) -> None:
    game = await client.new_game(ruleset=UNLIMITED)
    revisions, seconds = await poll(game, (await game.see()).revision, wait, timeout_seconds=timeout_seconds)
    assert revisions == []
    assert 0.8 < seconds < LONG / 2


async def test_a_poll_ends_with_the_server() -> None:
    async with running_server(memory_store(FakeClock()), server_settings()) as (server, client):
        game = await client.new_game(ruleset=UNLIMITED)
        async with waiting(game) as polled:
            await server.stop()
            assert (await polled)[0] == []


async def test_a_poll_whose_token_becomes_void_is_refused(client: Client) -> None:
    game = await client.new_game(players=2, start=False, ruleset=UNLIMITED)
    async with waiting(game, seat=2) as polled:
        await client.games.LeaveGame(
            gs.LeaveGameRequest(game_id=game.game_id, request_id=new_id()), metadata=game.as_seat(2)
        )
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await polled
        assert error_info(refusal.value).reason == "TOKEN_VOID"


async def test_the_poll_of_a_game_that_is_over_waits_for_its_rematch(client: Client) -> None:
    game = await client.new_game(players=2, ruleset=UNLIMITED)
    resigned = ts.ResignGameRequest(game_id=game.game_id, request_id=new_id())
    last = (await client.turns.ResignGame(resigned, metadata=game.as_seat(2))).game
    async with waiting(game) as polled:
        rematch = gs.CreateRematchRequest(game_id=game.game_id, request_id=new_id())
        await client.games.CreateRematch(rematch, metadata=game.as_seat(1))
        assert (await polled)[0] == [last.revision + 1]
    revisions, seconds = await poll(game, last.revision + 1, LONG)
    assert revisions == []
    assert seconds < LONG / 2


async def test_a_waiting_player_is_not_connected(client: Client) -> None:
    game = await client.new_game(ruleset=UNLIMITED)
    async with waiting(game, seat=1):
        assert not (await game.see()).players[0].is_connected


async def test_waiting_polls_count_as_watches() -> None:
    async with running_server(memory_store(FakeClock()), server_settings(max_watches=1)) as (_, client):
        game = await client.new_game(ruleset=UNLIMITED)
        revision = (await game.see()).revision
        async with waiting(game):
            with pytest.raises(grpc.aio.AioRpcError) as refusal:
                await poll(game, revision, LONG)
            assert error_info(refusal.value).metadata["limit"] == "watches"
            assert (await poll(game, revision, 0))[0] == []
