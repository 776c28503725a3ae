"""ValidationService: decode, ask the rules, encode. Stateless: no store, no seat."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final

import grpc

from service.errors import ShuttingDown
from service.grpc_api.handlers import Context, Handler, Service, deadline_of, peer_of
from service.grpc_api.turn_validator import Validator
from service.runtime.slow_calls import SlowCalls, Steps, in_one_step

NAME: Final = "rummikub.v1.ValidationService"


def path_of(rpc: str) -> str:
    """Returns the path of an RPC in a request."""
    return f"/{NAME}/{rpc}"


def _steps_of(call: Callable[[bytes], bytes]) -> Callable[[bytes], Steps]:
    return lambda data: in_one_step(call, data)


class ValidationServicer:
    """The RPCs of ValidationService.

    Args:
        validation: What answers.
        slow_calls: Answers what may take long.
        stopping: Set when the server stops: streams end then.
    """

    def __init__(self, validation: Validator, slow_calls: SlowCalls, stopping: asyncio.Event) -> None:
        self._validation = validation
        self._slow_calls = slow_calls
        self._stopping = stopping
        self._streams: set[asyncio.Task[object]] = set()

    def service(self) -> Service:
        """Returns the service to serve."""
        answers = self._validation
        handlers = {
            "ValidateMelds": self._unary("ValidateMelds", answers.melds_at_once, _steps_of(answers.validate_melds)),
            "ValidateTurn": self._unary("ValidateTurn", answers.turn_at_once, answers.turn_in_steps),
            "BatchValidateTurns": self._unary("BatchValidateTurns", lambda _: None, answers.batch),
            "StreamValidateTurns": grpc.stream_stream_rpc_method_handler(self.stream_validate_turns),
            "ScoreRound": self._unary("ScoreRound", answers.score_at_once, _steps_of(answers.score_round)),
            "ListRulesets": self._unary("ListRulesets", answers.rulesets_at_once, _steps_of(answers.list_rulesets)),
        }
        return Service(NAME, handlers)

    def _unary(self, rpc: str, at_once: Callable[[bytes], bytes | None], steps: Callable[[bytes], Steps]) -> Handler:
        """Returns a handler that answers at once what takes only a moment, and leaves the rest to another thread."""

        async def handle(data: bytes, context: Context) -> bytes:
            answer = at_once(data)
            return await self._slowly(rpc, data, context, steps(data)) if answer is None else answer

        return grpc.unary_unary_rpc_method_handler(handle)

    async def _slowly(self, rpc: str, data: bytes, context: Context, steps: Steps) -> bytes:
        answer: bytes = await self._slow_calls.answer(
            (peer_of(context), path_of(rpc)), len(data), deadline_of(context), steps
        )
        return answer

    async def stream_validate_turns(self, requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
        """StreamValidateTurns."""
        answers = self._validation.stream()
        with self._ended_by_stopping():
            async for request in requests:
                answer = answers.at_once(request)
                if answer is None:
                    steps = in_one_step(answers, request)
                    answer = await self._slowly("StreamValidateTurns", request, context, steps)
                yield answer

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
