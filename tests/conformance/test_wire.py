"""wire.json replayed over gRPC, as a client in any language would do it, and compared with its sources."""

import json
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from google.protobuf import message_factory
from google.protobuf.json_format import MessageToDict, ParseDict

from conformance.make_wire import FORMAT, PATH, error_as_json, request_of, text
from engine.room_settings import SETTINGS
from support.cases import each_of
from support.conformance_cases import (
    Contrast,
    DiscardTurnCase,
    HandCase,
    LittleGame,
    MeldCase,
    PlacementCase,
    TurnCase,
    load,
)
from support.harness import CONTRACT, Client, first_answer, memory_store, running_server

pytestmark = pytest.mark.slow

SUITE = load()
DISCARDS: list[HandCase | DiscardTurnCase] = [
    *(case for case in SUITE.hands if not case.expect.malformed),
    *(case for case in SUITE.discard_turns if not case.expect.malformed),
]
WIRE: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
CALLS: dict[str, dict[str, Any]] = {call["id"]: call for call in WIRE["calls"]}
RPCS = {f"{service.full_name}/{rpc.name}": rpc for service in CONTRACT for rpc in service.methods}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[Client]:
    async with running_server(memory_store()) as (_, client):
        yield client


def test_the_file_is_derived_from_the_cases() -> None:
    assert WIRE["format"] == FORMAT
    assert PATH.read_text(encoding="utf-8") == text(), "run `make wire`"


def test_every_id_occurs_once_and_every_call_has_one_outcome() -> None:
    assert len(CALLS) == len(WIRE["calls"]) > 600
    for call in CALLS.values():
        assert {*call} in ({"id", "rpc", "request", "response"}, {"id", "rpc", "request", "error"})


@each_of("call", CALLS.values(), CALLS, by=lambda call: call["rpc"])
@pytest.mark.asyncio(loop_scope="module")
async def test_call(client: Client, call: dict[str, Any]) -> None:
    rpc = RPCS[call["rpc"]]
    request = ParseDict(call["request"], message_factory.GetMessageClass(rpc.input_type)())
    sending = first_answer(client.channel, rpc, request.SerializeToString())
    if "response" in call:
        answer = message_factory.GetMessageClass(rpc.output_type).FromString(await sending)
        assert MessageToDict(answer) == call["response"]
    else:
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await sending
        assert refusal.value.code().name == call["error"]["code"]
        assert error_as_json(refusal.value.trailing_metadata() or ()) == call["error"]


def reasons(call: dict[str, Any]) -> tuple[str, ...]:
    """Returns the reasons in an answer about melds or a turn."""
    [reading] = call["response"].get("melds", [call["response"]])
    return tuple(violation["reason"] for violation in reading.get("violations", ()))


@each_of(
    "case",
    [*SUITE.melds, *SUITE.turns, *SUITE.placements, *DISCARDS],
    lambda case: case.id,
)
def test_a_call_has_the_reasons_of_its_case(
    case: MeldCase | TurnCase | PlacementCase | HandCase | DiscardTurnCase,
) -> None:
    assert reasons(CALLS[case.id]) == tuple(violation.reason for violation in case.expect.violations)


@each_of("contrast", SUITE.contrasts, lambda contrast: contrast.id)
def test_every_answer_of_a_contrast_is_a_call(contrast: Contrast) -> None:
    ids = {f"{contrast.id}={value}" for value in contrast.answers}
    is_call = not isinstance(contrast.question, LittleGame) and contrast.option not in SETTINGS
    assert ids & {*CALLS} == (ids if is_call else set())


def test_a_game_cannot_be_a_call() -> None:
    with pytest.raises(ValueError, match="cannot set"):
        request_of(LittleGame(actions=()), {})
