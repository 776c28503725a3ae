"""The archive as files: JSON lines, one for each game and one for each deletion, and an index by which games are read.

Each process writes files of its own, so lines never mix. A new file begins with each day (UTC), at FILE_BYTES_MAX, and
after a failed write. One process at a time changes the folder. It first reserves the place of a line in the index, then
writes the line, then makes it the line of its game, and last overwrites the line that it replaces with spaces. If it
fails or is killed in between, the next change of any process overwrites what is not used. Every step is on disk before
the next one.
"""

import asyncio
import contextlib
import errno
import fcntl
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from service.errors import StoredFormatUnknown
from service.operator.archive.archived_game import ArchivedGame, deletion_line, from_line, to_line
from service.operator.archive.file_index import BUSY_SECONDS, FileIndex, Place
from service.operator.archive.sink import SinkUnavailable, WriteResult, reason_of, write_result

FILE_BYTES_MAX: Final = 67_108_864
"""A file that would become longer is followed by a new one."""
READS: Final = 3
"""How often a line is read that is replaced at the same time."""
LOCK_POLL_SECONDS: Final = 0.005
"""The interval of attempts to take the lock, because flock has no timeout."""

_T = TypeVar("_T")


class FileSink:
    """Archived games in a folder of this machine. The constructor raises OSError, ValueError.

    One thread makes all changes and another one all reads: anyone may cause reads, and they hold up no write.

    Args:
        folder: The folder; it is created if it does not exist.
        bytes_max: See FILE_BYTES_MAX.
        clock: Returns seconds since 1970.
    """

    def __init__(self, folder: Path, bytes_max: int = FILE_BYTES_MAX, clock: Callable[[], float] = time.time) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds hidden tiles and names
        self._folder = folder
        self._lock = _FolderLock(folder)
        self._lines = _LineFiles(folder, bytes_max, clock)
        try:
            self._index, self._index_for_reads = FileIndex(folder), FileIndex(folder)
        except sqlite3.Error as error:
            raise ValueError(f"the folder's index cannot be used ({reason_of(error)})") from error
        self._changes, self._reads = (ThreadPoolExecutor(1, f"archive-{name}") for name in ("changes", "reads"))

    async def write(self, game: ArchivedGame) -> WriteResult:
        return await self._run(self._changes, lambda: self._write(game))

    def _write(self, game: ArchivedGame) -> WriteResult:
        game_id, line = game.record.game_id, to_line(game)
        with self._lock.held():
            if self._index.is_deleted(game_id):
                return WriteResult.DELETED
            before = self._index.find(game_id)
            result = write_result(before.head, game) if before else WriteResult.WRITTEN
            if result is WriteResult.WRITTEN and not (before and self._lines.read(before.place) == line):
                self._index.put(game_id, game.head, self._append(game_id, line))
            unblanked = self._blank_unused()
            if game_id in unblanked and before and before.head.players > game.head.players:
                raise unblanked[game_id]
        return result

    async def read(self, game_id: str) -> ArchivedGame | None:
        """See Sink. A game whose file was moved is not found."""
        return await self._run(self._reads, lambda: self._read(game_id))

    def _read(self, game_id: str) -> ArchivedGame | None:
        for _ in range(READS):
            place = self._index_for_reads.place_of(game_id)
            line = self._lines.read(place) if place else b""
            if not line:
                return None
            if self._index_for_reads.place_of(game_id) == place:  # else the line may be blank, wholly or in part
                game = from_line(line)
                if game.record.game_id != game_id:  # somebody has changed the file
                    raise StoredFormatUnknown
                return game
        raise SinkUnavailable("other servers write the game")

    async def delete(self, game_id: str) -> bool:
        return await self._run(self._changes, lambda: self._delete(game_id))

    def _delete(self, game_id: str) -> bool:
        with self._lock.held():
            was_written = self._index.has_line(game_id)
            if not self._index.is_deleted(game_id):
                self._index.delete(game_id, self._append(game_id, deletion_line(game_id)))
            unblanked = self._blank_unused()
            if game_id in unblanked:
                raise unblanked[game_id]
        return was_written

    async def games_of(self, player: str) -> Sequence[str]:
        return await self._run(self._reads, lambda: self._index_for_reads.games_of(player))

    async def unlist(self, player: str, game_id: str) -> None:
        """See Sink. The line stays, for example one whose file was moved."""
        await self._run(self._changes, lambda: self._index.unlist(player, game_id))

    def _append(self, game_id: str, line: bytes) -> Place:
        """Appends a line, which is unused until the index has it."""
        return self._lines.append(line, lambda place: self._index.reserve(game_id, place))

    def _blank_unused(self) -> dict[str, OSError]:
        """Blanks unused lines. Returns an error for each game that has one which cannot be blanked now."""
        failed: dict[str, OSError] = {}
        for game_id, place in self._index.unused():
            try:
                self._lines.blank(place)
            except OSError as error:
                failed[game_id] = error
            else:
                self._index.forget_unused(place)
        return failed

    async def _run(self, executor: Executor, call: Callable[[], _T]) -> _T:
        try:
            return await asyncio.get_running_loop().run_in_executor(executor, call)
        except OSError as error:
            raise SinkUnavailable(f"{self._folder}: {error.strerror}") from error
        except sqlite3.Error as error:
            raise SinkUnavailable(f"the index in {self._folder}: {reason_of(error)}") from error

    async def close(self) -> None:
        for executor in (self._changes, self._reads):
            await asyncio.to_thread(executor.shutdown)
        for part in (self._index, self._index_for_reads, self._lines, self._lock):
            part.close()


class _FolderLock:
    """The right to change a folder, which one process has at a time. All methods raise OSError."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Holds the lock within the context."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise OSError(errno.EAGAIN, "another process has locked it") from None
                time.sleep(LOCK_POLL_SECONDS)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Closes the lock's file."""
        os.close(self._file)


class _LineFiles:
    """The files of lines. One thread appends lines; all methods raise OSError."""

    def __init__(self, folder: Path, bytes_max: int, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._bytes_max = bytes_max
        self._clock = clock
        self._process = secrets.token_hex(8)
        self._number = 0
        self._day = ""
        self._name = ""
        self._length = 0
        self._file: int | None = None

    def append(self, line: bytes, reserve: Callable[[Place], None]) -> Place:
        """Appends a line, and returns where it is once it is on disk. First calls a function with that place."""
        file = self._open_for(len(line))
        place = Place(self._name, self._length, len(line))
        reserve(place)
        try:
            _write_all(file, line)
            os.fsync(file)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(file, self._length)
            self.close()
            raise
        self._length += len(line)
        return place

    def _open_for(self, length: int) -> int:
        """Returns the file for a line of a length: the open one, or a new one."""
        day = time.strftime("%Y-%m-%d", time.gmtime(self._clock()))
        if self._file is not None and (day != self._day or self._length + length > self._bytes_max):
            self.close()
        if self._file is None:
            self._number += 1
            self._name = f"games-{day}-{self._process}-{self._number:06d}.jsonl"
            self._file = os.open(self._folder / self._name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
            self._day, self._length = day, 0
            _sync_folder(self._folder)
        return self._file

    def read(self, place: Place) -> bytes:
        """Returns a line; b"" if its file is gone."""
        try:
            with (self._folder / place.file).open("rb") as file:
                file.seek(place.start)
                return file.read(place.length)
        except FileNotFoundError:
            return b""

    def blank(self, place: Place) -> None:
        """Overwrites a line, or the part of it that was written, with spaces. Does nothing if its file is gone."""
        with contextlib.suppress(FileNotFoundError), (self._folder / place.file).open("r+b", buffering=0) as file:
            written = min(place.length, file.seek(0, os.SEEK_END) - place.start)
            file.seek(place.start)
            _write_all(file.fileno(), (b" " * (place.length - 1) + b"\n")[: max(0, written)])
            os.fsync(file)

    def close(self) -> None:
        """Closes the file that lines are appended to; the next line begins a new one."""
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
