"""How bots play on a grid: by the search, of what they notice (skill.py). One that overlooks the table lays islands."""

from dataclasses import dataclass, replace

from engine.effort import Budget
from engine.melding.actions import PlayTiles
from engine.melding.analysis import GridSituation
from engine.melding.grid.cells import Grid, cells_of, grid_of, without_faces
from engine.melding.solver.answers import Objective
from engine.melding.solver.grid_search import GridTurn, best_grid_turn, with_islands
from engine.skill import Skill, is_noticed, noticed_tiles
from engine.tiles import Tile
from engine.views import GameView


@dataclass(frozen=True, slots=True)
class GridPosition:
    """The position of a bot.

    Attributes:
        seat: Its seat.
        situation: Its situation, with the tiles that it may play now.
        rack: All tiles of its rack, including one drawn in this turn.
        must_play: Whether it must play if a play exists.
    """

    seat: int
    situation: GridSituation
    rack: tuple[Tile, ...]
    must_play: bool


def play_on_grid(position: GridPosition, view: GameView, skill: Skill | None, budget: Budget) -> PlayTiles | None:
    """Returns the play that a bot finds; None if it finds none. Without a skill it overlooks nothing."""
    turn = _noticed(position.situation, view, skill, budget) if skill else None
    if turn is None and (skill is None or position.must_play):
        turn = best_grid_turn(position.situation, Objective.MOST_TILES, budget).turn
    if turn is None:
        return None
    goes_out = len(turn.tiles) == len(position.rack)
    return PlayTiles(position.seat, without_faces(turn.table), calls_rummikub=goes_out)


def _noticed(situation: GridSituation, view: GameView, skill: Skill, budget: Budget) -> GridTurn | None:
    """Returns the best turn with the tiles that a bot notices."""
    seen = replace(situation, rack=noticed_tiles(view, situation.rack, skill))
    if is_noticed(view, (), skill.table):
        return best_grid_turn(seen, Objective.MOST_TILES, budget).turn
    alone = best_grid_turn(replace(seen, table=Grid()), Objective.MOST_TILES, budget).turn
    if alone is None:
        return None
    return GridTurn(grid_of(with_islands(cells_of(situation.table), (cells_of(alone.table),))), alone.tiles)
