"""The stored form of games and of their changes: JSON with a format version, apart from the API's messages.

Tiles are stored as hexadecimal text, a byte a tile. A reader refuses a version that it does not know.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import fields
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from engine import events as ev
from engine.game import (
    Finished,
    Game,
    Lobby,
    Phase,
    Player,
    Playing,
    Rack,
    Round,
    RoundEnd,
    RoundOver,
    RoundResult,
    SeatResult,
    Turn,
)
from engine.melds import Meld, MeldKind
from engine.ruleset import Ruleset
from engine.tiles import Tile
from service.faults import StoredFormatUnknown
from service.storage.base import Entry, Memo, Record, SeatToken

FORMAT: Final = 1
FINGERPRINT_BYTES: Final = 32
DEFAULTS: Final = Ruleset()

Json = dict[str, Any]


def encode_record(record: Record) -> bytes:
    """A game as stored bytes."""
    return _dump(
        {
            "format": FORMAT,
            "id": record.game_id,
            "etag": record.etag,
            "tokens": {str(token.seat): token.digest.hex() for token in record.tokens},
            "created": record.created_ms,
            "updated": record.updated_ms,
            "game": _game(record.game),
        }
    )


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    """Whatever is not of our form was written by another version."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise StoredFormatUnknown from None


@_reading()
def decode_record(data: bytes) -> Record:
    """A game from stored bytes. Raises StoredFormatUnknown."""
    stored = _load(data)
    return Record(
        game_id=stored["id"],
        game=_read_game(stored["game"]),
        etag=stored["etag"],
        tokens=tuple(SeatToken(int(seat), bytes.fromhex(digest)) for seat, digest in stored["tokens"].items()),
        created_ms=stored["created"],
        updated_ms=stored["updated"],
    )


def readable_record(data: bytes | None) -> Record | None:
    """A game for a list; None if it has expired, or if it was stored by a newer server."""
    try:
        return decode_record(data) if data else None
    except StoredFormatUnknown:
        return None


def encode_change(revision: int, time_ms: int, nonce: bytes, events: tuple[ev.Event, ...]) -> bytes:
    """A change as stored bytes, without the etag, which is made of them."""
    return _dump(
        {
            "format": FORMAT,
            "revision": revision,
            "time": time_ms,
            "nonce": nonce.hex(),
            "events": [_event(event) for event in events],
        }
    )


@_reading()
def decode_entry(change: bytes, etag: str) -> Entry:
    """A change from stored bytes. Raises StoredFormatUnknown."""
    stored = _load(change)
    return Entry(
        revision=stored["revision"],
        etag=etag,
        time_ms=stored["time"],
        nonce=bytes.fromhex(stored["nonce"]),
        events=tuple(_READERS[event["type"]](event) for event in stored["events"]),
    )


def _dump(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _load(data: bytes) -> Json:
    stored: Json = json.loads(data)
    if stored.get("format") != FORMAT:
        raise StoredFormatUnknown
    return stored


def _tiles(tiles: tuple[Tile, ...]) -> str:
    return bytes(tiles).hex()


def _read_tiles(text: str) -> tuple[Tile, ...]:
    return tuple(map(Tile, bytes.fromhex(text)))


@lru_cache(maxsize=1024)
def _ruleset(ruleset: Ruleset) -> str:
    """The options that differ from the defaults, which never change: a server that lacks a newer option can read on."""
    values = {field.name: getattr(ruleset, field.name) for field in fields(ruleset)}
    chosen = {name: value for name, value in values.items() if value != getattr(DEFAULTS, name)}
    return json.dumps({name: value.name if isinstance(value, Enum) else value for name, value in chosen.items()})


@lru_cache(maxsize=1024)
def _read_ruleset(text: str) -> Ruleset:
    stored: Json = json.loads(text)
    values: Json = {}
    for name, value in stored.items():
        default = getattr(DEFAULTS, name)
        values[name] = type(default)[value] if isinstance(default, Enum) else value
    return Ruleset(**values)


def _meld(meld: Meld) -> list[Any]:
    return [_tiles(meld.tiles), meld.kind.name, meld.points, *map(_tiles, meld.joker_faces)]


def _read_meld(stored: list[Any]) -> Meld:
    tiles, kind, points, *faces = stored
    return Meld(_read_tiles(tiles), MeldKind[kind], points, tuple(map(_read_tiles, faces)))


def _table(table: tuple[Meld, ...]) -> list[list[Any]]:
    return [_meld(meld) for meld in table]


def _read_table(stored: list[list[Any]]) -> tuple[Meld, ...]:
    return tuple(map(_read_meld, stored))


def _rack(rack: Rack) -> list[Any]:
    return [rack.seat, _tiles(rack.tiles), rack.has_melded]


def _read_rack(stored: list[Any]) -> Rack:
    return Rack(stored[0], _read_tiles(stored[1]), stored[2])


def _turn(turn: Turn) -> list[Any]:
    return [turn.seat, turn.deadline_ms]


def _round(round_: Round) -> Json:
    return {
        "number": round_.number,
        "starter": round_.starter,
        "table": _table(round_.table),
        "racks": [_rack(rack) for rack in round_.racks],
        "pool": _tiles(round_.pool),
        "turn": _turn(round_.turn),
        "passed": list(round_.passed),
    }


def _read_round(stored: Json) -> Round:
    return Round(
        number=stored["number"],
        starter=stored["starter"],
        table=_read_table(stored["table"]),
        racks=tuple(map(_read_rack, stored["racks"])),
        pool=_read_tiles(stored["pool"]),
        turn=Turn(*stored["turn"]),
        passed=tuple(stored["passed"]),
    )


def _result(result: RoundResult) -> Json:
    return {
        "number": result.number,
        "end": result.end.name,
        "winners": list(result.winners),
        "seats": [[seat.seat, seat.rack_value, seat.tile_count, seat.points] for seat in result.seats],
    }


def _read_result(stored: Json) -> RoundResult:
    seats = tuple(SeatResult(*seat) for seat in stored["seats"])
    return RoundResult(stored["number"], RoundEnd[stored["end"]], tuple(stored["winners"]), seats)


def _phase(phase: Phase) -> Json:
    match phase:
        case Lobby():
            return {"type": "Lobby"}
        case Playing(round_):
            return {"type": "Playing", "round": _round(round_)}
        case RoundOver(round_):
            return {"type": "RoundOver", "round": _round(round_)}
        case Finished(round_, winners):
            return {"type": "Finished", "round": _round(round_), "winners": list(winners)}


def _read_phase(stored: Json) -> Phase:
    match stored["type"]:
        case "Lobby":
            return Lobby()
        case "Playing":
            return Playing(_read_round(stored["round"]))
        case "RoundOver":
            return RoundOver(_read_round(stored["round"]))
        case "Finished":
            return Finished(_read_round(stored["round"]), tuple(stored["winners"]))
        case _:
            raise StoredFormatUnknown


def _game(game: Game) -> Json:
    return {
        "ruleset": _ruleset(game.ruleset),
        "revision": game.revision,
        "players": [[p.seat, p.name, p.total_points, p.resigned] for p in game.players],
        "phase": _phase(game.phase),
        "results": [_result(result) for result in game.results],
    }


def _read_game(stored: Json) -> Game:
    return Game(
        ruleset=_read_ruleset(stored["ruleset"]),
        revision=stored["revision"],
        players=tuple(Player(*player) for player in stored["players"]),
        phase=_read_phase(stored["phase"]),
        results=tuple(map(_read_result, stored["results"])),
    )


def _event(event: ev.Event) -> Json:
    return {"type": type(event).__name__, **_event_fields(event)}


def _event_fields(event: ev.Event) -> Json:  # noqa: C901 - one case an event
    match event:
        case ev.GameCreated(ruleset):
            return {"ruleset": _ruleset(ruleset)}
        case ev.PlayerJoined(seat, name):
            return {"seat": seat, "name": name}
        case ev.RoundStarted():
            return {
                "number": event.number,
                "draws": [[draw.seat, draw.tile] for draw in event.draws],
                "starter": event.starter,
                "racks": [_rack(rack) for rack in event.racks],
                "pool": _tiles(event.pool),
            }
        case ev.TurnStarted(turn):
            return {"turn": _turn(turn)}
        case ev.TilesPlayed(seat, tiles, table, points):
            return {"seat": seat, "tiles": _tiles(tiles), "table": _table(table), "points": points}
        case ev.TileDrawn(seat, tile):
            return {"seat": seat, "tile": tile}
        case ev.TurnTimedOut(seat, tiles):
            return {"seat": seat, "tiles": _tiles(tiles)}
        case ev.PlayerLeft(seat) | ev.TurnPassed(seat) | ev.PlayerResigned(seat):
            return {"seat": seat}
        case ev.RoundEnded(result):
            return {"result": _result(result)}
        case ev.GameEnded(winners):
            return {"winners": list(winners)}


def _read_round_started(stored: Json) -> ev.RoundStarted:
    return ev.RoundStarted(
        number=stored["number"],
        draws=tuple(ev.StartDraw(seat, Tile(tile)) for seat, tile in stored["draws"]),
        starter=stored["starter"],
        racks=tuple(map(_read_rack, stored["racks"])),
        pool=_read_tiles(stored["pool"]),
    )


_READERS: Final[dict[str, Callable[[Json], ev.Event]]] = {
    "GameCreated": lambda stored: ev.GameCreated(_read_ruleset(stored["ruleset"])),
    "PlayerJoined": lambda stored: ev.PlayerJoined(stored["seat"], stored["name"]),
    "PlayerLeft": lambda stored: ev.PlayerLeft(stored["seat"]),
    "RoundStarted": _read_round_started,
    "TurnStarted": lambda stored: ev.TurnStarted(Turn(*stored["turn"])),
    "TilesPlayed": lambda stored: ev.TilesPlayed(
        stored["seat"], _read_tiles(stored["tiles"]), _read_table(stored["table"]), stored["points"]
    ),
    "TileDrawn": lambda stored: ev.TileDrawn(stored["seat"], Tile(stored["tile"])),
    "TurnPassed": lambda stored: ev.TurnPassed(stored["seat"]),
    "TurnTimedOut": lambda stored: ev.TurnTimedOut(stored["seat"], _read_tiles(stored["tiles"])),
    "PlayerResigned": lambda stored: ev.PlayerResigned(stored["seat"]),
    "RoundEnded": lambda stored: ev.RoundEnded(_read_result(stored["result"])),
    "GameEnded": lambda stored: ev.GameEnded(tuple(stored["winners"])),
}


def encode_memo(memo: Memo) -> bytes:
    """A memo as stored bytes: fingerprint, length of the salt, salt, answer."""
    return memo.fingerprint + bytes([len(memo.salt)]) + memo.salt + memo.answer


@_reading()
def decode_memo(data: bytes) -> Memo:
    """A memo from stored bytes."""
    answer = FINGERPRINT_BYTES + 1 + data[FINGERPRINT_BYTES]
    return Memo(data[:FINGERPRINT_BYTES], data[answer:], data[FINGERPRINT_BYTES + 1 : answer])
