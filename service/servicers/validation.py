"""ValidationService: decode, ask the rules, encode. Stateless: no store, no seat."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import grpc

from engine.presets import PRESET_SOURCES, PRESETS
from engine.scoring import score_round
from rummikub.v1 import validation_service_pb2 as pb
from service import codec, packed
from service.faults import ShuttingDown
from service.servicers.rpc import Context, Service, unary, unary_bytes
from service.validation import Validation

_PRESETS_CURSOR = r"\d{1,3}"


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
            "ScoreRound": unary(pb.ScoreRoundRequest, self.score_round),
            "ListRulesets": unary(pb.ListRulesetsRequest, self.list_rulesets),
        }
        return Service("rummikub.v1.ValidationService", handlers)

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

    async def score_round(self, request: pb.ScoreRoundRequest, _context: Context) -> bytes:
        """ScoreRound."""
        rules = codec.ruleset(request.ruleset)
        to_score = codec.round_to_score(request, rules)
        result = score_round(1, to_score.end, to_score.standings, rules)
        return codec.encode_score(result).SerializeToString()

    async def list_rulesets(self, request: pb.ListRulesetsRequest, _context: Context) -> bytes:
        """ListRulesets."""
        size = codec.page_size(request.page_size, default=50, most=50)
        first = int(codec.page_cursor(request.page_token, _PRESETS_CURSOR) or 0)
        presets = tuple(PRESETS.items())
        rulesets = (
            pb.NamedRuleset(
                ruleset=codec.encode_ruleset(rules),
                name=preset.name,
                source=PRESET_SOURCES[preset],
            )
            for preset, rules in presets[first : first + size]
        )
        following = str(first + size) if first + size < len(presets) else ""
        return pb.ListRulesetsResponse(
            rulesets=rulesets, next_page_token=codec.page_token(following)
        ).SerializeToString()
