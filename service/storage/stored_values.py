"""Values of the stored format: JSON with a format version, independent of the API's messages.

Tiles are hexadecimal text, one byte a tile. Readers refuse an unknown version, and any value that is not of its form.
Every field is always written, except those that snapshot.py names, so that a missing one is detected.

`write_` functions return what orjson serializes; `read_` functions decode it and raise StoredFormatUnknown.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import fields
from enum import Enum
from functools import lru_cache
from typing import Any, Final, TypeVar

import orjson

from engine.game import RoundEnd, RoundResult, SeatResult
from engine.melding.fast.identity_cache import identity_cache
from engine.melding.melds import Meld, MeldKind, ProposedMeld
from engine.melding.ruleset import Ruleset
from engine.seats import BotLevel, Rack, ReservedSeat, Turn
from engine.tiles import LAST_TILE, Tile
from engine.violations import Reason
from service.errors import StoredFormatUnknown

FORMAT: Final = 3
DEFAULTS: Final = Ruleset()
LARGEST: Final = 2**31 - 1
"""The largest stored number other than a time."""
LATEST_MS: Final = 253_402_300_799_999
"""The end of the year 9999."""

Json = dict[str, Any]
_T = TypeVar("_T")


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


def read_seat(stored: object) -> int:
    """Returns a seat number."""
    return read_number(stored, 1)


def read_points(stored: object) -> int:
    """Returns points, which may be negative."""
    return read_number(stored, -LARGEST)


def read_time(stored: object) -> int:
    """Returns a time in milliseconds since 1970."""
    return read_number(stored, 0, LATEST_MS)


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


def read_each(read: Callable[[Any], _T], stored: object) -> tuple[_T, ...]:
    """Returns a list's items, each decoded by `read`."""
    if type(stored) is not list:
        raise StoredFormatUnknown
    return tuple(map(read, stored))


def read_seats(stored: object) -> tuple[int, ...]:
    """Returns a list of seats."""
    return read_each(read_seat, stored)


def read_optional(read: Callable[[Any], _T], stored: object) -> _T | None:
    """Returns a decoded value, or None for null."""
    return None if stored is None else read(stored)


def load(data: bytes) -> Json:
    """Returns a JSON object of this FORMAT."""
    stored: Json = orjson.loads(data)
    if stored.get("format") != FORMAT:
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
    return tuple(map(Tile, numbers))


@identity_cache(maxsize=1_024)
def write_ruleset(ruleset: Ruleset) -> str:
    """Returns the options that differ from the defaults.

    Defaults never change, so a server that lacks a newer option can read rulesets that do not use it.
    """
    values = {field.name: getattr(ruleset, field.name) for field in fields(ruleset)}
    chosen = {name: value for name, value in values.items() if value != getattr(DEFAULTS, name)}
    return json.dumps({name: value.name if isinstance(value, Enum) else value for name, value in chosen.items()})


@lru_cache(maxsize=1024)
def read_ruleset(text: str) -> Ruleset:
    """Returns a ruleset. Raises an error for an option that this server does not know."""
    stored: Json = json.loads(text)
    values: Json = {}
    for name, value in stored.items():
        values[name] = _read_option(getattr(DEFAULTS, name), value)
    return Ruleset(**values)


def _read_option(default: object, stored: Any) -> object:  # noqa: ANN401 - any JSON value
    """Returns an option's value, of the type of its default."""
    match default:
        case Enum():
            return type(default)[stored]
        case bool():
            return read_flag(stored)
        case _:
            return read_number(stored, -LARGEST)


@identity_cache(maxsize=16_384)
def _write_meld(meld: Meld) -> bytes:
    """Returns the stored form of a meld. Cached, because most melds of a table were there a turn before."""
    return dump((write_tiles(meld.tiles), meld.kind.name, meld.points, *map(write_tiles, meld.joker_faces)))


@lru_cache(maxsize=16_384)
def _read_meld(tiles: str, kind: str, points: int, *faces: str) -> Meld:
    return Meld(read_tiles(tiles), MeldKind[kind], read_number(points), tuple(map(read_tiles, faces)))


@identity_cache(maxsize=4_096)
def write_table(table: tuple[Meld, ...]) -> orjson.Fragment:
    """Returns the stored form of a table. Cached, because the game and its TilesPlayed event both store it."""
    return orjson.Fragment(b"[%b]" % b",".join(_write_meld.map(table)))


def read_table(stored: object) -> tuple[Meld, ...]:
    """Returns the melds of a table."""
    return read_each(lambda meld: _read_meld(*meld), stored)


def write_proposed(table: tuple[ProposedMeld, ...]) -> list[list[Any]]:
    """Returns the stored form of melds as a player sent them."""
    return [[write_tiles(meld.tiles), meld.kind and meld.kind.name, write_tiles(meld.declared)] for meld in table]


def read_proposed(stored: object) -> tuple[ProposedMeld, ...]:
    """Returns melds as a player sent them."""
    return read_each(_read_proposed_meld, stored)


def _read_proposed_meld(stored: list[Any]) -> ProposedMeld:
    tiles, kind, declared = stored
    return ProposedMeld(read_tiles(tiles), None if kind is None else MeldKind[kind], read_tiles(declared))


def write_rack(rack: Rack) -> list[Any]:
    """Returns the stored form of a rack."""
    return [rack.seat, write_tiles(rack.tiles), rack.has_melded]


def read_rack(stored: list[Any]) -> Rack:
    """Returns a rack."""
    return Rack(read_seat(stored[0]), read_tiles(stored[1]), read_flag(stored[2]))


def write_turn(turn: Turn) -> list[Any]:
    """Returns the stored form of a turn."""
    return [turn.seat, turn.deadline_ms, turn.revision]


def read_turn(stored: list[Any]) -> Turn:
    """Returns a turn."""
    seat, deadline_ms, revision = stored
    return Turn(read_seat(seat), read_optional(read_time, deadline_ms), read_number(revision))


def read_reason(stored: str) -> Reason:
    """Returns a violation's reason."""
    return Reason[stored]


@identity_cache(maxsize=4_096)
def write_result(result: RoundResult) -> orjson.Fragment:
    """Returns the stored form of a finished round. Cached, because it never changes."""
    parts = {
        "number": result.number,
        "end": result.end.name,
        "winners": result.winners,
        "seats": [[seat.seat, seat.rack_value, seat.tile_count, seat.points] for seat in result.seats],
        "racks": [write_rack(rack) for rack in result.racks],
        "pool": write_tiles(result.pool),
        "open": result.is_open,
    }
    return orjson.Fragment(dump(parts))


def read_result(stored: Json) -> RoundResult:
    """Returns the result of a finished round."""
    return RoundResult(
        number=read_number(stored["number"]),
        end=RoundEnd[stored["end"]],
        winners=read_seats(stored["winners"]),
        seats=read_each(_read_seat_result, stored["seats"]),
        racks=read_each(read_rack, stored["racks"]),
        pool=read_tiles(stored["pool"]),
        is_open=read_flag(stored["open"]),
    )


def _read_seat_result(stored: list[Any]) -> SeatResult:
    seat, rack_value, tile_count, points = stored
    return SeatResult(read_seat(seat), read_number(rack_value), read_number(tile_count), read_points(points))


def read_level(level: str | None) -> BotLevel | None:
    """Returns a bot's level; None for a person."""
    return read_optional(BotLevel.__getitem__, level)


def write_reserved(reserved: tuple[ReservedSeat, ...]) -> Json:
    """Returns the reserved seats of a lobby, if it has any."""
    return {"reserved": [[one.seat, one.name] for one in reserved]} if reserved else {}


def read_reserved(stored: Json) -> tuple[ReservedSeat, ...]:
    """Returns the reserved seats of a lobby or of its creation."""
    return read_each(_read_reserved, stored.get("reserved", []))


def _read_reserved(stored: list[Any]) -> ReservedSeat:
    seat, name = stored
    return ReservedSeat(read_seat(seat), read_text(name))


def write_declined(declined: object) -> Json:
    """Returns a field for who declined the initial meld, or whether the seat did; no field if that is empty."""
    return {"declined": declined} if declined else {}
