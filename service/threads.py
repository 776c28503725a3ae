"""Threads that answer those calls of a synchronous gRPC server that may take long.

The pool of the standard library makes a future of each call, with a lock and a condition that nobody looks at; here a
call is an entry of a queue. Nor do calls that take long keep others waiting: where calls wait and none gets on, threads
are added.
"""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final, TypeAlias

import structlog

THREADS: Final = 4
"""Threads that answer, as long as none of them is kept waiting."""
THREADS_MAX: Final = 8
"""Nothing in them waits, so each more takes time from the others, and from the thread that answers at once."""
TICK_SECONDS: Final = 0.1
"""How often is looked whether calls get on."""

_log = structlog.get_logger()

_Task: TypeAlias = tuple[Callable[[bytes], object], bytes]


class _Worker(threading.Thread):
    """A thread, and how many calls it has answered."""

    def __init__(self, name: str, queue: "SimpleQueue[_Task | None]") -> None:
        super().__init__(name=name, daemon=True)
        self._queue = queue
        self.finished = 0

    def run(self) -> None:
        """Answers calls until there is no more."""
        get = self._queue.get
        while (task := get()) is not None:
            answer, message = task
            try:
                answer(message)
            except Exception:  # noqa: BLE001 - the thread goes on
                _log.exception("a call was not answered")
            del task, answer, message  # to be freed before the next
            self.finished += 1


class CallThreads:
    """The threads of a server."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[_Task | None] = SimpleQueue()
        self._workers: list[_Worker] = []
        self._submitted = 0
        self._closed = threading.Event()
        self._add(THREADS)
        self._watch = threading.Thread(target=self._watch_calls, name="calls-watch", daemon=True)
        self._watch.start()

    def submit(self, answer: Callable[[bytes], object], message: bytes) -> None:
        """Has a call answered. To be called by one thread alone."""
        self._submitted += 1
        self._queue.put((answer, message))

    @property
    def waiting(self) -> int:
        """How many calls have no thread yet."""
        return self._queue.qsize()

    @property
    def under_way(self) -> int:
        """How many calls have not been answered."""
        return self._submitted - self._finished

    @property
    def _finished(self) -> int:
        return sum(worker.finished for worker in self._workers)

    def _add(self, count: int) -> None:
        first = len(self._workers)
        for number in range(first, min(first + count, THREADS_MAX)):
            worker = _Worker(f"call-{number}", self._queue)
            self._workers.append(worker)
            worker.start()

    def _watch_calls(self) -> None:
        finished = 0
        while not self._closed.wait(TICK_SECONDS):
            before, finished = finished, self._finished
            if self.waiting and finished == before:
                self._add(self.waiting)

    def shutdown(self) -> None:
        """Ends the threads when they have answered what was submitted."""
        self._closed.set()
        self._watch.join()  # it adds no more
        for _ in self._workers:
            self._queue.put(None)
        for thread in self._workers:
            thread.join()
