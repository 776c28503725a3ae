"""Load shapes as plain functions: how many users there are after so many seconds.

Nothing here knows Locust; shapes.py hands it over.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

SPIKE_BASE: Final = 0.2
"""Which part of its users a spike has before and after it."""

SPIKE_FROM: Final = 0.4
SPIKE_UNTIL: Final = 0.6
"""When the spike begins and ends, as parts of the whole time."""

RAMP_STEPS: Final = 10
STEP_SECONDS: Final = 15
LEAST_GAIN: Final = 0.3
"""Where throughput rises by less than this part of what is offered more, it has stopped rising."""

Stages = Callable[[float, int, float], int | None]
"""Takes the seconds gone, the most users and the seconds in all; gives the users now, or None at the end."""


def steady(gone: float, users: int, seconds: float) -> int | None:
    """All users, all the time."""
    return users if gone < seconds else None


def spike(gone: float, users: int, seconds: float) -> int | None:
    """A few users, then all of them at once, then the few again."""
    if gone >= seconds:
        return None
    is_spike = SPIKE_FROM * seconds <= gone < SPIKE_UNTIL * seconds
    return users if is_spike else max(1, round(users * SPIKE_BASE))


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape, with what it takes when nothing else is asked for.

    Attributes:
        about: What it is for, in a few words.
        users: The most users.
        seconds: How long it runs.
        spawn_rate: How many users begin or end in a second.
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
"""The shapes that depend on the time alone; a ramp depends on what was measured, too."""


# The ramp to the knee.


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a ramp, measured.

    Attributes:
        users: How many there were.
        throughput: Calls a second that were answered.
        p95_ms: Milliseconds in which 95 of 100 were.
    """

    users: int
    throughput: float
    p95_ms: float


def users_at(step: int, users: int) -> int:
    """The users of a step, counted from 0, of a ramp to so many."""
    return max(1, round(users * (step + 1) / RAMP_STEPS))


def is_past_knee(steps: Sequence[Step], bound_ms: float) -> bool:
    """Whether the last step was no better than the one before: it is too slow, or brought hardly more throughput."""
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
    """The steps, and where the knee was."""
    rows = [f"  {step.users:5} users {step.throughput:8.0f} calls/s   p95 {step.p95_ms:6.0f} ms" for step in steps]
    return "\n".join(["Ramp:", *rows, _knee(steps, bound_ms)])


def _knee(steps: Sequence[Step], bound_ms: float) -> str:
    if not steps:
        return "No step was measured: the ramp was ended within its first one."
    if not is_past_knee(steps, bound_ms):
        return "No knee was reached: more users would bring more throughput."
    if len(steps) == 1:
        return f"The knee is below {steps[0].users} users: begin with fewer (--users)."
    knee = steps[-2]
    why = f"p95 passed {bound_ms:.0f} ms" if steps[-1].p95_ms > bound_ms else "throughput stopped rising"
    return f"Knee: {knee.users} users, {knee.throughput:.0f} calls/s, p95 {knee.p95_ms:.0f} ms; then {why}."
