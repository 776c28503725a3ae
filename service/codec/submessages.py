"""Counts what encoded requests contain, before they are decoded. An empty submessage grows from 2 to 100 bytes."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from google.protobuf.message import Message

_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
_FIXED_BYTES: Final = {_FIXED64: 8, _FIXED32: 4}
_GROUPS: Final = (3, 4)
"""The wire types of a group's begin and end, whose content is read as if it were outside of the group."""


def numbers_of(message_type: type[Message], path: str) -> tuple[int, ...]:
    """Returns the field numbers of a path in a message, such as `record.moves`."""
    message: Any = message_type.DESCRIPTOR
    numbers = []
    for name in path.split("."):
        field = message.fields_by_name[name]
        numbers.append(field.number)
        message = field.message_type
    return tuple(numbers)


def first_excess(data: bytes, most: Mapping[tuple[int, ...], int]) -> tuple[int, ...] | None:
    """Returns the path whose repeated field has too many elements, if any; of malformed bytes, of those before.

    Args:
        data: The encoded message.
        most: How many elements there may be, by the path from the message to the field. None is within another.
    """
    left = dict(most)
    for path in _elements(data, 0, len(data), frozenset(most), ()):
        left[path] -= 1
        if left[path] < 0:
            return path
    return None


def has_too_many_fields(data: bytes, message_type: type[Message], submessages: int, fields: int) -> bool:
    """Returns whether an encoded message has too many submessages or fields, at any depth. As `first_excess` otherwise.

    Args:
        data: The encoded message.
        message_type: Its type.
        submessages: How many submessages there may be.
        fields: How many fields there may be, unknown ones too. They bound the time of the count.
    """
    for place, is_submessage in enumerate(_walk(data, 0, len(data), message_type.DESCRIPTOR), 1):
        submessages -= is_submessage
        if submessages < 0 or place > fields:
            return True
    return False


def _walk(data: bytes, start: int, end: int, message: Any) -> Iterator[bool]:  # noqa: ANN401 - a descriptor
    """Yields for each field, and those in it, whether it is a submessage."""
    for number, first, last in _fields(data, start, end):
        field = message.fields_by_number.get(number)
        if first is None or field is None or field.message_type is None:
            yield False
        else:
            yield True
            yield from _walk(data, first, last, field.message_type)


def _elements(
    data: bytes, start: int, end: int, paths: frozenset[tuple[int, ...]], above: tuple[int, ...]
) -> Iterator[tuple[int, ...]]:
    """Yields the path of each element of the fields at some paths."""
    for number, first, last in _fields(data, start, end):
        path = (*above, number)
        if first is None:
            continue
        if path in paths:
            yield path
        elif any(one[: len(path)] == path for one in paths):
            yield from _elements(data, first, last, paths, path)


def _fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int | None, int]]:
    """Yields number, begin and end of each field, until the bytes are malformed. One without a length has no begin."""
    place = start
    while place < end:
        tag, place = _varint(data, place, end)
        wire_type = tag & 7
        if wire_type == _DELIMITED:
            length, place = _varint(data, place, end)
            if place + length > end:
                return
            yield tag >> 3, place, place + length
            place += length
            continue
        if wire_type == _VARINT:
            _, place = _varint(data, place, end)
        elif wire_type in _FIXED_BYTES:
            place += _FIXED_BYTES[wire_type]
        elif wire_type not in _GROUPS:
            return
        yield tag >> 3, None, place


def _varint(data: bytes, place: int, end: int) -> tuple[int, int]:
    """Returns a number and the place after it; the end of the bytes if they end within it."""
    number, shift = 0, 0
    while place < end:
        byte = data[place]
        place += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, place
        shift += 7
    return number, end
