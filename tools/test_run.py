"""Runs all tests in two parts, the engine's with its coverage, and gives one verdict: `make test`.

The second part runs even if the first fails. With `CI` set, up to five failed tests of a part run once more, alone. If
they pass then, they are listed as FLAKY and do not fail the run: each is a fault to mend (tests/README.md).
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.servers import ROOT

PARTS: Final = (
    ("-m", "not unmeasured", "--cov", "--cov-report=term"),
    ("-m", "unmeasured"),
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

    def status_of(*options: str) -> int:
        return subprocess.run([*pytest, *options], cwd=folder, check=False).returncode

    worst = OK
    for part in parts:
        status = status_of("--cache-clear", *part)
        failed = _failed(folder)
        if status == FAILED and reruns and 0 < len(failed) <= RERUN_MAX:
            print(f"\nRunning {len(failed)} failed tests once more, alone ...", flush=True)
            status = status_of(*ALONE, "--last-failed", *part, *(["--cov-append"] if "--cov" in part else []))
            flaky += [test for test in failed if test not in _failed(folder)]
        worst = max(worst, status)
    for test in flaky:
        print(f"FLAKY {test}: it failed, and passed alone; mend what it depends on (timing, order, load)")
    print("all parts passed" if worst == OK else f"not all tests passed (exit status {worst})", flush=True)
    return worst


def _failed(folder: Path) -> list[str]:
    """Returns the tests that failed in the last run."""
    cache = folder / ".pytest_cache" / "v" / "cache" / "lastfailed"
    return sorted(json.loads(cache.read_bytes())) if cache.exists() else []


def main() -> int:
    """Runs the tests; returns the exit status."""
    parser = argparse.ArgumentParser(prog="test_run", description=__doc__)
    parser.add_argument("pytest", nargs=argparse.REMAINDER, help="the command that runs tests side by side")
    return run(PARTS, parser.parse_args().pytest, ROOT, reruns=bool(os.environ.get("CI")))


if __name__ == "__main__":
    sys.exit(main())
