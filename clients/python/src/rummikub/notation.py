"""Tiles and tables as text: `R7` is the red 7, `J` the joker, `F` a false joker, `[R7 R8 R9] | [B1 K1 J]` a table.

`D`, `M` and `C` are the double joker, the mirror and the color change of Rummikub Twist.
"""

import re
from collections.abc import Iterable
from typing import Final, Protocol

from rummikub.v1.discard_pb2 import DiscardBoard, DiscardPile
from rummikub.v1.meld_pb2 import Meld, Placement, Table
from rummikub.v1.tile_pb2 import (
    TILE_COLOR_CHANGE,
    TILE_DOUBLE_JOKER,
    TILE_FALSE_JOKER,
    TILE_JOKER,
    TILE_MIRROR,
    TILE_UNSPECIFIED,
    Tile,
)

_LETTERS: Final = {"RED": "R", "BLUE": "B", "BLACK": "K", "ORANGE": "O", "GREEN": "G", "PURPLE": "P"}
_NO_NUMBER: Final = {
    TILE_JOKER: "J",
    TILE_FALSE_JOKER: "F",
    TILE_DOUBLE_JOKER: "D",
    TILE_MIRROR: "M",
    TILE_COLOR_CHANGE: "C",
}


def _name(number: Tile.ValueType) -> str:
    if name := _NO_NUMBER.get(number):
        return name
    _, color, value = Tile.Name(number).split("_")
    return _LETTERS[color] + value


_NAMES: Final = {number: _name(number) for number in Tile.values() if number != TILE_UNSPECIFIED}
_TILES: Final = {name: number for number, name in _NAMES.items()}


class _Tiles(Protocol):
    """A Meld, a MeldReading or a HandPart."""

    @property
    def tiles(self) -> Iterable[Tile.ValueType]: ...


def tile(name: str) -> Tile.ValueType:
    """Returns the tile with a name such as `R7` (R, B, K, O, G, P and 1 to 13) or a joker's, in capitals or not."""
    number = _TILES.get(name.upper())
    if number is None:
        raise ValueError(f"no tile is named {name!r}; names are like R7, B13, K1, O10, G5, P2, J, F, D, M and C")
    return number


def tile_name(number: Tile.ValueType) -> str:
    """Returns the name of a tile; `?` and the number if this client does not know it."""
    return _NAMES.get(number) or f"?{number}"


def tiles(names: str) -> list[Tile.ValueType]:
    """Returns the tiles with names separated by spaces."""
    return [tile(name) for name in names.split()]


def tiles_text(numbers: Iterable[Tile.ValueType]) -> str:
    """Returns the names of tiles, separated by spaces."""
    return " ".join(map(tile_name, numbers))


def melds(text: str) -> list[Meld]:
    """Returns the melds of a text such as `[R7 R8 R9] | [B1 K1 J]`; none for `.` and for an empty text."""
    if text.strip() in {"", "."}:
        return []
    found = [re.fullmatch(r"\s*\[([^\[\]]*)\]\s*", part) for part in text.split("|")]
    if None in found:
        raise ValueError(f"{text!r} is not a list of melds like [R7 R8 R9] | [B1 K1 J]")
    return [Meld(tiles=tiles(match[1])) for match in found if match]


def melds_text(table: Iterable[_Tiles]) -> str:
    """Returns melds as a text such as `[R7 R8 R9] | [B1 K1 J]`; `.` if there are none."""
    return " | ".join(f"[{tiles_text(meld.tiles)}]" for meld in table) or "."


def table_text(table: Table) -> str:
    """Returns a table as a text; `.` if it is empty.

    A table of the cross layout is a text such as `0,0[R3 R4 R5] | 1,1[B4]`: neighbors in a row, each time after the
    column and the row of the first.
    """
    if not table.placements:
        return melds_text(table.melds)
    rows: list[list[Placement]] = []
    for placement in sorted(table.placements, key=lambda placed: (placed.y, placed.x)):
        if rows and (placement.x, placement.y) == (rows[-1][-1].x + 1, rows[-1][-1].y):
            rows[-1].append(placement)
        else:
            rows.append([placement])
    return " | ".join(f"{row[0].x},{row[0].y}[{tiles_text(placed.tile for placed in row)}]" for row in rows)


def board_text(board: DiscardBoard) -> str:
    """Returns the board of a game of discards as a text such as `O4 / O5 / 1{R7} 2{}`; `.` if there is none.

    It has the tiles that lie face up (the indicator and the okey, or the trump), and the newest discard of each player,
    after the seat. A table with melds follows: `O4 / O5 / 1{R7} 2{} / [R7 R8 R9]`.
    """
    if not board.piles:
        return "."
    face_up = [tile_name(tile) for tile in (board.indicator, board.okey, board.trump) if tile]
    piles = " ".join(map(_pile_text, board.piles))
    table = [melds_text(board.table)] if board.table else []
    return " / ".join([*face_up, piles, *table])


def _pile_text(pile: DiscardPile) -> str:
    return f"{pile.seat}{{{tile_name(pile.newest) if pile.newest else ''}}}"
