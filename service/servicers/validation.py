"""ValidationService: decode, ask the rules, encode. Stateless: no store, no seat."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Final

import grpc

from service import packed
from service.calls import Method
from service.faults import ShuttingDown
from service.servicers.rpc import Context, Service, unary_bytes
from service.synchronous_boundary import SynchronousBoundary
from service.validation import Validation

NAME: Final = "rummikub.v1.ValidationService"


class ValidationServicer:
    """The RPCs of ValidationService.

    Args:
        validation: What answers.
        stopping: Set when the server stops: streams end then.
    """

    def __init__(self, validation: Validation, stopping: asyncio.Event) -> None:
        self._validation = validation
        self._stopping = stopping
        self._streams: set[asyncio.Task[object]] = set()

    def service(self) -> Service:
        """The service to serve."""
        handlers = {
            "ValidateMelds": unary_bytes(self._validation.validate_melds),
            "ValidateTurn": unary_bytes(self._validation.validate_turn),
            "BatchValidateTurns": grpc.unary_unary_rpc_method_handler(self.batch_validate_turns),
            "StreamValidateTurns": grpc.stream_stream_rpc_method_handler(self.stream_validate_turns),
            "ScoreRound": unary_bytes(self._validation.score_round),
            "ListRulesets": unary_bytes(self._validation.list_rulesets),
        }
        return Service(NAME, handlers)

    async def batch_validate_turns(self, data: bytes, _context: Context) -> bytes:
        """BatchValidateTurns."""
        answers = []
        for answer in self._validation.batch(data):
            answers.append(answer)
            await asyncio.sleep(0)  # other calls are not to wait for a long batch
        return packed.batch_answer(answers)

    async def stream_validate_turns(self, requests: AsyncIterator[bytes], _context: Context) -> AsyncIterator[bytes]:
        """StreamValidateTurns."""
        answer = self._validation.stream()
        with self._ended_by_stopping():
            async for request in requests:
                yield answer(request)

    @contextlib.contextmanager
    def _ended_by_stopping(self) -> Iterator[None]:
        """Around a stream, which may wait for its client forever: `end_streams` ends it with ShuttingDown."""
        task = asyncio.current_task()
        assert task is not None, "a handler runs in a task"  # noqa: S101 - for the type
        self._streams.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if self._stopping.is_set():
                raise ShuttingDown from None
            raise
        finally:
            self._streams.discard(task)

    def end_streams(self) -> None:
        """Ends the open streams of a server that stops; what was not answered is to be sent to another."""
        for task in self._streams:
            task.cancel()


def synchronous_service(validation: Validation, boundary: SynchronousBoundary) -> Mapping[str, Method]:
    """The same RPCs for a synchronous server."""

    def batch(data: bytes) -> bytes:
        return packed.batch_answer(boundary.until_given_up(validation.batch(data)))

    def path(rpc: str) -> str:
        return f"/{NAME}/{rpc}"

    calls = {
        "BatchValidateTurns": batch,
        "ScoreRound": validation.score_round,
        "ListRulesets": validation.list_rulesets,
    }
    return {
        **{name: boundary.unary(path(name), call) for name, call in calls.items()},
        "ValidateTurn": boundary.unary(path("ValidateTurn"), validation.validate_turn, validation.turn_at_once),
        "ValidateMelds": boundary.unary(path("ValidateMelds"), validation.validate_melds, validation.melds_at_once),
        "StreamValidateTurns": boundary.stream(path("StreamValidateTurns"), validation.stream),
    }
