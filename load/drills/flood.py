"""Floods a server and measures honest clients meanwhile: `python -m load.drills flood drafts half-open --seconds 10`.

Each flood gets its own server. The attacker has one address, the honest clients have others. The honest clients call
alone, while another server is flooded, while theirs is flooded, and once more alone. The flood of another server shows
what the attacker's use of this machine's processors costs, which has nothing to do with the server. The first seconds
of each flood, in which the attacker connects and opens up to 5,000 calls at once, are measured apart.

The report has the p99 of each kind of honest call, refusals, how the flood's calls ended, what it left behind, and the
server's CPU and memory. The drill fails if a flood ended early or made too few calls, if an honest call was refused, if
a bound of what it leaves behind was exceeded, or if the p99 of all honest calls at a listener is more than twice that
without the flood (three times for floods of calls that cost their sender nothing): alone or while another server is
flooded, whichever is longer. While the flood begins, none may take longer than a second. A quick run compares medians,
in both phases.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from load.bench.figures import Tables, printer, quantiles, requirement
from load.bench.measured_servers import SERVICE_SETTINGS, MeasuredServer, cpu_seconds_of, ready, serving
from load.drills.reports import finish
from load.floods.aftermath import Aftermath, Bound
from load.floods.attacks import DEFAULT, FLOODS, Flood
from load.floods.honest import OWN_LISTENER
from load.parts import run_parts
from tools.redis_servers import RedisServer, running_redis
from tools.servers import ROOT, ServerError

MOST_RATIO: Final = 2.0
MOST_CHEAP_RATIO: Final = 3.0
"""That beside floods of calls that cost their sender nothing."""
QUICK_MOST_RATIO: Final = 5.0
"""That of the medians: the p99 of a few calls is noisy."""
MOST_BEGIN_MILLISECONDS: Final = 1_000.0
LEAST_CALLS: Final = 100
"""Honest calls of a listener and phase: fewer have no p99."""
HONEST_CLIENTS: Final = 20
WARM_UP_SECONDS: Final = 3.0
SECONDS: Final = 16.0
"""Calls without a request time out after ten seconds; a flood of them is measured for longer."""
CHEAP_SECONDS: Final = 30.0
"""The least time of a flood of calls that cost their sender nothing. What it leaves behind grows with the time."""
BEGIN_SECONDS: Final = 2.0
"""The attacker takes no longer to fill its connections with calls."""
QUICK_SECONDS: Final = 2.0
LISTENERS: Final = ("main", "own")
BASELINES: Final = {"beside": ("alone", "elsewhere"), "begin": ("alone", "begin elsewhere")}
"""The phases of a flood that have ratios, each with the phases that it is compared with."""
WHEN: Final = {"beside": "beside a flood", "begin": "while a flood begins"}
CHEAP_TITLE: Final = "Floods of calls that cost their sender nothing: p99 beside them, and what they leave behind"

Phase = Mapping[str, Any]
"""A report of honest clients: "milliseconds" of all calls by kind, and "refusals" by reason."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a flood.

    Attributes:
        name: The name of the flood.
        seconds: How long it lasted.
        ends: Its calls by outcome.
        error: The error that ended it early, if any.
        phases: The phases of the honest clients by name.
        server: CPU and memory of the server.
        bounds: What it left behind.
    """

    name: str
    seconds: float
    ends: Mapping[str, int]
    error: str
    phases: Mapping[str, Phase]
    server: Mapping[str, float]
    bounds: Sequence[Bound] = ()

    @property
    def flood(self) -> Flood:
        """The flood."""
        return FLOODS[self.name]

    @property
    def most_ratio(self) -> float:
        """The most that the p99 of honest calls may be beside it, as a multiple of that without it."""
        return MOST_CHEAP_RATIO if self.flood.is_cheap else MOST_RATIO

    @property
    def calls_a_second(self) -> float:
        """The calls of the flood that ended."""
        return sum(self.ends.values()) / self.seconds

    @property
    def refusals(self) -> dict[str, int]:
        """The refused honest calls of all phases, by phase and reason."""
        return {
            f"{name}: {reason}": count
            for name, phase in self.phases.items()
            for reason, count in phase["refusals"].items()
        }

    def calls(self, listener: str, phase: str) -> list[float]:
        """Returns the milliseconds of all honest calls at a listener in a phase."""
        kinds: Mapping[str, list[float]] = self.phases[phase]["milliseconds"]
        is_own = listener == LISTENERS[1]
        return list(chain.from_iterable(kinds[kind] for kind in kinds if kind.endswith(OWN_LISTENER) == is_own))

    def milliseconds(self, listener: str, phase: str, quantile: str = "p99") -> float:
        """Returns a quantile of honest calls at a listener in a phase; 0 without calls."""
        calls = self.calls(listener, phase)
        return quantiles(calls)[quantile] if calls else 0.0

    def ratio(self, listener: str, phase: str, quantile: str = "p99") -> float:
        """Returns the ratio of a quantile in a phase of the flood to that without the flood."""
        without = (self.milliseconds(listener, one, quantile) for one in BASELINES[phase])
        return self.milliseconds(listener, phase, quantile) / max(1e-3, *without)

    def longest(self, listener: str, phase: str) -> float:
        """Returns the milliseconds of the longest honest call at a listener in a phase; 0 without calls."""
        return max(self.calls(listener, phase), default=0.0)

    @property
    def fewest_calls(self) -> int:
        """The fewest honest calls of a listener and phase."""
        return min(len(self.calls(listener, phase)) for listener in LISTENERS for phase in self.phases)

    def weakness(self, *, is_quick: bool) -> str:
        """Returns why the flood was no flood; nothing if it was. A quick one may be over before it has its effect."""
        if self.error:
            return f"{self.name} ended: {self.error}"
        if not (is_quick and self.flood.holds) and self.calls_a_second < self.flood.least_a_second:
            return f"{self.name}: {self.calls_a_second:.0f} calls a second"
        if not (is_quick or self.flood.must_end in {"", *self.ends}):
            return f"{self.name}: no call ended as {self.flood.must_end}"
        return ""

    def as_json(self) -> dict[str, Any]:
        """Returns the values for a file."""
        return {
            "seconds": self.seconds,
            "ends": self.ends,
            "error": self.error,
            "refusals": self.refusals,
            "server": self.server,
            "bounds": {bound.what: bound.measured for bound in self.bounds},
            "ratios": {
                f"{phase}, {listener}": self.ratio(listener, phase) for phase in BASELINES for listener in LISTENERS
            },
            "longest": {
                f"{phase}, {listener}": self.longest(listener, phase) for phase in BASELINES for listener in LISTENERS
            },
            "kinds": {kind: self._kind(kind) for kind in next(iter(self.phases.values()))["milliseconds"]},
        }

    def _kind(self, kind: str) -> dict[str, dict[str, float]]:
        calls = {name: phase["milliseconds"].get(kind) for name, phase in self.phases.items()}
        return {name: quantiles(some) for name, some in calls.items() if some}


def requirements_of(results: Sequence[Result], *, is_quick: bool = False) -> list[dict[str, Any]]:
    """Returns what has to hold of all floods."""
    weak = [weakness for result in results if (weakness := result.weakness(is_quick=is_quick))]
    refusals = [f"{result.name}: {count} x {reason}" for result in results for reason, count in result.refusals.items()]
    broken = [f"{result.name}: {bound}" for result in results for bound in result.bounds if not bound.is_kept]
    fewest = min(result.fewest_calls for result in results)
    found = [
        requirement(
            "each flood goes on to the end, with its least calls a second",
            met=not weak,
            measured="; ".join(weak) or f"{len(results)} of {len(results)}",
        ),
        requirement("no honest call is refused", met=not refusals, measured="; ".join(refusals) or "0"),
        requirement(
            "what a flood leaves behind is within its bounds",
            met=not broken,
            measured="; ".join(broken) or f"{sum(len(result.bounds) for result in results)} bounds",
        ),
        requirement(
            f"at least {LEAST_CALLS} honest calls of each listener and phase",
            met=fewest >= LEAST_CALLS,
            measured=f"{fewest:,}",
        ),
    ]
    if is_quick:
        return [
            *found,
            _most_ratio(results, "beside", "median", QUICK_MOST_RATIO),
            _most_ratio(results, "begin", "median", QUICK_MOST_RATIO),
        ]
    longest, where = _worst(results, lambda result, listener: result.longest(listener, "begin"))
    by_kind = [(most, [one for one in results if one.most_ratio == most]) for most in (MOST_RATIO, MOST_CHEAP_RATIO)]
    return [
        *found,
        *(_most_ratio(some, "beside", "p99", most) for most, some in by_kind if some),
        requirement(
            f"longest honest call while a flood begins: at most {MOST_BEGIN_MILLISECONDS:,.0f} ms",
            met=longest <= MOST_BEGIN_MILLISECONDS,
            measured=f"{longest:,.0f} ({where})",
        ),
    ]


def _most_ratio(results: Sequence[Result], phase: str, quantile: str, most: float) -> dict[str, Any]:
    """Returns the requirement of a phase: a quantile, as a multiple of that without the flood."""
    worst, where = _worst(results, lambda result, listener: result.ratio(listener, phase, quantile))
    return requirement(
        f"{quantile} of honest calls {WHEN[phase]}: at most {most:g} times that without",
        met=worst <= most,
        measured=f"{worst:.2f} ({where})",
    )


def _worst(results: Sequence[Result], measure: Callable[[Result, str], float]) -> tuple[float, str]:
    """Returns the greatest measure of a result and a listener, and of which it is."""
    return max(
        (measure(result, listener), f"{result.name}, {listener} listener")
        for result in results
        for listener in LISTENERS
    )


def tables_of(results: Sequence[Result]) -> Tables:
    """Returns the tables of a report."""
    head = ["flood", "its calls/s", "listener", "alone", "elsewhere", "beside", "ratio"]
    rows = [[*head, "begins elsewhere", "begins", "longest", "after"]]
    for result in results:
        for listener in LISTENERS:
            p99 = {phase: f"{result.milliseconds(listener, phase):.1f}" for phase in result.phases}
            rows.append(
                [
                    result.name,
                    f"{result.calls_a_second:,.0f}",
                    listener,
                    *(p99[phase] for phase in ("alone", "elsewhere", "beside")),
                    f"{result.ratio(listener, 'beside'):.2f}",
                    *(p99[phase] for phase in ("begin elsewhere", "begin")),
                    f"{result.longest(listener, 'begin'):.0f}",
                    p99["after"],
                ]
            )
    tables: Tables = {f"p99 of the calls of {HONEST_CLIENTS} honest clients, in milliseconds": rows}
    cheap = [result for result in results if result.flood.is_cheap]
    return {**tables, **({CHEAP_TITLE: _cheap_rows(cheap)} if cheap else {})}


def _cheap_rows(results: Sequence[Result]) -> list[list[str]]:
    rows = [["flood", "ratio", "most", "honest refused", "left behind", "measured", "most"]]
    for result in results:
        ratio = max(result.ratio(listener, "beside") for listener in LISTENERS)
        told = [result.name, f"{ratio:.2f}", f"{result.most_ratio:g}", f"{sum(result.refusals.values()):,}"]
        for bound in result.bounds or (None,):
            rows.append([*told, *((bound.what, bound.told, f"{bound.most:g}") if bound else [""] * 3)])
            told = [""] * len(told)
    return rows


def main(arguments: Sequence[str]) -> int:
    """Runs the named floods; returns 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(
        prog="flood", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "floods", nargs="*", metavar="flood", help=f"some of {', '.join(FLOODS)}; default {', '.join(DEFAULT)}"
    )
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help=f"seconds of each phase but the beginning ({SECONDS:g})"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{QUICK_SECONDS:g} seconds; requires of medians {QUICK_MOST_RATIO:g}, for a first look",
    )
    parser.add_argument(
        "--checkout", type=Path, default=ROOT, help="use the server of another checkout, with its .venv"
    )
    chosen = parser.parse_args(arguments)
    unknown = sorted(set(chosen.floods) - set(FLOODS))
    if unknown:
        parser.error(f"no such flood: {', '.join(unknown)}")
    seconds, begin = (QUICK_SECONDS, QUICK_SECONDS) if chosen.quick else (chosen.seconds, BEGIN_SECONDS)
    console, began = printer(), time.monotonic()

    def run(name: str) -> Result:
        is_longer = FLOODS[name].is_cheap and not chosen.quick
        attack_seconds = max(seconds, CHEAP_SECONDS) if is_longer else seconds
        result = flooded(name, seconds, attack_seconds, begin, chosen.checkout)
        _print(result, console)
        return result

    finished, errors = run_parts(run, {name: name for name in chosen.floods or DEFAULT})
    results = list(finished.values())
    report = {
        "seconds": time.monotonic() - began,
        "floods": {result.name: result.as_json() for result in results},
        "requirements": requirements_of(results, is_quick=chosen.quick) if results else [],
    }
    is_complete = not (chosen.floods or chosen.quick) and (chosen.seconds, chosen.checkout) == (SECONDS, ROOT)
    return finish("flood", report, tables_of(results), errors=errors, is_complete=is_complete)


def flooded(name: str, seconds: float, attack_seconds: float, begin: float, checkout: Path) -> Result:
    """Returns the result of one flood, after `begin` seconds of calls that are not counted."""
    flood, phases = FLOODS[name], {}
    with flooded_server(flood, checkout) as (store, server, process), _honest(flood, server) as honest:
        _phase(honest, WARM_UP_SECONDS)
        phases["alone"] = _phase(honest, seconds)
        with flooded_server(flood, checkout) as (_, other, _), _attacker(name, flood, other):
            phases["begin elsewhere"] = _phase(honest, begin)
            phases["elsewhere"] = _phase(honest, seconds)
        memory = _megabytes(server, "VmRSS")
        with _attacker(name, flood, server) as attacker:
            cpu, started = _cpu(server), time.perf_counter()
            phases["begin"] = _phase(honest, begin)
            phases["beside"] = _phase(honest, attack_seconds)
            during = _megabytes(server, "VmRSS")
            used, lasted = _cpu(server) - cpu, time.perf_counter() - started
            attack = json.loads(attacker.communicate()[0])
        phases["after"] = _phase(honest, seconds)
        figures = {
            "cores": used / lasted,
            "mb_before": memory,
            "mb_during": during,
            "mb_after": _megabytes(server, "VmRSS"),
            "mb_peak": _megabytes(server, "VmHWM"),
        }
        error = attack["error"] if process.poll() is None else f"its server ended with status {process.returncode}"
        after = Aftermath(server, store, figures["mb_peak"], attack["notes"])
        bounds = [] if error else flood.measure(after)
    return Result(name, lasted, attack["ends"], error, phases, figures, bounds)


@contextlib.contextmanager
def flooded_server(
    flood: Flood, checkout: Path
) -> Iterator[tuple[RedisServer, MeasuredServer, "subprocess.Popen[str]"]]:
    """Runs a server on a store of its own; yields both, and the server's process."""
    with running_redis(*flood.store_options) as redis:
        settings = {**SERVICE_SETTINGS, "RUMMIKUB_LOG_LEVEL": "warning", "RUMMIKUB_REDIS_URL": redis.url}
        with serving("service", settings=settings, checkout=checkout) as process:
            yield redis, ready(process), process


@contextlib.contextmanager
def _honest(flood: Flood, server: MeasuredServer) -> Iterator["subprocess.Popen[str]"]:
    ports = [address.rpartition(":")[2] for address in (server.main, server.validation)]
    options = ("--clients", str(HONEST_CLIENTS), "--without", *flood.without)
    with _running("load.floods.honest", *ports, *options) as process:
        yield process


@contextlib.contextmanager
def _attacker(name: str, flood: Flood, server: MeasuredServer) -> Iterator["subprocess.Popen[str]"]:
    target = server.validation if flood.at_own_listener else server.main
    with _running("load.floods.attacker", name, target, server.validation) as process:
        assert process.stdout is not None  # noqa: S101 - for the types
        process.stdout.readline()
        yield process


@contextlib.contextmanager
def _running(module: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _phase(honest: "subprocess.Popen[str]", seconds: float) -> Phase:
    assert honest.stdin is not None  # noqa: S101 - for the types
    assert honest.stdout is not None  # noqa: S101 - for the types
    honest.stdin.write(f"phase {seconds}\n")
    honest.stdin.flush()
    line = honest.stdout.readline()
    if not line:
        raise ServerError("the honest callers ended; see their error above")
    found: Phase = json.loads(line)
    return found


def _print(result: Result, console: Console) -> None:
    """Prints the latency of each kind of call, and what the flood and the server did."""
    console.print(f"[bold]{result.name}[/bold]: {(FLOODS[result.name].run.__doc__ or '').rstrip('.')}", highlight=False)
    report = result.as_json()
    for kind, figures in report["kinds"].items():
        told = ", ".join(f"{phase} {one['p99']:.1f}" for phase, one in figures.items())
        console.print(f"  {kind:34} p99 ms: {told}", highlight=False)
    server = result.server
    console.print(
        f"  honest refused: {result.refusals or 'none'}\n  flood: {result.error or dict(result.ends)}\n"
        f"  server: {server['cores']:.2f} cores, {server['mb_before']:.0f} MB before, "
        f"{server['mb_during']:.0f} during, {server['mb_after']:.0f} after, {server['mb_peak']:.0f} at most",
        highlight=False,
    )
    for bound in result.bounds:
        console.print(f"  {bound}", highlight=False)


def _cpu(server: MeasuredServer) -> float:
    return sum(_cpu_of(pid) for pid in server.tree())


def _cpu_of(pid: int) -> float:
    with contextlib.suppress(OSError):
        return cpu_seconds_of(pid)
    return 0.0


def _megabytes(server: MeasuredServer, field: str) -> float:
    """Returns a field of the status of the server's processes, summed up."""
    total = 0
    for pid in server.tree():
        with contextlib.suppress(OSError, IndexError):  # a process that has ended has no such field
            status = Path(f"/proc/{pid}/status").read_text()
            total += int(status.partition(f"{field}:")[2].split()[0])
    return total / 1024
