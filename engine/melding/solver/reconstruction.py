"""Builds melds from a path of the search: follows the open runs from level to level, and deals the groups."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from engine.melding.ruleset import Ruleset
from engine.melding.run_shape import run_shape
from engine.melding.solver.color_transitions import OpenRuns, Transition, unpack
from engine.melding.solver.combined_transitions import jokers_for_groups
from engine.melding.solver.levels import Level
from engine.melding.solver.problem import FACES
from engine.melding.solver.run_assembly import RawMelds, Run, RunPart, melds_in_order, split_run, whole_runs
from engine.melding.solver.search import Path
from engine.tiles import JOKER, MAX_VALUE, Tile


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """Runs and groups, and the number of jokers that have no place in them."""

    runs: tuple[Run, ...]
    groups: tuple[tuple[Tile, ...], ...]
    spare: int

    @property
    def melds(self) -> RawMelds:
        """Returns kind and tiles of each meld, in a fixed order."""
        return melds_in_order((run.tiles for run in self.runs), self.groups)


def reconstruct(found: Path, ruleset: Ruleset, jokers: int) -> Reconstruction:
    """Returns the melds of a path with the given number of jokers, as far as these fit."""
    runs = (_runs(found, color, ruleset) for color in range(ruleset.geometry_colors))
    groups = (
        groups_of(level.value, transitions) for level, transitions in zip(found.levels, found.transitions, strict=True)
    )
    laid = Reconstruction(tuple(chain.from_iterable(runs)), tuple(chain.from_iterable(groups)), jokers - found.spent)
    return _with_spare_jokers(laid, ruleset)


def groups_of(value: int, transitions: tuple[Transition, ...]) -> Iterator[tuple[Tile, ...]]:
    """Yields the groups of a value. Each color's tiles are dealt in turn, so that group sizes differ by at most one."""
    grouped = tuple([transition.grouped for transition in transitions])
    if not any(grouped):
        return
    number = max(grouped)
    dealt = [face for face, count in zip(FACES[(value - 1) % MAX_VALUE], grouped, strict=False) for _ in range(count)]
    groups = [dealt[place::number] for place in range(number)]
    for _ in range(jokers_for_groups(sum(grouped), number)):
        min(groups, key=len).append(JOKER)
    yield from map(tuple, groups)


# Runs


def _runs(found: Path, color: int, ruleset: Ruleset) -> Iterator[Run]:
    """Returns the runs of a color."""
    before = unpack(found.start[color])
    crossing = [RunPart(found.levels[0].value) for _ in range(before.young + before.half + before.closable)]
    lines = list(crossing)
    done: list[RunPart] = []
    for level, transitions in zip(found.levels, found.transitions, strict=True):
        transition = transitions[color]
        after = unpack(transition.runs)
        naturals = _naturals(level, color, transition, before, after)
        if transition.jokers:
            lines, ended = _extended_with_jokers(
                lines, _LevelTiles(level.value, color, naturals, transition.jokers), before, after
            )
            done += ended
        elif naturals or lines:
            done += lines[naturals:]
            lines = _extended(lines[:naturals], level.value, color, naturals)
        before = after
    done += _join_at_seam(crossing, lines)
    runs = whole_runs(done, crossing, ruleset)
    return map(_reversed, runs) if found.is_downwards else runs


def _naturals(level: Level, color: int, transition: Transition, before: OpenRuns, after: OpenRuns) -> int:
    """Returns the number of numbered tiles that go to runs."""
    if level.traits.is_held:
        return before.held
    there = level.tiles[color]
    return there[0] + there[1] - transition.left - transition.grouped - (after.held if level.traits.holds else 0)


RunParts = list[RunPart]
"""The open runs of a color in order of need: young, half, closable ones (color_transitions.OpenRuns)."""


def _extended(lines: RunParts, value: int, color: int, naturals: int) -> RunParts:
    """Returns the open runs, each longer by a numbered tile, and new runs of the other tiles."""
    face = FACES[(value - 1) % MAX_VALUE][color]
    for line in lines:
        line.tiles.append(face)
    return [RunPart(value, face) for _ in range(naturals - len(lines))] + lines


class _LevelTiles(NamedTuple):
    """The tiles of a value that go to the runs of a color."""

    value: int
    color: int
    naturals: int
    jokers: int


def _extended_with_jokers(
    lines: RunParts, here: _LevelTiles, before: OpenRuns, after: OpenRuns
) -> tuple[RunParts, RunParts]:
    """Returns the open runs after a level with jokers, and the ended runs; color_transitions.py defines the order."""
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
    new = [RunPart(here.value, face) for _ in range(starts)] + [RunPart(here.value, JOKER) for _ in range(joker_starts)]
    return [*new, *young, *bridged, *half, *longer], [*others[len(bridged) :], *lines[going_on:]]


def _join_at_seam(begun: RunParts, ended: RunParts) -> RunParts:
    """Connects the runs that cross the seam with those that end there; returns the runs that do not cross.

    Both are in order of need, so each run continues one that needs no more (color_transitions.pack).
    """
    for line, before in zip(begun, ended, strict=False):
        line.previous = before
    return ended[len(begun) :]


def _reversed(run: Run) -> Run:
    """Returns a run that was built downwards. Jokers at its low end move to the high end, if there is room."""
    tiles = run.tiles[::-1]
    leading = next(place for place, t in enumerate(tiles) if t != JOKER)
    moved = min(leading, MAX_VALUE - run.first)
    return Run(run.first - len(tiles) + 1 + moved, tiles[moved:] + tiles[:moved])


# Unused jokers


def _with_spare_jokers(laid: Reconstruction, ruleset: Ruleset) -> Reconstruction:
    """Adds the unused jokers: at the ends of runs, then in groups that lack a color."""
    while laid.spare:
        more = _with_one_more(laid, ruleset)
        if more is None:
            return laid
        laid = more
    return laid


def _with_one_more(laid: Reconstruction, ruleset: Ruleset) -> Reconstruction | None:
    runs, groups = laid.runs, laid.groups
    for place, run in enumerate(runs):
        longer = _longer(run, run_shape(ruleset).last)
        if longer:
            return Reconstruction((*runs[:place], longer, *runs[place + 1 :]), groups, laid.spare - 1)
    for place, group in enumerate(groups):
        if len(group) < ruleset.geometry_colors:
            return Reconstruction(runs, (*groups[:place], (*group, JOKER), *groups[place + 1 :]), laid.spare - 1)
    if not runs:
        return None
    whole, *others = runs  # all runs have 13 tiles, and can be cut
    return _with_one_more(replace(laid, runs=(*split_run(whole, ruleset), *others)), ruleset)


def _longer(run: Run, last: int) -> Run | None:
    """Returns a run with a joker at its high end, else at its low end; None if it has all values."""
    if len(run.tiles) == MAX_VALUE:
        return None
    if run.first + len(run.tiles) <= last:
        return Run(run.first, (*run.tiles, JOKER))
    return Run(run.first - 1, (JOKER, *run.tiles))
