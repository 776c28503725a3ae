"""The arrival of unary requests: a call whose request is late, or that waits while the server stops, ends."""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

import grpc.aio

from service.errors import Fault, RequestTimedOut, ShuttingDown
from service.runtime.origins import Origin

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Task: TypeAlias = "asyncio.Task[Any]"

NO_REQUEST: Final = "The method requires exactly one request message."
"""The message of other gRPC libraries for a call that ends without a request."""


class NoRequestError(Exception):
    """The call ended without a request."""


def seconds_left(context: Context) -> float:
    """Returns the seconds until a call's deadline; infinity without one."""
    left = context.time_remaining()
    return math.inf if left is None else left


class RequestArrival:
    """Receives the requests of unary calls, with a timeout.

    Args:
        seconds: The timeout.
        late_delay: Returns how many seconds later than that a call of a caller ends, given the seconds until its
            deadline. It spreads the timeouts of an address: a client with thousands of calls without requests would
            otherwise delay others when all of them end.
    """

    def __init__(self, seconds: float, late_delay: Callable[[Origin, float], float]) -> None:
        self._seconds = seconds
        self._late_delay = late_delay
        self._waiting: OrderedDict[Task, tuple[float, Origin, Context]] = OrderedDict()
        """The calls whose request has not arrived, each with its timeout, in the order of the timeouts."""
        self._late: set[Task] = set()
        """The calls that will be timed out in their turn."""
        self._cancelled: dict[Task, Fault] = {}
        """The calls that were cancelled here, with the error to answer."""
        self._timer: asyncio.TimerHandle | None = None

    async def receive(self, context: Context, origin: Origin) -> bytes:
        """Returns the one request of a call. Raises RequestTimedOut, ShuttingDown, NoRequestError."""
        task = asyncio.current_task()
        assert task is not None, "a handler runs in a task"  # noqa: S101 - for the type
        loop = asyncio.get_running_loop()
        self._waiting[task] = loop.time() + self._seconds, origin, context
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._time_out_late_calls)
        try:
            data = await context.read()
        except asyncio.CancelledError:
            error = self._cancelled.pop(task, None)
            if error is None:
                raise
            task.uncancel()
            raise error from None
        finally:
            self._waiting.pop(task, None)
            self._late.discard(task)
        if data is grpc.aio.EOF:
            raise NoRequestError
        return cast("bytes", data)

    def cancel_all(self) -> None:
        """Ends the calls whose request has not arrived with ShuttingDown."""
        for task in (*self._waiting, *self._late):
            self._cancel(task, ShuttingDown())

    def _time_out_late_calls(self) -> None:
        """Times out the calls whose request is late, each in its turn, and sets the timer for the next timeout."""
        self._timer = None
        loop = asyncio.get_running_loop()
        while self._waiting:
            task, (timeout, origin, context) = next(iter(self._waiting.items()))
            if timeout > loop.time():
                self._timer = loop.call_at(timeout, self._time_out_late_calls)
                return
            del self._waiting[task]
            self._late.add(task)
            delay = self._late_delay(origin, seconds_left(context))
            loop.call_later(delay, self._time_out, task)

    def _time_out(self, task: Task) -> None:
        if task in self._late:
            self._cancel(task, RequestTimedOut())

    def _cancel(self, task: Task, error: Fault) -> None:
        self._waiting.pop(task, None)
        self._late.discard(task)
        self._cancelled[task] = error
        task.cancel()
