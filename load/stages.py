"""Load shapes as pure functions of time. They do not depend on Locust; shapes.py adapts them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

SPIKE_BASE: Final = 0.2
"""Share of the users that are active before and after the spike."""

SPIKE_FROM: Final = 0.4
SPIKE_UNTIL: Final = 0.6
"""Begin and end of the spike, as shares of the run time."""

RAMP_STEPS: Final = 10
STEP_SECONDS: Final = 15
LEAST_GAIN: Final = 0.3
"""Throughput has stopped rising if it grows by less than this share of the added load."""

Stages = Callable[[float, int, float], int | None]
"""Maps elapsed seconds, maximum users and total seconds to the current users; None ends the run."""


def steady(gone: float, users: int, seconds: float) -> int | None:
    """Returns all users for the whole time."""
    return users if gone < seconds else None


def spike(gone: float, users: int, seconds: float) -> int | None:
    """Returns a few users, then all of them at once, then the few again."""
    if gone >= seconds:
        return None
    is_spike = SPIKE_FROM * seconds <= gone < SPIKE_UNTIL * seconds
    return users if is_spike else max(1, round(users * SPIKE_BASE))


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape with its default size.

    Attributes:
        about: A short description.
        users: The maximum number of users.
        seconds: The run time.
        spawn_rate: Users that start or stop in a second.
    """

    about: str
    users: int
    seconds: int
    spawn_rate: float


SHAPES: Final[Mapping[str, Shape]] = {
    "steady": Shape("all users, all the time", users=22, seconds=120, spawn_rate=10),
    "ramp": Shape("more users step by step, until throughput stops rising", 200, RAMP_STEPS * STEP_SECONDS, 50),
    "spike": Shape("a few users, then all of them at once, then the few again", 120, 120, 120),
    "soak": Shape("some users for hours", users=22, seconds=4 * 3600, spawn_rate=10),
}

STAGES: Final[Mapping[str, Stages]] = {"steady": steady, "spike": spike, "soak": steady}
"""The shapes that depend on time alone. A ramp also depends on measurements."""


# The ramp


@dataclass(frozen=True, slots=True)
class Step:
    """One measured step of a ramp.

    Attributes:
        users: The number of users.
        throughput: Answered calls a second.
        p95_ms: The 95th percentile of the response time in milliseconds.
    """

    users: int
    throughput: float
    p95_ms: float


def users_at(step: int, users: int) -> int:
    """Returns the number of users in a step, counted from 0, of a ramp that ends at `users`."""
    return max(1, round(users * (step + 1) / RAMP_STEPS))


def is_past_knee(steps: Sequence[Step], bound_ms: float) -> bool:
    """Whether the last step was too slow, or hardly improved throughput over the step before."""
    if not steps:
        return False
    last = steps[-1]
    if last.p95_ms > bound_ms:
        return True
    if len(steps) == 1:
        return False
    before = steps[-2]
    offered = last.users / before.users - 1
    gained = last.throughput / before.throughput - 1 if before.throughput else 1.0
    return gained < LEAST_GAIN * offered


def report(steps: Sequence[Step], bound_ms: float) -> str:
    """Returns the steps and the knee as text."""
    rows = [f"  {step.users:5} users {step.throughput:8.0f} calls/s   p95 {step.p95_ms:6.0f} ms" for step in steps]
    return "\n".join(["Ramp:", *rows, _knee(steps, bound_ms)])


def _knee(steps: Sequence[Step], bound_ms: float) -> str:
    if not steps:
        return "No step was measured: the ramp ended during its first step."
    if not is_past_knee(steps, bound_ms):
        return "The ramp reached no knee: more users would increase throughput."
    if len(steps) == 1:
        return f"The knee is below {steps[0].users} users; start with fewer (--users)."
    knee = steps[-2]
    reason = f"p95 exceeded {bound_ms:.0f} ms" if steps[-1].p95_ms > bound_ms else "throughput stopped rising"
    return f"Knee: {knee.users} users, {knee.throughput:.0f} calls/s, p95 {knee.p95_ms:.0f} ms; then {reason}."
