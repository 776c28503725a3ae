"""The thresholds of a load test: no undocumented error, validation near its baseline, and a minimum of calls.

This module does not depend on Locust; locustfile.py passes the measurements.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

SERVICE: Final = "grpc"
"""The kind of rows that are calls of the service."""

BASELINE: Final = "no-op"
"""The kind of rows that are the same calls of the no-op server."""

MEASURED: Final[Mapping[str, float]] = {
    "ValidateTurn": 1,
    "ValidateMelds": 1,
    "BatchValidateTurns": 12,
    "StreamValidateTurns": 1,
}
"""The RPCs that have a baseline, with their allowed multiple: 0.12 for each of the 100 turns of a batch."""

OPTIONS: Final = (
    ("--validation-host", "LOAD_VALIDATION_HOST", "", "host:port of ValidationService, if it differs from --host"),
    ("--baseline-host", "LOAD_BASELINE_HOST", "", "host:port of the no-op server; load.run starts one"),
    (
        "--p95-ratio",
        "LOAD_P95_RATIO",
        4.0,
        "fail if the p95 of a validation call exceeds its baseline's times this ...",
    ),
    ("--p95-slack-ms", "LOAD_P95_SLACK_MS", 100.0, "... plus this many milliseconds"),
    ("--least-calls", "LOAD_LEAST_CALLS", 1, "fail if the service got fewer calls"),
)
"""The options that load tests add to Locust's: name, environment variable, default, help text."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of Locust's table.

    Attributes:
        sort: SERVICE, BASELINE, or another kind, such as refusals or wrong answers.
        name: The RPC.
        requests: The number of requests, including failed ones.
        failures: The number of failed requests.
        p95_ms: The 95th percentile of the response time in milliseconds.
    """

    sort: str
    name: str
    requests: int
    failures: int
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits at which a run fails.

    Attributes:
        ratio: The allowed ratio of the p95 of a validation call to that of its baseline.
        slack_ms: Milliseconds that are added to the allowed p95; both are multiplied for RPCs that do more work.
        least_calls: The minimum number of calls of the service.
        users: The user classes of the run, each with RPCs of which it must call at least one.
    """

    ratio: float
    slack_ms: float
    least_calls: int
    users: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def most_ms(self, name: str, baseline_ms: float) -> float:
        """Returns the longest allowed p95 of an RPC of MEASURED, given that of its baseline."""
        return MEASURED[name] * (self.ratio * baseline_ms + self.slack_ms)


def missed(rows: Sequence[Row], exceptions: int, limits: Limits) -> list[str]:
    """Returns the missed thresholds as sentences; empty if the run passed.

    Args:
        rows: All measurements.
        exceptions: The number of errors in the users' own code.
        limits: The limits of the run.
    """
    return [*_errors(rows, exceptions), *_idleness(rows, limits), *_slowness(rows, limits)]


def _errors(rows: Sequence[Row], exceptions: int) -> Iterator[str]:
    for row in rows:
        if row.failures:
            yield f"{row.failures} of {row.requests} failed: {row.sort} {row.name}"
    if exceptions:
        yield f"{exceptions} errors in the users' own code"


def _idleness(rows: Sequence[Row], limits: Limits) -> Iterator[str]:
    called = {row.name: row.requests for row in rows if row.sort == SERVICE}
    calls = sum(called.values())
    if calls < limits.least_calls:
        yield f"{calls} calls; the minimum is {limits.least_calls}"
    for user, rpcs in limits.users.items():
        if not any(called.get(rpc) for rpc in rpcs):
            yield f"{user} did not take part: it never called {' or '.join(rpcs)}"


def _slowness(rows: Sequence[Row], limits: Limits) -> Iterator[str]:
    baselines = {row.name: row for row in rows if row.sort == BASELINE and row.requests}
    for row in rows:
        if row.sort != SERVICE or row.name not in MEASURED or not row.requests:
            continue
        baseline = baselines.get(row.name)
        if baseline is None:
            yield f"{row.name} has no baseline to compare with"
        elif row.p95_ms > (most_ms := limits.most_ms(row.name, baseline.p95_ms)):
            yield (
                f"{row.name}: p95 {row.p95_ms:.0f} ms; the limit is {most_ms:.0f} ms"
                f", given {baseline.p95_ms:.0f} ms of its baseline"
            )
