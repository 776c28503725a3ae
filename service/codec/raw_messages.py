"""The messages of the validation hot path, read and written without a list of tiles ever being built.

A packed `repeated Tile` is, on the wire, the bytes of its numbers, as all of them are below 128. So these messages are
those of the contract, derived from its descriptors when the module is loaded, with every list of tiles and every
message inside, but for turns, as bytes: a meld is the bytes that a client sent for it, and is looked up by them. What
such a reading cannot tell (`is_whole`: tiles that were not packed, and numbers that are no tiles) is left to the
contract's own messages. Both read the same bytes.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol, cast

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from rummikub.v1 import validation_service_pb2 as pb
from rummikub.v1.turn_service_pb2 import PlayTiles, PlayTurnRequest, PlayTurnResponse


class PackedTurn(Protocol):
    """ValidateTurnRequest but for the River. A message inside, and a list of tiles, may come in parts, to be joined."""

    ruleset: Sequence[bytes]
    table_before: Sequence[bytes]
    table_after: Sequence[bytes]
    rack: Sequence[bytes]
    has_melded: bool
    tile_drawn: int
    calls_rummikub: bool


class PackedMelds(Protocol):
    """ValidateMeldsRequest."""

    ruleset: Sequence[bytes]
    melds: Sequence[bytes]


class PackedBatch(Protocol):
    """BatchValidateTurnsRequest."""

    ruleset: Sequence[bytes]
    turns: Sequence[PackedTurn]


class PackedStreamTurn(Protocol):
    """StreamValidateTurnsRequest."""

    turn: PackedTurn
    correlation_id: str


_PACKAGE: Final = "rummikub.packed"
_CONTRACTS_TURN: Final = f".{pb.ValidateTurnRequest.DESCRIPTOR.full_name}"
_TURN: Final = f".{_PACKAGE}.{pb.ValidateTurnRequest.DESCRIPTOR.name}"

LEFT_OUT: Final = {"river", "river_index"}
"""Fields that hardly a request has, and that are not read: a message that has them is not whole."""


def _derived(read: Sequence[type[Message]], written: Sequence[type[Message]]) -> dict[str, Any]:
    """Message classes for messages of the contract, with lists of tiles and messages as bytes, and enums as numbers.

    Turns inside are messages. What is read otherwise may come in parts, so it is a list of bytes. Of what is written, a
    list of tiles is one part.
    """
    file = FileDescriptorProto(name="rummikub/packed.proto", package=_PACKAGE, syntax="proto3")
    labels = dict.fromkeys(read, FieldDescriptorProto.LABEL_REPEATED)
    labels |= dict.fromkeys(written, FieldDescriptorProto.LABEL_OPTIONAL)
    for contract, label in labels.items():
        message = file.message_type.add(name=contract.DESCRIPTOR.name)
        original = DescriptorProto()
        contract.DESCRIPTOR.CopyToProto(original)
        message.field.extend(_packed(field, label) for field in original.field if field.name not in LEFT_OUT)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    names = (message.name for message in file.message_type)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in names}


def _packed(field: FieldDescriptorProto, tiles: FieldDescriptorProto.Label.ValueType) -> FieldDescriptorProto:
    is_list = field.label == FieldDescriptorProto.LABEL_REPEATED
    if field.type_name == _CONTRACTS_TURN:
        field.type_name = _TURN
        return field
    if field.type == FieldDescriptorProto.TYPE_MESSAGE:
        field.type, field.label = FieldDescriptorProto.TYPE_BYTES, FieldDescriptorProto.LABEL_REPEATED
    elif field.type == FieldDescriptorProto.TYPE_ENUM and is_list:
        field.type, field.label = FieldDescriptorProto.TYPE_BYTES, tiles
    elif field.type == FieldDescriptorProto.TYPE_ENUM:
        field.type = FieldDescriptorProto.TYPE_INT32
    field.ClearField("type_name")
    field.ClearField("oneof_index")  # a repeated field is in no oneof
    return field


_CLASSES: Final = _derived(
    read=(
        pb.ValidateTurnRequest,
        pb.ValidateMeldsRequest,
        pb.BatchValidateTurnsRequest,
        pb.StreamValidateTurnsRequest,
        PlayTiles,
        PlayTurnRequest,
    ),
    written=(
        pb.ValidateTurnResponse,
        pb.ValidateMeldsResponse,
        pb.BatchValidateTurnsResponse,
        pb.StreamValidateTurnsResponse,
        PlayTurnResponse,
    ),
)

_TURN_ANSWER: Final = _CLASSES["ValidateTurnResponse"]
_MELDS_ANSWER: Final = _CLASSES["ValidateMeldsResponse"]
_BATCH_ANSWER: Final = _CLASSES["BatchValidateTurnsResponse"]
_STREAM_ANSWER: Final = _CLASSES["StreamValidateTurnsResponse"]
_PLAYED: Final = _CLASSES["PlayTurnResponse"]
_PLAY_TURN: Final = _CLASSES["PlayTurnRequest"]


turn: Final[Callable[[bytes], PackedTurn]] = _CLASSES["ValidateTurnRequest"].FromString
"""A turn. Raises DecodeError."""

melds: Final[Callable[[bytes], PackedMelds]] = _CLASSES["ValidateMeldsRequest"].FromString
"""Melds. Raises DecodeError."""

batch: Final[Callable[[bytes], PackedBatch]] = _CLASSES["BatchValidateTurnsRequest"].FromString
"""A batch. Raises DecodeError."""

stream_turn: Final[Callable[[bytes], PackedStreamTurn]] = _CLASSES["StreamValidateTurnsRequest"].FromString
"""A turn of a stream. Raises DecodeError."""


def melds_played(turn: bytes) -> Sequence[bytes]:
    """Returns the melds of a PlayTurnRequest's play, each as it was sent; none if the play was sent in parts."""
    parts = _PLAY_TURN.FromString(turn).play
    return cast("Sequence[bytes]", _CLASSES["PlayTiles"].FromString(parts[0]).table) if len(parts) == 1 else ()


def melds_of(play: PlayTiles) -> Sequence[bytes]:
    """Returns the melds of a play."""
    return [meld.SerializeToString() for meld in play.table]


def is_whole(message: Any) -> bool:  # noqa: ANN401 - any of these
    """Whether all that was sent is in a message: tiles that were not packed are not, nor fields of later contracts."""
    return not len(UnknownFieldSet(message))


def turn_answer(played: Sequence[int], points: int, left: Sequence[int], violations: Sequence[bytes] = ()) -> bytes:
    """ValidateTurnResponse: the tiles played, their points, the tiles left, and violations, none of a legal turn."""
    message = _TURN_ANSWER(tiles_played=bytes(played), points=points, rack_left=bytes(left))
    if violations:
        message.violations.extend(violations)
    elif not left:
        message.goes_out = True
    data: bytes = message.SerializeToString()
    return data


def melds_answer(readings: Iterable[bytes]) -> bytes:
    """ValidateMeldsResponse of its readings."""
    return cast("bytes", _MELDS_ANSWER(melds=readings).SerializeToString())


def batch_answer(turns: Iterable[bytes]) -> bytes:
    """BatchValidateTurnsResponse of its turns."""
    return cast("bytes", _BATCH_ANSWER(turns=turns).SerializeToString())


def stream_answer(turn_answer: bytes, correlation_id: str) -> bytes:
    """StreamValidateTurnsResponse of its turn."""
    return cast("bytes", _STREAM_ANSWER(turn=(turn_answer,), correlation_id=correlation_id).SerializeToString())


def played_answer(game: bytes, others: PlayTurnResponse) -> bytes:
    """PlayTurnResponse of its game, which may be encoded already, and what else it says."""
    return cast("bytes", _PLAYED(game=(game,)).SerializeToString()) + others.SerializeToString()
