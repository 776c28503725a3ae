"""Proposals of tables, made from others; of both layouts."""

import random

from engine.melding.grid.cells import Cell, Grid, Placement, without_faces
from engine.melding.melds import ProposedMeld
from engine.melding.table import ProposedTable, Table
from engine.tiles import Tile
from oracles import cross_judge


def proposal_of(table: Table, *, states_kinds: bool = True) -> ProposedTable:
    """Returns a table as a player may send it."""
    if isinstance(table, Grid):
        return without_faces(table)
    return tuple(ProposedMeld(meld.tiles, meld.kind if states_kinds else None) for meld in table)


def with_tiles(table: ProposedTable, tiles: tuple[Tile, ...]) -> ProposedTable:
    """Returns a table with one more meld, or with one more row, which touches no tile."""
    if not isinstance(table, Grid):
        return (*table, ProposedMeld(tiles))
    y = max((placement.cell.y for placement in table.placements), default=0) + 2
    return Grid((*table.placements, *(Placement(t, Cell(x, y)) for x, t in enumerate(tiles))))


def without_first(table: ProposedTable) -> ProposedTable:
    """Returns a table without its first meld or tile."""
    return Grid(table.placements[1:]) if isinstance(table, Grid) else table[1:]


def in_random_order(table: ProposedTable, rng: random.Random) -> ProposedTable:
    """Returns a table with its melds or tiles listed in another order."""
    if isinstance(table, Grid):
        return Grid(tuple(rng.sample(table.placements, len(table.placements))))
    melds = list(table)
    rng.shuffle(melds)
    return tuple(melds)


def has_short_part(table: ProposedTable) -> bool:
    """Returns whether a meld has fewer than three tiles, or a tile of a grid is in no line of three."""
    if not isinstance(table, Grid):
        return any(len(meld.tiles) < 3 for meld in table)
    lines = cross_judge.lines_of(by_cell(table))
    in_lines = {cell for line in lines if len(line.cells) >= 3 for cell in line.cells}
    return not in_lines.issuperset(by_cell(table))


def by_cell(grid: Grid) -> dict[cross_judge.Cell, Tile]:
    """Returns the tiles of a grid by cell, as the oracle takes them."""
    return {(placement.cell.x, placement.cell.y): placement.tile for placement in grid.placements}
