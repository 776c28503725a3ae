"""The problem that all searches solve: lay given tiles in melds, and as many or as valuable optional tiles as possible.

Only faces count here. The melds of the table are taken apart; their tiles must be laid, tiles of the rack may be.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from engine.melding.ruleset import Ruleset
from engine.melding.run_shape import MIN_TILES, RunShape, run_shape
from engine.melding.solver.answers import Objective
from engine.tiles import COLORS, DOUBLE_JOKER, JOKER, JOKERS, MAX_VALUE, Tile, tile, value_of


@dataclass(frozen=True)
class Problem:
    """Tiles to lay.

    Attributes:
        must: How often each face must be laid, jokers included.
        may: How many more of each face may be laid.
        ruleset: Defines the melds.
        objective: Defines the cost of leaving a tile.
        groups_of_must: Whether groups may contain each face only as often as it must be laid. The search with limited
            jokers (joker_search.py) ignores it.
    """

    must: Mapping[Tile, int]
    may: Mapping[Tile, int]
    ruleset: Ruleset
    objective: Objective = Objective.MOST_TILES
    groups_of_must: bool = False

    @property
    def jokers(self) -> int:
        """Returns the number of jokers."""
        return self.must.get(JOKER, 0) + self.may.get(JOKER, 0)

    @property
    def doubles(self) -> int:
        """Returns the number of double jokers."""
        return self.must.get(DOUBLE_JOKER, 0) + self.may.get(DOUBLE_JOKER, 0)

    def cost(self, tiles: Iterable[Tile]) -> int:
        """Returns the cost of leaving tiles."""
        if self.objective is Objective.MOST_TILES:
            return len(tuple(tiles))
        return sum(weight(t, self.objective, self.ruleset) for t in tiles)


def problem_from(must: Iterable[Tile], may: Iterable[Tile], ruleset: Ruleset, objective: Objective) -> Problem:
    """Returns the problem of laying tiles."""
    return Problem(Counter(must), Counter(may), ruleset, objective)


def weight(t: Tile, objective: Objective, ruleset: Ruleset) -> int:
    """Returns the cost of leaving a tile on the rack."""
    match objective:
        case Objective.MOST_TILES:
            return 1
        case Objective.HIGHEST_VALUE:
            return ruleset.score_joker_penalty if t in JOKERS else value_of(t)


FACES = tuple(tuple(tile(color, value) for color in COLORS) for value in range(1, MAX_VALUE + 1))
"""The faces of each value, by color."""


OF_COLOR = tuple(tuple(tile(color, value) for value in range(1, MAX_VALUE + 1)) for color in COLORS)
"""The faces of each color, by value."""


def reduce(full: Problem) -> Problem:
    """Returns the problem without tiles of the rack that fit in no meld, whatever else is laid."""
    needed = 3 - full.jokers
    if needed <= 1 or full.doubles:
        return full
    there = full.must.keys() | full.may.keys()
    neighbors = _meld_partners(full.ruleset.geometry_colors, run_shape(full.ruleset))
    kept = {
        t: count
        for t, count in full.may.items()
        if t == JOKER or any(len(meld & there) >= needed for meld in neighbors[t])
    }
    if len(kept) == len(full.may):
        return full
    return Problem(full.must, kept, full.ruleset, full.objective, full.groups_of_must)


def dropped_cost(problem: Problem, reduced: Problem) -> int:
    """Returns the cost of the tiles removed by `reduce`."""
    if reduced is problem:
        return 0
    return sum(problem.cost((t,)) * count for t, count in problem.may.items() if t not in reduced.may)


@lru_cache
def _meld_partners(colors: int, shape: RunShape) -> dict[Tile, tuple[frozenset[Tile], ...]]:
    """Returns the faces that can share a meld with each face: in a group of all colors, in each shortest run."""
    groups = [frozenset(faces[:colors]) for faces in FACES]
    runs = [
        frozenset(FACES[value - 1][color] for value in values)
        for color in range(colors)
        for values in shape.runs.values()
        if len(values) == MIN_TILES
    ]
    return {
        face: tuple(meld for meld in (*groups, *runs) if face in meld) for faces in FACES for face in faces[:colors]
    }
