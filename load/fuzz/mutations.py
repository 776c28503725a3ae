"""Mutations of requests: of their fields, which stay well-formed messages, and of their bytes, which need not be."""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from support.malformed_protobuf import END_GROUP, START_GROUP, number, spoiled, unknown_fields, varint

MOST_BYTES: Final = 60_000
"""Most bytes of a mutated request: less than the window of a new HTTP/2 stream."""
MOST_ELEMENTS: Final = 150
"""Most elements that are put into a list at once; requests may have up to 128 of most kinds."""
MOST_DEPTH: Final = 6
"""The depth of made messages; deeper ones come from nested bytes."""
_F: Final = FieldDescriptor
_SIGNED: Final = {_F.TYPE_INT32: 31, _F.TYPE_SINT32: 31, _F.TYPE_SFIXED32: 31}
_SIGNED_LONG: Final = {_F.TYPE_INT64: 63, _F.TYPE_SINT64: 63, _F.TYPE_SFIXED64: 63}
_UNSIGNED: Final = {_F.TYPE_UINT32: 32, _F.TYPE_FIXED32: 32, _F.TYPE_UINT64: 64, _F.TYPE_FIXED64: 64}
TEXTS: Final = (
    *("", "\0", " ", "\n", "0" * 32, "f" * 32, "F" * 32, "0" * 31, "٣" * 32, "\u202e" + "0" * 31, "\U0001f600" * 20),
    *("x" * 41, "x" * 65, "x" * 2_001, "e" + "\u0301" * 40, "\u200d", "\ue000", "*", "}:game{", "-1", "1e9", "NaN"),
    *("AAAAAA", "AAAA", "LTE=", "Kg==", "====", "a.b.c", "1-" + "0" * 32, "9999999999-" + "0" * 32, "A" * 43, "w" * 22),
    *("[R3 R4 R5] + *{R6}", ". + {}", "{", "}", "[", "[[[[", "R14", "J" * 130, "*" * 99, "en", "de-DE", "xx-" * 9),
)
"""Strange texts, and texts in the forms that fields have."""


def all_messages(message: Message) -> Iterator[Message]:
    """Yields a message and all that are in it, apart from the entries of maps."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        for one in value if field.is_repeated else (value,):
            yield from all_messages(one)


class Mutator:
    """Mutates messages.

    Args:
        rng: The source of randomness.
        donors: Messages whose parts are put into others.
    """

    def __init__(self, rng: random.Random, donors: Sequence[Message] = ()) -> None:
        self.rng = rng
        self._parts: dict[str, list[Message]] = {}
        self._texts: list[str] = list(TEXTS)
        self.hints: Mapping[str, str] = {}
        """Present values of text fields by name: ids and etags of games that there are."""
        for donor in donors:
            for part in all_messages(donor):
                self._parts.setdefault(part.DESCRIPTOR.full_name, []).append(part)
                for field, value in part.ListFields():
                    if field.type == _F.TYPE_STRING and not field.is_repeated:
                        self._texts.append(value)

    def mutated(self, message: Message, most_edits: int = 4) -> bytes:
        """Returns the bytes of a message with a few edits; a third also has edits of its bytes."""
        copy = type(message)()
        copy.CopyFrom(message)
        for _ in range(self.rng.randint(0, most_edits)):
            self.edit(copy)
        data = copy.SerializeToString()
        if self.rng.random() < 0.35:
            data = self.edited_bytes(data)
        return data[:MOST_BYTES]

    def edit(self, message: Message) -> None:
        """Edits one field of a message or of one in it."""
        part = self.rng.choice(list(all_messages(message)))
        fields = cast("Sequence[FieldDescriptor]", part.DESCRIPTOR.fields)
        if not fields:
            return
        field = self.rng.choice(fields)
        if self.rng.random() < 0.15:
            part.ClearField(field.name)
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            self._edit_map(part, field)
        elif field.is_repeated:
            self._edit_list(part, field)
        else:
            self._set(part, field)

    def _set(self, part: Message, field: FieldDescriptor) -> None:
        if field.message_type is not None:
            target = getattr(part, field.name)
            target.SetInParent()
            if self.rng.random() < 0.8:
                target.CopyFrom(self._made(field.message_type, MOST_DEPTH))
        else:
            setattr(part, field.name, self._value(field, getattr(part, field.name)))

    def _edit_list(self, part: Message, field: FieldDescriptor) -> None:
        rng, values = self.rng, list(getattr(part, field.name))
        match rng.randrange(6):
            case 0 if values:
                del values[rng.randrange(len(values))]
            case 1 if values:
                values.insert(rng.randrange(len(values)), rng.choice(values))
            case 2:
                rng.shuffle(values)
            case 3 if values:
                values = (values * MOST_ELEMENTS)[: rng.choice((len(values) * 2, 129, MOST_ELEMENTS))]
            case 4:
                values += [self._element(field) for _ in range(rng.choice((1, 2, 3, 14, 105)))]
            case _:
                values.insert(rng.randint(0, len(values)), self._element(field))
        part.ClearField(field.name)
        getattr(part, field.name).extend(values)

    def _element(self, field: FieldDescriptor) -> Any:  # noqa: ANN401 - as the field's type
        return self._value(field, None) if field.message_type is None else self._made(field.message_type, MOST_DEPTH)

    def _edit_map(self, part: Message, field: FieldDescriptor) -> None:
        entry = field.message_type
        assert entry is not None  # noqa: S101 - for the type
        key, value = (entry.fields_by_name[name] for name in ("key", "value"))
        entries = getattr(part, field.name)
        for _ in range(self.rng.choice((1, 1, 9, 17))):
            if value.message_type is None:
                entries[self._value(key, None)] = self._value(value, None)
            else:
                entries[self._value(key, None)].CopyFrom(self._made(value.message_type, MOST_DEPTH))

    def _made(self, descriptor: Descriptor, depth: int) -> Message:
        """Returns a part of a donor, or a new message."""
        known = self._parts.get(descriptor.full_name)
        if known and self.rng.random() < 0.7:
            return self.rng.choice(known)
        made: Message = GetMessageClass(descriptor)()
        if depth:
            for field in self.rng.sample(list(descriptor.fields), min(len(descriptor.fields), self.rng.randint(0, 3))):
                if field.message_type is not None and field.message_type.GetOptions().map_entry:
                    self._edit_map(made, field)
                elif field.is_repeated:
                    getattr(made, field.name).extend(
                        self._made(field.message_type, depth - 1) if field.message_type else self._value(field, None)
                        for _ in range(self.rng.choice((1, 1, 2, 3, 14)))
                    )
                elif field.message_type is not None:
                    target = getattr(made, field.name)
                    target.SetInParent()
                    target.CopyFrom(self._made(field.message_type, depth - 1))
                else:
                    setattr(made, field.name, self._value(field, None))
        return made

    def _value(self, field: FieldDescriptor, present: Any) -> Any:  # noqa: ANN401 - a case for each type
        rng, kind = self.rng, field.type
        if kind == _F.TYPE_STRING:
            return self._text(field.name, present)
        if kind == _F.TYPE_BYTES:
            return rng.choice((b"", b"\0", rng.randbytes(8), rng.randbytes(32), bytes(1_025)))
        if kind == _F.TYPE_BOOL:
            return rng.random() < 0.5
        if kind == _F.TYPE_ENUM:
            if field.enum_type is not None and rng.random() < 0.85:
                return rng.choice(field.enum_type.values).number
            return rng.choice((-1, 99, 2**31 - 1, -(2**31), rng.randint(-200, 200)))
        if kind in {_F.TYPE_DOUBLE, _F.TYPE_FLOAT}:
            return rng.choice((0.0, -0.0, 1.0, -1.0, 1e38, 5e-324, float("inf"), float("-inf"), float("nan")))
        if kind in _UNSIGNED:
            least, most = 0, 2 ** _UNSIGNED[kind] - 1
        else:
            bits = _SIGNED.get(kind) or _SIGNED_LONG[kind]
            least, most = -(2**bits), 2**bits - 1
        near = (present or 0) + rng.choice((-1, 1))
        return max(least, min(most, rng.choice((0, 1, 2, -1, least, most, near, near, rng.randint(0, 120)))))

    def _text(self, name: str, present: str | None) -> str:
        rng = self.rng
        if name in self.hints and rng.random() < 0.6:
            return self.hints[name]
        if present and rng.random() < 0.5:
            place = rng.randint(0, len(present))
            put = rng.choice(("", *"0aZ-_ \0é\U0001f600{}[]*"))
            return f"{present[:place]}{put}{present[place + rng.randint(0, 2) :]}"
        return rng.choice(self._texts)

    def edited_bytes(self, data: bytes) -> bytes:
        """Returns bytes after one edit that need not keep them well-formed."""
        rng = self.rng
        match rng.randrange(8):
            case 0:
                return data[: rng.randint(0, len(data))]
            case 1:
                place = rng.randint(0, len(data))
                return data[:place] + unknown_fields(rng) + data[place:]
            case 2:
                return data + data
            case 3:
                nested = rng.choice((2, 50, 99, 101, 1_000))
                return data + varint(1 << 3 | START_GROUP) * nested + varint(1 << 3 | END_GROUP) * nested
            case 4:
                return data + number(rng.randint(1, 20), rng.choice((0, 1, -1, 2**31, 2**63)), rng.choice((0, 5, 9)))
            case 5:
                inner = data[:200]
                for _ in range(rng.choice((3, 98, 101, 300))):
                    inner = varint(rng.randint(1, 5) << 3 | 2) + varint(len(inner)) + inner
                return inner
            case _:
                return spoiled(data, rng)
