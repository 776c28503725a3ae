"""The pages and packages of the clients agree: their first games, versions and licenses."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from support.harness import ROOT

CLIENTS = ROOT / "clients"
FIRST_GAMES = [
    ("python", "python"),
    ("typescript", "js"),
    ("go", "go"),
    ("java", "java"),
    ("java", "kotlin"),
    ("rust", "rust"),
    ("cpp", "cpp"),
]
"""The folders of the clients, and the fences of the first games in their READMEs."""
EXAMPLES = [("python", "python", "first_game.py"), ("rust", "rust", "game.rs")]
"""The files that READMEs have as first games. The tests of other clients compare theirs."""
WITHOUT_CLIENT = {"csharp", "dart", "objc", "php", "ruby", "swift"}
"""Languages that have only a page."""
VERSIONED = {
    "python/pyproject.toml": r'^version = "(.*)"$',
    "typescript/package.json": r'^  "version": "(.*)",$',
    "typescript/package-lock.json": r'^  "version": "(.*)",$',
    "go/rummikub/client.go": r'^const Version = "(.*)"$',
    "rust/Cargo.toml": r'^version = "(.*)"$',
    "java/pom.xml": r"^  <version>(.*)</version>$",
    "cpp/CMakeLists.txt": r"^project\(.*VERSION ([\d.]+)",
}
"""The files that have the version of a client, and the line that has it."""


def first_program(page: Path, fence: str) -> str:
    found = re.search(rf"^```{fence}[^\n]*\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found, f"{page} has no program in {fence}"
    return found[1]


@pytest.mark.parametrize(("client", "fence"), FIRST_GAMES)
def test_the_page_of_all_clients_has_the_first_game_of_each(client: str, fence: str) -> None:
    """`make conformance` and test_pages.py of the service run that of the client's README."""
    assert first_program(CLIENTS / "README.md", fence) == first_program(CLIENTS / client / "README.md", fence)


@pytest.mark.parametrize(("client", "fence", "file"), EXAMPLES)
def test_the_first_game_of_a_page_is_an_example(client: str, fence: str, file: str) -> None:
    example = (CLIENTS / client / "examples" / file).read_text(encoding="utf-8")
    assert first_program(CLIENTS / client / "README.md", fence) == example


def test_the_page_of_all_clients_names_each() -> None:
    page = (CLIENTS / "README.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| \[\w+\]\((\w+)/README\.md\)", page, re.MULTILINE))
    folders = {folder.parent.name for folder in CLIENTS.glob("*/README.md")} - {"conformance"}
    assert rows == folders - WITHOUT_CLIENT == {client for client, _ in FIRST_GAMES}
    assert all(f"]({folder}/README.md)" in page for folder in folders)


@pytest.mark.parametrize("language", ["java", "kotlin"])
def test_maven_accepts_the_poms_of_a_page(language: str, tmp_path: Path) -> None:
    if not shutil.which("mvn"):
        assert not os.environ.get("CI"), "Maven is not installed"
        pytest.skip("Maven is not installed; run: apt-get install maven default-jdk-headless")
    page = (CLIENTS / "java" / "README.md").read_text(encoding="utf-8")
    poms = dict(zip(["java", "kotlin"], re.findall(r"^```xml\n(.*?)^```", page, re.DOTALL | re.MULTILINE), strict=True))
    (tmp_path / "pom.xml").write_text(poms[language], encoding="utf-8")
    command = ["mvn", "--offline", "--quiet", "--batch-mode", "validate"]
    validated = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    is_read = validated.returncode == 0 or "PluginResolutionException" in validated.stdout  # nothing is downloaded
    assert is_read, validated.stdout


@pytest.mark.parametrize("file", VERSIONED)
def test_a_client_has_the_version_of_the_service(file: str) -> None:
    service = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    found = re.search(VERSIONED[file], (CLIENTS / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert found
    assert found[1] == service


def test_the_packages_state_their_license() -> None:
    python = tomllib.loads((CLIENTS / "python" / "pyproject.toml").read_text(encoding="utf-8"))
    rust = tomllib.loads((CLIENTS / "rust" / "Cargo.toml").read_text(encoding="utf-8"))
    typescript = json.loads((CLIENTS / "typescript" / "package.json").read_text(encoding="utf-8"))
    assert {python["project"]["license"], rust["package"]["license"], typescript["license"]} == {"MIT"}


def test_no_lock_file_names_a_registry() -> None:
    assert '"resolved": "http' not in (CLIENTS / "typescript" / "package-lock.json").read_text(encoding="utf-8")
