"""docs/performance.md: the parts of it that commands make, which are between marks with the command's name.

`python -m load.page` writes the figures that the last benchmarks left in build/bench, as `make bench` made them.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from load import bench_engine, bench_play, bench_validation_report
from load.bench_figures import Tables

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
RESULTS: Final = Path("build") / "bench"

Report = Mapping[str, Any]
PARTS: Final[dict[str, tuple[Callable[[Report], Sequence[str]], Callable[[Report], Tables]]]] = {
    "validation": (bench_validation_report.told_of, bench_validation_report.tables_of),
    "engine": (bench_engine.told_of, bench_engine.tables_of),
    "play": (bench_play.told_of, bench_play.tables_of),
}
"""The benchmarks whose figures are on the page: what was measured with, and the tables."""


def page_with(page: str, command: str, text: str) -> str:
    """A page with what a command makes in its place. Raises ValueError."""
    marks = [f"<!-- made by {command}: {end} -->" for end in ("begin", "end")]
    before, begin, rest = page.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not (begin and end):
        raise ValueError(f"the page has no place for what {command} makes: {' and '.join(marks)}")
    return f"{before}{begin}\n{text}\n{end}{after}"


def write(command: str, text: str) -> None:
    """Writes what a command makes into the page. Raises ValueError."""
    PAGE.write_text(page_with(PAGE.read_text(), command, text))


def text_of(report: Report, told: Sequence[str], tables: Tables) -> str:
    """A report as the page shows it."""
    required = [[one["what"], one["measured"], "met" if one["met"] else "**missed**"] for one in report["requirements"]]
    parts = [
        ";\n".join(told) + ".",
        *(f"{title}.\n\n{_table(':', *rows)}" for title, rows in tables.items()),
        _table("", ["required", "measured", ""], *required),
    ]
    return "\n\n".join(parts)


def _table(right: str, head: Sequence[str], *rows: Sequence[str]) -> str:
    """A table; `right` is ":" if all but its names are figures."""
    marks = ["---", *[f"---{right}"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, marks, *rows))


def main() -> int:
    """Writes the figures of all benchmarks that were made."""
    parser = argparse.ArgumentParser(description="Write the figures of the last benchmarks into docs/performance.md.")
    parser.parse_args()
    made = {part: RESULTS / f"{part}.json" for part in PARTS if (RESULTS / f"{part}.json").exists()}
    if not made:
        sys.exit(f"{RESULTS} has no figures: make them with make bench")
    for part, results in made.items():
        report = json.loads(results.read_text())
        told, tables = PARTS[part]
        write(f"make bench PART={part}", text_of(report, told(report), tables(report)))
        print(f"{PAGE.name} has the figures of {results} now.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
