"""Whole games as text: each change with its action (>), its events (-) and the position after it (=).

There is a game of every preset, and some with default rules. The test repeats the actions of the files and compares
the results. If the engine changes on purpose, `python tests/engine/test_playthroughs.py --write` rewrites the files:
review the diff before you commit it.
"""

import argparse
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, fields, replace
from enum import Enum
from pathlib import Path
from textwrap import wrap
from typing import Any, get_args, get_type_hints

import pytest

from engine.melding.game import round_of, rules_of
from engine.options import text_of
from engine.room_settings import DEFAULT_SETTINGS, RoomSettings

if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from engine.actions import (
    Action,
    Join,
    StandIn,
    TimeOut,
)
from engine.deal import Shuffle
from engine.discard import notation as discard_notation
from engine.discard.events import HandsDealt
from engine.discard.melds import Arrangement
from engine.discard.presets import PRESETS as DISCARD_PRESETS
from engine.discard.round import DiscardRound, ToDiscard
from engine.discard.ruleset import Preset as DiscardPreset
from engine.discard.ruleset import Ruleset as DiscardRuleset
from engine.events import (
    Event,
    GameCreated,
    GameEnded,
    RoundEnded,
    TurnStarted,
)
from engine.game import Game
from engine.melding.actions import PlayTiles
from engine.melding.events import (
    IllegalPlayShown,
    RoundStarted,
    TilesPlayed,
)
from engine.melding.grid.cells import Grid
from engine.melding.melds import read_meld
from engine.melding.notation import format_position, format_table, parse_position, parse_table, position_of
from engine.melding.round import Choosing, Drawing, Drawn, Open
from engine.melding.round import MeldingRound as Round
from engine.melding.ruleset import (
    SABRA,
    MatchEnd,
    Preset,
    ScoreBlockedPoints,
    ScoreBlockedWinner,
    TurnDirection,
)
from engine.melding.table import ProposedTable, is_same_table, melds_of
from engine.notation import format_rack, format_tile, parse_tile, parse_tiles
from engine.record import record_of
from engine.record_text import format_record, parse_record
from engine.tiles import JOKER, Tile
from engine.turns import Applied, apply, create
from engine.unions import BotAction, RoundStart
from engine.unions import Ruleset as AnyRuleset
from support.rooms import Rules, parts, room, room_of

GOLDEN = Path(__file__).parent / "golden"

WIDTH = 118

AnyRules = Rules | DiscardRuleset

SCENARIOS: Mapping[str, tuple[int, int, AnyRules]] = {
    "two_players": (33, 2, SABRA),
    "three_players": (5, 3, replace(SABRA, turn_direction=TurnDirection.COUNTERCLOCKWISE)),
    "four_players": (44, 4, SABRA),
    "blocked": (0, 3, replace(SABRA, score_blocked_winner=ScoreBlockedWinner.FEWEST_TILES)),
    "time_outs": (0, 2, room(SABRA, turn_time_limit_seconds=30, score_blocked_points=ScoreBlockedPoints.NORMAL)),
    "several_rounds": (9, 4, replace(SABRA, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2)),
    "absent_players": (
        421,
        3,
        room(
            SABRA,
            turn_time_limit_seconds=30,
            absent_after_timeouts=1,
            match_end=MatchEnd.FIXED_ROUNDS,
            match_rounds=2,
        ),
    ),
    "presets/SABRA": (0, 2, room_of(Preset.SABRA)),
    "presets/INTL_OFFICIAL": (250, 4, room_of(Preset.INTL_OFFICIAL)),
    "presets/JUMBO_DE": (0, 3, room_of(Preset.JUMBO_DE)),
    "presets/WIKI_EN": (4, 3, room_of(Preset.WIKI_EN)),
    "presets/GUIDE_A": (0, 2, room_of(Preset.GUIDE_A)),
    "presets/GUIDE_B": (24, 3, room_of(Preset.GUIDE_B)),
    "presets/WIKI_FR": (3, 2, room_of(Preset.WIKI_FR)),
    "presets/ES": (3, 2, room_of(Preset.ES)),
    "presets/GUIDE_4": (13, 2, room_of(Preset.GUIDE_4)),
    "presets/BOOK_1978": (6, 2, room_of(Preset.BOOK_1978)),
    "presets/MSO_2019": (71, 2, room_of(Preset.MSO_2019)),
    "presets/VATIKAN": (3, 2, room_of(Preset.VATIKAN)),
    "presets/MACHIAVELLI": (3, 2, room_of(Preset.MACHIAVELLI)),
    "presets/TAHITI": (3, 2, room_of(Preset.TAHITI)),
    "presets/GUADALUPE": (3, 2, room_of(Preset.GUADALUPE)),
    "presets/SHANGHAI": (5, 3, room_of(Preset.SHANGHAI)),
    "presets/MANIPULATION": (0, 3, room_of(Preset.MANIPULATION)),
    "presets/SIX_COLORS": (4, 2, room_of(Preset.SIX_COLORS)),
    "presets/CAROUSEL": (0, 3, room_of(Preset.CAROUSEL)),
    "presets/CROSS": (17, 2, room_of(Preset.CROSS)),
    "presets/TWIST": (121, 2, room_of(Preset.TWIST)),
    "presets/CARDS": (3, 2, room_of(Preset.CARDS)),
    "presets/SIX_PLAYERS": (3, 5, room_of(Preset.SIX_PLAYERS)),
    "presets/OKEY": (9, 3, replace(DISCARD_PRESETS[DiscardPreset.OKEY], players_max=3, match_rounds=2)),
    "presets/OKEY_PARTNERS": (0, 4, replace(DISCARD_PRESETS[DiscardPreset.OKEY_PARTNERS], match_rounds=1)),
    "presets/OKEY_101": (3, 3, replace(DISCARD_PRESETS[DiscardPreset.OKEY_101], players_max=3, match_rounds=1)),
    "presets/OKEY_101_PARTNERS": (1, 4, replace(DISCARD_PRESETS[DiscardPreset.OKEY_101_PARTNERS], match_rounds=1)),
    "presets/AMERICAN": (0, 3, replace(DISCARD_PRESETS[DiscardPreset.AMERICAN], players_max=3, match_rounds=1)),
    "presets/INTERNATIONAL": (
        0,
        3,
        replace(DISCARD_PRESETS[DiscardPreset.INTERNATIONAL], players_max=3, match_rounds=1),
    ),
}
"""Seed, players and ruleset of each game, by file name."""

PRESETS_SHOW: Mapping[Preset | DiscardPreset, tuple[str, ...]] = {
    Preset.INTL_OFFICIAL: ("turn passed",),
    Preset.JUMBO_DE: ("last chance started: ",),
    Preset.GUIDE_A: ("J=",),
    Preset.GUIDE_B: (" showed ", ", agrees", "not agrees", "turn penalised", "round 2 ended"),
    Preset.GUIDE_4: ("last chance started: ",),
    Preset.MSO_2019: ("redeal demanded", ", declined", "clock stopped"),
    Preset.VATIKAN: (r"13 [RBKO]1\]",),
    Preset.MACHIAVELLI: (r"13 [RBKO]1\]",),
    Preset.GUADALUPE: ("may draw again", "turn ended"),
    Preset.SHANGHAI: ("tiles drawn: ",),
    Preset.MANIPULATION: ("tiles drawn: ",),
    Preset.SIX_COLORS: (r"play .*\bG\d",),
    Preset.CAROUSEL: ("may draw again", r"knock \[", "player knocked", "KNOCKED"),
    Preset.CROSS: (r"play 1 (call )?-?\d+,-?\d+\[",),
    Preset.TWIST: tuple(rf"played \{{[^}}]*\b{letter}\b" for letter in "DMC"),
    Preset.SIX_PLAYERS: ("player joined: seat 5",),
    DiscardPreset.OKEY: ("indicator shown", "discard taken", "discard forced", "finish-hand"),
    DiscardPreset.OKEY_101: ("tiles laid", "discard taken", "penalty scored"),
    DiscardPreset.OKEY_101_PARTNERS: ("tiles laid", "opening"),
    DiscardPreset.AMERICAN: ("trump taken", "tiles laid", "empty pool passed"),
    DiscardPreset.INTERNATIONAL: ("discard taken", "tiles laid", "three tiles left", "rack finished"),
    DiscardPreset.OKEY_PARTNERS: ("hand finished", r"won by \([13], [24]\)|won by \((1, 3|2, 4)\)"),
}
"""Patterns that must occur in a preset's game."""


@pytest.mark.unmeasured
@pytest.mark.parametrize("name", SCENARIOS)
def test_golden_games_replay_to_their_text(name: str) -> None:
    golden = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert "\n".join(playthrough(name, SCENARIOS[name][2], actions_of(golden))) + "\n" == golden


@pytest.mark.unmeasured
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_record_of_a_golden_game_is_read_from_its_text_as_the_same_record(name: str) -> None:
    golden = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    applied = create(*chosen(SCENARIOS[name][2]))
    changes = [(applied.game.revision, 0, applied.events)]
    for now_ms, action in actions_of(golden):
        outcome = apply(applied.game, action, now_ms)
        assert isinstance(outcome, Applied)
        applied = outcome
        changes.append((applied.game.revision, now_ms, applied.events))
    record = record_of(changes)
    assert record.moves
    assert parse_record(format_record(record)) == record


def test_the_golden_games_match_their_names() -> None:
    files = {path.relative_to(GOLDEN).with_suffix(""): path for path in GOLDEN.rglob("*.txt")}
    texts = {name.as_posix(): path.read_text(encoding="utf-8") for name, path in files.items()}
    assert set(texts) == set(SCENARIOS)
    assert "WENT_OUT" in texts["two_players"]
    assert "BLOCKED" in texts["blocked"]
    assert texts["time_outs"].count("turn timed out") >= 3
    assert "round 2 ended" in texts["several_rounds"]
    shown = ("stand in MEDIUM", "return-to-seat", "bot ", "player returned", "start-due-round", "abandoned")
    assert [pattern for pattern in shown if pattern not in texts["absent_players"]] == []
    for players, name in ((2, "two_players"), (3, "three_players"), (4, "four_players")):
        assert texts[name].count("player joined: ") == players


def test_the_golden_games_of_the_presets_show_their_differences() -> None:
    presets: tuple[Preset | DiscardPreset, ...] = (*Preset, *DiscardPreset)
    texts = {preset: (GOLDEN / f"presets/{preset.name}.txt").read_text(encoding="utf-8") for preset in presets}
    for preset, patterns in PRESETS_SHOW.items():
        assert [pattern for pattern in patterns if not re.search(pattern, texts[preset])] == [], preset
    assert all("game ended" in text for text in texts.values())


def chosen(rules: AnyRules) -> tuple[AnyRuleset, RoomSettings]:
    """Returns the ruleset and the settings of a scenario."""
    return (rules, DEFAULT_SETTINGS) if isinstance(rules, DiscardRuleset) else parts(rules)


def playthrough(name: str, rules: AnyRules, actions: Iterator[tuple[int, Action]]) -> Iterator[str]:
    """Yields the lines of a file."""
    ruleset, settings = chosen(rules)
    title = f"Preset {ruleset.preset.name}" if "/" in name else name.replace("_", " ").capitalize()
    yield f"# {title}. Options besides the defaults: {format_options(ruleset, settings)}."
    yield from format_change(create(ruleset, settings))
    game = create(ruleset, settings).game
    for now_ms, action in actions:
        yield ""
        yield from prefixed("> ", f"{now_ms} {format_action(action)}")
        applied = apply(game, action, now_ms)
        assert isinstance(applied, Applied), applied
        game = applied.game
        yield from format_change(applied)


def format_options(ruleset: AnyRuleset, settings: RoomSettings) -> str:
    usual = {**vars_of(type(ruleset)()), **vars_of(DEFAULT_SETTINGS)}
    values = {**vars_of(ruleset), **vars_of(settings)}
    other = {name: value for name, value in values.items() if name != "preset" and value != usual[name]}
    return ", ".join(f"{option}={text_of(value)}" for option, value in other.items()) or "none"


def vars_of(options: AnyRuleset | RoomSettings) -> dict[str, object]:
    return {field.name: getattr(options, field.name) for field in fields(options)}


def format_change(applied: Applied) -> Iterator[str]:
    for event in applied.events:
        yield from prefixed("- ", format_event(event))
    for line in format_state(applied.game):
        yield from prefixed("= ", line)


def prefixed(prefix: str, text: str) -> list[str]:
    return wrap(text, WIDTH, initial_indent=prefix, subsequent_indent=prefix, break_on_hyphens=False)


def format_state(game: Game) -> Iterator[str]:
    """Yields revision, phase and totals; then the position, if any, which must parse as the same."""
    totals = " ".join(
        f"{p.seat}:{p.name}:{p.total_points}{' resigned' * p.resigned}{' absent' * (p.stand_in is not None)}"
        for p in game.players
    )
    yield f"revision {game.revision}, {type(game.phase).__name__}, {totals or 'no players'}"
    if isinstance(game.round, DiscardRound):
        yield from format_discards(game.round)
    elif game.round is not None:
        round_ = round_of(game)
        text = format_position(position_of(round_))
        read = parse_position(text)
        if isinstance(round_.table, Grid):
            assert is_same_table(read.table, round_.table)
        else:
            assert tuple(read_meld(meld, rules_of(game)) for meld in melds_of(read.table)) == round_.table
        assert (read.racks, read.pool, read.turn_seat) == (round_.racks, round_.pool, round_.turn.seat)
        yield from text.replace(" / ", " /\n").splitlines()
        yield from format_more(round_)


def format_discards(round_: DiscardRound) -> Iterator[str]:
    """Yields the position of a round of a game of discards, which must parse as the same, and the rest of it."""
    position = discard_notation.position_of(round_)
    text = discard_notation.format_position(position)
    assert discard_notation.parse_position(text) == position
    yield from text.replace(" / ", " /\n").splitlines()
    yield f"discarded {round_.discarded}" + (f", shown by {round_.shown_by}" if round_.shown_by else "")
    if isinstance(round_.step, ToDiscard) and round_.step.taken:
        yield f"taken {format_tile(round_.step.taken)}{', seen' * round_.step.is_seen}"


def format_more(round_: Round) -> Iterator[str]:
    """Yields the state of some rulesets that is not in the position."""
    if round_.river:
        yield f"River {format_rack(round_.river)}"
    match round_.step:
        case Open():
            pass
        case Choosing(tiles):
            yield f"to choose from {format_rack(tiles)}"
        case Drawing(tiles):
            yield f"drawn in this turn {format_rack(tiles)}, may draw again"
        case Drawn(tile):
            yield f"drawn in this turn {format_tile(tile)}"
    if round_.shown_play is not None:
        shown = round_.shown_play
        reasons = " ".join(reason.name for reason in shown.reasons)
        yield f"shown at {shown.revision}, {reasons}, claimed by {shown.claimed}, against {shown.against}"
    if round_.last_chance is not None:
        yield f"last turns {round_.last_chance}"
    if round_.declined:
        yield f"could have melded {round_.declined}"


def format_event(event: Event) -> str:
    match event:
        case GameCreated():
            return "game created"
        case RoundStarted(number, draws, order, _, pool):
            drawn = " ".join(f"{draw.seat}:{format_tile(draw.tile)}" for draw in draws)
            return f"round {number} dealt, {len(pool)} tiles in the pool; drawn for the start {drawn}: seat {order[0]}"
        case HandsDealt(number, order, indicator, _, pool, trump):
            dealt = f"round {number} dealt, {len(pool)} tiles in the pool"
            return f"{dealt}; indicator {discard_notation.format_face_up(indicator, trump)}; order {order}"
        case TurnStarted(turn):
            return f"seat {turn.seat} has the turn until {turn.deadline_ms}"
        case TilesPlayed(seat, tiles, points=points, pulled=pulled):
            pull = f", {format_rack(pulled)} pulled from the River" if pulled else ""
            return f"seat {seat} played {format_rack(tiles)}, {points} points{pull}"
        case IllegalPlayShown(seat, table, reasons):
            return f"seat {seat} showed {format_proposed(table)}: {' '.join(reason.name for reason in reasons)}"
        case RoundEnded(result, next_round_ms):
            seats = "; ".join(
                f"seat {s.seat} {s.tile_count} tiles of {s.rack_value}, {s.points:+} points" for s in result.seats
            )
            following = f"; the next one starts at {next_round_ms}" if next_round_ms else ""
            return f"round {result.number} ended {result.end.name}, won by {result.winners}: {seats}{following}"
        case GameEnded(winners, abandoned=abandoned):
            return f"game ended{' abandoned' * abandoned}, won by {winners}"
        case _:
            texts = (format_field(event, field) for field in fields(event))
            return f"{name_of(type(event)).replace('-', ' ')}: {', '.join(filter(None, texts))}"


def format_field(event: Event, field: Field[object]) -> str:
    """Returns a field with its name; nothing if it has its default."""
    value, name = getattr(event, field.name), field.name.replace("_", " ")
    if value == field.default:
        return ""
    match get_type_hints(type(event))[field.name]:
        case hint if hint is Tile:
            return f"{name} {format_tile(value)}"
        case hint if hint == tuple[Tile, ...]:
            return f"{name} {format_rack(value)}"
        case hint if hint == Arrangement:
            return f"{name} {discard_notation.format_hand(value)}"
        case hint if hint is bool:
            return name if value else f"not {name}"
        case _:
            return f"{name} {value.name if isinstance(value, Enum) else value}"


def name_of(kind: type) -> str:
    """Returns the name of an event or action in words: `tile-drawn`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()


def format_action(action: Action) -> str:
    match action:
        case Join(name, seat=seat, is_host=is_host):
            return f"{'host' if is_host else 'join'} {name}{f' at {seat}' if seat else ''}"
        case PlayTiles(seat, table, river_index, calls, knocks):
            pull = "" if river_index is None else f"pull {river_index} "
            return f"play {seat} {pull}{'call ' * calls}{'knock ' * knocks}{format_proposed(table)}"
        case TimeOut(draft):
            return "time-out" if draft is None else f"time-out {format_proposed(draft)}"
        case StandIn(for_absent):
            return f"bot {format_action(for_absent)}"
        case _:
            hints = get_type_hints(type(action))
            texts = (WRITERS[hints[field.name]](getattr(action, field.name)) for field in fields(action))
            return " ".join([name_of(type(action)), *texts])


def format_proposed(table: ProposedTable) -> str:
    """Returns a proposed table, with the kind of melds with several jokers, which a ruleset may require."""
    if isinstance(table, Grid):
        return format_table(table)
    texts = []
    for meld in table:
        text = format_table((meld,))
        states = meld.kind is not None and meld.tiles.count(JOKER) > 1 and text.startswith("[")
        texts.append(f"{meld.kind.name.lower() if states and meld.kind else ''}{text}")
    return " | ".join(texts) or format_table(())


def format_shuffle(shuffle: Shuffle | RoundStarted) -> str:
    assert isinstance(shuffle, Shuffle)
    return f"{format_rack(shuffle.start_draw)} {format_rack(shuffle.deal)}"


def actions_of(text: str) -> Iterator[tuple[int, Action]]:
    """Yields the actions of a playthrough, with their times."""
    for block in text.split("\n\n")[1:]:
        words = " ".join(line[2:] for line in block.splitlines() if line.startswith("> "))
        now_ms, _, action = words.partition(" ")
        yield int(now_ms), parse_action(action)


def parse_action(text: str) -> Action:
    verb, _, rest = text.partition(" ")
    if verb in {"join", "host"}:
        name, _, seat_text = rest.partition(" at ")
        return Join(name, seat=int(seat_text or 0), is_host=verb == "host")
    if verb == "time-out":
        return TimeOut(parse_table(rest) if rest else None)
    if verb == "bot":
        action = parse_action(rest)
        assert isinstance(action, BotAction)
        return StandIn(action)
    if verb == "play":
        seat_text, _, rest = rest.partition(" ")
        return parse_play_tiles(int(seat_text), rest)
    kind = ACTIONS[verb]
    hints = get_type_hints(kind)
    words = rest.split(" ", len(fields(kind)) - 1)
    values = {f.name: READERS[hints[f.name]](word) for f, word in zip(fields(kind), words, strict=True)}
    made: Action = kind(**values)
    return made


def parse_shuffle(text: str) -> Shuffle:
    start_draw, deal = (parse_tiles(tiles.strip("{} ")) for tiles in text.split("} {"))
    return Shuffle(start_draw, deal)


ACTIONS: Mapping[str, type] = {name_of(kind): kind for kind in get_args(Action)}
"""The actions by their names."""
WRITERS: Mapping[object, Callable[[Any], str]] = {
    int: str,
    str: str,
    bool: lambda value: "yes" if value else "no",
    Tile: format_tile,
    Arrangement: discard_notation.format_hand,
    Shuffle | RoundStart: format_shuffle,
    Shuffle | RoundStarted: format_shuffle,
}
READERS: Mapping[object, Callable[[str], object]] = {
    int: int,
    str: str,
    bool: lambda text: text == "yes",
    Tile: parse_tile,
    Arrangement: discard_notation.parse_hand,
    Shuffle | RoundStart: parse_shuffle,
    Shuffle | RoundStarted: parse_shuffle,
}
"""How fields of actions are written and read, by their type."""


def parse_play_tiles(seat: int, text: str) -> PlayTiles:
    """Parses `pull 3 call knock [R1 R2 R3] | ...`."""
    index, calls, knocks = None, False, False
    if text.startswith("pull "):
        _, number, text = text.split(" ", 2)
        index = int(number)
    if text.startswith("call "):
        calls, text = True, text.removeprefix("call ")
    if text.startswith("knock "):
        knocks, text = True, text.removeprefix("knock ")
    return PlayTiles(seat, parse_table(text), index, calls, knocks)


def write(*, seeds: bool) -> None:
    """Rewrites the files, from their actions, or as new games from their seeds."""
    from support import okey_games, random_play  # noqa: PLC0415 - the test itself plays no random games

    def new_game(seed: int, players: int, rules: AnyRules) -> Iterator[random_play.Change]:
        if isinstance(rules, DiscardRuleset):
            return okey_games.changes_under(rules, DEFAULT_SETTINGS, random.Random(seed))
        return random_play.random_changes(seed, players, rules)

    for name, (seed, players, ruleset) in SCENARIOS.items():
        path = GOLDEN / f"{name}.txt"
        actions = actions_of(path.read_text(encoding="utf-8")) if path.exists() else iter(())
        if seeds or not path.exists():
            changes = new_game(seed, players, ruleset)
            actions = ((change.now_ms, change.action) for change in changes if change.action)
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(playthrough(name, ruleset, actions)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Golden games: write what comes of their actions anew.")
    parser.add_argument("--write", action="store_true", required=True, help="overwrite the files in golden/")
    parser.add_argument("--seeds", action="store_true", help="play new games from the seeds, not the same actions")
    write(seeds=parser.parse_args().seeds)
