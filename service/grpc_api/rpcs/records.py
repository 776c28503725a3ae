"""Records of games: exported, imported, reviewed; positions as text."""

import asyncio
from collections.abc import Generator
from typing import Final

from engine.game import Game
from engine.melding.ruleset import Ruleset as MeldingRuleset
from engine.moves import MoveKind
from engine.record import GameRecord
from engine.record_text import format_record
from engine.turns import may_search
from engine.violations import Reason, refused
from rummikub.v1 import record_service_pb2 as pb
from service.analysis.queries import BestTurnQuery
from service.analysis.records import CheckedRecord, RecordQuery
from service.app.identity import Caller
from service.codec import analysis, fields, reviews
from service.codec.records import MOVES_MAX, encode_record, record_in_steps
from service.errors import ActionRefused, FieldFault, InvalidRequest
from service.grpc_api.call_origin import check_right, current_origin
from service.grpc_api.callers import caller
from service.grpc_api.deadlines import left_until, until_deadline
from service.grpc_api.handlers import RECORD_BYTES, Context, SlowRunner
from service.grpc_api.rpc import Backend, Read, Rpc, Token
from service.runtime.origins import POSITION_SEARCHES
from service.runtime.slow_calls import in_one_step

_MOVES: Final = fields.Most("record.moves", MOVES_MAX)


async def export_game(backend: Backend, request: pb.ExportGameRequest, sender: Caller, context: Context) -> bytes:
    """ExportGame."""
    if request.form not in pb.RecordForm.values():
        raise fields.invalid("form", f"{request.form} is not a form of a record")
    runner = SlowRunner(backend.reader, RECORD_BYTES, context, "ExportGame")
    record = await backend.app.games.export_game(fields.game_id(request.game_id), sender, runner)
    exported: bytes = await runner.run(in_one_step(lambda _: _exported(record, request.form), b""))
    return exported


def _exported(record: GameRecord, form: pb.RecordForm.ValueType) -> bytes:
    if form == pb.RECORD_FORM_TEXT:
        return pb.ExportGameResponse(text=format_record(record)).SerializeToString()
    return pb.ExportGameResponse(record=encode_record(record)).SerializeToString()


async def import_record(backend: Backend, read: Read, _sender: Caller, context: Context) -> bytes:
    """ImportRecord."""
    request, record, _ = read
    if _is_searched(record):
        check_right(POSITION_SEARCHES)
    seconds = analysis.time_limit(request)
    with backend.pool.admit(current_origin()) as admitted:
        query = RecordQuery(record, is_text=request.HasField("record"))
        checked = await admitted.ask(query, seconds, until_deadline(context))
    response = await asyncio.to_thread(reviews.encode_checked, record, checked)
    return response.SerializeToString()


def _is_searched(record: GameRecord) -> bool:
    """Returns whether playing a record again searches racks: its faults then show what could be played."""
    return may_search(Game(record.ruleset)) or any(move.kind is MoveKind.FALSE_FINISH for move in record.moves)


async def review_game(backend: Backend, read: Read, _sender: Caller, context: Context) -> bytes:
    """ReviewGame. Searches the positions in order, each with an equal share of the remaining time."""
    request, record, _ = read
    objective = analysis.objective(request.objective)
    seconds = analysis.time_limit(request, analysis.BATCH_TIME_LIMIT_SECONDS)
    until = until_deadline(context)
    if record is not None:
        check_right(POSITION_SEARCHES)
    else:
        runner = SlowRunner(backend.reader, RECORD_BYTES, context, "ReviewGame")
        record = await backend.app.games.export_game(fields.game_id(request.game_id), caller(context), runner)
    if not isinstance(record.ruleset, MeldingRuleset):
        raise ActionRefused(refused(Reason.ACTION_NOT_IN_GAME))
    found = []
    with backend.pool.admit(current_origin()) as admitted:
        checked, spent = await admitted.ask_timed(RecordQuery(record, is_review=True), seconds, until)
        _check(checked, request)
        for index, move in enumerate(checked.to_review):
            seconds = max(0.0, seconds - spent)
            left = left_until(seconds, until)
            if left <= 0:
                break
            share = left / (len(checked.to_review) - index)
            best, spent = await admitted.ask_timed(BestTurnQuery(move.situation, objective, move.kept), share, until)
            found.append(reviews.Reviewed(move, best))
    is_complete = checked.is_complete and len(found) == len(checked.to_review)
    return reviews.encode_reviews(found, objective, is_complete=is_complete).SerializeToString()


async def parse_position(
    _backend: Backend, request: pb.ParsePositionRequest, _sender: Caller, _context: Context
) -> bytes:
    """ParsePosition."""
    return reviews.parse_text(request).SerializeToString()


async def format_position(
    _backend: Backend, request: pb.FormatPositionRequest, _sender: Caller, _context: Context
) -> bytes:
    """FormatPosition."""
    return pb.FormatPositionResponse(text=reviews.format_message(request)).SerializeToString()


def _check(checked: CheckedRecord, request: pb.ReviewGameRequest) -> None:
    """Raises InvalidRequest if a record breaks a rule."""
    if checked.fault:
        raise reviews.invalid_record(request.WhichOneof("subject") or "subject", checked.fault)


def _read_import(data: bytes) -> Generator[None, None, Read]:
    request = fields.decode(pb.ImportRecordRequest, data, _MOVES)
    if request.WhichOneof("source") is None:
        raise InvalidRequest(FieldFault("source", "expected one of record, text"))
    record = yield from record_in_steps(request)
    return Read(request, record, len(data))


def _read_review(data: bytes) -> Generator[None, None, Read]:
    request = fields.decode(pb.ReviewGameRequest, data, _MOVES)
    match request.WhichOneof("subject"):
        case None:
            raise InvalidRequest(FieldFault("subject", "expected one of record, text, game_id"))
        case "game_id":
            return Read(request, None, len(data))
        case _:
            record = yield from record_in_steps(request)
            return Read(request, record, len(data))


RPCS: Final[tuple[Rpc, ...]] = (
    Rpc(pb.ExportGameRequest, pb.ExportGameResponse, export_game),
    Rpc(
        pb.ImportRecordRequest,
        pb.ImportRecordResponse,
        import_record,
        token=Token.IGNORED,
        read=_read_import,
    ),
    Rpc(
        pb.ReviewGameRequest,
        pb.ReviewGameResponse,
        review_game,
        token=Token.IGNORED,
        read=_read_review,
    ),
    Rpc(pb.ParsePositionRequest, pb.ParsePositionResponse, parse_position, token=Token.IGNORED),
    Rpc(pb.FormatPositionRequest, pb.FormatPositionResponse, format_position, token=Token.IGNORED),
)
