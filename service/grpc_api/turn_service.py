"""TurnService: decodes, calls the use case, encodes."""

import time
from collections.abc import Generator

from rummikub.v1 import turn_service_pb2 as pb
from service.app.commands import TurnRequest
from service.app.drafts import DraftRequest
from service.app.games import Games
from service.codec import fields, turns
from service.codec.tiles import most_melds
from service.grpc_api.call_origin import current_origin
from service.grpc_api.handlers import (
    SHORT_BYTES,
    Context,
    RequestReader,
    Service,
    SlowRunner,
    answer,
    counted,
    seat_caller,
    seat_mutation,
    unary,
)
from service.runtime.rate_limit import RateLimit

_Turn = tuple[pb.PlayTurnRequest, TurnRequest, int]
"""A request, the turn in it, and its size in bytes."""
_Draft = tuple[DraftRequest, int]
"""A draft, and the size of its request in bytes."""


class TurnServicer:
    """The RPCs of TurnService.

    Args:
        games: The use cases.
        reader: Decodes requests with tables.
        drafts: Limits drafts.
        changes: Limits changes that are no turns.
    """

    def __init__(self, games: Games, reader: RequestReader, drafts: RateLimit, changes: RateLimit) -> None:
        self._games = games
        self._drafts = drafts
        self._changes = changes
        self._reader = reader

    def service(self) -> Service:
        """Returns the service with its handlers."""
        handlers = {
            "PlayTurn": self._reader.unary("PlayTurn", _read_turn, self.play_turn),
            "SaveDraft": self._reader.unary("SaveDraft", _read_draft, self.save_draft),
            "ClaimError": unary(pb.ClaimErrorRequest, counted(self._changes, self.claim_error)),
        }
        return Service("rummikub.v1.TurnService", handlers)

    async def play_turn(self, read: _Turn, context: Context) -> bytes:
        """PlayTurn."""
        request, turn, size = read
        judge = SlowRunner(self._reader, size, context, "PlayTurn") if size > SHORT_BYTES else None
        return await self._games.play_turn(turn, seat_mutation(request, context), turns.encode_turn, judge)

    async def save_draft(self, read: _Draft, context: Context) -> bytes:
        """SaveDraft."""
        draft, size = read
        sender = seat_caller(context)
        self._drafts.take(current_origin(), time.monotonic())
        judge = SlowRunner(self._reader, size, context, "SaveDraft") if size > SHORT_BYTES else None
        saved = await self._games.save_draft(draft, sender, judge)
        return pb.SaveDraftResponse(draft_number=saved.number, is_legal=saved.is_legal).SerializeToString()

    async def claim_error(self, request: pb.ClaimErrorRequest, context: Context) -> bytes:
        """ClaimError."""
        vote = turns.claim(request)
        return await self._games.claim_error(vote, seat_mutation(request, context), answer(pb.ClaimErrorResponse))


def _read_turn(data: bytes) -> Generator[None, None, _Turn]:
    request = fields.decode(pb.PlayTurnRequest, data, most_melds("play.table"))
    yield
    return request, turns.turn_request(request, data), len(data)


def _read_draft(data: bytes) -> Generator[None, None, _Draft]:
    request = fields.decode(pb.SaveDraftRequest, data, most_melds("draft.table"))
    yield
    return turns.draft_request(request), len(data)
