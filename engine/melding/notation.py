"""Formats and parses the text notation of tiles, melds, racks, tables, plays and positions.

```
tile      R7 B13 K1 O4 G2 P9 J     red, blue, blacK, orange (Y too on input), green, purple; joker
meld      [R3 R4 R5]  run[J J R5]  with the kind where it is stated or needed
          group[R5 J=B5 J=K5]      with declared faces, of all jokers or of none
rack      {R2 B5 J}
table     [R3 R4 R5] | [B6 K6 O6]  or . for an empty table
turn      table + *{R2 B5}         a table and the rack of the player to move (* has melded)
play      table + rack -> table ; rack
position  table / 1*{R2 B5} 2{K1 J} / {R7 O8} / 1    table, racks by seat (* has melded), pool, seat with the turn
```

Playing cards have other names (`Naming.CARDS`). A card is a rank A, 2 to 10, J, Q or K with a suit: H (hearts) for red,
D (diamonds) for orange, C (clubs) for blue, S (spades) for black. The joker is `*`, because J is the jack. Green and
purple have no cards. `[R10 J=R11 R12]` is `[10H *=JH QH]`.

Parsing accepts more than formatting writes: any case of tiles, cards and kinds (`RUN[j j r5]`); the value first (`7R`);
`J*` for a joker; a letter a to h after a tile (`R7a`), which identifies physical copies elsewhere; commas between tiles
(`{R2,B5}`); `.` for an empty pool. Texts are parsed from left to right, so that an error names the first fault.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from engine.melding.melds import Meld, MeldKind, ProposedMeld, as_proposed
from engine.melding.round import MeldingRound
from engine.melding.ruleset import SABRA, Ruleset
from engine.melding.table import ProposedTable, as_proposed_table
from engine.seats import Rack
from engine.tiles import COLORS, JOKER, MAX_VALUE, Color, Tile, in_order, tile

EMPTY: Final = "."
"""An empty table or pool."""

_MELD: Final = re.compile(r"(run|group)?\s*\[([^\[\]]*)\]", re.IGNORECASE)
_RACK: Final = re.compile(r"\{([^{}]*)\}")
_SEAT_RACK: Final = re.compile(r"([1-9])(\*?)(\{[^{}]*\})")
_A_RACK: Final = "is not a rack with its seat: expected 1{tiles} or 1*{tiles}"


class Naming(Enum):
    """The names of the tiles."""

    TILES = auto()
    CARDS = auto()


_SUITS: Final = {"H": Color.RED, "C": Color.BLUE, "S": Color.BLACK, "D": Color.ORANGE}
_RANKS: Final = ("A", *map(str, range(2, 11)), "J", "Q", "K")
_VALUES: Final = range(1, MAX_VALUE + 1)
_NAMES: Final = {
    Naming.TILES: {f"{color.value}{value}": tile(color, value) for color in COLORS for value in _VALUES} | {"J": JOKER},
    Naming.CARDS: {
        f"{rank}{suit}": tile(color, value)
        for suit, color in _SUITS.items()
        for value, rank in zip(_VALUES, _RANKS, strict=True)
    }
    | {"*": JOKER},
}
_NAME_OF: Final = {naming: {t: name for name, t in names.items()} for naming, names in _NAMES.items()}
_LETTERS: Final = {color.value: color for color in COLORS} | {"Y": Color.ORANGE}
_OTHER_NAMES: Final = {
    name: tile(color, value)
    for letter, color in _LETTERS.items()
    for value in _VALUES
    for name in (f"{letter}{value}", f"{value}{letter}")
} | {"J*": JOKER}
_READ: Final = {Naming.TILES: _NAMES[Naming.TILES] | _OTHER_NAMES, Naming.CARDS: _NAMES[Naming.CARDS]}
_EXPECTED: Final = {
    Naming.TILES: "a tile: expected a color R, B, K, O, G or P with a value 1 to 13, or J",
    Naming.CARDS: "a card: expected a rank A, 2 to 10, J, Q or K with a suit H, D, C or S, or *",
}


class NotationError(ValueError):
    """Text that does not follow the notation. The message quotes the invalid part and states what is expected.

    Attributes:
        column: Where the invalid part begins in the text, from 1; of a missing part, the character before it.
    """

    def __init__(self, message: str, column: int = 1) -> None:
        super().__init__(message)
        self.column = column


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text that is parsed, and its place there, from 0."""

    text: str
    start: int = 0

    def strip(self) -> "Piece":
        """Returns the piece without spaces at its ends."""
        stripped = self.text.lstrip()
        return Piece(stripped.rstrip(), self.start + len(self.text) - len(stripped))

    def split(self, separator: str) -> "tuple[Piece, ...]":
        """Returns the parts between separators of one character."""
        ends = [place for place, character in enumerate(self.text) if character == separator]
        starts = (0, *(end + 1 for end in ends))
        return tuple(self.part(start, end) for start, end in zip(starts, (*ends, len(self.text)), strict=True))

    def parts(self, separators: Iterable[str], form: str) -> "Iterator[Piece]":
        """Yields the parts between different separators, each when it is parsed: an error then names the first fault.

        Args:
            separators: The separators in order.
            form: What is expected if one of them is missing.
        """
        rest = self
        for separator in separators:
            part, found, _ = rest.text.partition(separator)
            yield rest.part(0, len(part)).strip()
            if not found:
                raise NotationError(f"a part is missing: expected {form}", max(1, self.start + len(self.text)))
            rest = rest.part(len(part) + len(found), len(rest.text))
        yield rest.strip()

    def words(self) -> "tuple[Piece, ...]":
        """Returns the parts between spaces and commas."""
        return tuple(self.part(*word.span()) for word in re.finditer(r"[^\s,]+", self.text))

    def part(self, start: int, end: int) -> "Piece":
        """Returns a part of the piece, between two places in it."""
        return Piece(self.text[start:end], self.start + start)

    def error(self, message: str) -> NotationError:
        """Returns an error that quotes the piece."""
        return NotationError(f"{self.text!r} {message}", self.start + 1 if self.text else max(1, self.start))


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


def format_tile(t: Tile, naming: Naming = Naming.TILES) -> str:
    """Returns `R7` or `J`; as cards `7H` or `*`. Raises NotationError if there is no such card."""
    name = _NAME_OF[naming].get(t)
    if name is None:
        raise NotationError(f"{format_tile(t)!r} has no card: green and purple have none")
    return name


def parse_tile(text: str, naming: Naming = Naming.TILES) -> Tile:
    """Parses `R7`, `R7a`, `Y7` or `J`; as cards `7H` or `*`. Raises NotationError."""
    return _tile(Piece(text), naming)


def _tile(piece: Piece, naming: Naming) -> Tile:
    text, names = piece.text, _READ[naming]
    found = names.get(text.upper()) or names.get(re.sub("[a-h]$", "", text).upper())
    if found is None:
        raise piece.error(f"is not {_EXPECTED[naming]}")
    return found


def format_card(t: Tile) -> str:
    """Returns `7H` or `*`. Raises NotationError if there is no such card."""
    return format_tile(t, Naming.CARDS)


def parse_card(text: str) -> Tile:
    """Parses `7H`, `AS` or `*`. Raises NotationError."""
    return parse_tile(text, Naming.CARDS)


def format_tiles(tiles: Iterable[Tile], naming: Naming = Naming.TILES) -> str:
    """Returns `R7 B7 K7`."""
    return " ".join(format_tile(t, naming) for t in tiles)


def parse_tiles(text: str, naming: Naming = Naming.TILES) -> tuple[Tile, ...]:
    """Parses `R7 B7 K7`, in order. Raises NotationError."""
    return _tiles(Piece(text), naming)


def _tiles(piece: Piece, naming: Naming) -> tuple[Tile, ...]:
    return tuple(_tile(word, naming) for word in piece.words())


def format_meld(meld: ProposedMeld | Meld, naming: Naming = Naming.TILES, ruleset: Ruleset = SABRA) -> str:
    """Returns `[R3 R4 R5]`, with declared faces, and with the kind where it is needed.

    The kind is needed where faces are declared, or where one numbered tile and jokers leave it open. The text of a Meld
    is read as the same meld by the ruleset that read it.

    Raises:
        NotationError: There is no such card, or the numbers of declared faces and jokers differ.
    """
    proposed = as_proposed(meld, ruleset) if isinstance(meld, Meld) else meld
    naturals = sum(t != JOKER for t in proposed.tiles)
    kind = proposed.kind.name.lower() if proposed.kind and (naturals <= 1 or proposed.declared) else ""
    return f"{kind}[{_format_declared(proposed, naming) if proposed.declared else format_tiles(meld.tiles, naming)}]"


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
    _nothing(piece.part(match.end(), len(piece.text)), "follows a meld: expected | between melds")
    return ProposedMeld(tuple(tiles), MeldKind[match[1].upper()] if match[1] else None, tuple(declared))


def _nothing(piece: Piece, message: str) -> None:
    """Raises NotationError unless a piece is empty."""
    left = piece.strip()
    if left.text:
        raise left.error(message)


def _token(piece: Piece, naming: Naming) -> tuple[Tile, Tile | None]:
    """Parses a tile with its declared face, if any: `R7`, `J`, `J=R5`."""
    name, declares, _ = piece.text.partition("=")
    t = _tile(piece.part(0, len(name)), naming)
    if declares and t != JOKER:
        raise piece.error("declares a face of a tile that is not a joker: only jokers have declared faces")
    return t, _tile(piece.part(len(name) + 1, len(piece.text)), naming) if declares else None


def format_table(table: Iterable[ProposedMeld | Meld], naming: Naming = Naming.TILES, ruleset: Ruleset = SABRA) -> str:
    """Returns `[R3 R4 R5] | [B6 K6 O6]`, or `.` when empty. Raises NotationError like format_meld."""
    return " | ".join(format_meld(meld, naming, ruleset) for meld in table) or EMPTY


def parse_table(text: str, naming: Naming = Naming.TILES) -> ProposedTable:
    """Parses the melds of a table. Raises NotationError."""
    return _table(Piece(text), naming)


def _table(piece: Piece, naming: Naming) -> ProposedTable:
    piece = piece.strip()
    if not piece.text or _is_empty(piece):
        return ()
    return tuple(_meld(meld.strip(), naming) for meld in piece.split("|"))


def _is_empty(piece: Piece) -> bool:
    """Returns whether a piece is `.`. Raises NotationError if it goes on."""
    is_empty = piece.text.startswith(EMPTY)
    if is_empty:
        _nothing(piece.part(len(EMPTY), len(piece.text)), f"follows {EMPTY!r}: expected nothing")
    return is_empty


def format_rack(tiles: Iterable[Tile], naming: Naming = Naming.TILES) -> str:
    """Returns `{R2 B5 J}`."""
    return f"{{{format_tiles(tiles, naming)}}}"


def parse_rack(text: str, naming: Naming = Naming.TILES) -> tuple[Tile, ...]:
    """Parses the tiles of a rack and returns them in ascending order. Raises NotationError."""
    return in_order(_braced(Piece(text).strip(), "rack", naming))


def _braced(piece: Piece, name: str, naming: Naming) -> tuple[Tile, ...]:
    """Parses `{R2 B5 J}`, in order; `name` says what the tiles are."""
    match = _RACK.match(piece.text)
    if not match:
        raise piece.error(f"is not a {name}: expected {{tiles}}")
    tiles = _tiles(piece.part(*match.span(1)), naming)
    _nothing(piece.part(match.end(), len(piece.text)), f"follows the {name}: expected nothing")
    return tiles


def format_turn(table: Iterable[ProposedMeld | Meld], rack: Rack, naming: Naming = Naming.TILES) -> str:
    """Returns `[R3 R4 R5] + *{R2 B5}`. Raises NotationError like format_meld."""
    return f"{format_table(table, naming)} + {'*' * rack.has_melded}{format_rack(rack.tiles, naming)}"


def parse_turn(text: str, naming: Naming = Naming.TILES) -> tuple[ProposedTable, Rack]:
    """Parses `[R3 R4 R5] + *{R2 B5}`; the rack gets seat 1. Raises NotationError."""
    parts = Piece(text).parts("+", "table + *{rack}, or table / racks / pool / seat")
    table, rack = _table(next(parts), naming), next(parts)
    has_melded = rack.text.startswith("*")
    tiles = _braced(rack.part(has_melded, len(rack.text)), "rack", naming)
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
        in_order(_braced(next(parts), "rack", naming)),
        _table(next(parts), naming),
        in_order(_braced(next(parts), "rack", naming)),
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


def parse_pool(piece: Piece, naming: Naming = Naming.TILES) -> tuple[Tile, ...]:
    """Parses `{R7 O8}`, in the order of drawing, or `.` for an empty pool. Raises NotationError."""
    return () if _is_empty(piece) else _braced(piece, "pool", naming)


def format_racks(racks: Iterable[Rack], naming: Naming = Naming.TILES) -> str:
    """Returns `1*{R2 B5} 2{K1 J}`: racks by seat, with * for players who have melded."""
    return " ".join(f"{rack.seat}{'*' * rack.has_melded}{format_rack(rack.tiles, naming)}" for rack in racks)


def parse_racks(piece: Piece, naming: Naming = Naming.TILES) -> tuple[Rack, ...]:
    """Parses `1*{R2 B5} 2{K1 J}`. Raises NotationError."""
    racks: list[Rack] = []
    end = 0
    for match in _SEAT_RACK.finditer(piece.text):
        _nothing(piece.part(end, match.start()), _A_RACK)
        if int(match[1]) in {rack.seat for rack in racks}:
            raise piece.part(*match.span(1)).error("has two racks: expected one of each seat")
        tiles = in_order(_braced(piece.part(*match.span(3)), "rack", naming))
        racks.append(Rack(int(match[1]), tiles, bool(match[2])))
        end = match.end()
    _nothing(piece.part(end, len(piece.text)), _A_RACK)
    return tuple(racks)


def parse_seat(piece: Piece) -> int:
    """Parses a seat. Raises NotationError."""
    if not re.fullmatch(r"[1-9]", piece.text):
        raise piece.error("is not a seat: expected 1 to 9")
    return int(piece.text)
