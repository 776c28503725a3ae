"""Whole games as text: each change with what was done (>), its events (-) and the position after it (=).

The test does again what the files say was done and compares all that came of it. When the engine changes on purpose,
`python tests/engine/test_playthroughs.py --write` writes the files anew: read the difference before you commit it.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from enum import Enum
from pathlib import Path
from textwrap import wrap

import pytest

if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from engine.events import (
    Event,
    GameCreated,
    GameEnded,
    PlayerJoined,
    PlayerLeft,
    PlayerResigned,
    RoundEnded,
    RoundStarted,
    TileDrawn,
    TilesPlayed,
    TurnPassed,
    TurnStarted,
    TurnTimedOut,
)
from engine.game import Game
from engine.melds import read_meld
from engine.notation import (
    format_position,
    format_rack,
    format_table,
    format_tile,
    parse_position,
    parse_table,
    parse_tiles,
    position_of,
)
from engine.ruleset import SABRA, MatchEnd, Ruleset, ScoreBlockedPoints, ScoreBlockedWinner, TurnDirection
from engine.turns import (
    Action,
    Applied,
    DrawTile,
    Join,
    Leave,
    Pass,
    PlayTiles,
    Resign,
    Shuffle,
    StartGame,
    StartNextRound,
    TimeOut,
    apply,
    create,
)

GOLDEN = Path(__file__).parent / "golden"

WIDTH = 118

SCENARIOS: Mapping[str, tuple[int, int, Ruleset]] = {
    "two_players": (33, 2, SABRA),
    "three_players": (5, 3, replace(SABRA, turn_direction=TurnDirection.COUNTERCLOCKWISE)),
    "four_players": (44, 4, SABRA),
    "blocked": (28, 3, replace(SABRA, score_blocked_winner=ScoreBlockedWinner.FEWEST_TILES)),
    "time_outs": (40, 2, replace(SABRA, turn_time_limit_seconds=30, score_blocked_points=ScoreBlockedPoints.NORMAL)),
    "several_rounds": (9, 4, replace(SABRA, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2)),
}
"""Each game by its file's name: seed, players, ruleset."""


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_done_in_a_golden_game_leads_to_what_it_says(name: str) -> None:
    golden = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert "\n".join(playthrough(name, SCENARIOS[name][2], actions_of(golden))) + "\n" == golden


def test_the_golden_games_show_what_their_names_say() -> None:
    texts = {path.stem: path.read_text(encoding="utf-8") for path in GOLDEN.glob("*.txt")}
    assert set(texts) == set(SCENARIOS)
    assert "WENT_OUT" in texts["two_players"]
    assert "BLOCKED" in texts["blocked"]
    assert texts["time_outs"].count("time ran out") >= 3
    assert "round 2 ended" in texts["several_rounds"]
    for players, name in ((2, "two_players"), (3, "three_players"), (4, "four_players")):
        assert texts[name].count(" joined at seat ") == players


def playthrough(name: str, ruleset: Ruleset, actions: Iterator[tuple[int, Action]]) -> Iterator[str]:
    """The lines of a file."""
    yield f"# {name.replace('_', ' ').capitalize()}. Options besides the defaults: {format_options(ruleset)}."
    yield from format_change(create(ruleset))
    game = create(ruleset).game
    for now_ms, action in actions:
        yield ""
        yield from prefixed("> ", f"{now_ms} {format_action(action)}")
        applied = apply(game, action, now_ms)
        assert isinstance(applied, Applied), applied
        game = applied.game
        yield from format_change(applied)


def format_options(ruleset: Ruleset) -> str:
    values = {field.name: getattr(ruleset, field.name) for field in fields(Ruleset)}
    other = {name: value for name, value in values.items() if value != getattr(SABRA, name)}
    return ", ".join(f"{k}={v.name if isinstance(v, Enum) else v}" for k, v in other.items()) or "none"


def format_change(applied: Applied) -> Iterator[str]:
    for event in applied.events:
        yield from prefixed("- ", format_event(event))
    for line in format_state(applied.game):
        yield from prefixed("= ", line)


def prefixed(prefix: str, text: str) -> list[str]:
    return wrap(text, WIDTH, initial_indent=prefix, subsequent_indent=prefix, break_on_hyphens=False)


def format_state(game: Game) -> Iterator[str]:
    """The revision, the phase, the totals; then the position, if there is one, which must read back the same."""
    totals = " ".join(f"{p.seat}:{p.name}:{p.total_points}{' resigned' * p.resigned}" for p in game.players)
    yield f"revision {game.revision}, {type(game.phase).__name__}, {totals or 'no players'}"
    if game.round is not None:
        text = format_position(position_of(game.round))
        read = parse_position(text)
        assert tuple(read_meld(meld, game.ruleset) for meld in read.table) == game.round.table
        assert (read.racks, read.pool, read.turn_seat) == (game.round.racks, game.round.pool, game.round.turn.seat)
        yield from text.replace(" / ", " /\n").splitlines()


def format_event(event: Event) -> str:  # noqa: C901 - one case an event, each a line
    match event:
        case GameCreated():
            return "game created"
        case PlayerJoined(seat, name):
            return f"{name} joined at seat {seat}"
        case PlayerLeft(seat):
            return f"seat {seat} left"
        case RoundStarted(number, draws, starter, _, pool):
            drawn = " ".join(f"{draw.seat}:{format_tile(draw.tile)}" for draw in draws)
            return f"round {number} dealt, {len(pool)} tiles in the pool; drawn for the start {drawn}: seat {starter}"
        case TurnStarted(turn):
            return f"seat {turn.seat} has the turn until {turn.deadline_ms}"
        case TilesPlayed(seat, tiles, points=points):
            return f"seat {seat} played {format_rack(tiles)}, {points} points"
        case TileDrawn(seat, tile):
            return f"seat {seat} drew {format_tile(tile)}"
        case TurnPassed(seat):
            return f"seat {seat} passed"
        case TurnTimedOut(seat, tiles):
            return f"the time ran out for seat {seat}, penalty {format_rack(tiles)}"
        case PlayerResigned(seat):
            return f"seat {seat} resigned"
        case RoundEnded(result):
            seats = "; ".join(
                f"seat {s.seat} {s.tile_count} tiles of {s.rack_value}, {s.points:+} points" for s in result.seats
            )
            return f"round {result.number} ended {result.end.name}, won by {result.winners}: {seats}"
        case GameEnded(winners):
            return f"game ended, won by {winners}"


def format_action(action: Action) -> str:
    match action:
        case Join(name):
            return f"join {name}"
        case Leave(seat):
            return f"leave {seat}"
        case StartGame(seat, shuffle):
            return f"start {seat} {format_shuffle(shuffle)}"
        case StartNextRound(seat, shuffle):
            return f"next {seat} {format_shuffle(shuffle)}"
        case PlayTiles(seat, table):
            return f"play {seat} {format_table(table)}"
        case DrawTile(seat):
            return f"draw {seat}"
        case Pass(seat):
            return f"pass {seat}"
        case TimeOut():
            return "time-out"
        case Resign(seat):
            return f"resign {seat}"


def format_shuffle(shuffle: Shuffle) -> str:
    return f"{format_rack(shuffle.start_draw)} {format_rack(shuffle.deal)}"


def actions_of(text: str) -> Iterator[tuple[int, Action]]:
    """What was done in a playthrough, and when."""
    for block in text.split("\n\n")[1:]:
        words = " ".join(line[2:] for line in block.splitlines() if line.startswith("> "))
        now_ms, _, action = words.partition(" ")
        yield int(now_ms), parse_action(action)


def parse_action(text: str) -> Action:
    verb, _, rest = text.partition(" ")
    if verb == "join":
        return Join(rest)
    if verb == "time-out":
        return TimeOut()
    seat_text, _, rest = rest.partition(" ")
    seat = int(seat_text)
    if verb == "play":
        return PlayTiles(seat, parse_table(rest))
    if verb in {"start", "next"}:
        start_draw, deal = (parse_tiles(tiles.strip("{} ")) for tiles in rest.split("} {"))
        return (StartGame if verb == "start" else StartNextRound)(seat, Shuffle(start_draw, deal))
    plain: dict[str, Callable[[int], Action]] = {"leave": Leave, "draw": DrawTile, "pass": Pass, "resign": Resign}
    return plain[verb](seat)


def write(*, seeds: bool) -> None:
    """Writes the files: what they say was done, done again, or new games from their seeds."""
    from random_play import random_changes  # noqa: PLC0415 - the test plays what is written, not at random

    for name, (seed, players, ruleset) in SCENARIOS.items():
        path = GOLDEN / f"{name}.txt"
        actions = actions_of(path.read_text(encoding="utf-8")) if path.exists() else iter(())
        if seeds or not path.exists():
            changes = random_changes(seed, players, ruleset)
            actions = ((change.now_ms, change.action) for change in changes if change.action)
        path.write_text("\n".join(playthrough(name, ruleset, actions)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Golden games: write what comes of their actions anew.")
    parser.add_argument("--write", action="store_true", required=True, help="overwrite the files in golden/")
    parser.add_argument("--seeds", action="store_true", help="play new games from the seeds, not the same actions")
    write(seeds=parser.parse_args().seeds)
