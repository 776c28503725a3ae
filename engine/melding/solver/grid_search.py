"""Finds plays on a grid: the best one, and whether any exists (C12; docs/solver.md).

Tiles of the table stay where they are, except jokers that a tile of the rack replaces. So a play has two parts that do
not touch: tiles joined to the table, and melds that stand alone. Both are found by laying a tile and mending what it
leaves undone, a tile at a time (grid_growth.py): the first from every cell beside the table, the second on an empty
table. The searches visit every legal play, so answers are exact within the budget. Where tiles may move (manipulation
FREE), a play that moves none is still legal, but a search that finds none proves nothing.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, product
from typing import Final, NamedTuple

from engine.effort import Budget
from engine.melding.analysis import Existence, GridSituation
from engine.melding.grid.cells import COORDINATE_MAX, Cell, Cells, Grid, cells_of, grid_of, neighbors
from engine.melding.grid.lines import lines_of, roles_of
from engine.melding.initial_meld import reaches
from engine.melding.ruleset import InitialMeldJoker, Manipulation
from engine.melding.solver.answers import Objective
from engine.melding.solver.grid_growth import Growth
from engine.melding.solver.search import Meter, OutOfBudget
from engine.tiles import JOKER, Tile, in_order, value_of, without

ISLANDS_SHARE: Final = 3
"""One in so many steps of a budget at most goes to melds that stand alone, before the table is looked at."""
ISLANDS_NODES: Final = 20_000
"""And no more than so many, about a fifth of a second: a caller's deadline may come before the budget ends."""

Tiles = tuple[Tile, ...]
Island = dict[Cell, Tile]
"""Tiles that touch one another and nothing else."""


@dataclass(frozen=True, slots=True)
class GridTurn:
    """A legal play on a grid: the table after it, and the tiles that leave the rack, ascending."""

    table: Grid
    tiles: Tiles

    @property
    def river_index(self) -> None:
        """No place in the River: beside a grid there is none."""

    @property
    def untouched(self) -> tuple[int, ...]:
        """No melds: a grid has none."""
        return ()


@dataclass(frozen=True, slots=True)
class BestGridTurn:
    """The best play found on a grid.

    Attributes:
        turn: None when none was found.
        is_proven: Whether no play is better by the objective (no play exists, if none was found).
    """

    turn: GridTurn | None
    is_proven: bool

    @property
    def is_least_change(self) -> bool:
        """Whether no equally good play changes less of the table: in those that are found, no tile moves."""
        return self.is_proven


def best_grid_turn(situation: GridSituation, objective: Objective, budget: Budget) -> BestGridTurn:
    """Returns the best play on a grid. If the budget is spent, it is the best one found so far."""
    search = _Search(situation, objective, Meter(budget))
    try:
        search.run()
    except OutOfBudget:
        return BestGridTurn(search.best, is_proven=False)
    return BestGridTurn(search.best, is_proven=search.is_complete)


def has_grid_turn(situation: GridSituation, budget: Budget) -> Existence:
    """Returns whether any play on a grid exists; stops at the first one."""
    search = _Search(situation, Objective.MOST_TILES, Meter(budget), stops_at_first=True)
    try:
        search.run()
    except OutOfBudget:
        return Existence.YES if search.best else Existence.UNKNOWN
    if search.best:
        return Existence.YES
    return Existence.NO if search.is_complete else Existence.UNKNOWN


class _Merit(NamedTuple):
    """The merit of tiles on the table: their weight by the objective, their points, and the number of jokers."""

    weight: int
    points: int
    jokers: int

    def plus(self, other: "_Merit") -> "_Merit":
        """Returns the merit of both."""
        return _Merit(self.weight + other.weight, self.points + other.points, self.jokers + other.jokers)

    def is_matched_by(self, other: "_Merit") -> bool:
        """Returns whether another merit is as good in every respect."""
        return all(mine <= theirs for mine, theirs in zip(self, other, strict=True))


class _Choice(NamedTuple):
    """Islands to lay together, and their merit."""

    merit: _Merit
    islands: tuple[Island, ...]


_NONE: Final = _Choice(_Merit(0, 0, 0), ())


class _Search:
    """A search in one situation.

    Args:
        situation: The situation.
        objective: The measure of plays.
        meter: Counts the work.
        stops_at_first: Whether any play is enough.

    Attributes:
        best: The best play found.
    """

    def __init__(
        self, situation: GridSituation, objective: Objective, meter: Meter, *, stops_at_first: bool = False
    ) -> None:
        self._situation, self._ruleset, self._meter = situation, situation.ruleset, meter
        self._objective = objective
        self._table = cells_of(situation.table)
        forbids_jokers = self._ruleset.initial_meld_joker is InitialMeldJoker.FORBIDDEN and not situation.has_melded
        self._hand = tuple([t for t in situation.rack if not (forbids_jokers and t == JOKER)])
        self._enough = 0 if stops_at_first else self._weight(self._hand)
        self._weight_found = -1
        self._knows_islands = True
        self._islands: dict[Tile, dict[Tiles, _Choice]] = {}
        self._choices: dict[Tiles, list[_Choice]] = {(): [_NONE]}
        self.best: GridTurn | None = None

    @property
    def is_complete(self) -> bool:
        """Whether a finished search has seen every play that could be better."""
        may_move = self._situation.has_melded and self._ruleset.manipulation is Manipulation.FREE
        return self._is_done or (self._knows_islands and not may_move)

    @property
    def _is_done(self) -> bool:
        return self._weight_found >= self._enough

    def run(self) -> None:
        """Finds the best play. Raises OutOfBudget.

        Islands with jokers are by far the most, so plays without any come first: a search out of budget has those.
        """
        if self._situation.has_melded:
            self._run_in_stages()
        else:
            self._find_islands(self._hand)
            self._offer({}, self._hand, _NONE.merit)

    def _run_in_stages(self) -> None:
        """Finds the best play of a player who has melded: with islands without jokers, with the hand's, the table's."""
        numbered = tuple([t for t in self._hand if t != JOKER])
        may_retrieve = self._search_with_islands_of(numbered)
        if len(numbered) < len(self._hand) and not self._is_done:
            may_retrieve = self._search_with_islands_of(self._hand)
        if may_retrieve and not self._is_done:
            jokers = [*self._table.values()].count(JOKER)
            self._search_with_islands_of((*self._hand, *(JOKER,) * jokers))

    def _search_with_islands_of(self, hand: Tiles) -> bool:
        """Finds the best play with these islands; returns whether a joker of the table can be replaced."""
        self._find_islands(hand)
        may_retrieve = False
        growth = Growth(self._table, self._hand, self._ruleset, self._meter)
        for _ in growth.beside_table():
            if self._is_done:
                break
            may_retrieve = may_retrieve or growth.retrieved > 0
            weight = self._weight(growth.laid.values()) - self._weight((JOKER,) * growth.retrieved)
            self._offer(growth.laid, in_order(growth.hand.elements()), _Merit(weight, 0, -growth.owed))
        return may_retrieve

    def _weight(self, tiles: Iterable[Tile]) -> int:
        if self._objective is Objective.MOST_TILES:
            return len(tuple(tiles))
        return sum(self._ruleset.score_joker_penalty if t == JOKER else value_of(t) for t in tiles)

    def _find_islands(self, hand: Tiles) -> None:
        """Finds the islands of the tiles of a hand: of each multiset of tiles, the one with the most points."""
        self._choices, self._knows_islands = {(): [_NONE]}, False
        meter = self._meter.part(min(ISLANDS_NODES, self._meter.budget.nodes // ISLANDS_SHARE))
        try:
            self._add_islands(Growth({}, in_order(hand), self._ruleset, meter))
        except OutOfBudget:
            if self._meter.is_over:
                raise
        else:
            self._knows_islands = True

    def _add_islands(self, growth: Growth) -> None:
        for _ in growth.islands():
            island, tiles = dict(growth.laid), in_order(growth.laid.values())
            merit = _Merit(self._weight(tiles), self._points(island), tiles.count(JOKER))
            found = self._islands.setdefault(tiles[0], {})
            if tiles not in found or not merit.is_matched_by(found[tiles].merit):
                found[tiles] = _Choice(merit, (island,))
            if not self._is_done and not Counter(tiles) - Counter(self._hand):
                self._offer_choice({}, _NONE.merit, found[tiles])
            if self._is_done:
                return

    def _points(self, island: Island) -> int:
        """Returns what an island counts in the initial meld (R30, C7); nothing afterwards."""
        if self._situation.has_melded:
            return 0
        naturals = sum(value_of(t) for t in island.values() if t != JOKER)
        if self._ruleset.initial_meld_joker is InitialMeldJoker.ZERO:
            return naturals
        return naturals + sum(value_of(faces[0]) for faces in roles_of(lines_of(island, self._ruleset)).values())

    def _offer(self, laid: Island, left: Tiles, merit: _Merit) -> None:
        """Offers the plays of some tiles with islands of the tiles that are left."""
        if merit.weight + self._weight(left) > self._weight_found:
            for choice in self._choose(left):
                self._offer_choice(laid, merit, choice)

    def _offer_choice(self, laid: Island, merit: _Merit, choice: _Choice) -> None:
        """Offers a play: it is the best one so far if it is legal and weighs more."""
        total = merit.plus(choice.merit)
        is_legal = total.jokers >= 0 and (self._situation.has_melded or reaches(total.points, self._ruleset))
        if not is_legal or total.weight <= self._weight_found or not (laid or choice.islands):
            return
        cells = with_islands({**self._table, **laid}, choice.islands)
        tiles = in_order((*laid.values(), *(t for island in choice.islands for t in island.values())))
        retrieved = [t for cell, t in self._table.items() if cell in laid]
        table = grid_of(cells, roles_of(lines_of(cells, self._ruleset)))
        self.best, self._weight_found = GridTurn(table, without(tiles, retrieved)), total.weight

    def _choose(self, tiles: Tiles) -> list[_Choice]:
        """Returns the best choices of islands of some tiles: none of them is matched by another."""
        known = self._choices.get(tiles)
        if known is None:
            self._choices[tiles] = known = []
            for choice in self._choices_of(tiles):
                self._meter.count()
                if not any(choice.merit.is_matched_by(other.merit) for other in known):
                    known[:] = [other for other in known if not other.merit.is_matched_by(choice.merit)]
                    known.append(choice)
        return known

    def _choices_of(self, tiles: Tiles) -> Iterator[_Choice]:
        """Yields the choices that leave out the lowest tile, and those with an island of it."""
        held = Counter(tiles)
        for island_tiles, island in self._islands.get(tiles[0], {}).items():
            if not Counter(island_tiles) - held:
                for rest in self._choose(without(tiles, island_tiles)):
                    yield _Choice(island.merit.plus(rest.merit), (*island.islands, *rest.islands))
        yield from self._choose(tiles[1:])


def with_islands(cells: Cells, islands: tuple[Island, ...]) -> dict[Cell, Tile]:
    """Returns tiles with islands laid where they touch nothing, near the middle of the table.

    All tiles of a game leave room for more, wherever they lie.
    """
    placed = dict(cells)
    for island in islands:
        placed.update(next(spot for spot in _spots(placed, island) if _is_free(placed, spot)))
    return placed


def _spots(cells: Cells, island: Island) -> Iterator[Island]:
    """Returns an island in its possible places: first in rows and columns near other tiles, then everywhere."""
    left, top = min(x for x, _ in island), min(y for _, y in island)
    near_rows = {y + step for _, y in cells for step in (-2, 0, 2)} or {0}
    near_columns = {x + step for x, _ in cells for step in (-2, 0, 2)} or {0}
    everywhere = sorted(range(-COORDINATE_MAX, COORDINATE_MAX + 1), key=abs)
    near = product(sorted(near_rows, key=abs), sorted(near_columns, key=abs))
    return (
        {Cell(cell.x - left + x, cell.y - top + y): t for cell, t in island.items()}
        for y, x in chain(near, product(everywhere, everywhere))
    )


def _is_free(cells: Cells, island: Island) -> bool:
    """Returns whether an island is on the table and touches no tile."""
    return all(
        cell.is_on_the_table and cell not in cells and not any(near in cells for near in neighbors(cell))
        for cell in island
    )
