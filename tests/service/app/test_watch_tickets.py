"""Tickets: with one, a caller that has only a URL watches a game as the owner of a token, and can do nothing else."""

from collections.abc import AsyncIterator

import grpc.aio
import pytest

from rummikub.v1 import game_pb2, room_settings_pb2
from rummikub.v1 import game_service_pb2 as gs
from service.app.identity import TICKET_MS
from service.storage.store import Store
from support.harness import (
    Client,
    FakeClock,
    GameAtHand,
    bearer,
    error_info,
    field_violations,
    new_id,
    running_server,
    server_settings,
)
from tools.games import options

UNLIMITED = options(turn_time_limit_seconds=0)
CLOSED = options(turn_time_limit_seconds=0, spectators=room_settings_pb2.SPECTATORS_OFF)


@pytest.fixture
async def client(store: Store) -> AsyncIterator[Client]:
    async with running_server(store, server_settings(heartbeat_seconds=0.05)) as (_, client):
        yield client


async def ticket_of(game: GameAtHand, seat: int) -> gs.CreateWatchTicketResponse:
    """Returns a ticket of a seat; 0: of the host token."""
    metadata = game.as_seat(seat) if seat else game.as_host()
    return await game.client.games.CreateWatchTicket(
        gs.CreateWatchTicketRequest(game_id=game.game_id), metadata=metadata
    )


async def watched(
    game: GameAtHand, ticket: str, metadata: tuple[tuple[str, str], ...] = ()
) -> tuple[game_pb2.Game, grpc.aio.UnaryStreamCall[gs.WatchGameRequest, gs.WatchGameResponse]]:
    """Returns the snapshot of a watch that was opened with a ticket, and the watch."""
    call = game.client.games.WatchGame(gs.WatchGameRequest(game_id=game.game_id, ticket=ticket), metadata=metadata)
    return (await anext(aiter(call))).snapshot, call


async def refused(game: GameAtHand, ticket: str, metadata: tuple[tuple[str, str], ...] = ()) -> list[str]:
    """Returns the fields for which a watch is refused, whose refusal does not repeat the ticket."""
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await watched(game, ticket, metadata)
    assert ticket not in str(refusal.value)
    return list(field_violations(refusal.value))


async def test_a_ticket_shows_what_the_token_shows(client: Client) -> None:
    game = await client.new_game(players=2, ruleset=CLOSED)
    for seat in (1, 2):
        snapshot, call = await watched(game, (await ticket_of(game, seat)).ticket)
        assert (snapshot.seat, list(snapshot.rack)) == (seat, list((await game.see(seat)).rack))
        call.cancel()
    snapshot, _ = await watched(game, (await ticket_of(game, 0)).ticket)
    assert not snapshot.rack


async def test_a_ticket_is_void_after_its_time_but_its_watch_goes_on(client: Client, clock: FakeClock) -> None:
    game = await client.new_game(players=2, ruleset=UNLIMITED)
    made = await ticket_of(game, 1)
    assert made.expire_time.ToMilliseconds() == clock.now_ms + TICKET_MS
    clock.advance((TICKET_MS - 1) / 1000)
    snapshot, call = await watched(game, made.ticket)
    clock.advance(0.001)
    assert await refused(game, made.ticket) == ["ticket"]
    await game.draw()
    while not (update := await anext(aiter(call))).HasField("change"):
        pass
    assert update.change.revision == snapshot.revision + 1


async def test_a_ticket_is_void_with_its_token(client: Client) -> None:
    game = await client.new_game(players=2, ruleset=UNLIMITED)
    ticket = (await ticket_of(game, 1)).ticket
    _, call = await watched(game, ticket)
    renewal = gs.RenewSeatTokenRequest(game_id=game.game_id, request_id=new_id())
    await client.games.RenewSeatToken(renewal, metadata=game.as_seat(1))
    assert await refused(game, ticket) == ["ticket"]
    with pytest.raises(grpc.aio.AioRpcError) as end:
        [update async for update in call]
    assert error_info(end.value).reason == "TOKEN_VOID"


async def test_a_ticket_is_of_one_game_and_cannot_be_changed(client: Client) -> None:
    game, other = [await client.new_game(players=2, ruleset=UNLIMITED) for _ in range(2)]
    ticket = (await ticket_of(game, 1)).ticket
    until, _, code = ticket.partition("-")
    assert await refused(other, ticket) == ["ticket"]
    for forged in (f"{int(until) + 1}-{code}", f"{until}-{code[::-1]}", code, "-", f"{until}-", "9" * 99):
        assert await refused(game, forged) == ["ticket"]
    assert await refused(game, ticket, game.as_seat(2)) == ["ticket"]


async def test_a_ticket_is_no_token(client: Client) -> None:
    game = await client.new_game(players=2, ruleset=UNLIMITED)
    _, _, code = (await ticket_of(game, 1)).ticket.partition("-")
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await client.games.GetGame(gs.GetGameRequest(game_id=game.game_id), metadata=bearer(code))
    assert error_info(refusal.value).reason == "TOKEN_VOID"
