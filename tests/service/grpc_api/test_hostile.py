"""Hostile calls get the documented errors, change nothing and leak nothing."""

import copy
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

import grpc
import grpc.aio
import pytest
import pytest_asyncio
import redis
from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.melding.ruleset import OPTIONS
from engine.tiles import JOKER
from rummikub.v1 import analysis_service_pb2 as an
from rummikub.v1 import (
    error_reason_pb2,
    game_pb2,
    meld_pb2,
    room_settings_pb2,
    ruleset_pb2,
    tile_pb2,
    violation_pb2,
)
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from rummikub.v1 import validation_service_pb2 as vs
from service.app.identity import digest
from service.grpc_api import reflection
from service.grpc_api.callers import REQUEST_ID_LEAST, SECRET_REQUEST_ID_LEAST
from service.model.record import Record
from service.settings import Settings
from service.storage.memory import MemoryStore
from service.storage.store import Store
from support.cases import each_of
from support.harness import (
    CONTRACT,
    Client,
    FakeClock,
    GameAtHand,
    as_tiles,
    bearer,
    error_info,
    field_violations,
    kept_in_redis,
    memory_store,
    redis_store,
    running_server,
    server_settings,
)
from support.rpcs import METHODS, OF_A_SEAT, ROWS, WITH_TICKET, send_raw, usual_request
from support.stores import STORES
from tools.games import game_rules, options
from tools.redis_servers import RedisServer

pytestmark = [pytest.mark.usefixtures("all_rights"), pytest.mark.slow]

FOREVER_SECONDS = 3600.0
UNKNOWN_GAME = "0" * 32
WRONG_TOKEN = "w" * 43
PLAYERS = 3
PLACES_IN_HISTORY = 1 + PLAYERS + 1
"""Revisions whose changes involve hidden tiles: a deal, draws, a time-out."""
UINT32_MAX = 2**32 - 1

Metadata = tuple[tuple[str, str], ...]

SERVICES = (
    *CONTRACT,
    health_pb2.DESCRIPTOR.services_by_name["Health"],
    *reflection.SERVICES,
)
REFLECTION = [f"ServerReflectionInfo of {service.full_name}" for service in reflection.SERVICES]
RPCS: dict[str, MethodDescriptor] = {rpc.name: rpc for service in SERVICES[:-2] for rpc in service.methods}
RPCS |= {name: service.methods[0] for name, service in zip(REFLECTION, reflection.SERVICES, strict=True)}
ON_GAMES = [*(rpc.name for service in CONTRACT[:2] for rpc in service.methods), "ExportGame"]
WITH_GAME_ID = [name for name in ON_GAMES if "game_id" in RPCS[name].input_type.fields_by_name]
MUTATING = [name for name in OF_A_SEAT if ROWS[name].mutates]
"""RPCs of a seat with a request id."""
READING = ["GetGame", "ListGames", "WatchGame", "ListChanges"]


def settings_of_tests() -> Settings:
    """Settings without a second sweep, so that only calls change games."""
    return server_settings(sweep_seconds=FOREVER_SECONDS)


@dataclass(frozen=True)
class Scene:
    """A server with a running game, in which tiles were drawn and a turn has timed out, and with another game.

    Attributes:
        client: Of the server.
        stored: All that the store holds, as it holds it.
        game: The game under attack.
        other: Another game.
        revision: The game's.
        seat: Whose turn it is.
        record: The game as it is stored.
    """

    client: Client
    stored: Callable[[], Mapping[object, object]]
    game: GameAtHand
    other: GameAtHand
    revision: int
    seat: int
    record: Record

    @property
    def other_seat(self) -> int:
        """Returns a seat that does not have the turn."""
        return self.seat % PLAYERS + 1

    def secrets(self, viewer: int) -> dict[str, bytes]:
        """Returns the secrets that a viewer must never see: other racks, the pool, tokens and their digests."""
        round_ = self.record.game.round
        assert round_
        found = {f"rack {rack.seat}": bytes(rack.tiles) for rack in round_.racks if rack.seat != viewer}
        found["pool"] = bytes(round_.pool[:8])
        found |= {f"{name} as text": tiles.hex().encode() for name, tiles in found.items()}
        for number, token in enumerate((*self.game.tokens.values(), *self.other.tokens.values())):
            if token:
                found[f"token {number}"] = token.encode()
                found[f"digest {number}"] = digest(token)
                found[f"digest {number} as text"] = digest(token).hex().encode()
        return found


async def scene_on(
    client: Client, store: Store, clock: FakeClock, stored: Callable[[], Mapping[object, object]]
) -> Scene:
    game = await client.new_game(PLAYERS, ruleset=options(hints=room_settings_pb2.HINTS_TURN))
    for _ in range(PLAYERS):
        await game.draw()
    late = (await game.see()).turn.seat
    unfinished = game_pb2.Draft(table=meld_pb2.Table(melds=[meld_pb2.Meld(tiles=(await game.see(late)).rack[:1])]))
    await game.save_draft(unfinished)
    limit = (await game.see()).settings.turn_time_limit.seconds
    clock.advance(limit + 1)
    seen = await game.see()
    other = await client.new_game(PLAYERS)
    record = (await store.games.load(game.game_id)).record
    assert record
    return Scene(client, stored, game, other, seen.revision, seen.turn.seat, record)


def kept_in_memory(store: MemoryStore) -> Mapping[object, object]:
    """Returns what the store holds, except for presence, which changes by itself."""
    kept: dict[object, object] = {
        game_id: {name: getattr(stored, name) for name in stored.__slots__ if name != "presence"}
        for game_id, stored in store.memory.games.items()
    }
    for part in (store.lists, store.names, store.deadlines, store.outbox, store.log):
        kept[type(part)] = {name: value for name, value in vars(part).items() if name not in {"reports", "_memory"}}
    return copy.deepcopy(kept)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=STORES)
async def shared_scene(request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    clock = FakeClock()
    if request.param == "memory":
        memory = memory_store(clock)
        async with running_server(memory, settings_of_tests()) as (_, client):
            yield await scene_on(client, memory, clock, lambda: kept_in_memory(memory))
        return
    url = request.getfixturevalue("redis_url")
    store = redis_store(url, clock)
    with redis.Redis.from_url(url) as keys:
        keys.flushdb()
        async with running_server(store, settings_of_tests()) as (_, client):
            yield await scene_on(client, store, clock, lambda: kept_in_redis(keys))
    await store.close()


@pytest_asyncio.fixture(loop_scope="module")
async def scene(shared_scene: Scene) -> AsyncIterator[Scene]:
    """Yields the scene; checks that a test changed nothing that is stored."""
    before = shared_scene.stored()
    assert before
    yield shared_scene
    assert shared_scene.stored() == before


def usual_requests(scene: Scene) -> dict[str, Message]:
    """Returns a valid request of each RPC; PlayTurn's is legal for the seat that has the turn."""
    game = scene.game
    return {
        **{name: usual_request(name, game.game_id, game.etag) for name in METHODS},
        "Check": health_pb2.HealthCheckRequest(),
        "List": health_pb2.HealthListRequest(),
        "Watch": health_pb2.HealthCheckRequest(),
        **dict.fromkeys(REFLECTION, reflection_pb2.ServerReflectionRequest(list_services="*")),
    }


def told(refusal: grpc.aio.AioRpcError) -> bytes:
    """Returns all text of an error."""
    trailing = [(key, value) for key, value in refusal.trailing_metadata() or () if key != "x-request-id"]
    values = (value if isinstance(value, bytes) else value.encode() for _, value in trailing)
    return b"\0".join([refusal.code().name.encode(), (refusal.details() or "").encode(), *values])


async def refused(
    scene: Scene, rpc: str, request: Message | bytes, metadata: Metadata = (), viewer: int = 0
) -> grpc.aio.AioRpcError:
    """Returns the error of a request, after checking that nothing leaked."""
    data = request if isinstance(request, bytes) else request.SerializeToString()
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await send_raw(scene.client, RPCS[rpc], data, metadata)
    leaks = [name for name, secret in scene.secrets(viewer).items() if secret in told(refusal.value)]
    assert leaks == []
    return refusal.value


async def allowed(scene: Scene, rpc: str, request: Message, metadata: Metadata = (), viewer: int = 0) -> bytes:
    """Returns the response to a request, after checking that nothing leaked."""
    answer = await send_raw(scene.client, RPCS[rpc], request.SerializeToString(), metadata)
    leaks = [name for name, secret in scene.secrets(viewer).items() if secret in answer]
    assert leaks == []
    return answer


def reason_of(refusal: grpc.aio.AioRpcError) -> tuple[str, str]:
    return refusal.code().name, error_info(refusal).reason


EMPTY_TURN = vs.ValidateTurnResponse(
    violations=[
        violation_pb2.Violation(
            reason=error_reason_pb2.NO_RACK_TILE_PLAYED,
            subject="table_after",
            text="no tile was played from the rack: play one, draw or pass",
        )
    ]
)


# Completeness


@pytest.mark.asyncio(loop_scope="module")
async def test_every_rpc_has_a_row(scene: Scene) -> None:
    data = reflection_pb2.ServerReflectionRequest(list_services="*").SerializeToString()
    for rpc in REFLECTION:
        answer = await send_raw(scene.client, RPCS[rpc], data)
        served = reflection_pb2.ServerReflectionResponse.FromString(answer).list_services_response.service
        assert {service.name for service in served} == {service.full_name for service in SERVICES}
    assert set(usual_requests(scene)) == set(RPCS)


@each_of("rpc", [name for name in RPCS if name not in (*ON_GAMES, *WITH_TICKET)])
@pytest.mark.asyncio(loop_scope="module")
async def test_rpcs_without_a_game_need_no_token(scene: Scene, rpc: str) -> None:
    assert await allowed(scene, rpc, usual_requests(scene)[rpc], MALFORMED_AUTHORIZATIONS["another scheme"])


# Authorization


@each_of("rpc", OF_A_SEAT)
@pytest.mark.asyncio(loop_scope="module")
async def test_acting_for_a_seat_needs_its_token(scene: Scene, rpc: str) -> None:
    refusal = await refused(scene, rpc, usual_requests(scene)[rpc])
    assert reason_of(refusal) == ("PERMISSION_DENIED", "NOT_A_PLAYER")


@each_of("rpc", MUTATING)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_missing_token_is_reported_even_with_a_seat_s_request_id(scene: Scene, rpc: str) -> None:
    request = copy.deepcopy(usual_requests(scene)[rpc])
    shortest = SECRET_REQUEST_ID_LEAST if rpc == "RenewSeatToken" else REQUEST_ID_LEAST
    request.MergeFrom(type(request)(request_id="x" * shortest))
    refusal = await refused(scene, rpc, request)
    assert reason_of(refusal) == ("PERMISSION_DENIED", "NOT_A_PLAYER")


@each_of("rpc", OF_A_SEAT)
@pytest.mark.asyncio(loop_scope="module")
async def test_without_a_token_a_game_is_not_looked_up(scene: Scene, rpc: str) -> None:
    known = usual_requests(scene)[rpc]
    unknown = copy.deepcopy(known)
    unknown.MergeFrom(type(known)(game_id=UNKNOWN_GAME))
    assert told(await refused(scene, rpc, known)) == told(await refused(scene, rpc, unknown))


@each_of("rpc", WITH_GAME_ID)
@pytest.mark.asyncio(loop_scope="module")
async def test_the_error_of_a_wrong_token_says_nothing_of_the_game(scene: Scene, rpc: str) -> None:
    known = usual_requests(scene)[rpc]
    unknown = copy.deepcopy(known)
    unknown.MergeFrom(type(known)(game_id=UNKNOWN_GAME))
    for request, reason, own in (
        (known, ("UNAUTHENTICATED", "TOKEN_VOID"), scene.other.as_seat(1)),
        (unknown, ("NOT_FOUND", "GAME_NOT_FOUND"), scene.game.as_seat(scene.seat)),
    ):
        refusals = [await refused(scene, rpc, request, metadata) for metadata in (bearer(WRONG_TOKEN), own)]
        assert reason_of(refusals[0]) == reason
        assert told(refusals[0]) == told(refusals[1])


MALFORMED_AUTHORIZATIONS: dict[str, Metadata] = {
    "another scheme": (("authorization", "Basic QWRhOnNlY3JldA=="),),
    "no scheme": (("authorization", WRONG_TOKEN),),
    "no token": (("authorization", "Bearer"),),
    "an empty value": (("authorization", ""),),
    "too short": (("authorization", f"Bearer {WRONG_TOKEN[1:]}"),),
    "too long": (("authorization", f"Bearer {WRONG_TOKEN}w"),),
    "another alphabet": (("authorization", f"Bearer {WRONG_TOKEN[1:]}+"),),
    "two tokens in one": (("authorization", f"Bearer {WRONG_TOKEN} {WRONG_TOKEN}"),),
    "two headers": (*bearer(WRONG_TOKEN), *bearer(WRONG_TOKEN)),
}


@each_of("metadata", MALFORMED_AUTHORIZATIONS.values(), ids=MALFORMED_AUTHORIZATIONS)
@each_of("rpc", ON_GAMES)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_malformed_authorization_is_rejected(scene: Scene, rpc: str, metadata: Metadata) -> None:
    refusal = await refused(scene, rpc, usual_requests(scene)[rpc], metadata)
    assert reason_of(refusal) == ("UNAUTHENTICATED", "AUTHORIZATION_MALFORMED")


@pytest.mark.asyncio(loop_scope="module")
async def test_joining_a_running_game_fails_without_a_token(scene: Scene) -> None:
    refusal = await refused(scene, "JoinGame", usual_requests(scene)["JoinGame"])
    assert reason_of(refusal) == ("FAILED_PRECONDITION", "GAME_ALREADY_STARTED")


@each_of("rpc", OF_A_SEAT)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_valid_token_beside_another_is_refused(scene: Scene, rpc: str) -> None:
    metadata = (*scene.game.as_seat(scene.seat), *scene.game.as_seat(scene.other_seat))
    refusal = await refused(scene, rpc, usual_requests(scene)[rpc], metadata)
    assert reason_of(refusal) == ("UNAUTHENTICATED", "AUTHORIZATION_MALFORMED")


@each_of("rpc", ["PlayTurn", "SaveDraft"])
@pytest.mark.asyncio(loop_scope="module")
async def test_another_seats_token_does_not_take_the_turn(scene: Scene, rpc: str) -> None:
    request = usual_requests(scene)[rpc]
    for seat in set(range(1, PLAYERS + 1)) - {scene.seat}:
        refusal = await refused(scene, rpc, request, scene.game.as_seat(seat), viewer=seat)
        assert reason_of(refusal) == ("FAILED_PRECONDITION", "NOT_YOUR_TURN")
        assert error_info(refusal).metadata["seat"] == str(scene.seat)


# Hidden information


@each_of("viewer", range(PLAYERS + 1))
@each_of("rpc", READING)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_reader_sees_no_rack_but_their_own(scene: Scene, rpc: str, viewer: int) -> None:
    answer = await allowed(scene, rpc, usual_requests(scene)[rpc], scene.game.as_seat(viewer), viewer)
    output = message_factory.GetMessageClass(RPCS[rpc].output_type).FromString(answer)
    expected = {"GetGame": 1, "ListGames": 0, "WatchGame": 1, "ListChanges": PLACES_IN_HISTORY}
    assert assert_seen_by(viewer, output) == expected[rpc]


@pytest.mark.asyncio(loop_scope="module")
async def test_the_search_for_secrets_would_find_a_rack(scene: Scene) -> None:
    answer = await send_raw(
        scene.client, RPCS["GetGame"], usual_requests(scene)["GetGame"].SerializeToString(), scene.game.as_seat(1)
    )
    secrets = scene.secrets(viewer=0)
    assert [name for name, secret in secrets.items() if secret in answer] == ["rack 1"]


@each_of("viewer", range(PLAYERS + 1))
@pytest.mark.asyncio(loop_scope="module")
async def test_a_watcher_from_the_beginning_sees_no_rack_but_their_own(scene: Scene, viewer: int) -> None:
    etag = await scene.game.etag_at(1)
    request = gs.WatchGameRequest(game_id=scene.game.game_id, etag=etag, content=gs.WATCH_CONTENT_BOTH)
    secrets = scene.secrets(viewer)
    watch = scene.client.games.WatchGame(request, metadata=scene.game.as_seat(viewer))
    places = 0
    async for update in watch:
        places += assert_seen_by(viewer, update)
        assert [name for name, secret in secrets.items() if secret in update.SerializeToString()] == []
        if update.game.revision == scene.revision:
            watch.cancel()
            break
    assert places == PLACES_IN_HISTORY + 1, "and the newest game"


@pytest.mark.asyncio(loop_scope="module")
async def test_validate_only_reveals_no_hidden_tile(scene: Scene) -> None:
    turn = ts.PlayTurnRequest(validate_only=True)
    turn.MergeFrom(ts.PlayTurnRequest.FromString(usual_requests(scene)["PlayTurn"].SerializeToString()))
    answer = await allowed(scene, "PlayTurn", turn, scene.game.as_seat(scene.seat), scene.seat)
    assert list(ts.PlayTurnResponse.FromString(answer).tiles_drawn) == []
    assert assert_seen_by(scene.seat, ts.PlayTurnResponse.FromString(answer)) == 1


@each_of("viewer", range(1, PLAYERS + 1))
@pytest.mark.asyncio(loop_scope="module")
async def test_a_hint_reveals_no_hidden_tile(scene: Scene, viewer: int) -> None:
    request = an.SuggestTurnRequest(game_id=scene.game.game_id)
    answer = await allowed(scene, "SuggestTurn", request, scene.game.as_seat(viewer), viewer)
    own = await scene.game.see(viewer)
    rack, table = list(own.rack), [tile for meld in own.table.melds for tile in meld.tiles]
    found = an.SuggestTurnResponse.FromString(answer).suggestion
    shown = [
        tile for part in messages_in(found) for name in ("tiles", "tiles_played") for tile in getattr(part, name, ())
    ]
    assert set(shown) <= {*rack, *table}


def messages_in(message: Message) -> Iterator[Message]:
    """Yields a message and all messages in it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type and not field.message_type.GetOptions().map_entry:
            for part in value if field.is_repeated else [value]:
                yield from messages_in(part)


def assert_seen_by(viewer: int, answer: Message) -> int:
    """Checks that a response has tiles of the viewer's seat only; returns the number of places checked."""
    places = 0
    for part in messages_in(answer):
        match part:
            case game_pb2.Game():
                assert part.seat == viewer
                assert len(part.rack) == sum(player.tile_count for player in part.players if player.seat == viewer)
            case game_pb2.RoundStarted():
                assert len(part.rack) == (14 if viewer else 0)
            case game_pb2.TilesDrawn():
                assert part.tile_count == 1
                assert len(part.tiles) == (1 if part.seat == viewer else 0)
            case game_pb2.TurnTimedOut():
                assert part.tile_count == 3
                assert len(part.tiles) == (3 if part.seat == viewer else 0)
            case _:
                continue
        places += 1
    return places


@pytest.mark.asyncio(loop_scope="module")
async def test_the_error_for_a_tile_does_not_reveal_where_it_is(scene: Scene) -> None:
    own = set((await scene.game.see(scene.seat)).rack)
    answers = set()
    for face in set(range(1, JOKER)) - own:
        turn = with_table(scene, [[face]])
        refusal = await refused(scene, "PlayTurn", turn, scene.game.as_seat(scene.seat), scene.seat)
        name = tile_pb2.Tile.Name(tile_pb2.Tile.ValueType(face)).removeprefix("TILE_").split("_")
        short = {"RED": "R", "BLUE": "B", "BLACK": "K", "ORANGE": "O"}[name[0]] + name[1]
        answers.add((refusal.code(), (refusal.details() or "").replace(short, "?"), error_info(refusal).reason))
    assert len(answers) == 1


# Invalid requests


MALFORMED_BYTES = {
    "no wire type": b"\x0f",
    "a tag without end": b"\xff",
    "a number without end": b"\x08\x80",
    "a group without end": b"\x0b",
    "less than announced": b"\x0a\x05x",
}


@each_of("data", MALFORMED_BYTES.values(), ids=MALFORMED_BYTES)
@each_of("rpc", RPCS)
@pytest.mark.asyncio(loop_scope="module")
async def test_malformed_bytes_are_an_invalid_argument(scene: Scene, rpc: str, data: bytes) -> None:
    refusal = await refused(scene, rpc, data, scene.game.as_seat(scene.seat))
    assert reason_of(refusal) == ("INVALID_ARGUMENT", "MALFORMED_REQUEST")


@each_of("rpc", WITH_GAME_ID)
@pytest.mark.asyncio(loop_scope="module")
async def test_text_that_is_not_utf8_is_an_invalid_argument(scene: Scene, rpc: str) -> None:
    refusal = await refused(scene, rpc, b"\x0a\x02\xc3\x28", scene.game.as_seat(scene.seat))
    assert reason_of(refusal) == ("INVALID_ARGUMENT", "MALFORMED_REQUEST")


@pytest.mark.asyncio(loop_scope="module")
async def test_malformed_bytes_end_a_stream_after_the_answers_before_them(scene: Scene) -> None:
    path = "/rummikub.v1.ValidationService/StreamValidateTurns"
    streams: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = scene.client.channel.stream_stream(path)
    good = vs.StreamValidateTurnsRequest(
        turn=vs.ValidateTurnRequest(has_melded=True), correlation_id="good"
    ).SerializeToString()
    call = streams(iter([good, good, b"\xff", good]))
    answers = [await call.read(), await call.read()]
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await call.read()
    assert answers == [vs.StreamValidateTurnsResponse(turn=EMPTY_TURN, correlation_id="good").SerializeToString()] * 2
    assert reason_of(refusal.value) == ("INVALID_ARGUMENT", "MALFORMED_REQUEST")


def padded(request: Message, size: int) -> bytes:
    """Returns a request with an unknown field of a given size."""
    length = bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14])
    return request.SerializeToString() + b"\xfa\x3f" + length + bytes(size)


@each_of("rpc", RPCS)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_message_that_is_too_large_is_refused(scene: Scene, rpc: str) -> None:
    for size in (262_144, 500_000):
        data = padded(usual_requests(scene)[rpc], size)
        refusal = await refused(scene, rpc, data, scene.game.as_seat(scene.seat))
        assert reason_of(refusal) == ("INVALID_ARGUMENT", "MALFORMED_REQUEST")
        assert "RUMMIKUB_MAX_MESSAGE_BYTES" in str(refusal.details())


@pytest.mark.asyncio(loop_scope="module")
async def test_a_message_that_is_more_than_twice_too_large_is_refused_by_the_core(scene: Scene) -> None:
    data = padded(usual_requests(scene)["GetGame"], 600_000)
    refusal = await refused(scene, "GetGame", data, scene.game.as_seat(scene.seat))
    assert refusal.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.asyncio(loop_scope="module")
async def test_a_large_message_below_the_limit_is_answered(scene: Scene) -> None:
    data = padded(usual_requests(scene)["GetGame"], 261_000)
    answer = await send_raw(scene.client, RPCS["GetGame"], data)
    assert gs.GetGameResponse.FromString(answer).game.revision == scene.revision


@each_of("rpc", RPCS)
@pytest.mark.asyncio(loop_scope="module")
async def test_metadata_that_is_too_large_is_refused(scene: Scene, rpc: str) -> None:
    metadata = (("x-large", "x" * 20_000), *scene.game.as_seat(scene.seat))
    refusal = await refused(scene, rpc, usual_requests(scene)[rpc], metadata)
    assert refusal.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@each_of(
    "path",
    [
        b"/rummikub.v1.GameService/NoSuchCall",
        b"/rummikub.v2.GameService/GetGame",
        b"/rummikub.v1.GameService/GetGame/",
        b"/rummikub.v1.GameService/\xff\xfe",
        b"/",
        b"/x",
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_an_rpc_that_does_not_exist_is_unimplemented(scene: Scene, path: bytes) -> None:
    for _ in range(2):  # the second call may find the method cached
        unary: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = scene.client.channel.unary_unary(path)  # type: ignore[arg-type] # sent as it is
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await unary(b"")
        assert refusal.value.code() is grpc.StatusCode.UNIMPLEMENTED


def with_table(scene: Scene, table: Iterable[Iterable[int]]) -> ts.PlayTurnRequest:
    """Returns a turn that plays a table."""
    play = ts.PlayTiles(table=meld_pb2.Table(melds=[meld_pb2.Meld(tiles=as_tiles(tiles)) for tiles in table]))
    return ts.PlayTurnRequest(game_id=scene.game.game_id, etag=scene.game.etag, play=play)


def tile_lists(scene: Scene, numbers: list[int]) -> list[tuple[str, Message, str]]:
    """Yields each field that takes tiles, set to the given ones: the RPC, the request, the field's path."""
    tiles = as_tiles(numbers)
    table = [meld_pb2.Meld(tiles=tiles)]
    declared = [meld_pb2.Meld(declared_faces=tiles)]
    river = game_rules(turn_draw=ruleset_pb2.TURN_DRAW_TWO_RIVER)
    turns = {
        "table_before[0].tiles": vs.ValidateTurnRequest(table_before=meld_pb2.Table(melds=table), has_melded=True),
        "table_after[0].tiles": vs.ValidateTurnRequest(table_after=meld_pb2.Table(melds=table), has_melded=True),
        "table_after[0].declared_faces": vs.ValidateTurnRequest(
            table_after=meld_pb2.Table(melds=declared), has_melded=True
        ),
        "rack": vs.ValidateTurnRequest(rack=tiles, has_melded=True),
        "river": vs.ValidateTurnRequest(ruleset=river.melding, river=tiles, has_melded=True),
    }
    draft = ts.SaveDraftRequest(
        game_id=scene.game.game_id, etag=scene.game.etag, draft=game_pb2.Draft(table=meld_pb2.Table(melds=table))
    )
    racks = [vs.RackToScore(seat=1), vs.RackToScore(seat=2, rack=tiles)]
    found: list[tuple[str, Message, str]] = [
        ("PlayTurn", with_table(scene, [numbers]), "play.table[0].tiles"),
        ("SaveDraft", draft, "draft.table[0].tiles"),
        ("ValidateMelds", vs.ValidateMeldsRequest(melds=table), "melds[0].tiles"),
        ("ValidateMelds", vs.ValidateMeldsRequest(melds=declared), "melds[0].declared_faces"),
        ("ScoreRound", vs.ScoreRoundRequest(racks=racks), "racks[1].rack"),
    ]
    for place, turn in turns.items():
        found.append(("ValidateTurn", turn, place))
        found.append(("BatchValidateTurns", vs.BatchValidateTurnsRequest(turns=[turn]), f"turns[0].{place}"))
        found.append(("StreamValidateTurns", vs.StreamValidateTurnsRequest(turn=turn), f"turn.{place}"))
    positions = {
        "table[0].tiles": an.Position(table=meld_pb2.Table(melds=table), has_melded=True),
        "table[0].declared_faces": an.Position(table=meld_pb2.Table(melds=declared), has_melded=True),
        "rack": an.Position(rack=tiles, has_melded=True),
        "river": an.Position(ruleset=river.melding, river=tiles, has_melded=True),
    }
    for place, position in positions.items():
        found.append(("SuggestTurn", an.SuggestTurnRequest(position=position), f"position.{place}"))
        found.append(("HasLegalTurn", an.HasLegalTurnRequest(position=position), f"position.{place}"))
        batch = an.BatchSuggestTurnsRequest(positions=[position])
        found.append(("BatchSuggestTurns", batch, f"positions[0].{place}"))
    found.append(("ArrangeTiles", an.ArrangeTilesRequest(tiles=tiles), "tiles"))
    return found


@each_of("number", [0, 80, 1000, -1, 2**31 - 1, -(2**31)])
@pytest.mark.asyncio(loop_scope="module")
async def test_an_invalid_tile_number_is_named(scene: Scene, number: int) -> None:
    for rpc, request, place in tile_lists(scene, [1, number]):
        refusal = await refused(scene, rpc, request, scene.game.as_seat(scene.seat), scene.seat)
        assert reason_of(refusal) == ("INVALID_ARGUMENT", "TILE_UNKNOWN"), place
        assert field_violations(refusal) == [f"{place}[1]"]


@pytest.mark.asyncio(loop_scope="module")
async def test_more_tiles_than_a_request_may_carry_are_refused(scene: Scene) -> None:
    for rpc, request, place in tile_lists(scene, [1] * 129):
        refusal = await refused(scene, rpc, request, scene.game.as_seat(scene.seat), scene.seat)
        reason = "FIELD_INVALID" if place == "tiles" or place.endswith(("rack", "river")) else "MALFORMED_MELD"
        assert reason_of(refusal) == ("INVALID_ARGUMENT", reason), place
        assert field_violations(refusal) == [place]


@pytest.mark.asyncio(loop_scope="module")
async def test_more_melds_than_a_request_may_carry_are_refused(scene: Scene) -> None:
    many = [meld_pb2.Meld()] * 129
    requests: list[tuple[str, Message, str]] = [
        ("PlayTurn", with_table(scene, [[]] * 129), "play.table"),
        (
            "SaveDraft",
            ts.SaveDraftRequest(
                game_id=scene.game.game_id, etag=scene.game.etag, draft=game_pb2.Draft(table=meld_pb2.Table(melds=many))
            ),
            "draft.table",
        ),
        ("ValidateMelds", vs.ValidateMeldsRequest(melds=many), "melds"),
        (
            "ValidateTurn",
            vs.ValidateTurnRequest(table_before=meld_pb2.Table(melds=many), has_melded=True),
            "table_before",
        ),
        (
            "ValidateTurn",
            vs.ValidateTurnRequest(table_after=meld_pb2.Table(melds=many), has_melded=True),
            "table_after",
        ),
        (
            "SuggestTurn",
            an.SuggestTurnRequest(position=an.Position(table=meld_pb2.Table(melds=many), has_melded=True)),
            "position.table",
        ),
        (
            "HasLegalTurn",
            an.HasLegalTurnRequest(position=an.Position(table=meld_pb2.Table(melds=many), has_melded=True)),
            "position.table",
        ),
    ]
    for rpc, request, place in requests:
        refusal = await refused(scene, rpc, request, scene.game.as_seat(scene.seat), scene.seat)
        assert reason_of(refusal) == ("INVALID_ARGUMENT", "MALFORMED_TABLE"), place
        assert field_violations(refusal) == [place]


@each_of("number", [99, -1, 2**31 - 1])
@pytest.mark.asyncio(loop_scope="module")
async def test_an_unknown_value_of_an_enum_is_named(scene: Scene, number: int) -> None:
    kind = meld_pb2.Meld(kind=meld_pb2.MeldKind.ValueType(number))
    play = with_table(scene, [])
    play.play.table.melds.append(kind)
    state = game_pb2.GameState.ValueType(number)
    requests: list[tuple[str, Message, str, str]] = [
        ("PlayTurn", play, "MALFORMED_MELD", "play.table[0].kind"),
        ("ValidateMelds", vs.ValidateMeldsRequest(melds=[kind]), "MALFORMED_MELD", "melds[0].kind"),
        ("ListGames", gs.ListGamesRequest(states=[state]), "FIELD_INVALID", "states[0]"),
        ("ListGames", gs.ListGamesRequest(states=[game_pb2.GAME_STATE_LOBBY, state]), "FIELD_INVALID", "states[1]"),
        ("ListGames", gs.ListGamesRequest(states=[game_pb2.GAME_STATE_LOBBY] * 100_000), "FIELD_INVALID", "states"),
        ("ListGames", gs.ListGamesRequest(preset=ruleset_pb2.Preset.ValueType(number)), "FIELD_INVALID", "preset"),
        (
            "CreateGame",
            gs.CreateGameRequest(visibility=game_pb2.Visibility.ValueType(number)),
            "FIELD_INVALID",
            "visibility",
        ),
        ("SuggestTurn", an.SuggestTurnRequest(tier=an.HintTier.ValueType(number)), "FIELD_INVALID", "tier"),
        ("BatchSuggestTurns", an.BatchSuggestTurnsRequest(tier=an.HintTier.ValueType(number)), "FIELD_INVALID", "tier"),
        (
            "SuggestTurn",
            an.SuggestTurnRequest(objective=an.Objective.ValueType(number)),
            "FIELD_INVALID",
            "objective",
        ),
    ]
    for row in OPTIONS.values():
        if isinstance(row.default, Enum):
            creation = gs.CreateGameRequest(ruleset=game_rules(**{row.name: number}))
            requests.append(("CreateGame", creation, "OPTION_UNKNOWN", ".".join(("ruleset.melding", *row.path))))
    for setting in room_settings_pb2.RoomSettings.DESCRIPTOR.fields:
        settings = room_settings_pb2.RoomSettings()
        if setting.enum_type:
            setattr(settings, setting.name, number)
            named = "OPTION_UNKNOWN", f"settings.{setting.name}"
            requests.append(("CreateGame", gs.CreateGameRequest(settings=settings), *named))
        elif setting.message_type:
            for duration in (Duration(seconds=-1), Duration(seconds=2**40), Duration(nanos=1), Duration(nanos=-1)):
                settings = room_settings_pb2.RoomSettings(clock_total=Duration(seconds=60))  # clock_increment needs it
                getattr(settings, setting.name).CopyFrom(duration)
                named = "OPTION_VALUE_INVALID", f"settings.{setting.name}"
                requests.append(("CreateGame", gs.CreateGameRequest(settings=settings), *named))
    assert len(requests) > 30
    for rpc, request, reason, place in requests:
        refusal = await refused(scene, rpc, request, scene.game.as_seat(scene.seat), scene.seat)
        assert reason_of(refusal) == ("INVALID_ARGUMENT", reason), place
        assert field_violations(refusal) == [place]


@pytest.mark.asyncio(loop_scope="module")
async def test_an_option_that_the_contract_does_not_know_is_not_ignored(scene: Scene) -> None:
    unknown = b"\xf8\x3f\x01"  # field 1023
    rules = ruleset_pb2.MeldingRuleset.FromString(unknown)
    stage = ruleset_pb2.MeldingRuleset(deal=ruleset_pb2.DealOptions.FromString(unknown))
    requests: list[tuple[str, Message]] = [
        ("CreateGame", gs.CreateGameRequest(ruleset=ruleset_pb2.Ruleset.FromString(unknown))),
        ("CreateGame", gs.CreateGameRequest(ruleset=ruleset_pb2.Ruleset(melding=rules))),
        ("ValidateMelds", vs.ValidateMeldsRequest(ruleset=stage)),
        ("ValidateMelds", vs.ValidateMeldsRequest(ruleset=rules)),
        ("ScoreRound", vs.ScoreRoundRequest(ruleset=rules)),
        ("SuggestTurn", an.SuggestTurnRequest(position=an.Position(ruleset=rules, has_melded=True))),
        ("ArrangeTiles", an.ArrangeTilesRequest(ruleset=rules)),
        ("BatchSuggestTurns", an.BatchSuggestTurnsRequest(ruleset=rules)),
    ]
    for rpc, request in requests:
        refusal = await refused(scene, rpc, request)
        assert reason_of(refusal) == ("INVALID_ARGUMENT", "OPTION_UNKNOWN"), rpc


@pytest.mark.asyncio(loop_scope="module")
async def test_a_turn_with_another_etag_is_refused(scene: Scene) -> None:
    history = await scene.client.games.ListChanges(gs.ListChangesRequest(game_id=scene.game.game_id))
    earlier, now = (change.etag for change in history.changes[-2:])
    lineage = now.partition("-")[2]
    foreign = (await scene.other.see()).etag
    for etag, reason in (
        (earlier, "STALE_STATE"),
        (foreign, "STALE_STATE"),
        (f"{scene.revision}-{'0' * 32}", "STALE_STATE"),
        (f"{scene.revision + 1}-{lineage}", "STALE_STATE"),
        (f"{UINT32_MAX}-{lineage}", "STALE_STATE"),
        ("", "FIELD_INVALID"),
        (f"0-{lineage}", "FIELD_INVALID"),
        (f"{10**10}-{lineage}", "FIELD_INVALID"),
        (lineage, "FIELD_INVALID"),
        (now.upper() + "\n", "FIELD_INVALID"),
        (now[:-1], "FIELD_INVALID"),
        ("\0" * 32, "FIELD_INVALID"),
    ):
        turn = with_table(scene, [])
        turn.etag = etag
        refusal = await refused(scene, "PlayTurn", turn, scene.game.as_seat(scene.seat), scene.seat)
        assert error_info(refusal).reason == reason
        facts = {"revision": str(scene.revision)} if reason == "STALE_STATE" else {}
        assert dict(error_info(refusal).metadata) == facts


@each_of("revision", [10**6, UINT32_MAX, 10**10 - 1])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_watch_from_an_unknown_revision_is_rejected(scene: Scene, revision: int) -> None:
    request = gs.WatchGameRequest(game_id=scene.game.game_id, etag=f"{revision}-{'0' * 32}")
    assert (await refused(scene, "WatchGame", request)).code().name == "OUT_OF_RANGE"


STRANGE_TEXTS = {
    "empty": "",
    "nul": "\0" * 32,
    "spaces": " " * 32,
    "a line's end": UNKNOWN_GAME + "\n",
    "a pattern": "*" * 32,
    "a key": "}:game{" + "0" * 25,
    "capitals": "F" * 32,
    "other digits": "٣" * 32,
    "right to left": "\u202e" + "0" * 31,
    "astral": "\U0001f600" * 32,
    "long": "0" * 100_000,
}


@each_of("text", STRANGE_TEXTS.values(), ids=STRANGE_TEXTS)
@each_of("rpc", WITH_GAME_ID)
@pytest.mark.asyncio(loop_scope="module")
async def test_an_invalid_game_id_is_named(scene: Scene, rpc: str, text: str) -> None:
    request = copy.deepcopy(usual_requests(scene)[rpc])
    request.ClearField("game_id")
    request.MergeFrom(type(request)(game_id=text))
    refusal = await refused(scene, rpc, request, scene.game.as_seat(scene.seat), scene.seat)
    assert reason_of(refusal) == ("INVALID_ARGUMENT", "FIELD_INVALID")
    assert field_violations(refusal) == ["game_id"]


@each_of(
    "name",
    [
        *["", " ", " Eve", "Eve ", "E\0e", "E\ne", "\u202eEve", "E\u200be", "\x7f", "x" * 41, "\ue000", "x" * 100_000],
        *[
            "\u200dEve",
            "Eve\u200c",
            "\u200d",
            "\u3164",
            "\ufe0f",
            "\u2800 \u2800",
            "e\u0301" * 41,
            "e" + "\u0301" * 100_000,
        ],
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_name_that_cannot_be_shown_is_refused(scene: Scene, name: str) -> None:
    refusal = await refused(scene, "JoinGame", gs.JoinGameRequest(game_id=scene.game.game_id, name=name))
    assert reason_of(refusal) == ("INVALID_ARGUMENT", "FIELD_INVALID")
    assert field_violations(refusal) == ["name"]


@each_of("request_id", ["short", "x" * 65, "with a space", "tab\ttab\t", "nul\0nul\0", "ümlautümlaut", "x" * 8 + "\n"])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_request_id_of_another_form_is_refused(scene: Scene, request_id: str) -> None:
    for rpc in ("CreateGame", "JoinGame", "JoinOrCreateGame", *MUTATING):
        request = copy.deepcopy(usual_requests(scene)[rpc])
        request.MergeFrom(type(request)(request_id=request_id))
        refusal = await refused(scene, rpc, request, scene.game.as_seat(scene.seat), scene.seat)
        assert reason_of(refusal) == ("INVALID_ARGUMENT", "FIELD_INVALID")
        assert field_violations(refusal) == ["request_id"]


@each_of("rpc", ["ListGames", "ListChanges", "ListRulesets"])
@pytest.mark.asyncio(loop_scope="module")
async def test_an_invalid_page_token_is_rejected(scene: Scene, rpc: str) -> None:
    usual = usual_requests(scene)[rpc]
    for field, value in (
        ("page_token", "?"),
        ("page_token", "LTE="),  # -1
        ("page_token", "Kg=="),  # *
        ("page_token", "AAAA"),
        ("page_token", "=" * 4),
        ("page_token", "٣٣٣٣"),
        ("page_token", "x" * 100_000),
    ):
        request = copy.deepcopy(usual)
        request.MergeFrom(type(request)(**{field: value}))
        refusal = await refused(scene, rpc, request)
        assert reason_of(refusal) == ("INVALID_ARGUMENT", "FIELD_INVALID"), value
        assert field_violations(refusal) == [field]


# Store down


@pytest_asyncio.fixture
async def away() -> AsyncIterator[RedisServer]:
    """A Redis that the test stops."""
    server = RedisServer()
    server.start()
    yield server
    server.close()


@pytest_asyncio.fixture
async def scene_on_away(away: RedisServer) -> AsyncIterator[Scene]:
    clock = FakeClock()
    store = redis_store(away.url, clock)
    with redis.Redis.from_url(away.url) as keys:
        async with running_server(store, settings_of_tests()) as (_, client):
            yield await scene_on(client, store, clock, lambda: kept_in_redis(keys))
    await store.close()


async def test_calls_report_that_the_store_is_down(scene_on_away: Scene, away: RedisServer) -> None:
    scene = scene_on_away
    before = scene.stored()
    assert before
    secrets = scene.secrets(viewer=scene.seat)
    away.stop()
    for rpc in ON_GAMES:
        data = usual_requests(scene)[rpc].SerializeToString()
        metadata = scene.game.as_seat(scene.seat) if rpc in OF_A_SEAT else ()
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await send_raw(scene.client, RPCS[rpc], data, metadata)
        assert reason_of(refusal.value) == ("UNAVAILABLE", "STORE_UNAVAILABLE"), rpc
        assert [name for name, secret in secrets.items() if secret in told(refusal.value)] == []
    away.start()
    assert scene.stored() == before
    drawn = await scene.game.draw()
    assert drawn.game.revision == scene.revision + 1


# Random requests


NEVER = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def target() -> AsyncIterator[Scene]:
    """A server whose games may change."""
    clock = FakeClock()
    store = memory_store(clock)
    async with running_server(store, settings_of_tests()) as (_, client):
        yield await scene_on(client, store, clock, lambda: kept_in_memory(store))


async def code_of(client: Client, rpc: str, data: bytes, metadata: Metadata) -> grpc.StatusCode:
    try:
        await send_raw(client, RPCS[rpc], data, metadata)
    except grpc.aio.AioRpcError as refusal:
        return refusal.code()
    return grpc.StatusCode.OK


@given(data=st.binary(max_size=64))
@settings(max_examples=30, derandomize=True, deadline=None, database=None)
@pytest.mark.asyncio(loop_scope="module")
async def test_random_bytes_are_never_an_internal_error(target: Scene, data: bytes) -> None:
    metadata = target.game.as_seat(target.seat)
    codes = {rpc: await code_of(target.client, rpc, data, metadata) for rpc in RPCS}
    assert {rpc: code for rpc, code in codes.items() if code in NEVER} == {}


@st.composite
def edits(draw: st.DrawFn) -> list[tuple[int, int, bytes]]:
    """Edits of bytes: position, number of bytes to remove, bytes to insert."""
    edit = st.tuples(st.integers(0, 60), st.integers(0, 4), st.binary(max_size=4))
    return draw(st.lists(edit, min_size=1, max_size=3))


def edited(data: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    for place, cut, put in changes:
        at = place % (len(data) + 1)
        data = data[:at] + put + data[at + cut :]
    return data


@given(changes=edits())
@settings(max_examples=30, derandomize=True, deadline=None, database=None)
@pytest.mark.asyncio(loop_scope="module")
async def test_an_edited_request_is_never_an_internal_error(
    target: Scene, changes: list[tuple[int, int, bytes]]
) -> None:
    metadata = target.game.as_seat(target.seat)
    codes = {}
    for rpc, request in usual_requests(target).items():
        codes[rpc] = await code_of(target.client, rpc, edited(request.SerializeToString(), changes), metadata)
    assert {rpc: code for rpc, code in codes.items() if code in NEVER} == {}


EXTREMES: dict[int, list[int]] = {
    FieldDescriptor.TYPE_INT32: [0, 1, -1, 2**31 - 1, -(2**31)],
    FieldDescriptor.TYPE_INT64: [0, 1, -1, 2**63 - 1, -(2**63)],
    FieldDescriptor.TYPE_UINT32: [0, 1, 2, 100, 2**32 - 1],
    FieldDescriptor.TYPE_SINT32: [0, -1, 2**31 - 1],
    FieldDescriptor.TYPE_BOOL: [False, True],
    FieldDescriptor.TYPE_ENUM: [0, 1, 2, 3, 53, 54, 79, 80, -1, 2**31 - 1],
}


def messages(descriptor: Descriptor, depth: int = 0) -> st.SearchStrategy[Message]:
    """Well-formed messages with unusual values."""
    made = message_factory.GetMessageClass(descriptor)
    fields = {field.name: values(field, depth) for field in descriptor.fields if depth < 4 or not field.message_type}
    return st.fixed_dictionaries({}, optional=fields).map(lambda chosen: made(**without_rivals(descriptor, chosen)))


def without_rivals(descriptor: Descriptor, chosen: dict[str, object]) -> dict[str, object]:
    """Keeps at most one field of each oneof; the last one would win anyway."""
    last = {}
    for name in chosen:
        oneof = descriptor.fields_by_name[name].containing_oneof
        last[oneof.name if oneof else name] = name
    return {name: chosen[name] for name in last.values()}


def values(field: FieldDescriptor, depth: int) -> st.SearchStrategy[object]:
    one: st.SearchStrategy[object]
    if field.message_type and field.message_type.GetOptions().map_entry:
        return st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=3)
    if field.message_type:
        one = messages(field.message_type, depth + 1)
    elif field.type == FieldDescriptor.TYPE_STRING:
        one = st.sampled_from([*STRANGE_TEXTS.values(), "x" * 8, "Eve", "1" * 32]) | st.text(max_size=8)
    elif field.type == FieldDescriptor.TYPE_BYTES:
        one = st.binary(max_size=8)
    else:
        one = st.sampled_from(EXTREMES[field.type])
    return st.lists(one, max_size=3) if field.is_repeated else one


@pytest.mark.parametrize("rpc", RPCS)
@given(data=st.data())
@settings(max_examples=8, derandomize=True, deadline=None, database=None)
@pytest.mark.asyncio(loop_scope="module")
async def test_unusual_values_are_never_an_internal_error(target: Scene, rpc: str, data: st.DataObject) -> None:
    request = data.draw(messages(RPCS[rpc].input_type))
    metadata: Metadata = ()
    if (rpc in WITH_GAME_ID or rpc in {"SuggestTurn", "ReviewGame"}) and data.draw(st.integers(0, 9)):
        game = await target.client.new_game(start=data.draw(st.booleans()))
        seen = await game.see()
        request.MergeFrom(type(request)(game_id=game.game_id))
        if rpc in {"PlayTurn", "SaveDraft"} and data.draw(st.integers(0, 9)):
            request.MergeFrom(type(request)(etag=seen.etag))
        metadata = game.as_seat(data.draw(st.sampled_from([seen.turn.seat, 0, 1, 2])))
    assert await code_of(target.client, rpc, request.SerializeToString(), metadata) not in NEVER
