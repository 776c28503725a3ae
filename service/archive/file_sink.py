"""The archive as files: JSON lines, one for each game and one for each deletion, and an index by which games are read.

Each process writes files of its own, so lines never mix. A new file begins with each day (UTC), at FILE_BYTES_MAX, and
after a failed write. A line is on disk before the index has it, and then the line that it replaces is overwritten with
spaces. A process that is killed may leave a line, or a part of one, that the index does not have; the game is then
written again.
"""

import asyncio
import contextlib
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from service.archive.archived_game import ArchivedGame, LineHead, deletion_line, from_line, to_line
from service.archive.file_index import FileIndex, Place
from service.archive.sink import SinkUnavailable, WriteResult, reason_of, write_result
from service.errors import StoredFormatUnknown

FILE_BYTES_MAX: Final = 67_108_864
"""A file that would become longer is followed by a new one."""
READS: Final = 3
"""How often a line is read that is replaced at the same time."""

_T = TypeVar("_T")
_P = ParamSpec("_P")


class FileSink:
    """Archived games in a folder of this machine. The constructor raises OSError, ValueError.

    Args:
        folder: The folder; it is created if it does not exist.
        bytes_max: See FILE_BYTES_MAX.
        clock: Returns seconds since 1970.
    """

    def __init__(self, folder: Path, bytes_max: int = FILE_BYTES_MAX, clock: Callable[[], float] = time.time) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds hidden tiles and names
        self._folder = folder
        self._lines = _LineFiles(folder, bytes_max, clock)
        try:
            self._index = FileIndex(folder)
        except sqlite3.Error as error:
            raise ValueError(f"the folder's index cannot be used ({reason_of(error)})") from error

    async def write(self, game: ArchivedGame) -> WriteResult:
        """See Sink."""
        return await self._in_thread(self._write, game)

    def _write(self, game: ArchivedGame) -> WriteResult:
        record, line = game.record, to_line(game)
        head = LineHead(record.created_ms, record.game.revision, frozenset(game.players))
        with self._index.changing():
            before = self._index.find(record.game_id)
            result = write_result(before.head, game) if before else WriteResult.WRITTEN
            if result is WriteResult.WRITTEN:
                self._index.put(record.game_id, head, self._lines.append(line))
        self._blank_replaced(record.game_id)
        return result

    async def read(self, game_id: str) -> ArchivedGame | None:
        """See Sink. A game whose file was moved is not found."""
        return await self._in_thread(self._read, game_id)

    def _read(self, game_id: str) -> ArchivedGame | None:
        for _ in range(READS):
            place = self._index.place_of(game_id)
            line = self._lines.read(place) if place else b""
            if not line:
                return None
            if not line.isspace():
                game = from_line(line)
                if game.record.game_id != game_id:  # somebody has changed the file
                    raise StoredFormatUnknown
                return game
        raise SinkUnavailable("other servers write the game")

    async def delete(self, game_id: str) -> bool:
        """See Sink."""
        return await self._in_thread(self._delete, game_id)

    def _delete(self, game_id: str) -> bool:
        with self._index.changing():
            before = self._index.find(game_id)
            if before is None or before.head:
                self._lines.append(deletion_line(game_id))
                self._index.delete(game_id)
        return self._blank_replaced(game_id)

    async def games_of(self, player: str) -> Sequence[str]:
        """See Sink."""
        return await self._in_thread(self._index.games_of, player)

    async def unlist(self, _player: str, _game_id: str) -> None:
        """See Sink. The index has the players of a game, so writing the game is enough."""

    def _blank_replaced(self, game_id: str) -> bool:
        """Blanks the replaced lines of a game, and those of other games that an error or a kill has left.

        Returns whether the game had one.
        """
        replaced = self._index.replaced()
        for other_id, place in replaced:
            try:
                self._lines.blank(place)
            except OSError:
                if other_id == game_id:
                    raise
            else:
                self._index.blanked(place)
        return any(other_id == game_id for other_id, _ in replaced)

    async def _in_thread(self, call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return await asyncio.to_thread(call, *args, **kwargs)
        except OSError as error:
            raise SinkUnavailable(f"{self._folder}: {error.strerror}") from error
        except sqlite3.Error as error:
            raise SinkUnavailable(f"the index in {self._folder}: {reason_of(error)}") from error

    async def close(self) -> None:
        """See Sink."""
        self._index.close()  # waits for a call under way
        self._lines.close()


class _LineFiles:
    """The files of lines. Lines are appended by one thread at a time; all methods raise OSError."""

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

    def append(self, line: bytes) -> Place:
        """Appends a line, and returns where it is once it is on disk."""
        file = self._file_for(len(line))
        try:
            _write_all(file, line)
            os.fsync(file)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(file, self._length)
            self.close()
            raise
        self._length += len(line)
        return Place(self._name, self._length - len(line), len(line))

    def _file_for(self, length: int) -> int:
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
        """Overwrites a line with spaces, on disk, unless its file is gone."""
        with contextlib.suppress(FileNotFoundError), (self._folder / place.file).open("r+b", buffering=0) as file:
            file.seek(place.start)
            _write_all(file.fileno(), b" " * (place.length - 1))
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
