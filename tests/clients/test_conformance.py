"""The runner of the conformance programs notices what fails or is missing. `make conformance` runs the programs."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import pytest
import run
from run import CHECKS, Result

GOOD = Result(checks=dict.fromkeys(CHECKS, ("PASS", "0.1")))
SKIPPED = Result(problem="not on PATH: go", is_skipped=True)


def test_languages_that_pass_or_may_be_missing_are_no_fault() -> None:
    assert run.report({"python": GOOD, "go": SKIPPED}, {"python"})


@pytest.mark.parametrize("results", [{"python": GOOD}, {"python": GOOD, "go": SKIPPED}])
def test_a_required_language_may_not_be_missing(results: dict[str, Result], capsys: pytest.CaptureFixture[str]) -> None:
    assert not run.report(results, {"python", "go"})
    assert "required, but skipped: go" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (Result(checks={**GOOD.checks, "turns": ("FAIL", "0.1 a turn was refused")}), "turns: a turn was refused"),
        (Result(checks={check: GOOD.checks[check] for check in CHECKS[1:]}), "the program printed no line for it"),
        (Result(checks=GOOD.checks, problem="the build failed"), "FAIL go: the build failed"),
    ],
)
def test_a_check_that_fails_or_is_missing_is_a_fault(
    result: Result, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not run.report({"python": GOOD, "go": result}, set())
    assert said in capsys.readouterr().out


def test_a_language_whose_package_is_absent_is_refused_with_the_command_that_builds_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = Namespace(packages=tmp_path, languages=["rust"], require="go")
    with pytest.raises(SystemExit):
        run.with_packages(ArgumentParser(), arguments, run.LANGUAGES)
    assert 'make release ARGS="--dry-run --only go,rust"' in capsys.readouterr().err
