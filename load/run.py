"""The command `python -m load.run`: starts the servers and Locust, and stops all of them. See load/README.md.

python -m load.run                               Locust's web interface, with a server to test
python -m load.run --headless --users 22         in the terminal
python -m load.run --ci                          the run of CI; fails if a threshold is missed
python -m load.run --host 127.0.0.1:50051 ...    tests a running server
"""

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import grpc

from load.thresholds import OPTIONS
from tools.servers import ROOT, ServerError, end_in_order, free_port, service, serving, start_process

LOCUSTFILE: Final = Path("load") / "locustfile.py"
RESULTS: Final = Path("build") / "load"
REPORT: Final = RESULTS / "report"
WEB_PORT: Final = 8089
MOST_PROCESSES: Final = 4
"""Upper limit of the default number of processes."""
BASELINE_THREADS: Final = 64
"""More than the number of users, because each open stream occupies a thread."""

REACH_SECONDS: Final = 5.0
STOP_SECONDS: Final = 15.0

CI: Final = (
    *("--headless", "--only-summary", "--users", "22", "--spawn-rate", "10", "--run-time", "60s"),
    *("--least-calls", "3000"),
)
"""Locust's arguments for --ci; arguments after --ci override them."""

REPORTS: Final = ("--csv", str(REPORT), "--html", f"{REPORT}.html")


@contextlib.contextmanager
def baseline() -> Iterator[str]:
    """Runs the no-op server; yields its address."""
    with serving("load.bench.noop_server", "stock", "--threads", str(BASELINE_THREADS)) as addresses:
        yield addresses[0]


def main() -> int:
    """Runs Locust; returns its exit code."""
    own = "\n".join(f"  {name}, or {variable}\n      {text} ({default})" for name, variable, default, text in OPTIONS)
    parser = argparse.ArgumentParser(
        prog="load.run",
        description="Load-test the service with Locust: in the browser, or with --headless or --ci in the terminal.",
        epilog=f"options of the test:\n{own}\n\nAll other arguments go to Locust; --locust-help lists them.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--ci", action="store_true", help=f"the run of CI: {' '.join(CI)}")
    parser.add_argument(
        "--host", default=os.environ.get("LOAD_HOST", ""), help="host:port to test (default: starts a server)"
    )
    processes = min(os.cpu_count() or 1, MOST_PROCESSES)
    parser.add_argument(
        "--processes", type=int, default=processes, help=f"Locust processes that make calls ({processes})"
    )
    parser.add_argument("--locust-help", action="store_true", help="print the help of Locust")
    chosen, others = parser.parse_known_args()
    end_in_order()
    if chosen.locust_help:
        return _run(_locust("--help"))
    try:
        with contextlib.ExitStack() as servers:
            nothing = servers.enter_context(baseline())
            host, validation = (_serving(chosen.host),) * 2 if chosen.host else servers.enter_context(service())
            hosts = ["--host", host, "--baseline-host", nothing]
            if validation != host:
                hosts += ["--validation-host", validation]
            print(
                f"Testing {host}" + (f", ValidationService at {validation}" if validation != host else ""), flush=True
            )
            return _run(_command(hosts, chosen.processes, [*(CI if chosen.ci else ()), *others]))
    except ServerError as error:
        sys.exit(f"load.run: {error}")
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _serving(host: str) -> str:
    """Returns `host` if gRPC without TLS is served there. Raises ServerError otherwise."""
    name, _, port = host.rpartition(":")
    try:
        socket.create_connection((name.strip("[]"), int(port)), REACH_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ServerError(f"--host {host}: cannot connect ({error}); omit --host to start a server") from None
    with grpc.insecure_channel(host, [("grpc.enable_http_proxy", 0)]) as channel:
        try:
            grpc.channel_ready_future(channel).result(REACH_SECONDS)
        except grpc.FutureTimeoutError:
            raise ServerError(
                f"--host {host}: the server does not speak gRPC without TLS; only that can be tested"
            ) from None
    return host


def _command(hosts: Sequence[str], processes: int, arguments: Sequence[str]) -> list[str]:
    """Returns Locust's command line."""
    port = str(free_port())
    distributed = ("--processes", str(processes), "--master-bind-host", "127.0.0.1")
    ports = ("--master-bind-port", port, "--master-port", port, "--stop-timeout", "5")
    command = _locust(*hosts, *distributed, *ports)
    if "--headless" in arguments:
        RESULTS.mkdir(parents=True, exist_ok=True)
        print(f"The report will be written to {REPORT}.html, with CSV files beside it.", flush=True)
        return [*command, *REPORTS, *arguments]
    web_port = str(free_port(WEB_PORT))
    print(_instructions(web_port), flush=True)
    return [*command, "--web-host", "127.0.0.1", "--web-port", web_port, *arguments]


def _instructions(web_port: str) -> str:
    return f"""\
Open http://127.0.0.1:{web_port} in a browser, choose the number of users (22 is a good start) and press Start.
When the run is stopped there, the missed thresholds are printed here. Ctrl-C ends everything."""


def _locust(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), *arguments]


def _run(command: Sequence[str]) -> int:
    """Runs Locust, stops it if this process is interrupted, and returns its exit code.

    If this process is killed, Locust is killed too: a terminated Locust may go on while it is still starting.
    """
    locust = start_process(command, death_signal=signal.SIGKILL, cwd=ROOT)
    try:
        return locust.wait()
    except KeyboardInterrupt:  # Ctrl-C, which reaches Locust too
        return locust.wait(STOP_SECONDS)
    finally:
        if locust.poll() is None:
            locust.terminate()
            try:
                locust.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                locust.kill()


if __name__ == "__main__":
    sys.exit(main())
