"""Fuzzes the service: `make fuzz ARGS="--seconds 600 --seed 7"`, or `make fuzz ARGS="calls --calls 1000000"`.

guided    Coverage-guided fuzzing of decoders, judging, texts and stored values (load/fuzz/targets.py). A failed input
          is kept in build/fuzz/guided, as `crash-*` or `timeout-*`; `python -m load.fuzz replay FILE` runs it again
          without Atheris.
calls     Mutated calls at all listeners, beside honest calls whose answers are checked (load/fuzz/calls.py).
dearest   The requests that take most CPU for each of their bytes (load/fuzz/dearest.py).
wire      Abuse of HTTP/2 at the main and the validation listener, beside honest calls (load/fuzz/wire.py).
edge      Mutated calls as gRPC, gRPC-Web and JSON, and abuse of HTTP/2, through the web edge (load/fuzz/edge.py). Needs
          `make envoy`; `--quick` leaves it out, unless it is named.

`make fuzz ARGS=keep` adds inputs of the last guided run to load/fuzz/corpus.txt: those that reach more lines.

Figures of each part go into build/fuzz/; `make fuzz ARGS=page` writes those of the last runs into
docs/reliability.md, where those of parts without a run stay.
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
from load.fuzz import calls, dearest, edge, report, wire
from load.pages import text_of, write
from tools.servers import ROOT, end_in_order
from tools.web import WebError, check_envoy

RESULTS: Final = Path("build") / "fuzz"
PARTS: Final = ("guided", "calls", "dearest", "wire", "edge")
PAGE: Final = "reliability.md"
QUICK_SECONDS: Final = {"guided": 6.0, "calls": 5.0, "dearest": 5.0, "wire": 0.0, "edge": 4.0}
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


def keep() -> int:
    """Adds what the last guided run found to the stored corpus; returns the exit code."""
    from load.fuzz import targets  # noqa: PLC0415 - it takes seconds to import

    folder = RESULTS / "guided"
    if not any((folder / "corpus").glob("*")):
        print(f"no new inputs in {folder / 'corpus'}: run `make fuzz ARGS=guided` first", file=sys.stderr)
        return 1
    with (folder / "merge.log").open("w") as log:
        command = (sys.executable, "-m", "load.fuzz.guided", str(folder), "--merge")
        if subprocess.run(command, stdout=log, stderr=log, check=False).returncode:
            print(f"merging failed; see {log.name}", file=sys.stderr)
            return 1
    added = targets.add_to_corpus(merged_inputs(folder / "seeds"))
    print(f"{added} inputs are new in {targets.CORPUS.relative_to(ROOT)}; test and commit it.")
    return 0


def merged_inputs(folder: Path) -> list[bytes]:
    """Returns the inputs that libFuzzer has added to a folder of seeds."""
    return [path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.startswith("seed-")]


def replay(paths: Sequence[str]) -> None:
    """Runs inputs from files; raises what they raise."""
    from load.fuzz import targets  # noqa: PLC0415 - it takes seconds to import

    for path in paths:
        print(path, targets.run(Path(path).read_bytes()))


def found_by(name: str, chosen: argparse.Namespace) -> dict[str, Any]:
    """Runs a part with the chosen seed and size; returns what it found."""
    seed, calls_most = chosen.seed, chosen.calls
    seconds = QUICK_SECONDS[name] if chosen.quick else chosen.seconds
    attack_seconds = QUICK_ATTACK_SECONDS if chosen.quick else ATTACK_SECONDS
    match name:
        case "guided":
            return guided(seed, seconds)
        case "calls":
            return asyncio.run(calls.attack(seed, calls_most, seconds)).as_json()
        case "dearest":
            return dataclasses.asdict(asyncio.run(dearest.find(seed, seconds)))
        case "wire":
            return dataclasses.asdict(asyncio.run(wire.abuse(attack_seconds)))
        case _:
            return asyncio.run(edge.attack(seed, calls_most, seconds, attack_seconds)).as_json()


def write_page(results: report.Results, docs: Path | None = None) -> None:
    """Writes the figures of some parts into the page; those of others stay as they are."""
    for name, found in results.items():
        alone = {name: found}
        full = {"requirements": report.requirements_of(alone)}
        write(PAGE, f"make fuzz ARGS={name}", text_of(full, report.told_of(alone), report.tables_of(alone)), docs)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the parts; returns 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "part",
        nargs="?",
        choices=(*PARTS, "replay", "keep", "page"),
        help="the part to run (all); keep: add what guided has found to the corpus; page: write the last results into "
        "the page",
    )
    parser.add_argument("files", nargs="*", help="inputs to replay")
    parser.add_argument(
        "--seconds", type=float, default=600, help="seconds of guided, calls, dearest and the calls of edge (600)"
    )
    parser.add_argument("--calls", type=int, default=1_000_000, help="the most mutated calls (1000000)")
    parser.add_argument("--seed", type=int, default=1, help="the seed of all mutations (1)")
    parser.add_argument("--quick", action="store_true", help="less than a minute of all, for CI")
    chosen = parser.parse_args(arguments)
    if chosen.part == "replay":
        replay(chosen.files)
        return 0
    if chosen.part == "keep":
        return keep()
    if chosen.part == "page":
        kept = {name: RESULTS / f"{name}.json" for name in PARTS}
        results = {name: json.loads(path.read_text()) for name, path in kept.items() if path.exists()}
    else:
        parts = [chosen.part] if chosen.part else [name for name in PARTS if not (chosen.quick and name == "edge")]
        if "edge" in parts:
            try:
                check_envoy()
            except WebError as error:
                parser.error(str(error))
        results = {name: write_results(name, chosen.seed, found_by(name, chosen)) for name in parts}
    full: dict[str, Any] = {"requirements": report.requirements_of(results)}
    told = report.told_of(results)
    print_report(full, report.tables_of(results), told, printer(150))
    if chosen.part == "page":
        write_page(results)
    return 0 if are_met(full) else 1


if __name__ == "__main__":
    end_in_order()
    sys.exit(main())
