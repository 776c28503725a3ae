"""The requests that are dearest for the server: its CPU for each byte of a request, of all RPCs of all listeners.

Seeds, mutated requests, and turns and positions that searches have found to be slow are sent one at a time to a server
without other callers. The CPU of its process, and that of its search processes, are read before and after each (Linux
counts the nanoseconds of each thread). The dearest for the server's process are then sent again, and the median counts.
For searches the first call counts: a search that is sent again finds what the first has cached.

What the server's process takes without a call is subtracted for the time of each call. The bounds are multiples of the
CPU of a plain turn, which is sent beside: they hold on slow and on busy machines.
"""

import asyncio
import contextlib
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from load.floods.http2 import request
from load.fuzz.calls import ATTACKER, Attacker, Findings, Sent, attacked_server, client_with, listeners
from load.fuzz.seeds import VALIDATION, Served, hostile_requests

MOST_CALLS: Final = 100.0
"""The most CPU of the server's process for a call, in plain turns; of a large one MOST_BYTES_OF_LARGE for each byte."""
MOST_BYTES_OF_LARGE: Final = 10.0
"""The most for each byte of a call that may take more than MOST_CALLS, in bytes of a plain turn: a batch of 100 turns
that are too complex takes 0.75 s, in slices, before other processes judge them."""
MOST_BYTES: Final = 50.0
"""The most CPU of the server's process for a byte of a call, its headers included, in bytes of a plain turn."""
MOST_SEARCH_SECONDS: Final = 5.5
"""The most CPU of search processes for a call: the call's deadline ends a search, after five seconds here."""
ROWS: Final = 10
REPEATED: Final = 24
"""How many RPCs are measured again, by each measure."""
REPEATS: Final = 5
SCREENING: Final = 0.6
"""The share of the time for the first measurement of many requests."""
SETTLE_SECONDS: Final = 0.01
"""How long the server may go on with a call after its answer."""
IDLE_SECONDS: Final = 3.0
"""How long the server is watched without a call."""
PLAIN: Final = f"{VALIDATION}ValidateTurn"
"""The RPC of the plain turn."""


@dataclass
class Cost:
    """A request with what it costs.

    Attributes:
        listener: The listener.
        path: The RPC.
        is_mutated: Whether it is no valid seed.
        size: Its bytes, headers included.
        status: How it ended.
        server_ms: CPU of the server's process.
        search_ms: CPU of its search processes.
    """

    listener: str
    path: str
    is_mutated: bool
    size: int
    status: str = ""
    server_ms: float = 0.0
    search_ms: float = 0.0

    @property
    def us_a_byte(self) -> float:
        """CPU of the server's process for a byte, in microseconds."""
        return self.server_ms * 1e3 / self.size


@dataclass
class Dearest:
    """The result of a run.

    Attributes:
        seconds: How long it took.
        calls: How many requests were measured.
        idle_ms: CPU of the server's process in a second without a call.
        plain: A plain turn, by the median of those that were sent beside the dearest requests.
        by_byte: The dearest request of each RPC by CPU of the server's process for a byte.
        by_call: The same by CPU for a call.
        by_search: The same by CPU of search processes, when it was sent first.
    """

    seconds: float = 0.0
    calls: int = 0
    idle_ms: float = 0.0
    plain: Cost = field(default_factory=lambda: Cost("main", PLAIN, is_mutated=False, size=1))
    by_byte: list[Cost] = field(default_factory=list)
    by_call: list[Cost] = field(default_factory=list)
    by_search: list[Cost] = field(default_factory=list)


def in_plain_bytes(cost: Mapping[str, Any], plain: Mapping[str, Any]) -> float:
    """Returns the CPU of the server's process for a byte of a request, in bytes of a plain turn."""
    return float(cost["server_ms"] / cost["size"] / (plain["server_ms"] / plain["size"]))


def in_plain_turns(cost: Mapping[str, Any], plain: Mapping[str, Any]) -> float:
    """Returns the CPU of the server's process for a request, in plain turns."""
    return float(cost["server_ms"] / plain["server_ms"])


class Clock:
    """CPU of a process and of those that it has started.

    Args:
        pid: The process.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._of_children: dict[int, float] = {}
        """By process, also of those that have ended."""

    def read(self) -> tuple[float, float]:
        """Returns the CPU of the process and of its children, in milliseconds."""
        for child in _children(self._pid):
            self._of_children[child] = max(cpu_ms(child), self._of_children.get(child, 0.0))
        return cpu_ms(self._pid), sum(self._of_children.values())


def cpu_ms(pid: int) -> float:
    """Returns the CPU of a process's threads, in milliseconds; 0 if it has ended."""
    total = 0
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                total += int((task / "schedstat").read_text().split()[0])
    return total / 1e6


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        lists = [(task / "children").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
        return [int(child) for text in lists for child in text.split()]
    return []


class _Meter:
    def __init__(self, attacker: Attacker, clock: Clock, idle_ms: float) -> None:
        self._attacker = attacker
        self._clock = clock
        self._idle_ms = idle_ms
        self.calls = 0

    async def measure(self, listener: str, rpc: Served, sent: Sent, cost: Cost) -> None:
        """Sends a request, and writes its cost."""
        before, started = self._clock.read(), time.monotonic()
        cost.status = await self._attacker.send(listener, rpc, *sent)
        await asyncio.sleep(SETTLE_SECONDS)
        after, seconds = self._clock.read(), time.monotonic() - started
        cost.server_ms = max(after[0] - before[0] - self._idle_ms * seconds, 0.0)
        cost.search_ms = after[1] - before[1]
        self.calls += 1


async def _idle_ms(clock: Clock) -> float:
    """Returns the CPU of the server's process in a second without a call, in milliseconds."""
    before, started = clock.read(), time.monotonic()
    await asyncio.sleep(IDLE_SECONDS)
    return (clock.read()[0] - before[0]) / (time.monotonic() - started)


_Measured = tuple[Cost, Served, Sent]


async def find(seed: int, seconds: float) -> Dearest:
    """Measures requests of all RPCs for a time; returns the dearest."""
    found, started = Dearest(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rummikub-fuzz-") as name:
        folder = Path(name)
        with (folder / "server.log").open("wb") as log:
            async with (
                attacked_server(folder, log.fileno()) as server,
                client_with(server.target, ATTACKER) as client,
            ):
                attacker, clock = Attacker(listeners(server), client, Findings(seed)), Clock(server.pid)
                try:
                    found.idle_ms = await _idle_ms(clock)
                    meter = _Meter(attacker, clock, found.idle_ms)
                    sent = await _screen(attacker, meter, started + seconds * SCREENING)
                    await _repeat(meter, sent, await _plain(attacker, meter), found, started + seconds)
                finally:
                    attacker.close()
                found.calls = meter.calls
    found.seconds = time.monotonic() - started
    return found


async def _screen(attacker: Attacker, meter: _Meter, until: float) -> list[_Measured]:
    """Measures requests of each RPC in turn, every other one a valid one, and each hostile one once."""
    sent: list[_Measured] = []
    turn = 0
    while time.monotonic() < until or turn < 2:
        for listener, way in attacker.ways.items():
            for rpc in way.rpcs:
                made = await attacker.request(listener, rpc, 4 * (turn % 2), hurried=0)
                measured = await _measured(meter, listener, rpc, made, is_mutated=bool(turn % 2))
                if turn:  # the first time, caches are empty
                    sent.append(measured)
        if not turn:
            sent += await _hostile(attacker, meter)
        turn += 1
    return sent


async def _hostile(attacker: Attacker, meter: _Meter) -> list[_Measured]:
    """Measures each hostile request once on each listener that serves its RPC."""
    sent = []
    for listener, way in attacker.ways.items():
        for rpc in way.rpcs:
            for seed in hostile_requests().get(rpc.path, ()):
                made = await attacker.request(listener, rpc, 0, 0, seed)
                sent.append(await _measured(meter, listener, rpc, made, is_mutated=False))
    return sent


async def _measured(meter: _Meter, listener: str, rpc: Served, sent: Sent, *, is_mutated: bool) -> _Measured:
    """Sends a request; returns it with what it costs."""
    headers, body = sent
    cost = Cost(listener, rpc.path, is_mutated, len(request(1, headers, body)))
    await meter.measure(listener, rpc, sent, cost)
    return cost, rpc, sent


async def _plain(attacker: Attacker, meter: _Meter) -> _Measured:
    """Returns a plain turn."""
    [rpc] = (rpc for rpc in attacker.ways["main"].rpcs if rpc.path == PLAIN)
    made = await attacker.request("main", rpc, 0, 0, rpc.seeds[0])
    return await _measured(meter, "main", rpc, made, is_mutated=False)


async def _repeat(meter: _Meter, sent: Sequence[_Measured], plain: _Measured, found: Dearest, until: float) -> None:
    """Measures the dearest again, each beside a plain turn, and keeps those that still are."""
    found.by_search = [replace(one[0]) for one in _best(sent, "search_ms")][:ROWS]
    again = {id(one): one for measure in ("us_a_byte", "server_ms") for one in _best(sent, measure)}
    plain_ms = []
    for one in again.values():
        times = REPEATS if time.monotonic() < until else 1
        await _median(meter, one, times)
        await _median(meter, plain, times)
        plain_ms.append(plain[0].server_ms)
    found.plain = replace(plain[0], server_ms=statistics.median(plain_ms))
    measured = list(again.values())
    found.by_byte = [cost for cost, _, _ in _best(measured, "us_a_byte")][:ROWS]
    found.by_call = [cost for cost, _, _ in _best(measured, "server_ms")][:ROWS]


def _best(sent: Sequence[_Measured], measure: str) -> list[_Measured]:
    """Returns the dearest request of each of the dearest RPCs by an attribute of costs."""
    best: dict[str, _Measured] = {}
    for one in sorted(sent, key=lambda one: -float(getattr(one[0], measure))):
        best.setdefault(f"{one[0].listener}{one[0].path}", one)
    return list(best.values())[:REPEATED]


async def _median(meter: _Meter, one: _Measured, times: int) -> None:
    cost, rpc, sent = one
    measured: list[tuple[float, float]] = []
    for _ in range(times):
        await meter.measure(cost.listener, rpc, sent, cost)
        measured.append((cost.server_ms, cost.search_ms))
    cost.server_ms, cost.search_ms = (statistics.median(values) for values in zip(*measured, strict=True))


def as_rows(costs: Sequence[Any]) -> list[list[str]]:
    """Returns a table of costs, as their file has them."""
    rows = [["request", "status", "bytes", "server, ms", "searches, ms", "server, us a byte"]]
    for one in costs:
        kind = "mutated" if one["is_mutated"] else "valid"
        name = one["path"].rpartition(".")[2]
        rows.append(
            [
                f"{one['listener']}: {name}, {kind}",
                one["status"],
                f"{one['size']:,}",
                f"{one['server_ms']:.2f}",
                f"{one['search_ms']:,.0f}",
                f"{one['server_ms'] * 1e3 / one['size']:.1f}",
            ]
        )
    return rows
