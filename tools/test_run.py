"""Runs all tests in two parts, the engine's with its coverage, and gives one verdict: `make test`.

Both parts run, whatever the first says. With `CI` set, the tests that failed run once more, alone. If they pass then,
they are listed as FLAKY, and do not fail the run: each is a fault to mend (tests/README.md).
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
BESIDE: Final = ("-n", "3", "--dist", "worksteal")
RERUN_MAX: Final = 5
"""If more tests of a part fail, it is not by chance."""

OK: Final = 0
FAILED: Final = 1
"""pytest's exit status where tests failed, or the coverage fell short."""


def run(parts: Sequence[Sequence[str]], folder: Path, *, reruns: bool) -> int:
    """Runs parts of the tests in a folder; returns the exit status of the worst."""
    flaky: list[str] = []
    worst = OK
    for part in parts:
        status = _pytest(folder, *BESIDE, "--cache-clear", *part)
        failed = _failed(folder)
        if status == FAILED and reruns and 0 < len(failed) <= RERUN_MAX:
            print(f"\nRunning {len(failed)} failed tests once more, alone ...", flush=True)
            status = _pytest(folder, "--last-failed", *part, *(["--cov-append"] if "--cov" in part else []))
            flaky += [test for test in failed if test not in _failed(folder)]
        worst = max(worst, status)
    for test in flaky:
        print(f"FLAKY {test}: it failed, and passed alone; mend what it depends on (timing, order, load)")
    print("all parts passed" if worst == OK else f"not all tests passed (exit status {worst})", flush=True)
    return worst


def _pytest(folder: Path, *options: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *options], cwd=folder, check=False).returncode


def _failed(folder: Path) -> list[str]:
    """Returns the tests that failed in the last run."""
    cache = folder / ".pytest_cache" / "v" / "cache" / "lastfailed"
    return sorted(json.loads(cache.read_bytes())) if cache.exists() else []


def main() -> int:
    """Runs the tests; returns the exit status."""
    argparse.ArgumentParser(prog="make test", description=__doc__).parse_args()
    # Tests start hundreds of servers. Without cached bytecode each would compile all of its modules.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return run(PARTS, ROOT, reruns=bool(os.environ.get("CI")))


if __name__ == "__main__":
    sys.exit(main())
