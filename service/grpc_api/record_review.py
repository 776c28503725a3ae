"""The RPCs of AnalysisService about single turns, records and positions: decodes, asks the pool, encodes."""

import asyncio
from collections.abc import Generator, Mapping
from typing import Final

from engine.record import GameRecord
from rummikub.v1 import analysis_service_pb2 as pb
from service.analysis.pool import AnalysisPool
from service.analysis.queries import BestTurnQuery
from service.analysis.records import CheckedRecord, ExplanationQuery, RecordQuery
from service.app.games import Games
from service.codec import analysis, fields, reviews
from service.codec.records import MOVES_MAX, record_in_steps
from service.codec.tiles import most_melds
from service.errors import FieldFault, InvalidRequest
from service.grpc_api.call_origin import check_right, current_origin
from service.grpc_api.deadlines import left_until, until_deadline
from service.grpc_api.handlers import RECORD_BYTES, Context, Handler, RequestReader, SlowRunner, caller, unary
from service.runtime.origins import POSITION_SEARCHES

_MOVES: Final = fields.Most("record.moves", MOVES_MAX)

_Explanation = tuple[pb.ExplainTurnRequest, ExplanationQuery]
_Import = tuple[pb.ImportRecordRequest, GameRecord]
_Review = tuple[pb.ReviewGameRequest, GameRecord | None]
"""A request with its record; None for a game of this service."""


class RecordReview:
    """The RPCs about turns, records and positions.

    Args:
        games: The use cases, for games of this service.
        pool: The worker processes.
        reader: Decodes requests with records.
    """

    def __init__(self, games: Games, pool: AnalysisPool, reader: RequestReader) -> None:
        self._games = games
        self._pool = pool
        self._reader = reader

    def handlers(self) -> Mapping[str, Handler]:
        """Returns the handlers by RPC."""
        return {
            "ExplainTurn": self._reader.unary("ExplainTurn", _read_explanation, self.explain_turn),
            "ImportRecord": self._reader.unary("ImportRecord", _read_import, self.import_record),
            "ReviewGame": self._reader.unary("ReviewGame", _read_review, self.review_game),
            "ParsePosition": unary(pb.ParsePositionRequest, parse_position),
            "FormatPosition": unary(pb.FormatPositionRequest, format_position),
        }

    async def explain_turn(self, read: _Explanation, context: Context) -> bytes:
        """ExplainTurn."""
        request, query = read
        seconds = analysis.time_limit(request)
        with self._pool.admit(current_origin()) as admitted:
            steps = await admitted.ask(query, seconds, until_deadline(context))
        return reviews.encode_explanation(query, steps).SerializeToString()

    async def import_record(self, read: _Import, context: Context) -> bytes:
        """ImportRecord."""
        request, record = read
        seconds = analysis.time_limit(request)
        with self._pool.admit(current_origin()) as admitted:
            query = RecordQuery(record, is_text=request.HasField("record"))
            checked = await admitted.ask(query, seconds, until_deadline(context))
        response = await asyncio.to_thread(reviews.encode_checked, record, checked)
        return response.SerializeToString()

    async def review_game(self, read: _Review, context: Context) -> bytes:
        """ReviewGame. Searches the positions in order, each with an equal share of the remaining time."""
        request, record = read
        objective = analysis.objective(request.objective)
        seconds = analysis.time_limit(request, analysis.BATCH_TIME_LIMIT_SECONDS)
        until = until_deadline(context)
        if record is not None:
            check_right(POSITION_SEARCHES)
        else:
            runner = SlowRunner(self._reader, RECORD_BYTES, context, "ReviewGame")
            record = await self._games.export_game(fields.game_id(request.game_id), caller(context), runner)
        found = []
        with self._pool.admit(current_origin()) as admitted:
            checked, spent = await admitted.ask_timed(RecordQuery(record, is_review=True), seconds, until)
            _check(checked, request)
            for index, move in enumerate(checked.to_review):
                seconds = max(0.0, seconds - spent)
                left = left_until(seconds, until)
                if left <= 0:
                    break
                share = left / (len(checked.to_review) - index)
                best, spent = await admitted.ask_timed(
                    BestTurnQuery(move.situation, objective, move.kept), share, until
                )
                found.append(reviews.encode_review(move, best, objective))
        is_complete = checked.is_complete and len(found) == len(checked.to_review)
        return reviews.encode_reviews(found, is_complete=is_complete).SerializeToString()


async def parse_position(request: pb.ParsePositionRequest, _context: Context) -> bytes:
    """ParsePosition."""
    return reviews.parse_text(request).SerializeToString()


async def format_position(request: pb.FormatPositionRequest, _context: Context) -> bytes:
    """FormatPosition."""
    return pb.FormatPositionResponse(text=reviews.format_message(request)).SerializeToString()


def _check(checked: CheckedRecord, request: pb.ReviewGameRequest) -> None:
    """Raises InvalidRequest if a record breaks a rule."""
    if checked.fault:
        raise reviews.invalid_record(request.WhichOneof("subject") or "subject", checked.fault)


def _read_explanation(data: bytes) -> Generator[None, None, _Explanation]:
    request = fields.decode(pb.ExplainTurnRequest, data, most_melds("table_before"), most_melds("table_after"))
    yield
    return request, reviews.turn_to_explain(request)


def _read_import(data: bytes) -> Generator[None, None, _Import]:
    request = fields.decode(pb.ImportRecordRequest, data, _MOVES)
    if request.WhichOneof("source") is None:
        raise InvalidRequest(FieldFault("source", "expected one of record, text"))
    record = yield from record_in_steps(request)
    return request, record


def _read_review(data: bytes) -> Generator[None, None, _Review]:
    request = fields.decode(pb.ReviewGameRequest, data, _MOVES)
    match request.WhichOneof("subject"):
        case None:
            raise InvalidRequest(FieldFault("subject", "expected one of record, text, game_id"))
        case "game_id":
            return request, None
        case _:
            record = yield from record_in_steps(request)
            return request, record
