"""Prometheus metrics: calls by method and code, their latency, the store's latency, games by state.

Counters live in SharedCounters, which costs less than a microsecond a call. A scrape converts them into Prometheus's
metrics: those of one process, or the merged ones of several.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from service.metrics.shared_counters import SECONDS, Key, Numbers, SharedCounters

Rows: TypeAlias = Mapping[Key, Numbers]

_CALL: Final = "call"
_REFUSED: Final = "refused"
_STORE: Final = "store"
_GAMES: Final = "games"
_ANALYSIS_CALLS: Final = "analysis calls"
_ANALYSIS_WORKERS_LOST: Final = "analysis workers lost"
_ARCHIVED_GAMES: Final = "archived games"
_ARCHIVE_BACKLOG: Final = "archive backlog"
_STORE_UP: Final = "store up"
_CALLS_IN_PROGRESS: Final = "calls in progress"
_WATCHERS: Final = "watchers"
_SWEEP_LAG: Final = "sweep lag"
_WATCH_DELAY: Final = "watch delay"
_CACHE_LOOKUP: Final = "game cache lookup"
_STORE_EVENT: Final = "store event"
"""The first parts of row keys."""

_STORE_EVENTS: Final = {
    "failovers": "Failovers of the store to another primary, seen by this server",
    "slots_moved": "Slots of a Redis Cluster that moved to another primary, seen by this server",
}

_BOUNDS: Final = (*(str(bound) for bound in SECONDS), "+Inf")
_COUNTERS: Final = frozenset(
    {_CALL, _REFUSED, _STORE, _STORE_EVENT, _ANALYSIS_WORKERS_LOST, _ARCHIVED_GAMES, _WATCH_DELAY, _CACHE_LOOKUP}
)
"""Rows that remain in the totals after their process has ended."""

LIMITS: Final = frozenset(
    {
        "ANALYSIS_BUSY",
        "API_KEY_INVALID",
        "API_KEY_NOT_ALLOWED",
        "OVERLOADED",
        "REQUEST_TIMED_OUT",
        "STORE_FULL",
        "TOO_MANY_GAMES",
        "TOO_MANY_GUESSES",
    }
)
"""The reasons of refusals that protect the server and other callers."""


class Metrics:
    """The metrics of a process, with their own registry. Thread-safe.

    Args:
        counters: The storage of the numbers.
        counts_store_events: Whether to count the events of the store's nodes, which all workers of a server see.
    """

    def __init__(self, counters: SharedCounters | None = None, *, counts_store_events: bool = True) -> None:
        self._counters = counters or SharedCounters()
        self._counts_store_events = counts_store_events
        self.registry = metrics_registry(self._counters.read)
        self.store_up(is_up=False)
        self.analysis_calls(0)
        self._counters.add((_ANALYSIS_WORKERS_LOST,), 0)
        self.load(0, 0, 0.0)
        self.watch_delay = self._counters.histogram((_WATCH_DELAY,))
        """Counts a change that was passed to gRPC for a watcher; takes the seconds since its notification."""
        for result in ("hit", "miss"):
            self._counters.add((_CACHE_LOOKUP, result), 0)
        for event in _STORE_EVENTS:
            self.store_event(event, 0)

    def call(self, method: str, code: str, seconds: float) -> None:
        """Counts a finished call."""
        self._counters.observe((_CALL, method, code), seconds)

    def calls(self, method: str, code: str) -> Callable[[float], None]:
        """Returns a faster `call` for one method and code; it takes the seconds."""
        return self._counters.histogram((_CALL, method, code))

    def refused(self, reason: str, limit: str = "") -> None:
        """Counts a call that was refused for a reason in LIMITS, by the limit if the reason does not say it."""
        if reason in LIMITS:
            self._counters.add((_REFUSED, reason, limit), 1)

    def store(self, operation: str, result: str, seconds: float) -> None:
        """Counts an operation of the store."""
        self._counters.observe((_STORE, operation, result), seconds)

    def store_event(self, event: str, count: int) -> None:
        """Counts events of the store's nodes."""
        if self._counts_store_events:
            self._counters.add((_STORE_EVENT, event), count)

    def games(self, counts: Mapping[str, int]) -> None:
        """Sets the number of games by state."""
        for state, count in counts.items():
            self._counters.set((_GAMES, state), count, time.monotonic())

    def archived_game(self, result: str) -> None:
        """Counts a game of the outbox by what became of it (worker.Result)."""
        self._counters.add((_ARCHIVED_GAMES, result), 1)

    def archive_backlog(self, size: int) -> None:
        """Sets the number of entries in the outbox."""
        self._counters.set((_ARCHIVE_BACKLOG,), size, time.monotonic())

    def store_up(self, is_up: bool) -> None:
        """Sets whether the store answers."""
        self._counters.set((_STORE_UP,), is_up)

    def analysis_calls(self, count: int) -> None:
        """Sets the number of analysis calls that are running or queued."""
        self._counters.set((_ANALYSIS_CALLS,), count)

    def analysis_worker_lost(self) -> None:
        """Counts an analysis process that crashed or hung."""
        self._counters.add((_ANALYSIS_WORKERS_LOST,), 1)

    def load(self, calls: int, watchers: int, sweep_lag_seconds: float) -> None:
        """Sets the calls in progress, the open watchers, and how long the oldest due game has waited."""
        self._counters.set((_CALLS_IN_PROGRESS,), calls)
        self._counters.set((_WATCHERS,), watchers)
        self._counters.set((_SWEEP_LAG,), sweep_lag_seconds)

    def game_cache_lookup(self, *, is_hit: bool) -> None:
        """Counts a change that could be decided on a cached game, and whether it was."""
        self._counters.add((_CACHE_LOOKUP, "hit" if is_hit else "miss"), 1)


class MergedMetrics:
    """The merged metrics of several processes. Counters of ended processes stay included, so no counter decreases.

    The store is up if it answers all processes. The numbers of games and of entries are the latest of any process, and
    the sweep lag is the longest.
    """

    def __init__(self) -> None:
        self._ended_and_running: tuple[Rows, tuple[SharedCounters, ...]] = {}, ()
        """Replaced as a whole, because another thread reads it."""

    def add(self, counters: SharedCounters) -> None:
        """Includes the counters of a process that serves."""
        ended, running = self._ended_and_running
        self._ended_and_running = ended, (*running, counters)

    def retire(self, counters: SharedCounters) -> None:
        """Keeps the final counts of a process that has ended, even if it was never added."""
        ended, running = self._ended_and_running
        final = {key: numbers for key, numbers in counters.read().items() if key[0] in _COUNTERS}
        self._ended_and_running = add_up([ended, final]), tuple(other for other in running if other is not counters)

    def read(self) -> Rows:
        """Returns the merged rows."""
        ended, running = self._ended_and_running
        return add_up([ended, *(counters.read() for counters in running)])

    @property
    def store_is_up(self) -> bool:
        """Whether the store answers all processes."""
        return bool(self.read().get((_STORE_UP,), (0.0,))[0])


def add_up(tables: Iterable[Rows]) -> Rows:
    """Returns the rows of several processes merged into one table."""
    total: dict[Key, Numbers] = {}
    for table in tables:
        for key, numbers in table.items():
            total[key] = _merged(key[0], total[key], numbers) if key in total else numbers
    return total


def _merged(kind: str, one: Numbers, other: Numbers) -> Numbers:
    if kind == _STORE_UP:
        return min(one, other)
    if kind == _SWEEP_LAG:
        return max(one, other)
    if kind in {_GAMES, _ARCHIVE_BACKLOG}:
        return max(one, other, key=lambda numbers: numbers[1])
    return tuple(map(sum, zip(one, other, strict=True)))


def metrics_registry(read: Callable[[], Rows]) -> CollectorRegistry:
    """Returns a registry that reads the rows at each scrape."""
    registry = CollectorRegistry()
    registry.register(_RowCollector(read))
    return registry


class _RowCollector(Collector):
    """Converts rows into Prometheus metrics."""

    def __init__(self, read: Callable[[], Rows]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        rows = self._read()
        calls = _rows_of(_CALL, rows)
        total = CounterMetricFamily("rummikub_calls", "Finished calls", labels=("method", "code"))
        for labels, numbers in calls.items():
            total.add_metric(labels, sum(numbers[:-1]))
        yield total
        by_method = add_up({labels[:1]: numbers} for labels, numbers in calls.items())
        yield _histogram("rummikub_call_seconds", "Duration of calls in seconds", ("method",), by_method)
        labels = ("reason", "limit")
        refused = CounterMetricFamily("rummikub_refused_calls", "Calls refused by a limit", labels=labels)
        for refusal, numbers in _rows_of(_REFUSED, rows).items():
            refused.add_metric(refusal, numbers[0])
        yield refused
        labels = ("operation", "result")
        store = _rows_of(_STORE, rows)
        yield _histogram("rummikub_store_seconds", "Duration of store operations in seconds", labels, store)
        for (event,), numbers in _rows_of(_STORE_EVENT, rows).items():
            name = f"rummikub_store_{event}"
            yield CounterMetricFamily(name, _STORE_EVENTS[event], value=numbers[0])
        games = GaugeMetricFamily("rummikub_games", "Games in the store", labels=("state",))
        for state, numbers in _rows_of(_GAMES, rows).items():
            games.add_metric(state, numbers[0])
        yield games
        yield GaugeMetricFamily(
            "rummikub_calls_in_progress",
            "Calls in progress, without health and reflection",
            value=_number(_CALLS_IN_PROGRESS, rows),
        )
        yield GaugeMetricFamily("rummikub_watchers", "Open WatchGame streams", value=_number(_WATCHERS, rows))
        yield _histogram(
            "rummikub_watch_delay_seconds",
            "Time from the notification of a change until it is passed to gRPC for a watcher",
            (),
            _rows_of(_WATCH_DELAY, rows),
        )
        lookups = CounterMetricFamily(
            "rummikub_game_cache_lookups", "Changes that could be decided on a cached game", labels=("result",)
        )
        for result, numbers in _rows_of(_CACHE_LOOKUP, rows).items():
            lookups.add_metric(result, numbers[0])
        yield lookups
        yield GaugeMetricFamily(
            "rummikub_sweep_lag_seconds", "How long the oldest due game waited", value=_number(_SWEEP_LAG, rows)
        )
        yield GaugeMetricFamily(
            "rummikub_analysis_calls", "Analysis calls running or queued", value=_number(_ANALYSIS_CALLS, rows)
        )
        yield CounterMetricFamily(
            "rummikub_analysis_workers_lost",
            "Analysis processes that crashed or hung",
            value=_number(_ANALYSIS_WORKERS_LOST, rows),
        )
        archived = CounterMetricFamily(
            "rummikub_archived_games", "Games taken from the archive's outbox", labels=("result",)
        )
        for result, numbers in _rows_of(_ARCHIVED_GAMES, rows).items():
            archived.add_metric(result, numbers[0])
        yield archived
        yield GaugeMetricFamily(
            "rummikub_archive_backlog", "Entries in the archive's outbox", value=_number(_ARCHIVE_BACKLOG, rows)
        )
        yield GaugeMetricFamily("rummikub_store_up", "1 if the store answers, else 0", value=_number(_STORE_UP, rows))


def _rows_of(kind: str, rows: Rows) -> dict[Key, Numbers]:
    """Returns the rows of a kind, by the rest of their keys."""
    return {key[1:]: numbers for key, numbers in rows.items() if key[0] == kind}


def _number(kind: str, rows: Rows) -> float:
    """Returns the first number of a kind's only row; 0 without one."""
    return rows.get((kind,), (0.0,))[0]


def _histogram(name: str, documentation: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    family = HistogramMetricFamily(name, documentation, labels=labels)
    for values, numbers in rows.items():
        *counts, seconds = numbers
        family.add_metric(values, list(zip(_BOUNDS, accumulate(counts), strict=True)), seconds)
    return family
