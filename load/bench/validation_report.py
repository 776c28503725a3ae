"""The report of the benchmark of validation: spreads, ratios, requirements, tables."""

import os
import platform
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

from load.bench.figures import cpu_model, quantiles, requirement
from load.bench.noop_server import AIO, NO_OPS, STOCK

SERVICE: Final = "service"
AIO_SERVICE: Final = "service, aio"
SERVERS: Final = {
    **NO_OPS,
    SERVICE: "the service, RUMMIKUB_VALIDATION_LISTEN",
    AIO_SERVICE: "the service, RUMMIKUB_LISTEN",
}
"""The measured listeners, with their names in reports."""

CLIENTS: Final = 8
LEGAL: Final = "ValidateTurn, legal"
ILLEGAL: Final = "ValidateTurn, illegal"
MELDS: Final = "ValidateMelds"
BATCH: Final = "BatchValidateTurns, 100"
LEGAL_BATCH: Final = "BatchValidateTurns, 100 legal"
SHORT_STREAM: Final = "StreamValidateTurns, 100"
LEGAL_STREAM: Final = "StreamValidateTurns, 100 legal"
LONG_STREAM: Final = "StreamValidateTurns, 1,000"
LEGAL_FEW: Final = f"{LEGAL}, 1 client"
LEGAL_MANY: Final = f"{LEGAL}, 32 clients"

AIO_OF_AIO: Final = "aio of aio"

MOST_OF_STOCK: Final = {LEGAL: 0.65, ILLEGAL: 0.75, BATCH: 0.10, SHORT_STREAM: 0.25, LONG_STREAM: 0.25}
"""The most that a turn may cost, in calls of the stock no-op, by case."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Consecutive calls to a listener.

    Attributes:
        turns: The number of turns; for batches and streams, the turns in them.
        cpu_seconds: The server's CPU.
        generator_seconds: The generator's CPU.
        seconds: The time of all calls.
        milliseconds: The time of each call.
    """

    turns: int
    cpu_seconds: float
    generator_seconds: float
    seconds: float
    milliseconds: tuple[float, ...]

    @property
    def cpu_us(self) -> float:
        """The server's CPU per turn, in microseconds."""
        return self.cpu_seconds / self.turns * 1e6


@dataclass(slots=True)
class Measured:
    """All measurements.

    Attributes:
        slices: The slices by case and listener, in the order of measurement.
        rounds: The number of rounds.
        checked: The number of right answers.
    """

    slices: dict[tuple[str, str], list[Slice]]
    rounds: int = 0
    checked: int = 0


_OF_MANY: Final = ("BatchValidateTurns", "StreamValidateTurns")


# Figures


def spread(values: Iterable[float]) -> dict[str, float]:
    """Returns the median, quartiles and extremes of at least one value."""
    in_order = sorted(values)
    low, median, high = statistics.quantiles(in_order, n=4, method="inclusive") if in_order[1:] else in_order * 3
    return {"median": median, "low": low, "high": high, "least": in_order[0], "most": in_order[-1]}


def ratio(ones: Sequence[Slice], others: Sequence[Slice]) -> dict[str, float]:
    """Returns the spread of the ratio of the costs per turn, and the ratio of the minima, which are disturbed least.

    Slices of the same time are compared. If one list is n times as long, n of its slices share a time.
    """
    times = max(len(ones), len(others))
    pairs = [(ones[place * len(ones) // times], others[place * len(others) // times]) for place in range(times)]
    of_least = min(one.cpu_us for one in ones) / min(other.cpu_us for other in others)
    return {**spread(one.cpu_us / other.cpu_us for one, other in pairs), "of_least": of_least}


# The report


def report_of(measured: Measured) -> dict[str, Any]:
    """Returns all figures and requirements."""
    ratios = _ratios(measured)
    return {
        "versions": {
            "python": sys.version.split()[0],
            **{name: version(name) for name in ("grpcio", "protobuf")},
            "kernel": platform.release(),
        },
        "machine": {"cpu": cpu_model(), "processors": os.cpu_count(), "load_average": os.getloadavg()},
        "rounds": measured.rounds,
        "clients": CLIENTS,
        "answers_checked": measured.checked,
        "cases": {
            case: {server: _figures(measured.slices[case, server]) for server in SERVERS}
            for case in dict.fromkeys(case for case, _ in measured.slices)
        },
        "ratios": ratios,
        "requirements": _requirements(ratios),
    }


def _figures(slices: Sequence[Slice]) -> dict[str, Any]:
    return {
        "turns": sum(one.turns for one in slices),
        "cpu_us": spread(one.cpu_us for one in slices),
        "generator_us": spread(one.generator_seconds / one.turns * 1e6 for one in slices),
        "turns_a_second": spread(one.turns / one.seconds for one in slices),
        "milliseconds": quantiles([value for one in slices for value in one.milliseconds]),
    }


def _ratios(measured: Measured) -> dict[str, dict[str, dict[str, float]]]:
    """Returns, by case, the service's cost per turn relative to no-op calls with the same bytes, or with one turn."""
    slices, found = measured.slices, {}
    for case in dict.fromkeys(case for case, _ in slices):
        ones = slices[case, SERVICE]
        base = LEGAL if case.startswith(_OF_MANY) else case
        found[case] = {
            STOCK: ratio(ones, slices[base, STOCK]),
            AIO: ratio(ones, slices[base, AIO]),
            AIO_OF_AIO: ratio(slices[case, AIO_SERVICE], slices[base, AIO]),
        }
    return found


def _requirements(ratios: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        requirement(
            f"{case}: a turn costs at most {most:.2f} times a no-op call of stock gRPC",
            met=ratios[case][STOCK]["median"] <= most,
            measured=_told(ratios[case][STOCK]),
        )
        for case, most in MOST_OF_STOCK.items()
    ]


def _told(figures: Mapping[str, float]) -> str:
    least = f", {figures['of_least']:.2f}" if "of_least" in figures else ""
    return f"{figures['median']:.2f} ({figures['low']:.2f}-{figures['high']:.2f}){least}"


# Tables


def told_of(report: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns sentences on the conditions of the measurement."""
    machine = report["machine"]
    return (
        ", ".join(f"{name} {value}" for name, value in report["versions"].items()),
        f"{machine['cpu']}, {machine['processors']} processors, load {machine['load_average'][0]:.1f}",
        f"{report['answers_checked']:,} answers checked, {report['rounds']} rounds",
    )


def tables_of(report: Mapping[str, Any]) -> dict[str, list[list[str]]]:
    """Returns the tables of a report."""
    cases, ratios = report["cases"], report["ratios"]
    bases = {STOCK: "stock", AIO: "aio", AIO_OF_AIO: "aio of aio"}
    latency_cases = (LEGAL_FEW, LEGAL, LEGAL_MANY)
    return {
        f"Server CPU, us a call (a turn, in batches and streams), {report['clients']} clients: median, least": [
            ["", *SERVERS],
            *([case, *(_median_and_least(cases[case][server]["cpu_us"]) for server in SERVERS)] for case in cases),
        ],
        "The service's CPU in no-ops (of one turn, for batches and streams): median (quartiles), ratio of the least": [
            ["", *bases.values()],
            *([case, *(_told(ratios[case][base]) for base in bases)] for case in cases),
        ],
        "Throughput, a second; latency of a call, ms, p50 / p95": [
            ["", *SERVERS],
            *([case, *(_speed(cases[case][server]) for server in SERVERS)] for case in cases if case in latency_cases),
        ],
    }


def _median_and_least(figures: Mapping[str, float]) -> str:
    digits = 0 if figures["median"] >= 20 else 1
    return f"{figures['median']:.{digits}f}, {figures['least']:.{digits}f}"


def _speed(figures: Mapping[str, Any]) -> str:
    times = figures["milliseconds"]
    return f"{figures['turns_a_second']['median']:,.0f}; {times['median']:.1f} / {times['p95']:.1f}"
