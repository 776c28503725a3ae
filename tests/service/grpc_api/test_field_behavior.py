"""`google.api.field_behavior`: required fields are refused when they are missing, optional ones are not."""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import grpc.aio
import pytest
import pytest_asyncio
from google.api import field_behavior_pb2
from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor, OneofDescriptor
from google.protobuf.message import Message

from rummikub.v1 import tile_pb2
from support.harness import (
    CONTRACT,
    Client,
    GameAtHand,
    error_info,
    field_violations,
    first_answer,
    memory_store,
    running_server,
)
from support.rpcs import USUAL

Path = tuple[FieldDescriptor | OneofDescriptor, ...]
"""A field in a request: the fields that lead to it, and itself."""

RPCS: list[MethodDescriptor] = [rpc for service in CONTRACT for rpc in service.methods]

SIMPLE = {name: value for fields in USUAL.values() for name, value in fields.items() if isinstance(value, str | int)}
VALUES: dict[str, Callable[[GameAtHand], Any]] = {
    **{name: partial(lambda value, _: value, value) for name, value in SIMPLE.items()},
    "etag": lambda game: game.etag,
    "player_ref": lambda _: "a reference",
    "game_id": lambda game: game.game_id,
    "seat_token": lambda game: game.tokens[1],
    "racks": lambda _: USUAL["ScoreRound"]["racks"],
    "tile": lambda _: tile_pb2.TILE_RED_1,
    "tiles": lambda _: USUAL["ValidateHand"]["tiles"],
    "rack": lambda _: USUAL["ValidateDiscardTurn"]["rack"],
    "indicator": lambda _: USUAL["ValidateHand"]["indicator"],
    "turn_seat": lambda _: 1,
}
"""A valid value of each required field, and of a member of each oneof, by the field's name."""


def messages_of(rpcs: list[Descriptor]) -> set[Descriptor]:
    """Returns messages of the contract and all that they contain."""
    found = set(rpcs)
    while (
        more := {
            field.message_type
            for message in found
            for field in message.fields
            if field.message_type and field.message_type.file.package == "rummikub.v1"
        }
        - found
    ):
        found |= more
    return found


BY_DEFAULT = {
    *(f"rummikub.v1.{name}Request.indicator" for name in ("ValidateHand", "ValidateDiscardTurn")),
    *(f"rummikub.v1.{name}Request.name" for name in ("JoinGame", "JoinOrCreateGame")),
    *(f"rummikub.v1.{name}OwnGamesRequest.seats" for name in ("List", "Watch", "Export")),
}
"""Fields that are required by default, but not always: games with jokers have no indicator, and a ticket has a name and
stands for seats."""

ONLY_IN_REQUESTS = messages_of([rpc.input_type for rpc in RPCS]) - messages_of([rpc.output_type for rpc in RPCS])
"""Messages that only clients send. Melds and rulesets are also sent by the server."""


def behaviors(field: FieldDescriptor) -> list[int]:
    return list(field.GetOptions().Extensions[field_behavior_pb2.field_behavior])


def is_required(field: FieldDescriptor) -> bool:
    return behaviors(field) == [field_behavior_pb2.REQUIRED] or field.full_name in BY_DEFAULT


def choices(message: Descriptor) -> list[OneofDescriptor]:
    """Returns the oneofs of which a member is required; `optional` makes others, and a ruleset has a default."""
    return [oneof for oneof in message.oneofs if not oneof.name.startswith("_") and message.name != "Ruleset"]


def required(message: Descriptor, before: Path = ()) -> Iterator[Path]:
    """Yields the required fields and oneofs of a message and of the messages in it."""
    for oneof in choices(message):
        yield (*before, oneof)
    for field in message.fields:
        if is_required(field):
            yield (*before, field)
        if field.message_type:
            yield from required(field.message_type, (*before, field))


REQUIRED = [(rpc, path) for rpc in RPCS if rpc.name != "ReissueSeatToken" for path in required(rpc.input_type)]
"""Without ReissueSeatToken, which is first refused for its right; test_errors.py has its required field."""


def member(oneof: OneofDescriptor) -> FieldDescriptor:
    """Returns the first member with a value, or else the first."""
    return next((field for field in oneof.fields if field.name in VALUES), oneof.fields[0])


def minimal(kind: Descriptor, game: GameAtHand, path: Path = ()) -> Message:
    """Returns a message with its required fields only, a member of each oneof, and the fields of a path."""
    message = message_factory.GetMessageClass(kind)()
    chosen = {member(oneof).name for oneof in choices(kind)}
    if path and isinstance(path[0], FieldDescriptor):
        siblings = path[0].containing_oneof.fields if path[0].containing_oneof else ()
        chosen = chosen - {field.name for field in siblings} | {path[0].name}
    for field in kind.fields:
        if is_required(field) or field.name in chosen:
            put(message, field, game, path[1:] if path and field.name == path[0].name else ())
    return message


def put(message: Message, field: FieldDescriptor, game: GameAtHand, path: Path) -> None:
    """Sets a field to its value in VALUES, or else to a minimal message."""
    if field.name in VALUES:
        value = VALUES[field.name](game)
    else:
        assert field.message_type, f"add a valid value of {field.full_name} to VALUES"
        value = minimal(field.message_type, game, path)
        value = [value] if field.is_repeated else value
    if isinstance(value, Message):
        getattr(message, field.name).CopyFrom(value)
        getattr(message, field.name).SetInParent()
    elif isinstance(value, list):
        getattr(message, field.name).extend(value)
    else:
        setattr(message, field.name, value)


def without(message: Message, path: Path) -> Message:
    """Clears the last field of a path, and returns the message."""
    inner = message
    for field in path[:-1]:
        inner = getattr(inner, field.name)[0] if is_list(field) else getattr(inner, field.name)
    inner.ClearField(path[-1].name)
    return message


def is_list(field: FieldDescriptor | OneofDescriptor) -> bool:
    return isinstance(field, FieldDescriptor) and field.is_repeated


def text(path: Path) -> str:
    """Returns a path as errors name it: `racks[0].seat`."""
    return ".".join([field.name + "[0]" * is_list(field) for field in path[:-1]] + [path[-1].name])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[Client]:
    async with running_server(memory_store()) as (_, client):
        yield client


def test_every_field_of_a_request_is_required_or_optional() -> None:
    allowed = ([field_behavior_pb2.REQUIRED], [field_behavior_pb2.OPTIONAL])
    messages = [message for message in ONLY_IN_REQUESTS if not message.GetOptions().map_entry]
    fields = [field for message in messages for field in message.fields]
    assert len(fields) > 90
    assert [field.full_name for field in fields if behaviors(field) not in allowed] == []


@pytest.mark.parametrize("rpc", RPCS, ids=lambda rpc: rpc.name)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_request_without_its_optional_fields_is_valid(client: Client, rpc: MethodDescriptor) -> None:
    game = await client.new_game()
    request = minimal(rpc.input_type, game)
    metadata = game.as_seat(1) if "game_id" in rpc.input_type.fields_by_name else ()
    missing: list[str] = []
    try:
        await first_answer(client.channel, rpc, request.SerializeToString(), metadata)
    except grpc.aio.AioRpcError as refusal:
        if error_info(refusal).reason in {"FIELD_INVALID", "TILE_UNKNOWN"}:
            missing = field_violations(refusal)
    assert missing == []


@pytest.mark.parametrize(("rpc", "path"), REQUIRED, ids=[f"{rpc.name}-{text(path)}" for rpc, path in REQUIRED])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_request_without_a_required_field_is_refused(client: Client, rpc: MethodDescriptor, path: Path) -> None:
    game = await client.new_game()
    request = without(minimal(rpc.input_type, game, path), path)
    metadata = game.as_seat(1) if "game_id" in rpc.input_type.fields_by_name else ()
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await first_answer(client.channel, rpc, request.SerializeToString(), metadata)
    if path[-1].name == "join_ticket":
        assert error_info(refusal.value).reason == "TICKET_REQUIRED", "as where a key requires tickets"
        return
    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    named, *others = field_violations(refusal.value)
    assert not others or text(path).startswith("position."), (
        "only a position is refused with what else is wrong with it"
    )
    assert named == text(path) or named.startswith(text(path) + "."), "the field, or one that is required in it"
    is_tile = getattr(path[-1], "enum_type", None) is tile_pb2.Tile.DESCRIPTOR and not is_list(path[-1])
    assert error_info(refusal.value).reason == ("TILE_UNKNOWN" if is_tile else "FIELD_INVALID")
