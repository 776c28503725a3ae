"""Writes the values of release.toml into all manifests and pages that repeat them.

Usage: python -m tools.names [--check]

Each value has the place that it is read from, so that the old one is known, and the files in which it is replaced.
After the Go module or the version has changed, `make proto clients openapi` is due: generated code has them too.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.servers import ROOT

FILE: Final = "release.toml"


@dataclass(frozen=True, slots=True)
class Place:
    """The files that repeat a value.

    Attributes:
        files: Their paths, or patterns, from the root. The first one has the value where `found` is.
        found: A pattern of the line of the first file, with the value as its group.
        most: How often the value is replaced in a lock file, which has versions of other packages below.
    """

    files: tuple[str, ...]
    found: str
    most: int = 2


PLACES: Final[Mapping[str, Place]] = {
    "version": Place(
        (
            "pyproject.toml",
            "engine/pyproject.toml",
            "clients/*/pyproject.toml",
            "clients/*/README.md",
            "clients/cpp/CMakeLists.txt",
            "clients/go/rummikub/client.go",
            "clients/java/**/pom.xml",
            "clients/java/client/src/main/java/rummikub/client/Rummikub.java",
            "clients/rust/Cargo.toml",
            "clients/rust/*/Cargo.toml",
            "clients/typescript/package*.json",
            "deploy/kubernetes/base/kustomization.yaml",
            "docs/kubernetes.md",
            "docs/tutorial/web.md",
            "web/package*.json",
            "web/*/package.json",
            "web/board/README.md",
            "web/board/examples/package*.json",
        ),
        r'^version = "(.+)"$',
    ),
    "repository": Place(
        (
            "pyproject.toml",
            "engine/pyproject.toml",
            "clients/*/pyproject.toml",
            "clients/*/README.md",
            "clients/java/pom.xml",
            "clients/rust/Cargo.toml",
            "clients/typescript/package.json",
            "web/*/package.json",
            "Dockerfile",
            "deploy/prometheus/rules.yaml",
        ),
        r'^Repository = "(.+)"$',
    ),
    "maven_group": Place(
        ("clients/java/pom.xml", "clients/java/*/pom.xml", "clients/java/README.md"), r"^  <groupId>(.+)</groupId>$"
    ),
    "go_module": Place(
        (
            "clients/go/go.mod",
            "clients/go/README.md",
            "clients/go/cmd/**/*.go",
            "clients/go/examples/**/*.go",
            "clients/go/rummikub/*.go",
            "proto/rummikub/v1/*.proto",
            "buf.gen.yaml",
        ),
        r"^module (.+)$",
    ),
    "image": Place(
        (
            "deploy/kubernetes/base/kustomization.yaml",
            "deploy/kubernetes/overlays/local/kustomization.yaml",
            "compose.yaml",
            "Makefile",
            "docs/kubernetes.md",
            "docs/settings.md",
        ),
        r"^    newName: (.+)$",
    ),
}


def values(root: Path = ROOT) -> dict[str, str]:
    """Returns the values of release.toml by name."""
    return tomllib.loads((root / FILE).read_text())


def written(root: Path, name: str) -> str:
    """Returns the value that the manifests have. Raises ValueError if its place has none."""
    place = PLACES[name]
    found = re.search(place.found, (root / place.files[0]).read_text(), re.MULTILINE)
    if not found:
        raise ValueError(f"{place.files[0]} has no line like {place.found}")
    return found[1]


def renamed(root: Path, name: str, value: str) -> Iterator[tuple[Path, str]]:
    """Yields the files that change if a value becomes another, each with its new text."""
    place, old = PLACES[name], written(root, name)
    whole = re.compile(rf"(?<![\w.]){re.escape(old)}(?![\w.]*\w)")
    paths = {path for pattern in place.files for path in root.glob(pattern) if "node_modules" not in path.parts}
    for path in sorted(paths):
        text = path.read_text()
        count = place.most if "lock" in path.name else 0
        new = whole.sub(lambda _: value, text, count=count)
        if new != text:
            yield path, new


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Writes the values, or only compares them; returns 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a file has another value")
    chosen = parser.parse_args(arguments)
    wanted = values(root)
    different = {name: written(root, name) for name in PLACES if written(root, name) != wanted[name]}
    for name, old in different.items():
        if chosen.check:
            print(f"{name} is {wanted[name]} in {FILE} and {old} elsewhere: run make names", file=sys.stderr)
            continue
        changes = list(renamed(root, name, wanted[name]))  # the place of the old value changes too
        for path, text in changes:
            path.write_text(text)
        print(f"{name}: {old} is {wanted[name]} in {len(changes)} files now")
    return 1 if chosen.check and different else 0


if __name__ == "__main__":
    sys.exit(main())
