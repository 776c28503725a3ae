"""The stored form of games and of their changes: JSON with a format version, apart from the API's messages.

Tiles are stored as hexadecimal text, a byte a tile. A reader refuses a version that it does not know.

Every field of a format is always written, so that a missing one is noticed. Changes are compressed with a dictionary of
what nearly all of them say: a game's history takes a third of the memory.

Two things are written only where they are: a bot's level, and who declined the initial meld. So a game without bots can
be read by a server that knows none, and one with bots cannot, since its players have a value too many. Who declined is
asked only in games that a server without a solver refuses to read.
"""

import contextlib
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import fields
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, TypeVar

import orjson

from engine import events as ev
from engine.fast.identity_cache import identity_cache
from engine.game import (
    BotLevel,
    Choosing,
    Drawn,
    Finished,
    Game,
    Lobby,
    Open,
    Phase,
    Player,
    Playing,
    Rack,
    Round,
    RoundEnd,
    RoundOver,
    RoundResult,
    SeatResult,
    ShownPlay,
    Step,
    Turn,
)
from engine.melds import Meld, MeldKind, ProposedMeld
from engine.ruleset import Ruleset
from engine.table import ProposedTable, Table
from engine.tiles import LAST_TILE, Tile
from engine.violations import Reason
from service.errors import StoredFormatUnknown
from service.storage.base import Entry, Memo, Record, SeatToken

FORMAT: Final = 3
FINGERPRINT_BYTES: Final = 32
DEFAULTS: Final = Ruleset()
LARGEST: Final = 2**31 - 1
"""The largest number that is stored, but for times."""
CHANGE_BYTES_MAX: Final = 1_048_576
"""The largest change that is read: many times what the largest table takes."""
LATEST_MS: Final = 253_402_300_799_999
"""The last moment of the year 9999."""

Json = dict[str, Any]
_T = TypeVar("_T")


def _json(parts: object) -> bytes:
    """JSON in no more memory than it takes: orjson leaves its bytes the room that it wrote them in, 4 KiB at least."""
    return b"%b" % orjson.dumps(parts)


def encode_record(record: Record) -> bytes:
    """A game as stored bytes."""
    return _json(
        {
            "format": FORMAT,
            "id": record.game_id,
            "etag": record.etag,
            "tokens": _tokens(record.tokens),
            "created": record.created_ms,
            "updated": record.updated_ms,
            "game": _game(record.game),
        }
    )


@identity_cache(maxsize=4_096)
def _tokens(tokens: tuple[SeatToken, ...]) -> orjson.Fragment:
    return orjson.Fragment(_json({str(token.seat): token.digest.hex() for token in tokens}))


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    """Whatever is not of our form was written by another version, or is damaged: the two look the same."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise StoredFormatUnknown from None


def _number(stored: object, least: int = 0, most: int = LARGEST) -> int:
    if type(stored) is not int or not least <= stored <= most:  # which excludes true
        raise StoredFormatUnknown
    return stored


def _seat(stored: object) -> int:
    return _number(stored, 1)


def _points(stored: object) -> int:
    return _number(stored, -LARGEST)


def _time(stored: object) -> int:
    return _number(stored, 0, LATEST_MS)


def _flag(stored: object) -> bool:
    if type(stored) is not bool:
        raise StoredFormatUnknown
    return stored


def _text(stored: object) -> str:
    if type(stored) is not str:
        raise StoredFormatUnknown
    return stored


def _each(read: Callable[[Any], _T], stored: object) -> tuple[_T, ...]:
    """A list, read part by part."""
    if type(stored) is not list:
        raise StoredFormatUnknown
    return tuple(map(read, stored))


def _seats(stored: object) -> tuple[int, ...]:
    return _each(_seat, stored)


def _if_any(read: Callable[[Any], _T], stored: object) -> _T | None:
    """What may not be there."""
    return None if stored is None else read(stored)


@_reading()
def decode_record(data: bytes) -> Record:
    """A game from stored bytes. Raises StoredFormatUnknown."""
    stored = _load(data)
    return Record(
        game_id=_text(stored["id"]),
        game=_read_game(stored["game"]),
        etag=_text(stored["etag"]),
        tokens=tuple(SeatToken(int(seat), bytes.fromhex(digest)) for seat, digest in stored["tokens"].items()),
        created_ms=_time(stored["created"]),
        updated_ms=_time(stored["updated"]),
    )


def readable_record(data: bytes | None) -> Record | None:
    """A game for a list; None if it has expired, or cannot be read."""
    try:
        return decode_record(data) if data else None
    except StoredFormatUnknown:
        return None


def encode_change(revision: int, time_ms: int, nonce: bytes, events: tuple[ev.Event, ...]) -> bytes:
    """A change as stored bytes, without the etag, which is made of them."""
    return _json(
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
    """Returns a change from stored bytes. Raises StoredFormatUnknown.

    Args:
        change: The bytes.
        etag: The game's after it.
    """
    stored = _load(change)
    return Entry(
        revision=_number(stored["revision"]),
        etag=etag,
        time_ms=_time(stored["time"]),
        nonce=bytes.fromhex(stored["nonce"]),
        events=_each(lambda event: _READERS[event["type"]](event), stored["events"]),
    )


_DICTIONARY: Final = (
    b'{"type":"GameCreated","ruleset":"{}"}{"type":"PlayerLeft","seat":{"type":"PlayerResigned","seat":{"type":"TurnTimedOut"'
    b',"seat":1,"tiles":"{"type":"RoundEnded","result":{"number":1,"end":"WENT_OUT","winners":[1],"seats":[[1,0,{"type":"'
    b'GameEnded","winners":[{"type":"TurnPassed","seat":,"GROUP",30],["RUN",6],["GROUP",12],["","RUN",],"points":,"pulled":""}'
    b',{"type":"TilesPlayed","seat":3,"tiles":"0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2021222324252627'
    b'28292a2b2c2d2e2f30313233343501","table":[["{"type":"TurnStarted","turn":[1,null]}]}{"format":3,"revision":,"time":17'
    b'","nonce":"","events":[{"type":"TileDrawn","seat":1,"tile":2},{"type":"TurnStarted","turn":[2,17'
)
"""What changes have in common, the most frequent last. It is part of the stored format: another needs a new FORMAT."""
_WINDOW_BITS: Final = -12
"""Raw deflate with a window of 4 KiB: the default window takes five times as long to set up."""


def compressed(change: bytes) -> bytes:
    """Returns a change as it is kept in a stream. Takes some 10 us."""
    deflate = zlib.compressobj(1, zlib.DEFLATED, _WINDOW_BITS, 4, zlib.Z_DEFAULT_STRATEGY, _DICTIONARY)
    return deflate.compress(change) + deflate.flush()


def decompressed(stored: bytes) -> bytes:
    """Returns a change from what is kept in a stream. Raises StoredFormatUnknown."""
    inflate = zlib.decompressobj(_WINDOW_BITS, _DICTIONARY)
    try:
        change = inflate.decompress(stored, CHANGE_BYTES_MAX)
    except zlib.error:
        raise StoredFormatUnknown from None
    if not inflate.eof or inflate.unused_data:
        raise StoredFormatUnknown
    return change


def _load(data: bytes) -> Json:
    stored: Json = orjson.loads(data)
    if stored.get("format") != FORMAT:
        raise StoredFormatUnknown
    return stored


def _tiles(tiles: tuple[Tile, ...]) -> str:
    return bytes(tiles).hex()


def _read_tile(stored: object) -> Tile:
    return Tile(_number(stored, 1, LAST_TILE))


def _read_tiles(text: str) -> tuple[Tile, ...]:
    numbers = bytes.fromhex(text)
    if numbers and not (min(numbers) and max(numbers) <= LAST_TILE):
        raise StoredFormatUnknown
    return tuple(map(Tile, numbers))


@identity_cache(maxsize=1_024)
def _ruleset(ruleset: Ruleset) -> str:
    """The options that differ from the defaults, which never change: a server that lacks a newer option can read on."""
    values = {field.name: getattr(ruleset, field.name) for field in fields(ruleset)}
    chosen = {name: value for name, value in values.items() if value != getattr(DEFAULTS, name)}
    return json.dumps({name: value.name if isinstance(value, Enum) else value for name, value in chosen.items()})


@lru_cache(maxsize=1024)
def _read_ruleset(text: str) -> Ruleset:
    """The options. Those that this server lacks are of a newer one."""
    stored: Json = json.loads(text)
    values: Json = {}
    for name, value in stored.items():
        values[name] = _read_option(getattr(DEFAULTS, name), value)
    return Ruleset(**values)


def _read_option(default: object, stored: Any) -> object:  # noqa: ANN401 - whatever is stored
    """An option's value, of the type of its default."""
    match default:
        case Enum():
            return type(default)[stored]
        case bool():
            return _flag(stored)
        case _:
            return _number(stored, -LARGEST)


@identity_cache(maxsize=16_384)
def _meld(meld: Meld) -> bytes:
    """A meld as it is stored: most of a table lay there before."""
    return _json((_tiles(meld.tiles), meld.kind.name, meld.points, *map(_tiles, meld.joker_faces)))


@lru_cache(maxsize=16_384)
def _read_meld(tiles: str, kind: str, points: int, *faces: str) -> Meld:
    return Meld(_read_tiles(tiles), MeldKind[kind], _number(points), tuple(map(_read_tiles, faces)))


@identity_cache(maxsize=4_096)
def _table(table: Table) -> orjson.Fragment:
    """A table as it is stored, in the game and in the event of the play that has made it."""
    return orjson.Fragment(b"[%b]" % b",".join(_meld.map(table)))


def _read_table(stored: object) -> Table:
    return _each(lambda meld: _read_meld(*meld), stored)


def _proposed(table: ProposedTable) -> list[list[Any]]:
    """Melds as a player sent them."""
    return [[_tiles(meld.tiles), meld.kind and meld.kind.name, _tiles(meld.declared)] for meld in table]


def _read_proposed(stored: object) -> ProposedTable:
    return _each(_read_proposed_meld, stored)


def _read_proposed_meld(stored: list[Any]) -> ProposedMeld:
    tiles, kind, declared = stored
    return ProposedMeld(_read_tiles(tiles), None if kind is None else MeldKind[kind], _read_tiles(declared))


def _rack(rack: Rack) -> list[Any]:
    return [rack.seat, _tiles(rack.tiles), rack.has_melded]


def _read_rack(stored: list[Any]) -> Rack:
    return Rack(_seat(stored[0]), _read_tiles(stored[1]), _flag(stored[2]))


def _turn(turn: Turn) -> list[Any]:
    return [turn.seat, turn.deadline_ms]


def _read_turn(stored: list[Any]) -> Turn:
    seat, deadline_ms = stored
    return Turn(_seat(seat), _if_any(_time, deadline_ms))


def _step(step: Step) -> list[Any]:
    match step:
        case Open():
            return ["Open"]
        case Choosing(tiles):
            return ["Choosing", _tiles(tiles)]
        case Drawn(tile):
            return ["Drawn", tile]


def _read_step(stored: list[Any]) -> Step:
    match stored:
        case ["Open"]:
            return Open()
        case ["Choosing", tiles]:
            first, second = _read_tiles(tiles)
            return Choosing((first, second))
        case ["Drawn", tile]:
            return Drawn(_read_tile(tile))
        case _:
            raise StoredFormatUnknown


def _shown_play(shown: ShownPlay) -> Json:
    return {
        "revision": shown.revision,
        "table": _proposed(shown.table),
        "reasons": [reason.name for reason in shown.reasons],
        "claimed": list(shown.claimed),
        "against": shown.against,
    }


def _read_shown_play(stored: Json) -> ShownPlay:
    return ShownPlay(
        revision=_number(stored["revision"]),
        table=_read_proposed(stored["table"]),
        reasons=_each(_read_reason, stored["reasons"]),
        claimed=_seats(stored["claimed"]),
        against=_if_any(_seat, stored["against"]),
    )


def _read_reason(stored: str) -> Reason:
    return Reason[stored]


def _round(round_: Round) -> Json:
    return {
        "number": round_.number,
        "order": round_.order,
        "table": _table(round_.table),
        "racks": [_rack(rack) for rack in round_.racks],
        "pool": _tiles(round_.pool),
        "turn": _turn(round_.turn),
        "passed": round_.passed,
        "river": _tiles(round_.river),
        "step": _step(round_.step),
        "draft": None if round_.draft is None else _proposed(round_.draft),
        "shown_play": None if round_.shown_play is None else _shown_play(round_.shown_play),
        "last_chance": round_.last_chance,
        **_declined(list(round_.declined)),
    }


def _read_round(stored: Json) -> Round:
    return Round(
        number=_number(stored["number"]),
        order=_seats(stored["order"]),
        table=_read_table(stored["table"]),
        racks=_each(_read_rack, stored["racks"]),
        pool=_read_tiles(stored["pool"]),
        turn=_read_turn(stored["turn"]),
        passed=_seats(stored["passed"]),
        river=_read_tiles(stored["river"]),
        step=_read_step(stored["step"]),
        draft=_if_any(_read_proposed, stored["draft"]),
        shown_play=_if_any(_read_shown_play, stored["shown_play"]),
        last_chance=_if_any(_seats, stored["last_chance"]),
        declined=_seats(stored.get("declined", [])),
    )


@identity_cache(maxsize=4_096)
def _result(result: RoundResult) -> orjson.Fragment:
    """A finished round as it is stored, which changes no more."""
    parts = {
        "number": result.number,
        "end": result.end.name,
        "winners": result.winners,
        "seats": [[seat.seat, seat.rack_value, seat.tile_count, seat.points] for seat in result.seats],
    }
    return orjson.Fragment(_json(parts))


def _read_result(stored: Json) -> RoundResult:
    seats = _each(_read_seat_result, stored["seats"])
    return RoundResult(_number(stored["number"]), RoundEnd[stored["end"]], _seats(stored["winners"]), seats)


def _read_seat_result(stored: list[Any]) -> SeatResult:
    seat, rack_value, tile_count, points = stored
    return SeatResult(_seat(seat), _number(rack_value), _number(tile_count), _points(points))


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
            return Finished(_read_round(stored["round"]), _seats(stored["winners"]))
        case _:
            raise StoredFormatUnknown


def _player(player: Player) -> list[Any]:
    level = [player.bot.name] if player.bot else []
    return [player.seat, player.name, player.total_points, player.resigned, *level]


def _read_player(stored: list[Any]) -> Player:
    seat, name, total_points, resigned, *level = stored
    return Player(_seat(seat), _text(name), _points(total_points), _flag(resigned), _read_level(*level))


def _read_level(level: str | None = None) -> BotLevel | None:
    return _if_any(BotLevel.__getitem__, level)


def _game(game: Game) -> Json:
    return {
        "ruleset": _ruleset(game.ruleset),
        "revision": game.revision,
        "players": [_player(player) for player in game.players],
        "phase": _phase(game.phase),
        "results": _result.map(game.results),
    }


def _read_game(stored: Json) -> Game:
    game = Game(
        ruleset=_read_ruleset(stored["ruleset"]),
        revision=_number(stored["revision"]),
        players=_each(_read_player, stored["players"]),
        phase=_read_phase(stored["phase"]),
        results=_each(_read_result, stored["results"]),
    )
    if not _has_its_seats(game):
        raise StoredFormatUnknown
    return game


def _has_its_seats(game: Game) -> bool:
    """Whether nobody is named who does not play, those dealt in have a rack and a turn, and last turns begin now."""
    seats, round_ = [player.seat for player in game.players], game.round
    if not _ascending(seats):
        return False
    if round_ is None:
        return True
    dealt_in = [rack.seat for rack in round_.racks]
    named = {round_.turn.seat, *round_.passed, *round_.declined, *(round_.last_chance or ())}
    if shown := round_.shown_play:
        named.update(shown.claimed, () if shown.against is None else (shown.against,))
    return (
        _ascending(dealt_in)
        and sorted(round_.order) == dealt_in
        and named.issubset(dealt_in)
        and (round_.last_chance is None or round_.last_chance[:1] == (round_.turn.seat,))
        and set(seats).issuperset(dealt_in)
    )


def _ascending(seats: list[int]) -> bool:
    return all(seat < following for seat, following in pairwise(seats))


def _event(event: ev.Event) -> Json:
    return {"type": type(event).__name__, **_event_fields(event)}


def _event_fields(event: ev.Event) -> Json:  # noqa: C901 - one case an event
    match event:
        case ev.GameCreated(ruleset):
            return {"ruleset": _ruleset(ruleset)}
        case ev.PlayerJoined(seat, name, bot):
            return {"seat": seat, "name": name, **({"bot": bot.name} if bot else {})}
        case ev.RoundStarted():
            return _round_started(event)
        case ev.TurnStarted(turn):
            return {"turn": _turn(turn)}
        case ev.TilesPlayed():
            return _tiles_played(event)
        case ev.TileDrawn() | ev.TilesDrawn() | ev.TilesOffered() | ev.TurnEnded() | ev.TurnPassed():
            return {**_without_a_play(event), **_declined(event.declined)}
        case ev.RiverTileLaid(seat, tile):
            return {"seat": seat, "tile": tile}
        case ev.TurnTimedOut(seat, tiles) | ev.TurnPenalised(seat, tiles):
            return {"seat": seat, "tiles": _tiles(tiles)}
        case ev.DraftSaved(seat, table):
            return {"seat": seat, "table": _proposed(table)}
        case ev.IllegalPlayShown(seat, table, reasons):
            return {"seat": seat, "table": _proposed(table), "reasons": [reason.name for reason in reasons]}
        case ev.ErrorClaimed(seat, agrees):
            return {"seat": seat, "agrees": agrees}
        case ev.PlayerLeft(seat) | ev.RedealDemanded(seat) | ev.PlayerResigned(seat):
            return {"seat": seat}
        case ev.LastChanceStarted(seats):
            return {"seats": list(seats)}
        case ev.RoundEnded(result):
            return {"result": _result(result)}
        case ev.GameEnded(winners):
            return {"winners": list(winners)}


def _without_a_play(event: ev.TileDrawn | ev.TilesDrawn | ev.TilesOffered | ev.TurnEnded | ev.TurnPassed) -> Json:
    match event:
        case ev.TileDrawn(seat, tile):
            return {"seat": seat, "tile": tile}
        case ev.TilesDrawn(seat, tiles) | ev.TilesOffered(seat, tiles):
            return {"seat": seat, "tiles": _tiles(tiles)}
        case ev.TurnEnded(seat) | ev.TurnPassed(seat):
            return {"seat": seat}


def _declined(declined: object) -> Json:
    """Who declined the initial meld, or that somebody did: nothing where nobody did."""
    return {"declined": declined} if declined else {}


def _round_started(event: ev.RoundStarted) -> Json:
    return {
        "number": event.number,
        "draws": [[draw.seat, draw.tile] for draw in event.draws],
        "order": list(event.order),
        "racks": [_rack(rack) for rack in event.racks],
        "pool": _tiles(event.pool),
    }


def _read_round_started(stored: Json) -> ev.RoundStarted:
    return ev.RoundStarted(
        number=_number(stored["number"]),
        draws=_each(_read_start_draw, stored["draws"]),
        order=_seats(stored["order"]),
        racks=_each(_read_rack, stored["racks"]),
        pool=_read_tiles(stored["pool"]),
    )


def _read_start_draw(stored: list[Any]) -> ev.StartDraw:
    seat, tile = stored
    return ev.StartDraw(_seat(seat), _read_tile(tile))


def _tiles_played(event: ev.TilesPlayed) -> Json:
    return {
        "seat": event.seat,
        "tiles": _tiles(event.tiles),
        "table": _table(event.table),
        "points": event.points,
        "pulled": _tiles(event.pulled),
    }


def _read_tiles_played(stored: Json) -> ev.TilesPlayed:
    return ev.TilesPlayed(
        seat=_seat(stored["seat"]),
        tiles=_read_tiles(stored["tiles"]),
        table=_read_table(stored["table"]),
        points=_number(stored["points"]),
        pulled=_read_tiles(stored["pulled"]),
    )


def _has_declined(stored: Json) -> bool:
    return _flag(stored.get("declined", False))


def _read_tiles_offered(stored: Json) -> ev.TilesOffered:
    first, second = _read_tiles(stored["tiles"])
    return ev.TilesOffered(_seat(stored["seat"]), (first, second), _has_declined(stored))


def _read_illegal_play_shown(stored: Json) -> ev.IllegalPlayShown:
    reasons = _each(_read_reason, stored["reasons"])
    return ev.IllegalPlayShown(_seat(stored["seat"]), _read_proposed(stored["table"]), reasons)


_READERS: Final[dict[str, Callable[[Json], ev.Event]]] = {
    "GameCreated": lambda stored: ev.GameCreated(_read_ruleset(stored["ruleset"])),
    "PlayerJoined": lambda stored: ev.PlayerJoined(
        _seat(stored["seat"]), _text(stored["name"]), _read_level(stored.get("bot"))
    ),
    "PlayerLeft": lambda stored: ev.PlayerLeft(_seat(stored["seat"])),
    "RoundStarted": _read_round_started,
    "TurnStarted": lambda stored: ev.TurnStarted(_read_turn(stored["turn"])),
    "TilesPlayed": _read_tiles_played,
    "TileDrawn": lambda stored: ev.TileDrawn(_seat(stored["seat"]), _read_tile(stored["tile"]), _has_declined(stored)),
    "TilesDrawn": lambda stored: ev.TilesDrawn(
        _seat(stored["seat"]), _read_tiles(stored["tiles"]), _has_declined(stored)
    ),
    "TilesOffered": _read_tiles_offered,
    "RiverTileLaid": lambda stored: ev.RiverTileLaid(_seat(stored["seat"]), _read_tile(stored["tile"])),
    "TurnEnded": lambda stored: ev.TurnEnded(_seat(stored["seat"]), _has_declined(stored)),
    "TurnPassed": lambda stored: ev.TurnPassed(_seat(stored["seat"]), _has_declined(stored)),
    "TurnTimedOut": lambda stored: ev.TurnTimedOut(_seat(stored["seat"]), _read_tiles(stored["tiles"])),
    "TurnPenalised": lambda stored: ev.TurnPenalised(_seat(stored["seat"]), _read_tiles(stored["tiles"])),
    "DraftSaved": lambda stored: ev.DraftSaved(_seat(stored["seat"]), _read_proposed(stored["table"])),
    "IllegalPlayShown": _read_illegal_play_shown,
    "ErrorClaimed": lambda stored: ev.ErrorClaimed(_seat(stored["seat"]), _flag(stored["agrees"])),
    "RedealDemanded": lambda stored: ev.RedealDemanded(_seat(stored["seat"])),
    "LastChanceStarted": lambda stored: ev.LastChanceStarted(_seats(stored["seats"])),
    "PlayerResigned": lambda stored: ev.PlayerResigned(_seat(stored["seat"])),
    "RoundEnded": lambda stored: ev.RoundEnded(_read_result(stored["result"])),
    "GameEnded": lambda stored: ev.GameEnded(_seats(stored["winners"])),
}


def encode_memo(memo: Memo) -> bytes:
    """A memo as stored bytes: fingerprint, length of the salt, salt, answer."""
    return memo.fingerprint + bytes([len(memo.salt)]) + memo.salt + memo.answer


@_reading()
def decode_memo(data: bytes) -> Memo:
    """A memo from stored bytes."""
    answer = FINGERPRINT_BYTES + 1 + data[FINGERPRINT_BYTES]
    return Memo(data[:FINGERPRINT_BYTES], data[answer:], data[FINGERPRINT_BYTES + 1 : answer])
