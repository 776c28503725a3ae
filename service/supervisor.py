"""Supervises worker processes: starts them, restarts those that die, and stops all together.

Each worker is a complete server; all use the same store and listen on the same address, as replicas on several machines
would. A socket pair connects each worker with the supervisor. The worker sends a byte on it when it serves, and stops
when the socket closes, which happens however the supervisor ends. Its counters are in memory that the supervisor reads.
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

from service.metrics.metrics import MergedMetrics
from service.metrics.shared_counters import SharedCounters, counter_file
from service.settings import PREFIX

COMMAND: Final = (sys.executable, "-m", "service")
OPTION: Final = "--as-worker"
"""The command-line option of a worker, followed by WorkerArguments."""
STEADY_SECONDS: Final = 10.0
"""A worker that ends within this time counts as a failed start."""
MOST_FAILED_STARTS: Final = 5
"""After this number of failed starts of one worker the supervisor gives up."""
UNUSABLE_SETTINGS: Final = 78
"""The exit code of a worker that cannot use its settings (EX_CONFIG). The supervisor could, so a file has an error now,
which the running workers do not use. It is no failed start."""
FIRST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 5.0
"""The exponential backoff between starts."""

_log = structlog.get_logger()


class SupervisorError(Exception):
    """The workers cannot be kept running."""


@dataclass(frozen=True, slots=True)
class WorkerArguments:
    """A worker's command-line arguments.

    Attributes:
        number: The worker's number, from 1.
        channel: The descriptor of the socket to the supervisor.
        counters: The descriptor of the shared counters.
    """

    number: int
    channel: int
    counters: int

    @property
    def arguments(self) -> tuple[str, ...]:
        """The end of the worker's command line."""
        return (OPTION, str(self.number), str(self.channel), str(self.counters))


class SupervisorChannel:
    """A worker's connection to its supervisor."""

    def __init__(self, arguments: WorkerArguments) -> None:
        self._socket = socket.socket(fileno=arguments.channel)
        self._socket.setblocking(False)  # noqa: FBT003 - its only parameter

    def report_serving(self) -> None:
        """Reports that this worker serves."""
        with contextlib.suppress(OSError):  # the supervisor has ended
            self._socket.send(b"\n")

    async def ended(self) -> None:
        """Returns when the supervisor has ended."""
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().sock_recv(self._socket, 1)

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()


class Supervisor:
    """The worker processes.

    Args:
        settings: For each worker, the settings that differ from this process's environment.
        grace_seconds: Time for the workers to stop before they are killed.
        command: The command of a worker.

    Attributes:
        metrics: The workers' together.
        first_pause_seconds: The first pause of the exponential backoff between starts.
    """

    def __init__(
        self, settings: Sequence[Mapping[str, str]], grace_seconds: float, command: Sequence[str] = COMMAND
    ) -> None:
        self._settings = settings
        self._grace_seconds = grace_seconds
        self._command = command
        self._stopping = asyncio.Event()
        self._all_served = asyncio.Event()
        self._served: set[int] = set()
        self._processes: dict[int, Process] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self.metrics = MergedMetrics()
        self.first_pause_seconds = FIRST_PAUSE_SECONDS

    def start(self) -> None:
        """Starts all workers."""
        for number, settings in enumerate(self._settings, start=1):
            supervising = self._supervise(number, _environment(settings))
            self._tasks.append(asyncio.create_task(supervising, name=f"worker-{number}"))

    async def serving(self) -> None:
        """Returns when all workers have begun to serve."""
        await self._all_served.wait()

    async def failed(self) -> Exception:
        """Returns the error of a worker that cannot be kept running, once there is one."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_EXCEPTION)
        return next(error for task in done if isinstance(error := task.exception(), Exception))

    async def stop(self, skip_lame_duck: asyncio.Event | None = None) -> None:
        """Stops all workers at the same time and returns when they have ended.

        Args:
            skip_lame_duck: When it is set, the workers get SIGINT too.
        """
        self._stopping.set()
        for process in self._processes.values():
            _send(process, signal.SIGTERM)
        interrupting = asyncio.create_task(self._interrupt(skip_lame_duck or asyncio.Event()))
        _, late = await asyncio.wait(self._tasks, timeout=self._grace_seconds)
        interrupting.cancel()
        if late:
            _log.warning("workers do not stop and are killed", workers=sorted(self._processes))
        for process in self._processes.values():
            _send(process, signal.SIGKILL)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _interrupt(self, skip_lame_duck: asyncio.Event) -> None:
        """Sends SIGINT to the workers when the event is set."""
        await skip_lame_duck.wait()
        for process in self._processes.values():
            _send(process, signal.SIGINT)

    async def _supervise(self, number: int, environment: Mapping[str, str]) -> None:
        """Runs a worker, and restarts it whenever it ends, until `stop`. Raises SupervisorError."""
        loop = asyncio.get_running_loop()
        failed_starts = short_runs = 0
        while not self._stopping.is_set():
            started, code = loop.time(), 0
            try:
                code = await self._run(number, environment)
                ending = f"exit code {code}"
            except OSError as error:
                ending = f"not started: {error.strerror}"
            if self._stopping.is_set():
                return
            if loop.time() - started < STEADY_SECONDS:
                short_runs += 1
                failed_starts += code != UNUSABLE_SETTINGS
            else:
                failed_starts = short_runs = 0
            _log.error("worker has ended by itself", worker=number, ending=ending, failed_starts=failed_starts)
            if failed_starts == MOST_FAILED_STARTS:
                raise SupervisorError(
                    f"worker {number} failed to start {failed_starts} times in a row; see the log for the reason"
                )
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), self._backoff(short_runs))

    async def _run(self, number: int, environment: Mapping[str, str]) -> int:
        """Runs a worker until it ends; returns its exit code. Raises OSError if it cannot be started."""
        channel, worker_channel = socket.socketpair()
        with channel:
            with worker_channel, counter_file() as file:
                counters = SharedCounters(file.fileno())
                arguments = WorkerArguments(number, worker_channel.fileno(), file.fileno())
                process = await self._start(arguments, environment)
            self._processes[number] = process
            if self._stopping.is_set():
                _send(process, signal.SIGTERM)
            if await _serves(channel):
                self.metrics.add(counters)
                self._on_serving(number)
            code = await process.wait()
            del self._processes[number]
            self.metrics.retire(counters)
            return code

    async def _start(self, arguments: WorkerArguments, environment: Mapping[str, str]) -> Process:
        return await asyncio.create_subprocess_exec(
            *self._command,
            *arguments.arguments,
            env=environment,
            stdin=DEVNULL,
            stdout=DEVNULL,
            pass_fds=(arguments.channel, arguments.counters),
            start_new_session=True,  # Ctrl-C in a terminal reaches only the supervisor, which stops the workers
        )

    def _backoff(self, short_runs: int) -> float:
        """Returns the pause before a restart after some short runs, in seconds."""
        if not short_runs:
            return 0.0
        return min(LONGEST_PAUSE_SECONDS, self.first_pause_seconds * 2.0 ** min(short_runs - 1, 10))

    def _on_serving(self, number: int) -> None:
        self._served.add(number)
        if len(self._served) == len(self._settings):
            self._all_served.set()


async def _serves(channel: socket.socket) -> bool:
    """Returns true when a worker reports that it serves, false if it ends first."""
    channel.setblocking(False)  # noqa: FBT003 - its only parameter
    with contextlib.suppress(OSError):
        return bool(await asyncio.get_running_loop().sock_recv(channel, 1))
    return False


def share(total: int, workers: int, number: int) -> int:
    """Returns one worker's share of a total that all workers divide, at least 1."""
    return max(1, total // workers + (number <= total % workers))


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns this process's environment with changed settings, whose names may be there in lower case."""
    changed = {f"{PREFIX}{name.upper()}": value for name, value in settings.items()}
    return {name: value for name, value in os.environ.items() if name.upper() not in changed} | changed


def _send(process: Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        process.send_signal(number)
