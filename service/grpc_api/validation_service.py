"""ValidationService on grpc.aio: decode, judge, encode. It needs no store and no seat."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final

import grpc

from service.errors import ShuttingDown
from service.grpc_api.call_origin import current_origin
from service.grpc_api.handlers import Context, Handler, Service, deadline_of
from service.grpc_api.turn_validator import Validator
from service.runtime.admission import Admission
from service.runtime.slow_calls import SlowCalls, Steps, in_one_step

NAME: Final = "rummikub.v1.ValidationService"


def path_of(rpc: str) -> str:
    """Returns the path of an RPC."""
    return f"/{NAME}/{rpc}"


def _steps_of(answer: Callable[[bytes], bytes]) -> Callable[[bytes], Steps]:
    return lambda data: in_one_step(answer, data)


class ValidationServicer:
    """The RPCs of ValidationService.

    Args:
        validation: Answers the requests.
        slow_calls: Runs slow calls.
        stopping: Set when the server stops.
        streams: Bounds the open streams.
    """

    def __init__(
        self,
        validation: Validator,
        slow_calls: SlowCalls,
        stopping: asyncio.Event,
        streams: Admission,
    ) -> None:
        self._validation = validation
        self._slow_calls = slow_calls
        self._stopping = stopping
        self._stream_admission = streams
        self._waiting: set[asyncio.Task[object]] = set()
        """The streams that wait for their client or for an answer, and send nothing."""

    def service(self) -> Service:
        """Returns the service with its handlers."""
        answers = self._validation
        handlers = {
            "ValidateMelds": self._unary("ValidateMelds", answers.melds_at_once, _steps_of(answers.validate_melds)),
            "ValidateTurn": self._unary("ValidateTurn", answers.turn_at_once, answers.turn_in_steps),
            "BatchValidateTurns": self._unary("BatchValidateTurns", lambda _: None, answers.batch),
            "StreamValidateTurns": grpc.stream_stream_rpc_method_handler(self.stream_validate_turns),
            "ScoreRound": self._unary("ScoreRound", answers.score_at_once, _steps_of(answers.score_round)),
            "ListRulesets": self._unary("ListRulesets", answers.rulesets_at_once, _steps_of(answers.list_rulesets)),
            "ListMessages": self._unary("ListMessages", answers.messages_at_once, _steps_of(answers.list_messages)),
        }
        return Service(NAME, handlers)

    def _unary(self, rpc: str, at_once: Callable[[bytes], bytes | None], steps: Callable[[bytes], Steps]) -> Handler:
        """Returns a handler that answers fast calls itself and leaves the rest to SlowCalls."""

        async def handle(data: bytes, context: Context) -> bytes:
            response = at_once(data)
            return await self._run_slow(rpc, data, context, steps(data)) if response is None else response

        return grpc.unary_unary_rpc_method_handler(handle)

    async def _run_slow(self, rpc: str, data: bytes, context: Context, steps: Steps) -> bytes:
        response: bytes = await self._slow_calls.answer(
            current_origin(), path_of(rpc), len(data), deadline_of(context), steps
        )
        return response

    async def stream_validate_turns(self, requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
        """StreamValidateTurns."""
        answers = self._validation.stream()
        with self._stream_admission.holding(current_origin()):
            while True:
                with self._ended_by_stopping():
                    request = await anext(requests, None)
                    if request is None:
                        return
                    response = answers.at_once(request)
                    if response is None:
                        response = await self._run_slow(
                            "StreamValidateTurns", request, context, answers.in_steps(request)
                        )
                yield response

    @contextlib.contextmanager
    def _ended_by_stopping(self) -> Iterator[None]:
        """Lets `end_streams` end a stream with ShuttingDown while it waits for its client or for its answer.

        Not while it sends: a task that is cancelled there cannot report why.
        """
        if self._stopping.is_set():
            raise ShuttingDown
        task = asyncio.current_task()
        assert task is not None, "a handler runs in a task"  # noqa: S101 - for the type
        self._waiting.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if self._stopping.is_set():
                raise ShuttingDown from None
            raise
        finally:
            self._waiting.discard(task)

    def end_streams(self) -> None:
        """Ends the open streams of a stopping server; clients retry at another one."""
        for task in self._waiting:
            task.cancel()
