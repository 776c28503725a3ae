"""Servers whose CPU is measured, each in a process of its own."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from load.bench.noop_server import ANYWHERE
from load.servers import ROOT, addresses_of, started

SERVICE_SETTINGS: Final = {
    "RUMMIKUB_LISTEN": ANYWHERE,
    "RUMMIKUB_VALIDATION_LISTEN": ANYWHERE,
    "RUMMIKUB_METRICS_LISTEN": ANYWHERE,
}

_STAT: Final = Path("/proc/stat")


@dataclass(frozen=True, slots=True)
class MeasuredServer:
    """A server under load.

    Attributes:
        processes: Of the server, with those that it started.
        main: Where it listens.
        validation: Where it listens for ValidationService.
    """

    processes: tuple[int, ...]
    main: str
    validation: str

    def tree(self) -> tuple[int, ...]:
        """The server's process and all that have come of it by now, without the store's."""
        root = self.processes[0]
        return (root, *_descendants(root))

    def cpu_seconds(self) -> float:
        """User and system time of all threads of its processes (clock_getcpuclockid(3))."""
        return sum(map(cpu_seconds_of, self.processes))


@contextlib.contextmanager
def serving(
    module: str, *arguments: str, settings: Mapping[str, str] | None = None, checkout: Path = ROOT
) -> Iterator[subprocess.Popen[str]]:
    """A server that was started, by no settings but those given, and may not serve yet: see `ready`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RUMMIKUB_")}
    with started(module, *arguments, environment={**clean, **(settings or {})}, checkout=checkout) as process:
        yield process


def ready(process: subprocess.Popen[str]) -> MeasuredServer:
    """A server that was started, when it serves. Raises ServerError."""
    addresses = addresses_of(process)
    return MeasuredServer((process.pid, *_descendants(process.pid)), addresses[0], addresses[-1])


def cpu_seconds_of(pid: int) -> float:
    """User and system time of a process, all its threads together."""
    return time.clock_gettime((~pid << 3) | 2)


def machine_busy_seconds() -> float:
    """For how long the machine's processors were busy, with whatever, all of them together."""
    user, nice, system, _idle, _waiting, *others = map(int, _STAT.read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + sum(others)) / os.sysconf("SC_CLK_TCK")


def _descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # ended meanwhile
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found, ahead = [], [pid]
    while ahead:
        parent = ahead.pop()
        children = [child for child, of in parents.items() if of == parent]
        found += children
        ahead += children
    return found
