"""Servers with CPU accounting, each in its own process."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from load.bench.noop_server import ANYWHERE
from tools.servers import ROOT, addresses_of, started

SERVICE_SETTINGS: Final = {
    "RUMMIKUB_LISTEN": ANYWHERE,
    "RUMMIKUB_VALIDATION_LISTEN": ANYWHERE,
    "RUMMIKUB_METRICS_LISTEN": ANYWHERE,
}


@dataclass(frozen=True, slots=True)
class MeasuredServer:
    """A server under load.

    Attributes:
        processes: The ids of the server's process and its children.
        main: The gRPC address.
        validation: The address of ValidationService.
    """

    processes: tuple[int, ...]
    main: str
    validation: str

    def tree(self) -> tuple[int, ...]:
        """The ids of the server's process and its current descendants, without the store's."""
        root = self.processes[0]
        return (root, *_descendants(root))

    def cpu_seconds(self) -> float:
        """Returns the user and system time of all threads of its processes (clock_getcpuclockid(3))."""
        return sum(map(cpu_seconds_of, self.processes))


@contextlib.contextmanager
def serving(
    module: str, *arguments: str, settings: Mapping[str, str] | None = None, checkout: Path = ROOT
) -> Iterator[subprocess.Popen[str]]:
    """Starts a server with the given settings only; use `ready` to wait until it serves."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RUMMIKUB_")}
    with started(module, *arguments, environment={**clean, **(settings or {})}, checkout=checkout) as process:
        yield process


def ready(process: subprocess.Popen[str]) -> MeasuredServer:
    """Waits until a started server serves, and returns it. Raises ServerError."""
    addresses = addresses_of(process)
    return MeasuredServer((process.pid, *_descendants(process.pid)), addresses[0], addresses[-1])


def cpu_seconds_of(pid: int) -> float:
    """Returns the user and system time of a process, all threads together."""
    return time.clock_gettime((~pid << 3) | 2)


def _descendants(pid: int) -> list[int]:
    """Returns the ids of the descendants of a process."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found, ahead = [], [pid]
    while ahead:
        parent = ahead.pop()
        children = [child for child, of in parents.items() if of == parent]
        found += children
        ahead += children
    return found
