"""Shared parts of the benchmarks: quantiles, tables, and requirements."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, TypeVar

from rich.console import Console
from rich.table import Table

from tools.servers import ROOT

T = TypeVar("T")


class Size(Enum):
    """How much a benchmark measures."""

    QUICK = "quick"
    USUAL = "usual"
    FULL = "full"

    def choose(self, quick: T, usual: T, full: T) -> T:
        """Returns the value for this size."""
        return {Size.QUICK: quick, Size.USUAL: usual, Size.FULL: full}[self]


Tables = Mapping[str, Sequence[Sequence[str]]]
"""Tables by title: a list of rows, of which the first is the header."""

QUANTILES: Final = {"median": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}

MARKS: Final = {"met": ("met   ", "green"), "open": ("open  ", "yellow"), "missed": ("MISSED", "red")}
"""How the verdict on a requirement is printed."""

PIPED_WIDTH: Final = 120
"""The width of tables that are not printed to a terminal."""


def printer(piped_width: int = PIPED_WIDTH) -> Console:
    """Returns the console that a benchmark prints to."""
    return Console(width=None if sys.stdout.isatty() else piped_width)


def cpu_model() -> str:
    """Returns the model name of the processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if sys.platform == "linux" else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())


def run_facts(*packages: str) -> dict[str, Any]:
    """Returns the date, the revision, the machine and the versions of a run, as entries of its report."""
    git = (shutil.which("git") or "git", "rev-parse", "--short", "HEAD")
    revision = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True)
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "revision": revision.stdout.strip(),
        "machine": cpu_model(),
        "processors": os.cpu_count(),
        "versions": {"python": sys.version.split()[0], **{name: version(name) for name in packages}},
    }


def duration(seconds: float) -> str:
    """Returns a duration as text."""
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def told_of_run(report: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns sentences on the run of a report with `run_facts` and its duration in seconds."""
    versions = ", ".join(f"{name} {value}" for name, value in report["versions"].items())
    return (
        f"run of {report['date']}, revision {report['revision']}, {duration(report['seconds'])}",
        f"{report['machine']}, {report['processors']} processors",
        versions,
    )


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """Returns quantiles of at least one value."""
    in_order = sorted(values)
    last = len(in_order) - 1
    return {name: in_order[round(last * share)] for name, share in QUANTILES.items()}


def requirement(what: str, *, met: bool, measured: str) -> dict[str, Any]:
    """Returns a requirement as an entry of a report."""
    return {"what": what, "met": met, "measured": measured}


def goal(what: str, *, met: bool, measured: str) -> dict[str, Any]:
    """Returns a requirement that is not met yet: it is reported, and fails no run."""
    return {**requirement(what, met=met, measured=measured), "is_goal": True}


def verdict(one: Mapping[str, Any]) -> str:
    """Returns whether a requirement is met or missed; a goal that is not met is still open."""
    return "met" if one["met"] else "open" if one.get("is_goal") else "missed"


def are_met(report: Mapping[str, Any]) -> bool:
    """Whether no requirement of a report is missed."""
    return all(verdict(one) != "missed" for one in report["requirements"])


def print_requirements(report: Mapping[str, Any], console: Console) -> None:
    """Prints which requirements are met."""
    for one in report["requirements"]:
        mark, style = MARKS[verdict(one)]
        console.print(f"{mark} {one['what']}: {one['measured']}", style=style, highlight=False)


def print_report(report: Mapping[str, Any], tables: Tables, told: Sequence[str], console: Console) -> None:
    """Prints a report: its tables, the conditions of the measurement, and which requirements are met."""
    print_tables(tables, console)
    console.print(*told, sep="\n", highlight=False)
    print_requirements(report, console)


def print_tables(tables: Tables, console: Console) -> None:
    """Prints tables whose first columns are names."""
    for title, (head, *rows) in tables.items():
        table = Table(title=title)
        for column, name in enumerate(head):
            table.add_column(name, justify="right" if column else "left", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        console.print(table)
