"""The updates of a watched game."""

from dataclasses import dataclass
from enum import Flag

from engine.unions import Draft
from service.app.views import ChangeView, GameSnapshotView, SeatPresence
from service.app.watch_feed import SharedView


class Content(Flag):
    """The updates that a watcher gets after each change."""

    CHANGES = 1
    GAMES = 2
    BOTH = CHANGES | GAMES


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The current game, in place of all earlier changes."""

    shared: SharedView[GameSnapshotView]


@dataclass(frozen=True, slots=True)
class Change:
    """The next change, and when this server was notified of it (SharedChange.notified_at)."""

    shared: SharedView[ChangeView]
    notified_at: float | None = None


@dataclass(frozen=True, slots=True)
class GameAfter:
    """The game after the next change; `notified_at` as for Change, None if it follows the Change.

    Only the first game of a watch, a Snapshot or this, has what never changes.
    """

    shared: SharedView[GameSnapshotView]
    notified_at: float | None = None
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Nothing has changed since this revision."""

    revision: int


@dataclass(frozen=True, slots=True)
class Closing:
    """The server stops: the revision to resume from, and how long to wait before."""

    revision: int
    etag: str
    delay_ms: int


@dataclass(frozen=True, slots=True)
class LiveDraft:
    """The latest draft of the turn in progress. Others before it may be missing."""

    shared: SharedView[Draft]


@dataclass(frozen=True, slots=True)
class PresenceChange:
    """The owner of a seat has connected or gone away."""

    seat: SeatPresence


Update = Snapshot | Change | GameAfter | LiveDraft | PresenceChange | Heartbeat | Closing
