"""Bills of materials (CycloneDX): what the packages of an ecosystem need at run time, with versions and licenses."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any, Final

from tools import names
from tools.release.packages import run

ELSEWHERE: Final = {"async-timeout": "Apache-2.0", "tzdata": "Apache-2.0"}
"""The licenses of packages that are installed on other Pythons and systems only."""
SPELLINGS: Final = {
    "3-Clause BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "OSI Approved :: MIT License": "MIT",
}
ACCEPTED: Final = frozenset(
    [
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CDDL-1.0",
        "ISC",
        "LGPL-3.0-only",
        "MIT",
        "MIT-0",
        "MPL-2.0",
        "PSF-2.0",
        "Unicode-3.0",
    ]
)
"""Licenses that let anyone use a program with the package; LGPL-3.0-only is that of psycopg, an extra."""
TEXTS: Final = {
    "Apache License": "Apache-2.0",
    "Neither the name of": "BSD-3-Clause",
    "Permission is hereby granted, free of charge": "MIT",
}
"""Words of a license's text, for Go, whose modules have the text alone."""


class LicenseError(Exception):
    """A package has a license that is not accepted; the message names both."""


def write_bills(tree: Path, dist: Path, ecosystems: Iterable[str]) -> None:
    """Writes a bill of the packages of each ecosystem into a folder. Raises LicenseError.

    Args:
        tree: The tree that they were built from, with what the build left in it.
        dist: The folder.
        ecosystems: Those of BUILDERS that were built; C++ has no bill, because its users choose all that it needs.
    """
    version = names.values(tree)["version"]
    for ecosystem in ecosystems:
        if ecosystem not in BILLS:
            continue
        name, found = BILLS[ecosystem]
        components = sorted(found(tree), key=lambda one: str(one["purl"]))
        for one in components:
            check_license(one)
        bill = {
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": {"component": {"type": "application", "name": name, "version": version}},
            "components": components,
        }
        dist.mkdir(exist_ok=True)
        (dist / f"{name}-{version}.cdx.json").write_text(json.dumps(bill, indent=2) + "\n")


def check_license(component: dict[str, Any]) -> None:
    """Raises LicenseError if a component's license expression requires a license that is not accepted."""
    expression = component["licenses"][0]["expression"]
    if not _is_accepted(expression):
        raise LicenseError(
            f"{component['name']} has the license {expression}, which tools/release/bill.py does not accept"
        )


def _is_accepted(expression: str) -> bool:
    """Returns whether an SPDX expression can be met with accepted licenses alone. AND binds closer than OR."""
    while inner := re.search(r"\(([^()]*)\)", expression):
        value = "MIT" if _is_accepted(inner[1]) else "none"
        expression = f"{expression[: inner.start()]}{value}{expression[inner.end() :]}"
    return any(
        all(one.partition(" WITH ")[0].strip() in ACCEPTED for one in choice.split(" AND "))
        for choice in expression.split(" OR ")
    )


def _component(kind: str, name: str, version: str, license_: str) -> dict[str, Any]:
    group, _, last = name.rpartition("/")
    purl = f"pkg:{kind}/{group.replace('@', '%40')}{'/' if group else ''}{last}@{version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "licenses": [{"expression": license_}],
    }


def _python(root: Path) -> Iterator[dict[str, Any]]:
    """Yields the pinned requirements of the service with all of its extras."""
    pinned = (root / "requirements" / "all.txt").read_text()
    for name, version in re.findall(r"^([\w.-]+)(?:\[[\w,]*\])?==([^\s;\\]+)", pinned, re.MULTILINE):
        yield _component("pypi", name, version, _license_of(name))


def _license_of(name: str) -> str:
    """Returns the license expression of an installed Python package."""
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    try:
        about = metadata(name)
    except PackageNotFoundError:
        return "unknown"
    classifiers = [one.removeprefix("License :: ") for one in about.get_all("Classifier", []) if "License ::" in one]
    fields = [about[key] for key in ("License-Expression", "License") if key in about]
    found = next(filter(None, [*(field.partition("\n")[0] for field in fields), *classifiers]), "unknown")
    return SPELLINGS.get(found, found)


def _npm(root: Path) -> Iterator[dict[str, Any]]:
    """Yields what the client for TypeScript needs at run time."""
    lock = json.loads((root / "clients" / "typescript" / "package-lock.json").read_text())
    for path, package in lock["packages"].items():
        if path and not package.get("dev") and not package.get("peer"):
            name = path.rpartition("node_modules/")[2]
            yield _component("npm", name, package["version"], package.get("license", "unknown"))


def _go(root: Path) -> Iterator[dict[str, Any]]:
    """Yields the modules of the packages that the Go client imports."""
    form = "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}"
    run("go", "mod", "download", folder=root / "clients" / "go")  # else its messages are among the answer
    listed = run("go", "list", "-deps", "-f", form, "./rummikub", folder=root / "clients" / "go")
    for line in sorted({*listed.splitlines()} - {""}):
        name, version, folder = line.split(" ", 2)
        text = (Path(folder) / "LICENSE").read_text()
        license_ = next((license_ for words, license_ in TEXTS.items() if words in text), "unknown")
        yield _component("golang", name, version, license_)


def _rust(root: Path) -> Iterator[dict[str, Any]]:
    """Yields the crates that the Rust client needs, in the versions that cargo chooses today."""
    folder = root / "clients" / "rust"
    found = json.loads(run("cargo", "metadata", "--quiet", "--format-version", "1", folder=folder))
    crates = {crate["id"]: crate for crate in found["packages"]}
    needs = {
        node["id"]: [one["pkg"] for one in node["deps"] if any(kind["kind"] is None for kind in one["dep_kinds"])]
        for node in found["resolve"]["nodes"]
    }
    client = found["resolve"]["root"]
    reached, waiting = {client}, [client]
    while waiting:
        new = {*needs[waiting.pop()]} - reached
        reached |= new
        waiting += new
    for crate in (crates[one] for one in reached - {client}):
        license_ = re.sub(r" ?/ ?", " OR ", crate["license"] or "unknown")
        yield _component("cargo", crate["name"], crate["version"], license_)


def _maven(root: Path) -> Iterator[dict[str, Any]]:
    """Yields the artefacts that Java and Kotlin need, of the bills that Maven's plugin has made while it built them."""
    found = {}
    for module in ("client", "kotlin"):
        bill = json.loads((root / "clients" / "java" / module / "target" / "bom.json").read_text())
        own = bill["metadata"]["component"]["group"]
        found.update({one["purl"]: one for one in bill["components"] if one["group"] != own})
    for one in found.values():
        stated = [entry.get("expression") or _named(entry["license"]) for entry in one.get("licenses", [])]
        yield _component("maven", f"{one['group']}/{one['name']}", one["version"], " OR ".join(stated) or "unknown")


def _named(license_: Mapping[str, str]) -> str:
    """Returns the identifier of a license in CycloneDX, or else its name."""
    return license_.get("id") or license_["name"]


BILLS: Final[Mapping[str, tuple[str, Callable[[Path], Iterator[dict[str, Any]]]]]] = {
    "python": ("rummikub-service", _python),
    "npm": ("rummikub-client-npm", _npm),
    "go": ("rummikub-client-go", _go),
    "rust": ("rummikub-client-rust", _rust),
    "maven": ("rummikub-client-maven", _maven),
}
"""The name of each ecosystem's bill, and its components."""
