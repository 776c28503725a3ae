"""Finds a legal play of the cross layout by trying all, for tables of up to six tiles and racks of up to four.

If the tiles of the table stay, it tries all sets of cells next to the table, next to one another, or far away. If they
do not, it arranges all tiles in *shapes*, connected sets of cells without gaps in their lines, far from one another:
where they lie does not matter. Tiles are put in the cells one by one, and a line that no run or group fits ends an
attempt. The oracle's judge decides on each arrangement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import combinations, islice, product
from typing import TypeAlias

from engine.tiles import JOKER, Tile
from oracles.cross_judge import LAST_COORDINATE, Cell, Grid, Options, Placed, fillings, is_legal, judge, neighbors

Cells: TypeAlias = frozenset[Cell]
Tiles: TypeAlias = tuple[Tile, ...]

DISTANCE = 12
"""How far apart parts lie that do not touch: more than a part of ten tiles is wide."""


def legal_play(before: Grid, rack: Sequence[Tile], has_melded: bool, options: Options) -> tuple[Placed, ...] | None:
    """Returns the new table of a legal play, None if there is no such play."""
    if has_melded and options.manipulation == "OFF":
        attempts = _with_table_in_place(before, rack, options)
    else:
        old, stay = ([*before.values()], {}) if has_melded else ([], before)
        every = (parts for tiles in _choices(rack) for parts in _parts([*old, *tiles], options, first_only=has_melded))
        attempts = (_spread(parts, stay) | dict(stay) for parts in every)
    for grid in attempts:
        after = tuple((t, x, y) for (x, y), t in grid.items())
        if not judge(before, after, rack, has_melded, options):
            return after
    return None


def _choices(rack: Sequence[Tile]) -> Iterator[Tiles]:
    """Yields every choice of tiles, the fewest first."""
    for size in range(1, len(rack) + 1):
        yield from sorted(set(combinations(sorted(rack), size)))


# The table stays


def _with_table_in_place(before: Grid, rack: Sequence[Tile], options: Options) -> Iterator[dict[Cell, Tile]]:
    """Yields the tables after plays that move no tile but jokers whose cell another tile takes."""
    jokers = [cell for cell, t in before.items() if t == JOKER]
    far = _far_cells(before)[0]
    for tiles in _choices(rack):
        numbered = sorted({t for t in tiles if t != JOKER})
        for in_place in product([JOKER, *numbered], repeat=len(jokers)):
            taken = Counter(t for t in in_place if t != JOKER)
            if taken <= Counter(tiles):
                table = dict(before) | dict(zip(jokers, in_place, strict=True))
                left = Counter(tiles) - taken + Counter({JOKER: taken.total()})
                for cells in _grown(frozenset(before), left.total(), far):
                    yield from _filled(table, cells, tuple(sorted(left.elements())), options)


@lru_cache(maxsize=64)
def _grown(table: Cells, count: int, far: Cell) -> tuple[Cells, ...]:
    """Returns all sets of cells that leave no gaps in lines, next to a table, or at a far cell and after it."""
    found = {frozenset[Cell]()}
    for _ in range(count):
        found = {
            new | {cell}
            for new in found
            for cell in ({far} | {near for old in table | new for near in neighbors(old)}) - table - new
            if max(map(abs, cell)) <= LAST_COORDINATE and (cell not in _around(far) or cell >= far)
        }
    return tuple(sorted((new for new in found if _is_without_gaps(table | new, new)), key=sorted))


@cache
def _around(far: Cell) -> Cells:
    x, y = far
    return frozenset((x + i, y + j) for i in range(-DISTANCE, DISTANCE) for j in range(-DISTANCE, DISTANCE))


# The table is arranged anew


def _parts(tiles: Sequence[Tile], options: Options, *, first_only: bool) -> Iterator[tuple[dict[Cell, Tile], ...]]:
    """Yields ways to arrange all of some tiles in legal parts: every choice of the tiles of each part."""
    if not tiles:
        yield ()
        return
    first, *others = sorted(tiles)
    for size in range(2, len(others) + 1):
        for chosen in sorted(set(combinations(others, size))):
            rest = tuple((Counter(others) - Counter(chosen)).elements())
            parts = _of_a_part((first, *chosen), options, first_only=first_only)
            if parts:
                yield from ((part, *more) for more in _parts(rest, options, first_only=first_only) for part in parts)


@lru_cache(maxsize=100_000)
def _of_a_part(tiles: Tiles, options: Options, *, first_only: bool) -> tuple[dict[Cell, Tile], ...]:
    """Returns the legal ways to arrange tiles in one shape. Only the first is needed if points do not matter."""
    every = (grid for shape in _shapes(len(tiles)) for grid in _filled({}, shape, tiles, options))
    return tuple(islice(filter(lambda grid: is_legal(grid, options), every), 1 if first_only else None))


@cache
def _shapes(size: int) -> tuple[Cells, ...]:
    """Returns the connected sets of cells without gaps in their lines whose first cell is (0, 0)."""
    every = {frozenset({(0, 0)})}
    for _ in range(size - 1):
        grown = {shape | {near} for shape in every for cell in shape for near in neighbors(cell) if near not in shape}
        every = {_at_origin(shape) for shape in grown}
    return tuple(sorted((shape for shape in every if _is_without_gaps(shape, shape)), key=sorted))


def _at_origin(shape: Cells) -> Cells:
    left, top = min(shape)
    return frozenset((x - left, y - top) for x, y in shape)


def _spread(parts: Sequence[Grid], table: Grid) -> dict[Cell, Tile]:
    """Returns a grid of parts that touch neither one another nor a table."""
    far = zip(parts, _far_cells(table), strict=False)
    return {(left + x, top + y): t for part, (left, top) in far for (x, y), t in part.items()}


def _far_cells(table: Grid) -> list[Cell]:
    """Returns cells that are far from the table and from one another."""
    places = range(DISTANCE - LAST_COORDINATE, LAST_COORDINATE - DISTANCE, 2 * DISTANCE)
    every = ((x, y) for x in places for y in places)
    return [(x, y) for x, y in every if all(max(abs(x - i), abs(y - j)) >= 2 * DISTANCE for i, j in table)]


# Cells and their tiles


def _is_without_gaps(cells: Cells, new: Cells) -> bool:
    """Returns whether each new cell is in a line, and each of its lines has three cells or more."""
    lengths = ([len(_chain(cells, cell, is_row=is_row)) for is_row in (True, False)] for cell in new)
    return all(2 not in both and max(both) > 2 for both in lengths)


def _chain(cells: Cells, cell: Cell, *, is_row: bool) -> list[Cell]:
    """Returns the cells that are connected with one in its row or column, in order."""
    right, down = (1, 0) if is_row else (0, 1)
    chain = [cell]
    while (before := (chain[0][0] - right, chain[0][1] - down)) in cells:
        chain.insert(0, before)
    while (after := (chain[-1][0] + right, chain[-1][1] + down)) in cells:
        chain.append(after)
    return chain


def _filled(table: Grid, cells: Cells, tiles: Tiles, options: Options) -> Iterator[dict[Cell, Tile]]:
    """Yields a table with tiles in cells, in every way in which each line through these is legal by itself."""
    everything = frozenset(table) | cells
    chains = {cell: [_chain(everything, cell, is_row=is_row) for is_row in (True, False)] for cell in cells}
    yield from _fill(dict(table), sorted(cells), tiles, chains, options)


def _fill(
    grid: dict[Cell, Tile], cells: list[Cell], tiles: Tiles, chains: dict[Cell, list[list[Cell]]], options: Options
) -> Iterator[dict[Cell, Tile]]:
    if not cells:
        yield dict(grid)
        return
    cell, *later = cells
    for t in sorted(set(tiles)):
        grid[cell] = t
        if all(_may_be_legal(grid, chain, options, is_row=not place) for place, chain in enumerate(chains[cell])):
            rest = list(tiles)
            rest.remove(t)
            yield from _fill(grid, later, tuple(rest), chains, options)
        del grid[cell]


def _may_be_legal(grid: Grid, chain: list[Cell], options: Options, *, is_row: bool) -> bool:
    """Returns whether some run or group fits the tiles of a chain, some of whose cells may be empty still."""
    tiles = tuple(grid.get(cell, JOKER) for cell in chain)
    return len(chain) == 1 or set(tiles) == {JOKER} or bool(fillings(is_row, tiles, options.colors, options.run_wrap))
