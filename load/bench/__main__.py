"""Runs benchmarks: `python -m load.bench` runs all parts, `python -m load.bench analysis --quick` one of them.

Each part prints tables and writes build/bench/<part>.json.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from load.bench import analysis as bench_analysis
from load.bench import deployment as bench_deployment
from load.bench import hostile as bench_hostile
from load.bench import jokers as bench_jokers
from load.bench import play as bench_play
from load.bench import tracing as bench_tracing
from load.bench import validation as bench_validation
from load.bench.figures import are_met, print_requirements, printer, requirement
from load.parts import every_part_ends, run_parts
from tools.servers import end_in_order

RESULTS: Final = Path("build") / "bench"

Part = Callable[[Sequence[str], Path], int]
"""Takes the remaining arguments and the file for its figures; returns 1 if a requirement is missed."""

PARTS: Final[dict[str, Part]] = {
    "analysis": bench_analysis.run,
    "deployment": bench_deployment.run,
    "hostile": bench_hostile.run,
    "jokers": bench_jokers.run,
    "play": bench_play.run,
    "tracing": bench_tracing.run,
    "validation": bench_validation.run,
}


def main() -> int:
    """Runs the named part, or all, each of which prints and writes its own results; returns 1 if one fails."""
    parser = argparse.ArgumentParser(description="Run benchmarks. Further arguments go to the part.")
    parser.add_argument("part", nargs="?", choices=sorted(PARTS), help="the part to run (all)")
    chosen, arguments = parser.parse_known_args()
    end_in_order()
    RESULTS.mkdir(parents=True, exist_ok=True)
    names = [chosen.part] if chosen.part else sorted(PARTS)
    codes, errors = run_parts(
        lambda name: PARTS[name](arguments, RESULTS / f"{name}.json"), {name: name for name in names}
    )
    missed = [
        requirement(f"the requirements of {name}", met=not code, measured="above") for name, code in codes.items()
    ]
    if errors:
        missed.append(every_part_ends(errors))
    print_requirements({"requirements": missed}, printer())
    return 0 if are_met({"requirements": missed}) else 1


if __name__ == "__main__":
    sys.exit(main())
