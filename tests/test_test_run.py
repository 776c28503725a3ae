"""The run of all tests: every part runs, and in CI a test that failed by chance does not fail it."""

import sys
from pathlib import Path

import pytest

from tools import test_run as runner

pytestmark = pytest.mark.slow

BY_CHANCE = """
from pathlib import Path

def test_second_time_lucky():
    mark = Path(__file__).with_name("mark")
    was_there, _ = mark.exists(), mark.touch()
    assert was_there
"""
PARTS = (("first",), ("second",))
PYTEST = (sys.executable, "-m", "pytest")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder with two parts of tests that pass."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # loading them takes longer than the tests
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p xdist.plugin\n", encoding="utf-8")
    for [part] in PARTS:
        (tmp_path / part).mkdir()
        (tmp_path / part / f"test_good_{part}.py").write_text("def test_it(): pass", encoding="utf-8")
    return tmp_path


def test_parts_that_pass(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert runner.run(PARTS, PYTEST, folder, reruns=True) == 0
    assert "all parts passed" in capfd.readouterr().out


def test_a_test_that_fails_by_chance(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "first" / "test_chance.py").write_text(BY_CHANCE, encoding="utf-8")
    assert runner.run(PARTS, PYTEST, folder, reruns=True) == 0
    assert "FLAKY first/test_chance.py::test_second_time_lucky" in capfd.readouterr().out


def test_skips_are_counted_by_reason(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = "import pytest\ndef test_1(): pytest.skip('no tool; run: make tool')\ntest_2 = test_1\n"
    (folder / "second" / "test_skips.py").write_text(text, encoding="utf-8")
    assert runner.run(PARTS, PYTEST, folder, reruns=True) == 0
    assert "SKIPPED 2 tests: no tool; run: make tool\n" in capfd.readouterr().out


def test_tests_that_fail_in_some_of_several_runs_are_listed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "first" / "test_chance.py").write_text(BY_CHANCE, encoding="utf-8")
    assert runner.flaky(PYTEST, folder, 3) == 1
    assert "FAILED 1 of 3 runs: first/test_chance.py::test_second_time_lucky\n" in capfd.readouterr().out


@pytest.mark.parametrize(("failures", "reruns"), [(1, False), (1, True), (runner.RERUN_MAX + 1, True)])
def test_tests_that_fail(folder: Path, failures: int, capfd: pytest.CaptureFixture[str], *, reruns: bool) -> None:
    text = "\n".join(f"def test_{number}(): assert False" for number in range(failures))
    (folder / "first" / "test_bad.py").write_text(text, encoding="utf-8")
    assert runner.run(PARTS, PYTEST, folder, reruns=reruns) == 1
    output = capfd.readouterr().out
    assert "FLAKY" not in output
    assert "test_good_second.py" in output
    assert ("once more" in output) == (reruns and failures == 1)
