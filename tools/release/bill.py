"""Bills of materials (CycloneDX): what the service and the npm client need at run time, with versions and licenses."""

import json
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any, Final

from tools import names

ELSEWHERE: Final = {"async-timeout": "Apache-2.0", "tzdata": "Apache-2.0"}
"""The licenses of packages that are installed on other Pythons and systems only."""
SPELLINGS: Final = {
    "3-Clause BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "OSI Approved :: MIT License": "MIT",
}
ACCEPTED: Final = frozenset(
    ["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "LGPL-3.0-only", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0"]
)
"""Licenses that let anyone use a program with the package; LGPL-3.0-only is that of psycopg, an extra."""


class LicenseError(Exception):
    """A package has a license that is not accepted; the message names both."""


def write_bills(root: Path, dist: Path) -> None:
    """Writes a bill of each kind of package into a folder. Raises LicenseError."""
    version = names.values(root)["version"]
    for name, found in (("rummikub-service", _python(root)), ("rummikub-client-npm", _npm(root))):
        components = sorted(found, key=lambda one: str(one["purl"]))
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
    """Raises LicenseError if a part of a component's license expression is not accepted."""
    expression = component["licenses"][0]["expression"]
    for one in re.split(r"[()\s]+|\bAND\b|\bOR\b", expression):
        if one and one not in ACCEPTED:
            raise LicenseError(
                f"{component['name']} has the license {expression}, which tools/release/bill.py does not accept"
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
