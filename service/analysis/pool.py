"""A pool of worker processes for exact analysis, and the queue of calls that wait for one.

A search takes seconds of CPU time, so it runs in a process of its own with low priority. Processes start on demand, and
each runs one query at a time. When a call ends before its answer, by deadline or cancellation, its place is free at
once and its worker gets a stop signal. A worker that dies fails only the call it works for.

Holders (addresses, and keys of proxies) take turns in the queue, and one address has only its share of the processes,
so a client with many searches delays another by no more than the wait for a process. Any client may fill the queue, so
bots' queries go first: a full queue must not stall a game.
"""

import asyncio
import contextlib
import math
import pickle
import socket
import subprocess
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar, cast

import structlog

from service.analysis.queries import Failed, Job, Query
from service.analysis.worker import LENGTH, STOP, frame
from service.errors import AnalysisBusy, AnalysisUnavailable, Overloaded
from service.metrics.metrics import Metrics
from service.runtime.admission import Admission
from service.runtime.origins import SEARCHES, Origin
from service.runtime.tracing import SearchObserver

COMMAND: Final = (sys.executable, "-m", "service.analysis.worker")
GRACE_SECONDS: Final = 10.0
"""How much longer than requested a worker may take, including its start, on a busy machine. Then it is killed."""
STOP_SECONDS: Final = 5.0
"""How long a killed process may take to exit."""

_log = structlog.get_logger()
_A = TypeVar("_A")


def unobserved(_kind: str, _result: str, _waited: float, _seconds: float) -> None:
    """Discards an observation."""


class SearchFailedError(Exception):
    """A search raised an exception in a worker, which goes on. Carries the traceback for the log."""


class Holder(NamedTuple):
    """Who takes turns.

    Attributes:
        name: Its name (Origin.holder).
        is_bounded: Whether it may have only its share of the workers.
    """

    name: str
    is_bounded: bool


class AnalysisPool:
    """Worker processes and the calls that wait for them.

    Args:
        workers: The most processes.
        queue: The most calls that wait, besides those that have a worker.
        metrics: Counts calls and lost workers.
        peer_share: The share of all calls that one address may have alone.
        command: Starts a worker.

    Attributes:
        observe: Receives each search.
        grace_seconds: How much longer than requested a worker may take.
    """

    def __init__(
        self, workers: int, queue: int, metrics: Metrics, peer_share: float = 1.0, command: Sequence[str] = COMMAND
    ) -> None:
        self.observe: SearchObserver = unobserved
        self.grace_seconds = GRACE_SECONDS
        self._workers = tuple(_Worker(command, metrics) for _ in range(workers))
        self._metrics = metrics
        self._idle = list(self._workers)  # the last one is used first: its process runs already
        self._priority_queue: deque[asyncio.Future[_Worker]] = deque()
        self._queues: OrderedDict[Holder, deque[asyncio.Future[_Worker]]] = OrderedDict()
        """The waiting calls of each holder, in the order of their turns."""
        self._working: Counter[Holder] = Counter()
        """The number of workers that each holder has."""
        self._workers_each = max(1, math.ceil(workers * peer_share))
        self._admission = Admission(workers + queue, peer_share, "searches", SEARCHES)
        self._exchanges: set[asyncio.Task[object]] = set()

    @property
    def processes(self) -> tuple[int, ...]:
        """Returns the ids of the running processes."""
        return tuple(pid for worker in self._workers if (pid := worker.pid))

    @contextlib.contextmanager
    def admit(self, origin: Origin) -> Iterator["AdmittedAnalysis"]:
        """Holds a place for a call, which may then ask several queries in turn. Raises AnalysisBusy."""
        try:
            self._admission.enter(origin)
        except Overloaded:
            raise AnalysisBusy from None
        self._metrics.analysis_calls(self._admission.total)
        try:
            yield AdmittedAnalysis(self, Holder(origin.holder, self._admission.is_bounded(origin)))
        finally:
            self._admission.leave(origin)
            self._metrics.analysis_calls(self._admission.total)

    async def ask(
        self, query: Query[_A], seconds: float, until: float | None = None, *, holder: Holder | None = None
    ) -> _A:
        """Returns the answer to a query once a worker is free. Raises AnalysisUnavailable. See ask_timed."""
        return (await self.ask_timed(query, seconds, until, holder=holder))[0]

    async def ask_timed(
        self, query: Query[_A], seconds: float, until: float | None = None, *, holder: Holder | None = None
    ) -> tuple[_A, float]:
        """Returns the answer, and the seconds that it took once a worker was free. Raises AnalysisUnavailable.

        Args:
            query: The query.
            seconds: The most seconds to search.
            until: The time of the event loop's clock at which the search ends, if that is earlier.
            holder: Who takes a turn; None for a query that goes before those of holders.
        """
        loop = asyncio.get_running_loop()
        asked, result, started = loop.time(), "ok", None
        try:
            worker = await self._free_worker(holder)
            started = loop.time()
            return await self._searched(worker, query, seconds, until, holder), loop.time() - started
        except BaseException as error:
            result = type(error).__name__
            raise
        finally:
            ended = loop.time()
            waited = (ended if started is None else started) - asked
            self.observe(type(query).__name__, result, waited, ended - asked)

    async def _searched(
        self, worker: "_Worker", query: Query[_A], seconds: float, until: float | None, holder: Holder | None
    ) -> _A:
        """Returns a worker's answer to a query, and releases the worker. Raises AnalysisUnavailable."""
        started = asyncio.get_running_loop().time()
        left = seconds if until is None else min(seconds, until - started)
        exchange = asyncio.create_task(worker.exchange(Job(query, max(left, 0.0)), self.grace_seconds))
        self._exchanges.add(exchange)
        exchange.add_done_callback(lambda _: self._release(worker, holder, exchange))
        try:
            answer = await asyncio.shield(exchange)
        except asyncio.CancelledError:
            if not exchange.done():  # else the worker may already search for another call
                worker.cancel_search()
            raise
        if isinstance(answer, Failed):
            raise SearchFailedError(answer.trace)
        return cast("_A", answer)

    async def _free_worker(self, holder: Holder | None) -> "_Worker":
        if self._idle and self._may_have_worker(holder):
            return self._assigned(self._idle.pop(), holder)
        turn: asyncio.Future[_Worker] = asyncio.get_running_loop().create_future()
        queue = self._priority_queue if holder is None else self._queues.setdefault(holder, deque())
        queue.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                queue.remove(turn)
                self._drop_if_empty(holder)
            else:  # a worker was assigned at the same moment
                self._pass_on(turn.result(), holder)
            raise

    def _may_have_worker(self, holder: Holder | None) -> bool:
        return holder is None or not holder.is_bounded or self._working[holder] < self._workers_each

    def _assigned(self, worker: "_Worker", holder: Holder | None) -> "_Worker":
        if holder is not None:
            self._working[holder] += 1
        return worker

    def _pass_on(self, worker: "_Worker", holder: Holder | None) -> None:
        """Takes a worker from a holder, and gives it to the next waiting call."""
        if holder is not None:
            self._working[holder] -= 1
            if not self._working[holder]:
                del self._working[holder]
        following = self._next_waiting()
        if following is None:
            self._idle.append(worker)
            return
        turn, waiting = following
        turn.set_result(self._assigned(worker, waiting))

    def _next_waiting(self) -> tuple["asyncio.Future[_Worker]", Holder | None] | None:
        """Removes the next waiting call that has not just been canceled, and returns it with its holder."""
        turn = next((turn for turn in self._priority_queue if not turn.done()), None)
        if turn is not None:
            self._priority_queue.remove(turn)
            return turn, None
        for holder, queue in tuple(self._queues.items()):
            turn = next((turn for turn in queue if not turn.done()), None)
            if turn is not None and self._may_have_worker(holder):
                queue.remove(turn)
                self._queues.move_to_end(holder)
                self._drop_if_empty(holder)
                return turn, holder
        return None

    def _drop_if_empty(self, holder: Holder | None) -> None:
        if holder is not None and not self._queues.get(holder, True):
            del self._queues[holder]

    def _release(self, worker: "_Worker", holder: Holder | None, exchange: "asyncio.Task[object]") -> None:
        self._exchanges.discard(exchange)
        self._pass_on(worker, holder)
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
        return await self.pool.ask(query, seconds)


@dataclass(frozen=True, slots=True)
class AdmittedAnalysis:
    """Asks queries of a pool for an admitted call of a holder."""

    pool: AnalysisPool
    holder: Holder

    async def ask(self, query: Query[_A], seconds: float, until: float | None = None) -> _A:
        """Returns the answer to a query. See AnalysisPool.ask."""
        return await self.pool.ask(query, seconds, until, holder=self.holder)

    async def ask_timed(self, query: Query[_A], seconds: float, until: float | None = None) -> tuple[_A, float]:
        """Returns the answer, and the seconds that it took. See AnalysisPool.ask_timed."""
        return await self.pool.ask_timed(query, seconds, until, holder=self.holder)


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

    async def exchange(self, job: Job, grace_seconds: float) -> object:
        """Returns the answer to a job, or None if it was canceled before it began. Raises AnalysisUnavailable."""
        try:
            async with asyncio.timeout(job.seconds + grace_seconds):
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
