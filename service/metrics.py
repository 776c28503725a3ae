"""Prometheus metrics: calls by method and code, their latency, the store's latency, games by state."""

from collections.abc import Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Bounds of the latency histograms."""


class Metrics:
    """The metrics of a process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._calls = Counter("rummikub_calls", "Finished calls", ("method", "code"), registry=self.registry)
        self._call_seconds = Histogram(
            "rummikub_call_seconds", "Seconds a call took", ("method",), registry=self.registry, buckets=SECONDS
        )
        self._store_seconds = Histogram(
            "rummikub_store_seconds",
            "Seconds the store took",
            ("operation", "result"),
            registry=self.registry,
            buckets=SECONDS,
        )
        self._games = Gauge("rummikub_games", "Games in the store", ("state",), registry=self.registry)
        self._analysis_calls = Gauge(
            "rummikub_analysis_calls", "Calls of exact analysis under way or waiting", registry=self.registry
        )
        self._analysis_workers_lost = Counter(
            "rummikub_analysis_workers_lost",
            "Processes of exact analysis that ended by themselves or got stuck",
            registry=self.registry,
        )
        self._store_up = Gauge("rummikub_store_up", "Whether the store answers", registry=self.registry)

    def call(self, method: str, code: str, seconds: float) -> None:
        """Counts a finished call."""
        self._calls.labels(method, code).inc()
        self._call_seconds.labels(method).observe(seconds)

    def store(self, operation: str, result: str, seconds: float) -> None:
        """Counts an operation of the store."""
        self._store_seconds.labels(operation, result).observe(seconds)

    def games(self, counts: Mapping[str, int]) -> None:
        """Sets how many games are in each state."""
        for state, count in counts.items():
            self._games.labels(state).set(count)

    def store_up(self, is_up: bool) -> None:
        """Sets whether the store answers."""
        self._store_up.set(is_up)

    def analysis_calls(self, count: int) -> None:
        """Sets how many calls of exact analysis have a place."""
        self._analysis_calls.set(count)

    def analysis_worker_lost(self) -> None:
        """Counts a process of exact analysis that ended by itself or got stuck."""
        self._analysis_workers_lost.inc()
