"""Generated parts of the pages in docs/, which stand between marks with the name of the command that makes them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from load.bench.figures import Tables, verdict
from tools.servers import ROOT

DOCS: Final = ROOT / "docs"
VERDICTS: Final = {"met": "met", "open": "a goal, not met yet", "missed": "**missed**"}


def page_with(page: str, command: str, text: str) -> str:
    """Returns a page with the output of a command between its marks. Raises ValueError."""
    marks = [f"<!-- made by {command}: {end} -->" for end in ("begin", "end")]
    before, begin, rest = page.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not (begin and end):
        raise ValueError(f"the page has no marks for the output of {command} makes: {' and '.join(marks)}")
    return f"{before}{begin}\n{text}\n{end}{after}"


def write(name: str, command: str, text: str, docs: Path | None = None) -> None:
    """Writes the output of a command into a page of a folder, by default docs. Raises ValueError."""
    page = (docs or DOCS) / name
    page.write_text(page_with(page.read_text(), command, text))


def text_of(report: Mapping[str, Any], told: Sequence[str], tables: Tables) -> str:
    """Returns a report as Markdown."""
    required = [[one["what"], one["measured"], VERDICTS[verdict(one)]] for one in report["requirements"]]
    parts = [
        ";\n".join(told) + ".",
        *(f"{title}.\n\n{_table(':', *rows)}" for title, rows in tables.items()),
        _table("", ["required", "measured", ""], *required),
    ]
    return "\n\n".join(parts)


def _table(right: str, head: Sequence[str], *rows: Sequence[str]) -> str:
    """Returns a table; `right` is ":" if all columns but the first are numbers."""
    marks = ["---", *[f"---{right}"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, marks, *rows))
