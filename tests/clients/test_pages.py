"""The pages and packages of the clients agree: their first games, versions and licenses."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from service.runtime.join_tickets import TicketPolicy, new_ticket_key, read_key, verified
from support.harness import ROOT
from support.typescript import compiled_client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # one of them compiles a client first

CLIENTS = ROOT / "clients"
FIRST_GAMES = [
    ("python", "python", "python/examples/first_game.py"),
    ("go", "go", "go/examples/game/main.go"),
    ("java", "java", "java/conformance/src/main/java/example/FirstGame.java"),
    ("java", "kotlin", "java/conformance/src/main/kotlin/example/FirstGame.kt"),
    ("rust", "rust", "rust/examples/game.rs"),
    ("cpp", "cpp", "cpp/examples/game.cpp"),
]
"""The folders of the clients, the fences of the first games in their READMEs, and the files of these programs."""
CODE_ON_ERRORS = [
    ("go", "go/rummikub/example_test.go"),
    ("java", "java/client/src/test/java/rummikub/client/RummikubTest.java"),
    ("cpp", "cpp/tests/client_test.cpp"),
]
"""The clients whose READMEs have code on errors without a program, and the tests that have the same code."""
WITHOUT_CLIENT = {"csharp", "dart", "godot", "objc", "php", "ruby", "swift"}
"""Languages that have only a page."""


def first_program(page: Path, fence: str) -> str:
    found = re.search(rf"^```{fence}[^\n]*\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found, f"{page} has no program in {fence}"
    return found[1]


@pytest.mark.parametrize(("client", "fence", "file"), FIRST_GAMES)
def test_the_first_game_of_a_page_is_that_of_a_program(client: str, fence: str, file: str) -> None:
    """`make conformance` plays it under each preset; that of TypeScript it reads from the page."""
    program = first_program(CLIENTS / client / "README.md", fence)
    assert program == (CLIENTS / file).read_text(encoding="utf-8")


def without_indents(code: str) -> str:
    return "\n".join(map(str.strip, code.splitlines()))


@pytest.mark.parametrize(("client", "file"), CODE_ON_ERRORS)
def test_the_code_on_errors_is_that_of_a_test(client: str, file: str) -> None:
    """The code of TypeScript and Python is run as it is in the page, and Rust's by its documentation tests."""
    page = (CLIENTS / client / "README.md").read_text(encoding="utf-8")
    [code] = re.findall(rf"^### Errors\n.*?^```{client}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert without_indents(code) in without_indents((CLIENTS / file).read_text(encoding="utf-8"))


def test_the_page_of_all_clients_names_each() -> None:
    page = (CLIENTS / "README.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| \[\w+\]\((\w+)/README\.md\)", page, re.MULTILINE))
    folders = {folder.parent.name for folder in CLIENTS.glob("*/README.md")} - {"conformance"}
    assert rows == folders - WITHOUT_CLIENT == {"typescript", *(client for client, _, _ in FIRST_GAMES)}
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


def test_the_packages_state_their_license() -> None:
    python = tomllib.loads((CLIENTS / "python" / "pyproject.toml").read_text(encoding="utf-8"))
    rust = tomllib.loads((CLIENTS / "rust" / "Cargo.toml").read_text(encoding="utf-8"))
    typescript = json.loads((CLIENTS / "typescript" / "package.json").read_text(encoding="utf-8"))
    assert {python["project"]["license"], rust["package"]["license"], typescript["license"]} == {"MIT"}


def test_no_lock_file_names_a_registry() -> None:
    assert '"resolved": "http' not in (CLIENTS / "typescript" / "package-lock.json").read_text(encoding="utf-8")


TICKET_SIGNERS = {
    "python3": (sys.executable, "python/examples/join_ticket.py"),
    "npm": ("node", "typescript/dist/examples/join_ticket.js"),
    "go": ("go", "-C", "go", "run", "./examples/ticket"),
}
"""The programs that sign join tickets, as they run in the folder of the clients."""


@pytest.mark.parametrize("tool", TICKET_SIGNERS)
def test_each_example_signs_a_ticket_that_the_service_accepts(tool: str) -> None:
    program = TICKET_SIGNERS[tool]
    if not shutil.which(tool):
        assert not os.environ.get("CI"), f"{tool} is not installed"
        pytest.skip(f"{tool} is not installed")
    if tool == "npm":
        compiled_client()
    private, public = new_ticket_key()
    arguments = (*program, "web", "account of Ada", "Ada")
    signed = subprocess.run(arguments, cwd=CLIENTS, input=private, capture_output=True, text=True, check=True)
    key = read_key(public)
    assert key
    ticket = verified(TicketPolicy((key,), "web"), signed.stdout.strip())
    assert (ticket.player_ref, ticket.name, ticket.game_id) == ("account of Ada", "Ada", "")
    assert 0 < ticket.expires_ms - time.time() * 1000 <= 300_000
