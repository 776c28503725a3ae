"""Counts the files that a person edits for one option, RPC, event, error reason, setting or variant.

Each known name stands for such a change: the files that name it are those that were edited for it. Files that
`.gitattributes` marks as generated are left out, and the change log. Pages, examples and translations count apart.
`python -m tools.fan_out` measures this checkout; with `da98a1e` that revision beside it. `--files run_wrap` lists the
files of one name.
"""

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import which

from tools.columns import columns

ROOT = Path(__file__).resolve().parents[1]
GIT = which("git") or "git"
EDITED = (":(exclude,attr:linguist-generated)", ":(exclude)CHANGELOG.md", ":(exclude)tools/fan_out.py")
TESTS = re.compile(r"^(tests/|clients/conformance/)|(^|/)(tests?)/|_test\.|\.test\.|/src/test/")
PAGES = re.compile(r"\.md$|^service/messages/|^web/src/i18n/(?!en)|^clients/.*/examples/")
PARTS = ("contract", "code", "tests")
ADMIN = re.compile(r"^proto/rummikub/admin/|^service/(admin_program|operator)/|/(rpcs/admin|test_admin|test_keys)\.py$")
"""AdminService, which has RPCs of the same names."""


@dataclass(frozen=True)
class Known:
    """A name that stands for a change.

    Attributes:
        name: As the contract or the settings spell it.
        kind: What was added under this name.
        pattern: An extended regular expression that finds it in every spelling.
        most: The goal: the most files, apart from pages, that a change of this kind may take; None if it has none.
        others: Files that have something else of the same name.
    """

    name: str
    kind: str
    pattern: str
    most: int | None
    others: re.Pattern[str] = re.compile("(?!)")


def option(name: str, most: int) -> Known:
    """Returns an option of the ruleset: its key, its enum, and the values of the enum."""
    enum = "".join(map(str.capitalize, name.split("_")))
    return Known(name, "option", rf"\b{name}\b|{enum}|{lower_first(enum)}|\b{name.upper()}_[A-Z]", most)


def declared(name: str, kind: str, most: int) -> Known:
    """Returns an RPC or an event: a name of the contract in the spellings of all languages."""
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    return Known(name, kind, f"{name}|{lower_first(name)}|{snake}", most)


def lower_first(name: str) -> str:
    """Returns a name with its first letter in lower case."""
    return name[:1].lower() + name[1:]


KNOWN = (
    option("run_wrap", 16),
    option("racks_shown", 12),
    replace(declared("KickPlayer", "RPC", 12), others=ADMIN),
    declared("CreateRematch", "RPC", 12),
    declared("LastChanceStarted", "event", 6),
    Known("CLAIM_OWN_PLAY", "error reason", r"\bCLAIM_OWN_PLAY\b", None),
    Known("lame_duck_seconds", "setting", r"\b(RUMMIKUB_LAME_DUCK_SECONDS|lame_duck_seconds)\b", 8),
    Known("River", "variant", "[Rr]iver|RIVER", None),
)


def files_of(known: Known, revision: str | None) -> list[str]:
    """Returns the files edited by hand that name something, in a revision or in this checkout."""
    search = [GIT, "-C", str(ROOT), "grep", "-I", "-l", "-E", known.pattern, *([revision] if revision else []), "--"]
    found = subprocess.run([*search, *EDITED], check=False, capture_output=True, text=True)
    if found.stderr:
        raise SystemExit(found.stderr)
    files = (line.removeprefix(f"{revision}:") for line in found.stdout.splitlines())
    return [file for file in files if not known.others.search(file)]


def part_of(path: str) -> str:
    """Returns whether a file is part of the contract, the code, the tests or the pages."""
    if PAGES.search(path):
        return "pages"
    if TESTS.search(path):
        return "tests"
    return "contract" if path.startswith("proto/") else "code"


def counts(known: Known, revision: str | None) -> str:
    """Returns the number of files, and how many of them are in each part."""
    files = files_of(known, revision)
    parts = Counter(map(part_of, files))
    edited = [parts[part] for part in PARTS]
    return f"{sum(edited)} ({' + '.join(map(str, edited))}), {parts['pages']}"


def report(revisions: Sequence[str | None]) -> str:
    """Returns the table of all known names, a column for each revision."""
    head = ["files edited by hand", "for", *(revision or "now" for revision in revisions), "goal"]
    rows = [
        [known.name, known.kind, *(counts(known, revision) for revision in revisions), str(known.most or "")]
        for known in KNOWN
    ]
    return columns([head, *rows])


def main() -> int:
    """Prints the table, or the files of one name."""
    parser = argparse.ArgumentParser(description="Count the files that a person edits for one change.")
    parser.add_argument("revisions", nargs="*", metavar="revision", help="revisions to put beside this checkout")
    parser.add_argument("--files", choices=[known.name for known in KNOWN], help="list the files of this name")
    chosen = parser.parse_args()
    revisions: list[str | None] = [*chosen.revisions, None]
    if chosen.files:
        known = next(known for known in KNOWN if known.name == chosen.files)
        print(*(f"{part_of(file):9} {file}" for file in files_of(known, revisions[0])), sep="\n")
        return 0
    print(report(revisions))
    print(f"Each count is the sum of {', '.join(PARTS)}; then come pages and examples.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
