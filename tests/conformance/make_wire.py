"""Generates wire.json: the cases and contrasts as calls of the service, for clients in any language.

Usage: make wire

The requests are those of cases.json and contrasts.json, the answers are this checkout's.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode

from conformance.grpc_answers import (
    discard_turn_request,
    hand_request,
    placement_request,
    score_request,
    turn_request,
)
from engine.room_settings import SETTINGS
from rummikub.v1 import validation_service_pb2 as vs
from rummikub.v1 import violation_pb2
from service.codec.turn_validator import Validator
from service.errors import Fault
from service.grpc_api.rpcs.validation import NAME, RPCS
from service.grpc_api.status import DETAILS, status_of
from service.runtime.slow_calls import completed
from support.conformance_cases import (
    Creation,
    DiscardTurnCase,
    DiscardTurnQuestion,
    HandCase,
    HandQuestion,
    LittleGame,
    MeldText,
    Options,
    PlacementCase,
    PlacementQuestion,
    Question,
    RoundQuestion,
    TurnCase,
    TurnQuestion,
    load,
)
from support.conformance_messages import has_jokers, is_at_table, is_discard, ruleset_of, table_of, tiles_of

PATH: Final = Path(__file__).with_name("wire.json")
FORMAT: Final = "rummikub-wire/1"
A_DISCARD: Final = DiscardTurnQuestion(indicator="O4", rack=("R1",), discard="R1")
A_HAND: Final = HandQuestion(indicator="O4", tiles=("R1", "R2", "R3", "R7", "R8", "R9", "R10") * 2)

Call = dict[str, Any]
"""A call as wire.json has it."""


def requests() -> Iterator[tuple[str, str, Message]]:
    """Yields the id, the RPC and the request of each case and of each value of a contrast that a client can send."""
    suite = load()
    for meld in suite.melds:
        yield meld.id, *request_of(meld.meld, meld.ruleset)
    judged: tuple[TurnCase | PlacementCase | HandCase | DiscardTurnCase, ...] = (
        *suite.turns,
        *suite.placements,
        *suite.hands,
        *suite.discard_turns,
    )
    for case in judged:
        yield case.id, *request_of(case, case.ruleset)
    for round_ in suite.round_scores:
        racks = [vs.RackToScore(seat=rack.seat, rack=tiles_of(rack.rack)) for rack in round_.racks]
        yield round_.id, "ScoreRound", vs.ScoreRoundRequest(ruleset=ruleset_of(round_.ruleset), racks=racks)
    for creation in suite.creations:
        if not SETTINGS.keys() & creation.ruleset.keys():
            yield creation.id, *request_of(Creation(), creation.ruleset)
    for contrast in suite.contrasts:
        if not isinstance(contrast.question, LittleGame) and contrast.option not in SETTINGS:
            for value in contrast.answers:
                yield f"{contrast.id}={value}", *request_of(contrast.question, contrast.options(value))


def _request_of_creation(options: Options) -> tuple[str, Message]:
    if is_at_table(options):
        question = replace(A_DISCARD, indicator=None) if has_jokers(options) else A_DISCARD
        return "ValidateDiscardTurn", discard_turn_request(question, options)
    if is_discard(options):
        return "ValidateHand", hand_request(A_HAND, options)
    return "ValidateMelds", vs.ValidateMeldsRequest(ruleset=ruleset_of(options))


def request_of(question: Question, options: Options) -> tuple[str, Message]:
    """Returns the RPC and the request of a question.

    For the creation of a game: the same ruleset with no melds; in a game of discards with the same hand each time, or
    with a table with the same discard.
    """
    match question:
        case MeldText():
            return "ValidateMelds", vs.ValidateMeldsRequest(ruleset=ruleset_of(options), melds=table_of([question]))
        case TurnQuestion():
            return "ValidateTurn", turn_request(question, options)
        case PlacementQuestion():
            return "ValidatePlacement", placement_request(question, options)
        case HandQuestion():
            return "ValidateHand", hand_request(question, options)
        case DiscardTurnQuestion():
            return "ValidateDiscardTurn", discard_turn_request(question, options)
        case RoundQuestion():
            return "ScoreRound", score_request(question, options)
        case Creation():
            return _request_of_creation(options)
        case LittleGame():
            raise ValueError("a client cannot set the position, the shuffles and the clock of a game")


def calls() -> Iterator[Call]:
    """Yields the calls with their answers."""
    validator = Validator()
    rows = {rpc.name: rpc for rpc in RPCS}
    for id_, rpc, request in requests():
        steps, response = rows[rpc].steps(validator), getattr(vs, f"{rpc}Response")
        call = {"id": id_, "rpc": f"{NAME}/{rpc}", "request": as_json(request)}
        try:
            yield {**call, "response": as_json(response.FromString(completed(steps(request.SerializeToString()))))}
        except Fault as fault:
            yield {**call, "error": error_as_json(status_of(fault).trailing_metadata)}


def as_json(message: Message) -> Any:  # noqa: ANN401 - a JSON object
    """Returns a message in protojson with sorted keys: those of a map have no order."""
    return json.loads(json.dumps(MessageToDict(message), sort_keys=True))


def error_as_json(trailing: Iterable[tuple[str, str | bytes]]) -> Call:
    """Returns an error as wire.json has it, from its trailing metadata."""
    parsed = status_pb2.Status.FromString(dict(trailing)[DETAILS])
    refusal, invalid = violation_pb2.Refusal(), error_details_pb2.BadRequest()
    for detail in parsed.details:
        detail.Unpack(refusal)
        detail.Unpack(invalid)
    code = next(code.name for code in StatusCode if code.value[0] == parsed.code)
    fields = [violation.field for violation in invalid.field_violations]
    return {"code": code, "refusal": as_json(refusal), "fields": fields}


def text() -> str:
    """Returns the content of wire.json, with a line for each call."""
    lines = ",\n".join(json.dumps(call, ensure_ascii=False) for call in calls())
    return f'{{"format": "{FORMAT}", "calls": [\n{lines}\n]}}\n'


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
