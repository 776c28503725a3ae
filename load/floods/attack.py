"""What all floods share: the counters of an attack, its connections, and workers that repeat their work."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import grpc.aio

from load.calls import OWN_CONNECTION, reason_of

T = TypeVar("T")

UNLIMITED: Final = (("grpc.max_receive_message_length", -1), *OWN_CONNECTION)


@dataclass
class Attack:
    """The arguments and the counters of an attack.

    Attributes:
        target: The address to attack.
        validation: The server's address for ValidationService.
        ends: The number of calls by outcome.
        notes: Other observations, for the bounds of the flood.
        begun: Set when the attack begins, for floods that prepare something.
    """

    target: str
    validation: str = ""
    ends: Counter[str] = field(default_factory=Counter)
    notes: dict[str, Any] = field(default_factory=dict)
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def channels(self, count: int, target: str = "") -> AsyncIterator[list[grpc.aio.Channel]]:
        """Opens channels to the attacked address or another one, each with its own connection."""
        async with AsyncExitStack() as stack:
            opened = [grpc.aio.insecure_channel(target or self.target, UNLIMITED) for _ in range(count)]
            for channel in opened:
                await stack.enter_async_context(channel)
            yield opened

    async def count(self, call: Awaitable[T]) -> T | None:
        """Awaits a call and counts its outcome; returns the answer, None if it failed."""
        try:
            answer = await call
        except grpc.aio.AioRpcError as error:
            self.ends[f"{error.code().name} {reason_of(error)}".strip()[:60]] += 1
            return None
        self.ends["OK"] += 1
        return answer


def unary(channel: grpc.aio.Channel, path: str) -> Callable[..., "grpc.aio.UnaryUnaryCall[bytes, bytes]"]:
    """Returns a method of a channel that takes and returns bytes."""
    method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(path)
    return method


async def forever(workers: int, work: Callable[[int], Awaitable[object]]) -> None:
    """Runs workers, each of which repeats its work forever."""

    async def again(number: int) -> None:
        while True:
            await work(number)

    async with asyncio.TaskGroup() as tasks:
        for number in range(workers):
            tasks.create_task(again(number))
            await asyncio.sleep(0)  # its call is opened, and calls that have ended are counted
