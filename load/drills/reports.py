"""The end of a drill: its report is printed and written, that of a complete run also into a page."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from load.bench.figures import Tables, are_met, print_report, printer, run_facts, told_of_run
from load.pages import text_of, write
from load.parts import every_part_ends
from tools.redis_servers import redis_version

RESULTS: Final = Path("build") / "drills"
PAGES: Final = {"backup": "backup.md"}
"""The pages with the tables of drills; those of other drills are in OPERATION."""
OPERATION: Final = "operation.md"


def command_of(name: str) -> str:
    """Returns the command of a complete run, as the marks in the page name it."""
    return f"make drill ARGS={name}"


def page_of(name: str) -> str:
    """Returns the page that has the tables of a drill."""
    return PAGES.get(name, OPERATION)


def finish(  # noqa: PLR0913 - the parts of a report
    name: str,
    report: dict[str, Any],
    tables: Tables,
    notes: Sequence[str] = (),
    *,
    errors: Mapping[str, str],
    is_complete: bool,
) -> int:
    """Prints a report, writes it and, of a complete run, its tables into the page.

    Args:
        name: The name of the drill.
        report: Its figures, with "seconds" and "requirements".
        tables: The tables of the report.
        notes: Lines that are only printed.
        errors: The errors of the parts that failed, by name.
        is_complete: Whether the run was to have all parts of the drill at their full size.

    Returns:
        The exit code: 1 if a requirement is missed.
    """
    report = {**run_facts("grpcio"), "store": redis_version(), **report}
    if errors:
        report["requirements"] = [*report["requirements"], every_part_ends(errors)]
    results = RESULTS / f"{name}.json"
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(json.dumps(report, indent=2) + "\n")
    told = (*told_of_run(report), report["store"])
    print_report(report, tables, [*told, *notes, f"All figures: {results}"], printer(160))
    if is_complete and not errors:
        write(page_of(name), command_of(name), text_of(report, told, tables))
        print(f"docs/{page_of(name)} has the figures of {results} now.")
    return 0 if are_met(report) else 1
