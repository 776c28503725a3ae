"""A fair scheduler for slow calls: one thread runs them, so that they never block the threads that serve other calls.

A call is a generator that yields between its steps and returns the answer. It may yield a future, and continues when
that is done; the thread runs other calls meanwhile. The thread runs the calls in time slices.
Calls of one flow (a holder and a method) run in order; flows take turns, so a client with a thousand batches delays
another client by one slice. A flow with a long step or wait then rests, so that it takes a fraction of the time. So
does one whose request has too many elements.
Between slices the thread drops calls that were cancelled or have passed their deadline.

More threads would not be faster, because of the GIL. A serving thread waits up to SWITCH_SECONDS for the GIL while this
one holds it.
"""

import asyncio
import math
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import structlog

from service.errors import RequestTimedOut, ShuttingDown, TooManyElements
from service.runtime.admission import Admission
from service.runtime.origins import Origin

SWITCH_SECONDS: Final = 0.0005
"""The interpreter's switch interval; Python's default is ten times as long."""
STARTED_SHARE: Final = 0.5
"""The least share of the bytes of started calls that one address may hold alone, so that any call can start."""
STARTED_TRIES: Final = 32
"""How many calls are tried between two slices if started ones use up their bytes."""
DRAIN_POLL_SECONDS: Final = 0.01
"""The polling interval of a stopping server."""
OVERHEAD_BYTES: Final = 2_048
"""The memory of a call beside its request."""

_log = structlog.get_logger()

Steps: TypeAlias = Generator[Future[Any] | None, None, Any]
"""The steps of a call. A future that they yield is done when they continue, unless the call is over."""
Flow: TypeAlias = tuple[str, str]
"""A holder (Origin.holder) and a method."""
Done: TypeAlias = Callable[[Any], None]
"""Called with the answer or an exception."""


class Dropped(Exception):  # noqa: N818 - not an error: the client cancelled the call
    """The call was cancelled before its answer was ready."""


def in_one_step(answer: Callable[[bytes], Any], data: bytes) -> Generator[None, None, Any]:
    """Returns steps for a function that runs in one step."""
    yield
    return answer(data)


def completed(steps: Steps) -> Any:  # noqa: ANN401 - as the steps return
    """Runs all steps, waits for their futures, and returns the answer."""
    while True:
        try:
            awaited = next(steps)
        except StopIteration as end:
            return end.value
        if awaited is not None:
            wait((awaited,))


@dataclass(frozen=True, slots=True)
class Pace:
    """How long calls run, and how much memory they take.

    Attributes:
        slice_seconds: The time slice of a call. A single step may take longer.
        long_step_seconds: A step that takes longer is followed by a rest of its flow. Few turns take so long.
        rest: How many times as long as its step a flow rests.
        rest_max_seconds: The longest rest.
        refused_seconds: How long a flow rests after a request with too many elements. It costs little, but the next
            would come at once.
        bytes_max: Most bytes of all queued and started requests; more are rejected.
        started_bytes_max: Most bytes of the requests of started calls: a decoded batch takes up to 50 times the memory
            of its bytes.
        call_bytes_max: Most of these that one call counts for. Bounded, so that any call can start.
    """

    slice_seconds: float = 0.002
    long_step_seconds: float = 0.01
    rest: float = 4.0
    rest_max_seconds: float = 0.25
    refused_seconds: float = 0.05
    bytes_max: int = 128 * 1024 * 1024
    started_bytes_max: int = 4 * 1024 * 1024
    call_bytes_max: int = 256 * 1024


@dataclass(slots=True, eq=False)
class SlowCall:
    """A queued or started call.

    Attributes:
        origin: Where it comes from.
        method: Its method.
        size: The bytes that it holds of Pace.bytes_max.
        deadline: Its deadline, by time.monotonic().
        steps: The work.
        done: Called once, from any thread.
        is_started: Whether the thread has started it.
        is_over: Whether `done` was called.
    """

    origin: Origin
    method: str
    size: int
    deadline: float
    steps: Steps
    done: Done
    is_started: bool = field(default=False, init=False)
    is_over: bool = field(default=False, init=False)

    @property
    def flow(self) -> Flow:
        """Its flow."""
        return self.origin.holder, self.method


class SlowCalls:
    """The scheduler.

    Args:
        peer_share: The share of all bytes of requests that one address may hold alone.
        pace: How long calls run, and how much memory they take.
    """

    def __init__(self, peer_share: float, pace: Pace = Pace()) -> None:
        self._pace = pace
        self._memory = Admission(pace.bytes_max, peer_share, "request_bytes")
        self._started_memory = Admission(pace.started_bytes_max, max(peer_share, STARTED_SHARE), "request_bytes")
        self._flows: dict[Flow, OrderedDict[SlowCall, None]] = {}
        """The calls of each flow, in the order of arrival."""
        self._waiting: OrderedDict[Flow, None] = OrderedDict()
        """The flows whose first call is not started, in the order in which they are tried."""
        self._started: OrderedDict[Flow, SlowCall] = OrderedDict()
        """The started calls, in the order of their turns."""
        self._resting: dict[Flow, float] = {}
        """When the flows that rest may continue; infinity while a call waits for a future."""
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self.under_way = 0
        """The number of calls that are not over."""

    def submit(  # noqa: PLR0913, PLR0917 - what a call is
        self, origin: Origin, method: str, size: int, deadline: float, steps: Steps, done: Done
    ) -> SlowCall:
        """Queues a call; see SlowCall. Raises Overloaded, ShuttingDown."""
        call = SlowCall(origin, method, size + OVERHEAD_BYTES, deadline, steps, done)
        self._memory.enter(origin, call.size)
        with self._changed:
            if self._is_closed:
                self._memory.leave(origin, call.size)
                raise ShuttingDown
            self._start_thread()
            self._flows.setdefault(call.flow, OrderedDict())[call] = None
            if call.flow not in self._started:
                self._waiting[call.flow] = None
            self.under_way += 1
            self._changed.notify()
        return call

    async def answer(self, origin: Origin, method: str, size: int, deadline: float, steps: Steps) -> Any:  # noqa: ANN401 - as the steps return
        """Returns the answer to a call. Cancelling the waiting task cancels the call.

        Raises what the steps raise, Overloaded, RequestTimedOut, ShuttingDown.
        """
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Any] = loop.create_future()

        def done(result: object) -> None:
            loop.call_soon_threadsafe(_resolve, answered, result)

        call = self.submit(origin, method, size, deadline, steps, done)
        try:
            return await answered
        except asyncio.CancelledError:
            self.cancel(call)
            raise

    def cancel(self, call: SlowCall) -> None:
        """Ends a call with Dropped unless it is over."""
        self._end(call, Dropped())

    async def drained(self) -> None:
        """Returns when all calls are over."""
        while self.under_way:  # noqa: ASYNC110 - see the next line
            await asyncio.sleep(DRAIN_POLL_SECONDS)  # threads end calls and cannot set an asyncio.Event

    def close(self) -> None:
        """Ends all calls with ShuttingDown, then joins the thread."""
        with self._changed:
            self._is_closed = True
            calls = [call for calls in self._flows.values() for call in calls]
            self._changed.notify()
        for call in calls:
            self._end(call, ShuttingDown())
        if self._thread:
            self._thread.join()

    def _start_thread(self) -> None:
        """Starts the thread for the first call."""
        if self._thread is None:
            sys.setswitchinterval(SWITCH_SECONDS)
            self._thread = threading.Thread(target=self._run, name="slow-calls", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while (call := self._next()) is not None:
            self._run_slice(call)
            del call  # do not keep the request alive while waiting

    def _next(self) -> SlowCall | None:
        """Waits for a runnable call and returns it; None after `close`. Moves its flow to the end of the queue."""
        with self._changed:
            while True:
                now = time.monotonic()
                rested = math.inf if self._is_closed else now
                self._resting = {flow: end for flow, end in self._resting.items() if end > rested or end == math.inf}
                self._start_waiting()
                for flow, call in self._started.items():
                    if flow not in self._resting:
                        self._started.move_to_end(flow)
                        return call
                if self._is_closed and not self._started:
                    return None
                next_end = min(self._resting.values(), default=math.inf)
                self._changed.wait(None if next_end == math.inf else next_end - now)

    def _start_waiting(self) -> None:
        """Starts the first calls of waiting flows for which there is memory. A flow that gets none is tried last."""
        tries = STARTED_TRIES
        for flow in tuple(self._waiting):
            if not tries:
                return
            if flow in self._resting:
                continue
            call = next(iter(self._flows[flow]))
            if self._started_memory.try_enter(call.origin, self._started_size(call)):
                call.is_started = True
                del self._waiting[flow]
                self._started[flow] = call
            else:
                self._waiting.move_to_end(flow)
                tries -= 1

    def _started_size(self, call: SlowCall) -> int:
        """Returns the bytes that a call holds of Pace.started_bytes_max once it is started."""
        return min(call.size, self._pace.call_bytes_max)

    def _run_slice(self, call: SlowCall) -> None:
        """Runs a call for one slice, at least one step. Removes it from its flow when it is over."""
        now = time.monotonic()
        until = now + self._pace.slice_seconds
        try:
            _check_deadline(call, now)
            while not call.is_over:
                awaited = next(call.steps)
                if awaited is not None:
                    self._wait(call, awaited, now)
                    break
                now = self._after_step(call, now)
                if now >= until:
                    break
        except StopIteration as end:
            self._after_step(call, now)
            self._end(call, end.value)
        except Exception as error:  # noqa: BLE001 - the waiting call turns it into a status
            self._after_step(call, now)
            if isinstance(error, TooManyElements):
                self._rest(call, self._pace.refused_seconds)
            self._end(call, error)
        if call.is_over:
            call.steps.close()
            with self._changed:
                self._started_memory.leave(call.origin, self._started_size(call))
                del self._started[call.flow]
                self._waiting[call.flow] = None
                self._remove(call)

    def _wait(self, call: SlowCall, awaited: Future[Any], started: float) -> None:
        """Lets a call continue when a future is done. For the rest of its flow, the wait is part of the step."""

        def resume(_: object) -> None:
            with self._changed:
                if not call.is_over:
                    del self._resting[call.flow]
                    self._after_step(call, started)
                    self._changed.notify()

        with self._changed:
            if not call.is_over:
                self._resting[call.flow] = math.inf
        awaited.add_done_callback(resume)

    def _after_step(self, call: SlowCall, started: float) -> float:
        """Returns the time after a step. Lets its flow rest if it was long."""
        now = time.monotonic()
        pace = self._pace
        if now - started > pace.long_step_seconds:
            self._rest(call, min(pace.rest * (now - started), pace.rest_max_seconds))
        return now

    def _rest(self, call: SlowCall, seconds: float) -> None:
        """Lets a call's flow rest, unless it is for many clients."""
        if self._memory.is_bounded(call.origin):
            with self._changed:
                self._resting[call.flow] = time.monotonic() + seconds

    def _end(self, call: SlowCall, result: object) -> None:
        """Ends a call with an answer or an exception, unless it is over. The thread removes a started call itself."""
        with self._changed:
            if call.is_over:
                return
            call.is_over = True
            self.under_way -= 1
            if not call.is_started:
                self._remove(call)
            elif self._resting.get(call.flow) == math.inf:
                del self._resting[call.flow]
                self._changed.notify()
        self._memory.leave(call.origin, call.size)
        try:
            call.done(result)
        except Exception:  # noqa: BLE001 - the thread goes on
            _log.exception("a call was not answered")

    def _remove(self, call: SlowCall) -> None:
        calls = self._flows[call.flow]
        del calls[call]
        if not calls:
            del self._flows[call.flow]
            self._waiting.pop(call.flow, None)


def _check_deadline(call: SlowCall, now: float) -> None:
    """Raises RequestTimedOut if a call's deadline has passed."""
    if now >= call.deadline:
        raise RequestTimedOut


def _resolve(answered: "asyncio.Future[Any]", result: object) -> None:
    """Resolves a future unless its task was cancelled."""
    if answered.done():
        return
    if isinstance(result, Exception):
        answered.set_exception(result)
    else:
        answered.set_result(result)
