"""Prometheus metrics: calls by method and code, their latency, the store's latency, games by state.

What happens is kept in a tally, at less than a microsecond a call, and made into metrics when they are asked for: of
one process, or of several together.
"""

import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import accumulate
from typing import Any, Final, TypeAlias
from wsgiref.simple_server import WSGIRequestHandler

import prometheus_client
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from service.metrics.shared_counters import SECONDS, Key, Numbers, Tally
from service.runtime.addresses import cannot_listen

Rows: TypeAlias = Mapping[Key, Numbers]

_CALL: Final = "call"
_STORE: Final = "store"
_GAMES: Final = "games"
_ANALYSIS_CALLS: Final = "analysis calls"
_ANALYSIS_WORKERS_LOST: Final = "analysis workers lost"
_STORE_UP: Final = "store up"
"""The first parts of the keys of rows."""

_BOUNDS: Final = (*(str(bound) for bound in SECONDS), "+Inf")
SILENCE_SECONDS: Final = 10.0
"""How long who asks for metrics may keep silent: each has a thread."""
MOST_CONNECTIONS: Final = 32
"""Most who ask for metrics at the same time: each has a file descriptor, of which the listeners need some, too."""
_VERSION: Final = re.compile(r"([0-9]{1,4}(\.[0-9]{1,4})*)?")
"""The versions of a metrics format that prometheus_client can compare; any other one raises TypeError there."""
_COUNTERS: Final = frozenset({_CALL, _STORE, _ANALYSIS_WORKERS_LOST})
"""What goes on counting when the process that counted has ended."""


class Metrics:
    """The metrics of a process, in a registry of their own. Threads may share them.

    Args:
        tally: Where they are kept.
    """

    def __init__(self, tally: Tally | None = None) -> None:
        self._tally = tally or Tally()
        self.registry = registry(self._tally.read)
        self.store_up(is_up=False)
        self.analysis_calls(0)
        self._tally.add((_ANALYSIS_WORKERS_LOST,), 0)

    def call(self, method: str, code: str, seconds: float) -> None:
        """Counts a finished call."""
        self._tally.observe((_CALL, method, code), seconds)

    def calls(self, method: str, code: str) -> Callable[[float], None]:
        """What counts finished calls of a method with the same code: for whoever has many."""
        return self._tally.histogram((_CALL, method, code))

    def store(self, operation: str, result: str, seconds: float) -> None:
        """Counts an operation of the store."""
        self._tally.observe((_STORE, operation, result), seconds)

    def games(self, counts: Mapping[str, int]) -> None:
        """Sets how many games are in each state."""
        for state, count in counts.items():
            self._tally.set((_GAMES, state), count, time.monotonic())

    def store_up(self, is_up: bool) -> None:
        """Sets whether the store answers."""
        self._tally.set((_STORE_UP,), is_up)

    def analysis_calls(self, count: int) -> None:
        """Sets how many calls of exact analysis have a place."""
        self._tally.set((_ANALYSIS_CALLS,), count)

    def analysis_worker_lost(self) -> None:
        """Counts a process of exact analysis that ended by itself or got stuck."""
        self._tally.add((_ANALYSIS_WORKERS_LOST,), 1)


class Together:
    """The metrics of several processes added up, also of those that have ended: counters never go down.

    The store counts as up if it answers all of them; of the games it is the newest count that is shown.
    """

    def __init__(self) -> None:
        self._kept: tuple[Rows, tuple[Tally, ...]] = {}, ()  # replaced as a whole: another thread reads

    def join(self, tally: Tally) -> None:
        """Takes in the tally of a process that serves."""
        ended, tallies = self._kept
        self._kept = ended, (*tallies, tally)

    def leave(self, tally: Tally) -> None:
        """Keeps what a process has counted that has ended, whether it came to serve or not."""
        ended, tallies = self._kept
        counted = {key: numbers for key, numbers in tally.read().items() if key[0] in _COUNTERS}
        self._kept = add_up([ended, counted]), tuple(other for other in tallies if other is not tally)

    def read(self) -> Rows:
        """The rows of all."""
        ended, tallies = self._kept
        return add_up([ended, *(tally.read() for tally in tallies)])

    @property
    def store_is_up(self) -> bool:
        """Whether the store answers all processes."""
        return bool(self.read().get((_STORE_UP,), (0.0,))[0])


def add_up(tables: Iterable[Rows]) -> Rows:
    """The rows of several processes as those of one."""
    total: dict[Key, Numbers] = {}
    for table in tables:
        for key, numbers in table.items():
            total[key] = _joined(key[0], total[key], numbers) if key in total else numbers
    return total


def _joined(kind: str, one: Numbers, other: Numbers) -> Numbers:
    if kind == _STORE_UP:
        return min(one, other)
    if kind == _GAMES:
        return max(one, other, key=lambda numbers: numbers[1])
    return tuple(map(sum, zip(one, other, strict=True)))


def registry(read: Callable[[], Rows]) -> CollectorRegistry:
    """A registry of what is read whenever it is asked."""
    registry = CollectorRegistry()
    registry.register(_Shown(read))
    return registry


@contextlib.contextmanager
def served(address: str, registry: CollectorRegistry) -> Iterator[int]:
    """Serves metrics at RUMMIKUB_METRICS_LISTEN as long as the context lasts; the port. Raises AddressInUseError."""
    host, _, port = address.rpartition(":")
    try:
        server, thread = prometheus_client.start_http_server(int(port), host.strip("[]"), registry)
    except (OSError, UnicodeError):
        raise cannot_listen("RUMMIKUB_METRICS_LISTEN", address) from None
    server.RequestHandlerClass = partial(_Asked, _Connections())
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Connections:
    """The open connections. Of too many the oldest is shut down: who asks for metrics has them in a moment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []

    @contextlib.contextmanager
    def counted(self, connection: socket.socket) -> Iterator[None]:
        """Counts a connection in as long as the context lasts."""
        with self._lock:
            self._open.append(connection)
            for oldest in self._open[:-MOST_CONNECTIONS]:
                with contextlib.suppress(OSError):  # its client was faster
                    oldest.shutdown(socket.SHUT_RDWR)
        try:
            yield
        finally:
            with self._lock:
                self._open.remove(connection)


class _Asked(WSGIRequestHandler):
    """A connection of who asks for metrics. One that is lost, silent or too many ends without a word in the log."""

    def __init__(self, connections: _Connections, *given: Any) -> None:  # noqa: ANN401 - as the server gives it
        self._connections = connections
        super().__init__(*given)

    def handle(self) -> None:
        """Answers."""
        self.connection.settimeout(SILENCE_SECONDS)
        with self._connections.counted(self.connection), contextlib.suppress(OSError):
            super().handle()

    def get_environ(self) -> dict[str, Any]:
        """Returns the request as WSGI has it, without the accepted formats whose version cannot be compared."""
        environ = super().get_environ()
        accepted = environ.get("HTTP_ACCEPT", "").split(",")
        environ["HTTP_ACCEPT"] = ",".join(filter(_has_comparable_version, accepted))
        return environ

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


def _has_comparable_version(accepted: str) -> bool:
    """Returns whether prometheus_client can read a format of an Accept header."""
    parameters = (parameter.strip().partition("=") for parameter in accepted.split(";"))
    return all(_VERSION.fullmatch(value) for name, _, value in parameters if name == "version")


class _Shown(Collector):
    """Rows as Prometheus's metrics."""

    def __init__(self, read: Callable[[], Rows]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """See Collector."""
        rows = self._read()
        calls = _of(_CALL, rows)
        total = CounterMetricFamily("rummikub_calls", "Finished calls", labels=("method", "code"))
        for labels, numbers in calls.items():
            total.add_metric(labels, sum(numbers[:-1]))
        yield total
        by_method = add_up({labels[:1]: numbers} for labels, numbers in calls.items())
        yield _histogram("rummikub_call_seconds", "Seconds a call took", ("method",), by_method)
        labels = ("operation", "result")
        yield _histogram("rummikub_store_seconds", "Seconds the store took", labels, _of(_STORE, rows))
        games = GaugeMetricFamily("rummikub_games", "Games in the store", labels=("state",))
        for state, numbers in _of(_GAMES, rows).items():
            games.add_metric(state, numbers[0])
        yield games
        yield GaugeMetricFamily(
            "rummikub_analysis_calls",
            "Calls of exact analysis under way or waiting",
            value=_number(_ANALYSIS_CALLS, rows),
        )
        yield CounterMetricFamily(
            "rummikub_analysis_workers_lost",
            "Processes of exact analysis that ended by themselves or got stuck",
            value=_number(_ANALYSIS_WORKERS_LOST, rows),
        )
        yield GaugeMetricFamily("rummikub_store_up", "Whether the store answers", value=_number(_STORE_UP, rows))


def _of(kind: str, rows: Rows) -> dict[Key, Numbers]:
    """The rows of a kind, by the rest of their keys."""
    return {key[1:]: numbers for key, numbers in rows.items() if key[0] == kind}


def _number(kind: str, rows: Rows) -> float:
    """The number of the one row of a kind."""
    return rows.get((kind,), (0.0,))[0]


def _histogram(name: str, documentation: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    family = HistogramMetricFamily(name, documentation, labels=labels)
    for values, numbers in rows.items():
        *counts, seconds = numbers
        family.add_metric(values, list(zip(_BOUNDS, accumulate(counts), strict=True)), seconds)
    return family
