"""Lines of a grid: maximal chains of neighbors, each row a run and each column a group (C2 to C4, C9, C11)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from engine.identity_cache import IdentityCache
from engine.matching import unmatched
from engine.melding.grid.cells import Cell, Cells, from_cell, neighbors
from engine.melding.melds import Meld, MeldKind, NotAMeld, ProposedMeld, read_meld
from engine.melding.ruleset import JokersAdjacent, JokersMaxPerMeld, Ruleset
from engine.melding.run_shape import MIN_TILES, run_shape
from engine.tiles import JOKER, Tile, color_of, value_of

DIRECTIONS: Final = ((MeldKind.RUN, (1, 0)), (MeldKind.GROUP, (0, 1)))
"""The kind of meld in each direction, and the step (x, y) to the next cell."""


@dataclass(frozen=True, slots=True)
class Line:
    """Two or more neighbors in a row, from left to right, or in a column, from the top.

    Attributes:
        kind: A run in a row, a group in a column.
        cells: Its cells.
        reading: Its tiles as the rules read them.
    """

    kind: MeldKind
    cells: tuple[Cell, ...]
    reading: Meld | NotAMeld


def lines_of(cells: Cells, ruleset: Ruleset) -> tuple[Line, ...]:
    """Returns the lines of a grid: rows first, each kind in the order of the cells."""
    return tuple([line for kind, step in DIRECTIONS for line in _lines_along(cells, kind, step, ruleset)])


def _lines_along(cells: Cells, kind: MeldKind, step: tuple[int, int], ruleset: Ruleset) -> Iterator[Line]:
    for cell in cells:
        if (cell[0] - step[0], cell[1] - step[1]) not in cells:
            chain = (cell, *from_cell(cells, cell, step))
            if len(chain) > 1:
                yield Line(kind, chain, read_line(tuple([cells[one] for one in chain]), kind, ruleset))


def read_line(tiles: tuple[Tile, ...], kind: MeldKind, ruleset: Ruleset) -> Meld | NotAMeld:
    """Returns the tiles of a line as the rules read them. Cached: nearly all lines were there a turn before."""
    return _read_line(tiles, kind, _keys(ruleset))


def is_meld(tiles: tuple[Tile, ...], kind: MeldKind, ruleset: Ruleset) -> bool:
    """Returns whether the tiles of a line are a meld."""
    return isinstance(_read_line(tiles, kind, _keys(ruleset)), Meld)


def may_stand(tiles: tuple[Tile, ...], kind: MeldKind, ruleset: Ruleset) -> bool:
    """Returns whether the tiles may be neighbors in a line that is a meld: this one, or a longer one. Cached."""
    return _may_stand(tiles, kind, _keys(ruleset))


class _Key:
    """A ruleset in the key of a cache, compared by identity.

    Attributes:
        ruleset: The ruleset.
        lenient: The same without limits on the jokers of a meld, which a part of a meld may exceed.
    """

    __slots__ = ("lenient", "ruleset")

    def __init__(self, ruleset: Ruleset) -> None:
        self.ruleset = ruleset
        self.lenient = replace(
            ruleset,
            jokers_max_per_meld=JokersMaxPerMeld.UNLIMITED_WITH_ONE_NATURAL,
            jokers_adjacent=JokersAdjacent.ALLOWED,
            jokers_may_lead=True,
        )


_keys: Final = IdentityCache(_Key, 64)


@lru_cache(maxsize=16_384)
def _read_line(tiles: tuple[Tile, ...], kind: MeldKind, key: _Key) -> Meld | NotAMeld:
    return read_meld(ProposedMeld(tiles, kind), key.ruleset)


@lru_cache(maxsize=16_384)
def _may_stand(tiles: tuple[Tile, ...], kind: MeldKind, key: _Key) -> bool:
    if len(tiles) < 2 or tiles.count(JOKER) == len(tiles):
        return True
    if len(tiles) >= MIN_TILES:
        return isinstance(read_meld(ProposedMeld(tiles, kind), key.lenient), Meld)
    natural = [t for t in tiles if t != JOKER]
    if kind is MeldKind.GROUP or len({color_of(t) for t in natural}) > 1:
        return kind is MeldKind.GROUP and len({*natural}) == len(natural) and len({value_of(t) for t in natural}) < 2
    threes = (run for (_, length), run in run_shape(key.ruleset).runs.items() if length == MIN_TILES)
    return any(_are_like(tiles, part) for run in threes for part in (run[:-1], run[1:]))


def _are_like(tiles: tuple[Tile, ...], values: tuple[int, ...]) -> bool:
    """Returns whether tiles may stand for values, in this order."""
    return all(t == JOKER or value_of(t) == value for t, value in zip(tiles, values, strict=True))


def isolated(cells: Cells) -> Iterator[Cell]:
    """Yields the occupied cells that are in no line (C3)."""
    for cell in cells:
        if not any(neighbor in cells for neighbor in neighbors(cell)):
            yield cell


Roles = dict[Cell, tuple[Tile, ...]]
"""The faces that the joker in each cell may stand for, ascending; none if its lines contradict each other."""


def roles_of(lines: tuple[Line, ...]) -> Roles:
    """Returns the faces of all jokers in lines that are melds (C9).

    A joker stands for the same face in both of its lines, and the jokers of a group for different ones.
    """
    roles: Roles = {}
    for line in lines:
        for cell, faces in _jokers(line):
            known = roles.get(cell)
            roles[cell] = faces if known is None else tuple([face for face in known if face in faces])
    for line in lines:
        if line.kind is MeldKind.GROUP:
            _settle_group([cell for cell, _ in _jokers(line)], roles)
    return roles


def _jokers(line: Line) -> Iterator[tuple[Cell, tuple[Tile, ...]]]:
    """Yields the cells of the jokers of a line that is a meld, with the faces that they may stand for in it."""
    if isinstance(line.reading, Meld) and line.reading.joker_faces:
        places = [cell for cell, t in zip(line.cells, line.reading.tiles, strict=True) if t == JOKER]
        yield from zip(places, line.reading.joker_faces, strict=True)


def _settle_group(jokers: list[Cell], roles: Roles) -> None:
    """Removes from the roles of a group's jokers the faces that another one must stand for.

    A joker for which that leaves no face gets an empty role.
    """
    faces = sorted({face for cell in jokers for face in roles[cell]})
    for place in unmatched([[faces.index(face) for face in roles[cell]] for cell in jokers]):
        roles[jokers[place]] = ()
    for fixed in jokers:
        if len(roles[fixed]) == 1:
            for other in jokers:
                if other != fixed and len(roles[other]) > 1:
                    roles[other] = tuple([face for face in roles[other] if face not in roles[fixed]])
