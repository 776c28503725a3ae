"""The TypeScript client, compiled."""

import fcntl
import subprocess
from pathlib import Path

from support.harness import ROOT


def compiled_client() -> Path:
    """Compiles the client, and returns its folder. One process at a time installs what that needs."""
    folder = ROOT / "clients" / "typescript"
    with (folder / "package.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = "{ test -d node_modules || npm ci --silent; } && npx tsc"
        subprocess.run(command, cwd=folder, shell=True, check=True)  # noqa: S602 - a fixed command
    return folder
