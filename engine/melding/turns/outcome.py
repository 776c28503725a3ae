"""What a turn's events tell its player."""

from engine.decisions import TurnOutcome
from engine.events import Event
from engine.melding.events import TileDrawn, TilesDrawn, TilesOffered, TilesPlayed, TurnPenalised
from engine.tiles import Tile


def outcome(events: tuple[Event, ...]) -> TurnOutcome:
    """Returns what the events of a player's own turn tell the player."""
    played = next((event for event in events if isinstance(event, TilesPlayed)), None)
    drawn = sum(map(_tiles_drawn, events), ())
    return TurnOutcome(played.tiles, played.points, drawn) if played else TurnOutcome(tiles_drawn=drawn)


def _tiles_drawn(event: Event) -> tuple[Tile, ...]:
    match event:
        case TileDrawn(_, tile):
            return (tile,)
        case TilesDrawn(_, tiles) | TilesOffered(_, tiles) | TurnPenalised(_, tiles):
            return tiles
        case _:
            return ()
