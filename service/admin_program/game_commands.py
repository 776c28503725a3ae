"""The commands on single games and players, and the lists: games, game, abort, kick, reissue, delete, and so on."""

import argparse
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson

from rummikub.admin.v1 import admin_service_pb2 as pb
from rummikub.v1 import game_pb2
from service.admin_program.client import (
    SECONDS,
    Metadata,
    add_connection,
    add_filter,
    as_dict,
    game_filter,
    operator,
    print_json,
)
from service.admin_program.command import AdminError
from service.runtime.process import write_stdout

if TYPE_CHECKING:
    from rummikub.admin.v1.admin_service_pb2_grpc import AdminServiceAsyncStub

STATES: Final = ("lobby", "playing", "round_over", "finished", "aborted")

Work = Callable[["AdminServiceAsyncStub", Metadata, argparse.Namespace], Awaitable[None]]


@dataclass(slots=True)
class GameCommand:
    """A command that calls AdminService (command.Command)."""

    NAME: str
    HELP: str
    add_own_arguments: Callable[[argparse.ArgumentParser], None]
    work: Work

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_connection(parser)
        self.add_own_arguments(parser)

    async def run(self, arguments: argparse.Namespace) -> int:
        async with operator(arguments) as (admin, metadata):
            await self.work(admin, metadata, arguments)
        return 0


def _takes_game(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("game_id", help="32 hexadecimal digits")


def _takes_seat(parser: argparse.ArgumentParser) -> None:
    _takes_game(parser)
    parser.add_argument("seat", type=_seat, help="the seat, from 1")


def _seat(text: str) -> int:
    """Returns a seat. Raises ValueError, ArgumentTypeError."""
    seat = int(text)
    if not 1 <= seat < 2**32:
        raise argparse.ArgumentTypeError(f"{seat} is no seat: expected 1 or more")
    return seat


def _takes_player(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("player_ref", help="the reference that JoinGame received")


def _takes_filter(parser: argparse.ArgumentParser) -> None:
    add_filter(parser)
    parser.add_argument(
        "--state", action="append", choices=STATES, help="games in this state; repeatable (default: all)"
    )
    parser.add_argument("--limit", type=int, default=100, help="most games to print (default %(default)s)")


def _takes_nothing(_parser: argparse.ArgumentParser) -> None:
    pass


async def _games(admin: "AdminServiceAsyncStub", metadata: Metadata, arguments: argparse.Namespace) -> None:
    states = [game_pb2.GameState.Value(f"GAME_STATE_{state.upper()}") for state in arguments.state or ()]
    request = pb.ListGamesRequest(page_size=100, states=states, filter=game_filter(arguments))
    left = arguments.limit
    while left > 0:
        page = await admin.ListGames(request, metadata=metadata, timeout=SECONDS)
        for game in page.games[:left]:
            write_stdout(f"{orjson.dumps(as_dict(game)).decode()}\n")
        left -= len(page.games)
        request.page_token = page.next_page_token
        if not page.next_page_token:
            return


async def _game(admin: "AdminServiceAsyncStub", metadata: Metadata, arguments: argparse.Namespace) -> None:
    request = pb.GetGameRequest(game_id=arguments.game_id)
    print_json((await admin.GetGame(request, metadata=metadata, timeout=SECONDS)).game)


async def _abort(admin: "AdminServiceAsyncStub", metadata: Metadata, arguments: argparse.Namespace) -> None:
    await admin.AbortGame(pb.AbortGameRequest(game_id=arguments.game_id), metadata=metadata, timeout=SECONDS)
    write_stdout(f"{arguments.game_id} is aborted\n")


async def _kick(admin: "AdminServiceAsyncStub", metadata: Metadata, arguments: argparse.Namespace) -> None:
    request = pb.KickPlayerRequest(game_id=arguments.game_id, seat=arguments.seat)
    game = (await admin.KickPlayer(request, metadata=metadata, timeout=SECONDS)).game.game
    has_resigned = any(player.seat == arguments.seat for player in game.players)
    what = "has resigned" if has_resigned else "is free"
    write_stdout(f"{arguments.game_id}: seat {arguments.seat} {what}\n")


async def _reissue(admin: "AdminServiceAsyncStub", metadata: Metadata, arguments: argparse.Namespace) -> None:
    request = pb.ReissueSeatTokenRequest(game_id=arguments.game_id, seat=arguments.seat)
    write_stdout(f"{(await admin.ReissueSeatToken(request, metadata=metadata, timeout=SECONDS)).seat_token}\n")


async def _delete(admin: "AdminServiceAsyncStub", metadata: Metadata, arguments: argparse.Namespace) -> None:
    await admin.DeleteGame(pb.DeleteGameRequest(game_id=arguments.game_id), metadata=metadata, timeout=SECONDS)
    write_stdout(f"{arguments.game_id} is deleted\n")


async def _forget(admin: "AdminServiceAsyncStub", metadata: Metadata, arguments: argparse.Namespace) -> None:
    games_read, found = 0, 0
    async for progress in admin.ForgetPlayer(
        pb.ForgetPlayerRequest(player_ref=arguments.player_ref), metadata=metadata
    ):
        games_read, found = progress.games_read, found + len(progress.forgotten_game_ids)
        for game_id in progress.forgotten_game_ids:
            write_stdout(f"{game_id}\n")
        for game_id in progress.failed_game_ids:
            write_stdout(f"{game_id}: not forgotten\n")
    write_stdout(f"forgotten in {found} of {games_read} games\n")


async def _export(admin: "AdminServiceAsyncStub", metadata: Metadata, arguments: argparse.Namespace) -> None:
    """Prints the parts as JSON lines, and what could not be read at the end on standard error."""
    failed: list[str] = []
    async for part in admin.ExportPlayer(pb.ExportPlayerRequest(player_ref=arguments.player_ref), metadata=metadata):
        failed += part.failed_game_ids
        if part.HasField("game"):
            write_stdout(f"{orjson.dumps(as_dict(part.game)).decode()}\n")
    if failed:
        raise AdminError(f"these games could not be read: {', '.join(failed)}")


async def _stats(admin: "AdminServiceAsyncStub", metadata: Metadata, _arguments: argparse.Namespace) -> None:
    print_json(await admin.GetStatistics(pb.GetStatisticsRequest(), metadata=metadata, timeout=SECONDS))


GAME_COMMANDS: Final = (
    GameCommand("games", "List games as JSON lines, newest first.", _takes_filter, _games),
    GameCommand("game", "Print a game with everything that is hidden from players, as JSON.", _takes_game, _game),
    GameCommand("abort", "Abort a game for good, in the lobby or later.", _takes_game, _abort),
    GameCommand(
        "kick",
        "Remove a player: from the lobby at once; in a started game the player resigns.",
        _takes_seat,
        _kick,
    ),
    GameCommand(
        "reissue",
        "Print a new token of a seat, for a player who has lost it. The old one is void at once.",
        _takes_seat,
        _reissue,
    ),
    GameCommand("delete", "Delete a game with its history. It cannot be restored.", _takes_game, _delete),
    GameCommand(
        "forget",
        "Remove a player's name and reference from all games. It cannot be undone, and may take minutes.",
        _takes_player,
        _forget,
    ),
    GameCommand(
        "export-player",
        "Print all that is stored of a player, as JSON lines: each game as the player sees it, with its changes.",
        _takes_player,
        _export,
    ),
    GameCommand("stats", "Print numbers of games and of kept changes, as JSON.", _takes_nothing, _stats),
)
