"""Grids: which tile lies in which cell (docs/variants.md, C1)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from engine.tiles import Tile

COORDINATE_MAX: Final = 127
"""The highest coordinate. The lowest is its negative."""


class Cell(NamedTuple):
    """A place on the table: x grows to the right, y downward."""

    x: int
    y: int

    @property
    def is_on_the_table(self) -> bool:
        """Whether both coordinates are in -127..127."""
        return abs(self.x) <= COORDINATE_MAX and abs(self.y) <= COORDINATE_MAX


@dataclass(frozen=True, slots=True)
class Placement:
    """A tile in a cell.

    Attributes:
        tile: The tile.
        cell: The cell.
        faces: The faces that a joker of a game's table may stand for, ascending. Other tiles have none, nor
            do proposals.
    """

    tile: Tile
    cell: Cell
    faces: tuple[Tile, ...] = ()


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of the cross layout, or a proposed one.

    Attributes:
        placements: The tiles. Those of a game's table are in the order of rows, from left to right.
    """

    placements: tuple[Placement, ...] = ()


Cells = Mapping[Cell, Tile]
"""The tiles of a grid by cell."""


def cells_of(grid: Grid) -> dict[Cell, Tile]:
    """Returns the tiles of a grid by cell. Of several tiles in one cell, the first counts."""
    cells: dict[Cell, Tile] = {}
    for placement in grid.placements:
        cells.setdefault(placement.cell, placement.tile)
    return cells


def grid_of(cells: Cells, faces: Mapping[Cell, tuple[Tile, ...]] | None = None) -> Grid:
    """Returns the grid of tiles by cell, in the order of rows; `faces` are those of jokers."""
    known = faces or {}
    return Grid(tuple([Placement(cells[cell], cell, known.get(cell, ())) for cell in sorted(cells, key=by_row)]))


def by_row(cell: Cell) -> tuple[int, int]:
    """Returns the sort key of cells: rows from the top, each from left to right."""
    return cell.y, cell.x


def in_rows(grid: Grid) -> Grid:
    """Returns a grid as a player sends it, in the order of rows; tiles in the same cell in ascending order."""
    placed = sorted((by_row(placement.cell), placement.tile) for placement in grid.placements)
    return Grid(tuple([Placement(t, Cell(x, y)) for (y, x), t in placed]))


def without_faces(grid: Grid) -> Grid:
    """Returns a grid as a player sends it."""
    return Grid(tuple([Placement(placement.tile, placement.cell) for placement in grid.placements]))


def neighbors(cell: Cell) -> tuple[Cell, Cell, Cell, Cell]:
    """Returns the cells that share a side with a cell: left, right, above, below."""
    x, y = cell
    return Cell(x - 1, y), Cell(x + 1, y), Cell(x, y - 1), Cell(x, y + 1)


def from_cell(cells: Cells, cell: Cell, step: tuple[int, int]) -> Iterator[Cell]:
    """Yields the occupied cells that follow a cell without a gap, in steps of (x, y)."""
    x, y = cell
    while True:
        x, y = x + step[0], y + step[1]
        if (x, y) not in cells:
            return
        yield Cell(x, y)
