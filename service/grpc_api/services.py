"""The services of RUMMIKUB_LISTEN and their RPCs, apart from ValidationService, whose RPCs both transports serve."""

from collections.abc import Mapping
from typing import Final

from service.grpc_api.rpc import Rpc
from service.grpc_api.rpcs import analysis, challenges, games, lobby, puzzles, records, rounds, turns

SERVICES: Final[Mapping[str, tuple[Rpc, ...]]] = {
    "rummikub.v1.GameService": (*lobby.RPCS, *games.RPCS),
    "rummikub.v1.TurnService": (*turns.RPCS, *rounds.RPCS),
    "rummikub.v1.AnalysisService": analysis.RPCS,
    "rummikub.v1.ChallengeService": challenges.RPCS,
    "rummikub.v1.PuzzleService": puzzles.RPCS,
    "rummikub.v1.RecordService": records.RPCS,
}
