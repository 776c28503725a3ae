"""A small HTTP/2 client that writes its frames by hand, so that it can also write those that no library writes.

Frames are those of RFC 9113, header blocks those of RFC 7541 without indexing and without Huffman coding. A server is
asked for a header table of size 0, so that statuses are found in the headers of answers without their other headers.
"""

import asyncio
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
CANCEL: Final = 0x8
HEADER_TABLE_SIZE: Final = 1
INITIAL_WINDOW_SIZE: Final = 4
WINDOW_MAX: Final = 2**31 - 1
FRAME_MAX: Final = 16_384
"""The largest frame that every receiver takes."""
_STATUS: Final = re.compile(rb"(?:grpc-status|\x9a\xca\xc8\xb2\x124\xda\x8f)[\x01\x02](\d{1,2})")
"""The header `grpc-status`: grpcio writes its name as text, Envoy in Huffman's code. Length and value follow."""
_WEB_STATUS: Final = re.compile(rb"\x80\0.{3}(?:[^\0]*\n)?grpc-status: ?(\d{1,2})", re.DOTALL)
"""The same in the trailers of gRPC-Web, which are the last part of a body."""
_INDEXED: Final = dict(enumerate(("200", "204", "206", "304", "400", "404", "500"), start=0x88))
"""Values of `:status` that are one byte (RFC 7541, appendix A)."""

Header: TypeAlias = tuple[str, str | bytes]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Returns a frame."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def settings(**values: int) -> bytes:
    """Returns a SETTINGS frame, with values by "s" and the number of the setting."""
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", int(name[1:]), value) for name, value in values.items()))


def window_update(stream: int, size: int) -> bytes:
    """Returns a WINDOW_UPDATE frame."""
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", size))


def rst_stream(stream: int, code: int = CANCEL) -> bytes:
    """Returns a RST_STREAM frame."""
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


def _integer(value: int, bits: int) -> bytes:
    """Returns an integer with a prefix of some bits, whose other bits are 0."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([value])
    found, value = [most], value - most
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def header_block(headers: Sequence[Header]) -> bytes:
    """Returns an encoded header block, of literal headers without indexing."""
    parts = []
    for name, value in headers:
        data = value if isinstance(value, bytes) else value.encode()
        parts.append(b"\0" + _integer(len(name), 7) + name.encode() + _integer(len(data), 7) + data)
    return b"".join(parts)


def call_headers(path: str, metadata: Sequence[Header] = (), authority: str = "localhost") -> list[Header]:
    """Returns the headers of a gRPC call."""
    return [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", authority),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        *metadata,
    ]


def message(data: bytes, *, compressed: bool = False) -> bytes:
    """Returns a length-prefixed message of gRPC."""
    return struct.pack(">BI", compressed, len(data)) + data


def call(stream: int, path: str, body: bytes, metadata: Sequence[Header] = ()) -> bytes:
    """Returns the frames of a call whose request has ended; the body is one or more messages of gRPC."""
    return request(stream, call_headers(path, metadata), body)


def request(stream: int, headers: Sequence[Header], body: bytes) -> bytes:
    """Returns the frames of a request that has ended."""
    parts = [frame(HEADERS, END_HEADERS, stream, header_block(headers))]
    starts = range(0, max(1, len(body)), FRAME_MAX)
    for start in starts:
        last = END_STREAM if start + FRAME_MAX >= len(body) else 0
        parts.append(frame(DATA, last, stream, body[start : start + FRAME_MAX]))
    return b"".join(parts)


Frame: TypeAlias = tuple[int, int, int, bytes]
"""Kind, flags, stream and payload."""


class Connection(asyncio.Protocol):
    """A connection to an HTTP/2 server, which answers pings and settings, and passes on all other frames.

    Args:
        on_frame: Gets each frame.
        window: The initial window of its streams, and the growth of that of the connection.
        opening: Sent in place of the usual settings.
        is_silent: Whether it answers no ping and no settings.
    """

    def __init__(
        self,
        on_frame: Callable[[Frame], None] = lambda _: None,
        window: int = WINDOW_MAX,
        opening: bytes | None = None,
        *,
        is_silent: bool = False,
    ) -> None:
        usual = settings(**{f"s{HEADER_TABLE_SIZE}": 0, f"s{INITIAL_WINDOW_SIZE}": window})
        if window > 65_535:
            usual += window_update(0, window - 65_535)
        self._opening = PREFACE + (usual if opening is None else opening)
        self._on_frame = on_frame
        self._is_silent = is_silent
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._window = 65_535
        self._windows_grow = asyncio.Event()
        self.closed = asyncio.Event()
        """Set when the connection has ended."""
        self.next_stream = 1

    @property
    def is_open(self) -> bool:
        """Whether it is connected."""
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Sends the preface."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - for the type
        self._transport = transport
        transport.write(self._opening)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's
        """Notes the end."""
        self._on_frame((GOAWAY, 0, 0, b""))
        self.closed.set()
        self._room.set()
        self._windows_grow.set()

    def pause_writing(self) -> None:
        """Makes `drained` wait."""
        self._room.clear()

    def resume_writing(self) -> None:
        """Ends the wait of `drained`."""
        self._room.set()

    def data_received(self, data: bytes) -> None:
        """Splits what arrives into frames."""
        buffer = self._buffer
        buffer += data
        start = 0
        while len(buffer) - start >= 9:
            length = int.from_bytes(buffer[start : start + 3], "big")
            end = start + 9 + length
            if len(buffer) < end:
                break
            kind, flags = buffer[start + 3], buffer[start + 4]
            stream = int.from_bytes(buffer[start + 5 : start + 9], "big") & WINDOW_MAX
            self._received((kind, flags, stream, bytes(buffer[start + 9 : end])))
            start = end
        del buffer[:start]

    def _received(self, received: Frame) -> None:
        kind, flags, stream, payload = received
        if kind == WINDOW_UPDATE and stream == 0:
            self._window += int.from_bytes(payload, "big")
            self._windows_grow.set()
        elif kind == SETTINGS and not flags & ACK and not self._is_silent:
            self.write(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK and not self._is_silent:
            self.write(frame(PING, ACK, 0, payload))
        self._on_frame(received)

    def write(self, data: bytes) -> None:
        """Writes frames."""
        if self.is_open:
            assert self._transport is not None  # noqa: S101 - for the type
            self._transport.write(data)

    async def drained(self) -> None:
        """Waits until the peer reads. Raises ConnectionError if the connection has ended."""
        await self._room.wait()
        if not self.is_open:
            raise ConnectionResetError("the peer has closed the connection")

    async def has_window(self, size: int) -> None:
        """Takes bytes from the connection's window, once there are as many. Raises ConnectionError."""
        while self._window < size and self.is_open:
            self._windows_grow.clear()
            await self._windows_grow.wait()
        if not self.is_open:
            raise ConnectionResetError("the peer has closed the connection")
        self._window -= size

    def close(self) -> None:
        """Closes the connection."""
        if self._transport is not None:
            self._transport.abort()

    def take_stream(self) -> int:
        """Returns the number of the next stream."""
        stream = self.next_stream
        self.next_stream += 2
        return stream


async def connect(target: str, make: Callable[[], Connection] = Connection) -> Connection:
    """Connects to a server."""
    host, _, port = target.rpartition(":")
    _, connection = await asyncio.get_running_loop().create_connection(make, host, int(port))
    return connection


def http_status(block: bytes) -> str:
    """Returns the `:status` at the beginning of a header block; "" without one. Trailers have none."""
    block = block.lstrip(b"\x20")  # a table of size 0
    if block[:1] and block[0] in _INDEXED:
        return _INDEXED[block[0]]
    if block[:1] != b"\x08":
        return ""
    size = block[1] & 0x7F
    value = block[2 : 2 + size]
    return _digits(value) if block[1] & 0x80 else value.decode("latin-1")


def _digits(code: bytes) -> str:
    """Returns the three digits of a status in Huffman's code, in which 0, 1 and 2 take five bits, and others six."""
    bits, digits = "".join(f"{byte:08b}" for byte in code), ""
    while len(digits) < 3:
        size = 5 if bits.startswith("000") else 6
        digits += str(int(bits[:size], 2) - (0 if size == 5 else 22))
        bits = bits[size:]
    return digits


@dataclass
class _Waiting:
    """A request without an outcome.

    Attributes:
        outcome: Gets its outcome.
        is_grpc: Whether it is a call of gRPC or gRPC-Web.
        first_answer: Whether it ends with its first answer.
        http: Its HTTP status, once that is known.
        status: Its gRPC status, once that is known.
    """

    outcome: asyncio.Future[str]
    is_grpc: bool
    first_answer: bool
    http: str = ""
    status: str = ""

    def end(self, outcome: str) -> None:
        """Sets the outcome, unless there is one."""
        if not self.outcome.done():
            self.outcome.set_result(outcome)

    def ended(self, last: bytes) -> None:
        """Sets the outcome of an answer that has ended with a header block or with data."""
        if self.status:
            self.end(self.status)
        elif self.http and not (self.is_grpc and self.http == "200"):
            self.end(f"HTTP {self.http}")
        else:
            self.end(f"no status: {last[:60]!r}")


class Calls:
    """Requests over one connection, each of which ends with an outcome.

    It is the number of the gRPC status of a call, `HTTP 404` of another request, `RST_STREAM 8`, or `CLOSED`.

    Args:
        target: The server's address.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._connection: Connection | None = None
        self._waiting: dict[int, _Waiting] = {}
        self._connecting = asyncio.Lock()

    async def send(self, headers: Sequence[Header], body: bytes, *, first_answer: bool = False) -> str:
        """Sends a request and returns its outcome.

        Args:
            headers: All headers.
            body: The body; of a call, its messages.
            first_answer: Whether the call is cancelled at its first answer, as that of a stream, which is "ANSWERED".
        """
        connection = await self._current()
        try:
            await connection.has_window(len(body))
        except ConnectionError:
            return "CLOSED"
        stream = connection.take_stream()
        is_grpc = str(dict(headers).get("content-type", "")).startswith("application/grpc")
        waiting = _Waiting(asyncio.get_running_loop().create_future(), is_grpc, first_answer)
        self._waiting[stream] = waiting
        connection.write(request(stream, headers, body))
        try:
            async with asyncio.timeout(60):
                return await waiting.outcome
        except TimeoutError:
            connection.write(rst_stream(stream))
            return "NO ANSWER"
        finally:
            if self._waiting.get(stream) is waiting:
                del self._waiting[stream]

    async def _current(self) -> Connection:
        def make() -> Connection:
            connection = Connection(lambda received: self._received(connection, received))
            return connection

        async with self._connecting:
            if self._connection is None or not self._connection.is_open:
                self._end_all()
                self._connection = await connect(self._target, make)
            return self._connection

    def close(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            self._connection.close()

    def _received(self, connection: Connection, received: Frame) -> None:
        kind, flags, stream, payload = received
        if kind == GOAWAY:
            if connection is self._connection:
                self._end_all()
                self._connection = None
            connection.close()
            return
        waiting = self._waiting.get(stream) if connection is self._connection else None
        if waiting is None:
            return
        if kind == RST_STREAM:
            waiting.end(f"RST_STREAM {int.from_bytes(payload, 'big')}")
        elif kind == HEADERS:
            waiting.http = waiting.http or http_status(payload)
            found = _STATUS.search(payload) if waiting.is_grpc else None
            waiting.status = found[1].decode() if found else ""
        elif kind == DATA and waiting.is_grpc and (found := _WEB_STATUS.search(payload)):
            waiting.status = found[1].decode()
        elif kind == DATA and payload and waiting.first_answer and waiting.http in {"", "200"}:
            connection.write(rst_stream(stream))
            waiting.end("ANSWERED")
        if kind in {HEADERS, DATA} and flags & END_STREAM:
            waiting.ended(payload)

    def _end_all(self) -> None:
        for waiting in self._waiting.values():
            waiting.end("CLOSED")
        self._waiting.clear()


_NAMES: Final = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED"),
    *("INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
)
STATUSES: Final[Mapping[str, str]] = {str(number): name for number, name in enumerate(_NAMES)}
"""The names of statuses by their numbers in trailers."""
