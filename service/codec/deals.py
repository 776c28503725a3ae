"""What the recorded deals of all games have: racks and pool."""

from collections.abc import Iterable

from engine.seats import Rack
from engine.tiles import Tile, in_order
from rummikub.v1 import record_pb2
from service.codec.fields import SEATS_MAX, invalid, seat_of
from service.codec.tiles import POOL_MAX, tile_numbers, tiles_of


def racks_of(message: record_pb2.RecordedDeal, field: str, known: frozenset[Tile]) -> tuple[Rack, ...]:
    """Returns the racks of a deal, of tiles that the game has. Raises InvalidRequest."""
    if len(message.racks) > SEATS_MAX:
        raise invalid(f"{field}.racks", f"expected at most {SEATS_MAX} racks")
    return tuple(
        Rack(
            seat_of(rack.seat, f"{field}.racks[{place}].seat"),
            in_order(tiles_of(rack.tiles, f"{field}.racks[{place}].tiles", POOL_MAX, "FIELD_INVALID", known)),
            rack.has_melded,
        )
        for place, rack in enumerate(message.racks)
    )


def pool_of(message: record_pb2.RecordedDeal, field: str, known: frozenset[Tile]) -> tuple[Tile, ...]:
    """Returns the pool of a deal, in the order of drawing. Raises InvalidRequest."""
    return tiles_of(message.pool, f"{field}.pool", POOL_MAX, "FIELD_INVALID", known)


def encode_racks(racks: Iterable[Rack]) -> list[record_pb2.RecordedRack]:
    """Returns racks."""
    return [
        record_pb2.RecordedRack(seat=rack.seat, tiles=tile_numbers(rack.tiles), has_melded=rack.has_melded)
        for rack in racks
    ]
