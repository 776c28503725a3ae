"""The provenance of a release: an in-toto statement with SLSA's predicate, about which files came from which commit."""

import hashlib
import json
import platform
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from tools.release.packages import Release, files_of

FILE: Final = "provenance.intoto.json"
LOCKS: Final = (
    "requirements/dev.txt",
    "requirements/uv.txt",
    "clients/typescript/package-lock.json",
    "web/package-lock.json",
    "clients/go/go.sum",
)
"""The files of the commit that pin, with hashes, the packages that the build uses."""
VERSION_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "python": ("python3", "--version"),
    "npm": ("node", "--version"),
    "go": ("go", "version"),
    "rust": ("cargo", "--version"),
    "maven": ("mvn", "--version"),
    "cpp": ("cmake", "--version"),
}
"""The command that prints the version of what builds an ecosystem's packages."""


def write_provenance(release: Release, revision: str, command: str, ecosystems: Iterable[str]) -> None:
    """Writes the statement about all files in dist/. It has no times of its own.

    Args:
        release: The release, whose packages are built.
        revision: The commit that they were built from.
        command: The command that built them.
        ecosystems: The ecosystems that were built.
    """
    tools = {name: _first_line(*VERSION_OF[name]) for name in ecosystems}
    found = statement(release, revision, command, {"platform": platform.platform(), **tools})
    (release.dist / FILE).write_text(json.dumps(found, indent=2) + "\n")


def statement(release: Release, revision: str, command: str, tools: Mapping[str, str]) -> dict[str, Any]:
    """Returns the statement about all files in dist/ but itself; `tools` has the versions of what built them."""
    address, tag = release.values["repository"], f"v{release.version}"
    subjects = [path for path in files_of(release.dist) if path.name != FILE]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [_with_digest("name", path.relative_to(release.dist), path) for path in subjects],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{address}/blob/{tag}/docs/releasing.md",
                "externalParameters": {"command": command, "version": release.version},
                "internalParameters": {"tools": dict(tools)},
                "resolvedDependencies": [
                    {"uri": f"git+{address}.git@refs/tags/{tag}", "digest": {"gitCommit": revision}},
                    *(_with_digest("name", Path(lock), release.tree / lock) for lock in LOCKS),
                ],
            },
            "runDetails": {"builder": {"id": f"{address}/tree/{tag}/tools/release"}},
        },
    }


def _with_digest(key: str, name: Path, path: Path) -> dict[str, Any]:
    return {key: str(name), "digest": {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}}


def _first_line(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.partition("\n")[0]
