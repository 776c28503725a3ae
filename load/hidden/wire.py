"""A relay in front of a server that keeps what the server sends: bytes of HTTP/2, headers as they are compressed."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Final

FRAME_HEADER: Final = 9
"""The bytes before each frame: 3 of its length, its type, its flags, and 4 of its stream."""
DATA, HEADERS, CONTINUATION = 0, 1, 9
CHUNK: Final = 65_536


class Relay:
    """Forwards connections to a server.

    Args:
        target: The server's port.

    Attributes:
        port: The port of the relay.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._sent = bytearray()
        self.port = 0

    def begin(self) -> None:
        """Forgets what was sent. The next connection must be the only one until `taken`."""
        self._sent.clear()

    def taken(self, canceled: Collection[int] = ()) -> bytes:
        """Returns what calls have received since `begin`: the bytes of headers and data of each stream.

        Args:
            canceled: The streams that their client has canceled. It depends on the moment whether trailers come.
        """
        return repr(sorted(bytes_of_streams(self._sent, canceled).items())).encode()

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forwards a connection."""
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self._target)
        forwarded = (self._forward(reader, to_server, None), self._forward(from_server, writer, self._sent))
        await asyncio.gather(*forwarded)

    @staticmethod
    async def _forward(source: asyncio.StreamReader, sink: asyncio.StreamWriter, kept: bytearray | None) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(CHUNK):
                if kept is not None:
                    kept += data
                sink.write(data)
                await sink.drain()
        sink.close()


@asynccontextmanager
async def relaying(target: int) -> AsyncIterator[Relay]:
    """Runs a relay in front of a port."""
    relay = Relay(target)
    server = await asyncio.start_server(relay.relay, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()


def bytes_of_streams(sent: bytes | bytearray, canceled: Collection[int] = ()) -> dict[tuple[int, int], bytes]:
    """Returns the payloads of headers and of data by stream, joined: in how many frames they come is of no account.

    Of canceled streams it has no trailers.
    """
    found: defaultdict[tuple[int, int], bytes] = defaultdict(bytes)
    place = 0
    while place + FRAME_HEADER <= len(sent):
        length, kind = int.from_bytes(sent[place : place + 3], "big"), sent[place + 3]
        stream = int.from_bytes(sent[place + 5 : place + FRAME_HEADER], "big")
        is_trailer = kind == HEADERS and stream in canceled and (stream, HEADERS) in found
        if kind in {DATA, HEADERS, CONTINUATION} and not is_trailer:
            payload = bytes(sent[place + FRAME_HEADER : place + FRAME_HEADER + length])
            found[stream, DATA if kind == DATA else HEADERS] += payload
        place += FRAME_HEADER + length
    return dict(found)
