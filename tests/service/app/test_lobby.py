"""The lobby over gRPC: the host and the host token, kick, ready, abort, new tokens, spectators, rematches."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import grpc
import grpc.aio
import pytest

from rummikub.v1 import game_pb2, room_settings_pb2
from rummikub.v1 import game_service_pb2 as gs
from service.errors import StoreUnavailable
from service.model.change import Commit, Outcome
from service.model.record import GameState
from service.storage.store import Store
from support.delegating_store import DelegatingStore
from support.harness import Client, FakeClock, GameAtHand, bearer, error_info, memory_store, new_id, running_server
from tools.games import creation, options

ALL_READY = options(start_by=room_settings_pb2.START_BY_ALL_READY)
PRIVATE = options(spectators=room_settings_pb2.SPECTATORS_OFF)
BY_HOST = options(start_by=room_settings_pb2.START_BY_HOST, abort_by=room_settings_pb2.ABORT_BY_HOST)
Metadata = tuple[tuple[str, str], ...]


async def refusal(call: Awaitable[object]) -> tuple[str, str]:
    """Returns the code and the reason of a refused call."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return refused.value.code().name, error_info(refused.value).reason


def kick(game: GameAtHand, kicked: int, metadata: Metadata) -> Awaitable[object]:
    return game.client.games.KickPlayer(gs.KickPlayerRequest(game_id=game.game_id, seat=kicked), metadata=metadata)


def abort(game: GameAtHand, metadata: Metadata) -> Awaitable[gs.AbortGameResponse]:
    return game.client.games.AbortGame(gs.AbortGameRequest(game_id=game.game_id), metadata=metadata)


def rematch(game: GameAtHand, metadata: Metadata) -> Awaitable[gs.CreateRematchResponse]:
    request = gs.CreateRematchRequest(game_id=game.game_id, request_id=new_id())
    return game.client.games.CreateRematch(request, metadata=metadata)


class Watcher:
    """An open watch of a game."""

    def __init__(self, game: GameAtHand, metadata: Metadata, **fields: object) -> None:
        request = gs.WatchGameRequest(game_id=game.game_id, **fields)  # type: ignore[arg-type]  # any field
        self.call = game.client.games.WatchGame(request, metadata=metadata)

    async def next(self) -> gs.WatchGameResponse:
        """Returns the next update that is neither a heartbeat nor about presence."""
        async with asyncio.timeout(10):
            while True:
                update = await self.call.read()
                assert isinstance(update, gs.WatchGameResponse), "the watch has ended"
                if update.WhichOneof("update") not in {"heartbeat", "presence"}:
                    return update

    async def end(self) -> str:
        """Returns the code with which the watch ends."""
        async with asyncio.timeout(10):
            with contextlib.suppress(grpc.aio.AioRpcError):
                while await self.call.read() is not grpc.aio.EOF:
                    pass
            return (await self.call.code()).name


# The host


async def test_the_creator_is_the_host_with_the_host_token_or_the_seat(client: Client) -> None:
    game = await client.new_game(players=2, start=False)
    assert [player.is_host for player in (await game.see()).players] == [True, False]
    seen = await client.games.GetGame(gs.GetGameRequest(game_id=game.game_id), metadata=game.as_host())
    assert not seen.game.HasField("seat")
    assert await refusal(kick(game, 1, game.as_seat(2))) == ("PERMISSION_DENIED", "NOT_THE_HOST")
    await game.join("third")
    await kick(game, 3, game.as_host())
    await game.join("fourth")
    await kick(game, 3, game.as_seat(1))
    request = gs.StartGameRequest(game_id=game.game_id)
    assert await refusal(client.games.StartGame(request, metadata=game.as_seat(2))) == (
        *("PERMISSION_DENIED", "NOT_THE_HOST"),
    )
    started = (await client.games.StartGame(request, metadata=game.as_host())).game
    assert (started.state, started.HasField("seat")) == (game_pb2.GAME_STATE_PLAYING, False)


async def test_a_host_without_a_seat_adds_bots_and_starts_the_game(client: Client) -> None:
    game = await client.new_game(players=0, start=False)
    for seat in (2, 4):
        adding = gs.AddBotRequest(game_id=game.game_id, level=game_pb2.BOT_LEVEL_EASY, seat=seat)
        added = await client.games.AddBot(adding, metadata=game.as_host())
        assert (added.seat, added.game.HasField("seat")) == (seat, False)
    started = await client.games.StartGame(gs.StartGameRequest(game_id=game.game_id), metadata=game.as_host())
    assert [player.is_ready for player in started.game.players] == [True, True]


async def test_when_the_host_leaves_another_person_is_host_and_the_host_token_is_void(client: Client) -> None:
    game = await client.new_game(players=2, start=False)
    watcher = Watcher(game, game.as_host())
    await watcher.next()
    await client.games.LeaveGame(gs.LeaveGameRequest(game_id=game.game_id), metadata=game.as_seat(1))
    assert (await watcher.next()).change.events[0].player_left == game_pb2.PlayerLeft(seat=1, host_seat=2)
    assert await watcher.end() == "UNAUTHENTICATED"
    assert await refusal(kick(game, 2, game.as_host())) == ("UNAUTHENTICATED", "TOKEN_VOID")
    assert [player.is_host for player in (await game.see()).players] == [True]
    await game.join("third")
    assert (await kick(game, 1, game.as_seat(2))) is not None
    await abort(game, game.as_seat(2))


async def test_the_host_who_leaves_last_comes_back_with_the_host_token(client: Client) -> None:
    game = await client.new_game(players=1, start=False)
    await client.games.LeaveGame(gs.LeaveGameRequest(game_id=game.game_id), metadata=game.as_seat(1))
    joining = gs.JoinGameRequest(game_id=game.game_id, name="Ada", seat=3)
    joined = await client.games.JoinGame(joining, metadata=game.as_host())
    assert joined.seat == 3
    assert joined.game.players[0].is_host


async def test_a_retried_creation_returns_the_same_host_token(client: Client) -> None:
    request = gs.CreateGameRequest(request_id=new_id())
    first = await client.games.CreateGame(request)
    assert len(first.host_token) == 43
    assert await client.games.CreateGame(request) == first
    assert (await client.games.CreateGame(gs.CreateGameRequest())).host_token != first.host_token


async def test_a_kicked_players_token_is_void_and_the_watch_ends(client: Client) -> None:
    game = await client.new_game(players=3, start=False)
    watcher = Watcher(game, game.as_seat(3))
    assert (await watcher.next()).snapshot.seat == 3
    await kick(game, 3, game.as_seat(1))
    assert (await watcher.next()).change.events[0].player_kicked == game_pb2.PlayerKicked(seat=3)
    assert await refusal(client.games.GetGame(gs.GetGameRequest(game_id=game.game_id), metadata=game.as_seat(3))) == (
        "UNAUTHENTICATED",
        "TOKEN_VOID",
    )
    await game.join("another")
    await game.start()
    assert await watcher.end() == "UNAUTHENTICATED"


async def join(game: GameAtHand, name: str, *, code: str = "", ref: str = "") -> gs.JoinGameResponse:
    """Takes a seat by a code, or without one by the game's id."""
    request = gs.JoinGameRequest(name=name, player_ref=ref, request_id=new_id(), game_id=game.game_id)
    if code:
        request.join_code = code
    return await game.client.games.JoinGame(request)


async def unlisted(client: Client) -> GameAtHand:
    """Returns an unlisted game with Ann, the host, and Eve, whose player_ref is `eve`."""
    created = await client.games.CreateGame(gs.CreateGameRequest())
    game = GameAtHand(client, created.game.game_id, host_token=created.host_token)
    await game.join("Ann")
    game.tokens[2] = (await join(game, "Eve", ref="eve")).seat_token
    return game


async def test_a_kicked_player_comes_back_neither_by_the_id_nor_by_the_old_code(client: Client) -> None:
    game = await unlisted(client)
    old = (await game.see(2)).join_code
    await kick(game, 2, game.as_host())
    code = (await game.see(1)).join_code
    assert code != old
    assert await refusal(join(game, "Bob")) == ("PERMISSION_DENIED", "JOIN_CODE_REQUIRED")
    assert await refusal(join(game, "Bob", code=old)) == ("NOT_FOUND", "JOIN_CODE_UNKNOWN")
    assert (await join(game, "Bob", code=code)).seat == 2


@pytest.mark.parametrize(("name", "ref"), [("EVE", ""), ("Bob", "eve")])
async def test_a_kicked_player_does_not_come_back_with_the_new_code(client: Client, name: str, ref: str) -> None:
    game = await unlisted(client)
    await kick(game, 2, game.as_host())
    code = (await game.see(1)).join_code
    assert await refusal(join(game, name, code=code, ref=ref)) == ("PERMISSION_DENIED", "PLAYER_KICKED")


async def test_a_kicked_player_is_admitted_to_no_public_lobby_of_that_host(client: Client) -> None:
    game = await client.new_game(start=False)
    await kick(game, 2, game.as_host())
    assert await refusal(join(game, "player 2")) == ("PERMISSION_DENIED", "PLAYER_KICKED")
    assert (await join(game, "Bob")).seat == 2, "others find a public game by its id"
    quick = await client.games.JoinOrCreateGame(gs.JoinOrCreateGameRequest(name="player 2"))
    assert quick.game.game_id != game.game_id


async def test_the_host_who_leaves_by_a_kick_and_a_kicked_bot_change_no_code(client: Client) -> None:
    game = await unlisted(client)
    bot = await client.games.AddBot(
        gs.AddBotRequest(game_id=game.game_id, level=game_pb2.BOT_LEVEL_EASY), metadata=game.as_host()
    )
    code = (await game.see(2)).join_code
    await kick(game, bot.seat, game.as_host())
    await kick(game, 1, game.as_host())
    assert (await game.see(2)).join_code == code
    assert (await join(game, "Ann")).seat == 1


async def test_two_players_of_a_game_cannot_have_one_reference(client: Client) -> None:
    game = await unlisted(client)
    assert await refusal(join(game, "Bob", ref="eve")) == ("ALREADY_EXISTS", "PLAYER_ALREADY_JOINED")
    await client.games.LeaveGame(gs.LeaveGameRequest(game_id=game.game_id), metadata=game.as_seat(2))
    assert (await join(game, "Bob", ref="eve")).seat == 2
    first = await client.games.JoinOrCreateGame(gs.JoinOrCreateGameRequest(name="Ann", player_ref="ann"))
    second = await client.games.JoinOrCreateGame(gs.JoinOrCreateGameRequest(name="Bob", player_ref="ann"))
    assert second.game.game_id != first.game.game_id


async def test_a_game_starts_when_all_are_ready(client: Client) -> None:
    game = await client.new_game(players=2, start=False, ruleset=ALL_READY)
    request = gs.StartGameRequest(game_id=game.game_id)
    for seat in (1, 2):
        assert await refusal(client.games.StartGame(request, metadata=game.as_seat(1))) == (
            *("FAILED_PRECONDITION", "PLAYERS_NOT_READY"),
        )
        ready = gs.SetReadyRequest(game_id=game.game_id, is_ready=True)
        seen = (await client.games.SetReady(ready, metadata=game.as_seat(seat))).game
        assert seen.players[seat - 1].is_ready
    assert (await client.games.StartGame(request, metadata=game.as_seat(2))).game.round == 1


# Aborting


async def test_an_aborted_game_is_listed_as_such_and_ends_its_watches(client: Client, store: Store) -> None:
    game = await client.new_game(players=2)
    watcher = Watcher(game, game.as_seat(2))
    await watcher.next()
    aborted = (await abort(game, game.as_seat(1))).game
    assert aborted.state == game_pb2.GAME_STATE_ABORTED
    assert not aborted.HasField("turn")
    assert (await watcher.next()).change.events[0].game_aborted.by_host
    assert await watcher.end() == "OK"
    late = Watcher(game, ())
    assert (await late.next()).snapshot.etag == (await game.see()).etag
    assert await late.end() == "OK"
    listed = await client.games.ListGames(gs.ListGamesRequest(states=[game_pb2.GAME_STATE_ABORTED]))
    assert game.game_id in [summary.game_id for summary in listed.games]
    assert (await store.lists.count())[GameState.ABORTED] >= 1
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await game.draw(1)
    assert error_info(refused.value).reason == "GAME_OVER"


async def test_an_aborted_game_is_never_timed_out(client: Client, store: Store, clock: FakeClock) -> None:
    game = await client.new_game(players=2)
    await abort(game, game.as_host())
    seen = await game.see()
    clock.advance(3000)
    assert (await game.see()).revision == seen.revision
    loaded = await store.games.load(game.game_id)
    assert loaded.record
    assert loaded.record.state is GameState.ABORTED


# New tokens


@pytest.mark.parametrize("seat", [0, 2])
async def test_a_renewed_token_replaces_the_old_one_at_once(client: Client, seat: int) -> None:
    game = await client.new_game(players=2, start=False)
    old = game.as_seat(seat) if seat else game.as_host()
    watcher = Watcher(game, old)
    assert (await watcher.next()).snapshot.seat == seat
    request = gs.RenewSeatTokenRequest(game_id=game.game_id, request_id=new_id())
    renewed = await client.games.RenewSeatToken(request, metadata=old)
    assert await client.games.RenewSeatToken(request, metadata=old) == renewed
    assert (await watcher.next()).change.events[0].seat_token_renewed.seat == seat
    seeing = gs.GetGameRequest(game_id=game.game_id)
    assert await refusal(client.games.GetGame(seeing, metadata=old)) == ("UNAUTHENTICATED", "TOKEN_VOID")
    assert await watcher.end() == "UNAUTHENTICATED"
    new = bearer(renewed.seat_token)
    assert (await client.games.GetGame(seeing, metadata=new)).game.seat == seat
    renewing = Watcher(game, new, etag=await game.etag_at(renewed.game.revision - 1))
    await renewing.next()
    await game.start() if seat else await client.games.StartGame(
        gs.StartGameRequest(game_id=game.game_id), metadata=new
    )
    assert bool((await renewing.next()).change.events[0].round_started.rack) == bool(seat)
    renewing.call.cancel()


async def test_the_old_token_needs_the_request_id_to_get_the_new_one(client: Client) -> None:
    game = await client.new_game(players=1, start=False)
    request = gs.RenewSeatTokenRequest(game_id=game.game_id, request_id=new_id())
    await client.games.RenewSeatToken(request, metadata=game.as_seat(1))
    other = gs.RenewSeatTokenRequest(game_id=game.game_id, request_id=new_id())
    assert await refusal(client.games.RenewSeatToken(other, metadata=game.as_seat(1))) == (
        *("UNAUTHENTICATED", "TOKEN_VOID"),
    )


# Spectators


async def test_a_game_without_spectators_is_open_in_the_lobby_only(client: Client) -> None:
    game = await client.new_game(players=2, start=False, ruleset=PRIVATE)
    seen = await game.see()
    resuming = {"etag": seen.etag}
    stranger, host, player = Watcher(game, ()), Watcher(game, game.as_host()), Watcher(game, game.as_seat(2))
    for watcher in (stranger, host, player):
        await watcher.next()
    await game.start()
    assert await stranger.end() == "PERMISSION_DENIED"
    assert (await player.next()).change.events[0].round_started.rack
    assert not (await host.next()).change.events[0].round_started.rack
    denied = ("PERMISSION_DENIED", "SPECTATORS_NOT_ALLOWED")
    assert await refusal(client.games.GetGame(gs.GetGameRequest(game_id=game.game_id))) == denied
    assert await refusal(client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id))) == denied
    assert await Watcher(game, ()).end() == "PERMISSION_DENIED"
    assert await Watcher(game, (), **resuming).end() == "PERMISSION_DENIED"
    history = await client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id), metadata=game.as_host())
    assert len(history.changes) == 4
    listed = await client.games.ListGames(gs.ListGamesRequest(states=[game_pb2.GAME_STATE_PLAYING], page_size=100))
    assert game.game_id not in [summary.game_id for summary in listed.games]
    renewing = gs.RenewSeatTokenRequest(game_id=game.game_id)
    await client.games.RenewSeatToken(renewing, metadata=game.as_seat(2))
    assert await player.end() == "UNAUTHENTICATED"
    host.call.cancel()


# Rematches


async def come(again: GameAtHand, old: GameAtHand, seat: int, name: str = "") -> gs.JoinGameResponse:
    """Takes the seat that a rematch reserves for a player of the old game; remembers its new token."""
    request = gs.JoinGameRequest(game_id=again.game_id, name=name or f"player {seat}", request_id=new_id())
    joined = await again.client.games.JoinGame(request, metadata=old.as_seat(seat))
    again.tokens[joined.seat] = joined.seat_token
    return joined


async def rematch_of(game: GameAtHand) -> GameAtHand:
    """Aborts a game and creates its rematch, of which nobody has a token yet."""
    await abort(game, game.as_host())
    game_id = (await rematch(game, game.as_seat(1))).game.rematch_game_id
    return GameAtHand(game.client, game_id)


async def test_a_rematch_is_announced_to_all_but_spectators(client: Client) -> None:
    game = await client.new_game(players=2)
    await abort(game, game.as_host())
    before = await game.see()
    watcher = Watcher(game, game.as_seat(1), etag=before.etag, until_rematch=True)
    stranger = Watcher(game, (), etag=before.etag, until_rematch=True)
    answer = (await rematch(game, game.as_seat(2))).game
    assert (answer.game_id, answer.seat, answer.revision) == (game.game_id, 2, before.revision + 1)
    announced = (await watcher.next()).change
    assert announced.events[0].rematch_created.game_id == answer.rematch_game_id
    assert (await stranger.next()).change.events[0].rematch_created == game_pb2.RematchCreated()
    assert not (await game.see()).rematch_game_id
    assert await watcher.end() == "OK"


async def test_a_rematch_starts_when_all_who_were_asked_have_come(client: Client, clock: FakeClock) -> None:
    game = await client.new_game(players=2, ruleset=ALL_READY, start=False)
    adding = gs.AddBotRequest(game_id=game.game_id, level=game_pb2.BOT_LEVEL_EASY)
    await client.games.AddBot(adding, metadata=game.as_seat(1))
    before = await game.see()
    again = await rematch_of(game)
    lobby = await again.see()
    assert [(one.seat, one.name) for one in lobby.reserved_seats] == [(1, "player 1"), (2, "player 2")]
    assert [(player.seat, player.bot_level) for player in lobby.players] == [(3, game_pb2.BOT_LEVEL_EASY)]
    assert lobby.ruleset == before.ruleset
    first = await come(again, game, 2, "Ben")
    assert (first.seat, first.game.players[0].name, first.game.players[0].is_host) == (2, "Ben", True)
    assert first.seat_token != game.tokens[2]
    start = gs.StartGameRequest(game_id=again.game_id)
    for caller in (again.as_seat(2), game.as_seat(1), game.as_host()):
        assert (await refusal(client.games.StartGame(start, metadata=caller)))[1] in {"PLAYERS_NOT_READY", "TOKEN_VOID"}
    assert not first.game.HasField("next_round_time")
    last = (await come(again, game, 1)).game
    assert last.next_round_time.ToMilliseconds() == last.server_time.ToMilliseconds() + 5_000
    assert not last.reserved_seats
    clock.advance(5.001)
    assert (await again.see(1)).state == game_pb2.GAME_STATE_PLAYING


async def test_a_reserved_seat_is_for_one_person_once(client: Client) -> None:
    game = await client.new_game(players=2)
    again = await rematch_of(game)
    assert not (await again.see()).HasField("seat")
    seen = await client.games.GetGame(gs.GetGameRequest(game_id=again.game_id), metadata=game.as_seat(1))
    assert (seen.game.seat, seen.game.join_code) == (0, ""), "who has not come is a spectator"
    stranger = gs.JoinGameRequest(game_id=again.game_id, name="Eve", seat=1)
    assert (await refusal(client.games.JoinGame(stranger)))[1] == "SEAT_TAKEN"
    ready = gs.SetReadyRequest(game_id=again.game_id, is_ready=True)
    assert (await refusal(client.games.SetReady(ready, metadata=game.as_seat(1))))[1] == "TOKEN_VOID"
    await come(again, game, 1)
    assert (await refusal(come(again, game, 1)))[1] == "TOKEN_VOID", "its token has been replaced"


@pytest.mark.parametrize("by_host", [False, True])
async def test_a_reserved_seat_is_given_up_or_taken_away(client: Client, by_host: bool) -> None:
    game = await client.new_game(players=3)
    again = await rematch_of(game)
    await come(again, game, 1)
    await come(again, game, 3)
    if by_host:
        await kick(again, 2, again.as_seat(1))
    else:
        await client.games.LeaveGame(gs.LeaveGameRequest(game_id=again.game_id), metadata=game.as_seat(2))
    seen = await again.see(1)
    assert (list(seen.reserved_seats), len(seen.players)) == ([], 2)
    assert (await refusal(come(again, game, 2)))[1] == "TOKEN_VOID"
    await again.start()
    assert (await again.see(1)).state == game_pb2.GAME_STATE_PLAYING


async def test_a_stranger_does_not_become_the_host_of_a_rematch(client: Client) -> None:
    created = await client.games.CreateGame(gs.CreateGameRequest(visibility=game_pb2.VISIBILITY_PUBLIC))
    game = GameAtHand(client, created.game.game_id, host_token=created.host_token)
    for name in ("player 1", "player 2"):
        await game.join(name)
    again = await rematch_of(game)
    code = (await come(again, game, 1)).game.join_code
    await client.games.LeaveGame(gs.LeaveGameRequest(game_id=again.game_id), metadata=again.as_seat(1))
    join = gs.JoinGameRequest(join_code=code, name="Mallory", request_id=new_id())
    stranger = await client.games.JoinGame(join)
    assert not any(player.is_host for player in stranger.game.players)
    quick = gs.JoinOrCreateGameRequest(name="Eve", **creation(BY_HOST))
    assert (await client.games.JoinOrCreateGame(quick)).game.game_id != again.game_id
    assert [player.is_host for player in (await come(again, game, 2)).game.players] == [False, True]


async def test_a_repeated_join_by_code_has_its_answer_after_the_code_has_changed(client: Client) -> None:
    game = await client.new_game(players=2, start=False)
    code = (await game.see(1)).join_code
    join = gs.JoinGameRequest(join_code=code, name="Carl", request_id=new_id())
    joined = await client.games.JoinGame(join)
    await kick(game, 2, game.as_seat(1))
    assert await client.games.JoinGame(join) == joined
    another = gs.JoinGameRequest(join_code=code, name="Dora", request_id=new_id())
    assert (await refusal(client.games.JoinGame(another)))[1] == "JOIN_CODE_UNKNOWN"


async def test_who_was_removed_before_they_came_stays_out(client: Client) -> None:
    game = await client.new_game(players=2)
    again = await rematch_of(game)
    code = (await come(again, game, 1)).game.join_code
    await kick(again, 2, again.as_seat(1))
    assert (await again.see(1)).join_code not in {"", code}
    back = gs.JoinGameRequest(join_code=(await again.see(1)).join_code, name="player 2", request_id=new_id())
    assert (await refusal(client.games.JoinGame(back)))[1] == "PLAYER_KICKED"


async def test_who_has_a_reserved_seat_watches_as_a_spectator(client: Client) -> None:
    game = await client.new_game(players=2)
    again = await rematch_of(game)
    watcher = Watcher(again, game.as_seat(2))
    snapshot = (await watcher.next()).snapshot
    assert (snapshot.seat, snapshot.join_code, len(snapshot.reserved_seats)) == (0, "", 2)


async def test_a_host_without_a_seat_is_the_host_of_the_rematch(client: Client) -> None:
    created = await client.games.CreateGame(gs.CreateGameRequest())
    game = GameAtHand(client, created.game.game_id, host_token=created.host_token)
    for seat in (1, 2):
        joined = await client.games.JoinGame(gs.JoinGameRequest(game_id=game.game_id, name=f"player {seat}"))
        game.tokens[seat] = joined.seat_token
    again = await rematch_of(game)
    for seat in (1, 2):
        await come(again, game, seat)
    assert not any(player.is_host for player in (await again.see()).players)
    await client.games.StartGame(gs.StartGameRequest(game_id=again.game_id), metadata=game.as_host())


async def test_a_full_lobby_starts_by_itself_at_a_time_that_all_see(client: Client, clock: FakeClock) -> None:
    rules = options(start_by=room_settings_pb2.START_BY_FULL_OR_READY, players_max=2)
    game = await client.new_game(players=1, start=False, ruleset=rules)
    watcher = Watcher(game, game.as_seat(1), etag=(await game.see()).etag)
    await game.join("player 2")
    joined = (await watcher.next()).change
    [event] = joined.events
    assert event.player_joined.start_time.ToMilliseconds() == joined.time.ToMilliseconds() + 5_000
    assert (await game.see()).next_round_time == event.player_joined.start_time
    clock.advance(5.001)
    assert (await watcher.next()).change.events[0].HasField("round_started")


async def test_who_leaves_a_full_lobby_stops_its_start(client: Client, clock: FakeClock) -> None:
    rules = options(start_by=room_settings_pb2.START_BY_FULL_OR_READY, players_max=2)
    game = await client.new_game(players=2, start=False, ruleset=rules)
    await client.games.LeaveGame(gs.LeaveGameRequest(game_id=game.game_id), metadata=game.as_seat(2))
    clock.advance(60)
    seen = await game.see(1)
    assert (seen.state, seen.HasField("next_round_time")) == (game_pb2.GAME_STATE_LOBBY, False)


async def test_a_host_among_strangers_has_a_vote_only(client: Client) -> None:
    joining = [gs.JoinOrCreateGameRequest(name=name, request_id=new_id()) for name in ("Ada", "Ben")]
    seats = [await client.games.JoinOrCreateGame(request) for request in joining]
    game = GameAtHand(client, seats[0].game.game_id, {0: "", **{one.seat: one.seat_token for one in seats}})
    for seat in (1, 2):
        await game.ready(seat)
    await client.games.StartGame(gs.StartGameRequest(game_id=game.game_id), metadata=game.as_seat(2))
    assert (await abort(game, game.as_seat(1))).game.state == game_pb2.GAME_STATE_PLAYING
    assert (await abort(game, game.as_seat(2))).game.state == game_pb2.GAME_STATE_ABORTED


async def test_a_kick_tells_the_new_join_code_to_the_players_only(client: Client) -> None:
    game = await client.new_game(players=3, start=False)
    old = (await game.see(1)).join_code
    callers = {"host": game.as_host(), "player": game.as_seat(2), "kicked": game.as_seat(3), "stranger": ()}
    watchers = {name: Watcher(game, caller) for name, caller in callers.items()}
    for watcher in watchers.values():
        await watcher.next()
    await kick(game, 3, game.as_host())
    told = {name: (await watcher.next()).change.events[0].player_kicked for name, watcher in watchers.items()}
    code = (await game.see(1)).join_code
    assert code not in {"", old}
    assert {name: event.join_code for name, event in told.items()} == {
        "host": code,
        "player": code,
        "kicked": "",
        "stranger": "",
    }


async def test_a_watch_of_a_game_that_is_over_ends_without_waiting_for_the_rematch(client: Client) -> None:
    game = await client.new_game(players=2)
    await abort(game, game.as_host())
    waiting = Watcher(game, (), until_rematch=True)
    await waiting.next()
    ending = Watcher(game, (), etag=(await game.see()).etag)
    assert await ending.end() == "OK"
    await rematch(game, game.as_host())
    assert (await waiting.next()).change.events[0].HasField("rematch_created")
    assert await waiting.end() == "OK"
    for viewer, knows in (((), False), (game.as_host(), True), (game.as_seat(1), True)):
        late = Watcher(game, viewer, until_rematch=True)
        assert bool((await late.next()).snapshot.rematch_game_id) == knows
        assert await late.end() == "OK"


async def test_all_who_ask_for_a_rematch_get_the_same_one(client: Client) -> None:
    game = await client.new_game(players=4)
    await abort(game, game.as_host())
    before = await game.see()
    askers = [game.as_host(), *map(game.as_seat, (1, 2, 3, 4))]
    answers = await asyncio.gather(*(rematch(game, asker) for asker in askers))
    [game_id] = {answer.game.rematch_game_id for answer in answers}
    assert (await game.see()).revision == before.revision + 1
    later = await rematch(game, game.as_seat(1))
    assert later.game.rematch_game_id == game_id


async def test_only_players_and_the_host_of_a_game_that_is_over_get_a_rematch(client: Client) -> None:
    game = await client.new_game(players=2)
    assert await refusal(rematch(game, game.as_seat(1))) == ("FAILED_PRECONDITION", "GAME_NOT_OVER")
    await abort(game, game.as_host())
    other = await client.new_game(players=1, start=False)
    assert await refusal(rematch(game, other.as_seat(1))) == ("UNAUTHENTICATED", "TOKEN_VOID")
    assert await refusal(rematch(game, ())) == ("PERMISSION_DENIED", "NOT_A_PLAYER")


class FailingStore(DelegatingStore):
    """A store that fails before or after commits that a condition selects, as if the server died there."""

    fails: Callable[[Commit], bool] = staticmethod(lambda _: False)
    applies = False

    async def commit(self, commit: Commit) -> Outcome:
        if not self.fails(commit):
            return await self._store.games.commit(commit)
        if self.applies:
            await self._store.games.commit(commit)
        raise StoreUnavailable


@pytest.mark.parametrize("step", ["create", "announce"])
@pytest.mark.parametrize("applies", [False, True])
async def test_a_rematch_that_stops_halfway_is_completed_by_the_next_call(step: str, applies: bool) -> None:
    store = FailingStore(memory_store())
    async with running_server(store) as (_, client):
        game = await client.new_game(players=2)
        await abort(game, game.as_host())
        store.applies = applies
        store.fails = lambda commit: (commit.record.game_id != game.game_id) == (step == "create")
        request = gs.CreateRematchRequest(game_id=game.game_id)
        call = client.games.CreateRematch(request, metadata=game.as_seat(1))
        assert await refusal(call) == ("UNAVAILABLE", "STORE_UNAVAILABLE")
        store.fails = lambda _: False
        answer = (await rematch(game, game.as_seat(2))).game
        again = GameAtHand(client, answer.rematch_game_id)
        assert (await again.see()).revision == 1
        assert (await come(again, game, 1)).seat == 1
        history = await client.games.ListChanges(gs.ListChangesRequest(game_id=game.game_id))
        events = [event for change in history.changes for event in change.events]
        assert sum(event.HasField("rematch_created") for event in events) == 1
