"""A play on a grid, and the properties of it that the rules use."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.lazy import lazy_property
from engine.melding.exchange import Exchange
from engine.melding.grid.cells import Cell, Cells, Grid, cells_of
from engine.melding.grid.lines import Line, Roles, isolated, lines_of, roles_of
from engine.melding.melds import Meld
from engine.melding.ruleset import Ruleset
from engine.tiles import JOKER, Tile, value_of


@dataclass(frozen=True)
class GridPlay(Exchange):
    """A play as the rules of the cross layout see it. Exchange documents the attributes."""

    table_before: Grid
    table_after: Grid
    rack: tuple[Tile, ...]
    has_melded: bool
    ruleset: Ruleset
    subject: str = "table_after"
    river: tuple[Tile, ...] = ()
    river_index: int | None = None
    drawn: Tile | None = None
    calls_rummikub: bool = False

    @lazy_property
    def before(self) -> Cells:
        """Returns the tiles of the table before, by cell."""
        return cells_of(self.table_before)

    @lazy_property
    def after(self) -> Cells:
        """Returns the tiles of the proposed table, by cell; the first of each cell, on the table or not."""
        return cells_of(self.table_after)

    @property
    def is_stacked(self) -> bool:
        """Whether a cell of the proposed table has several tiles."""
        return len(self.after) < len(self.table_after.placements)

    @lazy_property
    def lines(self) -> tuple[Line, ...]:
        """Returns the lines of the proposed table; none if tiles lie on one another."""
        return () if self.is_stacked else lines_of(self.after, self.ruleset)

    @lazy_property
    def isolated(self) -> tuple[Cell, ...]:
        """Returns the cells of the proposed table that are in no line; none if tiles lie on one another."""
        return () if self.is_stacked else tuple(isolated(self.after))

    @lazy_property
    def roles(self) -> Roles:
        """Returns the faces of the jokers of the proposed table."""
        return roles_of(self.lines)

    @lazy_property
    def is_all_melds(self) -> bool:
        """Returns whether every tile is in a line, every line is a meld, and every joker has a face."""
        are_melds = all(isinstance(line.reading, Meld) for line in self.lines)
        return are_melds and not self.is_stacked and not self.isolated and all(self.roles.values())

    @lazy_property
    def new_cells(self) -> tuple[Cell, ...]:
        """Returns the cells that were empty."""
        return tuple([cell for cell in self.after if cell not in self.before])

    @lazy_property
    def replaced(self) -> tuple[Cell, ...]:
        """Returns the cells in which another tile lies where a joker was (C10)."""
        jokers = (cell for cell, t in self.before.items() if t == JOKER)
        return tuple([cell for cell in jokers if cell in self.after and not self._has_kept(cell)])

    @lazy_property
    def left(self) -> Mapping[Cell, Tile]:
        """Returns the tiles that have left their cells but not the table. Replaced jokers may (C10)."""
        missing = list(self.missing)
        gone = {}
        for cell, t in self.before.items():
            if self._has_kept(cell) or cell in self.replaced:
                continue
            if t in missing:
                missing.remove(t)
            else:
                gone[cell] = t
        return gone

    def _has_kept(self, cell: Cell) -> bool:
        """Returns whether the tile of a cell of the table before is still there."""
        return (cell, self.before[cell]) in self._placed

    @lazy_property
    def _placed(self) -> frozenset[tuple[Cell, Tile]]:
        return frozenset([(placement.cell, placement.tile) for placement in self.table_after.placements])

    @lazy_property
    def joker_points(self) -> tuple[int, ...]:
        """Returns the values of the jokers that lie where none was, the highest first (R20)."""
        laid = [faces for cell, faces in self.roles.items() if faces and self.before.get(cell) != JOKER]
        return tuple(sorted((value_of(faces[0]) for faces in laid), reverse=True))
