"""`make bench`: what fails a run."""

import pytest

from load.bench.figures import are_met, goal, print_requirements, printer, requirement

MET = requirement("a call: at most 2", met=True, measured="1.5")
MISSED = requirement("a turn: at most 1", met=False, measured="1.1")
OPEN = goal("a batch: at most 3", met=False, measured="3.1")


@pytest.mark.parametrize(("requirements", "expected"), [([MET, OPEN], True), ([MET, MISSED], False)])
def test_a_goal_that_is_not_met_yet_fails_no_run(requirements: list[dict[str, object]], expected: bool) -> None:
    assert are_met({"requirements": requirements}) is expected


def test_requirements_are_printed_with_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    print_requirements({"requirements": [MET, MISSED, OPEN]}, printer())
    assert [line.split(maxsplit=1)[0] for line in capsys.readouterr().out.splitlines()] == ["met", "MISSED", "open"]
