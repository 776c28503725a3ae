"""Finds whether a volume is mounted at a folder."""

import os
import re
from pathlib import Path
from typing import Final

MOUNTS: Final = Path("/proc/self/mountinfo")
"""Linux's list of mounts. Its fifth column is the folder, with blanks in octal."""
_MOUNT_POINT: Final = 4


def is_mounted(folder: Path) -> bool:
    """Returns whether something is mounted at a folder, be it a folder of the same file system."""
    place = folder.resolve()
    try:
        lines = MOUNTS.read_text().splitlines()
    except OSError:  # another system
        return os.path.ismount(place)
    return str(place) in {_path_of(line.split()[_MOUNT_POINT]) for line in lines}


def _path_of(column: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), column)
