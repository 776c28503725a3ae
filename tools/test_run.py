"""Runs all tests in two parts, the engine's with its coverage, and gives one verdict: `make test`.

`--flaky N` runs some tests N times beside a busy core instead, and lists those that failed: `make flaky`.

The second part runs even if the first fails. With `CI` set, up to five failed tests of a part run once more, alone. If
they pass then, they are listed as FLAKY and do not fail the run: each is a fault to mend (tests/README.md).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.servers import ROOT

PARTS: Final = (
    ("tests/engine", "-m", "not unmeasured and not soak", "--cov", "--cov-report=term"),
    ("-m", "unmeasured and not soak"),
)
ALONE: Final = ("-n", "0")
RERUN_MAX: Final = 5
"""If more tests of a part fail, it is not by chance."""

OK: Final = 0
FAILED: Final = 1
"""pytest's exit status where tests failed, or the coverage fell short."""


def run(parts: Sequence[Sequence[str]], pytest: Sequence[str], folder: Path, *, reruns: bool) -> int:
    """Runs parts of the tests in a folder with a command; returns the exit status of the worst part."""
    flaky: list[str] = []
    skips = Counter[str]()

    def status_of(*options: str) -> int:
        return subprocess.run([*pytest, *options], cwd=folder, check=False).returncode

    worst = OK
    for part in parts:
        with tempfile.TemporaryDirectory() as reports:
            report = Path(reports) / "report.xml"
            status = status_of("--cache-clear", "--junitxml", str(report), *part)
            skips += _skips(report)
        failed = _failed(folder)
        if status == FAILED and reruns and 0 < len(failed) <= RERUN_MAX:
            print(f"\nRunning {len(failed)} failed tests once more, alone ...", flush=True)
            status = status_of(*ALONE, "--last-failed", *part, *(["--cov-append"] if "--cov" in part else []))
            flaky += [test for test in failed if test not in _failed(folder)]
        worst = max(worst, status)
    for reason, count in skips.items():
        print(f"SKIPPED {count} tests: {reason}")
    for test in flaky:
        print(f"FLAKY {test}: it failed, and passed alone; mend what it depends on (timing, order, load)")
    print("all parts passed" if worst == OK else f"not all tests passed (exit status {worst})", flush=True)
    return worst


def flaky(pytest: Sequence[str], folder: Path, runs: int) -> int:
    """Runs tests several times beside a busy core, lists those that failed, and returns the worst exit status."""
    failures, worst = Counter[str](), OK
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        for number in range(1, runs + 1):
            print(f"Run {number} of {runs} ...", flush=True)
            worst = max(worst, subprocess.run([*pytest, "--cache-clear"], cwd=folder, check=False).returncode)
            failures.update(_failed(folder))
    finally:
        busy.kill()
        busy.wait()
    for test, count in failures.most_common():
        print(f"FAILED {count} of {runs} runs: {test}")
    print(f"{runs} runs; {len(failures)} tests failed in some", flush=True)
    return worst


def _skips(report: Path) -> Counter[str]:
    """Returns the number of skipped tests by reason, of a report by pytest. A run that broke off has none."""
    if not report.exists():
        return Counter()
    skipped = ET.parse(report).iter("skipped")  # noqa: S314 - pytest wrote it
    return Counter(skip.get("message", "") for skip in skipped)


def _failed(folder: Path) -> list[str]:
    """Returns the tests that failed in the last run."""
    cache = folder / ".pytest_cache" / "v" / "cache" / "lastfailed"
    return sorted(json.loads(cache.read_bytes())) if cache.exists() else []


def main() -> int:
    """Runs the tests; returns the exit status."""
    parser = argparse.ArgumentParser(prog="test_run", description=__doc__)
    parser.add_argument("--flaky", type=int, metavar="N", help="run the tests N times beside a busy core")
    parser.add_argument("pytest", nargs=argparse.REMAINDER, help="the command that runs tests side by side")
    chosen = parser.parse_args()
    if chosen.flaky:
        return flaky(chosen.pytest, ROOT, chosen.flaky)
    return run(PARTS, chosen.pytest, ROOT, reruns=bool(os.environ.get("CI")))


if __name__ == "__main__":
    sys.exit(main())
