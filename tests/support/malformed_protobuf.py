"""Unusual requests of ValidationService: equivalent encodings of the same content, and malformed bytes."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

VARINT, FIXED64, LENGTH, START_GROUP, END_GROUP, FIXED32 = range(6)

UNKNOWN = 900
"""A field number that no message has."""


def varint(value: int, padding: int = 0) -> bytes:
    """Encodes a varint, optionally longer than needed; a negative number takes 64 bits."""
    value &= (1 << 64) - 1
    low = []
    while value > 127 or padding:
        padding -= value <= 127
        low.append(value & 127 | 128)
        value >>= 7
    return bytes((*low, value))


def number(tag: int, value: int, padding: int = 0) -> bytes:
    """Encodes a numeric field."""
    return varint(tag << 3 | VARINT, padding) + varint(value, padding)


def part(tag: int, data: bytes) -> bytes:
    """Encodes a field that is a message, a string or a packed list."""
    return varint(tag << 3 | LENGTH) + varint(len(data)) + data


def unknown_fields(rng: random.Random) -> bytes:
    """Returns fields of every wire type that no message has."""
    return rng.choice(
        (
            number(UNKNOWN, rng.randrange(1 << 40)),
            part(UNKNOWN, rng.randbytes(rng.randrange(4))),
            varint(UNKNOWN << 3 | FIXED32) + bytes(4),
            varint(UNKNOWN << 3 | FIXED64) + bytes(8),
            varint(UNKNOWN << 3 | START_GROUP) + number(1, 1) + varint(UNKNOWN << 3 | END_GROUP),
        )
    )


Tiles = Callable[[int, Sequence[int]], list[bytes]]
"""Encodes a list of tiles, given the field number: returns the fields."""


def packed(tag: int, tiles: Sequence[int]) -> list[bytes]:
    """Encodes tiles as clients do."""
    return [part(tag, b"".join(map(varint, tiles)))] if tiles else []


def unpacked(tag: int, tiles: Sequence[int]) -> list[bytes]:
    """Encodes each tile as its own field."""
    return [number(tag, tile) for tile in tiles]


def oddly(rng: random.Random) -> Tiles:
    """Returns an encoder that mixes packed and unpacked parts and overlong numbers."""

    def write(tag: int, tiles: Sequence[int]) -> list[bytes]:
        fields, left = [], list(tiles)
        while left:
            count = rng.randint(1, len(left))
            taken, left = left[:count], left[count:]
            if rng.random() < 0.3:
                fields += [number(tag, tile, rng.choice((0, 0, 2))) for tile in taken]
            else:
                padding = rng.choice((0, 0, 0, 3))
                fields.append(part(tag, b"".join(varint(tile, padding) for tile in taken)))
        return fields

    return write


@dataclass(frozen=True)
class WireMeld:
    """A meld whose kind and declared faces are numbers that need not be valid."""

    tiles: tuple[int, ...]
    kind: int = 0
    declared: tuple[int, ...] = ()


@dataclass(frozen=True)
class WireTurn:
    """A turn with the fields of its ruleset; None omits the ruleset, or has_melded."""

    ruleset: tuple[bytes, ...] | None = None
    before: tuple[WireMeld, ...] = ()
    after: tuple[WireMeld, ...] = ()
    rack: tuple[int, ...] = ()
    has_melded: bool | None = False
    river: tuple[int, ...] = ()
    river_index: int | None = None
    drawn: int = 0
    calls_rummikub: bool = False


def meld(sent: WireMeld, tiles: Tiles = packed) -> bytes:
    """Encodes a meld."""
    kind = [number(2, sent.kind)] if sent.kind else []
    return b"".join((*tiles(1, sent.tiles), *kind, *tiles(3, sent.declared)))


def turn(sent: WireTurn, tiles: Tiles = packed) -> bytes:
    """Encodes a turn."""
    return b"".join(_fields(sent, tiles, _table))


def _table(tag: int, melds: Sequence[bytes]) -> list[bytes]:
    """Encodes a table as clients do."""
    return [part(tag, b"".join(part(1, one) for one in melds))] if melds else []


def _table_in_parts(tag: int, melds: Sequence[bytes]) -> list[bytes]:
    """Encodes each meld of a table as a table, which a receiver merges."""
    return [part(tag, part(1, one)) for one in melds]


def _fields(sent: WireTurn, tiles: Tiles, table: Callable[[int, Sequence[bytes]], list[bytes]]) -> Iterator[bytes]:
    if sent.ruleset is not None:
        yield part(1, b"".join(sent.ruleset))
    yield from table(2, [meld(one, tiles) for one in sent.before])
    yield from table(3, [meld(one, tiles) for one in sent.after])
    yield from tiles(4, sent.rack)
    if sent.has_melded is not None:
        yield number(5, sent.has_melded)
    yield from tiles(6, sent.river)
    if sent.river_index is not None:
        yield number(7, sent.river_index)
    if sent.drawn:
        yield number(8, sent.drawn)
    if sent.calls_rummikub:
        yield number(9, 1)


def turn_sent_oddly(sent: WireTurn, rng: random.Random) -> bytes:
    """Encodes a turn unusually: with lists and the ruleset split into parts, and unknown fields in between."""
    fields = list(
        _fields(
            replace(sent, ruleset=None),
            rng.choice((packed, unpacked, oddly(rng))),
            rng.choice((_table, _table_in_parts)),
        )
    )
    if sent.ruleset is not None:
        for options in in_parts(sent.ruleset, rng):
            fields.insert(0, part(1, b"".join(options)))
    for _ in range(rng.choice((0, 0, 1, 2))):
        fields.insert(rng.randint(0, len(fields)), unknown_fields(rng))
    return b"".join(fields)


def in_parts(fields: Sequence[bytes], rng: random.Random) -> list[Sequence[bytes]]:
    """Splits fields into two parts, in reverse order."""
    place = rng.randint(0, len(fields))
    return [fields[:place], fields[place:]]


def spoiled(data: bytes, rng: random.Random) -> bytes:
    """Returns bytes with a few changed, deleted or inserted."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        place = rng.randint(0, len(changed))
        end = place + rng.choice((0, 1, 1, 2))
        changed[place:end] = rng.choice((b"", bytes((rng.randrange(256),)), bytes((rng.choice((1, 2, 8, 128)),))))
    return bytes(changed)
