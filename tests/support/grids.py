"""Grids and turns of the cross layout, between the engine's form and that of the oracle."""

from dataclasses import replace
from functools import cache

from engine.melding.analysis import GridSituation
from engine.melding.grid.cells import Cell, Grid, Placement, grid_of
from engine.melding.grid.lines import lines_of, roles_of
from engine.melding.grid.play import GridPlay
from engine.melding.notation import parse_table
from engine.melding.presets import PRESETS
from engine.melding.ruleset import InitialMeldComparison, InitialMeldJoker, Manipulation, Preset, Ruleset, RunWrap
from engine.melding.table import as_grid
from engine.notation import parse_tiles
from engine.tiles import in_order
from oracles.cross_judge import Options
from oracles.cross_plays import Turn

CROSS = PRESETS[Preset.CROSS]


@cache
def ruleset_of(options: Options) -> Ruleset:
    """Returns the ruleset of the oracle's options."""
    return replace(
        CROSS,
        manipulation=Manipulation[options.manipulation],
        geometry_colors=options.colors,
        geometry_copies=options.copies,
        geometry_jokers=options.jokers,
        initial_meld_threshold=options.threshold,
        initial_meld_comparison=InitialMeldComparison[options.comparison],
        initial_meld_joker=InitialMeldJoker[options.initial_joker],
        run_wrap=RunWrap[options.run_wrap],
    )


def grid(text: str) -> Grid:
    """Returns a grid from its text, as a player sends it."""
    parsed = as_grid(parse_table(text))
    assert parsed is not None
    return parsed


def table(text: str, ruleset: Ruleset = CROSS) -> Grid:
    """Returns a table from its text, with the faces of its jokers."""
    cells = {placement.cell: placement.tile for placement in grid(text).placements}
    return grid_of(cells, roles_of(lines_of(cells, ruleset)))


def play(before: str, after: str, rack: str, *, has_melded: bool = True, ruleset: Ruleset = CROSS) -> GridPlay:
    """Returns a play from texts."""
    return GridPlay(table(before, ruleset), grid(after), in_order(parse_tiles(rack)), has_melded, ruleset)


def situation(before: str, rack: str, *, has_melded: bool = True, ruleset: Ruleset = CROSS) -> GridSituation:
    """Returns a situation from texts."""
    return GridSituation(table(before, ruleset), in_order(parse_tiles(rack)), has_melded, ruleset)


def play_of(turn: Turn) -> GridPlay:
    """Returns a play of the oracle's form."""
    before = {Cell(*cell): t for cell, t in turn.before.items()}
    after = Grid(tuple(Placement(t, Cell(x, y)) for t, x, y in turn.after))
    return GridPlay(grid_of(before), after, in_order(turn.rack), turn.has_melded, ruleset_of(turn.options))
