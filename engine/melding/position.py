"""Positions that a game may begin with in place of a deal, and what makes one impossible."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from engine.melding.grid.cells import Grid
from engine.melding.grid.rules import read_grid
from engine.melding.melds import Meld, read_meld
from engine.melding.ruleset import PAIRS_PLAYERS, Ruleset, TableLayout, Teams
from engine.melding.table import ProposedTable, Table, as_grid, tiles_on
from engine.seats import Rack
from engine.tiles import Tile, in_order


@dataclass(frozen=True, slots=True)
class Position:
    """A position that a game shall begin with.

    Attributes:
        table: The table.
        racks: The racks by seat, with who has made the initial meld.
        pool: The pool, in the order of drawing; None for all other tiles of the set, shuffled.
        turn_seat: The seat that has the first turn.
    """

    table: Table
    racks: tuple[Rack, ...]
    pool: tuple[Tile, ...] | None
    turn_seat: int

    @property
    def seats(self) -> tuple[int, ...]:
        """The seats, as the racks have them."""
        return tuple(rack.seat for rack in self.racks)


@dataclass(frozen=True, slots=True)
class PositionProblem:
    """Why a position is impossible.

    Attributes:
        part: The part in question: `table`, `seats`, `seats[1].rack`, `pool` or `turn_seat`.
        text: What is wrong with it.
        tiles: The tiles concerned.
    """

    part: str
    text: str
    tiles: tuple[Tile, ...] = ()


def legal_table(proposed: ProposedTable, ruleset: Ruleset) -> Table | None:
    """Returns a table as the rules read it; None if it is not legal, or of another layout (table_layout)."""
    if ruleset.table_layout is TableLayout.GRID:
        grid = as_grid(proposed)
        return None if grid is None else read_grid(grid, ruleset)
    if isinstance(proposed, Grid):
        return None
    melds = tuple(reading for meld in proposed if isinstance(reading := read_meld(meld, ruleset), Meld))
    return melds if len(melds) == len(proposed) else None


def position_problems(
    position: Position, ruleset: Ruleset, laid: tuple[Tile, ...] | None = None
) -> tuple[PositionProblem, ...]:
    """Returns all problems of a position, but melds of its table that are none.

    `laid` are the tiles on the table, if some of them are in no meld.
    """
    laid = tiles_on(position.table) if laid is None else laid
    return (*_problems_of_seats(position, laid, ruleset), *_problems_of_tiles(position, laid, ruleset))


def _problems_of_seats(position: Position, laid: tuple[Tile, ...], ruleset: Ruleset) -> Iterator[PositionProblem]:
    seats, players = position.seats, f"{ruleset.players_min} to {ruleset.players_max}"
    if not ruleset.players_min <= len(seats) <= ruleset.players_max:
        yield PositionProblem("seats", f"the rules are for {players} players")
    elif ruleset.teams is Teams.PAIRS and len(seats) != PAIRS_PLAYERS:
        yield PositionProblem("seats", f"pairs are {PAIRS_PLAYERS} players")
    if not set(seats) <= set(range(1, ruleset.players_max + 1)) or seats != tuple(sorted(set(seats))):
        yield PositionProblem("seats", f"expected seats from 1 to {ruleset.players_max}, each once and ascending")
    if position.turn_seat not in seats:
        yield PositionProblem("turn_seat", "expected one of the seats")
    for place, rack in enumerate(position.racks):
        if not rack.tiles:
            yield PositionProblem(f"seats[{place}].rack", "the rack is empty, so the round would be over")
    have_melded = any(rack.has_melded for rack in position.racks)
    if ruleset.initial_meld_needed and have_melded != bool(laid):
        text = "no tile lies on the table" if have_melded else "tiles lie on the table"
        yield PositionProblem("seats", f"{text}, and {'a' if have_melded else 'no'} player has melded")


def _problems_of_tiles(position: Position, laid: tuple[Tile, ...], ruleset: Ruleset) -> Iterator[PositionProblem]:
    """Yields tiles of which there are too many, and a pool that is not the rest of the tile set (R1)."""
    left = Counter(ruleset.tiles(len(position.racks)))
    parts = [("table", laid)]
    parts += [(f"seats[{place}].rack", rack.tiles) for place, rack in enumerate(position.racks)]
    for part, tiles in (*parts, ("pool", position.pool or ())):
        beyond = in_order((Counter(tiles) - left).elements())
        if beyond:
            yield PositionProblem(part, "the tile set has no more of these tiles", beyond)
        left -= Counter(tiles)
    missing = in_order(left.elements())
    if position.pool is not None and missing:
        yield PositionProblem("pool", "tiles of the set are missing; leave the pool out to shuffle the rest", missing)
