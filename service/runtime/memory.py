"""The memory that this process may use: the machine's, or the limit of its cgroups."""

import contextlib
import os
from pathlib import Path
from typing import Final

CGROUPS: Final = Path("/sys/fs/cgroup")
"""Where Linux shows control groups."""
OWN_CGROUPS: Final = Path("/proc/self/cgroup")
"""The groups of this process, one a line: number, controllers, path."""


def usable_memory(cgroups: Path = CGROUPS, own: Path = OWN_CGROUPS) -> int:
    """Returns the memory of the machine, or the lowest limit of this process's cgroups and those above, in bytes."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with contextlib.suppress(OSError):  # no Linux
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:  # version 2
                limits += _limits(cgroups, path, "memory.max")
            elif "memory" in controllers.split(","):
                limits += _limits(cgroups / "memory", path, "memory.limit_in_bytes")
    return min(limits)


def _limits(root: Path, path: str, name: str) -> list[int]:
    """Returns the limits of a group and those above. A container may see only the root, which has its limit then."""
    group = root / path.lstrip("/")
    limits: list[int] = []
    for folder in (group, *group.parents):
        with contextlib.suppress(OSError, ValueError):  # not there, or "max"
            limits.append(int((folder / name).read_text()))
        if folder == root:
            break
    return limits
