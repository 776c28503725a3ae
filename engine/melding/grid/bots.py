"""How bots play on a grid: EASY lays melds that stand alone, MEDIUM also joins tiles to the table, HARD searches on.

All find their plays by the search, which is exact; the weaker ones see less of the position and search less.
"""

from dataclasses import dataclass, replace
from typing import Final

from engine.effort import Budget
from engine.melding.actions import PlayTiles
from engine.melding.analysis import GridSituation
from engine.melding.grid.cells import Grid, cells_of, grid_of, without_faces
from engine.melding.solver.answers import Objective
from engine.melding.solver.grid_search import GridTurn, best_grid_turn, with_islands
from engine.seats import BotLevel
from engine.tiles import Tile

NODES: Final = {BotLevel.EASY: 3_000, BotLevel.MEDIUM: 6_000}
"""The most work of the levels that do not play their best."""


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


def play_on_grid(position: GridPosition, level: BotLevel, budget: Budget) -> PlayTiles | None:
    """Returns the play that a bot of a level finds; None if it finds none."""
    turn = _found(position.situation, level, budget)
    if turn is None and position.must_play and level is not BotLevel.HARD:
        turn = _found(position.situation, BotLevel.HARD, budget)
    if turn is None:
        return None
    goes_out = len(turn.tiles) == len(position.rack)
    return PlayTiles(position.seat, without_faces(turn.table), calls_rummikub=goes_out)


def _found(situation: GridSituation, level: BotLevel, budget: Budget) -> GridTurn | None:
    if level is BotLevel.HARD:
        return best_grid_turn(situation, Objective.MOST_TILES, budget).turn
    weaker = replace(budget, nodes=min(budget.nodes, NODES[level]))
    if level is BotLevel.MEDIUM:
        return best_grid_turn(situation, Objective.MOST_TILES, weaker).turn
    alone = best_grid_turn(replace(situation, table=Grid()), Objective.MOST_TILES, weaker).turn
    if alone is None:
        return None
    return GridTurn(grid_of(with_islands(cells_of(situation.table), (cells_of(alone.table),))), alone.tiles)
