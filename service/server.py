"""The server: listeners and background tasks on one event loop, and their ordered shutdown."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from service.analysis.complex_turns import ComplexTurns
from service.analysis.pool import AnalysisPool
from service.app.bots import Bots
from service.app.presence import Presence
from service.app.sweeper import Sweeper
from service.app.watch import Watch
from service.errors import StoreUnavailable
from service.grpc_api import health
from service.grpc_api.health import HealthServicer
from service.grpc_api.listener import Listener
from service.metrics.exporter import serve_metrics
from service.metrics.metrics import Metrics
from service.runtime.addresses import AddressInUseError
from service.runtime.connections import shut_down_connections
from service.runtime.slow_calls import SlowCalls
from service.settings import Settings
from service.storage.store import Store

REMIND_CHECKS: Final = 60
"""A log entry repeats after this number of failed checks."""
VALIDATION_LISTEN: Final = "RUMMIKUB_VALIDATION_LISTEN"
ADMIN_LISTEN: Final = "RUMMIKUB_ADMIN_LISTEN"

UNIX_PORT: Final = 1
"""gRPC's port number of a unix socket."""

STATELESS: Final = frozenset(
    {
        "rummikub.v1.ValidationService",
        "rummikub.v1.AnalysisService",
        "rummikub.v1.PuzzleService",
        "rummikub.v1.RecordService",
    }
)
"""Services that stay SERVING without a store; only questions of analysis and records about a game need it."""

_log = structlog.get_logger()


class ListenerEndedError(Exception):
    """A listener has ended unexpectedly; the message says what to do."""


class StoreMonitor:
    """Reports in health and metrics whether the store answers, and how many games it has.

    Args:
        store: The store.
        metrics: Gets the gauges.
        servicer: The health of RUMMIKUB_LISTEN.
        services: The names of its services.
    """

    def __init__(self, store: Store, metrics: Metrics, servicer: HealthServicer, services: Sequence[str]) -> None:
        self._store = store
        self._metrics = metrics
        self._health = servicer
        self._services = services
        self._failed_checks = 0
        self._last_failure = ""
        self._report(is_up=False)

    async def check(self) -> None:
        """Pings the store and sets health. Tolerates one slow answer, so that health does not flap on all servers."""
        try:
            await self._store.ping()
        except StoreUnavailable as error:
            self._failed_checks += 1
            if self._failed_checks % REMIND_CHECKS == 1 or str(error) != self._last_failure:
                _log.warning("store does not answer", error=str(error), checks=self._failed_checks)
            self._last_failure = str(error)
        else:
            if self._failed_checks:
                _log.warning("store answers again", checks=self._failed_checks)
            self._failed_checks = 0
        if self._failed_checks != 1:
            self._report(is_up=not self._failed_checks)

    def _report(self, *, is_up: bool) -> None:
        self._metrics.store_up(is_up)
        for name in ("", *self._services):
            self._health.set(name, health.SERVING if is_up or name in STATELESS else health.NOT_SERVING)

    async def count_games(self) -> None:
        """Sets the numbers of games."""
        with contextlib.suppress(StoreUnavailable):
            counts = await self._store.lists.count()
            self._metrics.games({state.value: count for state, count in counts.items()})


async def every(seconds: float, stopping: asyncio.Event, work: Callable[[], Coroutine[Any, Any, None] | None]) -> None:
    """Does some work at an interval, and once more when the server stops."""
    while not stopping.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), seconds)
        done = work()
        if done is not None:
            await done


@dataclass(frozen=True, slots=True)
class Intervals:
    """When a server does what it repeats, in seconds.

    Attributes:
        ping: Between two health checks of the store, each of which asks one primary of a cluster in turn.
        count: Between two counts of the games.
        presence: Between two reports of who is present.
        load: Between two times at which gauges of the load are set, which costs calls nothing.
        last_answers: The grace period for the last answers to leave the process.
    """

    ping: float = 0.5
    count: float = 10.0
    presence: float = 0.5
    load: float = 0.5
    last_answers: float = 0.25


@dataclass(eq=False, slots=True)
class Server:
    """A server on a store. `composition.build_server` builds one.

    Attributes:
        settings: The service's settings.
        stopping: Set when the server stops.
        metrics: Counts calls and operations.
        listeners: The listeners; the first is that of RUMMIKUB_LISTEN.
        monitor: Checks the store.
        presence: Marks seats as seen.
        watch: The streams of changes.
        sweeper: Applies what is due.
        slow_calls: Runs slow calls.
        complex_turns: Judges complex turns.
        analysis: Searches.
        bots: Plays for bots.
        others: Further tasks, by name, which run until `stopping` is set.
        intervals: When it does what it repeats.
    """

    settings: Settings
    stopping: asyncio.Event
    metrics: Metrics
    listeners: Sequence[Listener]
    monitor: StoreMonitor
    presence: Presence
    watch: Watch
    sweeper: Sweeper
    slow_calls: SlowCalls
    complex_turns: ComplexTurns
    analysis: AnalysisPool
    bots: Bots
    others: Mapping[str, Callable[[], Coroutine[Any, Any, None]]]
    intervals: Intervals
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def port(self) -> int:
        """The port of RUMMIKUB_LISTEN, 0 before `start`."""
        return self.listeners[0].port

    @property
    def validation_port(self) -> int:
        """The port of RUMMIKUB_VALIDATION_LISTEN; 0 if there is none."""
        return self._port_of(VALIDATION_LISTEN)

    @property
    def admin_port(self) -> int:
        """The port of RUMMIKUB_ADMIN_LISTEN; 0 if there is none."""
        return self._port_of(ADMIN_LISTEN)

    def _port_of(self, variable: str) -> int:
        return next((listener.port for listener in self.listeners if listener.variable == variable), 0)

    async def start(self) -> None:
        """Starts serving. Raises AddressInUseError."""
        self.complex_turns.start()
        try:
            for listener in self.listeners:
                await listener.start()
        except AddressInUseError:
            await asyncio.gather(*(listener.stop() for listener in self.listeners))
            raise
        await self.monitor.check()
        self.start_background()

    def start_background(self) -> None:
        """Starts what the server does beside calls."""
        self._spawn("store-check", every(self.intervals.ping, self.stopping, self.monitor.check))
        self._spawn("game-count", every(self.intervals.count, self.stopping, self.monitor.count_games))
        self._spawn("sweeper", self.sweeper.run())
        self._spawn("presence", every(self.intervals.presence, self.stopping, self.presence.flush))
        self._spawn("load", self._report_load())
        for name, run in self.others.items():
            self._spawn(name, run())

    def serve_metrics(self) -> contextlib.AbstractContextManager[int]:
        """Serves metrics on their own port, which it yields, within the context. Raises AddressInUseError."""
        return serve_metrics(self.settings.metrics_listen, self.metrics.registry)

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))

    async def _report_load(self) -> None:
        """Sets the gauges of the load, also while the server stops, until this is cancelled."""
        lag = 0.0
        while True:
            calls = sum(one.calls_in_progress for one in self.listeners if one.variable != ADMIN_LISTEN)
            self.metrics.load(calls, self.watch.watchers, self.sweeper.lag_seconds, lag)
            due = time.monotonic() + self.intervals.load
            await asyncio.sleep(self.intervals.load)
            lag = max(0.0, time.monotonic() - due)

    async def ended(self) -> ListenerEndedError:
        """Returns the error to report when a listener has ended unexpectedly."""
        ends = {asyncio.create_task(listener.ended(), name=listener.variable) for listener in self.listeners}
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
        name = min(end.get_name() for end in done)
        _log.error("listener has ended", listener=name, exc_info=min(done, key=asyncio.Task.get_name).exception())
        return ListenerEndedError(f"{name} has ended by itself; see the log for the reason, then restart the server")

    def report_not_serving(self) -> None:
        """Sets health to NOT_SERVING for good at all listeners; calls are still served, new ones too."""
        for listener in self.listeners:
            listener.report_not_serving()

    async def stop(self) -> None:
        """Stops serving: health changes, streams end (watches with the revision to resume from), calls finish.

        New calls are meanwhile rejected with a reason. A GOAWAY at this point would make the core cancel calls that
        cross it, and clients do not retry those.
        """
        self.report_not_serving()
        self.presence.stop()
        self.stopping.set()
        for listener in self.listeners:
            listener.begin_shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.settings.drain_seconds):
                for listener in self.listeners:
                    await listener.drained()
                await self.slow_calls.drained()
        await asyncio.to_thread(self.slow_calls.close)
        await asyncio.sleep(self.intervals.last_answers)
        shut_down_connections({listener.port for listener in self.listeners} - {UNIX_PORT})
        await asyncio.gather(*(listener.stop() for listener in self.listeners))
        await self.bots.close()
        await self.analysis.close()
        await self.complex_turns.close()
        for task in self._tasks:
            if task.get_name() == "load":
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
