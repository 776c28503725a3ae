"""Puzzles: positions with one best outcome, graded by what a player has to do (docs/puzzles.md).

The player of a puzzle has made the initial meld, and plays as many tiles as possible. A best turn and the grade are
part of a puzzle, so that no search is needed to judge an answer.
"""

from collections import Counter
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from engine.effort import Budget
from engine.melding.analysis import AnySituation, GridSituation, situation_of
from engine.melding.grid.cells import Cell, Grid, cells_of
from engine.melding.grid.lines import lines_of
from engine.melding.grid.play import GridPlay
from engine.melding.grid.rules import GridJudgement, judge_grid
from engine.melding.notation import PlayText, format_play, parse_play
from engine.melding.play import Play
from engine.melding.position import legal_table
from engine.melding.rules import Judgement, judge
from engine.melding.ruleset import Ruleset
from engine.melding.solver import Count, best_turn, count_best_turns
from engine.melding.solver.explanation import explain
from engine.melding.table import (
    ProposedTable,
    Table,
    as_grid,
    as_proposed_table,
    kept_and_new,
    melds_of,
    tiles_on,
)
from engine.tiles import JOKERS, Tile, in_order, without


class Difficulty(IntEnum):
    """How difficult a puzzle is."""

    EASY = 1
    MEDIUM = 2
    HARD = 3
    EXPERT = 4


HARDER_FROM: Final = (12, 18, 26)
"""The load from which a puzzle is MEDIUM, HARD, EXPERT."""


@dataclass(frozen=True, slots=True)
class Grade:
    """The work that a puzzle takes.

    Attributes:
        steps: The steps of a best turn (solver/explanation.py); on a grid, the tiles that it lays.
        melds: The melds of the table that it changes; on a grid, the lines.
        jokers: The jokers in the melds or lines that it makes.
    """

    steps: int
    melds: int
    jokers: int

    @property
    def load(self) -> int:
        """The weight of it all: a meld to change counts as much as two steps, a joker as three."""
        return self.steps + 2 * self.melds + 3 * self.jokers

    @property
    def difficulty(self) -> Difficulty:
        """The difficulty, which no part of the grade lowers."""
        return Difficulty(1 + sum(self.load >= bound for bound in HARDER_FROM))


@dataclass(frozen=True, slots=True)
class Puzzle:
    """A puzzle.

    Attributes:
        situation: The position. Its player has melded.
        table: The table after a best turn.
        tiles: The tiles that leave the rack in every best turn, ascending.
        grade: What a player has to do.
    """

    situation: AnySituation
    table: Table
    tiles: tuple[Tile, ...]
    grade: Grade


@dataclass(frozen=True, slots=True)
class Checked:
    """An answer to a puzzle, as the rules judge it.

    Attributes:
        judgement: The judgement.
        missing: The tiles that a best turn plays and that the answer leaves on the rack, ascending; none of an illegal
            answer.
        is_solved: Whether the answer is legal and no turn plays more tiles.
    """

    judgement: Judgement | GridJudgement
    missing: tuple[Tile, ...]
    is_solved: bool


def puzzle_of(situation: AnySituation, budget: Budget) -> Puzzle | None:
    """Returns the puzzle of a situation; None if it has no proven and unique best outcome that changes the table.

    The best outcome is unique if all turns that play the most tiles play the same ones, as those that play all do.
    Where not all turns can be searched (Twist's mirrors, a grid), only a turn that plays all is proven.
    """
    if not situation.has_melded:
        return None
    found = best_turn(situation, budget=budget)
    turn = found.turn
    if turn is None or turn.river_index is not None or found.is_proven is not found.is_least_change:
        return None
    if len(turn.tiles) < len(situation.rack) and not (found.is_proven and _has_one_outcome(situation, budget)):
        return None
    puzzle = Puzzle(situation, turn.table, turn.tiles, grade(situation.table, turn.table, situation.ruleset))
    is_legal = check(puzzle, as_proposed_table(turn.table, situation.ruleset)).is_solved
    return puzzle if is_legal and puzzle.grade.melds else None


def _has_one_outcome(situation: AnySituation, budget: Budget) -> bool:
    if isinstance(situation, GridSituation):
        return False
    return count_best_turns(situation, limit=2, budget=budget) == Count(1, is_exact=True)


def grade(before: Table, after: Table, ruleset: Ruleset) -> Grade:
    """Returns what a player has to do who turns one table into another."""
    if isinstance(before, Grid) or isinstance(after, Grid):
        old, new = _lines(before, ruleset), _lines(after, ruleset)
        tiles = {(cell, t) for line in new - old for cell, t in line}
        laid = tiles - {(cell, t) for line in old for cell, t in line}
        return Grade(len(laid), len(old - new), sum(t in JOKERS for _, t in tiles))
    kept, new_melds = kept_and_new(before, after)
    jokers = sum(t in JOKERS for t in tiles_on(new_melds))
    return Grade(len(explain(before, after, ruleset)), len(before) - len(kept), jokers)


def _lines(table: Table, ruleset: Ruleset) -> set[tuple[tuple[Cell, Tile], ...]]:
    """Returns the lines of a grid, as its cells with their tiles."""
    cells = cells_of(table) if isinstance(table, Grid) else {}
    return {tuple((cell, cells[cell]) for cell in line.cells) for line in lines_of(cells, ruleset)}


def check(puzzle: Puzzle, table: ProposedTable) -> Checked:
    """Returns the judgement of an answer, the table after the turn. Any turn as good as the best solves a puzzle."""
    judgement = _judged(puzzle.situation, table)
    if judgement.violations:
        return Checked(judgement, (), is_solved=False)
    missing = Counter(puzzle.tiles) - Counter(judgement.tiles_played)
    is_solved = len(judgement.tiles_played) >= len(puzzle.tiles)
    return Checked(judgement, in_order(missing.elements()), is_solved)


def _judged(situation: AnySituation, table: ProposedTable) -> Judgement | GridJudgement:
    """Returns the judgement of a turn whose player calls out a win."""
    rack, ruleset = situation.rack, situation.ruleset
    if isinstance(situation, GridSituation):
        grid = as_grid(table)
        if grid is None:
            raise TypeError("the table of this puzzle has cells")
        return judge_grid(GridPlay(situation.table, grid, rack, has_melded=True, ruleset=ruleset, calls_rummikub=True))
    return judge(Play(situation.table, melds_of(table), rack, has_melded=True, ruleset=ruleset, calls_rummikub=True))


def format_puzzle(puzzle: Puzzle) -> str:
    """Returns `steps melds jokers play`, the play in the notation of notation.py."""
    situation, parts = puzzle.situation, puzzle.grade
    play = PlayText(
        as_proposed_table(situation.table, situation.ruleset),
        situation.rack,
        as_proposed_table(puzzle.table, situation.ruleset),
        without(situation.rack, puzzle.tiles),
    )
    return f"{parts.steps} {parts.melds} {parts.jokers} {format_play(play)}"


def parse_puzzle(text: str, ruleset: Ruleset) -> Puzzle:
    """Parses the text of a puzzle whose tables are legal by the ruleset. Raises ValueError."""
    steps, melds, jokers, play_text = text.split(" ", 3)
    play = parse_play(play_text)
    before, after = _read(play.table_before, ruleset), _read(play.table_after, ruleset)
    situation = situation_of(before, play.rack_before, has_melded=True, ruleset=ruleset)
    tiles = without(play.rack_before, play.rack_after)
    return Puzzle(situation, after, tiles, Grade(int(steps), int(melds), int(jokers)))


def difficulty_in(text: str) -> Difficulty:
    """Returns the difficulty of a puzzle as text, without parsing all of it."""
    steps, melds, jokers, _ = text.split(" ", 3)
    return Grade(int(steps), int(melds), int(jokers)).difficulty


def _read(proposed: ProposedTable, ruleset: Ruleset) -> Table:
    table = legal_table(proposed, ruleset)
    if table is None:
        raise ValueError("the table of a puzzle is not legal")
    return table
