"""The process that searches: questions come in on a socket, one at a time, and answers go back.

It imports the engine alone, so that it starts in a moment. It ends when the socket does: with its parent, however that
ended. What comes in during a search ends the search; it is either such an end or an empty frame, which says that nobody
waits for the answer any more.
"""

import os
import pickle
import select
import socket
import struct
import time
import traceback
from collections.abc import Callable
from typing import Final

from engine.solver import Budget
from service.analysis.questions import Failed, Job
from service.runtime.gc_tuning import tune_gc

NICENESS: Final = 10
"""A search is not to slow down what else the machine does."""
NODES_A_SECOND: Final = 200_000
"""How much of the budget's other measure a second is: more than is expected, so that time is what ends a search."""
LENGTH: Final = struct.Struct("!I")
"""What a frame begins with: the number of bytes that follow."""


def frame(data: bytes) -> bytes:
    """Bytes as they are sent."""
    return LENGTH.pack(len(data)) + data


STOP: Final = frame(b"")
"""Says that nobody waits for the answer."""


def run(channel: socket.socket) -> None:
    """Answers until the other end is closed."""
    while length := _read(channel, LENGTH.size):
        data = _read(channel, *LENGTH.unpack(length))
        if data:
            channel.sendall(frame(pickle.dumps(_answer(pickle.loads(data), channel))))  # noqa: S301 - our parent's
            tune_gc()  # what the search has found out is kept; nobody waits now


def _read(channel: socket.socket, count: int) -> bytes:
    """So many bytes, and none ahead, so that what follows is seen by a search; fewer at the end."""
    data = b""
    while len(data) < count and (more := channel.recv(count - len(data))):
        data += more
    return data if len(data) == count else b""


def _answer(job: Job, channel: socket.socket) -> object:
    try:
        nodes = round(job.seconds * NODES_A_SECOND)
        return job.question.answer(Budget(nodes=nodes, is_over=_is_over(job.seconds, channel)))
    except Exception:  # noqa: BLE001 - told to the parent, which logs it
        return Failed(traceback.format_exc())


def _is_over(seconds: float, channel: socket.socket) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end or bool(select.select([channel], [], [], 0)[0])


def main() -> None:
    """Answers on the socket that standard input is."""
    os.nice(NICENESS)
    tune_gc()
    with socket.socket(fileno=os.dup(0)) as channel:
        try:
            run(channel)
        except (ConnectionError, KeyboardInterrupt):
            return


if __name__ == "__main__":
    main()
