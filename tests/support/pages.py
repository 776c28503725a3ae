"""The pages of the repository."""

import subprocess

from support.harness import ROOT

_COMMAND = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
_LISTED = subprocess.run(_COMMAND, cwd=ROOT, capture_output=True, text=True, check=True)

PAGES = sorted(path for name in _LISTED.stdout.split() if (path := ROOT / name).exists())
"""All pages, also new ones that git does not know yet."""
