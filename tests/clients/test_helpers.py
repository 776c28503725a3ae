"""Each client has the helpers that the table of clients/README.md lists: their definitions are in its sources."""

import re
from collections.abc import Iterator

from support.cases import each_of
from support.harness import ROOT

CLIENTS = ROOT / "clients"
SOURCES = {
    "Python": ["python/src/rummikub/*.py"],
    "TypeScript": ["typescript/src/*.ts"],
    "Go": ["go/rummikub/*.go"],
    "Java": ["java/client/src/main/java/rummikub/client/*.java"],
    "Kotlin": ["java/kotlin/src/main/kotlin/**/*.kt", "java/client/src/main/java/rummikub/client/*.java"],
    "Rust": ["rust/src/*.rs"],
    "C++": ["cpp/include/rummikub/*.hpp"],
}
"""The sources that are written by hand. Kotlin's client is that of Java with additions."""
DEFINITIONS = {
    ".py": r"^ *(?:async )?def {0}\(|^class {0}\b",
    ".ts": r"^export (?:async )?function\*? {0}\(|^  {0}\(",
    ".go": r"^func (?:\(.*?\) )?{0}[\[(]|^type {0} ",
    ".java": r"^  public .*\b{0}\(",
    ".kt": r"^ *(?:fun|class|val) (?:\w+\.)?{0}\b",
    ".rs": r"^ *pub (?:async )?(?:fn|struct) {0}\b|^impl (?:fmt::)?{0} for",
    ".hpp": r"^ *[\w:<>&* ]*\b{0}\(|^(?:class|struct) {0}\b",
}
"""How a language defines a public name, by the ending of its files."""


def table() -> list[list[str]]:
    page = (CLIENTS / "README.md").read_text(encoding="utf-8")
    section = page.split("## What each client has\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    return [rows[0], *rows[2:]]


def helpers() -> Iterator[tuple[str, str]]:
    """Yields the languages of the table, and a helper of each."""
    [_, *languages], *rows = table()
    for _, *cells in rows:
        yield from zip(languages, (cell.strip("`") for cell in cells), strict=True)


@each_of("language, helper", helpers(), by=lambda row: row[0])
def test_a_client_defines_a_helper_of_the_table(language: str, helper: str) -> None:
    *owner, name = re.split(r"\.|::", helper)
    files = [path for pattern in SOURCES[language] for path in CLIENTS.glob(pattern)]
    named = [path for path in files if not owner or path.stem.lower() == owner[0].lower()]
    assert any(
        re.search(DEFINITIONS[path.suffix].format(re.escape(name)), path.read_text(encoding="utf-8"), re.MULTILINE)
        for path in named
    ), f"{helper} is not defined in {', '.join(SOURCES[language])}"


def test_the_table_has_all_clients() -> None:
    assert table()[0][1:] == [*SOURCES]
