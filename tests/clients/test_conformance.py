"""The conformance program passes with both Python clients, and its runner notices what fails or is missing."""

import subprocess
import sys

import pytest

from support.harness import ROOT


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "clients/conformance/run.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)


@pytest.mark.parametrize("client", ["python", "python (aio)"])
def test_the_python_clients_conform(client: str) -> None:
    ran = run(client, "--require", client)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "FAIL" not in ran.stdout
    assert "SKIP" not in ran.stdout


def test_a_required_language_may_not_be_missing() -> None:
    ran = run("python", "--require", "python,cobol")
    assert ran.returncode == 1
    assert "required, but skipped: cobol" in ran.stdout
