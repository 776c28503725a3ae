"""Asks the advisories of each ecosystem about the packages that are used; names what could not be checked.

Usage: python -m tools.audit

Exits with 1 if a weakness is known. Tools that are not installed are fetched by uvx, npm and go where that works.
"""

import shutil
import subprocess
import sys
from typing import Final

from tools.servers import ROOT

BIN: Final = ROOT / ".venv" / "bin"
CHECKS: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "Python, service": (
        ".",
        str(BIN / "uv"),
        ("tool", "run", "pip-audit", "--disable-pip", "--require-hashes", "-r", "requirements/all.txt"),
    ),
    "npm, client": ("clients/typescript", "npm", ("audit", "--omit=dev")),
    "npm, page": ("web", "npm", ("audit",)),
    "Go": ("clients/go", "go", ("run", "golang.org/x/vuln/cmd/govulncheck@latest", "./...")),
    "Rust": ("clients/rust", "cargo", ("audit",)),
}
"""What checks each ecosystem: the folder, the program, its arguments."""
UNREACHABLE: Final = (
    "ENOAUDIT",
    "ENOTFOUND",
    "ECONNREFUSED",
    "audit endpoint",
    "Connection",
    "connection",
    "dial tcp",
    "no such command",
    "Not Found",
    "Failed to fetch",
    "couldn't fetch",
    "proxyconnect",
    "404",
    "lookup ",
    "ServiceError",
)
"""What their output has if the advisories, or the tool itself, could not be had."""
SECONDS: Final = 300


def main() -> int:
    """Runs the checks; returns 1 if one found a weakness."""
    found = False
    for name, (folder, program, arguments) in CHECKS.items():
        if not shutil.which(program):
            print(f"not checked  {name}: {program} is not installed")
            continue
        try:
            done = subprocess.run(
                [program, *arguments], cwd=ROOT / folder, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            print(f"not checked  {name}: no answer within {SECONDS} s")
            continue
        output = done.stdout + done.stderr
        if not done.returncode:
            print(f"ok           {name}: no weakness is known")
        elif any(sign in output for sign in UNREACHABLE):
            print(f"not checked  {name}: its advisories cannot be reached from here")
        else:
            found = True
            print(f"WEAK         {name}:\n{output}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
