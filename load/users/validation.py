"""The users of validation: back ends that validate every drag of a tile, and a baseline with the same calls."""

import random
import time
from collections.abc import Iterator
from typing import ClassVar, Final

from gevent.queue import Queue
from locust import constant_throughput, task

from load.corpus.turns import read
from load.messages import TurnToSend, names_of, reasons_of, to_send
from load.thresholds import BASELINE
from load.users.grpc_user import CALL_SECONDS, GrpcUser
from rummikub.v1.validation_service_pb2 import (
    BatchValidateTurnsRequest,
    BatchValidateTurnsResponse,
    StreamValidateTurnsRequest,
    ValidateMeldsResponse,
    ValidateTurnResponse,
)

TASKS_A_SECOND: Final = 20.0
BATCH: Final = 100
DRAGS: Final = 10
"""The number of turns on one stream."""

TURNS: Final = tuple(to_send(turn) for turn in read())


class ValidationUser(GrpcUser):
    """A back end that validates turns one by one, melds alone, a hundred turns at once, and turns over a stream."""

    wait_time = constant_throughput(TASKS_A_SECOND)
    weight = 4
    takes_part_by: ClassVar[tuple[str, ...]] = ("ValidateTurn",)

    def target(self) -> str:
        """Returns the address of ValidationService."""
        return self.option("validation_host") or super().target()

    @task(160)
    def validate_turn(self) -> None:
        """Validates one turn."""
        turn = random.choice(TURNS)
        self.check_turn("ValidateTurn", turn, self.service.validation.ValidateTurn(turn.turn, timeout=CALL_SECONDS))

    @task(40)
    def validate_melds(self) -> None:
        """Validates the melds of one turn."""
        turn = random.choice(TURNS)
        self.check_melds(turn, self.service.validation.ValidateMelds(turn.melds, timeout=CALL_SECONDS))

    @task(1)
    def batch_validate_turns(self) -> None:
        """Validates many turns in one call."""
        turns = random.sample(TURNS, BATCH)
        request = BatchValidateTurnsRequest(turns=[turn.turn for turn in turns])
        self.check_batch(turns, self.service.validation.BatchValidateTurns(request, timeout=CALL_SECONDS))

    @task(4)
    def stream_validate_turns(self) -> None:
        """Validates turns over a stream; sends each after the answer to the previous one."""
        name = "StreamValidateTurns"
        questions: Queue[StreamValidateTurnsRequest | None] = Queue()
        with self.streaming(name):
            answers = self.service.validation.StreamValidateTurns(_until_none(questions), timeout=CALL_SECONDS)
            for turn in random.sample(TURNS, DRAGS):
                started = time.perf_counter()
                questions.put(StreamValidateTurnsRequest(turn=turn.turn))
                answer = next(answers)
                self.report.answered(name, started, answer.ByteSize())
                self.check_turn(name, turn, answer.turn)
            questions.put(None)
            if next(answers, None) is not None:
                self.report.wrong(name, "more answers than turns")

    def check_turn(self, name: str, turn: TurnToSend, answer: ValidateTurnResponse) -> None:
        """Reports an answer that differs from the recorded one."""
        found = reasons_of(answer.violations)
        if found != turn.reasons:
            self.report.wrong(name, f"{names_of(found)} instead of {names_of(turn.reasons)}")

    def check_melds(self, turn: TurnToSend, answer: ValidateMeldsResponse) -> None:
        """Reports readings that differ from the recorded ones."""
        found = [reasons_of(meld.violations) for meld in answer.melds]
        if found != turn.meld_reasons:
            self.report.wrong("ValidateMelds", f"{found} instead of {turn.meld_reasons}")

    def check_batch(self, turns: list[TurnToSend], answer: BatchValidateTurnsResponse) -> None:
        """Reports every answer of a batch that differs from the recorded one."""
        if len(answer.turns) != len(turns):
            self.report.wrong("BatchValidateTurns", f"{len(answer.turns)} answers to {len(turns)} turns")
        for turn, one in zip(turns, answer.turns, strict=False):  # the lengths were compared above
            self.check_turn("BatchValidateTurns", turn, one)


class BaselineUser(ValidationUser):
    """Sends the same bytes to the no-op server."""

    sort = BASELINE
    fixed_count = 2
    takes_part_by: ClassVar[tuple[str, ...]] = ()

    def target(self) -> str:
        """Returns the address of the no-op server."""
        return self.option("baseline_host")

    def check_turn(self, name: str, turn: TurnToSend, answer: ValidateTurnResponse) -> None:
        """Accepts the empty answer."""

    def check_melds(self, turn: TurnToSend, answer: ValidateMeldsResponse) -> None:
        """Accepts the empty answer."""

    def check_batch(self, turns: list[TurnToSend], answer: BatchValidateTurnsResponse) -> None:
        """Accepts the empty answer."""


BaselineUser.tasks = [
    BaselineUser.validate_turn,
    BaselineUser.validate_melds,
    BaselineUser.batch_validate_turns,
    BaselineUser.stream_validate_turns,
]
"""Replaces the inherited tasks and weights: a baseline needs enough calls of each RPC."""


def _until_none(
    questions: "Queue[StreamValidateTurnsRequest | None]",
) -> Iterator[StreamValidateTurnsRequest]:
    while (question := questions.get()) is not None:
        yield question
