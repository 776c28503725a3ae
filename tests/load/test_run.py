"""Short load tests with real processes."""

import contextlib
import csv
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from load.run import baseline
from support.soak import few_of
from tools.servers import ROOT, service

pytestmark = pytest.mark.slow

QUICK = ("--headless", "--only-summary", "--users", "10", "--spawn-rate", "10", "--run-time", "2s", "--processes", "1")
PATIENT = ("--p95-slack-ms", "60000")
"""On a busy machine every call is late, the first one to the analysis and rare ones most of all."""
SECONDS = 100


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "load.run", *arguments]


def load(folder: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs a quick load test; writes its report into a folder."""
    report = ("--csv", str(folder / "report"), "--html", str(folder / "report.html"))
    return subprocess.run(
        command(*QUICK, *report, *arguments),
        cwd=ROOT,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_a_run_of_all_users_passes_and_leaves_a_report(tmp_path: Path) -> None:
    run = load(tmp_path, *PATIENT, "--run-time", "10s", "--least-calls", "50")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "All thresholds were met." in run.stdout
    with (tmp_path / "report_stats.csv").open() as file:
        rows = {(row["Type"], row["Name"]): int(row["Request Count"]) for row in csv.DictReader(file)}
    assert rows["grpc", "ValidateTurn"] > rows["no-op", "ValidateTurn"] > 0
    assert rows["grpc", "PlayTurn"] > 0
    assert rows["grpc", "WatchGame"] > 0
    assert "ValidateTurn" in (tmp_path / "report.html").read_text()


def test_a_run_fails_when_a_threshold_is_missed(tmp_path: Path) -> None:
    """Validation is called at its own address where it has one; no call fails there."""
    listen = {"RUMMIKUB_VALIDATION_LISTEN": "127.0.0.1:0"}
    run = load(tmp_path, *PATIENT, "--least-calls", "1000000", "ValidationUser", "BaselineUser", **listen)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "ValidationService at 127.0.0.1:" in run.stdout
    assert "the minimum is 1000000" in run.stdout
    assert run.stdout.count("MISSED") == 1


def test_a_run_fails_when_a_turn_is_judged_wrongly(tmp_path: Path) -> None:
    with baseline() as everything_is_legal:
        run = load(tmp_path, *PATIENT, "--validation-host", everything_is_legal, "ValidationUser", "BaselineUser")
    assert run.returncode == 1, run.stdout + run.stderr
    assert "failed: answer ValidateTurn" in run.stdout
    assert "legal instead of " in run.stdout + run.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left_when_a_run_is_ended(number: signal.Signals, tmp_path: Path) -> None:
    run = subprocess.Popen(
        command(*QUICK, "--run-time", "1h"),
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},  # a killed run leaves its folder behind
        stdout=subprocess.PIPE,
        text=True,
    )
    with run:
        assert run.stdout
        address = run.stdout.readline().split()[1]
        assert is_served(address)
        os.kill(run.pid, number)
        run.wait(SECONDS)
        until(lambda: not is_served(address) and not processes_of(address), "processes go on")


def test_nothing_is_left_of_a_server_that_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as folder:  # tmp_path is too long for a socket
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        with service():
            [store] = processes_of(folder)
            server = Path(f"/proc/{store}/stat").read_text().rpartition(")")[2].split()[1]
            os.kill(int(server), signal.SIGKILL)
            until(lambda: not processes_of(folder), "the store goes on")
        assert not list(Path(folder).iterdir())


def until(is_over: Callable[[], bool], complaint: str) -> None:
    """Polls: other processes send no notification."""
    deadline = time.monotonic() + SECONDS
    while not is_over():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.05)


def processes_of(place: str) -> list[str]:
    """Returns the processes with an address or a folder on their command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if place.encode() in (process / "cmdline").read_bytes():
                found.append(process.name)
    return found


def is_served(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
        return True
    return False


@pytest.mark.parametrize("host", ["127.0.0.1:1", "127.0.0.1", "127.0.0.1:99999"])
def test_a_host_where_nothing_serves_is_told_before_anybody_calls(host: str) -> None:
    ran = subprocess.run(
        command("--headless", "--host", host), cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith(f"load.run: --host {host}: cannot connect (")
    assert ran.stderr.endswith("); omit --host to start a server\n")


@pytest.mark.parametrize(
    "answer", few_of([b"HTTP/1.0 400 Bad Request\r\n\r\n", b"\x15\x03\x03\x00\x02\x02\x46", b""], 1)
)
def test_a_host_that_serves_something_else_is_told_before_anybody_calls(answer: bytes) -> None:
    """For example the metrics port, or a server with TLS: calls would fail one by one."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        host = f"127.0.0.1:{other.getsockname()[1]}"
        run = subprocess.Popen(
            command("--headless", "--host", host), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        other.settimeout(SECONDS)
        other.accept()[0].close()  # the first connection only checks that something listens
        with other.accept()[0] as connection:
            connection.recv(1024)
            connection.sendall(answer)
        said = run.communicate(timeout=SECONDS)
    assert (run.returncode, *said) == (
        1,
        "",
        f"load.run: --host {host}: the server does not speak gRPC without TLS; only that can be tested\n",
    )


def test_the_command_explains_itself() -> None:
    own = subprocess.run(command("--help"), cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for said in ("--ci", "--validation-host", "LOAD_P95_RATIO"):
        assert said in own
    locust = subprocess.run(command("--locust-help"), cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "--headless" in locust


def test_only_users_know_locust() -> None:
    modules = ("messages", "run", "thresholds")
    others = ("bench.noop_server", "corpus.simple_play", "corpus.turns")
    imports = "; ".join(f"import load.{module}" for module in (*modules, *others))
    check = f"{imports}; import sys; assert not {{'gevent', 'locust'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", check], cwd=ROOT, check=True)
