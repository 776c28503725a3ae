"""Builds the documentation site: collects the pages of the repository, generates the reference, runs Zensical.

Usage: python docs/build_site.py [check | serve]

Without an argument, the site is built into build/site. `check` only collects the pages, and fails on dead links to
files of the repository. `serve` also serves the site on 127.0.0.1:8000.
"""

import argparse
import contextlib
import functools
import html
import http.server
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reference import Reference, relative

ROOT: Final = Path(__file__).resolve().parent.parent
BUILD: Final = ROOT / "build"
PAGES: Final = BUILD / "site-pages"
SITE: Final = BUILD / "site"
ENVIRONMENT: Final = BUILD / "docs-env"

RULE_PAGES: Final = ("docs/how-to-play.md", "docs/rules.md", "docs/variants.md", "docs/rule-decisions.md")
"""The pages whose melds are drawn as tiles, players' first."""

SECTIONS: Final = (
    (
        "Start",
        (
            "docs/start/front-end.md",
            "docs/start/own-games.md",
            "docs/start/operators.md",
            "docs/start/tests.md",
            "docs/start/analysis.md",
        ),
    ),
    (
        "Tutorial",
        (
            "docs/tutorial/first-game.md",
            "docs/tutorial/web.md",
            "docs/tutorial/front-end.md",
            "docs/tutorial/validation.md",
            "docs/examples.md",
        ),
    ),
    (
        "Concepts",
        (
            "docs/concepts/contract.md",
            "docs/concepts/game.md",
            "docs/concepts/turn.md",
            "docs/concepts/discards.md",
            "docs/concepts/watch.md",
            "docs/concepts/deployment.md",
            "docs/concepts/words.md",
        ),
    ),
    ("Guides", ("docs/front-end.md", "docs/functions.md", "docs/record.md", "docs/puzzles.md", "*/README.md")),
    (
        "Clients",
        (
            "clients/README.md",
            "clients/*.md",
            "clients/*/README.md",
            "clients/conformance/README.md",
            "web/board/README.md",
            "web/tiles/README.md",
        ),
    ),
    ("Rules", (*RULE_PAGES, "docs/options.md")),
    ("API", ("api/index.md", "errors.md", "api/*-service.md", "api/*.md")),
    (
        "Operation",
        (
            "docs/settings.md",
            "docs/operation.md",
            "docs/internet.md",
            "docs/admin.md",
            "docs/archive.md",
            "docs/backup.md",
            "docs/keys.md",
            "docs/tickets.md",
            "docs/bot-programs.md",
            "docs/yours.md",
            "docs/kubernetes.md",
            "docs/web-edge.md",
            "docs/performance.md",
            "docs/capacity.md",
            "docs/reliability.md",
            "docs/upgrade.md",
            "docs/compatibility.md",
            "load/README.md",
        ),
    ),
    (
        "Design",
        (
            "README.md",
            "ARCHITECTURE.md",
            "docs/solver.md",
            "docs/bots.md",
            "CONTRIBUTING.md",
            "docs/releasing.md",
            "SECURITY.md",
            "tests/README.md",
            "tests/conformance/README.md",
            "CHANGELOG.md",
        ),
    ),
    ("Decisions", ("decisions/index.md", "docs/decisions/*.md")),
)
"""The tabs of the site and their pages, as paths or patterns in the repository.

A missing page is left out. A pattern does not stand for a page that has an entry of its own.
"""

REST: Final = "Guides"
"""The section of pages in docs/ that no section names."""

TITLES: Final = {
    "README.md": "The project",
    "clients/README.md": "All languages",
    "docs/index.md": "Home",
    "api/index.md": "Overview",
    "decisions/index.md": "All decisions",
}
"""Titles in the navigation, of pages whose heading would not fit there."""

FOLDERS: Final = {"proto": "api/index.md", "proto/rummikub/v1": "api/index.md", "docs/decisions": "decisions/index.md"}
"""Where a link to a folder of the repository leads."""

CONTRACT: Final = "proto/rummikub/v1/"
PICTURES: Final = {".gif", ".jpg", ".png", ".svg", ".webp"}
LANGUAGES: Final = {
    ".go": "go",
    ".java": "java",
    ".json": "json",
    ".kt": "kotlin",
    ".mjs": "js",
    ".proto": "protobuf",
    ".py": "python",
    ".rs": "rust",
    ".sh": "bash",
    ".toml": "toml",
    ".ts": "ts",
    ".yaml": "yaml",
    ".yml": "yaml",
}

CODE_OR_LINK: Final = re.compile(
    r"^(?P<indent>[ \t]*)(?P<fence>```+|~~~+).*?^(?P=indent)(?P=fence)[ \t]*$|<!--.*?-->|`[^`\n]+`"
    r"|(?P<label>!?\[(?:[^\[\]]|\[[^\[\]]*\])*\])\((?P<target>[^()\s]+)\)",
    re.DOTALL | re.MULTILINE,
)
"""Code and comments, which stay as they are; or a link."""
INCLUDED: Final = re.compile(r"^<!-- include (\S+) -->$", re.MULTILINE)
_TILE: Final = r"(?:[RBKOGP](?:1[0-3]|[1-9])|[JFDMC])"
_MELD: Final = rf"\[?{_TILE}(?: {_TILE})+\]?"
MELDS: Final = re.compile(rf"`({_MELD}(?: \| {_MELD})*)`")
"""Melds of at least two tiles, as code."""
TILES_SCRIPT: Final = "rummikub-tiles.js"
NUMBERED_RULE: Final = re.compile(r"^\* \*\*R(\d+)\*\* ", re.MULTILINE)


@dataclass
class Pages:
    """The pages of the site as Markdown, by their path in the site; what their links need; and what is wrong."""

    reference: dict[str, str] = field(default_factory=lambda: Reference().pages())
    written: dict[str, str] = field(default_factory=dict)
    copied: dict[str, Path] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    outside: set[str] = field(default_factory=set)

    @functools.cached_property
    def sources(self) -> dict[str, str]:
        """Where each page of the repository is in the site, in the order of the navigation."""
        return {source: place for _, pages in self.navigation for source, place in pages}

    @functools.cached_property
    def navigation(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """The sections with their pages: the path in the repository, or of a generated page, and that in the site."""
        known = {*_pages_in("docs/**/*.md"), *self.reference, "decisions/index.md"}
        own = {"docs/index.md", *(entry for _, entries in SECTIONS for entry in entries if "*" not in entry)}
        sections = {"": ["docs/index.md"]}
        for title, entries in SECTIONS:
            found = [
                page
                for entry in entries
                for page in sorted({*_pages_in(entry), *(page for page in known if _matches(page, entry))})
                if entry in own or page not in own
            ]
            sections[title] = list(dict.fromkeys(found))
        placed = {page for pages in sections.values() for page in pages}
        sections[REST] += sorted(known - placed)
        return [(title, [(page, site_path(page)) for page in pages]) for title, pages in sections.items() if pages]

    def collect(self) -> None:
        """Fills `written` and `copied`, with all links between pages changed to those of the site."""
        if len(set(self.sources.values())) < len(self.sources):
            self.faults.append("two pages have one place in the site: rename one of them")
        for source, place in self.sources.items():
            if source in self.reference:
                self.written[place] = self.reference[source]
            elif source == "decisions/index.md":
                self.written[place] = self._decisions()
            else:
                text = self.with_included(source, (ROOT / source).read_text())
                if source in RULE_PAGES:
                    text = with_tiles(NUMBERED_RULE.sub(r"* **R\1**{#r\1} ", text))
                self.written[place] = self.with_links(source, place, text)

    def with_included(self, source: str, text: str) -> str:
        """Replaces each line `<!-- include path -->` by the file at that path of the repository, as a code block."""

        def include(match: re.Match[str]) -> str:
            file = ROOT / match[1]
            if file.is_file():
                return code_block(file)
            self.faults.append(f"{source}: no file {match[1]} to include")
            return ""

        return INCLUDED.sub(include, text)

    def with_links(self, source: str, place: str, text: str) -> str:
        """Returns the text of a page with the links that it needs in the site; notes those that are dead."""

        def link(match: re.Match[str]) -> str:
            if match["target"] is None:
                return match.group()
            return f"{match['label']}({self._target(source, place, match['target'])})"

        return CODE_OR_LINK.sub(link, text)

    def _target(self, source: str, place: str, target: str) -> str:
        """Returns a link's target in the site."""
        if re.match(r"[a-z]+:", target):
            self.outside.add(target)
            return target
        path, _, anchor = target.partition("#")
        if not path:
            return target
        file = os.path.normpath(Path(source).parent / path)
        if not (ROOT / file).exists():
            self.faults.append(f"{source}: dead link {target}")
            return target
        to = self._place_of(file)
        return relative(f"{to}#{anchor}" if anchor else to, place)

    def _place_of(self, file: str) -> str:
        """Returns where a file or folder of the repository is in the site; puts it there if it is no page."""
        known = self.sources.get(file) or FOLDERS.get(file) or self.sources.get(f"{file}/README.md")
        if known:
            return known
        if file.startswith(CONTRACT):
            stem = Path(file).stem.replace("_", "-")
            return "errors.md" if stem == "error-reason" else f"api/{stem}.md"
        path = ROOT / file
        if path.suffix in PICTURES:
            place = file.removeprefix("docs/")
            self.copied[place] = path
            return place
        place = f"source/{file}.md"
        if path.is_dir():
            self.written[place] = f"# {file}/\n\n" + "".join(f"* `{name}`\n" for name in _files(path))
        else:
            self.written[place] = f"# {file}\n\n{code_block(path)}\n"
        return place

    def _decisions(self) -> str:
        lines = ["# Decisions", "", "Decisions that one might reverse: each with its context and its consequences.", ""]
        for source, place in self.sources.items():
            if source.startswith("docs/decisions/"):
                lines.append(f"* [{heading((ROOT / source).read_text())}]({Path(place).name})")
        return "\n".join(lines) + "\n"

    def config(self) -> str:
        """Returns the configuration of Zensical with the navigation."""
        nav = []
        for section, pages in self.navigation:
            entries = [
                f'{{ "{TITLES.get(source) or heading(self.written[place])}" = "{place}" }}' for source, place in pages
            ]
            nav += entries if not section else [f'{{ "{section}" = [\n    ' + ",\n    ".join(entries) + ",\n  ] }"]
        text = repository_and_version()
        text += "nav = [\n  " + ",\n  ".join(nav) + ",\n]\n"
        return (ROOT / "docs/zensical.toml").read_text().replace("\n[project.theme]", f"{text}\n[project.theme]", 1)

    def write(self) -> None:
        """Writes everything that Zensical reads."""
        shutil.rmtree(PAGES, ignore_errors=True)
        for place, text in self.written.items():
            target = PAGES / place
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        assets = {name: ROOT / "docs" / name for name in ("site.css", "logo.svg")}
        for place, file in {**self.copied, **assets}.items():
            target = PAGES / place
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        (PAGES / TILES_SCRIPT).write_text(tiles_script())
        (BUILD / "zensical.toml").write_text(self.config())


def repository_and_version() -> str:
    """Returns the configuration of the link in the header of each page, which shows the version.

    It leads to the repository: REPOSITORY, or the web page of the remote `origin`. Without either it leads to the
    list of changes.
    """
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    address = os.environ.get("REPOSITORY") or web_page(_origin())
    name, url = ("Repository", address) if address else ("Changes", "changelog.html")
    return f'repo_name = "{name}"\nrepo_url = "{url}"\nextra.version_name = "{version}"\n'


def _origin() -> str:
    """Returns the URL of the remote `origin`; empty if there is none."""
    command = ["git", "config", "--get", "remote.origin.url"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def web_page(remote: str) -> str:
    """Returns the web page of a git remote at a host, without user and password; empty for a folder of this machine."""
    found = re.fullmatch(
        r"(?:(?:https?|ssh)://)?(?:[^@/]*@)?([\w-]+(?:\.[\w-]+)+)(?::\d+)?[:/]([\w./~-]+?)(?:\.git)?/?", remote
    )
    return f"https://{found[1]}/{found[2].lstrip('/')}" if found else ""


def with_tiles(text: str) -> str:
    """Returns a page whose melds are drawn by web/tiles; where no script runs, and for a search, they are text."""

    def drawn(match: re.Match[str]) -> str:
        melds = match[1].replace("|", "&#124;")  # a bar would end the cell of a table
        return f'<rummikub-table melds="{melds}"><code>{melds}</code></rummikub-table>'

    return MELDS.sub(drawn, text)


def tiles_script() -> str:
    """Returns web/tiles as a script that is no module: browsers load no module from the file system."""
    module = (ROOT / "web" / "tiles" / "index.js").read_text()
    return "(() => {\n" + re.sub(r"^export ", "", module, flags=re.MULTILINE) + "})();\n"


def site_path(source: str) -> str:
    """Returns where a page of the repository is in the site: `clients/go/README.md` at `clients/go.md`."""
    path = source.removeprefix("docs/").lower()
    if path == "clients/readme.md":
        return "clients/index.md"
    return path if path == "readme.md" else path.replace("/readme.md", ".md")


def _pages_in(pattern: str) -> list[str]:
    found = (str(path.relative_to(ROOT)) for path in ROOT.glob(pattern))
    return [page for page in found if not page.startswith(".")]  # tools leave pages in their hidden folders


def _matches(page: str, pattern: str) -> bool:
    return page.count("/") == pattern.count("/") and Path(page).match(pattern)


def code_block(file: Path) -> str:
    """Returns a file as a code block."""
    return f"````{LANGUAGES.get(file.suffix, 'text')}\n{file.read_text()}````"


def heading(text: str) -> str:
    """Returns a page's title."""
    found = re.search(r"^# (.*)$", text, re.MULTILINE)
    return found[1].replace("`", "").replace('"', "'") if found else "Untitled"


def _files(folder: Path) -> Iterator[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=folder, capture_output=True, text=True, check=True)  # noqa: S607
    yield from listed.stdout.splitlines()


OUTSIDE_HOST: Final = re.compile(
    r"""<(?:script|img|iframe)\b[^>]*\bsrc="(https?:)?//[^"]*"|<link\b[^>]*\bhref="(https?:)?//[^"]*"|@import[^;]*//[^;]*;"""
)


ANCHOR: Final = re.compile(r"<a\b[^>]*>(.*?)</a>", re.DOTALL)
FILE_NAME: Final = re.compile(
    r"[\w.-]+(/[\w.-]+)+/?|[\w-]+\.(md|html|css|js|mjs|ts|tsx|py|go|rs|java|kt|cs|cpp|rb|proto|json|ya?ml|toml|sh)"
)


def file_names_as_links(site: Path) -> list[str]:
    """Returns the links of built pages whose text is the name of a file or folder: readers need words."""
    return [
        f"{page.relative_to(site)}: {text}"
        for page in sorted(site.rglob("*.html"))
        for match in ANCHOR.finditer(page.read_text())
        if FILE_NAME.fullmatch(text := html.unescape(re.sub(r"<[^>]*>", "", match[1])).strip())
    ]


def outside_resources(site: Path) -> list[str]:
    """Returns what a built page would load from another host."""
    return [
        f"{page.relative_to(site)}: {match.group()}"
        for page in sorted([*site.rglob("*.html"), *site.rglob("*.css")])
        for match in OUTSIDE_HOST.finditer(page.read_text())
    ]


def main() -> None:
    """Builds the site."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", nargs="?", choices=("build", "check", "serve"), default="build")
    action = parser.parse_args().action
    pages = Pages()
    pages.collect()
    if pages.faults:
        sys.exit("\n".join(pages.faults))
    print(f"{len(pages.written)} pages; {len(pages.outside)} links to other sites, which are not checked:")
    print("\n".join(f"  {link}" for link in sorted(pages.outside)))
    if action == "check":
        return
    pages.write()
    shutil.rmtree(SITE, ignore_errors=True)
    zensical = [str(ENVIRONMENT / "bin" / "zensical"), "build", "--strict", "--clean", "-f", "zensical.toml"]
    if subprocess.run(zensical, cwd=BUILD, check=False).returncode:
        sys.exit("the site was not built: see above")
    loaded = outside_resources(SITE)
    if loaded:
        sys.exit("pages load from other hosts:\n" + "\n".join(loaded))
    named = file_names_as_links(SITE)
    if named:
        sys.exit("links have the names of files; they need words:\n" + "\n".join(named))
    print(f"built {SITE.relative_to(ROOT)}/index.html")
    if action == "serve":
        handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(SITE))
        print("serving on http://127.0.0.1:8000; stop with Ctrl-C", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            http.server.ThreadingHTTPServer(("127.0.0.1", 8000), handler).serve_forever()


if __name__ == "__main__":
    main()
