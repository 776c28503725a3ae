"""`rummikub-admin watch`: prints all changes of all games as JSON lines."""

import argparse
import sys
from pathlib import Path
from typing import Final

import orjson

from rummikub.admin.v1 import admin_service_pb2 as pb
from service.admin_program.client import add_connection, add_filter, as_dict, game_filter, operator
from service.admin_program.command import AdminError

NAME: Final = "watch"
HELP: Final = (
    "Print the changes of all games, or of some, as JSON lines, until the server stops. With --cursor-file each change "
    "is printed at least once, also if this program or the server is restarted."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See Command."""
    add_connection(parser)
    add_filter(parser)
    parser.add_argument(
        "--cursor-file", type=Path, help="file to resume from; written after each line (default: begin now)"
    )
    parser.add_argument("--from-oldest", action="store_true", help="begin with the oldest kept change, not now")


async def run(arguments: argparse.Namespace) -> int:
    """See Command."""
    request = pb.WatchGamesRequest(
        cursor=_read_cursor(arguments.cursor_file),
        from_oldest=arguments.from_oldest,
        filter=game_filter(arguments),
    )
    async with operator(arguments) as (admin, metadata):
        async for update in admin.WatchGames(request, metadata=metadata):
            if update.WhichOneof("update") not in {"heartbeat", "closing"}:
                _print(orjson.dumps(as_dict(update)).decode())
            _write_cursor(arguments.cursor_file, update.cursor)
    return 0


def _print(line: str) -> None:
    """Prints a line at once. Raises AdminError if the reader has closed it: its cursor must not be stored then."""
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError as error:
        raise AdminError(f"standard output: {error.strerror}") from None


def _read_cursor(path: Path | None) -> str:
    try:
        return path.read_text(encoding="ascii").strip() if path and path.exists() else ""
    except (OSError, ValueError):
        raise AdminError(f"--cursor-file {path}: expected a file that this program has written, readable") from None


def _write_cursor(path: Path | None, cursor: str) -> None:
    """Replaces the file in one step, so that it always has a whole cursor."""
    if path is None:
        return
    new = path.with_name(f"{path.name}.new")
    try:
        new.write_text(cursor, encoding="ascii")
        new.replace(path)
    except OSError as error:
        raise AdminError(f"--cursor-file {path}: {error.strerror}; choose a folder that can be written to") from None
