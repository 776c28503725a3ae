"""Requests and responses of PuzzleService."""

from collections.abc import Mapping
from datetime import date
from typing import Final

from engine.melding.puzzles import Checked, Difficulty, Puzzle
from engine.melding.ruleset import Preset
from engine.melding.table import as_proposed_table
from rummikub.v1 import analysis_service_pb2, puzzle_service_pb2, ruleset_pb2
from service.codec.fields import invalid
from service.codec.tiles import encode_proposed_table, encode_violation, tile_numbers
from service.puzzles import lines_of, number_of_day

_PRESETS: Final[Mapping[int, Preset]] = {
    ruleset_pb2.PRESET_UNSPECIFIED: Preset.SABRA,
    **{ruleset_pb2.Preset.Value(f"PRESET_{preset.name}"): preset for preset in Preset},
}
_DIFFICULTIES: Final[Mapping[int, Difficulty]] = {
    puzzle_service_pb2.PuzzleDifficulty.Value(f"PUZZLE_DIFFICULTY_{difficulty.name}"): difficulty
    for difficulty in Difficulty
}


def preset_of(number: int) -> Preset:
    """Returns the preset of a puzzle; SABRA if unset."""
    if number not in _PRESETS:
        raise invalid("preset", "expected a preset of games of melds; other games have no puzzles")
    return _PRESETS[number]


def puzzle_number(number: int, preset: Preset) -> int:
    """Returns the number of a puzzle of a preset."""
    count = len(lines_of(preset))
    if not 1 <= number <= count:
        raise invalid("number", f"{number} is not the number of a puzzle: expected 1 to {count}")
    return number


def chosen(request: puzzle_service_pb2.GetPuzzleRequest, today: date) -> tuple[Preset, int, date | None]:
    """Returns the preset and the number of a puzzle, and the day if it is the puzzle of a day."""
    preset = preset_of(request.preset)
    if request.HasField("number"):
        for field in ("date", "difficulty"):
            if getattr(request, field):
                raise invalid(field, "expected no number beside it: it chooses the puzzle of a day")
        return preset, puzzle_number(request.number, preset), None
    day = _day(request.date) if request.date else today
    if request.difficulty and request.difficulty not in _DIFFICULTIES:
        raise invalid("difficulty", f"{request.difficulty} is not a difficulty of puzzles")
    number = number_of_day(preset, day, _DIFFICULTIES.get(request.difficulty))
    if number is None:
        raise invalid("difficulty", f"the preset {preset.name} has no such puzzle")
    return preset, number, day


def _day(text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:  # other forms of ISO 8601, which fromisoformat accepts
        raise invalid("date", "expected a day of the calendar, such as 2027-01-31")
    return day


def encode_puzzle(preset: Preset, number: int, found: Puzzle) -> puzzle_service_pb2.Puzzle:
    """Returns a puzzle without its solution."""
    situation, message = found.situation, ruleset_pb2.Preset.Value(f"PRESET_{preset.name}")
    return puzzle_service_pb2.Puzzle(
        preset=message,
        number=number,
        count=len(lines_of(preset)),
        difficulty=puzzle_service_pb2.PuzzleDifficulty.Value(f"PUZZLE_DIFFICULTY_{found.grade.difficulty.name}"),
        position=analysis_service_pb2.Position(
            ruleset=ruleset_pb2.MeldingRuleset(preset=message),
            table=encode_proposed_table(as_proposed_table(situation.table, situation.ruleset)),
            rack=tile_numbers(situation.rack),
            has_melded=True,
        ),
        tiles_to_play=len(found.tiles),
    )


def encode_solution(found: Puzzle) -> puzzle_service_pb2.PuzzleSolution:
    """Returns the solution of a puzzle."""
    table = as_proposed_table(found.table, found.situation.ruleset)
    return puzzle_service_pb2.PuzzleSolution(
        table_after=encode_proposed_table(table), tiles_played=tile_numbers(found.tiles)
    )


def encode_checked(checked: Checked) -> puzzle_service_pb2.CheckPuzzleResponse:
    """Returns a CheckPuzzleResponse."""
    return puzzle_service_pb2.CheckPuzzleResponse(
        is_solved=checked.is_solved,
        violations=map(encode_violation, checked.judgement.violations),
        tiles_played=tile_numbers(checked.judgement.tiles_played),
        tiles_missing=tile_numbers(checked.missing),
    )
