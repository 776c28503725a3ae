"""Compares what a release freezes with the last release of the major version: stored games, and the contract.

`make check` runs it, and `make release` refuses what it finds. Before the first release the contract is compared with
the committed baseline, which `make baseline` writes. A release commits its contract as the baseline, so that later
contracts are compared with the baseline of its tag.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from service.storage.formats import FORMATS
from tools import names
from tools.revisions import GIT, GOLDEN, git, last_tag
from tools.servers import ROOT

BUF: Final = ROOT / ".venv" / "bin" / "buf"
BASELINE: Final = Path("proto") / "baseline.binpb.gz"


def changes(root: Path, tag: str) -> Iterator[str]:
    """Yields what a tag has frozen and the files of a checkout have changed, each with what to do.

    Args:
        root: The checkout.
        tag: The tag; "" compares only the contract, with the baseline.
    """
    yield from _of_the_contract(root, tag)
    if not tag:
        return
    paths = git(root, "ls-tree", "--name-only", tag, "--", f"{GOLDEN}/").split()
    for path in paths:
        present = (root / path).read_bytes() if (root / path).is_file() else b""
        if not present.startswith(_shown(root, tag, path)):
            yield (
                f"{path} does not begin with what {tag} has: restore it (git checkout {tag} -- {path}), and write what "
                "has changed as a new format (CONTRIBUTING.md, An event)"
            )
    if f"{GOLDEN}/format_{FORMATS.written}.jsonl" not in paths:
        yield (
            f"servers would write the stored format {FORMATS.written}, which {tag} cannot read: leave `written` in "
            "service/storage/formats.py as it was until the next minor version"
        )


def _of_the_contract(root: Path, tag: str) -> Iterator[str]:
    baseline = _shown(root, tag, str(BASELINE)) if tag else (root / BASELINE).read_bytes()
    against = "-#format=binpb,compression=gzip"
    done = subprocess.run(
        [BUF, "breaking", "--against", against], cwd=root, input=baseline, capture_output=True, check=False
    )
    for line in (done.stdout + done.stderr).decode().splitlines():
        yield f"{line} [not compatible with {tag or BASELINE}: undo it, and add something beside it]"


def _shown(root: Path, tag: str, path: str) -> bytes:
    return subprocess.run([GIT, "show", f"{tag}:{path}"], cwd=root, capture_output=True, check=True).stdout


def frozen_by(root: Path) -> str:
    """Returns the tag that freezes the files of a checkout: the last one of its major version; "" without one."""
    return last_tag(root, names.values(root)["version"].partition(".")[0])


def main(root: Path = ROOT) -> int:
    """Prints what has changed; returns 1 if something has."""
    tag = frozen_by(root)
    if not tag:
        print(
            "No version is released yet (no tag in this clone; if there is one: git fetch --tags), so stored formats "
            f"are not frozen, and the contract is compared with {BASELINE}."
        )
    found = list(changes(root, tag))
    print(*found, sep="\n", end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
