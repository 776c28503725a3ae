"""The conformance program passes with both Python clients, and its runner notices what fails or is missing."""

import subprocess
import sys

import pytest
from run import CHECKS, Result, report

from support.harness import ROOT


@pytest.mark.parametrize("client", ["python", "python (aio)"])
def test_the_python_clients_conform(client: str) -> None:
    command = [sys.executable, "clients/conformance/run.py", client, "--require", client, "--quick"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "FAIL" not in ran.stdout
    assert "SKIP" not in ran.stdout


def test_a_required_language_may_not_be_missing(capsys: pytest.CaptureFixture[str]) -> None:
    passed = Result(checks=dict.fromkeys(CHECKS, ("PASS", "0.1")))
    assert report({"python": passed}, {"python"})
    assert not report({"python": passed, "go": Result(problem="not on PATH: go", is_skipped=True)}, {"go", "cobol"})
    assert "required, but skipped: cobol, go\n" in capsys.readouterr().out


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_without_a_line_fails(check: str) -> None:
    checks = dict.fromkeys({*CHECKS} - {check}, ("PASS", "0.1"))
    assert not report({"python": Result(checks=checks)}, set())
