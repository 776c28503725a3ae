"""Refusals of requests, as exceptions; grpc_api/status.py maps them to statuses.

The use cases and the codec raise them. None carries a hidden tile, a token, or internal text.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from engine.room_settings import Hints
from engine.violations import Refused


class Fault(Exception):  # noqa: N818 - not a defect of the service
    """A refusal of a request. A refused request has changed nothing."""


@dataclass(frozen=True)
class FieldFault:
    """A malformed field: its path, a description of one sentence, and the reason's name."""

    field: str
    description: str
    reason: str = "FIELD_INVALID"


class InvalidRequest(Fault):
    """The request is malformed. `fields` has every malformed field."""

    def __init__(self, *fields: FieldFault) -> None:
        super().__init__()
        self.fields = fields


class TooManyElements(InvalidRequest):
    """A long request has more elements of a field than it may. It was not decoded."""


class MalformedRequest(Fault):
    """The bytes are not a message of the request's type."""


class RequestTooLarge(Fault):
    """The request has more bytes, or more fields, than the server accepts. It was not decoded."""


class AuthorizationMalformed(Fault):
    """The authorization metadata is malformed."""


class AdminTokenWrong(Fault):
    """The call lacks the operator's token."""


class ApiKeyInvalid(Fault):
    """The server has a keys file, and the call has no valid key."""


class ApiKeyNotAllowed(Fault):
    """The caller's key may not do this: call a service, use a label or a right. `kind` says which, `name` names it."""

    def __init__(self, kind: Literal["service", "label", "right"], name: str) -> None:
        super().__init__()
        self.kind = kind
        self.name = name


class NotAPlayer(Fault):
    """The RPC needs a seat token, and the request has none."""


class SpectatorsNotAllowed(Fault):
    """The game shows nothing to callers without a token of it."""


class GameNotFound(Fault):
    """The game does not exist, or it is a game of another key."""


class TokenVoid(Fault):
    """The token is not, or no longer, valid in the game."""


class NotAdmitted(Fault):
    """A lobby does not admit the caller."""


class JoinCodeRequired(NotAdmitted):
    """A person was kicked from the unlisted lobby, so its id alone admits nobody."""


class WasKicked(NotAdmitted):
    """The host has kicked a person with this reference, or a name like this one, from the lobby."""


class PlayerRefTaken(NotAdmitted):
    """A person with this reference is in the game."""


class AlreadySeated(Fault):
    """The caller who wants to join has a seat in the game."""


class ActionRefused(Fault):
    """The rules refuse an action."""

    def __init__(self, refused: Refused) -> None:
        super().__init__()
        self.refused = refused


class TurnTimedOut(Fault):
    """The turn's deadline has passed, and its time-out has been applied."""

    def __init__(self, revision: int) -> None:
        super().__init__()
        self.revision = revision


class StaleState(Fault):
    """The game is not as the caller saw it: it has changed, or the store has lost changes."""

    def __init__(self, revision: int) -> None:
        super().__init__()
        self.revision = revision


class DuplicateRequest(Fault):
    """The request id was used before with different content."""


class HistoryUnavailable(Fault):
    """Changes that the call needs are not stored, or of another history; the advice says what to do."""

    def __init__(self, oldest: int, newest: int, advice: str = "start anew without a position") -> None:
        super().__init__()
        self.oldest = oldest
        self.newest = newest
        self.advice = advice


class GameNotOver(Fault):
    """The game has not ended, so its record would show hidden tiles; or it ended before it was dealt."""


class RecordHidden(Fault):
    """The ruleset never shows the game's racks, so it has no record."""


Limit: TypeAlias = Literal[
    "calls", "streams", "watches", "searches", "request_bytes", "drafts", "seat_drafts", "changes", "seat_changes"
]
"""A limit: on what callers hold, on the bytes of requests of slow calls, or on the rate of drafts and changes."""


class Overloaded(Fault):
    """The server, or the caller's address, key or seat, has reached a limit.

    Args:
        limit: The limit.
        is_of_key: Whether it is the quota of the caller's key.
    """

    def __init__(self, limit: Limit, *, is_of_key: bool = False) -> None:
        super().__init__()
        self.limit = limit
        self.is_of_key = is_of_key


class RequestTimedOut(Fault):
    """The request did not arrive in time, or the call's deadline passed before the answer."""


class TooManyGames(Fault):
    """The caller's address or key has created too many games in the last minute."""


class JoinCodeUnknown(Fault):
    """No game in the lobby has the join code."""


class TooManyGuesses(Fault):
    """The caller's address or key has sent too many unknown join codes in the last minute."""


class TooManyDrafts(Overloaded):
    """The caller's seat, address or key saves too many drafts. Its client saves a newer one later."""


class StoreFull(Fault):
    """The store's remaining memory is reserved for existing games."""


class ShuttingDown(Fault):
    """The server is stopping."""


class StoreUnavailable(Fault):
    """The store does not reply in time, or replies with an error. It may have applied the change."""


class StoredFormatUnknown(Fault):
    """The stored data is damaged, or a newer server wrote it."""


class HintNotAllowed(Fault):
    """The game does not allow its seats this hint."""

    def __init__(self, allowed: Hints) -> None:
        super().__init__()
        self.allowed = allowed


class AnalysisBusy(Fault):
    """The analysis queue is full."""


class AnalysisUnavailable(Fault):
    """The worker process that searched has ended, or did not stop in time."""
