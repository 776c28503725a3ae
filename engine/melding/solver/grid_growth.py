"""Lays tiles of a hand on a grid in every legal way: a tile, then what mends the lines that it leaves unfinished.

A part of a legal play that is unfinished has a line that is too short or a tile without a neighbor, and the rest of the
play has a tile at an end of that line, or beside that tile. So whatever is laid first, trying each tile there leads to
every legal play. A line that no further tile can make a meld is given up at once.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.melding.grid.cells import Cell, Cells, neighbors
from engine.melding.grid.lines import DIRECTIONS, is_meld, lines_of, may_stand, roles_of
from engine.melding.ruleset import Ruleset
from engine.melding.solver.search import Meter
from engine.tiles import JOKER, Tile

CELLS_PER_NODE: Final = 4
"""Reading so many cells of a grid costs as much as trying a tile."""

_LATER: Final = 1 << 30
"""The rank of starts beside tiles that were laid by the search."""


class _Start(NamedTuple):
    """A tile to lay first, and its rank: starts beside the table are taken in the order of their ranks."""

    rank: int
    cell: Cell
    tile: Tile


class Growth:
    """The tiles laid so far, which change while a caller iterates.

    Args:
        cells: The table.
        hand: The tiles to lay.
        ruleset: The rules.
        meter: Counts each tile that is tried in a cell.

    Attributes:
        laid: The tiles laid, by cell.
        hand: The tiles left, with retrieved jokers.
    """

    def __init__(self, cells: Cells, hand: tuple[Tile, ...], ruleset: Ruleset, meter: Meter) -> None:
        self._table, self._cells = cells, dict(cells)
        self._ruleset, self._meter = ruleset, meter
        self._has_joker = JOKER in self._cells.values() or JOKER in hand
        self.hand = Counter(hand)
        self.laid: dict[Cell, Tile] = {}

    @property
    def retrieved(self) -> int:
        """The number of jokers of the table that were replaced (C10)."""
        return sum(cell in self._table for cell in self.laid)

    @property
    def owed(self) -> int:
        """The number of retrieved jokers that are not laid again."""
        return max(0, self.retrieved - list(self.laid.values()).count(JOKER))

    def beside_table(self) -> Iterator[None]:
        """Yields once for every legal arrangement of tiles joined to the table, first for none. Raises OutOfBudget.

        A play of it may still owe jokers.
        """
        yield
        faces = sorted({*self.hand, JOKER} if JOKER in self._cells.values() else self.hand)
        cells = dict.fromkeys(neighbor for cell in self._table for neighbor in neighbors(cell))
        empty = [(cell, t) for cell in cells if cell not in self._table for t in faces]
        starts = [
            _Start(rank, cell, t)
            for rank, (cell, t) in enumerate((*self._replacements(), *empty))
            if self._may_lie(cell, t)
        ]
        yield from self._grown(starts, {})

    def islands(self) -> Iterator[None]:
        """Yields for every legal arrangement of tiles that touch one another. The table must be empty.

        Each has its lowest tile in the cell (0, 0). Raises OutOfBudget.
        """
        for t in sorted(self.hand):
            yield from self._grown([_Start(_LATER, Cell(0, 0), t)], {})
            del self.hand[t]

    def _replacements(self) -> Iterator[tuple[Cell, Tile]]:
        """Yields the jokers of the table with the tiles that may replace them."""
        if JOKER in self._cells.values():
            for cell, faces in roles_of(lines_of(self._table, self._ruleset)).items():
                yield from ((cell, face) for face in faces if self.hand[face])

    def _may_lie(self, cell: Cell, t: Tile) -> bool:
        """Returns whether a tile alone may lie in a cell, as a part of a legal play. Raises OutOfBudget."""
        self._meter.count()
        before = self._cells.get(cell)
        self._cells[cell] = t
        may = self._lines_may_stand(cell)
        self._put_back(cell, before)
        return may

    def _put_back(self, cell: Cell, before: Tile | None) -> None:
        if before is None:
            del self._cells[cell]
        else:
            self._cells[cell] = before

    def _grown(self, starts: list[_Start], seen: dict[frozenset[tuple[Cell, Tile]], int]) -> Iterator[None]:
        """Yields for every legal play that has one of the starts more.

        `seen` has the lowest rank with which each play was reached: from a higher one, fewer starts would follow.
        """
        for rank, cell, t in starts:
            if not self._lay(cell, t):
                continue
            for _ in self._mended():
                play = frozenset(self.laid.items())
                if rank < seen.get(play, _LATER + 1):
                    seen[play] = rank
                    yield
                    later = [start for start in starts if rank < start.rank < _LATER]
                    yield from self._grown([*later, *self._beside_laid()], seen)
            self._lift(cell)

    def _beside_laid(self) -> Iterator[_Start]:
        cells = dict.fromkeys(neighbor for cell in self.laid for neighbor in neighbors(cell))
        for cell in cells:
            if cell not in self._cells:
                yield from (_Start(_LATER, cell, t) for t in sorted(+self.hand) if self._may_lie(cell, t))

    def _lay(self, cell: Cell, t: Tile) -> bool:
        """Lays a tile, unless it is not in the hand or cannot lie there; returns whether it was laid."""
        is_free = cell.is_on_the_table and cell not in self.laid
        if not is_free or not self.hand[t] or not self._may_lie(cell, t):
            return False
        self._cells[cell] = self.laid[cell] = t
        self.hand[t] -= 1
        self.hand[JOKER] += cell in self._table
        return True

    def _lift(self, cell: Cell) -> None:
        """Takes a tile back into the hand."""
        self.hand[self.laid.pop(cell)] += 1
        self.hand[JOKER] -= cell in self._table
        self._put_back(cell, self._table.get(cell))

    def _lines_may_stand(self, cell: Cell) -> bool:
        """Returns whether the lines through a cell are melds, or a part of some."""
        return all(may_stand(self._line(cell, step)[1], kind, self._ruleset) for kind, step in DIRECTIONS)

    def _line(self, cell: Cell, step: tuple[int, int]) -> tuple[Cell, tuple[Tile, ...]]:
        """Returns the first cell of the line through an occupied cell, and the tiles of the line."""
        cells, (x, y), (right, down) = self._cells, cell, step
        while (x - right, y - down) in cells:
            x, y = x - right, y - down
        first, tiles = Cell(x, y), []
        while (x, y) in cells:
            tiles.append(cells[Cell(x, y)])
            x, y = x + right, y + down
        return first, tuple(tiles)

    def _mended(self) -> Iterator[None]:
        """Yields for every way to make a legal play of the tiles laid, by laying as few more as each way needs."""
        gap = next((gap for cell in self.laid for gap in self._gaps(cell)), None)
        if gap is None:
            if not self._has_joker or self._jokers_have_faces():
                yield
            return
        for cell in gap:
            for t in sorted(+self.hand):
                if self._lay(cell, t):
                    yield from self._mended()
                    self._lift(cell)

    def _jokers_have_faces(self) -> bool:
        """Returns whether no joker would stand for two faces. Raises OutOfBudget."""
        self._meter.count(len(self._cells) // CELLS_PER_NODE)
        return all(roles_of(lines_of(self._cells, self._ruleset)).values())

    def _gaps(self, cell: Cell) -> Iterator[tuple[Cell, ...]]:
        """Yields the cells of which a legal play has one more, for each line through a cell that is no meld yet."""
        alone = True
        for kind, (right, down) in DIRECTIONS:
            (x, y), tiles = self._line(cell, (right, down))
            if len(tiles) > 1:
                alone = False
                if not is_meld(tiles, kind, self._ruleset):
                    after = len(tiles)
                    yield Cell(x - right, y - down), Cell(x + after * right, y + after * down)
        if alone:
            yield neighbors(cell)
