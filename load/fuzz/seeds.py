"""Seed requests: at least one valid request of each RPC of each listener, with which mutated calls begin."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle, islice
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from load.corpus.hostile import read as read_hostile
from load.corpus.hostile_turns import read as read_hostile_turns
from load.corpus.turns import read as read_turns
from load.floods.attacks import question, slow_turn
from load.messages import to_send
from rummikub.admin.v1 import admin_service_pb2
from rummikub.v1 import analysis_service_pb2 as an
from rummikub.v1 import ruleset_pb2
from rummikub.v1 import validation_service_pb2 as vs
from service.grpc_api import reflection
from support.rpcs import METHODS, usual_request
from tools.games import creation, options
from tools.servers import ROOT

WIRE: Final = ROOT / "tests" / "conformance" / "wire.json"
TURNS: Final = 30
"""How many recorded turns are seeds of validation and analysis."""
HOSTILE_STEP: Final = 6
"""Every sixth hostile position is a seed: each search of one takes its whole time limit."""
MOST_OF_BATCH: Final = 100
"""The most turns of a batch."""
LONG_SEARCH: Final = Duration(seconds=10)
"""The longest time limit, which the deadline of a call cuts short."""
VALIDATION: Final = "/rummikub.v1.ValidationService/"
ANALYSIS: Final = "/rummikub.v1.AnalysisService/"
ADMIN: Final = admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"]
HEALTH: Final = health_pb2.DESCRIPTOR.services_by_name["Health"]
ADMIN_FIELDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "KickPlayer": {"seat": 2},
    "ReissueSeatToken": {"seat": 1},
    "ForgetPlayer": {"player_ref": "ada"},
    "ExportPlayer": {"player_ref": "ada"},
}
"""The fields of usual requests of the operator, beside the game."""


def path_of(method: MethodDescriptor) -> str:
    """Returns the path of an RPC."""
    return f"/{method.containing_service.full_name}/{method.name}"


@dataclass(frozen=True, slots=True)
class Served:
    """An RPC that a listener serves.

    Attributes:
        method: The RPC.
        seeds: Valid requests of it.
    """

    method: MethodDescriptor
    seeds: tuple[Message, ...]

    @property
    def path(self) -> str:
        """Its path."""
        return path_of(self.method)

    @property
    def streams(self) -> bool:
        """Whether its answers are a stream, which may stay open."""
        return bool(self.method.server_streaming)


def _message(method: MethodDescriptor, **fields: object) -> Message:
    made: Message = GetMessageClass(method.input_type)(**fields)
    return made


@cache
def served_rpcs(game_id: str = "0" * 32, etag: str = "1-" + "0" * 32) -> Mapping[str, tuple[Served, ...]]:
    """Returns the RPCs of each listener ("main", "validation", "admin") with their seeds. Raises KeyError."""
    found: dict[str, list[Message]] = {
        path_of(rpc): [usual_request(name, game_id, etag)] for name, rpc in METHODS.items()
    }
    for more in (_more(), hostile_seeds()):
        for path, seeds in more.items():
            found[path] += seeds
    main = [Served(rpc, tuple(found[path_of(rpc)])) for rpc in METHODS.values()]
    health = [Served(rpc, (_message(rpc),)) for rpc in HEALTH.methods]
    reflecting = [
        Served(service.methods[0], (reflection_pb2.ServerReflectionRequest(list_services="*"),))
        for service in reflection.SERVICES
    ]
    validation = [one for one in main if one.method.containing_service.name == "ValidationService"]
    admin = [
        Served(rpc, (_message(rpc, **_of_a_game(rpc, game_id), **ADMIN_FIELDS.get(rpc.name, {})),))
        for rpc in ADMIN.methods
    ]
    check = [one for one in health if one.method.name == "Check"]
    return {
        "main": (*main, *health, *reflecting),
        "validation": (*validation, *check),
        "admin": tuple(admin),
    }


def _of_a_game(method: MethodDescriptor, game_id: str) -> dict[str, str]:
    return {"game_id": game_id} if "game_id" in method.input_type.fields_by_name else {}


def _more() -> dict[str, list[Message]]:
    """Returns further seeds by path: conformance cases, and recorded turns."""
    found: dict[str, list[Message]] = {}
    for call in json.loads(WIRE.read_text())["calls"]:
        service, _, name = call["rpc"].partition("/")
        method = METHODS[name]
        found.setdefault(f"/{service}/{name}", []).append(
            json_format.ParseDict(call["request"], GetMessageClass(method.input_type)())
        )
    turns = [to_send(turn) for turn in islice(read_turns(), TURNS)]
    found.setdefault(f"{VALIDATION}ValidateTurn", []).extend(turn.turn for turn in turns)
    found[f"{VALIDATION}StreamValidateTurns"] = [vs.StreamValidateTurnsRequest(turn=turn.turn) for turn in turns]
    found[f"{VALIDATION}BatchValidateTurns"] = [
        vs.BatchValidateTurnsRequest(turns=[turn.turn for turn in turns[start : start + 3]])
        for start in range(0, TURNS, 3)
    ]
    found[f"{ANALYSIS}HasLegalTurn"] = [an.HasLegalTurnRequest(position=turn.position) for turn in turns]
    found["/rummikub.v1.GameService/CreateGame"] = [
        _message(METHODS["CreateGame"], **creation(options(preset=preset)))
        for preset in ruleset_pb2.Preset.values()
        if preset
    ]
    return found


@cache
def hostile_seeds() -> Mapping[str, Sequence[Message]]:
    """Returns the turns that take longest to judge, and positions that take longest to search, by path.

    Searches for slow turns and positions have found them (load/corpus/hostile.py, hostile_turns.py).
    """
    turns = [slow_turn(turn) for turn in read_hostile_turns()]
    searches = [question(position) for position in read_hostile()[::HOSTILE_STEP]]
    longest = an.SuggestTurnRequest(position=searches[0].position, time_limit=LONG_SEARCH)
    return {
        f"{VALIDATION}ValidateTurn": turns,
        f"{ANALYSIS}SuggestTurn": [*searches, longest],
        f"{ANALYSIS}HasLegalTurn": [an.HasLegalTurnRequest(position=search.position) for search in searches],
    }


def hostile_requests() -> Mapping[str, Sequence[Message]]:
    """Returns the same, and the slowest batch. It is no seed: a mutation would cut it."""
    turns = [slow_turn(turn) for turn in read_hostile_turns()]
    whole = vs.BatchValidateTurnsRequest(turns=islice(cycle(turns), MOST_OF_BATCH))
    return {**hostile_seeds(), f"{VALIDATION}BatchValidateTurns": [whole]}
