"""The names of the contract are neither keywords nor reserved members in the languages of its clients.

The lists are in support/reserved_names.toml.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from rummikub.v1.error_reason_pb2 import ErrorReason
from support.cases import each_of
from support.contract_files import FILES
from support.harness import CONTRACT, ROOT

RESERVED: dict[str, dict[str, dict[str, str]]] = tomllib.loads(
    (ROOT / "tests" / "support" / "reserved_names.toml").read_text(encoding="utf-8")
)
"""By language and kind of name: the form of a name, and the reserved ones in that form."""

ACCESSORS = ("add_", "clear_", "get_", "has_", "mutable_", "new_", "release_", "set_")
"""What generators put before a field's name."""
ACCESSORS_OF_LISTS = ("_array", "_count", "_list", "_size")
"""What generators put after the name of a repeated field."""


MESSAGES: list[Descriptor] = [message for file in FILES for message in file.message_types_by_name.values()]
ENUMS: list[EnumDescriptor] = [enum for file in FILES for enum in file.enum_types_by_name.values()]


def words(name: str) -> list[str]:
    """Splits a name: `draw_tile`, `DRAW_TILE` and `DrawTile` are `draw` and `tile`."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+(?![a-z])", name)]


def camel(name: str) -> str:
    first, *others = words(name)
    return first + "".join(map(str.capitalize, others))


FORMS: dict[str, Callable[[str], str]] = {
    "as_is": str,
    "snake": lambda name: "_".join(words(name)),
    "camel": camel,
    "pascal": lambda name: "".join(map(str.capitalize, words(name))),
    "any_case": str.lower,
}


def prefix(enum: EnumDescriptor) -> str:
    """Returns the prefix of an enum's values: `TURN_DRAW_` of TurnDraw."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", enum.name).upper() + "_"


def fields() -> Iterator[tuple[str, str]]:
    """Yields the name and the full name of each field and oneof."""
    for message in MESSAGES:
        for field in message.fields:
            yield field.name, field.full_name
        for oneof in message.oneofs:
            yield oneof.name, oneof.full_name


def values() -> Iterator[tuple[str, str]]:
    """Yields the name without its enum's prefix, and the name, of each enum value."""
    for enum in ENUMS:
        for value in enum.values:
            yield value.name.removeprefix(prefix(enum)), value.name


def types() -> Iterator[tuple[str, str]]:
    """Yields the name and the full name of each message, enum and service."""
    for message in MESSAGES:
        yield message.name, message.full_name
    for enum in ENUMS:
        yield enum.name, enum.full_name
    for service in CONTRACT:
        yield service.name, service.full_name


def rpcs() -> Iterator[tuple[str, str]]:
    """Yields the name and the full name of each RPC."""
    for service in CONTRACT:
        for rpc in service.methods:
            yield rpc.name, rpc.full_name


NAMES = {"fields": fields, "values": values, "types": types, "rpcs": rpcs}


@each_of("language, kind", [(language, kind) for language in RESERVED for kind in RESERVED[language]])
def test_no_name_is_reserved(language: str, kind: str) -> None:
    form, reserved = FORMS[RESERVED[language][kind]["form"]], set(RESERVED[language][kind]["names"].split())
    found = {full_name: form(name) for name, full_name in NAMES[kind]() if form(name) in reserved}
    assert found == {}, f"rename what is reserved in {language}"


def test_every_language_has_a_list() -> None:
    """The package options name most of them, the guide to clients the others."""
    assert set(RESERVED) == {
        "cpp",
        "csharp",
        "dart",
        "gdscript",
        "go",
        "java",
        "kotlin",
        "lua",
        "objective_c",
        "php",
        "python",
        "ruby",
        "rust",
        "swift",
        "typescript",
    }


def test_no_list_has_a_word_twice() -> None:
    assert len(list(fields())) > 300
    for language, kinds in RESERVED.items():
        for kind, listed in kinds.items():
            repeated = [word for word, count in Counter(listed["names"].split()).items() if count > 1]
            assert repeated == [], f"{language}.{kind}"


@pytest.mark.parametrize("name", ["end", "pass", "hash", "description", "default", "NONE", "Object", "class"])
def test_a_reserved_name_is_found(name: str) -> None:
    languages = {
        language
        for language, kinds in RESERVED.items()
        for listed in kinds.values()
        if FORMS[listed["form"]](name) in listed["names"].split()
    }
    assert languages


@each_of("message", MESSAGES, lambda message: message.name)
def test_no_field_is_named_like_an_accessor_of_another(message: Descriptor) -> None:
    names = {field.name for field in message.fields}
    accessors = {prefix + field.name for prefix, field in product(ACCESSORS, message.fields)}
    lists = [field for field in message.fields if field.is_repeated]
    accessors |= {field.name + suffix for field, suffix in product(lists, ACCESSORS_OF_LISTS)}
    assert names & accessors == set()


def test_no_field_is_named_like_its_message() -> None:
    """C# adds an underscore to such a property."""
    assert [
        field.full_name
        for message in MESSAGES
        for field in message.fields
        if FORMS["pascal"](field.name) == message.name
    ] == []


def test_names_of_values_begin_with_a_letter_when_the_prefix_is_gone() -> None:
    """A reason has no prefix, because it has the same name in details of errors that have no enum."""
    reasons = set(ErrorReason.keys())
    assert [value for name, value in values() if name == value and value not in reasons] == []
    assert [value for name, value in values() if not name[0].isalpha()] == []


def test_no_field_begins_with_a_word_that_means_ownership_in_objective_c() -> None:
    families = {"alloc", "copy", "init", "mutable", "new"}
    found: list[FieldDescriptor] = [field for message in MESSAGES for field in message.fields]
    assert [field.full_name for field in found if words(field.name)[0] in families] == []
