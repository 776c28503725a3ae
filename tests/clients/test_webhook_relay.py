"""The example of a webhook relay delivers every change, signed, to a receiver that fails at first."""

import asyncio
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

from support.harness import ROOT, memory_store
from support.operator import operated

SECRET = "the receiver knows it"  # noqa: S105 - of a test
RELAY = ROOT / "clients" / "python" / "examples" / "webhook_relay.py"


@dataclass
class Receiver:
    """A web server that fails at first, and keeps what it accepts."""

    failures: int
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
            is_failing = len(self.refused) < self.failures
            (self.refused if is_failing else self.accepted).append(json.loads(body))
            self.has_news.notify_all()
        writer.write(f"HTTP/1.1 {'503 Later' if is_failing else '204 Good'}\r\nConnection: close\r\n\r\n".encode())
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
async def running_relay(port: int, url: str, cursor_file: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(RELAY), f"127.0.0.1:{port}", url, str(cursor_file)),
        env={**os.environ, "WEBHOOK_SECRET": SECRET, "no_proxy": "127.0.0.1"},
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()


async def test_every_change_is_delivered_although_receiver_and_relay_fail(tmp_path: Path) -> None:
    receiver, cursor_file = Receiver(failures=3), tmp_path / "cursor"
    web = await asyncio.start_server(receiver.answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{web.sockets[0].getsockname()[1]}/games"
    async with web, operated(memory_store(log_ms=600_000)) as house:
        game = await house.client.new_game()
        revision = (await game.see()).revision
        async with running_relay(house.server.admin_port, url, cursor_file):
            await receiver.until(revision)
        assert receiver.refused == [receiver.accepted[0]] * 3, "the first one was sent until it was accepted"
        await game.draw()
        await game.draw()
        async with running_relay(house.server.admin_port, url, cursor_file):
            await receiver.until(revision + 2)
    assert receiver.revisions == list(range(1, revision + 3))
    assert cursor_file.read_text()


def test_the_example_is_short() -> None:
    code = [line for line in RELAY.read_text().splitlines() if line.strip()]
    assert len(code) <= 75
