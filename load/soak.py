"""Plays random games in the engine and checks every invariant at every state.

`python -m load.soak 10000` plays with random rulesets; `--preset VATIKAN` plays with one preset, and `--every-preset`
as many games with each preset. One random ruleset in five is that of a game of discards.
"""

import argparse
import multiprocessing
import multiprocessing.pool
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.progress import track

from engine.discard.events import (
    DiscardForced,
    EmptyPoolPassed,
    HandFinished,
    IndicatorShown,
    TileDiscarded,
    TrumpTaken,
)
from engine.discard.presets import PRESETS as DISCARD_PRESETS
from engine.discard.ruleset import Preset as DiscardPreset
from engine.events import (
    AbortRequested,
    ClockStopped,
    Event,
    GameAborted,
    PlayerAbsent,
    PlayerKicked,
    PlayerLeft,
    PlayerReadied,
    PlayerReturned,
    RematchCreated,
    RoundEnded,
    SeatTakenOver,
    TurnStarted,
    TurnTimedOut,
)
from engine.game import RoundEnd
from engine.melding.events import TilesPlayed
from engine.melding.ruleset import Preset
from support import okey_invariants
from support.invariants import play_checked_game
from support.rooms import room_of

PROCESSES = 2
RANDOM = "random rulesets"
PRESETS = [preset.name for presets in (Preset, DiscardPreset) for preset in presets]
DISCARDS_EVERY = 5
"""One random ruleset in so many is that of a game of discards."""

Job = tuple[str, int]
"""The name of a preset, or RANDOM, and a seed."""


def main() -> int:
    """Plays games and reports; returns 1 if an invariant broke."""
    arguments = parse_arguments()
    console = Console()
    seeds = range(arguments.seed, arguments.seed + arguments.games)
    with multiprocessing.Pool(PROCESSES) as pool:
        return max(soak(name, seeds, pool, console) for name in rules(arguments))


def parse_arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description="Play random games and check every invariant at every state.")
    parser.add_argument(
        "games",
        type=int,
        nargs="?",
        default=10_000,
        help="the number of games, of each preset if there are several (10000)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="the seed of the first game; each next seed is one higher (0)"
    )
    rulesets = parser.add_mutually_exclusive_group()
    rulesets.add_argument("--preset", choices=PRESETS, help="the preset to play with")
    rulesets.add_argument("--every-preset", action="store_true", help="play this many games with each preset")
    return parser.parse_args()


def rules(arguments: argparse.Namespace) -> Sequence[str]:
    """Returns the names of the rulesets to play with."""
    if arguments.every_preset:
        return PRESETS
    return [arguments.preset or RANDOM]


def soak(name: str, seeds: range, pool: multiprocessing.pool.Pool, console: Console) -> int:
    """Plays one game for each seed and reports; returns 1 if an invariant broke."""
    totals: Counter[str] = Counter()
    started = time.monotonic()
    games = pool.imap_unordered(play, [(name, seed) for seed in seeds], chunksize=5)
    for seed, counts, failure in track(games, f"Playing {name}", total=len(seeds), console=console):
        if failure:
            console.print(failure, markup=False, highlight=False)
            preset = "" if name == RANDOM else f" --preset {name}"
            console.print(f"Broken invariant: reproduce it with --seed {seed} 1{preset}", style="red", highlight=False)
            return 1
        totals.update(counts)
    console.print(f"{name}\n{summary(totals, time.monotonic() - started)}", highlight=False)
    return 0


def play(job: Job) -> tuple[int, Counter[str], str]:
    """Plays one game; returns its seed, counts of what happened, and the traceback of a broken invariant or ""."""
    name, seed = job
    try:
        history = played(name, seed)
    except Exception:  # noqa: BLE001 - any error is a finding; it is reported with the seed
        return seed, Counter(), traceback.format_exc()
    counts: Counter[str] = Counter(games=1)
    for event in (event for events in history for event in events):
        match event:
            case TurnStarted():
                counts["turns"] += 1
            case TilesPlayed(tiles=tiles):
                counts["plays"] += 1
                counts["tiles played"] += len(tiles)
            case RoundEnded(result):
                counts["rounds"] += 1
                counts[ENDS[result.end]] += 1
            case _ if type(event) in AROUND:
                counts[AROUND[type(event)]] += 1
            case _:
                pass
    return seed, counts, ""


def played(name: str, seed: int) -> tuple[tuple[Event, ...], ...]:
    """Plays a game, whose invariants are checked; returns its events, by change."""
    if name in DiscardPreset.__members__:
        return okey_invariants.play_checked_game(seed, lambda _: DISCARD_PRESETS[DiscardPreset[name]])
    if name == RANDOM and seed % DISCARDS_EVERY == 0:
        return okey_invariants.play_checked_game(seed)
    return play_checked_game(seed, None if name == RANDOM else room_of(Preset[name]))


ENDS = {
    RoundEnd.WENT_OUT: "went out",
    RoundEnd.BLOCKED: "blocked",
    RoundEnd.RESIGNED: "resigned",
    RoundEnd.KNOCKED: "knocked",
    RoundEnd.VOID: "void",
}

AROUND: dict[type[Event], str] = {
    PlayerReadied: "readied",
    PlayerLeft: "left",
    PlayerKicked: "kicked",
    TurnTimedOut: "time-outs",
    PlayerAbsent: "absent",
    PlayerReturned: "returned",
    SeatTakenOver: "seats taken over",
    ClockStopped: "clocks stopped",
    AbortRequested: "abort votes",
    GameAborted: "aborted",
    RematchCreated: "rematches",
    TileDiscarded: "discards",
    DiscardForced: "forced discards",
    IndicatorShown: "indicators",
    HandFinished: "hands",
    TrumpTaken: "trumps",
    EmptyPoolPassed: "pool passes",
}
"""Events that are not plays, by name."""


def summary(totals: Counter[str], seconds: float) -> str:
    """Returns the totals as text."""
    keys = ("games", "rounds", "turns", "plays", "tiles played", *ENDS.values(), *AROUND.values())
    lines = [f"{key:<15}{totals[key]:>12,}" for key in keys]
    return "\n".join([*lines, f"{'seconds':<15}{seconds:>12,.1f}"])


if __name__ == "__main__":
    sys.exit(main())
