"""The example of a webhook relay delivers every change, signed, to a receiver that fails at first."""

import asyncio
import contextlib
import hashlib
import hmac
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.certificates import self_signed
from support.harness import ROOT, memory_store
from support.operator import operated

pytestmark = pytest.mark.slow

SECRET = "the receiver knows it"  # noqa: S105 - of a test
RELAY = ROOT / "clients" / "python" / "examples" / "webhook_relay.py"


FAILURES = (
    "HTTP/1.1 503 Later\r\nConnection: close",
    "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nConnection: close",
    "garbage",
)
"""The first answers of a receiver."""
ACCEPTANCE = "HTTP/1.1 204 Good\r\nConnection: close"


@dataclass
class Receiver:
    """A web server that fails at first, and keeps what it accepts."""

    refused: list[dict[str, Any]] = field(default_factory=list)
    accepted: list[dict[str, Any]] = field(default_factory=list)
    has_news: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers a request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
        body = await reader.readexactly(int(headers["content-length"]))
        signed = f"{headers['x-rummikub-time']}.".encode() + body
        expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
        assert headers["x-rummikub-signature"] == f"sha256={expected}"
        async with self.has_news:
            failures = FAILURES[len(self.refused) :]
            (self.refused if failures else self.accepted).append(json.loads(body))
            self.has_news.notify_all()
        answer = failures[0] if failures else ACCEPTANCE
        writer.write(f"{answer}\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async def until(self, count: int) -> None:
        """Waits until it has accepted so many different changes."""
        async with asyncio.timeout(60), self.has_news:
            await self.has_news.wait_for(lambda: len(self.revisions) >= count)

    @property
    def revisions(self) -> list[int]:
        """The revisions that it has accepted, without repetitions."""
        return list(dict.fromkeys(one["changed"]["change"]["revision"] for one in self.accepted))


@asynccontextmanager
async def running_relay(
    port: int, url: str, cursor_file: Path, **variables: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Runs the example with more environment variables; kills it in the end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(RELAY), f"127.0.0.1:{port}", url, str(cursor_file)),
        env={**os.environ, "WEBHOOK_SECRET": SECRET, "no_proxy": "127.0.0.1", **variables},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        await process.wait()


async def test_every_change_is_delivered_although_receiver_and_relay_fail(tmp_path: Path) -> None:
    receiver, cursor_file = Receiver(), tmp_path / "cursor"
    web = await asyncio.start_server(receiver.answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{web.sockets[0].getsockname()[1]}/games"
    async with web, operated(memory_store(log_ms=600_000)) as house:
        game = await house.client.new_game()
        revision = (await game.see()).revision
        async with running_relay(house.server.admin_port, url, cursor_file):
            await receiver.until(revision)
        sent = [receiver.accepted[0]] * len(FAILURES)
        assert receiver.refused == sent, "the first one was sent until it was accepted"
        await game.draw()
        await game.draw()
        async with running_relay(house.server.admin_port, url, cursor_file):
            await receiver.until(revision + 2)
    assert receiver.revisions == list(range(1, revision + 3))
    assert cursor_file.read_text()


async def test_changes_are_relayed_from_a_server_with_tls_and_a_token(tmp_path: Path) -> None:
    self_signed(tmp_path, "IP:127.0.0.1")
    safety = {
        "tls_cert": tmp_path / "cert.pem",
        "tls_key": tmp_path / "key.pem",
        "admin_token_file": tmp_path / "token",
    }
    token = write_token(tmp_path)
    receiver, store = Receiver(), memory_store(log_ms=600_000)
    web = await asyncio.start_server(receiver.answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{web.sockets[0].getsockname()[1]}/games"
    async with web, operated(store) as plain, operated(store, None, **safety) as safe:
        await plain.client.new_game(players=0, start=False)
        ca = str(tmp_path / "cert.pem")
        async with running_relay(safe.server.admin_port, url, tmp_path / "cursor", ADMIN_CA_FILE=ca, ADMIN_TOKEN=token):
            await receiver.until(1)


def write_token(folder: Path) -> str:
    """Writes and returns an operator's token."""
    token = "a token of 22 characters, at least".replace(" ", "-")
    (folder / "token").write_text(token)
    return token


async def test_a_relay_that_cannot_go_on_says_why_and_ends(tmp_path: Path) -> None:
    """A cursor that is none, a store without a log, a server without AdminService."""
    (tmp_path / "bad").write_text("?")
    async with operated(memory_store(log_ms=600_000)) as house, operated(memory_store()) as without:
        for port, cursor_file, code in (
            (house.server.admin_port, "bad", "INVALID_ARGUMENT"),
            (without.server.admin_port, "none", "OUT_OF_RANGE"),
            (house.server.port, "none", "UNIMPLEMENTED"),
        ):
            async with running_relay(port, "http://127.0.0.1:1", tmp_path / cursor_file) as process:
                async with asyncio.timeout(60):
                    _, errors = await process.communicate()
                assert (process.returncode, code in errors.decode()) == (1, True)


async def test_a_relay_reconnects_when_a_stopping_server_says(tmp_path: Path) -> None:
    receiver, store = Receiver(), memory_store(log_ms=600_000)
    web = await asyncio.start_server(receiver.answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{web.sockets[0].getsockname()[1]}/games"
    async with web, contextlib.AsyncExitStack() as stack:
        house = await stack.enter_async_context(operated(store))
        await house.client.new_game(players=0, start=False)
        relay = running_relay(house.server.admin_port, url, tmp_path / "cursor")
        process = await stack.enter_async_context(relay)
        await receiver.until(1)
        await house.server.stop()
        assert process.stderr
        async with asyncio.timeout(60):
            while "reconnecting" not in (line := (await process.stderr.readline()).decode()):
                assert line
        assert process.returncode is None


def test_the_example_is_short() -> None:
    code = [line for line in RELAY.read_text().splitlines() if line.strip()]
    assert len(code) <= 75
