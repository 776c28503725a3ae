"""ExportOwnGames, ExportPlayer and ForgetSeat: what is stored of a person, for the person, and without an account."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import grpc
import grpc.aio
import pytest

from engine.game import Playing
from engine.melding.round import MeldingRound
from engine.tiles import in_order
from rummikub.admin.v1 import admin_service_pb2 as pb
from rummikub.v1 import error_reason_pb2, game_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.app import own_data
from service.model.change import Committed
from service.storage.store import Store
from support.harness import Client, GameAtHand, error_info, field_violations, new_id, without_presence
from support.operator import Operated, operated, traces_of
from support.stores import STORES_AND_CLUSTER, running_store

pytestmark = pytest.mark.slow

NAME, REF = "Annabella Unmistakable", "reference-of-annabella"


@pytest.fixture(params=STORES_AND_CLUSTER)
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    async with running_store(request, clock=None) as store:
        yield store


@pytest.fixture
async def house(store: Store) -> AsyncIterator[Operated]:
    async with operated(store, sweep_seconds=3600) as house:
        yield house


async def started(client: Client, ref: str = REF) -> GameAtHand:
    """Returns a started game of Bob and Annabella, who has seat 2."""
    created = await client.games.CreateGame(gs.CreateGameRequest(request_id=new_id()))
    game = GameAtHand(client, created.game.game_id, host_token=created.host_token)
    await game.join("Bob")
    await join(game, NAME, ref)
    await game.start()
    for _ in range(4):
        await game.draw()
    return game


async def join(game: GameAtHand, name: str, ref: str) -> None:
    request = gs.JoinGameRequest(game_id=game.game_id, name=name, player_ref=ref, request_id=new_id())
    answer = await game.client.games.JoinGame(request)
    game.tokens[answer.seat] = answer.seat_token


def own(game: GameAtHand, seat: int = 2) -> gs.OwnSeat:
    return gs.OwnSeat(game_id=game.game_id, seat_token=game.tokens[seat] if seat else game.host_token)


async def exported(client: Client, seats: Sequence[gs.OwnSeat]) -> list[gs.OwnData]:
    """Returns all pages of an export."""
    request, pages = gs.ExportOwnGamesRequest(seats=seats), list[gs.OwnData]()
    while True:
        page = await client.games.ExportOwnGames(request)
        pages.append(page.game)
        if not page.next_page_token:
            return pages
        request.page_token = page.next_page_token


# Export


@pytest.fixture
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes pages of three changes, so that small games have several."""
    monkeypatch.setattr(own_data, "CHANGES_A_PAGE", 3)


@pytest.mark.usefixtures("short_pages")
async def test_an_export_has_each_game_and_all_changes_as_the_seat_sees_them(house: Operated) -> None:
    games = [await started(house.client) for _ in range(2)]
    pages = await exported(house.client, [own(game) for game in games])
    for game in games:
        first, *others = [page for page in pages if page.game_id == game.game_id]
        seen = without_presence(await game.see(2))
        seen.server_time.CopyFrom(first.game.server_time)
        assert (first.seat, first.player_ref, first.game) == (2, "", seen)
        assert not any(page.HasField("game") for page in others)
        listed = await house.client.games.ListChanges(
            gs.ListChangesRequest(game_id=game.game_id, page_size=200), metadata=game.as_seat(2)
        )
        assert [change for page in (first, *others) for change in page.changes] == list(listed.changes)
        assert len(listed.changes) > 3
    assert [page.game_id for page in pages] == sorted(
        (page.game_id for page in pages), key=[game.game_id for game in games].index
    )


async def test_an_entry_says_why_it_has_nothing_and_spoils_no_other(house: Operated) -> None:
    game, other = await started(house.client), await started(house.client)
    foreign = gs.OwnSeat(game_id=other.game_id, seat_token=game.tokens[2])
    unknown = gs.OwnSeat(game_id="0" * 32, seat_token=game.tokens[2])
    found = await exported(house.client, [foreign, unknown, own(game)])
    assert [error_reason_pb2.ErrorReason.Name(one.refusal) for one in found] == [
        "TOKEN_VOID",
        "GAME_NOT_FOUND",
        "ERROR_REASON_UNSPECIFIED",
    ]
    assert found[2].game.game_id == game.game_id
    [of_host] = await exported(house.client, [own(game, 0)])
    assert of_host == gs.OwnData(game_id=game.game_id, refusal=error_reason_pb2.NOT_A_PLAYER)


async def test_malformed_exports_name_the_field(house: Operated) -> None:
    game, other = await started(house.client), await started(house.client)
    page = (
        await house.client.games.ExportOwnGames(gs.ExportOwnGamesRequest(seats=[own(other), own(game)]))
    ).next_page_token
    for request, field in (
        (gs.ExportOwnGamesRequest(), "seats"),
        (gs.ExportOwnGamesRequest(seats=[own(game), own(game, 1)]), "seats[1].game_id"),
        (gs.ExportOwnGamesRequest(seats=[own(game)], page_token="?"), "page_token"),  # noqa: S106 - a cursor
        (gs.ExportOwnGamesRequest(seats=[own(other)], page_token=page), "page_token"),
        (gs.ExportOwnGamesRequest(seats=[gs.OwnSeat()]), "seats[0].game_id"),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await house.client.games.ExportOwnGames(request)
        assert (refused.value.code(), field_violations(refused.value)) == (grpc.StatusCode.INVALID_ARGUMENT, [field])


async def test_an_export_has_nothing_of_another_rack(house: Operated) -> None:
    """A pair of worlds: the rack of Bob and the pool differ, and Annabella's export is the same."""
    game, store = await started(house.client), house.store
    [before] = await exported(house.client, [own(game)])
    record = (await store.games.load(game.game_id)).record
    assert record
    assert isinstance(record.game.phase, Playing)
    round_ = record.game.phase.round
    assert isinstance(round_, MeldingRound)
    bobs = round_.rack(1)
    count = len(bobs.tiles)
    pool = (*bobs.tiles, *round_.pool[count:])
    racks = tuple(
        replace(rack, tiles=in_order(round_.pool[:count])) if rack.seat == 1 else rack for rack in round_.racks
    )
    other = replace(record.game, phase=replace(record.game.phase, round=replace(round_, racks=racks, pool=pool)))
    stored = await store.streams.stored_changes(game.game_id, 1, 100)
    rewritten = await store.games.rewrite(
        record.etag, replace(record, game=other), [(one.change, one.etag) for one in stored]
    )
    assert rewritten == Committed()
    [after] = await exported(house.client, [own(game)])
    after.game.server_time.CopyFrom(before.game.server_time)
    assert after == before


@pytest.mark.usefixtures("short_pages")
async def test_the_operator_exports_all_games_of_a_player(house: Operated) -> None:
    playing, other = await started(house.client), await started(house.client, ref="somebody-else")
    left = await house.client.new_game(players=1, start=False)
    await join(left, NAME, REF)
    leave = gs.LeaveGameRequest(game_id=left.game_id, request_id=new_id())
    await house.client.games.LeaveGame(leave, metadata=left.as_seat(2))
    parts = [part async for part in house.admin.ExportPlayer(pb.ExportPlayerRequest(player_ref=REF))]
    assert [part.is_done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].games_read == 3
    data = [part.game for part in parts if part.HasField("game")]
    assert {one.game_id for one in data} == {playing.game_id, left.game_id}
    assert other.game_id not in str(parts)
    [departed] = [one for one in data if one.game_id == left.game_id]
    assert (departed.HasField("seat"), departed.HasField("game"), departed.player_ref) == (False, False, REF)
    assert [change.events[0].player_joined.name for change in departed.changes] == [NAME]
    whole = [one for one in data if one.game_id == playing.game_id]
    assert whole[0].game.rack == (await playing.see(2)).rack
    assert [change for one in whole for change in one.changes] == [
        change for page in await exported(house.client, [own(playing)]) for change in page.changes
    ]


# Forgetting a seat


async def forget(game: GameAtHand, seat: int) -> str:
    request = gs.ForgetSeatRequest(game_id=game.game_id)
    return (await game.client.games.ForgetSeat(request, metadata=game.as_seat(seat))).name


@pytest.mark.parametrize("ref", ["", REF])
@pytest.mark.parametrize("kind", ["redis", "cluster"])
async def test_the_owner_of_a_seat_leaves_no_trace(
    request: pytest.FixtureRequest, redis_url: str, kind: str, ref: str
) -> None:
    url = redis_url if kind == "redis" else request.getfixturevalue("cluster").url
    async with running_store(request, clock=None, kind=kind) as store, operated(store) as house:
        game, other = await started(house.client, ref), await started(house.client, ref)
        assert await forget(game, 2) == "Player 2"
        assert [player.name for player in (await game.see(2)).players] == ["Bob", "Player 2"], "the token is valid"
        assert await forget(other, 2) == "Player 2"
        assert traces_of(url, NAME, *filter(None, [ref])) == []
        etag = (await game.see()).etag
        assert await forget(game, 2) == "Player 2"
        assert (await game.see()).etag == etag, "there is nothing left to forget"
        assert await forget(game, 1) == "Player 1"
        await game.draw()


async def test_only_the_owner_of_a_seat_is_forgotten(house: Operated) -> None:
    game = await started(house.client)
    for metadata, reason in (
        (game.as_host(), "NOT_A_PLAYER"),
        (None, "NOT_A_PLAYER"),
        ((("authorization", f"Bearer {'A' * 43}"),), "TOKEN_VOID"),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await house.client.games.ForgetSeat(gs.ForgetSeatRequest(game_id=game.game_id), metadata=metadata)
        assert error_info(refused.value).reason == reason
    assert [player.name for player in (await game.see()).players] == ["Bob", NAME]


async def test_the_person_of_a_reserved_seat_is_forgotten_in_the_rematch(house: Operated) -> None:
    game = await started(house.client)
    await house.client.turns.ResignGame(
        ts.ResignGameRequest(game_id=game.game_id, request_id=new_id()), metadata=game.as_seat(1)
    )
    rematch = await game.rematch(1)
    request = gs.JoinGameRequest(game_id=rematch.game_id, name=NAME, request_id=new_id())
    rematch.tokens[2] = (await house.client.games.JoinGame(request, metadata=game.as_seat(2))).seat_token
    assert await forget(rematch, 2) == "Player 2"
    changes = await house.client.games.ListChanges(gs.ListChangesRequest(game_id=rematch.game_id))
    assert NAME not in str(changes)
    assert (await rematch.see()).state == game_pb2.GAME_STATE_LOBBY
