"""`rummikub-admin migrate`: moves live games between an embedded store, one Redis, Sentinels and a Redis Cluster."""

import argparse
import asyncio
from typing import Final

from service.admin_program.command import AdminError, cancel_on_signals, report
from service.admin_program.store_url import HELP as STORE
from service.admin_program.store_url import setting_of, store_url
from service.operator.migration import MigrationError, migrate, undo
from service.runtime.redis_url import RedisUrlError

NAME: Final = "migrate"
HELP: Final = "move live games between an embedded store, one Redis, a primary behind Sentinels and a Redis Cluster"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See Command."""
    parser.add_argument(
        "--from", dest="source", required=True, metavar="URL", help=f"the store that servers use now: {STORE}"
    )
    parser.add_argument("--to", dest="target", required=True, metavar="URL", help="an empty store")
    parser.add_argument("--stopped", action="store_true", help="no server runs; no store need refuse writes")
    parser.add_argument(
        "--undo", action="store_true", help="after a migration: let the source accept writes again, not the target"
    )


async def run(arguments: argparse.Namespace) -> int:
    """See Command."""
    cancel_on_signals()
    try:
        async with store_url(arguments.source) as source, store_url(arguments.target) as target:
            if arguments.undo:
                games = await undo(source, target, report, is_stopped=arguments.stopped)
                report(f"{games} games; restart the servers with the former {setting_of(arguments.source)}")
            else:
                moved = await migrate(source, target, report, is_stopped=arguments.stopped)
                report(f"moved {moved.games} games and {moved.names} names; no writes for {moved.seconds:.1f} s so far")
                report(f"restart all servers with the new {setting_of(arguments.target)}")
    except (MigrationError, RedisUrlError) as error:
        raise AdminError(str(error)) from error
    except asyncio.CancelledError:
        raise AdminError("interrupted") from None
    return 0
