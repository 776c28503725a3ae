"""Formats and parses the text notation of hands and positions, on that of tiles and racks.

```
hand      [R3 R4 R5] | [B6 K6 O6]   melds or pairs; a wild tile stands where the tile would that it stands for
position  O4 / 1{R7 K1} 2{} / 1{R2 B5} 2{K1 F} / {R7 O8} / 1
          indicator, discards by seat (the newest last), racks by seat, pool, seat with the turn
table     O4 / 1{R7} 2{} / 1*{R2 B5} 2{K1 F} / {R7 O8} / 1 / [R3 R4 R5] | [B6 K6 O6] / 1:105 2:5p
          the same with a table, and the points or the pairs (p) of the openings, the oldest first
```

In a game with jokers `J` stands in place of the indicator, and after it the trump if one lies face up: `J R8`. A player
to move whose rack has a tile more than the others must discard, any other one must take a tile. `*` marks the racks of
players who have opened.
"""

import re
from dataclasses import dataclass
from typing import Final

from engine.discard.melds import Arrangement
from engine.discard.round import DiscardRound, Pile
from engine.discard.table import Opening, Table
from engine.notation import (
    EMPTY,
    Naming,
    Piece,
    check_nothing,
    format_rack,
    format_racks,
    format_tiles,
    is_empty,
    parse_pool,
    parse_racks,
    parse_seat,
    seat_tiles,
    tiles_in,
)
from engine.seats import Rack
from engine.tiles import FALSE_JOKER, JOKER, Tile

_PART: Final = re.compile(r"\[([^\[\]]*)\]")
_FORM: Final = "indicator / discards / racks / pool / seat"
_OPENING: Final = re.compile("([1-9]):([0-9]{1,3})(p?)")


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a round, like FEN in chess."""

    indicator: Tile | None
    piles: tuple[Pile, ...]
    racks: tuple[Rack, ...]
    pool: tuple[Tile, ...]
    turn_seat: int
    table: Table | None = None
    trump: Tile | None = None


def position_of(round_: DiscardRound) -> Position:
    """Returns the position of a round."""
    return Position(
        round_.indicator,
        round_.piles,
        round_.racks,
        round_.pool,
        round_.turn.seat,
        round_.table,
        round_.trump_to_take,
    )


def format_hand(hand: Arrangement) -> str:
    """Returns `[R3 R4 R5] | [B6 K6 O6]`, or `.` for no melds."""
    return " | ".join(f"[{format_tiles(part)}]" for part in hand) or EMPTY


def parse_hand(text: str) -> Arrangement:
    """Parses melds or pairs. Raises NotationError."""
    piece = Piece(text).strip()
    return () if not piece.text or is_empty(piece) else tuple(_part(part.strip()) for part in piece.split("|"))


def _part(piece: Piece) -> tuple[Tile, ...]:
    match = _PART.match(piece.text)
    if not match:
        raise piece.error("is not a meld or a pair: expected [tiles]")
    check_nothing(piece.part(match.end(), len(piece.text)), "follows a meld: expected | between melds")
    return tiles_in(piece.part(*match.span(1)), Naming.TILES)


def format_face_up(indicator: Tile | None, trump: Tile | None) -> str:
    """Returns an indicator, `J` if there is none, then the trump if there is one: `O4`, `J`, `J R8`."""
    first = JOKER if indicator is None else indicator
    return format_tiles((first,) if trump is None else (first, trump))


def parse_face_up(piece: Piece) -> tuple[Tile | None, Tile | None]:
    """Parses what `format_face_up` returns. Raises NotationError."""
    match tiles_in(piece, Naming.TILES):
        case (tile,) if tile == JOKER:
            return None, None
        case (tile, trump) if tile == JOKER and trump != FALSE_JOKER:
            return None, trump
        case (tile,) if tile != FALSE_JOKER:
            return tile, None
        case _:
            raise piece.error("is not an indicator: expected a tile with a value, or J and the trump")


def format_position(position: Position) -> str:
    """Returns `indicator / discards / racks / pool / seat`, and ` / table / openings` if there is a table."""
    piles = " ".join(f"{pile.seat}{format_rack(pile.tiles)}" for pile in position.piles)
    parts = (
        format_face_up(position.indicator, position.trump),
        piles,
        format_racks(position.racks),
        format_rack(position.pool),
    )
    table = f" / {format_hand(position.table.melds)} / {_format_openings(position.table)}" if position.table else ""
    return f"{' / '.join(parts)} / {position.turn_seat}{table}"


def _format_openings(table: Table) -> str:
    return " ".join(f"{one.seat}:{one.amount}{'p' * one.is_pairs}" for one in table.openings) or EMPTY


def parse_position(text: str) -> Position:
    """Parses what `format_position` returns. Raises NotationError."""
    has_table = text.count("/") > _FORM.count("/")
    parts = Piece(text).parts("//////" if has_table else "////", f"{_FORM} / table / openings" if has_table else _FORM)
    indicator, trump = parse_face_up(next(parts))
    piles = tuple(Pile(seat, tiles) for seat, _, tiles in seat_tiles(next(parts), Naming.TILES))
    racks, pool, seat = parse_racks(next(parts)), parse_pool(next(parts)), next(parts)
    table = Table(next(parts).read(parse_hand), _openings(next(parts))) if has_table else None
    position = Position(indicator, piles, racks, pool, parse_seat(seat), table, trump)
    if position.turn_seat not in {rack.seat for rack in racks}:
        raise seat.error("is the seat to move, but has no rack")
    return position


def _openings(piece: Piece) -> tuple[Opening, ...]:
    return () if is_empty(piece) else tuple(map(_opening, piece.words()))


def _opening(word: Piece) -> Opening:
    match = _OPENING.fullmatch(word.text)
    if not match:
        raise word.error("is not an opening: expected SEAT:POINTS, or SEAT:PAIRSp")
    return Opening(int(match[1]), bool(match[3]), int(match[2]))
