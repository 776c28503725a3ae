"""The interface of a command of rummikub-admin."""

import argparse
from typing import Protocol


class AdminError(Exception):
    """A command cannot do its work; the message says why, and what to do."""


class Command(Protocol):
    """A command: a module of this package with these names."""

    NAME: str
    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Adds the command's arguments to its parser."""

    async def run(self, arguments: argparse.Namespace) -> int:
        """Runs the command and returns the exit code. Raises AdminError."""
