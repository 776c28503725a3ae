"""Runs benchmarks: `python -m load.bench` runs all parts, `python -m load.bench analysis --quick` one of them.

Each part prints tables and writes build/bench/<part>.json.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from rich.console import Console

from load.bench import analysis, deployment, hostile, jokers, play, tracing, validation, validation_report
from load.bench.figures import Size, Tables, are_met, print_report, print_requirements, printer, requirement
from load.parts import every_part_ends, run_parts
from tools.servers import end_in_order

RESULTS: Final = Path("build") / "bench"
WIDTH: Final = 170
"""The width of tables that are not printed to a terminal."""

Report = Mapping[str, Any]


class Part(NamedTuple):
    """A benchmark: its measurement, the conditions and tables of its report, and the page that has its figures."""

    measure: Callable[[Size, Console], Report]
    told: Callable[[Report], Sequence[str]]
    tables: Callable[[Report], Tables]
    page: str = ""


PARTS: Final = {
    "analysis": Part(analysis.measure, analysis.told_of, analysis.tables_of, "solver.md"),
    "deployment": Part(deployment.measure, deployment.told_of, deployment.tables_of, "capacity.md"),
    "hostile": Part(hostile.measure, hostile.told_of, hostile.tables_of),
    "jokers": Part(jokers.measure, jokers.told_of, jokers.tables_of, "solver.md"),
    "play": Part(play.measure, play.told_of, play.tables_of, "performance.md"),
    "tracing": Part(tracing.measure, tracing.told_of, tracing.tables_of, "operation.md"),
    "validation": Part(validation.measure, validation_report.told_of, validation_report.tables_of, "performance.md"),
}


def run(name: str, size: Size) -> bool:
    """Measures a part, prints and writes its report; returns whether its requirements are met."""
    part, console, results = PARTS[name], printer(WIDTH), RESULTS / f"{name}.json"
    report = part.measure(size, console)
    results.write_text(json.dumps(report, indent=2) + "\n")
    print_report(report, part.tables(report), part.told(report), console)
    console.print(f"All figures: {results}", highlight=False)
    return are_met(report)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the named part, or all, each of which prints and writes its own results; returns 1 if one fails."""
    parser = argparse.ArgumentParser(description="Run benchmarks.")
    parser.add_argument("part", nargs="?", choices=sorted(PARTS), help="the part to run (all)")
    amount = parser.add_mutually_exclusive_group()
    for size, text in ((Size.QUICK, "measure little, to try it"), (Size.FULL, "measure longer")):
        amount.add_argument(f"--{size.value}", dest="size", action="store_const", const=size, help=text)
    chosen = parser.parse_args(arguments)
    RESULTS.mkdir(parents=True, exist_ok=True)
    names = [chosen.part] if chosen.part else sorted(PARTS)
    met, errors = run_parts(lambda name: run(name, chosen.size or Size.USUAL), {name: name for name in names})
    missed = [requirement(f"the requirements of {name}", met=good, measured="above") for name, good in met.items()]
    if errors:
        missed.append(every_part_ends(errors))
    print_requirements({"requirements": missed}, printer())
    return 0 if are_met({"requirements": missed}) else 1


if __name__ == "__main__":
    end_in_order()
    sys.exit(main())
