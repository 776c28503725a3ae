"""A user that calls AnalysisService: hints, and whether a legal turn exists."""

import random
from typing import ClassVar, Final

from google.protobuf.duration_pb2 import Duration
from locust import constant_throughput, task

from load.messages import TurnToSend
from load.users.grpc_user import CALL_SECONDS, GrpcUser
from load.users.validation import TURNS
from rummikub.v1.analysis_service_pb2 import (
    EXISTENCE_NO,
    EXISTENCE_YES,
    BatchSuggestTurnsRequest,
    Existence,
    HasLegalTurnRequest,
    SuggestTurnRequest,
)

TASKS_A_SECOND: Final = 2.0
SEARCH_TIME: Final = Duration(nanos=200_000_000)
BATCH: Final = 4


class AnalysisUser(GrpcUser):
    """A front end that requests hints; the service may refuse some of them with ANALYSIS_BUSY."""

    wait_time = constant_throughput(TASKS_A_SECOND)
    weight = 1
    takes_part_by: ClassVar[tuple[str, ...]] = ("SuggestTurn", "HasLegalTurn", "BatchSuggestTurns")

    @task(3)
    def suggest_turn(self) -> None:
        """Requests the best turn of a position."""
        turn = random.choice(TURNS)
        request = SuggestTurnRequest(position=turn.position, time_limit=SEARCH_TIME)
        answer = self.service.analysis.SuggestTurn(request, timeout=CALL_SECONDS)
        found = answer.suggestion
        self._check("SuggestTurn", turn, found.play_exists)
        if found.play_exists == EXISTENCE_YES and not (found.table.melds and found.tiles_played and found.steps):
            self.report.wrong("SuggestTurn", "a turn exists, but the answer has none")

    @task(3)
    def has_legal_turn(self) -> None:
        """Asks whether a legal turn exists."""
        turn = random.choice(TURNS)
        request = HasLegalTurnRequest(position=turn.position, time_limit=SEARCH_TIME)
        answer = self.service.analysis.HasLegalTurn(request, timeout=CALL_SECONDS)
        self._check("HasLegalTurn", turn, answer.exists)

    @task(1)
    def batch_suggest_turns(self) -> None:
        """Requests the best turns of several positions."""
        turns = random.sample(TURNS, BATCH)
        request = BatchSuggestTurnsRequest(positions=[turn.position for turn in turns], time_limit=SEARCH_TIME)
        answer = self.service.analysis.BatchSuggestTurns(request, timeout=CALL_SECONDS)
        for turn, found in zip(turns, answer.suggestions, strict=True):
            self._check("BatchSuggestTurns", turn, found.play_exists)

    def _check(self, name: str, turn: TurnToSend, exists: Existence.ValueType) -> None:
        """Reports an answer that contradicts the recorded one; "unknown" contradicts nothing."""
        if exists == (EXISTENCE_NO if turn.can_play else EXISTENCE_YES):
            self.report.wrong(name, f"{Existence.Name(exists)} where can_play is {turn.can_play}")
