"""A pool of worker processes for exact analysis, and the queue of calls that wait for one.

A search takes seconds of CPU time, so it runs in a process of its own with low priority. Processes start on demand, and
each runs one query at a time. When a call ends before its answer, by deadline or cancellation, its place is free at
once and its worker gets a stop signal. A worker that dies fails only the call it works for. Any client may fill the
queue, so bots' queries go first: a full queue must not stall a game.
"""

import asyncio
import contextlib
import pickle
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, cast

import structlog

from service.analysis.queries import Failed, Job, Query
from service.analysis.worker import LENGTH, STOP, frame
from service.errors import AnalysisBusy, AnalysisUnavailable, Overloaded
from service.metrics.metrics import Metrics
from service.runtime.admission import Admission

COMMAND: Final = (sys.executable, "-m", "service.analysis.worker")
GRACE_SECONDS: Final = 10.0
"""How much longer than requested a worker may take, including its start, on a busy machine."""
STOP_SECONDS: Final = 5.0
"""How long a killed process may take to exit."""

_log = structlog.get_logger()
_A = TypeVar("_A")


class SearchFailedError(Exception):
    """A search raised an exception in a worker, which goes on. Carries the traceback for the log."""


class AnalysisPool:
    """Worker processes and the calls that wait for them.

    Args:
        workers: The most processes.
        queue: The most calls that wait, besides those that have a worker.
        metrics: Counts calls and lost workers.
        peer_share: The share of all calls that one peer may have.
        command: Starts a worker.
    """

    def __init__(
        self, workers: int, queue: int, metrics: Metrics, peer_share: float = 1.0, command: Sequence[str] = COMMAND
    ) -> None:
        self._workers = tuple(_Worker(command, metrics) for _ in range(workers))
        self._metrics = metrics
        self._idle = list(self._workers)  # the last one is used first: its process runs already
        self._priority_queue: deque[asyncio.Future[_Worker]] = deque()
        self._queue: deque[asyncio.Future[_Worker]] = deque()
        self._admission = Admission(workers + queue, peer_share)
        self._exchanges: set[asyncio.Task[object]] = set()

    @property
    def processes(self) -> tuple[int, ...]:
        """Returns the ids of the running processes."""
        return tuple(pid for worker in self._workers if (pid := worker.pid))

    @contextlib.contextmanager
    def admit(self, peer: str) -> Iterator[None]:
        """Holds a place for a call of a peer, which may then ask several queries in turn. Raises AnalysisBusy."""
        try:
            self._admission.enter(peer)
        except Overloaded:
            raise AnalysisBusy from None
        self._metrics.analysis_calls(self._admission.total)
        try:
            yield
        finally:
            self._admission.leave(peer)
            self._metrics.analysis_calls(self._admission.total)

    async def ask(
        self, query: Query[_A], seconds: float, until: float | None = None, *, has_priority: bool = False
    ) -> _A:
        """Returns the answer to a query once a worker is free. Raises AnalysisUnavailable. See ask_timed."""
        return (await self.ask_timed(query, seconds, until, has_priority=has_priority))[0]

    async def ask_timed(
        self, query: Query[_A], seconds: float, until: float | None = None, *, has_priority: bool = False
    ) -> tuple[_A, float]:
        """Returns the answer, and the seconds that it took once a worker was free. Raises AnalysisUnavailable.

        Args:
            query: The query.
            seconds: The most seconds to search.
            until: The time of the event loop's clock at which the search ends, if that is earlier.
            has_priority: Whether it goes before waiting queries without priority.
        """
        worker = await self._free_worker(self._priority_queue if has_priority else self._queue)
        started = asyncio.get_running_loop().time()
        left = seconds if until is None else min(seconds, until - started)
        exchange = asyncio.create_task(worker.exchange(Job(query, max(left, 0.0))))
        self._exchanges.add(exchange)
        exchange.add_done_callback(lambda _: self._release(worker, exchange))
        try:
            answer = await asyncio.shield(exchange)
        except asyncio.CancelledError:
            if not exchange.done():  # else the worker may already search for another call
                worker.cancel_search()
            raise
        if isinstance(answer, Failed):
            raise SearchFailedError(answer.trace)
        return cast("_A", answer), asyncio.get_running_loop().time() - started

    async def _free_worker(self, queue: "deque[asyncio.Future[_Worker]]") -> "_Worker":
        if self._idle:
            return self._idle.pop()
        turn: asyncio.Future[_Worker] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                queue.remove(turn)
            else:  # a worker was assigned at the same moment
                self._pass_on(turn.result())
            raise

    def _pass_on(self, worker: "_Worker") -> None:
        """Gives a worker to the next waiting call that has not just been canceled."""
        waiting = next((turn for turn in (*self._priority_queue, *self._queue) if not turn.done()), None)
        if waiting is None:
            self._idle.append(worker)
            return
        (self._priority_queue if waiting in self._priority_queue else self._queue).remove(waiting)
        waiting.set_result(worker)

    def _release(self, worker: "_Worker", exchange: "asyncio.Task[object]") -> None:
        self._exchanges.discard(exchange)
        self._pass_on(worker)
        if not exchange.cancelled():
            exchange.exception()  # mark it as retrieved: the caller may be gone

    async def close(self) -> None:
        """Ends all workers, once no call waits for them."""
        for exchange in self._exchanges:
            exchange.cancel()
        await asyncio.gather(*self._exchanges, return_exceptions=True)
        for worker in self._workers:
            await worker.end()


@dataclass(frozen=True, slots=True)
class PriorityAnalysis:
    """Asks queries of a pool with priority, for callers whose number of concurrent queries is limited."""

    pool: AnalysisPool

    async def ask(self, query: Query[_A], seconds: float) -> _A:
        """Returns the answer to a query. See AnalysisPool.ask."""
        return await self.pool.ask(query, seconds, has_priority=True)


class _Worker:
    """A slot for a process, which starts on demand and again after it ended."""

    def __init__(self, command: Sequence[str], metrics: Metrics) -> None:
        self._command = command
        self._metrics = metrics
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._is_canceled = False

    @property
    def pid(self) -> int | None:
        """Returns the id of the process, if it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    async def exchange(self, job: Job) -> object:
        """Returns the answer to a job, or None if it was canceled before it began. Raises AnalysisUnavailable."""
        try:
            async with asyncio.timeout(job.seconds + GRACE_SECONDS):
                reader, writer = await self._running()
                if self._is_canceled:  # a stop frame sent before the query would not end its search
                    return None
                writer.write(frame(pickle.dumps(job)))
                await writer.drain()
                answer: object = pickle.loads(await self._received(reader))  # noqa: S301 - from our own process
                return answer
        except (OSError, EOFError) as error:  # TimeoutError is an OSError
            _log.warning("analysis worker is lost", error=type(error).__name__)
            self._metrics.analysis_worker_lost()
            await self.end()
            raise AnalysisUnavailable from None
        except asyncio.CancelledError:
            await self.end()
            raise
        finally:
            self._is_canceled = False

    async def _received(self, reader: asyncio.StreamReader) -> bytes:
        return await reader.readexactly(*LENGTH.unpack(await reader.readexactly(LENGTH.size)))

    async def _running(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Returns the channel to the process; starts the process if it does not run."""
        if self._channel and self.pid:
            return self._channel
        await self.end()
        ours, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as stack:
            stack.callback(ours.close)
            self._process = subprocess.Popen(  # noqa: S603, ASYNC220 - our own command; starting does not block
                self._command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C in a terminal must reach only the server, which ends its workers
            )
            self._channel = await asyncio.open_connection(sock=ours)
            stack.pop_all()
        return self._channel

    def cancel_search(self) -> None:
        """Ends the search of the current exchange early, because no caller waits for its answer."""
        self._is_canceled = True
        if self._channel:
            self._channel[1].write(STOP)

    async def end(self) -> None:
        """Kills the process, if it runs; it holds no state worth saving."""
        if self._process:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._process.wait, STOP_SECONDS)
            self._process = None
        if self._channel:
            writer = self._channel[1]
            self._channel = None
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
