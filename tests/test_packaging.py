"""What is installed where the project is no clone, such as in the container image, is all that the project has."""

import shutil
import subprocess
import sys
from pathlib import Path

from harness import ROOT

PACKAGES = ("engine", "service")


def files(folder: Path) -> set[str]:
    """The modules and other files of the packages in a folder."""
    found = (path for package in PACKAGES for path in (folder / package).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)) for path in found if path.suffix != ".pyc"}


def test_every_file_is_installed(tmp_path: Path) -> None:
    """The clone itself is linked to in .venv, so that nothing else notices what is missing."""
    source, installed = tmp_path / "source", tmp_path / "installed"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, source / package)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    how = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", installed)
    subprocess.run([sys.executable, "-m", "pip", "install", *how, source], check=True, timeout=100)
    assert files(installed) == files(ROOT)
