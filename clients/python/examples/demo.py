"""Plays a round of Rummikub, a person against bots, and prints each turn as a spectator sees it.

Uses the service at RUMMIKUB_LISTEN (default 127.0.0.1:50051), or starts a temporary one if none answers. The service
plays the bots; this program plays the person, with the turns that SuggestTurn suggests.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence

import grpc

from rummikub import (
    BOT_LEVEL_EASY,
    BOT_LEVEL_HARD,
    BOT_LEVEL_MEDIUM,
    MATCH_END_SINGLE_ROUND,
    PRESET_AMERICAN,
    PRESET_INTERNATIONAL,
    PRESET_OKEY,
    PRESET_OKEY_101,
    PRESET_OKEY_101_PARTNERS,
    PRESET_OKEY_PARTNERS,
    ROUND_END_BLOCKED,
    ROUND_END_VOID,
    WATCH_CONTENT_BOTH,
    AddBotRequest,
    BotLevel,
    CreateGameRequest,
    DiscardGameEndOptions,
    DiscardRuleset,
    Game,
    GameChange,
    GameEndOptions,
    GameEvent,
    HandPart,
    HandStanding,
    JoinGameRequest,
    Meld,
    MeldingRuleset,
    Placement,
    Preset,
    Ruleset,
    Rummikub,
    StartGameRequest,
    SuggestTurnRequest,
    SuggestTurnResponse,
    Table,
    Tile,
    TilesLaid,
    explain,
    tile_name,
)

NAME = "Ann"
BOTS = {"Easy": BOT_LEVEL_EASY, "Medium": BOT_LEVEL_MEDIUM, "Hard": BOT_LEVEL_HARD, "Fourth": BOT_LEVEL_MEDIUM}
"""The levels of the bots by name: of three, and of as many as the rules need."""
PAINTS = {"R": "31", "B": "34", "K": "1", "O": "33", "J": "35", "F": "35"}
"""The ANSI code of each color."""
DISCARDS = (
    PRESET_OKEY,
    PRESET_OKEY_PARTNERS,
    PRESET_OKEY_101,
    PRESET_OKEY_101_PARTNERS,
    PRESET_AMERICAN,
    PRESET_INTERNATIONAL,
)
"""The presets of games of discards."""


def tile_text(tile: Tile.ValueType) -> str:
    """Formats a tile: `R7` for TILE_RED_7, `J` for the joker; colored on a terminal."""
    text = tile_name(tile)
    return f"\033[{PAINTS[text[0]]}m{text}\033[0m" if sys.stdout.isatty() else text


def tiles_text(tiles: Sequence[Tile.ValueType]) -> str:
    """Formats tiles."""
    return " ".join(map(tile_text, tiles))


def table_text(table: Table) -> str:
    """Formats a table: its melds in a line, or each row of a grid in a line of its own."""
    if table.placements:
        return "\n      ".join(grid_lines(table.placements))
    return melds_text(table.melds) or "."


def melds_text(melds: Iterable[Meld | HandPart]) -> str:
    """Formats melds in a line."""
    return " | ".join(f"[{tiles_text(meld.tiles)}]" for meld in melds)


def grid_lines(placements: Iterable[Placement]) -> list[str]:
    """Returns the rows of a grid from the top; empty cells are dots."""
    cells = {(placement.x, placement.y): placement.tile for placement in placements}
    columns, rows = zip(*cells, strict=True)
    width = max(len(tile_name(tile)) for tile in cells.values())

    def cell_text(x: int, y: int) -> str:
        tile = cells.get((x, y))
        return tile_text(tile) + " " * (width - len(tile_name(tile))) if tile else ".".ljust(width)

    return [
        " ".join(cell_text(x, y) for x in range(min(columns), max(columns) + 1)).rstrip()
        for y in range(min(rows), max(rows) + 1)
    ]


def take_turn(person: Rummikub, game_id: str) -> SuggestTurnResponse:
    """Takes the turn that the service suggests; returns what it suggested."""
    suggested = person.analysis.SuggestTurn(SuggestTurnRequest(game_id=game_id))
    person.turns.PlayTurn(suggested.turn)
    return suggested


def hand_text(rack: Sequence[Tile.ValueType], lacks: HandStanding) -> str:
    """Formats the rack of a game of discards with what it lacks."""
    others = tiles_text(lacks.spare)
    return f"{tiles_text(rack)}; " + (f"exchange {lacks.missing} of {others}" if lacks.missing else f"{others} can go")


def event_text(event: GameEvent, names: dict[int, str]) -> str:
    """Returns an event as text; "" for events that need no line."""
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
        case "player_knocked":
            return f"{names[event.player_knocked.seat]} knocks"
        case "turn_timed_out":
            return f"{names[event.turn_timed_out.seat]} runs out of time"
        case "round_ended":
            ends = {ROUND_END_BLOCKED: "blocked", ROUND_END_VOID: "void"}
            return f"the round is {ends.get(event.round_ended.result.round_end, 'over')}"
        case _:
            return discard_text(event, names)


def discard_text(event: GameEvent, names: dict[int, str]) -> str:
    """Returns an event of a game of discards as text; "" for events that need no line."""
    match event.WhichOneof("event"):
        case "hands_dealt":
            dealt = event.hands_dealt
            starts = f"{names[dealt.turn_order[0]]} starts, {dealt.pool_count} tiles in the pool"
            shown = {"indicator": dealt.indicator, "okey": dealt.okey, "trump": dealt.trump}
            face_up = ", ".join(f"{name} {tile_text(tile)}" for name, tile in shown.items() if tile)
            return f"{face_up}; {starts}" if face_up else starts
        case "discard_taken":
            taken = event.discard_taken
            return f"{names[taken.seat]} takes {tile_text(taken.tile)} of {names[taken.from_seat]}"
        case "tile_discarded":
            return f"{names[event.tile_discarded.seat]} discards {tile_text(event.tile_discarded.tile)}"
        case "indicator_shown":
            return f"{names[event.indicator_shown.seat]} shows the indicator's twin"
        case "hand_finished":
            finished = event.hand_finished
            discard = f"{names[finished.seat]} finishes with {tile_text(finished.tile)}"
            return f"{discard}{finished.name and f': {finished.name}'}\n      {melds_text(finished.hand)}"
        case _:
            return table_event_text(event, names)


def table_event_text(event: GameEvent, names: dict[int, str]) -> str:
    """Returns an event at the table of a game of discards as text; "" for events that need no line."""
    match event.WhichOneof("event"):
        case "tiles_laid":
            laid = event.tiles_laid
            return f"{names[laid.seat]} {laid_text(laid)}\n      {melds_text(laid.table)}"
        case "discard_returned":
            return f"{names[event.discard_returned.seat]} puts {tile_text(event.discard_returned.tile)} back"
        case "penalty_scored":
            return f"{names[event.penalty_scored.seat]} gets {event.penalty_scored.points} penalty points"
        case "rack_finished":
            finished = event.rack_finished
            way = " by a Foot" if finished.is_foot else ""
            return f"{names[finished.seat]} finishes{way} with {tile_text(finished.tile)}"
        case "trump_taken":
            return f"{names[event.trump_taken.seat]} takes the trump {tile_text(event.trump_taken.tile)}"
        case "three_tiles_left":
            return f"{names[event.three_tiles_left.seat]} has three tiles left"
        case "empty_pool_passed":
            return f"{names[event.empty_pool_passed.seat]} takes no tile"
        case _:
            return ""


def laid_text(laid: TilesLaid) -> str:
    """Formats what a player lays: an opening with its points or pairs, or other tiles."""
    if not laid.HasField("opening"):
        return f"lays {tiles_text(laid.tiles)}"
    unit = "pairs" if laid.opening.is_pairs else "points"
    return f"opens with {tiles_text(laid.tiles)} ({laid.opening.amount} {unit})"


def print_change(change: GameChange, names: dict[int, str]) -> None:
    """Prints a change as a spectator sees it."""
    for event in change.events:
        text = event_text(event, names)
        if text:
            print(f"{change.revision:4}  {text}", flush=True)


def print_score(game: Game, names: dict[int, str]) -> None:
    """Prints the final score."""
    print("\nFinal score")
    for seat in game.rounds[-1].seats:
        mark = "*" if seat.seat in game.winner_seats else " "
        left = f"{seat.tile_count:2} tiles left, value {seat.rack_value}"
        print(f"  {mark} {names[seat.seat]:<7}{seat.points:+5}   {left}")


def bots_of(game: Game) -> dict[str, BotLevel.ValueType]:
    """Returns the levels of the bots by name: three, unless the rules need more or have fewer seats."""
    rules = game.ruleset
    deal = rules.discard.deal if rules.HasField("discard") else rules.melding.deal
    count = min(max(3, deal.players_min - 1), deal.players_max - 1)
    return dict(list(BOTS.items())[:count])


def rules_of(preset: Preset.ValueType) -> Ruleset:
    """Returns the rules of a preset for one round."""
    if preset in DISCARDS:
        return Ruleset(discard=DiscardRuleset(preset=preset, game_end=DiscardGameEndOptions(match_rounds=1)))
    game_end = GameEndOptions(match_end=MATCH_END_SINGLE_ROUND)
    return Ruleset(melding=MeldingRuleset(preset=preset, game_end=game_end))


def play(service: Rummikub, preset: Preset.ValueType) -> Game:
    """Plays a round and returns the finished game."""
    created = service.games.CreateGame(CreateGameRequest(ruleset=rules_of(preset)))
    game_id, host = created.game.game_id, service.seated(created.host_token)
    joined = host.games.JoinGame(JoinGameRequest(game_id=game_id, name=NAME))
    person = service.seated(joined.seat_token)
    bots = bots_of(created.game)
    etag = joined.game.etag
    for name, level in bots.items():
        etag = person.games.AddBot(AddBotRequest(game_id=game_id, level=level, name=name)).game.etag
    watch = person.watch(game_id, etag=etag, content=WATCH_CONTENT_BOTH)  # from the lobby on: bots act at once
    game = person.games.StartGame(StartGameRequest(game_id=game_id)).game
    names = {player.seat: player.name for player in game.players}
    print(f"Game {game_id}: {NAME} against the bots {', '.join(bots)}")
    for update in watch:
        print_change(update.change, names)
        if update.HasField("snapshot") or update.HasField("game"):
            game = update.snapshot if update.HasField("snapshot") else update.game
            if game.turn.seat == joined.seat:
                suggested = take_turn(person, game_id)
                if suggested.HasField("hand"):
                    print(f"      {NAME} has {hand_text(game.rack, suggested.hand)}")
    print_score(game, names)
    return game


@contextlib.contextmanager
def service_at(target: str) -> Iterator[str]:
    """Yields the target if a service answers there, else the address of a temporary service."""
    with grpc.insecure_channel(target) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=1)
        except grpc.FutureTimeoutError:
            pass
        else:
            print(f"Playing against the service at {target}")
            yield target
            return
    print(f"No service answers at {target} without TLS; starting one for this demo", flush=True)
    with temporary_service() as address:
        yield address


@contextlib.contextmanager
def temporary_service(**settings: str) -> Iterator[str]:
    """Yields the address of a service that runs until the end of the block, with settings beside those of the demo."""
    with tempfile.TemporaryDirectory(prefix="rummikub-demo-") as folder:
        environment = {
            **os.environ,
            "RUMMIKUB_DATA_DIR": folder,
            "RUMMIKUB_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_METRICS_LISTEN": "127.0.0.1:0",
            "RUMMIKUB_VALIDATION_LISTEN": "",
            "RUMMIKUB_TLS_CERT": "",
            "RUMMIKUB_TLS_KEY": "",
            "RUMMIKUB_LOG_LEVEL": "warning",
            **settings,
        }
        command = [sys.executable, "-m", "service"]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield started_at(process)
            finally:
                process.terminate()


def started_at(process: "subprocess.Popen[str]") -> str:
    """Returns the address that a starting service prints."""
    for line in process.stdout or ():
        label, _, address = line.strip().partition(" ")
        if label == "gRPC":
            return address.strip()
    sys.exit("demo: the service did not start; see its message above")


def arguments(description: str | None) -> tuple[str, Preset.ValueType]:
    """Returns the address and the preset in the command line's arguments."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("RUMMIKUB_LISTEN", "127.0.0.1:50051")
    parser.add_argument("--target", default=default, help="host:port of the service (default %(default)s)")
    presets = [name.removeprefix("PRESET_") for name, number in Preset.items() if number]
    parser.add_argument(
        "--preset",
        type=str.upper,
        choices=presets,
        default="SABRA",
        metavar="NAME",
        help="the rules (default %(default)s)",
    )
    parsed = parser.parse_args()
    return parsed.target, Preset.Value(f"PRESET_{parsed.preset}")


def main() -> None:
    """Plays a round."""
    target, preset = arguments(__doc__)
    try:
        with service_at(target) as address, Rummikub(address) as service:
            play(service, preset)
    except grpc.RpcError as error:
        sys.exit(f"demo: {explain(error, target)}")
    except BrokenPipeError:  # the reader has closed the pipe, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # swallows the output at exit
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
