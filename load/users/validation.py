"""The hot path: other people's back ends that have every drag of a tile judged; and the same calls for nothing."""

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
"""How many turns go over one stream."""

TURNS: Final = tuple(to_send(turn) for turn in read())


class ValidationUser(GrpcUser):
    """A back end that asks about turns: one by one, melds only, a hundred at once, over a stream."""

    wait_time = constant_throughput(TASKS_A_SECOND)
    weight = 4
    takes_part_by: ClassVar[tuple[str, ...]] = ("ValidateTurn",)

    def target(self) -> str:
        """The listener of validation, which may be one of its own."""
        return self.option("validation_host") or super().target()

    @task(160)
    def validate_turn(self) -> None:
        """One turn."""
        turn = random.choice(TURNS)
        self.check_turn("ValidateTurn", turn, self.service.validation.ValidateTurn(turn.turn, timeout=CALL_SECONDS))

    @task(40)
    def validate_melds(self) -> None:
        """The melds of one turn."""
        turn = random.choice(TURNS)
        self.check_melds(turn, self.service.validation.ValidateMelds(turn.melds, timeout=CALL_SECONDS))

    @task(1)
    def batch_validate_turns(self) -> None:
        """Many turns in one message."""
        turns = random.sample(TURNS, BATCH)
        request = BatchValidateTurnsRequest(turns=[turn.turn for turn in turns])
        self.check_batch(turns, self.service.validation.BatchValidateTurns(request, timeout=CALL_SECONDS))

    @task(4)
    def stream_validate_turns(self) -> None:
        """Some turns over a stream, each sent when the one before is answered."""
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
        """Reports an answer that is not the recorded one."""
        found = reasons_of(answer.violations)
        if found != turn.reasons:
            self.report.wrong(name, f"{names_of(found)} instead of {names_of(turn.reasons)}")

    def check_melds(self, turn: TurnToSend, answer: ValidateMeldsResponse) -> None:
        """Reports readings that are not the recorded ones."""
        found = [reasons_of(meld.violations) for meld in answer.melds]
        if found != turn.meld_reasons:
            self.report.wrong("ValidateMelds", f"{found} instead of {turn.meld_reasons}")

    def check_batch(self, turns: list[TurnToSend], answer: BatchValidateTurnsResponse) -> None:
        """Reports every answer of a batch that is not the recorded one."""
        if len(answer.turns) != len(turns):
            self.report.wrong("BatchValidateTurns", f"{len(answer.turns)} answers to {len(turns)} turns")
        for turn, one in zip(turns, answer.turns, strict=False):  # their number was checked
            self.check_turn("BatchValidateTurns", turn, one)


class BaselineUser(ValidationUser):
    """Sends the same bytes to the server that does nothing."""

    sort = BASELINE
    fixed_count = 2
    takes_part_by: ClassVar[tuple[str, ...]] = ()

    def target(self) -> str:
        """The server that does nothing."""
        return self.option("baseline_host")

    def check_turn(self, name: str, turn: TurnToSend, answer: ValidateTurnResponse) -> None:
        """Nothing was asked."""

    def check_melds(self, turn: TurnToSend, answer: ValidateMeldsResponse) -> None:
        """Nothing was asked."""

    def check_batch(self, turns: list[TurnToSend], answer: BatchValidateTurnsResponse) -> None:
        """Nothing was asked."""


BaselineUser.tasks = [
    BaselineUser.validate_turn,
    BaselineUser.validate_melds,
    BaselineUser.batch_validate_turns,
    BaselineUser.stream_validate_turns,
]
"""In place of those that it has from its base class with their weights: a baseline needs enough calls of each."""


def _until_none(
    questions: "Queue[StreamValidateTurnsRequest | None]",
) -> Iterator[StreamValidateTurnsRequest]:
    while (question := questions.get()) is not None:
        yield question
