"""The interface of a command of rummikub-admin."""

import argparse
import asyncio
import signal
from typing import Protocol

from service.runtime.process import write_stdout


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


def report(line: str) -> None:
    """Writes a line about what is being done to standard output."""
    write_stdout(f"{line}\n")


def cancel_on_signals() -> None:
    """Cancels the current task at the first signal to end; later ones must not interrupt what restores the store."""
    task = asyncio.current_task()

    def cancel() -> None:
        if task and not task.cancelling():
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
            asyncio.get_running_loop().add_signal_handler(number, cancel)
