"""The thresholds of a load test."""

from dataclasses import replace

import pytest

from load.thresholds import BASELINE, MEASURED, SERVICE, Limits, Row, missed

LIMITS = Limits(
    ratio=4, slack_ms=50, least_calls=100, users={"Judge": ("ValidateTurn",), "Player": ("JoinGame", "PlayTurn")}
)

TURNS = Row(SERVICE, "ValidateTurn", requests=90, failures=0, p95_ms=12)
PLAYS = Row(SERVICE, "PlayTurn", requests=10, failures=0, p95_ms=900)
NOTHING = Row(BASELINE, "ValidateTurn", requests=40, failures=0, p95_ms=5)
REFUSED = Row("refusal", "PlayTurn STALE_STATE", requests=7, failures=0, p95_ms=3)
RUN = (TURNS, PLAYS, NOTHING, REFUSED)


def test_a_good_run_misses_nothing_however_long_games_take() -> None:
    assert missed(RUN, 0, LIMITS) == []


def with_row(changed: Row) -> tuple[Row, ...]:
    """The run with another row in the place of the one of that name."""
    return tuple(changed if (row.sort, row.name) == (changed.sort, changed.name) else row for row in RUN)


@pytest.mark.parametrize(
    ("rows", "exceptions", "expected"),
    [
        pytest.param(
            with_row(replace(PLAYS, failures=1)), 0, ["1 of 10 failed: grpc PlayTurn"], id="a call of a game fails"
        ),
        pytest.param(
            with_row(replace(NOTHING, failures=2)), 0, ["2 of 40 failed: no-op ValidateTurn"], id="the baseline fails"
        ),
        pytest.param(
            (*RUN, Row("answer", "ValidateTurn", 3, 3, 0)),
            0,
            ["3 of 3 failed: answer ValidateTurn"],
            id="wrong answers",
        ),
        pytest.param(RUN, 2, ["2 errors in the users' own code"], id="a user breaks"),
        pytest.param(with_row(replace(TURNS, requests=89)), 0, ["99 calls; the minimum is 100"], id="too few calls"),
        pytest.param(
            (replace(TURNS, requests=100), NOTHING),
            0,
            ["Player did not take part: it never called JoinGame or PlayTurn"],
            id="a sort of users is missing",
        ),
        pytest.param(
            (),
            0,
            [
                "0 calls; the minimum is 100",
                "Judge did not take part: it never called ValidateTurn",
                "Player did not take part: it never called JoinGame or PlayTurn",
            ],
            id="nothing happens",
        ),
        pytest.param(with_row(replace(TURNS, p95_ms=70)), 0, [], id="as slow as may be"),
        pytest.param(
            with_row(replace(TURNS, p95_ms=71)),
            0,
            ["ValidateTurn: p95 71 ms; the limit is 70 ms, given 5 ms of its baseline"],
            id="slower than may be",
        ),
        pytest.param((TURNS, PLAYS), 0, ["ValidateTurn has no baseline to compare with"], id="no baseline is measured"),
        pytest.param(
            with_row(replace(NOTHING, requests=0)),
            0,
            ["ValidateTurn has no baseline to compare with"],
            id="the baseline is not called",
        ),
        pytest.param(
            with_row(replace(TURNS, p95_ms=900, failures=4)),
            0,
            [
                "4 of 90 failed: grpc ValidateTurn",
                "ValidateTurn: p95 900 ms; the limit is 70 ms, given 5 ms of its baseline",
            ],
            id="everything that was missed is told",
        ),
    ],
)
def test_a_run_fails(rows: tuple[Row, ...], exceptions: int, expected: list[str]) -> None:
    assert missed(rows, exceptions, LIMITS) == expected


def test_a_slow_machine_is_slow_for_both() -> None:
    slow = (replace(TURNS, p95_ms=400), PLAYS, replace(NOTHING, p95_ms=100))
    assert missed(slow, 0, LIMITS) == []


def test_a_batch_may_be_as_much_work_as_its_turns_are() -> None:
    assert MEASURED["BatchValidateTurns"] == 12
    batch = Row(SERVICE, "BatchValidateTurns", requests=5, failures=0, p95_ms=12 * (4 * 5 + 50))
    nothing = Row(BASELINE, "BatchValidateTurns", requests=5, failures=0, p95_ms=5)
    assert missed((*RUN, batch, nothing), 0, LIMITS) == []
    assert missed((*RUN, replace(batch, p95_ms=batch.p95_ms + 1), nothing), 0, LIMITS)
