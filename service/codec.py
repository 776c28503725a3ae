"""Protobuf <-> engine: the only place that knows both.

Decoding checks the form of a request and raises InvalidRequest naming the field at fault; whether a well-formed turn is
legal is the engine's affair. Encoding takes views, which have no room for a hidden tile.
"""

import base64
import binascii
import contextlib
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import lru_cache
from typing import Final, Protocol, TypeVar, cast

from google.protobuf.message import DecodeError, Message
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.unknown_fields import UnknownFieldSet

from engine import events as ev
from engine.analysis import Situation
from engine.game import (
    BotLevel,
    Choosing,
    Drawn,
    Finished,
    Lobby,
    Open,
    Phase,
    Playing,
    RoundEnd,
    RoundOver,
    RoundResult,
    SeatResult,
    ShownPlay,
    Step,
    Turn,
)
from engine.kept import kept
from engine.melds import Meld, MeldKind, NotAMeld, ProposedMeld, read_meld
from engine.notation import describe
from engine.play import Play
from engine.presets import PRESETS
from engine.rules import Judgement, meld_violations
from engine.ruleset import (
    PAIRS_PLAYERS,
    RANGES,
    OptionProblem,
    Preset,
    Ruleset,
    Teams,
    TurnDraw,
    choose,
    problems,
)
from engine.scoring import Standing
from engine.solver import Arrangement, Existence, Objective
from engine.solver import steps as st
from engine.tiles import COLORS, JOKER, Tile, naturals
from engine.turns import DrawTile, LayOnRiver, Pass, PlayTiles, TurnAction
from engine.views import (
    DraftSavedView,
    EventView,
    OpenEvent,
    PlayerView,
    RoundStartedView,
    TilesDrawnView,
    TurnEndedView,
    TurnPassedView,
    TurnPenalisedView,
    TurnTimedOutView,
    TurnView,
)
from engine.violations import Reason, Violation
from rummikub.v1 import (
    analysis_service_pb2,
    error_reason_pb2,
    game_pb2,
    game_service_pb2,
    meld_pb2,
    ruleset_pb2,
    tile_pb2,
    turn_service_pb2,
    validation_service_pb2,
)
from service import packed
from service.analysis import PlayedTurn, Suggestion, Tier
from service.faults import FieldFault, InvalidRequest, MalformedRequest
from service.requests import Claim, DraftRequest, TurnRequest
from service.sight import ChangeSight, GameSight, TurnSight
from service.storage.base import State

MELDS_MAX: Final = 128
"""Most melds of a table in a request."""
MELD_TILES_MAX: Final = 32
"""Most tiles of a meld in a request."""
RACK_TILES_MAX: Final = 128
"""Most tiles of a rack, or of the River, in a request."""
RACKS_MIN: Final = 2
"""Fewest racks of a round to score."""
RACKS_MAX: Final = 6
"""Most racks of a round to score."""
DRAFT_TILES_MAX: Final = 256
"""Most tiles of a draft, which is stored: more than any tile set has."""
BATCH_MAX: Final = 1000
"""Most turns of a batch."""
NAME_MAX: Final = 40
"""Most characters of a player's name."""
BATCH_MELDS_MAX: Final = 50_000
"""Most melds of a batch's tables: answers stay under the 4 MiB that clients take by default, unless most are none."""
REQUEST_ID_MAX: Final = 64
"""Most characters of a request id."""
POSITIONS_MAX: Final = 100
"""Most positions of a batch to analyze."""
TIME_LIMIT_MS: Final = (1_000, 10_000)
"""How long an answer of exact analysis may take: unless told, and at most."""
BATCH_TIME_LIMIT_MS: Final = (10_000, 60_000)
"""The same of a batch."""
CORRELATION_MAX: Final = 64
"""Most bytes of a correlation id."""

_TILES: Final = frozenset({*naturals(len(COLORS)), JOKER})
_GAME_ID: Final = re.compile(r"[0-9a-f]{32}")
_REQUEST_ID: Final = re.compile(rf"[!-~]{{1,{REQUEST_ID_MAX}}}")
_ETAG: Final = re.compile(r"[0-9a-f]{32}")

_M = TypeVar("_M", bound=Message)


def decode(message_type: type[_M], data: bytes) -> _M:
    """A message from its bytes. Raises MalformedRequest."""
    try:
        return message_type.FromString(data)
    except DecodeError:
        raise MalformedRequest from None


class _Serializable(Protocol):
    def SerializeToString(self, *, deterministic: bool = ...) -> bytes: ...  # noqa: N802 - protobuf's name


def fingerprint(rpc: str, request: _Serializable) -> bytes:
    """A digest of an RPC and its request's content."""
    return hashlib.sha256(rpc.encode() + b"\0" + request.SerializeToString(deterministic=True)).digest()


# Fields


def _invalid(field: str, description: str, reason: str = "FIELD_INVALID") -> InvalidRequest:
    return InvalidRequest(FieldFault(field, description, reason))


def game_id(text: str) -> str:
    """A game's id. Raises InvalidRequest."""
    if not _GAME_ID.fullmatch(text):
        raise _invalid("game_id", "expected 32 hexadecimal digits, as CreateGame returned them")
    return text


def request_id(text: str, least: int) -> str:
    """A request id of so many characters at least, or "" for none. Raises InvalidRequest."""
    if text and not (_REQUEST_ID.fullmatch(text) and len(text) >= least):
        expected = f"{least} to {REQUEST_ID_MAX} printable ASCII characters without spaces, best a random UUID"
        raise _invalid("request_id", f"expected {expected}")
    return text


def etag(text: str) -> str:
    """An etag, or "" for none. Raises InvalidRequest."""
    if text and not _ETAG.fullmatch(text):
        raise _invalid("etag", "expected 32 hexadecimal digits, as the service returned them")
    return text


def player_name(text: str) -> str:
    """A player's name. Raises InvalidRequest."""
    if not (0 < len(text) <= NAME_MAX and text.isprintable() and text.strip() == text):
        raise _invalid("name", f"expected 1 to {NAME_MAX} printable characters without spaces at the ends")
    return text


def bot_name(text: str) -> str:
    """A bot's name, or "" for one that nobody has. Raises InvalidRequest."""
    return player_name(text) if text else ""


def revision(field: str, value: int, least: int) -> int:
    """A revision. Raises InvalidRequest."""
    if value < least:
        raise _invalid(field, f"expected at least {least}")
    return value


def correlation_id(text: str) -> str:
    """A stream's correlation id. Raises InvalidRequest."""
    if len(text.encode()) > CORRELATION_MAX:
        raise _invalid("correlation_id", f"expected at most {CORRELATION_MAX} bytes")
    return text


def page_size(value: int, default: int, most: int) -> int:
    """A page's size; 0 is the default. Raises InvalidRequest."""
    if value > most:
        raise _invalid("page_size", f"expected at most {most}")
    return value or default


def page_token(cursor: str) -> str:
    """An opaque token of a cursor; "" stays ""."""
    return base64.urlsafe_b64encode(cursor.encode()).decode() if cursor else ""


def page_cursor(token: str, form: str) -> str:
    """The cursor of a page token, whose form is a regular expression; "" stays "". Raises InvalidRequest."""
    try:
        cursor = base64.b64decode(token, altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        cursor = "?"
    if token and not re.fullmatch(form, cursor):
        raise _invalid("page_token", "expected next_page_token of the answer before")
    return cursor


# Tiles and melds


def _tiles(numbers: Sequence[int], field: str, most: int, reason: str) -> tuple[Tile, ...]:
    if len(numbers) > most:
        raise _invalid(field, f"expected at most {most} tiles", reason)
    tiles = tuple(map(Tile, numbers))
    if not _TILES.issuperset(tiles):
        place = next(place for place, tile in enumerate(tiles) if tile not in _TILES)
        raise _not_a_tile(tiles[place], f"{field}[{place}]")
    return tiles


def _tile(number: int, field: str) -> Tile:
    """A tile; whether the game has it is for the rules to say. Raises InvalidRequest."""
    if number not in _TILES:
        raise _not_a_tile(number, field)
    return Tile(number)


def _not_a_tile(number: int, field: str) -> InvalidRequest:
    return _invalid(field, f"{number} is not a tile", "TILE_UNKNOWN")


def rack(numbers: Sequence[int], field: str) -> tuple[Tile, ...]:
    """A rack in ascending order. Raises InvalidRequest."""
    return tuple(sorted(_tiles(numbers, field, RACK_TILES_MAX, "FIELD_INVALID")))


_DEFAULTS: Final = Ruleset()

_KINDS: Final[dict[int, MeldKind | None]] = {
    meld_pb2.MELD_KIND_UNSPECIFIED: None,
    meld_pb2.MELD_KIND_GROUP: MeldKind.GROUP,
    meld_pb2.MELD_KIND_RUN: MeldKind.RUN,
}

MELD_BYTES_MAX: Final = 2 * (2 + MELD_TILES_MAX) + 2
"""A longer meld has too many tiles, or fields of no contract, of any length: it is not remembered."""


def melds(messages: Sequence[meld_pb2.Meld], field: str) -> tuple[ProposedMeld, ...]:
    """Melds as a client sent them. Raises InvalidRequest."""
    if len(messages) > MELDS_MAX:
        raise _invalid(field, f"expected at most {MELDS_MAX} melds", "MALFORMED_TABLE")
    try:
        return tuple([_remembered(message) for message in messages])
    except InvalidRequest:  # again, naming the field
        return tuple(_meld(message, f"{field}[{place}]") for place, message in enumerate(messages))


def _remembered(message: meld_pb2.Meld) -> ProposedMeld:
    data = message.SerializeToString()
    return _meld_of(data) if len(data) <= MELD_BYTES_MAX else _meld(message, "")


@lru_cache(maxsize=16_384)
def _meld_of(data: bytes) -> ProposedMeld:
    """A meld by its bytes: the melds of a table are sent again and again."""
    return _meld(meld_pb2.Meld.FromString(data), "")


def _meld(message: meld_pb2.Meld, field: str) -> ProposedMeld:
    if message.kind not in _KINDS:
        raise _invalid(f"{field}.kind", f"{message.kind} is not a kind of meld", "MALFORMED_SET")
    tiles = _tiles(message.tiles, f"{field}.tiles", MELD_TILES_MAX, "MALFORMED_SET")
    declared = _tiles(message.declared_faces, f"{field}.declared_faces", MELD_TILES_MAX, "MALFORMED_SET")
    return ProposedMeld(tiles, _KINDS[message.kind], declared)


def _numbers(tiles: Iterable[Tile]) -> Sequence[tile_pb2.Tile.ValueType]:
    """Tiles as the contract's enum values: the numbers are the same."""
    return cast("Sequence[tile_pb2.Tile.ValueType]", tiles)


def _number(tile: Tile) -> tile_pb2.Tile.ValueType:
    """A tile as the contract's enum value."""
    return _numbers((tile,))[0]


def _kind(kind: MeldKind) -> meld_pb2.MeldKind.ValueType:
    return meld_pb2.MELD_KIND_GROUP if kind is MeldKind.GROUP else meld_pb2.MELD_KIND_RUN


def _proposed(meld: ProposedMeld) -> meld_pb2.Meld:
    """A meld as it was sent."""
    kind = _kind(meld.kind) if meld.kind else meld_pb2.MELD_KIND_UNSPECIFIED
    return meld_pb2.Meld(tiles=_numbers(meld.tiles), kind=kind, declared_faces=_numbers(meld.declared))


def encode_meld(meld: Meld) -> meld_pb2.TableMeld:
    """A meld of a table."""
    return meld_pb2.TableMeld(
        tiles=_numbers(meld.tiles), kind=_kind(meld.kind), points=meld.points, jokers=_joker_faces(meld)
    )


def _joker_faces(meld: Meld) -> Iterable[meld_pb2.JokerFaces]:
    places = (place for place, t in enumerate(meld.tiles) if t == JOKER)
    return (
        meld_pb2.JokerFaces(index=place, faces=_numbers(faces))
        for place, faces in zip(places, meld.joker_faces, strict=True)
    )


def encode_reading(reading: Meld | NotAMeld, place: int) -> meld_pb2.MeldReading:
    """How the rules read a meld, by its place in the question."""
    if isinstance(reading, NotAMeld):
        found = meld_violations(reading, f"melds[{place}]")
        return meld_pb2.MeldReading(tiles=_numbers(reading.tiles), violations=map(encode_violation, found))
    return meld_pb2.MeldReading(
        tiles=_numbers(reading.tiles),
        kind=_kind(reading.kind),
        points=reading.points,
        jokers=_joker_faces(reading),
    )


def reason_number(reason: str) -> error_reason_pb2.ErrorReason.ValueType:
    """The contract's number of a reason's name."""
    return error_reason_pb2.ErrorReason.Value(f"ERROR_REASON_{reason}")


def encode_illegal_turn(violations: Iterable[Violation]) -> meld_pb2.IllegalTurn:
    """The violations of a turn as a detail of a status, which must stay small: one may be about a whole table."""
    message = meld_pb2.IllegalTurn(violations=map(encode_violation, violations))
    for violation in message.violations:
        violation.ClearField("description")
        del violation.tiles[MELD_TILES_MAX:]
    return message


def encode_violation(violation: Violation) -> meld_pb2.Violation:
    """A breach of the rules."""
    return meld_pb2.Violation(
        reason=reason_number(violation.reason.name),
        subject=violation.subject,
        description=describe(violation),
        tiles=_numbers(violation.tiles),
        metadata={key: str(value) for key, value in violation.metadata},
        suggested_order=_numbers(violation.suggested_order),
    )


# Rulesets


def ruleset(message: ruleset_pb2.Ruleset, prefix: str = "") -> Ruleset:
    """The rules of a request, unset options as in the preset. Raises InvalidRequest.

    Args:
        message: The rules.
        prefix: What faults put before `ruleset`, with a dot at the end, if it is part of a larger message.
    """
    try:
        return _ruleset(message.SerializeToString(deterministic=True))
    except InvalidRequest as error:
        raise InvalidRequest(*(replace(fault, field=prefix + fault.field) for fault in error.fields)) from None


@lru_cache(maxsize=256)
def _ruleset(data: bytes) -> Ruleset:
    message = ruleset_pb2.Ruleset.FromString(data)
    unknown = UnknownFieldSet(message)
    if len(unknown):
        numbers = ", ".join(str(unknown[place].field_number) for place in range(len(unknown)))
        raise _invalid("ruleset", f"this server's contract has no option with number {numbers}", "OPTION_UNKNOWN")
    preset = Preset.SABRA
    if message.preset != ruleset_pb2.PRESET_UNSPECIFIED:
        preset = _option_value(Preset, "preset", message.preset)
    rules = choose(PRESETS[preset], {"preset": preset, **_chosen(message)})
    _check_problems(rules)
    return rules


def _chosen(message: ruleset_pb2.Ruleset) -> dict[str, object]:
    """The options that are set."""
    chosen: dict[str, object] = {}
    for option in (field.name for field in fields(Ruleset) if field.name != "preset"):
        if message.HasField(option):  # type: ignore[arg-type]
            value = getattr(message, option)
            default = getattr(_DEFAULTS, option)
            if not isinstance(default, Enum):
                chosen[option] = value
            elif value:
                chosen[option] = _option_value(type(default), option, value)
    return chosen


_E = TypeVar("_E", bound=Enum)


def _option_value(enum: type[_E], option: str, number: int) -> _E:
    """The engine's value of an option that the contract gives as an enum; they have the same names."""
    descriptor = ruleset_pb2.DESCRIPTOR.enum_types_by_name[enum.__name__]
    value = descriptor.values_by_number.get(number)
    if value is None:
        field = "ruleset." + option
        raise _invalid(field, f"this server's contract has no value {number} of {enum.__name__}", "OPTION_UNKNOWN")
    return enum[value.name.removeprefix(_prefix(enum))]


@lru_cache(maxsize=64)
def _prefix(enum: type[Enum]) -> str:
    """`TURN_DRAW_` for TurnDraw."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", enum.__name__).upper() + "_"


def _check_problems(rules: Ruleset) -> None:
    """Raises InvalidRequest with a fault for each option of each problem."""
    faults = [
        FieldFault(f"ruleset.{option}", _problem_text(problem), problem.reason.name)
        for problem in problems(rules)
        for option in problem.options
    ]
    if faults:
        raise InvalidRequest(*faults)


def _problem_text(problem: OptionProblem) -> str:
    match problem.reason:
        case Reason.OPTIONS_CONFLICT:
            return f"{problem.options[0]} {problem.value} contradicts {problem.options[1]}"
        case Reason.INSUFFICIENT_TILES:
            return f"{problem.value} tiles for each player leave none for the pool"
        case _:
            return _range_text(problem)


def _range_text(problem: OptionProblem) -> str:
    numbers = RANGES[problem.options[0]]
    expected = f"{numbers[0]} to {numbers[-1]}" if isinstance(numbers, range) else " or ".join(map(str, numbers))
    return f"{problem.value} is out of range: expected {expected}"


@lru_cache(maxsize=256)
def encode_ruleset(rules: Ruleset) -> ruleset_pb2.Ruleset:
    """Rules with every option set."""
    message = ruleset_pb2.Ruleset()
    for option in (field.name for field in fields(rules)):
        value = getattr(rules, option)
        if isinstance(value, Enum):
            descriptor = ruleset_pb2.DESCRIPTOR.enum_types_by_name[type(value).__name__]
            value = descriptor.values_by_name[_prefix(type(value)) + value.name].number
        setattr(message, option, value)
    return message


# Games

_STATES: Final[dict[type[Phase], game_pb2.GameState.ValueType]] = {
    Lobby: game_pb2.GAME_STATE_LOBBY,
    Playing: game_pb2.GAME_STATE_PLAYING,
    RoundOver: game_pb2.GAME_STATE_ROUND_OVER,
    Finished: game_pb2.GAME_STATE_FINISHED,
}

_LISTS: Final[dict[int, State]] = {
    game_pb2.GAME_STATE_UNSPECIFIED: State.LOBBY,
    game_pb2.GAME_STATE_LOBBY: State.LOBBY,
    game_pb2.GAME_STATE_PLAYING: State.PLAYING,
    game_pb2.GAME_STATE_ROUND_OVER: State.ROUND_OVER,
    game_pb2.GAME_STATE_FINISHED: State.FINISHED,
}

_ENDS: Final = {
    RoundEnd.WENT_OUT: game_pb2.ROUND_END_WENT_OUT,
    RoundEnd.BLOCKED: game_pb2.ROUND_END_BLOCKED,
    RoundEnd.RESIGNED: game_pb2.ROUND_END_RESIGNED,
}


_LEVELS: Final = {
    game_pb2.BOT_LEVEL_EASY: BotLevel.EASY,
    game_pb2.BOT_LEVEL_MEDIUM: BotLevel.MEDIUM,
    game_pb2.BOT_LEVEL_HARD: BotLevel.HARD,
}
_LEVEL_NUMBERS: Final = {level: number for number, level in _LEVELS.items()}


def bot_level(number: game_pb2.BotLevel.ValueType) -> BotLevel:
    """How well a bot plays. Raises InvalidRequest."""
    if number not in _LEVELS:
        raise _invalid("level", f"{number} is not a level: expected 1 (easy), 2 (medium) or 3 (hard)")
    return _LEVELS[number]


def _level_number(level: BotLevel | None) -> game_pb2.BotLevel.ValueType:
    return _LEVEL_NUMBERS[level] if level else game_pb2.BOT_LEVEL_UNSPECIFIED


def listed_state(number: int) -> State:
    """The state whose games to list; unset: the lobby. Raises InvalidRequest."""
    if number not in _LISTS:
        raise _invalid("state", f"{number} is not a state of a game")
    return _LISTS[number]


@lru_cache(maxsize=1_024)
def _time(milliseconds: int) -> Timestamp:
    """A time, to be put into a message."""
    seconds, rest = divmod(milliseconds, 1000)
    return Timestamp(seconds=seconds, nanos=rest * 1_000_000)


def encode_game(sight: GameSight) -> game_pb2.Game:
    """A game as one seat, or a spectator, may see it."""
    return game_pb2.Game.FromString(_game_bytes(sight))


def _game_bytes(sight: GameSight) -> bytes:
    """The same as bytes: fields may follow one another in any message's bytes, so what stays is encoded once."""
    view = sight.view
    passing = _what_changes(sight).SerializeToString()
    staying = (_ruleset_bytes(view.ruleset), _table_bytes(view.table), *_result_bytes.each(view.results))
    return b"".join((passing, *map(_player_bytes, view.players), *staying))


@kept(most=1_024)
def _ruleset_bytes(rules: Ruleset) -> bytes:
    """The field of a game that tells its rules."""
    return game_pb2.Game(ruleset=encode_ruleset(rules)).SerializeToString()


@kept(most=4_096)
def _table_bytes(table: tuple[Meld, ...]) -> bytes:
    """The fields of a game that tell its table."""
    return b"".join(_table_meld_bytes.each(table))


@kept(most=16_384)
def _table_meld_bytes(meld: Meld) -> bytes:
    """The field of a game that tells a meld of its table."""
    return game_pb2.Game(table=(encode_meld(meld),)).SerializeToString()


@lru_cache(maxsize=4_096)
def _player_bytes(player: PlayerView) -> bytes:
    """The field of a game that tells a player."""
    return game_pb2.Game(players=(_player(player),)).SerializeToString()


@kept(most=4_096)
def _result_bytes(result: RoundResult) -> bytes:
    """The field of a game that tells how a round ended."""
    return game_pb2.Game(rounds=(_result(result),)).SerializeToString()


def _what_changes(sight: GameSight) -> game_pb2.Game:
    """A game without its ruleset, players, table and finished rounds."""
    view = sight.view
    return game_pb2.Game(
        game_id=sight.game_id,
        revision=view.revision,
        etag=sight.etag,
        state=_STATES[view.phase],
        round=view.round_number,
        pool_count=view.pool_count,
        turn=_turn_view(view.turn) if view.turn else None,
        seat=view.seat or 0,
        rack=_numbers(view.rack),
        winner_seats=view.winners or None,  # empty lists take as long as others
        create_time=_time(sight.created_ms),
        update_time=_time(sight.updated_ms),
        server_time=_time(sight.now_ms),
        starter_seat=view.order[0] if view.order else 0,
        passed_seats=view.passed or None,
        river=_numbers(view.river) or None,
        turn_order=view.order,
        last_chance_seats=view.last_chance or None,
    )


def encode_summary(sight: GameSight) -> game_pb2.GameSummary:
    """A game in a list."""
    return game_pb2.GameSummary(
        game_id=sight.game_id,
        state=_STATES[sight.view.phase],
        player_names=(player.name for player in sight.view.players),
        players_max=sight.view.ruleset.players_max,
        create_time=_time(sight.created_ms),
        revision=sight.view.revision,
    )


def _player(player: PlayerView) -> game_pb2.Player:
    return game_pb2.Player(
        seat=player.seat,
        name=player.name,
        tile_count=player.tile_count,
        has_melded=player.has_melded,
        total_points=player.total_points,
        resigned=player.resigned,
        bot_level=_level_number(player.bot),
    )


_STEPS: Final[dict[type[Step], game_pb2.TurnStep.ValueType]] = {
    Open: game_pb2.TURN_STEP_OPEN,
    Choosing: game_pb2.TURN_STEP_CHOOSING,
    Drawn: game_pb2.TURN_STEP_DRAWN,
}


def _turn(turn: Turn, step: type[Step] = Open) -> game_pb2.Turn:
    """A turn, unless told otherwise as it begins."""
    deadline = None if turn.deadline_ms is None else _time(turn.deadline_ms)
    return game_pb2.Turn(seat=turn.seat, deadline=deadline, step=_STEPS[step])


def _turn_view(view: TurnView) -> game_pb2.Turn:
    message = _turn(view.turn, view.step)
    if view.tiles_drawn:
        message.tiles_drawn.extend(_numbers(view.tiles_drawn))
    if view.draft is not None:
        message.draft.CopyFrom(game_pb2.Draft(table=map(_proposed, view.draft)))
    if view.shown_play is not None:
        message.shown_play.CopyFrom(_shown_play(view.shown_play))
    return message


def _shown_play(shown: ShownPlay) -> game_pb2.ShownPlay:
    return game_pb2.ShownPlay(
        revision=shown.revision,
        table=map(_proposed, shown.table),
        claim_seats=shown.claimed,
        against_seat=shown.against or 0,
    )


def _result(result: RoundResult) -> game_pb2.RoundResult:
    return game_pb2.RoundResult(
        round=result.number,
        end=_ENDS[result.end],
        winner_seats=result.winners,
        seats=map(_seat_result, result.seats),
    )


def _seat_result(result: SeatResult) -> game_pb2.SeatResult:
    return game_pb2.SeatResult(
        seat=result.seat, rack_value=result.rack_value, tile_count=result.tile_count, points=result.points
    )


def encode_change(sight: ChangeSight) -> game_pb2.GameChange:
    """A change as one seat, or a spectator, may see it."""
    return game_pb2.GameChange(
        revision=sight.revision, etag=sight.etag, time=_time(sight.time_ms), events=map(_event, sight.events)
    )


def _event(event: EventView) -> game_pb2.GameEvent:
    match event:
        case RoundStartedView():
            return game_pb2.GameEvent(round_started=_round_started(event))
        case TilesDrawnView(seat, count, tiles):
            drawn = game_pb2.TilesDrawn(seat=seat, tile_count=count, tiles=_numbers(tiles))
            return game_pb2.GameEvent(tiles_drawn=drawn)
        case TurnTimedOutView(seat, count, tiles):
            timed_out = game_pb2.TurnTimedOut(seat=seat, tile_count=count, tiles=_numbers(tiles))
            return game_pb2.GameEvent(turn_timed_out=timed_out)
        case TurnPenalisedView(seat, count, tiles):
            penalised = game_pb2.TurnPenalised(seat=seat, tile_count=count, tiles=_numbers(tiles))
            return game_pb2.GameEvent(turn_penalised=penalised)
        case TurnEndedView(seat):
            return game_pb2.GameEvent(turn_ended=game_pb2.TurnEnded(seat=seat))
        case TurnPassedView(seat):
            return game_pb2.GameEvent(turn_passed=game_pb2.TurnPassed(seat=seat))
        case DraftSavedView(seat):
            return game_pb2.GameEvent(draft_saved=game_pb2.DraftSaved(seat=seat))
        case _:
            return _open_event(event)


def _open_event(event: OpenEvent) -> game_pb2.GameEvent:  # noqa: C901 - one case an event
    match event:
        case ev.GameCreated(rules):
            return game_pb2.GameEvent(game_created=game_pb2.GameCreated(ruleset=encode_ruleset(rules)))
        case ev.PlayerJoined(seat, name, bot):
            joined = game_pb2.PlayerJoined(seat=seat, name=name, bot_level=_level_number(bot))
            return game_pb2.GameEvent(player_joined=joined)
        case ev.PlayerLeft(seat):
            return game_pb2.GameEvent(player_left=game_pb2.PlayerLeft(seat=seat))
        case ev.TurnStarted(turn):
            return game_pb2.GameEvent(turn_started=game_pb2.TurnStarted(turn=_turn(turn)))
        case ev.TilesPlayed():
            return game_pb2.GameEvent(tiles_played=_tiles_played(event))
        case ev.RiverTileLaid(seat, tile):
            laid = game_pb2.RiverTileLaid(seat=seat, tile=_number(tile))
            return game_pb2.GameEvent(river_tile_laid=laid)
        case ev.IllegalPlayShown():
            return game_pb2.GameEvent(illegal_play_shown=_illegal_play_shown(event))
        case ev.ErrorClaimed(seat, agrees):
            return game_pb2.GameEvent(error_claimed=game_pb2.ErrorClaimed(seat=seat, agrees=agrees))
        case ev.RedealDemanded(seat):
            return game_pb2.GameEvent(redeal_demanded=game_pb2.RedealDemanded(seat=seat))
        case ev.LastChanceStarted(seats):
            return game_pb2.GameEvent(last_chance_started=game_pb2.LastChanceStarted(seats=seats))
        case ev.PlayerResigned(seat):
            return game_pb2.GameEvent(player_resigned=game_pb2.PlayerResigned(seat=seat))
        case ev.RoundEnded(result):
            return game_pb2.GameEvent(round_ended=game_pb2.RoundEnded(result=_result(result)))
        case ev.GameEnded(winners):
            return game_pb2.GameEvent(game_ended=game_pb2.GameEnded(winner_seats=winners))


def _tiles_played(event: ev.TilesPlayed) -> game_pb2.TilesPlayed:
    return game_pb2.TilesPlayed(
        seat=event.seat,
        tiles=_numbers(event.tiles),
        table=map(encode_meld, event.table),
        points=event.points,
        pulled=_numbers(event.pulled),
    )


def _illegal_play_shown(event: ev.IllegalPlayShown) -> game_pb2.IllegalPlayShown:
    return game_pb2.IllegalPlayShown(
        seat=event.seat,
        table=map(_proposed, event.table),
        reasons=(reason_number(reason.name) for reason in event.reasons),
    )


def _round_started(view: RoundStartedView) -> game_pb2.RoundStarted:
    return game_pb2.RoundStarted(
        round=view.number,
        draws=(game_pb2.StartDraw(seat=draw.seat, tile=_number(draw.tile)) for draw in view.draws),
        starter_seat=view.order[0],
        rack=_numbers(view.rack),
        pool_count=view.pool_count,
        turn_order=view.order,
    )


def encode_join(game: GameSight, seat: int) -> bytes:
    """The answer to a join, without the token."""
    return game_service_pb2.JoinGameResponse(game=encode_game(game), seat=seat).SerializeToString()


def with_token(answer: bytes, token: str) -> bytes:
    """The answer to a join with its token: fields may follow one another in any message's bytes."""
    return answer + game_service_pb2.JoinGameResponse(seat_token=token).SerializeToString()


def encode_bot(game: GameSight, seat: int) -> bytes:
    """The answer to AddBot."""
    return game_service_pb2.AddBotResponse(game=encode_game(game), seat=seat).SerializeToString()


# Turns


def turn_request(message: turn_service_pb2.PlayTurnRequest) -> TurnRequest:
    """A turn to take. Raises InvalidRequest."""
    return TurnRequest(
        game_id=game_id(message.game_id),
        expected_revision=revision("expected_revision", message.expected_revision, least=1),
        etag=etag(message.etag),
        validate_only=message.validate_only,
        action=_action(message),
    )


def _action(message: turn_service_pb2.PlayTurnRequest) -> Callable[[int], TurnAction]:
    match message.WhichOneof("action"):
        case "play":
            return _play_tiles(message.play)
        case "draw":
            return DrawTile
        case "pass":
            return Pass
        case "lay_on_river":
            tile = _tile(message.lay_on_river.tile, "lay_on_river.tile")
            return lambda seat: LayOnRiver(seat, tile)
        case None:
            raise _invalid("action", "expected one of play, draw, pass, lay_on_river")


def _played(message: turn_service_pb2.PlayTiles) -> tuple[ProposedMeld, ...]:
    """The table of a play. Raises InvalidRequest."""
    table = packed.melds_played(message)
    if len(table) <= MELDS_MAX and max(map(len, table), default=0) <= MELD_BYTES_MAX:
        with contextlib.suppress(InvalidRequest):
            return tuple(map(_meld_of, table))
    return melds(message.table, "play.table")


def _play_tiles(message: turn_service_pb2.PlayTiles) -> Callable[[int], PlayTiles]:
    table = _played(message)
    index = message.river_index if message.HasField("river_index") else None
    return lambda seat: PlayTiles(seat, table, index, message.calls_rummikub)


def encode_turn(sight: TurnSight) -> bytes:
    """The answer to a turn."""
    without_game = turn_service_pb2.PlayTurnResponse(
        tiles_played=_numbers(sight.tiles_played) or None,
        points=sight.points,
        tiles_drawn=_numbers(sight.tiles_drawn) or None,
        violations=map(encode_violation, sight.violations) if sight.violations else None,
    )
    return packed.played_answer(_game_bytes(sight.game), without_game)


def _draft(message: game_pb2.Draft) -> tuple[ProposedMeld, ...]:
    """The table of a draft: nothing of it is checked but that it is no larger than any table. Raises InvalidRequest."""
    table = melds(message.table, "draft.table")
    if sum(len(meld.tiles) for meld in table) > DRAFT_TILES_MAX:
        raise _invalid("draft.table", f"expected at most {DRAFT_TILES_MAX} tiles", "MALFORMED_TABLE")
    return table


def draft_request(message: turn_service_pb2.SaveDraftRequest) -> DraftRequest:
    """A draft to save. Raises InvalidRequest."""
    return DraftRequest(
        game_id=game_id(message.game_id),
        expected_revision=revision("expected_revision", message.expected_revision, least=1),
        etag=etag(message.etag),
        table=_draft(message.draft) if message.HasField("draft") else None,
    )


def claim(message: turn_service_pb2.ClaimErrorRequest) -> Claim:
    """A vote on a claim. Raises InvalidRequest."""
    return Claim(
        game_id=game_id(message.game_id),
        play_revision=revision("play_revision", message.play_revision, least=1),
        agrees=message.agrees,
    )


# Validation


def play(message: validation_service_pb2.ValidateTurnRequest, rules: Ruleset, field: str = "") -> Play:
    """A turn to judge. Raises InvalidRequest.

    Args:
        message: The turn.
        rules: The rules to judge it by.
        field: What faults call the turn, with a dot at the end, if it is part of a larger message.
    """
    table = _table(message.table_before, rules, f"{field}table_before")
    tiles = rack(message.rack, f"{field}rack")
    river = _river(message.river, rules, f"{field}river")
    _check_possible((*tiles, *(t for meld in table for t in meld.tiles), *river), rules, f"{field}rack")
    return Play(
        table_before=table,
        table_after=melds(message.table_after, f"{field}table_after"),
        rack=tiles,
        has_melded=message.has_melded,
        ruleset=rules,
        river=river,
        river_index=message.river_index if message.HasField("river_index") else None,
        drawn=_drawn(message.tile_drawn, tiles, f"{field}tile_drawn"),
        calls_rummikub=message.calls_rummikub,
    )


def _table(messages: Sequence[meld_pb2.Meld], rules: Ruleset, field: str) -> tuple[Meld, ...]:
    """The table when a turn began: melds all. Raises InvalidRequest."""
    readings = tuple(read_meld(meld, rules) for meld in melds(messages, field))
    for place, reading in enumerate(readings):
        if isinstance(reading, NotAMeld):
            text = f"the tiles form no meld: {reading.reasons[0].name}"
            raise _invalid(f"{field}[{place}]", text, "MALFORMED_TABLE")
    return cast("tuple[Meld, ...]", readings)


def _river(numbers: Sequence[int], rules: Ruleset, field: str) -> tuple[Tile, ...]:
    """The River, oldest tile first. Raises InvalidRequest."""
    if numbers and rules.turn_draw is not TurnDraw.TWO_RIVER:
        raise _invalid(field, "there is no River without turn_draw TWO_RIVER", "POSITION_IMPOSSIBLE")
    return _tiles(numbers, field, RACK_TILES_MAX, "FIELD_INVALID")


def _drawn(number: int, tiles: tuple[Tile, ...], field: str) -> Tile | None:
    """The tile drawn in the turn, which is on the rack by now; None for 0. Raises InvalidRequest."""
    if not number:
        return None
    drawn = _tile(number, field)
    if drawn not in tiles:
        raise _invalid(field, "the tile drawn is not on the rack", "POSITION_IMPOSSIBLE")
    return drawn


def _check_possible(tiles: Sequence[Tile], rules: Ruleset, field: str) -> None:
    """No position holds a face more often than the tile set does (R1)."""
    for face, count in Counter(tiles).items():
        copies = rules.copies_of(face)
        if count > copies:
            name = tile_pb2.Tile.Name(_number(face))
            raise _invalid(field, f"the tile set has {copies} of {name}", "POSITION_IMPOSSIBLE")


def encode_judgement(judgement: Judgement) -> validation_service_pb2.ValidateTurnResponse:
    """What the rules say of a turn."""
    return validation_service_pb2.ValidateTurnResponse(
        violations=map(encode_violation, judgement.violations),
        tiles_played=_numbers(judgement.tiles_played),
        points=judgement.points,
        rack_left=_numbers(judgement.rack_left),
        goes_out=not judgement.violations and not judgement.rack_left,
    )


def check_batch(turns: int, melds: int) -> None:
    """Refuses a batch of too many turns, or too many melds in all. Raises InvalidRequest."""
    if turns > BATCH_MAX:
        raise _invalid("turns", f"expected at most {BATCH_MAX} turns")
    if melds > BATCH_MELDS_MAX:
        raise _invalid("turns", f"expected at most {BATCH_MELDS_MAX} melds in all")


@dataclass(frozen=True, slots=True)
class RoundToScore:
    """A finished round: how it ended, and what each player holds, in turn order from the starter."""

    end: RoundEnd
    standings: tuple[Standing, ...]


def round_to_score(message: validation_service_pb2.ScoreRoundRequest, rules: Ruleset) -> RoundToScore:
    """A round to score. Raises InvalidRequest."""
    _check_seats([entry.seat for entry in message.racks], rules)
    standings = tuple(
        Standing(
            seat=entry.seat,
            tiles=rack(entry.rack, f"racks[{place}].rack"),
            has_melded=not entry.never_melded,
            declined=entry.declined_to_meld,
        )
        for place, entry in enumerate(message.racks)
    )
    _check_possible([t for standing in standings for t in standing.tiles], rules, "racks")
    empty = [place for place, standing in enumerate(standings) if not standing.tiles]
    if len(empty) > 1:
        raise _invalid(f"racks[{empty[1]}].rack", "a round ends with the first empty rack", "POSITION_IMPOSSIBLE")
    return RoundToScore(RoundEnd.WENT_OUT if empty else RoundEnd.BLOCKED, standings)


def _check_seats(seats: Sequence[int], rules: Ruleset) -> None:
    """Raises InvalidRequest."""
    if not RACKS_MIN <= len(seats) <= RACKS_MAX:
        raise _invalid("racks", f"expected {RACKS_MIN} to {RACKS_MAX} racks")
    if rules.teams is Teams.PAIRS and len(seats) != PAIRS_PLAYERS:
        raise _invalid("racks", f"pairs are {PAIRS_PLAYERS} players", "POSITION_IMPOSSIBLE")
    for place, seat in enumerate(seats):
        if seat == 0 or seat in seats[:place]:
            raise _invalid(f"racks[{place}].seat", "expected a number from 1 that is not used twice")


def encode_score(result: RoundResult) -> validation_service_pb2.ScoreRoundResponse:
    """The score of a round."""
    message = _result(result)
    return validation_service_pb2.ScoreRoundResponse(
        end=message.end, winner_seats=message.winner_seats, seats=message.seats
    )


# Analysis

_TIERS: Final[dict[int, Tier]] = {
    analysis_service_pb2.HINT_TIER_UNSPECIFIED: Tier.TURN,
    analysis_service_pb2.HINT_TIER_PLAY_EXISTS: Tier.PLAY_EXISTS,
    analysis_service_pb2.HINT_TIER_TILES: Tier.TILES,
    analysis_service_pb2.HINT_TIER_TURN: Tier.TURN,
}

_OBJECTIVES: Final[dict[int, Objective]] = {
    analysis_service_pb2.OBJECTIVE_UNSPECIFIED: Objective.MOST_TILES,
    analysis_service_pb2.OBJECTIVE_MOST_TILES: Objective.MOST_TILES,
    analysis_service_pb2.OBJECTIVE_HIGHEST_VALUE: Objective.HIGHEST_VALUE,
}

_EXISTENCES: Final = {
    Existence.YES: analysis_service_pb2.EXISTENCE_YES,
    Existence.NO: analysis_service_pb2.EXISTENCE_NO,
    Existence.UNKNOWN: analysis_service_pb2.EXISTENCE_UNKNOWN,
}


def tier(number: int) -> Tier:
    """How much to tell; unset: all. Raises InvalidRequest."""
    if number not in _TIERS:
        raise _invalid("tier", f"{number} is not a tier of hints")
    return _TIERS[number]


def objective(number: int) -> Objective:
    """What is best; unset: the most tiles. Raises InvalidRequest."""
    if number not in _OBJECTIVES:
        raise _invalid("objective", f"{number} is not an objective")
    return _OBJECTIVES[number]


def time_limit(milliseconds: int, limits: tuple[int, int] = TIME_LIMIT_MS) -> float:
    """How many seconds to search; 0 is the default, the first limit. Raises InvalidRequest."""
    default, most = limits
    if milliseconds > most:
        raise _invalid("time_limit_ms", f"expected at most {most}")
    return (milliseconds or default) / 1000


def situation(message: analysis_service_pb2.Position, default: Ruleset, field: str = "position.") -> Situation:
    """A position to analyze. Raises InvalidRequest.

    Args:
        message: The position.
        default: The rules if it states none.
        field: What faults call the position, with a dot at the end.
    """
    rules = ruleset(message.ruleset, field) if message.HasField("ruleset") else default
    table = _table(message.table, rules, f"{field}table")
    tiles = rack(message.rack, f"{field}rack")
    river = _river(message.river, rules, f"{field}river")
    _check_possible((*tiles, *(t for meld in table for t in meld.tiles), *river), rules, f"{field}rack")
    return Situation(table, tiles, message.has_melded, rules, river)


def positions(
    message: analysis_service_pb2.BatchSuggestTurnsRequest,
) -> Sequence[analysis_service_pb2.Position]:
    """The positions of a batch. Raises InvalidRequest."""
    if len(message.positions) > POSITIONS_MAX:
        raise _invalid("positions", f"expected at most {POSITIONS_MAX} positions")
    return message.positions


def tiles_to_arrange(message: analysis_service_pb2.ArrangeTilesRequest, rules: Ruleset) -> tuple[Tile, ...]:
    """Tiles in ascending order. Raises InvalidRequest."""
    tiles = rack(message.tiles, "tiles")
    _check_possible(tiles, rules, "tiles")
    return tiles


def encode_existence(existence: Existence) -> analysis_service_pb2.Existence.ValueType:
    """Whether something exists."""
    return _EXISTENCES[existence]


def encode_arrangement(arrangement: Arrangement) -> analysis_service_pb2.ArrangeTilesResponse:
    """How tiles lie in melds."""
    return analysis_service_pb2.ArrangeTilesResponse(
        exists=encode_existence(arrangement.exists), melds=map(encode_meld, arrangement.melds)
    )


def encode_suggestion(suggestion: Suggestion, shown: Tier) -> analysis_service_pb2.Suggestion:
    """As much of what was found as a tier tells."""
    message = analysis_service_pb2.Suggestion(play_exists=encode_existence(suggestion.exists))
    played = suggestion.played
    if played is None or shown is Tier.PLAY_EXISTS:
        return message
    message.tiles_played.extend(_numbers(played.turn.tiles))
    message.value = played.value
    message.is_best = suggestion.is_best
    if shown is Tier.TURN:
        message.is_least_change = suggestion.is_least_change
        message.MergeFrom(_whole_turn(played))
    return message


def _whole_turn(played: PlayedTurn) -> analysis_service_pb2.Suggestion:
    return analysis_service_pb2.Suggestion(
        points=played.points,
        table=map(encode_meld, played.turn.table),
        untouched=played.turn.untouched,
        river_index=played.turn.river_index,
        steps=map(_step, played.steps),
        goes_out=played.goes_out,
    )


def _step(step: st.Step) -> analysis_service_pb2.SuggestedStep:
    message = _step_without_words(step)
    message.description = st.describe(step)
    return message


def _step_without_words(step: st.Step) -> analysis_service_pb2.SuggestedStep:
    match step:
        case st.Pull(tiles):
            return analysis_service_pb2.SuggestedStep(kind=analysis_service_pb2.STEP_KIND_PULL, tiles=_numbers(tiles))
        case st.Split(meld, parts):
            return analysis_service_pb2.SuggestedStep(
                kind=analysis_service_pb2.STEP_KIND_SPLIT, meld=_step_meld(meld), parts=map(_step_part, parts)
            )
        case st.Substitute(meld, replacing, source, laid):
            message = _laid(analysis_service_pb2.STEP_KIND_SUBSTITUTE, meld, laid, (replacing,))
            return _from_meld(message, source) if isinstance(source, st.FromMeld) else message
        case st.Arrange(meld, laid):
            return _laid(analysis_service_pb2.STEP_KIND_ARRANGE, meld, laid)
        case st.Take(source, tiles, meld, laid):
            return _from_meld(_laid(analysis_service_pb2.STEP_KIND_TAKE, meld, laid, tiles), source)
        case st.Join(source, tiles, meld, laid):
            message = _laid(analysis_service_pb2.STEP_KIND_JOIN, meld, laid, tiles)
            message.source.CopyFrom(_step_meld(source))
            return message
        case st.Place(tiles, meld, laid):
            return _laid(analysis_service_pb2.STEP_KIND_PLACE, meld, laid, tiles)
        case st.Extend(tiles, meld, laid):
            return _laid(analysis_service_pb2.STEP_KIND_EXTEND, meld, laid, tiles)
        case st.LayJokers(jokers, meld, laid):
            return _laid(analysis_service_pb2.STEP_KIND_LAY_JOKERS, meld, laid, (JOKER,) * jokers)


def _laid(
    kind: analysis_service_pb2.StepKind.ValueType, meld: st.Label, laid: ProposedMeld, tiles: tuple[Tile, ...] = ()
) -> analysis_service_pb2.SuggestedStep:
    return analysis_service_pb2.SuggestedStep(
        kind=kind, meld=_step_meld(meld), laid=_proposed(laid), tiles=_numbers(tiles)
    )


def _from_meld(message: analysis_service_pb2.SuggestedStep, source: st.FromMeld) -> analysis_service_pb2.SuggestedStep:
    """A step with where its tiles come from."""
    message.source.CopyFrom(_step_meld(source.meld))
    if source.left.tiles:
        message.left.CopyFrom(_proposed(source.left))
    return message


def _step_meld(label: st.Label) -> analysis_service_pb2.StepMeld:
    """A meld's name; the engine counts from 1."""
    match label:
        case st.OfTable(place):
            return analysis_service_pb2.StepMeld(table_before=place - 1)
        case st.Made(place, _):
            return analysis_service_pb2.StepMeld(table_after=place - 1)


def _step_part(part: st.Part) -> analysis_service_pb2.StepPart:
    return analysis_service_pb2.StepPart(meld=_step_meld(part.meld), laid=_proposed(part.laid))
