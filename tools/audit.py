"""Asks the advisories of each ecosystem about the packages that are used; names what could not be checked.

Usage: python -m tools.audit

Exits with 1 if a weakness is known. Tools that are not installed are fetched by uvx, npm and go where that works.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tools.servers import ROOT

BIN: Final = ROOT / ".venv" / "bin"
SECONDS: Final = 300
UNCHECKED: Final = {
    "Maven, client": "no advisories are asked: compare clients/java with https://osv.dev",
    "C++, client": "no advisories are asked: clients/cpp takes gRPC and Protobuf from the system or from Conan",
    "base image": "no advisories are asked: scan the built image, for example with trivy",
}
"""The packages that no tool here checks, and the reason."""


class NoReportError(Exception):
    """A tool's output is no report: it, or its advisories, could not be had."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check of an ecosystem.

    Attributes:
        folder: Where the tool runs.
        command: The tool and its arguments, which make it print JSON.
        weaknesses: Yields the weaknesses in its output. Raises NoReportError.
    """

    folder: str
    command: Sequence[str]
    weaknesses: Callable[[str], Iterator[str]]


def of_pip_audit(output: str) -> Iterator[str]:
    """Yields the weaknesses in the output of pip-audit."""
    packages = _part(_report(output), "dependencies")
    for package in packages:
        for weakness in package.get("vulns", ()):
            yield f"{package['name']} {package['version']}: {weakness['id']}"
    if skipped := [package["name"] for package in packages if "skip_reason" in package]:
        raise NoReportError(f"it skipped {', '.join(skipped)}")


def of_npm(output: str) -> Iterator[str]:
    """Yields the weak packages in the output of npm audit."""
    for name, package in _part(_report(output), "vulnerabilities").items():
        yield f"{name} {package['range']}: {package['severity']}"


def of_govulncheck(output: str) -> Iterator[str]:
    """Yields the weaknesses in the output of govulncheck that are in functions which are called."""
    messages, rest = [], output.strip()
    while rest:
        try:
            message, end = json.JSONDecoder().raw_decode(rest)
        except ValueError as error:
            raise NoReportError("its output is no JSON") from error
        messages.append(message)
        rest = rest[end:].lstrip()
    if not any("SBOM" in message or "config" in message for message in messages):
        raise NoReportError("it printed no report")
    for found in (message["finding"] for message in messages if "finding" in message):
        place = found["trace"][0]
        if "function" in place:
            yield f"{place['module']} {place.get('version', '')}: {found['osv']}"


def of_cargo(output: str) -> Iterator[str]:
    """Yields the weaknesses in the output of cargo audit."""
    for weakness in _part(_part(_report(output), "vulnerabilities"), "list"):
        yield f"{weakness['package']['name']} {weakness['package']['version']}: {weakness['advisory']['id']}"


def _report(output: str) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(output)
    except ValueError as error:
        raise NoReportError("its output is no JSON") from error


def _part(report: Any, name: str) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(report, dict) or name not in report:
        raise NoReportError(f"its output has no {name}")
    return report[name]


_PIP_AUDIT: Final = ("tool", "run", "pip-audit", "--disable-pip", "--require-hashes", "--format", "json")
CHECKS: Final = {
    "Python, service": Check(".", (str(BIN / "uv"), *_PIP_AUDIT, "-r", "requirements/all.txt"), of_pip_audit),
    "npm, client": Check("clients/typescript", ("npm", "audit", "--omit=dev", "--json"), of_npm),
    "npm, page": Check("web", ("npm", "audit", "--json"), of_npm),
    "Go": Check(
        "clients/go",
        ("go", "run", "golang.org/x/vuln/cmd/govulncheck@latest", "-format", "json", "./..."),
        of_govulncheck,
    ),
    "Rust": Check("clients/rust", ("cargo", "audit", "--json"), of_cargo),
}
"""The tool that checks each ecosystem."""


def main(checks: dict[str, Check] = CHECKS) -> int:
    """Runs the checks; returns 1 if one found a weakness."""
    outcomes = [_is_weak(name, check) for name, check in checks.items()]
    for name, reason in UNCHECKED.items():
        print(f"not checked  {name}: {reason}")
    return int(any(outcomes))


def _is_weak(name: str, check: Check) -> bool:
    """Runs a check and prints its outcome; returns whether it found a weakness."""
    try:
        found = _weaknesses(check)
    except NoReportError as error:
        print(f"not checked  {name}: {error}")
        return False
    for weakness in found:
        print(f"WEAK         {name}: {weakness}")
    if not found:
        print(f"ok           {name}: no weakness is known")
    return bool(found)


def _weaknesses(check: Check) -> Sequence[str]:
    """Returns the weaknesses that a check finds. Raises NoReportError if it finds none and its report is incomplete."""
    program = check.command[0]
    if not shutil.which(program):
        raise NoReportError(f"{program} is not installed")
    try:
        done = subprocess.run(
            check.command, cwd=ROOT / check.folder, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise NoReportError(f"no answer within {SECONDS} s") from None
    last = (done.stderr.strip() or "no message").splitlines()[-1]
    found: list[str] = []
    try:
        found.extend(check.weaknesses(done.stdout))
    except NoReportError as error:
        if not found:
            raise NoReportError(f"{error} ({program} exited with {done.returncode}: {last})") from error
    if done.returncode and not found:
        raise NoReportError(f"{program} exited with {done.returncode} and names no weakness: {last}")
    return found


if __name__ == "__main__":
    sys.exit(main())
