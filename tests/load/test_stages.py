"""How many users a load shape has, and where a ramp finds the knee."""

import pytest

from load.stages import RAMP_STEPS, SHAPES, STAGES, Step, is_past_knee, report, users_at

BOUND_MS = 100


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("steady", {0: 50, 30: 50, 59.9: 50, 60: None, 1000: None}),
        ("soak", {0: 50, 30: 50, 59.9: 50, 60: None}),
        ("spike", {0: 10, 23.9: 10, 24: 50, 35.9: 50, 36: 10, 59.9: 10, 60: None}),
    ],
)
def test_a_shape_has_so_many_users_over_time(shape: str, expected: dict[float, int | None]) -> None:
    assert {gone: STAGES[shape](gone, 50, 60) for gone in expected} == expected


def test_every_shape_has_users_all_the_time() -> None:
    for name, stages in STAGES.items():
        shape = SHAPES[name]
        users = [stages(second, shape.users, shape.seconds) for second in range(shape.seconds)]
        assert min(count or 0 for count in users) >= 1
        assert max(count or 0 for count in users) == shape.users
    assert set(SHAPES) == {*STAGES, "ramp"}


def test_a_ramp_goes_up_in_even_steps() -> None:
    assert [users_at(step, 200) for step in range(RAMP_STEPS)] == [20, 40, 60, 80, 100, 120, 140, 160, 180, 200]
    assert users_at(0, 3) == 1


def ramp(capacity: float, slow_from: int) -> list[Step]:
    """The steps that are measured at a server with so much capacity, where users want ten calls a second each."""
    steps: list[Step] = []
    for step in range(RAMP_STEPS):
        users = users_at(step, 200)
        steps.append(Step(users, min(users * 10.0, capacity), 500 if users >= slow_from else 5))
        if is_past_knee(steps, BOUND_MS):
            break
    return steps


def test_a_ramp_ends_where_throughput_stops_rising() -> None:
    steps = ramp(capacity=1000, slow_from=999)
    assert [step.users for step in steps] == [20, 40, 60, 80, 100, 120]
    assert report(steps, BOUND_MS).splitlines()[-1] == (
        "Knee: 100 users, 1000 calls/s, p95 5 ms; then throughput stopped rising."
    )


def test_a_ramp_ends_where_calls_take_too_long() -> None:
    steps = ramp(capacity=1_000_000, slow_from=60)
    assert [step.users for step in steps] == [20, 40, 60]
    assert (
        report(steps, BOUND_MS).splitlines()[-1] == "Knee: 40 users, 400 calls/s, p95 5 ms; then p95 exceeded 100 ms."
    )


def test_a_ramp_that_finds_no_knee_says_so() -> None:
    steps = ramp(capacity=1_000_000, slow_from=999)
    assert len(steps) == RAMP_STEPS
    assert report(steps, BOUND_MS).endswith("The ramp reached no knee: more users would increase throughput.")


def test_a_ramp_that_is_ended_within_its_first_step_claims_nothing() -> None:
    assert report([], BOUND_MS) == "Ramp:\nNo step was measured: the ramp ended during its first step."


def test_a_ramp_that_begins_behind_the_knee_says_so() -> None:
    steps = ramp(capacity=1_000_000, slow_from=1)
    assert len(steps) == 1
    assert report(steps, BOUND_MS).endswith("The knee is below 20 users; start with fewer (--users).")


def test_a_report_has_every_step() -> None:
    rows = report(ramp(capacity=1000, slow_from=999), BOUND_MS).splitlines()[1:-1]
    assert [row.split()[:3] for row in rows[:2]] == [["20", "users", "200"], ["40", "users", "400"]]
    assert len(rows) == 6
