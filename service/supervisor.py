"""Several processes that serve as one: started, replaced when they end by themselves, and stopped together.

Each is a server of its own on the store and at the address that all share, as replicas on several machines would be. It
is told by a socket: it says there when it serves, and when the socket ends, so does it, however its parent has ended.
What it counts is in memory that the parent reads.
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from service.metrics.metrics import Together
from service.metrics.shared_counters import Tally, new_file
from service.settings import PREFIX

COMMAND: Final = (sys.executable, "-m", "service")
OPTION: Final = "--as-worker"
"""Says that a process is a worker; its number and two open files follow."""
STEADY_SECONDS: Final = 10.0
"""A worker that has run for so long has not failed to start."""
MOST_FAILED_STARTS: Final = 5
"""After how many in a row of one worker the others end too: something is wrong that starting again does not mend."""
FIRST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 5.0
"""Before a worker is replaced that has ended at once; each time twice as long."""

_log = structlog.get_logger()


class WorkersError(Exception):
    """Workers cannot be kept running."""


@dataclass(frozen=True, slots=True)
class Place:
    """A worker's place among the others, as its command says.

    Attributes:
        number: Of the worker, from 1.
        channel: The open socket to the parent.
        tally: The open memory in which the worker counts.
    """

    number: int
    channel: int
    tally: int

    @property
    def arguments(self) -> tuple[str, ...]:
        """What a worker's command ends with."""
        return (OPTION, str(self.number), str(self.channel), str(self.tally))


class Parent:
    """The parent of this process, which is a worker."""

    def __init__(self, place: Place) -> None:
        self._channel = socket.socket(fileno=place.channel)
        self._channel.setblocking(False)  # noqa: FBT003 - its only parameter

    def tell_serving(self) -> None:
        """Says that this worker serves."""
        with contextlib.suppress(OSError):  # of a parent that is gone
            self._channel.send(b"\n")

    async def ended(self) -> None:
        """Returns when the parent has ended."""
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().sock_recv(self._channel, 1)

    def close(self) -> None:
        """Closes the socket."""
        self._channel.close()


class Workers:
    """Worker processes.

    Args:
        settings: The variables that each gets beside those of this process, in the order of their numbers.
        patience_seconds: How long they may take to stop.
        command: What starts one.
    """

    def __init__(
        self, settings: Sequence[Mapping[str, str]], patience_seconds: float, command: Sequence[str] = COMMAND
    ) -> None:
        self._settings = settings
        self._patience_seconds = patience_seconds
        self._command = command
        self._stopping = asyncio.Event()
        self._all_served = asyncio.Event()
        self._served: set[int] = set()
        self._processes: dict[int, Process] = {}
        self._keepers: list[asyncio.Task[None]] = []
        self.metrics = Together()

    def start(self) -> None:
        """Starts all, to be kept running until `stop`."""
        for number, settings in enumerate(self._settings, start=1):
            keeper = self._keep(number, _environment(settings))
            self._keepers.append(asyncio.create_task(keeper, name=f"worker-{number}"))

    async def serving(self) -> None:
        """Returns when all of them have begun to serve."""
        await self._all_served.wait()

    async def failed(self) -> Exception:
        """Returns when a worker cannot be kept running, with what to say then."""
        done, _ = await asyncio.wait(self._keepers, return_when=asyncio.FIRST_EXCEPTION)
        return next(error for keeper in done if isinstance(error := keeper.exception(), Exception))

    async def stop(self) -> None:
        """Asks all to stop, at the same time, and returns when they have ended."""
        self._stopping.set()
        for process in self._processes.values():
            _send(process, signal.SIGTERM)
        _, late = await asyncio.wait(self._keepers, timeout=self._patience_seconds)
        if late:
            _log.warning("workers do not stop and are killed", workers=sorted(self._processes))
        for process in self._processes.values():
            _send(process, signal.SIGKILL)
        await asyncio.gather(*self._keepers, return_exceptions=True)

    async def _keep(self, number: int, environment: Mapping[str, str]) -> None:
        """Runs a worker, and the next one after its end, until they are to stop. Raises WorkersError."""
        loop = asyncio.get_running_loop()
        failed_starts = 0
        while not self._stopping.is_set():
            started = loop.time()
            try:
                ending = f"exit code {await self._run(number, environment)}"
            except OSError as error:
                ending = f"not started: {error.strerror}"
            if self._stopping.is_set():
                return
            failed_starts = failed_starts + 1 if loop.time() - started < STEADY_SECONDS else 0
            _log.error("worker has ended by itself", worker=number, ending=ending, failed_starts=failed_starts)
            if failed_starts == MOST_FAILED_STARTS:
                raise WorkersError("workers end again and again as soon as they are started: see the log above")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _pause(failed_starts))

    async def _run(self, number: int, environment: Mapping[str, str]) -> int:
        """Runs a worker until its end; its exit code. Raises OSError if it cannot be started."""
        channel, theirs = socket.socketpair()
        with channel:
            with theirs, new_file() as file:
                tally = Tally(file.fileno())
                process = await self._start(Place(number, theirs.fileno(), file.fileno()), environment)
            self._processes[number] = process
            if self._stopping.is_set():
                _send(process, signal.SIGTERM)
            if await _serves(channel):
                self.metrics.join(tally)
                self._note_serving(number)
            code = await process.wait()
            del self._processes[number]
            self.metrics.leave(tally)
            return code

    async def _start(self, place: Place, environment: Mapping[str, str]) -> Process:
        return await asyncio.create_subprocess_exec(
            *self._command,
            *place.arguments,
            env=environment,
            stdin=DEVNULL,
            stdout=DEVNULL,
            pass_fds=(place.channel, place.tally),
            start_new_session=True,  # Ctrl-C in a terminal is for the parent, which stops its workers
        )

    def _note_serving(self, number: int) -> None:
        self._served.add(number)
        if len(self._served) == len(self._settings):
            self._all_served.set()


async def _serves(channel: socket.socket) -> bool:
    """Waits until a worker says that it serves; false if it ends before."""
    channel.setblocking(False)  # noqa: FBT003 - its only parameter
    with contextlib.suppress(OSError):
        return bool(await asyncio.get_running_loop().sock_recv(channel, 1))
    return False


def share(total: int, workers: int, number: int) -> int:
    """What a worker gets of what all may have together, but one at least."""
    return max(1, total // workers + (number <= total % workers))


def _pause(failed_starts: int) -> float:
    """How long to wait before a worker is replaced."""
    if not failed_starts:
        return 0.0
    return min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** (failed_starts - 1))


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    """This process's environment with other settings, which may stand there in lower case too."""
    changed = {f"{PREFIX}{name.upper()}": value for name, value in settings.items()}
    return {name: value for name, value in os.environ.items() if name.upper() not in changed} | changed


def _send(process: Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended in this very moment
        process.send_signal(number)
