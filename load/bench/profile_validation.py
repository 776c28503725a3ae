"""Profiles a ValidateTurn: `python -m load.bench.profile_validation` writes the table of docs/performance.md.

It puts the service's validation listener under load. perf, if it is installed, divides its CPU between the kernel,
gRPC's core and Python; py-spy divides Python's share by samples of the thread that holds the GIL. They run one after
the other, so that neither slows down the server while the other measures.
"""

import argparse
import contextlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Final

from load.bench.measured_servers import SERVICE_SETTINGS, MeasuredServer, ready, serving
from load.bench.page import PERFORMANCE
from load.bench.validation import turn_load
from load.bench.validation_loads import Generator, Load, generator
from load.bench.validation_report import CLIENTS
from load.bench.validation_turns import read
from load.pages import write

COMMAND: Final = "make profile"
SECONDS: Final = 15
QUICK_SECONDS: Final = 3
PERF_HERTZ: Final = 999
PY_SPY_HERTZ: Final = 250
SLICES: Final = 15
SLICE_CALLS: Final = 500

NETWORK: Final = "kernel: connections"
LOCKS: Final = "locks, the GIL among them, and waking threads"
KERNEL: Final = "kernel: the rest"
CORE: Final = "gRPC's core (C++) and its Cython"
COLLECTOR: Final = "garbage collection"
PYTHON: Final = "Python"
SERVER: Final = "listener (`fast_listener`, `slow_calls`)"
BOUNDARY: Final = "boundary: request id, metrics, log (`interceptor`, `metrics`)"
DECODING: Final = "decoding and checks (`codec`, `turn_validator`)"
ENGINE: Final = "engine"
ENCODING: Final = "encoding (`codec`)"
ROWS: Final = (NETWORK, KERNEL, CORE, LOCKS, SERVER, BOUNDARY, DECODING, ENGINE, ENCODING, COLLECTOR)

_OF_CONNECTIONS: Final = re.compile(r"sock|tcp|inet|epoll|sendmsg|recvmsg|net_rx|skb|eventfd")
_OF_LOCKS: Final = re.compile(r"futex|pthread_|^sem_|lll_lock|take_gil|drop_gil|PyThread_(acquire|release)_lock")
_OF_COLLECTOR: Final = re.compile(
    r"gc_collect|visit_(decref|reachable)|subtract_refs|move_unreachable|deduce_unreachable"
)
_FRAME: Final = re.compile(r"(?P<function>.*) \((?P<file>[^()]*?)(?::\d+)?\)")

Frame = tuple[str, str]
"""A function, and its file or library."""


class ProfileError(Exception):
    """There is no profile; the message gives the cause."""


# Classification of samples


def part_of_cpu(frames: Sequence[Frame]) -> str:
    """Returns the row of a sample from perf, given its frames, the innermost first."""
    function, library = frames[0]
    if "kernel" in library:
        in_kernel = [name for name, of in frames if "kernel" in of]
        if any(map(_OF_LOCKS.search, in_kernel)):
            return LOCKS
        return NETWORK if any(map(_OF_CONNECTIONS.search, in_kernel)) else KERNEL
    if "cygrpc" in library or "libstdc++" in library:
        return CORE
    if _OF_COLLECTOR.search(function):
        return COLLECTOR
    return LOCKS if _OF_LOCKS.search(function) else PYTHON


def part_of_python(frames: Sequence[Frame]) -> str | None:
    """Returns the row of a py-spy sample, given its frames, the innermost first, or None.

    None stands for samples that are not part of a call: those that perf counts outside of Python, and the event loop,
    which py-spy samples more often than it runs; it answers no calls here and takes 0.2 % of the CPU.
    """
    if part_of_cpu(frames) != PYTHON or any(_OF_COLLECTOR.search(function) for function, _ in frames):
        return None
    return next(filter(None, (_part_of_frame(*frame) for frame in frames)), None)


def _part_of_frame(function: str, file: str) -> str | None:
    encodes = re.search(r"answer$|encode", function) is not None
    match file.split("/"):
        case [*_, "engine", _] | [*_, "engine", _, _] | [*_, "engine", _, _, _]:
            return ENGINE
        case [*_, "service", "codec", _] | [*_, "service", "grpc_api", "turn_validator.py"]:
            return ENCODING if encodes else DECODING
        case [*_, "service", _, "interceptor.py"] | [*_, "service", "metrics", _]:
            return BOUNDARY
        case [*_, "service", "fast_listener", _] | [*_, "service", "runtime", "slow_calls.py" | "admission.py"]:
            return SERVER
        case _:
            return None


def perf_samples(script: str) -> Iterator[list[Frame]]:
    """Yields the samples in the output of `perf script`, each with the innermost frame first."""
    for sample in script.split("\n\n"):
        frames = [_perf_frame(line) for line in sample.splitlines() if line.startswith(("\t", " "))]
        if frames:
            yield frames


def _perf_frame(line: str) -> Frame:
    _, _, rest = line.strip().partition(" ")
    function, _, library = rest.rpartition(" (")
    return function, library.rstrip(")")


def py_spy_samples(raw: str) -> Iterator[tuple[list[Frame], int]]:
    """Yields the stacks in the output of py-spy, with the innermost frame first, and their counts."""
    for line in raw.splitlines():
        stack, _, count = line.rpartition(" ")
        found = map(_FRAME.fullmatch, stack.split(";"))
        frames = [(match["function"], match["file"]) for match in found if match]
        if frames:
            yield frames[::-1], int(count)


def shares(cpu: Counter[str], python: Counter[str]) -> dict[str, float]:
    """Returns the share of each row in the CPU; without samples from perf, in the time that the GIL is held."""
    cpu = cpu or Counter({PYTHON: 1})
    found = {row: cpu[row] / cpu.total() for row in ROWS}
    for row, count in python.items():
        found[row] += cpu[PYTHON] / cpu.total() * count / python.total()
    return found


# Sampling


def _perf(process: int, seconds: int, folder: Path) -> Counter[str]:
    """Samples a process's CPU by row; returns nothing if perf is not installed."""
    perf = shutil.which("perf")
    if perf is None:
        return Counter()
    data = folder / "perf"
    record = [perf, "record", "-q", "-e", "cpu-clock", "-F", str(PERF_HERTZ), "-g", "-p", str(process), "-o", str(data)]
    subprocess.run([*record, "sleep", str(seconds)], check=True)
    script = [perf, "script", "-i", str(data), "-F", "comm,tid,ip,sym,dso"]
    said = subprocess.run(script, check=True, capture_output=True, text=True).stdout
    return Counter(map(part_of_cpu, perf_samples(said)))


def _py_spy(process: int, seconds: int, folder: Path) -> Counter[str]:
    """Samples the thread that holds the GIL."""
    raw = folder / "py-spy"
    command = [str(Path(sys.executable).with_name("py-spy")), "record", "--pid", str(process), "--gil", "--native"]
    options = ["--rate", str(PY_SPY_HERTZ), "--duration", str(seconds), "--format", "raw", "--output", str(raw)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ProfileError(
            f"py-spy failed; it needs the right to trace a process (root, or ptrace_scope 0): {done.stderr}"
        )
    found: Counter[str] = Counter()
    for frames, count in py_spy_samples(raw.read_text()):
        part = part_of_python(frames)
        if part is not None:
            found[part] += count
    return found


@contextlib.contextmanager
def _under_load(send: Callable[[Load], object], loads: Iterable[Load]) -> Iterator[None]:
    """Keeps a server busy with repeated calls."""
    is_over = threading.Event()
    ahead = cycle(loads)

    def go_on() -> None:
        while not is_over.is_set():
            send(next(ahead))

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _profile(server: MeasuredServer, making_calls: Generator, loads: Sequence[Load], seconds: int) -> dict[str, float]:
    """Returns microseconds of CPU per call, by row."""

    def send(load: Load) -> None:
        making_calls.send(server.validation, load, SLICE_CALLS, CLIENTS)

    for load in loads:
        making_calls.send(server.validation, load, 1, 1)
    costs = []
    for _, load in zip(range(SLICES), cycle(loads), strict=False):
        before = server.cpu_seconds()
        send(load)
        costs.append((server.cpu_seconds() - before) / SLICE_CALLS * 1e6)
    microseconds = statistics.median(costs)
    (process,) = server.processes
    with tempfile.TemporaryDirectory(prefix="rummikub-profile-") as folder, _under_load(send, loads):
        found = shares(_perf(process, seconds, Path(folder)), _py_spy(process, seconds, Path(folder)))
    return {row: share * microseconds for row, share in found.items()}


# The table


def table_of(legal: dict[str, float], illegal: dict[str, float]) -> str:
    """Returns the page's table, given microseconds per call by row."""
    head = ["| what | legal, us | % | illegal, us | % |", "| --- | ---: | ---: | ---: | ---: |"]
    rows = [
        f"| {row} | {legal[row]:.0f} | {legal[row] / sum(legal.values()):.0%} "
        f"| {illegal[row]:.0f} | {illegal[row] / sum(illegal.values()):.0%} |"
        for row in ROWS
    ]
    return "\n".join([*head, *rows, f"| together | {sum(legal.values()):.0f} | | {sum(illegal.values()):.0f} | |"])


def main() -> int:
    """Measures and prints; writes the page unless `--quick` is given."""
    parser = argparse.ArgumentParser(description="Profile the CPU time of a ValidateTurn.")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_SECONDS} s each; do not write the page")
    chosen = parser.parse_args()
    seconds = QUICK_SECONDS if chosen.quick else SECONDS
    turns = read()
    settings = {**SERVICE_SETTINGS, "RUMMIKUB_REDIS_URL": "memory://"}
    with generator() as making_calls, serving("service", settings=settings) as process:
        server = ready(process)
        legal, illegal = (
            _profile(server, making_calls, [turn_load(turn) for turn in some], seconds)
            for some in (turns.legal, turns.illegal)
        )
    table = table_of(legal, illegal)
    print(table)
    if not chosen.quick:
        write(PERFORMANCE, COMMAND, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
