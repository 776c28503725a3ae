"""A grid as text, one line a row, for people who read it in a terminal."""

from engine.melding.grid.cells import Cell, Grid, cells_of
from engine.notation import Naming, format_tile


def draw_grid(grid: Grid, naming: Naming = Naming.TILES) -> str:
    """Returns the rows of a grid from the top, each cell as wide as the widest tile; empty cells are dots.

    ```
    R3 R4 R5
    .  B4 .
    .  K4 .
    ```
    """
    cells = cells_of(grid)
    if not cells:
        return ""
    columns = range(min(x for x, _ in cells), max(x for x, _ in cells) + 1)
    rows = range(min(y for _, y in cells), max(y for _, y in cells) + 1)
    names = {cell: format_tile(t, naming) for cell, t in cells.items()}
    width = max(map(len, names.values()))
    lines = (" ".join(names.get(Cell(x, y), ".").ljust(width) for x in columns).rstrip() for y in rows)
    return "\n".join(lines)
