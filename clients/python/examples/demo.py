"""Plays a complete four-player round of Rummikub through the Python client, printing each turn as a spectator sees it.

Plays against the service at RUMMIKUB_LISTEN (default 127.0.0.1:50051) if one serves there, else against one that it
starts for itself. The players are simple: they lay the melds of their rack that are worth most, then add single tiles
to melds of the table, and draw when they find nothing.
"""

import argparse
import contextlib
import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import grpc

from rummikub.client import Rummikub, error_info, new_request_id
from rummikub.v1.game_pb2 import GAME_STATE_FINISHED, ROUND_END_BLOCKED, Game, GameChange, GameEvent
from rummikub.v1.game_service_pb2 import (
    CreateGameRequest,
    GetGameRequest,
    JoinGameRequest,
    StartGameRequest,
    WatchGameRequest,
)
from rummikub.v1.meld_pb2 import Meld, TableMeld
from rummikub.v1.tile_pb2 import TILE_JOKER, Tile
from rummikub.v1.turn_service_pb2 import DrawTile, Pass, PlayTiles, PlayTurnRequest
from rummikub.v1.validation_service_pb2 import ValidateMeldsRequest

NAMES = ("Ann", "Bob", "Cid", "Dot")
LETTERS = {"RED": "R", "BLUE": "B", "BLACK": "K", "ORANGE": "O"}
MELDS_A_REQUEST = 128

Tiles = tuple[Tile.ValueType, ...]

ALL_FACES: Tiles = tuple(tile for tile in Tile.values() if 0 < tile < TILE_JOKER)


def tile_text(tile: Tile.ValueType) -> str:
    """`R7` for TILE_RED_7, `J` for the joker."""
    if tile == TILE_JOKER:
        return "J"
    _, color, value = Tile.Name(tile).split("_")
    return LETTERS[color] + value


def tiles_text(tiles: Sequence[Tile.ValueType]) -> str:
    """Tiles in the notation."""
    return " ".join(map(tile_text, tiles))


def table_text(table: Sequence[TableMeld]) -> str:
    """A table in the notation."""
    return " | ".join(f"[{tiles_text(meld.tiles)}]" for meld in table) or "."


@dataclass
class Seat:
    """A player at the table, with a connection of their own."""

    name: str
    number: int
    service: Rummikub

    def take_turn(self, game: Game, threshold: int) -> Game:
        """Plays what it finds, else draws, else passes; returns the game afterwards."""
        request = PlayTurnRequest(
            game_id=game.game_id, expected_revision=game.revision, etag=game.etag, request_id=new_request_id()
        )
        table = self.find_play(game, threshold)
        if table:
            request.play.CopyFrom(PlayTiles(table=table))
        elif game.pool_count:
            request.draw.CopyFrom(DrawTile())
        else:
            getattr(request, "pass").CopyFrom(Pass())  # a keyword in Python
        return self.service.turns.PlayTurn(request).game

    def find_play(self, game: Game, threshold: int) -> list[Meld]:
        """The table after this player's play; empty if they find none."""
        has_melded = next(player.has_melded for player in game.players if player.seat == self.number)
        on_table = [Meld(tiles=meld.tiles, kind=meld.kind) for meld in game.table]
        melds, left = best_melds(tuple(game.rack))
        if not has_melded:
            points = sum(meld_points(meld) for meld in melds)
            return [*on_table, *(Meld(tiles=meld) for meld in melds)] if points >= threshold else []
        table = [*on_table, *(Meld(tiles=meld) for meld in melds)]
        table, left = self.add_single_tiles(table, left)
        return table if len(left) < len(game.rack) else []

    def add_single_tiles(self, table: list[Meld], rack: Tiles) -> tuple[list[Meld], Tiles]:
        """Adds tiles to either end of melds, as long as the service says that the result is a meld."""
        while rack:
            places = [(place, tile) for place in range(len(table)) for tile in sorted(set(rack))]
            tries = [
                (place, tile, Meld(tiles=tiles))
                for place, tile in places
                for tiles in ((tile, *table[place].tiles), (*table[place].tiles, tile))
            ]
            fit = next(self.fitting(tries), None)
            if fit is None:
                break
            place, tile, meld = fit
            table[place] = meld
            rack = without(rack, (tile,))
        return table, rack

    def fitting(self, tries: list[tuple[int, Tile.ValueType, Meld]]) -> Iterator[tuple[int, Tile.ValueType, Meld]]:
        """Those of the tries that are melds."""
        for start in range(0, len(tries), MELDS_A_REQUEST):
            part = tries[start : start + MELDS_A_REQUEST]
            answer = self.service.validation.ValidateMelds(ValidateMeldsRequest(melds=[meld for _, _, meld in part]))
            yield from (attempt for attempt, reading in zip(part, answer.melds, strict=True) if not reading.violations)


def without(rack: Tiles, tiles: Sequence[Tile.ValueType]) -> Tiles:
    """A rack without some of its tiles."""
    left = list(rack)
    for tile in tiles:
        left.remove(tile)
    return tuple(left)


def value(tile: Tile.ValueType) -> int:
    """The value of a numbered tile."""
    return (tile - 1) % 13 + 1


def meld_points(meld: Tiles) -> int:
    """What a meld without joker, or a group, or a run with its jokers counts."""
    naturals = [(place, value(tile)) for place, tile in enumerate(meld) if tile != TILE_JOKER]
    if len({number for _, number in naturals}) == 1:
        return naturals[0][1] * len(meld)
    place, number = naturals[0]
    return sum(range(number - place, number - place + len(meld)))


def candidate_melds(rack: Tiles) -> list[Tiles]:
    """Melds that a rack holds: groups and runs, with a joker in place of one tile where the rack has one."""
    has_joker = TILE_JOKER in rack
    faces = set(rack) - {TILE_JOKER}
    found: list[Tiles] = []
    for number in range(1, 14):
        group = sorted(tile for tile in faces if value(tile) == number)
        found += [combination for size in (3, 4) for combination in itertools.combinations(group, size)]
        if has_joker:
            found += [(*pair, TILE_JOKER) for pair in itertools.combinations(group, 2)]
    for first in ALL_FACES:
        for length in range(3, 14 - value(first) + 1):
            run = ALL_FACES[first - 1 : first - 1 + length]
            missing = [tile for tile in run if tile not in faces]
            if not missing:
                found.append(run)
            elif has_joker and len(missing) == 1:
                found.append(tuple(TILE_JOKER if tile in missing else tile for tile in run))
    return found


def best_melds(rack: Tiles) -> tuple[list[Tiles], Tiles]:
    """Melds of a rack that are worth much together, and what is left: the best of a greedy choice after each first."""
    best: tuple[list[Tiles], Tiles] = ([], rack)
    best_points = 0
    for first in candidate_melds(rack):
        chosen, left = [first], without(rack, first)
        while more := candidate_melds(left):
            following = max(more, key=meld_points)
            chosen.append(following)
            left = without(left, following)
        points = sum(map(meld_points, chosen))
        if points > best_points:
            best, best_points = (chosen, left), points
    return best


def event_text(event: GameEvent, names: dict[int, str]) -> str:
    """An event as a line; empty for what goes without saying."""
    match event.WhichOneof("event"):
        case "round_started":
            round_ = event.round_started
            draws = ", ".join(f"{names[draw.seat]} {tile_text(draw.tile)}" for draw in round_.draws)
            return f"start draw: {draws}; {names[round_.starter_seat]} starts, {round_.pool_count} tiles in the pool"
        case "tiles_played":
            played = event.tiles_played
            tiles = f"{tiles_text(played.tiles)} ({played.points} points)"
            return f"{names[played.seat]} plays {tiles}\n      {table_text(played.table)}"
        case "tiles_drawn":
            return f"{names[event.tiles_drawn.seat]} draws"
        case "turn_passed":
            return f"{names[event.turn_passed.seat]} passes"
        case "round_ended":
            blocked = event.round_ended.result.end == ROUND_END_BLOCKED
            return "the round is blocked" if blocked else "the round is over"
        case _:
            return ""


def print_change(change: GameChange, names: dict[int, str]) -> None:
    """A change as a spectator sees it."""
    for event in change.events:
        text = event_text(event, names)
        if text:
            print(f"{change.revision:4}  {text}")


def print_score(game: Game, names: dict[int, str]) -> None:
    """The final score."""
    result = game.rounds[-1]
    print("\nFinal score")
    for seat in result.seats:
        mark = "*" if seat.seat in game.winner_seats else " "
        print(
            f"  {mark} {names[seat.seat]:<4}{seat.points:+5}   {seat.tile_count:2} tiles left, value {seat.rack_value}"
        )


def play(service: Rummikub) -> Game:
    """Plays a round and returns the finished game."""
    created = service.games.CreateGame(CreateGameRequest(request_id=new_request_id())).game
    seats: dict[int, Seat] = {}
    for name in NAMES:
        request = JoinGameRequest(game_id=created.game_id, name=name, request_id=new_request_id())
        joined = service.games.JoinGame(request)
        seats[joined.seat] = Seat(name, joined.seat, service.seated(joined.seat_token))
    names = {seat.number: seat.name for seat in seats.values()}
    print(f"Game {created.game_id}: {', '.join(names.values())}")
    watching = service.games.WatchGame(WatchGameRequest(game_id=created.game_id))
    game = seats[1].service.games.StartGame(StartGameRequest(game_id=created.game_id, request_id=new_request_id())).game
    threshold = game.ruleset.initial_meld_threshold
    for update in watching:
        if update.WhichOneof("update") != "change":
            continue
        print_change(update.change, names)
        if update.change.revision < game.revision or game.state == GAME_STATE_FINISHED:
            continue
        seat = seats[game.turn.seat]
        game = seat.take_turn(seat.service.games.GetGame(GetGameRequest(game_id=game.game_id)).game, threshold)
    print_score(game, names)
    return game


@contextlib.contextmanager
def service_at(target: str) -> Iterator[str]:
    """The target if a service answers there, else that of one started for this run."""
    with grpc.insecure_channel(target) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=1)
        except grpc.FutureTimeoutError:
            pass
        else:
            print(f"Playing against the service at {target}")
            yield target
            return
    print(f"No service answers at {target}; starting one for this demo")
    with tempfile.TemporaryDirectory(prefix="rummikub-demo-") as folder:
        environment = {
            "RUMMIKUB_DATA_DIR": folder,
            **os.environ,
            "RUMMIKUB_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_LOG_LEVEL": "warning",
        }
        command = [sys.executable, "-m", "service"]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own command
            try:
                yield started_at(process)
            finally:
                process.terminate()


def started_at(process: "subprocess.Popen[str]") -> str:
    """Where a started service says that it serves."""
    for line in process.stdout or ():
        label, _, address = line.strip().partition(" ")
        if label == "gRPC":
            return address.strip()
    sys.exit("demo: the service did not start; see its message above")


def main() -> None:
    """Plays, and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("RUMMIKUB_LISTEN", "127.0.0.1:50051")
    parser.add_argument("--target", default=default, help="host:port of the service (default %(default)s)")
    target = parser.parse_args().target
    try:
        with service_at(target) as address, Rummikub(address) as service:
            play(service)
    except grpc.RpcError as error:
        sys.exit(f"demo: the service refused a call: {error_info(error).reason or error}")


if __name__ == "__main__":
    main()
