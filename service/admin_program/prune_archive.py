"""`rummikub-admin prune-archive`: deletes games from the archive that are older than some days."""

import argparse
import os
import time
from typing import Final

from service.admin_program.command import AdminError, report
from service.operator.archive.open_sink import open_sink
from service.operator.archive.sink import SinkUnavailable
from service.settings import PREFIX, SettingsError

NAME: Final = "prune-archive"
HELP: Final = "delete games whose last change is older than some days from the archive of RUMMIKUB_ARCHIVE_URL"
URL: Final = f"{PREFIX}ARCHIVE_URL"
LEAST_DAYS: Final = 30
"""With default lifetimes, no store has a game that is so old: no server writes a deleted one again."""
DAY_MS: Final = 86_400_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See Command."""
    parser.add_argument("--days", type=_days, required=True, help=f"least days without a change, {LEAST_DAYS} or more")


def _days(text: str) -> int:
    """Returns a number of days. Raises ValueError, ArgumentTypeError."""
    days = int(text)
    if days < LEAST_DAYS:
        raise argparse.ArgumentTypeError(f"{days} is too few: expected {LEAST_DAYS} or more")
    return days


async def run(arguments: argparse.Namespace) -> int:
    """See Command."""
    url = os.environ.get(URL)
    if not url:
        raise AdminError(f"set {URL} to that of the servers")
    try:
        sink = open_sink(url)
        try:
            deleted = await sink.prune(int(time.time() * 1000) - arguments.days * DAY_MS)
        finally:
            await sink.close()
    except SettingsError as error:
        raise AdminError(str(error)) from error
    except SinkUnavailable as error:
        raise AdminError(f"the archive does not answer: {error}; repeat the command") from error
    report(f"{deleted} games are deleted")
    return 0
