"""Enumerates the partitions of a few tiles into melds, in order of the cost of the tiles left on the rack.

Each step lays the lowest tile left, so each partition is found once. A state is the multiset of the tiles left, packed
into one number with a field per face. For each state the totals of its completions are memoized, one bit each. So the
enumeration for one total has no dead ends, and partitions that cost too much are never enumerated.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from engine.melding.melds import Meld
from engine.melding.solver.problem import Problem
from engine.melding.solver.search import Meter
from engine.melding.table import identity
from engine.tiles import JOKER, Tile, value_of

PIECES_PER_NODE = 16
"""The number of melds that can be tried for the work of one node."""


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A meld that a partition may contain; hashed by identity, which is cheap.

    Attributes:
        meld: The meld.
        tiles: Its tiles, packed.
        most_kept: How many equal melds of the table it can represent, which stay as they are; 0 for a new meld.
    """

    meld: Meld
    tiles: int
    most_kept: int

    @property
    def is_kept(self) -> bool:
        """Returns whether it represents a meld of the table."""
        return self.most_kept > 0


Partition = tuple[Piece, ...]


class Total(NamedTuple):
    """The cost of the tiles that a partition leaves, and the number of melds of the table it keeps."""

    cost: int
    kept: int


class Partitions:
    """The partitions of a problem's tiles into given melds.

    Args:
        problem: The tiles to lay, and the cost of leaving one.
        melds: The allowed melds, all different.
        table: The melds of the table whose tiles must be laid. Those that are laid again are kept.
        meter: Counts a node per state.
    """

    def __init__(self, problem: Problem, melds: Iterable[Meld], table: Iterable[Meld], meter: Meter) -> None:
        tiles = Counter(problem.must) + Counter(problem.may)
        self._fields = _Fields(tiles)
        self._tiles = self._fields.pack(tiles)
        self._must = self._fields.pack(problem.must)
        self._meter = meter
        self._stride = tiles.total() // 3 + 1
        self._costs = [problem.cost((t,)) * self._stride for t in self._fields.faces]
        self._pieces: list[list[Piece]] = [[] for _ in self._fields.faces]
        self._reached: dict[tuple[int, int], int] = {}
        on_table = Counter(map(identity, table))
        for meld in melds:
            most_kept = on_table[identity(meld)]
            if most_kept:
                self._add(meld, most_kept)
            if Counter(meld.tiles * (most_kept + 1)) <= tiles:
                self._add(meld, 0)

    def _add(self, meld: Meld, most_kept: int) -> None:
        tiles = self._fields.pack(meld.tiles)
        self._pieces[self._fields.lowest(tiles)].append(Piece(meld, tiles, most_kept))

    def totals(self, below: int) -> Iterator[Total]:
        """Yields the totals of all partitions below a cost limit: the lowest cost first, then the most melds kept."""
        reached = self._reach(self._tiles, self._must)
        for cost in range(below):
            for kept in reversed(range(self._stride)):
                if reached >> (cost * self._stride + kept) & 1:
                    yield Total(cost, kept)

    def of_total(self, total: Total) -> Iterator[Partition]:
        """Yields the partitions of a total, in a fixed order.

        There may be none: totals also count a meld as kept that is laid more often than the table has it.
        """
        yield from self._complete(self._tiles, self._must, total.cost * self._stride + total.kept, ())

    def _reach(self, tiles: int, must: int) -> int:
        """Returns the totals that the completions of a state reach, one bit each."""
        if not tiles:
            return 1
        key = (tiles, must)
        if key not in self._reached:
            self._reached[key] = self._reach_anew(tiles, must)
        return self._reached[key]

    def _reach_anew(self, tiles: int, must: int) -> int:
        lowest = self._fields.lowest(tiles)
        pieces = self._pieces[lowest]
        self._meter.count(1 + len(pieces) // PIECES_PER_NODE)
        reached = 0
        for piece in pieces:
            if self._fields.has(tiles, piece.tiles):
                after = self._reach(tiles - piece.tiles, self._fields.less(must, piece.tiles))
                reached |= after << piece.is_kept
        if not self._fields.count(must, lowest):
            rest, cost = self._without(tiles, lowest)
            reached |= self._reach(rest, must) << cost
        return reached

    def _without(self, tiles: int, face: int) -> tuple[int, int]:
        """Returns the tiles of a state after all copies of a face are left on the rack, and their cost."""
        count = self._fields.count(tiles, face)
        return tiles - self._fields.one(face) * count, self._costs[face] * count

    def _complete(self, tiles: int, must: int, total: int, laid: Partition) -> Iterator[Partition]:
        """Yields the partitions that extend the laid pieces to a total."""
        if not tiles:
            yield laid
            return
        self._meter.count()
        lowest = self._fields.lowest(tiles)
        for piece in self._from(lowest, laid):
            if self._fields.has(tiles, piece.tiles):
                rest, still = tiles - piece.tiles, self._fields.less(must, piece.tiles)
                left = total - piece.is_kept
                if left >= 0 and self._reach(rest, still) >> left & 1:
                    yield from self._complete(rest, still, left, (*laid, piece))
        if not self._fields.count(must, lowest):
            rest, cost = self._without(tiles, lowest)
            if total >= cost and self._reach(rest, must) >> (total - cost) & 1:
                yield from self._complete(rest, must, total - cost, laid)

    def _from(self, lowest: int, laid: Partition) -> list[Piece]:
        """Returns the pieces that may come next: of those with the same lowest tile, none before the last one laid."""
        pieces = self._pieces[lowest]
        if not (laid and laid[-1] in pieces):
            return pieces
        last = laid[-1]
        is_used_up = last.is_kept and laid.count(last) == last.most_kept
        return pieces[pieces.index(last) + is_used_up :]


class _Fields:
    """Packs a multiset of tiles into a number: a field per face in order of value, jokers highest, with guard bits.

    A subtraction that borrows in a field clears only the guard bit of that field.
    """

    def __init__(self, tiles: Counter[Tile]) -> None:
        numbered = sorted((t for t in tiles if t != JOKER), key=lambda t: (value_of(t), t))
        self.faces = (*numbered, JOKER)
        self._bits = max(tiles.values(), default=0).bit_length()
        self._width = self._bits + 1
        self._fields = {t: self._width * number for number, t in enumerate(self.faces)}
        self._guards = sum(1 << field + self._bits for field in self._fields.values())

    def pack(self, tiles: Iterable[Tile] | Counter[Tile]) -> int:
        """Returns the number of a multiset, which must be a subset of all tiles."""
        return sum(count << self._fields[t] for t, count in Counter(tiles).items())

    def one(self, face: int) -> int:
        """Returns the number of a single tile, given the index of its field."""
        return 1 << face * self._width

    def count(self, tiles: int, face: int) -> int:
        """Returns how often a face occurs."""
        return tiles >> face * self._width & (1 << self._bits) - 1

    def lowest(self, tiles: int) -> int:
        """Returns the index of the lowest nonzero field."""
        return ((tiles & -tiles).bit_length() - 1) // self._width

    def has(self, tiles: int, others: int) -> bool:
        """Returns whether a multiset contains another one."""
        return ((tiles | self._guards) - others) & self._guards == self._guards

    def less(self, tiles: int, others: int) -> int:
        """Returns the multiset without other tiles, as far as it contains them."""
        left = (tiles | self._guards) - others
        enough = left & self._guards
        return left & (enough - (enough >> self._bits))
