"""ListOwnGames: the games of the caller's own seats, by their tokens, and nothing of other games."""

import asyncio
from collections.abc import AsyncIterator, Mapping

import grpc
import grpc.aio
import pytest

from rummikub.v1 import error_reason_pb2, game_pb2, room_settings_pb2
from rummikub.v1 import game_service_pb2 as gs
from service.composition import Tuning
from service.model.change import Loaded
from service.model.presence import Sighting
from service.server import Intervals
from service.storage.store import Store
from support.archives import store_game
from support.delegating_store import DelegatingStore
from support.harness import (
    Client,
    FakeClock,
    GameAtHand,
    field_violations,
    memory_store,
    new_id,
    running_server,
    server_settings,
)
from tools.games import options

UNKNOWN = "0" * 32
SWEEPLESS = server_settings(sweep_seconds=3600.0)


@pytest.fixture
async def client(store: Store) -> AsyncIterator[Client]:
    async with running_server(store, SWEEPLESS) as (_, client):
        yield client


def seat_of(game: GameAtHand, seat: int) -> gs.OwnSeat:
    """Returns a seat by its token; for 0 the host token."""
    return gs.OwnSeat(game_id=game.game_id, seat_token=game.tokens[seat] if seat else game.host_token)


async def own_games(client: Client, *seats: gs.OwnSeat) -> list[gs.OwnGame]:
    return list((await client.games.ListOwnGames(gs.ListOwnGamesRequest(seats=seats))).games)


def refused(game_id: str, reason: str) -> gs.OwnGame:
    return gs.OwnGame(game_id=game_id, refusal=error_reason_pb2.ErrorReason.Value(reason))


async def unlisted_game(client: Client) -> GameAtHand:
    created = await client.games.CreateGame(gs.CreateGameRequest(request_id=new_id()))
    game = GameAtHand(client, created.game.game_id, host_token=created.host_token)
    await game.join("Ada")
    return game


async def test_own_games_have_the_callers_seat_and_are_in_the_order_of_the_request(client: Client) -> None:
    started, lobby = await client.new_game(players=3), await unlisted_game(client)
    closed = await client.new_game(ruleset=options(spectators=room_settings_pb2.SPECTATORS_OFF))
    turn_seat = (await started.see()).turn.seat
    first, second, third, fourth = await own_games(
        client, seat_of(started, 3), seat_of(lobby, 1), seat_of(closed, 2), seat_of(started, 0)
    )
    assert (first.game_id, first.seat) == (first.game.game_id, 3)
    assert [found.game.game_id for found in (first, second, third, fourth)] == [
        started.game_id,
        lobby.game_id,
        closed.game_id,
        started.game_id,
    ]
    assert (first.game.state, first.game.turn_seat) == (game_pb2.GAME_STATE_PLAYING, turn_seat)
    assert (second.game.state, second.seat, second.game.HasField("turn_seat")) == (game_pb2.GAME_STATE_LOBBY, 1, False)
    assert third.seat == 2
    assert not fourth.HasField("seat"), "the host token has none"


async def test_a_game_that_is_over_is_among_the_own_games(client: Client) -> None:
    game = await unlisted_game(client)
    await client.games.AbortGame(gs.AbortGameRequest(game_id=game.game_id), metadata=game.as_seat(1))
    [found] = await own_games(client, seat_of(game, 1))
    assert found.game.state == game_pb2.GAME_STATE_ABORTED


async def test_a_token_that_is_void_or_of_another_game_shows_nothing_and_spoils_no_other_entry(client: Client) -> None:
    game, other = await client.new_game(), await unlisted_game(client)
    old = seat_of(game, 1)
    renewed = await client.games.RenewSeatToken(
        gs.RenewSeatTokenRequest(game_id=game.game_id, request_id=new_id()), metadata=game.as_seat(1)
    )
    foreign = gs.OwnSeat(game_id=other.game_id, seat_token=game.tokens[2])
    now = gs.OwnSeat(game_id=game.game_id, seat_token=renewed.seat_token)
    unknown = gs.OwnSeat(game_id=UNKNOWN, seat_token=game.tokens[2])
    found = await own_games(client, old, foreign, unknown, now)
    assert found[:3] == [
        refused(game.game_id, "TOKEN_VOID"),
        refused(other.game_id, "TOKEN_VOID"),
        refused(UNKNOWN, "GAME_NOT_FOUND"),
    ]
    assert (found[3].seat, found[3].game.game_id) == (1, game.game_id)


async def test_a_reserved_seat_of_a_rematch_is_listed_with_the_token_of_the_game_before(client: Client) -> None:
    game = await client.new_game()
    await client.games.AbortGame(gs.AbortGameRequest(game_id=game.game_id), metadata=game.as_seat(1))
    rematch = (await game.rematch(1)).game_id
    [found] = await own_games(client, gs.OwnSeat(game_id=rematch, seat_token=game.tokens[2]))
    assert (found.game.game_id, found.HasField("seat")) == (rematch, False)


async def test_a_list_changes_no_game(client: Client, clock: FakeClock) -> None:
    """A time-out that is due is left to the sweeper, so that a list costs one read a game."""
    game = await client.new_game()
    before = (await game.see()).revision
    clock.advance(3600)
    [found] = await own_games(client, seat_of(game, 1))
    assert found.game.revision == before


async def test_each_game_is_read_once_for_all_seats_in_it(clock: FakeClock) -> None:
    class Counting(DelegatingStore):
        loads = 0

        async def load(self, game_id: str, request_key: str = "") -> Loaded:
            self.loads += 1
            return await self._store.games.load(game_id, request_key)

    store = Counting(memory_store(clock))
    async with running_server(store, SWEEPLESS) as (_, client):
        game, other = await client.new_game(), await client.new_game()
        seats = [seat_of(game, number % 2 + 1) for number in range(49)]
        before = store.loads
        found = await own_games(client, *seats, seat_of(other, 2))
    assert store.loads == before + 2
    assert [one.seat for one in found] == [number % 2 + 1 for number in range(49)] + [2]


async def test_a_list_marks_nobody_as_seen(clock: FakeClock) -> None:
    reported: list[tuple[str, set[int]]] = []

    class Reporting(DelegatingStore):
        async def report_presence(self, game_id: str, server: str, sightings: Mapping[int, Sighting]) -> None:
            reported.append((game_id, set(sightings)))
            await self._store.presence.report(game_id, server, sightings)

    store, tuning = Reporting(memory_store(clock)), Tuning(intervals=Intervals(presence=0.02))
    async with running_server(store, SWEEPLESS, tuning=tuning) as (_, client):
        game = (await store_game(store, until=10)).at(client)
        await own_games(client, seat_of(game, 1))
        await game.see(2)
        async with asyncio.timeout(10):
            while not reported:  # noqa: ASYNC110 - presence is reported by a task of the server
                await asyncio.sleep(0.01)
    assert reported == [(game.game_id, {2})]


async def test_a_game_that_cannot_be_read_is_named_and_the_others_are_listed(clock: FakeClock) -> None:
    store = memory_store(clock)
    async with running_server(store, SWEEPLESS) as (_, client):
        game, damaged = await client.new_game(), await client.new_game()
        store.memory.games[damaged.game_id].snapshot = b'{"format":999}'
        first, second = await own_games(client, seat_of(damaged, 1), seat_of(game, 1))
        assert first == refused(damaged.game_id, "STORED_FORMAT_UNKNOWN")
        assert second.seat == 1


TOKEN = "A" * 43


@pytest.mark.parametrize(
    ("seats", "field"),
    [
        ([], "seats"),
        ([gs.OwnSeat(game_id=UNKNOWN, seat_token=TOKEN)] * 51, "seats"),
        ([gs.OwnSeat(game_id=UNKNOWN, seat_token=TOKEN)] * 900, "seats"),
        ([gs.OwnSeat(game_id=UNKNOWN, seat_token=TOKEN), gs.OwnSeat(seat_token=TOKEN)], "seats[1].game_id"),
        ([gs.OwnSeat(game_id=UNKNOWN, seat_token="A" * 42)], "seats[0].seat_token"),
        ([gs.OwnSeat(game_id=UNKNOWN, seat_token=f"Bearer {TOKEN}")], "seats[0].seat_token"),
        ([gs.OwnSeat(game_id=UNKNOWN, seat_token="\0" * 43)], "seats[0].seat_token"),
    ],
    ids=["none", "too many", "far too many", "no game", "a short token", "a header", "no characters"],
)
async def test_malformed_seats_are_refused_and_no_error_repeats_a_token(
    client: Client, seats: list[gs.OwnSeat], field: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await own_games(client, *seats)
    assert (refusal.value.code(), field_violations(refusal.value)) == (grpc.StatusCode.INVALID_ARGUMENT, [field])
    assert "AAAA" not in f"{refusal.value.details()}{refusal.value.trailing_metadata()}"


async def test_as_many_seats_as_allowed_are_listed(client: Client) -> None:
    game = await client.new_game()
    assert len(await own_games(client, *[seat_of(game, 2)] * 50)) == 50
