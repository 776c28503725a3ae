"""Runs all tests in two parts, the engine's with its coverage, and gives one verdict: `make test`.

The parts run side by side. The tests of the service wait for processes half of their time, and those of the engine wait
for nothing: they yield to the others, and their output follows.

`--flaky N` runs some tests N times beside a busy core instead, and lists those that failed: `make flaky`.

Each part runs to its end, even if another one fails. With `CI` set, up to five failed tests of a part run once more,
alone. If they pass then, they are listed as FLAKY and do not fail the run: each is a fault to mend (tests/README.md).
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
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final

from tools.servers import ROOT

PARTS: Final = (
    ("-n", "4", "-m", "unmeasured and not soak"),
    ("tests/engine", "-n", "2", "-m", "not unmeasured and not soak", "--cov", "--cov-report=term"),
)
"""The options of each part. The output of the first one is shown at once."""
YIELDING: Final = ("nice", "-n", "5")
"""Before the command of all parts but the first."""
ALONE: Final = ("-n", "0")
RERUN_MAX: Final = 5
"""If more tests of a part fail, it is not by chance."""

REPORT: Final = "report.xml"
OUTPUT: Final = "output"

OK: Final = 0
FAILED: Final = 1
"""pytest's exit status where tests failed, or the coverage fell short."""


def run(parts: Sequence[Sequence[str]], pytest: Sequence[str], folder: Path, *, reruns: bool) -> int:
    """Runs parts of the tests in a folder with a command; returns the exit status of the worst part."""
    flaky: list[str] = []
    skips = Counter[str]()
    worst = OK
    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(len(parts)) as threads:
        places = [Path(made) / f"{number}" for number in range(len(parts))]
        running = [threads.submit(_run_part, *each, pytest, folder) for each in zip(parts, places, strict=True)]
        for part, place, run_of_part in zip(parts, places, running, strict=True):
            status = run_of_part.result()
            if (output := place / OUTPUT).exists():
                print(output.read_text(encoding="utf-8"), flush=True)
            skips += _skips(place / REPORT)
            failed = _failed(place)
            if status == FAILED and reruns and 0 < len(failed) <= RERUN_MAX:
                wait(running)
                print(f"\nRunning {len(failed)} failed tests once more, alone ...", flush=True)
                again = [*_in(place), *part, *ALONE, "--last-failed", *(["--cov-append"] if "--cov" in part else [])]
                status = subprocess.run([*pytest, *again], cwd=folder, check=False).returncode
                flaky += [test for test in failed if test not in _failed(place)]
            worst = max(worst, status)
    for reason, count in skips.items():
        print(f"SKIPPED {count} tests: {reason}")
    for test in flaky:
        print(f"FLAKY {test}: it failed, and passed alone; mend what it depends on (timing, order, load)")
    print("all parts passed" if worst == OK else f"not all tests passed (exit status {worst})", flush=True)
    return worst


def _run_part(part: Sequence[str], place: Path, pytest: Sequence[str], folder: Path) -> int:
    """Runs a part; returns its exit status. All but the first one yield to it, and write their output to a file."""
    place.mkdir()
    command = [*pytest, *_in(place), "--junitxml", str(place / REPORT), *part]
    if place.name == "0":
        return subprocess.run(command, cwd=folder, check=False).returncode
    with (place / OUTPUT).open("wb") as output:
        return subprocess.run(
            [*YIELDING, *command], cwd=folder, stdout=output, stderr=subprocess.STDOUT, check=False
        ).returncode


def _in(cache: Path) -> tuple[str, str]:
    """Returns the options by which pytest remembers failed tests in a folder."""
    return "-o", f"cache_dir={cache}"


def flaky(pytest: Sequence[str], folder: Path, runs: int) -> int:
    """Runs tests several times beside a busy core, lists those that failed, and returns the worst exit status."""
    failures, worst = Counter[str](), OK
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        for number in range(1, runs + 1):
            print(f"Run {number} of {runs} ...", flush=True)
            with tempfile.TemporaryDirectory() as cache:
                command = [*pytest, *_in(Path(cache))]
                worst = max(worst, subprocess.run(command, cwd=folder, check=False).returncode)
                failures.update(_failed(Path(cache)))
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


def _failed(cache: Path) -> list[str]:
    """Returns the tests that failed in the last run with a cache."""
    kept = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(kept.read_bytes())) if kept.exists() else []


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
