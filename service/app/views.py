"""Views of stored games and changes: the engine's views with the record's public fields, without tokens and nonces."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.game import Lobby
from engine.sight import see, see_event
from engine.unions import Draft
from engine.views import EventView, GameView
from service.model.change import Cause, Entry
from service.model.record import Record, Visibility


@dataclass(frozen=True, slots=True)
class SeatPresence:
    """Whether the owner of a seat watches the game, and when they were seen last (0: never), by the store's clock."""

    seat: int
    is_connected: bool
    last_seen_ms: int


@dataclass(frozen=True, slots=True)
class GameSnapshotView:
    """A stored game as one seat or a spectator sees it, and the store's time of the reading.

    `presence` has the presence of each player who is not a bot, by seat; None where it is not shown. `join_code` is
    empty for spectators, and after the start. Viewers are those of engine.sight.
    """

    game_id: str
    etag: str
    created_ms: int
    updated_ms: int
    now_ms: int
    view: GameView
    visibility: Visibility
    labels: tuple[tuple[str, str], ...]
    join_code: str
    presence: Mapping[int, SeatPresence] | None = None


@dataclass(frozen=True, slots=True)
class ChangeView:
    """A stored change as one seat or a spectator sees it; without a cause if it cannot be read."""

    revision: int
    etag: str
    time_ms: int
    events: tuple[EventView, ...]
    cause: Cause | None = None


def snapshot_view(
    record: Record,
    viewer: int | None,
    now_ms: int,
    draft: Draft | None = None,
    presence: Mapping[int, SeatPresence] | None = None,
) -> GameSnapshotView:
    """Returns a viewer's view of a stored game, with its last draft and the presence of its players."""
    listing = record.listing
    sees_code = isinstance(record.game.phase, Lobby) and viewer is not None
    return GameSnapshotView(
        record.game_id,
        record.etag,
        record.created_ms,
        record.updated_ms,
        now_ms,
        see(record.game, viewer, draft),
        listing.visibility,
        listing.labels,
        listing.join_code if sees_code else "",
        presence,
    )


def change_view(entry: Entry, viewer: int | None) -> ChangeView:
    """Returns a viewer's view of a stored change."""
    events = tuple(see_event(event, viewer) for event in entry.events)
    return ChangeView(entry.revision, entry.etag, entry.time_ms, events, entry.cause)
