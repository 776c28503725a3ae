"""Installations outside of a clone are complete: the service, as in the container image, and the engine alone."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import pytest

from support.harness import ROOT

pytestmark = pytest.mark.slow

PACKAGES = ("engine", "service")
ENGINE_PAGE = ROOT / "engine" / "README.md"
BUILD = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation")


def files(folder: Path) -> set[str]:
    """Returns the files of the packages in a folder, without those of their distributions."""
    found = (path for package in PACKAGES for path in (folder / package).rglob("*") if path.is_file())
    names = {str(path.relative_to(folder)) for path in found if path.suffix != ".pyc" and ".egg-info" not in str(path)}
    return names - {"engine/pyproject.toml", "engine/README.md"}


def pip(*arguments: str | Path) -> None:
    """Runs pip."""
    subprocess.run([sys.executable, "-m", "pip", *arguments], check=True, timeout=100)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    """Returns copies of the distributions, because a build writes into them."""
    folder = tmp_path_factory.mktemp("source")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder, folder / "engine"


@pytest.fixture(scope="module")
def installed(sources: Sequence[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of an installation. In .venv nothing can be missing, because it links to the clone."""
    folder = tmp_path_factory.mktemp("installed")
    pip("install", *BUILD, "--target", folder, *sources)
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


def test_the_engine_alone_runs_the_example_of_its_page(sources: Sequence[Path], tmp_path: Path) -> None:
    pip("wheel", *BUILD, "--wheel-dir", tmp_path, sources[1])
    [wheel] = tmp_path.glob("rummikub_engine-*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True, timeout=100)
    python = tmp_path / "bare" / "bin" / "python"
    pip("--python", python, "install", "--quiet", "--no-index", wheel)
    blocks: list[tuple[str, str]] = re.findall(
        r"^```(\w*)\n(.*?)^```", ENGINE_PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    [program] = [text for language, text in blocks if language == "python"]
    done = subprocess.run([python, "-I", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ("text", done.stdout) in blocks, done.stdout


def test_the_engine_needs_nothing_and_has_the_version_of_the_service() -> None:
    service, engine = (
        tomllib.loads((folder / "pyproject.toml").read_text())["project"] for folder in (ROOT, ROOT / "engine")
    )
    assert engine["version"] == service["version"]
    assert "dependencies" not in engine
