"""One thread for the calls that may take long, so that the threads that serve all other calls are never held.

A call is work in steps: a generator that yields between its steps and returns the answer. The thread gives each call a
slice of time in turn. Calls of one flow, which is a peer with a kind of call, are answered in order; flows take turns,
so a caller with a thousand batches delays another caller by one slice. Between slices a call that was cancelled, or
whose deadline has passed, is dropped.

More threads would not answer sooner, since Python runs one at a time. Python hands its lock over every SWITCH_SECONDS,
so a thread that serves waits about that long for this one.
"""

import asyncio
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import structlog

from service.errors import RequestTimedOut, ShuttingDown
from service.runtime.admission import Admission

SLICE_SECONDS: Final = 0.002
"""How long the thread works on a call before the next one's turn. One step may take longer."""
SWITCH_SECONDS: Final = 0.0005
"""How long a thread keeps Python's lock while another one waits for it; Python's default is ten times as long."""
BEGUN_MAX: Final = 16
"""Most calls that are begun at once: a decoded batch takes up to fifty times the memory of its bytes."""
BYTES_MAX: Final = 128 * 1024 * 1024
"""Most bytes of requests that wait or are under way; further ones are refused."""
DRAIN_POLL_SECONDS: Final = 0.01
"""How often a stopping server looks whether calls are under way."""
OVERHEAD_BYTES: Final = 2_048
"""What a call counts in addition to its request."""

_log = structlog.get_logger()

Steps: TypeAlias = Generator[None, None, Any]
Flow: TypeAlias = tuple[str, str]
"""A peer's address and a kind of call."""
Done: TypeAlias = Callable[[Any], None]
"""Takes an answer or an exception."""


class Dropped(Exception):  # noqa: N818 - no error: the caller no longer waits
    """The call was cancelled before it was answered."""


def in_one_step(answer: Callable[[bytes], Any], data: bytes) -> Steps:
    """Returns work of a single step."""
    yield
    return answer(data)


def completed(steps: Steps) -> Any:  # noqa: ANN401 - as the steps return
    """Takes all steps at once and returns the answer."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


@dataclass(slots=True, eq=False)
class SlowCall:
    """A call that waits or is under way.

    Attributes:
        flow: The flow that it belongs to.
        size: How much of the room it holds, in bytes.
        deadline: When it times out, by time.monotonic().
        steps: The work.
        done: Called once, by any thread.
        is_begun: Whether the thread has begun with it.
        is_over: Whether `done` was called.
    """

    flow: Flow
    size: int
    deadline: float
    steps: Steps
    done: Done
    is_begun: bool = field(default=False, init=False)
    is_over: bool = field(default=False, init=False)


class SlowCalls:
    """The thread and the calls that wait for it.

    Args:
        peer_share: The part of the room that one peer may hold.
    """

    def __init__(self, peer_share: float) -> None:
        self._room = Admission(BYTES_MAX, peer_share)
        self._flows: OrderedDict[Flow, OrderedDict[SlowCall, None]] = OrderedDict()
        """The flows that have calls, in the order of their turns, with their calls in the order of arrival."""
        self._begun = 0
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self.under_way = 0
        """How many calls are not over."""

    def submit(self, flow: Flow, size: int, deadline: float, steps: Steps, done: Done) -> SlowCall:
        """Adds a call; see SlowCall. Raises Overloaded, ShuttingDown."""
        call = SlowCall(flow, size + OVERHEAD_BYTES, deadline, steps, done)
        self._room.enter(flow[0], call.size)
        with self._changed:
            if self._is_closed:
                self._room.leave(flow[0], call.size)
                raise ShuttingDown
            self._start()
            self._flows.setdefault(flow, OrderedDict())[call] = None
            self.under_way += 1
            self._changed.notify()
        return call

    async def answer(self, flow: Flow, size: int, deadline: float, steps: Steps) -> Any:  # noqa: ANN401 - as the steps return
        """Returns the answer to a call, which is cancelled with the task that waits for it.

        Raises what the steps raise, Overloaded, RequestTimedOut, ShuttingDown.
        """
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Any] = loop.create_future()

        def done(result: object) -> None:
            loop.call_soon_threadsafe(_set, answered, result)

        call = self.submit(flow, size, deadline, steps, done)
        try:
            return await answered
        except asyncio.CancelledError:
            self.cancel(call)
            raise

    def cancel(self, call: SlowCall) -> None:
        """Ends a call with Dropped unless it is over."""
        self._end(call, Dropped())

    async def drained(self) -> None:
        """Returns when no call waits or is under way."""
        while self.under_way:  # noqa: ASYNC110 - as below
            await asyncio.sleep(DRAIN_POLL_SECONDS)  # the threads that end calls notify no one

    def close(self) -> None:
        """Ends all calls with ShuttingDown, and the thread."""
        with self._changed:
            self._is_closed = True
            calls = [call for calls in self._flows.values() for call in calls]
            self._changed.notify()
        for call in calls:
            self._end(call, ShuttingDown())
        if self._thread:
            self._thread.join()

    def _start(self) -> None:
        """Starts the thread with the first call: a server that never gets one needs no thread."""
        if self._thread is None:
            sys.setswitchinterval(SWITCH_SECONDS)
            self._thread = threading.Thread(target=self._run, name="slow-calls", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while (call := self._next()) is not None:
            self._work_on(call)
            del call  # the thread must not hold a request while it waits

    def _next(self) -> SlowCall | None:
        """Waits for a call to work on and returns it; None at the end. Puts its flow behind the others."""
        with self._changed:
            while True:
                for flow in tuple(self._flows):
                    call = next(iter(self._flows[flow]))
                    self._flows.move_to_end(flow)
                    if call.is_begun or self._begun < BEGUN_MAX:
                        self._begun += not call.is_begun
                        call.is_begun = True
                        return call
                if self._is_closed:
                    return None
                self._changed.wait()

    def _work_on(self, call: SlowCall) -> None:
        """Works on a call for one slice, a step at least. A call that is over by then leaves its flow."""
        now = time.monotonic()
        until = now + SLICE_SECONDS
        try:
            _check_deadline(call, now)
            while not call.is_over:
                next(call.steps)
                if time.monotonic() >= until:
                    break
        except StopIteration as end:
            self._end(call, end.value)
        except Exception as error:  # noqa: BLE001 - whoever waits turns it into a status
            self._end(call, error)
        if call.is_over:
            call.steps.close()
            with self._changed:
                self._begun -= 1
                self._leave(call)

    def _end(self, call: SlowCall, result: object) -> None:
        """Ends a call with an answer or an exception, unless it is over. A call in the thread's hands stays there."""
        with self._changed:
            if call.is_over:
                return
            call.is_over = True
            self.under_way -= 1
            if not call.is_begun:
                self._leave(call)
        self._room.leave(call.flow[0], call.size)
        try:
            call.done(result)
        except Exception:  # noqa: BLE001 - the thread goes on
            _log.exception("a call was not answered")

    def _leave(self, call: SlowCall) -> None:
        calls = self._flows[call.flow]
        del calls[call]
        if not calls:
            del self._flows[call.flow]


def _check_deadline(call: SlowCall, now: float) -> None:
    """Raises RequestTimedOut if a call's deadline has passed."""
    if now >= call.deadline:
        raise RequestTimedOut


def _set(answered: "asyncio.Future[Any]", result: object) -> None:
    """Resolves a future unless its task was cancelled."""
    if answered.done():
        return
    if isinstance(result, Exception):
        answered.set_exception(result)
    else:
        answered.set_result(result)
