"""A TCP proxy that delays requests, cuts connections before and after a request got through, and repeats.

A repetition sends all that a connection has sent so far once more, over a new connection: the same requests with the
same ids, whose answers go nowhere. It is a copy that arrives late, after a cut connection for example.
"""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

CHUNK: Final = 65_536
REPEATED_BYTES: Final = 32_768
"""Connections that have sent more are not repeated."""
ANSWER_SECONDS: Final = 0.05
"""How long after the last bytes a connection is cut, so that the request got through, and its answer did not."""
REPEAT_SECONDS: Final = 1.0
"""How long a repeated connection stays open."""
HOST: Final = "127.0.0.1"
KINDS: Final = ("delay", "cut before", "cut after", "repeat")
"""The faults that the proxy makes on connections."""


@dataclass(frozen=True, slots=True)
class Mischief:
    """How often the proxy does what to the bytes that a client sends, as probabilities for each chunk."""

    delay: float = 0.02
    cut_before: float = 0.0007
    cut_after: float = 0.0007
    repeat: float = 0.0004
    most_delay_seconds: float = 0.1


class Proxy:
    """Forwards connections to a server, which may change its port.

    Args:
        port_of: Returns the server's present port.
        chance: Decides on mischief.
        mischief: How often it does what.
    """

    def __init__(self, port_of: Callable[[], int], chance: random.Random, mischief: Mischief = Mischief()) -> None:
        self._port_of = port_of
        self._chance = chance
        self._mischief = mischief
        self._tasks: set[asyncio.Task[None]] = set()
        self.done: Counter[str] = Counter()
        """How often it has done what."""
        self.port = 0

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator["Proxy"]:
        """Listens on a free port."""
        server = await asyncio.start_server(self._connected, HOST, 0)
        async with server:
            self.port = server.sockets[0].getsockname()[1]
            try:
                yield self
            finally:
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        with contextlib.closing(writer), contextlib.suppress(OSError, asyncio.CancelledError):
            await _Connection(self, reader, writer).run()

    def chosen(self, *, may_repeat: bool) -> str:
        """Returns what happens to the next bytes; empty for nothing. Counts it."""
        number, mischief = self._chance.random(), self._mischief
        for name in KINDS:
            number -= getattr(mischief, name.replace(" ", "_"))
            if number < 0:
                if name == "repeat" and not may_repeat:
                    return ""
                self.done[name] += 1
                return name
        return ""

    async def delay(self) -> None:
        """Waits a moment."""
        await asyncio.sleep(self._chance.uniform(0, self._mischief.most_delay_seconds))

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connects to the server."""
        return await asyncio.open_connection(HOST, self._port_of())

    def repeat(self, sent: bytes) -> None:
        """Sends bytes once more over a connection of their own."""
        task = asyncio.create_task(self._repeat(sent))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _repeat(self, sent: bytes) -> None:
        with contextlib.suppress(OSError):
            reader, writer = await self.open()
            with contextlib.closing(writer):
                writer.write(sent)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(REPEAT_SECONDS):
                        while await reader.read(CHUNK):
                            pass


class _Connection:
    """A connection of a client, and the one to the server that it is forwarded to."""

    def __init__(self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._reader, self._writer = reader, writer
        self._sent = bytearray()
        self._is_cut = False

    async def run(self) -> None:
        """Forwards both directions until one ends or the connection is cut."""
        there, back = await self._proxy.open()
        try:
            tasks = [asyncio.create_task(self._forth(back)), asyncio.create_task(self._back(there))]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            back.close()

    async def _forth(self, server: asyncio.StreamWriter) -> None:
        while data := await self._reader.read(CHUNK):
            if len(self._sent) <= REPEATED_BYTES:
                self._sent += data
            match self._proxy.chosen(may_repeat=len(self._sent) <= REPEATED_BYTES):
                case "cut before":
                    return
                case "cut after":
                    self._is_cut = True
                    server.write(data)
                    await server.drain()
                    await asyncio.sleep(ANSWER_SECONDS)
                    return
                case "delay":
                    await self._proxy.delay()
                case "repeat":
                    self._proxy.repeat(bytes(self._sent))
                case _:
                    pass
            server.write(data)
            await server.drain()

    async def _back(self, server: asyncio.StreamReader) -> None:
        while data := await server.read(CHUNK):
            if not self._is_cut:
                self._writer.write(data)
                await self._writer.drain()
