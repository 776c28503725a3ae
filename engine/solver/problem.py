"""The question behind every other: lay these tiles in melds, and as much as possible of those.

Only faces count here: the melds of the table are taken apart, what lies on it must be laid, what is on the rack may be.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.ruleset import Ruleset, RunWrap
from engine.solver.answers import Objective
from engine.tiles import COLORS, JOKER, MAX_VALUE, Tile, tile, value_of


@dataclass(frozen=True)
class Problem:
    """Tiles to lay.

    Attributes:
        must: How often each face must be laid, jokers too.
        may: How often more it may be laid.
        ruleset: What is a meld.
        objective: What leaving a tile costs.
    """

    must: Mapping[Tile, int]
    may: Mapping[Tile, int]
    ruleset: Ruleset
    objective: Objective = Objective.MOST_TILES

    @property
    def jokers(self) -> int:
        """All jokers there are."""
        return self.must.get(JOKER, 0) + self.may.get(JOKER, 0)

    def cost(self, tiles: Iterable[Tile]) -> int:
        """What it costs to leave tiles."""
        return sum(weight(t, self.objective, self.ruleset) for t in tiles)


def problem(must: Iterable[Tile], may: Iterable[Tile], ruleset: Ruleset, objective: Objective) -> Problem:
    """The problem of laying tiles."""
    return Problem(Counter(must), Counter(may), ruleset, objective)


def weight(t: Tile, objective: Objective, ruleset: Ruleset) -> int:
    """What it costs to leave a tile on the rack."""
    match objective:
        case Objective.MOST_TILES:
            return 1
        case Objective.HIGHEST_VALUE:
            return ruleset.score_joker_penalty if t == JOKER else value_of(t)


FACES = tuple(tuple(tile(color, value) for color in COLORS) for value in range(1, MAX_VALUE + 1))
"""The faces of each value, a color each."""


def layable(wanted: Problem) -> Problem:
    """The problem without tiles of the rack that can be in no meld at all, whatever lies beside them."""
    if not any(t != JOKER for t in wanted.may):
        return wanted
    there = {t for t in (*wanted.must, *wanted.may) if t != JOKER}
    kept = {t: count for t, count in wanted.may.items() if t == JOKER or _fits(t, there, wanted)}
    return wanted if len(kept) == len(wanted.may) else Problem(wanted.must, kept, wanted.ruleset, wanted.objective)


def _fits(t: Tile, there: set[Tile], wanted: Problem) -> bool:
    """Whether a tile can be in a meld with others that are there and all jokers."""
    needed = 3 - wanted.jokers
    colors, wrap = wanted.ruleset.geometry_colors, wanted.ruleset.run_wrap
    return (
        needed <= 1
        or sum(face in there for face in FACES[value_of(t) - 1][:colors]) >= needed
        or any(sum(face in there for face in window) >= needed for window in _WINDOWS[wrap][t])
    )


def _windows(wrap: RunWrap) -> dict[Tile, tuple[tuple[Tile, ...], ...]]:
    """The shortest runs that each face can be in."""
    last = {RunWrap.NONE: 11, RunWrap.ONE_HIGH: 12, RunWrap.CYCLIC: 13}[wrap]
    found: dict[Tile, list[tuple[Tile, ...]]] = {}
    for place in range(len(COLORS)):
        for first in range(last):
            window = tuple(FACES[(first + step) % MAX_VALUE][place] for step in range(3))
            for t in window:
                found.setdefault(t, []).append(window)
    return {t: tuple(windows) for t, windows in found.items()}


_WINDOWS = {wrap: _windows(wrap) for wrap in RunWrap}
