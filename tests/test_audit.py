"""`make audit` judges tools by their reports and exit statuses: no text of an advisory hides a weakness."""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tools.audit import CHECKS, UNCHECKED, Check, main, of_cargo, of_govulncheck, of_npm, of_pip_audit
from tools.servers import ROOT

Reader = Callable[[str], Iterator[str]]

ADVISORY = "404 Not Found: a dropped Connection, seen in a lookup over the proxy: dial tcp"
"""Words that failures of networks have too."""
WEAK = {"name": "grpcio", "version": "1.0", "vulns": [{"id": "PYSEC-1", "description": ADVISORY}]}
PIP: Any = {"dependencies": [WEAK]}
SKIPPED: Any = {"dependencies": [{"name": "a", "skip_reason": "?"}, *PIP["dependencies"]]}
NPM: Any = {"vulnerabilities": {"vite": {"range": "<5", "severity": "high", "via": [{"title": ADVISORY}]}}}
GO: Any = {"finding": {"osv": "GO-1", "trace": [{"module": "m", "version": "v1", "function": "f"}]}}
CARGO: Any = {
    "vulnerabilities": {
        "list": [{"package": {"name": "h2", "version": "0.1"}, "advisory": {"id": "RUSTSEC-1", "title": ADVISORY}}]
    }
}
GO_CONFIG = '{"config": {}}\n' + json.dumps({"osv": {"summary": ADVISORY}})
IMPORTED = json.dumps({"finding": {"osv": "GO-2", "trace": [{"module": "m"}]}})


def scripted(reader: Reader, output: str, status: int, error: str = "") -> dict[str, Check]:
    """Returns a check whose tool prints an output and exits with a status."""
    script = "import sys; sys.stdout.write(sys.argv[1]); sys.stderr.write(sys.argv[2]); sys.exit(int(sys.argv[3]))"
    return {"it": Check(".", (sys.executable, "-c", script, output, error, str(status)), reader)}


@pytest.mark.parametrize(
    ("reader", "output", "status", "weakness"),
    [
        (of_pip_audit, json.dumps(PIP), 1, "grpcio 1.0: PYSEC-1"),
        (of_pip_audit, json.dumps(SKIPPED), 1, "grpcio 1.0: PYSEC-1"),
        (of_npm, json.dumps(NPM), 1, "vite <5: high"),
        (of_govulncheck, GO_CONFIG + json.dumps(GO, indent=1), 0, "m v1: GO-1"),
        (of_cargo, json.dumps(CARGO), 1, "h2 0.1: RUSTSEC-1"),
    ],
)
def test_a_weakness_fails_whatever_its_advisory_says(
    reader: Reader, output: str, status: int, weakness: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(scripted(reader, output, status, ADVISORY)) == 1
    assert weakness in next(line for line in capsys.readouterr().out.splitlines() if line.startswith("WEAK "))


@pytest.mark.parametrize(
    ("reader", "output"),
    [
        (of_pip_audit, '{"dependencies": [{"name": "grpcio", "version": "2.0", "vulns": []}]}'),
        (of_npm, '{"vulnerabilities": {}}'),
        (of_govulncheck, GO_CONFIG + IMPORTED),
        (of_cargo, '{"vulnerabilities": {"list": []}}'),
    ],
)
def test_a_report_without_weaknesses_is_well_only_if_its_tool_is(
    reader: Reader, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(scripted(reader, output, 0)) == 0
    assert capsys.readouterr().out.startswith("ok           it: no weakness is known")
    assert main(scripted(reader, output, 1, "cannot connect")) == 0
    assert capsys.readouterr().out.startswith("not checked  it: ")


@pytest.mark.parametrize("reader", [of_pip_audit, of_npm, of_govulncheck, of_cargo])
@pytest.mark.parametrize("output", ["", '{"message": "no audit endpoint", "error": {}}', "<html>"])
@pytest.mark.parametrize("status", [0, 1])
def test_an_output_that_is_no_report_is_not_checked(
    reader: Reader, output: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(scripted(reader, output, status, "first\ncannot connect")) == 0
    assert f"exited with {status}: cannot connect" in capsys.readouterr().out.splitlines()[0]


def test_every_ecosystem_is_checked_or_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main({"it": Check(".", ("no-such-program",), of_npm)}) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("not checked  it: no-such-program is not installed")
    assert all(f"not checked  {name}: " in printed for name in UNCHECKED)
    manifests = ("Cargo.toml", "CMakeLists.txt", "go.mod", "package.json", "pom.xml")
    folders = {path.parent.name for name in manifests for path in (ROOT / "clients").glob(f"*/{name}")}
    checked = " ".join([*(check.folder for check in CHECKS.values()), *UNCHECKED.values()])
    assert len(folders) >= 5
    assert all(f"clients/{folder}" in checked for folder in folders)
