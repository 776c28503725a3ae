"""The web edge under test: Envoy as a process, and calls as a browser or curl sends them."""

import asyncio
import base64
import http.client
import json
import struct
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from google.protobuf.message import Message

from support.harness import ServerProcess, server_process
from tools.edge_config import LocalEdge, local
from tools.servers import free_port
from tools.web import DEFAULTS, ENVOY, collect_page, running_envoy

Headers = Mapping[str, str]


BEHIND_EDGE = {
    **DEFAULTS,
    "RUMMIKUB_REDIS_URL": "memory://",
    "RUMMIKUB_VALIDATION_LISTEN": "127.0.0.1:0",
    "RUMMIKUB_HEARTBEAT_SECONDS": "0.5",
}


def envoy_is_installed() -> bool:
    return ENVOY.is_file()


@dataclass(frozen=True)
class Answer:
    """An HTTP response."""

    status: int
    headers: Headers
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - any JSON
        return json.loads(self.body)

    @property
    def refusal(self) -> Any:  # noqa: ANN401 - any JSON
        """The Refusal of a JSON error."""
        return next(detail for detail in self.json["details"] if detail["@type"].endswith("/rummikub.v1.Refusal"))


@dataclass
class EdgeProcess:
    """An Envoy on a port of this machine."""

    port: int
    process: subprocess.Popen[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def ready(self) -> None:
        """Waits until the edge reports that the service is healthy."""
        async with asyncio.timeout(20):
            while await self.listens() != 200:  # noqa: ASYNC110 - another process sends no notification
                await asyncio.sleep(0.05)

    async def listens(self) -> int:
        """Waits until the edge answers; returns the HTTP status of the service's health."""
        async with asyncio.timeout(20):
            while True:
                assert self.process.poll() is None, "Envoy has ended"
                try:
                    return (await self.send("GET", "/healthz")).status
                except OSError:
                    await asyncio.sleep(0.05)

    async def send(self, verb: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Sends an HTTP request over a new connection. In header names, `_` stands for `-`."""
        return await asyncio.to_thread(self._send, verb, path, body, headers)

    def _send(self, verb: str, path: str, body: bytes, headers: Headers) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(verb, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            return Answer(
                response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            )
        finally:
            connection.close()

    async def call(self, path: str, body: object = None, token: str = "", **headers: str) -> Answer:
        """Sends a JSON request: POST with a body, GET without one."""
        authorization = {"authorization": f"Bearer {token}"} if token else {}
        verb, data = ("GET", b"") if body is None else ("POST", json.dumps(body).encode())
        return await self.send(verb, path, data, content_type="application/json", **authorization, **headers)

    async def call_grpc_web(self, method: str, request: Message, **headers: str) -> tuple[Answer, list[bytes], Headers]:
        """Calls a unary RPC by gRPC-Web; returns the answer, its messages and its trailers."""
        answer = await self.send(
            "POST", f"/rummikub.v1.{method}", framed(request), content_type="application/grpc-web+proto", **headers
        )
        return answer, *unframed(answer.body)

    @asynccontextmanager
    async def watch(
        self, verb: str, path: str, body: bytes = b"", **headers: str
    ) -> AsyncIterator[asyncio.StreamReader]:
        """Opens a stream over HTTP/1.1; yields the body, of which only the chunks' sizes are still there."""
        parts = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        lines = [f"{verb} {path} HTTP/1.1", "host: localhost", f"content-length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        assert b" 200 " in await reader.readline()
        while await reader.readline() != b"\r\n":
            pass
        try:
            yield reader
        finally:
            writer.close()


def framed(request: Message) -> bytes:
    """Returns a gRPC-Web request body."""
    data = request.SerializeToString()
    return struct.pack(">BI", 0, len(data)) + data


def unframed(body: bytes) -> tuple[list[bytes], Headers]:
    """Returns the messages and the trailers of a gRPC-Web response body."""
    messages: list[bytes] = []
    trailers: dict[str, str] = {}
    while body:
        kind, size = struct.unpack(">BI", body[:5])
        part, body = body[5 : 5 + size], body[5 + size :]
        if kind & 0x80:
            trailers = dict(line.split(":", 1) for line in part.decode().split("\r\n") if line)
        else:
            messages.append(part)
    return messages, trailers


def decoded_details(headers: Headers) -> bytes:
    """Returns the google.rpc.Status in the trailers or headers of a gRPC-Web response."""
    text = headers["grpc-status-details-bin"].strip()
    return base64.b64decode(text + "=" * (-len(text) % 4))


@contextmanager
def running_edge(
    folder: Path,
    port: int,
    service: int,
    validation: int,
    *,
    limited: bool = False,
    stream_idle_timeout: str = "60s",
    stderr: int | None = None,
) -> Iterator[EdgeProcess]:
    """Runs Envoy as `make web` configures it, apart from the timeout. It logs to the file descriptor `stderr`."""
    listen, upstreams = ("127.0.0.1", port), ([("127.0.0.1", service)], [("127.0.0.1", validation)])
    text = local(LocalEdge(listen, *upstreams, collect_page(folder), limited=limited))
    text = text.replace("stream_idle_timeout: 60s", f"stream_idle_timeout: {stream_idle_timeout}")
    with running_envoy(text, folder, stderr) as process:
        yield EdgeProcess(port, process)


@dataclass
class Web:
    """A service and its edge."""

    edge: EdgeProcess
    service: ServerProcess


@asynccontextmanager
async def running_web(
    folder: Path,
    *,
    limited: bool = False,
    stream_idle_timeout: str = "60s",
    settings: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[Web]:
    """Runs a service, with a heartbeat every 0.5 s, and its edge."""
    async with server_process({**BEHIND_EDGE, **settings}) as service:
        ports = (free_port(), service.port, service.validation_port)
        with running_edge(folder, *ports, limited=limited, stream_idle_timeout=stream_idle_timeout) as edge:
            await edge.ready()
            yield Web(edge, service)
