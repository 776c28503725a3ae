"""The puzzles of the service, made by tools/puzzles.py: a compressed file for each preset of games of melds.

A file has a puzzle a line (engine/melding/puzzles.py). It is read when its first puzzle is wanted.
"""

import gzip
from datetime import date
from functools import cache
from pathlib import Path
from typing import Final

from engine.melding.presets import PRESETS
from engine.melding.puzzles import Difficulty, Puzzle, difficulty_in, parse_puzzle
from engine.melding.ruleset import Preset

DIRECTORY: Final = Path(__file__).parent


@cache
def lines_of(preset: Preset) -> tuple[str, ...]:
    """Returns the puzzles of a preset as text."""
    return tuple(gzip.decompress((DIRECTORY / f"{preset.name}.txt.gz").read_bytes()).decode("ascii").splitlines())


@cache
def numbers_of(preset: Preset, difficulty: Difficulty | None = None) -> tuple[int, ...]:
    """Returns the numbers of the puzzles of a preset, from 1, or of those of a difficulty."""
    lines = enumerate(lines_of(preset), 1)
    return tuple([number for number, line in lines if difficulty in {None, difficulty_in(line)}])


def puzzle(preset: Preset, number: int) -> Puzzle:
    """Returns a puzzle by its number, from 1."""
    return parse_puzzle(lines_of(preset)[number - 1], PRESETS[preset])


def number_of_day(preset: Preset, day: date, difficulty: Difficulty | None = None) -> int | None:
    """Returns the number of the puzzle of a day; None if there is none of a difficulty."""
    numbers = numbers_of(preset, difficulty)
    return numbers[day.toordinal() % len(numbers)] if numbers else None
