"""The stored form of games and of their changes: JSON with a format version, apart from the API's messages.

Tiles are stored as hexadecimal text, a byte a tile. A reader refuses a version that it does not know.

Format 2 is what is written; format 1 is read. It knew the starter of a round where format 2 has the whole turn order,
and neither the River nor what else a turn with several steps has. A server that knows format 1 alone would drop all
that, of a game whose options it believes to know: any game may have a draft. So no change is written in format 1 any
more, and servers of both kinds on one store, as in a deployment, refuse what the newer ones have stored until they are
replaced. Every field of a format is always written, so that a missing one is noticed.

Two things are written only where they are: a bot's level, and who declined the initial meld. So a game without bots can
be read by a server that knows none, and one with bots cannot, since its players have a value too many. Who declined is
asked only in games that a server without a solver refuses to read.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import fields
from enum import Enum
from functools import lru_cache
from typing import Any, Final

import orjson

from engine import events as ev
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
    turn_order,
)
from engine.kept import kept
from engine.melds import Meld, MeldKind, ProposedMeld
from engine.ruleset import Ruleset, TurnDirection
from engine.tiles import Tile
from engine.violations import Reason
from service.faults import StoredFormatUnknown
from service.storage.base import Entry, Memo, Record, SeatToken

FORMAT: Final = 2
OLD_FORMAT: Final = 1
FINGERPRINT_BYTES: Final = 32
DEFAULTS: Final = Ruleset()

Json = dict[str, Any]


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


@kept(most=4_096)
def _tokens(tokens: tuple[SeatToken, ...]) -> orjson.Fragment:
    return orjson.Fragment(_json({str(token.seat): token.digest.hex() for token in tokens}))


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
    game = _game_of_format_1(stored["game"]) if stored["format"] == OLD_FORMAT else stored["game"]
    return Record(
        game_id=stored["id"],
        game=_read_game(game),
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
def decode_entry(change: bytes, etag: str, direction: TurnDirection = TurnDirection.CLOCKWISE) -> Entry:
    """A change from stored bytes. Raises StoredFormatUnknown.

    Args:
        change: The bytes.
        etag: The game's after it.
        direction: The game's turn_direction, where the change needs it (`needs_direction`).
    """
    stored = _load(change)
    events: list[Json] = stored["events"]
    if stored["format"] == OLD_FORMAT:
        events = [_event_of_format_1(event, direction) for event in events]
    return Entry(
        revision=stored["revision"],
        etag=etag,
        time_ms=stored["time"],
        nonce=bytes.fromhex(stored["nonce"]),
        events=tuple(_READERS[event["type"]](event) for event in events),
    )


def needs_direction(change: bytes) -> bool:
    """Whether a change can only be read by who knows the game's turn_direction: a deal of format 1."""
    return change.startswith(f'{{"format":{OLD_FORMAT},'.encode()) and b'"type":"RoundStarted"' in change


_SINCE_FORMAT_1: Final[Json] = {"river": "", "step": ["Open"], "draft": None, "shown_play": None, "last_chance": None}
"""What a round of format 1 lacks."""


def _game_of_format_1(stored: Json) -> Json:
    """A game as format 2 has it."""
    phase = stored["phase"]
    if "round" not in phase:
        return stored
    direction = _read_ruleset(stored["ruleset"]).turn_direction
    round_ = _with_order({**_SINCE_FORMAT_1, **phase["round"]}, direction)
    return {**stored, "phase": {**phase, "round": round_}}


def _event_of_format_1(stored: Json, direction: TurnDirection) -> Json:
    """An event as format 2 has it."""
    match stored["type"]:
        case "RoundStarted":
            return _with_order(stored, direction)
        case "TilesPlayed":
            return {**stored, "pulled": ""}
        case _:
            return stored


def _with_order(stored: Json, direction: TurnDirection) -> Json:
    """A round, or its start, with the turn order in place of the starter."""
    seats = tuple(rack[0] for rack in stored["racks"])
    return {**stored, "order": turn_order(seats, stored["starter"], direction)}


def _load(data: bytes) -> Json:
    stored: Json = orjson.loads(data)
    if stored.get("format") not in {OLD_FORMAT, FORMAT}:
        raise StoredFormatUnknown
    return stored


def _tiles(tiles: tuple[Tile, ...]) -> str:
    return bytes(tiles).hex()


def _read_tiles(text: str) -> tuple[Tile, ...]:
    return tuple(map(Tile, bytes.fromhex(text)))


@kept(most=1_024)
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
        default = getattr(DEFAULTS, name)
        values[name] = type(default)[value] if isinstance(default, Enum) else value
    return Ruleset(**values)


@kept(most=16_384)
def _meld(meld: Meld) -> bytes:
    """A meld as it is stored: most of a table lay there before."""
    return _json((_tiles(meld.tiles), meld.kind.name, meld.points, *map(_tiles, meld.joker_faces)))


@lru_cache(maxsize=16_384)
def _read_meld(tiles: str, kind: str, points: int, *faces: str) -> Meld:
    return Meld(_read_tiles(tiles), MeldKind[kind], points, tuple(map(_read_tiles, faces)))


@kept(most=4_096)
def _table(table: tuple[Meld, ...]) -> orjson.Fragment:
    """A table as it is stored, in the game and in the event of the play that has made it."""
    return orjson.Fragment(b"[%b]" % b",".join(_meld.each(table)))


def _read_table(stored: list[list[Any]]) -> tuple[Meld, ...]:
    return tuple([_read_meld(*meld) for meld in stored])


def _proposed(table: tuple[ProposedMeld, ...]) -> list[list[Any]]:
    """Melds as a player sent them."""
    return [[_tiles(meld.tiles), meld.kind and meld.kind.name, _tiles(meld.declared)] for meld in table]


def _read_proposed(stored: list[list[Any]]) -> tuple[ProposedMeld, ...]:
    return tuple(
        ProposedMeld(_read_tiles(tiles), None if kind is None else MeldKind[kind], _read_tiles(declared))
        for tiles, kind, declared in stored
    )


def _rack(rack: Rack) -> list[Any]:
    return [rack.seat, _tiles(rack.tiles), rack.has_melded]


def _read_rack(stored: list[Any]) -> Rack:
    return Rack(stored[0], _read_tiles(stored[1]), stored[2])


def _turn(turn: Turn) -> list[Any]:
    return [turn.seat, turn.deadline_ms]


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
        case ["Drawn", int(tile)]:
            return Drawn(Tile(tile))
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
        revision=stored["revision"],
        table=_read_proposed(stored["table"]),
        reasons=tuple(Reason[name] for name in stored["reasons"]),
        claimed=tuple(stored["claimed"]),
        against=stored["against"],
    )


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
    draft, shown_play, last_chance = stored["draft"], stored["shown_play"], stored["last_chance"]
    return Round(
        number=stored["number"],
        order=tuple(stored["order"]),
        table=_read_table(stored["table"]),
        racks=tuple(map(_read_rack, stored["racks"])),
        pool=_read_tiles(stored["pool"]),
        turn=Turn(*stored["turn"]),
        passed=tuple(stored["passed"]),
        river=_read_tiles(stored["river"]),
        step=_read_step(stored["step"]),
        draft=None if draft is None else _read_proposed(draft),
        shown_play=None if shown_play is None else _read_shown_play(shown_play),
        last_chance=None if last_chance is None else tuple(last_chance),
        declined=tuple(stored.get("declined", ())),
    )


@kept(most=4_096)
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


def _player(player: Player) -> list[Any]:
    level = [player.bot.name] if player.bot else []
    return [player.seat, player.name, player.total_points, player.resigned, *level]


def _read_player(stored: list[Any]) -> Player:
    seat, name, total_points, resigned, *level = stored
    return Player(seat, name, total_points, resigned, _read_level(*level))


def _read_level(level: str | None = None) -> BotLevel | None:
    return BotLevel[level] if level else None


def _game(game: Game) -> Json:
    return {
        "ruleset": _ruleset(game.ruleset),
        "revision": game.revision,
        "players": [_player(player) for player in game.players],
        "phase": _phase(game.phase),
        "results": _result.each(game.results),
    }


def _read_game(stored: Json) -> Game:
    return Game(
        ruleset=_read_ruleset(stored["ruleset"]),
        revision=stored["revision"],
        players=tuple(map(_read_player, stored["players"])),
        phase=_read_phase(stored["phase"]),
        results=tuple(map(_read_result, stored["results"])),
    )


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
        number=stored["number"],
        draws=tuple(ev.StartDraw(seat, Tile(tile)) for seat, tile in stored["draws"]),
        order=tuple(stored["order"]),
        racks=tuple(map(_read_rack, stored["racks"])),
        pool=_read_tiles(stored["pool"]),
    )


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
        seat=stored["seat"],
        tiles=_read_tiles(stored["tiles"]),
        table=_read_table(stored["table"]),
        points=stored["points"],
        pulled=_read_tiles(stored["pulled"]),
    )


def _has_declined(stored: Json) -> bool:
    return bool(stored.get("declined", False))


def _read_tiles_offered(stored: Json) -> ev.TilesOffered:
    first, second = _read_tiles(stored["tiles"])
    return ev.TilesOffered(stored["seat"], (first, second), _has_declined(stored))


def _read_illegal_play_shown(stored: Json) -> ev.IllegalPlayShown:
    reasons = tuple(Reason[name] for name in stored["reasons"])
    return ev.IllegalPlayShown(stored["seat"], _read_proposed(stored["table"]), reasons)


_READERS: Final[dict[str, Callable[[Json], ev.Event]]] = {
    "GameCreated": lambda stored: ev.GameCreated(_read_ruleset(stored["ruleset"])),
    "PlayerJoined": lambda stored: ev.PlayerJoined(stored["seat"], stored["name"], _read_level(stored.get("bot"))),
    "PlayerLeft": lambda stored: ev.PlayerLeft(stored["seat"]),
    "RoundStarted": _read_round_started,
    "TurnStarted": lambda stored: ev.TurnStarted(Turn(*stored["turn"])),
    "TilesPlayed": _read_tiles_played,
    "TileDrawn": lambda stored: ev.TileDrawn(stored["seat"], Tile(stored["tile"]), _has_declined(stored)),
    "TilesDrawn": lambda stored: ev.TilesDrawn(stored["seat"], _read_tiles(stored["tiles"]), _has_declined(stored)),
    "TilesOffered": _read_tiles_offered,
    "RiverTileLaid": lambda stored: ev.RiverTileLaid(stored["seat"], Tile(stored["tile"])),
    "TurnEnded": lambda stored: ev.TurnEnded(stored["seat"], _has_declined(stored)),
    "TurnPassed": lambda stored: ev.TurnPassed(stored["seat"], _has_declined(stored)),
    "TurnTimedOut": lambda stored: ev.TurnTimedOut(stored["seat"], _read_tiles(stored["tiles"])),
    "TurnPenalised": lambda stored: ev.TurnPenalised(stored["seat"], _read_tiles(stored["tiles"])),
    "DraftSaved": lambda stored: ev.DraftSaved(stored["seat"], _read_proposed(stored["table"])),
    "IllegalPlayShown": _read_illegal_play_shown,
    "ErrorClaimed": lambda stored: ev.ErrorClaimed(stored["seat"], stored["agrees"]),
    "RedealDemanded": lambda stored: ev.RedealDemanded(stored["seat"]),
    "LastChanceStarted": lambda stored: ev.LastChanceStarted(tuple(stored["seats"])),
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
