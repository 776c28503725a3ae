"""Counters in shared memory: one process writes them, any process can read them.

A write costs little more than a write to a dictionary. Reading does not involve the writer, and the counters survive
its death. Threads of the writer may share them.
"""

import mmap
import os
import threading
from bisect import bisect_left
from collections.abc import Callable
from io import FileIO
from typing import Final, TypeAlias

SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Histogram bounds. A histogram's row has the count of each bucket, the count beyond the last bound, and the sum."""

Key: TypeAlias = tuple[str, ...]
Numbers: TypeAlias = tuple[float, ...]

ROWS: Final = 1024
"""The capacity, several times the number of label combinations that occur. Further rows are not stored."""
_SUM: Final = len(SECONDS) + 1
_KEY_BYTES: Final = 144
_ROW_BYTES: Final = _KEY_BYTES + 8 * (_SUM + 1)
_SEPARATOR: Final = "\n"


class SharedCounters:
    """Rows of numbers by key.

    Args:
        file: The descriptor of a `counter_file`, which may be closed afterwards; None: private memory.
    """

    def __init__(self, file: int | None = None) -> None:
        self._memory = memoryview(mmap.mmap(-1 if file is None else file, ROWS * _ROW_BYTES))
        self._rows: dict[Key, memoryview[float]] = {}
        self._lock = threading.Lock()

    def observe(self, key: Key, seconds: float) -> None:
        """Adds a duration to a histogram."""
        with self._lock:
            try:
                row = self._rows[key]
            except KeyError:
                row = self._new_row(key)
            row[bisect_left(SECONDS, seconds)] += 1
            row[_SUM] += seconds

    def histogram(self, key: Key) -> Callable[[float], None]:
        """Returns a function that adds durations to a histogram, at half the cost of `observe`."""
        lock = self._lock
        with lock:
            row = self._rows.get(key) or self._new_row(key)

        def observe(seconds: float) -> None:
            bucket = bisect_left(SECONDS, seconds)
            with lock:
                row[bucket] += 1
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
            for index, number in enumerate(numbers):
                row[index] = number

    def _new_row(self, key: Key) -> "memoryview[float]":
        """Appends a row. Readers see it when its key is written."""
        start = len(self._rows) * _ROW_BYTES
        name = _SEPARATOR.join(key).encode()
        if start >= len(self._memory) or len(name) > _KEY_BYTES:
            return memoryview(bytearray(_ROW_BYTES)).cast("d")  # discarded: a full table must not fail a call
        row = self._rows[key] = self._memory[start + _KEY_BYTES : start + _ROW_BYTES].cast("d")
        self._memory[start : start + len(name)] = name
        return row

    def read(self) -> dict[Key, Numbers]:
        """Returns all rows, in any process."""
        rows: dict[Key, Numbers] = {}
        for start in range(0, len(self._memory), _ROW_BYTES):
            name = bytes(self._memory[start : start + _KEY_BYTES]).rstrip(b"\0")
            if not name:
                break
            numbers = self._memory[start + _KEY_BYTES : start + _ROW_BYTES].cast("d")
            rows[tuple(name.decode().split(_SEPARATOR))] = tuple(numbers)
        return rows


def counter_file() -> FileIO:
    """Returns an anonymous in-memory file for counters that two processes share."""
    file = FileIO(os.memfd_create("rummikub-counters"), "r+")
    file.truncate(ROWS * _ROW_BYTES)
    return file
