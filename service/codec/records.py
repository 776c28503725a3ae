"""Records of games, as messages and as text."""

from collections.abc import Generator, Sequence
from functools import partial
from typing import Final, Literal, Protocol

from google.protobuf.timestamp_pb2 import Timestamp

from engine.game import RoundEnd
from engine.moves import Move, MoveKind, RecordedPlayer
from engine.record import GameRecord, RoundScore
from engine.record_text import RecordTextError, parse_in_steps
from engine.seats import BotLevel
from engine.unions import Ruleset
from rummikub.v1 import game_pb2, record_pb2, score_pb2
from service.codec.discard import TABLE_MAX, encode_hand, hand_of
from service.codec.families import FamilyCodec, codec_of
from service.codec.fields import (
    SEATS_MAX,
    deal_seed,
    invalid,
    player_name,
    river_index,
    seat_of,
    seats_of,
    server_seed,
)
from service.codec.rulesets import encode_ruleset, encode_settings, game_options
from service.codec.tiles import POOL_MAX, encode_proposed_table, tile_numbers, tiles_of
from service.errors import FieldFault, InvalidRequest

MOVES_MAX: Final = 20_000
"""Most moves of a record."""
_REVISION_MAX: Final = 999_999_999
"""The greatest revision for which the text of a record has room."""
_LONGEST_MS: Final = 10**12
"""The longest game, about 31 years; the text of a record has room for no longer one."""
_LATEST_S: Final = 253_402_300_799
"""The end of the year 9999."""
_KIND: Final = "MOVE_KIND_"
_END: Final = "ROUND_END_"
_LEVEL: Final = "BOT_LEVEL_"
_NO_LEVEL: Final = "UNSPECIFIED"


class RecordSource(Protocol):
    """A request with a record as a message or as text."""

    @property
    def record(self) -> record_pb2.GameRecord:
        """The message."""

    @property
    def text(self) -> str:
        """The text."""

    def HasField(self, field_name: Literal["record", "text"]) -> bool:  # noqa: N802 - protobuf's name
        """Returns whether it is this form."""


def record_in_steps(request: RecordSource) -> Generator[None, None, GameRecord]:
    """Returns the record of a request, and yields between its moves. Raises InvalidRequest."""
    if request.HasField("record"):
        return (yield from _record(request.record))
    return (yield from _parsed(request.text))


def _parsed(text: str) -> Generator[None, None, GameRecord]:
    """Returns the record of a text, within the limits of the message."""
    try:
        record: GameRecord = yield from parse_in_steps(text)
    except RecordTextError as error:
        raise InvalidRequest(FieldFault("text", str(error), "RECORD_INVALID")) from None
    if max((record.created_ms, *(move.time_ms for move in record.moves))) >= (_LATEST_S + 1) * 1000:
        raise invalid("text", "expected times until the year 9999")
    if len(record.moves) > MOVES_MAX:
        raise invalid("text", f"expected at most {MOVES_MAX} moves")
    for player in (*record.players, *(move.player for move in record.moves if move.player)):
        player_name(player.name, "text")
    return record


def _record(message: record_pb2.GameRecord) -> Generator[None, None, GameRecord]:
    limits = (("moves", message.moves, MOVES_MAX), ("rounds", message.rounds, MOVES_MAX))
    for name, items, most in (*limits, ("players", message.players, SEATS_MAX)):
        if len(items) > most:
            raise invalid(f"record.{name}", f"expected at most {most} {name}")
    rules, settings = game_options(message.ruleset, message.settings, "record.")
    created_ms = _time(message.create_time, "record.create_time")
    moves, round_number = [], 0
    for place, move in enumerate(message.moves):
        round_number += move.kind == record_pb2.MOVE_KIND_DEAL
        moves.append(_move(move, f"record.moves[{place}]", created_ms, round_number, rules))
        yield
    return GameRecord(
        ruleset=rules,
        settings=settings,
        created_ms=created_ms,
        players=tuple(_player(player, f"record.players[{i}]") for i, player in enumerate(message.players)),
        moves=tuple(moves),
        rounds=tuple(_score(score, f"record.rounds[{place}]") for place, score in enumerate(message.rounds)),
        winners=seats_of(message.winner_seats, "record.winner_seats"),
        deal_commitment=server_seed(message.deal_commitment, "record.deal_commitment"),
        deal_seed=server_seed(message.deal_seed, "record.deal_seed"),
    )


def _time(message: Timestamp, field: str) -> int:
    """Returns a time in milliseconds since 1970."""
    if not (0 <= message.seconds <= _LATEST_S and 0 <= message.nanos < 1_000_000_000):
        raise invalid(field, "expected a time from 1970 to 9999")
    return message.seconds * 1000 + message.nanos // 1_000_000


def _player(message: record_pb2.RecordedPlayer, field: str) -> RecordedPlayer:
    name = game_pb2.BotLevel.Name(message.bot_level) if message.bot_level in game_pb2.BotLevel.values() else ""
    if not name:
        raise invalid(f"{field}.bot_level", f"{message.bot_level} is not a level of a bot")
    level = None if not message.bot_level else BotLevel[name.removeprefix(_LEVEL)]
    if level and message.is_program:
        raise invalid(f"{field}.is_program", "a bot of the service is no program of others")
    return RecordedPlayer(
        seat_of(message.seat, f"{field}.seat"),
        player_name(message.name, f"{field}.name"),
        level,
        message.is_program,
        deal_seed(message.deal_seed, f"{field}.deal_seed"),
    )


def _score(message: record_pb2.RecordedScore, field: str) -> RoundScore:
    if not message.round_end or message.round_end not in score_pb2.RoundEnd.values():
        raise invalid(f"{field}.round_end", f"{message.round_end} is not an end of a round")
    if len(message.points) > SEATS_MAX:
        raise invalid(f"{field}.points", f"expected at most {SEATS_MAX} seats")
    end = RoundEnd[score_pb2.RoundEnd.Name(message.round_end).removeprefix(_END)]
    return RoundScore(end, tuple((points.seat, points.points) for points in message.points))


def _move(message: record_pb2.RecordedMove, field: str, created_ms: int, round_number: int, rules: Ruleset) -> Move:
    codec = codec_of(rules)
    if not message.kind or message.kind not in record_pb2.MoveKind.values():
        raise invalid(f"{field}.kind", f"{message.kind} is not a kind of move")
    kind = MoveKind[record_pb2.MoveKind.Name(message.kind).removeprefix(_KIND)]
    time_ms = _time(message.time, f"{field}.time")
    if not 0 <= time_ms - created_ms < _LONGEST_MS:
        raise invalid(f"{field}.time", "expected a time after create_time, within 31 years")
    return Move(
        revision=_revision(message.revision, f"{field}.revision"),
        time_ms=time_ms,
        kind=kind,
        seat=seat_of(message.seat, f"{field}.seat") if message.HasField("seat") else 0,
        tiles=tiles_of(message.tiles, f"{field}.tiles", POOL_MAX, "FIELD_INVALID", codec.TILES),
        table=codec.table_of_move(message, kind, field),
        river_index=river_index(message, f"{field}.river_index"),
        hand=hand_of(message.hand, f"{field}.hand", TABLE_MAX),
        dealt=codec.deal(message.deal, f"{field}.deal", round_number, rules) if message.HasField("deal") else None,
        by_bot=message.by_bot,
        player=_player(message.player, f"{field}.player") if message.HasField("player") else None,
    )


def _revision(number: int, field: str) -> int:
    if number > _REVISION_MAX:
        raise invalid(field, f"expected at most {_REVISION_MAX}")
    return number


def encode_record(record: GameRecord) -> record_pb2.GameRecord:
    """Returns a record as a message."""
    return record_pb2.GameRecord(
        ruleset=encode_ruleset(record.ruleset),
        settings=encode_settings(record.settings),
        create_time=_encode_time(record.created_ms),
        players=map(_encode_player, record.players),
        moves=map(partial(_encode_move, codec=codec_of(record.ruleset)), record.moves),
        rounds=(
            record_pb2.RecordedScore(
                round_end=score_pb2.RoundEnd.Value(_END + score.end.name), points=encode_points(score.points)
            )
            for score in record.rounds
        ),
        winner_seats=record.winners,
        deal_commitment=record.deal_commitment,
        deal_seed=record.deal_seed,
    )


def encode_points(points: Sequence[tuple[int, int]]) -> Sequence[record_pb2.RecordedPoints]:
    """Returns points by seat."""
    return [record_pb2.RecordedPoints(seat=seat, points=won) for seat, won in points]


def encode_kind(kind: MoveKind) -> record_pb2.MoveKind.ValueType:
    """Returns the kind of a move."""
    return record_pb2.MoveKind.Value(_KIND + kind.name)


def _encode_time(time_ms: int) -> Timestamp:
    seconds, rest = divmod(time_ms, 1000)
    return Timestamp(seconds=seconds, nanos=rest * 1_000_000)


def _encode_player(player: RecordedPlayer) -> record_pb2.RecordedPlayer:
    return record_pb2.RecordedPlayer(
        seat=player.seat,
        name=player.name,
        bot_level=game_pb2.BotLevel.Value(_LEVEL + (player.bot.name if player.bot else _NO_LEVEL)),
        is_program=player.is_program,
        deal_seed=player.deal_seed,
    )


def _encode_move(move: Move, codec: FamilyCodec) -> record_pb2.RecordedMove:
    message = record_pb2.RecordedMove(
        revision=move.revision,
        time=_encode_time(move.time_ms),
        kind=encode_kind(move.kind),
        seat=move.seat or None,
        tiles=tile_numbers(move.tiles),
        river_index=move.river_index,
        hand=encode_hand(move.hand),
        deal=codec.encode_deal(move.dealt) if move.dealt else None,
        by_bot=move.by_bot,
        player=_encode_player(move.player) if move.player else None,
    )
    if move.table is not None:
        message.table.CopyFrom(encode_proposed_table(move.table))
    return message
