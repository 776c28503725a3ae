"""A process that makes calls for validation_loads.py.

It reads loads from standard input, one JSON object per line, and prints the times of the calls of each.
"""

import asyncio
import json
import struct
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc.aio

PREFIX_BYTES = 5


def unframed(body: bytes) -> list[bytes]:
    """Returns the messages in a body."""
    messages = []
    while body:
        end = PREFIX_BYTES + int(struct.unpack(">I", body[1:PREFIX_BYTES])[0])
        messages.append(body[PREFIX_BYTES:end])
        body = body[end:]
    return messages


async def _send(asked: dict[str, Any], messages: Sequence[bytes]) -> dict[str, Any]:
    milliseconds: list[float] = []
    answered = 0
    ahead = iter(range(asked["calls"]))
    cpu_before = time.process_time()

    async def client(channel: grpc.aio.Channel) -> None:
        nonlocal answered
        for _ in ahead:
            started = time.perf_counter()
            length = await _call(channel, asked["path"], messages, is_stream=asked["is_stream"])
            answered += length  # reads the sum after the await, not before
            milliseconds.append((time.perf_counter() - started) * 1e3)

    async with AsyncExitStack() as stack:
        own = (("grpc.use_local_subchannel_pool", 1),)
        channels = [grpc.aio.insecure_channel(asked["target"], own) for _ in range(asked["clients"])]
        for channel in channels:
            await stack.enter_async_context(channel)
        await asyncio.gather(*map(client, channels))
    cpu = time.process_time() - cpu_before
    return {"milliseconds": milliseconds, "cpu_seconds": cpu, "answered": answered}


async def _call(channel: grpc.aio.Channel, path: str, messages: Sequence[bytes], *, is_stream: bool) -> int:
    """Makes a call; returns the length of its answer in bytes, including framing."""
    if not is_stream:
        unary: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(path)
        return PREFIX_BYTES + len(await unary(messages[0]))

    async def requests() -> AsyncIterator[bytes]:
        for message in messages:
            yield message

    stream: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(path)
    return sum([PREFIX_BYTES + len(answer) async for answer in stream(requests())])


async def _main() -> None:
    for line in sys.stdin:  # blocking is fine: nothing else runs meanwhile
        asked = json.loads(line)
        messages = unframed(Path(asked["body"]).read_bytes())  # noqa: ASYNC240 - as above
        try:
            said = await _send(asked, messages)
        except grpc.aio.AioRpcError as error:
            said = {"error": f"{error.code().name}: {error.details()}"}
        sys.stdout.write(f"{json.dumps(said)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_main())
