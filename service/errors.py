"""Everything that can go wrong with a request, as exceptions; errors.py turns them into statuses.

The use cases and the codec raise these; none of them carries a hidden tile, a token or a text of the inside.
"""

from dataclasses import dataclass

from engine.ruleset import Hints
from engine.violations import Refused


class Fault(Exception):  # noqa: N818 - not an error of ours: the caller is at fault, or the time is not right
    """A refusal of a request. A refused request has changed nothing."""


@dataclass(frozen=True)
class FieldFault:
    """What is wrong with a field: its path, one sentence, and the reason's name."""

    field: str
    description: str
    reason: str = "FIELD_INVALID"


class InvalidRequest(Fault):
    """The request is malformed; names every field at fault."""

    def __init__(self, *fields: FieldFault) -> None:
        super().__init__()
        self.fields = fields


class MalformedRequest(Fault):
    """The bytes are not a message of the request's type."""


class AuthorizationMalformed(Fault):
    """The authorization metadata is not of its form."""


class NotAPlayer(Fault):
    """The RPC needs a seat token and none was sent."""


class GameNotFound(Fault):
    """There is no such game, or the token is not one of its seats'."""


class AlreadySeated(Fault):
    """The caller who joins has a seat in the game."""


class ActionRefused(Fault):
    """The rules refuse an action."""

    def __init__(self, refused: Refused) -> None:
        super().__init__()
        self.refused = refused


class TurnTimedOut(Fault):
    """The turn's deadline has passed, and the time-out has been applied."""

    def __init__(self, revision: int) -> None:
        super().__init__()
        self.revision = revision


class StaleState(Fault):
    """The game has changed since the revision that the caller saw."""

    def __init__(self, revision: int) -> None:
        super().__init__()
        self.revision = revision


class EtagMismatch(Fault):
    """The caller saw a history that the store has lost."""

    def __init__(self, revision: int) -> None:
        super().__init__()
        self.revision = revision


class DuplicateRequest(Fault):
    """The request id was used before with another content."""


class HistoryUnavailable(Fault):
    """The revision to resume from is not in the event stream."""

    def __init__(self, oldest: int, newest: int) -> None:
        super().__init__()
        self.oldest = oldest
        self.newest = newest


class Overloaded(Fault):
    """The server, or the caller's address, has as many calls under way as it may."""


class RequestTimedOut(Fault):
    """The request did not arrive in time, or the call's deadline passed before it was answered."""


class TooManyGames(Fault):
    """The caller's address has created as many games in the last minute as it may."""


class StoreFull(Fault):
    """What is left of the store's memory is kept for games that exist."""


class ShuttingDown(Fault):
    """The server stops."""


class StoreUnavailable(Fault):
    """The store does not answer, or not in time; what was sent to it may have been applied."""


class StoredFormatUnknown(Fault):
    """What is stored was written by a newer server, or is damaged."""


class HintNotAllowed(Fault):
    """The game does not let its seats ask for that much."""

    def __init__(self, allowed: Hints) -> None:
        super().__init__()
        self.allowed = allowed


class AnalysisBusy(Fault):
    """Exact analysis has as many calls under way and waiting as it takes."""


class AnalysisUnavailable(Fault):
    """The process that looked for the answer has ended, or did not stop in time."""
