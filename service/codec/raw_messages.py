"""Messages of the validation hot path in which lists of tiles and nested messages stay bytes.

Every tile number is below 128, so the wire form of a packed `repeated Tile` is the bytes of the numbers. At import, the
message classes are derived from the contract's descriptors: lists of tiles and nested messages, except turns and
tables, become `bytes` fields, so a meld is the bytes that the client sent and serves as a cache key. Both kinds of
classes parse the same wire format. If `is_complete` is false, the contract's own messages must parse the request: its
tiles are not packed, or it has fields that are left out here.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol, cast

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from rummikub.v1 import validation_service_pb2 as pb
from rummikub.v1.meld_pb2 import Table
from rummikub.v1.turn_service_pb2 import PlayTiles, PlayTurnRequest, PlayTurnResponse


class RawTable(Protocol):
    """Table."""

    melds: Sequence[bytes]
    placements: Sequence[bytes]


class RawTurn(Protocol):
    """ValidateTurnRequest without the River. Senders may split rulesets and lists into parts, to be joined."""

    ruleset: Sequence[bytes]
    table_before: RawTable
    table_after: RawTable
    rack: Sequence[bytes]
    has_melded: bool
    HasField: Callable[[str], bool]
    tile_drawn: int
    calls_rummikub: bool


class RawMelds(Protocol):
    """ValidateMeldsRequest."""

    ruleset: Sequence[bytes]
    melds: Sequence[bytes]


class RawBatch(Protocol):
    """BatchValidateTurnsRequest."""

    ruleset: Sequence[bytes]
    turns: Sequence[RawTurn]


class RawStreamTurn(Protocol):
    """StreamValidateTurnsRequest."""

    turn: RawTurn
    correlation_id: str


_PACKAGE: Final = "rummikub.raw"
_NESTED: Final = {
    f".{message.DESCRIPTOR.full_name}": f".{_PACKAGE}.{message.DESCRIPTOR.name}"
    for message in (Table, pb.ValidateTurnRequest)
}
"""The nested messages that are parsed: names of the contract, and of this package."""

LEFT_OUT: Final = {"river", "river_index"}
"""Rare fields that are not parsed. A message that has them is not complete."""


def _derived(requests: Sequence[type[Message]], responses: Sequence[type[Message]]) -> dict[str, Any]:
    """Returns raw message classes by name.

    In requests, lists of tiles and nested messages are repeated bytes because they may come in parts. In responses, a
    list of tiles is one part.
    """
    file = FileDescriptorProto(name="rummikub/raw.proto", package=_PACKAGE, syntax="proto3")
    labels = dict.fromkeys(requests, FieldDescriptorProto.LABEL_REPEATED)
    labels |= dict.fromkeys(responses, FieldDescriptorProto.LABEL_OPTIONAL)
    for contract, label in labels.items():
        message = file.message_type.add(name=contract.DESCRIPTOR.name)
        original = DescriptorProto()
        contract.DESCRIPTOR.CopyToProto(original)
        message.field.extend(_raw_field(field, label) for field in original.field if field.name not in LEFT_OUT)
        for optional in (field for field in message.field if field.proto3_optional):
            optional.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{optional.name}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    names = (message.name for message in file.message_type)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in names}


def _raw_field(field: FieldDescriptorProto, tile_label: FieldDescriptorProto.Label.ValueType) -> FieldDescriptorProto:
    """Changes and returns a field: messages and lists of tiles become bytes, a single enum a number."""
    is_list = field.label == FieldDescriptorProto.LABEL_REPEATED
    if field.type_name in _NESTED and tile_label == FieldDescriptorProto.LABEL_REPEATED:
        field.type_name = _NESTED[field.type_name]
        return field
    if field.type == FieldDescriptorProto.TYPE_MESSAGE:
        field.type, field.label = FieldDescriptorProto.TYPE_BYTES, FieldDescriptorProto.LABEL_REPEATED
    elif field.type == FieldDescriptorProto.TYPE_ENUM and is_list:
        field.type, field.label = FieldDescriptorProto.TYPE_BYTES, tile_label
    elif field.type == FieldDescriptorProto.TYPE_ENUM:
        field.type = FieldDescriptorProto.TYPE_INT32
    field.ClearField("type_name")
    field.ClearField("oneof_index")  # a repeated field is in no oneof; an optional one gets its own
    return field


_CLASSES: Final = _derived(
    requests=(
        Table,
        pb.ValidateTurnRequest,
        pb.ValidateMeldsRequest,
        pb.BatchValidateTurnsRequest,
        pb.StreamValidateTurnsRequest,
        PlayTiles,
        PlayTurnRequest,
    ),
    responses=(
        pb.ValidateTurnResponse,
        pb.ValidateMeldsResponse,
        pb.BatchValidateTurnsResponse,
        pb.StreamValidateTurnsResponse,
        PlayTurnResponse,
    ),
)

_TURN_RESPONSE: Final = _CLASSES["ValidateTurnResponse"]
_MELDS_RESPONSE: Final = _CLASSES["ValidateMeldsResponse"]
_BATCH_RESPONSE: Final = _CLASSES["BatchValidateTurnsResponse"]
_STREAM_RESPONSE: Final = _CLASSES["StreamValidateTurnsResponse"]
_PLAY_RESPONSE: Final = _CLASSES["PlayTurnResponse"]
_PLAY_REQUEST: Final = _CLASSES["PlayTurnRequest"]


parse_turn: Final[Callable[[bytes], RawTurn]] = _CLASSES["ValidateTurnRequest"].FromString
"""Parses a ValidateTurnRequest. Raises DecodeError."""

parse_melds: Final[Callable[[bytes], RawMelds]] = _CLASSES["ValidateMeldsRequest"].FromString
"""Parses a ValidateMeldsRequest. Raises DecodeError."""

parse_batch: Final[Callable[[bytes], RawBatch]] = _CLASSES["BatchValidateTurnsRequest"].FromString
"""Parses a BatchValidateTurnsRequest. Raises DecodeError."""

parse_stream_turn: Final[Callable[[bytes], RawStreamTurn]] = _CLASSES["StreamValidateTurnsRequest"].FromString
"""Parses a StreamValidateTurnsRequest. Raises DecodeError."""


def melds_of_request(data: bytes) -> Sequence[bytes]:
    """Returns the encoded melds of a PlayTurnRequest's play; none if the play was sent in parts."""
    parts = _PLAY_REQUEST.FromString(data).play
    return cast("Sequence[bytes]", _CLASSES["PlayTiles"].FromString(parts[0]).table.melds) if len(parts) == 1 else ()


def melds_of_play(play: PlayTiles) -> Sequence[bytes]:
    """Returns the encoded melds of a play."""
    return [meld.SerializeToString() for meld in play.table.melds]


def is_complete(message: Any) -> bool:  # noqa: ANN401 - any of these
    """Returns whether a message was parsed without unknown fields, to which unpacked tiles belong."""
    return not len(UnknownFieldSet(message))


def encode_turn_response(played: Sequence[int], points: int, left: Sequence[int], violations: Sequence[bytes]) -> bytes:
    """Returns a ValidateTurnResponse with encoded violations."""
    message = _TURN_RESPONSE(tiles_played=bytes(played), points=points, rack_left=bytes(left))
    if violations:
        message.violations.extend(violations)
    elif not left:
        message.goes_out = True
    data: bytes = message.SerializeToString()
    return data


def encode_melds_response(readings: Iterable[bytes]) -> bytes:
    """Returns a ValidateMeldsResponse with encoded readings."""
    return cast("bytes", _MELDS_RESPONSE(melds=readings).SerializeToString())


def encode_batch_response(turns: Iterable[bytes]) -> bytes:
    """Returns a BatchValidateTurnsResponse with encoded turns."""
    return cast("bytes", _BATCH_RESPONSE(turns=turns).SerializeToString())


def encode_stream_response(turn: bytes, correlation_id: str) -> bytes:
    """Returns a StreamValidateTurnsResponse with an encoded turn."""
    return cast("bytes", _STREAM_RESPONSE(turn=(turn,), correlation_id=correlation_id).SerializeToString())


def encode_play_response(game: bytes, others: PlayTurnResponse) -> bytes:
    """Returns a PlayTurnResponse with an encoded game and the other fields of `others`."""
    return cast("bytes", _PLAY_RESPONSE(game=(game,)).SerializeToString()) + others.SerializeToString()
