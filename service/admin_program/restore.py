"""`rummikub-admin restore`: writes a backup into a store without games."""

import argparse
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from service.admin_program.command import AdminError, cancel_on_signals, report
from service.admin_program.store_url import HELP as STORE
from service.admin_program.store_url import store_url
from service.operator.backup import BackupError, restore

NAME: Final = "restore"
HELP: Final = "write a backup, from standard input or a file, into a store without games"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See Command."""
    parser.add_argument(
        "--to", dest="target", required=True, metavar="URL", help=f"an empty store that no server uses: {STORE}"
    )
    parser.add_argument(
        "--from", dest="source", type=Path, metavar="FILE", help="the backup; by default standard input"
    )


async def run(arguments: argparse.Namespace) -> int:
    """See Command."""
    cancel_on_signals()
    try:
        async with store_url(arguments.target) as url:
            with arguments.source.open("rb") if arguments.source else nullcontext(sys.stdin.buffer) as lines:
                saved = await restore(lines, url, report)
    except (BackupError, OSError) as error:
        raise AdminError(str(error)) from error
    report(f"{saved.games} games in {saved.seconds:.1f} s; start the servers on this store")
    return 0
