"""TurnService: decode, call the use case, encode."""

from rummikub.v1 import turn_service_pb2 as pb
from service import codec
from service.games import Games
from service.servicers.rpc import Context, Service, seat_mutation, unary


class TurnServicer:
    """The RPC of TurnService."""

    def __init__(self, games: Games) -> None:
        self._games = games

    def service(self) -> Service:
        """The service to serve."""
        return Service("rummikub.v1.TurnService", {"PlayTurn": unary(pb.PlayTurnRequest, self.play_turn)})

    async def play_turn(self, request: pb.PlayTurnRequest, context: Context) -> bytes:
        """PlayTurn."""
        turn = codec.turn_request(request)
        return await self._games.play_turn(turn, seat_mutation(request, context), codec.encode_turn)
