"""An installed distribution, as in the container image, contains every module and data file."""

import os
import shutil
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest

from support.harness import ROOT

PACKAGES = ("engine", "service")


def files(folder: Path) -> set[str]:
    """The modules and other files of the packages in a folder."""
    found = (path for package in PACKAGES for path in (folder / package).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)) for path in found if path.suffix != ".pyc"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an installation: the clone itself is linked to in .venv, where nothing is missing."""
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, source / package)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    how = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", folder)
    subprocess.run([sys.executable, "-m", "pip", "install", *how, source], check=True, timeout=100)
    return folder


def test_every_file_is_installed(installed: Path) -> None:
    assert files(installed) == files(ROOT)


def test_what_is_installed_serves_and_names_no_commands_of_a_clone(installed: Path) -> None:
    addresses = {"RUMMIKUB_LISTEN": "127.0.0.1:0", "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0"}
    with subprocess.Popen(
        [sys.executable, "-m", "service"],
        cwd=installed,
        env={**os.environ, **addresses, "RUMMIKUB_REDIS_URL": "memory://"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        greeting = "".join(takewhile(lambda line: line != "Stop with Ctrl-C.\n", process.stdout))
        process.terminate()
    assert process.returncode == 0
    assert "rummikub-server --help explains the settings" in greeting
    assert "make" not in greeting
    assert ".venv" not in greeting
