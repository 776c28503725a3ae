"""Makes puzzles from games of bots (docs/puzzles.md).

    python -m tools.puzzles                    writes the puzzles of all presets anew
    python -m tools.puzzles CROSS --seed 7     writes those of a preset, from other games

Each preset has a file service/puzzles/NAME.txt.gz, a puzzle a line (engine/melding/puzzles.py). The same seed gives the
same file. Puzzles of each difficulty are wanted in equal numbers; where games supply too few of one, others follow.
"""

import argparse
import gzip
import random
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from rich.progress import Progress

from engine.actions import Join, StartGame
from engine.deal import Shuffle
from engine.effort import Budget
from engine.family import bots_of
from engine.game import Game, Playing
from engine.melding.analysis import AnySituation, situation_of
from engine.melding.game import round_of
from engine.melding.notation import format_table
from engine.melding.presets import PRESETS
from engine.melding.puzzles import Difficulty, Puzzle, format_puzzle, puzzle_of
from engine.melding.ruleset import JokerKinds, Preset
from engine.melding.solver import best_turn
from engine.melding.table import tiles_on
from engine.seats import HOST, BotLevel
from engine.sight import see
from engine.tiles import SPECIAL_JOKERS, in_order, without
from engine.turns import Applied, apply, create
from engine.unions import FamilyAction
from service.puzzles import DIRECTORY

SIZES: Final = {Preset.SABRA: 1_000}
"""How many puzzles a preset has, if not OTHERS."""
OTHERS: Final = 100
BATCH: Final = 8
"""Games that are played before the puzzles are counted."""
GAMES_MAX: Final = 8
"""Most games a puzzle. After half a game a puzzle, those of any difficulty are taken."""
NAMES: Final = ("Ada", "Ben", "Cleo", "Dan")
LEVELS: Final = (BotLevel.MEDIUM, BotLevel.MEDIUM, BotLevel.HARD)
BUDGET: Final = Budget(nodes=3_000, change_nodes=3_000)
"""The budget of a bot's search, and of each search for a puzzle: a position that needs more is skipped."""
TILES_MAX: Final = 50
"""Most tiles on a table that a person should look at, also on a phone."""
ALIKE_MAX: Final = 0.6
"""The part of the melds that two puzzles of a game have in common at most."""
LOAD_MIN: Final = 6
"""The least load of a puzzle: more than to add tiles to one meld."""
KEPT_MAX: Final = 3
"""Most tiles of a rack that the best turn leaves there."""


def puzzles_of_game(preset: Preset, seed: int) -> list[tuple[Difficulty, str]]:
    """Returns the puzzles of a game of bots."""
    rng = random.Random(f"{preset.name} {seed}")
    found: list[Puzzle] = []
    for situation in _situations(preset, rng):
        if not any(_are_alike(situation, puzzle.situation) for puzzle in found):
            puzzle = _puzzle(situation, rng)
            found += [puzzle] if puzzle else []
    return [(puzzle.grade.difficulty, format_puzzle(puzzle)) for puzzle in found]


def _are_alike(one: AnySituation, other: AnySituation) -> bool:
    """Returns whether two tables have most melds in common."""
    first, second = (set(format_table(situation.table).split(" | ")) for situation in (one, other))
    return len(first & second) > ALIKE_MAX * min(len(first), len(second))


def _puzzle(situation: AnySituation, rng: random.Random) -> Puzzle | None:
    """Returns a puzzle of a situation: with the tiles that a best turn plays, and a few others."""
    turn = best_turn(situation, budget=BUDGET).turn
    if turn is None or len(turn.tiles) < 2:
        return None
    others = without(situation.rack, turn.tiles)
    kept = rng.sample(others, min(rng.randrange(KEPT_MAX + 1), len(others)))
    for rack in {in_order((*turn.tiles, *kept)): None, turn.tiles: None}:
        puzzle = puzzle_of(replace(situation, rack=rack), BUDGET)
        if (
            puzzle
            and puzzle.grade.load >= LOAD_MIN
            and (situation.ruleset.joker_kinds is not JokerKinds.TWIST or _has_special_joker(puzzle))
        ):
            return puzzle
    return None


def _has_special_joker(puzzle: Puzzle) -> bool:
    """Returns whether the puzzle has what its rules have and others do not."""
    return not SPECIAL_JOKERS.isdisjoint((*tiles_on(puzzle.table), *puzzle.situation.rack))


def _situations(preset: Preset, rng: random.Random) -> Iterator[AnySituation]:
    """Yields the situation of each turn of a game's first round whose player has melded, on a table of few tiles."""
    ruleset = PRESETS[preset]
    players = max(ruleset.players_min, min(ruleset.players_max, rng.randint(2, len(NAMES))))
    levels = [rng.choice(LEVELS) for _ in range(players)]
    game = create(ruleset).game
    for name in NAMES[:players]:
        game = _after(game, Join(name))
    tiles = ruleset.tiles(players)
    start_draw, deal = (tuple(rng.sample(tiles, len(tiles))) for _ in range(2))
    game = _after(game, StartGame(HOST, Shuffle(start_draw, deal)))
    while isinstance(game.phase, Playing):
        round_ = round_of(game)
        seat, table = round_.turn.seat, round_.table
        count_on_table = len(tiles_on(table))
        if count_on_table > TILES_MAX:
            return
        rack = round_.rack(seat)
        if rack.has_melded and count_on_table >= 9:
            yield situation_of(table, rack.tiles, has_melded=True, ruleset=ruleset)
        view = see(game, seat)
        game = _after(game, bots_of(view).choose_action(view, levels[seat - 1], BUDGET))


def _after(game: Game, action: FamilyAction | Join | StartGame) -> Game:
    applied = apply(game, action, 0)
    if not isinstance(applied, Applied) or applied.violations:
        raise AssertionError(f"{action} was refused: {applied}")
    return applied.game


class Selection:
    """The puzzles chosen so far, as many of each difficulty as wanted.

    Args:
        size: How many puzzles are wanted.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.chosen: list[str] = []
        self._spare: list[str] = []
        self._counts: Counter[Difficulty] = Counter()

    def add(self, difficulty: Difficulty, text: str) -> None:
        """Adds a puzzle, if its difficulty is wanted."""
        if self._counts[difficulty] < -(-self.size // len(Difficulty)) and not self.is_full:
            self._counts[difficulty] += 1
            self.chosen.append(text)
        else:
            self._spare.append(text)

    @property
    def is_full(self) -> bool:
        """Whether there are as many as wanted."""
        return len(self.chosen) == self.size

    @property
    def has_spare(self) -> bool:
        """Whether there are as many as wanted with those of any difficulty."""
        return len(self.chosen) + len(self._spare) >= self.size

    def fill(self) -> None:
        """Adds puzzles of difficulties of which there are enough."""
        self.chosen += self._spare[: self.size - len(self.chosen)]


def select(preset: Preset, seed: int, size: int, workers: int, progress: Progress) -> list[str]:
    """Returns puzzles of a preset, from games with seeds of their own, in an order of chance."""
    selection, task = Selection(size), progress.add_task(preset.name, total=size)
    with ProcessPoolExecutor(workers) as pool:
        for start in range(seed, seed + GAMES_MAX * size, BATCH):
            for found in pool.map(partial(puzzles_of_game, preset), range(start, start + BATCH)):
                for difficulty, text in found:
                    selection.add(difficulty, text)
            progress.update(task, completed=len(selection.chosen))
            if selection.is_full or (start >= seed + size // 2 and selection.has_spare):
                break
    selection.fill()
    progress.update(task, completed=len(selection.chosen))
    random.Random(seed).shuffle(selection.chosen)
    return selection.chosen


def main() -> int:
    """Writes puzzles."""
    parser = argparse.ArgumentParser(description="Make puzzles from games of bots.")
    parser.add_argument("presets", nargs="*", metavar="PRESET", help="the presets (all games of melds)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first game; each next one is one higher (0)")
    parser.add_argument("--size", type=int, help=f"how many ({SIZES[Preset.SABRA]} for SABRA, {OTHERS} for others)")
    parser.add_argument("--workers", type=int, default=2, help="how many games are played at once (2)")
    parser.add_argument("--to", type=Path, default=DIRECTORY, help="the folder of the files (service/puzzles)")
    chosen = parser.parse_args()
    unknown = {*chosen.presets} - {preset.name for preset in PRESETS}
    if unknown:
        parser.error(f"unknown preset: {', '.join(sorted(unknown))}")
    with Progress() as progress:
        for preset in PRESETS:
            if not chosen.presets or preset.name in chosen.presets:
                size = chosen.size or SIZES.get(preset, OTHERS)
                lines = select(preset, chosen.seed, size, chosen.workers, progress)
                data = "".join(f"{line}\n" for line in lines).encode("ascii")
                (chosen.to / f"{preset.name}.txt.gz").write_bytes(gzip.compress(data, 9, mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
