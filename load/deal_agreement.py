"""Whether the engine and the TypeScript client agree on fair deals: both check records of random games, and forgeries.

Usage: python -m load.deal_agreement [DEALS] [GAMES] [SEED]

DEALS are games of random rules that have just begun, GAMES random games of all presets and families with their draws,
new deals and time-outs. Each record is checked as it is, and with the pool of its last deal rotated by a tile, which
both have to refuse. A run of 10,000 deals writes its results into docs/fair-deal.md. Needs Node.js.
"""

import base64
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from conformance.make_deals import random_record
from engine.record import GameRecord, RecordError, replayed
from load.bench.figures import are_met, print_report, printer, requirement, run_facts, told_of_run
from load.pages import text_of, write
from service.codec.records import encode_record
from support.fair_games import FAMILIES, fair_record
from support.random_play import ANALYSIS
from tools.servers import ROOT

COMPLETE: Final = 10_000
GAMES: Final = 200
CLIENT: Final = ROOT / "clients" / "typescript"
_BUILD: Final = "test -d node_modules || npm ci --silent --ignore-scripts; npx tsc"


@dataclass
class Agreement:
    """The results of both checks: rounds of fair records, by kind; records, and those on which the checks differ."""

    rounds: Counter[str] = field(default_factory=Counter)
    fair: int = 0
    refused: int = 0
    differing: list[str] = field(default_factory=list)


def records(deals: int, games: int, seed: int) -> Iterator[tuple[str, GameRecord]]:
    """Yields random records with a name; a game that was aborted in the lobby has no deal."""
    for number in range(seed, seed + deals):
        yield f"deal {number}", random_record(random.Random(number))
    names = tuple(FAMILIES)
    for number in range(games):
        family = names[number % len(names)]
        yield f"{family} {seed + number}", fair_record(family, seed + number)


def forged(record: GameRecord) -> GameRecord | None:
    """Returns a record with the pool of its last deal rotated by a tile; None if that changes nothing."""
    last = max((place for place, move in enumerate(record.moves) if move.dealt), default=None)
    if last is None:
        return None
    dealt = record.moves[last].dealt
    assert dealt is not None, "the place is that of a deal"  # noqa: S101 - for the type
    move = replace(record.moves[last], dealt=replace(dealt, pool=(*dealt.pool[1:], *dealt.pool[:1])))
    rotated = replace(record, moves=(*record.moves[:last], move, *record.moves[last + 1 :]))
    return rotated if rotated != record else None


def fault_of(record: GameRecord) -> str:
    """Returns what the engine finds wrong with a record; empty for nothing."""
    try:
        for _ in replayed(record, ANALYSIS):
            pass
    except RecordError as error:
        return str(error)
    return ""


def faults_by_client(all_records: Iterable[GameRecord]) -> list[tuple[int, str]]:
    """Returns how many deals the TypeScript client finds in each record, and what is wrong with it."""
    subprocess.run(["sh", "-c", _BUILD], cwd=CLIENT, check=True)  # noqa: S607 - the shell of this machine
    lines = (base64.b64encode(encode_record(one).SerializeToString()).decode() for one in all_records)
    command = ("node", "dist/conformance/deals.js")
    done = subprocess.run(command, input="\n".join(lines), cwd=CLIENT, check=True, stdout=subprocess.PIPE, text=True)
    found = (line.partition(" ") for line in done.stdout.splitlines())
    return [(int(deals), wrong) for deals, _, wrong in found]


def agreement(deals: int, games: int, seed: int) -> Agreement:
    """Returns what both find in random records and their forged copies."""
    cases: list[tuple[str, GameRecord, bool]] = []
    for name, record in records(deals, games, seed):
        if any(move.dealt for move in record.moves):
            cases.append((name, record, True))
        forgery = forged(record)
        if forgery is not None:
            cases.append((f"forged {name}", forgery, False))
    found = Agreement()
    by_client = faults_by_client(record for _, record, _ in cases)
    for (name, record, is_fair), (count, by_typescript) in zip(cases, by_client, strict=True):
        by_engine = fault_of(record)
        if (is_fair, is_fair) != (not by_engine, not by_typescript):
            found.differing.append(f"{name}: engine: {by_engine or 'fair'}; TypeScript: {by_typescript or 'fair'}")
        elif is_fair:
            found.fair += 1
            found.rounds["just begun" if name.startswith("deal ") else "with their moves"] += count
        else:
            found.refused += 1
    return found


def main() -> int:
    """Prints how many records both check alike; the command line has the numbers of deals and games, and the seed."""
    given = [int(word) for word in sys.argv[1:4]]
    deals, games, seed = (*given, *(COMPLETE, GAMES, 1)[len(given) :])
    started = time.monotonic()
    found = agreement(deals, games, seed)
    for line in found.differing:
        print(line, file=sys.stderr)
    records_checked = found.fair + found.refused + len(found.differing)
    report = {
        **run_facts(),
        "seconds": time.monotonic() - started,
        "requirements": [
            requirement(
                "the engine and the TypeScript client find all records fair, and none of their forged copies",
                met=not found.differing,
                measured=f"{found.fair + found.refused:,} of {records_checked:,}",
            )
        ],
    }
    told = (*told_of_run(report), f"seed {seed}")
    rows = [[kind, f"{count:,}"] for kind, count in sorted(found.rounds.items())]
    tables = {"Deals on which both agree": [["games", "deals"], *rows, ["forged copies", f"{found.refused:,}"]]}
    print_report(report, tables, told, printer())
    if deals >= COMPLETE:
        write("fair-deal.md", "python -m load.deal_agreement", text_of(report, told, tables))
    return 0 if are_met(report) else 1


if __name__ == "__main__":
    sys.exit(main())
