"""Draws random positions and plays of the cross layout, most of them legal or nearly so.

A game of `turns` begins with an empty table. Each play lays a few lines: free melds, and lines that extend, cross or
join those of the table. It may take a joker of the table. Some plays are then damaged. A legal play may become the next
table, so tables grow as in a game.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from engine.tiles import COLORS, JOKER, Tile, naturals, tile, value_of
from oracles.cross_judge import LAST_COORDINATE, Cell, Options, Placed, fillings, judge, lines_of, neighbors, roles

Cells: TypeAlias = dict[Cell, Tile]

TRIES = 12
"""How often a line is drawn until one fits."""
TURNS_A_GAME = 60
MOST_CELLS, MOST_TILES = 6, 4
"""The largest tiny table, and the largest rack beside it."""
DAMAGED = 0.4
"""The part of the plays that are damaged."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The arguments of `judge`."""

    before: dict[Cell, Tile]
    after: tuple[Placed, ...]
    rack: tuple[Tile, ...]
    has_melded: bool
    options: Options

    def violations(self) -> set[tuple[str, frozenset[Cell] | frozenset[Tile]]]:
        """Returns what the oracle says of it."""
        return judge(self.before, self.after, self.rack, self.has_melded, self.options)


def draw_options(rng: random.Random) -> Options:
    """Returns random options, half of them with the defaults of most."""
    if rng.random() < 0.5:
        return Options(manipulation=rng.choice(("OFF", "FREE")), jokers=rng.choice((0, 2, 4)))
    return Options(
        manipulation=rng.choice(("OFF", "OFF", "FREE")),
        colors=rng.choice((4, 4, 6)),
        copies=rng.choice((1, 2, 3)),
        jokers=rng.choice((0, 2, 4, 8)),
        threshold=rng.choice((0, 12, 20, 30, 50)),
        comparison=rng.choice(("AT_LEAST", "GREATER_THAN")),
        initial_joker=rng.choice(("REPRESENTED_VALUE", "ZERO", "FORBIDDEN")),
        run_wrap=rng.choice(("OFF", "ONE_HIGH", "CYCLIC")),
    )


def turns(rng: random.Random, options: Options | None = None) -> Iterator[Turn]:
    """Yields turns without end, game after game; with random options unless they are given."""
    while True:
        yield from _game(rng, options or draw_options(rng))


def _game(rng: random.Random, options: Options) -> Iterator[Turn]:
    table: Cells = {}
    start = rng.choice((0, 0, 0, LAST_COORDINATE - 6, 6 - LAST_COORDINATE)), rng.randint(-9, 9)
    for _ in range(rng.randint(5, TURNS_A_GAME)):
        has_melded = rng.random() < 0.75
        draft = _Draft(rng, options, table, start)
        draft.play(has_melded=has_melded)
        turn = draft.turn(has_melded=has_melded)
        if rng.random() < DAMAGED:
            turn = _damaged(rng, turn)
        yield turn
        if rng.random() < 0.5 and not turn.violations():
            table = {(x, y): t for t, x, y in turn.after}


def tiny_positions(rng: random.Random, options: Options | None = None) -> Iterator[Turn]:
    """Yields positions that `cross_search` can search, as turns whose play leaves the table as it is."""
    while True:
        chosen = options or draw_options(rng)
        table: Cells = {}
        for _ in range(rng.randint(0, 2)):
            draft = _Draft(rng, chosen, table, (0, 0))
            rng.choice((draft.lay_free_line, draft.extend, draft.hang))()
            if len(draft.cells) <= MOST_CELLS and not draft.turn(has_melded=True).violations():
                table = draft.cells
        draft, has_melded = _Draft(rng, chosen, table, (0, 0)), rng.random() < 0.8
        draft.play(has_melded=has_melded)
        rack = draft.turn(has_melded=has_melded).rack
        few = tuple(sorted(rng.sample(rack, min(len(rack), rng.randint(1, MOST_TILES)))))
        yield _keep(rng, Turn(table, (), few, has_melded, chosen))


class _Draft:
    """A play that is being made.

    Attributes:
        cells: The table as it is so far.
        bag: The tiles that lie neither there nor on the rack; some of them may be played.
        played: The tiles played.
        loose: The tiles taken from the table that have to be laid.
    """

    def __init__(self, rng: random.Random, options: Options, table: Cells, start: Cell) -> None:
        self.rng = rng
        self.options = options
        self.before = table
        self.start = start
        self.cells = dict(table)
        self.bag = Counter({t: options.copies_of(t) for t in (*naturals(options.colors), JOKER)})
        self.bag.subtract(table.values())
        self.played: list[Tile] = []
        self.loose: list[Tile] = []

    def turn(self, *, has_melded: bool) -> Turn:
        """Returns the turn, with a few more tiles on the rack."""
        left = [t for t, count in self.bag.items() if count > 0]
        rack = [*self.played, *self.rng.sample(left, min(len(left), self.rng.randint(0, 4)))]
        after = [(t, x, y) for (x, y), t in self.cells.items()]
        self.rng.shuffle(after)
        return Turn(self.before, tuple(after), tuple(sorted(rack)), has_melded, self.options)

    def play(self, *, has_melded: bool) -> None:
        """Lays lines."""
        rng = self.rng
        if not has_melded:
            for _ in range(rng.choice((1, 1, 2, 2, 3))):
                self.lay_own_line()
            return
        if self.options.manipulation == "FREE" and rng.random() < 0.6:
            rng.choice((self.shift_part, self.reorder_group, self.take_end))()
        elif JOKER in self.before.values() and rng.random() < 0.5:
            self.replace_joker()
        for _ in range(rng.choice((1, 1, 2, 3))):
            self.lay_any_line()
        for _ in range(TRIES):
            if self.loose or not self.played:
                self.lay_any_line()

    def lay_any_line(self) -> None:
        """Lays a line of any kind, if one is found that fits."""
        self.rng.choice((self.lay_free_line, self.extend, self.extend, self.hang, self.hang, self.lay_block))()

    # Lines

    def lay_free_line(self) -> None:
        """Lays a meld away from the others."""
        for _ in range(TRIES):
            if self.lay(self.free_cell(), self.rng.random() < 0.6, 0, self.rng.choice((2, 2, 2, 3, 4))):
                return

    def lay_own_line(self) -> None:
        """Lays a meld that is free or crosses one that was laid in this play."""
        own = [cell for cell in self.cells if cell not in self.before]
        if not own or self.rng.random() < 0.5:
            self.lay_free_line()
            return
        for _ in range(TRIES):
            if self.lay(
                self.rng.choice(own), self.rng.random() < 0.5, *self.rng.choice(((0, 2), (1, 1), (2, 0), (1, 0)))
            ):
                return

    def extend(self) -> None:
        """Extends a line at its ends, by one to three cells."""
        lines = lines_of(self.cells)
        for _ in range(TRIES if lines else 0):
            line = self.rng.choice(lines)
            if self.lay(
                line.cells[0], line.is_row, *self.rng.choice(((0, 1), (0, 1), (1, 0), (1, 0), (0, 2), (1, 1), (0, 3)))
            ):
                return

    def hang(self) -> None:
        """Lays a line through a cell that is in a line of the other direction."""
        lines = lines_of(self.cells)
        for _ in range(TRIES if lines else 0):
            line = self.rng.choice(lines)
            ends = self.rng.choice(((0, 2), (0, 2), (2, 0), (1, 1), (0, 3), (1, 2), (2, 2)))
            if self.lay(self.rng.choice(line.cells), not line.is_row, *ends):
                return

    def lay_block(self) -> None:
        """Lays three runs of the same values one below the other: every column is a group."""
        x, y = self.free_cell()
        first, colors = self.rng.randint(1, 11), self.rng.sample(COLORS[: self.options.colors], 3)
        block = {(x + i, y + j): tile(color, first + i) for i in range(3) for j, color in enumerate(colors)}
        if self.rng.random() < 0.3 and not block.keys() & self.cells.keys():
            self.place(block)

    def lay(self, anchor: Cell, is_row: bool, lower: int, higher: int) -> bool:
        """Lays tiles before and after a cell, in a legal line if there is one; touches others sidewise now and then."""
        cells = _span(self.cells, anchor, is_row, lower, higher)
        pattern = [self.cells.get(cell, JOKER) for cell in cells]
        if self.loose and anchor not in self.cells:
            pattern[cells.index(anchor)] = self.loose[-1]
        elif set(pattern) == {JOKER}:
            pattern[cells.index(anchor)] = self.rng.choice(naturals(self.options.colors))
        legal = fillings(is_row, tuple(pattern), self.options.colors, self.options.run_wrap)
        faces = self.rng.choice(legal) if legal else ()
        new = {cell: face for cell, face in zip(cells, faces, strict=bool(legal)) if cell not in self.cells}
        if not new or (self.rng.random() < 0.95 and any(self.is_beside(cell, is_row) for cell in new)):
            return False
        return self.place(new)

    def is_beside(self, cell: Cell, is_row: bool) -> bool:
        """Returns whether a cell of a line has a neighbor beside the line."""
        x, y = cell
        beside = ((x, y - 1), (x, y + 1)) if is_row else ((x - 1, y), (x + 1, y))
        return any(neighbor in self.cells for neighbor in beside)

    def place(self, new: Cells) -> bool:
        """Places tiles, some of them as jokers. Returns whether there are enough of them."""
        left, laid, played, loose = self.bag.copy(), {}, [], list(self.loose)
        for cell, face in new.items():
            joker_loose = JOKER in loose and self.rng.random() < 0.5
            t = JOKER if joker_loose or (left[JOKER] > 0 and self.rng.random() < 0.1) else face
            laid[cell] = t
            if t in loose:
                loose.remove(t)
            elif left[t] > 0:
                left[t] -= 1
                played.append(t)
            else:
                return False
        self.cells |= laid
        self.played += played
        self.bag, self.loose = left, loose
        return True

    def free_cell(self) -> Cell:
        """Returns an empty cell near the table."""
        if not self.cells:
            return self.start
        for _ in range(TRIES):
            x, y = self.rng.choice(list(self.cells))
            near = x + self.rng.randint(-5, 5), y + self.rng.randint(-5, 5)
            if near not in self.cells:
                return near
        return min(x for x, _ in self.cells) - 6, 0

    # Changes of the table

    def replace_joker(self) -> None:
        """Puts a tile in place of a joker, which is loose then or, rarely, gone."""
        cell = self.rng.choice([cell for cell, t in self.before.items() if t == JOKER])
        faces = [face for face in sorted(roles(self.before, cell, self.options)) if self.bag[face] > 0]
        if faces:
            face = self.rng.choice(faces)
            self.cells[cell] = face
            self.bag[face] -= 1
            self.played.append(face)
            self.loose += [JOKER] if self.rng.random() < 0.9 else []

    def shift_part(self) -> None:
        """Moves all cells that are connected with one."""
        if not self.cells:
            return
        part = {self.rng.choice(list(self.cells))}
        while more := {c for cell in part for c in neighbors(cell) if c in self.cells} - part:
            part |= more
        right, down = self.rng.randint(-9, 9), self.rng.randint(-9, 9)
        moved = {(x + right, y + down): self.cells[x, y] for x, y in part}
        rest = {cell: t for cell, t in self.cells.items() if cell not in part}
        if not moved.keys() & rest.keys():
            self.cells = rest | moved

    def reorder_group(self) -> None:
        """Permutes the cells of a column that are in no row."""
        lines = lines_of(self.cells)
        in_rows = {cell for line in lines if line.is_row for cell in line.cells}
        columns = [[cell for cell in line.cells if cell not in in_rows] for line in lines if not line.is_row]
        if columns:
            column = self.rng.choice(columns)
            tiles = [self.cells[cell] for cell in column]
            self.rng.shuffle(tiles)
            self.cells |= dict(zip(column, tiles, strict=True))

    def take_end(self) -> None:
        """Takes a tile from the end of a line of four or more."""
        lines = lines_of(self.cells)
        ends = [line.cells[end] for line in lines for end in (0, -1) if len(line.cells) > 3]
        free = [cell for cell in ends if sum(cell in line.cells for line in lines) == 1]
        if free:
            self.loose.append(self.cells.pop(self.rng.choice(free)))


def _span(cells: Cells, anchor: Cell, is_row: bool, lower: int, higher: int) -> list[Cell]:
    """Returns the chain through a cell after empty cells before and after it are filled, in order."""
    right, down = (1, 0) if is_row else (0, 1)
    before = _chain_from(cells, anchor, (-right, -down), lower)
    return [*reversed(before), anchor, *_chain_from(cells, anchor, (right, down), higher)]


def _chain_from(cells: Cells, anchor: Cell, step: tuple[int, int], empty: int) -> list[Cell]:
    """Returns the cells from one on in a direction, up to an empty cell beyond the number of those that are filled."""
    found: list[Cell] = []
    x, y = anchor
    while True:
        x, y = x + step[0], y + step[1]
        if (x, y) not in cells:
            if not empty:
                return found
            empty -= 1
        found.append((x, y))


# Damage


def _damaged(rng: random.Random, turn: Turn) -> Turn:
    """Returns a turn with one or two errors, or with changes that happen to be legal."""
    for _ in range(rng.choice((1, 1, 1, 2))):
        if turn.after:
            turn = rng.choices(tuple(_DAMAGES), tuple(_DAMAGES.values()))[0](rng, turn)
    return turn


def _move(rng: random.Random, turn: Turn) -> Turn:
    """A tile goes a cell or two farther."""
    place = _any_place(rng, turn)
    t, x, y = turn.after[place]
    return _with(turn, place, (t, x + rng.choice((-2, -1, 0, 1, 2)), y + rng.choice((-1, 0, 1))))


def _swap(rng: random.Random, turn: Turn) -> Turn:
    """Two tiles change places."""
    one, other = _any_place(rng, turn), _any_place(rng, turn)
    (t, *cell), (u, *there) = turn.after[one], turn.after[other]
    return _with(_with(turn, one, (u, cell[0], cell[1])), other, (t, there[0], there[1]))


def _change(rng: random.Random, turn: Turn) -> Turn:
    """A tile becomes another one, often of the same color or value, with or without a change of the rack."""
    place = _any_place(rng, turn)
    t, x, y = turn.after[place]
    others = [u for u in naturals(turn.options.colors) if t == JOKER or value_of(u) == value_of(t) or abs(u - t) < 2]
    new = rng.choice((*others, JOKER)) if rng.random() < 0.9 else rng.choice((*naturals(6), JOKER))
    changed = _with(turn, place, (new, x, y))
    return replace(changed, rack=tuple(sorted((*turn.rack, new)))) if rng.random() < 0.5 else changed


def _drop(rng: random.Random, turn: Turn) -> Turn:
    """A tile is not laid, or taken from the table."""
    place = _any_place(rng, turn)
    return replace(turn, after=(*turn.after[:place], *turn.after[place + 1 :]))


def _add(rng: random.Random, turn: Turn) -> Turn:
    """A tile of the rack or a foreign one is laid next to a tile, or on one."""
    _, x, y = rng.choice(turn.after)
    right, down = rng.choice(((0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (0, 0)))
    t = rng.choice((*turn.rack, *turn.rack, *naturals(turn.options.colors)[:3], JOKER))
    return replace(turn, after=(*turn.after, (t, x + right, y + down)))


def _lose(rng: random.Random, turn: Turn) -> Turn:
    """The rack lacks a tile."""
    rack = list(turn.rack)
    if rack:
        rack.remove(rng.choice(rack))
    return replace(turn, rack=tuple(rack))


def _keep(_rng: random.Random, turn: Turn) -> Turn:
    """No tile is played: the table stays."""
    return replace(turn, after=tuple((t, x, y) for (x, y), t in turn.before.items()))


def _shift(rng: random.Random, turn: Turn) -> Turn:
    """All tiles of the play go elsewhere, without those of the table."""
    right, down = rng.randint(-4, 4), rng.randint(-4, 4)
    stay = {(t, x, y) for (x, y), t in turn.before.items()}
    moved = ((t, x, y) if (t, x, y) in stay else (t, x + right, y + down) for t, x, y in turn.after)
    return replace(turn, after=tuple(moved))


def _melded(_rng: random.Random, turn: Turn) -> Turn:
    """The player has melded, or has not."""
    return replace(turn, has_melded=not turn.has_melded)


_DAMAGES: dict[Callable[[random.Random, Turn], Turn], int] = {
    _move: 5,
    _swap: 4,
    _change: 4,
    _drop: 4,
    _add: 4,
    _lose: 1,
    _keep: 1,
    _shift: 3,
    _melded: 2,
}
"""The damages and how often they occur."""


def _any_place(rng: random.Random, turn: Turn) -> int:
    """Returns the place of a tile in `after`, mostly of a new one."""
    new = [place for place, (t, x, y) in enumerate(turn.after) if turn.before.get((x, y)) != t]
    return rng.choice(new) if new and rng.random() < 0.7 else rng.randrange(len(turn.after))


def _with(turn: Turn, place: int, placed: Placed) -> Turn:
    return replace(turn, after=(*turn.after[:place], placed, *turn.after[place + 1 :]))
