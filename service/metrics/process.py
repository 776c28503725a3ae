"""Metrics of the server's processes, under the names that Prometheus's clients use, and what was built.

A server has workers, processes that search, and perhaps an embedded store: the figures are sums over all of them, read
from /proc at each scrape. Elsewhere than on Linux there are none.
"""

import os
import resource
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

PROC: Final = Path("/proc")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_PARENT, _CPU, _RESIDENT = 1, slice(11, 15), 21
"""The places of fields in /proc/PID/stat after the program's name. CPU includes that of children that have ended."""


class ProcessCollector(Collector):
    """Adds up CPU, memory and descriptors of this process and of all that descend from it."""

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics; without /proc only those of the build."""
        built = GaugeMetricFamily("rummikub_build_info", "1, with the versions as labels", labels=("version", "grpcio"))
        built.add_metric((version("rummikub-service"), version("grpcio")), 1)
        yield built
        if not (PROC / "self" / "stat").exists():
            return
        stats = dict(_family())
        cpu = sum(sum(map(int, fields[_CPU])) for fields in stats.values()) / _TICKS
        resident = sum(int(fields[_RESIDENT]) for fields in stats.values()) * _PAGE_BYTES
        yield CounterMetricFamily("process_cpu_seconds", "User and system time of the server's processes", cpu)
        yield GaugeMetricFamily("process_resident_memory_bytes", "Resident memory of the server's processes", resident)
        yield GaugeMetricFamily(
            "process_open_fds", "Open descriptors of the server's processes", sum(map(_open, stats))
        )
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        yield GaugeMetricFamily("process_max_fds", "Most descriptors of one process", limit)


def _family() -> Iterator[tuple[int, list[str]]]:
    """Yields the processes of the server with their fields in /proc/PID/stat."""
    stats: dict[int, list[str]] = {}
    for folder in PROC.iterdir():
        if folder.name.isdecimal():
            try:
                stats[int(folder.name)] = (folder / "stat").read_text().rpartition(") ")[2].split()
            except OSError:
                continue  # it has ended
    own = {os.getpid()}
    while more := {pid for pid, fields in stats.items() if int(fields[_PARENT]) in own} - own:
        own |= more
    return ((pid, stats[pid]) for pid in own if pid in stats)


def _open(pid: int) -> int:
    """Returns the number of open descriptors of a process; 0 if it has ended."""
    try:
        return sum(1 for _ in (PROC / str(pid) / "fd").iterdir())
    except OSError:
        return 0
