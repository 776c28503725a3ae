"""Files that a running server reads again when they change."""

from pathlib import Path
from typing import TypeAlias

Stamp: TypeAlias = tuple[int, ...] | None


def stamp_of(path: Path) -> Stamp:
    """Returns numbers that change with a file; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
