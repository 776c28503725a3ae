"""The program rummikub-admin: it runs the command that is named."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import Final

from service.admin_program import backup, failover, keys, migrate, prune_archive, restore, watch
from service.admin_program.command import AdminError, Command
from service.admin_program.game_commands import GAME_COMMANDS
from service.runtime.process import log_to_stderr

PROGRAM: Final = "rummikub-admin"

COMMANDS: Final[tuple[Command, ...]] = (watch, *GAME_COMMANDS, keys, failover, migrate, backup, restore, prune_archive)
"""The commands, in the order of the help."""


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Returns the arguments of a command, with its function `run`. Exits if they are wrong."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Commands for operators of the Rummikub rules service.")
    subparsers = parser.add_subparsers(required=True, metavar="command")
    for command in COMMANDS:
        subparser = subparsers.add_parser(command.NAME, help=command.HELP, description=command.HELP)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    chosen = parser.parse_args(arguments)
    _check_text(parser, chosen)
    return chosen


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command, and exits with its code."""
    chosen = parsed(arguments)
    log_to_stderr("warning", None)
    try:
        sys.exit(asyncio.run(chosen.run(chosen)))
    except AdminError as error:
        sys.exit(f"{PROGRAM}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def _check_text(parser: argparse.ArgumentParser, chosen: argparse.Namespace) -> None:
    """Exits with a message if an argument is not UTF-8: protobuf cannot send it."""
    for name, given in vars(chosen).items():
        try:
            "".join(text for text in (given if isinstance(given, list) else [given]) if isinstance(text, str)).encode()
        except UnicodeEncodeError:
            parser.error(f"{name.replace('_', '-')}: expected UTF-8")
