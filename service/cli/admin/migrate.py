"""`rummikub-admin migrate`: moves live games between one Redis, a primary behind Sentinels and a Redis Cluster."""

import argparse
import asyncio
import signal
from typing import Final

from service.cli.admin.command import AdminError
from service.runtime.process import write_stdout
from service.storage.redis.migration import MigrationError, migrate, undo
from service.storage.redis.url import RedisUrlError

NAME: Final = "migrate"
HELP: Final = "move live games between one Redis, a primary behind Sentinels and a Redis Cluster"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See Command."""
    parser.add_argument(
        "--from", dest="source", required=True, metavar="URL", help="the store that servers use now: RUMMIKUB_REDIS_URL"
    )
    parser.add_argument("--to", dest="target", required=True, metavar="URL", help="an empty store")
    parser.add_argument("--stopped", action="store_true", help="no server runs; no store need refuse writes")
    parser.add_argument(
        "--undo", action="store_true", help="after a migration: let the source accept writes again, not the target"
    )


async def run(arguments: argparse.Namespace) -> int:
    """See Command."""
    _cancel_on_signals()
    try:
        if arguments.undo:
            games = await undo(arguments.source, arguments.target, _report, is_stopped=arguments.stopped)
            _report(f"{games} games; restart the servers with the former RUMMIKUB_REDIS_URL")
            return 0
        moved = await migrate(arguments.source, arguments.target, _report, is_stopped=arguments.stopped)
    except (MigrationError, RedisUrlError) as error:
        raise AdminError(str(error)) from error
    except asyncio.CancelledError:
        raise AdminError("interrupted") from None
    _report(f"moved {moved.games} games and {moved.names} names; no writes for {moved.seconds:.1f} s so far")
    _report("restart all servers with the new RUMMIKUB_REDIS_URL")
    return 0


def _cancel_on_signals() -> None:
    """Cancels the current task at the first signal to end; later ones must not interrupt what restores the source."""
    task = asyncio.current_task()

    def cancel() -> None:
        if task and not task.cancelling():
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
            asyncio.get_running_loop().add_signal_handler(number, cancel)


def _report(line: str) -> None:
    write_stdout(f"{line}\n")
