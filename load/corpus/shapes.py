"""The load shapes for Locust; stages.py defines their content."""

import math
from collections import Counter
from typing import Any

from locust import LoadTestShape
from locust.stats import StatsEntry, calculate_response_time_percentile

from load.stages import RAMP_STEPS, STAGES, STEP_SECONDS, Step, is_past_knee, users_at
from load.thresholds import MEASURED, SERVICE

MEASURED_SECONDS = 8
"""The length of the measured part of a ramp's step."""

LATE_SECONDS = 3
"""The measured part ends this long before the step does, because workers report with this delay."""


class StagedShape(LoadTestShape):
    """A shape that depends on the time alone.

    Args:
        name: Its name in STAGES.
        options: The options of the run.
    """

    use_common_options = True

    def __init__(self, name: str, options: Any) -> None:  # noqa: ANN401 - argparse's
        super().__init__()  # type: ignore[no-untyped-call]  # Locust's
        self._stages = STAGES[name]
        self._options = options

    def tick(self) -> tuple[int, float] | None:
        """Returns the number of users and the spawn rate; None at the end."""
        users = self._stages(self.get_run_time(), self._options.num_users, self._options.run_time)
        return None if users is None else (users, self._options.spawn_rate)


class RampShape(LoadTestShape):
    """Adds users step by step until throughput stops rising or calls take too long.

    If the run makes validation calls, only these are measured; else all calls of the service are.
    """

    use_common_options = True

    def __init__(self, options: Any) -> None:  # noqa: ANN401 - argparse's
        super().__init__()  # type: ignore[no-untyped-call]  # Locust's
        self._options = options
        self.steps: list[Step] = []
        self._times: Counter[int] = Counter()

    def reset_time(self) -> None:
        """Starts over."""
        super().reset_time()  # type: ignore[no-untyped-call]  # Locust's
        self.steps, self._times = [], Counter()

    def tick(self) -> tuple[int, float] | None:
        """Returns the number of users and the spawn rate; None at the end."""
        if self.get_run_time() >= STEP_SECONDS * (len(self.steps) + 1):
            self.steps.append(self._measured())
            if len(self.steps) == RAMP_STEPS or is_past_knee(self.steps, self._options.knee_p95_ms):
                return None
        return users_at(len(self.steps), self._options.num_users), self._options.spawn_rate

    def _measured(self) -> Step:
        """Returns the results of the step that ends now."""
        entries = self._entries()
        end = math.floor(max((entry.last_request_timestamp or 0 for entry in entries), default=0)) - LATE_SECONDS
        seconds = range(end - MEASURED_SECONDS, end)
        calls = sum(entry.num_reqs_per_sec.get(second, 0) for entry in entries for second in seconds)
        times: Counter[int] = Counter()
        for entry in entries:
            times.update(entry.response_times)
        new, self._times = times - self._times, times
        p95 = calculate_response_time_percentile(new, new.total(), 0.95) if new else 0
        users = users_at(len(self.steps), self._options.num_users)
        return Step(users, calls / MEASURED_SECONDS, float(p95))

    def _entries(self) -> list[StatsEntry]:
        """Returns the measured rows."""
        if self.runner is None:
            return []
        of_service = [entry for entry in self.runner.stats.entries.values() if entry.method == SERVICE]
        return [entry for entry in of_service if entry.name in MEASURED] or of_service


def shape_of(name: str, options: Any) -> StagedShape | RampShape:  # noqa: ANN401 - argparse's
    """Returns the shape with a name of SHAPES."""
    return RampShape(options) if name == "ramp" else StagedShape(name, options)
