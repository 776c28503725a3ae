"""Every URL of the contract refuses what it does not know: fields of bodies, and parameters of queries."""

import json
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

import openapi
from support.edge import Web, running_web

pytestmark = pytest.mark.asyncio(loop_scope="module")
BINDINGS = [*openapi.Contract().bindings()]
POSTS = [binding for binding in BINDINGS if binding.verb == "post"]
GETS = [binding for binding in BINDINGS if binding.verb == "get"]
DEPTH = 4
"""How far the fields of messages are followed."""


def name(binding: openapi.Binding) -> str:
    return f"{binding.verb} {binding.path}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    async with running_web(tmp_path_factory.mktemp("edge")) as web:
        yield web


def url(binding: openapi.Binding) -> str:
    return binding.path.replace("{game_id}", "0" * 32)


def fields_in_body(binding: openapi.Binding) -> list[FieldDescriptor]:
    """Returns the fields of a request that its path leaves to the body."""
    in_path = [binding.method.input_type.fields_by_name[field] for field in binding.path_fields]
    oneofs = {field.containing_oneof.full_name for field in in_path if field.containing_oneof}
    return [
        field
        for field in binding.method.input_type.fields
        if field not in in_path and not (field.containing_oneof and field.containing_oneof.full_name in oneofs)
    ]


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def inner(field: FieldDescriptor) -> Descriptor | None:
    """Returns the message of a field that has fields of its own in JSON."""
    message = field.message_type
    return None if message is None or is_map(field) or message.file.package.startswith("google.") else message


def bodies_with_unknown_field(fields: list[FieldDescriptor], depth: int = DEPTH) -> Iterator[tuple[object, str]]:
    """Yields bodies with one unknown field at every place, down to a depth, and the place."""
    yield {"noSuchField": 1}, "noSuchField"
    for field in fields if depth else []:
        message = inner(field)
        if message is not None:
            for body, place in bodies_with_unknown_field([*message.fields], depth - 1):
                if field.is_repeated:
                    yield {field.json_name: [{}, body]}, f"{field.json_name}[1].{place}"
                else:
                    yield {field.json_name: body}, f"{field.json_name}.{place}"


@pytest.mark.parametrize("binding", POSTS, ids=name)
async def test_an_unknown_field_of_a_body_is_refused_wherever_it_is(web: Web, binding: openapi.Binding) -> None:
    for body, place in bodies_with_unknown_field(fields_in_body(binding)):
        answer = await web.edge.call(url(binding), body)
        assert (answer.status, answer.json["code"]) == (400, 3), body
        assert f" {place};" in answer.json["message"]


def filled(kind: Descriptor, fields: list[FieldDescriptor], depth: int = DEPTH) -> Message:
    """Returns a message in which the given fields are set, and all of theirs down to a depth; of a oneof the last."""
    message = GetMessageClass(kind)()
    for field in fields:
        found = inner(field)
        if is_map(field):
            getattr(message, field.name)["some_key"] = "value"
        elif field.message_type is not None:
            given = [*found.fields] if found and depth else []
            part = filled(field.message_type, given, depth - 1)
            if field.is_repeated:
                getattr(message, field.name).append(part)
            else:
                getattr(message, field.name).CopyFrom(part)
        else:
            value = "a" if field.type == field.TYPE_STRING else b"a" if field.type == field.TYPE_BYTES else 1
            if field.is_repeated:
                getattr(message, field.name).append(value)
            else:
                setattr(message, field.name, value)
    return message


@pytest.mark.parametrize("binding", POSTS, ids=name)
async def test_no_field_of_the_contract_is_refused_under_either_name(web: Web, binding: openapi.Binding) -> None:
    for fields in (fields_in_body(binding), fields_in_body(binding)[::-1]):
        message = filled(binding.method.input_type, fields)
        for proto_names in (False, True):
            body = json_format.MessageToDict(message, preserving_proto_field_name=proto_names)
            answer = await web.edge.call(url(binding), body)
            assert "unknown field" not in answer.json.get("message", ""), body


@pytest.mark.parametrize("binding", [binding for binding in POSTS if binding.path_fields], ids=name)
async def test_a_field_of_the_path_is_not_read_from_the_body(web: Web, binding: openapi.Binding) -> None:
    """The JSON filter would let game_id of a body replace that of the path."""
    for field in ("game_id", "gameId"):
        answer = await web.edge.call(url(binding), {field: "1" * 32})
        assert (answer.status, answer.json["code"]) == (400, 3)


@pytest.mark.parametrize("binding", BINDINGS, ids=name)
async def test_an_unknown_parameter_of_a_query_is_refused(web: Web, binding: openapi.Binding) -> None:
    answer = await web.edge.call(f"{url(binding)}?no_such_field=1", None if binding.verb == "get" else {})
    assert (answer.status, answer.json["code"]) == (400, 3)
    assert "no_such_field" in answer.json["message"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ('{"visibilty": "VISIBILITY_PUBLIC"}', "visibilty"),
        ("{'visibilty': 1}", "visibilty"),
        ("{visibilty: 1}", "visibilty"),
        ('{"visibilty": null,}', "visibilty"),
        ('{"Visibility": 1}', "Visibility"),
        ('{"labels": {"any key": "{\\"a\\": 1}"}, "ruleset": {"colour": [{}, "]"]}}', "ruleset.colour"),
        ('{"b": 1, "a": 2}', "a, b"),
        ('{"a\\n\\u00e9\\"": 1}', "a????00e9??"),
        (json.dumps({f"x{number}": 1 for number in range(7)}), "x0, x1, x2, x3, x4 and others"),
    ],
)
async def test_a_misspelled_field_creates_no_game(web: Web, body: str, named: str) -> None:
    before = (await web.edge.call("/v1/games")).json
    answer = await web.edge.send("POST", "/v1/games", body.encode())
    assert answer.status == 400
    assert answer.json == {"code": 3, "message": f"unknown field of the body: {named}; /openapi.json lists the fields"}
    assert (await web.edge.call("/v1/games")).json == before


@pytest.mark.parametrize(
    "body", ["", "{}", '{"labels": {"visibilty": "x"}}', '{"ruleset": null}', json.dumps({"request_id": "a" * 22})]
)
async def test_a_body_without_unknown_fields_is_accepted(web: Web, body: str) -> None:
    assert (await web.edge.send("POST", "/v1/games", body.encode())).status == 200


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("/v1/turns:validate", '{"rack": ["R7"]}', "rack[0]: R7 (write TILE_RED_7)"),
        ("/v1/turns:validate", '{"rack": [1, "TILE_JOKER", null, "k10"]}', "rack[3]: k10 (write TILE_BLACK_10)"),
        (
            "/v1/turns:validate",
            '{"table_after": {"melds": [{}, {"tiles": ["J", "Y3"]}]}}',
            "table_after.melds[1].tiles[0]: J (write TILE_JOKER), "
            "table_after.melds[1].tiles[1]: Y3 (write TILE_ORANGE_3)",
        ),
        ("/v1/turns:validate", '{"rack": ["TILE_RED_14"]}', "rack[0]: TILE_RED_14"),
        ("/v1/turns:validate", '{"rack": ["<b>"]}', "rack[0]: ?b?"),
        (
            "/v1/games",
            '{"ruleset": {"melding": {"preset": "sabra"}}}',
            "ruleset.melding.preset: sabra (write PRESET_SABRA)",
        ),
        (f"/v1/games/{'0' * 32}:addBot", '{"level": "EASY"}', "level: EASY (write BOT_LEVEL_EASY)"),
    ],
)
async def test_a_wrong_value_is_refused_with_the_right_form(web: Web, path: str, body: str, named: str) -> None:
    answer = await web.edge.send("POST", path, body.encode())
    assert answer.status == 400
    message = f"wrong value in the body: {named}; /openapi.json lists the values"
    assert answer.json == {"code": 3, "message": message}


@pytest.mark.parametrize(
    "body", ["[", "{", '{"a', "{" * 100_000, '{"a":' + "[" * 100_000, "[]", "1", '"\\\\', "{'a\": 1}"]
)
async def test_what_is_no_json_object_is_refused(web: Web, body: str) -> None:
    answer = await web.edge.send("POST", "/v1/games", body.encode())
    assert (answer.status, answer.json["code"]) == (400, 3)
