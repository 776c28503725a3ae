"""Whole games as text: each change with its action (>), its events (-) and the position after it (=).

There is a game of every preset, and some with default rules. The test repeats the actions of the files and compares
the results. If the engine changes on purpose, `python tests/engine/test_playthroughs.py --write` rewrites the files:
review the diff before you commit it.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import wrap

import pytest

from engine.melding.ruleset import OPTIONS
from engine.options import text_of

if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from engine.actions import (
    AbortGame,
    Action,
    AnnounceRematch,
    Join,
    KickPlayer,
    Leave,
    RenewSeatToken,
    Resign,
    ReturnToSeat,
    SetReady,
    StandIn,
    StartDueRound,
    StartGame,
    StartNextRound,
    TimeOut,
)
from engine.deal import Shuffle
from engine.events import (
    AbortRequested,
    ClockStopped,
    Event,
    GameAborted,
    GameCreated,
    GameEnded,
    PlayerAbsent,
    PlayerJoined,
    PlayerKicked,
    PlayerLeft,
    PlayerReadied,
    PlayerResigned,
    PlayerReturned,
    RematchCreated,
    RoundEnded,
    SeatTokenRenewed,
    TurnStarted,
    TurnTimedOut,
)
from engine.game import Game
from engine.melding.actions import ClaimError, DrawTile, LayOnRiver, Pass, PlayTiles, RequestRedeal, TurnAction
from engine.melding.events import (
    ErrorClaimed,
    IllegalPlayShown,
    LastChanceStarted,
    RedealDemanded,
    RiverTileLaid,
    RoundStarted,
    TileDrawn,
    TilesDrawn,
    TilesOffered,
    TilesPlayed,
    TurnEnded,
    TurnPassed,
    TurnPenalised,
)
from engine.melding.melds import ProposedMeld, read_meld
from engine.melding.notation import format_position, format_table, parse_position, parse_table, position_of
from engine.melding.presets import PRESETS
from engine.melding.round import Choosing, Drawn, Open
from engine.melding.ruleset import (
    SABRA,
    MatchEnd,
    Preset,
    Ruleset,
    ScoreBlockedPoints,
    ScoreBlockedWinner,
    TurnDirection,
)
from engine.notation import format_rack, format_tile, parse_tile, parse_tiles
from engine.record import record_of
from engine.record_text import format_record, parse_record
from engine.tiles import JOKER
from engine.turns import Applied, apply, create
from engine.unions import Round

GOLDEN = Path(__file__).parent / "golden"

WIDTH = 118

SCENARIOS: Mapping[str, tuple[int, int, Ruleset]] = {
    "two_players": (33, 2, SABRA),
    "three_players": (5, 3, replace(SABRA, turn_direction=TurnDirection.COUNTERCLOCKWISE)),
    "four_players": (44, 4, SABRA),
    "blocked": (0, 3, replace(SABRA, score_blocked_winner=ScoreBlockedWinner.FEWEST_TILES)),
    "time_outs": (0, 2, replace(SABRA, turn_time_limit_seconds=30, score_blocked_points=ScoreBlockedPoints.NORMAL)),
    "several_rounds": (9, 4, replace(SABRA, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2)),
    "absent_players": (
        421,
        3,
        replace(
            SABRA,
            turn_time_limit_seconds=30,
            absent_after_timeouts=1,
            match_end=MatchEnd.FIXED_ROUNDS,
            match_rounds=2,
        ),
    ),
    "presets/SABRA": (0, 2, PRESETS[Preset.SABRA]),
    "presets/INTL_OFFICIAL": (250, 4, PRESETS[Preset.INTL_OFFICIAL]),
    "presets/JUMBO_DE": (0, 3, PRESETS[Preset.JUMBO_DE]),
    "presets/WIKI_EN": (4, 3, PRESETS[Preset.WIKI_EN]),
    "presets/GUIDE_A": (0, 2, PRESETS[Preset.GUIDE_A]),
    "presets/GUIDE_B": (33, 3, PRESETS[Preset.GUIDE_B]),
    "presets/WIKI_FR": (3, 2, PRESETS[Preset.WIKI_FR]),
    "presets/ES": (3, 2, PRESETS[Preset.ES]),
    "presets/GUIDE_4": (13, 2, PRESETS[Preset.GUIDE_4]),
    "presets/BOOK_1978": (6, 2, PRESETS[Preset.BOOK_1978]),
    "presets/MSO_2019": (71, 2, PRESETS[Preset.MSO_2019]),
    "presets/VATIKAN": (3, 2, PRESETS[Preset.VATIKAN]),
    "presets/MACHIAVELLI": (3, 2, PRESETS[Preset.MACHIAVELLI]),
    "presets/CARDS": (3, 2, PRESETS[Preset.CARDS]),
    "presets/SIX_PLAYERS": (3, 5, PRESETS[Preset.SIX_PLAYERS]),
}
"""Seed, players and ruleset of each game, by file name."""

DECLINED = " and could have melded"

PRESETS_SHOW: Mapping[Preset, tuple[str, ...]] = {
    Preset.INTL_OFFICIAL: (" passed",),
    Preset.JUMBO_DE: ("one more turn for ",),
    Preset.GUIDE_A: ("J=",),
    Preset.GUIDE_B: (" showed ", "claims an error", "sees no error", " for an illegal play", "round 2 ended"),
    Preset.GUIDE_4: ("one more turn for ",),
    Preset.MSO_2019: ("demanded a new deal", DECLINED, " ms left"),
    Preset.VATIKAN: (r"13 [RBKO]1\]",),
    Preset.MACHIAVELLI: (r"13 [RBKO]1\]",),
    Preset.SIX_PLAYERS: (" joined at seat 5",),
}
"""Patterns that must occur in a preset's game."""


@pytest.mark.unmeasured
@pytest.mark.parametrize("name", SCENARIOS)
def test_golden_games_replay_to_their_text(name: str) -> None:
    golden = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert "\n".join(playthrough(name, SCENARIOS[name][2], actions_of(golden))) + "\n" == golden


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_record_of_a_golden_game_is_read_from_its_text_as_the_same_record(name: str) -> None:
    golden = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    applied = create(SCENARIOS[name][2])
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
    assert texts["time_outs"].count("time ran out") >= 3
    assert "round 2 ended" in texts["several_rounds"]
    shown = ("is absent: EASY plays", "> ", " return ", "bot ", " returned", "pause-end", "abandoned")
    assert [pattern for pattern in shown if pattern not in texts["absent_players"]] == []
    for players, name in ((2, "two_players"), (3, "three_players"), (4, "four_players")):
        assert texts[name].count(" joined at seat ") == players


def test_the_golden_games_of_the_presets_show_their_differences() -> None:
    texts = {preset: (GOLDEN / f"presets/{preset.name}.txt").read_text(encoding="utf-8") for preset in Preset}
    for preset, patterns in PRESETS_SHOW.items():
        assert [pattern for pattern in patterns if not re.search(pattern, texts[preset])] == [], preset
    assert all("game ended" in text for text in texts.values())


def playthrough(name: str, ruleset: Ruleset, actions: Iterator[tuple[int, Action]]) -> Iterator[str]:
    """Yields the lines of a file."""
    title = f"Preset {ruleset.preset.name}" if "/" in name else name.replace("_", " ").capitalize()
    yield f"# {title}. Options besides the defaults: {format_options(ruleset)}."
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
    values = {option: getattr(ruleset, option) for option in OPTIONS}
    other = {option: value for option, value in values.items() if value != getattr(SABRA, option)}
    return ", ".join(f"{option}={text_of(value)}" for option, value in other.items()) or "none"


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
    if game.round is not None:
        text = format_position(position_of(game.round))
        read = parse_position(text)
        assert tuple(read_meld(meld, game.ruleset) for meld in read.table) == game.round.table
        assert (read.racks, read.pool, read.turn_seat) == (game.round.racks, game.round.pool, game.round.turn.seat)
        yield from text.replace(" / ", " /\n").splitlines()
        yield from format_more(game.round)


def format_more(round_: Round) -> Iterator[str]:
    """Yields the state of some rulesets that is not in the position."""
    if round_.river:
        yield f"River {format_rack(round_.river)}"
    match round_.step:
        case Open():
            pass
        case Choosing(tiles):
            yield f"to choose from {format_rack(tiles)}"
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


def format_event(event: Event) -> str:  # noqa: C901, PLR0911, PLR0912 - one case an event, each a line
    match event:
        case GameCreated():
            return "game created"
        case PlayerJoined(seat, name, is_host=is_host, starts_ms=starts_ms):
            starts = f"; the game starts at {starts_ms}" if starts_ms else ""
            return f"{name} joined at seat {seat}{' as the host' * is_host}{starts}"
        case PlayerLeft(seat, new_host):
            return f"seat {seat} left{format_new_host(new_host)}"
        case PlayerKicked(seat, new_host):
            return f"seat {seat} was removed{format_new_host(new_host)}"
        case PlayerReadied(seat, is_ready):
            return f"seat {seat} is {'ready' if is_ready else 'not ready'}"
        case RoundStarted(number, draws, order, _, pool):
            drawn = " ".join(f"{draw.seat}:{format_tile(draw.tile)}" for draw in draws)
            return f"round {number} dealt, {len(pool)} tiles in the pool; drawn for the start {drawn}: seat {order[0]}"
        case TurnStarted(turn):
            return f"seat {turn.seat} has the turn until {turn.deadline_ms}"
        case TilesPlayed(seat, tiles, points=points, pulled=pulled):
            pull = f", {format_rack(pulled)} pulled from the River" if pulled else ""
            return f"seat {seat} played {format_rack(tiles)}, {points} points{pull}"
        case TileDrawn(seat, tile, declined):
            return f"seat {seat} drew {format_tile(tile)}{DECLINED * declined}"
        case TilesDrawn(seat, tiles, declined):
            return f"seat {seat} drew {format_rack(tiles)}{DECLINED * declined}"
        case TilesOffered(seat, tiles, declined):
            return f"seat {seat} chooses from {format_rack(tiles)}{DECLINED * declined}"
        case RiverTileLaid(seat, tile):
            return f"seat {seat} laid {format_tile(tile)} on the River"
        case TurnEnded(seat, declined):
            return f"seat {seat} ended the turn{DECLINED * declined}"
        case TurnPassed(seat, declined):
            return f"seat {seat} passed{DECLINED * declined}"
        case TurnPenalised(seat, tiles):
            return f"seat {seat} drew {format_rack(tiles)} for an illegal play"
        case IllegalPlayShown(seat, table, reasons):
            return f"seat {seat} showed {format_proposed(table)}: {' '.join(reason.name for reason in reasons)}"
        case ErrorClaimed(seat, agrees):
            return f"seat {seat} {'claims an error' if agrees else 'sees no error'}"
        case RedealDemanded(seat):
            return f"seat {seat} demanded a new deal"
        case LastChanceStarted(turns):
            return f"one more turn for {turns}"
        case TurnTimedOut(seat, tiles):
            return f"the time ran out for seat {seat}, penalty {format_rack(tiles)}"
        case PlayerResigned(seat):
            return f"seat {seat} resigned"
        case PlayerAbsent(seat, stand_in):
            return f"seat {seat} is absent: {stand_in.name if stand_in else 'nobody'} plays"
        case PlayerReturned(seat):
            return f"seat {seat} returned"
        case ClockStopped(seat, time_left_ms):
            return f"seat {seat} has {time_left_ms} ms left"
        case RoundEnded(result, next_round_ms):
            seats = "; ".join(
                f"seat {s.seat} {s.tile_count} tiles of {s.rack_value}, {s.points:+} points" for s in result.seats
            )
            following = f"; the next one starts at {next_round_ms}" if next_round_ms else ""
            return f"round {result.number} ended {result.end.name}, won by {result.winners}: {seats}{following}"
        case GameEnded(winners, abandoned=abandoned):
            return f"game ended{' abandoned' * abandoned}, won by {winners}"
        case AbortRequested(seat):
            return f"seat {seat} wants to abort the game"
        case GameAborted(by_host):
            return f"game aborted by {'the host' if by_host else 'all'}"
        case SeatTokenRenewed(seat):
            return f"seat {seat} has a new token"
        case RematchCreated(game_id):
            return f"rematch {game_id}"


def format_new_host(seat: int | None) -> str:
    return "" if seat is None else f", seat {seat} is the host"


def format_action(action: Action) -> str:  # noqa: C901, PLR0911, PLR0912 - one case an action, each a line
    match action:
        case Join(name, seat=seat, is_host=is_host):
            return f"{'host' if is_host else 'join'} {name}{f' at {seat}' if seat else ''}"
        case KickPlayer(seat, kicked):
            return f"kick {seat} {kicked}"
        case SetReady(seat, is_ready):
            return f"ready {seat} {'yes' if is_ready else 'no'}"
        case AbortGame(seat):
            return f"abort {seat}"
        case RenewSeatToken(seat):
            return f"renew {seat}"
        case AnnounceRematch(game_id):
            return f"rematch {game_id}"
        case Leave(seat):
            return f"leave {seat}"
        case StartGame(seat, shuffle):
            return f"start {seat} {format_shuffle(shuffle)}"
        case StartNextRound(seat, shuffle):
            return f"next {seat} {format_shuffle(shuffle)}"
        case PlayTiles(seat, table, river_index, calls):
            pull = "" if river_index is None else f"pull {river_index} "
            return f"play {seat} {pull}{'call ' * calls}{format_proposed(table)}"
        case LayOnRiver(seat, tile):
            return f"lay {seat} {format_tile(tile)}"
        case ClaimError(seat, revision, agrees):
            return f"claim {seat} {revision} {'yes' if agrees else 'no'}"
        case RequestRedeal(seat, shuffle):
            return f"redeal {seat} {format_shuffle(shuffle)}"
        case DrawTile(seat):
            return f"draw {seat}"
        case Pass(seat):
            return f"pass {seat}"
        case TimeOut(draft):
            return "time-out" if draft is None else f"time-out {format_proposed(draft)}"
        case Resign(seat):
            return f"resign {seat}"
        case ReturnToSeat(seat):
            return f"return {seat}"
        case StartDueRound(shuffle):
            return f"pause-end {format_shuffle(shuffle)}"
        case StandIn(for_absent):
            return f"bot {format_action(for_absent)}"


def format_proposed(table: tuple[ProposedMeld, ...]) -> str:
    """Returns a proposed table, with the kind of melds with several jokers, which a ruleset may require."""
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


def parse_action(text: str) -> Action:  # noqa: C901 - one case a verb
    verb, _, rest = text.partition(" ")
    if verb in {"join", "host"}:
        name, _, seat_text = rest.partition(" at ")
        return Join(name, seat=int(seat_text or 0), is_host=verb == "host")
    if verb == "rematch":
        return AnnounceRematch(rest)
    if verb == "time-out":
        return TimeOut(parse_table(rest) if rest else None)
    if verb == "pause-end":
        return StartDueRound(parse_shuffle(rest))
    if verb == "bot":
        action = parse_action(rest)
        assert isinstance(action, TurnAction | ClaimError)
        return StandIn(action)
    seat_text, _, rest = rest.partition(" ")
    seat = int(seat_text)
    if verb == "play":
        return parse_play_tiles(seat, rest)
    if verb == "lay":
        return LayOnRiver(seat, parse_tile(rest))
    if verb == "claim":
        revision, _, answer = rest.partition(" ")
        return ClaimError(seat, int(revision), agrees=answer == "yes")
    if verb == "kick":
        return KickPlayer(seat, int(rest))
    if verb == "ready":
        return SetReady(seat, is_ready=rest == "yes")
    if verb in SHUFFLED:
        return SHUFFLED[verb](seat, parse_shuffle(rest))
    return PLAIN[verb](seat)


def parse_shuffle(text: str) -> Shuffle:
    start_draw, deal = (parse_tiles(tiles.strip("{} ")) for tiles in text.split("} {"))
    return Shuffle(start_draw, deal)


PLAIN: Mapping[str, Callable[[int], Action]] = {
    "leave": Leave,
    "draw": DrawTile,
    "pass": Pass,
    "resign": Resign,
    "abort": AbortGame,
    "renew": RenewSeatToken,
    "return": ReturnToSeat,
}
SHUFFLED: Mapping[str, Callable[[int, Shuffle], Action]] = {
    "start": StartGame,
    "next": StartNextRound,
    "redeal": RequestRedeal,
}


def parse_play_tiles(seat: int, text: str) -> PlayTiles:
    """Parses `pull 3 call [R1 R2 R3] | ...`."""
    index, calls = None, False
    if text.startswith("pull "):
        _, number, text = text.split(" ", 2)
        index = int(number)
    if text.startswith("call "):
        calls, text = True, text.removeprefix("call ")
    return PlayTiles(seat, parse_table(text), index, calls)


def write(*, seeds: bool) -> None:
    """Rewrites the files, from their actions, or as new games from their seeds."""
    from support.random_play import random_changes  # noqa: PLC0415 - the test itself plays no random games

    for name, (seed, players, ruleset) in SCENARIOS.items():
        path = GOLDEN / f"{name}.txt"
        actions = actions_of(path.read_text(encoding="utf-8")) if path.exists() else iter(())
        if seeds or not path.exists():
            changes = random_changes(seed, players, ruleset)
            actions = ((change.now_ms, change.action) for change in changes if change.action)
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(playthrough(name, ruleset, actions)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Golden games: write what comes of their actions anew.")
    parser.add_argument("--write", action="store_true", required=True, help="overwrite the files in golden/")
    parser.add_argument("--seeds", action="store_true", help="play new games from the seeds, not the same actions")
    write(seeds=parser.parse_args().seeds)
