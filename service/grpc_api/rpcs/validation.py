"""ValidationService: judging turns, reading melds, scoring; rulesets and texts. Its RPCs need no store and no seat.

Both transports serve its rows, which are functions from bytes to bytes: grpc.aio by ValidationRpc.handler, the
completion queue by fast_listener.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from operator import attrgetter
from typing import Final

import grpc
from google.protobuf.message import Message

from engine.discard.presets import PRESETS as DISCARD_PRESETS
from engine.discard.ruleset import Preset as DiscardPreset
from engine.family import named_rulesets
from engine.melding.grid.rules import judge_grid
from engine.melding.presets import PRESETS
from engine.melding.ruleset import Preset
from engine.melding.scoring import score_round
from rummikub.v1 import validation_service_pb2 as pb
from service.codec import discard, fields, messages, rulesets
from service.codec import validation as codec
from service.codec.tiles import bounds_of_tables
from service.codec.turn_validator import AT_ONCE_BYTES_MAX, StreamValidator, Validator
from service.errors import ShuttingDown
from service.grpc_api.call_origin import current_origin
from service.grpc_api.handlers import Context, Handler, deadline_of
from service.runtime.admission import Admission
from service.runtime.slow_calls import SlowCalls, Steps, in_one_step

NAME: Final = "rummikub.v1.ValidationService"

_PRESETS_CURSOR: Final = r"\d{1,3}"


class Streams:
    """The open streams of one listener on grpc.aio.

    Args:
        admission: Bounds how many are open.
        stopping: Set when the server stops.
    """

    def __init__(self, admission: Admission, stopping: asyncio.Event) -> None:
        self.admission = admission
        self._stopping = stopping
        self._waiting: set[asyncio.Task[object]] = set()
        """The streams that wait for their client or for an answer, and send nothing."""

    @contextlib.contextmanager
    def ended_by_stopping(self) -> Iterator[None]:
        """Lets `end` end a stream with ShuttingDown while it waits for its client or for its answer.

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

    def end(self) -> None:
        """Ends the open streams of a stopping server; clients retry at another one."""
        for task in self._waiting:
            task.cancel()


@dataclass(frozen=True, slots=True)
class ValidationBackend:
    """What the RPCs of a listener use.

    Attributes:
        validator: Judges turns and reads melds.
        slow_calls: Runs what is not answered at once.
        streams: The open streams.
    """

    validator: Validator
    slow_calls: SlowCalls
    streams: Streams


@dataclass(frozen=True, slots=True)
class ValidationRpc:
    """An RPC of ValidationService.

    Attributes:
        request: Its request. The RPC has its name, without "Request".
        steps: Finds the function that returns the response in steps; of a stream it is not used.
        at_once: Finds the function that returns it within a moment; None if it may take longer or is an error.
        stream: Makes the validator of one stream; None: the RPC is unary.
    """

    request: type[Message]
    steps: Callable[[Validator], Callable[[bytes], Steps]]
    at_once: Callable[[Validator], Callable[[bytes], bytes | None]] = lambda _: lambda _: None
    stream: Callable[[Validator], StreamValidator] | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.request.DESCRIPTOR.name.removesuffix("Request")

    @property
    def path(self) -> str:
        """Its path."""
        return f"/{NAME}/{self.name}"

    def handler(self, backend: ValidationBackend) -> Handler:
        """Returns its handler for grpc.aio. It answers fast calls itself and leaves the rest to SlowCalls."""
        at_once, steps, path = self.at_once(backend.validator), self.steps(backend.validator), self.path
        stream, streams = self.stream, backend.streams

        async def run_slow(data: bytes, context: Context, steps: Steps) -> bytes:
            deadline = deadline_of(context)
            response: bytes = await backend.slow_calls.answer(current_origin(), path, len(data), deadline, steps)
            return response

        async def handle(data: bytes, context: Context) -> bytes:
            response = at_once(data)
            return await run_slow(data, context, steps(data)) if response is None else response

        async def handle_stream(requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
            assert stream is not None, "only a row with `stream` has this handler"  # noqa: S101 - for the type
            answers = stream(backend.validator)
            with streams.admission.holding(current_origin()):
                while True:
                    with streams.ended_by_stopping():
                        request = await anext(requests, None)
                        if request is None:
                            return
                        response = answers.at_once(request)
                        if response is None:
                            response = await run_slow(request, context, answers.in_steps(request))
                    yield response

        if stream is not None:
            return grpc.stream_stream_rpc_method_handler(handle_stream)
        return grpc.unary_unary_rpc_method_handler(handle)


def _no_steps(_data: bytes) -> Steps:
    raise AssertionError


def _short(request: type[Message], answer: Callable[[bytes], bytes]) -> ValidationRpc:
    """Returns the row of an RPC that answers short requests within a moment."""

    def at_once(data: bytes) -> bytes | None:
        return answer(data) if len(data) <= AT_ONCE_BYTES_MAX else None

    return ValidationRpc(request, lambda _: partial(in_one_step, answer), lambda _: at_once)


def _validate_placement(data: bytes) -> bytes:
    request = fields.decode(pb.ValidatePlacementRequest, data, *bounds_of_tables("table_before", "table_after"))
    ruleset = rulesets.ruleset(request.ruleset) if request.HasField("ruleset") else PRESETS[Preset.CROSS]
    return codec.encode_grid_judgement(judge_grid(codec.placement(request, ruleset))).SerializeToString()


def _validate_hand(data: bytes) -> bytes:
    request = fields.decode(pb.ValidateHandRequest, data)
    return discard.judge_hand_of(request, rulesets.discard_ruleset(request.ruleset))


def _validate_discard_turn(data: bytes) -> bytes:
    request = fields.decode(pb.ValidateDiscardTurnRequest, data)
    is_chosen = request.HasField("ruleset")
    ruleset = rulesets.discard_ruleset(request.ruleset) if is_chosen else DISCARD_PRESETS[DiscardPreset.OKEY_101]
    return discard.judge_turn_of(request, ruleset)


def _score_round(data: bytes) -> bytes:
    request = fields.decode(pb.ScoreRoundRequest, data)
    ruleset = rulesets.ruleset(request.ruleset)
    to_score = codec.round_to_score(request, ruleset)
    return codec.encode_score(score_round(1, to_score.end, to_score.standings, ruleset)).SerializeToString()


def _list_rulesets(data: bytes) -> bytes:
    request = fields.decode(pb.ListRulesetsRequest, data)
    size = fields.page_size(request.page_size, default=50, most=50)
    first = int(fields.page_cursor(request.page_token, _PRESETS_CURSOR) or 0)
    presets = named_rulesets()
    named = (
        pb.NamedRuleset(
            ruleset=rulesets.encode_ruleset(one.ruleset),
            settings=rulesets.encode_settings(one.settings),
            name=one.ruleset.preset.name,
            **asdict(one.text),
        )
        for one in presets[first : first + size]
    )
    token = fields.page_token(str(first + size) if first + size < len(presets) else "")
    return pb.ListRulesetsResponse(rulesets=named, next_page_token=token).SerializeToString()


def _list_messages(data: bytes) -> bytes:
    return messages.list_messages(fields.decode(pb.ListMessagesRequest, data)).SerializeToString()


RPCS: Final[tuple[ValidationRpc, ...]] = (
    ValidationRpc(
        pb.ValidateMeldsRequest,
        lambda validator: partial(in_one_step, validator.validate_melds),
        attrgetter("melds_at_once"),
    ),
    ValidationRpc(pb.ValidateTurnRequest, attrgetter("turn_in_steps"), attrgetter("turn_at_once")),
    ValidationRpc(pb.BatchValidateTurnsRequest, attrgetter("batch")),
    ValidationRpc(pb.StreamValidateTurnsRequest, lambda _: _no_steps, stream=Validator.stream),
    _short(pb.ValidatePlacementRequest, _validate_placement),
    _short(pb.ValidateHandRequest, _validate_hand),
    _short(pb.ValidateDiscardTurnRequest, _validate_discard_turn),
    _short(pb.ScoreRoundRequest, _score_round),
    _short(pb.ListRulesetsRequest, _list_rulesets),
    _short(pb.ListMessagesRequest, _list_messages),
)
