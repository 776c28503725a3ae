"""Formats and parses the text notation of melds, tables, plays and positions, on that of tiles and racks.

```
meld      [R3 R4 R5]  run[J J R5]  with the kind where it is stated or needed
          group[R5 J=B5 J=K5]      with declared faces, of all jokers or of none
table     [R3 R4 R5] | [B6 K6 O6]  or . for an empty table
grid      0,0[R3 R4 R5] | 1,1[B4]  a table of the cross layout: neighbors in a row, after the cell (x, y) of the first
turn      table + *{R2 B5}         a table and the rack of the player to move (* has melded)
play      table + rack -> table ; rack
position  table / 1*{R2 B5} 2{K1 J} / {R7 O8} / 1    table, racks by seat (* has melded), pool, seat with the turn
```

As cards, `[R10 J=R11 R12]` is `[10H *=JH QH]`. Parsing accepts any case of kinds (`RUN[j j r5]`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from engine.melding.grid.cells import Cell, Grid, Placement
from engine.melding.melds import Meld, MeldKind, ProposedMeld, as_proposed
from engine.melding.round import MeldingRound
from engine.melding.ruleset import SABRA, Ruleset
from engine.melding.table import ProposedMelds, ProposedTable, Table, as_proposed_table
from engine.notation import (
    EMPTY,
    Naming,
    NotationError,
    Piece,
    braced,
    check_nothing,
    format_rack,
    format_racks,
    format_tile,
    format_tiles,
    is_empty,
    parse_pool,
    parse_racks,
    parse_seat,
    tile_in,
)
from engine.seats import Rack
from engine.tiles import JOKER, JOKERS, SPECIAL_JOKERS, Tile, in_order

_MELD: Final = re.compile(r"(run|group)?\s*\[([^\[\]]*)\]", re.IGNORECASE)
_ROW: Final = re.compile(r"(-?[0-9]{1,9}),(-?[0-9]{1,9})\[([^\[\]]*)\]")


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a round, like FEN in chess."""

    table: ProposedTable
    racks: tuple[Rack, ...]
    pool: tuple[Tile, ...]
    turn_seat: int

    @property
    def rack(self) -> Rack:
        """The rack of the player to move."""
        return next(rack for rack in self.racks if rack.seat == self.turn_seat)


def position_of(round_: MeldingRound, ruleset: Ruleset = SABRA) -> Position:
    """Returns the position of a round."""
    return Position(as_proposed_table(round_.table, ruleset), round_.racks, round_.pool, round_.turn.seat)


def format_meld(meld: ProposedMeld | Meld, naming: Naming = Naming.TILES, ruleset: Ruleset = SABRA) -> str:
    """Returns `[R3 R4 R5]`, with declared faces, and with the kind where it is needed.

    The kind is needed where faces are declared, or where one numbered face and jokers leave it open. The text of a Meld
    is read as the same meld by the ruleset that read it. Beside a special joker of Twist no face is written: its place
    says what it stands for.

    Raises:
        NotationError: There is no such card, or the numbers of declared faces and jokers differ.
    """
    proposed = as_proposed(meld, ruleset) if isinstance(meld, Meld) else meld
    naturals = {*proposed.tiles} - JOKERS
    declares = bool(proposed.declared) and not SPECIAL_JOKERS.intersection(proposed.tiles)
    kind = proposed.kind.name.lower() if proposed.kind and (len(naturals) <= 1 or declares) else ""
    return f"{kind}[{_format_declared(proposed, naming) if declares else format_tiles(meld.tiles, naming)}]"


def _format_declared(meld: ProposedMeld, naming: Naming) -> str:
    if len(meld.declared) != meld.tiles.count(JOKER):
        raise NotationError(f"{format_tiles(meld.declared)!r} cannot be formatted: declare one face for each joker")
    faces = iter(meld.declared)
    joker = format_tile(JOKER, naming)
    tokens = (
        f"{joker}={format_tile(next(faces), naming)}" if t == JOKER else format_tile(t, naming) for t in meld.tiles
    )
    return " ".join(tokens)


def parse_meld(text: str, naming: Naming = Naming.TILES) -> ProposedMeld:
    """Parses `[R3 R4 R5]`, `run[J J R5]` or `group[R5 J=B5 J=K5]`. Raises NotationError."""
    return _meld(Piece(text).strip(), naming)


def _meld(piece: Piece, naming: Naming) -> ProposedMeld:
    match = _MELD.match(piece.text)
    if not match:
        raise piece.error("is not a meld: expected [tiles], run[tiles] or group[tiles]")
    tiles: list[Tile] = []
    declared: list[Tile] = []
    for word in piece.part(*match.span(2)).words():
        t, face = _token(word, naming)
        if t == JOKER and len(declared) != (0 if face is None else tiles.count(JOKER)):
            raise word.error("follows a joker of another form: expected a face for each joker of a meld, or none")
        tiles.append(t)
        declared += [] if face is None else [face]
    check_nothing(piece.part(match.end(), len(piece.text)), "follows a meld: expected | between melds")
    return ProposedMeld(tuple(tiles), MeldKind[match[1].upper()] if match[1] else None, tuple(declared))


def _token(piece: Piece, naming: Naming) -> tuple[Tile, Tile | None]:
    """Parses a tile with its declared face, if any: `R7`, `J`, `J=R5`."""
    name, declares, _ = piece.text.partition("=")
    t = tile_in(piece.part(0, len(name)), naming)
    if declares and t != JOKER:
        raise piece.error("declares a face of a tile that is not a joker: only jokers have declared faces")
    return t, tile_in(piece.part(len(name) + 1, len(piece.text)), naming) if declares else None


def format_table(table: Table | ProposedTable, naming: Naming = Naming.TILES, ruleset: Ruleset = SABRA) -> str:
    """Returns `[R3 R4 R5] | [B6 K6 O6]`, or `0,0[R3 R4 R5] | 1,1[B4]` for a grid, or `.` when empty.

    Raises NotationError like format_meld.
    """
    if isinstance(table, Grid):
        rows = (f"{row[0].cell.x},{row[0].cell.y}[{_tiles_of(row, naming)}]" for row in _rows(table))
        return " | ".join(rows) or EMPTY
    return " | ".join([format_meld(meld, naming, ruleset) for meld in table]) or EMPTY


def _tiles_of(row: Sequence[Placement], naming: Naming) -> str:
    return format_tiles([placement.tile for placement in row], naming)


def _rows(grid: Grid) -> Iterator[list[Placement]]:
    """Yields the placements of a grid in pieces of neighbors in a row, in their order."""
    row: list[Placement] = []
    for placement in grid.placements:
        if row and placement.cell != (row[-1].cell.x + 1, row[-1].cell.y):
            yield row
            row = []
        row.append(placement)
    if row:
        yield row


def parse_table(text: str, naming: Naming = Naming.TILES) -> ProposedTable:
    """Parses a table of melds, or a grid. Raises NotationError."""
    return _table(Piece(text), naming)


def parse_melds(text: str, naming: Naming = Naming.TILES) -> ProposedMelds:
    """Parses the melds of a table. Raises NotationError."""
    piece = Piece(text).strip()
    return () if is_empty(piece) or not piece.text else _melds(piece, naming)


def _table(piece: Piece, naming: Naming) -> ProposedTable:
    piece = piece.strip()
    if not piece.text or is_empty(piece):
        return ()
    if _ROW.match(piece.text):
        return Grid(tuple(chain.from_iterable(_row(row.strip(), naming) for row in piece.split("|"))))
    return _melds(piece, naming)


def _melds(piece: Piece, naming: Naming) -> ProposedMelds:
    return tuple(_meld(meld.strip(), naming) for meld in piece.split("|"))


def _row(piece: Piece, naming: Naming) -> Iterator[Placement]:
    match = _ROW.match(piece.text)
    if not match:
        raise piece.error("is not a row of a grid: expected x,y[tiles]")
    x, y = int(match[1]), int(match[2])
    for place, word in enumerate(piece.part(*match.span(3)).words()):
        yield Placement(tile_in(word, naming), Cell(x + place, y))
    check_nothing(piece.part(match.end(), len(piece.text)), "follows a row: expected | between rows")


def format_turn(table: ProposedTable, rack: Rack, naming: Naming = Naming.TILES) -> str:
    """Returns `[R3 R4 R5] + *{R2 B5}`. Raises NotationError like format_meld."""
    return f"{format_table(table, naming)} + {'*' * rack.has_melded}{format_rack(rack.tiles, naming)}"


def parse_turn(text: str, naming: Naming = Naming.TILES) -> tuple[ProposedTable, Rack]:
    """Parses `[R3 R4 R5] + *{R2 B5}`; the rack gets seat 1. Raises NotationError."""
    parts = Piece(text).parts("+", "table + *{rack}, or table / racks / pool / seat")
    table, rack = _table(next(parts), naming), next(parts)
    has_melded = rack.text.startswith("*")
    tiles = braced(rack.part(has_melded, len(rack.text)), "rack", naming)
    return table, Rack(1, in_order(tiles), has_melded)


@dataclass(frozen=True, slots=True)
class PlayText:
    """The parts of a play: table and rack before and after."""

    table_before: ProposedTable
    rack_before: tuple[Tile, ...]
    table_after: ProposedTable
    rack_after: tuple[Tile, ...]


def format_play(play: PlayText, naming: Naming = Naming.TILES) -> str:
    """Returns `table + rack -> table ; rack`."""
    before = f"{format_table(play.table_before, naming)} + {format_rack(play.rack_before, naming)}"
    return f"{before} -> {format_table(play.table_after, naming)} ; {format_rack(play.rack_after, naming)}"


def parse_play(text: str, naming: Naming = Naming.TILES) -> PlayText:
    """Parses `table + rack -> table ; rack`. Raises NotationError."""
    parts = Piece(text).parts(("+", "->", ";"), "table + rack -> table ; rack")
    return PlayText(
        _table(next(parts), naming),
        in_order(braced(next(parts), "rack", naming)),
        _table(next(parts), naming),
        in_order(braced(next(parts), "rack", naming)),
    )


def format_position(position: Position, naming: Naming = Naming.TILES) -> str:
    """Returns `table / racks / pool / seat`."""
    racks, pool = format_racks(position.racks, naming), format_rack(position.pool, naming)
    return f"{format_table(position.table, naming)} / {racks} / {pool} / {position.turn_seat}"


def parse_position(text: str, naming: Naming = Naming.TILES) -> Position:
    """Parses `table / racks / pool / seat`. Raises NotationError."""
    parts = Piece(text).parts("///", "table / racks / pool / seat")
    table, racks = _table(next(parts), naming), parse_racks(next(parts), naming)
    pool, seat = parse_pool(next(parts), naming), next(parts)
    position = Position(table, racks, pool, parse_seat(seat))
    if position.turn_seat not in {rack.seat for rack in racks}:
        raise seat.error("is the seat to move, but has no rack")
    return position
