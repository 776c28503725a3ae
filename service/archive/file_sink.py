"""The archive as files: JSON lines, one for each game, and one for each deletion.

Each process writes files of its own, so lines never mix. A new file begins with each day (UTC), at FILE_BYTES_MAX, and
after a failed write. A line is on disk before `write` returns. A file may end with a part of a line if its process was
killed; the game is then written again, to another file.
"""

import asyncio
import contextlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from service.archive.archived_game import ArchivedGame, deletion_line, to_line
from service.archive.sink import SinkUnavailable, WriteResult

FILE_BYTES_MAX: Final = 67_108_864
"""A file that would become longer is followed by a new one."""

_T = TypeVar("_T")


class FileSink:
    """Archived games in a folder. They cannot be read back by id. The constructor raises OSError.

    Args:
        folder: The folder; it is created if it does not exist.
        bytes_max: See FILE_BYTES_MAX.
        clock: Returns seconds since 1970.
    """

    is_readable = False

    def __init__(self, folder: Path, bytes_max: int = FILE_BYTES_MAX, clock: Callable[[], float] = time.time) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds hidden tiles and names
        self._folder = folder
        self._bytes_max = bytes_max
        self._clock = clock
        self._process = secrets.token_hex(8)
        self._number = 0
        self._day = ""
        self._length = 0
        self._file: int | None = None
        self._lock = threading.Lock()

    async def write(self, game: ArchivedGame) -> WriteResult:
        """See Sink."""
        await self._append(to_line, game)
        return WriteResult.WRITTEN

    async def delete(self, game_id: str) -> bool:
        """See Sink. The lines of the game stay."""
        await self._append(deletion_line, game_id)
        return True

    async def _append(self, line_of: Callable[[_T], bytes], subject: _T) -> None:
        try:
            await asyncio.to_thread(lambda: self._append_line(line_of(subject)))
        except OSError as error:
            raise SinkUnavailable(f"{self._folder}: {error.strerror}") from error

    def _append_line(self, line: bytes) -> None:
        with self._lock:
            file = self._file_for(len(line))
            try:
                _write_all(file, line)
                os.fsync(file)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(file, self._length)
                self._close()
                raise
            self._length += len(line)

    def _file_for(self, length: int) -> int:
        """Returns the file for a line of a length: the open one, or a new one."""
        day = time.strftime("%Y-%m-%d", time.gmtime(self._clock()))
        if self._file is not None and (day != self._day or self._length + length > self._bytes_max):
            self._close()
        if self._file is None:
            self._number += 1
            path = self._folder / f"games-{day}-{self._process}-{self._number:06d}.jsonl"
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
            self._day, self._length = day, 0
            _sync_folder(self._folder)
        return self._file

    async def read(self, _game_id: str) -> ArchivedGame | None:
        """See Sink."""
        return None

    async def games_of(self, _player: str) -> Sequence[str]:
        """See Sink."""
        return ()

    async def unlist(self, _player: str, _game_id: str) -> None:
        """See Sink."""

    async def close(self) -> None:
        """See Sink."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            os.close(file)


def _write_all(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]


def _sync_folder(folder: Path) -> None:
    """Makes the name of a new file durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
