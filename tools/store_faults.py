"""Faults of a store's machine, by a preloaded library (store_faults.c): lost power, a full disk, a clock that steps.

A process that was started with the environment of a `FaultyMachine` logs how much of its files is durable. After it was
killed, `lose_power` cuts the files to that. `disk_is_full` and `clock_ms` change what a running process gets.
"""

import os
import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tools.servers import ROOT, ServerError

SOURCE: Final = ROOT / "tools" / "store_faults.c"
COMPILE_SECONDS: Final = 60


def compiled_library(folder: Path) -> Path:
    """Returns the library, compiled into a folder. Raises ServerError without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise ServerError("the faults of a store's machine need a C compiler as cc; run: apt-get install gcc libc6-dev")
    library = folder / "store_faults.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, timeout=COMPILE_SECONDS)
    return library


def cut_to_durable(folder: Path, log: Path) -> None:
    """Truncates every file in a folder to its synced size, as a loss of power would."""
    durable = {}
    for line in log.read_text().splitlines():
        device, inode, size = map(int, line.split())
        durable[device, inode] = size
    for path in folder.rglob("*"):
        if path.is_file():
            file = path.stat()
            os.truncate(path, min(file.st_size, durable.get((file.st_dev, file.st_ino), 0)))


class FaultyMachine:
    """The machine of one store.

    Args:
        library: The compiled library.
        folder: An existing folder for its files, which are not the store's.
    """

    def __init__(self, library: Path, folder: Path) -> None:
        self._library = library
        self._log, self._control = folder / "durable", folder / "faults"
        self._clock_ms = 0
        self._disk_is_full = False
        self._log.touch()
        self._control.write_bytes(struct.pack("qq", 0, 0))

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of processes that run on this machine."""
        return {
            "LD_PRELOAD": str(self._library),
            "POWER_LOSS_LOG": str(self._log),
            "STORE_FAULTS": str(self._control),
        }

    @property
    def clock_ms(self) -> int:
        """By how many milliseconds the time of day is wrong."""
        return self._clock_ms

    @clock_ms.setter
    def clock_ms(self, wrong_by: int) -> None:
        self._clock_ms = wrong_by
        self._write()

    @property
    def disk_is_full(self) -> bool:
        """Whether writes to files fail."""
        return self._disk_is_full

    @disk_is_full.setter
    def disk_is_full(self, is_full: bool) -> None:
        self._disk_is_full = is_full
        self._write()

    def lose_power(self, folder: Path) -> None:
        """Cuts the files of a process, which must have been killed, to what was durable."""
        cut_to_durable(folder, self._log)

    def _write(self) -> None:
        with self._control.open("r+b") as control:  # the same inode: it is mapped
            control.write(struct.pack("qq", self._clock_ms * 1_000, self._disk_is_full))
