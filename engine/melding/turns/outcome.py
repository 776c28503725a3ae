"""The outcome of a turn for its player."""

from engine.decisions import TurnOutcome
from engine.events import Event
from engine.melding.events import TileDrawn, TilesDrawn, TilesOffered, TilesPlayed, TurnPenalised
from engine.tiles import Tile


def outcome(events: tuple[Event, ...]) -> TurnOutcome:
    """Returns the tiles played, their points and the tiles drawn in a player's own turn."""
    played: tuple[Tile, ...] = ()
    drawn: tuple[Tile, ...] = ()
    points = 0
    for event in events:
        match event:
            case TilesPlayed():
                played, points = event.tiles, event.points
            case TileDrawn(_, tile):
                drawn += (tile,)
            case TilesDrawn(_, tiles) | TilesOffered(_, tiles) | TurnPenalised(_, tiles):
                drawn += tiles
            case _:
                pass
    return TurnOutcome(played, points, drawn)
