"""Views of stored games and changes: the engine's views with the record's public fields, without tokens and nonces."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.events import Event
from engine.game import Lobby
from engine.melding.drafts import Draft
from engine.melding.events import TileDrawn, TilesDrawn, TilesOffered, TilesPlayed, TurnPenalised
from engine.sight import see, see_event
from engine.tiles import Tile
from engine.turns import Applied
from engine.views import EventView, GameView
from engine.violations import Violation
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


@dataclass(frozen=True, slots=True)
class TurnResult:
    """The outcome of a turn for its player: the game, tiles played, their points, tiles drawn, violations."""

    game: GameSnapshotView
    tiles_played: tuple[Tile, ...] = ()
    points: int = 0
    tiles_drawn: tuple[Tile, ...] = ()
    violations: tuple[Violation, ...] = ()


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


def committed_view(record: Record, viewer: int | None) -> GameSnapshotView:
    """Returns a viewer's view of a stored game at the time of its last change."""
    return snapshot_view(record, viewer, record.updated_ms)


def change_view(entry: Entry, viewer: int | None) -> ChangeView:
    """Returns a viewer's view of a stored change."""
    events = tuple(see_event(event, viewer) for event in entry.events)
    return ChangeView(entry.revision, entry.etag, entry.time_ms, events, entry.cause)


def turn_result(game: GameSnapshotView, applied: Applied) -> TurnResult:
    """Returns the outcome of a turn for its player."""
    played = next((event for event in applied.events if isinstance(event, TilesPlayed)), None)
    return TurnResult(
        game,
        tiles_played=played.tiles if played else (),
        points=played.points if played else 0,
        tiles_drawn=sum(map(_tiles_drawn, applied.events), ()),
        violations=applied.violations,
    )


def _tiles_drawn(event: Event) -> tuple[Tile, ...]:
    """Returns the tiles that an event of a player's own turn revealed to them."""
    match event:
        case TileDrawn(_, tile):
            return (tile,)
        case TilesDrawn(_, tiles) | TilesOffered(_, tiles) | TurnPenalised(_, tiles):
            return tiles
        case _:
            return ()
