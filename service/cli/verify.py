"""The command `rummikub-verify`: checks that the deals of a recorded game were fair, and its moves and scores legal."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from engine.fair_deal import DEALS_MAX
from engine.record import GameRecord, RecordError, replayed
from service.cli.review import RecordFileError, place_of, read_record

NAME: Final = "rummikub-verify"
_HELP: Final = f"""\
RECORD is the text of a record: ExportGame with RECORD_FORM_TEXT, or "Record as text" in the browser.

Compare the commitment with the one that the game showed before its first deal. The server chose its seeds before the
players chose theirs, and every deal follows from all of them: docs/fair-deal.md has the method.

example:
  {NAME} game.txt

exit status: 0 if all is right, 1 if a check fails or the record has no commitment, 2 if it cannot be read
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Checks the record that the command line names; ends the process with a status."""
    parser = argparse.ArgumentParser(
        NAME,
        description="Checks a recorded game: commitment, seeds, every deal, every move by the rules, and the scores.",
        epilog=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("record", help="the file; - for the standard input")
    try:
        record = read_record(parser.parse_args(arguments).record)
    except RecordFileError as error:
        parser.error(str(error))
    try:
        for line in _checks(record):
            _write(f"ok      {line}")
    except RecordError as error:
        _write(f"FAILED  {place_of(record, error)}{error}")
        sys.exit(1)
    if not record.deal_commitment:
        _write("FAILED  the record has no commitment: its deals cannot be checked")
        sys.exit(1)


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _checks(record: GameRecord) -> Iterator[str]:
    """Yields a line for each check that holds. Raises RecordError for the first that does not."""
    seeded = [f"seat {player.seat}" for player in record.players if player.deal_seed]
    parties = " and ".join(["the server", *seeded])
    deals = moves = 0
    for step in replayed(record):
        moves += 1
        dealt = step.move.dealt
        if dealt and not dealt.is_position and record.deal_commitment and deals < DEALS_MAX:
            deals += 1
            yield f"deal {deals}, revision {step.move.revision}: follows from the seeds of {parties}"
    if deals:
        yield f"commitment {record.deal_commitment.hex()}: the last seed leads to it"
    yield f"moves: all {moves} keep the rules, and each draw is the next tile of its pool"
    yield f"scores: {len(record.rounds)} rounds, winners {', '.join(map(str, record.winners)) or 'none'}"


if __name__ == "__main__":
    main()
