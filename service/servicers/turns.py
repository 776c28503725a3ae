"""TurnService: decode, call the use case, encode."""

from rummikub.v1 import turn_service_pb2 as pb
from service import codec
from service.games import Games
from service.servicers.rpc import Context, Service, answer, seat_mutation, unary


class TurnServicer:
    """The RPCs of TurnService."""

    def __init__(self, games: Games) -> None:
        self._games = games

    def service(self) -> Service:
        """The service to serve."""
        handlers = {
            "PlayTurn": unary(pb.PlayTurnRequest, self.play_turn),
            "SaveDraft": unary(pb.SaveDraftRequest, self.save_draft),
            "ClaimError": unary(pb.ClaimErrorRequest, self.claim_error),
        }
        return Service("rummikub.v1.TurnService", handlers)

    async def play_turn(self, request: pb.PlayTurnRequest, context: Context) -> bytes:
        """PlayTurn."""
        turn = codec.turn_request(request)
        return await self._games.play_turn(turn, seat_mutation(request, context), codec.encode_turn)

    async def save_draft(self, request: pb.SaveDraftRequest, context: Context) -> bytes:
        """SaveDraft."""
        draft = codec.draft_request(request)
        return await self._games.save_draft(draft, seat_mutation(request, context), answer(pb.SaveDraftResponse))

    async def claim_error(self, request: pb.ClaimErrorRequest, context: Context) -> bytes:
        """ClaimError."""
        claim = codec.claim(request)
        return await self._games.claim_error(claim, seat_mutation(request, context), answer(pb.ClaimErrorResponse))
