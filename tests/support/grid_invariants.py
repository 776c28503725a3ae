"""Checks grids and plays on them, by the oracle of the cross layout. What is wrong raises AssertionError."""

from typing import Any

from engine.melding.events import TilesPlayed
from engine.melding.grid.cells import Grid
from engine.melding.ruleset import Ruleset
from engine.melding.table import Table
from engine.seats import Rack
from engine.tiles import JOKER
from oracles import cross_judge
from support.tables import by_cell


def check_grid(grid: Grid, ruleset: Ruleset) -> None:
    """Checks that every line is a meld, that tiles are in order, and that jokers have possible faces (C2 to C4, C9)."""
    cells, options = by_cell(grid), oracle_options(ruleset)
    assert list(cells) == sorted(cells, key=lambda cell: (cell[1], cell[0])), f"{grid} is out of order"
    assert cross_judge.is_legal(cells, options), f"{grid} has a line that is no meld"
    for placement in grid.placements:
        has_faces = bool(placement.faces)
        assert has_faces == (placement.tile == JOKER), f"{placement} is a joker without faces, or a tile with some"
        possible = cross_judge.roles(cells, placement.cell, options)
        assert possible.issuperset(placement.faces), f"{placement} can only stand for {possible}"


def check_play_on_grid(before: Table, after: Grid, play: TilesPlayed, rack: Rack, ruleset: Ruleset) -> None:
    """Checks that a play is legal, and its points (C5 to C10)."""
    assert isinstance(before, Grid), "the table was no grid"
    placed = [(t, x, y) for (x, y), t in by_cell(after).items()]
    options = oracle_options(ruleset)
    found = cross_judge.judge(by_cell(before), placed, rack.tiles, rack.has_melded, options)
    assert not found, f"{play} breaks rules: {found}"
    worth = cross_judge.points(by_cell(before), placed, rack.tiles, options)
    assert play.points == worth, f"{play.points} points for tiles worth {worth}"


def oracle_options(ruleset: Ruleset) -> cross_judge.Options:
    """Returns the options that the oracle knows. It allows what others forbid."""
    named: dict[str, Any] = {
        "manipulation": ruleset.manipulation.name,
        "comparison": ruleset.initial_meld_comparison.name,
        "initial_joker": ruleset.initial_meld_joker.name,
        "run_wrap": ruleset.run_wrap.name,
    }
    return cross_judge.Options(
        colors=ruleset.geometry_colors,
        copies=ruleset.geometry_copies,
        jokers=ruleset.jokers(ruleset.players_max),
        threshold=ruleset.initial_meld_threshold,
        **named,
    )
