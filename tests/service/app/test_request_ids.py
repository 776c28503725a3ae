"""Request ids: a retried mutating request gets the bytes of its first response."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace

import grpc
import grpc.aio
import pytest
import redis
from google.protobuf import message_factory
from google.protobuf.message import Message

from rummikub.v1 import game_pb2, room_settings_pb2, ruleset_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.app.identity import digest
from service.grpc_api.rpcs import lobby
from service.storage.memory import MemoryStore
from service.storage.store import Store
from support.cases import each_of
from support.harness import (
    Client,
    FakeClock,
    GameAtHand,
    error_info,
    kept_in_redis,
    new_id,
    running_server,
    server_settings,
)
from support.rpcs import METHODS, MUTATING, OF_A_SEAT, USUAL, new_message, send_raw, usual_request
from tools.games import creation, game_rules, options

pytestmark = [pytest.mark.usefixtures("all_rights"), pytest.mark.slow]

FOREVER_SECONDS = 3600.0

Metadata = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Servers:
    """Two servers on one store."""

    client: Client
    second: Client
    store: Store
    clock: FakeClock


@pytest.fixture
async def servers(store: Store, clock: FakeClock) -> AsyncIterator[Servers]:
    settings = server_settings(sweep_seconds=FOREVER_SECONDS)
    async with (
        running_server(store, settings) as (_, client),
        running_server(store, settings, seed=2) as (_, second),
    ):
        yield Servers(client, second, store, clock)


@dataclass(frozen=True)
class Sent:
    """A valid mutating request with its RPC, game (none for CreateGame) and seat."""

    rpc: str
    request: Message
    game: GameAtHand | None = None
    seat: int = 0

    @property
    def request_id(self) -> str:
        return str(self.request.request_id)  # type: ignore[attr-defined]  # every mutating request has one

    @property
    def metadata(self) -> Metadata:
        return self.game.as_seat(self.seat) if self.game else ()

    def changed(self, **changes: object) -> "Sent":
        """Returns a copy with other fields."""
        request = type(self.request)()
        request.CopyFrom(self.request)
        request.MergeFrom(type(self.request)(**changes))
        return replace(self, request=request)

    def by(self, seat: int) -> "Sent":
        """Returns a copy sent by another seat."""
        return replace(self, seat=seat)


IN_THE_LOBBY = {row.name for row in lobby.RPCS}
HOST_KEY = 99
"""The key in `tokens` of the host token, where a test sends it like a seat's."""
OVER = (game_pb2.GAME_STATE_FINISHED, game_pb2.GAME_STATE_ABORTED)
TWO_ROUNDS = options(match_end=ruleset_pb2.MATCH_END_FIXED_ROUNDS, match_rounds=2, absent_after_timeouts=0)
SOON_ABSENT = options(absent_after_timeouts=1)
CLAIMS = game_rules(turn_invalid_submission=ruleset_pb2.TURN_INVALID_SUBMISSION_PENALISE_ON_UNANIMOUS_CLAIM)


async def ready_for(rpc: str, servers: Servers) -> Sent:
    """Returns a request of an RPC, on a game that accepts it."""
    if rpc == "CreateGame":
        return Sent(rpc, gs.CreateGameRequest(request_id=new_id()))
    if rpc == "JoinOrCreateGame":
        by_host = creation(options(start_by=room_settings_pb2.START_BY_HOST))
        return Sent(rpc, gs.JoinOrCreateGameRequest(name="first", **by_host, request_id=new_id()))
    game, seat = await game_for(rpc, servers)
    seen = await game.see()
    fields: dict[str, object] = {"request_id": new_id()}
    if rpc == "SetReady":
        fields["is_ready"] = False
    if "seat" in USUAL.get(rpc, {}):
        fields["seat"] = 3
    if rpc == "ClaimError":
        fields["play_revision"] = seen.turn.shown_play.revision
    return Sent(rpc, usual_request(rpc, game.game_id, seen.etag, **fields), game, seat)


async def game_for(rpc: str, servers: Servers) -> tuple[GameAtHand, int]:
    """Returns a game that accepts the RPC, and the seat that sends it."""
    if rpc == "RequestRedeal":
        return await servers.client.new_game_to_redeal()
    if rpc == "ReturnToSeat":
        game = await servers.client.new_game(3, ruleset=SOON_ABSENT)
        return game, await be_absent(servers, game)
    game = await servers.client.new_game(
        3, start=rpc not in IN_THE_LOBBY, ruleset=CLAIMS if rpc == "ClaimError" else TWO_ROUNDS
    )
    turn_seat = (await game.see()).turn.seat
    match rpc:
        case "JoinGame" | "ReissueSeatToken":
            return game, 0
        case "StartNextRound":
            await to_the_rounds_end(servers, game)
        case "RenewSeatToken":
            game.tokens[HOST_KEY] = game.host_token
            return game, HOST_KEY
        case "CreateRematch":
            await to_the_games_end(game)
        case "SetReady":
            await game.ready(1)
        case "PlayTurn":
            return game, turn_seat
        case "ClaimError":
            await game.play_illegally()
            return game, turn_seat % 3 + 1
        case _:
            pass
    return game, 1


async def be_absent(servers: Servers, game: GameAtHand) -> int:
    """Lets the time of the turn in progress run out; returns the seat, which is then absent."""
    seat = (await game.see()).turn.seat
    servers.clock.advance(121)
    assert (await game.see()).players[seat - 1].is_absent
    return seat


async def to_the_rounds_end(servers: Servers, game: GameAtHand) -> None:
    """Times out every turn until the pool is empty and all have passed."""
    while (seen := await game.see()).state == game_pb2.GAME_STATE_PLAYING:
        servers.clock.advance(seen.settings.turn_time_limit.seconds + 1)
    assert seen.state == game_pb2.GAME_STATE_ROUND_OVER


async def to_the_games_end(game: GameAtHand) -> None:
    """Resigns all seats but one, so that the game ends, unless it is over."""
    if (await game.see()).state == game_pb2.GAME_STATE_LOBBY:
        host = next(player.seat for player in (await game.see()).players if player.is_host)
        request = gs.StartGameRequest(game_id=game.game_id)
        await game.client.games.StartGame(request, metadata=game.as_seat(host))
    while (seen := await game.see()).state not in OVER:
        seat = next(player.seat for player in seen.players if not player.resigned and player.seat in game.tokens)
        resigning = ts.ResignGameRequest(game_id=game.game_id)
        await game.client.turns.ResignGame(resigning, metadata=game.as_seat(seat))


async def answer_to(client: Client, sent: Sent) -> bytes:
    """Returns the bytes of the response."""
    return await send_raw(client, METHODS[sent.rpc], sent.request.SerializeToString(), sent.metadata)


async def reason_of_refusal(client: Client, sent: Sent) -> tuple[str, str]:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await answer_to(client, sent)
    return refusal.value.code().name, error_info(refusal.value).reason


def game_of(servers: Servers, sent: Sent, answer: bytes) -> GameAtHand:
    """Returns the game of a request; for a creation the created one."""
    if sent.game:
        return sent.game
    if sent.rpc == "JoinOrCreateGame":
        joined = gs.JoinOrCreateGameResponse.FromString(answer)
        return GameAtHand(servers.client, joined.game.game_id, {0: "", joined.seat: joined.seat_token})
    created = gs.CreateGameResponse.FromString(answer)
    return GameAtHand(servers.client, created.game.game_id, host_token=created.host_token)


DUPLICATE = ("ABORTED", "DUPLICATE_REQUEST")
TO_NEW_CALLERS = ["CreateGame", "JoinGame", "JoinOrCreateGame"]
WITHOUT_A_TOKEN = [rpc for rpc in MUTATING if rpc not in OF_A_SEAT]
OF_A_SEAT_ONCE = [rpc for rpc in MUTATING if rpc in OF_A_SEAT]


@each_of("rpc", MUTATING)
async def test_the_same_request_gets_the_same_bytes_and_is_applied_once(servers: Servers, rpc: str) -> None:
    sent = await ready_for(rpc, servers)
    first = await answer_to(servers.client, sent)
    game = game_of(servers, sent, first)
    revision = (await game.see()).revision
    assert await answer_to(servers.client, sent) == first
    assert await answer_to(servers.second, sent) == first
    assert (await game.see()).revision == revision
    output = message_factory.GetMessageClass(METHODS[rpc].output_type).FromString(first)
    assert output.game.revision == revision  # type: ignore[attr-defined]  # every response has a game


@each_of("rpc", MUTATING)
async def test_only_the_answer_to_a_new_caller_repeats_the_ruleset(servers: Servers, rpc: str) -> None:
    """It is half of a game and never changes; a caller that has none yet gets it, and GetGame returns it."""
    sent = await ready_for(rpc, servers)
    output = message_factory.GetMessageClass(METHODS[rpc].output_type)
    answer = output.FromString(await answer_to(servers.client, sent))
    game: game_pb2.Game = answer.game  # type: ignore[attr-defined]  # every response has a game
    assert game.HasField("ruleset") == (rpc in TO_NEW_CALLERS)
    seen = await GameAtHand(servers.client, game.game_id).see()
    assert seen.HasField("ruleset")


@each_of("rpc", MUTATING)
async def test_the_first_response_is_stored_as_long_as_the_game(servers: Servers, rpc: str) -> None:
    sent = await ready_for(rpc, servers)
    first = await answer_to(servers.client, sent)
    game = game_of(servers, sent, first)
    while len((await game.see()).players) < 2:
        await game.join(f"player {len((await game.see()).players) + 1}")
    await to_the_games_end(game)
    servers.clock.advance(3600)
    assert (await game.see()).state in OVER
    assert await answer_to(servers.client, sent) == first
    assert await answer_to(servers.second, sent) == first


@each_of("rpc", MUTATING)
async def test_concurrent_retries_are_applied_once(servers: Servers, rpc: str) -> None:
    sent = await ready_for(rpc, servers)
    before = (await sent.game.see()).revision if sent.game else 0
    clients = (servers.client, servers.second) * 4
    answers = await asyncio.gather(*(answer_to(client, sent) for client in clients))
    assert len(set(answers)) == 1
    assert (await game_of(servers, sent, answers[0]).see()).revision == before + 1


@each_of("rpc", MUTATING)
async def test_another_server_returns_the_first_servers_response(servers: Servers, rpc: str) -> None:
    sent = await ready_for(rpc, servers)
    first = await answer_to(servers.second, sent)
    assert await answer_to(servers.client, sent) == first


async def test_a_retried_join_returns_a_valid_token(servers: Servers) -> None:
    sent = await ready_for("JoinGame", servers)
    assert sent.game
    await answer_to(servers.client, sent)
    again = gs.JoinGameResponse.FromString(await answer_to(servers.second, sent))
    assert (again.seat, len(again.seat_token)) == (4, 43)
    sent.game.tokens[again.seat] = again.seat_token
    assert (await sent.game.see(again.seat)).seat == again.seat


def own_fields(rpc: str) -> list[str]:
    """Returns the fields of a request that say what is to be done: values, and members of a oneof."""
    shared = {"game_id", "join_code", "etag", "request_id", "validate_only"}
    own = [field for field in METHODS[rpc].input_type.fields if field.name not in shared]
    return [field.name for field in own if field.containing_oneof or not field.message_type]


def other_content(sent: Sent) -> Sent:
    """Returns the same request with another value in its first own field."""
    request = type(sent.request)()
    request.CopyFrom(sent.request)
    name = own_fields(sent.rpc)[0]
    match getattr(request, name):
        case Message() as message:
            message.SetInParent()
        case str(text):
            setattr(request, name, f"{text}x")
        case value:
            setattr(request, name, type(value)(value + 1))
    return replace(sent, request=request)


OTHER_RPCS = {rpc: "AbortGame" if rpc == "ResignGame" else "ResignGame" for rpc in OF_A_SEAT_ONCE}


@each_of("rpc", [rpc for rpc in MUTATING if own_fields(rpc)])
async def test_a_reused_id_with_other_content_is_refused(servers: Servers, rpc: str) -> None:
    sent = await ready_for(rpc, servers)
    first = await answer_to(servers.client, sent)
    game = game_of(servers, sent, first)
    seen = await game.see()
    other = other_content(sent)
    assert await reason_of_refusal(servers.client, other) == DUPLICATE
    assert await reason_of_refusal(servers.second, other) == DUPLICATE
    assert await game.see() == seen
    assert await answer_to(servers.client, sent) == first


@each_of("rpc", OTHER_RPCS)
async def test_a_reused_id_with_another_rpc_is_refused(servers: Servers, rpc: str) -> None:
    sent = await ready_for(rpc, servers)
    assert sent.game
    first = await answer_to(servers.client, sent)
    seen = await sent.game.see()
    request = new_message(OTHER_RPCS[rpc], game_id=sent.game.game_id, request_id=sent.request_id)
    other = replace(sent, rpc=OTHER_RPCS[rpc], request=request)
    assert await reason_of_refusal(servers.client, other) == DUPLICATE
    assert await sent.game.see() == seen
    assert await answer_to(servers.client, sent) == first


@each_of("rpc", ["LeaveGame", "ResignGame"])
async def test_two_seats_may_use_the_same_id(servers: Servers, rpc: str) -> None:
    sent = await ready_for(rpc, servers)
    first, second = await answer_to(servers.client, sent), await answer_to(servers.client, sent.by(2))
    assert first != second
    assert await answer_to(servers.client, sent) == first
    assert await answer_to(servers.client, sent.by(2)) == second


async def test_two_turns_may_use_the_same_id(servers: Servers) -> None:
    sent = await ready_for("PlayTurn", servers)
    assert sent.game
    first = await answer_to(servers.client, sent)
    seen = await sent.game.see()
    turn = sent.by(seen.turn.seat).changed(etag=seen.etag)
    second = await answer_to(servers.client, turn)
    assert ts.PlayTurnResponse.FromString(first).game.seat != ts.PlayTurnResponse.FromString(second).game.seat
    assert await answer_to(servers.client, sent) == first


STATE_REFUSALS = {
    "AbortGame": "GAME_OVER",
    "StartGame": "GAME_ALREADY_STARTED",
    "StartNextRound": "ROUND_IN_PROGRESS",
    "PlayTurn": "STALE_STATE",
}


@each_of("rpc", STATE_REFUSALS)
async def test_another_seat_cannot_get_a_stored_response(servers: Servers, rpc: str) -> None:
    sent = await ready_for(rpc, servers)
    await answer_to(servers.client, sent)
    _, reason = await reason_of_refusal(servers.client, sent.by(sent.seat % 3 + 1))
    assert reason == STATE_REFUSALS[rpc]


@each_of("rpc", OF_A_SEAT_ONCE)
async def test_a_stored_response_requires_the_seats_token(servers: Servers, rpc: str) -> None:
    sent = await ready_for(rpc, servers)
    assert sent.game
    await answer_to(servers.client, sent)
    assert await reason_of_refusal(servers.client, sent.by(0)) == ("PERMISSION_DENIED", "NOT_A_PLAYER")
    other = await servers.client.new_game(players=1, start=False)
    sent.game.tokens[9] = other.tokens[1]
    assert await reason_of_refusal(servers.client, sent.by(9)) == ("UNAUTHENTICATED", "TOKEN_VOID")


async def test_two_games_may_use_the_same_id(servers: Servers) -> None:
    first = await ready_for("ResignGame", servers)
    second = (await ready_for("ResignGame", servers)).changed(request_id=first.request_id)
    assert second.game
    await answer_to(servers.client, first)
    await answer_to(servers.client, second)
    assert (await second.game.see()).players[0].resigned


async def test_a_request_without_an_id_is_applied_again(servers: Servers) -> None:
    sent = await ready_for("JoinGame", servers)
    assert sent.game
    sent.request.ClearField("request_id")
    await answer_to(servers.client, sent)
    assert await reason_of_refusal(servers.client, sent) == ("ALREADY_EXISTS", "PLAYER_ALREADY_JOINED")


@each_of("rpc", [*WITHOUT_A_TOKEN, "RenewSeatToken"])
async def test_a_guessable_id_is_refused_where_it_yields_a_token(servers: Servers, rpc: str) -> None:
    sent = await ready_for(rpc, servers)
    guessable = sent.changed(request_id="x" * 21)
    assert await reason_of_refusal(servers.client, guessable) == ("INVALID_ARGUMENT", "FIELD_INVALID")
    assert await answer_to(servers.client, sent.changed(request_id=new_id()[:22]))


@each_of("rpc", [rpc for rpc in OF_A_SEAT_ONCE if rpc != "RenewSeatToken"])
async def test_a_seats_id_may_be_short(servers: Servers, rpc: str) -> None:
    sent = (await ready_for(rpc, servers)).changed(request_id="12345678")
    first = await answer_to(servers.client, sent)
    assert await answer_to(servers.second, sent) == first


# Responses that are not stored


async def test_a_refused_creation_is_not_stored(servers: Servers) -> None:
    sent = await ready_for("CreateGame", servers)
    refused = sent.changed(ruleset=game_rules(players_min=9))
    assert await reason_of_refusal(servers.client, refused) == ("INVALID_ARGUMENT", "OPTION_VALUE_INVALID")
    assert gs.CreateGameResponse.FromString(await answer_to(servers.client, sent)).game.revision == 1


async def test_a_refused_join_is_not_stored(servers: Servers) -> None:
    sent = await ready_for("JoinGame", servers)
    refused = sent.changed(name="player 1")
    assert await reason_of_refusal(servers.client, refused) == ("ALREADY_EXISTS", "PLAYER_ALREADY_JOINED")
    assert gs.JoinGameResponse.FromString(await answer_to(servers.client, sent)).seat == 4


async def test_a_refused_quick_join_is_not_stored(servers: Servers) -> None:
    sent = await ready_for("JoinOrCreateGame", servers)
    refused = sent.changed(ruleset=game_rules(players_min=9))
    assert await reason_of_refusal(servers.client, refused) == ("INVALID_ARGUMENT", "OPTION_VALUE_INVALID")
    assert gs.JoinOrCreateGameResponse.FromString(await answer_to(servers.client, sent)).seat == 1


async def test_a_refused_start_is_not_stored(servers: Servers) -> None:
    game = await servers.client.new_game(players=1, start=False)
    sent = Sent("StartGame", gs.StartGameRequest(game_id=game.game_id, request_id=new_id()), game, seat=1)
    assert await reason_of_refusal(servers.client, sent) == ("FAILED_PRECONDITION", "TOO_FEW_PLAYERS")
    await game.join("Ben")
    assert gs.StartGameResponse.FromString(await answer_to(servers.client, sent)).game.round == 1


async def test_a_refused_next_round_is_not_stored(servers: Servers) -> None:
    game = await servers.client.new_game(players=4, ruleset=TWO_ROUNDS)
    sent = Sent("StartNextRound", ts.StartNextRoundRequest(game_id=game.game_id, request_id=new_id()), game, seat=1)
    assert await reason_of_refusal(servers.client, sent) == ("FAILED_PRECONDITION", "ROUND_IN_PROGRESS")
    await to_the_rounds_end(servers, game)
    assert ts.StartNextRoundResponse.FromString(await answer_to(servers.client, sent)).game.round == 2


async def test_a_refused_resignation_is_not_stored(servers: Servers) -> None:
    game = await servers.client.new_game(players=3, start=False)
    sent = Sent("ResignGame", ts.ResignGameRequest(game_id=game.game_id, request_id=new_id()), game, seat=1)
    assert await reason_of_refusal(servers.client, sent) == ("FAILED_PRECONDITION", "GAME_NOT_STARTED")
    await game.start()
    assert ts.ResignGameResponse.FromString(await answer_to(servers.client, sent)).game.players[0].resigned


async def test_a_refused_turn_is_not_stored(servers: Servers) -> None:
    sent = await ready_for("PlayTurn", servers)
    illegal = sent.changed(play=ts.PlayTiles())
    assert await reason_of_refusal(servers.client, illegal) == ("FAILED_PRECONDITION", "NO_RACK_TILE_PLAYED")
    assert len(ts.PlayTurnResponse.FromString(await answer_to(servers.client, sent)).tiles_drawn) == 1


async def test_a_refused_claim_is_not_stored(servers: Servers) -> None:
    sent = await ready_for("ClaimError", servers)
    other = sent.changed(play_revision=1)
    assert await reason_of_refusal(servers.client, other) == ("FAILED_PRECONDITION", "NOTHING_TO_CLAIM")
    shown = ts.ClaimErrorResponse.FromString(await answer_to(servers.client, sent)).game.turn.shown_play
    assert shown.against_seat == sent.seat


async def test_a_refused_redeal_is_not_stored(servers: Servers) -> None:
    game = await servers.client.new_game(players=3, start=False)
    sent = Sent("RequestRedeal", ts.RequestRedealRequest(game_id=game.game_id, request_id=new_id()), game, seat=1)
    assert await reason_of_refusal(servers.client, sent) == ("FAILED_PRECONDITION", "GAME_NOT_STARTED")
    await game.start()
    assert await reason_of_refusal(servers.client, sent) == ("FAILED_PRECONDITION", "REDEAL_NOT_ALLOWED")


async def test_a_penalized_play_is_stored_like_an_accepted_turn(servers: Servers) -> None:
    penalised = ruleset_pb2.TURN_INVALID_SUBMISSION_PENALISE
    game = await servers.client.new_game(ruleset=game_rules(turn_invalid_submission=penalised))
    seen = await game.see()
    turn = ts.PlayTurnRequest(game_id=game.game_id, etag=seen.etag, request_id=new_id(), play=ts.PlayTiles())
    sent = Sent("PlayTurn", turn, game, seen.turn.seat)
    first = await answer_to(servers.client, sent)
    assert await answer_to(servers.second, sent) == first
    answer = ts.PlayTurnResponse.FromString(first)
    assert (len(answer.tiles_drawn), answer.game.revision) == (3, seen.revision + 1)
    assert (await game.see()).revision == seen.revision + 1


async def test_a_late_turn_is_not_stored(servers: Servers) -> None:
    sent = await ready_for("PlayTurn", servers)
    assert sent.game
    servers.clock.advance((await sent.game.see()).settings.turn_time_limit.seconds + 1)
    assert await reason_of_refusal(servers.client, sent) == ("FAILED_PRECONDITION", "TURN_TIMED_OUT")
    assert await reason_of_refusal(servers.client, sent) == ("ABORTED", "STALE_STATE")


async def test_a_validate_only_turn_is_not_stored(servers: Servers) -> None:
    sent = await ready_for("PlayTurn", servers)
    assert sent.game
    before = await sent.game.see()
    trial = sent.changed(validate_only=True)
    judged = ts.PlayTurnResponse.FromString(await answer_to(servers.client, trial))
    assert judged.game.revision == before.revision
    assert await sent.game.see() == before
    taken = ts.PlayTurnResponse.FromString(await answer_to(servers.client, sent))
    assert taken.game.revision == before.revision + 1
    assert await reason_of_refusal(servers.client, trial) == ("ABORTED", "STALE_STATE")


# Secrets


def texts_in(value: object) -> Iterator[bytes]:
    """Yields every str and bytes in a value, as bytes."""
    match value:
        case bytes():
            yield value
        case str():
            yield value.encode()
        case dict():
            for key, held in value.items():
                yield from texts_in(key)
                yield from texts_in(held)
        case list() | tuple() | set():
            for held in value:
                yield from texts_in(held)
        case _ if is_dataclass(value):
            for field in fields(value):
                yield from texts_in(getattr(value, field.name))
        case _:
            pass


def kept_in(store: Store, redis_url: str) -> list[bytes]:
    """Returns all bytes and texts in a store."""
    if isinstance(store, MemoryStore):
        parts = [vars(part) for part in vars(store).values() if hasattr(part, "__dict__")]
        return list(texts_in([vars(store), parts]))
    with redis.Redis.from_url(redis_url) as keys:
        return list(texts_in(kept_in_redis(keys)))


async def test_neither_tokens_nor_request_ids_are_stored(servers: Servers, redis_url: str) -> None:
    request_ids: list[str] = []
    tokens: list[str] = []
    for rpc in MUTATING:
        sent = await ready_for(rpc, servers)
        answer = await answer_to(servers.client, sent)
        request_ids.append(sent.request_id)
        if sent.game:
            tokens += {sent.game.host_token, *sent.game.tokens.values()} - {""}
        match rpc:
            case "CreateGame":
                tokens.append(gs.CreateGameResponse.FromString(answer).host_token)
            case "JoinGame":
                tokens.append(gs.JoinGameResponse.FromString(answer).seat_token)
            case "JoinOrCreateGame":
                tokens.append(gs.JoinOrCreateGameResponse.FromString(answer).seat_token)
            case "RenewSeatToken":
                tokens.append(gs.RenewSeatTokenResponse.FromString(answer).seat_token)
            case "ReissueSeatToken":
                tokens.append(gs.ReissueSeatTokenResponse.FromString(answer).seat_token)
            case _:
                pass
    kept = b"\n".join(kept_in(servers.store, redis_url))
    assert len(tokens) == 4 * (len(MUTATING) - 2) + 5
    raw = [base64.urlsafe_b64decode(token + "=") for token in tokens]
    forbidden = [*(text.encode() for text in (*request_ids, *tokens)), *raw, *(one.hex().encode() for one in raw)]
    assert [text for text in forbidden if text in kept] == []
    digests = [digest(token).hex().encode() for token in tokens]
    void = 5  # a seat that its host left and the host token, a kicked seat's token, a renewed and a reissued token
    assert sum(one in kept for one in digests) == len(tokens) - void
