"""What has to hold before a version is released."""

import gzip
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools import names
from tools.release.frozen import BASELINE, BUF, changes, frozen_by
from tools.revisions import git

VERSION: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?")


def problems(root: Path, version: str) -> Iterator[str]:
    """Yields why a version cannot be released from a checkout, each with what to do."""
    if not VERSION.fullmatch(version):
        yield f"{version!r} is no semantic version: it is like 1.0.0 or 1.1.0-rc.1"
        return
    if changed := git(root, "status", "--porcelain").splitlines():
        yield f"{len(changed)} files are not as committed ({changed[0][3:]}): commit them, or put them away"
    tags = git(root, "tag", "--list", "v*").split()
    if f"v{version}" in tags:
        yield f"version {version} exists already (tag v{version}): choose the next one"
    values = names.values(root)
    if values["version"] != version:
        yield f"{names.FILE} has version {values['version']}: change it, and run make names proto clients openapi"
    yield from _placeholders(values)
    if f"\n## {version} " not in (root / "CHANGELOG.md").read_text():
        yield f"CHANGELOG.md has no section {version}: rename Unreleased to `## {version} (date)`"
    if not _is_baseline(root):
        yield f"{BASELINE} is not the present contract: run make baseline, and commit it"
    yield from changes(root, frozen_by(root))


def _placeholders(values: dict[str, str]) -> Iterator[str]:
    """Yields the names that no one owns."""
    for name, value in values.items():
        if re.search(r"\bexample\b", value):
            yield f"{name} is {value}, a placeholder: give the real one in {names.FILE}, and run make names"


def _is_baseline(root: Path) -> bool:
    built = subprocess.run(
        [BUF, "build", "--exclude-source-info", "-o", "-#format=binpb"], cwd=root, capture_output=True, check=True
    )
    return built.stdout == gzip.decompress((root / BASELINE).read_bytes())
