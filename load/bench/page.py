"""Writes the figures that the last runs of `make bench` left in build/bench into the pages of docs/."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from load.bench import analysis as bench_analysis
from load.bench import deployment as bench_deployment
from load.bench import jokers as bench_jokers
from load.bench import play as bench_play
from load.bench import tracing as bench_tracing
from load.bench import validation_report as bench_validation_report
from load.bench.figures import Tables
from load.pages import text_of, write

RESULTS: Final = Path("build") / "bench"
PERFORMANCE: Final = "performance.md"
SOLVER: Final = "solver.md"
OPERATION: Final = "operation.md"
CAPACITY: Final = "capacity.md"

Report = Mapping[str, Any]


class Part(NamedTuple):
    """A benchmark with figures on a page: the page, the conditions of the measurement, and the tables."""

    page: str
    told: Callable[[Report], Sequence[str]]
    tables: Callable[[Report], Tables]


PARTS: Final = {
    "validation": Part(PERFORMANCE, bench_validation_report.told_of, bench_validation_report.tables_of),
    "play": Part(PERFORMANCE, bench_play.told_of, bench_play.tables_of),
    "tracing": Part(OPERATION, bench_tracing.told_of, bench_tracing.tables_of),
    "deployment": Part(CAPACITY, bench_deployment.told_of, bench_deployment.tables_of),
    "analysis": Part(SOLVER, bench_analysis.told_of, bench_analysis.tables_of),
    "jokers": Part(SOLVER, bench_jokers.told_of, bench_jokers.tables_of),
}


def main() -> int:
    """Writes the figures of all benchmarks that have run."""
    parser = argparse.ArgumentParser(description="Write the results of the last benchmarks into the pages of docs/.")
    parser.parse_args()
    made = {part: RESULTS / f"{part}.json" for part in PARTS if (RESULTS / f"{part}.json").exists()}
    if not made:
        sys.exit(f"{RESULTS} has no figures; run make bench")
    for part, results in made.items():
        report = json.loads(results.read_text())
        page, told, tables = PARTS[part]
        write(page, f"make bench PART={part}", text_of(report, told(report), tables(report)))
        print(f"{page} has the figures of {results} now.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
