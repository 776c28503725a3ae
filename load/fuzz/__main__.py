"""Fuzzes the service: `python -m load.fuzz calls --seconds 600 --seed 7`.

Figures of each part go into build/fuzz/.
"""

import argparse
import asyncio
import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from load.bench.figures import run_facts
from load.fuzz import calls
from tools.servers import ROOT

RESULTS: Final = Path("build") / "fuzz"


def revision() -> str:
    """Returns the short hash of the commit that is checked out."""
    command = ("git", "rev-parse", "--short=8", "HEAD")
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def write_results(name: str, seed: int, found: dict[str, Any]) -> Path:
    """Writes the figures of a part with the revision, the date and the seed; returns the file."""
    path = RESULTS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    facts = {**run_facts("grpcio"), "revision": revision(), "seed": seed}
    path.write_text(json.dumps({**facts, **found}, indent=2, default=str) + "\n")
    return path


def main() -> int:
    """Runs a part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("calls",))
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=3_600)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    findings = asyncio.run(calls.attack(chosen.seed, chosen.calls, chosen.seconds))
    print(write_results("calls", chosen.seed, dataclasses.asdict(findings)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
