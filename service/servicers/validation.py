"""ValidationService: decode, ask the rules, encode. Stateless: no store, no seat."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

from engine.presets import PRESET_SOURCES, PRESETS
from engine.rules import judge
from engine.ruleset import Ruleset
from engine.scoring import score_round
from rummikub.v1 import validation_service_pb2 as pb
from service import codec
from service.faults import ShuttingDown
from service.servicers.rpc import Context, Service, stream, unary

_PRESETS_CURSOR = r"\d{1,3}"


class ValidationServicer:
    """The RPCs of ValidationService.

    Args:
        stopping: Set when the server stops: streams end then.
    """

    def __init__(self, stopping: asyncio.Event) -> None:
        self._stopping = stopping
        self._streams: set[asyncio.Task[object]] = set()

    def service(self) -> Service:
        """The service to serve."""
        handlers = {
            "ValidateMelds": unary(pb.ValidateMeldsRequest, self.validate_melds),
            "ValidateTurn": unary(pb.ValidateTurnRequest, self.validate_turn),
            "BatchValidateTurns": unary(pb.BatchValidateTurnsRequest, self.batch_validate_turns),
            "StreamValidateTurns": stream(pb.StreamValidateTurnsRequest, self.stream_validate_turns),
            "ScoreRound": unary(pb.ScoreRoundRequest, self.score_round),
            "ListRulesets": unary(pb.ListRulesetsRequest, self.list_rulesets),
        }
        return Service("rummikub.v1.ValidationService", handlers)

    async def validate_melds(self, request: pb.ValidateMeldsRequest, _context: Context) -> bytes:
        """ValidateMelds."""
        rules = codec.ruleset(request.ruleset)
        melds = codec.melds(request.melds, "melds")
        readings = (codec.encode_reading(meld, place, rules) for place, meld in enumerate(melds))
        return pb.ValidateMeldsResponse(melds=readings).SerializeToString()

    async def validate_turn(self, request: pb.ValidateTurnRequest, _context: Context) -> bytes:
        """ValidateTurn."""
        return _judged(request, codec.ruleset(request.ruleset)).SerializeToString()

    async def batch_validate_turns(self, request: pb.BatchValidateTurnsRequest, _context: Context) -> bytes:
        """BatchValidateTurns."""
        default = codec.ruleset(request.ruleset)
        answers = []
        for place, turn in enumerate(codec.turns(request)):
            field = f"turns[{place}]."
            rules = codec.ruleset(turn.ruleset, field) if turn.HasField("ruleset") else default
            answers.append(_judged(turn, rules, field))
            await asyncio.sleep(0)  # other calls are not to wait for a long batch
        return pb.BatchValidateTurnsResponse(turns=answers).SerializeToString()

    async def stream_validate_turns(
        self, requests: AsyncIterator[pb.StreamValidateTurnsRequest]
    ) -> AsyncIterator[bytes]:
        """StreamValidateTurns."""
        with self._ended_by_stopping():
            async for answer in self._answers(requests):
                yield answer

    async def _answers(self, requests: AsyncIterator[pb.StreamValidateTurnsRequest]) -> AsyncIterator[bytes]:
        rules = Ruleset()
        async for request in requests:
            if request.turn.HasField("ruleset"):
                rules = codec.ruleset(request.turn.ruleset, "turn.")
            correlation_id = codec.correlation_id(request.correlation_id)
            answer = _judged(request.turn, rules, "turn.")
            yield pb.StreamValidateTurnsResponse(turn=answer, correlation_id=correlation_id).SerializeToString()

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


def _judged(request: pb.ValidateTurnRequest, rules: Ruleset, field: str = "") -> pb.ValidateTurnResponse:
    return codec.encode_judgement(judge(codec.play(request, rules, field)))
