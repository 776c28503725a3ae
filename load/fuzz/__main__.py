"""Fuzzes the service: `make fuzz ARGS="--seconds 600 --seed 7"`, or `make fuzz ARGS="calls --calls 1000000"`.

guided    Coverage-guided fuzzing of decoders, judging, texts and stored values (load/fuzz/targets.py). A failed input
          is kept in build/fuzz/guided, as `crash-*` or `timeout-*`; `python -m load.fuzz replay FILE` runs it again
          without Atheris.
calls     Mutated calls at all listeners, beside honest calls whose answers are checked (load/fuzz/calls.py).
dearest   The requests that take most CPU for each of their bytes (load/fuzz/dearest.py).
wire      Abuse of HTTP/2 at the main and the validation listener, beside honest calls (load/fuzz/wire.py).

Figures of each part go into build/fuzz/; `make fuzz ARGS=page` writes those of the last runs into
docs/reliability.md.
"""

import argparse
import asyncio
import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from load.bench.figures import are_met, print_report, printer, run_facts
from load.fuzz import calls, dearest, report, wire
from load.pages import text_of, write
from tools.servers import ROOT, end_in_order

RESULTS: Final = Path("build") / "fuzz"
PARTS: Final = ("guided", "calls", "dearest", "wire")
PAGE: Final = "reliability.md"
QUICK_GUIDED_SECONDS: Final = 6.0
QUICK_CALLS_SECONDS: Final = 5.0
QUICK_DEAREST_SECONDS: Final = 5.0
QUICK_ATTACK_SECONDS: Final = 0.4
ATTACK_SECONDS: Final = 5.0
"""The time of each attack of HTTP/2."""
START_SECONDS: Final = 300.0
"""How long Atheris may take to instrument the modules and to run the corpus, beside its time."""


def revision() -> str:
    """Returns the short hash of the commit that is checked out."""
    command = ("git", "rev-parse", "--short=8", "HEAD")
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


REVISION: Final = revision()
"""The revision whose code runs; others may be checked out meanwhile."""


def write_results(name: str, seed: int, found: dict[str, Any]) -> dict[str, Any]:
    """Writes the figures of a part with the revision, the date and the seed; returns them."""
    path = RESULTS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {**run_facts("grpcio", "atheris" if name == "guided" else "protobuf"), "revision": REVISION, "seed": seed}
    text = json.dumps({**whole, **found}, indent=2, default=str)
    path.write_text(text + "\n")
    read: dict[str, Any] = json.loads(text)
    return read


def guided(seed: int, seconds: float) -> dict[str, Any]:
    """Fuzzes with Atheris in a process of its own, which libFuzzer ends; returns what it counted."""
    folder = RESULTS / "guided"
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("crash-*"), *folder.glob("timeout-*"), folder / "counts.json"):
        old.unlink(missing_ok=True)
    command = [sys.executable, "-m", "load.fuzz.guided", str(folder), f"--seconds={seconds:.0f}", f"--seed={seed}"]
    started = time.monotonic()
    with (folder / "log").open("w") as log:
        ended = subprocess.run(command, stdout=log, stderr=log, check=False, timeout=seconds + START_SECONDS)
    lines = (folder / "log").read_text(errors="replace").splitlines()
    counts = folder / "counts.json"
    found = json.loads(counts.read_text()) if counts.exists() else {"counts": {}, "slowest": {}}
    failed = "" if ended.returncode == 0 and found["counts"] else "\n".join(lines[-40:])
    status = [line for line in lines if "cov: " in line][-1:]
    return {**found, "failed": failed, "coverage": status, "seconds": time.monotonic() - started}


def replay(paths: Sequence[str]) -> None:
    """Runs inputs from files; raises what they raise."""
    from load.fuzz import targets  # noqa: PLC0415 - it takes seconds to import

    for path in paths:
        print(path, targets.run(Path(path).read_bytes()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the parts; returns 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "part",
        nargs="?",
        choices=(*PARTS, "replay", "page"),
        help="the part to run (all); page: write the last results into the page",
    )
    parser.add_argument("files", nargs="*", help="inputs to replay")
    parser.add_argument("--seconds", type=float, default=600, help="seconds of guided, calls and dearest (600)")
    parser.add_argument("--calls", type=int, default=1_000_000, help="the most mutated calls (1000000)")
    parser.add_argument("--seed", type=int, default=1, help="the seed of all mutations (1)")
    parser.add_argument("--quick", action="store_true", help="less than a minute of all, for CI")
    chosen = parser.parse_args(arguments)
    if chosen.part == "replay":
        replay(chosen.files)
        return 0
    results: dict[str, dict[str, Any]] = {}
    for name in [chosen.part] if chosen.part in PARTS else PARTS:
        if chosen.part == "page":
            if (RESULTS / f"{name}.json").exists():
                results[name] = json.loads((RESULTS / f"{name}.json").read_text())
        elif name == "guided":
            found = guided(chosen.seed, QUICK_GUIDED_SECONDS if chosen.quick else chosen.seconds)
            results[name] = write_results(name, chosen.seed, found)
        elif name == "dearest":
            costs = asyncio.run(dearest.find(chosen.seed, QUICK_DEAREST_SECONDS if chosen.quick else chosen.seconds))
            results[name] = write_results(name, chosen.seed, dataclasses.asdict(costs))
        elif name == "wire":
            found = dataclasses.asdict(
                asyncio.run(wire.abuse(QUICK_ATTACK_SECONDS if chosen.quick else ATTACK_SECONDS))
            )
            results[name] = write_results(name, chosen.seed, found)
        else:
            seconds = QUICK_CALLS_SECONDS if chosen.quick else chosen.seconds
            findings = asyncio.run(calls.attack(chosen.seed, chosen.calls, seconds))
            results[name] = write_results(name, chosen.seed, findings.as_json())
    full: dict[str, Any] = {"requirements": report.requirements_of(results)}
    told = report.told_of(results)
    print_report(full, report.tables_of(results), told, printer(150))
    if chosen.part == "page":
        write(PAGE, "make fuzz", text_of(full, told, report.tables_of(results)))
    return 0 if are_met(full) else 1


if __name__ == "__main__":
    end_in_order()
    sys.exit(main())
