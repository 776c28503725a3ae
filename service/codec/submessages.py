"""Counts of submessages in encoded requests. An empty one has two bytes, and takes 50 times as much when decoded."""

from collections.abc import Iterator
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


def has_more(data: bytes, numbers: tuple[int, ...], most: int) -> bool:
    """Returns whether the repeated field at a path has more than `most` elements; of malformed bytes, of those before.

    Args:
        data: The encoded message.
        numbers: The path, from the message to the field.
        most: How many elements there may be. The count stops after one more.
    """
    elements = _elements(data, 0, len(data), numbers)
    return any(count > most for count, _ in enumerate(elements, 1))


def exceeds(data: bytes, message_type: type[Message], most: int) -> bool:
    """Returns whether an encoded message has more than `most` submessages, at any depth. As `has_more` otherwise."""
    submessages = _submessages(data, 0, len(data), message_type.DESCRIPTOR)
    return any(count > most for count, _ in enumerate(submessages, 1))


def _submessages(data: bytes, start: int, end: int, message: Any) -> Iterator[None]:  # noqa: ANN401 - a descriptor
    """Yields for each submessage, and those in it."""
    for number, first, last in _delimited(data, start, end):
        field = message.fields_by_number.get(number)
        if field is not None and field.message_type is not None:
            yield None
            yield from _submessages(data, first, last, field.message_type)


def _elements(data: bytes, start: int, end: int, numbers: tuple[int, ...]) -> Iterator[None]:
    """Yields for each element of the field at a path."""
    for number, first, last in _delimited(data, start, end):
        if number == numbers[0]:
            if len(numbers) == 1:
                yield None
            else:
                yield from _elements(data, first, last, numbers[1:])


def _delimited(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yields number, begin and end of each field with a length, until the bytes are malformed."""
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
        elif wire_type == _VARINT:
            _, place = _varint(data, place, end)
        elif wire_type in _FIXED_BYTES:
            place += _FIXED_BYTES[wire_type]
        elif wire_type not in _GROUPS:
            return


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
