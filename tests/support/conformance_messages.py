"""Rulesets, tiles and tables of the conformance cases as protobuf messages."""

from collections.abc import Iterable

from rummikub.v1 import meld_pb2, ruleset_pb2, tile_pb2
from support.conformance_cases import Faces, MeldText, Options, option_value_name, tile_name

KINDS: dict[str | None, meld_pb2.MeldKind.ValueType] = {
    None: meld_pb2.MELD_KIND_UNSPECIFIED,
    "group": meld_pb2.MELD_KIND_GROUP,
    "run": meld_pb2.MELD_KIND_RUN,
}


def ruleset_of(options: Options) -> ruleset_pb2.Ruleset:
    message = ruleset_pb2.Ruleset()
    for option, value in options.items():
        enum = ruleset_pb2.Ruleset.DESCRIPTOR.fields_by_name[option].enum_type
        number = enum.values_by_name[option_value_name(option, str(value))].number if enum else value
        setattr(message, option, number)
    return message


def tile_of(face: str | None) -> tile_pb2.Tile.ValueType:
    """Returns a tile; unspecified for None."""
    return tile_pb2.Tile.Value(tile_name(face)) if face else tile_pb2.TILE_UNSPECIFIED


def tiles_of(faces: Faces) -> list[tile_pb2.Tile.ValueType]:
    return [tile_pb2.Tile.Value(tile_name(face)) for face in faces]


def table_of(table: Iterable[MeldText]) -> list[meld_pb2.Meld]:
    return [
        meld_pb2.Meld(tiles=tiles_of(meld.tiles), kind=KINDS[meld.kind], declared_faces=tiles_of(meld.declared))
        for meld in table
    ]
