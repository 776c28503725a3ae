"""Prometheus metrics: one row of `_METRICS` each.

Counters live in SharedCounters, which costs less than a microsecond a call. A scrape converts them into Prometheus's
metrics: those of one process, or the merged ones of several.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from service.metrics.process import ProcessCollector
from service.metrics.shared_counters import SECONDS, Key, Numbers, SharedCounters

Rows: TypeAlias = Mapping[Key, Numbers]
Merge: TypeAlias = Callable[[Numbers, Numbers], Numbers]

_BOUNDS: Final = (*(str(bound) for bound in SECONDS), "+Inf")


def _sum(one: Numbers, other: Numbers) -> Numbers:
    return tuple(map(sum, zip(one, other, strict=True)))


def _latest(one: Numbers, other: Numbers) -> Numbers:
    """Returns the numbers that were set last; the second one is the time."""
    return max(one, other, key=lambda numbers: numbers[1])


@dataclass(frozen=True, slots=True)
class _Metric:
    """A metric.

    Attributes:
        rows: The first part of the keys of its rows in SharedCounters; the others are the values of its labels. With
            fewer labels than that, it shows sums.
        name: Its name, without `rummikub_`.
        text: Its help.
        form: What it is. A counter of rows that are histograms counts their observations.
        labels: The names of its labels.
        merge: How the numbers of several processes become one. Only gauges are not summed.
        values: The values of its labels that are shown before anything is counted.
    """

    rows: str
    name: str
    text: str
    form: type[CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily]
    labels: tuple[str, ...] = ()
    merge: Merge = _sum
    values: tuple[tuple[str, ...], ...] = ()

    @property
    def starts(self) -> Iterable[Key]:
        """The keys of the rows that are shown before anything is counted."""
        return ((self.rows, *values) for values in (self.values or (() if self.labels else ((),))))

    def shown(self, rows: Rows) -> Metric:
        """Returns the metric for a scrape."""
        own: dict[Key, Numbers] = {}
        for (rows_of, *values), numbers in rows.items():
            if rows_of == self.rows:
                labels = tuple(values[: len(self.labels)])
                own[labels] = _sum(own[labels], numbers) if labels in own else numbers
        family = self.form(f"rummikub_{self.name}", self.text, labels=self.labels)
        for labels, numbers in own.items():
            *counts, seconds = numbers
            if isinstance(family, HistogramMetricFamily):
                family.add_metric(labels, list(zip(_BOUNDS, accumulate(counts), strict=True)), seconds)
            else:
                family.add_metric(labels, sum(counts) if self.rows in _HISTOGRAMS else numbers[0])
        return family


_METRICS: Final = (
    _Metric("call", "calls", "Finished calls", CounterMetricFamily, ("method", "code")),
    _Metric("call", "call_seconds", "Duration of calls in seconds", HistogramMetricFamily, ("method",)),
    _Metric("refused", "refused_calls", "Calls refused by a limit", CounterMetricFamily, ("reason", "limit")),
    _Metric(
        "store",
        "store_seconds",
        "Duration of store operations in seconds",
        HistogramMetricFamily,
        ("operation", "result"),
    ),
    _Metric(
        "failovers",
        "store_failovers",
        "Failovers of the store to another primary, seen by this server",
        CounterMetricFamily,
    ),
    _Metric(
        "slots_moved",
        "store_slots_moved",
        "Slots of a Redis Cluster that moved to another primary, seen by this server",
        CounterMetricFamily,
    ),
    _Metric("games", "games", "Games in the store", GaugeMetricFamily, ("state",), merge=_latest),
    _Metric(
        "calls in progress",
        "calls_in_progress",
        "Calls in progress, without health and reflection",
        GaugeMetricFamily,
    ),
    _Metric("watchers", "watchers", "Open WatchGame streams", GaugeMetricFamily),
    _Metric(
        "watch delay",
        "watch_delay_seconds",
        "Time from the notification of a change until it is passed to gRPC for a watcher",
        HistogramMetricFamily,
    ),
    _Metric(
        "game cache lookup",
        "game_cache_lookups",
        "Changes that could be decided on a cached game",
        CounterMetricFamily,
        ("result",),
        values=(("hit",), ("miss",)),
    ),
    _Metric(
        "event loop lag",
        "event_loop_lag_seconds",
        "How much later than due the event loop ran its last timer",
        GaugeMetricFamily,
        merge=max,
    ),
    _Metric("sweep lag", "sweep_lag_seconds", "How long the oldest due game waited", GaugeMetricFamily, merge=max),
    _Metric("analysis calls", "analysis_calls", "Analysis calls running or queued", GaugeMetricFamily),
    _Metric(
        "analysis workers lost",
        "analysis_workers_lost",
        "Analysis processes that crashed or hung",
        CounterMetricFamily,
    ),
    _Metric(
        "archived games",
        "archived_games",
        "Games taken from the archive's outbox",
        CounterMetricFamily,
        ("result",),
    ),
    _Metric("archive backlog", "archive_backlog", "Entries in the archive's outbox", GaugeMetricFamily, merge=_latest),
    _Metric(
        "stored format", "stored_format", "Number of the stored format that is written", GaugeMetricFamily, merge=max
    ),
    _Metric("store up", "store_up", "1 if the store answers, else 0", GaugeMetricFamily, merge=min),
)
_HISTOGRAMS: Final = frozenset(metric.rows for metric in _METRICS if metric.form is HistogramMetricFamily)
_COUNTED: Final = frozenset(metric.rows for metric in _METRICS if metric.form is not GaugeMetricFamily)
"""Rows that remain in the totals after their process has ended."""
_MERGES: Final[Mapping[str, Merge]] = {metric.rows: metric.merge for metric in _METRICS}
_STORE_EVENTS: Final = frozenset({"failovers", "slots_moved"})

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
        "TOO_MANY_CHALLENGES",
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
        for metric in _METRICS:
            if counts_store_events or metric.rows not in _STORE_EVENTS:
                for key in metric.starts:
                    self._counters.add(key, 0)
        self.watch_delay = self._counters.histogram(("watch delay",))
        """Counts a change that was passed to gRPC for a watcher; takes the seconds since its notification."""

    def call(self, method: str, code: str, seconds: float) -> None:
        """Counts a finished call."""
        self._counters.observe(("call", method, code), seconds)

    def calls(self, method: str, code: str) -> Callable[[float], None]:
        """Returns a faster `call` for one method and code; it takes the seconds."""
        return self._counters.histogram(("call", method, code))

    def refused(self, reason: str, limit: str = "") -> None:
        """Counts a call that was refused for a reason in LIMITS, by the limit if the reason does not say it."""
        if reason in LIMITS:
            self._counters.add(("refused", reason, limit), 1)

    def store(self, operation: str, result: str, seconds: float) -> None:
        """Counts an operation of the store."""
        self._counters.observe(("store", operation, result), seconds)

    def store_event(self, event: str, count: int) -> None:
        """Counts events of the store's nodes."""
        if self._counts_store_events:
            self._counters.add((event,), count)

    def games(self, counts: Mapping[str, int]) -> None:
        """Sets the number of games by state."""
        for state, count in counts.items():
            self._counters.set(("games", state), count, time.monotonic())

    def archived_game(self, result: str) -> None:
        """Counts a game of the outbox by what became of it (worker.Result)."""
        self._counters.add(("archived games", result), 1)

    def archive_backlog(self, size: int) -> None:
        """Sets the number of entries in the outbox."""
        self._counters.set(("archive backlog",), size, time.monotonic())

    def store_up(self, is_up: bool) -> None:
        """Sets whether the store answers."""
        self._counters.set(("store up",), is_up)

    def stored_format(self, number: int) -> None:
        """Sets the number of the stored format that is written."""
        self._counters.set(("stored format",), number)

    def analysis_calls(self, count: int) -> None:
        """Sets the number of analysis calls that are running or queued."""
        self._counters.set(("analysis calls",), count)

    def analysis_worker_lost(self) -> None:
        """Counts an analysis process that crashed or hung."""
        self._counters.add(("analysis workers lost",), 1)

    def load(self, calls: int, watchers: int, sweep_lag_seconds: float, loop_lag_seconds: float) -> None:
        """Sets the calls in progress, the open watchers, how long the oldest due game and a due timer have waited."""
        self._counters.set(("event loop lag",), loop_lag_seconds)
        self._counters.set(("calls in progress",), calls)
        self._counters.set(("watchers",), watchers)
        self._counters.set(("sweep lag",), sweep_lag_seconds)

    def game_cache_lookup(self, is_hit: bool) -> None:
        """Counts a change that could be decided on a cached game, and whether it was."""
        self._counters.add(("game cache lookup", "hit" if is_hit else "miss"), 1)


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
        final = {key: numbers for key, numbers in counters.read().items() if key[0] in _COUNTED}
        self._ended_and_running = add_up([ended, final]), tuple(other for other in running if other is not counters)

    def read(self) -> Rows:
        """Returns the merged rows."""
        ended, running = self._ended_and_running
        return add_up([ended, *(counters.read() for counters in running)])

    @property
    def store_is_up(self) -> bool:
        """Whether the store answers all processes."""
        return bool(self.read().get(("store up",), (0.0,))[0])


def add_up(tables: Iterable[Rows]) -> Rows:
    """Returns the rows of several processes merged into one table."""
    total: dict[Key, Numbers] = {}
    for table in tables:
        for key, numbers in table.items():
            total[key] = _MERGES[key[0]](total[key], numbers) if key in total else numbers
    return total


def metrics_registry(read: Callable[[], Rows]) -> CollectorRegistry:
    """Returns a registry that reads the rows at each scrape."""
    registry = CollectorRegistry()
    registry.register(_RowCollector(read))
    registry.register(ProcessCollector())
    return registry


class _RowCollector(Collector):
    """Converts rows into Prometheus metrics."""

    def __init__(self, read: Callable[[], Rows]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        rows = self._read()
        return (metric.shown(rows) for metric in _METRICS)
