"""Rounds of a started game, and the players who leave it and return."""

from typing import Final

from engine.actions import Resign, ReturnToSeat, StartNextRound
from engine.melding.actions import RequestRedeal
from rummikub.v1 import turn_service_pb2 as pb
from service.grpc_api.rpc import Rpc, seat_action

RPCS: Final[tuple[Rpc, ...]] = (
    seat_action(
        pb.StartNextRoundRequest,
        pb.StartNextRoundResponse,
        lambda _: lambda seat, basis: StartNextRound(seat, basis.shuffle()),
        may_deal=True,
        limit=None,
    ),
    seat_action(
        pb.RequestRedealRequest,
        pb.RequestRedealResponse,
        lambda _: lambda seat, basis: RequestRedeal(seat, basis.shuffle()),
        may_deal=True,
    ),
    seat_action(pb.ResignGameRequest, pb.ResignGameResponse, lambda _: lambda seat, _: Resign(seat), limit=None),
    seat_action(pb.ReturnToSeatRequest, pb.ReturnToSeatResponse, lambda _: lambda seat, _: ReturnToSeat(seat)),
)
