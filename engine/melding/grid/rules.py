"""The rules of a play on a grid, one small function per rule, in the order in which violations are reported.

As with melds, a play is the proposed table. `GRID_RULES` lists the rules; those on the exchange of tiles are shared.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from engine.melding.grid.cells import Cell, Grid, grid_of, neighbors
from engine.melding.grid.play import GridPlay
from engine.melding.initial_meld import reaches
from engine.melding.melds import NotAMeld
from engine.melding.rules import (
    a_rack_tile_is_played,
    natural_points,
    no_joker_leaves_the_table,
    no_tile_is_used_twice,
    no_tile_leaves_the_table,
    tiles_are_of_the_game,
    tiles_come_from_the_rack,
)
from engine.melding.ruleset import InitialMeldJoker, Manipulation, Ruleset
from engine.melding.variants import the_drawn_tile_stays, the_river_has_the_tile, the_winner_calls
from engine.tiles import JOKER, Tile
from engine.violations import Reason, Violation


@dataclass(frozen=True, slots=True)
class GridJudgement:
    """The result of judging a play on a grid.

    Attributes:
        violations: Every breach, in the order of GRID_RULES; empty when the play is legal.
        table: The table after a legal play, with the faces of its jokers.
        tiles_played: The tiles that leave the rack, in ascending order.
        rack_left: The tiles that stay on it, in ascending order.
        points: The value of the tiles played, each counted once, also at a crossing. A joker counts as the tile that it
            stands for (R20); if one was retrieved too, those with the highest values count.
    """

    violations: tuple[Violation, ...]
    table: Grid
    tiles_played: tuple[Tile, ...]
    rack_left: tuple[Tile, ...]
    points: int


def judge_grid(play: GridPlay) -> GridJudgement:
    """Returns the judgement of a play."""
    violations = tuple([violation for rule in GRID_RULES for violation in rule(play)])
    points = natural_points(play.played) + sum(_joker_points(play))
    return GridJudgement(violations, grid_of(play.after, play.roles), play.played, play.rack_left, points)


def read_grid(grid: Grid, ruleset: Ruleset) -> Grid | None:
    """Returns a grid as a table, in the order of rows and with the faces of its jokers; None if it is not legal."""
    play = GridPlay(Grid(), grid, (), has_melded=True, ruleset=ruleset)
    if not play.is_all_melds or not all(cell.is_on_the_table for cell in play.after):
        return None
    return grid_of(play.after, play.roles)


def _joker_points(play: GridPlay) -> tuple[int, ...]:
    """Returns the points of the jokers played."""
    return play.joker_points[: play.played.count(JOKER)]


def _at(cell: Cell) -> tuple[tuple[str, int], ...]:
    return ("x", cell.x), ("y", cell.y)


def cells_are_on_the_table(play: GridPlay) -> Iterator[Violation]:
    """C1: coordinates are -127 to 127."""
    for place, placement in enumerate(play.table_after.placements):
        if not placement.cell.is_on_the_table:
            subject = f"{play.subject}[{place}]"
            yield Violation(Reason.COORDINATE_OUT_OF_RANGE, subject, (placement.tile,), _at(placement.cell))


def a_cell_has_one_tile(play: GridPlay) -> Iterator[Violation]:
    """C5: tiles go to empty cells."""
    occupied: set[Cell] = set()
    for place, placement in enumerate(play.table_after.placements):
        if placement.cell in occupied:
            yield Violation(Reason.CELL_OCCUPIED, f"{play.subject}[{place}]", (placement.tile,), _at(placement.cell))
        occupied.add(placement.cell)


def tiles_stay_in_their_cells(play: GridPlay) -> Iterator[Violation]:
    """C5 to C7: tiles of the table do not move (manipulation OFF), nor before the initial meld."""
    never = play.ruleset.manipulation is Manipulation.OFF
    if never or not play.has_melded:
        reason = Reason.TABLE_TILE_MOVED if never else Reason.INITIAL_MELD_TABLE_MODIFIED
        for cell, t in play.left.items():
            yield Violation(reason, play.subject, (t,), _at(cell))


def every_tile_is_in_a_line(play: GridPlay) -> Iterator[Violation]:
    """C3: every tile has a neighbor."""
    for cell in play.isolated:
        yield Violation(Reason.CELL_ISOLATED, play.subject, (play.after[cell],), _at(cell))


def every_line_is_a_meld(play: GridPlay) -> Iterator[Violation]:
    """C2, C3, C11: rows are runs and columns are groups, of three tiles or more, also where tiles touch by accident."""
    for line in play.lines:
        if isinstance(line.reading, NotAMeld):
            last = line.cells[-1]
            metadata = (*_at(line.cells[0]), ("last_x", last.x), ("last_y", last.y))
            yield Violation(Reason.LINE_INVALID, play.subject, line.reading.tiles, metadata)


def a_joker_has_one_face(play: GridPlay) -> Iterator[Violation]:
    """C9: a joker stands for the same tile in its row and its column, and the jokers of a column for different ones."""
    for cell, faces in play.roles.items():
        if not faces:
            yield Violation(Reason.CROSSING_JOKER_CONFLICT, play.subject, (JOKER,), _at(cell))


def jokers_stay_until_the_initial_meld(play: GridPlay) -> Iterator[Violation]:
    """C10: no joker is replaced before the player's initial meld."""
    if not play.has_melded:
        for cell in play.replaced:
            yield Violation(Reason.JOKER_RETRIEVAL_BEFORE_INITIAL_MELD, play.subject, (JOKER,), _at(cell))


def the_initial_meld_stands_alone(play: GridPlay) -> Iterator[Violation]:
    """C7: no tile of the initial meld lies beside a tile of the table."""
    if not play.has_melded:
        for cell in play.new_cells:
            if any(neighbor in play.before for neighbor in neighbors(cell)):
                yield Violation(Reason.INITIAL_MELD_TOUCHES_TABLE, play.subject, (play.after[cell],), _at(cell))


def the_initial_meld_has_no_joker(play: GridPlay) -> Iterator[Violation]:
    """R30, initial_meld_joker FORBIDDEN: the initial meld has no joker."""
    is_forbidden = play.ruleset.initial_meld_joker is InitialMeldJoker.FORBIDDEN
    if not play.has_melded and is_forbidden and JOKER in play.played:
        yield Violation(Reason.INITIAL_MELD_HAS_JOKER, play.subject, (JOKER,) * play.played.count(JOKER))


def the_initial_meld_reaches_the_threshold(play: GridPlay) -> Iterator[Violation]:
    """R29, R30, C7: own tiles count, each once. Skipped if the total is unknown: invalid lines, or foreign tiles."""
    if play.has_melded or not play.played or play.unowned or not play.is_all_melds:
        return
    counts_jokers = play.ruleset.initial_meld_joker is not InitialMeldJoker.ZERO
    total = natural_points(play.played) + (sum(_joker_points(play)) if counts_jokers else 0)
    if not reaches(total, play.ruleset):
        metadata = (("total", total), ("threshold", play.ruleset.initial_meld_threshold))
        yield Violation(Reason.INITIAL_MELD_BELOW_THRESHOLD, play.subject, metadata=metadata)


GRID_RULES: Final[tuple[Callable[[GridPlay], Iterator[Violation]], ...]] = (
    tiles_are_of_the_game,
    no_tile_is_used_twice,
    tiles_come_from_the_rack,
    no_joker_leaves_the_table,
    no_tile_leaves_the_table,
    a_rack_tile_is_played,
    cells_are_on_the_table,
    a_cell_has_one_tile,
    tiles_stay_in_their_cells,
    every_tile_is_in_a_line,
    every_line_is_a_meld,
    a_joker_has_one_face,
    jokers_stay_until_the_initial_meld,
    the_initial_meld_stands_alone,
    the_initial_meld_has_no_joker,
    the_initial_meld_reaches_the_threshold,
    the_drawn_tile_stays,
    the_river_has_the_tile,
    the_winner_calls,
)
"""The rules of a play, in the order of reporting."""
