"""Makes a release: checks the tree, builds all packages into dist/, installs and plays each, and tags.

Usage: python -m tools.release [VERSION] [--dry-run] [--only python,npm,...] [--skip-play]

Nothing is published; docs/releasing.md has the commands that do it. A dry run tags nothing, and what would refuse the
release only warns. Ecosystems whose tools are missing are skipped in a dry run.
"""

import argparse
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tools import names
from tools.release.bill import write_bills
from tools.release.checks import problems
from tools.release.packages import BUILDERS, files_of, stage, sums
from tools.release.plays import PLAYS, server
from tools.release.provenance import write_provenance
from tools.revisions import git
from tools.servers import ROOT

BUILD = ROOT / "build" / "release"
DIST = ROOT / "dist"


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Makes a release, or what a dry run does of it; returns 1 if it is refused or a package does not work."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", nargs="?", default=names.values(root)["version"], help="such as 1.0.0")
    parser.add_argument("--dry-run", action="store_true", help="tag nothing; a refusal only warns")
    parser.add_argument(
        "--only", default=",".join(BUILDERS), help="the ecosystems, separated by commas; with --dry-run"
    )
    parser.add_argument("--skip-play", action="store_true", help="install nothing; with --dry-run")
    given = sys.argv[1:] if arguments is None else arguments
    chosen = parser.parse_args(given)
    if strange := set(chosen.only.split(",")) - BUILDERS.keys():
        parser.error(f"--only {', '.join(sorted(strange))}: expected some of {', '.join(BUILDERS)}")
    ecosystems = [name for name in BUILDERS if name in chosen.only.split(",")]
    if not chosen.dry_run and (chosen.skip_play or len(ecosystems) < len(BUILDERS)):
        parser.error("a release builds and plays all packages: use --only and --skip-play with --dry-run")
    if refused := list(problems(root, chosen.version)):
        print(
            f"Version {chosen.version} cannot be released:", *(f"  {one}" for one in refused), sep="\n", file=sys.stderr
        )
        if not chosen.dry_run:
            return 1
    if absent := [name for name in ecosystems if not shutil.which(BUILDERS[name][1])]:
        print(f"Not on this machine, so not built: {', '.join(absent)}", file=sys.stderr)
        if not chosen.dry_run:
            return 1
    command = shlex.join(["python", "-m", "tools.release", *given])
    built = _built([name for name in ecosystems if name not in absent], root, command, with_play=not chosen.skip_play)
    if built and not chosen.dry_run:
        git(root, "tag", "--annotate", f"v{chosen.version}", "--message", f"Release {chosen.version}")
        git(root, "tag", f"clients/go/v{chosen.version}", f"v{chosen.version}^{{}}")
        print(
            f"Tagged v{chosen.version} and clients/go/v{chosen.version}. docs/releasing.md tells how to publish dist/."
        )
    return 0 if built else 1


def _built(ecosystems: list[str], root: Path, command: str, *, with_play: bool) -> bool:
    """Builds and plays packages; prints a line for each, and returns whether all work."""
    release = stage(root, BUILD / "tree", DIST)
    failed = False
    served = {"python"} if with_play else set()  # the server of the games is that of the wheels
    built = [name for name in BUILDERS if name in served or name in ecosystems]
    for name in built:
        failed |= not _step(f"build {name}", partial(BUILDERS[name][0], release))
    if not failed:
        write_bills(release.tree, DIST, built)
        write_provenance(release, git(root, "rev-parse", "HEAD").strip(), command, built)
    (DIST / "SHA256SUMS").write_text(sums(DIST))
    if with_play and not failed:
        with server(release, BUILD / "server") as target:
            for name in ecosystems:
                folder = BUILD / "play" / name
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
                failed |= not _step(f"play {name}", partial(PLAYS[name], release, folder, target))
    for path in files_of(DIST):
        print(f"{path.stat().st_size:>10,}  {path.relative_to(root)}")
    return not failed


def _step(title: str, do: Callable[[], object]) -> bool:
    """Does a step, and prints how long it took; returns whether it worked."""
    began = time.monotonic()
    try:
        do()
    except subprocess.CalledProcessError as error:
        print(f"FAILED {title}: {error}", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
        return False
    print(f"ok     {title} ({time.monotonic() - began:.0f} s)", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
