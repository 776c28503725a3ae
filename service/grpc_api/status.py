"""Maps exceptions to gRPC statuses: code, reason, message, details.

Every status has exactly one google.rpc.ErrorInfo, one Refusal with the same reason and metadata and the violations of
an illegal turn, and at most one of BadRequest and RetryInfo. Any other exception becomes INTERNAL.

A status with RetryInfo has its delay as RETRY_PUSHBACK too: gRPC libraries that retry by a service config read only
that.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Final

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from engine.violation_texts import describe_violation
from engine.violations import Refused, Violation
from rummikub.v1 import violation_pb2
from service.app.change_pace import SEAT_CHANGES, SEAT_SECONDS
from service.codec.tiles import MELD_TILES_MAX, encode_violation, reason_number
from service.errors import ActionRefused, Fault, InvalidRequest, Limit, Overloaded
from service.storage.store import DRAFT_MS

DOMAIN: Final = "rummikub.v1"
DETAILS: Final = "grpc-status-details-bin"
"""The trailing metadata for the google.rpc.Status."""
RETRY_PUSHBACK: Final = "grpc-retry-pushback-ms"
"""The trailing metadata for the delay before a retry."""
FOR_PROXIES: Final = {
    "SHUTTING_DOWN": ("rummikub-retry-elsewhere", "1"),
    "OVERLOADED": ("x-envoy-ratelimited", "1"),
}
"""The trailing metadata by which a proxy knows a reason: after the first it may send the call, which has changed
nothing, to another server; after the second it may not, because that would multiply an excess of calls."""
RETRY_MS: Final = 1_000
"""The delay before a retry, in milliseconds."""
VIOLATIONS_MAX: Final = 16
"""Most violations in a status, because clients limit the size of trailing metadata."""
DESCRIPTION_MAX: Final = 200
"""Most characters of a text in a status."""

CODES: Final[Mapping[grpc.StatusCode, Collection[str]]] = {
    grpc.StatusCode.INVALID_ARGUMENT: ("MALFORMED_REQUEST",),
    grpc.StatusCode.UNAUTHENTICATED: (
        *("AUTHORIZATION_MALFORMED", "API_KEY_INVALID", "TOKEN_VOID", "TICKET_REQUIRED", "TICKET_EXPIRED"),
        *("TICKET_MALFORMED", "TICKET_ALGORITHM_NOT_ALLOWED", "TICKET_SIGNATURE_INVALID", "TICKET_AUDIENCE_WRONG"),
    ),
    grpc.StatusCode.PERMISSION_DENIED: (
        *("API_KEY_NOT_ALLOWED", "NOT_A_PLAYER", "NOT_THE_HOST", "SPECTATORS_NOT_ALLOWED"),
        *("JOIN_CODE_REQUIRED", "PLAYER_KICKED", "TICKET_OUT_OF_SCOPE", "TICKET_USED"),
    ),
    grpc.StatusCode.NOT_FOUND: ("GAME_NOT_FOUND", "JOIN_CODE_UNKNOWN", "CHALLENGE_NOT_FOUND"),
    grpc.StatusCode.ALREADY_EXISTS: ("PLAYER_ALREADY_JOINED",),
    grpc.StatusCode.ABORTED: ("DUPLICATE_REQUEST", "STALE_STATE"),
    grpc.StatusCode.OUT_OF_RANGE: ("HISTORY_UNAVAILABLE",),
    grpc.StatusCode.DEADLINE_EXCEEDED: ("REQUEST_TIMED_OUT",),
    grpc.StatusCode.RESOURCE_EXHAUSTED: (
        *("TOO_MANY_GAMES", "TOO_MANY_GUESSES", "TOO_MANY_CHALLENGES", "STORE_FULL", "ANALYSIS_BUSY"),
    ),
    grpc.StatusCode.UNAVAILABLE: (
        *("STORE_UNAVAILABLE", "STORED_FORMAT_UNKNOWN", "ANALYSIS_UNAVAILABLE", "SHUTTING_DOWN"),
    ),
}
"""The codes of faults and of the engine's refusals, by reason; all others of these have FAILED_PRECONDITION."""
_CODE_OF: Final = {reason: code for code, reasons in CODES.items() for reason in reasons}
RETRYABLE: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED})
"""The codes of temporary failures, whose statuses have RetryInfo."""

LIMITED: Final[Mapping[Limit, str]] = {
    "calls": "calls in progress",
    "streams": "open StreamValidateTurns",
    "watches": "open WatchGame streams",
    "searches": "searches in progress and waiting",
    "request_bytes": "bytes of slow requests",
    "drafts": "drafts per second",
    "seat_drafts": f"{1000 // DRAFT_MS} drafts per second",
    "changes": "changes per second that are no turns",
    "seat_changes": f"{SEAT_CHANGES} changes in {SEAT_SECONDS:.0f} s that are no turns",
}
"""The text of each limit, which follows "its limit of"."""
_LIMITED_HOLDERS: Final[Mapping[Limit, str]] = {
    "drafts": "your address",
    "seat_drafts": "your seat",
    "changes": "your address",
    "seat_changes": "your seat",
}
"""Who has a limit, if it is not the server together with the caller's address."""


@dataclass(frozen=True)
class Status:
    """A status.

    Attributes:
        code: The gRPC code.
        reason: The name of an ErrorReason.
        message: The text for a developer.
        metadata: The reason's metadata.
        detail: A BadRequest, if fields are at fault.
        violations: The violations of an illegal turn.
        retry_ms: The delay before a retry, if one may succeed.
    """

    code: grpc.StatusCode
    reason: str
    message: str
    metadata: Mapping[str, object] = field(default_factory=dict)
    detail: Message | None = None
    violations: Sequence[violation_pb2.Violation] = ()
    retry_ms: int | None = None

    @property
    def limit(self) -> str:
        """The limit that refuses the call, for metrics; "" if the reason says it."""
        return str(self.metadata.get("limit", ""))

    @cached_property
    def trailing_metadata(self) -> tuple[tuple[str, str | bytes], ...]:
        """The trailing metadata: the details, the delay before a retry, and what a proxy has to know."""
        trailing: list[tuple[str, str | bytes]] = [(DETAILS, self.serialize())]
        if self.retry_ms is not None:
            trailing.append((RETRY_PUSHBACK, str(self.retry_ms)))
        if self.reason in FOR_PROXIES:
            trailing.append(FOR_PROXIES[self.reason])
        return tuple(trailing)

    def serialize(self) -> bytes:
        """Returns the google.rpc.Status for the trailing metadata `grpc-status-details-bin`."""
        metadata = {key: str(value) for key, value in self.metadata.items()}
        info = error_details_pb2.ErrorInfo(reason=self.reason, domain=DOMAIN, metadata=metadata)
        refusal = violation_pb2.Refusal(
            reason=reason_number(self.reason), metadata=metadata, violations=self.violations
        )
        details = [_packed(info), _packed(refusal)]
        if self.detail is not None:
            details.append(_packed(self.detail))
        if self.retry_ms is not None:
            details.append(_packed(error_details_pb2.RetryInfo(retry_delay=_duration(self.retry_ms))))
        number: int = self.code.value[0]
        status: Message = status_pb2.Status(code=number, message=self.message, details=details)
        return status.SerializeToString()


def _packed(message: Message) -> Any:
    packed = Any()
    packed.Pack(message)
    return packed


def _duration(milliseconds: int) -> Duration:
    duration = Duration()
    duration.FromMilliseconds(milliseconds)
    return duration


def _plain(fault: Fault | type[Fault]) -> Status:
    """Returns the status that a fault describes."""
    code = _CODE_OF.get(fault.reason, grpc.StatusCode.FAILED_PRECONDITION)
    retry_ms = RETRY_MS if code in RETRYABLE else None
    return Status(code, fault.reason, fault.message, fault.metadata, retry_ms=retry_ms)


def _kinds(kind: type[Fault]) -> Iterator[type[Fault]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


CONSTANT: Final = {kind: _plain(kind) for kind in _kinds(Fault) if kind.reason and kind.message}
"""Of faults without values. Each encodes its details once, which takes longer than the rest of a refusal."""
_INTERNAL: Final = Status(
    grpc.StatusCode.INTERNAL, "INTERNAL_ERROR", "internal error; the server's log has the request id"
)


def status_of(error: Exception) -> Status:
    """Returns the status of an exception."""
    match error:
        case InvalidRequest():
            return _invalid(error)
        case ActionRefused():
            return _refused(error.refused)
        case Overloaded():
            return _overloaded(error.limit, is_of_key=error.is_of_key)
        case Fault(reason=reason, metadata=metadata) if reason:
            return _plain(error) if metadata else CONSTANT[type(error)]
        case _:
            return _INTERNAL


@cache
def _overloaded(limit: Limit, *, is_of_key: bool) -> Status:
    holder = "your key" if is_of_key else _LIMITED_HOLDERS.get(limit, "this server, or your address,")
    advice = "save the newest one again later" if "drafts" in limit else "retry later with the same request id"
    message = f"{holder} has reached its limit of {LIMITED[limit]}; {advice}"
    metadata = {"limit": f"key_{limit}" if is_of_key else limit}
    return Status(grpc.StatusCode.UNAVAILABLE, "OVERLOADED", message, metadata, retry_ms=RETRY_MS)


def _short(description: str) -> str:
    """Returns a description cut to DESCRIPTION_MAX.

    It does not end with a space, which HTTP/2 does not allow there; strict libraries drop such a message.
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
    return Status(grpc.StatusCode.INVALID_ARGUMENT, first.reason, message, detail=detail)


def _refused(refused: Refused) -> Status:
    """Returns the status of a rejected action; an illegal play lists its violations."""
    first = refused.violations[0]
    code = _CODE_OF.get(first.reason.name, grpc.StatusCode.FAILED_PRECONDITION)
    facts: dict[str, object] = dict(first.metadata)
    if not first.subject:
        return Status(code, first.reason.name, describe_violation(first), facts)
    facts["violations"] = len(refused.violations)
    message = f"{first.subject}: {_short(describe_violation(first))}"
    listed = [_listed(violation) for violation in refused.violations[:VIOLATIONS_MAX]]
    return Status(code, first.reason.name, message, facts, violations=listed)


def _listed(violation: Violation) -> violation_pb2.Violation:
    """Returns a violation for a status, whose size gRPC limits: the text and a long list of tiles are cut."""
    message = encode_violation(violation)
    message.text = _short(message.text)
    del message.tiles[MELD_TILES_MAX:]
    return message
