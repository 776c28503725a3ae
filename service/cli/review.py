"""The review of a record for `rummikub-analyze --record`: each move beside the best turn at its moment."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from engine.effort import Budget
from engine.melding.review import MoveToReview, to_review
from engine.melding.ruleset import Ruleset
from engine.melding.solver import BestTurn, Objective, best_turn
from engine.melding.solver.grid_search import BestGridTurn
from engine.notation import Naming, format_tiles
from engine.record import GameRecord, RecordError, replayed
from engine.record_text import RecordTextError, parse_record

_UNITS: Final = {Objective.MOST_TILES: "tiles", Objective.HIGHEST_VALUE: "points of rack value"}


class RecordFileError(ValueError):
    """A file is not a record that keeps the rules; the message says where."""


def read_record(name: str) -> GameRecord:
    """Returns the record in a file; `-` is the standard input. Raises RecordFileError."""
    try:
        return parse_record(sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise RecordFileError(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except RecordTextError as error:
        raise RecordFileError(f"{name}: {error}") from None


def place_of(record: GameRecord, error: RecordError) -> str:
    """Returns the move that an error names, as the beginning of its message; "" for none."""
    return "" if error.move is None else f"revision {record.moves[error.move].revision}: "


def review_file(
    name: str, objective: Objective, budget: Callable[[], Budget], naming: Naming = Naming.TILES
) -> Iterator[str]:
    """Yields the lines of a review of a record in a file; `-` is the standard input. Raises RecordFileError.

    Args:
        name: The file.
        objective: How turns are compared.
        budget: Returns the budget of one search.
        naming: The names of the tiles.
    """
    record = read_record(name)
    if not isinstance(record.ruleset, Ruleset):
        raise RecordFileError(f"{name}: only records of melding games are reviewed")
    yield from _review(name, record, objective, budget, naming)


def _review(
    name: str, record: GameRecord, objective: Objective, budget: Callable[[], Budget], naming: Naming
) -> Iterator[str]:
    names = {player.seat: player.name for player in record.players}
    missed = dict.fromkeys(names, 0)
    try:
        for index, step in enumerate(replayed(record)):
            move = to_review(index, step)
            if move is None:
                continue
            found = best_turn(move.situation, objective, budget())
            lost = move.missed(found.turn, objective) if found.turn else 0
            missed[move.seat] += lost
            yield f"{move.revision:5} {names[move.seat]}: {_described(move, found, lost, objective, naming)}"
    except RecordError as error:
        raise RecordFileError(f"{name}: {place_of(record, error)}{error}") from None
    yield ""
    for seat, count in missed.items():
        yield f"{names[seat]} missed {count} {_UNITS[objective]}"


def _described(
    move: MoveToReview, found: BestTurn | BestGridTurn, lost: int, objective: Objective, naming: Naming
) -> str:
    done = move.kind.name.lower().replace("_", " ")
    if move.gained(objective):
        done += f" {move.gained(objective)} {_UNITS[objective]}"
    proof = "" if found.is_proven else ", not proven"
    if found.turn is None:
        return f"{done}; nothing could be played{proof}"
    if not lost:
        return f"{done}; nothing was better{proof}"
    return f"{done}; {format_tiles(found.turn.tiles, naming)} gains {lost} {_UNITS[objective]} more{proof}"
