"""Judges plays of the cross layout from a list of all legal lines; shares no code with the engine's rules.

The list has every run, as a tuple of faces from left to right, and every group, as a set of faces. A line without
jokers is looked up in it. A line with jokers is compared with every entry of its length, and each that fits is a
*filling*. The jokers of lines that cross have faces if the fillings of these lines can be joined, as tables of a
database are.

Where the rules leave something open:

* A line of jokers only is no line (R19, MELD_ALL_JOKERS), nor is one with a tile that the game does not have.
* If two tiles are in one cell, nothing else of the grid is judged: no lines, isolated cells, conflicts or points.
* There is no CROSSING_JOKER_CONFLICT beside a LINE_INVALID anywhere. It names all jokers that lines connect.
* A joker was replaced if a face that it stood for is in its cell. Its old role is what the lines through it allow one
  by one, whatever jokers beside it stand for.
* Before the initial meld, a joker that is not in its cell is a retrieval, wherever it went, under both manipulations.
* Tiles have no identity: if more tiles of a face left their cells than are missing, TABLE_TILE_MOVED names all of them.
* A new cell is one that was empty.
* All cells or tiles of a reason are one violation; only invalid lines and conflicts have one each.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations, groupby, permutations
from typing import Literal, TypeAlias

from engine.tiles import COLORS, JOKER, MAX_VALUE, Tile, is_natural, tile, value_of

Cell: TypeAlias = tuple[int, int]
"""A place (x, y): x grows to the right, y downward."""
Placed: TypeAlias = tuple[Tile, int, int]
"""A tile and its place."""
Grid: TypeAlias = Mapping[Cell, Tile]
Violation: TypeAlias = tuple[str, frozenset[Cell] | frozenset[Tile]]
"""A reason, and the cells or faces that it concerns; none of the reasons that concern the whole play."""
Wrap: TypeAlias = Literal["OFF", "ONE_HIGH", "CYCLIC"]

LAST_COORDINATE = 127
_BEYOND_LAST_VALUE: dict[Wrap, int] = {"OFF": 0, "ONE_HIGH": 1, "CYCLIC": MAX_VALUE - 1}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the cross layout, under the names and values of the engine's options.

    Attributes:
        manipulation: cross_manipulation.
        colors: geometry_colors.
        copies: geometry_copies.
        jokers: The number of jokers in the tile set.
        threshold: initial_meld_threshold.
        comparison: initial_meld_comparison.
        initial_joker: initial_meld_joker.
        run_wrap: run_wrap.
    """

    manipulation: Literal["OFF", "FREE"] = "OFF"
    colors: int = 4
    copies: int = 2
    jokers: int = 2
    threshold: int = 30
    comparison: Literal["AT_LEAST", "GREATER_THAN"] = "AT_LEAST"
    initial_joker: Literal["REPRESENTED_VALUE", "ZERO", "FORBIDDEN"] = "REPRESENTED_VALUE"
    run_wrap: Wrap = "OFF"

    def copies_of(self, face: Tile) -> int:
        """Returns the number of tiles of a face in the tile set."""
        if face == JOKER:
            return self.jokers
        return self.copies if is_natural(face, self.colors) else 0


@dataclass(frozen=True, slots=True)
class Line:
    """A maximal chain of two or more cells: a row from left to right, or a column downward."""

    is_row: bool
    cells: tuple[Cell, ...]
    tiles: tuple[Tile, ...]

    def fillings(self, options: Options) -> tuple[tuple[Tile, ...], ...]:
        """Returns the faces of its cells in each legal line that it may be; none if it is no legal line."""
        if any(not options.copies_of(t) for t in self.tiles) or set(self.tiles) == {JOKER}:
            return ()
        return fillings(self.is_row, self.tiles, options.colors, options.run_wrap)


def judge(
    before: Grid, after: Sequence[Placed], rack: Sequence[Tile], has_melded: bool, options: Options
) -> set[Violation]:
    """Returns the violations of a play; none if it is legal.

    Args:
        before: The table when the turn began; it must be legal.
        after: The table as the player wants it.
        rack: The player's tiles when the turn began.
        has_melded: Whether the player made the initial meld in an earlier turn.
        options: The options.
    """
    tiles_at: defaultdict[Cell, list[Tile]] = defaultdict(list)
    for t, x, y in after:
        tiles_at[x, y].append(t)
    flow = _Flow(Counter(before.values()), Counter(t for t, _, _ in after), Counter(rack), options)
    grid = {cell: tiles[0] for cell, tiles in tiles_at.items()}
    crowded = {cell for cell, tiles in tiles_at.items() if len(tiles) > 1}
    vacated = {cell for cell, t in before.items() if t not in tiles_at.get(cell, ())}
    found = [*_of_flow(flow), *_of_cells(grid, crowded)]
    of_lines = [] if crowded else [*_of_lines(grid, options)]
    found += of_lines
    if options.manipulation == "OFF":
        found.append(("TABLE_TILE_MOVED", _moved(before, grid, vacated, flow)))
    if not has_melded:
        found += _of_initial_meld(before, tiles_at, vacated, options)
        if flow.played and not flow.unowned and not of_lines and not crowded:
            found += _of_points(before, grid, flow)
    return {(reason, concerned) for reason, concerned in found if concerned or reason in _OF_THE_PLAY}


def is_legal(grid: Grid, options: Options) -> bool:
    """Returns whether a table is legal, wherever its tiles come from."""
    return not any(_of_lines(grid, options))


def points(before: Grid, after: Sequence[Placed], rack: Sequence[Tile], options: Options) -> int:
    """Returns the points of the tiles that a legal play lays, a joker as the tile that it stands for.

    If jokers lie in more new cells than were played, those with the highest values count.
    """
    flow = _Flow(Counter(before.values()), Counter(t for t, _, _ in after), Counter(rack), options)
    return _points(before, {(x, y): t for t, x, y in after}, flow)


_OF_THE_PLAY = ("NO_RACK_TILE_PLAYED", "INITIAL_MELD_BELOW_THRESHOLD")
"""The reasons that concern no cells or tiles."""


# Conservation of tiles


class _Flow:
    """The faces that come to the table and leave it.

    Attributes:
        missing: The tiles that left the table.
        played: The added tiles that the rack has.
        unowned: The added tiles that it lacks, without those that the game does not have.
        duplicated: The faces of these of which the rack has too few, or the tile set.
        options: The options.
    """

    def __init__(self, before: Counter[Tile], after: Counter[Tile], rack: Counter[Tile], options: Options) -> None:
        added = after - before
        self.options = options
        self.missing = before - after
        self.played = added & rack
        self.unowned = {t for t in added - rack if options.copies_of(t)}
        self.duplicated = {t for t in self.unowned if rack[t] or after[t] > options.copies_of(t)}


def _of_flow(flow: _Flow) -> Iterator[Violation]:
    yield "TILE_DUPLICATED", frozenset(flow.duplicated)
    yield "TILE_NOT_IN_RACK", frozenset(flow.unowned - flow.duplicated)
    yield "JOKER_TO_RACK", frozenset(flow.missing.keys() & {JOKER})
    yield "TABLE_TILE_MISSING", frozenset(flow.missing.keys() - {JOKER})
    if not flow.played:
        yield "NO_RACK_TILE_PLAYED", frozenset[Cell]()


# The grid


def _of_cells(grid: Grid, crowded: set[Cell]) -> Iterator[Violation]:
    far = {cell for cell in grid if max(cell) > LAST_COORDINATE or min(cell) < -LAST_COORDINATE}
    yield "COORDINATE_OUT_OF_RANGE", frozenset(far)
    yield "CELL_OCCUPIED", frozenset(crowded)


def _of_lines(grid: Grid, options: Options) -> Iterator[Violation]:
    """Yields what is wrong with a grid, if anything."""
    lines = lines_of(grid)
    isolated = grid.keys() - {cell for line in lines for cell in line.cells}
    if isolated:
        yield "CELL_ISOLATED", frozenset(isolated)
    invalid = [line for line in lines if not line.fillings(options)]
    for line in invalid:
        yield "LINE_INVALID", frozenset(line.cells)
    if not invalid:
        with_joker = [line for line in lines if JOKER in line.tiles]
        for connected in _connected(with_joker):
            if not joined(connected, options):
                cells = {cell for line in connected for cell in line.cells if grid[cell] == JOKER}
                yield "CROSSING_JOKER_CONFLICT", frozenset(cells)


def neighbors(cell: Cell) -> tuple[Cell, ...]:
    """Returns the four cells next to one."""
    x, y = cell
    return (x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)


def lines_of(grid: Grid) -> list[Line]:
    """Returns the lines of a grid."""
    return [*_chains(grid, is_row=True), *_chains(grid, is_row=False)]


def _chains(grid: Grid, *, is_row: bool) -> Iterator[Line]:
    """Yields the rows, or the columns. In an ordered list of cells, place minus index is the same along a chain."""
    ordered = sorted((y, x) if is_row else (x, y) for x, y in grid)
    for _, members in groupby(enumerate(ordered), key=lambda pair: (pair[1][0], pair[1][1] - pair[0])):
        chain = [(along, across) if is_row else (across, along) for _, (across, along) in members]
        if len(chain) > 1:
            yield Line(is_row, tuple(chain), tuple([grid[cell] for cell in chain]))


# Lines that are legal


@cache
def runs(length: int, colors: int, wrap: Wrap) -> frozenset[tuple[Tile, ...]]:
    """Returns all runs of a length, from left to right (R14 to R16, run_wrap)."""
    return frozenset(
        tuple(tile(color, (first + step - 1) % MAX_VALUE + 1) for step in range(length))
        for color in COLORS[:colors]
        for first in range(1, MAX_VALUE + 1)
        if 3 <= length <= MAX_VALUE and first + length - 1 <= MAX_VALUE + _BEYOND_LAST_VALUE[wrap]
    )


@cache
def groups(size: int, colors: int) -> frozenset[frozenset[Tile]]:
    """Returns all groups of a size (R12, R13)."""
    return frozenset(
        frozenset(tile(color, value) for color in chosen)
        for value in range(1, MAX_VALUE + 1)
        for chosen in combinations(COLORS[:colors], size)
        if size >= 3
    )


@lru_cache(maxsize=200_000)
def fillings(is_row: bool, tiles: tuple[Tile, ...], colors: int, wrap: Wrap) -> tuple[tuple[Tile, ...], ...]:
    """Returns the faces in each run or group that fits tiles in their places, where a joker fits every face."""
    if is_row:
        every = runs(len(tiles), colors, wrap)
        if JOKER not in tiles:
            return (tiles,) if tiles in every else ()
        return tuple(
            sorted(run for run in every if all(t in (face, JOKER) for t, face in zip(tiles, run, strict=True)))
        )
    numbered = [t for t in tiles if t != JOKER]
    if len(set(numbered)) < len(numbered):
        return ()
    fitting = (group for group in groups(len(tiles), colors) if group.issuperset(numbered))
    orders = (order for group in fitting for order in permutations(sorted(group.difference(numbered))))
    return tuple(sorted(_in_place_of_jokers(tiles, order) for order in orders))


def _in_place_of_jokers(tiles: tuple[Tile, ...], faces: tuple[Tile, ...]) -> tuple[Tile, ...]:
    left = iter(faces)
    return tuple([next(left) if t == JOKER else t for t in tiles])


# Jokers


def joined(lines: Iterable[Line], options: Options) -> list[dict[Cell, Tile]]:
    """Returns every way to give faces to the cells of lines so that each of them is legal."""
    ways: list[dict[Cell, Tile]] = [{}]
    for line in lines:
        filled = [dict(zip(line.cells, faces, strict=True)) for faces in line.fillings(options)]
        ways = [way | faces for way in ways for faces in filled if all(way.get(c, faces[c]) == faces[c] for c in faces)]
    return ways


def _connected(lines: list[Line]) -> Iterator[list[Line]]:
    """Yields lines with jokers in parts that share no joker."""
    left = list(lines)
    while left:
        part = [left.pop()]
        for line in part:  # it grows
            jokers = {cell for cell, t in zip(line.cells, line.tiles, strict=True) if t == JOKER}
            part += [other for other in left if jokers & set(other.cells)]
            left = [other for other in left if not jokers & set(other.cells)]
        yield part


def roles(grid: Grid, cell: Cell, options: Options) -> set[Tile]:
    """Returns the faces that a tile can have in a cell by each of its lines alone."""
    lines = [line for line in lines_of(grid) if cell in line.cells]
    allowed = [{faces[line.cells.index(cell)] for faces in line.fillings(options)} for line in lines]
    return set.intersection(*allowed) if allowed else set()


def _moved(before: Grid, grid: Grid, vacated: set[Cell], flow: _Flow) -> frozenset[Cell]:
    """Returns the cells that tiles left without leaving the table, apart from those of replaced jokers."""
    by_face: defaultdict[Tile, set[Cell]] = defaultdict(set)
    for cell in vacated:
        if before[cell] != JOKER or grid.get(cell) not in roles(before, cell, flow.options):
            by_face[before[cell]].add(cell)
    return frozenset(cell for face, cells in by_face.items() if len(cells) > flow.missing[face] for cell in cells)


# The initial meld


def _of_initial_meld(
    before: Grid, tiles_at: Mapping[Cell, list[Tile]], vacated: set[Cell], options: Options
) -> Iterator[Violation]:
    new = tiles_at.keys() - before.keys()
    touching = {cell for cell in new if any(near in before for near in neighbors(cell))}
    yield "INITIAL_MELD_TOUCHES_TABLE", frozenset(touching)
    yield "JOKER_RETRIEVAL_BEFORE_INITIAL_MELD", frozenset(cell for cell in vacated if before[cell] == JOKER)
    if options.manipulation == "FREE":
        yield "INITIAL_MELD_TABLE_MODIFIED", frozenset(cell for cell in vacated if before[cell] != JOKER)
    if options.initial_joker == "FORBIDDEN":
        yield "INITIAL_MELD_HAS_JOKER", frozenset(cell for cell in new if JOKER in tiles_at[cell])


def _of_points(before: Grid, grid: Grid, flow: _Flow) -> Iterator[Violation]:
    options = flow.options
    total = _points(before, grid, flow, jokers_count=options.initial_joker != "ZERO")
    if total < options.threshold or (total == options.threshold and options.comparison == "GREATER_THAN"):
        yield "INITIAL_MELD_BELOW_THRESHOLD", frozenset[Cell]()


def _points(before: Grid, grid: Grid, flow: _Flow, *, jokers_count: bool = True) -> int:
    """Returns the points of the tiles played, of a grid of legal lines: in these, each joker has one value only."""
    numbered = sum(value_of(t) * count for t, count in flow.played.items() if t != JOKER)
    if not jokers_count or not flow.played[JOKER]:
        return numbered
    laid = [cell for cell, t in grid.items() if t == JOKER and before.get(cell) != JOKER]
    values = sorted((value_of(min(roles(grid, cell, flow.options))) for cell in laid), reverse=True)
    return numbered + sum(values[: flow.played[JOKER]])
