"""The stored form of values: JSON, independent of the API's messages; values with a form of their own.

Tiles are hexadecimal text, one byte a tile. Readers refuse any value that is not of its form.
The form of all other values follows from their types (stored_form.py).

`write_` functions return what orjson serializes; `read_` functions decode it and raise StoredFormatUnknown.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from enum import Enum
from functools import lru_cache
from typing import Any, Final, cast, get_args

import orjson

from engine.discard.hand_text import format_hands, parse_hands
from engine.identity_cache import identity_cache
from engine.melding.grid.cells import Cell, Grid, Placement
from engine.melding.melds import Meld, MeldKind
from engine.room_settings import RoomSettings
from engine.tiles import LAST_TILE, Tile
from engine.unions import Ruleset
from service.errors import StoredFormatUnknown

LARGEST: Final = 2**31 - 1
"""The largest stored number other than a time."""
LATEST_MS: Final = 253_402_300_799_999
"""The end of the year 9999."""

Json = dict[str, Any]
_RULESETS: Final[Mapping[str, type[Ruleset]]] = {
    preset.name: kind for kind in get_args(Ruleset) for preset in type(kind().preset)
}
"""The type of a ruleset, by its preset. Stored rulesets without one are of the first type."""


def dump(parts: object) -> bytes:
    """Returns JSON in a bytes object of its own size. orjson's result keeps its write buffer, at least 4 KiB."""
    return b"%b" % orjson.dumps(parts)


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Raises StoredFormatUnknown for any decoding error: the bytes are damaged or of another version."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise StoredFormatUnknown from None


def read_number(stored: object, least: int = 0, most: int = LARGEST) -> int:
    """Returns an integer within bounds; True is no integer."""
    if type(stored) is not int or not least <= stored <= most:
        raise StoredFormatUnknown
    return stored


def read_flag(stored: object) -> bool:
    """Returns a boolean."""
    if type(stored) is not bool:
        raise StoredFormatUnknown
    return stored


def read_text(stored: object) -> str:
    """Returns a string."""
    if type(stored) is not str:
        raise StoredFormatUnknown
    return stored


def write_tiles(tiles: tuple[Tile, ...]) -> str:
    """Returns tiles as hexadecimal text."""
    return bytes(tiles).hex()


def read_tile(stored: object) -> Tile:
    """Returns a tile from its number."""
    return Tile(read_number(stored, 1, LAST_TILE))


def read_tiles(text: str) -> tuple[Tile, ...]:
    """Returns tiles from hexadecimal text."""
    numbers = bytes.fromhex(text)
    if numbers and not (min(numbers) and max(numbers) <= LAST_TILE):
        raise StoredFormatUnknown
    return cast("tuple[Tile, ...]", tuple(numbers))  # Tile(...) would be a call for each


@identity_cache(maxsize=1_024)
def write_options(chosen: Ruleset | RoomSettings) -> str:
    """Returns the options of a ruleset, or the settings of a room, that differ from the defaults.

    Defaults never change, so a server that lacks a newer option can read rulesets that do not use it.
    """
    defaults = type(chosen)()
    values = ((field.name, getattr(chosen, field.name)) for field in fields(chosen))
    names_its_preset = type(chosen) in get_args(Ruleset)[1:]
    differing = {
        name: value
        for name, value in values
        if value != getattr(defaults, name) or (names_its_preset and name == "preset")
    }
    return json.dumps({name: _write_option(value) for name, value in differing.items()})


def _write_option(value: object) -> object:
    match value:
        case Enum():
            return value.name
        case tuple():  # the only option of its kind: named hands
            return format_hands(value)
        case _:
            return value


@lru_cache(maxsize=1024)
def read_ruleset(text: str) -> Ruleset:
    """Returns a ruleset. Raises an error for an option that this server does not know."""
    stored = json.loads(text)
    kind: type[Ruleset] = _RULESETS[stored["preset"]] if "preset" in stored else get_args(Ruleset)[0]
    return kind(**_read_options(kind(), stored))


@lru_cache(maxsize=1024)
def read_settings(text: str) -> RoomSettings:
    """Returns the settings of a room. Raises an error for a setting that this server does not know."""
    return RoomSettings(**_read_options(RoomSettings(), json.loads(text)))


def _read_options(defaults: Ruleset | RoomSettings, stored: Json) -> Json:
    return {name: _read_option(getattr(defaults, name), value) for name, value in stored.items()}


def _read_option(default: object, stored: Any) -> object:  # noqa: ANN401 - any JSON value
    """Returns an option's value, of the type of its default."""
    match default:
        case Enum():
            return type(default)[stored]
        case bool():
            return read_flag(stored)
        case tuple():
            return parse_hands(stored)
        case _:
            return read_number(stored, -LARGEST)


@identity_cache(maxsize=16_384)
def _write_meld(meld: Meld) -> bytes:
    """Returns the stored form of a meld. Cached, because most melds of a table were there a turn before."""
    return dump((write_tiles(meld.tiles), meld.kind.name, meld.points, *map(write_tiles, meld.joker_faces)))


@lru_cache(maxsize=16_384)
def _read_meld(tiles: str, kind: str, points: int, *faces: str) -> Meld:
    """Returns a meld. Equal melds are one object, so that what is cached by identity is found."""
    return Meld(read_tiles(tiles), MeldKind[kind], read_number(points), tuple(map(read_tiles, faces)))


@identity_cache(maxsize=4_096)
def write_table(table: tuple[Meld, ...]) -> orjson.Fragment:
    """Returns the stored form of a table. Cached, because the game and its TilesPlayed event both store it."""
    return orjson.Fragment(b"[%b]" % b",".join(_write_meld.map(table)))


@identity_cache(maxsize=4_096)
def write_grid(grid: Grid) -> str:
    """Returns the stored form of a grid: `tile,x,y` of each placement, and the faces of jokers as a fourth part."""
    return ";".join(
        f"{one.tile},{one.cell.x},{one.cell.y}{',' if one.faces else ''}{write_tiles(one.faces)}"
        for one in grid.placements
    )


def read_grid(stored: object) -> Grid:
    """Returns a grid."""
    parts = (part.split(",") for part in read_text(stored).split(";") if part)
    return Grid(tuple([_read_placement(*part) for part in parts]))


@lru_cache(maxsize=16_384)
def _read_placement(tile: str, x: str, y: str, faces: str = "") -> Placement:
    return Placement(read_tile(int(tile)), Cell(int(x), int(y)), read_tiles(faces))


def read_table(stored: object) -> tuple[Meld, ...]:
    """Returns the melds of a table."""
    if type(stored) is not list:
        raise StoredFormatUnknown
    return tuple([_read_meld(*meld) for meld in stored])
