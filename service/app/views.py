"""What a caller may see of what is stored: an engine's view with the record's own facts, but no token and no nonce."""

from dataclasses import dataclass

from engine.tiles import Tile
from engine.views import EventView, GameView, see, see_event
from engine.violations import Violation
from service.storage.base import Entry, Record


@dataclass(frozen=True, slots=True)
class GameSight:
    """A game as one seat, or a spectator, may see it, and the store's time when it was looked at."""

    game_id: str
    etag: str
    created_ms: int
    updated_ms: int
    now_ms: int
    view: GameView


@dataclass(frozen=True, slots=True)
class ChangeSight:
    """A change as one seat, or a spectator, may see it."""

    revision: int
    etag: str
    time_ms: int
    events: tuple[EventView, ...]


@dataclass(frozen=True, slots=True)
class TurnSight:
    """What a turn brought its player: the game, tiles played and their points, tiles drawn, why it was illegal."""

    game: GameSight
    tiles_played: tuple[Tile, ...] = ()
    points: int = 0
    tiles_drawn: tuple[Tile, ...] = ()
    violations: tuple[Violation, ...] = ()


def see_game(record: Record, seat: int | None, now_ms: int) -> GameSight:
    """A stored game for a seat, or a spectator."""
    view = see(record.game, seat)
    return GameSight(record.game_id, record.etag, record.created_ms, record.updated_ms, now_ms, view)


def see_change(entry: Entry, seat: int | None) -> ChangeSight:
    """A stored change for a seat, or a spectator."""
    events = tuple(see_event(event, seat) for event in entry.events)
    return ChangeSight(entry.revision, entry.etag, entry.time_ms, events)
