"""What a load test must keep to: no undocumented error, validation near its baseline, and something must have happened.

Nothing here knows Locust; locustfile.py hands over what it measured.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

SERVICE: Final = "grpc"
"""The sort of rows that are calls of the service."""

BASELINE: Final = "no-op"
"""The sort of rows that are the same calls of the server that does nothing."""

MEASURED: Final[Mapping[str, float]] = {
    "ValidateTurn": 1,
    "ValidateMelds": 1,
    "BatchValidateTurns": 12,
    "StreamValidateTurns": 1,
}
"""What is compared with its baseline, and how much more work it may be: 0.12 for each of a batch's hundred turns."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of Locust's table.

    Attributes:
        sort: SERVICE, BASELINE, or what is counted beside them: refusals, wrong answers.
        name: The RPC.
        requests: How many there were, failures among them.
        failures: How many of them failed.
        p95_ms: Milliseconds in which 95 of 100 were answered.
    """

    sort: str
    name: str
    requests: int
    failures: int
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a run fails.

    Attributes:
        ratio: How many times as long as its baseline the p95 of a validation call may be ...
        slack_ms: ... and how many milliseconds longer than that; what is more work may be that many times longer.
        least_calls: How many calls of the service there must be in all.
        users: Which sorts of users there are, each with the RPCs of which it calls one at least.
    """

    ratio: float
    slack_ms: float
    least_calls: int
    users: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def most_ms(self, name: str, baseline_ms: float) -> float:
        """The longest p95 of an RPC of MEASURED beside a baseline."""
        return MEASURED[name] * (self.ratio * baseline_ms + self.slack_ms)


def missed(rows: Sequence[Row], exceptions: int, limits: Limits) -> list[str]:
    """What a run missed, in sentences; empty when it passed.

    Args:
        rows: All that was measured.
        exceptions: How many errors there were in the users' own code.
        limits: What to keep to.
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
        yield f"{calls} calls, where {limits.least_calls} are the least"
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
            yield f"{row.name} has no baseline to be compared with"
        elif row.p95_ms > (most_ms := limits.most_ms(row.name, baseline.p95_ms)):
            yield (
                f"{row.name}: p95 {row.p95_ms:.0f} ms, and {most_ms:.0f} ms are the most"
                f" beside its baseline's {baseline.p95_ms:.0f} ms"
            )
