"""`rummikub-admin backup`: writes all of a store to standard output, or to a file."""

import argparse
import sys
from pathlib import Path
from typing import Final

from service.admin_program.command import AdminError, cancel_on_signals
from service.admin_program.store_url import HELP as STORE
from service.admin_program.store_url import store_url
from service.operator.backup import NOTHING, BackupError, Saved, backup, kept_of

NAME: Final = "backup"
HELP: Final = "write all of a store to standard output, or to a file, while servers use it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See Command."""
    parser.add_argument("--from", dest="source", required=True, metavar="URL", help=STORE)
    parser.add_argument(
        "--to",
        dest="target",
        type=Path,
        metavar="FILE",
        help="a new file, which only its owner may read; it is whole once it has this name",
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with what an interrupted backup has left of --to FILE"
    )


async def run(arguments: argparse.Namespace) -> int:
    """See Command."""
    cancel_on_signals()
    try:
        async with store_url(arguments.source) as url:
            if arguments.resume and not arguments.target:
                raise AdminError("--resume goes on with a file: name it by --to FILE")
            saved = await (
                _to_file(url, arguments.target, resume=arguments.resume) if arguments.target else _to_output(url)
            )
    except (BackupError, OSError) as error:
        raise AdminError(str(error)) from error
    _report(f"{saved.games} games in {saved.seconds:.1f} s")
    return 0


async def _to_output(url: str) -> Saved:
    saved = await backup(url, sys.stdout.buffer.write, _report)
    sys.stdout.buffer.flush()
    return saved


async def _to_file(url: str, target: Path, *, resume: bool) -> Saved:
    """Writes a backup to a file that gets its name at the end. Raises AdminError if there is one with this name."""
    if target.exists():  # noqa: ASYNC240 - nothing else runs
        raise AdminError(f"{target} exists: give another name, or move it away")
    partial = target.with_name(f"{target.name}.partial")
    if not resume:
        partial.unlink(missing_ok=True)
    elif not partial.exists():
        raise AdminError(f"{partial} does not exist: begin without --resume")
    partial.touch(mode=0o600)
    with partial.open("r+b") as file:
        kept = kept_of(file) if resume else NOTHING
        file.seek(kept.size)
        file.truncate()
        if resume:
            _report(f"going on after {len(kept.games)} games")
        saved = await backup(url, file.write, _report, kept)
    partial.rename(target)
    return saved


def _report(line: str) -> None:
    """Reports progress, beside the backup on standard output."""
    sys.stderr.write(f"{line}\n")
