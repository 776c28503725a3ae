"""Formats and parses the text notation of tiles, racks and pools, and the pieces of texts that are parsed.

```
tile      R7 B13 K1 O4 G2 P9 J F   red, blue, blacK, orange (Y too on input), green, purple; joker; false joker
          D M C                    the special jokers of Twist: double, mirror, color change
rack      {R2 B5 J}
racks     1*{R2 B5} 2{K1 J}        by seat, * for players who have melded
pool      {R7 O8}                  in the order of drawing, or . if it is empty
```

Playing cards have other names (`Naming.CARDS`). A card is a rank A, 2 to 10, J, Q or K with a suit: H (hearts) for red,
D (diamonds) for orange, C (clubs) for blue, S (spades) for black. The joker is `*`, because J is the jack. Green,
purple, the false joker and the special jokers have no cards.

Parsing accepts more than formatting writes: any case of tiles and cards; the value first (`7R`); `J*` for a joker; a
letter a to h after a tile (`R7a`), which identifies physical copies elsewhere; commas between tiles (`{R2,B5}`).
Texts are parsed from left to right, so that an error names the first fault.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeVar

from engine.seats import Rack
from engine.tiles import (
    COLOR_CHANGE,
    COLORS,
    DOUBLE_JOKER,
    FALSE_JOKER,
    JOKER,
    MAX_VALUE,
    MIRROR,
    Color,
    Tile,
    in_order,
    tile,
)

_T = TypeVar("_T")

EMPTY: Final = "."
"""An empty table or pool."""

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
    Naming.TILES: {f"{color.value}{value}": tile(color, value) for color in COLORS for value in _VALUES}
    | {"J": JOKER, "F": FALSE_JOKER, "D": DOUBLE_JOKER, "M": MIRROR, "C": COLOR_CHANGE},
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
    Naming.TILES: "a tile: expected a color R, B, K, O, G or P with a value 1 to 13, J, D, M, C or F",
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

    def after(self, word: "Piece") -> "Piece":
        """Returns what follows a word of the piece."""
        return self.part(word.start + len(word.text) - self.start, len(self.text)).strip()

    def read(self, parse: Callable[[str], _T]) -> _T:
        """Parses the piece with a function for whole texts; its errors name the column in the text of the piece."""
        try:
            return parse(self.text)
        except NotationError as error:
            raise NotationError(str(error), self.start + error.column) from None

    def error(self, message: str) -> NotationError:
        """Returns an error that quotes the piece."""
        return NotationError(f"{self.text!r} {message}", self.start + 1 if self.text else max(1, self.start))


def format_tile(t: Tile, naming: Naming = Naming.TILES) -> str:
    """Returns `R7` or `J`; as cards `7H` or `*`. Raises NotationError if there is no such card."""
    name = _NAME_OF[naming].get(t)
    if name is None:
        has_none = "green, purple, the false joker and special jokers have none"
        raise NotationError(f"{format_tile(t)!r} has no card: {has_none}")
    return name


def parse_tile(text: str, naming: Naming = Naming.TILES) -> Tile:
    """Parses `R7`, `R7a`, `Y7` or `J`; as cards `7H` or `*`. Raises NotationError."""
    return tile_in(Piece(text), naming)


def tile_in(piece: Piece, naming: Naming) -> Tile:
    """Parses a tile. Raises NotationError."""
    text, names = piece.text, _READ[naming]
    found = names.get(text.upper()) or names.get(re.sub("[a-h]$", "", text).upper())
    if found is None:
        raise piece.error(f"is not {_EXPECTED[naming]}")
    return found


def format_tiles(tiles: Iterable[Tile], naming: Naming = Naming.TILES) -> str:
    """Returns `R7 B7 K7`."""
    return " ".join(format_tile(t, naming) for t in tiles)


def parse_tiles(text: str, naming: Naming = Naming.TILES) -> tuple[Tile, ...]:
    """Parses `R7 B7 K7`, in order. Raises NotationError."""
    return tiles_in(Piece(text), naming)


def tiles_in(piece: Piece, naming: Naming) -> tuple[Tile, ...]:
    """Parses tiles, in order. Raises NotationError."""
    return tuple(tile_in(word, naming) for word in piece.words())


def check_nothing(piece: Piece, message: str) -> None:
    """Raises NotationError unless a piece is empty."""
    left = piece.strip()
    if left.text:
        raise left.error(message)


def is_empty(piece: Piece) -> bool:
    """Returns whether a piece is `.`. Raises NotationError if it goes on."""
    is_empty = piece.text.startswith(EMPTY)
    if is_empty:
        check_nothing(piece.part(len(EMPTY), len(piece.text)), f"follows {EMPTY!r}: expected nothing")
    return is_empty


def format_rack(tiles: Iterable[Tile], naming: Naming = Naming.TILES) -> str:
    """Returns `{R2 B5 J}`."""
    return f"{{{format_tiles(tiles, naming)}}}"


def parse_rack(text: str, naming: Naming = Naming.TILES) -> tuple[Tile, ...]:
    """Parses the tiles of a rack and returns them in ascending order. Raises NotationError."""
    return in_order(braced(Piece(text).strip(), "rack", naming))


def braced(piece: Piece, name: str, naming: Naming) -> tuple[Tile, ...]:
    """Parses `{R2 B5 J}`, in order; `name` says what the tiles are."""
    match = _RACK.match(piece.text)
    if not match:
        raise piece.error(f"is not a {name}: expected {{tiles}}")
    tiles = tiles_in(piece.part(*match.span(1)), naming)
    check_nothing(piece.part(match.end(), len(piece.text)), f"follows the {name}: expected nothing")
    return tiles


def parse_pool(piece: Piece, naming: Naming = Naming.TILES) -> tuple[Tile, ...]:
    """Parses `{R7 O8}`, in the order of drawing, or `.` for an empty pool. Raises NotationError."""
    return () if is_empty(piece) else braced(piece, "pool", naming)


def format_racks(racks: Iterable[Rack], naming: Naming = Naming.TILES) -> str:
    """Returns `1*{R2 B5} 2{K1 J}`: racks by seat, with * for players who have melded."""
    return " ".join(f"{rack.seat}{'*' * rack.has_melded}{format_rack(rack.tiles, naming)}" for rack in racks)


def parse_racks(piece: Piece, naming: Naming = Naming.TILES) -> tuple[Rack, ...]:
    """Parses `1*{R2 B5} 2{K1 J}`. Raises NotationError."""
    return tuple(Rack(seat, in_order(tiles), is_starred) for seat, is_starred, tiles in seat_tiles(piece, naming))


def seat_tiles(piece: Piece, naming: Naming) -> tuple[tuple[int, bool, tuple[Tile, ...]], ...]:
    """Parses `1*{R2 B5} 2{K1 J}`: seats, whether they have a star, and tiles in order. Raises NotationError."""
    found: dict[int, tuple[int, bool, tuple[Tile, ...]]] = {}
    end = 0
    for match in _SEAT_RACK.finditer(piece.text):
        check_nothing(piece.part(end, match.start()), _A_RACK)
        seat = int(match[1])
        if seat in found:
            raise piece.part(*match.span(1)).error("has two racks: expected one of each seat")
        found[seat] = seat, bool(match[2]), braced(piece.part(*match.span(3)), "rack", naming)
        end = match.end()
    check_nothing(piece.part(end, len(piece.text)), _A_RACK)
    return tuple(found.values())


def parse_seat(piece: Piece) -> int:
    """Parses a seat. Raises NotationError."""
    if not re.fullmatch(r"[1-9]", piece.text):
        raise piece.error("is not a seat: expected 1 to 9")
    return int(piece.text)
