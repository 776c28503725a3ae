"""Records of games, as messages and as text."""

from collections.abc import Generator, Sequence
from typing import Final, Literal, Protocol

from google.protobuf.timestamp_pb2 import Timestamp

from engine.game import RoundEnd
from engine.melding.events import RoundStarted, StartDraw
from engine.melding.table import ProposedTable
from engine.moves import Move, MoveKind
from engine.record import GameRecord, RecordedPlayer, RoundScore
from engine.record_text import RecordTextError, parse_in_steps
from engine.seats import BotLevel, Rack
from engine.tiles import JOKER, in_order
from rummikub.v1 import game_pb2, record_pb2, score_pb2
from service.codec.fields import invalid, player_name, river_index
from service.codec.rulesets import encode_game_ruleset, encode_settings, game_options
from service.codec.tiles import encode_proposed_table, melds, tile_number, tile_numbers, tile_of, tiles_of
from service.errors import FieldFault, InvalidRequest

MOVES_MAX: Final = 20_000
"""Most moves of a record."""
POOL_MAX: Final = 256
"""Most tiles of a pool in a request; the largest tile set has fewer."""
_SEATS_MAX: Final = 9
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
    for player in record.players:
        player_name(player.name, "text")
    return record


def _record(message: record_pb2.GameRecord) -> Generator[None, None, GameRecord]:
    limits = (("moves", message.moves, MOVES_MAX), ("rounds", message.rounds, MOVES_MAX))
    for name, items, most in (*limits, ("players", message.players, _SEATS_MAX)):
        if len(items) > most:
            raise invalid(f"record.{name}", f"expected at most {most} {name}")
    rules, settings = game_options(message.ruleset, message.settings, "record.")
    created_ms = _time(message.create_time, "record.create_time")
    moves, round_number = [], 0
    for place, move in enumerate(message.moves):
        round_number += move.kind == record_pb2.MOVE_KIND_DEAL
        moves.append(_move(move, f"record.moves[{place}]", created_ms, round_number))
        yield
    return GameRecord(
        ruleset=rules,
        settings=settings,
        created_ms=created_ms,
        players=tuple(_player(player, f"record.players[{i}]") for i, player in enumerate(message.players)),
        moves=tuple(moves),
        rounds=tuple(_score(score, f"record.rounds[{place}]") for place, score in enumerate(message.rounds)),
        winners=_seats(message.winner_seats, "record.winner_seats"),
    )


def _time(message: Timestamp, field: str) -> int:
    """Returns a time in milliseconds since 1970."""
    if not (0 <= message.seconds <= _LATEST_S and 0 <= message.nanos < 1_000_000_000):
        raise invalid(field, "expected a time from 1970 to 9999")
    return message.seconds * 1000 + message.nanos // 1_000_000


def _seats(numbers: Sequence[int], field: str) -> tuple[int, ...]:
    if len(numbers) > _SEATS_MAX or not all(1 <= number <= _SEATS_MAX for number in numbers):
        raise invalid(field, f"expected seats from 1 to {_SEATS_MAX}")
    return tuple(numbers)


def _seat(number: int, field: str) -> int:
    if not 1 <= number <= _SEATS_MAX:
        raise invalid(field, f"expected a seat from 1 to {_SEATS_MAX}")
    return number


def _player(message: record_pb2.RecordedPlayer, field: str) -> RecordedPlayer:
    name = game_pb2.BotLevel.Name(message.bot_level) if message.bot_level in game_pb2.BotLevel.values() else ""
    if not name:
        raise invalid(f"{field}.bot_level", f"{message.bot_level} is not a level of a bot")
    level = None if not message.bot_level else BotLevel[name.removeprefix(_LEVEL)]
    return RecordedPlayer(_seat(message.seat, f"{field}.seat"), player_name(message.name, f"{field}.name"), level)


def _score(message: record_pb2.RecordedScore, field: str) -> RoundScore:
    if not message.round_end or message.round_end not in score_pb2.RoundEnd.values():
        raise invalid(f"{field}.round_end", f"{message.round_end} is not an end of a round")
    if len(message.points) > _SEATS_MAX:
        raise invalid(f"{field}.points", f"expected at most {_SEATS_MAX} seats")
    end = RoundEnd[score_pb2.RoundEnd.Name(message.round_end).removeprefix(_END)]
    return RoundScore(end, tuple((points.seat, points.points) for points in message.points))


def _move(message: record_pb2.RecordedMove, field: str, created_ms: int, round_number: int) -> Move:
    if not message.kind or message.kind not in record_pb2.MoveKind.values():
        raise invalid(f"{field}.kind", f"{message.kind} is not a kind of move")
    kind = MoveKind[record_pb2.MoveKind.Name(message.kind).removeprefix(_KIND)]
    time_ms = _time(message.time, f"{field}.time")
    if not 0 <= time_ms - created_ms < _LONGEST_MS:
        raise invalid(f"{field}.time", "expected a time after create_time, within 31 years")
    has_table = kind in {MoveKind.PLAY, MoveKind.SHOW} or message.HasField("table")
    return Move(
        revision=_revision(message.revision, f"{field}.revision"),
        time_ms=time_ms,
        kind=kind,
        seat=_seat(message.seat, f"{field}.seat") if message.HasField("seat") else 0,
        tiles=tiles_of(message.tiles, f"{field}.tiles", POOL_MAX, "FIELD_INVALID"),
        table=_table(message, field) if has_table else None,
        river_index=river_index(message, f"{field}.river_index"),
        dealt=_deal(message.deal, f"{field}.deal", round_number) if message.HasField("deal") else None,
        by_bot=message.by_bot,
    )


def _revision(number: int, field: str) -> int:
    if number > _REVISION_MAX:
        raise invalid(field, f"expected at most {_REVISION_MAX}")
    return number


def _table(message: record_pb2.RecordedMove, field: str) -> ProposedTable:
    """Returns the table of a move, in which every meld declares the faces of all its jokers or of none."""
    table = melds(message.table.melds, f"{field}.table")
    for place, meld in enumerate(table):
        if meld.declared and len(meld.declared) != meld.tiles.count(JOKER):
            at = f"{field}.table[{place}].declared_faces"
            raise invalid(at, "expected a face for each joker, or none", "MALFORMED_MELD")
    return table


def _deal(message: record_pb2.RecordedDeal, field: str, number: int) -> RoundStarted:
    if len(message.racks) > _SEATS_MAX:
        raise invalid(f"{field}.racks", f"expected at most {_SEATS_MAX} racks")
    if len(message.draws) > POOL_MAX:
        raise invalid(f"{field}.draws", f"expected at most {POOL_MAX} draws")
    return RoundStarted(
        number=number,
        draws=tuple(
            StartDraw(
                _seat(draw.seat, f"{field}.draws[{place}].seat"), tile_of(draw.tile, f"{field}.draws[{place}].tile")
            )
            for place, draw in enumerate(message.draws)
        ),
        order=_seats(message.turn_order, f"{field}.turn_order"),
        racks=tuple(
            Rack(
                _seat(rack.seat, f"{field}.racks[{place}].seat"),
                in_order(tiles_of(rack.tiles, f"{field}.racks[{place}].tiles", POOL_MAX, "FIELD_INVALID")),
            )
            for place, rack in enumerate(message.racks)
        ),
        pool=tiles_of(message.pool, f"{field}.pool", POOL_MAX, "FIELD_INVALID"),
    )


def encode_record(record: GameRecord) -> record_pb2.GameRecord:
    """Returns a record as a message."""
    return record_pb2.GameRecord(
        ruleset=encode_game_ruleset(record.ruleset),
        settings=encode_settings(record.settings),
        create_time=_encode_time(record.created_ms),
        players=(
            record_pb2.RecordedPlayer(
                seat=player.seat,
                name=player.name,
                bot_level=game_pb2.BotLevel.Value(_LEVEL + (player.bot.name if player.bot else _NO_LEVEL)),
            )
            for player in record.players
        ),
        moves=map(_encode_move, record.moves),
        rounds=(
            record_pb2.RecordedScore(
                round_end=score_pb2.RoundEnd.Value(_END + score.end.name), points=encode_points(score.points)
            )
            for score in record.rounds
        ),
        winner_seats=record.winners,
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


def _encode_move(move: Move) -> record_pb2.RecordedMove:
    return record_pb2.RecordedMove(
        revision=move.revision,
        time=_encode_time(move.time_ms),
        kind=encode_kind(move.kind),
        seat=move.seat or None,
        tiles=tile_numbers(move.tiles),
        table=None if move.table is None else encode_proposed_table(move.table),
        river_index=move.river_index,
        deal=_encode_deal(move.dealt) if move.dealt else None,
        by_bot=move.by_bot,
    )


def _encode_deal(dealt: RoundStarted) -> record_pb2.RecordedDeal:
    return record_pb2.RecordedDeal(
        draws=(game_pb2.StartDraw(seat=draw.seat, tile=tile_number(draw.tile)) for draw in dealt.draws),
        turn_order=dealt.order,
        racks=(record_pb2.RecordedRack(seat=rack.seat, tiles=tile_numbers(rack.tiles)) for rack in dealt.racks),
        pool=tile_numbers(dealt.pool),
    )
