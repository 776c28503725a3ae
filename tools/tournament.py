"""Plays a round robin of bots: those of the service by level, and programs of others, each started as a command.

A program plays as docs/bot-programs.md says. It gets BOT_ADDRESS, BOT_KEY, and BOT_TICKETS, a file with
join tickets of its own, one a line. A draw counts half a win for each.
"""

import argparse
import asyncio
import base64
import itertools
import json
import math
import os
import secrets
import shlex
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

import grpc.aio
import jwt
from google.protobuf.duration_pb2 import Duration

import rummikub
from rummikub import aio
from rummikub.v1.game_pb2 import BotLevel
from tools.games import creation, options
from tools.server_process import server_process

KEY: Final = "tournament"
LEVELS: Final = {name.removeprefix("BOT_LEVEL_"): number for name, number in BotLevel.items() if number}
PRESETS: Final = {
    name.removeprefix("PRESET_"): number
    for name, number in rummikub.Preset.items()
    if number and not name.endswith("_PARTNERS")
}
"""The presets that two can play."""
Z: Final = 1.96
"""The quantile of the normal distribution for 95 %."""


@dataclass(frozen=True)
class Entrant:
    """A bot: of the service if it has a level, else a program that a command starts."""

    name: str
    command: str = ""

    @property
    def level(self) -> "BotLevel.ValueType | None":
        """Its level; None for a program."""
        return None if self.command else LEVELS[self.name]


@dataclass
class Results:
    """The points of each entrant against each other one, and how many games they have played."""

    points: defaultdict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    games: defaultdict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))

    def add(self, seats: Sequence[Entrant], winners: Sequence[int]) -> None:
        """Counts a game of two; winners are seats from 1."""
        for seat, (own, other) in enumerate((tuple(seats), tuple(reversed(seats))), 1):
            self.games[own.name, other.name] += 1
            self.points[own.name, other.name] += (seat in winners) / len(winners) if winners else 0.5

    def total(self, name: str) -> tuple[float, int]:
        """Returns the points and the games of an entrant."""
        games = sum(count for (own, _), count in self.games.items() if own == name)
        return sum(points for (own, _), points in self.points.items() if own == name), games


def interval(points: float, games: int) -> tuple[float, float]:
    """Returns the 95 % interval of a share of wins (Wilson)."""
    if not games:
        return 0.0, 1.0
    share, spread = points / games, Z * Z / games
    middle = (share + spread / 2) / (1 + spread)
    half = Z / (1 + spread) * math.sqrt(share * (1 - share) / games + spread / (4 * games))
    return max(0.0, middle - half), min(1.0, middle + half)


def rules_for_two(preset: rummikub.Preset.ValueType) -> rummikub.Ruleset:
    """Returns the rules of a preset, of either family, for as few as two players."""
    rules: rummikub.Ruleset = creation(options(preset=preset, players_min=2))["ruleset"]
    return rules


def ticket(secret: bytes, name: str) -> str:
    """Returns a join ticket of a program."""
    claims = {"aud": KEY, "sub": name, "name": name, "bot": True, "exp": int(time.time()) + 80_000}
    return jwt.encode(claims | {"jti": secrets.token_hex(8)}, secret, "HS256")


class Tournament:
    """A round robin on one server.

    Args:
        client: A connection with the key, without a token.
        rules: The rules.
        turn_seconds: The time of a turn. A program that lets one pass resigns.
        join_seconds: How long a program may take to join a game before it has lost it.
    """

    def __init__(self, client: aio.Rummikub, rules: rummikub.Ruleset, turn_seconds: int, join_seconds: float) -> None:
        self._client = client
        self._rules = rules
        self._join_seconds = join_seconds
        self._settings = rummikub.RoomSettings(
            turn_time_limit=Duration(seconds=turn_seconds),
            absent_after_timeouts=1,
            absent_action=rummikub.ABSENT_ACTION_RESIGN,
            round_pause=Duration(seconds=1),
        )

    async def play(self, seats: Sequence[Entrant]) -> Sequence[int]:
        """Plays a game, and returns its winners."""
        programs = [(seat, one) for seat, one in enumerate(seats, 1) if one.level is None]
        reserved = [rummikub.SeatReservation(seat=seat, player_ref=one.name, name=one.name) for seat, one in programs]
        request = rummikub.CreateGameRequest(
            ruleset=self._rules, settings=self._settings, reserved_seats=reserved, request_id=rummikub.new_request_id()
        )
        created = await self._client.games.CreateGame(request)
        game_id, host = created.game.game_id, self._client.seated(created.host_token)
        for seat, one in enumerate(seats, 1):
            if one.level is not None:
                bot = rummikub.AddBotRequest(game_id=game_id, level=one.level, name=f"{one.name} {seat}", seat=seat)
                await host.games.AddBot(bot)
        try:
            async with asyncio.timeout(self._join_seconds):
                async for game in host.watch_games(game_id):
                    if not game.reserved_seats:
                        break
        except TimeoutError:
            absent = {one.seat for one in game.reserved_seats}
            await host.games.AbortGame(rummikub.AbortGameRequest(game_id=game_id))
            return [seat for seat in (1, 2) if seat not in absent]
        try:
            await host.games.StartGame(rummikub.StartGameRequest(game_id=game_id))
        except grpc.aio.AioRpcError as error:  # it has started by itself
            if rummikub.refusal(error).reason != rummikub.GAME_ALREADY_STARTED:
                raise
        winners: list[int] = []
        async for game in host.watch_games(game_id):
            winners = list(game.winner_seats)
        return winners


def table(entrants: Sequence[Entrant], results: Results) -> str:
    """Returns the standings as text, the best first, with the share of wins against each other one."""
    ranked = sorted(entrants, key=lambda one: -results.total(one.name)[0])
    width = max(len(one.name) for one in entrants)
    lines = [f"{'':{width}}  games    wins  95 % interval  " + "  ".join(f"{one.name:>{width}}" for one in ranked)]
    for one in ranked:
        points, games = results.total(one.name)
        low, high = interval(points, games)
        cells = []
        for other in ranked:
            pair = one.name, other.name
            played = results.games[pair]
            cells.append(f"{f'{results.points[pair] / played:.0%}' if played else '':>{width}}")
        share = points / games if games else 0.0
        lines.append(f"{one.name:{width}}  {games:5}  {share:6.1%}  {low:6.1%} {high:6.1%}  " + "  ".join(cells))
    return "\n".join(lines)


def report(entrants: Sequence[Entrant], results: Results) -> dict[str, object]:
    """Returns the same for JSON."""
    rows = []
    for one in entrants:
        points, games = results.total(one.name)
        pairs = [(pair, count) for pair, count in results.games.items() if pair[0] == one.name]
        against = {other: {"games": count, "points": results.points[own, other]} for (own, other), count in pairs}
        row = {"name": one.name, "games": games, "points": points, "interval": interval(points, games)}
        rows.append(row | {"against": against})
    return {"entrants": rows}


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Returns the arguments of the command line."""
    described = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(description=described, epilog="example: EASY HARD 'mine=python my_bot.py'")
    levels = f"levels ({', '.join(LEVELS)}), and programs as NAME=COMMAND; default: all levels"
    parser.add_argument("entrants", nargs="*", help=levels)
    parser.add_argument("--games", type=_count, default=20, help="games of each pair; default 20, even: seats alike")
    parser.add_argument("--at-once", type=_count, default=4, help="games at once; default 4")
    presets = f"the preset of the rules ({', '.join(PRESETS)}); default SABRA"
    parser.add_argument("--preset", type=str.upper, choices=PRESETS, default="SABRA", metavar="NAME", help=presets)
    parser.add_argument("--turn-seconds", type=_count, default=10, help="after which a program resigns; default 10")
    parser.add_argument("--join-seconds", type=float, default=60, help="after which a program has lost; default 60")
    parser.add_argument("--json", type=Path, help="a file for the results")
    found = parser.parse_args(arguments)
    entrants = [Entrant(*one.split("=", 1)) for one in found.entrants or LEVELS]
    for one in entrants:
        if not one.command and one.name not in LEVELS:
            parser.error(f"{one.name} is no level: expected {', '.join(LEVELS)}, or NAME=COMMAND")
        if not one.name:
            parser.error(f"={one.command} has no name: expected NAME=COMMAND")
        if fault := _fault(one.command):
            parser.error(f"{one.name}={one.command}: {fault}; expected a command that can be run")
    if found.json and not found.json.absolute().parent.is_dir():
        parser.error(f"{found.json}: expected a file in a folder that exists")
    if len({one.name for one in entrants}) < max(2, len(entrants)):
        parser.error("expected at least two entrants, each with a name of its own")
    found.entrants = entrants
    return found


def _count(text: str) -> int:
    """Returns the number in an argument. Raises ArgumentTypeError unless it is at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no count: expected 1 or more")
    return int(text)


def _fault(command: str) -> str:
    """Returns why a command cannot be run; "" if it can."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        return str(error)
    return f"{words[0]} is not found" if words and not shutil.which(words[0]) else ""


async def run(arguments: argparse.Namespace) -> Results:
    """Plays all games; shows the progress on a terminal."""
    entrants: list[Entrant] = arguments.entrants
    pairs = [*itertools.combinations(entrants, 2)]
    fixtures = [pair if number % 2 else pair[::-1] for number in range(arguments.games) for pair in pairs]
    secret, results = secrets.token_bytes(32), Results()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        keys = folder / "keys.toml"
        encoded = base64.urlsafe_b64encode(secret).decode().rstrip("=")
        digest, rights = sha256(KEY.encode()).hexdigest(), "position_searches = true"  # bots may search their racks
        keys.write_text(f'[keys.{KEY}]\nsha256 = ["{digest}"]\nticket_keys = ["HS256:{encoded}"]\n{rights}\n')
        environment = {
            "RUMMIKUB_REDIS_URL": "memory://",
            "RUMMIKUB_KEYS_FILE": str(keys),
            "RUMMIKUB_GAMES_PER_MINUTE": "0",
        }
        server = await stack.enter_async_context(server_process(environment))
        client = await stack.enter_async_context(aio.Rummikub(server.target, api_key=KEY))
        for one in entrants:
            if one.command:
                tickets = folder / f"{entrants.index(one)}.tickets"
                count = arguments.games * len(entrants) + 100  # a ticket for each game, and for each new stream
                tickets.write_text("\n".join(ticket(secret, one.name) for _ in range(count)))
                variables = {"BOT_ADDRESS": server.target, "BOT_KEY": KEY, "BOT_TICKETS": str(tickets)}
                command, variables = shlex.split(one.command), {**os.environ, **variables}
                stack.push_async_callback(_end, await asyncio.create_subprocess_exec(*command, env=variables))
        rules = rules_for_two(PRESETS[arguments.preset])
        tournament = Tournament(client, rules, arguments.turn_seconds, arguments.join_seconds)
        places = asyncio.Semaphore(arguments.at_once)

        async def play(seats: Sequence[Entrant]) -> None:
            async with places:
                results.add(seats, await tournament.play(seats))
            played = sum(results.games.values()) // 2
            if sys.stderr.isatty():
                end = "" if played < len(fixtures) else "\n"
                print(f"\r{played} of {len(fixtures)} games", end=end, file=sys.stderr)

        async with asyncio.TaskGroup() as group:
            for seats in fixtures:
                group.create_task(play(seats))
    return results


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the tournament, and prints its table."""
    found = parsed(arguments)
    results = asyncio.run(run(found))
    print(table(found.entrants, results))
    if found.json:
        found.json.write_text(json.dumps(report(found.entrants, results), indent=2) + "\n")


if __name__ == "__main__":
    main()
