"""Requests of ValidationService as a client may send them: the same content in other bytes, or bytes that are wrong."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

VARINT, FIXED64, LENGTH, START_GROUP, END_GROUP, FIXED32 = range(6)

UNKNOWN = 900
"""The number of a field that no message has."""


def varint(value: int, padding: int = 0) -> bytes:
    """A number as protobuf writes it, or longer than needed; a negative one as in 64 bits."""
    value &= (1 << 64) - 1
    low = []
    while value > 127 or padding:
        padding -= value <= 127
        low.append(value & 127 | 128)
        value >>= 7
    return bytes((*low, value))


def number(tag: int, value: int, padding: int = 0) -> bytes:
    """A field that is a number."""
    return varint(tag << 3 | VARINT, padding) + varint(value, padding)


def part(tag: int, data: bytes) -> bytes:
    """A field that is a message, a text or a packed list."""
    return varint(tag << 3 | LENGTH) + varint(len(data)) + data


def unknown_fields(rng: random.Random) -> bytes:
    """A field that no contract has, of any kind."""
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
"""How a list of tiles is written: of a field's number and the tiles, the fields."""


def packed(tag: int, tiles: Sequence[int]) -> list[bytes]:
    """As clients write it."""
    return [part(tag, b"".join(map(varint, tiles)))] if tiles else []


def unpacked(tag: int, tiles: Sequence[int]) -> list[bytes]:
    """A field for each tile."""
    return [number(tag, tile) for tile in tiles]


def oddly(rng: random.Random) -> Tiles:
    """Parts of a list, packed and not, with numbers that are longer than needed."""

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
    """A meld, its kind and its declared faces being numbers, whether they are of the contract or not."""

    tiles: tuple[int, ...]
    kind: int = 0
    declared: tuple[int, ...] = ()


@dataclass(frozen=True)
class WireTurn:
    """A turn, with the fields of its ruleset; None where it states none."""

    ruleset: tuple[bytes, ...] | None = None
    before: tuple[WireMeld, ...] = ()
    after: tuple[WireMeld, ...] = ()
    rack: tuple[int, ...] = ()
    has_melded: bool = False
    river: tuple[int, ...] = ()
    river_index: int | None = None
    drawn: int = 0
    calls_rummikub: bool = False


def meld(sent: WireMeld, tiles: Tiles = packed) -> bytes:
    """A meld's bytes."""
    kind = [number(2, sent.kind)] if sent.kind else []
    return b"".join((*tiles(1, sent.tiles), *kind, *tiles(3, sent.declared)))


def turn(sent: WireTurn, tiles: Tiles = packed) -> bytes:
    """A turn's bytes."""
    return b"".join(_fields(sent, tiles))


def _fields(sent: WireTurn, tiles: Tiles) -> Iterator[bytes]:
    if sent.ruleset is not None:
        yield part(1, b"".join(sent.ruleset))
    yield from (part(2, meld(one, tiles)) for one in sent.before)
    yield from (part(3, meld(one, tiles)) for one in sent.after)
    yield from tiles(4, sent.rack)
    if sent.has_melded:
        yield number(5, 1)
    yield from tiles(6, sent.river)
    if sent.river_index is not None:
        yield number(7, sent.river_index)
    if sent.drawn:
        yield number(8, sent.drawn)
    if sent.calls_rummikub:
        yield number(9, 1)


def turn_sent_oddly(sent: WireTurn, rng: random.Random) -> bytes:
    """The same turn in other bytes: lists and the ruleset in parts, with fields of no contract in between."""
    fields = list(_fields(replace(sent, ruleset=None), rng.choice((packed, unpacked, oddly(rng)))))
    if sent.ruleset is not None:
        for options in in_parts(sent.ruleset, rng):
            fields.insert(0, part(1, b"".join(options)))
    for _ in range(rng.choice((0, 0, 1, 2))):
        fields.insert(rng.randint(0, len(fields)), unknown_fields(rng))
    return b"".join(fields)


def in_parts(fields: Sequence[bytes], rng: random.Random) -> list[Sequence[bytes]]:
    """Fields in two parts, in the other order."""
    place = rng.randint(0, len(fields))
    return [fields[:place], fields[place:]]


def spoiled(data: bytes, rng: random.Random) -> bytes:
    """Bytes of which a few were changed, lost or put in."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        place = rng.randint(0, len(changed))
        end = place + rng.choice((0, 1, 1, 2))
        changed[place:end] = rng.choice((b"", bytes((rng.randrange(256),)), bytes((rng.choice((1, 2, 8, 128)),))))
    return bytes(changed)
