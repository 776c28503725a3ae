"""Plays bots of neighboring levels against each other, and writes how often the better one wins into docs/bots.md.

`python -m load.bots SABRA OKEY --rounds 200` plays 200 rounds of each pairing under two presets. Two rounds in a row
have the same shuffles, with the levels in each other's seats. Presets that a run leaves out keep their rows. With
`--add` the rounds follow those of earlier runs, so that a long table can be played in pieces. Rounds of other rates are
replaced.
"""

import argparse
import json
import math
import multiprocessing
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from rich.progress import Progress

from engine.actions import Action, Join, StartGame
from engine.deal import Shuffle
from engine.discard.bots import SKILLS
from engine.discard.presets import PRESETS as DISCARD_PRESETS
from engine.discard.ruleset import Ruleset as DiscardRuleset
from engine.discard.scoring import game_winners
from engine.effort import Budget
from engine.family import bots_of
from engine.game import Game, Playing, RoundEnd, bots_to_act
from engine.melding.presets import PRESETS as MELDING_PRESETS
from engine.melding.skills import skill_of
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
WRITE_PAGE: Final = partial(write, "bots.md", "make bots")
PROCESSES: Final = 2
ROUNDS: Final = 100
QUICK: Final = 4
WINS: Final = (0.60, 0.75)
"""How often a level shall beat the one below it."""
BLOCKED: Final = 0.05
"""How many rounds of a pairing may end blocked."""
TURNS_MAX: Final = 3_000
BUDGET: Final = Budget(nodes=8_000, change_nodes=500)
"""About 200 milliseconds of a search. Only a few turns need more, most of them in Tahiti."""
AGAIN: Final = Budget(nodes=500_000)
"""The budget after a refusal: the rules know a play that must be made."""
NEIGHBORS: Final = tuple(pairwise(BotLevel))
_FACTS: Final = ("date", "revision", "machine")
NORMAL: Final = 1.96
"""The quantile of an interval of 95%."""


@dataclass(frozen=True)
class Pairing:
    """Rounds of two neighboring levels: those that the better one won, the other won, and that ended blocked.

    Attributes:
        seconds: The processor's time of all rounds.
        slowest: The longest time of the processor that the better level took to choose an action, in seconds.
    """

    worse: str
    better: str
    won: int = 0
    lost: int = 0
    blocked: int = 0
    rounds: int = 0
    seconds: float = 0.0
    slowest: float = 0.0

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
            max(self.slowest, other.slowest),
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


@dataclass(frozen=True)
class Results:
    """The results of a preset: the facts of the runs that played it, and its pairings. Both are empty before a run."""

    facts: Sequence[Mapping[str, Any]]
    pairings: Sequence[Pairing]

    def plus(self, other: "Results") -> "Results":
        """Returns the results of the rounds of both. The other ones are not empty."""
        pairings = [one.plus(two) for one, two in zip(self.pairings, other.pairings, strict=False)]
        return Results([*self.facts, *other.facts], pairings) if self.pairings else other


NOTHING: Final = Results((), ())
Job = tuple[str, BotLevel, BotLevel, int]
"""A preset, the worse and the better level, and the number of the round."""


def in_processes(jobs: Sequence[Job], processes: int) -> Iterator[Pairing]:
    """Plays rounds in some processes, and yields their outcomes in any order."""
    with multiprocessing.Pool(processes) as pool:
        yield from pool.imap_unordered(play, jobs)


def main(
    arguments: Sequence[str] | None = None,
    *,
    play_all: Callable[[Sequence[Job], int], Iterable[Pairing]] = in_processes,
    results: Path = RESULTS,
    write_page: Callable[[str], object] = WRITE_PAGE,
) -> int:
    """Plays, prints a table, keeps results in a folder and writes the page."""
    parser = argparse.ArgumentParser(
        prog="load.bots", description="Play bots of neighboring levels against each other."
    )
    parser.add_argument("presets", nargs="*", metavar="PRESET", help="presets to play (all)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds of each pairing ({ROUNDS})")
    parser.add_argument(
        "--level",
        choices=[better.name for _, better in NEIGHBORS],
        help="only this level against the one below, and do not write docs/bots.md",
    )
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} rounds, and do not write docs/bots.md")
    parser.add_argument("--add", action="store_true", help="add to the rounds of earlier runs with the same rates")
    parser.add_argument("--processes", type=int, default=PROCESSES, help=f"processes that play ({PROCESSES})")
    chosen = parser.parse_args(arguments)
    presets = chosen.presets or list(PRESETS)
    neighbors = [pair for pair in NEIGHBORS if chosen.level in {None, pair[1].name}]
    is_kept = not (chosen.quick or chosen.level)
    unknown = set(presets) - PRESETS.keys()
    if unknown:
        parser.error(f"no presets: {', '.join(sorted(unknown))}")
    if chosen.add and not is_kept:
        parser.error("rounds with --quick or --level are not kept, so --add has no effect; remove one of them")
    with Progress(console=printer()) as progress:
        for preset in progress.track(presets, description="presets"):
            rounds = QUICK if chosen.quick else chosen.rounds
            before = kept(preset, results) if chosen.add else NOTHING
            first = before.pairings[0].rounds if before.pairings else 0
            jobs: list[Job] = [
                (preset, *levels, number) for levels in neighbors for number in range(first, first + rounds)
            ]
            pairings = sums(neighbors, play_all(jobs, chosen.processes))
            total = before.plus(Results([run_facts()], pairings))
            progress.console.print(" | ".join(row_of(preset, total.pairings)), markup=False, highlight=False)
            if is_kept:
                keep(preset, total, results)
    if is_kept:
        write_page(page_text(results))
    return 0


def sums(neighbors: Sequence[tuple[BotLevel, BotLevel]], rounds: Iterable[Pairing]) -> list[Pairing]:
    """Returns the sum of the rounds of each pairing of neighboring levels."""
    totals = {(worse.name, better.name): Pairing(worse.name, better.name) for worse, better in neighbors}
    for one in rounds:
        totals[one.worse, one.better] = totals[one.worse, one.better].plus(one)
    return list(totals.values())


def play(job: Job) -> Pairing:
    """Plays a round."""
    preset, worse, better, number = job
    began, rules = time.process_time(), PRESETS[preset]
    seats = range(rules.players_min, rules.players_max + 1)
    count = next((players for players in seats if players % 2 == 0), rules.players_min)
    levels = [(worse, better)[(seat + number) % 2] for seat in range(count)]
    times = dict.fromkeys(levels, 0.0)
    game = finished(rules, levels, random.Random(f"{preset} {number // 2}"), times)
    result = game.results[-1]
    won = {levels[seat - 1] for seat in result.winners or _ahead(game)}
    is_decided = len(won) == 1
    return Pairing(
        worse.name,
        better.name,
        won=int(is_decided and better in won),
        lost=int(is_decided and worse in won),
        blocked=int(result.end is RoundEnd.BLOCKED),
        rounds=1,
        seconds=time.process_time() - began,
        slowest=times[better],
    )


def _ahead(game: Game) -> tuple[int, ...]:
    """Returns the seats with the best points after a round that no player has finished, in games of discards."""
    rules = game.ruleset
    return game_winners(game.players, rules) if isinstance(rules, DiscardRuleset) else ()


def finished(rules: Ruleset, levels: Sequence[BotLevel], rng: random.Random, times: dict[BotLevel, float]) -> Game:
    """Returns a game after its first round. Raises `times` to the longest time that each level took for an action."""
    game = reduce(done, (Join(f"bot {seat}", level, seat) for seat, level in enumerate(levels, 1)), create(rules).game)
    tiles = rules.tiles(len(levels))
    start_draw, deal = (tuple(rng.sample(tiles, len(tiles))) for _ in range(2))
    game = done(game, StartGame(HOST, Shuffle(start_draw, deal)))
    for _ in range(TURNS_MAX):
        if not isinstance(game.phase, Playing):
            return game
        game = acted(game, times)
    raise RuntimeError("the round does not end")


def acted(game: Game, times: dict[BotLevel, float]) -> Game:
    """Returns a game after the action of the bot that is to act."""
    seat = bots_to_act(game)[0]
    view, level = see(game, seat), game.player(seat).bot
    if level is None:
        raise RuntimeError(f"seat {seat} is no bot's")
    began = time.process_time()
    action = bots_of(view).choose_action(view, level, BUDGET)
    times[level] = max(times[level], time.process_time() - began)
    applied = apply(game, action, 0)
    return applied.game if isinstance(applied, Applied) else done(game, bots_of(view).choose_action(view, level, AGAIN))


def done(game: Game, action: Action) -> Game:
    """Returns a game after an action that is accepted."""
    applied = apply(game, action, 0)
    if not isinstance(applied, Applied):
        raise TypeError(f"refused: {applied}")
    return applied.game


def rates_of(preset: str) -> str:
    """Returns the rates of all levels under a preset."""
    rules = PRESETS[preset]
    if isinstance(rules, DiscardRuleset):
        return repr([SKILLS[rules.score_system].get(level) for level in BotLevel])
    return repr([skill_of(level, rules) for level in BotLevel])


def kept(preset: str, folder: Path) -> Results:
    """Returns the kept results of a preset; none if they are of other rates."""
    path = folder / f"{preset}.json"
    report = json.loads(path.read_text()) if path.exists() else {}
    if report.get("rates") != rates_of(preset):
        return NOTHING
    return Results(report["facts"], [Pairing(**pairing) for pairing in report["pairings"]])


def keep(preset: str, results: Results, folder: Path) -> None:
    """Keeps the results of a preset."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{preset}.json").write_text(json.dumps({"rates": rates_of(preset), **asdict(results)}))


def page_text(folder: Path) -> str:
    """Returns the table of the page: a row a preset that was played with its present rates."""
    found = {preset: kept(preset, folder) for preset in PRESETS}
    return "\n".join(_lines({preset: results for preset, results in found.items() if results.pairings}))


def _lines(found: Mapping[str, Results]) -> Iterator[str]:
    facts = [fact for results in found.values() for fact in results.facts]
    dates, revisions, machines = (sorted({str(fact[name]) for fact in facts}) for name in _FACTS)
    yield f"{', '.join(dates)}, revision {', '.join(revisions)}, {', '.join(machines)}."
    yield ""
    heads = [f"{better.name} against {worse.name}" for worse, better in NEIGHBORS]
    head = ["preset", "rounds each", *heads, "blocked, most and of the best", "slowest turn", "seconds a round"]
    yield f"| {' | '.join(head)} |"
    yield f"| --- |{' ---: |' * (len(head) - 1)}"
    for preset, results in found.items():
        yield f"| {' | '.join(row_of(preset, results.pairings))} |"


def row_of(preset: str, pairings: Sequence[Pairing]) -> list[str]:
    """Returns the row of a preset."""
    rounds, blocked = sum(one.rounds for one in pairings), [one.blocked / one.rounds for one in pairings]
    shown = f"{max(blocked):.0%}" if max(blocked) <= BLOCKED else f"**{max(blocked):.0%}**"
    seconds, slowest = sum(one.seconds for one in pairings) / rounds, pairings[-1].slowest * 1000
    blocks = f"{shown}, {blocked[-1]:.0%}"
    return [
        preset,
        str(pairings[0].rounds),
        *(one.text for one in pairings),
        blocks,
        f"{slowest:.0f} ms",
        f"{seconds:.2f}",
    ]


if __name__ == "__main__":
    sys.exit(main())
