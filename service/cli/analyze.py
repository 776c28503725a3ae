"""The command `rummikub-analyze`: prints the best turn of a position and the steps to play it. It needs no server."""

import argparse
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from difflib import get_close_matches
from enum import Enum
from importlib.metadata import version
from typing import Final, TypeAlias

from engine.effort import Budget
from engine.melding.analysis import AnySituation, Situation, situation_of
from engine.melding.grid.cells import Grid
from engine.melding.grid.picture import draw_grid
from engine.melding.grid.rules import read_grid
from engine.melding.melds import Meld, ProposedMeld, read_meld
from engine.melding.notation import format_meld, format_table, parse_position, parse_turn
from engine.melding.presets import PRESETS
from engine.melding.puzzles import Puzzle
from engine.melding.ruleset import OPTIONS, Preset, Ruleset, TableLayout, TurnDraw, problems, with_options
from engine.melding.solver import (
    BestTurn,
    LegalTurn,
    Objective,
    best_turn,
)
from engine.melding.solver.explanation import explain
from engine.melding.solver.grid_search import BestGridTurn, GridTurn
from engine.melding.solver.steps import describe_step
from engine.melding.table import ProposedTable, Table, as_grid, tiles_on
from engine.notation import Naming, NotationError, format_tile, format_tiles, parse_tile, parse_tiles
from engine.options import text_of
from engine.seats import Rack
from engine.tiles import JOKERS, Color, Tile, color_of, in_order, without
from engine.violation_texts import DESCRIPTIONS
from engine.violations import Reason
from service.cli.review import RecordFileError, review_file
from service.puzzles import lines_of, number_of_day, puzzle

NAME: Final = "rummikub-analyze"

MAX_BUDGET_MS: Final = 600_000

_HELP: Final = f"""\
a position is the table, +, and the rack of the player to move; or a full position as in engine/melding/notation.py:
  [R3 R4 R5] | [B6 K6 O6] | [R8 J R10] + *{{R2 R9}}
  [R3 R4 R5] | [B6 K6 O6] / 1*{{R2 B5}} 2{{K1 J}} / {{R7 O8}} / 1
in the cross layout (--preset CROSS), the table is its rows, each with the cell (x, y) of its first tile:
  0,0[R3 R4 R5] | 1,1[B4] | 1,2[K4] + *{{R2 R9}}
a * before a rack: its player has made the initial meld; with +, the position has a * or --unmelded is needed
a tile is a color, R(ed), B(lue), K (black), O(range), G(reen), P(urple), with a value; J is a joker

example:
  {NAME} "[R3 R4 R5 R6] | [B6 K6 O6] + *{{R6 B3 K3}}"
"""


Best: TypeAlias = BestTurn | BestGridTurn
Search: TypeAlias = Callable[[AnySituation, Objective, Budget], Best]


class PositionError(ValueError):
    """A position or option is invalid; the message says where."""


def main(arguments: Sequence[str] | None = None, search: Search = best_turn) -> None:
    """Reads a position from the command line and prints its best turn, which a search finds."""
    try:
        _analyze(arguments, search)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # discards the final flush
        if not isinstance(error, BrokenPipeError):  # the reader closed the pipe, like head
            sys.exit(f"{NAME}: cannot write the answer: {error.strerror}")
    except KeyboardInterrupt:
        sys.exit(130)


def _analyze(words: Sequence[str] | None, search: Search) -> None:
    parser = _parser()
    arguments = parser.parse_args(words)
    naming = Naming.CARDS if arguments.cards else Naming.TILES
    if arguments.record and arguments.json:
        parser.exit(2, f"{NAME}: --json is for positions; for programs, the service reviews records (ReviewGame)\n")
    objective = Objective[arguments.objective.upper().replace("-", "_")]
    try:
        if arguments.record:
            for line in review_file(arguments.record, objective, lambda: _budget(arguments.budget_ms), naming):
                _write(_colored(line, naming))
            return
        ruleset = read_ruleset(arguments.preset, arguments.option)
        number, heading = None, []
        if arguments.position:
            river, unmelded = arguments.river, arguments.unmelded
            situation = read_situation(arguments.position, ruleset, naming, river, unmelded=unmelded)
        else:
            number = _puzzle_number(arguments.puzzle, ruleset)
            chosen = puzzle(ruleset.preset, number)
            situation, heading = chosen.situation, [_task(number, chosen), ""]
        if not arguments.json:
            _write(_colored("\n".join([*heading, *_position(situation, naming)]), naming))
            if number and not arguments.answer and not _is_answer_wanted():
                return
        budget = _budget(arguments.budget_ms)
        found = search(situation, objective, budget)
        is_late = budget.is_over is not None and budget.is_over()
        if arguments.json:
            name = {"puzzle": number} if number else {}
            text = json.dumps({**name, **_values_of(situation, objective, found, naming)}, indent=2)
        else:
            text = _colored("\n".join(_answer(situation, objective, found, naming, is_late=is_late)), naming)
    except (PositionError, NotationError, RecordFileError) as error:
        parser.exit(2, f"{NAME}: {error}\n")
    _write(text)


def _write(text: str) -> None:
    if sys.stdout:  # None if it is closed
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def _is_answer_wanted() -> bool:
    """Waits on a terminal until the answer of a puzzle is wanted. Elsewhere it is not, and an option is named."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty()):
        _write("\n--answer shows how.")
        return False
    _write("\nPress Enter for the answer.")
    return bool(sys.stdin.readline())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="The best turn of a Rummikub position, and how to play it, step by step.",
        epilog=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('rummikub-service')}")
    subject = parser.add_mutually_exclusive_group()
    subject.add_argument("position", nargs="?", help="the position in quotes; without one, the puzzle of the day")
    subject.add_argument(
        "--puzzle",
        type=_number,
        metavar="NUMBER",
        help="a puzzle of the preset, from 1: play as many tiles as possible",
    )
    subject.add_argument(
        "--record",
        metavar="FILE",
        help="review the record of a game (docs/record.md): each move beside the best turn; - for standard input",
    )
    parser.add_argument("--answer", action="store_true", help="show the answer of a puzzle at once")
    parser.add_argument("--json", action="store_true", help="print the answer as JSON, with the names of SuggestTurn")
    parser.add_argument(
        "--preset", default="SABRA", metavar="NAME", help="the rules; default SABRA (see docs/options.md)"
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option that differs from the preset; repeatable",
    )
    parser.add_argument(
        "--objective",
        default="most-tiles",
        choices=[objective.name.lower().replace("_", "-") for objective in Objective],
        help="how turns are compared; default most-tiles",
    )
    parser.add_argument(
        "--budget-ms", type=_milliseconds, default=10_000, metavar="MS", help="time limit of the search; default 10000"
    )
    parser.add_argument(
        "--unmelded", action="store_true", help="the player has not made the initial meld (else: * before the rack)"
    )
    parser.add_argument(
        "--river", default="", metavar="TILES", help="the River, oldest tile first (turn_draw TWO_RIVER)"
    )
    parser.add_argument(
        "--cards", action="store_true", help="use names of playing cards: 7H, *; see engine/notation.py"
    )
    return parser


def _milliseconds(text: str) -> int:
    if not re.fullmatch("[0-9]{1,6}", text) or not 1 <= int(text) <= MAX_BUDGET_MS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of milliseconds from 1 to {MAX_BUDGET_MS}")
    return int(text)


def _number(text: str) -> int:
    if not re.fullmatch("[0-9]{1,6}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return int(text)


def _puzzle_number(number: int | None, ruleset: Ruleset) -> int:
    """Returns the number of a puzzle; without one, another one each day. Raises PositionError."""
    preset = ruleset.preset
    if ruleset != PRESETS[preset]:
        raise PositionError("--option: puzzles have the rules of a preset; give a position")
    if number is None:
        number = number_of_day(preset, date.today()) or 0
    count = len(lines_of(preset))
    if not 1 <= number <= count:
        raise PositionError(f"--puzzle: {number} is not the number of a puzzle: expected 1 to {count}")
    return number


def _task(number: int, chosen: Puzzle) -> str:
    """Returns the first line of a puzzle."""
    situation, tiles = chosen.situation, chosen.tiles
    of_all = len(tiles) == len(situation.rack)
    task = "the whole rack" if of_all else f"{len(tiles)} tiles of the rack"
    count, level = len(lines_of(situation.ruleset.preset)), chosen.grade.difficulty.name.lower()
    return f"Puzzle {number} of {count} ({level}): play {task}"


def _budget(milliseconds: int) -> Budget:
    deadline = time.monotonic() + milliseconds / 1000
    return Budget(sys.maxsize, change_nodes=sys.maxsize, is_over=lambda: time.monotonic() > deadline)


# Rules


def read_ruleset(preset: str, options: Sequence[str]) -> Ruleset:
    """Returns the rules of a preset with options given as `name=value`. Raises PositionError."""
    presets = [known.name for known in Preset]
    if preset.upper() not in presets:
        raise PositionError(f"--preset {preset}: unknown preset{_suggestion(preset.upper(), presets)}")
    ruleset = with_options(PRESETS[Preset[preset.upper()]], dict(map(_option, options)))
    for problem in problems(ruleset):
        names = " and ".join(problem.options)
        expected = "; docs/options.md lists the conflicts"
        if problem.reason is Reason.OPTION_VALUE_INVALID:
            expected = f": expected {_span(OPTIONS[problem.options[0]].values)}"
        raise PositionError(f"--option {names}: {DESCRIPTIONS[problem.reason]} ({problem.value}){expected}")
    return ruleset


def _span(numbers: Sequence[int]) -> str:
    """Returns the numbers that an option accepts as text, as a range if they are consecutive."""
    in_a_row = len(numbers) > 2 and len(numbers) == numbers[-1] - numbers[0] + 1
    return f"{numbers[0]} to {numbers[-1]}" if in_a_row else " or ".join(map(str, numbers))


def _option(text: str) -> tuple[str, object]:
    name, _, value = text.partition("=")
    if name not in OPTIONS:
        raise PositionError(f"--option {text}: unknown option {name!r}{_suggestion(name, list(OPTIONS))}")
    row = OPTIONS[name]
    try:
        return name, row.parsed(value.lower() if isinstance(row.default, bool) else value.upper())
    except ValueError:
        is_named = isinstance(row.default, Enum | bool)
        expected = " or ".join(text_of(one).upper() for one in row.values) if is_named else "a number"
        raise PositionError(f"--option {text}: invalid value {value!r} for {name}: expected {expected}") from None


def _suggestion(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, 1)
    if close:
        return f"; did you mean {close[0]}?"
    return f": expected one of {', '.join(known)}" if len(known) < 20 else "; docs/options.md lists all options"


# Position


def read_situation(
    text: str, ruleset: Ruleset, naming: Naming = Naming.TILES, river: str = "", *, unmelded: bool = False
) -> AnySituation:
    """Returns the situation of the player to move from a position's text. Raises PositionError.

    Args:
        text: The position. A * before the rack says that the player has made the initial meld.
        ruleset: The rules.
        naming: The names of the tiles.
        river: The tiles of the River, oldest first.
        unmelded: States that the player has not made the initial meld.
    """
    is_full = "/" in text
    try:
        proposed, rack, others = _full_position(text, naming) if is_full else _table_and_rack(text, naming)
    except NotationError as error:
        raise PositionError(f"column {error.column}: {error}") from None
    if rack.has_melded and unmelded:
        raise PositionError("--unmelded contradicts the * of the rack: its player has made the initial meld")
    if not (is_full or rack.has_melded or unmelded):
        raise PositionError(
            "the position does not say whether the player has made the initial meld: write * before the rack if so, "
            "else add --unmelded"
        )
    try:
        pulled = parse_tiles(river, naming)
    except NotationError as error:
        raise PositionError(f"--river: column {error.column}: {error}") from None
    if pulled and ruleset.turn_draw is not TurnDraw.TWO_RIVER:
        raise PositionError("--river: these rules have no River; add --option turn_draw=TWO_RIVER")
    table = _table_read(proposed, ruleset, naming)
    _count((*tiles_on(table), *rack.tiles, *pulled, *others), ruleset, naming)
    return situation_of(table, rack.tiles, rack.has_melded, ruleset, pulled)


def _table_read(proposed: ProposedTable, ruleset: Ruleset, naming: Naming) -> Table:
    """Returns the table of a position. Raises PositionError."""
    if ruleset.table_layout is TableLayout.GRID:
        grid = as_grid(proposed)
        table = None if grid is None else read_grid(grid, ruleset)
        if table is None:
            raise PositionError("the table is not a grid of runs in its rows and groups in its columns")
        return table
    if isinstance(proposed, Grid):
        raise PositionError("the table of these rules has no cells: add --preset CROSS, or write melds")
    return tuple(_meld(place, meld, ruleset, naming) for place, meld in enumerate(proposed, 1))


_Read: TypeAlias = tuple[ProposedTable, Rack, tuple[Tile, ...]]
"""The table, the rack of the player to move, and all tiles elsewhere."""


def _full_position(text: str, naming: Naming) -> _Read:
    position = parse_position(text, naming)
    others = (t for rack in position.racks if rack is not position.rack for t in rack.tiles)
    return position.table, position.rack, (*others, *position.pool)


def _table_and_rack(text: str, naming: Naming) -> _Read:
    table, rack = parse_turn(text, naming)
    return table, rack, ()


def _meld(place: int, proposed: ProposedMeld, ruleset: Ruleset, naming: Naming) -> Meld:
    reading = read_meld(proposed, ruleset)
    if isinstance(reading, Meld):
        return reading
    why = ", ".join(DESCRIPTIONS[reason] for reason in reading.reasons)
    order = f"; as a meld: {format_tiles(reading.suggested_order, naming)}" if reading.suggested_order else ""
    raise PositionError(f"meld {place} of the table, {format_meld(proposed, naming)}, is not a meld: {why}{order}")


def _count(tiles: tuple[Tile, ...], ruleset: Ruleset, naming: Naming) -> None:
    """Raises PositionError if a tile occurs more often than in the tile set."""
    for t, count in sorted(Counter(tiles).items()):
        if count > ruleset.copies_of(t):
            raise PositionError(
                f"{format_tiles((t,), naming)} occurs {count} times; the tile set has it {ruleset.copies_of(t)} times"
            )


# Output


def _position(situation: AnySituation, naming: Naming) -> Iterator[str]:
    yield "Table"
    yield from _table(situation.table, situation, naming)
    yield f"Rack: {format_tiles(situation.rack, naming) or 'empty'}"
    if isinstance(situation, Situation) and situation.river:
        yield f"River: {format_tiles(situation.river, naming)}"


def _answer(
    situation: AnySituation, objective: Objective, found: Best, naming: Naming, *, is_late: bool
) -> Iterator[str]:
    yield ""
    if found.turn is None:
        yield _no_turn(found, is_late=is_late)
    else:
        yield from _described_turn(situation, found.turn, _proof(objective, found, is_late=is_late), naming)


def _no_turn(found: Best, *, is_late: bool) -> str:
    if found.is_proven:
        return "There is no legal turn: nothing can be played."
    if is_late:
        return "No turn was found in time, but one may exist; increase --budget-ms."
    return f"No turn was found, but one may exist: {_NOT_SEARCHED}."


def _described_turn(situation: AnySituation, turn: LegalTurn | GridTurn, proof: str, naming: Naming) -> Iterator[str]:
    played, left = _played_and_left(situation, turn)
    yield f"Best turn: play {format_tiles(played, naming)}"
    yield f"Rack then: {format_tiles(left, naming) or 'empty, the round is won'}"
    yield proof
    yield ""
    if steps := _steps(situation, turn, naming):
        yield "Steps"
        yield from (f"{number:3}. {step}" for number, step in enumerate(steps, 1))
        yield ""
    yield "Table then"
    yield from (f"     {row}" for row in _rows(turn.table, situation, naming))


def _pulled(situation: AnySituation, turn: LegalTurn | GridTurn) -> tuple[Tile, ...]:
    """Returns the tiles that a turn pulls from the River; the first of them is played."""
    if turn.river_index is None or not isinstance(situation, Situation):
        return ()
    return situation.river[turn.river_index :]


def _played_and_left(situation: AnySituation, turn: LegalTurn | GridTurn) -> tuple[tuple[Tile, ...], tuple[Tile, ...]]:
    """Returns the tiles that a turn plays, with the one from the River, and the rack after it."""
    pulled = _pulled(situation, turn)
    return in_order((*turn.tiles, *pulled[:1])), without((*situation.rack, *pulled[1:]), turn.tiles)


def _steps(situation: AnySituation, turn: LegalTurn | GridTurn, naming: Naming) -> list[str]:
    if not (isinstance(situation, Situation) and isinstance(turn, LegalTurn)):
        return []
    pulled = _pulled(situation, turn)
    steps = explain(situation.table, turn.table, situation.ruleset, pulled, turn.untouched)
    return [describe_step(step, naming) for step in steps]


def _values_of(situation: AnySituation, objective: Objective, found: Best, naming: Naming) -> dict[str, object]:
    """Returns the position and the best turn for JSON. Names are those of Position and Suggestion in the contract."""

    def names(tiles: Iterable[Tile]) -> list[str]:
        return [format_tile(t, naming) for t in tiles]

    def texts(table: Table) -> list[str]:
        if isinstance(table, Grid):
            return format_table(table, naming).split(" | ")
        return [format_meld(meld, naming, situation.ruleset) for meld in table]

    position = {
        "table": texts(situation.table),
        "rack": names(situation.rack),
        "has_melded": situation.has_melded,
        "river": names(situation.river if isinstance(situation, Situation) else ()),
    }
    asked = {"position": position, "objective": objective.name}
    turn = found.turn
    if turn is None:
        return {**asked, "play_exists": "NO" if found.is_proven else "UNKNOWN"}
    played, left = _played_and_left(situation, turn)
    return {
        **asked,
        "play_exists": "YES",
        "is_best": found.is_proven,
        "is_least_change": found.is_least_change,
        "tiles_played": names(played),
        "rack_left": names(left),
        "goes_out": not left,
        "table": texts(turn.table),
        "steps": _steps(situation, turn, naming),
    }


_NOT_SEARCHED: Final = "not all turns of this game can be searched"
"""Why an answer is not proven although there was time: mirrors, color changes, or a cross layout whose tiles move."""


def _proof(objective: Objective, found: Best, *, is_late: bool) -> str:
    better = {
        Objective.MOST_TILES: "plays more tiles",
        Objective.HIGHEST_VALUE: "plays a higher value",
    }[objective]
    if not found.is_proven:
        why = "time ran out" if is_late else _NOT_SEARCHED
        return f"There may be a turn that {better}: {why}."
    if not found.is_least_change:
        return f"No turn {better}; an equally good one may leave more melds unchanged."
    return f"No turn {better}, and no equally good turn leaves more melds unchanged."


def _table(table: Table, situation: AnySituation, naming: Naming) -> Iterator[str]:
    rows = _rows(table, situation, naming)
    if not rows:
        yield "     empty"
    elif isinstance(table, Grid):
        yield from (f"     {row}" for row in rows)
    else:
        yield from (f"{place:3}. {row}" for place, row in enumerate(rows, 1))


def _rows(table: Table, situation: AnySituation, naming: Naming) -> list[str]:
    """Returns a line for each meld, or for each row of a grid."""
    if isinstance(table, Grid):
        return draw_grid(table, naming).splitlines()
    return [format_meld(meld, naming, situation.ruleset) for meld in table]


# Terminal colors

_STYLES: Final = {
    Color.RED: "31",
    Color.BLUE: "34",
    Color.BLACK: "1",  # bold instead of black, which is the background of many terminals
    Color.ORANGE: "33",
    Color.GREEN: "32",
    Color.PURPLE: "35",
}
_JOKER_STYLE: Final = "1;36"
_PIECES: Final = {
    Naming.TILES: re.compile(r"\b([RBKOGP](1[0-3]|[1-9])|[JDMC])\b"),
    Naming.CARDS: re.compile(r"\b(10|[2-9AJQK])[HDCS]\b|\*"),
}


def _is_colored() -> bool:
    return (
        bool(sys.stdout) and sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def _colored(text: str, naming: Naming) -> str:
    return _painted(text, naming) if _is_colored() else text


def _painted(text: str, naming: Naming) -> str:
    """Returns the text with each tile in its color."""

    def paint(piece: re.Match[str]) -> str:
        t = parse_tile(piece[0], naming)
        return f"\x1b[{_JOKER_STYLE if t in JOKERS else _STYLES[color_of(t)]}m{piece[0]}\x1b[0m"

    return _PIECES[naming].sub(paint, text)


if __name__ == "__main__":
    main()
