"""Other revisions of this repository: the last released one, their files, and their packages installed beside."""

import io
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

from tools.servers import ROOT

GIT: Final = shutil.which("git") or "git"
BEFORE_RELEASES: Final = "db1f9f86"
"""The revision that stands for the last release until there is one: it was checked as a whole."""
PACKAGES: Final = (".", "engine", "clients/python")
GOLDEN: Final = Path("tests") / "service" / "storage" / "golden"
"""The stored games of each format, one file each."""
RELEASE: Final = re.compile(r"v\d+\.\d+\.\d+")


def git(root: Path, *arguments: str) -> str:
    """Returns the output of a command of git. Raises CalledProcessError."""
    return subprocess.run([GIT, *arguments], cwd=root, capture_output=True, text=True, check=True).stdout


def last_tag(root: Path = ROOT, major: str = "*") -> str:
    """Returns the tag of the last release that the present revision comes from; "" without one, or outside of git.

    Args:
        root: The repository.
        major: The major version of the release; any by default.
    """
    try:
        tags = git(root, "tag", "--list", f"v{major}.*", "--merged", "HEAD", "--sort=-version:refname").split()
    except subprocess.CalledProcessError:
        return ""
    return next(filter(RELEASE.fullmatch, tags), "")


def last_release() -> str:
    """Returns the last release; without one, the revision that stands for it."""
    return last_tag() or BEFORE_RELEASES


def write_tree(revision: str, folder: Path, root: Path = ROOT) -> Path:
    """Writes the files of a revision of a repository into a folder, which is returned. Ends the program without it."""
    archive = subprocess.run([GIT, "archive", revision], cwd=root, stdout=subprocess.PIPE, check=False)
    if archive.returncode:
        sys.exit(
            f"revision {revision} is not in this clone; run: git fetch --tags (with --unshallow in a shallow clone)"
        )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def installed(tree: Path, folder: Path) -> Path:
    """Installs the packages of a revision's files into a folder, which is returned; they use present requirements."""
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--python", sys.executable, "--target", str(folder))
    uv = ROOT / ".venv" / "bin" / "uv"
    subprocess.run([uv, "pip", "install", *options, *(tree / package for package in PACKAGES)], cwd=tree, check=True)
    return folder


def stored_format_of(revision: str) -> int:
    """Returns the newest stored format of a revision."""
    names = git(ROOT, "ls-tree", "--name-only", revision, "--", f"{GOLDEN}/").split()
    return max(int(Path(name).stem.removeprefix("format_")) for name in names)
