"""Process-wide setup: open-file limit, malloc arenas, log, standard output."""

import contextlib
import ctypes
import logging
import os
import resource
import sys
from collections.abc import Sequence
from typing import Any, BinaryIO, Final, cast

import orjson
import structlog

_M_ARENA_MAX: Final = -8
"""glibc's mallopt parameter (malloc.h)."""

_ARENAS: Final = 2
"""Arenas never shrink below their peak, and glibc's default is eight for each processor."""


def raise_file_limit() -> None:
    """Raises the limit of open files to its hard limit: each connection takes one, and the default is often 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # some systems allow less than their hard limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def limit_malloc_arenas() -> None:
    """Makes threads share malloc arenas, unless MALLOC_ARENA_MAX is set.

    Otherwise memory grows with each burst of calls, because other threads, with other arenas, serve each burst.
    """
    if "MALLOC_ARENA_MAX" not in os.environ:
        with contextlib.suppress(OSError, AttributeError):  # only glibc has arenas
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def log_to_stderr(level: str, worker: int | None, processors: Sequence[Any] = ()) -> None:
    """Configures the log: one JSON object a line on standard error, unbuffered because workers share the file.

    Args:
        level: The lowest level to log.
        worker: The worker's number, which each line then has.
        processors: More of structlog's processors, which come first.
    """
    context = {} if worker is None else {"worker": worker}
    structlog.configure(
        processors=[
            *processors,
            lambda _logger, _level, entry: {**entry, **context},
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(orjson.dumps),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.BytesLoggerFactory(cast("BinaryIO", _BestEffortFile(sys.stderr.buffer))),
        cache_logger_on_first_use=True,
    )


class _BestEffortFile:
    """A file that drops what it cannot write (disk full, pipe closed), so that no call fails for its log line."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, line: bytes) -> None:
        with contextlib.suppress(OSError):
            self._file.write(line)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._file.flush()


def write_stdout(text: str) -> None:
    """Writes to standard output, unbuffered, with paths in the file system's encoding. Ignores write errors."""
    with contextlib.suppress(OSError):
        os.write(sys.stdout.fileno(), os.fsencode(text))
