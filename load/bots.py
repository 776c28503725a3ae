"""Plays bots of neighboring levels against each other, and writes how often the better one wins into docs/bots.md.

`python -m load.bots SABRA OKEY --rounds 200` plays 200 rounds of each pairing under two presets. Two rounds in a row
have the same shuffles, with the levels in each other's seats. Presets that a run leaves out keep their rows.
"""

import argparse
import json
import math
import multiprocessing
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from rich.progress import Progress

from engine.actions import Action, Join, StartGame
from engine.deal import Shuffle
from engine.discard.presets import PRESETS as DISCARD_PRESETS
from engine.effort import Budget
from engine.family import bots_of
from engine.game import Game, Playing, RoundEnd, bots_to_act
from engine.melding.presets import PRESETS as MELDING_PRESETS
from engine.seats import HOST, BotLevel
from engine.sight import see
from engine.turns import Applied, apply, create
from engine.unions import Ruleset
from load.bench.figures import printer, run_facts
from load.pages import write
from tools.servers import ROOT

PRESETS: Final[Mapping[str, Ruleset]] = {
    preset.name: rules for table in (MELDING_PRESETS, DISCARD_PRESETS) for preset, rules in table.items()
}
RESULTS: Final = ROOT / "build" / "bots"
PROCESSES: Final = 2
ROUNDS: Final = 100
QUICK: Final = 4
WINS: Final = (0.60, 0.75)
"""How often a level shall beat the one below it."""
BLOCKED: Final = 0.05
"""How many rounds of a pairing may end blocked."""
TURNS_MAX: Final = 3_000
BUDGET: Final = Budget(nodes=20_000)
AGAIN: Final = Budget(nodes=500_000)
"""The budget after a refusal: the rules know a play that must be made."""
NORMAL: Final = 1.96
"""The quantile of an interval of 95%."""


@dataclass(frozen=True)
class Pairing:
    """Rounds of two neighboring levels: those that the better one won, the other won, and that ended blocked."""

    worse: str
    better: str
    won: int = 0
    lost: int = 0
    blocked: int = 0
    rounds: int = 0
    seconds: float = 0.0

    def plus(self, other: "Pairing") -> "Pairing":
        """Returns the sum of two runs."""
        return Pairing(
            self.worse,
            self.better,
            self.won + other.won,
            self.lost + other.lost,
            self.blocked + other.blocked,
            self.rounds + other.rounds,
            self.seconds + other.seconds,
        )

    @property
    def share(self) -> float:
        """The share of the decided rounds that the better level won."""
        return self.won / max(1, self.won + self.lost)

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of the share, of 95%."""
        n, z = max(1, self.won + self.lost), NORMAL
        middle = (self.share + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(self.share * (1 - self.share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return middle - half, middle + half

    @property
    def text(self) -> str:
        """The share with its interval, in bold if the whole interval is beside the goal. MASTER may win more often."""
        low, high = self.interval
        shown = f"{self.share:.0%} ({low:.0%} to {high:.0%})"
        is_met = high >= WINS[0] and (low <= WINS[1] or self.better == BotLevel.MASTER.name)
        return shown if is_met else f"**{shown}**"


Job = tuple[str, BotLevel, BotLevel, int]
"""A preset, the worse and the better level, and the number of the round."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Plays, prints a table and writes the page."""
    parser = argparse.ArgumentParser(
        prog="load.bots", description="Play bots of neighboring levels against each other."
    )
    parser.add_argument("presets", nargs="*", metavar="PRESET", help="presets to play (all)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds of each pairing ({ROUNDS})")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} rounds, and do not write docs/bots.md")
    parser.add_argument("--processes", type=int, default=PROCESSES, help=f"processes that play ({PROCESSES})")
    chosen = parser.parse_args(arguments)
    presets = chosen.presets or list(PRESETS)
    unknown = set(presets) - PRESETS.keys()
    if unknown:
        parser.error(f"no presets: {', '.join(sorted(unknown))}")
    with Progress(console=printer()) as progress:
        for preset in progress.track(presets, description="presets"):
            pairings = played(preset, QUICK if chosen.quick else chosen.rounds, chosen.processes)
            progress.console.print(" | ".join(row_of(preset, pairings)), markup=False, highlight=False)
            if not chosen.quick:
                keep(preset, pairings)
    if not chosen.quick:
        write("bots.md", "make bots", page_text(RESULTS))
    return 0


def played(preset: str, rounds: int, processes: int) -> list[Pairing]:
    """Returns the pairings of all neighboring levels under a preset."""
    jobs: list[Job] = [(preset, *levels, number) for levels in pairwise(BotLevel) for number in range(rounds)]
    with multiprocessing.Pool(processes) as pool:
        parts = pool.imap_unordered(play, jobs)
        totals = {(worse.name, better.name): Pairing(worse.name, better.name) for worse, better in pairwise(BotLevel)}
        for part in parts:
            totals[part.worse, part.better] = totals[part.worse, part.better].plus(part)
    return list(totals.values())


def play(job: Job) -> Pairing:
    """Plays a round."""
    preset, worse, better, number = job
    began, rules = time.process_time(), PRESETS[preset]
    seats = range(rules.players_min, rules.players_max + 1)
    count = next((players for players in seats if players % 2 == 0), rules.players_min)
    levels = [(worse, better)[(seat + number) % 2] for seat in range(count)]
    game = finished(rules, levels, random.Random(f"{preset} {number // 2}"))
    result = game.results[-1]
    won = Counter({levels[seat - 1] for seat in result.winners})
    is_decided = len(won) == 1
    return Pairing(
        worse.name,
        better.name,
        won=int(is_decided and better in won),
        lost=int(is_decided and worse in won),
        blocked=int(result.end is RoundEnd.BLOCKED),
        rounds=1,
        seconds=time.process_time() - began,
    )


def finished(rules: Ruleset, levels: Sequence[BotLevel], rng: random.Random) -> Game:
    """Returns a game after its first round."""
    game = reduce(done, (Join(f"bot {seat}", level, seat) for seat, level in enumerate(levels, 1)), create(rules).game)
    tiles = rules.tiles(len(levels))
    start_draw, deal = (tuple(rng.sample(tiles, len(tiles))) for _ in range(2))
    game = done(game, StartGame(HOST, Shuffle(start_draw, deal)))
    for _ in range(TURNS_MAX):
        if not isinstance(game.phase, Playing):
            return game
        game = acted(game)
    raise RuntimeError("the round does not end")


def acted(game: Game) -> Game:
    """Returns a game after the action of the bot that is to act."""
    seat = bots_to_act(game)[0]
    view, level = see(game, seat), game.player(seat).bot
    if level is None:
        raise RuntimeError(f"seat {seat} is no bot's")
    applied = apply(game, bots_of(view).choose_action(view, level, BUDGET), 0)
    return applied.game if isinstance(applied, Applied) else done(game, bots_of(view).choose_action(view, level, AGAIN))


def done(game: Game, action: Action) -> Game:
    """Returns a game after an action that is accepted."""
    applied = apply(game, action, 0)
    if not isinstance(applied, Applied):
        raise TypeError(f"refused: {applied}")
    return applied.game


def keep(preset: str, pairings: Sequence[Pairing], results: Path = RESULTS) -> None:
    """Keeps the results of a preset with the facts of their run."""
    results.mkdir(parents=True, exist_ok=True)
    report = {"facts": run_facts(), "pairings": [asdict(pairing) for pairing in pairings]}
    (results / f"{preset}.json").write_text(json.dumps(report))


def page_text(results: Path) -> str:
    """Returns the table of the page."""
    reports = {
        preset: json.loads(path.read_text()) for preset in PRESETS if (path := results / f"{preset}.json").exists()
    }
    return "\n".join(_lines(reports))


def _lines(reports: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    facts = [report["facts"] for report in reports.values()]
    dates, revisions = ({str(fact[name]) for fact in facts} for name in ("date", "revision"))
    yield f"{', '.join(sorted(dates))}, revision {', '.join(sorted(revisions))}, {facts[0]['machine']}."
    yield ""
    heads = [f"{better.name} against {worse.name}" for worse, better in pairwise(BotLevel)]
    head = ["preset", "rounds each", *heads, "most blocked", "seconds a round"]
    yield f"| {' | '.join(head)} |"
    yield f"| --- |{' ---: |' * (len(head) - 1)}"
    for preset, report in reports.items():
        yield f"| {' | '.join(row_of(preset, [Pairing(**one) for one in report['pairings']]))} |"


def row_of(preset: str, pairings: Sequence[Pairing]) -> list[str]:
    """Returns the row of a preset."""
    rounds, blocked = sum(one.rounds for one in pairings), max(one.blocked / one.rounds for one in pairings)
    shown = f"{blocked:.0%}" if blocked <= BLOCKED else f"**{blocked:.0%}**"
    seconds = sum(one.seconds for one in pairings) / rounds
    return [preset, str(pairings[0].rounds), *(one.text for one in pairings), shown, f"{seconds:.2f}"]


if __name__ == "__main__":
    sys.exit(main())
