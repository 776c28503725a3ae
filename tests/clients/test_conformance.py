"""The runner of the conformance programs notices what fails or is missing. `make conformance` runs the programs."""

from argparse import Namespace
from pathlib import Path

import pytest
import run
from run import CHECKS, Result

from tools.revisions import last_release

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


# Other versions


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the files of another version, whose program prints its arguments, its server and its Python client."""
    program = tmp_path / "clients" / "conformance" / "run.py"
    program.parent.mkdir(parents=True)
    program.write_text(
        "import os, sys\n"
        "def main():\n"
        "    print(*sys.argv[1:], server(__file__), os.environ['PYTHONPATH'], sep='|')\n"
        "def server(packages):\n"
        "    return 'its own'\n"
    )
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setattr(run, "write_tree", lambda revision, _folder: {last_release(): tmp_path}[revision])
    return tmp_path


def test_clients_of_another_version_are_checked_by_their_program_against_the_present_server(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "server", lambda: "the present one")
    monkeypatch.setattr("sys.argv", ["run", "python", "--clients-of", "last", "--quick", "--require", "go"])
    run.main()
    path = tree / "clients" / "python" / "src"
    assert capsys.readouterr().out == f"python|--quick|--require|go|the present one|{path}\n"


def test_present_clients_are_checked_with_the_calls_of_an_older_server(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[tuple[list[str], Path, Path]] = []
    monkeypatch.setattr(run, "installed", lambda of, _folder: of / "installed")

    def checks(_parser: object, chosen: Namespace, _present: object, packages: Path, wire: Path) -> bool:
        found.append((chosen.languages, packages, wire))
        return True

    monkeypatch.setattr(run, "checks", checks)
    monkeypatch.setattr("sys.argv", ["run", "go", "--against", "last"])
    with pytest.raises(SystemExit) as end:
        run.main()
    assert end.value.code == 0
    assert found == [(["go"], tree / "installed", tree / "tests" / "conformance" / "wire.json")]
