"""ValidationService on grpc.aio: decode, judge, encode. It needs no store and no seat."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final

import grpc

from service.errors import ShuttingDown
from service.grpc_api.handlers import Context, Handler, Service, deadline_of, peer_of
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
        streams: Bounds the open streams; None: unbounded.
    """

    def __init__(
        self,
        validation: Validator,
        slow_calls: SlowCalls,
        stopping: asyncio.Event,
        streams: Admission | None = None,
    ) -> None:
        self._validation = validation
        self._slow_calls = slow_calls
        self._stopping = stopping
        self._stream_admission = streams
        self._streams: set[asyncio.Task[object]] = set()

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
            (peer_of(context), path_of(rpc)), len(data), deadline_of(context), steps
        )
        return response

    async def stream_validate_turns(self, requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
        """StreamValidateTurns."""
        answers = self._validation.stream()
        with self._admitted(peer_of(context)), self._ended_by_stopping():
            async for request in requests:
                response = answers.at_once(request)
                if response is None:
                    steps = in_one_step(answers, request)
                    response = await self._run_slow("StreamValidateTurns", request, context, steps)
                yield response

    @contextlib.contextmanager
    def _admitted(self, peer: str) -> Iterator[None]:
        """Counts a stream within the context. Raises Overloaded."""
        if self._stream_admission is None:
            yield
            return
        self._stream_admission.enter(peer)
        try:
            yield
        finally:
            self._stream_admission.leave(peer)

    @contextlib.contextmanager
    def _ended_by_stopping(self) -> Iterator[None]:
        """Lets `end_streams` end the stream in the context with ShuttingDown, even while it waits for its client."""
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
        """Ends the open streams of a stopping server; clients retry at another one."""
        for task in self._streams:
            task.cancel()
