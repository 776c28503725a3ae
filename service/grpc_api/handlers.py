"""Handlers of raw bytes: they decode the request within the call, so that malformed bytes get the right status."""

import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import grpc
from google.protobuf.message import Message
from grpc.aio import ServicerContext

from service.codec.fields import COUNTED_BYTES, decode
from service.codec.submessages import has_too_many_fields
from service.errors import RequestTooLarge
from service.grpc_api.call_origin import current_origin
from service.grpc_api.request_arrival import seconds_left
from service.runtime.slow_calls import SlowCalls, Steps, completed

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Context: TypeAlias = "ServicerContext[Any, Any]"
_M = TypeVar("_M", bound=Message)
_R = TypeVar("_R")

FIELDS_MAX: Final = 4_000
"""Most fields of such a request, unknown ones too. They are counted in the event loop, 1,000 in a millisecond."""
SUBMESSAGES_MAX: Final = 1_000
"""Most submessages of a request that is decoded at once: none needs as many. Decoded, one takes up to 100 bytes."""
SHORT_BYTES: Final = 512
"""Requests up to this size are read, and their plays judged, within a few milliseconds. Tables in games are smaller."""
HISTORY_BYTES: Final = 65_536
"""The bytes that a read of a game's history holds: a page of it, and the game."""
RECORD_BYTES: Final = 262_144
"""The bytes that counts a read of a whole history that keeps all changes."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service: its full name, and the handlers of its RPCs."""

    name: str
    handlers: Mapping[str, Handler]


def deadline_of(context: Context) -> float:
    """Returns a call's deadline by time.monotonic(), the event loop's clock; infinity without one."""
    return time.monotonic() + seconds_left(context)


def unary(message_type: type[_M], call: Callable[[_M, Context], Awaitable[bytes]]) -> Handler:
    """Returns a unary-unary handler for requests with few submessages (SUBMESSAGES_MAX, FIELDS_MAX)."""

    async def handle(data: bytes, context: Context) -> bytes:
        return await call(_decode_small(message_type, data), context)

    return grpc.unary_unary_rpc_method_handler(handle)


class RequestReader:
    """Decodes requests with many tiles: short ones at once, long ones in SlowCalls.

    Args:
        slow_calls: Runs slow work.
    """

    def __init__(self, slow_calls: SlowCalls) -> None:
        self._slow_calls = slow_calls

    def unary(
        self,
        rpc: str,
        read: Callable[[bytes], Generator[None, None, _R]],
        call: Callable[[_R, Context], Awaitable[bytes]],
    ) -> Handler:
        """Returns a unary-unary handler.

        Args:
            rpc: The name of the RPC.
            read: Decodes a request, in steps. Raises InvalidRequest, MalformedRequest.
            call: Answers the decoded request.
        """

        async def handle(data: bytes, context: Context) -> bytes:
            if len(data) <= SHORT_BYTES:
                request = completed(read(data))
            else:
                request = await self.run_slow(rpc, len(data), context, read(data))
            return await call(request, context)

        return grpc.unary_unary_rpc_method_handler(handle)

    async def run_slow(self, rpc: str, size: int, context: Context, steps: Steps) -> Any:  # noqa: ANN401 - as the steps return
        """Runs steps in SlowCalls and returns their result."""
        return await self._slow_calls.answer(current_origin(), rpc, size, deadline_of(context), steps)


@dataclass(frozen=True, slots=True)
class SlowRunner:
    """Runs the slow part of one call in SlowCalls (history.OffLoopRunner).

    Attributes:
        reader: Has the SlowCalls.
        size: The bytes that it holds meanwhile.
        context: The call.
        rpc: The name of its RPC.
    """

    reader: RequestReader
    size: int
    context: Context
    rpc: str

    async def run(self, steps: Steps) -> Any:  # noqa: ANN401 - as the steps return
        return await self.reader.run_slow(self.rpc, self.size, self.context, steps)


def writing(message_type: type[_M], call: Callable[[_M, Context], Awaitable[None]]) -> Handler:
    """Returns a unary-stream handler for requests as of `unary`, which writes its responses to the context.

    While the stream is open, it has neither the bytes of the request nor unknown fields.
    """

    async def handle(data: bytes, context: Context) -> None:
        request = _decode_small(message_type, data)
        request.DiscardUnknownFields()
        del data
        await call(request, context)

    return grpc.unary_stream_rpc_method_handler(handle)


def _decode_small(message_type: type[_M], data: bytes) -> _M:
    """Returns a parsed message. Raises RequestTooLarge, MalformedRequest."""
    if len(data) > COUNTED_BYTES and has_too_many_fields(data, message_type, SUBMESSAGES_MAX, FIELDS_MAX):
        raise RequestTooLarge
    return decode(message_type, data)
