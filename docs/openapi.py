"""Generates deploy/openapi.json, the OpenAPI description of the JSON API, and the table of URLs in docs/web-edge.md.

Usage: python docs/openapi.py [--check]

Each binding of google.api.http is an operation; each message and enum that operations use is a schema. --check writes
nothing and fails if a committed file is not what the contract and its comments generate.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from google.api import annotations_pb2, field_behavior_pb2, http_pb2
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import (
    Descriptor,
    EnumDescriptor,
    FieldDescriptor,
    MethodDescriptor,
    ServiceDescriptor,
)

import contract as source

OPENAPI: Final = Path(__file__).parent.parent / "deploy" / "openapi.json"
PAGE: Final = Path(__file__).parent / "web-edge.md"
PACKAGE: Final = "rummikub.v1"

Schema = dict[str, Any]
"""A part of the document: JSON of any form."""

_NUMBERS: Final[dict[int, Schema]] = {
    FieldDescriptor.TYPE_INT32: {"type": "integer", "format": "int32"},
    FieldDescriptor.TYPE_SINT32: {"type": "integer", "format": "int32"},
    FieldDescriptor.TYPE_UINT32: {"type": "integer", "minimum": 0, "maximum": 4_294_967_295},
    FieldDescriptor.TYPE_INT64: {"type": "string", "format": "int64"},
    FieldDescriptor.TYPE_SINT64: {"type": "string", "format": "int64"},
    FieldDescriptor.TYPE_UINT64: {"type": "string", "format": "uint64"},
    FieldDescriptor.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.TYPE_STRING: {"type": "string"},
    FieldDescriptor.TYPE_BYTES: {"type": "string", "format": "byte"},
}
_WELL_KNOWN: Final[dict[str, Schema]] = {
    "google.protobuf.Duration": {"type": "string", "pattern": r"^-?\d+(\.\d+)?s$", "example": "2.5s"},
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
}
_STATUS: Final[Schema] = {
    "type": "object",
    "description": "An error: google.rpc.Status. A refusal of the service has a Refusal among its details.",
    "required": ["code", "message"],
    "properties": {
        "code": {"type": "integer", "description": "The google.rpc.Code, such as 9 for FAILED_PRECONDITION."},
        "message": {"type": "string", "description": "What is wrong, in English, for developers."},
        "details": {
            "type": "array",
            "description": "Messages, each with its type in `@type`: a Refusal, a google.rpc.ErrorInfo and others.",
            "items": {"type": "object", "required": ["@type"], "properties": {"@type": {"type": "string"}}},
        },
    },
}
_ABOUT: Final = """\
The JSON form of the gRPC API, as the web edge serves it. Fields with default values (0, false, "", empty lists) are \
absent from responses. Enums are names; requests may have numbers instead. A repeated field of a query is repeated: \
`?a=1&a=2`. Unknown fields of a body and unknown parameters of a query are refused."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A URL of an RPC."""

    method: MethodDescriptor
    verb: str
    path: str
    number: int

    @property
    def path_fields(self) -> list[str]:
        """The names of the request's fields in the path."""
        return re.findall(r"{(\w+)}", self.path)

    @property
    def operation_id(self) -> str:
        """The name of the operation: that of the RPC, with the number of the URL from the second on."""
        return self.method.name + (str(self.number) if self.number > 1 else "")


class Contract:
    """The contract with its comments."""

    def __init__(self) -> None:
        self._comments: dict[str, str] = {}
        self.services: list[ServiceDescriptor] = []
        for file in source.described().values():
            self._comments |= source.comments(file)
            __import__(file.name.replace("/", ".").replace(".proto", "_pb2"))
            self.services += descriptor_pool.Default().FindFileByName(file.name).services_by_name.values()

    def comment(self, element: Any) -> str:  # noqa: ANN401 - descriptors have no common type
        """Returns the comment of a message, enum, value, field, service or method."""
        name: str = getattr(element, "full_name", element.name)  # values of enums have no full name
        return self._comments.get(name.removeprefix(f"{PACKAGE}."), "")

    def bindings(self) -> Iterator[Binding]:
        """Yields all URLs in the order of the contract."""
        for service in self.services:
            for method in service.methods:
                rule: http_pb2.HttpRule = method.GetOptions().Extensions[annotations_pb2.http]
                for number, given in enumerate((rule, *rule.additional_bindings), start=1):
                    verb = given.WhichOneof("pattern")
                    if verb:
                        yield Binding(method, verb, getattr(given, verb), number)


def document() -> Schema:
    """Returns the OpenAPI document."""
    contract = Contract()
    schemas = _Schemas(contract)
    paths: dict[str, Schema] = {}
    for binding in contract.bindings():
        path = binding.path
        for name in binding.path_fields:
            path = path.replace(f"{{{name}}}", f"{{{binding.method.input_type.fields_by_name[name].json_name}}}")
        paths.setdefault(path, {})[binding.verb] = _operation(contract, schemas, binding)
    return {
        "openapi": "3.0.3",
        "info": {
            "title": "Rummikub rules service",
            "version": version("rummikub-service"),
            "description": _ABOUT,
            "license": {"name": "MIT"},
        },
        "security": [{}, {"token": []}],
        "tags": [{"name": service.name, "description": contract.comment(service)} for service in contract.services],
        "paths": dict(sorted(paths.items())),
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "A seat's token, or the host token."}
            },
            "schemas": dict(sorted({**schemas.all(), "Status": _STATUS}.items())),
        },
    }


def _operation(contract: Contract, schemas: "_Schemas", binding: Binding) -> Schema:
    method = binding.method
    comment = contract.comment(method)
    in_path = [method.input_type.fields_by_name[name] for name in binding.path_fields]
    set_by_path = {other.name for field in in_path for other in (field, *_alternatives(field))}
    others = [field for field in method.input_type.fields if field.name not in set_by_path]
    operation: Schema = {
        "tags": [method.containing_service.name],
        "operationId": binding.operation_id,
        "summary": re.split(r"(?<=\.) ", comment)[0],
        "description": comment,
        "parameters": [_parameter(contract, schemas, field, "path") for field in in_path],
    }
    if binding.verb == "get":
        in_query = [field for field in others if not _is_map(field)]
        operation["parameters"] += [_parameter(contract, schemas, field, "query") for field in in_query]
    else:
        body = schemas.message(method.input_type, others)
        operation["requestBody"] = {"required": "required" in body, "content": {"application/json": {"schema": body}}}
    kind = "text/event-stream" if method.server_streaming else "application/json"
    told = "Server-sent events; the data of each is this message." if method.server_streaming else "The response."
    operation["responses"] = {
        "200": {"description": told, "content": {kind: {"schema": schemas.reference(method.output_type)}}},
        "default": {
            "description": "An error.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Status"}}},
        },
    }
    return operation


def _parameter(contract: Contract, schemas: "_Schemas", field: FieldDescriptor, place: str) -> Schema:
    return {
        "name": field.json_name,
        "in": place,
        "description": contract.comment(field),
        "required": place == "path" or _is_required(field),
        "schema": schemas.value(field),
    }


class _Schemas:
    """The schemas of messages and enums, collected as they are referred to."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._schemas: dict[str, Schema] = {}
        self.reference(contract.services[0].file.pool.FindMessageTypeByName(f"{PACKAGE}.Refusal"))

    def all(self) -> dict[str, Schema]:
        """Returns all schemas that were referred to, by name."""
        return self._schemas

    def reference(self, element: Descriptor | EnumDescriptor) -> Schema:
        """Returns a reference to the schema of a message or an enum."""
        name = element.full_name.removeprefix(f"{PACKAGE}.")
        if name not in self._schemas:
            self._schemas[name] = {}  # messages may contain themselves
            self._schemas[name] = self._enum(element) if isinstance(element, EnumDescriptor) else self.message(element)
        return {"$ref": f"#/components/schemas/{name}"}

    def message(self, message: Descriptor, fields: Sequence[FieldDescriptor] | None = None) -> Schema:
        """Returns the schema of a message, with all or some of its fields."""
        given = message.fields if fields is None else fields
        properties = {field.json_name: self._described(field) for field in given}
        required = [field.json_name for field in given if _is_required(field)]
        schema: Schema = {"type": "object", "description": self._contract.comment(message), "properties": properties}
        return schema | ({"required": required} if required else {})

    def value(self, field: FieldDescriptor) -> Schema:
        """Returns the schema of a field's values."""
        if field.message_type and _is_map(field):
            return {"type": "object", "additionalProperties": self._one(field.message_type.fields_by_name["value"])}
        return {"type": "array", "items": self._one(field)} if field.is_repeated else self._one(field)

    def _described(self, field: FieldDescriptor) -> Schema:
        comment, schema = self._contract.comment(field), self.value(field)
        alternatives = _alternatives(field)
        if alternatives:
            comment += f" Excludes {', '.join(other.json_name for other in alternatives)}."
        return {"description": comment, "allOf": [schema]} if "$ref" in schema else {**schema, "description": comment}

    def _one(self, field: FieldDescriptor) -> Schema:
        if field.message_type:
            known = _WELL_KNOWN.get(field.message_type.full_name)
            return dict(known) if known else self.reference(field.message_type)
        return self.reference(field.enum_type) if field.enum_type else dict(_NUMBERS[field.type])

    def _enum(self, enum: EnumDescriptor) -> Schema:
        meanings = [f"* `{value.name}`: {self._contract.comment(value)}" for value in enum.values]
        description = "\n".join([self._contract.comment(enum), "", *meanings])
        return {"type": "string", "enum": [value.name for value in enum.values], "description": description}


def _alternatives(field: FieldDescriptor) -> list[FieldDescriptor]:
    """Returns the other fields of a field's oneof."""
    oneof = field.containing_oneof
    return [other for other in oneof.fields if other.name != field.name] if oneof else []


def _is_map(field: FieldDescriptor) -> bool:
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def _is_required(field: FieldDescriptor) -> bool:
    return field_behavior_pb2.REQUIRED in field.GetOptions().Extensions[field_behavior_pb2.field_behavior]


def generated() -> dict[Path, str]:
    """Returns the text of each file that is generated, wholly or in part."""
    rows = [f"| {binding.method.name} | `{binding.verb.upper()} {binding.path}` |" for binding in Contract().bindings()]
    table = "\n".join(("| RPC | URL |", "| --- | --- |", *rows, ""))
    page = re.sub(r"^\| RPC \| URL \|\n(\|.*\n)+", table, PAGE.read_text(), flags=re.MULTILINE)
    return {OPENAPI: json.dumps(document(), indent=1, ensure_ascii=False) + "\n", PAGE: page}


def main() -> None:
    """Writes the files, or checks them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    only_checks = parser.parse_args().check
    for path, text in generated().items():
        if not only_checks:
            path.write_text(text)
        elif path.read_text() != text:
            sys.exit(f"{path.name} is out of date; run `make openapi`")


if __name__ == "__main__":
    main()
