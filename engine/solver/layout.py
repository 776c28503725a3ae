"""Melds from a way that the search found: open runs are followed value by value, groups dealt out."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from engine.ruleset import Ruleset, RunWrap
from engine.solver.color_steps import Open, Step, unpack
from engine.solver.halves import jokers_to_group
from engine.solver.levels import Level
from engine.solver.lines import Line, Melds, Run, halves, melds_in_order, whole_runs
from engine.solver.problem import FACES
from engine.solver.search import Found
from engine.tiles import JOKER, MAX_VALUE, Tile


@dataclass(frozen=True, slots=True)
class Laid:
    """Runs and groups, and jokers that found no place in them."""

    runs: tuple[Run, ...]
    groups: tuple[tuple[Tile, ...], ...]
    spare: int

    @property
    def melds(self) -> Melds:
        """Kind and tiles of each meld, in a fixed order."""
        return melds_in_order((run.tiles for run in self.runs), self.groups)


def lay(found: Found, ruleset: Ruleset, jokers: int) -> Laid:
    """The melds of a way, with so many jokers in them, if they find a place."""
    runs = (_runs(found, color, ruleset) for color in range(ruleset.geometry_colors))
    groups = (groups_of(level.value, steps) for level, steps in zip(found.levels, found.steps, strict=True))
    laid = Laid(tuple(chain.from_iterable(runs)), tuple(chain.from_iterable(groups)), jokers - found.spent)
    return _with_spare_jokers(laid, ruleset)


def groups_of(value: int, steps: tuple[Step, ...]) -> Iterator[tuple[Tile, ...]]:
    """The groups of a value: each color's tiles go to the groups in turn, so that these are of like size."""
    grouped = tuple([step.grouped for step in steps])
    if not any(grouped):
        return
    number = max(grouped)
    dealt = [face for face, count in zip(FACES[(value - 1) % MAX_VALUE], grouped, strict=False) for _ in range(count)]
    groups = [dealt[place::number] for place in range(number)]
    for _ in range(jokers_to_group(sum(grouped), number)):
        min(groups, key=len).append(JOKER)
    yield from map(tuple, groups)


# Runs


def _runs(found: Found, color: int, ruleset: Ruleset) -> Iterator[Run]:
    """The runs of a color."""
    before = unpack(found.start[color])
    crossing = [Line(found.levels[0].value) for _ in range(before.young + before.half + before.closable)]
    lines = list(crossing)
    done: list[Line] = []
    for level, steps in zip(found.levels, found.steps, strict=True):
        step = steps[color]
        after = unpack(step.runs)
        naturals = _naturals(level, color, step, before, after)
        if step.jokers:
            lines, ended = _with_jokers(lines, _Here(level.value, color, naturals, step.jokers), before, after)
            done += ended
        elif naturals or lines:
            done += lines[naturals:]
            lines = _grown(lines[:naturals], level.value, color, naturals)
        before = after
    done += _at_the_seam(crossing, lines)
    runs = whole_runs(done, crossing, ruleset)
    return map(_turned_round, runs) if found.is_downwards else runs


def _naturals(level: Level, color: int, step: Step, before: Open, after: Open) -> int:
    """The numbered tiles of a step that go to runs."""
    if level.place.is_held:
        return before.held
    there = level.tiles[color]
    return there[0] + there[1] - step.left - step.grouped - (after.held if level.place.holds else 0)


Lines = list[Line]
"""The open runs of a color in the order of what they need: young, half, closable ones (color_steps.Open)."""


def _grown(lines: Lines, value: int, color: int, naturals: int) -> Lines:
    """Open runs, each longer by a numbered tile, and new ones of the other tiles."""
    face = FACES[(value - 1) % MAX_VALUE][color]
    for line in lines:
        line.tiles.append(face)
    return [Line(value, face) for _ in range(naturals - len(lines))] + lines


class _Here(NamedTuple):
    """What a value has for the runs of a color."""

    value: int
    color: int
    naturals: int
    jokers: int


def _with_jokers(lines: Lines, here: _Here, before: Open, after: Open) -> tuple[Lines, Lines]:
    """Open runs with the tiles of a value, and those that end: see color_steps.py for who goes first."""
    owed, going_on = before.young + before.half, before.young + before.half + before.closable
    young, half, closable = lines[: before.young], lines[before.young : owed], lines[owed:going_on]
    naturals_first = sorted(lines[:owed], key=lambda line: not line.is_blank)
    face = FACES[(here.value - 1) % MAX_VALUE][here.color]
    to_owed = max(0, owed - here.naturals)
    free = max(0, here.naturals - owed)
    longer, others = closable[:free], closable[free:]
    starts = free - len(longer)
    joker_starts = after.young - starts
    bridged = others[: here.jokers - to_owed - joker_starts]
    for place, line in enumerate(naturals_first):
        line.tiles.append(face if place < owed - to_owed else JOKER)
    for line in longer:
        line.tiles.append(face)
    for line in bridged:
        line.tiles.append(JOKER)
    new = [Line(here.value, face) for _ in range(starts)] + [Line(here.value, JOKER) for _ in range(joker_starts)]
    return [*new, *young, *bridged, *half, *longer], [*others[len(bridged) :], *lines[going_on:]]


def _at_the_seam(begun: Lines, ended: Lines) -> Lines:
    """Lets the lines that cross the seam go on from those that end there; gives those that do not.

    Both are in the order of what they need, so that each goes on from one that needs no more (color_steps.pack).
    """
    for line, before in zip(begun, ended, strict=False):
        line.before = before
    return ended[len(begun) :]


def _turned_round(run: Run) -> Run:
    """A run that was laid from its high end. Jokers at its low end go to the high one, if there is room."""
    tiles = run.tiles[::-1]
    leading = next(place for place, t in enumerate(tiles) if t != JOKER)
    moved = min(leading, MAX_VALUE - run.first)
    return Run(run.first - len(tiles) + 1 + moved, tiles[moved:] + tiles[:moved])


# Jokers that were not needed


def _with_spare_jokers(laid: Laid, ruleset: Ruleset) -> Laid:
    """Lays jokers that are left over: at the ends of runs, then in groups that lack a color."""
    while laid.spare:
        more = _with_one_more(laid, ruleset)
        if more is None:
            return laid
        laid = more
    return laid


def _with_one_more(laid: Laid, ruleset: Ruleset) -> Laid | None:
    runs, groups = laid.runs, laid.groups
    for place, run in enumerate(runs):
        longer = _longer(run, ruleset.run_wrap)
        if longer:
            return Laid((*runs[:place], longer, *runs[place + 1 :]), groups, laid.spare - 1)
    for place, group in enumerate(groups):
        if len(group) < ruleset.geometry_colors:
            return Laid(runs, (*groups[:place], (*group, JOKER), *groups[place + 1 :]), laid.spare - 1)
    if not runs:
        return None
    whole, *others = runs  # all have every value, and so can be cut
    return _with_one_more(replace(laid, runs=(*halves(whole, ruleset), *others)), ruleset)


def _longer(run: Run, wrap: RunWrap) -> Run | None:
    """A run with a joker at its high end, else at its low end; None if it fills all values."""
    if len(run.tiles) == MAX_VALUE:
        return None
    last = {RunWrap.NONE: MAX_VALUE, RunWrap.ONE_HIGH: MAX_VALUE + 1, RunWrap.CYCLIC: 2 * MAX_VALUE}[wrap]
    if run.first + len(run.tiles) <= last:
        return Run(run.first, (*run.tiles, JOKER))
    return Run(run.first - 1, (JOKER, *run.tiles))
