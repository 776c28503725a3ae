"""What has to hold before a version is released."""

import gzip
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools import names
from tools.servers import ROOT

GIT: Final = shutil.which("git") or "git"
BUF: Final = ROOT / ".venv" / "bin" / "buf"
VERSION: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?")
BASELINE: Final = Path("proto") / "baseline.binpb.gz"
GOLDEN: Final = Path("tests") / "service" / "storage" / "golden"


def git(root: Path, *arguments: str) -> str:
    """Returns the output of a command of git. Raises CalledProcessError."""
    return subprocess.run([GIT, *arguments], cwd=root, capture_output=True, text=True, check=True).stdout


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
    yield from _rewritten(root, tags)


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


def _rewritten(root: Path, tags: list[str]) -> Iterator[str]:
    """Yields the golden files of stored games that differ from those of a release: the released format is frozen."""
    for tag in tags:
        for line in git(root, "diff", "--name-status", tag, "--", str(GOLDEN)).splitlines():
            kind, path = line.split("\t")
            if kind != "A":
                yield f"{path} is not that of {tag}: a released format never changes; add another one beside it"
