"""Refusals of requests, as exceptions with their reasons and texts; grpc_api/status.py makes statuses of them.

The use cases and the codec raise them. None carries a hidden tile, a token, or internal text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from engine.room_settings import Hints
from engine.violations import Refused


class Fault(Exception):  # noqa: N818 - not a defect of the service
    """A refusal of a request. A refused request has changed nothing.

    Attributes:
        reason: The name of its ErrorReason.
        message: The text for a developer.
        metadata: The reason's metadata.
    """

    reason: ClassVar[str] = ""
    message: str = ""
    metadata: Mapping[str, object] = {}


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

    reason = "MALFORMED_REQUEST"
    message = "the bytes are not a message of the request's type; generate the client from the .proto files"


class RequestTooLarge(Fault):
    """The request has more bytes, or more fields, than the server accepts. It was not decoded."""

    reason = "MALFORMED_REQUEST"
    message = "the request has more bytes than RUMMIKUB_MAX_MESSAGE_BYTES, or too many submessages; send less at once"


class AuthorizationMalformed(Fault):
    """The authorization metadata is malformed."""

    reason = "AUTHORIZATION_MALFORMED"
    message = "expected the metadata `authorization: Bearer <seat token>`, with the token from JoinGame"


class AdminTokenWrong(Fault):
    """The call lacks the operator's token."""

    reason = "AUTHORIZATION_MALFORMED"
    message = "expected the metadata `authorization: Bearer <token>`, with the token in RUMMIKUB_ADMIN_TOKEN_FILE"


class ApiKeyInvalid(Fault):
    """The server has a keys file, and the call has no valid key."""

    reason = "API_KEY_INVALID"
    message = "this server requires a key; send a valid one, once, as the metadata `x-api-key`"


class ApiKeyNotAllowed(Fault):
    """The caller's key may not do this: call a service, use a label or a right. `kind` says which, `name` names it."""

    reason = "API_KEY_NOT_ALLOWED"

    def __init__(self, kind: Literal["service", "label", "right"], name: str) -> None:
        super().__init__()
        needed = "this needs a key with the right" if kind == "right" else f"your key is not for the {kind}"
        self.message = f"{needed} {name}"
        self.metadata = {"kind": kind, "name": name}


class NotAPlayer(Fault):
    """The RPC needs a seat token, and the request has none."""

    reason = "NOT_A_PLAYER"
    message = "this call needs a seat; send `authorization: Bearer <seat token>` with the token from JoinGame"


class SpectatorsNotAllowed(Fault):
    """The game shows nothing to callers without a token of it."""

    reason = "SPECTATORS_NOT_ALLOWED"
    message = "this game shows nothing to spectators; send a token of the game"


class GameNotFound(Fault):
    """The game does not exist, or it is a game of another key."""

    reason = "GAME_NOT_FOUND"
    message = "there is no such game: it has expired, its id is wrong, or it is a game of another key"


class TokenVoid(Fault):
    """The token is not, or no longer, valid in the game."""

    reason = "TOKEN_VOID"
    message = "the token is not valid in this game: it was renewed, the seat was left, or the token is of another game"


class NotAdmitted(Fault):
    """A lobby does not admit the caller."""


class JoinCodeRequired(NotAdmitted):
    """A person was kicked from the unlisted lobby, so its id alone admits nobody."""

    reason = "JOIN_CODE_REQUIRED"
    message = "a player was removed from this lobby, so it needs its new join code; get it from a player of the game"


class WasKicked(NotAdmitted):
    """The host has kicked a person with this reference, or a name like this one, from the lobby."""

    reason = "PLAYER_KICKED"
    message = "the host has removed a player with this player_ref, or a name like this one, from the lobby"


class PlayerRefTaken(NotAdmitted):
    """A person with this reference is in the game."""

    reason = "PLAYER_ALREADY_JOINED"
    message = "a player with this player_ref has a seat in this game"


class TicketRequired(Fault):
    """Players join, and have references, with tickets of the caller's key only, and challenge with tickets only."""

    reason = "TICKET_REQUIRED"
    message = "the player needs a join_ticket of the back end of your key; send one"


class TicketMalformed(Fault):
    """A join ticket is no JWT, or a claim is missing or of the wrong form. `claim` names the claim or the part."""

    reason = "TICKET_MALFORMED"

    def __init__(self, claim: str) -> None:
        super().__init__()
        self.message = f"the join_ticket is no JWT of the expected form: {claim} is missing or not valid"
        self.metadata = {"claim": claim}


class TicketAlgorithmNotAllowed(Fault):
    """No ticket key of the caller's key has the algorithm of a join ticket."""

    reason = "TICKET_ALGORITHM_NOT_ALLOWED"
    message = "your key has no ticket key for the algorithm (alg) of this join_ticket; see docs/tickets.md"


class TicketSignatureInvalid(Fault):
    """No ticket key of the caller's key has signed a join ticket."""

    reason = "TICKET_SIGNATURE_INVALID"
    message = "no ticket key of your key has signed this join_ticket"


class TicketAudienceWrong(Fault):
    """A join ticket is for another audience."""

    reason = "TICKET_AUDIENCE_WRONG"
    message = "the audience (aud) of this join_ticket is not that of your key"


class TicketExpired(Fault):
    """A join ticket has expired."""

    reason = "TICKET_EXPIRED"
    message = "this join_ticket has expired; get a new one from the back end"


class TicketOutOfScope(Fault):
    """A join ticket is for something else than the request; `claim` names the claim that differs."""

    reason = "TICKET_OUT_OF_SCOPE"

    def __init__(self, claim: str) -> None:
        super().__init__()
        self.message = f"this join_ticket is for another {claim} than the request"
        self.metadata = {"claim": claim}


class TicketUsed(Fault):
    """A join ticket has taken a seat before."""

    reason = "TICKET_USED"
    message = "this join_ticket has already taken a seat; get a new one from the back end"


class AlreadySeated(Fault):
    """The caller who wants to join has a seat in the game."""

    reason = "PLAYER_ALREADY_JOINED"
    message = "the token already has a seat in this game"


class ActionRefused(Fault):
    """The rules refuse an action."""

    def __init__(self, refused: Refused) -> None:
        super().__init__()
        self.refused = refused


class TurnTimedOut(Fault):
    """The turn's deadline has passed, and its time-out has been applied."""

    reason = "TURN_TIMED_OUT"
    message = "the turn's deadline has passed, and the time-out was applied; read the game again"

    def __init__(self, revision: int) -> None:
        super().__init__()
        self.metadata = {"revision": revision}


class StaleState(Fault):
    """The game is not as the caller saw it: it has changed, or the store has lost changes."""

    reason = "STALE_STATE"

    def __init__(self, revision: int) -> None:
        super().__init__()
        self.message = f"the game is at revision {revision}, and the etag is of another state; read it again"
        self.metadata = {"revision": revision}


class DuplicateRequest(Fault):
    """The request id was used before with different content."""

    reason = "DUPLICATE_REQUEST"
    message = "the request id was used for a different request; use a new one"


class HistoryUnavailable(Fault):
    """Changes that the call needs are not stored, or of another history; the advice says what to do."""

    reason = "HISTORY_UNAVAILABLE"

    def __init__(self, oldest: int, newest: int, advice: str = "start anew without a position") -> None:
        super().__init__()
        kept = f"only the changes {oldest} to {newest} are stored; " if newest else ""
        self.message = f"{kept}{advice}"
        self.metadata = {"oldest": oldest, "newest": newest}


class GameNotOver(Fault):
    """The game has not ended, so its record would show hidden tiles; or it ended before it was dealt."""

    reason = "GAME_NOT_OVER"
    message = "the game has not ended, or was never dealt, so it has no record"


class RecordHidden(Fault):
    """The room's settings never show the game's racks, so it has no record."""

    reason = "RECORD_HIDDEN"
    message = "the racks of this game stay hidden (option racks_shown is HIDDEN)"


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

    reason = "REQUEST_TIMED_OUT"
    message = "the request did not arrive within RUMMIKUB_REQUEST_SECONDS, or the call's deadline passed; retry"


class TooManyGames(Fault):
    """The caller's address or key has created too many games in the last minute."""

    reason = "TOO_MANY_GAMES"
    message = "your address or key has reached its limit of new games per minute; retry later"


class JoinCodeUnknown(Fault):
    """No game in the lobby has the join code."""

    reason = "JOIN_CODE_UNKNOWN"
    message = "no game has this join code; check it, or get the code again from a player of the game"


class TooManyGuesses(Fault):
    """The caller's address or key has sent too many unknown join codes in the last minute."""

    reason = "TOO_MANY_GUESSES"
    message = "your address or key has sent too many unknown join codes; retry later"


class TooManyChallenges(Fault):
    """One of the players has too many challenges.

    Args:
        limit: The limit's name.
        text: What has reached it.
    """

    reason = "TOO_MANY_CHALLENGES"

    def __init__(self, limit: str, text: str) -> None:
        self.metadata = {"limit": limit}
        self.message = f"{text}; retry when some have ended, or in a minute"


class ChallengeNotFound(Fault):
    """The caller has no such challenge to answer or to cancel; it may be one of others."""

    reason = "CHALLENGE_NOT_FOUND"
    message = "you have no such challenge to answer or to cancel"


class ChallengeOver(Fault):
    """The challenge has ended otherwise."""

    reason = "CHALLENGE_OVER"

    def __init__(self, state: str) -> None:
        super().__init__()
        self.message = f"the challenge is {state}"
        self.metadata = {"state": state}


class TooManyDrafts(Overloaded):
    """The caller's seat, address or key saves too many drafts. Its client saves a newer one later."""


class StoreFull(Fault):
    """The store's remaining memory is reserved for existing games."""

    reason = "STORE_FULL"
    message = (
        "the store is nearly full: turns of started games go on, but neither new games nor other changes; retry later"
    )


class ShuttingDown(Fault):
    """The server is stopping."""

    reason = "SHUTTING_DOWN"
    message = "this server is stopping; retry"


class StoreUnavailable(Fault):
    """The store does not reply in time, or replies with an error. It may have applied the change."""

    reason = "STORE_UNAVAILABLE"
    message = "the store does not answer; retry with the same request id"


class StoredFormatUnknown(Fault):
    """The stored data is damaged, or a newer server wrote it."""

    reason = "STORED_FORMAT_UNKNOWN"
    message = "the game was stored by a newer server or is damaged; retry"


class HintNotAllowed(Fault):
    """The game does not allow its seats this hint."""

    reason = "HINT_NOT_ALLOWED"

    def __init__(self, allowed: Hints) -> None:
        super().__init__()
        self.message = f"this game does not allow this hint (option hints is {allowed.name})"
        self.metadata = {"hints": allowed.name}


class AnalysisBusy(Fault):
    """The analysis queue is full."""

    reason = "ANALYSIS_BUSY"
    message = "the analysis queue is full; retry later"


class AnalysisUnavailable(Fault):
    """The worker process that searched has ended, or did not stop in time."""

    reason = "ANALYSIS_UNAVAILABLE"
    message = "the analysis process ended before it answered; retry"
