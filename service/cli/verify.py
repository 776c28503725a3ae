"""The command `rummikub-verify`: checks that the deals of a recorded game were fair, and its moves and scores legal."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from engine.fair_deal import DEALS_MAX
from engine.moves import Move
from engine.record import GameRecord, RecordError, replayed
from service.cli.review import RecordFileError, place_of, read_record

NAME: Final = "rummikub-verify"
_HELP: Final = f"""\
RECORD is the text of a record: ExportGame with RECORD_FORM_TEXT, or "Record as text" in the browser.

The server committed itself to its seeds before you sent yours, and every deal follows from all seeds. That holds only
if the record has your seed and the commitment that you noted: give both, or compare the lines that begin with
"compare". docs/fair-deal.md has the method.

examples:
  {NAME} game.txt
  {NAME} game.txt --commitment 35f1... --seed 2=9c04...

exit status: 0 if all is right, 1 if a check fails or the record has no commitment, 2 if it cannot be read
"""
_OK, _FAILED, _COMPARE = "ok      ", "FAILED  ", "compare "


@dataclass(frozen=True)
class Noted:
    """Notes of a player from before the first deal: the commitment, empty for none, and seeds by seat."""

    commitment: bytes = b""
    seeds: Mapping[int, bytes] = field(default_factory=dict)


def main(arguments: Sequence[str] | None = None) -> None:
    """Checks the record that the command line names; ends the process with a status."""
    parser = argparse.ArgumentParser(
        NAME,
        description="Checks a recorded game: commitment, seeds, every deal, every move by the rules, and the scores.",
        epilog=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("record", help="the file; - for the standard input")
    parser.add_argument(
        "--commitment", type=_bytes_of, metavar="HEX", default=b"", help="the deal_commitment that you noted"
    )
    parser.add_argument(
        "--seed",
        type=_seed_of,
        metavar="SEAT=HEX",
        action="append",
        default=[],
        help="the deal_seed that you sent, and your seat; may be given for several seats",
    )
    options = parser.parse_args(arguments)
    try:
        record = read_record(options.record)
    except RecordFileError as error:
        parser.error(str(error))
    has_failed = False
    for line in checks(record, Noted(options.commitment, dict(options.seed))):
        sys.stdout.write(f"{line}\n")
        has_failed = has_failed or line.startswith(_FAILED)
    sys.exit(1 if has_failed else 0)


def _bytes_of(text: str) -> bytes:
    """Returns bytes from hexadecimal digits. Raises ArgumentTypeError."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected hexadecimal digits, two for each byte: {text}") from None


def _seed_of(text: str) -> tuple[int, bytes]:
    """Returns the seat and the seed of an argument. Raises ArgumentTypeError."""
    seat, _, seed = text.partition("=")
    if not (seat.isdecimal() and seed):
        raise argparse.ArgumentTypeError(f"expected SEAT=HEX, such as 2=9c04: {text}")
    return int(seat), _bytes_of(seed)


def checks(record: GameRecord, noted: Noted) -> Iterator[str]:
    """Yields a line for each check, which begins with whether it holds; the last one for an illegal move."""
    if not record.deal_commitment:
        yield f"{_FAILED}the record has no commitment: its deals cannot be checked"
    elif noted.commitment:
        yield _compared("commitment", record.deal_commitment, noted.commitment)
    else:
        yield f"{_COMPARE}commitment {record.deal_commitment.hex()}"
    yield from _seeds(record, noted.seeds)
    try:
        yield from _played(record)
    except RecordError as error:
        yield f"{_FAILED}{place_of(record, error)}{error}"


def _compared(what: str, recorded: bytes, noted: bytes) -> str:
    """Returns the line on a value that was noted."""
    if recorded == noted:
        return f"{_OK}{what} {recorded.hex()}: the one that was noted"
    return f"{_FAILED}{what} {recorded.hex() or 'none'}: another one was noted, {noted.hex()}"


def _seeds(record: GameRecord, noted: Mapping[int, bytes]) -> Iterator[str]:
    """Yields a line for the seed of each person, and of each seat with a noted one."""
    seeds = {player.seat: player.deal_seed for player in record.players if player.bot is None}
    for seat in sorted({*seeds, *noted}):
        seed = seeds.get(seat, b"")
        if seat in noted:
            yield _compared(f"seed of seat {seat}:", seed, noted[seat])
        elif record.deal_commitment:
            yield f"{_COMPARE}seed of seat {seat}: {seed.hex() or 'none'}"


def _played(record: GameRecord) -> Iterator[str]:
    """Yields a line for each deal, and for moves and scores. Raises RecordError for the first that breaks a rule."""
    seeded = [f"seat {player.seat}" for player in record.players if player.deal_seed]
    parties = " and ".join(["the server", *seeded])
    deals = moves = 0
    for step in replayed(record):
        moves += 1
        if step.move.dealt and record.deal_commitment:
            deals += not step.move.dealt.is_position
            yield _dealt(step.move, deals, parties)
    if record.deal_commitment and not any(move.dealt for move in record.moves):
        yield f"{_FAILED}no round was dealt: there is nothing to check"
    if deals:
        yield f"{_OK}commitment {record.deal_commitment.hex()}: the last seed leads to it"
    yield f"{_OK}moves: all {moves} keep the rules, and each draw is the next tile of its pool"
    yield f"{_OK}scores: {len(record.rounds)} rounds, winners {', '.join(map(str, record.winners)) or 'none'}"


def _dealt(move: Move, deal: int, parties: str) -> str:
    """Returns the line on a deal that keeps the rules, by its number."""
    if move.dealt and move.dealt.is_position:
        return f"{_FAILED}revision {move.revision}: the game began with a position, which follows from no seeds"
    if deal > DEALS_MAX:
        return f"{_FAILED}deal {deal}, revision {move.revision}: without a seed, as a game has {DEALS_MAX:,} of them"
    return f"{_OK}deal {deal}, revision {move.revision}: follows from the seeds of {parties}"


if __name__ == "__main__":
    main()
