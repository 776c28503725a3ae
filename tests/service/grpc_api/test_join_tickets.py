"""Join tickets: who joins, where and once; and seats that are reserved for players."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import jwt
import pytest

from engine.game import Game, Playing
from engine.melding.round import MeldingRound
from engine.melding.ruleset import SABRA
from engine.tiles import in_order
from rummikub.v1 import error_reason_pb2, game_pb2, room_settings_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.model.change import Committed
from service.model.record import Listing, OperatorData, PlayerRef, Record
from service.storage.store import PLAYER_GAMES_MAX, Store
from support.cases import each_of
from support.harness import (
    Client,
    FakeClock,
    GameAtHand,
    client_with_key,
    error_info,
    field_violations,
    keys_file,
    new_id,
    running_server,
    server_settings,
)
from support.join_tickets import EDDSA_KEY, ENTRY, HS256_KEY, OTHER_KEY, PRIVATE_KEY, SECRET, signed, unsigned
from support.stores import STORES_AND_CLUSTER, running_store

pytestmark = pytest.mark.slow

BOTH = f'ticket_keys = ["{EDDSA_KEY}", "{HS256_KEY}"]'
REQUIRED = f"{ENTRY}\nrequire_tickets = true"


@pytest.fixture
async def web(tmp_path: Path, store: Store) -> AsyncIterator[Client]:
    """Yields a client of a server on each kind of store, whose players join with tickets only."""
    async with served(tmp_path, store, REQUIRED) as client:
        yield client


@pytest.fixture(params=STORES_AND_CLUSTER)
async def every_store(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Store]:
    """Yields each kind of store, a cluster too, empty, on the clock."""
    async with running_store(request, clock) as store:
        yield store


@pytest.fixture
async def strict(tmp_path: Path, store: Store) -> AsyncIterator[Client]:
    """Yields the same where a key has ticket keys of both algorithms."""
    async with served(tmp_path, store, f"{BOTH}\nrequire_tickets = true") as client:
        yield client


@asynccontextmanager
async def served(folder: Path, store: Store, entry: str) -> AsyncIterator[Client]:
    """Yields a client of a server with the key `web`, which the client sends."""
    settings = server_settings(keys_file=keys_file(folder, web=entry), sweep_seconds=3_600, heartbeat_seconds=0.2)
    async with (
        running_server(store, settings) as (server, _),
        client_with_key(server.port, "web") as client,
    ):
        yield client


async def lobby(client: Client, **fields: Any) -> GameAtHand:  # noqa: ANN401 - of a request
    created = await client.games.CreateGame(gs.CreateGameRequest(request_id=new_id(), **fields))
    return GameAtHand(client, created.game.game_id, host_token=created.host_token)


async def join(game: GameAtHand, ticket: str, name: str = "", **fields: Any) -> gs.JoinGameResponse:  # noqa: ANN401 - of a request
    fields = {"request_id": new_id()} | fields
    request = gs.JoinGameRequest(game_id=game.game_id, name=name, join_ticket=ticket, **fields)
    joined: gs.JoinGameResponse = await game.client.games.JoinGame(request)
    game.tokens[joined.seat] = joined.seat_token
    return joined


async def refusal(call: Any) -> tuple[str, str]:  # noqa: ANN401 - a call of any kind
    """Returns the reason of a refused call, and the claim that it names."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    info = error_info(refused.value)
    return str(info.reason), str(info.metadata["claim"])


async def test_a_ticket_says_who_joins_and_what_the_name_is(tmp_path: Path, store: Store) -> None:
    async with served(tmp_path, store, REQUIRED) as web:
        game = await lobby(web)
        joined = await join(game, signed("account of Ada", name="Ada"))
        await join(game, signed("account of Ben"), "Ben", player_ref="account of Ben")
        assert [player.name for player in (await game.see()).players] == ["Ada", "Ben"]
        record = (await store.games.load(game.game_id)).record
        assert record
        assert [record.operator_data.ref_of(seat) for seat in (1, 2)] == ["account of Ada", "account of Ben"]
        assert "account" not in str(joined)


async def test_a_ticket_marks_a_program_which_may_also_say_so_itself_but_not_deny_it(web: Client) -> None:
    game = await lobby(web)
    await join(game, signed("account of a bot", bot=True), "Deep Tile", is_program=False)
    await join(game, signed("account of another", bot=False), "Shallow Tile", is_program=True)
    await join(game, signed("account of Ada"), "Ada")
    assert [player.is_program for player in (await game.see()).players] == [True, True, False]


async def test_quick_play_seats_programs_as_such_and_not_where_bots_are_off(client: Client) -> None:
    wanted = gs.JoinOrCreateGameRequest(name="Deep Tile", is_program=True)
    first = await client.games.JoinOrCreateGame(wanted)
    assert first.game.players[0].is_program
    wanted.settings.bots = room_settings_pb2.BOTS_OFF
    assert await refusal(client.games.JoinOrCreateGame(wanted)) == ("BOTS_NOT_ALLOWED", "")


@pytest.mark.parametrize("key", ["EdDSA", "HS256"])
async def test_each_ticket_key_signs_by_its_algorithm(tmp_path: Path, store: Store, key: str) -> None:
    async with served(tmp_path, store, BOTH) as web:
        ticket = signed("ada", PRIVATE_KEY if key == "EdDSA" else SECRET, key)
        assert (await join(await lobby(web), ticket, "Ada")).seat == 1


FORGED = {
    "another key": (signed("ada", OTHER_KEY), "TICKET_SIGNATURE_INVALID", ""),
    "another secret": (signed("ada", b"?" * 32, "HS256"), "TICKET_SIGNATURE_INVALID", ""),
    "a changed player": (
        signed("ada").replace(signed("ada").split(".")[1], signed("eve").split(".")[1]),
        "TICKET_SIGNATURE_INVALID",
        "",
    ),
    "none": (unsigned("none"), "TICKET_ALGORITHM_NOT_ALLOWED", ""),
    "None": (unsigned("None"), "TICKET_ALGORITHM_NOT_ALLOWED", ""),
    "no algorithm": (unsigned(None), "TICKET_ALGORITHM_NOT_ALLOWED", ""),
    "an algorithm of no key": (signed("ada", SECRET * 2, "HS384"), "TICKET_ALGORITHM_NOT_ALLOWED", ""),
    "another audience": (signed("ada", aud="partner"), "TICKET_AUDIENCE_WRONG", ""),
    "no audience": (signed("ada", aud=None), "TICKET_AUDIENCE_WRONG", ""),
    "expired": (signed("ada", seconds=-1), "TICKET_EXPIRED", ""),
    "no expiry": (signed("ada", exp=None), "TICKET_MALFORMED", "exp"),
    "a far expiry": (signed("ada", seconds=86_460), "TICKET_MALFORMED", "exp"),
    "an expiry that is no time": (signed("ada", exp="soon"), "TICKET_MALFORMED", "exp"),
    "a bot that is no yes or no": (signed("ada", bot="yes"), "TICKET_MALFORMED", "bot"),
    "no player": (signed("ada", sub=None), "TICKET_MALFORMED", "sub"),
    "an empty player": (signed(""), "TICKET_MALFORMED", "sub"),
    "a long player": (signed("a" * 65), "TICKET_MALFORMED", "sub"),
    "a name of no form": (signed("ada", name=" "), "TICKET_MALFORMED", "name"),
    "a game of no form": (signed("ada", game_id="x"), "TICKET_MALFORMED", "game_id"),
    "a seat of no form": (signed("ada", seat=True), "TICKET_MALFORMED", "seat"),
    "labels of no form": (signed("ada", labels=["x"]), "TICKET_MALFORMED", "labels"),
    "no JWT": ("ticket", "TICKET_MALFORMED", "header"),
    "another player_ref": (signed("ben"), "TICKET_OUT_OF_SCOPE", "sub"),
    "another name": (signed("ada", name="Ada Lovelace"), "TICKET_OUT_OF_SCOPE", "name"),
    "another game": (signed("ada", game_id="0" * 32), "TICKET_OUT_OF_SCOPE", "game_id"),
    "other labels": (signed("ada", labels={"league": "2"}), "TICKET_OUT_OF_SCOPE", "labels"),
    "another seat": (signed("ada", seat=1), "TICKET_OUT_OF_SCOPE", "seat"),
    "none where one is required": ("", "TICKET_REQUIRED", ""),
}


@each_of("ticket", FORGED)
async def test_a_bad_ticket_seats_nobody_and_has_one_reason(strict: Client, ticket: str) -> None:
    text, reason, claim = FORGED[ticket]
    game = await lobby(strict, labels={"league": "1"})
    assert await refusal(join(game, text, "Ada", player_ref="ada" if text else "", seat=2)) == (reason, claim)
    assert not (await game.see()).players


async def test_a_public_key_is_no_secret_of_a_ticket(web: Client) -> None:
    """The holder of the public key, as the text of the keys file, signs with HS256."""
    raw = PRIVATE_KEY.public_key().public_bytes_raw()
    for secret in (raw, EDDSA_KEY.encode()):
        forged = jwt.encode({"sub": "ada", "aud": "web", "exp": 2**33}, secret, "HS256")
        assert await refusal(join(await lobby(web), forged, "Ada")) == ("TICKET_ALGORITHM_NOT_ALLOWED", "")


async def test_no_error_and_no_log_repeats_a_ticket(web: Client, capfd: pytest.CaptureFixture[str]) -> None:
    ticket = signed("ada", OTHER_KEY)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await join(await lobby(web), ticket, "Ada")
    said = f"{refused.value.details()}{refused.value.trailing_metadata()}{''.join(capfd.readouterr())}"
    assert ticket.split(".")[2] not in said
    with pytest.raises(grpc.aio.AioRpcError) as long:
        await join(await lobby(web), "x" * 2_001, "Ada")
    assert field_violations(long.value) == ["join_ticket"]


async def test_a_ticket_joins_once_and_a_repeated_request_gets_the_first_answer(web: Client, clock: FakeClock) -> None:
    game, other = await lobby(web), await lobby(web)
    ticket, request_id = signed("ada", name="Ada"), new_id()
    first = await join(game, ticket, request_id=request_id)
    assert await refusal(join(game, ticket, "Ada")) == ("PLAYER_ALREADY_JOINED", "")
    assert await refusal(join(other, ticket, "Ada")) == ("TICKET_USED", "")
    spelled_otherwise = ticket[:-1] + chr(ord(ticket[-1]) + 1)  # the last four bits mean nothing
    assert (await refusal(join(other, spelled_otherwise, "Ada")))[0].startswith("TICKET_")
    assert not (await other.see()).players
    await web.games.LeaveGame(gs.LeaveGameRequest(game_id=game.game_id), metadata=game.as_seat(1))
    assert await refusal(join(game, ticket, "Ada")) == ("TICKET_USED", "")
    assert (await join(game, signed("ada", name="Ada", jti="2"))).seat == 1
    clock.advance(3_000)
    assert await join(game, ticket, request_id=request_id) == first, "although it has expired"


async def test_a_refused_player_may_use_the_ticket_again(web: Client) -> None:
    game = await lobby(web)
    await join(game, signed("ben"), "Ben")
    ticket = signed("ada")
    assert await refusal(join(game, ticket, "Ben")) == ("PLAYER_ALREADY_JOINED", "")
    assert await refusal(join(game, ticket, "Ada", seat=1)) == ("SEAT_TAKEN", "")
    assert (await join(game, ticket, "Ada")).seat == 2


async def test_one_player_has_one_seat_whatever_the_tickets(web: Client) -> None:
    game = await lobby(web)
    await join(game, signed("ada", jti="1"), "Ada")
    assert await refusal(join(game, signed("ada", jti="2"), "Other")) == ("PLAYER_ALREADY_JOINED", "")


async def test_a_ticket_for_a_game_labels_and_a_seat_joins_there(web: Client) -> None:
    game = await lobby(web, labels={"league": "1", "region": "eu"})
    ticket = signed("ada", name="Ada", game_id=game.game_id, labels={"league": "1"}, seat=2)
    assert (await join(game, ticket)).seat == 2


async def test_quick_play_takes_a_ticket_for_labels(web: Client) -> None:
    def wanted(ticket: str, league: str) -> gs.JoinOrCreateGameRequest:
        return gs.JoinOrCreateGameRequest(join_ticket=ticket, labels={"league": league}, request_id=new_id())

    ticket = signed("ada", name="Ada", labels={"league": "1"})
    assert await refusal(web.games.JoinOrCreateGame(wanted(ticket, "2"))) == ("TICKET_OUT_OF_SCOPE", "labels")
    first = await web.games.JoinOrCreateGame(wanted(ticket, "1"))
    second = await web.games.JoinOrCreateGame(wanted(signed("ben", name="Ben"), "1"))
    assert (first.created, second.created, second.game.game_id) == (True, False, first.game.game_id)
    seat = signed("cy", name="Cy", seat=1)
    assert await refusal(web.games.JoinOrCreateGame(wanted(seat, "1"))) == ("TICKET_OUT_OF_SCOPE", "seat")
    other = signed("cy", name="Cy", game_id=first.game.game_id)
    assert await refusal(web.games.JoinOrCreateGame(wanted(other, "1"))) == ("TICKET_OUT_OF_SCOPE", "game_id")


async def test_without_require_tickets_a_player_may_be_nobody_but_no_one_else(tmp_path: Path, store: Store) -> None:
    async with served(tmp_path, store, ENTRY) as web:
        game = await lobby(web)
        assert (await join(game, "", "Eve")).seat == 1
        assert await refusal(join(game, "", "Ada", player_ref="ada")) == ("TICKET_REQUIRED", "")


async def test_a_key_without_ticket_keys_takes_claims_and_no_ticket(tmp_path: Path, store: Store) -> None:
    async with served(tmp_path, store, "") as web:
        game = await lobby(web)
        assert (await join(game, "", "Ada", player_ref="ada")).seat == 1
        assert await refusal(join(game, signed("ben"), "Ben")) == ("TICKET_ALGORITHM_NOT_ALLOWED", "")


async def test_an_audience_of_its_own_replaces_the_keys_name(tmp_path: Path, store: Store) -> None:
    async with served(tmp_path, store, f'{ENTRY}\nticket_audience = "https://play.example"') as web:
        game = await lobby(web)
        assert await refusal(join(game, signed("ada"), "Ada")) == ("TICKET_AUDIENCE_WRONG", "")
        assert (await join(game, signed("ada", aud=["https://play.example", "other"]), "Ada")).seat == 1


# The games of a player


async def games_of(client: Client, ticket: str) -> list[tuple[str, int]]:
    """Returns the ids of a player's games, each with the seat, 0 for a reserved one."""
    listed = await client.games.ListOwnGames(gs.ListOwnGamesRequest(join_ticket=ticket))
    assert all(one.game.game_id == one.game_id for one in listed.games)
    return [(one.game_id, one.seat) for one in listed.games]


async def test_a_player_finds_the_games_with_any_ticket_also_on_another_server(
    tmp_path: Path, every_store: Store, clock: FakeClock
) -> None:
    async with served(tmp_path, every_store, REQUIRED) as web, served(tmp_path, every_store, REQUIRED) as elsewhere:
        ticket = signed("ada", name="Ada")
        assert await games_of(web, ticket) == []
        first = await lobby(web, reserved_seats=reserved(Ada=2))
        clock.advance(1)
        second = await lobby(web)
        await join(second, signed("ben"), "Ben")
        await join(second, ticket)
        clock.advance(1)
        quick = await web.games.JoinOrCreateGame(
            gs.JoinOrCreateGameRequest(join_ticket=signed("ada", name="Ada", jti="quick"), request_id=new_id())
        )
        expected = [(quick.game.game_id, 1), (second.game_id, 2), (first.game_id, 0)]
        assert await games_of(elsewhere, ticket) == expected, "the used ticket still says who it is"
        assert await games_of(web, signed("ben")) == [(second.game_id, 1)]
        await web.games.LeaveGame(gs.LeaveGameRequest(game_id=second.game_id), metadata=second.as_seat(2))
        await first.kick(2)
        assert await games_of(elsewhere, ticket) == [(quick.game.game_id, 1)]
        clock.advance(3_600)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await games_of(elsewhere, ticket)
        assert error_info(refused.value).reason == "TICKET_EXPIRED"


async def test_a_seat_that_is_taken_over_is_among_the_games_of_the_new_player_only(web: Client) -> None:
    open_seats = room_settings_pb2.RoomSettings(open_seat=room_settings_pb2.OPEN_SEAT_ANYONE)
    game = await lobby(web, settings=open_seats)
    for name in ("ada", "ben", "cleo"):
        await join(game, signed(name), name)
    await web.games.StartGame(gs.StartGameRequest(game_id=game.game_id), metadata=game.as_host())
    await web.turns.ResignGame(ts.ResignGameRequest(game_id=game.game_id), metadata=game.as_seat(2))
    assert await games_of(web, signed("ben")) == [(game.game_id, 2)]
    assert (await join(game, signed("zoe"), "zoe", seat=2)).seat == 2
    assert await games_of(web, signed("zoe")) == [(game.game_id, 2)]
    assert await games_of(web, signed("ben")) == []


async def test_an_entry_has_whose_turn_it_is_its_deadline_and_the_winners(web: Client) -> None:
    game = await started(web)
    turn = (await game.see()).turn
    [listed] = (await web.games.ListOwnGames(gs.ListOwnGamesRequest(join_ticket=signed("ada")))).games
    assert (listed.game.turn_seat, listed.turn_deadline) == (turn.seat, turn.deadline)
    await web.turns.ResignGame(ts.ResignGameRequest(game_id=game.game_id), metadata=game.as_seat(2))
    for seats in (
        {"join_ticket": signed("ada")},
        {"seats": [gs.OwnSeat(game_id=game.game_id, seat_token=game.tokens[1])]},
    ):
        [over] = (await web.games.ListOwnGames(gs.ListOwnGamesRequest(**seats))).games
        assert (over.game.state, list(over.winner_seats)) == (game_pb2.GAME_STATE_FINISHED, [1])
        assert not over.HasField("turn_deadline")


async def test_a_ticket_exports_games_that_are_over(web: Client) -> None:
    over, running, _foreign = await started(web), await started(web), await lobby(web)
    await web.turns.ResignGame(ts.ResignGameRequest(game_id=over.game_id), metadata=over.as_seat(2))
    request, found = gs.ExportOwnGamesRequest(join_ticket=signed("ada")), dict[str, gs.OwnData]()
    while not found or request.page_token:
        page = await web.games.ExportOwnGames(request)
        found[page.game.game_id] = page.game
        request.page_token = page.next_page_token
    assert found.keys() == {over.game_id, running.game_id}
    assert found[running.game_id].refusal == error_reason_pb2.GAME_NOT_OVER
    assert not found[running.game_id].changes
    whole = found[over.game_id]
    assert (whole.seat, whole.player_ref) == (1, "ada")
    assert list(whole.game.rack) == list((await over.see(1)).rack) != []
    nothing = await web.games.ExportOwnGames(gs.ExportOwnGamesRequest(join_ticket=signed("eve")))
    assert nothing == gs.ExportOwnGamesResponse()


async def test_a_rematch_is_among_the_games(web: Client, clock: FakeClock) -> None:
    game = await started(web)
    await web.games.AbortGame(gs.AbortGameRequest(game_id=game.game_id), metadata=game.as_host())
    clock.advance(1)
    rematch = await game.rematch(1)
    assert await games_of(web, signed("ben")) == [(rematch.game_id, 0), (game.game_id, 2)]


async def test_the_games_of_another_key_and_of_claims_are_not_found(tmp_path: Path, store: Store) -> None:
    async with running_server(store, server_settings(sweep_seconds=3_600)) as (_, anyone):
        await join(await lobby(anyone), "", "Ada", player_ref="ada")
    async with served(tmp_path, store, REQUIRED) as web:
        assert await games_of(web, signed("ada")) == []


async def test_two_games_that_differ_in_what_others_hold_are_listed_alike(tmp_path: Path, store: Store) -> None:
    """A pair of worlds: the rack of Ben and the pool differ, and Ada's list is the same."""
    async with served(tmp_path, store, REQUIRED) as web:
        game = await started(web)
        request = gs.ListOwnGamesRequest(join_ticket=signed("ada"))
        before, watched = await web.games.ListOwnGames(request), await first_watched(web)
        record = (await store.games.load(game.game_id)).record
        assert record
        stored = await store.streams.stored_changes(game.game_id, 1, 100)
        other = replace(record, game=with_other_tiles(record.game))
        rewritten = await store.games.rewrite(record.etag, other, [(one.change, one.etag) for one in stored])
        assert rewritten == Committed()
        assert await web.games.ListOwnGames(request) == before
        assert await first_watched(web) == watched == before.games[0]
        assert before.games[0].seat == 1


async def first_watched(client: Client) -> gs.OwnGame:
    """Returns the first entry of Ada's stream."""
    watch: Any = client.games.WatchOwnGames(gs.WatchOwnGamesRequest(join_ticket=signed("ada")))
    first = await entry(watch)
    watch.cancel()
    return first


def with_other_tiles(game: Game) -> Game:
    """Returns a game in which Ben's rack and the next tiles of the pool have changed places."""
    assert isinstance(game.phase, Playing)
    round_ = game.phase.round
    assert isinstance(round_, MeldingRound)
    own, bens = round_.racks
    count = len(bens.tiles)
    pool = (*bens.tiles, *round_.pool[count:])
    racks = (own, replace(bens, tiles=in_order(round_.pool[:count])))
    return replace(game, phase=replace(game.phase, round=replace(round_, racks=racks, pool=pool)))


async def started(client: Client) -> GameAtHand:
    """Returns a started game of Ada and Ben."""
    game = await lobby(client)
    for name in ("Ada", "Ben"):
        await join(game, signed(name.lower(), name=name, jti=new_id()))
    await client.games.StartGame(gs.StartGameRequest(game_id=game.game_id), metadata=game.as_host())
    return game


async def test_only_so_many_games_are_found(every_store: Store) -> None:
    record = Record(
        "0" * 32, Game(SABRA), "", (), 0, 0, operator_data=OperatorData(player_refs=(PlayerRef(1, 1, "ada"),))
    )
    for number in range(PLAYER_GAMES_MAX + 5):
        await every_store.lists.note_players(replace(record, game_id=f"{number:032x}", created_ms=number))
    found = await every_store.lists.games_of("", "ada")
    assert list(found) == [f"{number:032x}" for number in reversed(range(5, PLAYER_GAMES_MAX + 5))]
    await every_store.lists.note_players(replace(record, listing=Listing(key="web")))
    assert len(await every_store.lists.games_of("", "ada")) == PLAYER_GAMES_MAX, "each key has as many"
    assert await every_store.lists.games_of("web", "ada") == [record.game_id]
    await every_store.lists.forget_player("ada")
    assert [*await every_store.lists.games_of("", "ada"), *await every_store.lists.games_of("web", "ada")] == []


async def entry(watch: Any) -> gs.OwnGame:  # noqa: ANN401 - grpcio's are untyped
    """Returns the next game that a watch of a person's games reports."""
    async with asyncio.timeout(10):
        while not (update := await watch.read()).HasField("game"):
            pass
    game: gs.OwnGame = update.game
    return game


async def test_one_stream_has_the_games_of_a_player_and_their_changes(tmp_path: Path, every_store: Store) -> None:
    """The games change at another server."""
    async with served(tmp_path, every_store, REQUIRED) as web, served(tmp_path, every_store, REQUIRED) as elsewhere:
        first, second = await started(web), await started(web)
        watch: Any = elsewhere.games.WatchOwnGames(gs.WatchOwnGamesRequest(join_ticket=signed("ada")))
        found = {(await entry(watch)).game_id for _ in range(2)}
        assert found == {first.game_id, second.game_id}
        turn = (await first.see()).turn
        await first.draw()
        after = await entry(watch)
        assert (after.game_id, after.game.turn_seat) == (first.game_id, 3 - turn.seat)
        await web.turns.ResignGame(ts.ResignGameRequest(game_id=second.game_id), metadata=second.as_seat(2))
        over = await entry(watch)
        assert (over.game_id, list(over.winner_seats)) == (second.game_id, [1])
        third = await lobby(web)
        await join(third, signed("ada", name="Ada", jti="third"))
        assert ((await entry(watch)).game_id) == third.game_id, "with a heartbeat"
        watch.cancel()


async def test_a_stream_by_seats_has_a_refusal_when_a_token_becomes_void(client: Client) -> None:
    game, other = await client.new_game(), await client.new_game()
    seats = [gs.OwnSeat(game_id=one.game_id, seat_token=one.tokens[1]) for one in (game, other)]
    watch: Any = client.games.WatchOwnGames(gs.WatchOwnGamesRequest(seats=seats))
    assert [(await entry(watch)).game_id for _ in range(2)] == [game.game_id, other.game_id]
    renewal = gs.RenewSeatTokenRequest(game_id=game.game_id, request_id=new_id())
    await client.games.RenewSeatToken(renewal, metadata=game.as_seat(1))
    assert (await entry(watch)) == gs.OwnGame(game_id=game.game_id, refusal=error_reason_pb2.TOKEN_VOID)
    watch.cancel()


async def test_a_person_has_one_stream(web: Client) -> None:
    await started(web)
    request = gs.WatchOwnGamesRequest(join_ticket=signed("ada"))
    first: Any = web.games.WatchOwnGames(request)
    await entry(first)
    second: Any = web.games.WatchOwnGames(request)
    await entry(second)
    async with asyncio.timeout(10):
        while (update := await first.read()) is not grpc.aio.EOF:
            assert update.HasField("heartbeat")
    assert await first.code() is grpc.StatusCode.OK
    second.cancel()


async def test_a_person_has_one_stream_at_all_servers(tmp_path: Path, every_store: Store) -> None:
    """Changes at shorter intervals than heartbeats do not keep the older one open."""
    async with served(tmp_path, every_store, REQUIRED) as web, served(tmp_path, every_store, REQUIRED) as elsewhere:
        game = await started(web)
        request = gs.WatchOwnGamesRequest(join_ticket=signed("ada"))
        first: Any = web.games.WatchOwnGames(request)
        await entry(first)
        second: Any = elsewhere.games.WatchOwnGames(request)
        await entry(second)
        playing = asyncio.create_task(play_on(game))
        async with asyncio.timeout(10):
            while await first.read() is not grpc.aio.EOF:
                pass
        assert await first.code() is grpc.StatusCode.OK
        await entry(second)
        assert not second.done()
        playing.cancel()
        second.cancel()


async def play_on(game: GameAtHand) -> None:
    while True:
        await game.draw()
        await asyncio.sleep(0.05)


async def test_a_stream_ends_with_closing_when_the_server_stops(store: Store) -> None:
    async with running_server(store, server_settings(sweep_seconds=3_600)) as (server, client):
        game = await client.new_game()
        seat = gs.OwnSeat(game_id=game.game_id, seat_token=game.tokens[1])
        watch: Any = client.games.WatchOwnGames(gs.WatchOwnGamesRequest(seats=[seat]))
        await entry(watch)
        last = gs.WatchOwnGamesResponse()
        stopping = asyncio.create_task(server.stop())
        while (update := await watch.read()) is not grpc.aio.EOF:
            last = update
        assert last.closing.retry_delay.ToMilliseconds() >= 1_000
        await stopping


async def test_seats_and_a_ticket_are_one_too_many(web: Client) -> None:
    seat = gs.OwnSeat(game_id="0" * 32, seat_token="A" * 43)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await web.games.ListOwnGames(gs.ListOwnGamesRequest(seats=[seat], join_ticket=signed("ada")))
    assert field_violations(refused.value) == ["seats"]


# Reserved seats


def reserved(**seats: int) -> list[gs.SeatReservation]:
    """Returns reservations by the names of players, who have references of the same name."""
    return [gs.SeatReservation(seat=seat, player_ref=name.lower(), name=name) for name, seat in seats.items()]


async def test_reserved_seats_are_taken_by_their_players_only_and_then_the_game_starts(
    web: Client, clock: FakeClock
) -> None:
    game = await lobby(web, reserved_seats=reserved(Ben=2, Ada=1))
    await join(game, signed("cy"), "Cy")
    assert [(one.seat, one.name) for one in (await game.see()).reserved_seats] == [(1, "Ada"), (2, "Ben")]
    assert await refusal(join(game, signed("eve"), "Eve", seat=2)) == ("SEAT_TAKEN", "")
    assert await refusal(join(game, signed("eve"), "Ada")) == ("PLAYER_ALREADY_JOINED", "")
    assert await refusal(join(game, signed("ben", seat=1), "Ben")) == ("TICKET_OUT_OF_SCOPE", "seat")
    assert (await join(game, signed("ben", jti="2"), "Benjamin")).seat == 2
    start = gs.StartGameRequest(game_id=game.game_id)
    assert await refusal(web.games.StartGame(start, metadata=game.as_host())) == ("PLAYERS_NOT_READY", "")
    assert (await join(game, signed("ada"), "Ada")).seat == 1
    assert (await game.see()).HasField("next_round_time")
    clock.advance(6)
    assert (await game.see()).state == game_pb2.GAME_STATE_PLAYING


async def test_a_player_with_a_seat_joins_an_unlisted_game_by_its_id_after_a_kick(web: Client) -> None:
    game = await lobby(web, reserved_seats=reserved(Ada=1))
    await join(game, signed("eve"), "Eve")
    await game.kick(2)
    assert await refusal(join(game, signed("ben"), "Ben")) == ("JOIN_CODE_REQUIRED", "")
    assert (await join(game, signed("ada"), "Ada")).seat == 1


async def test_the_host_gives_up_a_reservation(web: Client) -> None:
    game = await lobby(web, reserved_seats=reserved(Ada=1))
    await game.kick(1)
    assert not (await game.see()).reserved_seats
    assert await refusal(join(game, signed("ada"), "Ada")) == ("JOIN_CODE_REQUIRED", "")


async def test_without_tickets_the_reference_takes_the_seat(client: Client) -> None:
    game = await lobby(client, reserved_seats=reserved(Ada=2))
    assert (await join(game, "", "Eve", player_ref="eve")).seat == 1
    assert (await join(game, "", "Ada", player_ref="ada")).seat == 2


async def test_a_ticket_takes_the_seat_of_a_rematch_and_a_claim_does_not(tmp_path: Path, store: Store) -> None:
    async with served(tmp_path, store, REQUIRED) as web:
        game = await lobby(web)
        for name in ("Ada", "Ben"):
            await join(game, signed(name.lower(), name=name))
        await web.games.AbortGame(gs.AbortGameRequest(game_id=game.game_id), metadata=game.as_host())
        rematch = await game.rematch(1)
        assert (await join(rematch, signed("ben", jti="2", name="Ben"))).seat == 2
        request = gs.JoinGameRequest(game_id=rematch.game_id, name="Ada", request_id=new_id())
        assert (await web.games.JoinGame(request, metadata=game.as_seat(1))).seat == 1, "without a ticket"


async def test_a_claim_does_not_take_the_seat_of_a_rematch(client: Client) -> None:
    game = await lobby(client)
    for name in ("Ada", "Ben"):
        await join(game, "", name, player_ref=name.lower())
    await client.games.AbortGame(gs.AbortGameRequest(game_id=game.game_id), metadata=game.as_host())
    rematch = await game.rematch(1)
    assert await refusal(join(rematch, "", "Eve", player_ref="ben")) == ("PLAYER_ALREADY_JOINED", "")


@pytest.mark.parametrize(
    ("seats", "field"),
    [
        ([gs.SeatReservation(seat=5, player_ref="a", name="A")], "reserved_seats[0].seat"),
        ([*reserved(Ada=1), gs.SeatReservation(seat=1, player_ref="b", name="B")], "reserved_seats[1].seat"),
        ([*reserved(Ada=1), gs.SeatReservation(seat=2, player_ref="ada", name="B")], "reserved_seats[1].player_ref"),
        ([*reserved(Ada=1), gs.SeatReservation(seat=2, player_ref="b", name="ADA")], "reserved_seats[1].name"),
        ([gs.SeatReservation(seat=1, player_ref="a" * 65, name="A")], "reserved_seats[0].player_ref"),
    ],
    ids=["no such seat", "a seat twice", "a player twice", "names alike", "a long reference"],
)
async def test_malformed_reservations_are_refused(client: Client, seats: list[gs.SeatReservation], field: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await lobby(client, reserved_seats=seats)
    assert field_violations(refused.value) == [field]


@pytest.fixture
async def client(store: Store) -> AsyncIterator[Client]:
    """Yields a client of a server without keys."""
    async with running_server(store, server_settings(sweep_seconds=3_600)) as (_, client):
        yield client


def test_base64url_is_as_the_page_says() -> None:
    assert base64.urlsafe_b64decode(EDDSA_KEY.partition(":")[2] + "=") == PRIVATE_KEY.public_key().public_bytes_raw()
