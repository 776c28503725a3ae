"""Tiles, melds and violations."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, cast

from engine.melding.grid.cells import Cell, Grid, Placement
from engine.melding.melds import Meld, MeldKind, NotAMeld, ProposedMeld
from engine.melding.rules import meld_violations
from engine.melding.table import ProposedMelds, ProposedTable, Table
from engine.tiles import COLORS, FALSE_JOKER, JOKER, JOKERS, NATURALS, PLACES_OF, Tile, naturals
from engine.violation_texts import describe_violation
from engine.violations import Violation
from rummikub.v1 import error_reason_pb2, meld_pb2, tile_pb2, violation_pb2
from service.codec.fields import Most, invalid
from service.errors import InvalidRequest

POOL_MAX: Final = 256
"""Most tiles of a pool in a request; the largest tile set has fewer."""
MELDS_MAX: Final = 128
"""Most melds of a table in a request."""
PLACEMENTS_MAX: Final = 256
"""Most placements of a table in a request; the largest tile set has fewer tiles."""
MELD_TILES_MAX: Final = 32
"""Most tiles of a meld in a request."""
RACK_TILES_MAX: Final = 128
"""Most tiles of a rack, or of the River, in a request."""
MELDING_TILES: Final = frozenset({*naturals(len(COLORS)), *JOKERS})
"""The tiles of melding games."""
DISCARD_TILES: Final = frozenset({*NATURALS, FALSE_JOKER, JOKER})
"""The tiles of games of discards."""
LAST_TILE: Final = max(MELDING_TILES)
"""The tile of melding games with the highest number in the contract."""


def tiles_of(
    numbers: Sequence[int], field: str, most: int, reason: str, known: frozenset[Tile] = MELDING_TILES
) -> tuple[Tile, ...]:
    """Returns tiles in the order sent.

    Args:
        numbers: The contract's tile values.
        field: The path of the field.
        most: Most tiles.
        reason: The error reason for too many tiles.
        known: The tiles that there may be.
    """
    if len(numbers) > most:
        raise invalid(field, f"expected at most {most} tiles", reason)
    tiles = tuple(map(Tile, numbers))
    if not known.issuperset(tiles):
        place = next(place for place, tile in enumerate(tiles) if tile not in known)
        raise _not_a_tile(tiles[place], f"{field}[{place}]")
    return tiles


def tile_of(number: int, field: str, known: frozenset[Tile] = MELDING_TILES) -> Tile:
    """Returns a tile. The rules decide whether the game has it."""
    if number not in known:
        raise _not_a_tile(number, field)
    return Tile(number)


def _not_a_tile(number: int, field: str) -> InvalidRequest:
    return invalid(field, f"{number} is not a tile", "TILE_UNKNOWN")


def rack(numbers: Sequence[int], field: str) -> tuple[Tile, ...]:
    """Returns a rack, in ascending order."""
    return tuple(sorted(tiles_of(numbers, field, RACK_TILES_MAX, "FIELD_INVALID")))


_KINDS: Final[dict[int, MeldKind | None]] = {
    meld_pb2.MELD_KIND_UNSPECIFIED: None,
    meld_pb2.MELD_KIND_GROUP: MeldKind.GROUP,
    meld_pb2.MELD_KIND_RUN: MeldKind.RUN,
}
MELD_BYTES_MAX: Final = 2 * (2 + MELD_TILES_MAX) + 2
"""Most bytes of a meld that is cached. A longer one has too many tiles, or unknown fields of any length."""


def bounds_of_tables(*tables: str) -> tuple[Most, ...]:
    """Returns the bounds of the melds and placements of tables of a request, such as `play.table`."""
    most = (("melds", MELDS_MAX), ("placements", PLACEMENTS_MAX))
    return tuple([Most(f"{table}.{name}", number, "MALFORMED_TABLE") for table in tables for name, number in most])


def check_count(count: int, field: str) -> None:
    """Raises InvalidRequest if a table has too many melds."""
    if count > MELDS_MAX:
        raise invalid(field, f"expected at most {MELDS_MAX} melds", "MALFORMED_TABLE")


def table(message: meld_pb2.Table, field: str) -> ProposedTable:
    """Returns a table as the client sent it."""
    if not message.placements:
        return melds(message.melds, field)
    if message.melds:
        raise invalid(field, "expected melds or placements, not both", "MALFORMED_TABLE")
    return grid(message.placements, field)


def only_melds(message: meld_pb2.Table, field: str) -> ProposedMelds:
    """Returns a table of melds, which a caller of some RPCs must send."""
    if message.placements:
        raise invalid(field, "expected melds: placements are for table_layout GRID", "MALFORMED_TABLE")
    return melds(message.melds, field)


def grid(messages: Sequence[meld_pb2.Placement], field: str) -> Grid:
    """Returns placements as the client sent them. The rules decide whether the table has their cells."""
    if len(messages) > PLACEMENTS_MAX:
        raise invalid(field, f"expected at most {PLACEMENTS_MAX} placements", "MALFORMED_TABLE")
    tiles = tiles_of([one.tile for one in messages], field, PLACEMENTS_MAX, "MALFORMED_TABLE")
    cells = [Cell(one.x, one.y) for one in messages]
    return Grid(tuple(map(Placement, tiles, cells)))


def melds(messages: Sequence[meld_pb2.Meld], field: str) -> ProposedMelds:
    """Returns melds as the client sent them."""
    check_count(len(messages), field)
    try:
        return tuple([_cached_meld(message) for message in messages])
    except InvalidRequest:  # decoded again to name the field
        return tuple(_meld(message, f"{field}[{place}]") for place, message in enumerate(messages))


def _cached_meld(message: meld_pb2.Meld) -> ProposedMeld:
    data = message.SerializeToString()
    return meld_of(data) if len(data) <= MELD_BYTES_MAX else _meld(message, "")


@lru_cache(maxsize=16_384)
def meld_of(data: bytes) -> ProposedMeld:
    """Returns the meld of an encoded message. Cached, as clients send the melds of a table again and again."""
    return _meld(meld_pb2.Meld.FromString(data), "")


def _meld(message: meld_pb2.Meld, field: str) -> ProposedMeld:
    if message.kind not in _KINDS:
        raise invalid(f"{field}.kind", f"{message.kind} is not a kind of meld", "MALFORMED_MELD")
    tiles = tiles_of(message.tiles, f"{field}.tiles", MELD_TILES_MAX, "MALFORMED_MELD")
    declared = tiles_of(message.declared_faces, f"{field}.declared_faces", MELD_TILES_MAX, "MALFORMED_MELD")
    return ProposedMeld(tiles, _KINDS[message.kind], declared)


def tile_numbers(tiles: Iterable[Tile]) -> Sequence[tile_pb2.Tile.ValueType]:
    """Returns tiles as the contract's enum values, which have the same numbers."""
    return cast("Sequence[tile_pb2.Tile.ValueType]", tiles)


def tile_number(tile: Tile) -> tile_pb2.Tile.ValueType:
    """Returns a tile as the contract's enum value."""
    return tile_numbers((tile,))[0]


def _kind(kind: MeldKind) -> meld_pb2.MeldKind.ValueType:
    return meld_pb2.MELD_KIND_GROUP if kind is MeldKind.GROUP else meld_pb2.MELD_KIND_RUN


def encode_proposed(meld: ProposedMeld) -> meld_pb2.Meld:
    """Returns a proposed meld."""
    kind = _kind(meld.kind) if meld.kind else meld_pb2.MELD_KIND_UNSPECIFIED
    return meld_pb2.Meld(tiles=tile_numbers(meld.tiles), kind=kind, declared_faces=tile_numbers(meld.declared))


def encode_proposed_table(table: ProposedTable) -> meld_pb2.Table:
    """Returns a proposed table."""
    return _encode_grid(table) if isinstance(table, Grid) else meld_pb2.Table(melds=map(encode_proposed, table))


def encode_table(table: Table) -> meld_pb2.Table:
    """Returns a game's table."""
    return _encode_grid(table) if isinstance(table, Grid) else meld_pb2.Table(melds=map(encode_meld, table))


def _encode_grid(grid: Grid) -> meld_pb2.Table:
    return meld_pb2.Table(placements=map(encode_placement, grid.placements))


def encode_placement(one: Placement) -> meld_pb2.Placement:
    """Returns a tile in its cell."""
    return meld_pb2.Placement(tile=tile_number(one.tile), x=one.cell.x, y=one.cell.y, faces=tile_numbers(one.faces))


def encode_meld(meld: Meld) -> meld_pb2.Meld:
    """Returns a meld of a game's table."""
    return meld_pb2.Meld(
        tiles=tile_numbers(meld.tiles), kind=_kind(meld.kind), points=meld.points, jokers=_joker_faces(meld)
    )


def _joker_faces(meld: Meld) -> Iterable[meld_pb2.JokerFaces]:
    places = (place for place, t in enumerate(meld.tiles) for _ in range(PLACES_OF.get(t, 0)))
    return (
        meld_pb2.JokerFaces(index=place, faces=tile_numbers(faces))
        for place, faces in zip(places, meld.joker_faces, strict=True)
    )


def encode_reading(reading: Meld | NotAMeld, place: int) -> meld_pb2.MeldReading:
    """Returns the reading of a meld.

    Args:
        reading: The meld as the rules read it.
        place: Its index in the request.
    """
    if isinstance(reading, NotAMeld):
        found = meld_violations(reading, f"melds[{place}]")
        return meld_pb2.MeldReading(tiles=tile_numbers(reading.tiles), violations=map(encode_violation, found))
    return meld_pb2.MeldReading(
        tiles=tile_numbers(reading.tiles),
        kind=_kind(reading.kind),
        points=reading.points,
        jokers=_joker_faces(reading),
    )


def reason_number(reason: str) -> error_reason_pb2.ErrorReason.ValueType:
    """Returns the contract's enum value for a reason's name."""
    return error_reason_pb2.ErrorReason.Value(reason)


def encode_violation(violation: Violation) -> violation_pb2.Violation:
    """Returns a violation."""
    return violation_pb2.Violation(
        reason=reason_number(violation.reason.name),
        subject=violation.subject,
        text=describe_violation(violation),
        tiles=tile_numbers(violation.tiles),
        metadata=dict(violation.metadata),
        suggested_order=tile_numbers(violation.suggested_order),
    )
