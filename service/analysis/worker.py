"""The worker process: reads queries from a socket, one at a time, and writes their answers.

It imports the engine alone, so it starts quickly. It ends when the socket closes, and so with its parent. Data that
arrives during a search ends the search: it is either the end of the socket, or an empty frame, which cancels the query.
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

from engine.effort import Budget
from service.analysis.queries import Failed, Job
from service.runtime.gc_tuning import tune_gc

NICENESS: Final = 10
"""Searches yield to the other work of the machine."""
NODES_PER_SECOND: Final = 200_000
"""The node budget per second: more than a machine can visit, so that time ends a search."""
LENGTH: Final = struct.Struct("!I")
"""The header of a frame: the number of bytes that follow."""


def frame(data: bytes) -> bytes:
    """Returns bytes with their length in front."""
    return LENGTH.pack(len(data)) + data


STOP: Final = frame(b"")
"""Cancels the query: no caller waits for the answer."""


def run(channel: socket.socket) -> None:
    """Answers queries until the other end is closed."""
    while length := _read(channel, LENGTH.size):
        data = _read(channel, *LENGTH.unpack(length))
        if data:
            channel.sendall(frame(pickle.dumps(_answer(pickle.loads(data), channel))))  # noqa: S301 - from our parent
            tune_gc()  # freezes the solver's caches while no caller waits


def _read(channel: socket.socket, count: int) -> bytes:
    """Returns exactly `count` bytes, so that a search notices any data behind them; fewer at the end of the socket."""
    data = b""
    while len(data) < count and (more := channel.recv(count - len(data))):
        data += more
    return data if len(data) == count else b""


def _answer(job: Job, channel: socket.socket) -> object:
    try:
        nodes = round(job.seconds * NODES_PER_SECOND)
        return job.query.answer(Budget(nodes, change_nodes=nodes, is_over=_is_over(job.seconds, channel)))
    except Exception:  # noqa: BLE001 - the parent logs it
        return Failed(traceback.format_exc())


def _is_over(seconds: float, channel: socket.socket) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end or bool(select.select([channel], [], [], 0)[0])


def main() -> None:
    """Answers queries on the socket that is standard input."""
    os.nice(NICENESS)
    tune_gc()
    with socket.socket(fileno=os.dup(0)) as channel:
        try:
            run(channel)
        except (ConnectionError, KeyboardInterrupt):
            return


if __name__ == "__main__":
    main()
