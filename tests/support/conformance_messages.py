"""Rulesets, tiles and tables of the conformance cases as protobuf messages."""

from collections.abc import Iterable
from typing import Any

from engine.melding.ruleset import OPTIONS, Ruleset
from engine.room_settings import SETTINGS, RoomSettings
from rummikub.v1 import meld_pb2, room_settings_pb2, ruleset_pb2, tile_pb2
from service.codec import rulesets
from support.conformance_cases import Faces, GridText, MeldText, Options, option_value_name, tile_name
from tools.games import creation

KINDS: dict[str | None, meld_pb2.MeldKind.ValueType] = {
    None: meld_pb2.MELD_KIND_UNSPECIFIED,
    "group": meld_pb2.MELD_KIND_GROUP,
    "run": meld_pb2.MELD_KIND_RUN,
}


OPTION_OF_FIELD = {
    ".".join(("ruleset.melding" if row.stage else "settings", *row.path)): option
    for option, row in {**OPTIONS, **SETTINGS}.items()
}
"""The options by the fields of a request to create a game."""


def decoded(options: Options) -> tuple[Ruleset, RoomSettings]:
    """Returns the engine's ruleset and settings of a request to create a game with options."""
    created = creation_of(options)
    return rulesets.game_options(created["ruleset"], created["settings"])


def ruleset_of(options: Options) -> ruleset_pb2.MeldingRuleset:
    """Returns the ruleset of options. Validation needs no settings, and has none."""
    ruleset: ruleset_pb2.Ruleset = creation_of(options)["ruleset"]
    return ruleset.melding


def creation_of(options: Options) -> dict[str, Any]:
    """Returns the fields `ruleset` and `settings` of a request to create a game."""
    enums = {**ruleset_pb2.DESCRIPTOR.enum_types_by_name, **room_settings_pb2.DESCRIPTOR.enum_types_by_name}
    named = {name: number for enum in enums.values() for name, number in enum.values_by_name.items()}
    chosen = {}
    for option, value in options.items():
        name = option_value_name(option, str(value))
        chosen[option] = named[name].number if name in named else value
    return creation(chosen)


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


def any_table_of(table: Iterable[MeldText] | GridText) -> meld_pb2.Table:
    """Returns a table of either layout."""
    if isinstance(table, GridText):
        placements = (meld_pb2.Placement(tile=tile_of(face), x=x, y=y) for face, x, y in table.placements)
        return meld_pb2.Table(placements=placements)
    return meld_pb2.Table(melds=table_of(table))
