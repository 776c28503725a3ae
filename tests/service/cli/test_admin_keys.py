"""`rummikub-admin keys`. It runs in another process, because it directs the log of its own to standard error."""

import re
import subprocess
import sys
from pathlib import Path

from service.runtime.keys import HEADER, Keys
from support.harness import ROOT


def made(action: str, name: str) -> subprocess.CompletedProcess[str]:
    """Runs the command to its end."""
    program = (sys.executable, "-c", "from service.admin_program.program import main; main()")
    return subprocess.run((*program, "keys", action, name), cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_new_key_is_accepted_with_the_printed_entry(tmp_path: Path) -> None:
    ended = made("new", "web")
    assert ended.returncode == 0, ended.stderr
    key = re.findall(r"^  (\S{43})$", ended.stdout, re.MULTILINE)[0]
    path = tmp_path / "keys.toml"
    path.write_text(ended.stdout[ended.stdout.index("[keys.") :])
    assert key not in path.read_text()
    assert Keys(path).identify("/rummikub.v1.GameService/GetGame", [(HEADER, key)]).name == "web"


def test_a_new_ticket_key_is_accepted_with_the_printed_line(tmp_path: Path) -> None:
    ended = made("ticket", "web")
    assert ended.returncode == 0, ended.stderr
    assert "BEGIN PRIVATE KEY" in ended.stdout
    path = tmp_path / "keys.toml"
    path.write_text(f'[keys.web]\ncertificate = "a"\n{ended.stdout[ended.stdout.index("ticket_keys") :]}')
    tickets = Keys(path).identify("/rummikub.v1.GameService/GetGame", (), lambda: ["a"]).tickets
    assert tickets
    assert [key.algorithm for key in tickets.keys] == ["EdDSA"]


def test_a_name_that_the_file_would_refuse_is_refused() -> None:
    ended = made("new", "My key")
    assert ended.returncode == 1
    assert "My key: a name has 1 to 32 of" in ended.stderr
    assert ended.stdout == ""
