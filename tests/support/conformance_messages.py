"""Rulesets, tiles and tables of the conformance cases as protobuf messages."""

from collections.abc import Iterable
from typing import Any

from engine.discard.presets import PRESETS
from engine.discard.ruleset import OPTIONS as DISCARD_OPTIONS
from engine.discard.ruleset import Preset as DiscardPreset
from engine.discard.ruleset import WildTiles
from engine.melding.ruleset import OPTIONS
from engine.melding.ruleset import Ruleset as MeldingRuleset
from engine.room_settings import SETTINGS, RoomSettings
from engine.unions import Ruleset
from rummikub.v1 import discard_pb2, meld_pb2, room_settings_pb2, ruleset_pb2, tile_pb2
from service.codec import rulesets
from support.conformance_cases import (
    Faces,
    GridText,
    MeldText,
    OpeningText,
    Options,
    option_value_name,
    tile_name,
)
from tools.games import creation

KINDS: dict[str | None, meld_pb2.MeldKind.ValueType] = {
    None: meld_pb2.MELD_KIND_UNSPECIFIED,
    "group": meld_pb2.MELD_KIND_GROUP,
    "run": meld_pb2.MELD_KIND_RUN,
}


OPTION_OF_FIELD = {
    ".".join((part, *row.path)): option
    for part, rows in (("ruleset.melding", OPTIONS), ("ruleset.discard", DISCARD_OPTIONS), ("settings", SETTINGS))
    for option, row in rows.items()
}
"""The options by the fields of a request to create a game."""


def decoded(options: Options) -> tuple[Ruleset, RoomSettings]:
    """Returns the engine's ruleset and settings of a request to create a game with options."""
    created = creation_of(options)
    return rulesets.game_options(created["ruleset"], created["settings"])


def melding_rules_of(options: Options) -> MeldingRuleset:
    """Returns the engine's ruleset of a melding game."""
    ruleset, _ = decoded(options)
    assert isinstance(ruleset, MeldingRuleset)
    return ruleset


def is_discard(options: Options) -> bool:
    """Returns whether options are those of a game of discards."""
    ruleset: ruleset_pb2.Ruleset = creation_of(options)["ruleset"]
    return ruleset.WhichOneof("game") == "discard"


def is_at_table(options: Options) -> bool:
    """Returns whether the preset of options is one of a game of discards with a table."""
    name = str(options.get("preset", ""))
    return name in DiscardPreset.__members__ and PRESETS[DiscardPreset[name]].melds_on_table


def has_jokers(options: Options) -> bool:
    """Returns whether options with a preset of a game of discards with a table have jokers in place of the okey."""
    usual = PRESETS[DiscardPreset[str(options["preset"])]].wild_tiles
    return options.get("wild_tiles", usual.name) == WildTiles.JOKERS.name


def ruleset_of(options: Options) -> ruleset_pb2.MeldingRuleset:
    """Returns the ruleset of options. Validation needs no settings, and has none."""
    ruleset: ruleset_pb2.Ruleset = creation_of(options)["ruleset"]
    return ruleset.melding


def discard_ruleset_of(options: Options, preset: str = "OKEY") -> ruleset_pb2.DiscardRuleset:
    """Returns the ruleset of a game of discards; `preset` is that of options that have none."""
    ruleset: ruleset_pb2.Ruleset = creation_of({"preset": preset, **options})["ruleset"]
    return ruleset.discard


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


def hand_of(hand: Iterable[Faces]) -> list[discard_pb2.HandPart]:
    """Returns melds or pairs of a hand."""
    return [discard_pb2.HandPart(tiles=tiles_of(part)) for part in hand]


def openings_of(openings: Iterable[OpeningText]) -> list[discard_pb2.DiscardOpening]:
    """Returns the openings of a round."""
    return [discard_pb2.DiscardOpening(seat=one.seat, is_pairs=one.is_pairs, amount=one.amount) for one in openings]
