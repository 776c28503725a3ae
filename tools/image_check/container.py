"""Runs the command of an image as an engine does with `--read-only --tmpfs /tmp --cap-drop=ALL`, without an engine.

It needs root, and namespaces of its own for mounts and network around it.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tools.image_check.config import ImageConfig, ImageError
from tools.servers import START_SECONDS

DATA: Final = "/app/data"
DEVICES: Final = ("null", "zero", "full", "random", "urandom")
POLL_SECONDS: Final = 0.1
SCRIPT: Final = f"""set -e
root=$1 volume=$2 temporary=$3; shift 3
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755,nosuid tmpfs "$root/dev"
for name in {" ".join(DEVICES)}; do touch "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
mkdir -m 1777 "$root/dev/shm"
mount -o remount,ro "$root/dev"
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/dev/shm"
test -z "$temporary" || mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/tmp"
test -z "$volume" || mount --bind "$volume" "$root{DATA}"
exec "$@"
"""
"""Mounts what a container has, and becomes its command."""


class Container:
    """A running image. Its output goes to a file. Ends when the context does.

    Args:
        config: What the image declares.
        root: Where the image is mounted.
        log: The file for its output.
        volume: The folder to mount at /app/data; None: nothing.
        temporary: Whether /tmp can be written to.
    """

    def __init__(
        self, config: ImageConfig, root: Path, log: Path, volume: Path | None, *, temporary: bool = True
    ) -> None:
        self._config = config
        self._root = root
        self._log = log
        self._volume = volume
        self._temporary = temporary
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        script = (
            "sh",
            "-c",
            SCRIPT,
            "container",
            str(self._root),
            str(self._volume or ""),
            "yes" if self._temporary else "",
        )
        namespaces = ("unshare", "--mount", "--pid", "--fork", "--propagation=private")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*namespaces, *script, *self._inside(self._config.command)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._started
        if process.poll() is None:
            for child in _children(process.pid):
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    os.kill(child, signal.SIGKILL)
            process.kill()
            process.wait()

    @property
    def pid(self) -> int:
        """The id of its process 1 outside of it. Raises ImageError if it has ended."""
        while not (children := _children(self._started.pid)):  # unshare forks when it has made the namespaces
            if self._started.poll() is not None:
                raise ImageError(f"the container has ended by itself:\n{self.output()}")
            time.sleep(POLL_SECONDS)
        return children[0]

    def output(self) -> str:
        """Returns what it has printed."""
        return self._log.read_text(errors="replace")

    def is_healthy(self) -> bool:
        """Returns whether the image's health check passes now. Raises ImageError if the container has ended."""
        enter = ("nsenter", f"--target={self.pid}", "--mount", "--pid")
        check = (*enter, *self._inside(self._config.health))
        return not subprocess.run(check, capture_output=True, check=False).returncode

    def wait_until_healthy(self) -> float:
        """Returns after how many seconds the health check passes. Raises ImageError."""
        began = time.monotonic()
        while not self.is_healthy():
            if time.monotonic() > began + START_SECONDS:
                raise ImageError(f"not healthy after {START_SECONDS:g} s:\n{self.output()}")
            time.sleep(POLL_SECONDS)
        return time.monotonic() - began

    def stop(self, grace_seconds: float) -> tuple[int, float]:
        """Sends the stop signal; returns the exit status and the seconds that it took. Raises ImageError."""
        began = time.monotonic()
        os.kill(self.pid, signal.Signals[self._config.stop_signal])
        try:
            return self._started.wait(grace_seconds), time.monotonic() - began
        except subprocess.TimeoutExpired:
            raise ImageError(
                f"runs on {grace_seconds:g} s after {self._config.stop_signal}:\n{self.output()}"
            ) from None

    def ended(self) -> int:
        """Waits until it ends by itself; returns its exit status. Raises ImageError if it does not."""
        try:
            return self._started.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            raise ImageError(f"runs, and should have refused to start:\n{self.output()}") from None

    @property
    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ImageError("the container was not started")
        return self._process

    def _inside(self, command: Sequence[str]) -> tuple[str, ...]:
        """Returns a command that runs another one in the root: with the image's variables, as its user."""
        user, group = self._config.user
        variables = {"HOME": self._config.folder, **self._config.environment}
        enter = (shutil.which("unshare") or "unshare", f"--root={self._root}", f"--wd={self._config.folder}")
        clean = ("env", "-i", *(f"{name}={value}" for name, value in variables.items()))  # PATH is now the image's
        return ("setpriv", "--no-new-privs", *clean, *enter, f"--setgid={group}", f"--setuid={user}", *command)


def _children(pid: int) -> list[int]:
    """Returns the child processes of a process."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
