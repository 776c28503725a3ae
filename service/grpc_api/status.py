"""One table: exception -> status code, reason, details.

Every refusal has exactly one google.rpc.ErrorInfo, and at most one of BadRequest, PreconditionFailure and RetryInfo; an
illegal turn has our IllegalTurn too. What is not in the table is a fault of ours and becomes INTERNAL without a word of
the inside.
"""

from collections.abc import Mapping
from typing import Final

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from engine.violation_texts import describe_violation
from engine.violations import Reason, Refused
from service.codec.tiles import encode_illegal_turn
from service.errors import (
    ActionRefused,
    AlreadySeated,
    AnalysisBusy,
    AnalysisUnavailable,
    AuthorizationMalformed,
    DuplicateRequest,
    EtagMismatch,
    GameNotFound,
    HintNotAllowed,
    HistoryUnavailable,
    InvalidRequest,
    MalformedRequest,
    NotAPlayer,
    Overloaded,
    RequestTimedOut,
    ShuttingDown,
    StaleState,
    StoredFormatUnknown,
    StoreFull,
    StoreUnavailable,
    TooManyGames,
    TurnTimedOut,
)

DOMAIN: Final = "rummikub.v1"
RETRY_SECONDS: Final = 1
"""What RetryInfo tells."""
VIOLATIONS_MAX: Final = 16
"""Most violations in a status: trailing metadata must stay small."""
DESCRIPTION_MAX: Final = 200
"""Most characters of a description in a status."""

_FAILED_PRECONDITION: Final = grpc.StatusCode.FAILED_PRECONDITION

REFUSED_CODES: Final = {
    Reason.PLAYER_ALREADY_JOINED: grpc.StatusCode.ALREADY_EXISTS,
    Reason.GAME_FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
}
"""The codes of what the engine refuses; FAILED_PRECONDITION for all others."""

PLAIN: Final[Mapping[type[Exception], tuple[grpc.StatusCode, str, str]]] = {
    MalformedRequest: (
        grpc.StatusCode.INVALID_ARGUMENT,
        "MALFORMED_REQUEST",
        "the bytes are not a message of the request's type: generate the client from the contract",
    ),
    AuthorizationMalformed: (
        grpc.StatusCode.UNAUTHENTICATED,
        "AUTHORIZATION_MALFORMED",
        "expected the metadata `authorization: Bearer <seat token>`, with the token that JoinGame returned",
    ),
    NotAPlayer: (
        grpc.StatusCode.PERMISSION_DENIED,
        "NOT_A_PLAYER",
        "only a seated player may do this: send `authorization: Bearer <seat token>` as JoinGame returned it",
    ),
    GameNotFound: (
        grpc.StatusCode.NOT_FOUND,
        "GAME_NOT_FOUND",
        "there is no such game, or the seat token is not one of its seats'",
    ),
    AlreadySeated: (
        grpc.StatusCode.ALREADY_EXISTS,
        "PLAYER_ALREADY_JOINED",
        "the token has a seat in the game already",
    ),
    DuplicateRequest: (
        grpc.StatusCode.ABORTED,
        "DUPLICATE_REQUEST",
        "the request id was used with another content: take a new one for a new request",
    ),
    StoreUnavailable: (
        grpc.StatusCode.UNAVAILABLE,
        "STORE_UNAVAILABLE",
        "the store does not answer: send the same request again with the same request id",
    ),
    StoredFormatUnknown: (
        grpc.StatusCode.UNAVAILABLE,
        "STORED_FORMAT_UNKNOWN",
        "the game was stored by a newer server, or is damaged: try again",
    ),
    Overloaded: (
        grpc.StatusCode.UNAVAILABLE,
        "OVERLOADED",
        "this server, or your address, has too many calls under way: send the request again, with the same request id",
    ),
    RequestTimedOut: (
        grpc.StatusCode.DEADLINE_EXCEEDED,
        "REQUEST_TIMED_OUT",
        "the request did not arrive within RUMMIKUB_REQUEST_SECONDS, or the call's deadline passed: send it again",
    ),
    TooManyGames: (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "TOO_MANY_GAMES",
        "your address has created as many games in the last minute as it may: send the request again later",
    ),
    StoreFull: (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "STORE_FULL",
        "the store is nearly full: running games go on, new ones cannot be created now; send the request again later",
    ),
    ShuttingDown: (grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN", "this server is stopping: send the request again"),
    AnalysisBusy: (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "ANALYSIS_BUSY",
        "exact analysis has as many calls as it takes: send the request again",
    ),
    AnalysisUnavailable: (
        grpc.StatusCode.UNAVAILABLE,
        "ANALYSIS_UNAVAILABLE",
        "the search was lost: send the request again",
    ),
}
"""Faults without facts of their own."""

PASSING: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED})
"""The codes of faults in PLAIN that go by: their statuses tell when to try again."""


class Status:
    """A status to answer with: code, reason, message, details."""

    def __init__(
        self,
        code: grpc.StatusCode,
        reason: str,
        message: str,
        metadata: Mapping[str, object] | None = None,
        *details: Message | None,
    ) -> None:
        self.code = code
        self.reason = reason
        self.message = message
        self._metadata = {key: str(value) for key, value in (metadata or {}).items()}
        self._details = tuple(detail for detail in details if detail)

    def serialize(self) -> bytes:
        """The google.rpc.Status for the trailing metadata `grpc-status-details-bin`."""
        info = error_details_pb2.ErrorInfo(reason=self.reason, domain=DOMAIN, metadata=self._metadata)
        details = [_packed(info), *map(_packed, self._details)]
        number: int = self.code.value[0]
        status: Message = status_pb2.Status(code=number, message=self.message, details=details)
        return status.SerializeToString()


def _packed(message: Message) -> Any:
    packed = Any()
    packed.Pack(message)
    return packed


def _retry() -> error_details_pb2.RetryInfo:
    return error_details_pb2.RetryInfo(retry_delay=Duration(seconds=RETRY_SECONDS))


def status_of(error: Exception) -> Status:
    """The status of an exception."""
    match error:
        case InvalidRequest():
            return _invalid(error)
        case ActionRefused():
            return _refused(error.refused)
        case TurnTimedOut():
            message = "the turn's deadline has passed, and its time-out has been applied"
            return Status(_FAILED_PRECONDITION, "TURN_TIMED_OUT", message, {"revision": error.revision})
        case StaleState():
            message = f"the game is at revision {error.revision}: read it again"
            return Status(grpc.StatusCode.ABORTED, "STALE_STATE", message, {"revision": error.revision})
        case EtagMismatch():
            message = "the store has lost the history that the etag belongs to: read the game again"
            return Status(grpc.StatusCode.ABORTED, "ETAG_MISMATCH", message, {"revision": error.revision})
        case HistoryUnavailable():
            message = f"the event stream has the revisions {error.oldest} to {error.newest}: watch from 0"
            bounds = {"oldest": error.oldest, "newest": error.newest}
            return Status(grpc.StatusCode.OUT_OF_RANGE, "HISTORY_UNAVAILABLE", message, bounds)
        case HintNotAllowed():
            message = f"the game allows its seats no such hint: its option hints is {error.allowed.name}"
            return Status(_FAILED_PRECONDITION, "HINT_NOT_ALLOWED", message, {"hints": error.allowed.name})
        case _ if type(error) in PLAIN:
            code, reason, message = PLAIN[type(error)]
            retry = _retry() if code in PASSING else None
            return Status(code, reason, message, None, retry)
        case _:
            return Status(grpc.StatusCode.INTERNAL, "INTERNAL", "a fault of the server; its log has the request id")


def _short(description: str) -> str:
    """As much of a description as a status has room for.

    It ends with no space: HTTP/2 allows none at a value's end, and strict libraries drop such a message.
    """
    return description[:DESCRIPTION_MAX].rstrip()


def _invalid(error: InvalidRequest) -> Status:
    violations = [
        error_details_pb2.BadRequest.FieldViolation(
            field=fault.field, description=_short(fault.description), reason=fault.reason
        )
        for fault in error.fields[:VIOLATIONS_MAX]
    ]
    first = error.fields[0]
    detail = error_details_pb2.BadRequest(field_violations=violations)
    message = f"{first.field}: {_short(first.description)}"
    return Status(grpc.StatusCode.INVALID_ARGUMENT, first.reason, message, None, detail)


def _refused(refused: Refused) -> Status:
    """What the engine refuses; an illegal play lists its violations."""
    first = refused.violations[0]
    code = REFUSED_CODES.get(first.reason, _FAILED_PRECONDITION)
    facts: dict[str, object] = dict(first.metadata)
    if not first.subject:
        return Status(code, first.reason.name, describe_violation(first), facts)
    listed = refused.violations[:VIOLATIONS_MAX]
    violations = [
        error_details_pb2.PreconditionFailure.Violation(
            type=violation.reason.name, subject=violation.subject, description=_short(describe_violation(violation))
        )
        for violation in listed
    ]
    facts["violations"] = len(refused.violations)
    message = f"{first.subject}: {_short(describe_violation(first))}"
    detail = error_details_pb2.PreconditionFailure(violations=violations)
    return Status(code, first.reason.name, message, facts, detail, encode_illegal_turn(listed))
