"""The program rummikub-admin: it runs the command that is named."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import Final

from service.cli.admin import failover, keys, migrate, watch
from service.cli.admin.command import AdminError, Command
from service.cli.admin.game_commands import GAME_COMMANDS
from service.runtime.process import log_to_stderr

PROGRAM: Final = "rummikub-admin"

COMMANDS: Final[tuple[Command, ...]] = (watch, *GAME_COMMANDS, keys, failover, migrate)
"""The commands, in the order of the help."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command, and exits with its code."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Commands for operators of the Rummikub rules service.")
    subparsers = parser.add_subparsers(required=True, metavar="command")
    for command in COMMANDS:
        subparser = subparsers.add_parser(command.NAME, help=command.HELP, description=command.HELP)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    chosen = parser.parse_args(arguments)
    log_to_stderr("warning", None)
    try:
        sys.exit(asyncio.run(chosen.run(chosen)))
    except AdminError as error:
        sys.exit(f"{PROGRAM}: {error}")
