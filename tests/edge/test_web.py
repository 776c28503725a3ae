"""`make web` serves at one URL, and leaves no process behind, however it ends."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.harness import ROOT, is_running, until
from tools.servers import free_port

ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("RUMMIKUB_")},
    "RUMMIKUB_REDIS_URL": "memory://",
    "RUMMIKUB_LISTEN": "127.0.0.1:0",
    "RUMMIKUB_VALIDATION_LISTEN": "127.0.0.1:0",
    "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0",
}


def command(port: int) -> list[str]:
    return [sys.executable, "-m", "tools.web", "--port", str(port), "--no-build"]


@contextmanager
def running(port: int, environment: dict[str, str] = ENVIRONMENT) -> Iterator[subprocess.Popen[str]]:
    """Runs `make web`, and yields it when it has printed its URL."""
    with subprocess.Popen(command(port), cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            assert process.stdout.readline() == f"Open http://127.0.0.1:{port}/\n"
            yield process
        finally:
            process.kill()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left(number: signal.Signals) -> None:
    with running(free_port()) as process:
        started = children(process.pid)
        assert len(started) == 2
        process.send_signal(number)
        process.wait(30)
        until(lambda: not any(is_running(pid) for pid in started))


def test_when_the_edge_ends_all_do() -> None:
    with running(free_port()) as process:
        started = children(process.pid)
        os.kill(started[1], signal.SIGKILL)
        assert process.wait(30) == 1
        assert not any(is_running(pid) for pid in started)


def test_a_service_that_died_is_started_again_with_its_games(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/v1/games"
    kept = {name: value for name, value in ENVIRONMENT.items() if name != "RUMMIKUB_REDIS_URL"}
    with running(port, {**kept, "RUMMIKUB_DATA_DIR": str(tmp_path)}) as process:
        service, edge = children(process.pid)
        game = json.loads(fetched(url, b"{}"))["game"]["gameId"]
        os.kill(service, signal.SIGKILL)
        until(lambda: not is_running(service))
        until(lambda: game.encode() in fetched(f"{url}/{game}"))
        assert edge in children(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def fetched(url: str, body: bytes | None = None) -> bytes:
    """Returns the answer of a URL; empty if there is none now."""
    request = urllib.request.Request(url, body, {"content-type": "application/json"})  # noqa: S310 - http only
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - http only
            return bytes(answer.read())
    except OSError:
        return b""


def test_a_taken_port_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = subprocess.run(
            command(port), cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=30, check=False
        )
    assert refused.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port} (Address already in use)" in refused.stderr
    assert f"make web PORT={port + 1}" in refused.stderr
