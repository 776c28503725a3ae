"""Rows of numbers by key, in memory that other processes may read: one process keeps a tally, any may read it.

Keeping one costs hardly more than numbers in a dictionary. Reading takes no time of the process that keeps it, and what
was kept outlives that process, even if it was killed. Threads may share a tally: a lock guards each change.
"""

import mmap
import os
import threading
from bisect import bisect_left
from collections.abc import Callable
from io import FileIO
from typing import Final, TypeAlias

SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Bounds of histograms. A row that is one holds how many durations were up to each, how many beyond, and their sum."""

Key: TypeAlias = tuple[str, ...]
Numbers: TypeAlias = tuple[float, ...]

ROWS: Final = 1024
"""Many more than there are methods with their codes and operations of the store; there is no row beyond."""
_SUM: Final = len(SECONDS) + 1
_KEY_BYTES: Final = 144
_ROW_BYTES: Final = _KEY_BYTES + 8 * (_SUM + 1)
_BETWEEN: Final = "\n"
"""Stands between the parts of a key."""


class Tally:
    """A tally.

    Args:
        file: The descriptor of a `new_file`, which may be closed then; none: memory of this process alone.
    """

    def __init__(self, file: int | None = None) -> None:
        self._memory = memoryview(mmap.mmap(-1 if file is None else file, ROWS * _ROW_BYTES))
        self._rows: dict[Key, memoryview[float]] = {}
        self._lock = threading.Lock()

    def observe(self, key: Key, seconds: float) -> None:
        """Counts a duration in a row that is a histogram."""
        with self._lock:
            try:
                row = self._rows[key]
            except KeyError:
                row = self._new_row(key)
            row[bisect_left(SECONDS, seconds)] += 1
            row[_SUM] += seconds

    def histogram(self, key: Key) -> Callable[[float], None]:
        """What counts durations in a row that is a histogram: for half the time, if it is kept."""
        lock = self._lock
        with lock:
            row = self._rows.get(key) or self._new_row(key)

        def observe(seconds: float) -> None:
            place = bisect_left(SECONDS, seconds)
            with lock:
                row[place] += 1
                row[_SUM] += seconds

        return observe

    def add(self, key: Key, number: float) -> None:
        """Adds to the first number of a row."""
        with self._lock:
            row = self._rows.get(key) or self._new_row(key)
            row[0] += number

    def set(self, key: Key, *numbers: float) -> None:
        """Sets the first numbers of a row."""
        with self._lock:
            row = self._rows.get(key) or self._new_row(key)
            for place, number in enumerate(numbers):
                row[place] = number

    def _new_row(self, key: Key) -> "memoryview[float]":
        """The next row, with its key; a reader sees it from then on."""
        start = len(self._rows) * _ROW_BYTES
        name = _BETWEEN.join(key).encode()
        if start >= len(self._memory) or len(name) > _KEY_BYTES:
            return memoryview(bytearray(_ROW_BYTES)).cast("d")  # not kept: a call is not to fail for that
        row = self._rows[key] = self._memory[start + _KEY_BYTES : start + _ROW_BYTES].cast("d")
        self._memory[start : start + len(name)] = name
        return row

    def read(self) -> dict[Key, Numbers]:
        """All rows, whichever process keeps them."""
        rows: dict[Key, Numbers] = {}
        for start in range(0, len(self._memory), _ROW_BYTES):
            name = bytes(self._memory[start : start + _KEY_BYTES]).rstrip(b"\0")
            if not name:
                break
            numbers = self._memory[start + _KEY_BYTES : start + _ROW_BYTES].cast("d")
            rows[tuple(name.decode().split(_BETWEEN))] = tuple(numbers)
        return rows


def new_file() -> FileIO:
    """Memory for a tally of two processes, as an open file that is on no disk."""
    file = FileIO(os.memfd_create("rummikub-tally"), "r+")
    file.truncate(ROWS * _ROW_BYTES)
    return file
